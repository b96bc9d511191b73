/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs as a table: value, interval, spread; then what stood apart and why; then the verdict. */
#include "view/stat/stat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/sys.h"
#include "stats/runs.h"
#include "view/stat/stat_priv.h"

#define NAME_LEAST 14
#define WIDE       96 /* columns from which the range fits, too */

struct column {
	const struct as_stat_view *v;
	int side;
	double *values; /* of the metric in work; as many as runs */
	size_t names;   /* columns of the names */
};

static size_t runs_of(const struct as_stat_view *v, int side)
{
	return v->repeat->side[side].v.n;
}

static void take(const struct column *c, int m)
{
	const struct as_runs *runs = &c->v->repeat->side[c->side];

	for (size_t i = 0; i < runs->v.n; i++)
		c->values[i] = runs->v.v[i].v[m];
}

/* ---- one value ---- */

void as_stat_value(struct as_buf *out, const struct as_metric_info *info, double x)
{
	if (isnan(x))
		as_buf_addc(out, '-');
	else if (strcmp(info->unit, "s") == 0)
		as_fmt_duration(out, (uint64_t)(AS_MAX(x, 0) * 1e9 + 0.5));
	else if (strcmp(info->unit, "B") == 0)
		as_fmt_bytes(out, (uint64_t)AS_MAX(x, 0));
	else if (info->is_share)
		as_buf_addf(out, x < 0.0995 ? "%.1f %%" : "%.0f %%", 100 * x);
	else if (strcmp(info->unit, "1") == 0)
		as_buf_addf(out, "%.2f", x);
	else if (x < 100 && x != floor(x))
		as_buf_addf(out, "%.1f", x);
	else
		as_fmt_count(out, (uint64_t)(AS_MAX(x, 0) + 0.5));
	if (strcmp(info->unit, "count") != 0 && strcmp(info->unit, "s") != 0 &&
	    strcmp(info->unit, "B") != 0 && strcmp(info->unit, "1") != 0)
		as_buf_addf(out, " %s", info->unit); /* as sysfs says: Joules … */
}

void as_stat_row_name(struct as_buf *out, const struct as_plan *p, int row)
{
	size_t at = out->len;

	as_buf_adds(out, as_plan_row(p, row).name);
	if (row >= AS_M_COUNT_ && row < AS_M_COUNT_ + (int)p->events.v.n)
		return; /* as it was asked for */
	for (char *c = out->p + at; *c; c++)
		*c = *c == '_' ? ' ' : *c;
}

static void pad_to(struct as_buf *out, size_t line, size_t column)
{
	size_t w = as_text_width(out->p + line, out->len - line);

	as_buf_fill(out, ' ', w < column ? column - w : 1);
}

static void add_relative(struct as_buf *out, const char *sign, double x, double of)
{
	double percent = 100 * x / of;

	as_buf_addf(out, percent < 9.95 ? "%s%.1f %%" : "%s%.0f %%", sign, percent);
}

/* The least share of the time that any run counted the event, and the error that left. */
static double least_counted(const struct column *c, int m, double *ret_error)
{
	double counted = 1;

	*ret_error = 0;
	as_vec_foreach (run, &c->v->repeat->side[c->side].v) {
		if (isnan(run->v[m]) || !(run->counted[m] > 0) || run->counted[m] >= counted)
			continue;
		counted = run->counted[m];
		*ret_error = run->error[m];
	}
	return counted;
}

static void add_phrase(const struct as_style *style, const char *text, size_t line,
		       struct as_buf *out)
{
	size_t used = as_text_width(out->p + line, out->len - line);

	if (!*text || used + 12 > (size_t)style->width)
		return;
	as_style_ink(style, out, AS_INK_FAINT);
	as_style_cut(out, text, (size_t)style->width - used);
	as_style_ink(style, out, AS_INK_PLAIN);
}

/* Value, interval, range, and what it means: of the last two on a narrow terminal the meaning. */
static void add_line(const struct column *c, int m, const struct as_style *style,
		     struct as_buf *out)
{
	size_t n = runs_of(c->v, c->side), line = out->len, at = 3 + c->names;
	bool wide = style->width >= WIDE;
	struct as_metric_info info = as_plan_row(c->v->plan, m);
	struct as_runs_summary s;
	double counted, error;

	if (c->v->pid && m == AS_M_RUN_WAIT)
		info.text = "ready, but no CPU free (all threads)";
	if (c->v->pid && m == AS_M_WALL)
		info.text = "watched";
	take(c, m);
	as_runs_summarise(c->values, n, &s);
	if (!s.n || (!c->v->all && m < AS_M_COUNT_ && s.max == 0 && s.min == 0))
		return;
	counted = least_counted(c, m, &error);
	as_buf_adds(out, "   ");
	as_stat_row_name(out, c->v->plan, m);
	pad_to(out, line, at);
	as_stat_value(out, &info, s.mean);
	pad_to(out, line, at += 10);
	if (isfinite(s.low) && s.high > s.low && s.high - s.low < 2 * s.mean)
		add_relative(out, "±", (s.high - s.low) / 2, s.mean);
	else if (s.n < 3 && error > 0)
		add_relative(out, "±", error, 1);
	if (n > 1 || error > 0)
		pad_to(out, line, at += 8);
	if (n > 1 && wide) {
		if (s.max > s.min) {
			as_stat_value(out, &info, s.min);
			as_buf_adds(out, " … ");
			as_stat_value(out, &info, s.max);
		}
		pad_to(out, line, at += 20);
	}
	add_phrase(style, info.text, line, out);
	as_buf_addc(out, '\n');
	if (counted < 0.999)
		as_buf_addf(out, "%*scounted %.0f %% of the time, the rest is estimated\n",
			    (int)(3 + c->names), "", 100 * counted);
	/* Of a short run the kernel calls all of its CPU time one or the other, by where a tick met it. */
	if (s.mixture && m != AS_M_USER && m != AS_M_SYSTEM) {
		as_buf_addf(out, "%*stwo kinds of run: ", (int)(3 + c->names), "");
		as_stat_value(out, &info, s.groups[0]);
		as_buf_adds(out, " and ");
		as_stat_value(out, &info, s.groups[1]);
		as_buf_addc(out, '\n');
	}
}

/* ---- what stood apart ---- */

/* The cause that the run's other figures point at; "" when none does. */
static const char *cause(const struct as_runs *runs, size_t i, double excess_s)
{
	const struct as_run *r = &runs->v.v[i];

	if (r->v[AS_M_STEAL] * 2 > excess_s)
		return "the host took the CPU away (steal)";
	if (r->v[AS_M_RUN_WAIT] * 2 > excess_s)
		return "it waited for a CPU that others had";
	if (r->v[AS_M_MAJOR_FAULTS] > 0)
		return "pages had to be read from a disk";
	if (i == 0)
		return "the first run: nothing was in the caches yet";
	return "";
}

static void add_outliers(const struct column *c, const struct as_style *style,
			 struct as_buf *out)
{
	const struct as_runs *runs = &c->v->repeat->side[c->side];
	size_t n = runs->v.n, shown = 0;
	AS_CLEANUP(as_free_autop) bool *apart = as_xcalloc(n + 1, sizeof *apart);
	struct as_runs_summary s;

	take(c, AS_M_WALL);
	as_runs_summarise(c->values, n, &s);
	if (!as_runs_outliers(c->values, n, apart))
		return;
	for (size_t i = 0; i < n && shown < 4; i++) {
		double excess = c->values[i] - s.median;
		const char *why = cause(runs, i, fabs(excess));

		if (!apart[i])
			continue;
		as_style_ink(style, out, AS_INK_FAINT);
		as_buf_addf(out, "%-7s", shown++ ? "" : "apart");
		as_style_ink(style, out, AS_INK_PLAIN);
		as_buf_addf(out, "run %zu: wall %+.0f %%%s%s\n", i + 1, 100 * excess / s.median,
			    *why ? ", " : "", why);
	}
}

static void add_drift(const struct column *c, struct as_buf *out)
{
	struct as_runs_summary s;

	take(c, AS_M_WALL);
	as_runs_summarise(c->values, runs_of(c->v, c->side), &s);
	if (s.drift > 0)
		as_buf_addf(out,
			    "drift  runs next to each other are alike (correlation %.2f): the\n"
			    "       machine's speed moves; intervals are widened for it\n",
			    s.drift);
}

/* ---- the whole ---- */

static void add_command(const struct as_run_request *q, struct as_buf *out)
{
	for (char *const *w = q->argv; *w; w++) {
		as_buf_adds(out, w == q->argv ? "" : " ");
		as_fmt_quoted(out, *w, strnlen(*w, 200));
	}
}

static size_t name_width(const struct column *c)
{
	size_t most = NAME_LEAST;

	for (int m = 0; m < as_plan_rows(c->v->plan); m++) {
		bool seen = false;

		as_vec_foreach (run, &c->v->repeat->side[c->side].v)
			seen |= run->v[m] > 0 || (c->v->all && !isnan(run->v[m]));
		if (seen && as_plan_wanted(c->v->plan, m))
			most = AS_MAX(most, strlen(as_plan_row(c->v->plan, m).name));
	}
	return AS_MIN(most, (size_t)40) + 2;
}

void as_stat_notes(const struct as_plan *p, bool asked, struct as_buf *out)
{
	if (p->no_pmu && !asked)
		as_buf_adds(out,
			    "note   no PMU here (as in most virtual machines): no cycles, no "
			    "cache misses\n");
	if (p->user_only)
		as_buf_adds(out, "note   events: user mode only; for all, sudo sysctl "
				 "kernel.perf_event_paranoid=1\n");
}

static void add_side(const struct as_stat_view *v, int side, const struct as_style *style,
		     struct as_buf *out)
{
	size_t n = runs_of(v, side);
	struct column c = {.v = v, .side = side, .values = as_xcalloc(n + 1, sizeof(double))};

	as_style_ink(style, out, AS_INK_STRONG);
	if (v->title)
		as_buf_adds(out, v->title);
	else
		add_command(side ? &v->request->other : &v->request->run, out);
	as_style_ink(style, out, AS_INK_PLAIN);
	if (v->title)
		as_buf_adds(out, "\n\n");
	else
		as_buf_addf(out, ": %zu run%s\n\n", n, n == 1 ? "" : "s");
	c.names = name_width(&c);
	for (int m = 0; m < as_plan_rows(v->plan); m++) {
		if (as_plan_wanted(v->plan, m))
			add_line(&c, m, style, out);
	}
	if (n && v->repeat->side[side].v.v[0].placed[0])
		as_buf_addf(out, "   time on the kinds of core: %s\n",
			    v->repeat->side[side].v.v[0].placed);
	as_buf_addc(out, '\n');
	add_outliers(&c, style, out);
	add_drift(&c, out);
	free(c.values);
}

static void add_ratio(struct as_buf *out, const char *name, const struct as_trimmed *t)
{
	as_buf_addf(out, "   %-19s   ", name);
	if (isfinite(t->lo))
		as_buf_addf(out, "%+.1f %% [%+.1f, %+.1f]\n", 100 * expm1(t->value),
			    100 * expm1(t->lo), 100 * expm1(t->hi));
	else
		as_buf_addf(out, "%+.1f %%\n", 100 * expm1(t->value));
}

static void add_comparison(const struct as_stat_view *v, const struct as_style *style,
			   struct as_buf *out)
{
	const struct as_repeat *r = v->repeat;
	enum as_verdict verdict = r->look.verdict;

	if (v->baseline)
		as_buf_addf(out, "against the baseline %s, ", v->baseline);
	else
		as_buf_adds(out, "second against first, ");
	as_buf_addf(out, "%zu pairs, order by coin\n\n", r->look.plain.n);
	add_ratio(out, "wall", &r->by[0]);
	add_ratio(out, "cpu", &r->by[1]);
	as_buf_adds(out, "\n");
	as_style_ink(style, out, AS_INK_STRONG);
	as_buf_addf(out, "%s", as_verdict_name(verdict));
	as_style_ink(style, out, AS_INK_PLAIN);
	as_buf_addf(out, " by %s time", r->decides == AS_M_CPU ? "CPU" : "wall");
	if (verdict == AS_VERDICT_EQUAL)
		as_buf_addf(out, ": within %.2g %%", 100 * v->request->delta);
	if (verdict == AS_VERDICT_UNDECIDED && r->look.pairs_needed)
		as_buf_addf(out, ": ≈ %zu more pairs would tell",
			    r->look.pairs_needed - r->look.plain.n);
	as_buf_addc(out, '\n');
	if (v->baseline_note)
		as_buf_adds(out, v->baseline_note);
	if (r->disagree)
		as_buf_adds(out,
			    "note   wall and CPU time disagree: one of the two waits more\n");
	if (r->look.mixture)
		as_buf_adds(
			out,
			"note   the pairs are of two kinds: one number describes neither\n");
}

static void add_builds(const struct as_stat_view *v, const struct as_style *style,
		       struct as_buf *out)
{
	const bool *no = v->unoptimised;

	if (!no[0] && !no[1])
		return;
	as_style_ink(style, out, AS_INK_STRONG);
	if (no[0] && no[1])
		as_buf_adds(out, "note   both are built without optimisation: release builds "
				 "may compare otherwise");
	else
		as_buf_addf(out,
			    "note   the %s is built without optimisation: a release build "
			    "of it may compare otherwise",
			    no[0] ? "first" : "second");
	as_style_ink(style, out, AS_INK_PLAIN);
	as_buf_addc(out, '\n');
}

static void add_failure(const struct as_stat_view *v, struct as_buf *out)
{
	const struct as_repeat *r = v->repeat;
	int s = r->failed_status;
	bool over = v->request->ignore_failure || v->request->runs == 1;
	const char *hint = over ? "" : "; --ignore-failure goes on";

	if (!r->failed_run)
		return;
	as_buf_addf(out, "failed run %zu%s ended with %s %d%s\n", r->failed_run,
		    v->request->other.argv ? r->failed_side ? " of the second" : " of the first"
					   : "",
		    WIFSIGNALED(s) ? "signal" : "status",
		    WIFSIGNALED(s) ? WTERMSIG(s) : WEXITSTATUS(s), hint);
}

void as_stat_text(const struct as_stat_view *v, const struct as_style *style,
		  struct as_buf *out)
{
	add_side(v, 0, style, out);
	if (v->request->other.argv) {
		add_side(v, 1, style, out);
		add_comparison(v, style, out);
		add_builds(v, style, out);
	}
	add_failure(v, out);
	as_stat_notes(v->plan, v->asked, out);
	if (v->repeat->stopped && v->repeat->look.verdict == AS_VERDICT_UNDECIDED)
		as_buf_adds(out, "note   stopped early: these are the runs until then\n");
}

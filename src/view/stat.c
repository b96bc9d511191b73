/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs as a table: value, interval, spread; then what stood apart and why; then the verdict. */
#include "view/stat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/sys.h"
#include "stats/runs.h"

#define NAME_WIDTH 22

struct column {
	const struct as_stat_view *v;
	int side;
	double *values; /* of the metric in work; as many as runs */
};

static size_t runs_of(const struct as_stat_view *v, int side)
{
	return v->repeat->side[side].v.n;
}

static void take(const struct column *c, enum as_metric m)
{
	const struct as_runs *runs = &c->v->repeat->side[c->side];

	for (size_t i = 0; i < runs->v.n; i++)
		c->values[i] = runs->v.v[i].v[m];
}

/* ---- one value ---- */

static bool is_unit(enum as_metric m, const char *unit)
{
	return strcmp(as_metrics[m].unit, unit) == 0;
}

static void add_value(struct as_buf *out, enum as_metric m, double x)
{
	if (is_unit(m, "s"))
		as_fmt_duration(out, (uint64_t)(AS_MAX(x, 0) * 1e9));
	else if (is_unit(m, "B"))
		as_fmt_bytes(out, (uint64_t)AS_MAX(x, 0));
	else if (m == AS_M_UTILISATION)
		as_buf_addf(out, "%.0f %%", 100 * x);
	else if (is_unit(m, "1"))
		as_buf_addf(out, "%.2f", x);
	else if (x < 100 && x != floor(x))
		as_buf_addf(out, "%.1f", x);
	else
		as_fmt_count(out, (uint64_t)(AS_MAX(x, 0) + 0.5));
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

static void add_line(const struct column *c, enum as_metric m, const struct as_style *style,
		     struct as_buf *out)
{
	size_t n = runs_of(c->v, c->side), line = out->len;
	struct as_runs_summary s;
	double counted = 1;

	take(c, m);
	as_runs_summarise(c->values, n, &s);
	if (!s.n || (!c->v->all && s.max == 0 && s.min == 0))
		return;
	as_buf_addf(out, "   %s", as_metrics[m].name);
	for (char *p = out->p + line; *p; p++)
		*p = *p == '_' ? ' ' : *p;
	pad_to(out, line, 3 + NAME_WIDTH);
	add_value(out, m, s.mean);
	if (isfinite(s.low) && s.high > s.low && s.high - s.low < 2 * s.mean) {
		pad_to(out, line, 3 + NAME_WIDTH + 10);
		add_relative(out, "±", (s.high - s.low) / 2, s.mean);
	}
	if (s.n > 1 && s.max > s.min) {
		pad_to(out, line, 3 + NAME_WIDTH + 20);
		as_style_ink(style, out, AS_INK_FAINT);
		add_value(out, m, s.min);
		as_buf_adds(out, " … ");
		add_value(out, m, s.max);
		as_style_ink(style, out, AS_INK_PLAIN);
	}
	for (size_t i = 0; i < n; i++) {
		double part = c->v->repeat->side[c->side].v.v[i].counted[m];

		counted = part > 0 ? AS_MIN(counted, part) : counted;
	}
	if (counted < 0.999)
		as_buf_addf(out, "  counted %.0f %% of the time", 100 * counted);
	if (s.mixture) {
		as_buf_adds(out, "  two kinds of run: ");
		add_value(out, m, s.groups[0]);
		as_buf_adds(out, " and ");
		add_value(out, m, s.groups[1]);
	}
	as_buf_addc(out, '\n');
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
			    "drift  runs next to each other are alike (correlation %.2f): the "
			    "machine's speed moves; intervals are widened for it\n",
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

static void add_side(const struct as_stat_view *v, int side, const struct as_style *style,
		     struct as_buf *out)
{
	size_t n = runs_of(v, side);
	struct column c = {.v = v, .side = side, .values = as_xcalloc(n + 1, sizeof(double))};

	as_style_ink(style, out, AS_INK_STRONG);
	add_command(side ? &v->request->other : &v->request->run, out);
	as_style_ink(style, out, AS_INK_PLAIN);
	as_buf_addf(out, ": %zu run%s\n\n", n, n == 1 ? "" : "s");
	for (int m = 0; m < AS_M_COUNT_; m++) {
		if (v->wanted[m])
			add_line(&c, (enum as_metric)m, style, out);
	}
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
		as_buf_addf(out, ": about %zu pairs more would tell",
			    r->look.pairs_needed - r->look.plain.n);
	as_buf_addc(out, '\n');
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

	if (!r->failed_run)
		return;
	as_buf_addf(out, "failed run %zu%s ended with %s %d%s\n", r->failed_run,
		    v->request->other.argv ? r->failed_side ? " of the second" : " of the first"
					   : "",
		    WIFSIGNALED(s) ? "signal" : "status",
		    WIFSIGNALED(s) ? WTERMSIG(s) : WEXITSTATUS(s),
		    v->request->ignore_failure ? "" : "; --ignore-failure goes on");
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
	if (v->repeat->stopped && v->repeat->look.verdict == AS_VERDICT_UNDECIDED)
		as_buf_adds(out, "note   stopped early: these are the runs until then\n");
}

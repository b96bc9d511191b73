/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results in a terminal: see report.h. */
#include "results/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "results/grid_priv.h"

#define SAID_ONCE 4 /* a note that so many benchmarks share is told once, at the end */

enum {
	COL_NAME,
	COL_METRIC,
	COL_TIME,
	COL_SURE, /* ±, or the change with its interval */
	COL_VERDICT,
	COL_WHY,
	COL_SPARK,
	COL_RATE,
	COL_MEMORY,
	COL_RANGE,
	COLUMNS
};

struct report {
	const struct as_bench_set *set;
	const struct as_style *style;
	struct as_grid grid;
};

/* ---- notes ---- */

static bool holds(const struct as_bench_notes *notes, const struct as_bench_note *note)
{
	as_vec_foreach (n, notes) {
		if (strcmp(n->kind, note->kind) == 0 && strcmp(n->text, note->text) == 0)
			return true;
	}
	return false;
}

static size_t holders(const struct as_bench_set *s, const struct as_bench_note *note)
{
	size_t n = 0;

	as_vec_foreach (b, &s->benches)
		n += holds(&b->notes, note);
	as_vec_foreach (c, &s->comparisons)
		n += holds(&c->notes, note);
	return n;
}

/* Words on lines of the terminal's width; the first line begins with `head`, the others below it. */
static void wrapped(const struct as_style *style, const char *head, const char *text,
		    struct as_buf *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf clean = {0};
	size_t indent = as_text_width(head, strlen(head)), at = indent;
	size_t width = (size_t)AS_MAX(style->width, 40);

	as_fmt_quoted(&clean, text, strlen(text));
	as_buf_adds(out, head);
	for (const char *p = as_buf_str(&clean); *p;) {
		size_t n = strcspn(p, " "), w = as_text_width(p, n);

		if (at > indent && at + 1 + w > width) {
			as_buf_addc(out, '\n');
			as_buf_fill(out, ' ', indent);
			at = indent;
		} else if (at > indent) {
			as_buf_addc(out, ' ');
			at++;
		}
		as_buf_add(out, p, n);
		at += w;
		p += n;
		p += strspn(p, " ");
	}
	as_buf_addc(out, '\n');
}

/* Without those that `said` holds, too; NULL: none. */
static char *notes_below(const struct report *r, const struct as_bench_notes *notes,
			 const struct as_bench_notes *said)
{
	struct as_buf out = {0};

	as_vec_foreach (n, notes) {
		if (holders(r->set, n) < SAID_ONCE && !(said && holds(said, n)))
			wrapped(r->style, "   note  ", n->text, &out);
	}
	return out.len ? as_buf_detach(&out) : NULL;
}

static void append_below(struct as_grid_line *l, char *text)
{
	if (!l->below) {
		l->below = text;
	} else if (text) {
		char *both = as_xasprintf("%s%s", l->below, text);

		free(l->below);
		free(text);
		l->below = both;
	}
}

/* ---- a line ---- */

static void set_text(struct as_grid_line *l, size_t column, const char *text, enum as_ink ink)
{
	struct as_buf b = {0};

	as_buf_adds(&b, text);
	as_grid_set(l, column, &b, ink);
}

static void half_width(const struct as_bench_set *s, const struct as_bench *b,
		       struct as_buf *out)
{
	double half = (b->time.high - b->time.low) / 2, of = fabs(b->time.value);

	if (!isfinite(half))
		return;
	if (of > 0 && half / of < 9.995)
		as_buf_addf(out, half / of < 0.0995 ? "±%.1f %%" : "±%.0f %%", 100 * half / of);
	else if (half > 0) {
		as_buf_adds(out, "±");
		as_bench_value_in(out, s->time_unit, b->unit, half);
	}
}

/* "time" is what everyone expects; CPU or a custom metric is named. */
static void metric_word(const struct as_bench_set *s, const struct as_bench *b,
			struct as_grid_line *l)
{
	bool said = false;

	as_vec_foreach (other, &s->benches)
		said |= other->metric && strcmp(other->metric, "time") != 0;
	if (said && b->metric)
		set_text(l, COL_METRIC, b->metric, AS_INK_FAINT);
}

static void memory(const struct as_bench *b, struct as_buf *out)
{
	if (!isnan(b->allocs)) {
		as_bench_value(out, "1", b->allocs);
		as_buf_adds(out, b->allocs == 1 ? " alloc" : " allocs");
		if (b->alloc_bytes > 0) {
			as_buf_adds(out, ", ");
			as_bench_value(out, "B", b->alloc_bytes);
		}
	} else if (!isnan(b->peak_rss)) {
		as_bench_value(out, "B", b->peak_rss);
		as_buf_adds(out, " peak");
	}
}

static void figures(const struct report *r, const struct as_bench *b, struct as_grid_line *l)
{
	struct as_buf text = {0};
	bool few = b->samples.n < 8 && b->batch_times.n > b->samples.n;

	metric_word(r->set, b, l);
	as_bench_value_in(&text, r->set->time_unit, b->unit, b->time.value);
	as_grid_set(l, COL_TIME, &text, AS_INK_STRONG);
	as_bench_spark(&text, few ? b->batch_times.v : b->samples.v,
		       few ? b->batch_times.n : b->samples.n);
	as_grid_set(l, COL_SPARK, &text, AS_INK_FAINT);
	as_bench_rate(&text, b);
	as_grid_set(l, COL_RATE, &text, AS_INK_PLAIN);
	memory(b, &text);
	as_grid_set(l, COL_MEMORY, &text, AS_INK_FAINT);
	if (b->max > b->min) {
		as_bench_value_in(&text, r->set->time_unit, b->unit, b->min);
		as_buf_adds(&text, " … ");
		as_bench_value_in(&text, r->set->time_unit, b->unit, b->max);
	}
	as_grid_set(l, COL_RANGE, &text, AS_INK_FAINT);
}

/* The other clock of a command, and where its CPU time went: what hyperfine's readers look for. */
static char *clocks_below(const struct report *r, const struct as_bench *b)
{
	struct as_buf out = {0}, line = {0};
	bool by_cpu = b->metric && strcmp(b->metric, "cpu") == 0;
	const struct as_bench_estimate *other = by_cpu ? &b->wall : &b->cpu;

	if (b->kind != AS_BENCH_COMMAND || isnan(other->value))
		return NULL;
	as_buf_addf(&line, "%s ", by_cpu ? "wall" : "cpu");
	as_bench_value_in(&line, r->set->time_unit, "s", other->value);
	if (!isnan(b->user.value)) {
		as_buf_adds(&line, ", user ");
		as_bench_value_in(&line, r->set->time_unit, "s", b->user.value);
		as_buf_adds(&line, ", system ");
		as_bench_value_in(&line, r->set->time_unit, "s", b->system.value);
	}
	if (b->processes)
		as_buf_addf(&line, ", %ju runs", (uintmax_t)b->processes);
	wrapped(r->style, "   ", line.p, &out);
	as_buf_clear(&line);
	return as_buf_detach(&out);
}

static struct as_grid_line *add_bench(struct report *r, const struct as_bench *b)
{
	struct as_grid_line *l = as_grid_line(&r->grid);
	struct as_buf text = {0};

	as_buf_adds(&text, b->name ? b->name : "");
	if (b->side)
		as_buf_addf(&text, " (%s)", b->side);
	as_grid_set(l, COL_NAME, &text, AS_INK_PLAIN);
	figures(r, b, l);
	half_width(r->set, b, &text);
	as_grid_set(l, COL_SURE, &text, AS_INK_PLAIN);
	append_below(l, clocks_below(r, b));
	append_below(l, notes_below(r, &b->notes, NULL));
	return l;
}

/* ---- comparisons ---- */

static enum as_ink ink_of(const struct as_bench_comparison *c)
{
	if (c->verdict == AS_BENCH_SLOWER)
		return AS_INK_BAD;
	if (c->verdict == AS_BENCH_FASTER)
		return AS_INK_STRONG;
	return c->verdict == AS_BENCH_EQUAL ? AS_INK_PLAIN : AS_INK_UNSURE;
}

static void why(const struct as_bench_comparison *c, struct as_buf *out)
{
	if (c->stored) {
		as_buf_adds(out, "of different times");
		return;
	}
	if (c->verdict == AS_BENCH_EQUAL && c->delta > 0) {
		as_buf_addf(out, "within %.3g %%", 100 * c->delta);
		return;
	}
	if (c->verdict == AS_BENCH_MOVED)
		as_buf_adds(out, "the same code elsewhere");
	if (c->verdict == AS_BENCH_UNDECIDED && c->seconds_needed > 0 &&
	    isfinite(c->seconds_needed)) {
		as_buf_addf(out, "needs %.0f s more", ceil(c->seconds_needed));
		return;
	}
	if (c->processes)
		as_buf_addf(out, "%s%ju pairs", out->len ? ", " : "", (uintmax_t)c->processes);
	if (c->dropped_failed + c->dropped_timeout)
		as_buf_addf(out, ", %ju failed",
			    (uintmax_t)(c->dropped_failed + c->dropped_timeout));
}

/* Both clocks where they say something else than the one that decided. */
static char *disagreement_below(const struct report *r, const struct as_bench_comparison *c)
{
	struct as_buf out = {0}, line = {0};
	bool by_cpu = c->metric && strcmp(c->metric, "cpu") == 0;
	const struct as_bench_estimate *other = by_cpu ? &c->by_wall : &c->by_cpu;

	if (isnan(other->value) || !(other->low > c->ratio.high || other->high < c->ratio.low))
		return NULL;
	as_buf_addf(&line, "by %s time: ", by_cpu ? "wall" : "CPU");
	as_bench_change(&line, other);
	wrapped(r->style, "   ", line.p, &out);
	as_buf_clear(&line);
	return as_buf_detach(&out);
}

static void judge(const struct report *r, const struct as_bench_comparison *c,
		  struct as_grid_line *l)
{
	struct as_buf text = {0};

	as_bench_change(&text, &c->ratio);
	as_grid_set(l, COL_SURE, &text, AS_INK_PLAIN);
	set_text(l, COL_VERDICT, c->stored ? "trend" : as_bench_verdict_name(c->verdict),
		 c->stored ? AS_INK_FAINT : ink_of(c));
	why(c, &text);
	as_grid_set(l, COL_WHY, &text, AS_INK_FAINT);
	append_below(l, disagreement_below(r, c));
	append_below(l, notes_below(r, &c->notes, NULL));
}

/* Two sides of one benchmark are one line, with the newer side's figures; two benchmarks have
 * lines of their own, and this is one more. */
static bool is_of_sides(const struct as_bench_set *s, const struct as_bench_comparison *c)
{
	return c->name && c->b && as_bench_find(s, c->name, c->b) != NULL;
}

static bool is_compared(const struct as_bench_set *s, const struct as_bench *b)
{
	as_vec_foreach (c, &s->comparisons) {
		if (is_of_sides(s, c) && b->side && strcmp(c->name, b->name) == 0 &&
		    (strcmp(c->b, b->side) == 0 || (c->a && strcmp(c->a, b->side) == 0)))
			return true;
	}
	return false;
}

static void add_comparison(struct report *r, const struct as_bench_comparison *c)
{
	const struct as_bench *old = as_bench_side(r->set, c, 0);
	const struct as_bench *new = as_bench_side(r->set, c, 1);
	struct as_grid_line *l = as_grid_line(&r->grid);

	set_text(l, COL_NAME, c->name, AS_INK_PLAIN);
	figures(r, new, l);
	if (old)
		append_below(l, notes_below(r, &old->notes, NULL));
	append_below(l, notes_below(r, &new->notes, old ? &old->notes : NULL));
	judge(r, c, l);
}

/* Of two benchmarks with lines of their own: one below the table. */
static void add_sentence(const struct report *r, const struct as_bench_comparison *c,
			 struct as_buf *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf line = {0}, reason = {0};
	AS_CLEANUP(as_free_autop) char *clocks = disagreement_below(r, c);
	AS_CLEANUP(as_free_autop) char *notes = notes_below(r, &c->notes, NULL);
	const char *word = c->stored ? "trend" : as_bench_verdict_name(c->verdict);
	AS_CLEANUP(as_free_autop) char *head = as_xasprintf("%-11s", word);

	as_buf_addf(&line, "%s against %s: ", c->b ? c->b : "", c->a ? c->a : "");
	as_bench_change(&line, &c->ratio);
	if (c->metric && strcmp(c->metric, "time") != 0)
		as_buf_addf(&line, " by %s", c->metric);
	why(c, &reason);
	if (reason.len)
		as_buf_addf(&line, ", %s", reason.p);
	as_style_ink(r->style, out, ink_of(c));
	wrapped(r->style, head, line.p, out);
	as_style_ink(r->style, out, AS_INK_PLAIN);
	as_buf_adds(out, clocks ? clocks : "");
	as_buf_adds(out, notes ? notes : "");
}

/* ---- below the table ---- */

static void add_complexity(const struct report *r, const struct as_bench_complexity *c,
			   struct as_buf *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf line = {0};

	if (!c->best)
		return;
	as_buf_addf(&line, "%s over %s: %s", c->name, c->param ? c->param : "n", c->best);
	if (!isnan(c->exponent)) {
		as_buf_addf(&line, ", exponent %.2f", c->exponent);
		if (isfinite(c->exponent_low) && isfinite(c->exponent_high))
			as_buf_addf(&line, " [%.2f, %.2f]", c->exponent_low, c->exponent_high);
	}
	if (c->n.n)
		as_buf_addf(&line, ", %zu sizes %g … %g", c->n.n, c->n.v[0],
			    c->n.v[c->n.n - 1]);
	if (!isnan(c->knee))
		as_buf_addf(&line, "; from %s = %g on it grows faster",
			    c->param ? c->param : "n", c->knee);
	wrapped(r->style, "growth ", line.p, out);
}

static void shared_notes(const struct report *r, const struct as_bench_notes *notes,
			 struct as_buf *said, struct as_buf *out)
{
	as_vec_foreach (n, notes) {
		AS_CLEANUP(as_free_autop) char *line = NULL;
		size_t count = holders(r->set, n);

		if (count < SAID_ONCE || strstr(as_buf_str(said), n->text))
			continue;
		as_buf_addf(said, "%s\n", n->text);
		line = as_xasprintf("%s (%zu of them)", n->text, count);
		wrapped(r->style, "note   ", line, out);
	}
}

static void add_suite(const struct report *r, struct as_buf *out)
{
	const struct as_bench_set *s = r->set;
	AS_CLEANUP(as_buf_clear) struct as_buf line = {0}, tally = {0};

	as_bench_tally(&tally, s);
	if (s->benches.n < 2 && !tally.len)
		return;
	as_buf_addf(&line, "%zu benchmark%s", s->benches.n, s->benches.n == 1 ? "" : "s");
	if (s->seconds > 0)
		as_buf_addf(&line, s->seconds < 9.95 ? " in %.1f s" : " in %.0f s", s->seconds);
	if (tally.len)
		as_buf_addf(&line, " · %s", tally.p);
	if (s->machine)
		as_buf_addf(&line, " · %s", s->machine);
	wrapped(r->style, "suite  ", line.p, out);
}

static void below_table(const struct report *r, struct as_buf *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf said = {0}, tail = {0};

	as_vec_foreach (c, &r->set->comparisons) {
		if (!is_of_sides(r->set, c))
			add_sentence(r, c, &tail);
	}
	as_vec_foreach (c, &r->set->complexities)
		add_complexity(r, c, &tail);
	as_vec_foreach (b, &r->set->benches)
		shared_notes(r, &b->notes, &said, &tail);
	as_vec_foreach (c, &r->set->comparisons)
		shared_notes(r, &c->notes, &said, &tail);
	as_vec_foreach (n, &r->set->notes)
		wrapped(r->style, "note   ", n->text, &tail);
	add_suite(r, &tail);
	if (tail.len)
		as_buf_addf(out, "\n%s", tail.p);
}

void as_bench_text(const struct as_bench_set *s, const struct as_style *style,
		   struct as_buf *out)
{
	struct report r = {.set = s, .style = style, .grid = {.columns = COLUMNS}};

	r.grid.align[COL_TIME] = AS_GRID_POINT;
	r.grid.align[COL_RATE] = AS_GRID_POINT;
	r.grid.flexible[COL_NAME] = true;
	r.grid.rank[COL_RANGE] = 5;
	r.grid.rank[COL_SPARK] = 4;
	r.grid.rank[COL_MEMORY] = 3;
	r.grid.rank[COL_RATE] = 2;
	r.grid.rank[COL_WHY] = 1;
	as_vec_foreach (b, &s->benches) {
		if (!is_compared(s, b))
			add_bench(&r, b);
	}
	as_vec_foreach (c, &s->comparisons) {
		if (is_of_sides(s, c))
			add_comparison(&r, c);
	}
	as_grid_print(&r.grid, style, out);
	below_table(&r, out);
	as_grid_clear(&r.grid);
}

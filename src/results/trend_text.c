/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Trends in a terminal, and as JSON: see keep.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/sys.h"
#include "results/grid_priv.h"
#include "results/keep.h"
#include "results/report.h"

#define ROWS      9
#define LABEL     10 /* columns of the scale */
#define LAST_RUNS 5
#define COURSE    24 /* runs in the line of a list */

static void add_date(struct as_buf *out, uint64_t time_s)
{
	time_t t = (time_t)time_s;
	char text[32] = "";
	struct tm tm;

	if (localtime_r(&t, &tm))
		strftime(text, sizeof text, "%Y-%m-%d", &tm);
	as_buf_adds(out, text);
}

static void range_of(const struct as_bench_trend *t, size_t first, double *ret_low,
		     double *ret_high)
{
	double low = INFINITY, high = -INFINITY;

	for (size_t i = first; i < t->v.n; i++) {
		low = fmin(low, t->v.v[i].e.value);
		high = fmax(high, t->v.v[i].e.value);
	}
	if (!(high > low)) { /* one value: it stands in the middle */
		double d = fabs(low) > 0 ? fabs(low) / 100 : 1;

		low -= d;
		high += d;
	}
	*ret_low = low;
	*ret_high = high;
}

/* ---- one ---- */

struct canvas {
	size_t columns, first; /* first: index of the run in the first column */
	double low, high;
	unsigned char cell[ROWS][400]; /* 0 empty, 1 a run, 2 a step */
};

static void draw(const struct as_bench_trend *t, int width, struct canvas *ret)
{
	size_t room = (size_t)AS_MIN(AS_MAX(width - LABEL - 3, 10), 400);

	*ret = (struct canvas){.columns = AS_MIN(room, t->v.n)};
	ret->first = t->v.n - ret->columns;
	range_of(t, ret->first, &ret->low, &ret->high);
	for (size_t i = 0; i < t->changes; i++) {
		if (!t->change[i].is_step || t->change[i].at < ret->first)
			continue;
		for (size_t row = 0; row < ROWS; row++)
			ret->cell[row][t->change[i].at - ret->first] = 2;
	}
	for (size_t c = 0; c < ret->columns; c++) {
		double v = t->v.v[ret->first + c].e.value;
		double at = (ret->high - v) / (ret->high - ret->low) * (ROWS - 1);

		if (isfinite(at))
			ret->cell[(size_t)(at + 0.5)][c] = 1;
	}
}

static void add_drawing(const struct as_bench_trend *t, const struct as_style *style,
			struct as_buf *out)
{
	static const char *const marks[] = {" ", "•", "┊"};
	struct canvas c;
	size_t line;

	draw(t, style->width, &c);
	for (size_t row = 0; row < ROWS; row++) {
		line = out->len;
		if (row % (ROWS / 2) == 0)
			as_bench_value(out, t->unit,
				       c.high - (c.high - c.low) * (double)row / (ROWS - 1));
		as_buf_fill(
			out, ' ',
			LABEL - AS_MIN(as_text_width(as_buf_str(out) + line, out->len - line),
				       (size_t)LABEL));
		as_buf_adds(out, " ┤");
		for (size_t k = 0; k < c.columns; k++)
			as_buf_adds(out, marks[c.cell[row][k]]);
		while (out->p[out->len - 1] == ' ')
			out->p[--out->len] = 0;
		as_buf_addc(out, '\n');
	}
	as_buf_fill(out, ' ', LABEL + 2);
	add_date(out, t->v.v[c.first].time_s);
	if (c.columns > 24) {
		as_buf_fill(out, ' ', c.columns - 20);
		add_date(out, t->v.v[t->v.n - 1].time_s);
	}
	as_buf_addc(out, '\n');
}

static const char *word_of(const struct as_bench_trend *t, const struct as_change *c)
{
	bool time = t->unit && strcmp(t->unit, "s") == 0;

	if (!c->is_step)
		return c->sd_after > c->sd_before ? "noisier" : "quieter";
	if (c->step > 0)
		return time ? "slower" : "more";
	return time ? "faster" : "less";
}

static void add_change(const struct as_bench_trend *t, const struct as_change *c,
		       struct as_buf *out)
{
	const struct as_bench_trend_point *p = &t->v.v[c->at];
	struct as_bench_estimate ratio = {exp(c->step), exp(c->low), exp(c->high)};

	as_buf_addf(out, "%s since ", word_of(t, c));
	add_date(out, p->time_s);
	if (*p->revision)
		as_buf_addf(out, " (%s)", p->revision);
	as_buf_addf(out, ", run #%jd: ", (intmax_t)p->run);
	if (c->is_step)
		as_bench_change(out, &ratio);
	else
		as_buf_addf(out, "runs scatter by %.1f %%, before %.1f %%", 100 * c->sd_after,
			    100 * c->sd_before);
}

static void add_last_runs(const struct as_bench_trend *t, struct as_buf *out)
{
	size_t first = t->v.n - AS_MIN(t->v.n, (size_t)LAST_RUNS);

	for (size_t i = first; i < t->v.n; i++) {
		const struct as_bench_trend_point *p = &t->v.v[i];
		double half = (p->e.high - p->e.low) / 2 / p->e.value;

		as_buf_addf(out, "#%-6jd ", (intmax_t)p->run);
		add_date(out, p->time_s);
		as_buf_adds(out, "  ");
		as_bench_value(out, t->unit, p->e.value);
		if (half > 0)
			as_buf_addf(out, " ±%.1f %%", 100 * half);
		if (*p->revision)
			as_buf_addf(out, "  %s", p->revision);
		as_buf_addc(out, '\n');
	}
}

void as_bench_trend_text(const struct as_bench_trend *t, const struct as_style *style,
			 struct as_buf *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf name = {0};

	as_style_cut(&name, t->bench, (size_t)AS_MAX(style->width - 20, 20));
	as_buf_addf(out, "%s: %zu run%s on %s\n\n", as_buf_str(&name), t->v.n,
		    t->v.n == 1 ? "" : "s", t->machine);
	if (t->v.n > 1)
		add_drawing(t, style, out);
	if (t->v.n > 1)
		as_buf_addc(out, '\n');
	for (size_t i = 0; i < t->changes; i++) {
		as_buf_adds(out, t->change[i].is_step ? "step   " : "noise  ");
		add_change(t, &t->change[i], out);
		as_buf_addc(out, '\n');
	}
	if (!t->changes && t->v.n >= 2 * AS_CHANGE_LEAST)
		as_buf_adds(out, "steps  none\n");
	else if (t->v.n < 2 * AS_CHANGE_LEAST)
		as_buf_addf(out, "steps  %d runs are needed to tell\n", 2 * AS_CHANGE_LEAST);
	if (t->elsewhere)
		as_buf_addf(out, "note   %zu runs of other machines are left out\n",
			    t->elsewhere);
	as_buf_addc(out, '\n');
	add_last_runs(t, out);
}

/* ---- all ---- */

/* The last runs as blocks between the least and the greatest of them. */
static void add_course(const struct as_bench_trend *t, struct as_buf *out)
{
	static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	size_t first = t->v.n - AS_MIN(t->v.n, (size_t)COURSE);
	double low, high;

	if (t->v.n < 2)
		return;
	range_of(t, first, &low, &high);
	for (size_t i = first; i < t->v.n; i++) {
		double at = (t->v.v[i].e.value - low) / (high - low) * 7;

		as_buf_adds(out, isfinite(at) ? blocks[(int)(at + 0.5)] : " ");
	}
}

void as_bench_trends_text(const struct as_bench_trends *t, const struct as_style *style,
			  struct as_buf *out)
{
	struct as_grid g = {.columns = 5};

	g.flexible[0] = true;
	g.align[1] = AS_GRID_POINT;
	g.align[2] = AS_GRID_RIGHT;
	g.rank[2] = 2;
	g.rank[3] = 3;
	as_vec_foreach (one, &t->v) {
		struct as_grid_line *l = as_grid_line(&g);
		const struct as_change *last = NULL;
		struct as_buf text = {0};

		for (size_t i = 0; i < one->changes; i++)
			last = one->change[i].is_step ? &one->change[i] : last;
		as_buf_adds(&text, one->bench);
		as_grid_set(l, 0, &text, AS_INK_PLAIN);
		if (one->v.n)
			as_bench_value(&text, one->unit, one->v.v[one->v.n - 1].e.value);
		else
			as_buf_adds(&text, "elsewhere");
		as_grid_set(l, 1, &text, AS_INK_STRONG);
		as_buf_addf(&text, "%zu run%s", one->v.n, one->v.n == 1 ? " " : "s");
		as_grid_set(l, 2, &text, AS_INK_FAINT);
		add_course(one, &text);
		as_grid_set(l, 3, &text, AS_INK_FAINT);
		if (last)
			add_change(one, last, &text);
		as_grid_set(l, 4, &text, last && last->step > 0 ? AS_INK_BAD : AS_INK_PLAIN);
	}
	as_grid_print(&g, style, out);
	as_grid_clear(&g);
}

/* ---- data ---- */

static void json_points(struct as_json *j, const struct as_bench_trend *t)
{
	as_json_arr(j, "runs");
	as_vec_foreach (p, &t->v) {
		as_json_obj(j, NULL);
		as_json_i64(j, "run", p->run);
		as_json_u64(j, "time", p->time_s);
		as_json_str(j, "revision", p->revision);
		as_json_num(j, "mean", p->e.value, 12);
		as_json_num(j, "low", p->e.low, 12);
		as_json_num(j, "high", p->e.high, 12);
		as_json_end(j);
	}
	as_json_end(j);
}

void as_bench_trends_json(const struct as_bench_trends *t, struct as_buf *out)
{
	struct as_json j = {.out = out, .indent = true};

	as_json_obj(&j, NULL);
	as_json_str(&j, "schema", "assay.bench.history/1");
	as_json_arr(&j, "benchmarks");
	as_vec_foreach (one, &t->v) {
		as_json_obj(&j, NULL);
		as_json_str(&j, "name", one->bench);
		as_json_str(&j, "unit", one->unit);
		as_json_str(&j, "machine", one->machine);
		as_json_u64(&j, "elsewhere", one->elsewhere);
		json_points(&j, one);
		as_json_arr(&j, "changes");
		for (size_t i = 0; i < one->changes; i++) {
			const struct as_change *c = &one->change[i];

			as_json_obj(&j, NULL);
			as_json_i64(&j, "run", one->v.v[c->at].run);
			as_json_str(&j, "kind", word_of(one, c));
			as_json_bool(&j, "step", c->is_step);
			as_json_num(&j, "ratio", exp(c->step), 7);
			as_json_num(&j, "low", exp(c->low), 7);
			as_json_num(&j, "high", exp(c->high), 7);
			as_json_num(&j, "p", c->p, 3);
			as_json_end(&j);
		}
		as_json_end(&j);
		as_json_end(&j);
	}
	as_json_end(&j);
	as_json_end(&j);
	as_buf_addc(out, '\n');
}

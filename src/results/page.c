/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The page of results: see page.h. */
#include "results/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/sys.h"
#include "chart/chart.h"
#include "results/report.h"
#include "stats/complexity.h"

#define CELLS 24 /* of a histogram */
#define CURVE 60 /* points of a fitted curve */

struct page {
	const struct as_bench_page_request *q;
	struct as_buf *out;
};

/* What one section is about: a benchmark with one side or two. */
struct subject {
	const struct as_bench *side[2]; /* [1] NULL: one only */
	const struct as_bench_comparison *comparison;
};

static size_t stride(size_t n)
{
	return n / AS_BENCH_PAGE_POINTS + 1;
}

/* ---- distribution ---- */

static const double *values_of(const struct as_bench *b, size_t *ret_n)
{
	bool single = b->samples.n < 8 && b->batch_times.n > b->samples.n;

	*ret_n = single ? b->batch_times.n : b->samples.n;
	return single ? b->batch_times.v : b->samples.v;
}

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

/* Where the middle lies and 4 quartile ranges around: one run a thousand times as long would leave all
 * others in one cell. What lies outside counts in the outermost cell. */
static void core_range(const double *v, size_t n, double range[2])
{
	AS_CLEANUP(as_free_autop) double *x = as_xreallocarray(NULL, n + 1, sizeof *x);
	size_t k = 0;
	double spread;

	for (size_t i = 0; i < n; i++) {
		if (isfinite(v[i]))
			x[k++] = v[i];
	}
	if (!k)
		return;
	qsort(x, k, sizeof *x, by_value);
	spread = 4 * (x[3 * k / 4] - x[k / 4]);
	as_chart_include(range, spread > 0 ? fmax(x[0], x[k / 4] - spread) : x[0]);
	as_chart_include(range, spread > 0 ? fmin(x[k - 1], x[3 * k / 4] + spread) : x[k - 1]);
}

static void count_cells(const double *v, size_t n, const double range[2], double *cells)
{
	for (size_t i = 0; i < n; i++) {
		double at = range[1] > range[0]
				    ? (v[i] - range[0]) / (range[1] - range[0]) * CELLS
				    : CELLS / 2;

		if (isfinite(v[i]))
			cells[(int)fmin(fmax(at, 0), CELLS - 1)] += 1.0 / (double)n;
	}
}

static void distribution(const struct page *p, const struct subject *s)
{
	struct as_chart c = {.title = "Distribution of the runs",
			     .value = as_bench_value,
			     .x_unit = s->side[0]->unit ? s->side[0]->unit : "s",
			     .x = AS_CHART_EMPTY,
			     .y = {0, 0}};
	double cells[2][CELLS] = {{0}}, range[2] = AS_CHART_EMPTY;
	size_t n[2] = {0};

	for (int k = 0; k < 2 && s->side[k]; k++) {
		const double *v = values_of(s->side[k], &n[k]);

		core_range(v, n[k], range);
	}
	if (n[0] + n[1] < 2 || !isfinite(range[0]))
		return;
	for (int k = 0; k < 2 && s->side[k]; k++) {
		const double *v = values_of(s->side[k], &n[k]);

		count_cells(v, n[k], range, cells[k]);
		for (int i = 0; i < CELLS; i++)
			as_chart_include(c.y, cells[k][i]);
	}
	if (!(range[1] > range[0])) { /* all equal: one bar in the middle */
		double d = fabs(range[0]) > 0 ? fabs(range[0]) / 100 : 1;

		range[0] -= d;
		range[1] += d;
	}
	c.x[0] = range[0];
	c.x[1] = range[1];
	as_chart_begin(&c, p->out);
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < CELLS; i++) {
			double step = (range[1] - range[0]) / CELLS;
			double x[2] = {range[0] + i * step, range[0] + (i + 1) * step};

			if (cells[k][i] > 0)
				as_chart_bar(&c, x, cells[k][i], k);
		}
	}
	as_chart_end(&c);
}

/* ---- runs and pairs ---- */

static void over_time(const struct page *p, const struct subject *s)
{
	struct as_chart c = {.title = "Runs in their order",
			     .value = as_bench_value,
			     .x_name = "run",
			     .y_unit = s->side[0]->unit ? s->side[0]->unit : "s",
			     .x = AS_CHART_EMPTY,
			     .y = AS_CHART_EMPTY};
	size_t n = 0;

	for (int k = 0; k < 2 && s->side[k]; k++) {
		const double *v = values_of(s->side[k], &n);

		for (size_t i = 0; i < n; i++)
			as_chart_include(c.y, v[i]);
		as_chart_include(c.x, 1);
		as_chart_include(c.x, (double)n);
	}
	if (!(c.x[1] >= 2))
		return;
	as_chart_begin(&c, p->out);
	for (int k = 0; k < 2 && s->side[k]; k++) {
		const double *v = values_of(s->side[k], &n);

		for (size_t i = 0; i < n; i += stride(n)) {
			AS_CLEANUP(as_buf_clear) struct as_buf tip = {0};

			as_buf_addf(&tip, "run %zu: ", i + 1);
			as_bench_value(&tip, s->side[k]->unit, v[i]);
			as_chart_point(&c, (double)i + 1, v[i], k, tip.p);
		}
	}
	as_chart_end(&c);
}

static void pairs(const struct page *p, const struct as_bench_comparison *cmp)
{
	struct as_chart c = {.title = "Change in each pair of runs; band: 95 % of the estimate",
			     .value = as_bench_value,
			     .x_name = "pair",
			     .y_unit = "%",
			     .x = {1, (double)cmp->d.n},
			     .y = {0, 0}};

	if (cmp->d.n < 2)
		return;
	as_vec_foreach (d, &cmp->d)
		as_chart_include(c.y, 100 * expm1(*d));
	as_chart_begin(&c, p->out);
	as_chart_band(&c, 100 * (cmp->ratio.low - 1), 100 * (cmp->ratio.high - 1));
	as_chart_rule_y(&c, 0, "zero");
	as_chart_rule_y(&c, 100 * (cmp->ratio.value - 1), "mid");
	for (size_t i = 0; i < cmp->d.n; i += stride(cmp->d.n)) {
		AS_CLEANUP(as_free_autop)
		char *tip = as_xasprintf("pair %zu: %+.2f %%", i + 1, 100 * expm1(cmp->d.v[i]));

		as_chart_point(&c, (double)i + 1, 100 * expm1(cmp->d.v[i]), 0, tip);
	}
	as_chart_end(&c);
}

/* ---- history ---- */

static void add_date(struct as_buf *out, uint64_t time_s)
{
	time_t t = (time_t)time_s;
	char text[32] = "";
	struct tm tm;

	if (localtime_r(&t, &tm))
		strftime(text, sizeof text, "%Y-%m-%d %H:%M", &tm);
	as_buf_adds(out, text);
}

static void trend_steps(const struct as_chart *c, const struct as_bench_trend *t)
{
	for (size_t i = 0; i < t->changes; i++) {
		const struct as_change *change = &t->change[i];
		struct as_bench_estimate ratio = {exp(change->step), exp(change->low),
						  exp(change->high)};
		AS_CLEANUP(as_buf_clear) struct as_buf tip = {0};

		if (!change->is_step)
			continue;
		as_buf_adds(&tip, change->step > 0 ? "slower: " : "faster: ");
		as_bench_change(&tip, &ratio);
		as_chart_rule_x(c, (double)change->at + 0.5, tip.p);
	}
}

static void trend(const struct page *p, const struct as_bench_trend *t)
{
	struct as_chart c = {.title = "History: a run each, with 95 %; broken lines: steps",
			     .value = as_bench_value,
			     .x_name = "run, oldest first",
			     .y_unit = t->unit ? t->unit : "s",
			     .x_unit = "",
			     .x = {1, (double)t->v.n},
			     .y = AS_CHART_EMPTY};

	if (t->v.n < 2)
		return;
	as_vec_foreach (one, &t->v) {
		as_chart_include(c.y, one->e.value);
		as_chart_include(c.y, fmin(one->e.low, 1.2 * one->e.value));
		as_chart_include(c.y, fmin(one->e.high, 1.2 * one->e.value));
	}
	as_chart_begin(&c, p->out);
	trend_steps(&c, t);
	for (size_t i = 0; i < t->v.n; i += stride(t->v.n)) {
		const struct as_bench_trend_point *one = &t->v.v[i];
		AS_CLEANUP(as_buf_clear) struct as_buf tip = {0};

		as_buf_addf(&tip, "#%jd ", (intmax_t)one->run);
		add_date(&tip, one->time_s);
		as_buf_addf(&tip, " %s: ", one->revision ? one->revision : "");
		as_bench_value(&tip, t->unit, one->e.value);
		as_chart_interval(&c, (double)i + 1, one->e.low, fmin(one->e.high, c.y[1]), 0);
		as_chart_point(&c, (double)i + 1, one->e.value, 0, tip.p);
	}
	as_chart_end(&c);
}

static const struct as_bench_trend *trend_of(const struct page *p, const char *name)
{
	if (!p->q->trends || !name)
		return NULL;
	as_vec_foreach (t, &p->q->trends->v) {
		if (strcmp(t->bench, name) == 0)
			return t;
	}
	return NULL;
}

/* ---- growth ---- */

/* The model that was chosen, or of several the one that predicts best, between the least size and the
 * largest. Fitted again: results that were read do not hold which one it was. */
static void fitted(const struct as_chart *c, const struct as_bench_complexity *x)
{
	double n[CURVE], t[CURVE], least = INFINITY, most = -INFINITY;
	struct as_growth_fit f;

	as_growth_fit(x->n.v, x->t.v, AS_MIN(x->n.n, x->t.n), &f);
	if (f.state != AS_GROWTH_FOUND && f.state != AS_GROWTH_SEVERAL)
		return;
	for (size_t i = 0; i < AS_MIN(x->n.n, x->t.n); i++) {
		least = x->n.v[i] > 0 ? fmin(least, x->n.v[i]) : least;
		most = fmax(most, x->n.v[i]);
	}
	for (size_t i = 0; i < CURVE; i++) {
		n[i] = least * pow(most / least, (double)i / (CURVE - 1));
		t[i] = f.intercept + f.coefficient * as_growth_value(f.best, n[i]);
		if (t[i] < c->y[0] || t[i] > c->y[1])
			t[i] = NAN; /* outside of the frame */
	}
	as_chart_line(c, n, t, CURVE, "fit");
}

static void growth(const struct page *p, const struct as_bench_complexity *x)
{
	struct as_chart c = {
		.title = "Time over the parameter, both logarithmic; the curve is fitted",
		.value = as_bench_value,
		.x_name = x->param ? x->param : "n",
		.y_unit = "s",
		.log_x = true,
		.log_y = true,
		.x = AS_CHART_EMPTY,
		.y = AS_CHART_EMPTY};

	for (size_t i = 0; i < AS_MIN(x->n.n, x->t.n); i++) {
		if (!(x->n.v[i] > 0) || !(x->t.v[i] > 0))
			continue;
		as_chart_include(c.x, x->n.v[i]);
		as_chart_include(c.y, x->t.v[i]);
	}
	as_buf_adds(p->out, "<section><h2>");
	as_chart_text(p->out, x->name ? x->name : "");
	as_buf_adds(p->out, "</h2><p class=\"how\">");
	as_chart_text(p->out, x->best ? x->best : "");
	if (!isnan(x->exponent))
		as_buf_addf(p->out, ", exponent %.2f", x->exponent);
	if (isfinite(x->exponent_low) && isfinite(x->exponent_high))
		as_buf_addf(p->out, " [%.2f, %.2f]", x->exponent_low, x->exponent_high);
	as_buf_adds(p->out, "</p><div class=\"charts\">");
	as_chart_begin(&c, p->out);
	as_chart_line(&c, x->n.v, x->t.v, AS_MIN(x->n.n, x->t.n), "course");
	fitted(&c, x);
	for (size_t i = 0; i < AS_MIN(x->n.n, x->t.n); i++) {
		AS_CLEANUP(as_buf_clear) struct as_buf tip = {0};

		as_buf_addf(&tip, "%g: ", x->n.v[i]);
		as_bench_value(&tip, "s", x->t.v[i]);
		as_chart_point(&c, x->n.v[i], x->t.v[i], 0, tip.p);
	}
	if (!isnan(x->knee))
		as_chart_rule_x(&c, x->knee, "from here on it grows faster");
	as_chart_end(&c);
	as_buf_adds(p->out, "</div></section>");
}

/* ---- the table and the sections ---- */

static bool is_side(const struct as_bench_set *s, const struct as_bench *b)
{
	as_vec_foreach (c, &s->comparisons) {
		if (c->name && c->b && as_bench_find(s, c->name, c->b) &&
		    (as_bench_side(s, c, 0) == b || as_bench_side(s, c, 1) == b))
			return true;
	}
	return false;
}

/* Benches that were not compared, then comparisons. */
static void for_each(const struct page *p,
		     void (*each)(const struct page *p, const struct subject *s, size_t i))
{
	const struct as_bench_set *s = p->q->set;
	size_t i = 0;

	as_vec_foreach (b, &s->benches) {
		if (!is_side(s, b))
			each(p, &(struct subject){.side = {b}}, i++);
	}
	as_vec_foreach (c, &s->comparisons) {
		struct subject both = {{as_bench_side(s, c, 0), as_bench_side(s, c, 1)}, c};

		if (!both.side[0]) {
			both.side[0] = both.side[1];
			both.side[1] = NULL;
		}
		if (both.side[0])
			each(p, &both, i++);
	}
}

static void subject_name(const struct subject *s, struct as_buf *out)
{
	const struct as_bench_comparison *c = s->comparison;
	const struct as_bench *b = s->side[0];

	if (c && s->side[1] && strcmp(s->side[0]->name, s->side[1]->name) != 0) {
		as_chart_text(out, c->b);
		as_buf_adds(out, " against ");
		as_chart_text(out, c->a);
	} else {
		as_chart_text(out, b->name ? b->name : "");
	}
}

static void value_cell(const struct as_bench *b, struct as_buf *out)
{
	double half = (b->time.high - b->time.low) / 2 / fabs(b->time.value);

	as_buf_adds(out, "<td>");
	as_bench_value(out, b->unit, b->time.value);
	if (half > 0 && half < 10)
		as_buf_addf(out, " <small>±%.1f %%</small>", 100 * half);
	as_buf_adds(out, "</td>");
}

static void row(const struct page *p, const struct subject *s, size_t i)
{
	const struct as_bench_comparison *c = s->comparison;
	const struct as_bench *now = s->side[1] ? s->side[1] : s->side[0];
	const char *word = !c ? "" : c->stored ? "trend" : as_bench_verdict_name(c->verdict);
	struct as_buf *out = p->out;

	as_buf_addf(out, "<tr><th scope=\"row\"><a href=\"#b%zu\">", i);
	subject_name(s, out);
	as_buf_adds(out, "</a></th>");
	value_cell(now, out);
	as_buf_adds(out, "<td>");
	if (c)
		as_bench_change(out, &c->ratio);
	as_buf_addf(out, "</td><td class=\"%s\">%s</td><td>", word, word);
	as_bench_rate(out, now);
	as_buf_adds(out, "</td><td>");
	if (!isnan(now->allocs))
		as_bench_value(out, "1", now->allocs);
	as_buf_adds(out, "</td><td class=\"spark\" aria-hidden=\"true\">");
	as_bench_spark(out, now->samples.v, now->samples.n);
	as_buf_adds(out, "</td></tr>");
}

static void list_notes(const struct as_bench_notes *notes, struct as_buf *out)
{
	if (!notes->n)
		return;
	as_buf_adds(out, "<ul class=\"notes\">");
	as_vec_foreach (n, notes) {
		as_buf_adds(out, "<li>");
		as_chart_text(out, n->text);
		as_buf_adds(out, "</li>");
	}
	as_buf_adds(out, "</ul>");
}

static void key_of(const struct subject *s, struct as_buf *out)
{
	as_buf_adds(out, "<p class=\"how\">");
	for (int k = 0; k < 2 && s->side[k]; k++) {
		const struct as_bench *b = s->side[k];

		if (s->side[1]) {
			as_buf_addf(out, "<span class=\"key k%d\"></span>", k);
			as_chart_text(out, b->side ? b->side : b->name ? b->name : "");
			as_buf_adds(out, ": ");
		}
		as_bench_value(out, b->unit, b->time.value);
		as_buf_adds(out, ", median ");
		as_bench_value(out, b->unit, b->median);
		as_buf_adds(out, ", mean ");
		as_bench_value(out, b->unit, b->mean);
		as_buf_adds(out, ", least ");
		as_bench_value(out, b->unit, b->min);
		as_buf_addf(out, ", %ju processes ", (uintmax_t)b->processes);
	}
	as_buf_adds(out, "</p>");
}

static void section(const struct page *p, const struct subject *s, size_t i)
{
	const struct as_bench_trend *t = trend_of(p, s->side[0]->name);

	as_buf_addf(p->out, "<section id=\"b%zu\"><h2>", i);
	subject_name(s, p->out);
	as_buf_adds(p->out, "</h2>");
	key_of(s, p->out);
	for (int k = 0; k < 2 && s->side[k]; k++)
		list_notes(&s->side[k]->notes, p->out);
	if (s->comparison)
		list_notes(&s->comparison->notes, p->out);
	as_buf_adds(p->out, "<div class=\"charts\">");
	distribution(p, s);
	over_time(p, s);
	if (s->comparison)
		pairs(p, s->comparison);
	if (t)
		trend(p, t);
	as_buf_adds(p->out, "</div></section>\n");
}

/* ---- the whole ---- */

static void head(const struct page *p, const char *title)
{
	as_buf_adds(p->out,
		    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
		    "<meta name=\"viewport\" content=\"width=device-width\">"
		    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
		    "'none'; style-src 'unsafe-inline'\"><title>");
	as_chart_text(p->out, title);
	as_buf_addf(p->out, "</title><style>%s</style></head><body><main><h1>", as_chart_style);
	as_chart_text(p->out, title);
	as_buf_adds(p->out, "</h1>\n");
}

static void about(const struct page *p)
{
	const struct as_bench_set *s = p->q->set;
	const char *const parts[] = {s->machine, s->toolchain, s->revision, s->tool};

	as_buf_adds(p->out, "<p class=\"about\">");
	if (s->time_s)
		add_date(p->out, s->time_s);
	for (size_t i = 0; i < AS_ARRAY_LEN(parts); i++) {
		if (!parts[i])
			continue;
		as_buf_adds(p->out, " · ");
		as_chart_text(p->out, parts[i]);
	}
	as_buf_adds(p->out, "</p>");
	list_notes(&s->notes, p->out);
}

static void results(const struct page *p)
{
	AS_CLEANUP(as_buf_clear) struct as_buf tally = {0};

	about(p);
	as_bench_tally(&tally, p->q->set);
	as_buf_addf(
		p->out,
		"<div class=\"scroll\"><table><caption>%zu benchmark%s%s%s. Estimates and "
		"changes "
		"with 95 %%.</caption><thead><tr><th scope=\"col\">benchmark</th><th "
		"scope=\"col\">estimate</th><th scope=\"col\">change</th><th "
		"scope=\"col\">verdict</th><th scope=\"col\">rate</th><th "
		"scope=\"col\">allocations</th><th scope=\"col\">runs</th></tr></thead><tbody>",
		p->q->set->benches.n, p->q->set->benches.n == 1 ? "" : "s",
		tally.len ? ": " : "", as_buf_str(&tally));
	for_each(p, row);
	as_buf_adds(p->out, "</tbody></table></div>\n");
	for_each(p, section);
	as_vec_foreach (c, &p->q->set->complexities)
		growth(p, c);
}

static void histories(const struct page *p)
{
	as_vec_foreach (t, &p->q->trends->v) {
		as_buf_adds(p->out, "<section><h2>");
		as_chart_text(p->out, t->bench);
		as_buf_addf(p->out, "</h2><p class=\"how\">%zu run%s on ", t->v.n,
			    t->v.n == 1 ? "" : "s");
		as_chart_text(p->out, t->machine);
		as_buf_adds(p->out, "</p><div class=\"charts\">");
		trend(p, t);
		as_buf_adds(p->out, "</div></section>\n");
	}
}

void as_bench_page(const struct as_bench_page_request *q, struct as_buf *out)
{
	struct page p = {q, out};
	const char *title = q->set && q->set->title ? q->set->title
			    : q->set                ? "Benchmarks"
						    : "Benchmarks over time";

	head(&p, title);
	if (q->set)
		results(&p);
	else if (q->trends)
		histories(&p);
	as_buf_adds(out, "</main></body></html>\n");
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Pages where criterion leaves them when its plots are on: HOME/ID/report/index.html of each benchmark,
 * HOME/GROUP/report/index.html of a group of several, HOME/report/index.html of all. Each stands alone.
 */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "chart/chart.h"
#include "harness/criterion/criterion_priv.h"
#include "stats/runs.h"

#define CELLS          24   /* of a histogram */
#define POINTS_MAX     1000 /* of a drawing */
#define PAGE_BYTES_MAX (1u << 20)
#define FOUND_MAX      10000

/* ---- pieces ---- */

static void add_figure(struct as_buf *out, const char *unit, double v)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};

	if (!unit || strcmp(unit, "ns") == 0) {
		as_criterion_format_time(&text, v);
	} else {
		as_criterion_short(&text, v);
		if (strcmp(unit, "1") != 0)
			as_buf_addf(&text, " %s", unit);
	}
	as_chart_text(out, as_buf_str(&text) + strspn(as_buf_str(&text), " "));
}

static void head(struct as_buf *out, const char *title)
{
	as_buf_adds(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
			 "<meta name=\"viewport\" content=\"width=device-width\">"
			 "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
			 "'none'; style-src 'unsafe-inline'\"><title>");
	as_chart_text(out, title);
	as_buf_addf(out, "</title><style>%s</style></head><body><main><h1>", as_chart_style);
	as_chart_text(out, title);
	as_buf_adds(out, "</h1>\n");
}

/* A folder as part of a link. */
static void add_link(struct as_buf *out, const char *folder)
{
	for (const unsigned char *p = (const unsigned char *)folder; *p; p++) {
		if ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
		    (*p >= '0' && *p <= '9') || strchr("/-._~", *p))
			as_buf_addc(out, (char)*p);
		else
			as_buf_addf(out, "%%%02X", *p);
	}
}

static int write_page(const char *home, const char *folder, const struct as_buf *text,
		      struct as_error *err)
{
	AS_CLEANUP(as_free_autop)
	char *report = as_xasprintf("%s%s%s/report", home, *folder ? "/" : "", folder);
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/index.html", report);
	int r = as_criterion_make_folders(report, err);

	if (r == AS_OK)
		r = as_write_file_atomic(path, as_buf_str(text), text->len, err);
	return r;
}

/* ---- one benchmark ---- */

static void estimate_row(struct as_buf *out, const char *name, const char *unit,
			 const struct as_criterion_estimate *e)
{
	as_buf_addf(out, "<tr><th scope=\"row\">%s</th>", name);
	for (int i = 0; i < 3; i++) {
		as_buf_adds(out, "<td>");
		add_figure(out, unit, i == 0 ? e->low : i == 1 ? e->value : e->high);
		as_buf_adds(out, "</td>");
	}
	as_buf_adds(out, "</tr>");
}

static void estimates(struct as_buf *out, const struct as_criterion_record *r)
{
	const struct as_criterion_estimates *e = &r->est;

	as_buf_addf(
		out,
		"<table><caption>Per iteration, with %g %%, of %zu batches of %.0f "
		"iterations</caption><thead><tr><th></th><th scope=\"col\">lower</th><th "
		"scope=\"col\">estimate</th><th scope=\"col\">upper</th></tr></thead><tbody>",
		100 * e->confidence, r->n_batches, r->iters);
	estimate_row(out, "time: low quartile of a process", r->unit, &e->low_quartile);
	estimate_row(out, "mean", r->unit, &e->mean);
	estimate_row(out, "median", r->unit, &e->median);
	estimate_row(out, "standard deviation", r->unit, &e->sd);
	estimate_row(out, "median absolute deviation", r->unit, &e->mad);
	as_buf_adds(out, "</tbody></table>\n");
}

static void change_text(struct as_buf *out, const struct as_criterion_change *c)
{
	const struct as_criterion_estimate *e = &c->low_quartile;
	const char *word = as_verdict_name(c->verdict);

	as_buf_adds(out, "<p>Against the program of '");
	as_chart_text(out, c->baseline);
	as_buf_addf(
		out,
		"', in %zu pairs: %+.2f %% [%+.2f, %+.2f], <span class=\"%s\">%s</span></p>\n",
		c->pairs, 100 * e->value, 100 * e->low, 100 * e->high, word, word);
}

/* Around the middle half: one batch that was interrupted would leave all others in one cell. */
static void core_range(const double *v, size_t n, double range[2])
{
	AS_CLEANUP(as_free_autop) double *x = as_xmalloc(n * sizeof *x);
	double spread;

	memcpy(x, v, n * sizeof *x);
	qsort(x, n, sizeof *x, as_by_value);
	spread = 4 * (x[3 * n / 4] - x[n / 4]);
	range[0] = spread > 0 ? fmax(x[0], x[n / 4] - spread) : x[0];
	range[1] = spread > 0 ? fmin(x[n - 1], x[3 * n / 4] + spread) : x[n - 1];
	if (!(range[1] > range[0])) {
		range[0] -= fabs(range[0]) / 100;
		range[1] += fabs(range[1]) / 100 + (range[1] == 0);
	}
}

static void distribution(struct as_buf *out, const struct as_criterion_record *r)
{
	struct as_chart c = {.title = "Distribution of the batches",
			     .value = add_figure,
			     .x_unit = r->unit,
			     .y = {0, 0}};
	double cells[CELLS] = {0}, range[2], step;

	core_range(r->batches, r->n_batches, range);
	step = (range[1] - range[0]) / CELLS;
	for (size_t i = 0; i < r->n_batches; i++) {
		double at = fmin(fmax((r->batches[i] - range[0]) / step, 0), CELLS - 1);

		cells[(int)at] += 1.0 / (double)r->n_batches;
	}
	for (int i = 0; i < CELLS; i++)
		as_chart_include(c.y, cells[i]);
	memcpy(c.x, range, sizeof range);
	as_chart_begin(&c, out);
	for (int i = 0; i < CELLS; i++) {
		double x[2] = {range[0] + i * step, range[0] + (i + 1) * step};

		if (cells[i] > 0)
			as_chart_bar(&c, x, cells[i], 0);
	}
	as_chart_end(&c);
}

static void over_time(struct as_buf *out, const struct as_criterion_record *r)
{
	struct as_chart c = {.title = "Batches in their order, process after process",
			     .value = add_figure,
			     .x_name = "batch",
			     .y_unit = r->unit,
			     .x = {1, (double)r->n_batches},
			     .y = AS_CHART_EMPTY};
	size_t step = r->n_batches / POINTS_MAX + 1;

	for (size_t i = 0; i < r->n_batches; i++)
		as_chart_include(c.y, r->batches[i]);
	as_chart_begin(&c, out);
	for (size_t i = 0; i < r->n_batches; i += step)
		as_chart_point(&c, (double)i + 1, r->batches[i], 0, NULL);
	as_chart_end(&c);
}

int as_criterion_write_page(const char *home, const struct as_criterion_record *r,
			    const struct as_criterion_change *change, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};

	head(&out, r->id->title);
	as_buf_adds(&out, "<p class=\"about\"><a href=\"");
	for (const char *p = r->id->folder; p; p = strchr(p + 1, '/'))
		as_buf_adds(&out, "../");
	as_buf_adds(&out, "../report/index.html\">all benchmarks</a> · ");
	as_chart_text(&out, r->machine ? r->machine : "");
	as_buf_adds(&out, "</p>\n");
	estimates(&out, r);
	if (change)
		change_text(&out, change);
	as_buf_adds(&out, "<div class=\"charts\">");
	if (r->n_batches) {
		distribution(&out, r);
		over_time(&out, r);
	}
	as_buf_adds(&out, "</div></main></body></html>\n");
	return write_page(home, r->id->folder, &out, err);
}

/* ---- what there is ---- */

struct found {
	char *group, *function, *title, *folder, *unit;
	double parameter, value; /* parameter NaN: it has none, or no number */
};
struct all {
	AS_VEC(struct found) v;
};

static char *text_in(const struct as_buf *t, const char *path)
{
	struct as_buf s = {0};

	if (as_criterion_json_text(as_buf_str(t), t->len, path, &s))
		return as_buf_detach(&s);
	as_buf_clear(&s);
	return as_xstrdup("");
}

/* Results in `path`/new; what cannot be read has no line. */
static void read_one(const char *path, struct all *all)
{
	AS_CLEANUP(as_free_autop) char *id = as_xasprintf("%s/new/benchmark.json", path);
	AS_CLEANUP(as_free_autop) char *figures = as_xasprintf("%s/new/estimates.json", path);
	AS_CLEANUP(as_free_autop) char *own = as_xasprintf("%s/new/assay.json", path);
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0}, e = {0}, a = {0};
	AS_CLEANUP(as_free_autop) char *value = NULL;
	struct found f = {.parameter = NAN};

	if (as_read_file(id, PAGE_BYTES_MAX, &b, NULL) < 0 ||
	    as_read_file(figures, PAGE_BYTES_MAX, &e, NULL) < 0 || all->v.n >= FOUND_MAX)
		return;
	(void)as_read_file(own, PAGE_BYTES_MAX, &a, NULL); /* criterion's own have none */
	if (!as_criterion_json_number(as_buf_str(&e), e.len, "low_quartile.point_estimate",
				      &f.value) &&
	    !as_criterion_json_number(as_buf_str(&e), e.len, "mean.point_estimate", &f.value))
		return;
	value = text_in(&b, "value_str");
	if (!as_parse_double(value, &f.parameter))
		f.parameter = NAN;
	f.group = text_in(&b, "group_id");
	f.function = text_in(&b, "function_id");
	f.title = text_in(&b, "title");
	f.folder = text_in(&b, "directory_name");
	f.unit = text_in(&a, "unit");
	as_vec_push(&all->v, f);
}

static void read_all(const char *path, int depth, struct all *all)
{
	DIR *d = depth > AS_CRITERION_DEPTH_MAX ? NULL : opendir(path);

	for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
		AS_CLEANUP(as_free_autop) char *below = as_xasprintf("%s/%s", path, e->d_name);

		if (strcmp(e->d_name, "new") == 0)
			read_one(path, all);
		else if (e->d_name[0] != '.' && strcmp(e->d_name, "report") != 0 &&
			 (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN))
			read_all(below, depth + 1, all);
	}
	if (d)
		(void)closedir(d); /* only read */
}

static int by_place(const void *pa, const void *pb)
{
	const struct found *a = pa, *b = pb;
	int order = strcmp(a->group, b->group);

	if (!order)
		order = strcmp(a->function, b->function);
	if (!order && (a->parameter < b->parameter || a->parameter > b->parameter))
		return a->parameter < b->parameter ? -1 : 1;
	return order ? order : strcmp(a->title, b->title);
}

static void clear_all(struct all *all)
{
	as_vec_foreach (f, &all->v) {
		free(f->group);
		free(f->function);
		free(f->title);
		free(f->folder);
		free(f->unit);
	}
	as_vec_clear(&all->v);
}

/* ---- groups, and all ---- */

static void table(struct as_buf *out, const struct found *f, size_t n, const char *up)
{
	as_buf_adds(out,
		    "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">benchmark</th>"
		    "<th scope=\"col\">time</th></tr></thead><tbody>");
	for (size_t i = 0; i < n; i++) {
		as_buf_addf(out, "<tr><th scope=\"row\"><a href=\"%s", up);
		add_link(out, f[i].folder);
		as_buf_adds(out, "/report/index.html\">");
		as_chart_text(out, f[i].title);
		as_buf_adds(out, "</a></th><td>");
		add_figure(out, *f[i].unit ? f[i].unit : "ns", f[i].value);
		as_buf_adds(out, "</td></tr>");
	}
	as_buf_adds(out, "</tbody></table></div>\n");
}

/* Of each function a line over its parameter, where that is a number. */
static void growth(struct as_buf *out, const struct found *f, size_t n)
{
	struct as_chart c = {.title = "Time over the parameter",
			     .value = add_figure,
			     .y_unit = *f->unit ? f->unit : "ns",
			     .x = AS_CHART_EMPTY,
			     .y = AS_CHART_EMPTY};
	AS_CLEANUP(as_free_autop) double *x = as_xmalloc(2 * n * sizeof *x);
	double *y = x + n;

	for (size_t i = 0; i < n; i++) {
		as_chart_include(c.x, f[i].parameter);
		as_chart_include(c.y, isnan(f[i].parameter) ? NAN : f[i].value);
	}
	if (!(c.x[1] > c.x[0]))
		return;
	c.log_x = c.x[0] > 0 && c.x[1] >= 10 * c.x[0];
	c.log_y = c.log_x && c.y[0] > 0;
	as_buf_adds(out, "<div class=\"charts\">");
	as_chart_begin(&c, out);
	for (size_t i = 0, k = 0; i < n; i++) {
		x[k] = f[i].parameter;
		y[k++] = f[i].value;
		if (i + 1 < n && strcmp(f[i].function, f[i + 1].function) == 0)
			continue;
		as_chart_line(&c, x, y, k, "course");
		k = 0;
	}
	for (size_t i = 0; i < n; i++)
		as_chart_point(&c, f[i].parameter, f[i].value, 0, f[i].title);
	as_chart_end(&c);
	as_buf_adds(out, "</div>");
}

static int write_group(const char *home, const struct found *f, size_t n, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	AS_CLEANUP(as_free_autop)
	char *folder = as_xstrndup(f->folder, strcspn(f->folder, "/"));

	/* alone it has its own page; one without function and value lies where the group's would */
	for (size_t i = 0; i < n; i++)
		if (n < 2 || strcmp(f[i].folder, folder) == 0)
			return AS_OK;
	head(&out, f->group);
	as_buf_adds(&out, "<p class=\"about\"><a href=\"../../report/index.html\">all "
			  "benchmarks</a></p>\n");
	table(&out, f, n, "../../");
	growth(&out, f, n);
	as_buf_adds(&out, "</main></body></html>\n");
	return write_page(home, folder, &out, err);
}

int as_criterion_write_index(const char *home, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	struct all all = {0};
	int r = AS_OK;

	read_all(home, 0, &all);
	if (all.v.n)
		qsort(all.v.v, all.v.n, sizeof *all.v.v, by_place);
	head(&out, "Benchmarks");
	for (size_t i = 0, end; i < all.v.n && r == AS_OK; i = end) {
		const struct found *f = &all.v.v[i];

		for (end = i + 1; end < all.v.n && strcmp(f->group, all.v.v[end].group) == 0;
		     end++)
			;
		as_buf_adds(&out, "<section><h2>");
		as_chart_text(&out, f->group);
		as_buf_adds(&out, "</h2>");
		table(&out, f, end - i, "../");
		as_buf_adds(&out, "</section>");
		r = write_group(home, f, end - i, err);
	}
	as_buf_adds(&out, "</main></body></html>\n");
	if (r == AS_OK)
		r = write_page(home, "", &out, err);
	clear_all(&all);
	return r;
}

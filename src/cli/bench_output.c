/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What assay bench hands out: text, JSON, hyperfine's exports, the exit status. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/bench_priv.h"
#include "cli/cmds_priv.h"
#include "results/export.h"
#include "results/hyperfine.h"
#include "results/keep.h"
#include "results/page.h"
#include "results/report.h"

struct export
{
	const char *path;
	int kind; /* 0 JSON, 1 CSV, 2 … tables, -1: our own JSON */
};

static void render(const struct export *e, const struct as_bench_args *a,
		   const struct as_bench_set *set, struct as_buf *out)
{
	if (e->kind < 0)
		as_bench_json(set, out);
	else if (e->kind == 0)
		as_hyperfine_json(set, out);
	else if (e->kind == 1)
		as_hyperfine_csv(set, out);
	else
		as_hyperfine_table(set, (enum as_hyperfine_table)(e->kind - 2),
				   (enum as_hyperfine_unit)a->unit, out);
}

static bool is_stdout(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

/* ret_taken: one of them went to standard output. */
static int write_exports(const struct as_bench_args *a, const struct as_bench_set *set,
			 bool *ret_taken, struct as_error *err)
{
	const struct export exports[] = {{a->json, -1},           {a->export_json, 0},
					 {a->export_csv, 1},      {a->export_markdown, 2},
					 {a->export_asciidoc, 3}, {a->export_org, 4}};
	int r = AS_OK;

	*ret_taken = false;
	for (size_t i = 0; i < AS_ARRAY_LEN(exports) && r == AS_OK; i++) {
		AS_CLEANUP(as_buf_clear) struct as_buf out = {0};

		if (!exports[i].path)
			continue;
		*ret_taken |= is_stdout(exports[i].path);
		render(&exports[i], a, set, &out);
		r = as_filter_write(exports[i].path, &out, err);
	}
	return r;
}

/* By wall time, which every command has. */
static int by_mean(const void *pa, const void *pb)
{
	double a = ((const struct as_bench *)pa)->wall.value,
	       b = ((const struct as_bench *)pb)->wall.value;

	return (a > b) - (a < b);
}

struct as_style as_bench_style_of(const struct as_cmd_ctx *ctx)
{
	const struct as_bench_args *a = ctx->args;
	struct as_style style = {.width = as_term_width(STDOUT_FILENO)};
	int color = ctx->common->color;

	if (a->style == AS_BENCH_STYLE_FULL || a->style == AS_BENCH_STYLE_COLOR)
		color = AS_COLOR_ALWAYS;
	else if (a->style == AS_BENCH_STYLE_BASIC || a->style == AS_BENCH_STYLE_NOCOLOR)
		color = AS_COLOR_NEVER;
	style.color = as_term_color(STDOUT_FILENO, (enum as_color)color);
	return style;
}

/* A history that cannot be written is no reason to lose the result; one asked for by name is. */
static int keep(const struct as_bench_args *a, struct as_bench_set *set, struct as_error *err)
{
	struct as_error why;
	int r;

	if (!set->benches.n || (a->no_history && !a->save))
		return AS_OK;
	r = as_bench_keep(set, a->save, NULL, &why);
	if (r == AS_OK || !a->save)
		return AS_OK;
	if (err)
		*err = why;
	return as_wrap(err, "cannot save '%s'", a->save);
}

static void print_set(const struct as_bench_args *a, const struct as_bench_set *set,
		      const struct as_style *style, struct as_buf *out)
{
	switch (a->format) {
	case AS_BENCH_JSON:
		as_bench_json(set, out);
		break;
	case AS_BENCH_MARKDOWN:
		as_bench_markdown(set, out);
		break;
	case AS_BENCH_GITHUB:
		as_bench_github(set, out);
		break;
	case AS_BENCH_OPENMETRICS:
		as_bench_openmetrics(set, out);
		break;
	default:
		as_bench_text(set, style, out);
		break;
	}
}

static int write_page(const struct as_bench_args *a, const struct as_bench_set *set,
		      struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	struct as_bench_trends trends = {0};

	if (!a->html)
		return AS_OK;
	if (!a->no_history)
		(void)as_bench_trends_load(false, &trends,
					   NULL); /* without: a page all the same */
	as_bench_page(&(struct as_bench_page_request){.set = set, .trends = &trends}, &out);
	as_bench_trends_clear(&trends);
	return as_filter_write(a->html, &out, err);
}

int as_bench_print(const struct as_cmd_ctx *ctx, struct as_bench_set *set, struct as_error *err)
{
	static const char *const units[] = {NULL, "us", "ms", "s"}; /* enum as_hyperfine_unit */
	const struct as_bench_args *a = ctx->args;
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	struct as_style style = as_bench_style_of(ctx);
	bool taken = false;
	int r = AS_OK;

	set->time_unit = units[a->unit];
	if (a->amend)
		a->amend(a->amend_ctx, set);
	if (a->sort == AS_BENCH_SORT_MEAN && set->benches.n)
		qsort(set->benches.v, set->benches.n, sizeof *set->benches.v, by_mean);
	if (!a->reading) {
		as_bench_judge(set);
		if (!set->complexities.n)
			as_bench_find_growth(set, false);
		r = keep(a, set, err);
	}
	if (r == AS_OK)
		r = write_exports(a, set, &taken, err);
	if (r == AS_OK && a->export_criterion)
		r = as_bench_export_criterion(set, a->export_criterion,
					      a->save ? a->save : "new", err);
	if (r == AS_OK)
		r = write_page(a, set, err);
	if (r < 0 || taken || is_stdout(a->html) || a->style == AS_BENCH_STYLE_NONE)
		return r;
	print_set(a, set, &style, &out);
	return as_out_write(&out, err);
}

int as_bench_exit(const struct as_bench_args *a, const struct as_bench_set *set)
{
	bool gate = a->fail_on == AS_BENCH_FAIL_ON_SLOWER ||
		    (a->fail_on == AS_BENCH_FAIL_ON_AUTO && a->project.against);

	as_vec_foreach (c, &set->comparisons) {
		if (gate && c->verdict == AS_BENCH_SLOWER)
			return AS_EXIT_GATE;
	}
	return AS_EXIT_FINE;
}

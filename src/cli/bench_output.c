/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What assay bench hands out: text, JSON, hyperfine's exports, the exit status. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "bench/hyperfine.h"
#include "bench/report.h"
#include "cli/bench_priv.h"
#include "cli/cmds_priv.h"

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

static struct as_style style_of(const struct as_cmd_ctx *ctx)
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

int as_bench_print(const struct as_cmd_ctx *ctx, struct as_bench_set *set, struct as_error *err)
{
	const struct as_bench_args *a = ctx->args;
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	struct as_style style = style_of(ctx);
	bool taken;
	int r;

	if (a->amend)
		a->amend(a->amend_ctx, set);
	if (a->sort == AS_BENCH_SORT_MEAN && set->benches.n)
		qsort(set->benches.v, set->benches.n, sizeof *set->benches.v, by_mean);
	r = write_exports(a, set, &taken, err);
	if (r < 0 || taken || a->style == AS_BENCH_STYLE_NONE)
		return r;
	if (a->format == AS_BENCH_JSON)
		as_bench_json(set, &out);
	else
		as_bench_text(set, &style, &out);
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

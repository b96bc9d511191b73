/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay bench compare, show, export, history: results that are there already. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/bench_priv.h"
#include "cli/cmds_priv.h"
#include "results/compare.h"
#include "results/import.h"
#include "results/keep.h"
#include "results/page.h"

/* ---- whose results a word names ---- */

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Where criterion puts its results; NULL: no such folder. Caller frees. */
static char *criterion_home(void)
{
	const char *home = getenv("CRITERION_HOME"), *target = getenv("CARGO_TARGET_DIR");
	char *path = home ? as_xstrdup(home)
			  : as_xasprintf("%s/criterion", target && *target ? target : "target");

	if (is_folder(path))
		return path;
	free(path);
	return NULL;
}

/* target/criterion:main is a folder and its baseline. */
static bool split_baseline(const char *word, char **ret_folder, const char **ret_baseline)
{
	const char *colon = strrchr(word, ':');
	char *folder = colon ? as_xstrndup(word, (size_t)(colon - word)) : NULL;

	if (!folder || !is_folder(folder)) {
		free(folder);
		return false;
	}
	*ret_folder = folder;
	*ret_baseline = colon + 1;
	return true;
}

/* A file or folder, FOLDER:BASELINE, a saved run, a baseline of criterion's here; in this order. */
static int load(const char *word, struct as_bench_set *ret, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *folder = NULL, *home = NULL;
	const char *baseline = NULL;
	int r;

	if (access(word, F_OK) == 0)
		return as_bench_import(word, NULL, ret, err);
	if (split_baseline(word, &folder, &baseline))
		return as_bench_import(folder, baseline, ret, err);
	r = as_bench_recall(word, ret, err);
	if (r != AS_E_NOTFOUND)
		return r;
	home = criterion_home();
	if (home && as_bench_import(home, word, ret, NULL) == AS_OK)
		return AS_OK;
	return r;
}

static int words_of(const struct as_cmd_ctx *ctx, int least, int most, const char *usage,
		    struct as_error *err)
{
	int n = ctx->noperands - 1;

	if (n >= least && n <= most)
		return AS_OK;
	return as_fail(err, AS_E_USAGE, 0, "%s: as in\n  assay bench %s",
		       n < least ? "which results?" : "too many words", usage);
}

/* ---- forms ---- */

int as_bench_form_compare(struct as_cmd_ctx *ctx, struct as_error *err)
{
	struct as_bench_args *a = ctx->args;
	struct as_bench_set set[2] = {{0}}, both = {0};
	int r = words_of(ctx, 2, 2, "compare BEFORE AFTER", err);

	if (r == AS_OK && a->fail_on == AS_BENCH_FAIL_ON_SLOWER)
		r = as_fail(err, AS_E_USAGE, 0,
			    "--fail-on needs a verdict, and stored results give none\n"
			    "  assay bench --against REV --fail-on slower\n"
			    "  assay bench 'OLD' --vs 'NEW' --fail-on slower");
	for (int i = 0; i < 2 && r == AS_OK; i++)
		r = load(ctx->operands[1 + i], &set[i], err);
	if (r == AS_OK) {
		as_bench_compare(&(struct as_bench_compared){.set = {&set[0], &set[1]},
							     .name = {ctx->operands[1],
								      ctx->operands[2]}},
				 &both);
		if (!both.comparisons.n)
			r = as_fail(err, AS_E_NOTFOUND, 0,
				    "'%s' and '%s' have no benchmark in common",
				    ctx->operands[1], ctx->operands[2]);
	}
	a->reading = true;
	if (r == AS_OK)
		r = as_bench_print(ctx, &both, err);
	as_bench_set_clear(&set[0]);
	as_bench_set_clear(&set[1]);
	as_bench_set_clear(&both);
	return r;
}

int as_bench_form_show(struct as_cmd_ctx *ctx, struct as_error *err)
{
	struct as_bench_args *a = ctx->args;
	struct as_bench_set set = {0};
	int r = words_of(ctx, 0, 1, "show RESULT", err);

	a->reading = true;
	if (r == AS_OK)
		r = load(ctx->noperands > 1 ? ctx->operands[1] : "last", &set, err);
	if (r == AS_OK && !set.complexities.n)
		as_bench_find_growth(&set, false);
	if (r == AS_OK)
		r = as_bench_print(ctx, &set, err);
	as_bench_set_clear(&set);
	return r;
}

/* As show, but for programs: JSON where nothing else is asked for. */
int as_bench_form_export(struct as_cmd_ctx *ctx, struct as_error *err)
{
	struct as_bench_args *a = ctx->args;
	bool to_files = a->json || a->export_json || a->export_csv || a->export_markdown ||
			a->export_asciidoc || a->export_org || a->export_criterion || a->html;

	if (to_files)
		a->style = AS_BENCH_STYLE_NONE;
	else if (a->format == AS_BENCH_TEXT)
		a->format = AS_BENCH_JSON;
	return as_bench_form_show(ctx, err);
}

static int print_trends(struct as_cmd_ctx *ctx, const struct as_bench_trends *t,
			struct as_error *err)
{
	const struct as_bench_args *a = ctx->args;
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	struct as_style style = as_bench_style_of(ctx);
	int r = AS_OK;

	if (a->html) {
		as_bench_page(&(struct as_bench_page_request){.trends = t}, &out);
		r = as_filter_write(a->html, &out, err);
		as_buf_reset(&out);
		if (r < 0 || strcmp(a->html, "-") == 0)
			return r;
	}
	if (a->format == AS_BENCH_JSON)
		as_bench_trends_json(t, &out);
	else if (ctx->noperands > 1)
		as_bench_trend_text(&t->v.v[0], &style, &out);
	else
		as_bench_trends_text(t, &style, &out);
	return as_out_write(&out, err);
}

int as_bench_form_history(struct as_cmd_ctx *ctx, struct as_error *err)
{
	struct as_bench_args *a = ctx->args;
	struct as_bench_trends t = {0};
	int r = words_of(ctx, 0, 1, "history [BENCHMARK]", err);

	if (r == AS_OK && ctx->noperands > 1) {
		struct as_bench_trend one;

		r = as_bench_trend_load(
			&(struct as_bench_trend_wanted){ctx->operands[1], a->everywhere}, &one,
			err);
		if (r == AS_OK)
			as_vec_push(&t.v, one);
	} else if (r == AS_OK) {
		r = as_bench_trends_load(a->everywhere, &t, err);
	}
	if (r == AS_OK)
		r = print_trends(ctx, &t, err);
	as_bench_trends_clear(&t);
	return r;
}

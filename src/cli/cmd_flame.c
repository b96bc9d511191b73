/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay flame: a session as an SVG flame graph. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/cmds_priv.h"
#include "model/diff/diff.h"
#include "model/memory/diff.h"
#include "view/flame/flame.h"

struct flame_args {
	struct as_filter_args filter;
	const char *output, *title;
	bool inverted, by_thread, full_names, diff;
};

static const struct as_option flame_options[] = {
	{.name = "diff",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct flame_args, diff),
	 .group = "Output",
	 .help = "two sessions in one picture: red takes more in the second, blue less, grey "
		 "is not resolved, or of memory the same"},
	{.name = "output",
	 .letter = 'o',
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct flame_args, output),
	 .arg = "FILE",
	 .def_text = "the session's name with .svg",
	 .group = "Output",
	 .help = "where to; - is standard output"},
	{.name = "title",
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct flame_args, title),
	 .arg = "TEXT",
	 .def_text = "the recorded command",
	 .group = "Output",
	 .help = "title of the picture"},
	{.name = "inverted",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct flame_args, inverted),
	 .group = "Output",
	 .help = "innermost functions first, their callers below them"},
	{.name = "by-thread",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct flame_args, by_thread),
	 .group = "Output",
	 .help = "a flame per thread"},
	{.name = "full-names",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct flame_args, full_names),
	 .group = "Output",
	 .help = "names with all their type parameters"},
	AS_FILTER_OPTIONS(struct flame_args),
	AS_FILTER_MEASURE(struct flame_args),
	{0},
};

/* One line on stderr: what was written and what to do with it. Silent when the SVG goes to stdout. */
static void tell(const char *path, size_t bytes)
{
	struct as_buf b = {0};

	as_fmt_quoted(&b, path, strlen(path));
	as_buf_adds(&b, " (");
	as_fmt_bytes(&b, bytes);
	as_buf_adds(&b, "): open it in a browser; click zooms, / searches, Esc goes back\n");
	(void)as_write_all(STDERR_FILENO, b.p, b.len, NULL); /* nowhere left to tell */
	as_buf_clear(&b);
}

/* By time where both have it, unless a measure is said. */
static int set_measures(const struct flame_args *a, struct as_model *const m[2],
			struct as_error *err)
{
	enum as_measure measure = (enum as_measure)a->filter.measure;
	int r = AS_OK;

	if ((m[0]->time.is != m[1]->time.is) && (m[0]->heap.is != m[1]->heap.is))
		return as_fail(err, AS_E_USAGE, 0,
			       "'%s' and '%s': one is a session of time, the other of memory",
			       m[0]->path, m[1]->path);
	if (measure == AS_MEASURE_TIME && !(m[0]->time.is && m[1]->time.is))
		measure = AS_MEASURE_PEAK;
	for (int i = 0; i < 2 && r == AS_OK; i++) {
		as_filter_grown(&a->filter, m[i]);
		r = as_model_measure(m[i], measure, !a->filter.no_fold, err);
	}
	return r;
}

static int draw_diff(const struct as_flame_request *q, const struct as_model *const m[2],
		     struct as_buf *out, struct as_error *err)
{
	struct as_diff_request request = {
		.a = &m[0], .na = 1, .b = &m[1], .nb = 1, .tree = true, .query = q->query};
	struct as_heap_diff_request memory = {
		.a = m[0], .b = m[1], .tree = true, .query = q->query};
	struct as_heap_diff *counted = NULL;
	struct as_diff *d = NULL;
	int r;

	if (as_model_is_counted(m[1])) {
		r = as_heap_diff_make(&memory, &counted, err);
		if (r == AS_OK)
			r = as_flame_memory_diff_svg(q, counted, out, err);
	} else {
		r = as_diff_make(&request, &d, err);
		if (r == AS_OK)
			r = as_flame_diff_svg(q, d, out, err);
	}
	as_heap_diff_free(counted);
	as_diff_free(d);
	return r;
}

static int flame_diff(const struct as_cmd_ctx *ctx, struct as_error *err)
{
	const struct flame_args *a = ctx->args;
	struct as_flame_request q = {.title = a->title, .full_names = a->full_names};
	struct as_model *m[2] = {NULL, NULL};
	struct as_buf out = {0};
	AS_CLEANUP(as_free_autop) char *named = NULL;
	int r = AS_OK;

	if (ctx->noperands != 2 || a->inverted || a->by_thread)
		return as_fail(
			err, AS_E_USAGE, 0,
			"--diff takes two sessions, and is of calls from the first function "
			"down\n  assay flame --diff before.assay after.assay");
	for (int i = 0; i < 2 && r == AS_OK; i++)
		r = as_model_load(ctx->operands[i], &m[i], err);
	if (r == AS_OK)
		r = set_measures(a, m, err);
	named = a->output ? as_xstrdup(a->output)
			  : as_filter_output(ctx->operands[1], ".diff.svg");
	q.model = m[1];
	as_filter_apply(&a->filter, &q.query);
	if (r == AS_OK)
		r = draw_diff(&q, (const struct as_model *const *)m, &out, err);
	if (r == AS_OK)
		r = as_filter_write(named, &out, err);
	if (r == AS_OK && strcmp(named, "-") != 0)
		tell(named, out.len);
	as_buf_clear(&out);
	as_model_free(m[0]);
	as_model_free(m[1]);
	return r;
}

static int flame_run(struct as_cmd_ctx *ctx, struct as_error *err)
{
	const struct flame_args *a = ctx->args;
	struct as_flame_request q = {.title = a->title,
				     .inverted = a->inverted,
				     .by_thread = a->by_thread,
				     .full_names = a->full_names};
	struct as_model *m = NULL;
	struct as_buf out = {0};
	AS_CLEANUP(as_free_autop) char *path = NULL, *named = NULL;
	int r;

	if (a->diff)
		return flame_diff(ctx, err);
	if (ctx->noperands > 1)
		return as_fail(err, AS_E_USAGE, 0,
			       "flame draws one session, or two with --diff");
	r = as_find_session(ctx->noperands ? ctx->operands[0] : NULL, &path, err);
	if (r == 0)
		r = as_model_load(path, &m, err);
	if (r == 0)
		r = as_filter_measure(&a->filter, m, err);
	if (r < 0)
		return r;
	named = a->output ? as_xstrdup(a->output) : as_filter_output(path, ".svg");
	q.model = m;
	as_filter_apply(&a->filter, &q.query);
	r = as_flame_svg(&q, &out, err);
	if (r == 0)
		r = as_filter_write(named, &out, err);
	if (r == 0 && strcmp(named, "-") != 0)
		tell(named, out.len);
	as_buf_clear(&out);
	as_model_free(m);
	return r;
}

const struct as_cmd as_cmd_flame = {
	.name = "flame",
	.group = "Look",
	.summary = "draw a session as a flame graph: one SVG file for the browser",
	.usage = "[options] [FILE]\n[options] --diff BEFORE AFTER",
	.options = flame_options,
	.examples = {{"assay flame", "the newest session, into its name with .svg"},
		     {"assay flame --inverted -o hot.svg", "what is hot, and who called it"},
		     {"assay flame --diff before.assay after.assay", "what a change did"}},
	.operand = "sessions",
	.max_operands = 2,
	.args_size = sizeof(struct flame_args),
	.run = flame_run,
};

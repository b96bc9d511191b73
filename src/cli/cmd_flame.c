/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay flame: a session as an SVG flame graph. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/cmds_priv.h"
#include "view/flame.h"

struct flame_args {
	struct as_filter_args filter;
	const char *output, *title;
	bool inverted, by_thread, full_names;
};

static const struct as_option flame_options[] = {
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
	int r = as_find_session(ctx->noperands ? ctx->operands[0] : NULL, &path, err);

	if (r == 0)
		r = as_model_load(path, &m, err);
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
	.usage = "[options] [FILE]",
	.options = flame_options,
	.examples = {{"assay flame", "the newest session, into its name with .svg"},
		     {"assay flame --inverted -o hot.svg", "what is hot, and who called it"},
		     {"assay flame --by-thread --time 2s..5s app.assay",
		      "three seconds, thread by thread"}},
	.operand = "a session",
	.max_operands = 1,
	.args_size = sizeof(struct flame_args),
	.run = flame_run,
};

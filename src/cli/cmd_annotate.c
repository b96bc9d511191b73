/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay annotate: one function with its cost by line and by instruction. */
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/cmds_priv.h"
#include "view/annotate/annotate.h"

struct annotate_args {
	struct as_filter_args filter;
	int format, percent;
	bool source_only, asm_only, full, full_names, embedded_only;
	int64_t context;
	const char *root;
};

static const struct as_option annotate_options[] = {
	{.name = "source-only",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct annotate_args, source_only),
	 .group = "What is shown",
	 .help = "lines without their instructions"},
	{.name = "asm-only",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct annotate_args, asm_only),
	 .group = "What is shown",
	 .help = "instructions in the order of their addresses, without lines"},
	{.name = "context",
	 .type = AS_OPT_INT,
	 .at = offsetof(struct annotate_args, context),
	 .arg = "N",
	 .min = 0,
	 .max = 1e6,
	 .def = "3",
	 .group = "What is shown",
	 .help = "lines or instructions around those that cost something"},
	{.name = "full",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct annotate_args, full),
	 .group = "What is shown",
	 .help = "fold nothing"},
	{.name = "percent",
	 .type = AS_OPT_CHOICE,
	 .at = offsetof(struct annotate_args, percent),
	 .arg = "OF",
	 .choices = "program|function",
	 .def = "program",
	 .group = "What is shown",
	 .help = "shares of the samples of the whole program, or of those in the function"},
	AS_FILTER_OPTIONS(struct annotate_args),
	AS_FILTER_MEASURE(struct annotate_args),
	{.name = "source-root",
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct annotate_args, root),
	 .arg = "FOLDER",
	 .group = "Where the text comes from",
	 .help = "look for source files below this folder too"},
	{.name = "embedded-only",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct annotate_args, embedded_only),
	 .group = "Where the text comes from",
	 .help = "only what the session holds, no files of this machine"},
	{.name = "full-names",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct annotate_args, full_names),
	 .group = "Output",
	 .help = "names with all their type parameters"},
	{.name = "format",
	 .type = AS_OPT_CHOICE,
	 .at = offsetof(struct annotate_args, format),
	 .arg = "FORMAT",
	 .choices = "text|json",
	 .def = "text",
	 .group = "Output",
	 .help = "text or json"},
	{0},
};

static int annotate_run(struct as_cmd_ctx *ctx, struct as_error *err)
{
	const struct annotate_args *a = ctx->args;
	const char *const roots[] = {a->root, NULL};
	AS_CLEANUP(as_free_autop) char *cache = as_cache_dir(), *path = NULL;
	struct as_annotate_request q = {
		.function = ctx->operands[0],
		.show = a->asm_only      ? AS_ANNOTATE_ASM
			: a->source_only ? AS_ANNOTATE_SOURCE
					 : AS_ANNOTATE_BOTH,
		.format = (enum as_annotate_format)a->format,
		.of = (enum as_annotate_of)a->percent,
		.context = a->context,
		.full = a->full,
		.embedded_only = a->embedded_only,
		.cache_dir = cache,
		.roots = a->root ? roots : NULL,
		.file = ctx->noperands > 1 ? ctx->operands[1] : NULL,
	};
	struct as_style style = {
		.width = as_term_width(STDOUT_FILENO),
		.color = as_term_color(STDOUT_FILENO, (enum as_color)ctx->common->color),
		.full_names = a->full_names,
	};
	struct as_model *m = NULL;
	struct as_buf out = {0};
	int r;

	if (a->asm_only && a->source_only)
		return as_fail(err, AS_E_USAGE, 0,
			       "--source-only and --asm-only exclude each other");
	r = as_find_session(q.file, &path, err);
	if (r == 0)
		r = as_model_load(path, &m, err);
	if (r == 0)
		r = as_filter_measure(&a->filter, m, err);
	if (r < 0) {
		as_model_free(m);
		return r;
	}
	q.model = m;
	/* What a line allocates is the question; instructions tell nothing more of it. */
	if (as_model_is_counted(m) && !a->asm_only)
		q.show = AS_ANNOTATE_SOURCE;
	as_filter_apply(&a->filter, &q.query);
	r = as_annotate_make(&q, &style, &out, err);
	if (r == 0)
		r = as_out_write(&out, err);
	as_buf_clear(&out);
	as_model_free(m);
	return r;
}

const struct as_cmd as_cmd_annotate = {
	.name = "annotate",
	.group = "Look",
	.summary = "show which lines and instructions of a function cost what",
	.usage = "[options] FUNCTION [FILE]",
	.options = annotate_options,
	.examples = {{"assay annotate tokenize", "lines and instructions, newest session"},
		     {"assay annotate --source-only app::parse app.assay", "lines alone"},
		     {"assay annotate --asm-only --percent function memmove",
		      "instructions, as shares of the function"}},
	.operand = "a function and a session",
	.min_operands = 1,
	.max_operands = 2,
	.args_size = sizeof(struct annotate_args),
	.run = annotate_run,
};

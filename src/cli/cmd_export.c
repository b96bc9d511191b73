/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay export: a session for other programs. */
#include "cli/cmds_priv.h"
#include "exchange/exchange.h"

struct export_args {
	struct as_filter_args filter;
	int to;
	const char *output;
	bool by_thread, full_names;
};

static const struct as_option export_options[] = {
	{.name = "to",
	 .type = AS_OPT_CHOICE,
	 .at = offsetof(struct export_args, to),
	 .arg = "FORMAT",
	 .choices = "folded",
	 .def = "folded",
	 .group = "Output",
	 .help = "folded: a line per stack, frames joined by ';', then the samples"},
	{.name = "output",
	 .letter = 'o',
	 .type = AS_OPT_TEXT,
	 .at = offsetof(struct export_args, output),
	 .arg = "FILE",
	 .def_text = "standard output",
	 .group = "Output",
	 .help = "where to; - is standard output"},
	{.name = "by-thread",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct export_args, by_thread),
	 .group = "Output",
	 .help = "put the thread's name before each stack"},
	{.name = "full-names",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct export_args, full_names),
	 .group = "Output",
	 .help = "names with all their type parameters"},
	AS_FILTER_OPTIONS(struct export_args),
	{0},
};

static int export_run(struct as_cmd_ctx *ctx, struct as_error *err)
{
	const struct export_args *a = ctx->args;
	struct as_query query = {0};
	struct as_folded_options options = {
		.query = &query, .by_thread = a->by_thread, .full_names = a->full_names};
	struct as_model *m = NULL;
	struct as_buf out = {0};
	int r = as_filter_load(ctx, &m, err);

	if (r < 0)
		return r;
	as_filter_apply(&a->filter, &query);
	r = as_export_folded(m, &options, &out, err);
	if (r == 0)
		r = as_filter_write(a->output, &out, err);
	as_buf_clear(&out);
	as_model_free(m);
	return r;
}

const struct as_cmd as_cmd_export = {
	.name = "export",
	.group = "Look",
	.summary = "write a session in a format that other programs read",
	.usage = "[options] [FILE]",
	.options = export_options,
	.examples = {{"assay export --to folded", "folded stacks to standard output"},
		     {"assay export -o app.folded app.assay", "into a file"},
		     {"assay export --focus parse | sort -k2 -n",
		      "only the stacks through parse"}},
	.operand = "a session",
	.max_operands = 1,
	.args_size = sizeof(struct export_args),
	.run = export_run,
};

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay help [CMD] */
#include "cli/cmds_priv.h"

struct help_args {
	bool markdown;
};

static const struct as_option help_options[] = {
	{.name = "markdown",
	 .type = AS_OPT_FLAG,
	 .at = offsetof(struct help_args, markdown),
	 .group = "Output",
	 .help = "the parts of the command's man page that come from its options"},
	{0},
};

static int help_run(struct as_cmd_ctx *ctx, struct as_error *err)
{
	const struct help_args *a = ctx->args;
	const struct as_cmd *cmd = NULL;
	struct as_buf b = {0};

	if (ctx->noperands) {
		cmd = as_command_find(ctx->operands[0]);
		if (!cmd)
			return as_command_unknown(ctx->operands[0], err);
	}
	if (!cmd)
		as_help_overview(&b);
	else if (a->markdown)
		as_help_markdown(&b, cmd);
	else
		as_help_command(&b, cmd);

	int r = as_out_write(&b, err);

	as_buf_clear(&b);
	return r;
}

const struct as_cmd as_cmd_help = {
	.name = "help",
	.group = "Help",
	.summary = "show what assay or one of its commands can do",
	.usage = "[CMD]",
	.options = help_options,
	.examples = {{"assay help record", "the options of record"},
		     {"assay record --help", "the same"},
		     {"man assay-record", "the same, with more words"}},
	.operand = "a command",
	.max_operands = 1,
	.args_size = sizeof(struct help_args),
	.run = help_run,
};

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A command and its words -> options, operands, run. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/commands.h"

static int print_help(const struct as_cmd *cmd, struct as_error *err)
{
	struct as_buf b = {0};

	as_help_command(&b, cmd);

	int r = as_out_write(&b, err);

	as_buf_clear(&b);
	return r;
}

static int check_operands(const struct as_cmd *cmd, int n, char **operands,
			  struct as_error *err)
{
	if (n < cmd->min_operands)
		return as_fail(err, AS_E_USAGE, 0, "%s needs %s\nassay %s --help", cmd->name,
			       cmd->operand, cmd->name);
	if (cmd->max_operands >= 0 && n > cmd->max_operands)
		return as_fail(err, AS_E_USAGE, 0,
			       "%s does not know what to do with '%s'\n"
			       "assay %s --help",
			       cmd->name, operands[cmd->max_operands], cmd->name);
	return 0;
}

static int parse_and_run(const struct as_command_line *line, struct as_common_args *common,
			 struct as_cmd_ctx *ctx, struct as_error *err)
{
	const struct as_cmd *cmd = line->cmd;
	struct as_options_request q = {
		.table = cmd->options,
		.common = as_common_options,
		.args = ctx->args,
		.common_args = common,
		.stop_at_operand = cmd->flags & AS_CMD_RUNS_PROGRAM,
		.ret_literal = &ctx->literal,
	};
	int r = as_options_parse(&q, line->nwords - 1, ctx->operands, &ctx->noperands, err);

	if (common->help)
		return print_help(cmd, err);
	if (r < 0)
		return r;
	ctx->operands[ctx->noperands] = NULL;
	r = check_operands(cmd, ctx->noperands, ctx->operands, err);
	if (r < 0)
		return r;
	r = cmd->run(ctx, err);
	if (r < 0 && ctx->fail_exit) {
		as_err_print(err, (enum as_color)common->color);
		return ctx->fail_exit;
	}
	return r;
}

int as_command_run(const struct as_command_line *line, struct as_common_args *common,
		   struct as_error *err)
{
	size_t nwords = (size_t)line->nwords;
	AS_CLEANUP(as_free_autop) void *args = as_xcalloc(1, line->cmd->args_size + 1);
	AS_CLEANUP(as_free_autop) char **rest = as_xcalloc(nwords + 1, sizeof *rest);
	struct as_cmd_ctx ctx = {
		.cmd = line->cmd,
		.args = args,
		.common = common,
		.operands = rest,
		.words = line->words,
		.program_folder = line->program_folder,
		.program_name = line->program_name,
	};
	int r;

	memcpy(rest, line->words + 1, (nwords - 1) * sizeof *rest);
	r = parse_and_run(line, common, &ctx, err);
	as_options_clear(line->cmd->options, args);
	return r;
}

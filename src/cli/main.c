/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay: finds the command, parses its options, runs it, prints its error once. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/commands.h"

/*
 * A caller may have closed 0, 1 or 2; a session file must not land there. The placeholders
 * close on exec, so that a recorded program still finds them closed.
 */
static void guard_standard_fds(void)
{
	for (int fd = 0; fd < 3; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)open("/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
	}
}

static void on_file_too_large(int sig)
{
}

/*
 * Under a limit on the size of files a write shall fail, not end assay: the cache can do
 * without, a session says what mends it. A handler, not SIG_IGN, as programs inherit that.
 */
static void survive_file_limit(void)
{
	struct sigaction old, sa = {.sa_handler = on_file_too_large, .sa_flags = SA_RESTART};

	if (sigaction(SIGXFSZ, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
		(void)sigaction(SIGXFSZ, &sa, NULL);
}

static int exit_status(const struct as_cmd *cmd, int status)
{
	if (cmd && cmd->flags & AS_CMD_RUNS_PROGRAM)
		return AS_EXIT_ASSAY_FAILED;
	return status == AS_E_USAGE ? AS_EXIT_USAGE : AS_EXIT_ERROR;
}

static int print_text(void (*text)(struct as_buf *), const struct as_cmd *cmd,
		      struct as_error *err)
{
	struct as_buf b = {0};

	if (text)
		text(&b);
	else
		as_help_command(&b, cmd);

	int r = as_out_write(&b, err);

	as_buf_clear(&b);
	return r;
}

static void version_text(struct as_buf *out)
{
	as_buf_adds(out, "assay " ASSAY_VERSION "\n");
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

/* words: the command's name and what follows, NULL-terminated. Returns the exit status. */
static int run_command(const struct as_cmd *cmd, int nwords, char **words,
		       struct as_common_args *common, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) void *args = as_xcalloc(1, cmd->args_size + 1);
	AS_CLEANUP(as_free_autop) char **rest = as_xcalloc((size_t)nwords + 1, sizeof *rest);
	struct as_options_request q = {
		.table = cmd->options,
		.common = as_common_options,
		.args = args,
		.common_args = common,
		.stop_at_operand = cmd->flags & AS_CMD_RUNS_PROGRAM,
	};
	struct as_cmd_ctx ctx = {
		.cmd = cmd,
		.args = args,
		.common = common,
		.operands = rest,
		.words = words,
	};
	int r;

	memcpy(rest, words + 1, (size_t)(nwords - 1) * sizeof *rest);
	r = as_options_parse(&q, nwords - 1, rest, &ctx.noperands, err);
	if (common->help)
		return print_text(NULL, cmd, err);
	if (r < 0)
		return r;
	rest[ctx.noperands] = NULL;
	r = check_operands(cmd, ctx.noperands, rest, err);
	if (r < 0)
		return r;
	r = cmd->run(&ctx, err);
	if (r < 0 && ctx.fail_exit) {
		as_err_print(err, (enum as_color)common->color);
		return ctx.fail_exit;
	}
	return r;
}

static int dispatch(int argc, char **argv, const struct as_cmd **ret_cmd,
		    struct as_common_args *common, struct as_error *err)
{
	if (argc < 2)
		return print_text(as_help_overview, NULL, err);

	const char *word = argv[1];

	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
		return print_text(version_text, NULL, err);
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		return print_text(as_help_overview, NULL, err);
	if (word[0] == '-')
		return as_fail(err, AS_E_USAGE, 0,
			       "'%s' is not a command\n"
			       "assay shows what there is",
			       word);
	*ret_cmd = as_command_find(word);
	if (!*ret_cmd)
		return as_command_unknown(word, err);
	return run_command(*ret_cmd, argc - 1, argv + 1, common, err);
}

int main(int argc, char **argv)
{
	struct as_error err = {0};
	struct as_common_args common = {0};
	const struct as_cmd *cmd = NULL;

	guard_standard_fds();
	survive_file_limit();
	/* for the width of text; the output is UTF-8 anyway */
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		(void)setlocale(LC_CTYPE, "");

	int r = dispatch(argc, argv, &cmd, &common, &err);

	if (r < 0) {
		as_err_print(&err, (enum as_color)common.color);
		r = exit_status(cmd, r);
	}
	/* Network file systems report a full disk only here. */
	if (close(STDOUT_FILENO) < 0 && errno != EBADF && r == 0) {
		(void)as_fail(&err, AS_E_IO, errno, "cannot write to standard output: %s",
			      strerror(errno));
		as_err_print(&err, (enum as_color)common.color);
		r = AS_EXIT_ERROR;
	}
	return r;
}

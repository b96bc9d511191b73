/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* assay: finds the command, parses its options, runs it, prints its error once. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
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

static int print_text(void (*text)(struct as_buf *), struct as_error *err)
{
	struct as_buf b = {0};

	text(&b);

	int r = as_out_write(&b, err);

	as_buf_clear(&b);
	return r;
}

static void version_text(struct as_buf *out)
{
	as_buf_adds(out, "assay " ASSAY_VERSION "\n");
}

static int dispatch(int argc, char **argv, const struct as_cmd **ret_cmd,
		    struct as_common_args *common, struct as_error *err)
{
	if (argc < 2)
		return print_text(as_help_overview, err);

	const char *word = argv[1];

	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
		return print_text(version_text, err);
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		return print_text(as_help_overview, err);
	if (word[0] == '-')
		return as_fail(err, AS_E_USAGE, 0,
			       "'%s' is not a command\n"
			       "assay shows what there is",
			       word);
	*ret_cmd = as_command_find(word);
	if (!*ret_cmd)
		return as_command_unknown(word, err);

	struct as_command_line line = {.cmd = *ret_cmd, .nwords = argc - 1, .words = argv + 1};

	return as_command_run(&line, common, err);
}

/* cargo runs `cargo assay x` as `cargo-assay assay x`; that is `assay cargo x`. */
static void as_cargo_subcommand(int argc, char **argv)
{
	static char word[] = "cargo";
	const char *slash = argc ? strrchr(argv[0], '/') : NULL;
	const char *name = slash ? slash + 1 : argc ? argv[0] : "";

	if (argc > 1 && strcmp(name, "cargo-assay") == 0 && strcmp(argv[1], "assay") == 0)
		argv[1] = word;
}

/* Arrays that grow are freed at each step, whereupon glibc would put ever larger ones where freed memory
 * is not given back: what a recording had would still be there beside the report. */
static void give_arrays_back(void)
{
#ifdef M_MMAP_THRESHOLD
	(void)mallopt(M_MMAP_THRESHOLD, AS_LARGE_BYTES / 2);
	(void)mallopt(M_TRIM_THRESHOLD, 2 * AS_LARGE_BYTES);
#endif
}

int main(int argc, char **argv)
{
	struct as_error err = {0};
	struct as_common_args common = {0};
	const struct as_cmd *cmd = NULL;

	give_arrays_back();
	as_cargo_subcommand(argc, argv);
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

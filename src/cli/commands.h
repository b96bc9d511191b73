/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The commands as a table. To add one: cmd_x.c with a const struct as_cmd, its row in
 * commands.c, docs/man/assay-x.md, tests/cli/x.bats. A command is: options table -> struct
 * x_args -> load or record -> view -> print; no arithmetic and no format knowledge.
 */
#ifndef AS_CLI_COMMANDS_H
#define AS_CLI_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include "base/buf.h"
#include "base/err.h"
#include "cli/options.h"

/* Exit statuses; commands that run a program end with the program's own. */
enum as_exit {
	AS_EXIT_FINE = 0,
	AS_EXIT_ERROR = 1,
	AS_EXIT_USAGE = 2,
	AS_EXIT_GATE = 3,
	AS_EXIT_ASSAY_FAILED = 125,
	AS_EXIT_NOT_EXECUTABLE = 126,
	AS_EXIT_NO_PROGRAM = 127,
};

enum as_color {
	AS_COLOR_AUTO,
	AS_COLOR_ALWAYS,
	AS_COLOR_NEVER
}; /* order of the option's choices */

/* Options every command has. */
struct as_common_args {
	bool help, version;
	int color;
};
extern const struct as_option as_common_options[];

struct as_cmd_ctx {
	const struct as_cmd *cmd;
	void *args; /* the command's own argument struct, filled */
	const struct as_common_args *common;
	char **operands;        /* NULL-terminated */
	int noperands, literal; /* literal: the first operand that stood behind "--" */
	/* the command line as typed, from the command's name on; NULL-terminated */
	char **words;
	/* where the program is to run; NULL: here */
	const char *program_folder;
	const char *program_name; /* what outputs are named after; NULL: its file's name */
	int fail_exit; /* exit status when run() fails; preset from the status and flags */
};

enum as_cmd_flags {
	/* the first operand ends the options; failures exit with 125 */
	AS_CMD_RUNS_PROGRAM = 1,
};

struct as_cmd_example {
	const char *words, *what;
};

struct as_cmd {
	const char *name, *group, *summary;
	const char *usage; /* after "assay NAME "; further forms on further lines */
	const struct as_option *options;
	struct as_cmd_example examples[3];
	const char *operand;            /* what an operand is, for messages */
	int min_operands, max_operands; /* max -1: any number */
	unsigned flags;
	size_t args_size;
	/* Exit status >= 0, or a negative enum as_status with err filled. */
	int (*run)(struct as_cmd_ctx *ctx, struct as_error *err);
};

extern const struct as_cmd *const as_commands[]; /* NULL-terminated */
const struct as_cmd *as_command_find(const char *name);
/* "unknown command …; did you mean …?" into err. */
int as_command_unknown(const char *name, struct as_error *err);

/* ---- run.c ---- */

/* words: the command's name and what follows, NULL-terminated. */
struct as_command_line {
	const struct as_cmd *cmd;
	int nwords;
	char **words;
	const char *program_folder,
		*program_name; /* handed on to the command; NULL: as typed */
};
/* Parses the options and runs. Exit status >= 0, or a negative enum as_status with err filled. */
int as_command_run(const struct as_command_line *line, struct as_common_args *common,
		   struct as_error *err);

/* ---- help.c: text appended to out ---- */

void as_help_overview(struct as_buf *out);
void as_help_command(struct as_buf *out, const struct as_cmd *cmd);
/* SYNOPSIS, OPTIONS of the man page as Markdown; tools/gen-man puts them into docs/man. */
void as_help_markdown(struct as_buf *out, const struct as_cmd *cmd);

/* ---- term.c ---- */

/* Columns of the terminal at fd; else $COLUMNS; else 100. */
int as_term_width(int fd);
bool as_term_color(int fd, enum as_color when);
/* Writes to standard output. A reader that went away (EPIPE) is no error: exits with 141. */
int as_out_write(const struct as_buf *b, struct as_error *err);
/* "assay: message", further lines indented below it, to standard error. */
void as_err_print(const struct as_error *err, enum as_color when);

/* ---- session files ---- */

/* operand, or the newest *.assay of the current folder when it is NULL. Caller frees *ret. */
int as_find_session(const char *operand, char **ret, struct as_error *err);

#endif

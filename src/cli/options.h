/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Options of a command as rows of data: one row gives the parser, --help and the man page all
 * they need. Values land in the command's argument struct at `at`.
 *
 *	struct x_args { double rate_hz; bool quiet; };
 *	static const struct as_option x_options[] = {
 *		{.name = "rate", .letter = 'F', .type = AS_OPT_NUM,
 *		 .at = offsetof(struct x_args, rate_hz), .arg = "HZ", .min = 1, .max = 20000,
 *		 .def = "997", .group = "Sampling", .help = "…"},
 *		{0}};
 *
 * Types and what stands at `at`: FLAG bool; TEXT const char *; INT int64_t; NUM double; DURATION
 * uint64_t ns; SIZE uint64_t bytes; CHOICE int (index into `choices`, words separated by '|');
 * SPAN uint64_t[2] ns; TEXTS struct as_texts, a text more for each time the option is given (or
 * `words` of them: -P NAME MIN MAX), to be freed with as_options_clear. `def` is text in the
 * option's own syntax, applied before parsing.
 * Accepted: --name value, --name=value, -Lvalue, -L value, flags in a row (-ab), "--" ends options.
 * With `bare` --name alone stands for --name=bare, and its value follows by '=' only.
 */
#ifndef AS_CLI_OPTIONS_H
#define AS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "base/nearest.h"

enum as_opt_type {
	AS_OPT_FLAG,
	AS_OPT_TEXT,
	AS_OPT_INT,
	AS_OPT_NUM,
	AS_OPT_DURATION,
	AS_OPT_SIZE,
	AS_OPT_CHOICE,
	AS_OPT_SPAN,
	AS_OPT_TEXTS,
};

/* Texts are those of argv. */
struct as_texts {
	const char **v;
	size_t n, cap;
};

struct as_option {
	const char *name; /* NULL ends the table */
	char letter;      /* 0: none */
	enum as_opt_type type;
	size_t at;
	const char *arg; /* word for the value in help */
	double min, max; /* INT, NUM, DURATION (s), SIZE (bytes); both 0: unbounded */
	const char *choices;
	const char *def;          /* NULL: zero, not mentioned */
	const char *def_text;     /* shown instead of def */
	const char *bare;         /* the value of --name without one; NULL: it needs one */
	bool bare_letter;         /* the same of its letter; a value follows it by '=' */
	size_t words;             /* TEXTS: values each time; 0: one */
	const char *group, *help; /* line breaks in help are kept in --help */
};

/* What to parse and where the results go. Operands are moved to the front of argv[0 … *]. */
struct as_options_request {
	const struct as_option *table;  /* of the command */
	const struct as_option *common; /* of every command; values at common_args */
	void *args, *common_args;
	/* the first operand ends the options (commands that run a program) */
	bool stop_at_operand;
	int *ret_literal; /* may be NULL: the first operand behind "--"; the count of all: none */
};
/* Sets defaults, then parses argv[0 … argc). AS_E_USAGE with the nearest option on an unknown one. */
int as_options_parse(const struct as_options_request *q, int argc, char **argv,
		     int *ret_operands, struct as_error *err);
/* Frees what as_options_parse took for TEXTS; also after it failed. */
void as_options_clear(const struct as_option *table, void *args);

#endif

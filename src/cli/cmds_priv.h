/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The commands themselves (one file each), and option rows several of them share. */
#ifndef AS_CLI_CMDS_PRIV_H
#define AS_CLI_CMDS_PRIV_H

#include "cli/commands.h"
#include "model/model.h"

extern const struct as_cmd as_cmd_bench;
extern const struct as_cmd as_cmd_record;
extern const struct as_cmd as_cmd_heap;
extern const struct as_cmd as_cmd_report;
extern const struct as_cmd as_cmd_annotate;
extern const struct as_cmd as_cmd_flame;
extern const struct as_cmd as_cmd_view;
extern const struct as_cmd as_cmd_export;
extern const struct as_cmd as_cmd_cargo;
extern const struct as_cmd as_cmd_diff;
extern const struct as_cmd as_cmd_doctor;
extern const struct as_cmd as_cmd_stat;
extern const struct as_cmd as_cmd_help;

/* What is looked at: shared by report, flame and export. */
struct as_filter_args {
	const char *focus, *ignore, *hide, *thread, *module;
	uint64_t time_ns[2];
	bool no_inline, no_kernel;
	int measure; /* enum as_measure; 0: not said */
	bool no_fold;
	int grown; /* 1: blocks count for who made them */
};

#define AS_FILTER_OPTION(T, field_, name_, arg_, help_)                                        \
	{                                                                                      \
		.name = name_, .type = AS_OPT_TEXT, .at = offsetof(T, filter.field_),          \
		.arg = arg_, .group = "What is looked at", .help = help_                       \
	}
/* T: the command's argument struct, with a member `filter`. */
#define AS_FILTER_OPTIONS(T)                                                                   \
	AS_FILTER_STACKS(T),                                                                   \
		AS_FILTER_OPTION(T, module, "module", "NAME",                                  \
				 "only samples whose innermost frame is in this module"),      \
		AS_FILTER_REST(T)
#define AS_FILTER_STACKS(T)                                                                    \
	AS_FILTER_OPTION(T, focus, "focus", "REGEX",                                           \
			 "only stacks with a function that matches"),                          \
		AS_FILTER_OPTION(T, ignore, "ignore", "REGEX",                                 \
				 "without stacks that have a function that matches"),          \
		AS_FILTER_OPTION(                                                              \
			T, hide, "hide", "REGEX",                                              \
			"take functions that match out of the stacks; their time goes "        \
			"to their callers"),                                                   \
		AS_FILTER_OPTION(T, thread, "thread", "NAME|TID",                              \
				 "only threads with this number or a name that holds NAME")
#define AS_FILTER_REST(T)                                                                      \
	{.name = "time",                                                                       \
	 .type = AS_OPT_SPAN,                                                                  \
	 .at = offsetof(T, filter.time_ns),                                                    \
	 .arg = "FROM..TO",                                                                    \
	 .group = "What is looked at",                                                         \
	 .help = "only this part of the recording, from its start: 2s..5s, ..500ms, "          \
		 "10.."},                                                                      \
		{.name = "no-inline",                                                          \
		 .type = AS_OPT_FLAG,                                                          \
		 .at = offsetof(T, filter.no_inline),                                          \
		 .group = "What is looked at",                                                 \
		 .help = "count inlined functions as part of the function they are in"},       \
	{                                                                                      \
		.name = "no-kernel", .type = AS_OPT_FLAG, .at = offsetof(T, filter.no_kernel), \
		.group = "What is looked at",                                                  \
		.help = "count kernel functions as part of the function that called the "      \
			"kernel"                                                               \
	}

/* Of sessions of memory. */
#define AS_FILTER_MEASURE(T)                                                                   \
	{.name = "measure",                                                                    \
	 .type = AS_OPT_CHOICE,                                                                \
	 .at = offsetof(T, filter.measure),                                                    \
	 .arg = "WHAT",                                                                        \
	 .choices = AS_MEASURE_NAMES,                                                          \
	 .def = "time",                                                                        \
	 .def_text = "time; peak for a session of memory",                                     \
	 .group = "What is looked at",                                                         \
	 .help = "in a session of memory: allocs, bytes, live, peak, churn, growth, leaked "   \
		 "or mapped; in one of time: alloc-time, CPU time in allocators and page "     \
		 "faults, "                                                                    \
		 "on who asked"},                                                              \
		AS_FILTER_FOLD(T)
#define AS_FILTER_FOLD(T)                                                                      \
	{.name = "grown",                                                                      \
	 .type = AS_OPT_CHOICE,                                                                \
	 .at = offsetof(T, filter.grown),                                                      \
	 .arg = "WHO",                                                                         \
	 .choices = "last|first",                                                              \
	 .def = "last",                                                                        \
	 .group = "What is looked at",                                                         \
	 .help = "in a session of memory: blocks that realloc changed count for who "          \
		 "gave them their size, last, or for who made them, first"},                   \
	{                                                                                      \
		.name = "no-fold", .type = AS_OPT_FLAG, .at = offsetof(T, filter.no_fold),     \
		.group = "What is looked at",                                                  \
		.help = "in a session of memory: keep what stands between the program and "    \
			"its allocator (alloc::, operator new, malloc)"                        \
	}
/* What is to be done with a session of memory before its measure is chosen. */
void as_filter_grown(const struct as_filter_args *f, struct as_model *m);
/* Chooses the measure that was asked for. */
int as_filter_measure(const struct as_filter_args *f, struct as_model *m, struct as_error *err);
/* --marks FROM..TO: from is the caller's to free, to points into range; either may be "". */
int as_filter_marks(const char *range, char **ret_from, const char **ret_to,
		    struct as_error *err);
void as_filter_apply(const struct as_filter_args *f, struct as_query *q);
/* Loads the operand's session, or the newest one of the current folder. */
int as_filter_load(const struct as_cmd_ctx *ctx, struct as_model **ret, struct as_error *err);
/* app.assay -> app.svg (end ".svg"), in the current folder. Caller frees. */
char *as_filter_output(const char *session, const char *end);
/* Output to path, or to standard output when it is NULL or "-". */
int as_filter_write(const char *path, const struct as_buf *b, struct as_error *err);

/* ---- fitness.c ---- */

/* Why the figures of a program are not those of a release build; all NULL when nothing is known. */
struct as_fitness {
	char *about, *text, *remedy;
};
/*
 * Looks at the program that `word` runs, or at process pid (0: word): true when it was built without
 * optimisation. At most 5 ms of CPU time; what cannot be read is not judged.
 */
bool as_fitness_look(const char *word, int64_t pid, struct as_fitness *ret);
void as_fitness_print(const struct as_fitness *f); /* one line on standard error */
void as_fitness_clear(struct as_fitness *f);
/*
 * The programs of one command, or of two that are compared (second NULL: one): a line on standard
 * error for what is unfit, louder where only one of two is. ret: which are unoptimised.
 */
void as_fitness_tell(const char *first, const char *second, bool ret[2]);

/* ---- browser.c ---- */

enum as_browser { AS_BROWSER_OPENED, AS_BROWSER_NO_DISPLAY, AS_BROWSER_NONE };
/*
 * Shows a file or address with $BROWSER, else xdg-open, and does not wait for it. Only on a display;
 * as root only where $BROWSER names one, since a desktop's browser is not root's.
 */
enum as_browser as_browser_open(const char *target);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Commands as benchmarks: what is run, measured in rounds (measure/rounds.h), told as a set of results.
 *
 *	struct as_command c = {.name = as_xstrdup("sort a.txt"), …};	// argv by as_words_split
 *	r = as_commands_measure(&(struct as_commands_request){.v = &c, .n = 1, …}, &set, err);
 *	as_bench_set_clear(&set);
 *
 * Set up (once per command, in order), copies of the programs where they are to be, rounds, clean up
 * (also after a failure or an interruption). Where the set-ups of the commands differ each program is
 * copied right after its own: the next set-up may build another one in its place.
 *
 * What a shell costs, or a command given as overhead, is measured in the same rounds and taken off run by
 * run: a difference has an interval of its own, and may be less than nothing.
 */
#ifndef AS_BENCH_COMMAND_H
#define AS_BENCH_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include "base/mem.h"
#include "bench/params.h"
#include "bench/words.h"
#include "measure/rounds.h"
#include "results/result.h"

struct as_command {
	char *name,
		*text; /* text: as it was given, parameters filled in; name: what is shown */
	struct as_words words; /* the program and its arguments; with a shell: it, -c, text */
	char *setup, *prepare, *conclude, *cleanup, *input, *output; /* NULL: none */
	AS_VEC(struct as_bench_param) params;
};
void as_command_clear(struct as_command *c);

struct as_commands_request {
	const struct as_command *v; /* the first is what others are compared with */
	size_t n;
	const struct as_command *overhead; /* taken off each; NULL: nothing */
	bool overhead_is_shell;            /* it is the shell without a command */
	struct as_rounds_request rounds;   /* all but arms and n */
	const char *folder;                /* where they run; NULL: here */
	bool copy; /* different programs are copied first, both in the same way (copies.h) */
	const char *tool;
};
/* A failing command is a note ("failed", "timeout") of its benchmark. AS_E_…: what could not be run; the
 * set has what was measured before, if that is anything. failed: commands that failed or did not end. */
struct as_commands_result {
	struct as_bench_set set;
	size_t failed;
	bool interrupted;
};
int as_commands_measure(const struct as_commands_request *q, struct as_commands_result *ret,
			struct as_error *err);
void as_commands_result_clear(struct as_commands_result *r);

#endif

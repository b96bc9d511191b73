/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* command.c runs, command_result.c says what it means. */
#ifndef AS_BENCH_COMMAND_PRIV_H
#define AS_BENCH_COMMAND_PRIV_H

#include "bench/command.h"
#include "bench/copies.h"

struct as_measured {
	const struct as_commands_request *q;
	const struct as_rounds *rounds; /* one arm a command, then the overhead's */
	const struct as_copies *copies; /* one a command; none: nothing was looked at */
};
void as_commands_tell(const struct as_measured *m, struct as_commands_result *ret);
/* What the runs of one command look like: first run, kinds, apart, and drift where it is not paired. */
void as_command_notes(struct as_bench *b, const struct as_runs *runs, bool paired);

#endif

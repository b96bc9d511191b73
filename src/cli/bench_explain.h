/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* --explain: both sides of what is slower recorded, and what changed between them. */
#ifndef AS_CLI_BENCH_EXPLAIN_H
#define AS_CLI_BENCH_EXPLAIN_H

#include "base/err.h"
#include "bench/suite.h"

#define AS_EXPLAIN_MOST 3 /* benchmarks of a suite, the worst first */

struct as_explain {
	const char *name; /* of the benchmark or command */
	const char *labels[2];
	const struct as_suite_program *side; /* two */
	/* a function: its id, and the iterations that make about a millisecond (0: not known, then each
	 * side runs for the same time and shares are compared) */
	const char *id;
	uint64_t iterations;
	/* a command: its words after the program, of either side; NULL-terminated */
	char *const *words[2];
	const char *input; /* of a command: file it reads; NULL: /dev/null */
	double allocs[2];  /* per iteration; NaN: not known */
	const volatile int *interrupted;
};
/* Records, writes to standard output. A side that cannot be recorded is an error that says why. */
int as_bench_explain(const struct as_explain *e, struct as_error *err);

#endif

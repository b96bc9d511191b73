/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A command run again and again, or two commands in pairs, until it is known well enough.
 *
 * One command: `runs` times, or until the wall time's interval is within `until` of its value.
 * Two commands (other.argv set): pairs, a coin for the order of each, until the sequential verdict
 * of stats/paired.h; see there for why it may be looked at as often as it is.
 *
 * rounds.h does it, and says what decides.
 *
 * Interrupted: what there is stays and is handed back.
 */
#ifndef AS_MEASURE_REPEAT_H
#define AS_MEASURE_REPEAT_H

#include "base/mem.h"
#include "measure/rounds.h"

struct as_repeat_request {
	struct as_run_request run, other; /* other.argv NULL: one command */
	uint64_t warmup, runs;            /* runs 0 with until > 0: as many as it takes */
	double until;        /* relative half-width of the wall time; 0: not asked for */
	double budget_s;     /* hard cap on the measured time; 0: none */
	double delta;        /* two commands: below it they are equal */
	const char *setup;   /* shell command, once before everything; NULL: none */
	const char *prepare; /* shell command before each run; NULL: none */
	bool ignore_failure;
	const volatile int *interrupted;
	uint64_t seed; /* of the coin and of the padding; 0: from the clock */
	/* After each run; n: of `side` so far. May be NULL. */
	void (*progress)(void *ctx, int side, size_t n, const struct as_look *look);
	void *progress_ctx;
};

struct as_repeat {
	struct as_runs side[2];
	struct as_look look;            /* two commands: the last one */
	enum as_metric decides;         /* two commands: AS_M_CPU or AS_M_WALL */
	struct as_trimmed by[2];        /* ln ratios of wall and of CPU time, 95 % */
	bool disagree;                  /* the two exclude each other */
	double seconds;                 /* spent in runs */
	bool stopped;                   /* interrupted, or the budget was used up */
	size_t failed_run;              /* 1-based; 0: none */
	int failed_side, failed_status; /* wait status */
};
/* A run that fails (exit status other than 0) ends it, unless that is to be ignored; what was
 * measured before stays. AS_E_…: nothing could be run. */
int as_repeat(const struct as_repeat_request *q, struct as_repeat *ret, struct as_error *err);
void as_repeat_clear(struct as_repeat *r);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Commands run in rounds until it is known well enough what they cost and which differ.
 *
 *	struct as_arm arms[] = {{.run.argv = old}, {.run.argv = new}};
 *	r = as_rounds(&(struct as_rounds_request){.arms = arms, .n = 2, .budget_s = 20}, &ret, err);
 *	if (ret.v[1].look.verdict == AS_VERDICT_SLOWER) …
 *	as_rounds_clear(&ret);
 *
 * A round runs each command once, in an order that is drawn anew. In each round a command makes a pair
 * with the first one, d = ln(its value / the first's), and the sequential verdict of stats/paired.h is
 * asked at level alpha / (n - 1), so that it holds for all comparisons together (Bonferroni). One that
 * is decided, has its least number of runs and is known as well as was asked for takes part no more: the
 * time that is left goes to those that are not.
 *
 * What decides is CPU time where it explains the wall time (0.9 of it or more, waiting for a CPU taken
 * off), else wall time: a starved machine stretches wall time without any change in the program, and a
 * program that sleeps is not described by its CPU time. It is chosen once, at the first look.
 *
 * A run that fails or does not end in time puts its command out; what it had stays, and the others
 * go on. When the first command is out nothing can be compared any more, and all ends. What a run
 * leaves behind is ended
 * (strays.h). Interrupted: what there is stays and is handed back.
 */
#ifndef AS_MEASURE_ROUNDS_H
#define AS_MEASURE_ROUNDS_H

#include "base/mem.h"
#include "measure/run.h"
#include "stats/paired.h"

/* In memory that a fork does not copy: a child begins with ours, and hundreds of runs would be told as
 * its peak. Grows by as_runs_push alone. */
struct as_runs {
	AS_VEC(struct as_run) v;
};

void as_runs_push(struct as_runs *runs, const struct as_run *run);
void as_runs_clear(struct as_runs *runs);

struct as_arm {
	struct as_run_request run;
	const char *prepare,
		*conclude; /* shell commands before and after each run; NULL: none */
	bool aside;        /* runs in each round that has another; is compared with nothing */
};

struct as_rounds_request {
	const struct as_arm *arms;
	size_t n;
	uint64_t warmup; /* rounds before that do not count */
	uint64_t min_runs,
		max_runs; /* per command; equal: so many, looked at once; max 0: none */
	double until;     /* relative half-width of the wall time of each; 0: not asked for */
	double enough_s;  /* one command, no until: measured so long, min_runs are enough */
	double budget_s;  /* 0: none */
	/* hard: the end of all, even for a run that is under way. Else min_runs come first. */
	bool budget_hard;
	bool budget_of_runs; /* only time in runs counts, not what is done around them */
	uint64_t began_ns;   /* CLOCK_MONOTONIC, from which the budget counts; 0: now */
	double timeout_s;    /* of one run, and of one prepare or conclude; 0: none */
	double delta;        /* below it two are equal */
	bool ignore_failure;
	bool failure_ends;   /* all, not only its command */
	const bool *ignored; /* 256 exit statuses that are no failure; NULL: only 0 is none */
	const char *shell;   /* for prepare and conclude; NULL: /bin/sh */
	bool silent;         /* what they print goes nowhere */
	bool keep_strays;    /* what runs leave behind goes on */
	const volatile int *interrupted;
	uint64_t seed; /* of the order and of the padding; 0: from the clock */
	/* After each run; n: so far. look: NULL for the first. May be NULL. */
	void (*progress)(void *ctx, size_t arm, size_t n, const struct as_look *look);
	void *progress_ctx;
};

struct as_arm_result {
	struct as_runs runs;
	AS_VEC(uint32_t) rounds; /* of each run, from 0: runs of one round belong together */
	AS_VEC(double) d[2];    /* with the first: ln ratio per pair, of wall and of CPU time */
	struct as_look look;    /* the last one */
	enum as_metric decides; /* AS_M_CPU or AS_M_WALL */
	struct as_trimmed by[2]; /* of d, 95 % as if looked at once */
	bool disagree;           /* the two exclude each other */
	double seconds_needed;   /* until it would be decided; 0: it is; NaN: cannot be told */
	double seconds;          /* in its runs */
	size_t failed_run;       /* 1-based, the first; 0: none */
	int failed_status;       /* wait status */
	size_t failures;         /* runs that failed and count all the same */
	size_t timeouts;         /* runs that were ended; the first is timeout_run */
	size_t timeout_run;
	bool out;    /* it failed or did not end */
	size_t left; /* processes left behind, ended */
	char left_name[32];
};
struct as_rounds {
	struct as_arm_result *v;
	size_t n;
	double seconds;      /* in runs */
	double wall_seconds; /* in all, from began_ns on */
	bool interrupted;
	bool out_of_budget;
};
/* AS_E_…: one could not be run, or a prepare failed; what was measured before is in *ret all the same. */
int as_rounds(const struct as_rounds_request *q, struct as_rounds *ret, struct as_error *err);
void as_rounds_clear(struct as_rounds *r);
/* Whether CPU time, with the waiting for a CPU, makes up the wall time. */
bool as_runs_explained(const struct as_runs *runs);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A benchmark as the worker sees it: a function that runs so many iterations, with one thread or a team.
 * The clock (assay_bench_begin, assay_bench_end) is here, because a team's threads wait for each other
 * where they begin.
 *
 * Thread rule: as_subject_run from one thread; it starts and joins the others.
 */
#ifndef AS_HARNESS_SUBJECT_PRIV_H
#define AS_HARNESS_SUBJECT_PRIV_H

#include <stdbool.h>
#include "assay/bench.h"
#include "base/err.h"
#include "harness/protocol.h"

struct as_subject {
	struct assay_bench_spec
		*spec; /* may be filled by fn: read throughput and unit after a run */
	assay_bench_fn fn;
	void *ctx;
	/* what fn fills, of whatever version of the header: taken into *spec after each run. NULL: *spec
	 * is it */
	const struct assay_bench_spec *caller;
};

/* The caller's struct, which says itself how long it is, in today's shape: what it does not have is
 * zero. False: it does not say its size. */
bool as_spec_take(struct assay_bench_spec *to, const struct assay_bench_spec *from);
bool as_settings_take(struct assay_bench_settings *to, const struct assay_bench_settings *from);

/* One batch; ret->warmup is not touched. AS_E_USAGE: fn said that it cannot, or returned no number. */
int as_subject_run(const struct as_subject *s, uint64_t iters, struct as_answer_batch *ret,
		   struct as_error *err);

bool as_subject_is_time(const struct as_subject *s);
/* id and others: copies. */
void as_subject_entry(const struct assay_bench_spec *spec, struct as_fn_entry *ret);

/* What fn wants to tell instead of a value: kept until it is taken. From any thread. */
void as_problem_set(const char *text);
bool as_problem_take(char *ret, size_t n);

/* What reading the clock twice takes; assay_bench_end subtracts it from then on. */
double as_clock_calibrate(void);
/* Least time of an iteration of ASSAY_ITER with nothing in it, ns. */
double as_loop_ns(void);

/* ---- team.c and subject.c ---- */
struct as_stretch {                     /* of the calling thread, of its last run */
	uint64_t first_begin, last_end; /* 0: it did not use our clock */
};
uint64_t as_thread_cpu_ns(void); /* of the calling thread */
void as_stretch_reset(void);
struct as_stretch as_stretch_get(void);
/* Of a team member: waits for the others when the first timed stretch begins. */
struct as_team;
void as_team_join(struct as_team *t, unsigned index); /* the calling thread is member `index` */
void as_team_arrive(void);    /* by assay_bench_begin: the first time of a run */
unsigned as_team_index(void); /* of the calling thread; 0 outside */
int as_team_run(const struct as_subject *s, uint64_t iters, struct as_answer_batch *ret,
		struct as_error *err);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inside of the driver: one measurement of one benchmark. See driver.h. */
#ifndef AS_HARNESS_DRIVER_PRIV_H
#define AS_HARNESS_DRIVER_PRIV_H

#include "harness/ask_priv.h"

/* Where processes come from. */
enum as_source {
	AS_FRESH,  /* each one is started */
	AS_SERVED, /* forks of one that was started: its set-up is slow */
	AS_HERE,   /* forks of ourselves, or ourselves: a worker does not find the benchmark */
};

struct as_calibration {
	uint64_t iterations;
	double value, wall_ns;             /* of a batch of these */
	double first_value, first_wall_ns; /* of the very first iteration */
	double proportion;                 /* NaN: not looked at */
	double startup_s, process_s;
};

struct as_measuring {
	const struct as_fn_request *q;
	struct as_fn_result *r;
	struct as_fn_side side[2]; /* maybe copies */
	struct as_fn_copies copies;
	unsigned sides;
	uint64_t random;
	uint64_t start_ns, cap_ns; /* CLOCK_MONOTONIC */
	double budget_s;
	double used_s; /* by the calibration */
	struct as_calibration calibration[2];
	struct as_question question; /* of a sample */
	double process_s;            /* what one is expected to take */
	enum as_source source;
	struct as_worker server;
	struct as_answer server_answer;
	bool forked; /* AS_HERE: in forks */
	bool unoptimised;
	double setup_ns, timed_ns; /* of all batches: wall time, and what was timed of it */
	AS_VEC(double) d[2];       /* ln ratios of medians and of CPU time */
};

uint64_t as_measuring_random(struct as_measuring *m);
double as_measuring_elapsed(const struct as_measuring *m);
bool as_measuring_is_interrupted(const struct as_measuring *m);
/* Fails the benchmark, once, with a sentence. Returns 0. */
int as_measuring_fail(struct as_measuring *m, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* One question to a worker, its answer (initialised) in ret. 1; 0: the benchmark failed (said) or we were
 * interrupted; < 0: nothing can go on. */
int as_measuring_ask(struct as_measuring *m, unsigned side, const struct as_question *question,
		     struct as_answer *ret, struct as_worker *ret_worker, struct as_error *err);
/* One process more on `side`. As above. */
int as_measuring_sample(struct as_measuring *m, unsigned side, struct as_error *err);
/* Starts and ends the server of AS_SERVED; 0: it cannot (the benchmark did not fail). */
int as_measuring_serve(struct as_measuring *m, struct as_error *err);
void as_measuring_end_server(struct as_measuring *m);

/* The benchmark's name, unit and the like from an answer. */
void as_measuring_take_what(struct as_measuring *m, struct as_answer *a);
int as_measuring_calibrate(struct as_measuring *m, struct as_error *err);
int as_measuring_allocations(struct as_measuring *m, struct as_error *err);

void as_measuring_judge_exact(struct as_measuring *m);
int as_measuring_pairs(struct as_measuring *m, struct as_error *err);
/* Estimates and ratios of what there is. */
void as_measuring_summarise(struct as_measuring *m);
/* Notes. After the above. */
void as_measuring_lint(struct as_measuring *m);

double as_quantile(const double *sorted, size_t n,
		   double q); /* n > 0; between neighbours linear */

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Criterion's face of the harness, for the Rust crates (rust/assay-criterion, rust/assay-bench): a
 * `Criterion` object, one command line and one set of result folders for all of them.
 *
 *	struct as_criterion *c = as_criterion_new();
 *	as_criterion_set_number(c, AS_CRITERION_MEASUREMENT_S, 3);
 *	as_criterion_configure(c, argc, argv);
 *	for every benchmark: as_criterion_one(c, &spec);
 *	as_criterion_summary(c);
 *	as_criterion_free(c);
 *
 * Layouts are those of rust/assay-criterion/src/ffi.rs: both change together.
 *
 * Errors: what cannot go on (a bad argument, a filter that is no regular expression) ends the process
 * with status 2 and one line on standard error, since the callers have nobody to give it to. What
 * fails for one benchmark is said, remembered, and is the exit status when the process ends.
 * Thread rule: an object is of one thread; benchmarks of several objects wait for each other.
 */
#ifndef AS_HARNESS_CRITERION_H
#define AS_HARNESS_CRITERION_H

#include <stddef.h>
#include <stdint.h>
#include "assay/bench.h"

struct as_bench_front;

enum as_criterion_number { /* NaN: not set */
			   AS_CRITERION_SAMPLE_SIZE,
			   AS_CRITERION_WARM_UP_S,
			   AS_CRITERION_MEASUREMENT_S,
			   AS_CRITERION_RESAMPLES,
			   AS_CRITERION_NOISE,
			   AS_CRITERION_CONFIDENCE,
			   AS_CRITERION_SIGNIFICANCE,
			   AS_CRITERION_PLOTS,  /* 1: pages in report/ folders */
			   AS_CRITERION_COLOUR, /* 0: never, 1: always */
			   AS_CRITERION_PROFILE_S,
			   AS_CRITERION_CSV, /* 1: raw.csv beside sample.json */
			   AS_CRITERION_NUMBERS_
};

enum as_criterion_text {
	AS_CRITERION_FILTER,       /* a regular expression; "": all */
	AS_CRITERION_FILTER_EXACT, /* an id */
	AS_CRITERION_FILTER_NONE,  /* nothing runs */
	AS_CRITERION_SAVE,         /* the baseline to write, and to compare with */
	AS_CRITERION_BASELINE, /* to compare with and to leave; it must have every benchmark */
	AS_CRITERION_BASELINE_LENIENT,
	AS_CRITERION_HOME,    /* folder of the results */
	AS_CRITERION_DISCARD, /* save nothing */
};

/* How values of a measurement are written. Callbacks get ctx; texts they write are at most n bytes
 * with the NUL. */
struct as_criterion_unit {
	void *ctx;
	int wall_time; /* nonzero: nanoseconds of wall time, whatever else it says */
	void (*format_value)(void *ctx, double v, char *text, size_t n);
	/* kind, n1, n2 as in assay_bench_spec; v: per iteration */
	void (*format_throughput)(void *ctx, int kind, uint64_t n1, uint64_t n2, double v,
				  char *text, size_t n);
	/* Scales v[n] for files, in place; the unit's name, valid until the next call. */
	const char *(*for_machines)(void *ctx, double *v, size_t n);
	/* With --profile-time: before (start 1) and after (0) a benchmark. */
	void (*profile)(void *ctx, int start, const char *id, const char *folder);
};

struct as_criterion_spec {
	uint32_t size;
	int throughput; /* enum assay_throughput */
	uint64_t n, n2;
	const char *group, *function, *value;  /* NULL: it has none; group never */
	double numbers[AS_CRITERION_NUMBERS_]; /* of the group: before those of the object */
	const struct as_criterion_unit *unit;  /* NULL: wall time */
	assay_bench_fn run;
	void *ctx;
	uint32_t threads; /* 0 and 1: one */
};

struct as_criterion *as_criterion_new(void);
void as_criterion_free(struct as_criterion *c); /* NULL: nothing */
void as_criterion_set_number(struct as_criterion *c, int which, double value);
void as_criterion_set_text(struct as_criterion *c, int which, const char *text);
/* What the command line says goes before what was set. argv is copied. */
void as_criterion_configure(struct as_criterion *c, int argc, const char *const *argv);
/* 0; -1: it failed. May end the process (in a worker). */
int as_criterion_one(struct as_criterion *c, const struct as_criterion_spec *spec);
/* From within a benchmark's run: the work of one iteration, where the spec does not know it yet. */
void as_criterion_throughput(int throughput, uint64_t n, uint64_t n2);
/* Says what is left to be said: what a strict baseline lacks, the exit status to come. */
void as_criterion_summary(struct as_criterion *c);
int as_criterion_is_worker(void);

extern const struct as_bench_front as_criterion_front;

#endif

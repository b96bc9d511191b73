/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What stands between a bench program's user and the driver: command line, names, text, files. The
 * library has two: ours (plain.c) and criterion's (criterion/); rows of as_bench_fronts.
 *
 * A front is called in the program that measures, and in test, list and profile mode; never in a worker.
 * All from one thread; ctx is what open returned.
 */
#ifndef AS_HARNESS_FRONT_H
#define AS_HARNESS_FRONT_H

#include <stdbool.h>
#include "assay/bench.h"
#include "harness/driver.h"

struct as_bench_plan { /* what a command line asks for */
	enum assay_bench_mode mode;
	struct assay_bench_settings
		settings; /* of the command line: before those of the program */
	double profile_s;
	int exit_status; /* -1: go on; else the process ends with it (help, bad arguments: said) */
};

struct as_bench_front {
	const char *name; /* as in assay_bench_settings.front */
	/* Fills plan (zeroed, exit_status -1). Prints what is to be said. */
	void *(*open)(int argc, char *const *argv, struct as_bench_plan *plan);
	/* Is this benchmark wanted? Called once per benchmark, also for unwanted ones. */
	bool (*selects)(void *ctx, const struct assay_bench_spec *spec, const char *id);
	/* Modes list, test, profile: before fn runs (list: instead) and after. failed: NULL, or why. */
	void (*named)(void *ctx, const struct assay_bench_spec *spec, const char *id,
		      enum assay_bench_mode mode);
	void (*ran)(void *ctx, const char *id, enum assay_bench_mode mode, const char *failed);
	/* Main mode: before it is measured. q is filled (id, side 0: this program, settings merged); may
	 * be changed, e.g. side 0 the program of a baseline and this one side 1. */
	void (*begin)(void *ctx, const struct assay_bench_spec *spec,
		      const struct assay_bench_settings *merged, struct as_fn_request *q);
	/* Main mode: its result; r->failed: it failed. The front may take r's vectors. */
	void (*result)(void *ctx, const struct assay_bench_spec *spec,
		       const struct assay_bench_settings *merged, struct as_fn_result *r);
	/* Prints and writes what is left, frees ctx. failures: benchmarks that failed. → exit status. */
	int (*close)(void *ctx, unsigned failures);
};

extern const struct as_bench_front
	*const as_bench_fronts[]; /* NULL-terminated; the first: default */
extern const struct as_bench_front as_plain_front;

/* Set by a signal that asks the program to end; from the time it was opened. */
extern volatile int as_bench_interrupted;

/* group/function/value without those that are absent; caller frees. */
char *as_bench_id(const struct assay_bench_spec *spec);

#endif

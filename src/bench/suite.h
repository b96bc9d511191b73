/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A suite: bench programs, each with any number of benchmarks, of one build or of two builds side by side;
 * within a time that goes where the uncertainty is.
 *
 *	struct as_suite_target t = {.name = "parse", .side = {{.exe = old}, {.exe = now}}};
 *	r = as_suite_run(&(struct as_suite_request){.targets = &t, .ntargets = 1, .sides = 2,
 *						    .labels = {"main", "checkout"}}, &ret, err);
 *	as_bench_text(&ret.set, …);
 *
 * Programs with assay's harness are measured by the driver (harness/driver.h); others as they can be
 * (foreign.h). Each benchmark gets its part of the time first, a short look that decides what is clear;
 * then those that are not decided, or least known, get what is left, the cheapest first. Both looks share
 * the error rate.
 *
 * Two builds: a verdict of slower or faster is taken to other layouts of both (layout.h), where the links
 * were seen. A benchmark that only one side has is listed; one that fails is named and the others go on.
 *
 * Thread rule: one suite at a time per process.
 */
#ifndef AS_BENCH_SUITE_H
#define AS_BENCH_SUITE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/mem.h"
#include "bench/layout.h"
#include "results/result.h"

/* Borrowed. exe NULL: this side has no such program. */
struct as_suite_program {
	const char *exe;                     /* absolute */
	const char *folder;                  /* where it runs; NULL: here */
	char *const *environment;            /* all of it; NULL: ours */
	const struct as_layout_watch *watch; /* of its build; NULL: no second link */
};
struct as_suite_target {
	const char *name;                /* for messages and, where ids clash, before them */
	bool is_bench;                   /* made for benchmarks: to have none is worth a word */
	struct as_suite_program side[2]; /* 0: before, 1: now; the only one is 0 */
};

struct as_suite_request {
	const struct as_suite_target *targets;
	size_t ntargets;
	unsigned sides;        /* 1 or 2 */
	const char *labels[2]; /* of two sides */
	const char *filter;    /* regular expression on ids; NULL: all */
	bool exact;            /* filter is an id */
	bool list;             /* only say what there is */
	double budget_s;       /* of the suite; 0: what each takes by itself */
	double each_s;         /* of a benchmark; 0: 1 s, two sides 2 s and up to 10 s more */
	double delta;          /* 0: 0.01 */
	unsigned layouts;      /* pairs of links; 0: 8 where needed; 1: none */
	const char *folder;    /* private and writable: copies, relinks, homes */
	uint64_t seed;
	const volatile int *interrupted;
	/* done of n; about: what is measured now. May be NULL. */
	void (*progress)(void *ctx, size_t done, size_t n, const char *about);
	void *progress_ctx;
};

/* Where a comparison of the set comes from. */
struct as_suite_place {
	char *name, *id; /* name: of the comparison */
	size_t target;
	uint64_t iterations; /* of a batch; 0: not known */
};

struct as_suite_result {
	struct as_bench_set set;
	AS_VEC(struct as_suite_place) places;
	AS_VEC(char *) ids;            /* list: "id", in order */
	AS_VEC(char *) added, removed; /* of two sides: on one only */
	size_t benches;                /* that were to be measured */
	size_t failed;                 /* benchmarks or programs; notes of the set name them */
	bool interrupted;
};
/* AS_OK also where benchmarks fail. AS_E_NOTFOUND: nothing to measure (with what there is). */
int as_suite_run(const struct as_suite_request *q, struct as_suite_result *ret,
		 struct as_error *err);
void as_suite_result_clear(struct as_suite_result *r);

#endif

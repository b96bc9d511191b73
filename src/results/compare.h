/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Two results of different times beside each other: a trend, never a verdict. The machine of either day
 * is in both figures, and runs of one after the other call identical code different far more often
 * than their intervals promise (docs/design/0010-paired-runs.md). So each comparison is marked
 * `stored`, its verdict stays undecided, and a note says what would tell: a run in pairs.
 *
 *	as_bench_compare(&(struct as_bench_compared){.set = {&a, &b}, .name = {"main", "now"}}, &ret);
 *
 * Thread rule: pure. Cost: n log n.
 */
#ifndef AS_RESULTS_COMPARE_H
#define AS_RESULTS_COMPARE_H

#include "results/result.h"

struct as_bench_compared {
	const struct as_bench_set *set[2]; /* before, after */
	const char *name[2];               /* what the reader calls them */
};
/* Benches of the same name and unit, the newer side of each set. What only one has is a note ("only-a",
 * "only-b"); another machine or toolchain is one too ("machine", "toolchain"). Where the declared work
 * of a bench changed, the ratio is per unit of work ("work"). */
void as_bench_compare(const struct as_bench_compared *q, struct as_bench_set *ret);

/* Units of work of b per unit of work of a; 1 where both do the same or it is not known. */
double as_bench_work_ratio(const struct as_bench *a, const struct as_bench *b);

#endif

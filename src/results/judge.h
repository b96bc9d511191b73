/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What only the whole of a suite can say: which of many verdicts may be chance, whether all of them
 * lean to one side, how the suite as a whole changed, and how time grows with a parameter.
 *
 *	measure everything, fill set.comparisons;
 *	as_bench_judge(&set);
 *	as_bench_find_growth(&set, false);
 *	as_bench_text(&set, …);
 *
 * Verdicts of single comparisons keep an error rate each; among a hundred of them five false ones
 * would be usual. Slower and faster ones that do not survive the false discovery rate become
 * undecided, with a note that says so (kind "fdr"). Notes of the set: "geometric-mean", "one-sided",
 * "environment".
 *
 * Sources: stats/fdr.h, stats/complexity.h; P. J. Fleming, J. J. Wallace, CACM 29 (1986) 218
 * (geometric mean). Thread rule: none shared. Cost: some milliseconds for 1,000 comparisons.
 */
#ifndef AS_RESULTS_JUDGE_H
#define AS_RESULTS_JUDGE_H

#include "results/result.h"

#define AS_BENCH_FDR       0.05
#define AS_BENCH_ONE_SIDED 0.01 /* of the sign test over all comparisons */

/* Once per set: a second call does nothing. */
void as_bench_judge(struct as_bench_set *s);

/* Fills set.complexities from benches that differ in one numeric parameter (or a function's value), and
 * only from five sizes and a decade on; `asked`: also says why it cannot tell. */
void as_bench_find_growth(struct as_bench_set *s, bool asked);

/* Notes when the same benches, side a, are all faster or slower than they were in `before`, a result of
 * the same machine: the environment moved, and a trend over both is of it. */
void as_bench_judge_environment(struct as_bench_set *s, const struct as_bench_set *before);

#endif

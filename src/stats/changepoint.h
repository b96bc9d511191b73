/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where a series of results took a step: E-divisive means.
 *
 * The series is cut where the two sides differ most by their energy distance, and each part again,
 * as long as a permutation test says that parts cut at random would rarely differ so much. A single
 * spike is no step: parts have at least AS_CHANGE_LEAST values. A cut at which only the spread
 * changes is told apart from a step of the level: it is no regression, but from there on larger
 * steps are needed, so a series that turns noisy stops alerting. Where neighbours are alike, as the
 * machine drifts, blocks of them are permuted and the step's interval is wider, else drift would
 * pass for steps.
 *
 *	n = as_changes_find(v, count, AS_CHANGE_MAGNITUDE, changes, AS_ARRAY_LEN(changes));
 *
 * v: logarithms of the results, oldest first. Permutations come from a generator with a fixed seed:
 * the same series gives the same answer everywhere. Only the newest AS_CHANGE_WINDOW values are
 * looked at; older ones tell nothing of today.
 *
 * Sources: D. S. Matteson, N. A. James, JASA 109 (2014) 334 (E-divisive, its permutation test); M.
 * L. Rizzo, G. J. Szekely, Ann. Appl. Stat. 4 (2010) 1034 (energy distance); D. Daly et al., ICPE
 * 2020 (change points of benchmarks); G. Box, G. Jenkins, Time Series Analysis, 1970, 3.2, 6.3
 * (AR(1): its correlations, variance of a mean); D. E. Knuth, TAOCP 2, 3.4.2 P (shuffle); G.
 * Marsaglia, JSS 8 (2003) 14 (xorshift).
 *
 * Pure; any thread. Cost: n^2 for each permutation of a part, stopped early where nothing is to be
 * found: 200 values without a step 2 ms, each step 20 ms.
 */
#ifndef AS_STATS_CHANGEPOINT_H
#define AS_STATS_CHANGEPOINT_H

#include <stdbool.h>
#include <stddef.h>

#define AS_CHANGE_LEAST        4 /* values in a part */
#define AS_CHANGE_WINDOW       200
#define AS_CHANGE_PERMUTATIONS 499
#define AS_CHANGE_LEVEL        0.01 /* of a cut */
#define AS_CHANGE_MAGNITUDE    0.01 /* least step worth a word, in ln units */

struct as_change {
	size_t at;              /* the first value after it */
	bool is_step;           /* false: only the spread changed */
	double before, after;   /* trimmed means of the parts on either side */
	double step, low, high; /* after - before, with 99 % */
	double sd_before, sd_after;
	double p; /* of the permutation test */
};

/* In the order of the series; at most max of them, the weightiest. NaN and infinite values are passed
 * over, positions are those of v. */
size_t as_changes_find(const double *v, size_t n, double magnitude, struct as_change *ret,
		       size_t max);

#endif

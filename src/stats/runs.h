/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What repeated runs say about one figure: a value per run, in the order of the runs.
 *
 * The estimate is the 20 % trimmed mean from 10 runs on and the mean below. Its interval is about
 * where the long-run value of such runs lies, not how runs scatter. Runs on a real machine drift:
 * neighbours are alike, and n of them tell less than n independent ones. The standard error is
 * therefore widened by sqrt((1 + r) / (1 - r)), r the correlation of neighbours, where that is
 * positive and the runs are enough to see it (10). Of values that are all above zero the interval is,
 * too: one that would reach zero is made symmetric as a ratio, mean^2 / high.
 *
 *	mixture		the values fall into two groups apart: one number describes neither. Of 20
 *			runs or more each group has a fifth, Ashman's D is above 4, and the half of
 *			the way between the means holds 5 % at most; of the logarithms, too. One bell
 *			passes for two in 0.6 % of 20 runs, never seen from 40 on.
 *	drift		r, or 0
 *
 * Sources: paired.h for the interval; G. Box, G. Jenkins, Time Series Analysis, 1970, 6.3 (variance
 * of a mean under AR(1)); K. Ashman, C. Bird, S. Zepf, AJ 108 (1994) 2348 (D).
 *
 * Pure; any thread.
 */
#ifndef AS_STATS_RUNS_H
#define AS_STATS_RUNS_H

#include <stdbool.h>
#include <stddef.h>

#define AS_RUNS_ENOUGH 10

struct as_runs_summary {
	size_t n;               /* values that are not NaN */
	double mean, low, high; /* 95 %; infinite for n < 3 */
	double median, sd, min, max;
	double drift;
	bool mixture;
	double groups[2]; /* means of the two, where it is one */
};
void as_runs_summarise(const double *v, size_t n, struct as_runs_summary *ret);
/* Likewise with low and high at 1 - alpha. */
void as_runs_summarise_at(const double *v, size_t n, double alpha, struct as_runs_summary *ret);

/* ret[i] = v[i] stands apart: more than 5 median absolute deviations (scaled) above or below the
 * median, and 2 % of it. Returns how many. NaN stands never apart. */
size_t as_runs_outliers(const double *v, size_t n, bool *ret);

/* Doubles in ascending order, for qsort; none is NaN. */
int as_by_value(const void *a, const void *b);

#endif

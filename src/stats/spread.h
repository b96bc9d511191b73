/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How runs of one program differ, learned from all rows of a comparison together.
 *
 * Few runs tell a row's own variance badly. Each row has a ratio: variance between its runs over what
 * sampling alone would make it, of `df` degrees of freedom. The rows' true ratios are taken as drawn
 * from one distribution (a scaled inverse chi-square); its middle `all` and how close the rows lie to
 * it, `df` of the prior, are found from the logarithms of the ratios. A row's ratio is then its own
 * drawn towards `all`, and is known with both degrees of freedom together.
 *
 *	as_spread_find(ratios, n, 4, &s);
 *	drawn = as_spread_draw(&s, own, 4);	Student's t with s.df + 4 degrees of freedom
 *
 * Source: G. K. Smyth, SAGMB 3 (2004) 3, sections 6.1 and 6.2. Pure; any thread.
 */
#ifndef AS_STATS_SPREAD_H
#define AS_STATS_SPREAD_H

#include <stddef.h>

#define AS_SPREAD_ROWS   20  /* fewer tell no distribution: their mean is given the weight 4 */
#define AS_SPREAD_DF_MAX 200 /* rows that all are alike */

struct as_spread {
	double all; /* > 0 */
	double df;  /* of the prior, 1..AS_SPREAD_DF_MAX */
};
/* ratio[n], all of df > 0 degrees of freedom. n may be 0: all is 1. */
void as_spread_find(const double *ratio, size_t n, double df, struct as_spread *ret);
/* At least 1: no runs are closer to each other than their samples. */
double as_spread_draw(const struct as_spread *s, double own, double df);

double as_digamma(double x);  /* x > 0 */
double as_trigamma(double x); /* x > 0 */

#endif

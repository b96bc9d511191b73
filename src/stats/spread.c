/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Moderated variances: see spread.h. */
#include "stats/spread.h"

#include <math.h>

#include "base/mem.h"

#define FEW_DF 4.0  /* what the mean of few rows weighs */
#define LEAST  1e-4 /* of a ratio: runs that agree by chance have no logarithm */

/* Abramowitz & Stegun 6.3.18 and 6.4.12, beyond 6 by recurrence. */
double as_digamma(double x)
{
	double r = 0, x2;

	for (; x < 6; x++)
		r -= 1 / x;
	x2 = 1 / (x * x);
	return r + log(x) - 0.5 / x -
	       x2 * (1.0 / 12 - x2 * (1.0 / 120 - x2 * (1.0 / 252 - x2 / 240)));
}

double as_trigamma(double x)
{
	double r = 0, x2;

	for (; x < 6; x++)
		r += 1 / (x * x);
	x2 = 1 / (x * x);
	return r + 1 / x + x2 / 2 +
	       x2 / x * (1.0 / 6 - x2 * (1.0 / 30 - x2 * (1.0 / 42 - x2 / 30)));
}

/* The x whose trigamma is y. Halving: it falls steadily. */
static double trigamma_inverse(double y)
{
	double lo = 1e-3, hi = AS_SPREAD_DF_MAX;

	for (int i = 0; i < 60; i++) {
		double mid = (lo + hi) / 2;

		if (as_trigamma(mid) > y)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

void as_spread_find(const double *ratio, size_t n, double df, struct as_spread *ret)
{
	double mean = 0, squares = 0, sum = 0, left;

	*ret = (struct as_spread){.all = 1, .df = FEW_DF};
	for (size_t i = 0; i < n; i++) {
		sum += ratio[i] / (double)n;
		mean += log(AS_MAX(ratio[i], LEAST)) / (double)n;
	}
	if (n < AS_SPREAD_ROWS) {
		ret->all = n ? AS_MAX(sum, 1) : 1;
		return;
	}
	for (size_t i = 0; i < n; i++)
		squares += pow(log(AS_MAX(ratio[i], LEAST)) - mean, 2) / (double)(n - 1);
	mean += log(df / 2) - as_digamma(df / 2);
	left = squares - as_trigamma(df / 2);
	if (left > 0)
		ret->df = 2 * trigamma_inverse(left);
	else
		ret->df = AS_SPREAD_DF_MAX;
	ret->df = AS_MIN(AS_MAX(ret->df, 1), (double)AS_SPREAD_DF_MAX);
	ret->all = exp(mean + as_digamma(ret->df / 2) - log(ret->df / 2));
}

double as_spread_draw(const struct as_spread *s, double own, double df)
{
	double drawn = (s->df * s->all + df * own) / (s->df + df);

	return AS_MAX(drawn, 1);
}

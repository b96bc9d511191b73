/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Quantiles and intervals: see interval.h. */
#include "stats/interval.h"

#include <float.h>
#include <math.h>

double as_normal_quantile(double p)
{
	if (!(p > 0 && p < 1))
		return NAN;

	double tail = p < 0.5 ? p : 1 - p;
	double t = sqrt(-2 * log(tail));
	double x = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
			       (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));

	/* The start is right to 4.5e-4 and a Halley step cubes the error: two would do. */
	for (int i = 0; i < 3; i++) {
		double f = (0.5 * erfc(x * M_SQRT1_2) - tail) * sqrt(2 * M_PI) * exp(x * x / 2);

		x += f / (1 - x * f / 2);
	}
	return p < 0.5 ? -x : x;
}

/* Continued fraction for I_x(a, b); converges fast for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double x, double a, double b)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1);

	d = 1 / (fabs(d) < DBL_MIN ? DBL_MIN : d);

	double f = d;

	for (int m = 1; m < 100000; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step = 1;

		for (int half = 0; half < 2; half++) {
			double k = half ? odd : even;

			d = 1 + k * d;
			d = 1 / (fabs(d) < DBL_MIN ? DBL_MIN : d);
			c = 1 + k / c;
			c = fabs(c) < DBL_MIN ? DBL_MIN : c;
			step = c * d;
			f *= step;
		}
		if (fabs(step - 1) < 4 * DBL_EPSILON)
			break;
	}
	return f;
}

static double log_gamma(double x)
{
	int sign;

	return lgamma_r(x, &sign); /* lgamma writes a global */
}

/* ln B(a, b) */
static double log_beta(double a, double b)
{
	return log_gamma(a) + log_gamma(b) - log_gamma(a + b);
}

static double beta_cdf_with(double x, double a, double b, double lbeta)
{
	if (x <= 0)
		return 0;
	if (x >= 1)
		return 1;

	double front = exp(a * log(x) + b * log1p(-x) - lbeta);

	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(x, a, b) / a;
	return 1 - front * beta_fraction(1 - x, b, a) / b;
}

double as_beta_cdf(double x, double a, double b)
{
	if (!(a > 0 && b > 0) || isnan(x) || isinf(a) || isinf(b))
		return NAN;
	return beta_cdf_with(x, a, b, log_beta(a, b));
}

/*
 * Newton on ln I over ln x (ln I is concave there, for tiny x a straight line), kept inside a
 * bracket that every evaluation narrows. For p <= 1/2 only: the caller mirrors the rest.
 */
static double beta_lower_quantile(double p, double a, double b)
{
	double lbeta = log_beta(a, b), lo = 0, hi = 1, x = a / (a + b);

	for (int i = 0; i < 200; i++) {
		double cdf = beta_cdf_with(x, a, b, lbeta);
		double f = log(cdf) - log(p);

		if (fabs(f) < 1e-13)
			break;
		if (f > 0)
			hi = x;
		else
			lo = x;

		double slope = exp(a * log(x) + (b - 1) * log1p(-x) - lbeta) / cdf;
		double next = x * exp(-f / slope);

		if (!(next > lo && next < hi))
			next = lo > 0 && hi / lo > 4 ? sqrt(lo * hi) : lo + (hi - lo) / 2;
		if (next == x)
			break;
		x = next;
	}
	return x;
}

double as_beta_quantile(double p, double a, double b)
{
	if (!(a > 0 && b > 0 && p >= 0 && p <= 1) || isinf(a) || isinf(b))
		return NAN;
	if (p == 0 || p == 1)
		return p;
	return p <= 0.5 ? beta_lower_quantile(p, a, b) : 1 - beta_lower_quantile(1 - p, b, a);
}

double as_student_quantile(double p, double df)
{
	if (!(p > 0 && p < 1 && df > 0))
		return NAN;
	if (df > 1e8)
		return as_normal_quantile(p);
	if (p == 0.5)
		return 0;

	/* t^2 / (df + t^2) is Beta(1/2, df/2); its tail 2 min(p, 1-p) is the two-sided one. */
	double tail = 2 * (p < 0.5 ? p : 1 - p);
	double t;

	if (df < 4) {
		double x = as_beta_quantile(tail, df / 2, 0.5);

		t = sqrt(df * (1 - x) / x);
	} else {
		double y = as_beta_quantile(1 - tail, 0.5, df / 2);

		t = sqrt(df * y / (1 - y));
	}
	return p < 0.5 ? -t : t;
}

#define EXACT_BELOW 100

static double clamp(double v, double lo, double hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

struct as_interval as_wilson_interval(double share, double n, double z)
{
	if (!(n > 0))
		return (struct as_interval){0, 1};
	share = clamp(share, 0, 1);

	double z2n = z * z / n, centre = (share + z2n / 2) / (1 + z2n);
	double half = sqrt(share * (1 - share) * z2n + z2n * z2n / 4) / (1 + z2n);

	return (struct as_interval){clamp(centre - half, 0, share),
				    clamp(centre + half, share, 1)};
}

struct as_interval as_exact_interval(double k, double n, double confidence)
{
	if (!(n > 0))
		return (struct as_interval){0, 1};
	k = clamp(k, 0, n);

	double tail = (1 - confidence) / 2;

	return (struct as_interval){
		k > 0 ? as_beta_quantile(tail, k, n - k + 1) : 0,
		k < n ? as_beta_quantile(1 - tail, k + 1, n - k) : 1,
	};
}

struct as_interval as_proportion_interval(double k, double n, double z)
{
	if (!(n > 0))
		return (struct as_interval){0, 1};
	if (k < EXACT_BELOW || n - k < EXACT_BELOW)
		return as_exact_interval(k, n, erf(z * M_SQRT1_2));
	return as_wilson_interval(k / n, n, z);
}

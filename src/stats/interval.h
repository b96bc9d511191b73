/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Quantiles and intervals of one proportion. Pure functions of their arguments; any thread.
 *
 *	double z = as_normal_quantile(0.975);
 *	struct as_interval i = as_proportion_interval(0.231 * 21640, 21640, z);
 *
 * Sources:
 *	Wilson score interval		E. B. Wilson, JASA 22 (1927) 209
 *	exact interval			C. J. Clopper, E. S. Pearson, Biometrika 26 (1934) 404
 *	exact with effective size	E. L. Korn, B. I. Graubard, Survey Methodology 24 (1998) 193
 *	which one when			L. D. Brown, T. T. Cai, A. DasGupta, Stat. Sci. 16 (2001) 101
 *	incomplete beta			continued fraction of Abramowitz & Stegun 26.5.8, evaluated
 *					by W. J. Lentz's method, Applied Optics 15 (1976) 668
 *	normal quantile			Abramowitz & Stegun 26.2.23, then Halley steps on erfc
 *
 * Accuracy: quantiles to about 1e-10 relative. Arguments outside the domain give NaN.
 */
#ifndef AS_STATS_INTERVAL_H
#define AS_STATS_INTERVAL_H

#define AS_CONFIDENCE 0.95 /* of every interval that assay prints */

struct as_interval {
	double lo, hi;
};

double as_normal_quantile(double p);              /* 0 < p < 1 */
double as_student_quantile(double p, double df);  /* 0 < p < 1, df > 0 */
double as_beta_cdf(double x, double a, double b); /* regularised incomplete beta I_x(a, b) */
double as_beta_quantile(double p, double a, double b);

/*
 * share in [0, 1] seen in n > 0 independent samples; n need not be whole (an effective size). z
 * is the two-sided quantile (1.96, or Student's for an estimated variance). Bounds lie in [0,
 * 1] and enclose share.
 */
struct as_interval as_wilson_interval(double share, double n, double z);

/* k of n, 0 <= k <= n, neither need be whole: covers with at least `confidence` when they are. */
struct as_interval as_exact_interval(double k, double n, double confidence);

/*
 * The interval for k of n: exact where either outcome is rare (fewer than 20 cases, where
 * Wilson's coverage dips below 93 %), Wilson beyond. z as above; the exact one uses the
 * confidence that belongs to z.
 */
struct as_interval as_proportion_interval(double k, double n, double z);

#endif

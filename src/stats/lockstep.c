/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Samples in step with the program: see lockstep.h. */
#include "stats/lockstep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "stats/runs.h"

/* Of an autocorrelation: a trough and a peak that chance, or one long phase, does not make. */
static const double TROUGH = -0.15, PEAK = 0.3, SIGMAS = 5, LASTS = 0.5;

double as_intervals_likeness(const double *v, size_t n)
{
	AS_CLEANUP(as_free_autop) double *sorted = as_xcalloc(n + 1, sizeof *sorted);
	double re = 0, im = 0, median;
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		if (v[i] > 0)
			sorted[used++] = v[i];
	}
	if (used < 2)
		return NAN;
	qsort(sorted, used, sizeof *sorted, as_by_value);
	median = sorted[used / 2];
	while (used && sorted[used - 1] > 3 * median)
		used--;
	for (size_t i = 0; i < used; i++) {
		double phase = 2 * M_PI * sorted[i] / median;

		re += cos(phase);
		im += sin(phase);
	}
	return sqrt(re * re + im * im) / (double)used;
}

/* Correlation of x with itself `lag` later. */
static double correlation(const uint8_t *x, size_t n, size_t lag, double p)
{
	size_t both = 0, first = 0, second = 0, m = n - lag;

	for (size_t i = 0; i < m; i++) {
		both += x[i] & x[i + lag];
		first += x[i];
		second += x[i + lag];
	}
	return ((double)both / (double)m - p * ((double)first + (double)second) / (double)m +
		p * p) /
	       (p * (1 - p));
}

/* Of the lags up to n / 6, the first whose correlation is a peak after a trough. */
static size_t first_peak(const uint8_t *x, size_t n, double p, double *ret_peak)
{
	double noise = SIGMAS / sqrt((double)n), least = 0, peak = 0;
	size_t at = 0;

	for (size_t lag = 1; lag <= n / 6; lag++) {
		double r = correlation(x, n, lag, p);

		if (least < TROUGH && least < -noise && r > peak) {
			peak = r;
			at = lag;
		}
		/* the first period, not a multiple of it that fits a little better */
		if (peak > PEAK && peak > noise && r < peak / 2)
			break;
		least = fmin(least, r);
	}
	*ret_peak = peak;
	return peak > PEAK && peak > noise ? at : 0;
}

/* A beat goes on; what a few phases happen to look like does not. */
static bool goes_on(const uint8_t *x, size_t n, double p, size_t lag, double peak)
{
	for (size_t times = 2; times <= 4; times++) {
		double best = -1;

		for (size_t at = lag * times - times; at <= lag * times + times; at++)
			best = fmax(best, correlation(x, n, at, p));
		if (best < LASTS * peak)
			return false;
	}
	return true;
}

size_t as_beat(const uint8_t *x, size_t n)
{
	double p = 0, peak;
	size_t lag;

	n = AS_MIN(n, (size_t)AS_BEAT_SAMPLES);
	if (n < AS_BEAT_MIN)
		return 0;
	for (size_t i = 0; i < n; i++)
		p += x[i];
	p /= (double)n;
	if (p < 0.02 || p > 0.98)
		return 0;
	lag = first_peak(x, n, p, &peak);
	return lag && goes_on(x, n, p, lag, peak) ? lag : 0;
}

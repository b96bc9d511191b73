/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Mean, median, spread of the batches, with intervals that know which process each is of. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/criterion/criterion_priv.h"
#include "stats/runs.h"

#define RESAMPLES   400
#define BATCHES_MAX 2000   /* that a resample takes: more are thinned, evenly */
#define MAD_SCALE   1.4826 /* to the standard deviation of a normal distribution */

enum { MEAN, MEDIAN, MAD, SD, FIGURES };

/* v is sorted. */
static double quantile(const double *v, size_t n, double q)
{
	double at = q * (double)(n - 1);
	size_t below = (size_t)at, above = below + 1 < n ? below + 1 : below;

	return v[below] + (at - (double)below) * (v[above] - v[below]);
}

/* The k-th smallest; v is put in another order. Hoare's selection. */
static double select_kth(double *v, size_t n, size_t k)
{
	size_t lo = 0, hi = n - 1;

	while (lo < hi) {
		double pivot = v[lo + (hi - lo) / 2];
		size_t i = lo, j = hi;

		for (;;) {
			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i >= j)
				break;

			double t = v[i];

			v[i++] = v[j];
			v[j--] = t;
			if (i > j)
				break;
		}
		if (k <= j && j < hi)
			hi = j;
		else if (k >= i && i > lo)
			lo = i;
		else
			return v[k]; /* between the halves: all equal to the pivot */
	}
	return v[k];
}

static double select_median(double *v, size_t n)
{
	double high = select_kth(v, n, n / 2), low = high;

	if (n % 2 == 0) {
		low = v[0];
		for (size_t i = 1; i < n / 2; i++)
			low = v[i] > low ? v[i] : low;
	}
	return low + (high - low) / 2;
}

/* v is used up. */
static void figures(double *v, size_t n, double out[FIGURES])
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i];
	out[MEAN] = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (v[i] - out[MEAN]) * (v[i] - out[MEAN]);
	out[SD] = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
	out[MEDIAN] = select_median(v, n);
	for (size_t i = 0; i < n; i++)
		v[i] = fabs(v[i] - out[MEDIAN]);
	out[MAD] = select_median(v, n) * MAD_SCALE;
}

/* xorshift64*: enough for drawing processes, and the same everywhere. */
static size_t draw(uint64_t *state, size_t n)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (size_t)(((__uint128_t)(*state * 0x2545f4914f6cdd1dull) * n) >> 64);
}

/* One resample of whole processes into room, which holds `most`; how many batches. */
static size_t resample(const double *v, const size_t *starts, size_t processes, uint64_t *state,
		       double *room, size_t most)
{
	size_t n = 0;

	for (size_t i = 0; i < processes; i++) {
		size_t p = draw(state, processes), size = starts[p + 1] - starts[p];

		if (n + size > most)
			size = most - n;
		memcpy(room + n, v + starts[p], size * sizeof *v);
		n += size;
	}
	return n;
}

static void interval(double *v, double value, double confidence,
		     struct as_criterion_estimate *ret)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < RESAMPLES; i++)
		sum += v[i] / RESAMPLES;
	for (size_t i = 0; i < RESAMPLES; i++)
		squares += (v[i] - sum) * (v[i] - sum);
	qsort(v, RESAMPLES, sizeof *v, as_by_value);
	ret->value = value;
	ret->se = sqrt(squares / (RESAMPLES - 1));
	ret->low = quantile(v, RESAMPLES, (1 - confidence) / 2);
	ret->high = quantile(v, RESAMPLES, (1 + confidence) / 2);
}

static void fences(const double *sorted, size_t n, struct as_criterion_estimates *ret)
{
	double q1 = quantile(sorted, n, 0.25), q3 = quantile(sorted, n, 0.75), iqr = q3 - q1;

	ret->fences[0] = q1 - 3 * iqr;
	ret->fences[1] = q1 - 1.5 * iqr;
	ret->fences[2] = q3 + 1.5 * iqr;
	ret->fences[3] = q3 + 3 * iqr;
	for (size_t i = 0; i < n; i++) {
		if (sorted[i] < ret->fences[1])
			ret->outliers[sorted[i] < ret->fences[0] ? 0 : 1]++;
		else if (sorted[i] > ret->fences[2])
			ret->outliers[sorted[i] > ret->fences[3] ? 3 : 2]++;
	}
}

/* Every step-th batch of each process, so that a resample stays small. Returns how many. */
static size_t thin(const double *v, size_t n, const uint32_t *sizes, size_t processes,
		   double *room, size_t *starts)
{
	size_t step = (n + BATCHES_MAX - 1) / BATCHES_MAX, at = 0, used = 0;

	for (size_t p = 0; p < processes; p++) {
		starts[p] = used;
		for (size_t i = 0; i < sizes[p] && at + i < n; i += step)
			room[used++] = v[at + i];
		at += sizes[p];
	}
	starts[processes] = used;
	return used;
}

void as_criterion_estimate(const double *v, size_t n, const uint32_t *sizes, size_t processes,
			   double confidence, struct as_criterion_estimates *ret)
{
	*ret = (struct as_criterion_estimates){.confidence = confidence, .n = n};
	ret->slope.value = NAN;
	if (n == 0 || processes == 0)
		return;

	double *room = as_xmalloc(3 * n * sizeof *room), *thinned = room + n,
	       *one = room + 2 * n;
	double *dist = as_xmalloc(FIGURES * RESAMPLES * sizeof *dist), all[FIGURES], f[FIGURES];
	size_t *starts = as_xmalloc((processes + 1) * sizeof *starts);
	uint64_t state = as_hash64(v, n * sizeof *v) | 1;

	memcpy(room, v, n * sizeof *v);
	qsort(room, n, sizeof *room, as_by_value);
	fences(room, n, ret);
	figures(room, n, all);

	size_t used = thin(v, n, sizes, processes, thinned, starts);

	for (size_t i = 0; i < RESAMPLES; i++) {
		size_t m = resample(thinned, starts, processes, &state, one, used);

		figures(one, m ? m : 1, f);
		for (int k = 0; k < FIGURES; k++)
			dist[(size_t)k * RESAMPLES + i] = f[k];
	}
	interval(dist + MEAN * RESAMPLES, all[MEAN], confidence, &ret->mean);
	interval(dist + MEDIAN * RESAMPLES, all[MEDIAN], confidence, &ret->median);
	interval(dist + MAD * RESAMPLES, all[MAD], confidence, &ret->mad);
	interval(dist + SD * RESAMPLES, all[SD], confidence, &ret->sd);
	free(room);
	free(dist);
	free(starts);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Figures of repeated runs: see runs.h. */
#include "stats/runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "stats/paired.h"

#define APART_MADS    5
#define MAD_TO_SD     1.4826
#define APART_LEAST   0.02
#define ASHMAN_D      4 /* halves of one bell are 2.7 apart */
#define GROUP_SHARE   5 /* a fifth */
#define GROUPS_ENOUGH 20
#define VALLEY        0.05

int as_by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

/* The values that are not NaN, in their order. */
static double *present(const double *v, size_t n, size_t *ret_n)
{
	double *x = as_xreallocarray(NULL, n + 1, sizeof *x);
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		if (!isnan(v[i]))
			x[k++] = v[i];
	}
	*ret_n = k;
	return x;
}

static double median_of_sorted(const double *x, size_t n)
{
	if (!n)
		return NAN;
	return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static void moments(const double *x, size_t n, double *ret_mean, double *ret_sd)
{
	double mean = 0, squares = 0;

	for (size_t i = 0; i < n; i++)
		mean += x[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (x[i] - mean) * (x[i] - mean);
	*ret_mean = mean;
	*ret_sd = n > 1 ? sqrt(squares / ((double)n - 1)) : 0;
}

/* Correlation of neighbours by ranks' signs would waste runs; spikes are drawn in to 3 sd first. */
static double neighbours(const double *x, size_t n, double median, double scale)
{
	double products = 0, squares = 0, before = 0;

	if (n < AS_RUNS_ENOUGH || !(scale > 0))
		return 0;
	for (size_t i = 0; i < n; i++) {
		double e = (x[i] - median) / scale;

		e = e > 3 ? 3 : e < -3 ? -3 : e;
		products += i ? e * before : 0;
		squares += e * e;
		before = e;
	}
	double r = squares > 0 ? products / squares : 0;

	/* below two standard errors of no correlation it is not seen */
	return r > 2 / sqrt((double)n) ? AS_MIN(r, 0.95) : 0;
}

static double deviation_scale(const double *sorted, size_t n, double median)
{
	AS_CLEANUP(as_free_autop) double *d = as_xreallocarray(NULL, n + 1, sizeof *d);

	for (size_t i = 0; i < n; i++)
		d[i] = fabs(sorted[i] - median);
	if (n)
		qsort(d, n, sizeof *d, as_by_value);
	return n ? MAD_TO_SD * median_of_sorted(d, n) : 0;
}

/* Sums of the first i values about x[n / 2] and of their squares, so that a cut costs nothing. */
static double *running_sums(const double *x, size_t n)
{
	double *sums = as_xreallocarray(NULL, 2 * (n + 1), sizeof *sums);

	sums[0] = sums[1] = 0;
	for (size_t i = 0; i < n; i++) {
		double e = x[i] - x[n / 2];

		sums[2 * i + 2] = sums[2 * i] + e;
		sums[2 * i + 3] = sums[2 * i + 1] + e * e;
	}
	return sums;
}

/* Of the values from … to: mean about the same centre, sum of squares about that mean. */
static double part(const double *sums, size_t from, size_t to, double *ret_mean)
{
	double n = (double)(to - from), sum = sums[2 * to] - sums[2 * from];

	*ret_mean = sum / n;
	return AS_MAX(sums[2 * to + 1] - sums[2 * from + 1] - sum * sum / n, 0);
}

/* Two groups of sorted values, if there are: cut where the least variance is left within. */
static bool two_groups(const double *x, size_t n, double mean[2])
{
	AS_CLEANUP(as_free_autop) double *sums = running_sums(x, n);
	size_t least = AS_MAX(n / GROUP_SHARE, (size_t)2), between = 0;
	double best = INFINITY, d = 0, quarter;

	for (size_t cut = least; cut + least <= n; cut++) {
		double m0, m1, q0 = part(sums, 0, cut, &m0), q1 = part(sums, cut, n, &m1);

		if (!(q0 + q1 < best))
			continue;
		best = q0 + q1;
		d = M_SQRT2 * (m1 - m0) /
		    sqrt(q0 / ((double)cut - 1) + q1 / ((double)(n - cut) - 1));
		mean[0] = x[n / 2] + m0;
		mean[1] = x[n / 2] + m1;
	}
	if (!(d > ASHMAN_D))
		return false;
	quarter = (mean[1] - mean[0]) / 4;
	for (size_t i = 0; i < n; i++)
		between += x[i] > mean[0] + quarter && x[i] < mean[1] - quarter;
	return (double)between <= VALLEY * (double)n;
}

static void find_groups(const double *sorted, size_t n, struct as_runs_summary *ret)
{
	AS_CLEANUP(as_free_autop) double *logs = NULL;
	double unused[2];

	if (n < GROUPS_ENOUGH || !two_groups(sorted, n, ret->groups))
		return;
	/* apart by nothing worth a word is no mixture, however tight */
	ret->mixture = ret->groups[1] - ret->groups[0] > APART_LEAST * fabs(ret->groups[0]);
	if (!ret->mixture || !(sorted[0] > 0))
		return;
	/* what has one long tail has one group in logarithms */
	logs = as_xreallocarray(NULL, n, sizeof *logs);
	for (size_t i = 0; i < n; i++)
		logs[i] = log(sorted[i]);
	ret->mixture = two_groups(logs, n, unused);
}

void as_runs_summarise(const double *v, size_t n, struct as_runs_summary *ret)
{
	as_runs_summarise_at(v, n, 0.05, ret);
}

void as_runs_summarise_at(const double *v, size_t n, double alpha, struct as_runs_summary *ret)
{
	size_t k;
	AS_CLEANUP(as_free_autop) double *x = present(v, n, &k);
	struct as_trimmed t;
	double wider;

	*ret = (struct as_runs_summary){.n = k,
					.mean = NAN,
					.low = -INFINITY,
					.high = INFINITY,
					.median = NAN,
					.min = NAN,
					.max = NAN};
	if (!k)
		return;
	as_trimmed_interval(x, k, k >= AS_RUNS_ENOUGH ? AS_PAIRED_TRIM : 0, alpha, &t);

	AS_CLEANUP(as_free_autop) double *sorted = as_xreallocarray(NULL, k, sizeof *sorted);
	double mean;

	memcpy(sorted, x, k * sizeof *sorted);
	qsort(sorted, k, sizeof *sorted, as_by_value);
	moments(x, k, &mean, &ret->sd);
	ret->median = median_of_sorted(sorted, k);
	ret->min = sorted[0];
	ret->max = sorted[k - 1];
	ret->drift = neighbours(x, k, ret->median, deviation_scale(sorted, k, ret->median));
	wider = sqrt((1 + ret->drift) / (1 - ret->drift));
	ret->mean = t.value;
	ret->low = t.value - (t.value - t.lo) * wider;
	ret->high = t.value + (t.hi - t.value) * wider;
	if (ret->low <= 0 && isfinite(ret->high) && ret->min > 0)
		ret->low = ret->mean * ret->mean / ret->high;
	find_groups(sorted, k, ret);
}

size_t as_runs_outliers(const double *v, size_t n, bool *ret)
{
	size_t k, found = 0;
	AS_CLEANUP(as_free_autop) double *x = present(v, n, &k);
	double median, scale;

	memset(ret, 0, n * sizeof *ret);
	if (k < 4)
		return 0;
	qsort(x, k, sizeof *x, as_by_value);
	median = median_of_sorted(x, k);
	scale = deviation_scale(x, k, median);
	for (size_t i = 0; i < n; i++) {
		double apart = fabs(v[i] - median);

		ret[i] = apart > APART_MADS * scale && apart > APART_LEAST * fabs(median);
		found += ret[i];
	}
	return found;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Many comparisons at once: see fdr.h. */
#include "stats/fdr.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "stats/interval.h"

struct ranked {
	double p;
	size_t at;
};

static int by_p(const void *pa, const void *pb)
{
	const struct ranked *a = pa, *b = pb;

	if (a->p != b->p)
		return a->p > b->p ? 1 : -1;
	return (a->at > b->at) - (a->at < b->at);
}

void as_fdr_adjust(const double *p, size_t n, double *ret_q)
{
	AS_CLEANUP(as_free_autop)
	struct ranked *order = as_xreallocarray(NULL, n + 1, sizeof *order);
	size_t m = 0;
	double least = 1;

	for (size_t i = 0; i < n; i++) {
		if (!isnan(p[i]))
			order[m++] = (struct ranked){p[i], i};
		else
			ret_q[i] = NAN;
	}
	qsort(order, m, sizeof *order, by_p);
	for (size_t k = m; k-- > 0;) {
		least = fmin(least, order[k].p * (double)m / (double)(k + 1));
		ret_q[order[k].at] = least;
	}
}

double as_sign_test(uint64_t up, uint64_t down)
{
	uint64_t n = up + down, k = AS_MIN(up, down);

	if (2 * k == n)
		return 1;
	/* P(at most k of n) = I_1/2(n - k, k + 1) */
	return fmin(1, 2 * as_beta_cdf(0.5, (double)(n - k), (double)k + 1));
}

double as_student_p(double t, double df)
{
	if (isnan(t) || !(df > 0))
		return NAN;
	if (isinf(t))
		return 0;
	return as_beta_cdf(df / (df + t * t), df / 2, 0.5);
}

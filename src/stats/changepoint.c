/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Steps in a series: see changepoint.h. */
#include "stats/changepoint.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "stats/interval.h"
#include "stats/paired.h"
#include "stats/runs.h"

#define CUTS_MAX   32
#define SEEN       1.5  /* standard errors above 0: a correlation */
#define STEP_LEVEL 0.01 /* of the interval that a step's size must exclude 0 with */

struct series {
	const double *x; /* finite values */
	size_t n;
	uint64_t random; /* state, never 0 */
};

struct cut {
	size_t at;
	double q; /* scaled energy distance of the two sides */
	double p;
};

static uint64_t next_random(struct series *s)
{
	uint64_t x = s->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return s->random = x;
}

/* Best cut of x[0..n): q(t) = t (n - t) / n * (2 between - within left - within right), means of
 * |x_i - x_j|. Moving one value from right to left changes the three sums by its distances. */
static struct cut best_cut(const double *x, size_t n)
{
	struct cut best = {0, -INFINITY, 1};
	double between = 0, left = 0, right = 0;

	for (size_t i = 0; i < n; i++) {
		for (size_t k = i + 1; k < n; k++)
			right += fabs(x[i] - x[k]);
	}
	for (size_t t = 1; t + AS_CHANGE_LEAST <= n; t++) {
		double to_left = 0, to_right = 0, a = (double)t, b = (double)(n - t), q;

		for (size_t k = 0; k < t - 1; k++)
			to_left += fabs(x[t - 1] - x[k]);
		for (size_t k = t; k < n; k++)
			to_right += fabs(x[t - 1] - x[k]);
		left += to_left;
		right -= to_right;
		between += to_right - to_left;
		if (t < AS_CHANGE_LEAST)
			continue;
		q = a * b / (a + b) *
		    (2 * between / (a * b) - 2 * left / (a * (a - 1)) -
		     2 * right / (b * (b - 1)));
		if (q > best.q)
			best = (struct cut){t, q, 1};
	}
	return best;
}

static double spread(const struct as_trimmed *t)
{
	return isfinite(t->se) ? t->se * sqrt((double)t->n) : NAN;
}

/* Middle of the absolute values of v[0..n), n > 0. */
static double middle(const double *v, size_t n)
{
	double x[AS_CHANGE_WINDOW];

	for (size_t i = 0; i < n; i++)
		x[i] = fabs(v[i]);
	qsort(x, n, sizeof *x, as_by_value);
	return x[n / 2];
}

/* Correlation r of neighbours, 0 where none is seen. From the differences of neighbours, of which a step
 * or a spike touches one or two only, and those above 4.5 middles are left out: under AR(1) their own
 * correlation is (r - 1) / 2, known to sqrt(0.5 / n) where r is 0. */
static double likeness(const double *x, size_t n)
{
	double d[AS_CHANGE_WINDOW], limit, products = 0, squares = 0, r, pairs = 0, kept = 0;

	if (n < 2 * AS_CHANGE_LEAST)
		return 0;
	for (size_t i = 0; i + 1 < n; i++)
		d[i] = x[i + 1] - x[i];
	limit = 4.5 * middle(d, n - 1);
	for (size_t i = 0; i + 1 < n; i++) {
		if (fabs(d[i]) > limit)
			continue;
		squares += d[i] * d[i];
		kept++;
		if (i && fabs(d[i - 1]) <= limit) {
			products += d[i] * d[i - 1];
			pairs++;
		}
	}
	r = squares > 0 && pairs > 0 ? 1 + 2 * (products / pairs) / (squares / kept) : 0;
	return r > SEEN * sqrt(2 / (double)n) ? fmin(r, 0.9) : 0;
}

/* Blocks of `block` values in random order, each as it is: their likeness stays. */
static void shuffle(struct series *s, const double *x, size_t n, size_t block, double *ret)
{
	size_t blocks = (n + block - 1) / block, order[AS_CHANGE_WINDOW], at = 0;

	for (size_t i = 0; i < blocks; i++)
		order[i] = i;
	for (size_t i = blocks - 1; i > 0; i--) {
		size_t k = (size_t)(next_random(s) % (i + 1)), v = order[i];

		order[i] = order[k];
		order[k] = v;
	}
	for (size_t i = 0; i < blocks; i++) {
		for (size_t k = order[i] * block; k < n && k < (order[i] + 1) * block; k++)
			ret[at++] = x[k];
	}
}

/* Share of shuffled parts whose best cut is as good; given up once it cannot be small any more. */
static double permutation_p(struct series *s, const double *x, size_t n, const struct cut *c)
{
	AS_CLEANUP(as_free_autop) double *y = as_xreallocarray(NULL, n, sizeof *y);
	size_t as_good = 0, done = 0;
	size_t enough = (size_t)(AS_CHANGE_LEVEL * (AS_CHANGE_PERMUTATIONS + 1));
	double r = likeness(x, n);
	/* of so many values together about one is new (AR(1)) */
	size_t block = AS_MIN((size_t)lround((1 + r) / (1 - r)), n / 10);

	for (; done < AS_CHANGE_PERMUTATIONS && as_good < enough; done++) {
		shuffle(s, x, n, AS_MAX(block, (size_t)1), y);
		as_good += best_cut(y, n).q >= c->q;
	}
	return ((double)as_good + 1) / ((double)done + 1);
}

static int by_place(const void *pa, const void *pb)
{
	const struct cut *a = pa, *b = pb;

	return (a->at > b->at) - (a->at < b->at);
}

/* Cuts of x[from..to), as offsets into x; depth first, as the parts are independent of each other. */
static void cut_part(struct series *s, size_t from, size_t to, struct cut *cuts, size_t *ret_n)
{
	struct cut c;

	if (to - from < 2 * AS_CHANGE_LEAST || *ret_n == CUTS_MAX)
		return;
	c = best_cut(s->x + from, to - from);
	if (!c.at || !(c.q > 0))
		return;
	c.p = permutation_p(s, s->x + from, to - from, &c);
	if (c.p > AS_CHANGE_LEVEL)
		return;
	c.at += from;
	cuts[(*ret_n)++] = c;
	cut_part(s, from, c.at, cuts, ret_n);
	cut_part(s, c.at, to, cuts, ret_n);
}

/* ---- what a cut is ---- */

/* Welch's degrees of freedom of two trimmed means. */
static double degrees(const struct as_trimmed *a, const struct as_trimmed *b)
{
	double va = a->se * a->se, vb = b->se * b->se;
	double na = floor(0.6 * (double)a->n), nb = floor(0.6 * (double)b->n);
	double below = va * va / AS_MAX(na, 1) + vb * vb / AS_MAX(nb, 1);

	return below > 0 ? AS_MAX((va + vb) * (va + vb) / below, 1) : 1e6;
}

static void describe(const double *x, size_t from, size_t at, size_t to, double magnitude,
		     struct as_change *ret)
{
	struct as_trimmed a, b;
	double half, r = likeness(x + from, to - from);

	as_trimmed_interval(x + from, at - from, AS_PAIRED_TRIM, 0.05, &a);
	as_trimmed_interval(x + at, to - at, AS_PAIRED_TRIM, 0.05, &b);
	half = as_student_quantile(1 - STEP_LEVEL / 2, degrees(&a, &b)) * hypot(a.se, b.se) *
	       sqrt((1 + r) / (1 - r));
	ret->before = a.value;
	ret->after = b.value;
	ret->sd_before = spread(&a);
	ret->sd_after = spread(&b);
	ret->step = b.value - a.value;
	ret->low = ret->step - half;
	ret->high = ret->step + half;
	ret->is_step = fabs(ret->step) >= magnitude && (ret->low > 0 || ret->high < 0);
}

size_t as_changes_find(const double *v, size_t n, double magnitude, struct as_change *ret,
		       size_t max)
{
	size_t first = n > AS_CHANGE_WINDOW ? n - AS_CHANGE_WINDOW : 0, k = 0, cuts_n = 0;
	AS_CLEANUP(as_free_autop) double *x = as_xreallocarray(NULL, n + 1, sizeof *x);
	AS_CLEANUP(as_free_autop) size_t *place = as_xreallocarray(NULL, n + 1, sizeof *place);
	struct cut cuts[CUTS_MAX];

	for (size_t i = first; i < n; i++) {
		if (!isfinite(v[i]))
			continue;
		place[k] = i;
		x[k++] = v[i];
	}

	struct series s = {.x = x, .n = k, .random = 0x9e3779b97f4a7c15};

	cut_part(&s, 0, k, cuts, &cuts_n);
	cuts_n = AS_MIN(cuts_n, max); /* the first found are the weightiest of their parts */
	qsort(cuts, cuts_n, sizeof *cuts, by_place);
	for (size_t i = 0; i < cuts_n; i++) {
		ret[i] = (struct as_change){.at = place[cuts[i].at], .p = cuts[i].p};
		describe(x, i ? cuts[i - 1].at : 0, cuts[i].at,
			 i + 1 < cuts_n ? cuts[i + 1].at : k, magnitude, &ret[i]);
	}
	return cuts_n;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Verdicts from pairs of runs: see paired.h. */
#include "stats/paired.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "stats/interval.h"
#include "stats/runs.h"

static double *sorted(const double *v, size_t n)
{
	double *x = as_xreallocarray(NULL, n + 1, sizeof *x);

	if (n) {
		memcpy(x, v, n * sizeof *x);
		qsort(x, n, sizeof *x, as_by_value);
	}
	return x;
}

static double mean(const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return n ? sum / (double)n : NAN;
}

/* ---- intervals ---- */

/* Sum of squares about their mean when the g least are raised, and the g greatest lowered, to the
 * next one that is kept. */
static double winsorized_squares(const double *x, size_t n, size_t g)
{
	double low = x[g], high = x[n - 1 - g], m, sum = 0;

	m = ((double)g * (low + high) + mean(x + g, n - 2 * g) * (double)(n - 2 * g)) /
	    (double)n;
	for (size_t i = 0; i < n; i++) {
		double w = i < g ? low : i >= n - g ? high : x[i];

		sum += (w - m) * (w - m);
	}
	return sum;
}

void as_trimmed_interval(const double *v, size_t n, double trim, double alpha,
			 struct as_trimmed *ret)
{
	AS_CLEANUP(as_free_autop) double *x = sorted(v, n);
	size_t g = (size_t)(trim * (double)n), kept = n - 2 * g;

	*ret = (struct as_trimmed){.n = n,
				   .value = mean(x + g, kept),
				   .lo = -INFINITY,
				   .hi = INFINITY,
				   .se = INFINITY};
	if (n < 3 || kept < 2)
		return;

	double s = sqrt(winsorized_squares(x, n, g) / (double)(n - 1));
	double q = as_student_quantile(1 - alpha / 2, (double)kept - 1);

	ret->se = s / ((1 - 2 * (double)g / (double)n) * sqrt((double)n));
	ret->lo = ret->value - q * ret->se;
	ret->hi = ret->value + q * ret->se;
}

/* Greatest k for which fewer than k of n fair coins show heads with probability <= alpha / 2. */
static size_t sign_rank(size_t n, double alpha)
{
	double term = exp(-(double)n * M_LN2),
	       sum = 0; /* 0 for n > 1074: k by the normal then */
	size_t k = 0;

	if (n > 1000) {
		double z = as_normal_quantile(1 - alpha / 2);
		double at = (double)n / 2 - z * sqrt((double)n) / 2;

		return at > 1 ? (size_t)at : 0;
	}
	for (size_t j = 0; j < n; j++) {
		sum += term;
		if (sum > alpha / 2)
			break;
		k = j + 1;
		term *= (double)(n - j) / (double)(j + 1);
	}
	return k;
}

void as_median_interval(const double *v, size_t n, double alpha, struct as_trimmed *ret)
{
	AS_CLEANUP(as_free_autop) double *x = sorted(v, n);
	size_t k = n ? sign_rank(n, alpha) : 0;

	*ret = (struct as_trimmed){
		.n = n, .value = NAN, .lo = -INFINITY, .hi = INFINITY, .se = INFINITY};
	if (n)
		ret->value = n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
	if (k) {
		ret->lo = x[k - 1];
		ret->hi = x[n - k];
	}
}

/* ---- spending ---- */

static double upper_tail(double z)
{
	return 0.5 * erfc(z * M_SQRT1_2);
}

static double normal_density(double x)
{
	return exp(-x * x / 2) / sqrt(2 * M_PI);
}

/* Simpson's weights on the grid, without the step. */
static double simpson(size_t i)
{
	if (i == 0 || i == AS_PAIRED_GRID - 1)
		return 1.0 / 3;
	return i % 2 ? 4.0 / 3 : 2.0 / 3;
}

static double grid_point(double bound, size_t i)
{
	return bound * (2.0 * (double)i / (AS_PAIRED_GRID - 1) - 1);
}

/* Probability that a path which went on so far leaves (-c, c) after `step` more. */
static double leaving(const struct as_sequence *s, double c, double step)
{
	double sum = 0, sd = sqrt(step), h = 2 * s->bound / (AS_PAIRED_GRID - 1);

	if (!s->looks)
		return 2 * upper_tail(c / sd);
	for (size_t i = 0; i < AS_PAIRED_GRID; i++) {
		double x = grid_point(s->bound, i);

		sum += simpson(i) * s->density[i] *
		       (upper_tail((c - x) / sd) + upper_tail((c + x) / sd));
	}
	return sum * h;
}

static void advance(struct as_sequence *s, double c, double step)
{
	double next[AS_PAIRED_GRID], sd = sqrt(step), h = 2 * s->bound / (AS_PAIRED_GRID - 1);

	for (size_t i = 0; i < AS_PAIRED_GRID; i++) {
		double x = grid_point(c, i), sum = 0;

		for (size_t k = 0; s->looks && k < AS_PAIRED_GRID; k++)
			sum += simpson(k) * s->density[k] *
			       normal_density((x - grid_point(s->bound, k)) / sd);
		next[i] = s->looks ? sum * h / sd : normal_density(x / sd) / sd;
	}
	memcpy(s->density, next, sizeof next);
	s->bound = c;
}

double as_sequence_spend(struct as_sequence *s, double t)
{
	double to = t < 1 ? t : 1, step = to - s->t,
	       allowed = s->rule.alpha * to * to - s->spent;
	double lo = 0, hi = 40 * sqrt(to);

	/* Nothing left to spend, or a step too small for the grid: this look can only say less. */
	if (!(step > 1e-4) || !(allowed > 1e-12))
		return 0;
	for (int i = 0; i < 60; i++) {
		double c = (lo + hi) / 2;

		if (leaving(s, c, step) > allowed)
			lo = c;
		else
			hi = c;
	}
	s->spent += leaving(s, hi, step);
	advance(s, hi, step);
	s->t = to;
	s->looks++;
	return 2 * upper_tail(hi / sqrt(to));
}

/* ---- verdicts ---- */

const char *as_verdict_name(enum as_verdict v)
{
	static const char *const names[AS_VERDICT_COUNT_] = {"undecided", "equal", "slower",
							     "faster"};

	return (unsigned)v < AS_VERDICT_COUNT_ ? names[v] : "undecided";
}

void as_sequence_init(struct as_sequence *s, const struct as_sequence_rule *rule)
{
	*s = (struct as_sequence){.rule = *rule, .next = AS_PAIRED_FIRST};
	if (!(s->rule.alpha > 0))
		s->rule.alpha = 1 - AS_CONFIDENCE;
	if (!(s->rule.delta > 0))
		s->rule.delta = 0.01;
	if (!(s->rule.floor > 0))
		s->rule.floor = s->rule.delta / 2;
}

bool as_sequence_due(const struct as_sequence *s, size_t n)
{
	return n >= s->next;
}

static enum as_verdict look_verdict(const struct as_sequence_rule *r,
				    const struct as_trimmed *i)
{
	if (i->lo > -r->delta && i->hi < r->delta)
		return AS_VERDICT_EQUAL;
	if (i->lo > r->floor)
		return AS_VERDICT_SLOWER;
	if (i->hi < -r->floor)
		return AS_VERDICT_FASTER;
	return AS_VERDICT_UNDECIDED;
}

/* The half-width shrinks as 1 / sqrt(n): pairs until it fits between the estimate and the nearer of
 * the two limits that would decide. */
static size_t pairs_needed(const struct as_sequence_rule *r, const struct as_trimmed *i)
{
	double size = fabs(i->value), half = (i->hi - i->lo) / 2;
	double room = fmax(r->delta - size, size - r->floor), more;

	if (!(room > 0) || !isfinite(half))
		return 0;
	more = (double)i->n * (half / room) * (half / room);
	return more > (double)i->n && more < 1e9 ? (size_t)ceil(more) : i->n + 1;
}

struct as_look as_sequence_look(struct as_sequence *s, const double *d, size_t n, double t)
{
	struct as_look look = {.verdict = AS_VERDICT_UNDECIDED};
	struct as_trimmed sign;

	while (s->next <= n)
		s->next = (size_t)ceil((double)s->next * AS_PAIRED_GROWTH);
	as_trimmed_interval(d, n, AS_PAIRED_TRIM, s->rule.alpha, &look.plain);
	as_median_interval(d, n, s->rule.alpha, &sign);
	look.mixture = sign.lo > look.plain.hi || sign.hi < look.plain.lo;
	look.level = as_sequence_spend(s, t);
	if (look.level > 0) {
		as_trimmed_interval(d, n, AS_PAIRED_TRIM, look.level, &look.interval);
		look.verdict = look_verdict(&s->rule, &look.interval);
	} else {
		look.interval = look.plain;
	}
	if (look.verdict == AS_VERDICT_UNDECIDED)
		look.pairs_needed = pairs_needed(&s->rule, &look.interval);
	return look;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Growth of time with size: see complexity.h. */
#include "stats/complexity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "stats/interval.h"

#define TERMS_MAX  3
#define TOLERANCE  1e-12 /* of a loss: equal but for rounding */
#define EVIDENCE   6.0   /* twice the log likelihood ratio within which models are left */
#define FLAT       0.1   /* exponents below are no growth */
#define NO_MODEL   0.33  /* root mean squared relative error */
#define KNEE_SIZES 7
#define KNEE_GAIN  0.4 /* of the least single loss at the most */
#define EXP_FROM   -1.0
#define EXP_TO     5.0
#define EXP_STEPS  601

const char *const as_growth_names[AS_G_COUNT_] = {"1", "log n", "n", "n log n", "n²", "n³"};

struct points {
	double n[AS_GROWTH_MAX], t[AS_GROWTH_MAX]; /* ascending in n; t over the largest t */
	size_t k;
	double scale; /* that largest t */
};

/* Columns of a linear model, one value per point, and the weights' root as 1 / t. */
struct design {
	size_t terms;
	double x[TERMS_MAX][AS_GROWTH_MAX];
};

double as_growth_value(enum as_growth g, double n)
{
	switch (g) {
	case AS_G_LOG:
		return log(n);
	case AS_G_N:
		return n;
	case AS_G_N_LOG:
		return n * log(n);
	case AS_G_N2:
		return n * n;
	case AS_G_N3:
		return n * n * n;
	default:
		return 1;
	}
}

/* ---- points ---- */

struct pair {
	double n, t;
};

static int by_size(const void *pa, const void *pb)
{
	const struct pair *a = pa, *b = pb;

	if (a->n != b->n)
		return a->n > b->n ? 1 : -1;
	return (a->t > b->t) - (a->t < b->t);
}

/* One point per size: the median of its times. */
static void take(const double *n, const double *t, size_t count, struct points *ret)
{
	AS_CLEANUP(as_free_autop)
	struct pair *all = as_xreallocarray(NULL, count + 1, sizeof *all);
	size_t m = 0, sizes = 0, seen = 0;

	*ret = (struct points){0};
	for (size_t i = 0; i < count; i++) {
		if (n[i] > 0 && t[i] > 0 && isfinite(n[i]) && isfinite(t[i]))
			all[m++] = (struct pair){n[i], t[i]};
	}
	qsort(all, m, sizeof *all, by_size);
	for (size_t i = 0; i < m; i++)
		sizes += i == 0 || all[i].n != all[i - 1].n;
	for (size_t i = 0, end; i < m; i = end, seen++) {
		for (end = i; end < m && all[end].n == all[i].n; end++)
			;
		/* of too many sizes the first, the last and some between */
		if (sizes > AS_GROWTH_MAX && ret->k != seen * (AS_GROWTH_MAX - 1) / (sizes - 1))
			continue;
		ret->n[ret->k] = all[i].n;
		ret->t[ret->k++] =
			(all[i + (end - i - 1) / 2].t + all[i + (end - i) / 2].t) / 2;
	}
	for (size_t i = 0; i < ret->k; i++)
		ret->scale = fmax(ret->scale, ret->t[i]);
	for (size_t i = 0; i < ret->k; i++)
		ret->t[i] /= ret->scale;
}

/* ---- weighted least squares of few terms ---- */

static bool solve(double a[TERMS_MAX][TERMS_MAX + 1], size_t n, double *ret)
{
	for (size_t c = 0; c < n; c++) {
		size_t pivot = c;

		for (size_t r = c + 1; r < n; r++) {
			if (fabs(a[r][c]) > fabs(a[pivot][c]))
				pivot = r;
		}
		if (!(fabs(a[pivot][c]) > 0))
			return false;
		for (size_t k = 0; k <= n; k++) {
			double v = a[c][k];

			a[c][k] = a[pivot][k];
			a[pivot][k] = v;
		}
		for (size_t r = 0; r < n; r++) {
			double f = r == c ? 0 : a[r][c] / a[c][c];

			for (size_t k = c; f != 0 && k <= n; k++)
				a[r][k] -= f * a[c][k];
		}
	}
	for (size_t c = 0; c < n; c++)
		ret[c] = a[c][n] / a[c][c];
	return true;
}

/* Normal equations of weighted rows. Columns are brought to the size 1 first: n^3 beside 1 would
 * otherwise leave no digits. */
struct normal {
	double a[TERMS_MAX][TERMS_MAX + 1], size[TERMS_MAX];
	size_t terms;
};

static void row_of(const struct points *p, const struct design *d, const struct normal *m,
		   size_t i, double *ret)
{
	for (size_t c = 0; c < d->terms; c++)
		ret[c] = d->x[c][i] / p->t[i] / m->size[c];
}

static bool set_up(const struct points *p, const struct design *d, struct normal *ret)
{
	*ret = (struct normal){.terms = d->terms};
	for (size_t c = 0; c < d->terms; c++) {
		for (size_t i = 0; i < p->k; i++)
			ret->size[c] = fmax(ret->size[c], fabs(d->x[c][i] / p->t[i]));
		if (!(ret->size[c] > 0) || !isfinite(ret->size[c]))
			return false;
	}
	for (size_t i = 0; i < p->k; i++) {
		double row[TERMS_MAX];

		row_of(p, d, ret, i, row);
		for (size_t c = 0; c < d->terms; c++) {
			for (size_t k = 0; k < d->terms; k++)
				ret->a[c][k] += row[c] * row[k];
			ret->a[c][d->terms] += row[c];
		}
	}
	return true;
}

/* ret: the coefficients of scaled columns. */
static bool solved(const struct normal *m, double *ret)
{
	struct normal copy = *m;

	return solve(copy.a, m->terms, ret);
}

static bool fit(const struct points *p, const struct design *d, double *ret)
{
	struct normal m;

	if (!set_up(p, d, &m) || !solved(&m, ret))
		return false;
	for (size_t c = 0; c < d->terms; c++)
		ret[c] /= m.size[c];
	return true;
}

static double predict(const struct design *d, const double *c, size_t i)
{
	double sum = 0;

	for (size_t k = 0; k < d->terms; k++)
		sum += c[k] * d->x[k][i];
	return sum;
}

/* Time does not shrink with size in these models: terms after the first may not be negative. */
static bool grows(const struct design *d, const double *c)
{
	for (size_t k = 1; k < d->terms; k++) {
		if (c[k] < 0)
			return false;
	}
	return true;
}

/* Row i of the hat matrix at i: how much the fit follows that point. */
static double leverage(const struct normal *m, const double *row)
{
	struct normal copy = *m;
	double x[TERMS_MAX], sum = 0;

	for (size_t c = 0; c < m->terms; c++)
		copy.a[c][m->terms] = row[c];
	if (!solve(copy.a, m->terms, x))
		return 1;
	for (size_t c = 0; c < m->terms; c++)
		sum += row[c] * x[c];
	return sum;
}

/* Mean squared relative error of predicting each point from the others; *ret_se its standard error.
 * Infinite where the model does not apply. Of a linear fit the error of the point left out is its
 * residual over 1 - leverage. */
static double loss(const struct points *p, const struct design *d, double *ret_se)
{
	double sum = 0, squares = 0, c[TERMS_MAX], k = (double)p->k;
	struct normal m;

	*ret_se = 0;
	if (!set_up(p, d, &m) || !solved(&m, c) || !grows(d, c))
		return INFINITY;
	for (size_t i = 0; i < p->k; i++) {
		double row[TERMS_MAX], e = -1, rest;

		row_of(p, d, &m, i, row);
		for (size_t t = 0; t < d->terms; t++)
			e += c[t] * row[t];
		rest = 1 - leverage(&m, row);
		if (!(rest > 1e-9))
			return INFINITY;
		e /= rest;
		sum += e * e;
		squares += e * e * e * e;
	}
	*ret_se = sqrt(fmax(squares / k - sum / k * (sum / k), 0) / (k - 1));
	return sum / k;
}

static void add_growth(const struct points *p, struct design *d, enum as_growth g, double from)
{
	double base = from > 0 ? as_growth_value(g, from) : 0;

	for (size_t i = 0; i < p->k; i++)
		d->x[d->terms][i] = from > 0 ? fmax(0, as_growth_value(g, p->n[i]) - base)
					     : as_growth_value(g, p->n[i]);
	d->terms++;
}

static void single(const struct points *p, enum as_growth g, struct design *ret)
{
	*ret = (struct design){0};
	add_growth(p, ret, AS_G_CONST, 0);
	if (g != AS_G_CONST)
		add_growth(p, ret, g, 0);
}

/* ---- exponent ---- */

static double residual(const struct points *p, double e)
{
	struct design d = {.terms = 2};
	double c[TERMS_MAX], sum = 0, top = log(p->n[p->k - 1]);

	for (size_t i = 0; i < p->k; i++) {
		d.x[0][i] = 1;
		/* near e = 0 it is the logarithm: (n^e - 1) / e has that as its limit */
		d.x[1][i] = fabs(e) < 1e-9 ? log(p->n[i]) : expm1(e * (log(p->n[i]) - top)) / e;
	}
	if (!fit(p, &d, c))
		return INFINITY;
	for (size_t i = 0; i < p->k; i++) {
		double r = predict(&d, c, i) / p->t[i] - 1;

		sum += r * r;
	}
	return sum;
}

/* Profile of t = a + c n^e: where the residual is within F(1, k - 3) of the least. */
static void find_exponent(const struct points *p, struct as_growth_fit *ret)
{
	double rss[EXP_STEPS], least = INFINITY, allowed, q, df = (double)p->k - 3;
	size_t at = 0, low, high;

	for (size_t i = 0; i < EXP_STEPS; i++) {
		rss[i] = residual(p,
				  EXP_FROM + (EXP_TO - EXP_FROM) * (double)i / (EXP_STEPS - 1));
		if (rss[i] < least) {
			least = rss[i];
			at = i;
		}
	}
	if (!isfinite(least) || at == 0 || at == EXP_STEPS - 1)
		return;
	q = as_student_quantile(0.975, df);
	allowed = least * (1 + q * q / df) + TOLERANCE;
	for (low = at; low > 0 && rss[low - 1] <= allowed; low--)
		;
	for (high = at; high + 1 < EXP_STEPS && rss[high + 1] <= allowed; high++)
		;
	ret->exponent = EXP_FROM + (EXP_TO - EXP_FROM) * (double)at / (EXP_STEPS - 1);
	if (low > 0)
		ret->low = EXP_FROM + (EXP_TO - EXP_FROM) * (double)low / (EXP_STEPS - 1);
	if (high + 1 < EXP_STEPS)
		ret->high = EXP_FROM + (EXP_TO - EXP_FROM) * (double)high / (EXP_STEPS - 1);
}

/* Slope of ln t over ln n: of a constant the other exponent is not defined. */
static void find_slope(const struct points *p, struct as_growth_fit *ret)
{
	double k = (double)p->k, mx = 0, my = 0, xx = 0, xy = 0, rss = 0, half;

	for (size_t i = 0; i < p->k; i++) {
		mx += log(p->n[i]) / k;
		my += log(p->t[i]) / k;
	}
	for (size_t i = 0; i < p->k; i++) {
		xx += (log(p->n[i]) - mx) * (log(p->n[i]) - mx);
		xy += (log(p->n[i]) - mx) * (log(p->t[i]) - my);
	}
	ret->exponent = xy / xx;
	for (size_t i = 0; i < p->k; i++) {
		double r = log(p->t[i]) - my - ret->exponent * (log(p->n[i]) - mx);

		rss += r * r;
	}
	half = as_student_quantile(0.975, k - 2) * sqrt(rss / (k - 2) / xx);
	ret->low = ret->exponent - half;
	ret->high = ret->exponent + half;
}

/* ---- choice ---- */

/* Root of the mean squared relative residual: predicting the largest of sizes far apart from the rest
 * can be far off although the model is right. */
static double misfit(const struct points *p, enum as_growth g)
{
	struct design d;
	double c[TERMS_MAX], sum = 0;

	single(p, g, &d);
	if (!fit(p, &d, c))
		return INFINITY;
	for (size_t i = 0; i < p->k; i++) {
		double e = predict(&d, c, i) / p->t[i] - 1;

		sum += e * e;
	}
	return sqrt(sum / (double)(p->k - d.terms));
}

static void choose(const struct points *p, struct as_growth_fit *ret)
{
	double losses[AS_G_COUNT_], se[AS_G_COUNT_], bound;
	size_t left = 0;

	for (int g = 0; g < AS_G_COUNT_; g++) {
		struct design d;

		single(p, (enum as_growth)g, &d);
		losses[g] = loss(p, &d, &se[g]);
		ret->loss[g] = sqrt(losses[g]);
		if (losses[g] < losses[ret->best])
			ret->best = (enum as_growth)g;
	}
	bound = losses[ret->best] + TOLERANCE +
		fmax(se[ret->best], losses[ret->best] * expm1(EVIDENCE / (double)p->k));
	for (int g = 0; g < AS_G_COUNT_; g++) {
		ret->left[g] = losses[g] <= bound;
		left += ret->left[g];
	}
	if (!isfinite(losses[ret->best]) || misfit(p, ret->best) > NO_MODEL) {
		ret->state = AS_GROWTH_NONE;
		find_exponent(p, ret);
		return;
	}
	if (ret->left[AS_G_CONST]) {
		find_slope(p, ret);
		if (fabs(ret->low) < FLAT && fabs(ret->high) < FLAT) {
			memset(ret->left, 0, sizeof ret->left);
			ret->left[AS_G_CONST] = true;
			ret->best = AS_G_CONST;
			left = 1;
		}
	} else {
		find_exponent(p, ret);
	}
	ret->state = left > 1 ? AS_GROWTH_SEVERAL : AS_GROWTH_FOUND;
}

static void coefficients(const struct points *p, struct as_growth_fit *ret)
{
	struct design d;
	double c[TERMS_MAX] = {NAN, NAN};

	single(p, ret->best, &d);
	if (!fit(p, &d, c))
		return;
	ret->intercept = ret->best == AS_G_CONST ? 0 : c[0] * p->scale;
	ret->coefficient = c[ret->best != AS_G_CONST] * p->scale;
}

/* ---- knees ---- */

struct knee {
	double loss, at;
	enum as_growth before, after;
};

/* A steeper term beside: where both cost the same. */
static void try_steeper(const struct points *p, enum as_growth a, enum as_growth b,
			struct knee *best)
{
	struct design d;
	double se, l, c[TERMS_MAX], low = p->n[0], high = p->n[p->k - 1];

	single(p, a, &d);
	add_growth(p, &d, b, 0);
	l = loss(p, &d, &se);
	if (!(l < best->loss) || !fit(p, &d, c))
		return;
	if (c[1] * as_growth_value(a, high) > c[2] * as_growth_value(b, high) ||
	    c[1] * as_growth_value(a, low) < c[2] * as_growth_value(b, low))
		return; /* one of them rules everywhere */
	for (int i = 0; i < 60; i++) {
		double m = sqrt(low * high);

		if (c[1] * as_growth_value(a, m) > c[2] * as_growth_value(b, m))
			low = m;
		else
			high = m;
	}
	*best = (struct knee){l, low, a, b};
}

/* The same term, dearer from a size on. */
static void try_dearer(const struct points *p, enum as_growth g, size_t at, struct knee *best)
{
	struct design d;
	double se, l;

	single(p, g, &d);
	add_growth(p, &d, g, p->n[at]);
	l = loss(p, &d, &se);
	if (l < best->loss)
		*best = (struct knee){l, p->n[at], g, g};
}

static void find_knee(const struct points *p, struct as_growth_fit *ret)
{
	double least = ret->loss[ret->best] * ret->loss[ret->best];
	struct knee best = {.loss = INFINITY};

	if (p->k < KNEE_SIZES || !(ret->loss[ret->best] > 1e-3))
		return;
	for (int a = AS_G_LOG; a < AS_G_COUNT_; a++) {
		for (int b = a + 1; b < AS_G_COUNT_; b++) {
			/* the logarithm is no knee, it is a slope seen coarsely */
			if (!(a == AS_G_N && b == AS_G_N_LOG))
				try_steeper(p, (enum as_growth)a, (enum as_growth)b, &best);
		}
	}
	for (size_t i = 2; i + 3 <= p->k; i++) {
		try_dearer(p, AS_G_N, i, &best);
		try_dearer(p, AS_G_N_LOG, i, &best);
	}
	if (!(sqrt(best.loss) < KNEE_GAIN * sqrt(least)))
		return;
	ret->knee = best.at;
	ret->after = best.after;
	ret->best = best.before;
	ret->state = AS_GROWTH_FOUND;
	memset(ret->left, 0, sizeof ret->left);
	ret->left[best.before] = true;
}

void as_growth_fit(const double *n, const double *t, size_t count, struct as_growth_fit *ret)
{
	struct points p;

	*ret = (struct as_growth_fit){.coefficient = NAN,
				      .intercept = NAN,
				      .exponent = NAN,
				      .low = NAN,
				      .high = NAN,
				      .knee = NAN};
	take(n, t, count, &p);
	ret->sizes = p.k;
	if (p.k < AS_GROWTH_SIZES) {
		ret->state = AS_GROWTH_FEW_SIZES;
		return;
	}
	if (p.n[p.k - 1] < AS_GROWTH_RANGE * p.n[0]) {
		ret->state = AS_GROWTH_NARROW;
		return;
	}
	choose(&p, ret);
	find_knee(&p, ret);
	if (ret->state == AS_GROWTH_FOUND && isnan(ret->knee))
		coefficients(&p, ret);
}

void as_growth_text(const struct as_growth_fit *f, struct as_buf *out)
{
	const char *between = "cannot separate: ";

	switch (f->state) {
	case AS_GROWTH_FEW_SIZES:
		as_buf_addf(out, "cannot tell from %zu sizes, %d are needed", f->sizes,
			    AS_GROWTH_SIZES);
		return;
	case AS_GROWTH_NARROW:
		as_buf_addf(out, "cannot tell: the sizes are less than %d-fold apart",
			    AS_GROWTH_RANGE);
		return;
	case AS_GROWTH_NONE:
		as_buf_adds(out, "none of 1, log n, n, n log n, n², n³");
		return;
	case AS_GROWTH_SEVERAL:
		for (int g = 0; g < AS_G_COUNT_; g++) {
			if (!f->left[g])
				continue;
			as_buf_addf(out, "%s%s", between, as_growth_names[g]);
			between = ", ";
		}
		return;
	default:
		as_buf_adds(out, as_growth_names[f->best]);
		if (!isnan(f->knee) && f->after != f->best)
			as_buf_addf(out, ", %s at scale", as_growth_names[f->after]);
	}
}

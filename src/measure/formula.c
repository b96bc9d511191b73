/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Figures that follow from others: see formula.h. Recursive descent; formulas are ours, and short. */
#include "measure/formula.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"

struct reader {
	const char *p;
	as_formula_value *value;
	void *ctx;
	bool bad;
};

static double sum(struct reader *r);

static void skip(struct reader *r)
{
	r->p += strspn(r->p, " ");
}

static bool take(struct reader *r, char c)
{
	skip(r);
	if (*r->p != c)
		return false;
	r->p++;
	return true;
}

static double number(struct reader *r)
{
	size_t n = strspn(r->p, "0123456789.");
	AS_CLEANUP(as_free_autop) char *text = as_xstrndup(r->p, n);
	double v = NAN;

	r->p += n;
	if (!as_parse_double(text, &v))
		r->bad = true;
	return v;
}

static double greater(struct reader *r)
{
	double a = sum(r), b = NAN;

	if (take(r, ','))
		b = sum(r);
	else
		r->bad = true;
	if (!take(r, ')'))
		r->bad = true;
	return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}

static double operand(struct reader *r)
{
	size_t n;

	skip(r);
	if (take(r, '(')) {
		double v = sum(r);

		if (!take(r, ')'))
			r->bad = true;
		return v;
	}
	if (*r->p >= '0' && *r->p <= '9')
		return number(r);
	n = strspn(r->p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.");
	if (!n) {
		r->bad = true;
		return NAN;
	}
	const char *name = r->p;

	r->p += n;
	if (n == 3 && memcmp(name, "max", 3) == 0 && take(r, '('))
		return greater(r);
	return r->value(r->ctx, name, n);
}

static double product(struct reader *r)
{
	double v = operand(r);

	for (;;) {
		if (take(r, '*')) {
			v *= operand(r);
		} else if (take(r, '/')) {
			double by = operand(r);

			v = by == 0 ? NAN : v / by;
		} else {
			return v;
		}
	}
}

static double sum(struct reader *r)
{
	double v = product(r);

	for (;;) {
		if (take(r, '+'))
			v += product(r);
		else if (take(r, '-'))
			v -= product(r);
		else
			return v;
	}
}

double as_formula(const char *text, as_formula_value *value, void *ctx)
{
	struct reader r = {.p = text, .value = value, .ctx = ctx};
	double v = sum(&r);

	skip(&r);
	return r.bad || *r.p ? NAN : v;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* "total(parse) > +5%": what a build may not pass. See diff.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "model/diff/identity.h"
#include "view/diff/diff.h"

static int wrong(const char *text, struct as_error *err)
{
	return as_fail(err, AS_E_USAGE, 0,
		       "--fail-if '%s' is no limit\n"
		       "  --fail-if 'total(parse) > +5%%'   relative to what it was\n"
		       "  --fail-if 'self(parse) > +2pp'    percentage points of all CPU time",
		       text);
}

static const char *skip(const char *p)
{
	return p + strspn(p, " \t");
}

int as_limit_parse(const char *text, struct as_limit *ret, struct as_error *err)
{
	const char *p = skip(text), *close = strrchr(text, ')');
	AS_CLEANUP(as_free_autop) char *number = NULL;
	size_t n;

	*ret = (struct as_limit){0};
	if (strncmp(p, "total(", 6) == 0)
		ret->total = true;
	else if (strncmp(p, "self(", 5) != 0)
		return wrong(text, err);
	p += ret->total ? 6 : 5;
	if (!close || close <= p)
		return wrong(text, err);

	const char *name = p;

	p = skip(close + 1);
	if (*p != '>')
		return wrong(text, err);
	p = skip(p + 1);
	p += *p == '+';
	n = strspn(p, "0123456789.");
	number = as_xstrndup(p, n);
	p = skip(p + n);
	ret->points = strcmp(p, "pp") == 0;
	if ((!ret->points && strcmp(p, "%") != 0) || !as_parse_double(number, &ret->value))
		return wrong(text, err);
	ret->value /= 100;
	ret->name = as_xstrndup(name, (size_t)(close - name));
	return AS_OK;
}

void as_limit_clear(struct as_limit *l)
{
	free(l->name);
	l->name = NULL;
}

static bool is_named(const struct as_diff_row *r, const char *name, bool exactly)
{
	return exactly ? strcmp(r->name, name) == 0 || strcmp(r->full_name, name) == 0
		       : strstr(r->name, name) || strstr(r->full_name, name);
}

/* Whether b is surely more than k times a: the interval of b - k a, as the row's own is made. */
static bool surely_beyond(const struct as_diff_row *r, double k)
{
	const struct as_share *a = &r->a.share, *b = &r->b.share;
	double below = b->value - b->low, above = a->high - a->value;
	double joined = hypot(below, above);
	double widened = joined > 0 ? (r->delta - r->low) / joined : 1;

	return b->value - k * a->value > widened * hypot(below, k * above);
}

/* Low end of what the limit speaks of: points of share, or growth as a fraction of what it was. */
static double low_end(const struct as_limit *l, const struct as_diff_row *r)
{
	double lo = 0, hi = 1;

	if (l->points)
		return r->low;
	if (!surely_beyond(r, 0))
		return -1;
	while (hi < 1e6 && surely_beyond(r, hi))
		hi *= 2;
	if (hi >= 1e6)
		return INFINITY;
	for (int i = 0; i < 50; i++) {
		double mid = (lo + hi) / 2;

		if (surely_beyond(r, mid))
			lo = mid;
		else
			hi = mid;
	}
	return lo - 1;
}

int as_limit_check(const struct as_limit *l, const struct as_diff *d, struct as_buf *out,
		   bool *ret_beyond, struct as_error *err)
{
	bool exactly = false, found = false;

	as_vec_foreach (r, &d->rows)
		exactly |= is_named(r, l->name, true);
	*ret_beyond = false;
	as_vec_foreach (r, &d->rows) {
		double now = l->points ? r->delta : r->delta / r->a.share.value, low;

		if (!is_named(r, l->name, exactly))
			continue;
		found = true;
		low = low_end(l, r);
		if (!(low > l->value))
			continue;
		*ret_beyond = true;
		as_buf_addf(out, "%s(", l->total ? "total" : "self");
		as_fmt_quoted(out, r->name, strlen(r->name));
		as_buf_addf(out, ") grew by %.1f %s, at least %.1f: more than %.1f\n",
			    100 * now, l->points ? "points" : "%", 100 * low, 100 * l->value);
	}
	if (!found)
		return as_fail(err, AS_E_NOTFOUND, 0,
			       "--fail-if: no function '%s' in these sessions", l->name);
	return AS_OK;
}

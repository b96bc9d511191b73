/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Benches that differ in one number only, as a series over it: see judge.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "results/judge.h"
#include "stats/complexity.h"

/* One bench as a point: key tells the series it belongs to. */
struct point {
	char *key, *name;
	const char *param;
	double n, t;
	size_t at; /* of the bench, which keeps series in their order */
};
struct points {
	struct point *v;
	size_t n, cap;
};

/* 1k, 4KiB and 1_000 are numbers to people. */
static bool number(const char *text, double *ret)
{
	AS_CLEANUP(as_buf_clear) struct as_buf clean = {0};
	uint64_t bytes;

	for (; text && *text; text++) {
		if (*text != '_' && *text != ',')
			as_buf_addc(&clean, *text);
	}
	if (as_parse_double(as_buf_str(&clean), ret))
		return true;
	if (!as_parse_size(as_buf_str(&clean), &bytes))
		return false;
	*ret = (double)bytes;
	return true;
}

/* `text` with its last `value` as {param}; without one: text. */
static char *generic_name(const char *text, const char *value, const char *param)
{
	const char *found = NULL;
	size_t n = strlen(value);

	for (const char *p = strstr(text, value); p && n; p = strstr(p + 1, value))
		found = p;
	return found ? as_xasprintf("%.*s{%s}%s", (int)(found - text), text, param, found + n)
		     : as_xstrdup(text);
}

static void add_point(struct points *all, const struct as_bench *b, struct point p)
{
	if (b->time.value > 0) {
		p.t = b->time.value;
		as_vec_push(all, p);
		return;
	}
	free(p.key);
	free(p.name);
}

static void add_params(struct points *all, const struct as_bench *b, size_t at)
{
	as_vec_foreach (p, &b->params) {
		struct as_buf key = {0};
		double n;

		if (!number(p->value, &n))
			continue;
		as_buf_addf(&key, "%s\x1f%s\x1f%s\x1f%s", b->metric ? b->metric : "",
			    b->side ? b->side : "", b->group ? b->group : "", p->name);
		as_vec_foreach (other, &b->params) {
			if (other != p)
				as_buf_addf(&key, "\x1f%s=%s", other->name, other->value);
		}

		char *name = generic_name(b->name, p->value, p->name);

		as_buf_addf(&key, "\x1f%s", name);
		add_point(all, b, (struct point){as_buf_detach(&key), name, p->name, n, 0, at});
	}
}

static void add_value(struct points *all, const struct as_bench *b, size_t at)
{
	double n;

	if (!number(b->value, &n))
		return;
	add_point(all, b,
		  (struct point){
			  as_xasprintf("%s\x1f%s\x1f%s\x1f%s", b->metric ? b->metric : "",
				       b->side ? b->side : "", b->group ? b->group : "",
				       b->function ? b->function : ""),
			  b->function
				  ? as_xasprintf("%s/%s", b->group ? b->group : "", b->function)
				  : as_xstrdup(b->group ? b->group : b->name),
			  "n", n, 0, at});
}

static int by_key(const void *pa, const void *pb)
{
	const struct point *a = pa, *b = pb;
	int order = strcmp(a->key, b->key);

	if (order)
		return order;
	if (a->n != b->n)
		return a->n > b->n ? 1 : -1;
	return (a->at > b->at) - (a->at < b->at);
}

static void add_series(struct as_bench_set *s, const struct point *p, size_t count, bool asked)
{
	struct as_bench_complexity c = {0};
	struct as_growth_fit f;
	struct as_buf best = {0};

	for (size_t i = 0; i < count; i++) {
		as_vec_push(&c.n, p[i].n);
		as_vec_push(&c.t, p[i].t);
	}
	as_growth_fit(c.n.v, c.t.v, count, &f);
	if (f.sizes < 2 ||
	    (!asked && (f.state == AS_GROWTH_FEW_SIZES || f.state == AS_GROWTH_NARROW))) {
		as_vec_clear(&c.n);
		as_vec_clear(&c.t);
		return;
	}
	as_growth_text(&f, &best);
	c.name = as_xstrdup(p->name);
	c.param = as_xstrdup(p->param);
	c.best = as_buf_detach(&best);
	c.coefficient = f.coefficient;
	c.intercept = f.intercept;
	c.exponent = f.exponent;
	c.exponent_low = f.low;
	c.exponent_high = f.high;
	c.knee = f.knee;
	as_vec_push(&s->complexities, c);
}

void as_bench_find_growth(struct as_bench_set *s, bool asked)
{
	struct points all = {0};
	size_t at = 0;

	as_vec_foreach (b, &s->benches) {
		if (!b->name)
			continue;
		if (b->params.n)
			add_params(&all, b, at++);
		else if (b->value)
			add_value(&all, b, at++);
	}
	if (all.n)
		qsort(all.v, all.n, sizeof *all.v, by_key);
	for (size_t i = 0, end; i < all.n; i = end) {
		for (end = i + 1; end < all.n && strcmp(all.v[end].key, all.v[i].key) == 0;
		     end++)
			;
		add_series(s, all.v + i, end - i, asked);
	}
	as_vec_foreach (p, &all) {
		free(p->key);
		free(p->name);
	}
	as_vec_clear(&all);
}

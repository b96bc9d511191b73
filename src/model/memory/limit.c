/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Growth between two sessions of memory that is too much: see limit.h. */
#include "model/memory/limit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"

static int wrong(const char *text, struct as_error *err)
{
	return as_fail(err, AS_E_USAGE, 0,
		       "--fail-if '%s' is no limit of memory\n"
		       "  --fail-if 'total(parse) > +5%%'       more than it was\n"
		       "  --fail-if 'self(parse) > +64KiB'\n"
		       "  --fail-if 'peak > +5%%'\n"
		       "  --fail-if 'allocs(in=parse) > +0'",
		       text);
}

/* ---- parsing ---- */

static char *trimmed(const char *p, size_t n)
{
	while (n && (*p == ' ' || *p == '\t')) {
		p++;
		n--;
	}
	while (n && (p[n - 1] == ' ' || p[n - 1] == '\t'))
		n--;
	return as_xstrndup(p, n);
}

/* What stands before the comparison: the last '>', as names have some too. */
static int parse_figure(const char *text, size_t n, struct as_heap_limit *l,
			struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *figure = trimmed(text, n), *budget = NULL;
	size_t length = strlen(figure), word = strcspn(figure, "(");

	l->total = word == 5 && strncmp(figure, "total", 5) == 0;
	l->of_function = l->total || (word == 4 && strncmp(figure, "self", 4) == 0);
	if (l->of_function) {
		if (length < word + 3 || figure[length - 1] != ')')
			return wrong(l->text, err);
		l->function = trimmed(figure + word + 1, length - word - 2);
		return AS_OK;
	}
	budget = as_xasprintf("%s > 0", figure);
	return as_heap_budgets_parse((const char *const *)&budget, 1, &l->budget, err);
}

static int parse_bound(const char *p, struct as_heap_limit *l, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *bound = trimmed(p, strlen(p));
	const char *number = bound + (*bound == '+');
	size_t n = strlen(number);
	uint64_t any;

	l->relative = n && number[n - 1] == '%';
	if (l->relative) {
		AS_CLEANUP(as_free_autop) char *part = trimmed(number, n - 1);

		if (!as_parse_double(part, &l->part) || !(l->part >= 0))
			return wrong(l->text, err);
		l->part /= 100;
		return AS_OK;
	}
	l->amount = as_xstrdup(number);
	if (as_heap_parse_amount(number, true, &any) < 0 &&
	    as_heap_parse_amount(number, false, &any) < 0)
		return wrong(l->text, err);
	return AS_OK;
}

int as_heap_limit_parse(const char *text, struct as_heap_limit *ret, struct as_error *err)
{
	const char *sign = strrchr(text, '>');
	int r;

	*ret = (struct as_heap_limit){.text = as_xstrdup(text)};
	r = sign ? parse_figure(text, (size_t)(sign - text), ret, err) : wrong(text, err);
	if (r == AS_OK)
		r = parse_bound(sign + 1, ret, err);
	if (r < 0)
		as_heap_limit_clear(ret);
	return r;
}

void as_heap_limit_clear(struct as_heap_limit *l)
{
	as_heap_budgets_clear(&l->budget);
	free(l->text);
	free(l->function);
	free(l->amount);
	*l = (struct as_heap_limit){0};
}

/* ---- checking ---- */

/* An amount in the figure's unit. */
static int find_bound(const struct as_heap_limit *l, bool bytes, uint64_t *ret,
		      struct as_error *err)
{
	*ret = 0;
	if (l->relative || as_heap_parse_amount(l->amount, bytes, ret) == AS_OK)
		return AS_OK;
	return as_fail(err, AS_E_USAGE, 0, "--fail-if '%s': '%s' is no %s", l->text, l->amount,
		       bytes ? "amount of bytes: 4096, 64KiB, 50MiB"
			     : "count: 0, 1500, 10k, 2M");
}

static bool is_beyond(const struct as_heap_limit *l, uint64_t bound, uint64_t a, uint64_t b)
{
	if (b <= a)
		return false;
	return l->relative ? (double)(b - a) > l->part * (double)a : b - a > bound;
}

static void add_amount(bool bytes, uint64_t n, struct as_buf *out)
{
	if (bytes)
		as_fmt_bytes(out, n);
	else
		as_fmt_count(out, n);
}

/* "grew from 1.20 MiB to 3.40 MiB, by 183.3 %: more than 5 %" */
static void add_growth(const struct as_heap_limit *l, bool bytes, const uint64_t v[2],
		       struct as_buf *out)
{
	as_buf_adds(out, " grew from ");
	add_amount(bytes, v[0], out);
	as_buf_adds(out, " to ");
	add_amount(bytes, v[1], out);
	if (l->relative && v[0])
		as_buf_addf(out, ", by %.1f %%", 100 * (double)(v[1] - v[0]) / (double)v[0]);
	if (l->relative)
		as_buf_addf(out, ": more than %g %%\n", 100 * l->part);
	else
		as_buf_addf(out, ": by more than %s\n", l->amount);
}

static bool is_named(const struct as_row *r, const char *name, bool exactly)
{
	return exactly ? strcmp(r->name, name) == 0 || strcmp(r->full_name, name) == 0
		       : strstr(r->name, name) || strstr(r->full_name, name);
}

static int check_function(const struct as_heap_limit *l,
			  const struct as_heap_diff_request *asked, struct as_buf *out,
			  bool *ret_beyond, struct as_error *err)
{
	struct as_heap_diff_request q = *asked;
	bool bytes = as_measure_is_bytes(q.b->measure), exactly = false, found = false;
	struct as_heap_diff *d = NULL;
	uint64_t bound;
	int r = find_bound(l, bytes, &bound, err);

	q.total = l->total;
	q.tree = false;
	q.query.by = AS_BY_FUNCTION;
	if (r == AS_OK)
		r = as_heap_diff_make(&q, &d, err);
	if (r < 0)
		return r;
	as_vec_foreach (row, &d->rows)
		exactly |= is_named(&row->row, l->function, true);
	as_vec_foreach (row, &d->rows) {
		if (!is_named(&row->row, l->function, exactly))
			continue;
		found = true;
		if (!is_beyond(l, bound, row->a, row->b))
			continue;
		*ret_beyond = true;
		as_buf_addf(out, "%s of '", as_measure_name(q.b->measure));
		as_fmt_quoted(out, row->row.name, strlen(row->row.name));
		as_buf_adds(out, l->total ? "' with what it calls" : "' itself");
		add_growth(l, bytes, (uint64_t[2]){row->a, row->b}, out);
	}
	if (!found)
		as_buf_addf(
			out,
			"--fail-if: nothing was allocated in '%s' on either side, maybe its "
			"name is another\n",
			l->function);
	as_heap_diff_free(d);
	return AS_OK;
}

static int check_budget(const struct as_heap_limit *l, const struct as_heap_diff_request *q,
			struct as_buf *out, bool *ret_beyond, struct as_error *err)
{
	const struct as_heap_budget *b = &l->budget.v[0];
	bool bytes = as_heap_budget_is_bytes(b);
	struct as_heap_spent before, after;
	uint64_t bound;
	int r = find_bound(l, bytes, &bound, err);

	if (r == AS_OK)
		r = as_heap_budget_spend(b, q->a, &before, err);
	if (r == AS_OK)
		r = as_heap_budget_spend(b, q->b, &after, err);
	if (r < 0)
		return r;
	if (is_beyond(l, bound, before.amount, after.amount)) {
		*ret_beyond = true;
		/* as typed, without the bound */
		as_fmt_quoted(out, l->text, strcspn(l->text, ">"));
		while (out->len && out->p[out->len - 1] == ' ')
			out->p[--out->len] = 0;
		add_growth(l, bytes, (uint64_t[2]){before.amount, after.amount}, out);
	}
	return AS_OK;
}

int as_heap_limit_check(const struct as_heap_limit *l, const struct as_heap_diff_request *q,
			struct as_buf *out, bool *ret_beyond, struct as_error *err)
{
	*ret_beyond = false;
	return l->of_function ? check_function(l, q, out, ret_beyond, err)
			      : check_budget(l, q, out, ret_beyond, err);
}

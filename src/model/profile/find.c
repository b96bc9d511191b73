/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions by what people call them. */
#include <stdlib.h>
#include <string.h>
#include "model/profile/annotate.h"
#include "model/profile/profile_priv.h"

static bool is_exact(const struct as_m_function *f, const char *name)
{
	return strcmp(f->brief, name) == 0 || strcmp(f->full, name) == 0 ||
	       strcmp(f->linkage, name) == 0;
}

/* "parse", "Reader::parse" of "app::Reader::parse". */
static bool is_last(const char *brief, const char *name)
{
	size_t n = strlen(brief), m = strlen(name);

	return n > m + 2 && strcmp(brief + n - m, name) == 0 && brief[n - m - 1] == ':';
}

static enum as_name_fit fit_of(const struct as_m_function *f, const char *name)
{
	if (is_exact(f, name))
		return AS_FIT_EXACT;
	return is_last(f->brief, name) ? AS_FIT_LAST : AS_FIT_PART;
}

static int best_first(const void *pa, const void *pb)
{
	const struct as_function_match *a = pa, *b = pb;
	double x = a->self.value + a->total.value, y = b->self.value + b->total.value;

	if (a->fit != b->fit)
		return a->fit < b->fit ? -1 : 1;
	if (x != y)
		return x < y ? 1 : -1;
	return a->function < b->function ? -1 : a->function > b->function;
}

static void add_shares(const struct as_profile *p, struct as_function_matches *f)
{
	struct as_map64 at = {0};

	for (size_t i = 0; i < f->v.n; i++)
		*as_map64_put(&at, f->v.v[i].function, NULL) = i;
	as_vec_foreach (row, &p->rows) {
		const uint64_t *i = as_map64_get(&at, row->key);

		if (!i)
			continue;
		f->v.v[*i].self = row->self;
		f->v.v[*i].total = row->total;
	}
	as_map64_clear(&at);
}

/* The functions that --callers would take, without markers, which have no code. */
static int find(const struct as_model *m, const struct as_query *q, const char *name,
		struct as_function_matches *ret, struct as_error *err)
{
	struct as_query of = *q;
	struct as_build b = {.m = m, .q = &of};
	int r;

	of.by = AS_BY_FUNCTION;
	of.shape = AS_SHAPE_CALLERS;
	of.of = name;
	if (!name[0])
		return as_fail(err, AS_E_USAGE, 0, "which function?");
	r = as_filter_make(&b, err);
	for (uint32_t i = 0; r == AS_OK && i < m->functions.n; i++) {
		const struct as_m_function *f = &m->functions.v[i];

		if ((b.functions[i] & AS_MATCH_OF) && !(f->flags & AS_FUNCTION_MARKER))
			as_vec_push(&ret->v, (struct as_function_match){
						     .function = i, .fit = fit_of(f, name)});
	}
	as_filter_clear(&b);
	if (r == AS_OK && !ret->v.n)
		return as_fail(err, AS_E_NOTFOUND, 0,
			       "'%s' is where stacks were cut, no function with code", name);
	return r;
}

int as_functions_find(const struct as_model *m, const struct as_query *q, const char *name,
		      struct as_function_matches *ret, struct as_error *err)
{
	struct as_function_matches f = {0};
	struct as_query flat = *q;
	struct as_profile *p = NULL;
	int r = find(m, q, name, &f, err);

	flat.by = AS_BY_FUNCTION;
	flat.shape = AS_SHAPE_FLAT;
	flat.of = NULL;
	if (r == AS_OK)
		r = as_profile_make(m, &flat, &p, err);
	if (r < 0) {
		as_functions_clear(&f);
		return r;
	}
	add_shares(p, &f);
	as_profile_free(p);
	qsort(f.v.v, f.v.n, sizeof *f.v.v, best_first);
	*ret = f;
	return AS_OK;
}

void as_functions_clear(struct as_function_matches *f)
{
	as_vec_clear(&f->v);
}

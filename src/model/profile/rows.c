/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows: self and total per key, with intervals, sorted, ties marked. */
#include <stdlib.h>
#include <string.h>
#include "model/profile/profile_priv.h"

struct draft { /* a row and what its rank is judged by */
	struct as_row row;
	struct as_share_estimate rank;
};
struct drafts {
	AS_VEC(struct draft) v;
	AS_VEC(uint32_t) keys;
	uint32_t *row_of_key;
	/* Per row its total, then (at + keys.n) its self. */
	struct as_share_row *shares;
	uint64_t *samples;
	uint64_t *values; /* of memory: AS_HEAP_VALUES each, the profile's; NULL none */
	struct as_share_estimate none; /* of a row without samples */
};

/* Many rows have no self samples, and all of those have one interval. */
static void share_of(const struct as_build *b, const struct drafts *d, size_t at,
		     struct as_share_estimate *e, struct as_share *ret)
{
	*e = d->none;
	if (d->samples[at])
		as_share_interval(&d->shares[at], &b->blocks, e);
	if (as_model_is_counted(b->m)) /* counted, not sampled */
		e->lo = e->hi = e->share;
	*ret = (struct as_share){e->share, e->lo, e->hi, e->deff, d->samples[at], e->runs};
}

static int by_rank(const void *pa, const void *pb, bool by_total)
{
	const struct as_row *a = &((const struct draft *)pa)->row;
	const struct as_row *b = &((const struct draft *)pb)->row;
	double x = by_total ? a->total.value : a->self.value;
	double y = by_total ? b->total.value : b->self.value;
	double x2 = by_total ? a->self.value : a->total.value;
	double y2 = by_total ? b->self.value : b->total.value;

	if (x != y)
		return x < y ? 1 : -1;
	if (x2 != y2)
		return x2 < y2 ? 1 : -1;
	return strcmp(a->name, b->name);
}

static int by_self(const void *a, const void *b)
{
	return by_rank(a, b, false);
}

static int by_total(const void *a, const void *b)
{
	return by_rank(a, b, true);
}

static uint32_t row_for(struct drafts *d, uint32_t key)
{
	if (d->row_of_key[key] == AS_NONE) {
		d->row_of_key[key] = (uint32_t)d->keys.n;
		as_vec_push(&d->keys, key);
	}
	return d->row_of_key[key];
}

static void drafts_init(struct drafts *d, size_t nkeys)
{
	*d = (struct drafts){0};
	d->row_of_key = as_xreallocarray(NULL, nkeys + 1, sizeof *d->row_of_key);
	memset(d->row_of_key, 0xff, (nkeys + 1) * sizeof *d->row_of_key);
}

/* A marker is a place in a tree; as a row it is only shown where it holds samples itself. */
static bool is_wanted(const struct as_build *b, uint32_t key, uint64_t self_samples)
{
	return self_samples || !as_key_is_marker(b->p, key);
}

static void publish(struct as_build *b, struct drafts *d, bool total)
{
	struct as_profile *p = &b->p->pub;

	as_share_interval(&(struct as_share_row){0}, &b->blocks, &d->none);
	for (size_t i = 0; i < d->keys.n; i++) {
		size_t self = i + d->keys.n;
		struct draft f = {0};
		struct as_share_estimate es, et;

		if (!is_wanted(b, d->keys.v[i], d->samples[self]))
			continue;
		as_profile_name(p, d->keys.v[i], &f.row);
		share_of(b, d, self, &es, &f.row.self);
		share_of(b, d, i, &et, &f.row.total);
		if (d->values) {
			f.row.total_values = d->values + i * AS_HEAP_VALUES;
			f.row.self_values = d->values + self * AS_HEAP_VALUES;
		}
		f.row.one_run = et.runs == 1 && f.row.total.samples > 1;
		f.rank = total ? et : es;
		as_vec_push(&d->v, f);
	}
	if (d->v.n)
		qsort(d->v.v, d->v.n, sizeof *d->v.v, total ? by_total : by_self);
	as_vec_reserve(&p->rows, d->v.n);
	for (size_t i = 0; i < d->v.n; i++) {
		struct draft *f = &d->v.v[i];

		f->row.tied_with_next = i + 1 < d->v.n && !as_model_is_counted(b->m) &&
					!as_rows_separable(&f->rank, &f[1].rank);
		as_vec_push(&p->rows, f->row);
	}
}

static void drafts_clear(struct drafts *d)
{
	as_vec_clear(&d->v);
	as_vec_clear(&d->keys);
	free(d->row_of_key);
	free(d->shares);
	free(d->samples);
}

/* The rows are numbered; room for their figures. */
static void make_room(struct drafts *d)
{
	d->shares = as_xcalloc(2 * d->keys.n + 1, sizeof *d->shares);
	d->samples = as_xcalloc(2 * d->keys.n + 1, sizeof *d->samples);
}

/* Per node the row of its key, or AS_NONE for the root and for nodes that are not rows. */
static uint32_t *number_rows(const struct as_build *b, const struct as_ktree *t,
			     struct drafts *d)
{
	uint32_t *row = as_xreallocarray(NULL, t->nodes.n, sizeof *row);
	bool threads_only = as_by_groups(b->q->by);

	row[0] = AS_NONE;
	for (size_t i = 1; i < t->nodes.n; i++) {
		uint32_t key = t->nodes.v[i].key;

		row[i] = threads_only && key >= b->p->nplain ? AS_NONE : row_for(d, key);
	}
	return row;
}

void as_rows_make(struct as_build *b)
{
	const struct as_ktree *t = &b->tree;
	size_t n = t->nodes.n, nkeys = as_key_count(b->p);
	AS_CLEANUP(as_free_autop) uint8_t *outermost = as_xcalloc(n, 1);
	AS_CLEANUP(as_free_autop) uint32_t *self = NULL, *total = NULL;
	struct drafts d;

	as_ktree_outermost(t, nkeys, outermost);
	drafts_init(&d, nkeys);
	total = number_rows(b, t, &d);
	make_room(&d);
	self = as_xreallocarray(NULL, n, sizeof *self);
	for (size_t i = 0; i < n; i++) {
		self[i] = AS_NONE;
		if (total[i] == AS_NONE)
			continue;
		self[i] = total[i] + (uint32_t)d.keys.n;
		d.samples[self[i]] += t->nodes.v[i].self_samples;
		if (outermost[i])
			d.samples[total[i]] += t->nodes.v[i].samples;
		else
			total[i] = AS_NONE;
	}
	struct as_pass pass = {.tree = t,
			       .self_row = self,
			       .total_row = total,
			       .rows = d.shares,
			       .nrows = 2 * d.keys.n};

	as_pass_run(b, &pass);
	if (b->m->measure != AS_MEASURE_TIME) {
		d.values =
			as_arena_alloc(&b->p->pub.arena,
				       (2 * d.keys.n + 1) * AS_HEAP_VALUES * sizeof *d.values);
		as_heap_values(b, &pass, d.values);
		if (b->m->measure == AS_MEASURE_ALLOC_TIME)
			as_alloc_values(b, &pass, d.values);
	}
	publish(b, &d, b->q->shape == AS_SHAPE_TREE);
	drafts_clear(&d);
}

void as_rows_next_to(struct as_build *b, const struct as_shaped *s)
{
	const struct as_ktree *t = s->tree;
	AS_CLEANUP(as_free_autop) uint32_t *total = NULL;
	struct drafts d;

	drafts_init(&d, as_key_count(b->p));
	total = as_xreallocarray(NULL, t->nodes.n, sizeof *total);
	for (uint32_t i = 0; i < t->nodes.n; i++) {
		uint32_t up = t->nodes.v[i].parent;
		bool next_to = i && up && t->nodes.v[up].parent == 0;

		total[i] = next_to ? row_for(&d, t->nodes.v[i].key) : AS_NONE;
	}
	make_room(&d);
	for (size_t i = 0; i < t->nodes.n; i++) {
		if (total[i] != AS_NONE)
			d.samples[total[i]] += t->nodes.v[i].samples;
	}
	as_pass_run(b, &(struct as_pass){.tree = t,
					 .leaf = s->leaf,
					 .total_row = total,
					 .rows = d.shares,
					 .nrows = d.keys.n});
	publish(b, &d, true);
	drafts_clear(&d);
}

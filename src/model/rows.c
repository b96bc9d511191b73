/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows: self and total per key, with intervals, sorted, ties marked. */
#include <stdlib.h>
#include <string.h>
#include "model/profile_priv.h"

struct draft { /* a row and what its rank is judged by */
	struct as_row row;
	struct as_share_estimate rank;
};
struct drafts {
	AS_VEC(struct draft) v;
	AS_VEC(uint32_t) keys;
	uint32_t *row_of_key;
	struct as_share_row *shares; /* 2 per row: self, total */
};

static void share_of(const struct as_share_row *r, const struct as_share_estimate *e,
		     struct as_share *ret)
{
	*ret = (struct as_share){e->share, e->lo, e->hi, e->deff, r->n_samples};
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
static bool is_wanted(const struct as_build *b, uint32_t key, const struct as_share_row *self)
{
	return self->n_samples || !as_key_is_marker(b->p, key);
}

static void publish(struct as_build *b, struct drafts *d, bool total)
{
	struct as_profile *p = &b->p->pub;

	for (size_t i = 0; i < d->keys.n; i++) {
		struct as_share_row *self = &d->shares[2 * i], *sum = self + 1;
		struct draft f = {0};
		struct as_share_estimate es, et;

		if (!is_wanted(b, d->keys.v[i], self))
			continue;
		as_profile_name(p, d->keys.v[i], &f.row);
		as_share_interval(self, &b->blocks, &es);
		as_share_interval(sum, &b->blocks, &et);
		share_of(self, &es, &f.row.self);
		share_of(sum, &et, &f.row.total);
		f.rank = total ? et : es;
		as_vec_push(&d->v, f);
	}
	if (d->v.n)
		qsort(d->v.v, d->v.n, sizeof *d->v.v, total ? by_total : by_self);
	as_vec_reserve(&p->rows, d->v.n);
	for (size_t i = 0; i < d->v.n; i++) {
		struct draft *f = &d->v.v[i];

		f->row.tied_with_next =
			i + 1 < d->v.n && !as_rows_separable(&f->rank, &f[1].rank);
		as_vec_push(&p->rows, f->row);
	}
}

static void drafts_clear(struct drafts *d)
{
	as_vec_clear(&d->v);
	as_vec_clear(&d->keys);
	free(d->row_of_key);
	free(d->shares);
}

void as_rows_make(struct as_build *b)
{
	const struct as_ktree *t = &b->tree;
	size_t n = t->nodes.n, nkeys = as_key_count(b->p);
	AS_CLEANUP(as_free_autop) uint8_t *outermost = as_xcalloc(n, 1);
	AS_CLEANUP(as_free_autop) uint32_t *self = as_xreallocarray(NULL, n, sizeof *self);
	AS_CLEANUP(as_free_autop) uint32_t *total = as_xreallocarray(NULL, n, sizeof *total);
	bool threads_only = as_by_groups(b->q->by);
	struct drafts d;

	as_ktree_outermost(t, nkeys, outermost);
	drafts_init(&d, nkeys);
	self[0] = total[0] = AS_NONE;
	for (uint32_t i = 1; i < n; i++) {
		uint32_t key = t->nodes.v[i].key;

		self[i] = total[i] = AS_NONE;
		if (threads_only && key >= b->p->nplain)
			continue;
		self[i] = 2 * row_for(&d, key);
		total[i] = outermost[i] ? self[i] + 1 : AS_NONE;
	}
	d.shares = as_xcalloc(2 * d.keys.n + 1, sizeof *d.shares);
	as_pass_run(b,
		    &(struct as_pass){
			    .tree = t, .self_row = self, .total_row = total, .rows = d.shares});
	publish(b, &d, b->q->shape == AS_SHAPE_TREE);
	drafts_clear(&d);
}

void as_rows_next_to(struct as_build *b, const struct as_shaped *s)
{
	const struct as_ktree *t = s->tree;
	size_t n = t->nodes.n, nkeys = as_key_count(b->p);
	AS_CLEANUP(as_free_autop) uint32_t *total = as_xreallocarray(NULL, n, sizeof *total);
	struct drafts d;

	drafts_init(&d, nkeys);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t up = t->nodes.v[i].parent;

		total[i] = AS_NONE;
		if (i && up && t->nodes.v[up].parent == 0)
			total[i] = 2 * row_for(&d, t->nodes.v[i].key) + 1;
	}
	d.shares = as_xcalloc(2 * d.keys.n + 1, sizeof *d.shares);
	as_pass_run(b,
		    &(struct as_pass){
			    .tree = t, .leaf = s->leaf, .total_row = total, .rows = d.shares});
	publish(b, &d, true);
	drafts_clear(&d);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Amounts of two sessions of memory side by side: see diff.h. */
#include "model/memory/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/diff/diff_priv.h"
#include "model/profile/profile_priv.h"

static uint64_t whole(double amount)
{
	if (!(amount > 0))
		return 0;
	return amount < 0x1p63 ? (uint64_t)llround(amount) : INT64_MAX;
}

static const struct as_share *share_of(const struct as_diff_session *s, size_t name)
{
	static const struct as_share none;

	return name < s->shares.n && s->shares.v[name].samples ? &s->shares.v[name] : &none;
}

static uint64_t distance(const struct as_heap_diff_row *r)
{
	return r->a > r->b ? r->a - r->b : r->b - r->a;
}

static int by_distance(const void *pa, const void *pb)
{
	const struct as_heap_diff_row *a = pa, *b = pb;

	if (distance(a) != distance(b))
		return distance(a) < distance(b) ? 1 : -1;
	if (a->b != b->b)
		return a->b < b->b ? 1 : -1;
	return strcmp(a->row.full_name, b->row.full_name);
}

static void make_rows(struct as_heap_diff *d, const struct as_diff_match *match,
		      const struct as_diff_session side[2])
{
	for (size_t i = 0; i < match->names.n; i++) {
		const struct as_share *a = share_of(&side[0], i), *b = share_of(&side[1], i);
		struct as_heap_diff_row r = {.row = match->names.v[i].row,
					     .a = whole(a->value * side[0].weight),
					     .b = whole(b->value * side[1].weight),
					     .in_a = a->samples > 0,
					     .in_b = b->samples > 0};

		if (!r.a && !r.b)
			continue;
		d->same += r.a == r.b;
		as_vec_push(&d->rows, r);
	}
	if (d->rows.n)
		qsort(d->rows.v, d->rows.n, sizeof *d->rows.v, by_distance);
	d->a = whole(side[0].weight);
	d->b = whole(side[1].weight);
}

/* ---- calls ---- */

/* Nodes of one side onto those of both. */
static void add_nodes(struct as_heap_diff *d, struct as_ktree *t, const struct as_profile *p,
		      struct as_diff_match *m, const struct as_diff_session *s, bool after)
{
	AS_CLEANUP(as_free_autop) uint32_t *to = as_xcalloc(p->nodes.n + 1, sizeof *to);

	for (size_t i = 0; i < p->nodes.n; i++) {
		struct as_heap_diff_node *node;

		to[i] = as_diff_tree_node(t, m, s, p, i, to);
		while (d->nodes.n < t->nodes.n)
			as_vec_push(&d->nodes,
				    (struct as_heap_diff_node){.first_child = AS_NONE});
		node = &d->nodes.v[to[i]];
		*(after ? &node->b : &node->a) += whole(p->nodes.v[i].total);
	}
}

static void link_nodes(struct as_heap_diff *d, const struct as_ktree *t,
		       const struct as_diff_match *m)
{
	AS_CLEANUP(as_free_autop) double *sum = as_xcalloc(t->nodes.n + 1, sizeof *sum);
	AS_CLEANUP(as_free_autop) struct as_diff_link *link = NULL;

	for (size_t i = 0; i < d->nodes.n; i++)
		sum[i] = (double)(d->nodes.v[i].a + d->nodes.v[i].b);
	link = as_diff_tree_links(t, sum);
	for (size_t i = 0; i < d->nodes.n; i++) {
		struct as_heap_diff_node *n = &d->nodes.v[i];

		n->row = *as_diff_tree_name(t, m, i);
		n->parent = link[i].parent;
		n->first_child = link[i].first_child;
		n->next_sibling = link[i].next_sibling;
		n->depth = link[i].depth;
	}
}

static int make_tree(struct as_heap_diff *d, struct as_diff_match *m,
		     const struct as_diff_session side[2], struct as_error *err)
{
	struct as_ktree t;
	int r = AS_OK;

	as_ktree_init(&t, 1024);
	for (int i = 0; i < 2 && r == AS_OK; i++) {
		struct as_query q = d->request.query;
		struct as_profile *p = NULL;

		q.shape = AS_SHAPE_TREE;
		q.nodes_only = true;
		q.alias = side[i].alias;
		q.naliases = side[i].naliases;
		r = as_profile_make(side[i].model, &q, &p, err);
		if (r == AS_OK)
			add_nodes(d, &t, p, m, &side[i], i == 1);
		as_profile_free(p);
	}
	if (r == AS_OK)
		link_nodes(d, &t, m);
	as_ktree_clear(&t);
	return r;
}

int as_heap_diff_make(const struct as_heap_diff_request *q, struct as_heap_diff **ret,
		      struct as_error *err)
{
	struct as_heap_diff *d;
	struct as_diff_session side[2] = {{.model = q->a}, {.model = q->b}};
	struct as_diff_match match;
	int r = AS_OK;

	if (q->a->measure != q->b->measure)
		return as_fail(err, AS_E_USAGE, 0,
			       "sessions of memory and of time cannot be compared");
	if (q->tree && (q->query.by == AS_BY_THREAD || q->query.by == AS_BY_PROCESS))
		return as_fail(err, AS_E_USAGE, 0, "calls are of functions, not of threads");
	d = as_xcalloc(1, sizeof *d);
	d->request = *q;
	match = (struct as_diff_match){.arena = &d->arena};
	as_diff_match_modules(&match, side, 2);
	for (int i = 0; i < 2 && r == AS_OK; i++)
		r = as_diff_match_add(&match, &q->query, q->total, &side[i], err);
	if (r == AS_OK)
		make_rows(d, &match, side);
	if (r == AS_OK && q->tree)
		r = make_tree(d, &match, side, err);
	for (int i = 0; i < 2; i++)
		as_diff_session_clear(&side[i]);
	as_diff_match_clear(&match);
	if (r < 0)
		as_heap_diff_free(d);
	else
		*ret = d;
	return r;
}

void as_heap_diff_free(struct as_heap_diff *d)
{
	if (!d)
		return;
	as_vec_clear(&d->rows);
	as_vec_clear(&d->nodes);
	as_arena_clear(&d->arena);
	free(d);
}

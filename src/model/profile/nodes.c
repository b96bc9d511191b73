/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Nodes: the shaped tree without its lightest branches, children heaviest first, with intervals. */
#include <math.h>
#include <stdlib.h>
#include "model/profile/profile_priv.h"

/* Below this share an interval says "about nothing" and costs as much as any other. */
#define INTERVAL_MIN_SHARE 0.0005

struct weighed {
	double weight;
	uint32_t node;
};

static int lightest_first(const void *pa, const void *pb)
{
	const struct weighed *a = pa, *b = pb;

	if (a->weight != b->weight)
		return a->weight < b->weight ? -1 : 1;
	return a->node < b->node ? 1 : -1;
}

/* index[tree node] = public node or AS_NONE. A kept node's parent is kept: it is no lighter. */
static void copy_nodes(struct as_build *b, const struct as_ktree *t, uint32_t *index)
{
	struct as_profile *p = &b->p->pub;
	double least = b->q->min_share * p->weight;

	for (size_t i = 0; i < t->nodes.n; i++) {
		const struct as_knode *n = &t->nodes.v[i];
		uint32_t up = i ? index[n->parent] : AS_NONE;

		index[i] = AS_NONE;
		if (i && (up == AS_NONE || n->weight < least))
			continue;
		index[i] = (uint32_t)p->nodes.n;
		as_vec_push(&p->nodes,
			    (struct as_node){.key = n->key,
					     .parent = up,
					     .first_child = AS_NONE,
					     .next_sibling = AS_NONE,
					     .depth = i ? p->nodes.v[up].depth + 1 : 0,
					     .self = n->self_weight,
					     .total = n->weight,
					     .self_samples = n->self_samples,
					     .total_samples = n->samples,
					     .low = NAN,
					     .high = NAN});
	}
}

static void link_children(struct as_profile *p)
{
	struct weighed *order = as_xreallocarray(NULL, p->nodes.n, sizeof *order);

	for (uint32_t i = 0; i < p->nodes.n; i++)
		order[i] = (struct weighed){p->nodes.v[i].total, i};
	qsort(order, p->nodes.n, sizeof *order, lightest_first);
	for (size_t i = 0; i < p->nodes.n; i++) {
		struct as_node *n = &p->nodes.v[order[i].node];

		if (n->parent == AS_NONE)
			continue;
		n->next_sibling = p->nodes.v[n->parent].first_child;
		p->nodes.v[n->parent].first_child = order[i].node;
	}
	free(order);
}

static void add_intervals(struct as_build *b, const struct as_shaped *s, const uint32_t *index)
{
	struct as_profile *p = &b->p->pub;
	size_t n = s->tree->nodes.n;
	double least = INTERVAL_MIN_SHARE * p->weight;
	AS_CLEANUP(as_free_autop) uint32_t *row = as_xreallocarray(NULL, n, sizeof *row);
	AS_VEC(uint32_t) nodes = {0};
	struct as_share_row *rows;

	for (size_t i = 0; i < n; i++) {
		row[i] = AS_NONE;
		if (index[i] == AS_NONE || s->tree->nodes.v[i].weight < least)
			continue;
		row[i] = (uint32_t)nodes.n;
		as_vec_push(&nodes, index[i]);
	}
	rows = as_xcalloc(nodes.n + 1, sizeof *rows);
	as_pass_run(b, &(struct as_pass){.tree = s->tree,
					 .leaf = s->leaf,
					 .total_row = row,
					 .rows = rows,
					 .nrows = nodes.n});
	for (size_t i = 0; i < nodes.n; i++) {
		struct as_share_estimate e;

		as_share_interval(&rows[i], &b->blocks, &e);
		if (as_model_is_counted(b->m)) /* counted, not sampled */
			e.lo = e.hi = e.share;
		p->nodes.v[nodes.v[i]].low = e.lo;
		p->nodes.v[nodes.v[i]].high = e.hi;
	}
	free(rows);
	as_vec_clear(&nodes);
}

void as_nodes_make(struct as_build *b, const struct as_shaped *s)
{
	AS_CLEANUP(as_free_autop)
	uint32_t *index = as_xreallocarray(NULL, s->tree->nodes.n, sizeof *index);

	copy_nodes(b, s->tree, index);
	link_children(&b->p->pub);
	add_intervals(b, s, index);
}

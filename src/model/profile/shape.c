/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The tree of keys turned. INVERTED and CALLERS walk all paths upwards at once, level by level,
 * so that light branches stop being followed early; CALLEES merges subtrees downwards.
 */
#include <stdlib.h>
#include "model/profile/profile_priv.h"

/* Nodes of a turned tree; the deepest are left out first. Only many distinct stacks of many
 * thousand frames come here, where a turned tree has the size of all of them together. */
#define NODES_MAX (2u << 20)
/* Moves of all walkers together; a few million in large recordings. A chain of a million frames with
 * a sample on each would take 10^12. What still walks then stays where it is. */
#define STEPS_MAX (64u << 20)

struct walker { /* the weight of `origin`, seen at `at` on its way up, standing in `node` */
	uint32_t origin, at, node;
};
struct walk {
	struct as_build *b;
	struct as_shaped *s;
	AS_VEC(struct walker) w;
	uint64_t steps;
	bool whole;       /* an origin's weight is its subtree's */
	double threshold; /* lighter nodes are not followed */
};

static const struct as_knode *origin_of(const struct walk *k, const struct walker *w)
{
	return &k->b->tree.nodes.v[w->origin];
}

static void arrive(struct walk *k, const struct walker *w)
{
	struct as_knode *n = &k->s->own.nodes.v[w->node];
	const struct as_knode *o = origin_of(k, w);

	k->s->leaf[w->origin] = w->node;
	n->self_weight += k->whole ? o->weight : o->self_weight;
	n->self_samples += k->whole ? o->samples : o->self_samples;
}

/* The node that ends a path: the root, or the thread below it. */
static bool is_top(const struct as_build *b, uint32_t node)
{
	return node == 0 || (as_by_groups(b->q->by) && b->tree.nodes.v[node].parent == 0);
}

static void step(struct walk *k)
{
	const struct as_knode *from = k->b->tree.nodes.v;
	size_t kept = 0;
	bool last = (k->steps += k->w.n) > STEPS_MAX;

	for (size_t i = 0; i < k->w.n; i++) {
		struct walker w = k->w.v[i];
		const struct as_knode *o = origin_of(k, &w);

		if (last || is_top(k->b, w.at) || k->s->own.nodes.n >= NODES_MAX) {
			arrive(k, &w);
			continue;
		}
		w.node = as_ktree_child(&k->s->own, w.node, from[w.at].key);
		k->s->own.nodes.v[w.node].weight += k->whole ? o->weight : o->self_weight;
		w.at = from[w.at].parent;
		k->w.v[kept++] = w;
	}
	k->w.n = kept;
	kept = 0;
	for (size_t i = 0; i < k->w.n; i++) {
		struct walker w = k->w.v[i];

		if (k->s->own.nodes.v[w.node].weight < k->threshold)
			arrive(k, &w);
		else
			k->w.v[kept++] = w;
	}
	k->w.n = kept;
}

/* The depth-1 node of every node: its thread. */
static uint32_t *find_tops(const struct as_ktree *t)
{
	uint32_t *top = as_xreallocarray(NULL, t->nodes.n, sizeof *top);

	top[0] = 0;
	for (uint32_t i = 1; i < t->nodes.n; i++)
		top[i] = t->nodes.v[i].parent == 0 ? i : top[t->nodes.v[i].parent];
	return top;
}

static void walk_from_leaves(struct walk *k)
{
	const struct as_ktree *t = &k->b->tree;
	bool groups = as_by_groups(k->b->q->by);
	AS_CLEANUP(as_free_autop) uint32_t *top = groups ? find_tops(t) : NULL;

	for (uint32_t i = 0; i < t->nodes.n; i++) {
		struct walker w = {i, i, 0};

		if (!t->nodes.v[i].self_samples)
			continue;
		if (groups && i)
			w.node = as_ktree_child(&k->s->own, 0, t->nodes.v[top[i]].key);
		as_vec_push(&k->w, w);
	}
}

/* ret[node]: the outermost node at or above it that `of` matches, or AS_NONE. */
static uint32_t *find_of(const struct as_build *b)
{
	const struct as_ktree *t = &b->tree;
	uint32_t *of = as_xreallocarray(NULL, t->nodes.n, sizeof *of);

	of[0] = AS_NONE;
	for (uint32_t i = 1; i < t->nodes.n; i++) {
		of[i] = of[t->nodes.v[i].parent];
		if (of[i] == AS_NONE && (b->functions[t->nodes.v[i].key] & AS_MATCH_OF))
			of[i] = i;
	}
	return of;
}

static void shape_upwards(struct as_build *b, struct as_shaped *s)
{
	struct walk k = {.b = b,
			 .s = s,
			 .whole = b->q->shape == AS_SHAPE_CALLERS,
			 .threshold = b->q->min_share * b->blocks.sum_w};
	AS_CLEANUP(as_free_autop) uint32_t *of = NULL;

	if (k.whole) {
		of = find_of(b);
		for (uint32_t i = 0; i < b->tree.nodes.n; i++) {
			if (of[i] == i)
				as_vec_push(&k.w, (struct walker){i, i, 0});
		}
	} else {
		walk_from_leaves(&k);
	}
	while (k.w.n)
		step(&k);
	as_vec_clear(&k.w);
	for (size_t i = 0; of && i < b->tree.nodes.n; i++) {
		if (of[i] != AS_NONE)
			s->leaf[i] = s->leaf[of[i]];
	}
}

static void shape_callees(struct as_build *b, struct as_shaped *s)
{
	AS_CLEANUP(as_free_autop) uint32_t *of = find_of(b);

	for (uint32_t i = 1; i < b->tree.nodes.n; i++) {
		const struct as_knode *n = &b->tree.nodes.v[i];
		struct as_knode *to;
		uint32_t up;

		if (of[i] == AS_NONE)
			continue;
		up = of[i] == i ? 0 : s->leaf[n->parent];
		s->leaf[i] = as_ktree_child(&s->own, up, n->key);
		to = &s->own.nodes.v[s->leaf[i]];
		to->self_weight += n->self_weight;
		to->self_samples += n->self_samples;
	}
}

void as_shape_make(struct as_build *b, struct as_shaped *ret)
{
	*ret = (struct as_shaped){.tree = &b->tree};
	if (b->q->shape == AS_SHAPE_TREE || b->q->shape == AS_SHAPE_FLAT)
		return;
	as_ktree_init(&ret->own, 0);
	ret->tree = &ret->own;
	ret->leaf = as_xreallocarray(NULL, b->tree.nodes.n, sizeof *ret->leaf);
	for (size_t i = 0; i < b->tree.nodes.n; i++)
		ret->leaf[i] = AS_NONE;
	if (b->q->shape == AS_SHAPE_CALLEES)
		shape_callees(b, ret);
	else
		shape_upwards(b, ret);
	as_ktree_sum(&ret->own);
}

void as_shape_clear(struct as_shaped *s)
{
	as_ktree_clear(&s->own);
	free(s->leaf);
}

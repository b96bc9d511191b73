/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Call trees of several sessions as one, whatever is counted in them. */
#include <stdlib.h>

#include "model/diff/diff_priv.h"
#include "model/profile/profile_priv.h"

uint32_t as_diff_tree_node(struct as_ktree *t, struct as_diff_match *m,
			   const struct as_diff_session *s, const struct as_profile *p,
			   size_t i, const uint32_t *to)
{
	const struct as_node *n = &p->nodes.v[i];
	uint32_t name;

	if (!i)
		return 0;
	name = n->key < s->nkeys ? s->name_of_key[n->key] : AS_NONE;
	if (name == AS_NONE)
		name = as_diff_match_name(m, p, n->key);
	return as_ktree_child(t, to[n->parent], name);
}

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

struct as_diff_link *as_diff_tree_links(const struct as_ktree *t, const double *weight)
{
	AS_CLEANUP(as_free_autop)
	struct weighed *order = as_xcalloc(t->nodes.n + 1, sizeof *order);
	struct as_diff_link *link = as_xcalloc(t->nodes.n + 1, sizeof *link);

	for (uint32_t i = 0; i < t->nodes.n; i++) {
		uint32_t parent = i ? t->nodes.v[i].parent : AS_NONE;

		link[i] = (struct as_diff_link){parent, AS_NONE, AS_NONE,
						i ? link[parent].depth + 1 : 0};
		order[i] = (struct weighed){weight[i], i};
	}
	if (t->nodes.n)
		qsort(order, t->nodes.n, sizeof *order, lightest_first);
	for (size_t i = 0; i < t->nodes.n; i++) {
		uint32_t node = order[i].node, parent = link[node].parent;

		if (parent == AS_NONE)
			continue;
		link[node].next_sibling = link[parent].first_child;
		link[parent].first_child = node;
	}
	return link;
}

const struct as_row *as_diff_tree_name(const struct as_ktree *t, const struct as_diff_match *m,
				       size_t node)
{
	static const struct as_row all = {
		.name = "all", .full_name = "all", .module = "", .file = "", .crate = ""};

	return node ? &m->names.v[t->nodes.v[node].key].row : &all;
}

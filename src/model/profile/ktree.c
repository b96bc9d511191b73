/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The tree of keys: built from the stacks that samples use, each walked once. */
#include <stdlib.h>
#include <string.h>
#include "model/profile/profile_priv.h"

static void clear_slots(struct as_ktree *t)
{
	t->slot = as_xarray(t->nslots, sizeof *t->slot);
	memset(t->slot, 0, t->nslots * sizeof *t->slot);
}

void as_ktree_init(struct as_ktree *t, size_t expected)
{
	*t = (struct as_ktree){.nslots = 1024};
	while (t->nslots < 2 * expected)
		t->nslots *= 2;
	clear_slots(t);
	as_vec_push(&t->nodes, (struct as_knode){.parent = AS_NONE, .key = AS_NONE});
}

void as_ktree_clear(struct as_ktree *t)
{
	as_vec_clear(&t->nodes);
	free(t->slot);
}

static uint64_t hash(uint32_t parent, uint32_t key)
{
	return as_mix64((uint64_t)parent << 32 | key);
}

static void grow(struct as_ktree *t)
{
	free(t->slot);
	t->nslots *= 2;
	clear_slots(t);
	for (uint32_t i = 1; i < t->nodes.n; i++) {
		uint64_t h = hash(t->nodes.v[i].parent, t->nodes.v[i].key);
		size_t at = h & (t->nslots - 1);

		while (t->slot[at])
			at = (at + 1) & (t->nslots - 1);
		t->slot[at] = h >> 32 << 32 | (i + 1);
	}
}

uint32_t as_ktree_child(struct as_ktree *t, uint32_t parent, uint32_t key)
{
	uint64_t h = hash(parent, key);
	size_t at;

	if (2 * t->nodes.n >= t->nslots)
		grow(t);
	for (at = h & (t->nslots - 1); t->slot[at]; at = (at + 1) & (t->nslots - 1)) {
		uint32_t node = (uint32_t)t->slot[at] - 1;

		if (t->slot[at] >> 32 == h >> 32 && t->nodes.v[node].parent == parent &&
		    t->nodes.v[node].key == key)
			return node;
	}
	as_vec_push(&t->nodes, (struct as_knode){.parent = parent, .key = key});
	t->slot[at] = h >> 32 << 32 | (uint32_t)t->nodes.n;
	return (uint32_t)t->nodes.n - 1;
}

void as_ktree_sum(struct as_ktree *t)
{
	as_vec_foreach (n, &t->nodes) {
		n->weight = n->self_weight;
		n->samples = n->self_samples;
	}
	for (size_t i = t->nodes.n; i-- > 1;) {
		struct as_knode *n = &t->nodes.v[i], *up = &t->nodes.v[n->parent];

		up->weight += n->weight;
		up->samples += n->samples;
	}
}

void as_ktree_outermost(const struct as_ktree *t, size_t nkeys, uint8_t *ret)
{
	size_t n = t->nodes.n;
	uint32_t *next = as_xreallocarray(NULL, n, sizeof *next);
	uint32_t *first = as_xreallocarray(NULL, n, sizeof *first);
	uint32_t *above = as_xcalloc(nkeys + 1, sizeof *above); /* open nodes per key */
	uint32_t at = 0;

	for (size_t i = 0; i < n; i++)
		first[i] = AS_NONE;
	for (size_t i = n; i-- > 1;) {
		uint32_t up = t->nodes.v[i].parent;

		next[i] = first[up];
		first[up] = (uint32_t)i;
	}
	ret[0] = 1;
	/* Depth first without a stack: `first` is consumed on the way down. */
	for (;;) {
		uint32_t down = first[at];

		if (down != AS_NONE) {
			first[at] = next[down];
			at = down;
			ret[at] = above[t->nodes.v[at].key]++ == 0;
			continue;
		}
		if (at == 0)
			break;
		above[t->nodes.v[at].key]--;
		at = t->nodes.v[at].parent;
	}
	free(next);
	free(first);
	free(above);
}

static uint32_t add_frame(struct as_build *b, uint32_t node, const struct as_m_frame *f)
{
	uint32_t n;
	const struct as_m_place *places = as_filter_places(b, f, &n);

	while (n-- > 0) {
		uint32_t key;

		if (as_filter_hides(b, &places[n]))
			continue;
		key = as_key_of(b, f, &places[n]);
		if (as_by_joins(b->q->by) && b->tree.nodes.v[node].key == key)
			continue;
		node = as_ktree_child(&b->tree, node, key);
	}
	return node;
}

/* Where a stack's first frame hangs: below its thread when rows are threads, and below a marker
 * when the stack has no true beginning. group tells such places apart; 0 is the root itself. */
static uint32_t group_node(struct as_build *b, const struct as_m_sample *s, uint32_t *ret_group)
{
	enum as_by by = b->q->by;
	unsigned end = s->end & AS_SAMPLE_END_MASK;
	uint32_t node = 0, owner = 0;

	if (as_by_groups(by)) {
		owner = by == AS_BY_THREAD ? s->thread : b->m->threads.v[s->thread].process;
		node = as_ktree_child(&b->tree, 0, as_key_alias(b, owner));
		owner++;
	}
	*ret_group = owner * AS_END_COUNT_;
	if (as_by_groups(by) && b->q->shape == AS_SHAPE_FLAT)
		return node;
	if (end == AS_END_ROOT && s->stack == AS_NONE)
		end = AS_END_NOSTACK;
	*ret_group += end;
	if (end != AS_END_ROOT)
		node = as_ktree_child(&b->tree, node,
				      as_key_of_marker(b, b->m->end_function[end]));
	return node;
}

static bool known(const struct as_build *b, uint32_t group, uint32_t stack, uint32_t *ret)
{
	const uint64_t *node;

	if (group == 0) {
		if (b->node_of_stack[stack] == AS_NONE)
			return false;
		*ret = b->node_of_stack[stack];
		return true;
	}
	node = as_map64_get(&b->node_of_grouped, (uint64_t)group << 32 | stack);
	if (node)
		*ret = (uint32_t)*node;
	return node != NULL;
}

static void remember(struct as_build *b, uint32_t group, uint32_t stack, uint32_t node)
{
	if (group == 0)
		b->node_of_stack[stack] = node;
	else
		*as_map64_put(&b->node_of_grouped, (uint64_t)group << 32 | stack, NULL) = node;
}

/* The node of a stack in its group; new parts of its path are added to the tree. */
static uint32_t leaf_node(struct as_build *b, uint32_t stack, uint32_t group, uint32_t node)
{
	const struct as_model *m = b->m;
	uint32_t at = stack;

	b->path.n = 0;
	while (at != AS_NONE) {
		if (known(b, group, at, &node))
			break;
		as_vec_push(&b->path, at);
		at = m->stacks.v[at].parent;
	}
	while (b->path.n) {
		at = b->path.v[--b->path.n];
		node = add_frame(b, node, &m->frames.v[m->stacks.v[at].frame]);
		remember(b, group, at, node);
	}
	return node;
}

static uint32_t add_end(struct as_build *b, uint32_t node)
{
	as_vec_push(&b->ends, (struct as_end){.node = node});
	return (uint32_t)b->ends.n - 1;
}

uint32_t as_ktree_end(struct as_build *b, const struct as_m_sample *s)
{
	bool groups = as_by_groups(b->q->by), fresh;
	uint32_t group, node, stack = s->stack;
	uint64_t *end;

	if (!groups && stack != AS_NONE && (s->end & AS_SAMPLE_END_MASK) == AS_END_ROOT) {
		if (b->end_of_stack[stack] == AS_NONE)
			b->end_of_stack[stack] = add_end(b, leaf_node(b, stack, 0, 0));
		return b->end_of_stack[stack];
	}
	node = group_node(b, s, &group);
	if (groups && b->q->shape == AS_SHAPE_FLAT)
		stack = AS_NONE; /* rows are threads: frames do not matter */
	end = as_map64_put(&b->end_of_grouped, (uint64_t)group << 32 | stack, &fresh);
	if (fresh) {
		uint32_t e = add_end(b, leaf_node(b, stack, group, node));

		*end = e;
	}
	return (uint32_t)*end;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* From a call tree to boxes: see flame.h. */
#include "view/flame/flame.h"

#include <math.h>
#include <stdlib.h>

#include "base/map.h"

struct todo {
	uint32_t node;
	uint32_t depth;
	double x;
};

struct layout {
	const struct as_profile *p;
	struct as_flame *f;
	uint32_t *height; /* of each node: longest way down to a leaf, in edges */
	AS_VEC(struct todo) todo;
};

/* Parents need not have smaller indices than their children: heights by explicit descent. */
static void measure_heights(struct layout *l)
{
	const struct as_node *nodes = l->p->nodes.v;
	AS_VEC(uint32_t) order = {0};

	as_vec_push(&order, 0);
	for (size_t i = 0; i < order.n; i++) {
		for (uint32_t c = nodes[order.v[i]].first_child; c != AS_NONE;
		     c = nodes[c].next_sibling)
			as_vec_push(&order, c);
	}
	for (size_t i = order.n; i-- > 1;) {
		uint32_t n = order.v[i], parent = nodes[n].parent;

		l->height[parent] = AS_MAX(l->height[parent], l->height[n] + 1);
	}
	as_vec_clear(&order);
}

static void add_box(struct layout *l, struct as_box box)
{
	as_vec_push(&l->f->boxes, box);
	l->f->rows = AS_MAX(l->f->rows, box.depth + 1);
}

static struct as_box node_box(const struct layout *l, const struct todo *t)
{
	const struct as_node *n = &l->p->nodes.v[t->node];

	return (struct as_box){.x = t->x,
			       .width = n->total / l->p->nodes.v[0].total,
			       .depth = t->depth,
			       .key = n->key,
			       .node = t->node,
			       .folded_key = AS_NONE,
			       .self = n->self / l->p->nodes.v[0].total,
			       .samples = n->total_samples,
			       .low = n->low,
			       .high = n->high};
}

/* ---- folding the middle of deep stacks ---- */

/* The ends of the stacks below a folded place, merged: a small tree of its own. */
struct tail {
	uint32_t key, first_child, next_sibling;
	double weight;
	uint64_t samples;
};
struct tails {
	AS_VEC(struct tail) v; /* v[0]: root, no box of its own */
	uint32_t most_key, folded;
	struct as_map64 keys;  /* function -> frames folded away */
	struct as_map64 child; /* parent << 32 | key -> index */
};

static uint32_t tail_child(struct tails *t, uint32_t parent, uint32_t key)
{
	bool new;
	uint64_t *slot = as_map64_put(&t->child, (uint64_t)parent << 32 | key, &new);

	if (!new)
		return (uint32_t)*slot;

	uint32_t c = (uint32_t)t->v.n;

	*slot = c;
	as_vec_push(&t->v, (struct tail){.key = key,
					 .first_child = AS_NONE,
					 .next_sibling = t->v.v[parent].first_child});
	t->v.v[parent].first_child = c;
	return c;
}

/* Adds the last frames of the way from top (not included) down to node. */
static void add_tail(const struct layout *l, struct tails *t, uint32_t top, uint32_t node)
{
	const struct as_node *nodes = l->p->nodes.v;
	uint32_t way[AS_FLAME_TAIL], n = 0, at = 0;

	for (uint32_t i = node; i != top && n < AS_FLAME_TAIL; i = nodes[i].parent)
		way[n++] = i;
	while (n--) {
		at = tail_child(t, at, nodes[way[n]].key);
		t->v.v[at].weight += nodes[node].self;
		t->v.v[at].samples += nodes[node].self_samples;
	}
}

static void collect_tails(const struct layout *l, struct tails *t, uint32_t top)
{
	const struct as_node *nodes = l->p->nodes.v;
	AS_VEC(struct todo) todo = {0};
	uint64_t most = 0;

	as_vec_push(
		&t->v,
		(struct tail){.key = AS_NONE, .first_child = AS_NONE, .next_sibling = AS_NONE});
	as_vec_push(&todo, (struct todo){.node = top});
	t->most_key = AS_NONE;
	while (todo.n) {
		struct todo at = todo.v[--todo.n];

		if (at.node != top && nodes[at.node].self > 0)
			add_tail(l, t, top, at.node);
		if (at.node != top && nodes[at.node].key != AS_NONE &&
		    l->height[at.node] >= AS_FLAME_TAIL) {
			uint64_t *count = as_map64_put(&t->keys, nodes[at.node].key, NULL);

			if (++*count > most) {
				most = *count;
				t->most_key = nodes[at.node].key;
			}
		}
		if (at.depth > AS_FLAME_TAIL)
			t->folded = AS_MAX(t->folded, at.depth - AS_FLAME_TAIL);
		for (uint32_t c = nodes[at.node].first_child; c != AS_NONE;
		     c = nodes[c].next_sibling)
			as_vec_push(&todo, (struct todo){.node = c, .depth = at.depth + 1});
	}
	as_vec_clear(&todo);
}

static void draw_tails(struct layout *l, struct tails *t, double x, uint32_t depth)
{
	double whole = l->p->nodes.v[0].total;
	AS_VEC(struct todo) todo = {0};

	as_vec_push(&todo, (struct todo){.x = x, .depth = depth});
	while (todo.n) {
		struct todo at = todo.v[--todo.n];
		const struct tail *n = &t->v.v[at.node];
		double child_x = at.x;

		if (at.node)
			add_box(l, (struct as_box){.x = at.x,
						   .width = n->weight / whole,
						   .depth = at.depth,
						   .key = n->key,
						   .node = AS_NONE,
						   .folded_key = AS_NONE,
						   .samples = n->samples,
						   .low = NAN,
						   .high = NAN});
		for (uint32_t c = n->first_child; c != AS_NONE; c = t->v.v[c].next_sibling) {
			double width = t->v.v[c].weight / whole;

			if (width >= l->f->min_width)
				as_vec_push(&todo, (struct todo){.node = c,
								 .depth = at.depth + 1,
								 .x = child_x});
			else
				l->f->hidden++;
			child_x += width;
		}
	}
	as_vec_clear(&todo);
}

/* Draws what is below t->node as one folded box and the merged ends above it. */
static void fold(struct layout *l, const struct todo *t)
{
	const struct as_node *n = &l->p->nodes.v[t->node];
	struct tails tails = {0};
	double below = (n->total - n->self) / l->p->nodes.v[0].total;

	collect_tails(l, &tails, t->node);
	if (below >= l->f->min_width) {
		add_box(l, (struct as_box){.x = t->x,
					   .width = below,
					   .depth = t->depth + 1,
					   .key = AS_NONE,
					   .node = AS_NONE,
					   .folded = tails.folded,
					   .folded_key = tails.most_key,
					   .samples = n->total_samples - n->self_samples,
					   .low = NAN,
					   .high = NAN});
		draw_tails(l, &tails, t->x, t->depth + 1);
	}
	as_vec_clear(&tails.v);
	as_map64_clear(&tails.keys);
	as_map64_clear(&tails.child);
}

/* ---- everything ---- */

static void push_children(struct layout *l, const struct todo *t)
{
	const struct as_node *nodes = l->p->nodes.v;
	double x = t->x;

	for (uint32_t c = nodes[t->node].first_child; c != AS_NONE; c = nodes[c].next_sibling) {
		double width = nodes[c].total / nodes[0].total;

		if (width >= l->f->min_width) {
			as_vec_push(&l->todo,
				    (struct todo){.node = c, .depth = t->depth + 1, .x = x});
		} else {
			l->f->hidden++;
			l->f->hidden_width += width;
		}
		x += width;
	}
}

static void draw(struct layout *l)
{
	as_vec_push(&l->todo, (struct todo){0});
	while (l->todo.n) {
		struct todo t = l->todo.v[--l->todo.n];

		add_box(l, node_box(l, &t));
		if (t.depth + 1 >= AS_FLAME_DEPTH && l->height[t.node] > AS_FLAME_TAIL)
			fold(l, &t);
		else
			push_children(l, &t);
	}
}

static int by_width(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x < y) - (x > y);
}

/* The narrowest width that keeps the boxes within AS_FLAME_BOXES. Folded places add few. */
static double bounded_width(const struct as_profile *p)
{
	AS_VEC(double) widths = {0};
	double whole = p->nodes.v[0].total, bound = AS_FLAME_MIN_WIDTH;

	as_vec_foreach (n, &p->nodes) {
		double width = n->total / whole;

		if (width >= bound && n->depth < AS_FLAME_DEPTH + AS_FLAME_TAIL)
			as_vec_push(&widths, width);
	}
	if (widths.n > AS_FLAME_BOXES) {
		qsort(widths.v, widths.n, sizeof *widths.v, by_width);
		bound = nextafter(widths.v[AS_FLAME_BOXES], 1);
	}
	as_vec_clear(&widths);
	return bound;
}

void as_flame_layout(const struct as_profile *p, struct as_flame *ret)
{
	struct layout l = {.p = p, .f = ret};

	*ret = (struct as_flame){0};
	if (!p->nodes.n || !(p->nodes.v[0].total > 0))
		return;
	ret->min_width = bounded_width(p);
	l.height = as_xcalloc(p->nodes.n, sizeof *l.height);
	measure_heights(&l);
	draw(&l);
	free(l.height);
	as_vec_clear(&l.todo);
}

void as_flame_clear(struct as_flame *f)
{
	as_vec_clear(&f->boxes);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The calls of two sessions of memory as one tree, as text: the branches that hold a change, the largest
 * first; branches without one, or with little, are one line below the call that has them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "view/memory/diff_priv.h"

enum { TOP = 200 };
static const double LITTLE = 0.005; /* of the largest change: not worth a line */

struct branch {
	uint32_t node;
	bool rest;                /* of node: its branches without a line */
	const char *lead, *below; /* before this line, before its children */
};
struct walk {
	const struct as_heap_diff *d;
	const struct as_style *style;
	struct as_table *t;
	struct as_arena arena;
	uint64_t *largest; /* per node: the largest change in its branch */
	uint64_t least;    /* that has a line */
	AS_VEC(struct branch) todo;
};

static uint64_t change_of(const struct as_heap_diff_node *n)
{
	return n->a > n->b ? n->a - n->b : n->b - n->a;
}

/* A node's parent has a smaller index. */
static void find_largest(struct walk *w)
{
	const struct as_heap_diff *d = w->d;

	w->largest = as_xcalloc(d->nodes.n + 1, sizeof *w->largest);
	for (uint32_t i = (uint32_t)d->nodes.n; i-- > 0;) {
		uint32_t up = d->nodes.v[i].parent;

		w->largest[i] = AS_MAX(w->largest[i], change_of(&d->nodes.v[i]));
		if (up != AS_NONE)
			w->largest[up] = AS_MAX(w->largest[up], w->largest[i]);
	}
	w->least = d->nodes.n ? (uint64_t)(LITTLE * (double)w->largest[0]) : 0;
	w->least = AS_MAX(w->least, 1u);
}

static const char *joined(struct walk *w, const char *a, const char *b)
{
	AS_CLEANUP(as_free_autop) char *s = as_xasprintf("%s%s", a, b);

	return as_arena_strdup(&w->arena, s);
}

struct kept {
	uint64_t largest;
	uint32_t node;
};

static int largest_first(const void *pa, const void *pb)
{
	const struct kept *a = pa, *b = pb;

	if (a->largest != b->largest)
		return a->largest < b->largest ? 1 : -1;
	return (a->node > b->node) - (a->node < b->node);
}

static void emit_rest(struct walk *w, const struct branch *b)
{
	const struct as_heap_diff *d = w->d;
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	struct as_heap_diff_row sum = {.in_a = true, .in_b = true};
	uint64_t n = 0;

	for (uint32_t c = d->nodes.v[b->node].first_child; c != AS_NONE;
	     c = d->nodes.v[c].next_sibling) {
		if (w->largest[c] >= w->least)
			continue;
		n++;
		sum.a += d->nodes.v[c].a;
		sum.b += d->nodes.v[c].b;
	}
	as_buf_adds(&text, "… ");
	as_fmt_count(&text, n);
	as_buf_adds(&text, n == 1 ? " branch" : " branches");
	as_buf_adds(&text, sum.a == sum.b ? " the same" : " with little");
	sum.row = (struct as_row){
		.name = text.p, .full_name = text.p, .module = "", .file = "", .crate = ""};
	as_memory_diff_row(d, &sum, w->style, w->t);
	as_table_lead(w->t, AS_MEMORY_DIFF_NAME, b->lead);
}

/* Onto the stack, the largest last. */
static void push_children(struct walk *w, const struct branch *b)
{
	const struct as_heap_diff *d = w->d;
	AS_VEC(struct kept) kept = {0};
	const char *below = b->below;
	bool rest = false, alone;

	if (as_text_width(below, strlen(below)) > (size_t)w->style->width / 3)
		below = joined(w, "… ", ""); /* too far right to draw: the guides start again */
	for (uint32_t c = d->nodes.v[b->node].first_child; c != AS_NONE;
	     c = d->nodes.v[c].next_sibling) {
		if (w->largest[c] >= w->least)
			as_vec_push(&kept, (struct kept){w->largest[c], c});
		else
			rest = true;
	}
	rest &= kept.n > 0; /* below the last change nothing is news */
	alone = kept.n == 1 && !rest;
	if (kept.n)
		qsort(kept.v, kept.n, sizeof *kept.v, largest_first);
	if (rest)
		as_vec_push(&w->todo, (struct branch){.node = b->node,
						      .rest = true,
						      .lead = joined(w, below, "└─ ")});
	for (size_t i = kept.n; i-- > 0;) {
		bool last = i + 1 == kept.n && !rest;
		struct branch child = {.node = kept.v[i].node};

		child.lead = alone ? below : joined(w, below, last ? "└─ " : "├─ ");
		child.below = alone ? below : joined(w, below, last ? "   " : "│  ");
		as_vec_push(&w->todo, child);
	}
	as_vec_clear(&kept);
}

void as_memory_diff_tree(const struct as_memory_diff_view *v, const struct as_style *style,
			 struct as_buf *out)
{
	struct as_table t = {0};
	struct walk w = {.d = v->diff, .style = style, .t = &t};
	size_t top = v->top ? v->top : TOP;

	find_largest(&w);
	as_memory_diff_columns(w.d, "calls", &t);
	if (w.d->nodes.n)
		as_vec_push(&w.todo, (struct branch){.lead = "", .below = ""});
	while (w.todo.n && t.nrows < top) {
		struct branch b = w.todo.v[--w.todo.n];
		const struct as_heap_diff_node *n = &w.d->nodes.v[b.node];

		if (b.rest) {
			emit_rest(&w, &b);
			continue;
		}
		if (b.node) {
			as_memory_diff_row(w.d,
					   &(struct as_heap_diff_row){n->row, n->a, n->b,
								      n->a > 0, n->b > 0},
					   style, &t);
			as_table_lead(&t, AS_MEMORY_DIFF_NAME, b.lead);
		}
		push_children(&w, &b);
	}
	if (t.nrows)
		as_table_print(&t, style, out);
	else
		as_buf_adds(out, "   every call has the same on both sides\n");
	as_table_clear(&t);
	as_vec_clear(&w.todo);
	as_arena_clear(&w.arena);
	free(w.largest);
}

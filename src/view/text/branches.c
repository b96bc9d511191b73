/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Branches that hold a change: see branches.h. */
#include "view/text/branches.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys.h"

struct line {
	uint32_t node;
	bool rest;                /* of node: its branches without a line */
	const char *lead, *below; /* before this line, before its children */
};

struct walk {
	const struct as_branches *b;
	size_t width;
	struct as_arena arena;
	AS_VEC(struct line) todo;
};

void as_branches_sum(struct as_branches *b)
{
	for (uint32_t i = (uint32_t)b->nodes.n; i-- > 1;) {
		struct as_branch *up = &b->nodes.v[b->nodes.v[i].parent];

		up->change = AS_MAX(up->change, b->nodes.v[i].change);
	}
}

bool as_branches_has_line(const struct as_branches *b, uint32_t node)
{
	double change = b->nodes.v[node].change;

	return change > 0 && change >= b->least;
}

static const char *joined(struct walk *w, const char *a, const char *b)
{
	AS_CLEANUP(as_free_autop) char *s = as_xasprintf("%s%s", a, b);

	return as_arena_strdup(&w->arena, s);
}

struct kept {
	double change, weight;
	uint32_t node;
};

static int largest_first(const void *pa, const void *pb)
{
	const struct kept *a = pa, *b = pb;

	if (a->change != b->change)
		return a->change < b->change ? 1 : -1;
	if (a->weight != b->weight)
		return a->weight < b->weight ? 1 : -1;
	return (a->node > b->node) - (a->node < b->node);
}

/* Branches with a line go onto the stack, the largest last; the rest is one line. */
static void push_children(struct walk *w, const struct line *line)
{
	const struct as_branch *nodes = w->b->nodes.v;
	AS_VEC(struct kept) kept = {0};
	const char *below = line->below;
	bool ends = w->b->is_end && w->b->is_end(w->b, line->node), rest, alone;

	if (as_text_width(below, strlen(below)) > w->width / 3)
		below = joined(w, "… ", ""); /* too far right to draw: the guides start again */
	for (uint32_t c = nodes[line->node].first_child; !ends && c != AS_NONE;
	     c = nodes[c].next_sibling) {
		if (as_branches_has_line(w->b, c))
			as_vec_push(&kept, (struct kept){nodes[c].change, nodes[c].weight, c});
	}
	rest = w->b->tells_rest(w->b, line->node, kept.n);
	alone = kept.n == 1 && !rest;
	if (kept.n)
		qsort(kept.v, kept.n, sizeof *kept.v, largest_first);
	if (rest && (kept.n || ends))
		as_vec_push(&w->todo, (struct line){.node = line->node,
						    .rest = true,
						    .lead = joined(w, below, "└─ ")});
	for (size_t i = kept.n; i-- > 0;) {
		bool last = i + 1 == kept.n && !rest;
		struct line child = {.node = kept.v[i].node};

		child.lead = alone ? below : joined(w, below, last ? "└─ " : "├─ ");
		child.below = alone ? below : joined(w, below, last ? "   " : "│  ");
		as_vec_push(&w->todo, child);
	}
	as_vec_clear(&kept);
}

void as_branches_rows(const struct as_branches *b, const struct as_style *style,
		      struct as_table *t)
{
	struct walk w = {.b = b, .width = (size_t)style->width};

	if (b->nodes.n)
		as_vec_push(&w.todo, (struct line){.lead = "", .below = ""});
	while (w.todo.n && (!b->top || t->nrows < b->top)) {
		struct line line = w.todo.v[--w.todo.n];

		if (line.rest)
			b->rest(b, line.node, t);
		if (line.rest || b->row(b->data, line.node, t))
			as_table_lead(t, b->name_column, line.lead);
		if (!line.rest)
			push_children(&w, &line);
	}
	as_vec_clear(&w.todo);
	as_arena_clear(&w.arena);
}

void as_branches_clear(struct as_branches *b)
{
	as_vec_clear(&b->nodes);
}

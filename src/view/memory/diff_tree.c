/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The calls of two sessions of memory as one tree, as text: the branches that hold a change, the largest
 * first; branches without one, or with little, are one line below the call that has them.
 */
#include <math.h>

#include "base/sys.h"
#include "view/memory/diff_priv.h"
#include "view/text/branches.h"

enum { TOP = 200 };
static const double LITTLE = 0.005; /* of the largest change: not worth a line */

struct shown {
	const struct as_heap_diff *d;
	const struct as_style *style;
};

/* Below the last change nothing is news. */
static bool tells_rest(const struct as_branches *b, uint32_t node, size_t kept)
{
	for (uint32_t c = b->nodes.v[node].first_child; kept && c != AS_NONE;
	     c = b->nodes.v[c].next_sibling) {
		if (!as_branches_has_line(b, c))
			return true;
	}
	return false;
}

static void emit_rest(const struct as_branches *b, uint32_t node, struct as_table *t)
{
	const struct shown *s = b->data;
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	struct as_heap_diff_row sum = {.in_a = true, .in_b = true};
	uint64_t n = 0;

	for (uint32_t c = b->nodes.v[node].first_child; c != AS_NONE;
	     c = b->nodes.v[c].next_sibling) {
		if (as_branches_has_line(b, c))
			continue;
		n++;
		sum.a += s->d->nodes.v[c].a;
		sum.b += s->d->nodes.v[c].b;
	}
	as_buf_adds(&text, "… ");
	as_fmt_count(&text, n);
	as_buf_adds(&text, n == 1 ? " branch" : " branches");
	as_buf_adds(&text, sum.a == sum.b ? " the same" : " with little");
	sum.row = (struct as_row){
		.name = text.p, .full_name = text.p, .module = "", .file = "", .crate = ""};
	as_memory_diff_row(s->d, &sum, s->style, t);
}

static bool emit(const void *data, uint32_t node, struct as_table *t)
{
	const struct shown *s = data;
	const struct as_heap_diff_node *n = &s->d->nodes.v[node];

	if (node)
		as_memory_diff_row(
			s->d,
			&(struct as_heap_diff_row){n->row, n->a, n->b, n->a > 0, n->b > 0},
			s->style, t);
	return node > 0;
}

void as_memory_diff_tree(const struct as_memory_diff_view *v, const struct as_style *style,
			 struct as_buf *out)
{
	struct as_table t = {0};
	struct shown s = {v->diff, style};
	struct as_branches b = {.top = v->top ? v->top : TOP,
				.name_column = AS_MEMORY_DIFF_NAME,
				.data = &s,
				.row = emit,
				.rest = emit_rest,
				.tells_rest = tells_rest};

	as_vec_foreach (n, &v->diff->nodes)
		as_vec_push(&b.nodes,
			    (struct as_branch){
				    n->parent, n->first_child, n->next_sibling,
				    (double)(n->a > n->b ? n->a - n->b : n->b - n->a), 0});
	as_branches_sum(&b);
	b.least = b.nodes.n ? floor(LITTLE * b.nodes.v[0].change) : 0;
	as_memory_diff_columns(v->diff, "calls", &t);
	as_branches_rows(&b, style, &t);
	if (t.nrows)
		as_table_print(&t, style, out);
	else
		as_buf_adds(out, "   every call has the same on both sides\n");
	as_table_clear(&t);
	as_branches_clear(&b);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The calls of both sides as one tree, as text: the branches that hold a resolved change, the largest
 * first; what is not resolved, and what a call holds that one side alone has, is one line below it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "view/diff/diff_priv.h"

static const double LITTLE = 0.003; /* of both sides together: not worth a line */

struct branch {
	uint32_t node;
	bool rest;                /* of node: its branches that are not resolved */
	const char *lead, *below; /* before this line, before its children */
};

struct walk {
	const struct as_diff *d;
	const struct as_style *style;
	struct as_table *t;
	struct as_arena arena;
	double *largest; /* per node: the largest resolved change in its branch; 0: none */
	AS_VEC(struct branch) todo;
};

static const struct as_diff_row *row_of(const struct as_diff *d, uint32_t node)
{
	uint32_t row = d->nodes.v[node].row;

	return row == AS_NONE ? NULL : &d->rows.v[row];
}

/* A node's parent has a smaller index. */
static double *find_largest(const struct as_diff *d)
{
	double *largest = as_xcalloc(d->nodes.n + 1, sizeof *largest);

	for (uint32_t i = (uint32_t)d->nodes.n; i-- > 1;) {
		const struct as_diff_row *r = row_of(d, i);
		uint32_t up = d->nodes.v[i].parent;

		if (r && r->change >= AS_CHANGE_UP)
			largest[i] = AS_MAX(largest[i], fabs(r->delta));
		largest[up] = AS_MAX(largest[up], largest[i]);
	}
	return largest;
}

static const char *joined(struct walk *w, const char *a, const char *b)
{
	AS_CLEANUP(as_free_autop) char *s = as_xasprintf("%s%s", a, b);

	return as_arena_strdup(&w->arena, s);
}

struct kept {
	double largest, share;
	uint32_t node;
};

static int largest_first(const void *pa, const void *pb)
{
	const struct kept *a = pa, *b = pb;

	if (a->largest != b->largest)
		return a->largest < b->largest ? 1 : -1;
	if (a->share != b->share)
		return a->share < b->share ? 1 : -1;
	return (a->node > b->node) - (a->node < b->node);
}

struct rest {
	size_t branches;
	bool alike; /* all of the node's: what calls them is new or gone, so they are */
	double a, b;
};

static size_t kept_below(const struct walk *w, uint32_t node)
{
	size_t n = 0;

	for (uint32_t c = w->d->nodes.v[node].first_child; c != AS_NONE;
	     c = w->d->nodes.v[c].next_sibling)
		n += w->largest[c] > 0;
	return n;
}

/* Below a call that one side alone has, forks are no news. */
static bool is_fork_of_one_side(const struct walk *w, uint32_t node)
{
	const struct as_diff_row *r = row_of(w->d, node);

	return r && (!r->a.sessions || !r->b.sessions) && kept_below(w, node) > 1;
}

static struct rest rest_of(const struct walk *w, uint32_t node)
{
	const struct as_diff *d = w->d;
	struct rest rest = {.alike = is_fork_of_one_side(w, node)};

	for (uint32_t c = d->nodes.v[node].first_child; c != AS_NONE;
	     c = d->nodes.v[c].next_sibling) {
		const struct as_diff_row *r = row_of(d, c);

		if (w->largest[c] > 0 && !rest.alike)
			continue;
		rest.branches++;
		rest.a += r ? r->a.share.value : 0;
		rest.b += r ? r->b.share.value : 0;
	}
	return rest;
}

static void emit_rest(struct walk *w, const struct rest *r, const char *lead)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	struct as_share a = {.value = r->a, .low = NAN, .high = NAN},
			b = {.value = r->b, .low = NAN, .high = NAN};

	as_buf_adds(&text, "… ");
	as_fmt_count(&text, r->branches);
	as_buf_adds(&text, r->branches == 1 ? " branch" : " branches");
	as_buf_adds(&text, r->alike ? ", likewise" : " not resolved");
	as_table_row(w->t);
	as_table_share(w->t, 0, &a);
	as_table_share(w->t, 1, &b);
	as_table_text(w->t, AS_DIFF_NAME, as_buf_str(&text));
	as_table_lead(w->t, AS_DIFF_NAME, lead);
}

/* Branches with a resolved change go onto the stack, the largest last; the rest is one line. */
static void push_children(struct walk *w, const struct branch *b)
{
	const struct as_diff *d = w->d;
	AS_VEC(struct kept) kept = {0};
	struct rest rest = rest_of(w, b->node);
	bool tell = rest.a + rest.b > LITTLE, alone;
	const char *below = b->below;

	if (as_text_width(below, strlen(below)) > (size_t)w->style->width / 3)
		below = joined(w, "… ", ""); /* too far right to draw: the guides start again */
	for (uint32_t c = d->nodes.v[b->node].first_child; c != AS_NONE;
	     c = d->nodes.v[c].next_sibling) {
		if (w->largest[c] > 0 && !rest.alike)
			as_vec_push(&kept,
				    (struct kept){w->largest[c], d->nodes.v[c].share, c});
	}
	alone = kept.n == 1 && !tell;
	if (kept.n)
		qsort(kept.v, kept.n, sizeof *kept.v, largest_first);
	if (tell && (kept.n || rest.alike))
		as_vec_push(&w->todo, (struct branch){.node = b->node,
						      .rest = true,
						      .lead = joined(w, below, "└─ ")});
	for (size_t i = kept.n; i-- > 0;) {
		bool last = i + 1 == kept.n && !tell;
		struct branch child = {.node = kept.v[i].node};

		child.lead = alone ? below : joined(w, below, last ? "└─ " : "├─ ");
		child.below = alone ? below : joined(w, below, last ? "   " : "│  ");
		as_vec_push(&w->todo, child);
	}
	as_vec_clear(&kept);
}

void as_diff_tree_text(const struct as_diff_view *v, const struct as_style *style,
		       struct as_buf *out)
{
	struct as_table t = {0};
	struct walk w = {.d = v->diff, .style = style, .t = &t};

	w.largest = find_largest(v->diff);
	as_diff_columns(v->diff, style, "calls", &t);
	as_vec_push(&w.todo, (struct branch){.lead = "", .below = ""});
	while (w.todo.n) {
		struct branch b = w.todo.v[--w.todo.n];
		const struct as_diff_row *r = row_of(w.d, b.node);

		if (b.rest) {
			struct rest rest = rest_of(&w, b.node);

			emit_rest(&w, &rest, b.lead);
			continue;
		}
		if (r) {
			as_diff_row(w.d, r, style, &t);
			as_table_lead(&t, AS_DIFF_NAME, b.lead);
		}
		push_children(&w, &b);
	}
	as_table_print(&t, style, out);
	as_table_clear(&t);
	as_vec_clear(&w.todo);
	as_arena_clear(&w.arena);
	free(w.largest);
}

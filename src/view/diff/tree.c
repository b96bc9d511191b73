/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The calls of both sides as one tree, as text: the branches that hold a resolved change, the largest
 * first; what is not resolved, and what a call holds that one side alone has, is one line below it.
 */
#include <math.h>

#include "base/sys.h"
#include "view/diff/diff_priv.h"
#include "view/text/branches.h"

static const double LITTLE = 0.003; /* of both sides together: not worth a line */

struct shown {
	const struct as_diff *d;
	const struct as_style *style;
};

static const struct as_diff *diff_of(const struct as_branches *b)
{
	return ((const struct shown *)b->data)->d;
}

static const struct as_diff_row *row_of(const struct as_diff *d, uint32_t node)
{
	uint32_t row = d->nodes.v[node].row;

	return row == AS_NONE ? NULL : &d->rows.v[row];
}

/* Below a call that one side alone has, forks are no news. */
static bool is_fork_of_one_side(const struct as_branches *b, uint32_t node)
{
	const struct as_diff_row *r = row_of(diff_of(b), node);
	size_t lines = 0;

	for (uint32_t c = b->nodes.v[node].first_child; c != AS_NONE;
	     c = b->nodes.v[c].next_sibling)
		lines += as_branches_has_line(b, c);
	return r && (!r->a.sessions || !r->b.sessions) && lines > 1;
}

struct rest {
	size_t branches;
	bool alike; /* all of the node's: what calls them is new or gone, so they are */
	double a, b;
};

static struct rest rest_of(const struct as_branches *b, uint32_t node)
{
	struct rest rest = {.alike = is_fork_of_one_side(b, node)};

	for (uint32_t c = b->nodes.v[node].first_child; c != AS_NONE;
	     c = b->nodes.v[c].next_sibling) {
		const struct as_diff_row *r = row_of(diff_of(b), c);

		if (as_branches_has_line(b, c) && !rest.alike)
			continue;
		rest.branches++;
		rest.a += r ? r->a.share.value : 0;
		rest.b += r ? r->b.share.value : 0;
	}
	return rest;
}

static bool tells_rest(const struct as_branches *b, uint32_t node, size_t kept)
{
	struct rest rest = rest_of(b, node);

	(void)kept; /* the figures of a rest are worth a line however many stand beside it */
	return rest.a + rest.b > LITTLE;
}

static void emit_rest(const struct as_branches *b, uint32_t node, struct as_table *t)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	struct rest rest = rest_of(b, node);
	struct as_share before = {.value = rest.a, .low = NAN, .high = NAN},
			after = {.value = rest.b, .low = NAN, .high = NAN};

	as_buf_adds(&text, "… ");
	as_fmt_count(&text, rest.branches);
	as_buf_adds(&text, rest.branches == 1 ? " branch" : " branches");
	as_buf_adds(&text, rest.alike ? ", likewise" : " not resolved");
	as_table_row(t);
	as_table_share(t, 0, &before);
	as_table_share(t, 1, &after);
	as_table_text(t, AS_DIFF_NAME, as_buf_str(&text));
}

static bool emit(const void *data, uint32_t node, struct as_table *t)
{
	const struct shown *s = data;
	const struct as_diff_row *r = row_of(s->d, node);

	if (r)
		as_diff_row(s->d, r, s->style, t);
	return r != NULL;
}

void as_diff_tree_text(const struct as_diff_view *v, const struct as_style *style,
		       struct as_buf *out)
{
	const struct as_diff *d = v->diff;
	struct as_table t = {0};
	struct shown s = {d, style};
	struct as_branches b = {.name_column = AS_DIFF_NAME,
				.data = &s,
				.row = emit,
				.rest = emit_rest,
				.tells_rest = tells_rest,
				.is_end = is_fork_of_one_side};

	for (uint32_t i = 0; i < d->nodes.n; i++) {
		const struct as_diff_node *n = &d->nodes.v[i];
		const struct as_diff_row *r = i ? row_of(d, i) : NULL;
		bool resolved = r && r->change >= AS_CHANGE_UP;

		as_vec_push(&b.nodes,
			    (struct as_branch){n->parent, n->first_child, n->next_sibling,
					       resolved ? fabs(r->delta) : 0, n->share});
	}
	as_branches_sum(&b);
	as_diff_columns(d, style, "calls", &t);
	as_branches_rows(&b, style, &t);
	as_table_print(&t, style, out);
	as_table_clear(&t);
	as_branches_clear(&b);
}

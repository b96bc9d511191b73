/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Two sessions of memory as one flame graph: see flame.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "model/memory/diff.h"
#include "view/flame/flame_priv.h"
#include "view/memory/memory.h"
#include "view/text/style.h"

static const double SCALE_MIN =
	0.01; /* of both: the strongest colour is of a change of this at least */

struct shown {
	const struct as_heap_diff *d;
	double scale; /* the change that has the strongest colour */
};

static const struct shown *shown_of(const struct as_picture *pic)
{
	return pic->skin->data;
}

static const struct as_heap_diff_node *node_of(const struct as_picture *pic,
					       const struct as_box *b)
{
	return b->node == AS_NONE ? NULL : &shown_of(pic)->d->nodes.v[b->node];
}

static double change_of(const struct as_heap_diff_node *n)
{
	return (double)n->b - (double)n->a;
}

static void fill(const struct as_picture *pic, const struct as_box *b, char ret[8])
{
	const struct as_heap_diff_node *n = node_of(pic, b);

	memcpy(ret, as_flame_grey, sizeof as_flame_grey);
	if (n && n->a != n->b)
		as_flame_change_fill(change_of(n), shown_of(pic)->scale, ret);
}

/* Keys are nodes: see nodes_of. */
static void name(const struct as_picture *pic, uint32_t key, struct as_row *ret)
{
	*ret = shown_of(pic)->d->nodes.v[key].row;
}

static void add_amount(const struct as_picture *pic, double n, struct as_buf *out)
{
	as_memory_amount(shown_of(pic)->d->request.b, n, out);
}

static void add_change(const struct as_picture *pic, double change, struct as_buf *out)
{
	as_buf_adds(out, change > 0 ? "+" : change < 0 ? "-" : "");
	add_amount(pic, fabs(change), out);
}

static void details(const struct as_picture *pic, const struct as_box *b, struct as_buf *out)
{
	const struct as_heap_diff_node *n = node_of(pic, b);

	if (!n) {
		as_buf_addf(out, "%.1f %% of both sides together", 100 * b->width);
		return;
	}
	as_buf_adds(out, "before ");
	add_amount(pic, (double)n->a, out);
	as_buf_adds(out, ", after ");
	add_amount(pic, (double)n->b, out);
	as_buf_adds(out, "\n");
	add_change(pic, change_of(n), out);
	if (n->a && n->a != n->b)
		as_buf_addf(out, ", %+.1f %%", 100 * change_of(n) / (double)n->a);
	as_buf_adds(out, !n->a ? ", new" : !n->b ? ", gone" : "");
}

static void add_side(const struct as_picture *pic, const char *word, bool after,
		     struct as_buf *b)
{
	const struct as_heap_diff *d = shown_of(pic)->d;
	const struct as_model *m = after ? d->request.b : d->request.a;

	as_buf_addf(b, "%s ", word);
	as_style_cut(b, m->path ? m->path : "-", 40);
	as_buf_adds(b, ", ");
	add_amount(pic, (double)(after ? d->b : d->a), b);
}

static void subtitle(const struct as_picture *pic, struct as_buf *out)
{
	as_buf_addf(out, "%s · ", as_measure_name(shown_of(pic)->d->request.b->measure));
	add_side(pic, "before:", false, out);
	as_buf_adds(out, " · ");
	add_side(pic, "after:", true, out);
	as_buf_adds(out, " · width: mean of both");
}

static void legend(const struct as_picture *pic)
{
	AS_CLEANUP(as_buf_clear) struct as_buf more = {0}, less = {0};

	as_buf_adds(&more, "more: ");
	add_change(pic, shown_of(pic)->scale, &more);
	as_buf_adds(&less, "less: ");
	add_change(pic, -shown_of(pic)->scale, &less);
	as_flame_change_legend(pic, more.p, less.p, "the same");
}

/* The tree as a profile of its own, whose keys are its nodes. */
static void nodes_of(const struct as_heap_diff *d, struct as_profile *ret)
{
	as_vec_reserve(&ret->nodes, d->nodes.n);
	for (uint32_t i = 0; i < d->nodes.n; i++) {
		const struct as_heap_diff_node *n = &d->nodes.v[i];
		double mean = ((double)n->a + (double)n->b) / 2;

		as_vec_push(&ret->nodes, (struct as_node){.key = i ? i : AS_NONE,
							  .parent = n->parent,
							  .first_child = n->first_child,
							  .next_sibling = n->next_sibling,
							  .depth = n->depth,
							  .self = mean,
							  .total = mean,
							  .low = NAN,
							  .high = NAN});
	}
}

int as_flame_memory_diff_svg(const struct as_flame_request *q, const struct as_heap_diff *diff,
			     struct as_buf *out, struct as_error *err)
{
	struct shown s = {.d = diff};
	struct as_flame_skin skin = {.name = name,
				     .fill = fill,
				     .details = details,
				     .subtitle = subtitle,
				     .legend = legend,
				     .data = &s};
	struct as_profile p = {.model = q->model};
	struct as_picture pic = {.q = q, .skin = &skin, .out = out};

	if (!diff->nodes.n)
		return as_fail(err, AS_E_USAGE, 0, "a comparison without its calls");
	nodes_of(diff, &p);
	s.scale = AS_MAX(SCALE_MIN * p.nodes.v[0].total, 1);
	as_vec_foreach (n, &diff->nodes)
		s.scale = AS_MAX(s.scale, fabs(change_of(n)));
	as_flame_sides_draw(&pic, &p);
	as_vec_clear(&p.nodes);
	return AS_OK;
}

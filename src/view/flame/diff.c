/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Two sides of a comparison as one flame graph: see flame.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "model/diff/diff.h"
#include "view/flame/flame_priv.h"
#include "view/text/style.h"

static const double SCALE_MIN = 0.01; /* the strongest colour is of a change of this at least */

struct shown {
	const struct as_diff *d;
	double scale; /* share that has the strongest colour */
};

static const struct shown *shown_of(const struct as_picture *pic)
{
	return pic->skin->data;
}

static const struct as_diff_row *row_of(const struct as_picture *pic, const struct as_box *b)
{
	const struct as_diff *d = shown_of(pic)->d;
	uint32_t row = b->node == AS_NONE ? AS_NONE : d->nodes.v[b->node].row;

	return row == AS_NONE ? NULL : &d->rows.v[row];
}

static bool is_coloured(const struct as_diff_row *r)
{
	return r->change >= AS_CHANGE_UP && !r->share_only;
}

static void fill(const struct as_picture *pic, const struct as_box *b, char ret[8])
{
	const struct as_diff_row *r = row_of(pic, b);

	memcpy(ret, as_flame_grey, sizeof as_flame_grey);
	if (r && is_coloured(r))
		as_flame_change_fill(r->delta, shown_of(pic)->scale, ret);
}

static void name(const struct as_picture *pic, uint32_t key, struct as_row *ret)
{
	/* keys are nodes: see nodes_of */
	const struct as_diff *d = shown_of(pic)->d;
	uint32_t row = d->nodes.v[key].row;

	*ret = (struct as_row){
		.name = "?", .full_name = "?", .module = "", .file = "", .crate = ""};
	if (row != AS_NONE) {
		const struct as_diff_row *r = &d->rows.v[row];

		ret->name = r->name;
		ret->full_name = r->full_name;
		ret->module = r->module;
		ret->file = r->file;
		ret->crate = r->crate;
		ret->line = r->line;
	}
}

static void details(const struct as_picture *pic, const struct as_box *b, struct as_buf *out)
{
	const struct as_diff_row *r = row_of(pic, b);

	if (!r) {
		as_buf_addf(out, "%.1f %% of both sides together", 100 * b->width);
		return;
	}
	as_buf_adds(out, "before ");
	as_style_share(out, &r->a.share);
	as_buf_adds(out, " %, after ");
	as_style_share(out, &r->b.share);
	as_buf_addf(out, " %%\n%+.2f points (95 %%: %+.2f to %+.2f): %s%s%s", 100 * r->delta,
		    100 * r->low, 100 * r->high, as_change_name(r->change),
		    !r->a.sessions   ? ", new"
		    : !r->b.sessions ? ", gone"
				     : "",
		    r->share_only ? ", as a share only" : "");
	if (!isnan(r->cpu_delta_s)) {
		as_buf_addf(out, "\nCPU time %s", r->cpu_delta_s < 0 ? "-" : "+");
		as_fmt_duration(out, (uint64_t)(fabs(r->cpu_delta_s) * 1e9));
		as_buf_adds(out, " ±");
		as_fmt_duration(out, (uint64_t)((r->cpu_high - r->cpu_low) / 2 * 1e9));
	}
}

static void add_side(struct as_buf *b, const char *word, const struct as_model *const *m,
		     size_t n)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < n; i++)
		samples += m[i]->samples.n;
	as_buf_addf(b, "%s ", word);
	as_style_cut(b, m[0]->path ? m[0]->path : "-", 40);
	if (n > 1)
		as_buf_addf(b, " and %zu more", n - 1);
	as_buf_adds(b, ", ");
	as_fmt_count(b, samples);
	as_buf_adds(b, " samples");
}

static void subtitle(const struct as_picture *pic, struct as_buf *out)
{
	const struct as_diff_request *q = &shown_of(pic)->d->request;

	add_side(out, "before:", q->a, q->na);
	as_buf_adds(out, " · ");
	add_side(out, "after:", q->b, q->nb);
	as_buf_adds(out, " · width: mean of both");
}

static void legend(const struct as_picture *pic)
{
	double scale = shown_of(pic)->scale;
	const char *more = scale > SCALE_MIN ? "" : " or more";
	AS_CLEANUP(as_free_autop)
	char *up = as_xasprintf("up: +%.1f points%s", 100 * scale, more);
	AS_CLEANUP(as_free_autop)
	char *down = as_xasprintf("down: -%.1f points%s", 100 * scale, more);

	as_flame_change_legend(pic, up, down, "not resolved, or the share alone changed");
}

/* The tree as a profile of its own, whose keys are its nodes. */
static void nodes_of(const struct as_diff *d, struct as_profile *ret)
{
	as_vec_reserve(&ret->nodes, d->nodes.n);
	for (uint32_t i = 0; i < d->nodes.n; i++) {
		const struct as_diff_node *n = &d->nodes.v[i];
		const struct as_diff_row *r = n->row == AS_NONE ? NULL : &d->rows.v[n->row];

		as_vec_push(&ret->nodes,
			    (struct as_node){.key = i ? i : AS_NONE,
					     .parent = n->parent,
					     .first_child = n->first_child,
					     .next_sibling = n->next_sibling,
					     .depth = n->depth,
					     .self = n->share,
					     .total = n->share,
					     .total_samples =
						     r ? r->a.share.samples + r->b.share.samples
						       : 0,
					     .low = NAN,
					     .high = NAN});
	}
}

int as_flame_diff_svg(const struct as_flame_request *q, const struct as_diff *diff,
		      struct as_buf *out, struct as_error *err)
{
	struct shown s = {.d = diff, .scale = SCALE_MIN};
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
	as_vec_foreach (r, &diff->rows) {
		if (is_coloured(r))
			s.scale = AS_MAX(s.scale, fabs(r->delta));
	}
	nodes_of(diff, &p);
	as_flame_sides_draw(&pic, &p);
	as_vec_clear(&p.nodes);
	return AS_OK;
}

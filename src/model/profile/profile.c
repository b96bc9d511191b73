/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A profile from start to end; the parts are in profile_priv.h. */
#include <stdlib.h>
#include <string.h>
#include "model/profile/profile_priv.h"

static uint32_t plain_keys(const struct as_model *m, enum as_by by)
{
	switch (by) {
	case AS_BY_FUNCTION:
		return (uint32_t)m->functions.n;
	case AS_BY_MODULE:
		return (uint32_t)m->modules.n;
	case AS_BY_THREAD:
		return (uint32_t)m->threads.n;
	case AS_BY_PROCESS:
		return (uint32_t)m->processes.n;
	default:
		return 0;
	}
}

static struct as_profile_priv *profile_new(const struct as_model *m, const struct as_query *q)
{
	struct as_profile_priv *p = as_xcalloc(1, sizeof *p);

	p->pub.query = *q;
	p->pub.model = m;
	if (q->shape == AS_SHAPE_CALLERS || q->shape == AS_SHAPE_CALLEES)
		p->pub.query.by = AS_BY_FUNCTION;
	p->nplain = plain_keys(m, p->pub.query.by);
	if (p->nplain == 0 && m->places.n) {
		p->place_keys = as_xreallocarray(NULL, m->places.n, sizeof *p->place_keys);
		memset(p->place_keys, 0xff, m->places.n * sizeof *p->place_keys);
	}
	return p;
}

static void make(struct as_build *b)
{
	enum as_shape shape = b->q->shape;
	struct as_shaped s;

	as_ktree_init(&b->tree, b->m->stacks.n);
	b->node_of_stack = as_xreallocarray(NULL, b->m->stacks.n + 1, sizeof *b->node_of_stack);
	memset(b->node_of_stack, 0xff, (b->m->stacks.n + 1) * sizeof *b->node_of_stack);
	b->end_of_stack = as_xreallocarray(NULL, b->m->stacks.n + 1, sizeof *b->end_of_stack);
	memset(b->end_of_stack, 0xff, (b->m->stacks.n + 1) * sizeof *b->end_of_stack);
	as_scan_samples(b);
	as_shape_make(b, &s);
	if (shape == AS_SHAPE_CALLERS || shape == AS_SHAPE_CALLEES)
		as_rows_next_to(b, &s);
	else if (!b->q->nodes_only || shape == AS_SHAPE_FLAT)
		as_rows_make(b);
	if (shape != AS_SHAPE_FLAT)
		as_nodes_make(b, &s);
	as_shape_clear(&s);
}

static void build_clear(struct as_build *b)
{
	as_filter_clear(b);
	as_ktree_clear(&b->tree);
	free(b->node_of_stack);
	as_map64_clear(&b->node_of_grouped);
	as_vec_clear(&b->path);
	as_blocks_clear(&b->blocks);
	free(b->end);
	free(b->end_of_stack);
	as_map64_clear(&b->end_of_grouped);
	as_vec_clear(&b->ends);
}

int as_profile_make(const struct as_model *m, const struct as_query *q, struct as_profile **ret,
		    struct as_error *err)
{
	struct as_profile_priv *p = profile_new(m, q);
	struct as_build b = {.p = p, .m = m, .q = &p->pub.query};
	int r = as_filter_make(&b, err);

	if (r == AS_OK)
		make(&b);
	build_clear(&b);
	free(p->place_keys);
	p->place_keys = NULL;
	if (r < 0) {
		as_profile_free(&p->pub);
		return r;
	}
	*ret = &p->pub;
	return AS_OK;
}

void as_profile_free(struct as_profile *pub)
{
	struct as_profile_priv *p = (struct as_profile_priv *)pub;

	if (!p)
		return;
	as_vec_clear(&pub->rows);
	as_vec_clear(&pub->nodes);
	as_arena_clear(&pub->arena);
	as_vec_clear(&p->labels);
	as_map64_clear(&p->label_ids);
	free(p->module_labels);
	free(p);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sizes, lives, types and chains of a selection: see tables.h. */
#include "model/memory/tables.h"

#include <stdlib.h>
#include <string.h>

#include "model/model_priv.h"

#define COVERED 0.9 /* of the chains a capacity is to be enough for */

/* Rows of the samples a selection keeps, with the group each is in. */
#define ROWS(s, row, group, ...)                                                               \
	for (size_t i_ = (s)->lo; i_ < (s)->hi; i_++) {                                        \
		const struct as_m_heap *h_ = &(s)->model->heap;                                \
		const struct as_m_heap_row *row = &h_->rows.v[h_->row_of[i_]];                 \
		uint32_t group = (s)->group[i_ - (s)->lo];                                     \
                                                                                               \
		if (group != AS_NONE) {                                                        \
			__VA_ARGS__;                                                           \
		}                                                                              \
	}

/* ---- bins ---- */

static void add_bins(struct as_heap_bins *b, const struct as_u64s *histogram)
{
	uint64_t used = histogram->n ? histogram->v[0] : 0;

	for (size_t i = 1; i < histogram->n; i++, used &= used - 1) {
		b->count[__builtin_ctzll(used)] += histogram->v[i];
		b->total += histogram->v[i];
	}
}

static const struct as_u64s *bins_of(const struct as_rec_heap_stack *r, enum as_heap_bins_of of)
{
	switch (of) {
	case AS_HEAP_SIZES:
		return &r->sizes;
	case AS_HEAP_AGES:
		return &r->ages;
	case AS_HEAP_LIFETIMES:
		return &r->times;
	default:
		return &r->last;
	}
}

void as_heap_bins_make(const struct as_selection *s, enum as_heap_bins_of of,
		       struct as_heap_bins *ret)
{
	*ret = (struct as_heap_bins){.total = 0};
	ROWS(s, row, group, add_bins(ret, bins_of(&row->r, of)));
}

uint64_t as_heap_bins_quantile(const struct as_heap_bins *b, double share)
{
	double sum = 0;

	for (unsigned k = 0; k < AS_HEAP_BINS; k++) {
		sum += (double)b->count[k];
		if (b->count[k] && sum >= share * (double)b->total)
			return as_heap_bin_last(k);
	}
	return 0;
}

/* ---- types ---- */

/* Of one stack, as the plumbing of its inner end tells; NULL: not yet asked. */
struct typing {
	const struct as_model *m;
	struct as_intern names;
	struct as_map64 by_rows; /* stack << 32 | folded stack -> name */
};

/* The last type that the plumbing names, going outwards. */
static void look_at_frame(const struct typing *t, const struct as_m_frame *f, uint32_t n,
			  struct as_buf *out)
{
	for (uint32_t c = 0; c < n; c++) {
		const struct as_m_place *p = &t->m->places.v[f->chain + c];
		const struct as_m_function *fn = &t->m->functions.v[p->function];
		AS_CLEANUP(as_buf_clear) struct as_buf name = {0};
		AS_CLEANUP(as_buf_clear) struct as_buf full = {0};

		as_heap_with_parameters(fn->full, p->generic, &full);
		if (!as_heap_type_of_name(as_buf_str(&full), &name))
			continue;
		as_buf_reset(out);
		as_buf_adds(out, as_buf_str(&name));
	}
}

/* What of the frame at the folded stack's end is plumbing: its chain there is shorter. */
static uint32_t plumbing_places(const struct typing *t, uint32_t stack, uint32_t folded)
{
	const struct as_m_stack *s = &t->m->stacks.v[stack];
	const struct as_m_frame *whole = &t->m->frames.v[s->frame];
	const struct as_m_stack *f = &t->m->stacks.v[folded];

	if (f->parent == s->parent && folded != stack)
		return whole->nchain - t->m->frames.v[f->frame].nchain;
	return whole->nchain;
}

static uint32_t type_of_row(struct typing *t, const struct as_m_heap_row *row)
{
	bool fresh;
	uint64_t *known =
		as_map64_put(&t->by_rows, (uint64_t)row->stack << 32 | row->folded, &fresh);
	AS_CLEANUP(as_buf_clear) struct as_buf name = {0};
	uint32_t at = row->stack;

	if (!fresh)
		return (uint32_t)*known;
	for (; at != AS_NONE && at != row->folded; at = t->m->stacks.v[at].parent) {
		const struct as_m_frame *f = &t->m->frames.v[t->m->stacks.v[at].frame];
		uint32_t n = plumbing_places(t, at, row->folded);

		look_at_frame(t, f, n, &name);
		if (n < f->nchain)
			break;
	}
	return (uint32_t)(*known = as_intern(&t->names, as_buf_str(&name), name.len));
}

static void typing_clear(struct typing *t)
{
	as_intern_clear(&t->names);
	as_map64_clear(&t->by_rows);
}

static int by_weight(const void *pa, const void *pb)
{
	const struct as_heap_type *a = pa, *b = pb;

	if (a->weight != b->weight)
		return a->weight < b->weight ? 1 : -1;
	return strcmp(a->name, b->name);
}

void as_heap_types_make(const struct as_selection *s, struct as_heap_types *ret)
{
	struct typing t = {.m = s->model};

	memset(ret, 0, sizeof *ret);
	ROWS(s, row, group, {
		uint32_t type = type_of_row(&t, row);

		while (ret->v.n <= type)
			as_vec_push(&ret->v, (struct as_heap_type){.name = ""});
		ret->v.v[type].weight += s->model->heap.weight[i_];
		as_heap_add_values(s->model, s->model->heap.row_of[i_], ret->v.v[type].values);
	});
	for (uint32_t i = 0; i < ret->v.n; i++)
		ret->v.v[i].name = as_arena_strdup(&ret->arena, as_intern_get(&t.names, i));
	if (ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof *ret->v.v, by_weight);
	typing_clear(&t);
}

void as_heap_types_clear(struct as_heap_types *t)
{
	as_vec_clear(&t->v);
	as_arena_clear(&t->arena);
}

/* ---- chains ---- */

static void add_chain(struct as_heap_chain *c, const struct as_rec_heap_stack *r)
{
	c->reallocs += r->reallocs;
	c->in_place += r->in_place;
	c->copied_bytes += r->copied_bytes;
	c->chains += r->chains;
	c->first_bytes += r->first_bytes;
	c->ended += r->ended;
	c->last_bytes += r->last_bytes;
	c->last_max_bytes = AS_MAX(c->last_max_bytes, r->last_max_bytes);
	add_bins(&c->last, &r->last);
}

static int by_copied(const void *pa, const void *pb)
{
	const struct as_heap_chain *a = pa, *b = pb;

	if (a->copied_bytes != b->copied_bytes)
		return a->copied_bytes < b->copied_bytes ? 1 : -1;
	if (a->reallocs != b->reallocs)
		return a->reallocs < b->reallocs ? 1 : -1;
	return a->place < b->place ? -1 : a->place > b->place;
}

static const struct as_m_place *innermost(const struct as_selection *s,
					  const struct as_group *g)
{
	const struct as_m_place *const *p;

	for (uint32_t at = g->stack; at != AS_NONE; at = s->model->stacks.v[at].parent) {
		if (as_selection_places(s, s->model->stacks.v[at].frame, &p))
			return p[0];
	}
	return NULL;
}

static bool is_same_place(const struct as_m_place *a, const struct as_m_place *b)
{
	if (!a || !b)
		return a == b;
	return a->function == b->function && a->line == b->line && a->file == b->file;
}

/* Places are the same line where function, file and line are; types differ within one. */
static struct as_heap_chain *chain_of(struct as_heap_chains *ret, struct as_map64 *ids,
				      const struct as_m_place *place, uint32_t type,
				      const struct typing *t)
{
	uint64_t h = as_mix64(place ? (uint64_t)place->function << 32 | place->line : 0) + type;

	for (;; h++) {
		bool fresh;
		uint64_t *at = as_map64_put(ids, h >> 1, &fresh);
		struct as_heap_chain *c;

		if (fresh) {
			const char *name = as_intern_get(&t->names, type);

			*at = ret->v.n;
			as_vec_push(&ret->v,
				    (struct as_heap_chain){
					    .place = place,
					    .type = as_arena_strdup(&ret->arena, name)});
		}
		c = &ret->v.v[*at];
		if (is_same_place(c->place, place) &&
		    strcmp(c->type, as_intern_get(&t->names, type)) == 0)
			return c;
	}
}

void as_heap_chains_make(const struct as_selection *s, struct as_heap_chains *ret)
{
	struct typing t = {.m = s->model};
	struct as_map64 ids = {0};

	memset(ret, 0, sizeof *ret);
	ROWS(s, row, group, {
		if (row->r.reallocs) {
			uint32_t type = type_of_row(&t, row);

			add_chain(chain_of(ret, &ids, innermost(s, &s->groups.v[group]), type,
					   &t),
				  &row->r);
		}
	});
	if (ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof *ret->v.v, by_copied);
	as_map64_clear(&ids);
	typing_clear(&t);
}

void as_heap_chains_clear(struct as_heap_chains *c)
{
	as_vec_clear(&c->v);
	as_arena_clear(&c->arena);
}

uint64_t as_heap_chain_capacity(const struct as_heap_chain *c)
{
	uint64_t bytes = as_heap_bins_quantile(&c->last, COVERED);

	/* No bin is finer than the largest that was seen. */
	return AS_MIN(bytes, c->last_max_bytes);
}

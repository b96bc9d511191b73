/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* CPU time beside what was allocated: see alloc_time.h. */
#include "model/memory/alloc_time.h"

#include <stdlib.h>
#include <string.h>

#include "model/model_priv.h"
#include "model/profile/profile_priv.h"

/* ---- what was allocated, onto rows of CPU time ---- */

struct joiner {
	struct as_build *b;
	uint64_t *values;
	uint32_t *row_of; /* key -> row of its total; AS_NONE */
	uint32_t *seen;   /* per row: the last heap row that was added to it, + 1 */
	size_t nkeys, nrows;
};

/* Nodes of one key have one row: rows of totals first, then those of selfs. */
static void find_rows(struct joiner *j, const struct as_pass *p)
{
	j->nkeys = as_key_count(j->b->p);
	j->nrows = p->nrows / 2;
	j->row_of = as_xreallocarray(NULL, j->nkeys + 1, sizeof *j->row_of);
	memset(j->row_of, 0xff, (j->nkeys + 1) * sizeof *j->row_of);
	for (size_t i = 0; i < p->tree->nodes.n; i++) {
		uint32_t key = p->tree->nodes.v[i].key;

		if (p->self_row[i] != AS_NONE && key < j->nkeys)
			j->row_of[key] = p->self_row[i] - (uint32_t)j->nrows;
	}
}

static void add(struct joiner *j, uint32_t key, uint32_t heap_row, bool self)
{
	uint32_t row = key < j->nkeys ? j->row_of[key] : AS_NONE;

	if (row == AS_NONE)
		return;
	if (self)
		as_heap_add_values(j->b->m, heap_row,
				   j->values + (row + j->nrows) * AS_HEAP_VALUES);
	if (j->seen[row] == heap_row + 1)
		return;
	j->seen[row] = heap_row + 1;
	as_heap_add_values(j->b->m, heap_row, j->values + row * AS_HEAP_VALUES);
}

static void add_stack(struct joiner *j, uint32_t heap_row)
{
	const struct as_model *m = j->b->m;
	const struct as_m_heap_row *r = &m->heap.rows.v[heap_row];
	bool self = true;

	for (uint32_t at = r->folded; at != AS_NONE; at = m->stacks.v[at].parent) {
		const struct as_m_frame *f = &m->frames.v[m->stacks.v[at].frame];
		uint32_t n;
		const struct as_m_place *p = as_filter_places(j->b, f, &n);

		for (uint32_t i = 0; i < n; i++) {
			if (as_filter_hides(j->b, &p[i]))
				continue;
			add(j, as_key_of(j->b, f, &p[i]), heap_row, self);
			self = false;
		}
	}
}

static bool is_kept(const struct as_build *b, const struct as_m_heap_row *r)
{
	if (r->r.domain != 0 || (b->threads && !b->threads[r->r.thread]))
		return false;
	return !b->stacks || (r->folded != AS_NONE && !b->stacks[r->folded]);
}

void as_alloc_values(struct as_build *b, const struct as_pass *p, uint64_t *values)
{
	struct joiner j = {.b = b, .values = values};
	enum as_by by = b->q->by;

	/* what was allocated in a part of the run is not known */
	if (b->q->from_ns || b->q->to_ns)
		return;
	find_rows(&j, p);
	j.seen = as_xcalloc(j.nrows + 1, sizeof *j.seen);
	for (uint32_t i = 0; i < b->m->heap.rows.n; i++) {
		const struct as_m_heap_row *r = &b->m->heap.rows.v[i];

		if (!is_kept(b, r))
			continue;
		if (as_by_groups(by))
			add(&j, (uint32_t)(by == AS_BY_THREAD ? r->r.thread : r->r.process), i,
			    true);
		else
			add_stack(&j, i);
	}
	free(j.row_of);
	free(j.seen);
}

/* ---- by line ---- */

static void take_row(const struct as_row *row, struct as_alloc_time *ret)
{
	struct as_alloc_line l = {
		.name = as_arena_strdup(&ret->arena, row->name),
		.full_name = as_arena_strdup(&ret->arena,
					     row->full_name ? row->full_name : row->name),
		.file = row->file ? as_arena_strdup(&ret->arena, row->file) : "",
		.module = row->module ? as_arena_strdup(&ret->arena, row->module) : "",
		.line = row->line,
		.share = row->self,
	};

	memcpy(l.values, row->self_values, sizeof l.values);
	for (int k = AS_ALLOC_NEW; k < AS_ALLOC_KINDS; k++)
		l.kind_ns[k] = l.values[AS_HEAP_NEW_NS + k - 1];
	as_vec_push(&ret->v, l);
}

static int take_lines(const struct as_model *m, struct as_alloc_time *ret, struct as_error *err)
{
	struct as_query q = {.by = AS_BY_LINE};
	struct as_profile *p = NULL;
	int r = as_profile_make(m, &q, &p, err);

	if (r < 0)
		return r;
	as_vec_foreach (row, &p->rows) {
		if (row->self.value > 0 && row->self_values)
			take_row(row, ret);
	}
	as_vec_foreach (l, &ret->v) {
		for (int k = AS_ALLOC_NEW; k < AS_ALLOC_KINDS; k++)
			ret->kind[k] += p->weight > 0 ? (double)l->kind_ns[k] / p->weight : 0;
	}
	as_profile_free(p);
	return AS_OK;
}

/* The share of all of it, with its interval: one row, as a process stands above all frames. */
static int take_whole(const struct as_model *m, struct as_alloc_time *ret, struct as_error *err)
{
	struct as_query q = {.by = AS_BY_FUNCTION,
			     .shape = AS_SHAPE_TREE,
			     .nodes_only = true,
			     .min_share = 1};
	struct as_profile *p = NULL;
	int r = as_profile_make(m, &q, &p, err);

	if (r < 0)
		return r;
	ret->share = (struct as_share){
		.value = p->weight > 0 ? p->kept_weight / p->weight : 0,
		.samples = p->kept_samples,
		.low = p->nodes.n ? p->nodes.v[0].low : 0,
		.high = p->nodes.n ? p->nodes.v[0].high : 0,
		.deff = 1,
	};
	as_profile_free(p);
	return AS_OK;
}

/* ---- what grows there ---- */

static bool is_place_of(const struct as_model *m, const struct as_heap_chain *c,
			const struct as_alloc_line *l)
{
	const char *file;

	if (!c->place || c->place->line != l->line)
		return false;
	file = c->place->file[0] ? c->place->file : m->functions.v[c->place->function].file;
	return strcmp(m->functions.v[c->place->function].full, l->full_name) == 0 &&
	       strcmp(file, l->file) == 0;
}

static int take_growth(struct as_model *m, struct as_alloc_time *ret, struct as_error *err)
{
	struct as_selection *s;
	int r = as_model_measure(m, AS_MEASURE_ALLOCS, true, err);

	if (r == AS_OK)
		r = as_selection_make(m, NULL, &s, err);
	if (r < 0)
		return r;
	as_heap_chains_make(s, &ret->chains);
	as_selection_free(s);
	as_vec_foreach (l, &ret->v) {
		/* the first is the one that copied most */
		for (size_t i = 0; i < ret->chains.v.n && !l->growth; i++) {
			if (is_place_of(m, &ret->chains.v.v[i], l))
				l->growth = &ret->chains.v.v[i];
		}
	}
	return AS_OK;
}

static bool names_the_kernel(const struct as_model *m)
{
	as_vec_foreach (f, &m->frames) {
		const struct as_m_place *p = &m->places.v[f->chain];

		if (f->flags & AS_FRAME_KERNEL &&
		    !(m->functions.v[p->function].flags & AS_FUNCTION_SYNTHETIC))
			return true;
	}
	return false;
}

int as_alloc_time_make(struct as_model *m, struct as_alloc_time *ret, struct as_error *err)
{
	enum as_measure before = m->measure;
	int r;

	memset(ret, 0, sizeof *ret);
	if (!m->heap.is)
		return as_fail(err, AS_E_USAGE, 0, "this session has no memory");
	r = as_model_measure(m, AS_MEASURE_ALLOC_TIME, true, err);
	if (r < 0)
		return r;
	ret->has_faults = names_the_kernel(m);
	r = take_whole(m, ret, err);
	if (r == AS_OK)
		r = take_lines(m, ret, err);
	if (r == AS_OK)
		r = take_growth(m, ret, err);
	(void)as_model_measure(m, before, true, NULL); /* it was in it */
	if (r < 0)
		as_alloc_time_clear(ret);
	return r;
}

void as_alloc_time_clear(struct as_alloc_time *t)
{
	as_vec_clear(&t->v);
	as_heap_chains_clear(&t->chains);
	as_arena_clear(&t->arena);
}

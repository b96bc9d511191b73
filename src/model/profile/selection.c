/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Samples and stacks that a query keeps: see selection.h. */
#include "model/profile/selection.h"

#include <stdlib.h>
#include <string.h>
#include "model/profile/profile_priv.h"

struct maker {
	struct as_build b; /* the filters' part of it */
	struct as_selection *s;
	struct as_map64 by_key; /* hash of (thread, stack, marker) -> group */
	uint32_t *last; /* per stack: the newest group on it, a good guess for the next */
};

static uint32_t marker_of(const struct as_model *m, const struct as_m_sample *s)
{
	unsigned end = s->end & AS_SAMPLE_END_MASK;

	if (end == AS_END_ROOT && s->stack == AS_NONE)
		end = AS_END_NOSTACK;
	return m->end_function[end];
}

static bool is_group(const struct as_group *g, const struct as_m_sample *s, uint32_t marker)
{
	return g->thread == s->thread && g->stack == s->stack && g->marker == marker;
}

static uint32_t find_group(struct maker *k, const struct as_m_sample *s)
{
	const struct as_model *m = k->s->model;
	uint32_t marker = marker_of(m, s);
	uint32_t *last = &k->last[s->stack == AS_NONE ? m->stacks.n : s->stack];
	uint64_t h;

	if (*last != AS_NONE && is_group(&k->s->groups.v[*last], s, marker))
		return *last;
	h = as_mix64((uint64_t)s->thread << 32 | s->stack) + marker;
	for (;; h++) {
		bool fresh;
		uint64_t *at = as_map64_put(&k->by_key, h >> 1, &fresh);

		if (fresh) {
			*at = k->s->groups.n;
			as_vec_push(&k->s->groups, (struct as_group){.thread = s->thread,
								     .stack = s->stack,
								     .marker = marker});
		}
		if (is_group(&k->s->groups.v[*at], s, marker))
			return *last = (uint32_t)*at;
	}
}

static void group_samples(struct maker *k)
{
	struct as_selection *s = k->s;
	const struct as_model *m = s->model;

	s->group = as_xreallocarray(NULL, s->hi - s->lo + 1, sizeof *s->group);
	k->last = as_xreallocarray(NULL, m->stacks.n + 1, sizeof *k->last);
	memset(k->last, 0xff, (m->stacks.n + 1) * sizeof *k->last);
	for (size_t i = s->lo; i < s->hi; i++) {
		const struct as_m_sample *sample = &m->samples.v[i];
		uint32_t *group = &s->group[i - s->lo];

		*group = AS_NONE;
		if (!as_filter_keeps(&k->b, sample))
			continue;
		*group = find_group(k, sample);
		s->groups.v[*group].samples++;
		s->groups.v[*group].weight += as_model_weight(m, i);
		s->samples++;
		s->weight += as_model_weight(m, i);
	}
	free(k->last);
	as_map64_clear(&k->by_key);
}

/* ---- what is shown of a frame ---- */

static void show_places(struct maker *k)
{
	struct as_selection *s = k->s;
	const struct as_model *m = s->model;
	AS_VEC(const struct as_m_place *) shown = {0};

	s->first = as_xreallocarray(NULL, m->frames.n + 1, sizeof *s->first);
	as_vec_reserve(&shown, m->places.n + 1);
	for (size_t i = 0; i < m->frames.n; i++) {
		uint32_t n;
		const struct as_m_place *p = as_filter_places(&k->b, &m->frames.v[i], &n);

		s->first[i] = (uint32_t)shown.n;
		for (uint32_t c = 0; s->frame_id[i] != AS_NONE && c < n; c++) {
			if (!as_filter_hides(&k->b, &p[c]))
				as_vec_push(&shown, &p[c]);
		}
	}
	s->first[m->frames.n] = (uint32_t)shown.n;
	s->place = shown.v;
}

/* ---- what is needed ---- */

static uint32_t *unused(size_t n)
{
	uint32_t *id = as_xreallocarray(NULL, n + 1, sizeof *id);

	memset(id, 0xff, (n + 1) * sizeof *id);
	return id;
}

/* Marked entries (0) get dense numbers. */
static uint32_t number(uint32_t *id, size_t n)
{
	uint32_t next = 0;

	for (size_t i = 0; i < n; i++) {
		if (id[i] != AS_NONE)
			id[i] = next++;
	}
	return next;
}

static void use_stacks(struct as_selection *s)
{
	const struct as_model *m = s->model;

	s->stack_id = unused(m->stacks.n);
	s->frame_id = unused(m->frames.n);
	s->thread_id = unused(m->threads.n);
	s->process_id = unused(m->processes.n);
	as_vec_foreach (g, &s->groups) {
		s->thread_id[g->thread] = 0;
		s->process_id[m->threads.v[g->thread].process] = 0;
		if (g->stack != AS_NONE)
			s->stack_id[g->stack] = 0;
	}
	for (size_t i = m->stacks.n; i-- > 0;) {
		if (s->stack_id[i] == AS_NONE)
			continue;
		s->frame_id[m->stacks.v[i].frame] = 0;
		if (m->stacks.v[i].parent != AS_NONE)
			s->stack_id[m->stacks.v[i].parent] = 0;
	}
}

static void use_functions(struct as_selection *s)
{
	const struct as_model *m = s->model;

	s->function_id = unused(m->functions.n);
	s->module_id = unused(m->modules.n);
	as_vec_foreach (g, &s->groups) {
		if (g->marker != AS_NONE)
			s->function_id[g->marker] = 0;
	}
	for (size_t i = 0; i < m->frames.n; i++) {
		const struct as_m_place *const *p;
		uint32_t n = as_selection_places(s, (uint32_t)i, &p);

		for (uint32_t c = 0; c < n; c++)
			s->function_id[p[c]->function] = 0;
		if (n && m->frames.v[i].module != AS_NONE)
			s->module_id[m->frames.v[i].module] = 0;
	}
	for (size_t i = 0; i < m->functions.n; i++) {
		if (s->function_id[i] != AS_NONE && m->functions.v[i].module != AS_NONE)
			s->module_id[m->functions.v[i].module] = 0;
	}
}

static void number_all(struct as_selection *s)
{
	const struct as_model *m = s->model;

	s->n_stacks = number(s->stack_id, m->stacks.n);
	s->n_frames = number(s->frame_id, m->frames.n);
	s->n_functions = number(s->function_id, m->functions.n);
	s->n_modules = number(s->module_id, m->modules.n);
	s->n_threads = number(s->thread_id, m->threads.n);
	s->n_processes = number(s->process_id, m->processes.n);
}

int as_selection_make(const struct as_model *m, const struct as_query *q,
		      struct as_selection **ret, struct as_error *err)
{
	struct as_selection *s = as_xcalloc(1, sizeof *s);
	struct maker k = {.s = s};
	int r;

	s->model = m;
	if (q)
		s->query = *q;
	s->query.shape = AS_SHAPE_TREE;
	k.b.m = m;
	k.b.q = &s->query;
	r = as_filter_make(&k.b, err);
	if (r == AS_OK) {
		s->lo = k.b.lo;
		s->hi = k.b.hi;
		group_samples(&k);
		use_stacks(s);
		show_places(&k);
		use_functions(s);
		number_all(s);
	}
	free(k.b.functions);
	free(k.b.threads);
	free(k.b.stacks);
	if (r < 0) {
		as_selection_free(s);
		return r;
	}
	*ret = s;
	return AS_OK;
}

void as_selection_free(struct as_selection *s)
{
	if (!s)
		return;
	as_vec_clear(&s->groups);
	free(s->group);
	free(s->first);
	free(s->place);
	free(s->stack_id);
	free(s->frame_id);
	free(s->function_id);
	free(s->module_id);
	free(s->thread_id);
	free(s->process_id);
	free(s);
}

bool as_selection_is_all(const struct as_selection *s)
{
	return s->samples == s->model->samples.n;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Samples as they were taken, kept while measures make others of them; assay's own taken out. */
#include <stdlib.h>
#include <string.h>

#include "model/model_priv.h"

/* ---- assay's own ---- */

static bool is_own(const struct as_model *m, uint32_t stack)
{
	uint32_t module = m->frames.v[m->stacks.v[stack].frame].module;

	return module != AS_NONE && m->modules.v[module].own;
}

/* Whether the innermost frame of the program's memory is ours, what the kernel did for it included. */
static uint8_t *find_own(const struct as_model *m)
{
	uint8_t *own = as_xcalloc(m->stacks.n + 1, 1);

	for (uint32_t i = 0; i < m->stacks.n; i++) {
		const struct as_m_stack *s = &m->stacks.v[i];

		if (m->frames.v[s->frame].flags & AS_FRAME_KERNEL)
			own[i] = s->parent != AS_NONE && own[s->parent];
		else
			own[i] = is_own(m, i);
	}
	return own;
}

static void drop_samples(struct as_model *m, const uint8_t *own)
{
	size_t kept = 0;

	as_vec_foreach (s, &m->samples) {
		if (s->stack != AS_NONE && own[s->stack]) {
			m->time.own_samples++;
			m->time.own_weight += s->weight;
			continue;
		}
		m->samples.v[kept++] = *s;
	}
	m->samples.n = kept;
}

/* A call of malloc leads through our code: without it stacks are as they were. */
static void drop_frames(struct as_model *m)
{
	AS_CLEANUP(as_free_autop)
	uint32_t *to = as_xreallocarray(NULL, m->stacks.n + 1, sizeof *to);

	for (uint32_t i = 0; i < m->stacks.n; i++) {
		struct as_m_stack *s = &m->stacks.v[i];

		if (s->parent != AS_NONE)
			s->parent = to[s->parent];
		to[i] = is_own(m, i) ? s->parent : i;
	}
	as_vec_foreach (s, &m->samples) {
		if (s->stack != AS_NONE)
			s->stack = to[s->stack];
	}
}

void as_time_complete(struct as_model *m)
{
	AS_CLEANUP(as_free_autop) uint8_t *own = NULL;
	bool any = false;

	m->time.is = !m->heap.is || m->samples.n || m->recording.rate_hz;
	as_vec_foreach (k, &m->modules)
		any |= k->own;
	if (!any || !m->heap.is)
		return;
	own = find_own(m);
	drop_samples(m, own);
	drop_frames(m);
}

/* ---- measures ---- */

/* The first measure that makes others of them: from here on they are kept apart. */
static void keep(struct as_model *m)
{
	if (m->measure != AS_MEASURE_TIME)
		return;
	as_vec_clear(&m->time.samples);
	memcpy(&m->time.samples, &m->samples, sizeof m->time.samples);
	memset(&m->samples, 0, sizeof m->samples);
}

void as_time_restore(struct as_model *m)
{
	keep(m);
	m->samples.n = 0;
	as_vec_reserve(&m->samples, m->time.samples.n);
	as_vec_foreach (s, &m->time.samples)
		as_vec_push(&m->samples, *s);
	m->heap.at = NULL;
	m->measure = AS_MEASURE_TIME;
}

void as_time_of_allocators(struct as_model *m, bool fold)
{
	m->measure = AS_MEASURE_ALLOC_TIME;
	as_alloc_find(m);
	as_vec_foreach (s, &m->samples) {
		if (fold && s->stack != AS_NONE)
			s->stack = m->time.folded[s->stack];
	}
}

void as_time_clear(struct as_model *m)
{
	as_vec_clear(&m->time.samples);
	free(m->time.kind);
	free(m->time.folded);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* HEAP records -> the model. */
#include <stdlib.h>
#include <string.h>
#include "model/model_priv.h"

#define MARKS_MAX 100000u

static int on_heap(void *ctx, const struct as_rec_heap *r)
{
	struct as_loader *l = ctx;

	l->m->heap.is = true;
	l->m->heap.info = *r;
	return AS_OK;
}

/* A histogram: a mask and as many counts as it has bits. Anything else is none. */
static struct as_u64s histogram(struct as_loader *l, const struct as_u64s *s)
{
	size_t bytes = s->n * sizeof *s->v;
	uint64_t *v;

	if (s->n == 0 || (size_t)__builtin_popcountll(s->v[0]) + 1 != s->n)
		return (struct as_u64s){NULL, 0};
	v = as_arena_alloc(&l->m->arena, bytes);
	memcpy(v, s->v, bytes);
	return (struct as_u64s){v, s->n};
}

static int on_row(void *ctx, const struct as_rec_heap_stack *r)
{
	struct as_loader *l = ctx;
	struct as_model *m = l->m;
	struct as_m_heap_row row = {.r = *r, .stack = (uint32_t)r->stack_rel - 1};

	if (r->id > m->heap.rows.n || r->id >= AS_NONE || r->process >= m->processes.n ||
	    r->thread >= m->threads.n || r->stack_rel > m->stacks.n || r->domain > 1 ||
	    r->origin > r->id)
		return as_loader_damaged(l);
	if (r->end >= AS_END_COUNT_)
		row.r.end = AS_END_BAD;
	row.folded = row.stack;
	row.r.sizes = histogram(l, &r->sizes);
	row.r.ages = histogram(l, &r->ages);
	row.r.times = histogram(l, &r->times);
	row.r.last = histogram(l, &r->last);
	m->heap.is = true;
	if (r->id < m->heap.rows.n)
		m->heap.rows.v[r->id] = row;
	else
		as_vec_push(&m->heap.rows, row);
	return as_loader_charge(
		l, sizeof row + 8 * (r->sizes.n + r->ages.n + r->times.n + r->last.n));
}

static int on_process(void *ctx, const struct as_rec_heap_process *r)
{
	struct as_loader *l = ctx;

	if (r->process >= l->m->processes.n)
		return as_loader_damaged(l);
	as_vec_foreach (p, &l->m->heap.processes) {
		if (p->process == r->process) {
			*p = *r;
			return AS_OK;
		}
	}
	l->m->heap.is = true;
	as_vec_push(&l->m->heap.processes, *r);
	return as_loader_charge(l, sizeof *r);
}

static int on_layer(void *ctx, const struct as_rec_heap_layer *r)
{
	struct as_loader *l = ctx;
	struct as_m_heap_layer layer = {
		.process = (uint32_t)r->process,
		.module = (uint32_t)r->module - 1,
		.layer = as_arena_strndup(&l->m->arena, r->layer.p, r->layer.n),
		.function = as_arena_strndup(&l->m->arena, r->function.p, r->function.n),
		.events = r->events,
	};

	if (r->process >= l->m->processes.n || r->module > l->m->modules.n)
		return as_loader_damaged(l);
	as_vec_push(&l->m->heap.layers, layer);
	return as_loader_charge(l, sizeof layer + r->layer.n + r->function.n);
}

static int on_time(void *ctx, const struct as_rec_heap_time *r)
{
	struct as_loader *l = ctx;

	if (r->process >= l->m->processes.n)
		return as_loader_damaged(l);
	as_vec_push(&l->m->heap.times, *r);
	return as_loader_charge(l, sizeof *r);
}

static int on_flow(void *ctx, const struct as_rec_heap_flow *r)
{
	struct as_loader *l = ctx;

	if (r->source >= l->m->threads.n || r->by >= l->m->threads.n)
		return as_loader_damaged(l);
	as_vec_push(&l->m->heap.flows, *r);
	return as_loader_charge(l, sizeof *r);
}

static int on_mark(void *ctx, const struct as_rec_heap_mark *r)
{
	struct as_loader *l = ctx;
	struct as_m_heap_mark mark = {.name = as_loader_string(l, r->name), .r = *r};
	uint64_t *v;

	if (r->process >= l->m->processes.n || l->m->heap.marks.n >= MARKS_MAX)
		return as_loader_damaged(l);
	if (as_loader_charge(l, sizeof mark + 8 * r->stacks.n) < 0)
		return AS_E_LIMIT;
	v = as_arena_alloc(&l->m->arena, r->stacks.n * sizeof *v + 1);
	if (r->stacks.n)
		memcpy(v, r->stacks.v, r->stacks.n * sizeof *v);
	mark.r.stacks.v = v;
	as_vec_push(&l->m->heap.marks, mark);
	return AS_OK;
}

void as_load_heap(struct as_record_sink *sink)
{
	sink->heap = on_heap;
	sink->heap_stack = on_row;
	sink->heap_process = on_process;
	sink->heap_layer = on_layer;
	sink->heap_time = on_time;
	sink->heap_flow = on_flow;
	sink->heap_mark = on_mark;
	as_load_leaks(sink);
}

void as_heap_clear(struct as_model *m)
{
	as_vec_clear(&m->heap.rows);
	as_vec_clear(&m->heap.processes);
	as_vec_clear(&m->heap.layers);
	as_vec_clear(&m->heap.times);
	as_vec_clear(&m->heap.flows);
	as_vec_clear(&m->heap.marks);
	as_leaks_clear_model(&m->heap.look);
	free(m->heap.row_of);
	free(m->heap.weight);
}

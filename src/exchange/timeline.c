/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Samples by thread, paths, losses: see timeline_priv.h. */
#include "exchange/timeline_priv.h"

#include <stdlib.h>
#include <string.h>

void as_by_thread_init(struct as_by_thread *b, const struct as_selection *s)
{
	const struct as_model *m = s->model;
	uint32_t n = (uint32_t)m->threads.n;

	b->first = as_xcalloc((size_t)n + 2, sizeof *b->first);
	b->at = as_xreallocarray(NULL, s->samples + 1, sizeof *b->at);
	for (size_t i = s->lo; i < s->hi; i++) {
		if (as_sample_group(s, (uint32_t)i) != AS_NONE)
			b->first[m->samples.v[i].thread + 2]++;
	}
	for (uint32_t t = 2; t <= n; t++)
		b->first[t] += b->first[t - 1];
	/* first[t + 1] is where thread t writes next, and in the end where it stops */
	for (size_t i = s->lo; i < s->hi; i++) {
		if (as_sample_group(s, (uint32_t)i) != AS_NONE)
			b->at[b->first[m->samples.v[i].thread + 1]++] = (uint32_t)i;
	}
}

void as_by_thread_clear(struct as_by_thread *b)
{
	free(b->first);
	free(b->at);
}

static int by_process_and_tid(const void *pa, const void *pb, void *model)
{
	const struct as_model *m = model;
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
	const struct as_m_thread *ta = &m->threads.v[a], *tb = &m->threads.v[b];
	bool main_a = m->processes.v[ta->process].pid == ta->tid;
	bool main_b = m->processes.v[tb->process].pid == tb->tid;

	if (ta->process != tb->process)
		return ta->process < tb->process ? -1 : 1;
	if (main_a != main_b)
		return main_a ? -1 : 1;
	if (ta->tid != tb->tid)
		return ta->tid < tb->tid ? -1 : 1;
	return a < b ? -1 : a > b;
}

uint32_t *as_threads_in_order(const struct as_selection *s, size_t *ret_n)
{
	const struct as_model *m = s->model;
	uint32_t *v = as_xreallocarray(NULL, (size_t)s->n_threads + 1, sizeof *v);
	size_t n = 0;

	for (uint32_t t = 0; t < m->threads.n; t++) {
		if (s->thread_id[t] != AS_NONE)
			v[n++] = t;
	}
	qsort_r(v, n, sizeof *v, by_process_and_tid, (void *)(uintptr_t)m);
	*ret_n = n;
	return v;
}

unsigned as_pid_round(const struct as_model *m, uint32_t process)
{
	unsigned before = 0;

	for (uint32_t p = 0; p < process; p++)
		before += m->processes.v[p].pid == m->processes.v[process].pid;
	return before;
}

unsigned as_tid_round(const struct as_model *m, const uint32_t *threads, size_t i)
{
	const struct as_m_thread *t = &m->threads.v[threads[i]];
	unsigned before = 0;

	/* their order puts those of one number together */
	for (; i > 0; i--, before++) {
		const struct as_m_thread *u = &m->threads.v[threads[i - 1]];

		if (u->process != t->process || u->tid != t->tid)
			break;
	}
	return before;
}

void as_path_of(const struct as_selection *s, uint32_t group, struct as_path *ret)
{
	const struct as_model *m = s->model;
	const struct as_group *g = &s->groups.v[group];

	ret->v.n = ret->stacks.n = 0;
	if (g->marker != AS_NONE)
		as_vec_push(&ret->v, g->marker);
	for (uint32_t at = g->stack; at != AS_NONE; at = m->stacks.v[at].parent)
		as_vec_push(&ret->stacks, at);
	while (ret->stacks.n) {
		uint32_t frame = m->stacks.v[ret->stacks.v[--ret->stacks.n]].frame, n;
		const struct as_m_place *const *p;

		for (n = as_selection_places(s, frame, &p); n > 0; n--)
			as_vec_push(&ret->v, p[n - 1]->function);
	}
}

void as_path_clear(struct as_path *p)
{
	as_vec_clear(&p->v);
	as_vec_clear(&p->stacks);
}

/* ---- losses ---- */

#define TICK_NS 1000000000ull

static void add_loss(struct as_lost *to, const struct as_lost *more)
{
	to->count += more->count;
	to->end_ns = AS_MAX(to->end_ns, more->end_ns);
}

/* Losses that began in one second, of all CPUs, become one. */
void as_lost_list_make(const struct as_model *m, struct as_lost_list *ret)
{
	uint64_t told = 0, all = m->lost_kernel + m->lost_queue;
	size_t n = 0;

	*ret = (struct as_lost_list){0};
	as_vec_foreach (l, &m->losses) {
		uint64_t from = as_since_start(m, l->from_ns), to = as_since_start(m, l->to_ns);

		as_vec_push(&ret->v, (struct as_lost){from, AS_MAX(to, from + 1), l->count});
	}
	for (size_t i = 0; i < ret->v.n; i++) {
		struct as_lost *l = &ret->v.v[i];

		told += l->count;
		if (n && l->time_ns / TICK_NS == ret->v.v[n - 1].time_ns / TICK_NS)
			add_loss(&ret->v.v[n - 1], l);
		else
			ret->v.v[n++] = *l;
	}
	ret->v.n = n;
	ret->total = AS_MAX(all, told);
	if (ret->total > told) { /* counted, but no tick says when */
		as_vec_push(&ret->v, (struct as_lost){0});
		memmove(ret->v.v + 1, ret->v.v, n * sizeof *ret->v.v);
		ret->v.v[0] = (struct as_lost){0, as_since_start(m, as_recording_end(m)),
					       ret->total - told};
	}
}

void as_lost_list_clear(struct as_lost_list *l)
{
	as_vec_clear(&l->v);
}

uint64_t as_recording_end(const struct as_model *m)
{
	uint64_t last = m->samples.n ? m->samples.v[m->samples.n - 1].time_ns : 0;

	if (m->has_summary && m->summary.end_ns > last)
		last = m->summary.end_ns;
	return AS_MAX(last, m->recording.start_ns);
}

/* ---- numbers ---- */

void as_put_u64(struct as_buf *b, uint64_t v)
{
	char text[20], *p = text + sizeof text;

	do {
		*--p = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	as_buf_add(b, p, (size_t)(text + sizeof text - p));
}

void as_put_scaled(struct as_buf *b, uint64_t v, unsigned digits)
{
	uint64_t unit = 1, rest;
	char text[10];
	unsigned n = digits;

	for (unsigned i = 0; i < digits; i++)
		unit *= 10;
	as_put_u64(b, v / unit);
	rest = v % unit;
	if (!rest)
		return;
	for (unsigned i = digits; i-- > 0; rest /= 10)
		text[i] = (char)('0' + rest % 10);
	while (text[n - 1] == '0')
		n--;
	as_buf_addc(b, '.');
	as_buf_add(b, text, n);
}

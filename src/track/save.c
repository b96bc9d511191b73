/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Heaps into the session: what each program, thread, module and stack is called there, and the sums. */
#include "track/track_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/sys.h"

#define BYTES_A_CALL   256u  /* so many bytes weigh as much as one more allocation */
#define CALLS_A_SAMPLE 8192u /* beside CPU samples: about the time that one stands for */

/* ---- where code was ---- */

static bool is_written(const struct as_track_area *a, const struct as_mapping *m)
{
	as_vec_foreach (w, &a->maps_written) {
		if (w->start == m->start && w->end == m->end && w->module == m->module &&
		    w->bias == m->bias)
			return true;
	}
	return false;
}

/* Of the program itself; forks have the same. */
void as_track_save_maps(struct as_track *k, struct as_track_area *a)
{
	const struct as_process *p = as_image_process(k->im, a->pid);

	for (size_t i = 0; p && i < p->nmap; i++) {
		const struct as_mapping *m = &p->map[i];

		if (is_written(a, m))
			continue;
		as_vec_push(&a->maps_written, *m);
		as_write_map(k->w, &(struct as_rec_map){
					   .time_ns = as_now_ns(),
					   .process = a->id,
					   .module = as_recorder_module(k->rec, m->module),
					   .avma = m->start,
					   .size_bytes = m->end - m->start,
					   .off = m->off,
					   .svma = m->start - m->bias + 1});
	}
}

/* ---- stacks ---- */

static struct as_raw_frame raw_frame(const struct as_heap_frame *f)
{
	return (struct as_raw_frame){
		.addr = f->addr,
		.module = f->module == AS_HEAP_NONE ? AS_NO_MODULE : f->module,
		.flags = f->flags,
	};
}

void as_track_push_stacks(struct as_track_area *a)
{
	const struct as_heap_stacks *s = &a->stacks;

	while (a->node_of.n < s->stacks.n) {
		const struct as_heap_stack *k = &s->stacks.v[a->node_of.n];
		const struct as_raw_frame f = raw_frame(&s->frames.v[k->frame]);
		uint32_t up = k->parent == AS_HEAP_NONE ? 0 : a->node_of.v[k->parent];

		as_vec_push(&a->node_of, as_recorder_push(a->k->rec, up, &f));
	}
}

/* Which functions' text is to be kept: those that allocate. */
static void weigh_stacks(struct as_track_area *a, const struct as_heap *h)
{
	as_vec_foreach (t, &h->tallies) {
		const struct as_heap_stacks *s = &a->stacks;
		struct as_raw_frame leaf;
		uint64_t n;

		if (t->key.stack == AS_HEAP_NO_STACK)
			continue;
		leaf = raw_frame(&s->frames.v[s->stacks.v[t->key.stack].frame]);
		n = t->allocs + t->bytes / BYTES_A_CALL;
		if (a->k->engine.collector)
			n = n / CALLS_A_SAMPLE + 1;
		as_recorder_weigh(a->k->rec, a->node_of.v[t->key.stack], &leaf, n);
	}
}

/* ---- processes ---- */

/* Those that have named themselves since they were written. */
static void write_names(struct as_track_area *a, struct as_track_process *p)
{
	struct as_session_writer *w = a->k->w;

	for (size_t i = 0; i < p->threads_written; i++) {
		struct as_track_thread *t = &p->threads.v[i];

		if (!t->renamed)
			continue;
		t->renamed = false;
		as_write_name(w, &(struct as_rec_name){.time_ns = as_now_ns(),
						       .thread = p->ids.v[i],
						       .name = as_session_string(
							       w, t->name, strlen(t->name))});
	}
}

void as_track_name_threads(struct as_track_area *a, struct as_track_process *p)
{
	if (p->id == AS_RECORDER_NONE && p->pid == (uint32_t)a->pid)
		p->id = a->id;
	else if (p->id == AS_RECORDER_NONE)
		p->id = as_recorder_add_process(a->k->rec, p->start_ns, (pid_t)p->pid, a->id,
						p->name);
	for (; p->threads_written < p->threads.n; p->threads_written++) {
		const struct as_track_thread *t = &p->threads.v[p->threads_written];

		as_vec_push(&p->ids,
			    as_recorder_add_thread(a->k->rec, t->start_ns, p->id, (pid_t)t->tid,
						   t->name[0] ? t->name : p->name));
		p->heap->threads.v[p->threads_written].number = p->ids.v[p->threads_written];
	}
}

static uint32_t module_of(const struct as_track *k, const char *path)
{
	for (uint32_t i = 0; i < as_image_nmodules(k->im); i++) {
		if (strcmp(as_image_module(k->im, i)->path, path) == 0)
			return as_recorder_module(k->rec, i);
	}
	return AS_RECORDER_NONE;
}

static void write_layers(struct as_track_area *a, uint32_t process,
			 const struct as_heap_drained *d)
{
	for (size_t i = 0; i < as_hook_count(a->h); i++) {
		struct as_hook_function_info f;
		uint32_t module;

		as_hook_get(a->h, i, &f);
		if (f.id >= d->hook_events.n || !d->hook_events.v[f.id])
			continue;
		module = module_of(a->k, f.module);
		as_write_heap_layer(
			a->k->w,
			&(struct as_rec_heap_layer){
				.process = process,
				.layer = AS_STR(f.layer),
				.module = module == AS_RECORDER_NONE ? 0 : module + 1ull,
				.function = AS_STR(f.name),
				.events = d->hook_events.v[f.id]});
	}
}

void as_track_save(struct as_track_area *a, struct as_track_process *p,
		   const struct as_heap_drained *d, bool last)
{
	struct as_heap_writer *o = &a->k->writer;

	as_track_events_save(a);
	as_track_name_threads(a, p);
	write_names(a, p);
	as_track_push_stacks(a);
	o->stacks = &a->stacks;
	o->stack_of = a->node_of.v;
	as_heap_write_so_far(o, p->id, d, &p->written, last);
	if (!last)
		return;
	weigh_stacks(a, p->heap);
	write_layers(a, p->id, d);
}

static void save_area(struct as_track_area *a)
{
	const struct as_heap_drained *d;
	size_t n;

	as_heap_drain_settle(a->drain, as_now_ns());
	d = as_heap_drain_processes(a->drain, &n);
	for (size_t i = 0; i < n; i++) {
		as_vec_foreach (p, &a->processes) {
			if ((*p)->heap != d[i].heap)
				continue;
			as_heap_settle((*p)->heap);
			as_track_save(a, *p, &d[i], false);
		}
	}
	as_heap_drain_hide(a->drain);
}

uint64_t as_track_rows(struct as_track *k)
{
	uint64_t rows = 0;

	as_vec_foreach (a, &k->areas) {
		const struct as_heap_drained *d;
		size_t n;

		pthread_mutex_lock(&(*a)->lock);
		d = as_heap_drain_processes((*a)->drain, &n);
		for (size_t i = 0; i < n; i++)
			rows += d[i].heap->tallies.n;
		pthread_mutex_unlock(&(*a)->lock);
	}
	return rows;
}

void as_track_save_all(struct as_track *k)
{
	as_vec_foreach (a, &k->areas) {
		pthread_mutex_lock(&(*a)->lock);
		save_area(*a);
		pthread_mutex_unlock(&(*a)->lock);
	}
	as_session_writer_flush(k->w);
}

void as_track_save_unseen(struct as_track_area *a)
{
	for (size_t i = 0; i < as_hook_count(a->h); i++) {
		struct as_hook_function_info f;
		const char *why;

		as_hook_get(a->h, i, &f);
		if (f.group != AS_HOOKS_HEAP || f.state == AS_HOOK_ACTIVE ||
		    f.state == AS_HOOK_GONE)
			continue;
		why = f.state == AS_HOOK_CHANGED   ? "its first bytes are not those of the file"
		      : f.state == AS_HOOK_TOO_FAR ? "no room for code near it"
						   : as_detour_reason(f.verdict);
		as_recorder_note(a->k->rec, 1, f.module, "", "calls of %s were not seen: %s",
				 f.name, why);
	}
}

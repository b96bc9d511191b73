/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One record of a ring, applied to the heap of its process. */
#include <string.h>
#include <sys/mman.h>
#include "heap/drain_priv.h"

enum { HOOKS_MAX = 1 << 16 };

uint32_t as_drain_units(uint32_t kind)
{
	static const uint8_t units[AS_RT_REC_KINDS] = {
		[AS_RT_REC_ALLOC] = 3,   [AS_RT_REC_FREE] = 2,   [AS_RT_REC_REALLOC_BEGIN] = 2,
		[AS_RT_REC_REALLOC] = 4, [AS_RT_REC_MMAP] = 4,   [AS_RT_REC_MUNMAP] = 3,
		[AS_RT_REC_MREMAP] = 4,  [AS_RT_REC_NODE] = 2,   [AS_RT_REC_RESET] = 1,
		[AS_RT_REC_TIME] = 3,    [AS_RT_REC_THREAD] = 3, [AS_RT_REC_SYNC] = 4,
		[AS_RT_REC_MARK] = 5,    [AS_RT_REC_SUM] = 2,
	};

	return kind < AS_RT_REC_KINDS ? units[kind] : 0;
}

bool as_drain_is_stamped(uint32_t kind)
{
	return kind != AS_RT_REC_NODE && kind != AS_RT_REC_RESET && kind != AS_RT_REC_SUM;
}

static struct as_drain_process *process_of(struct as_heap_drain *d, struct as_drain_ring *r)
{
	return r->process == AS_HEAP_NONE ? NULL : &d->processes.v[r->process];
}

static uint32_t find_process(struct as_heap_drain *d, uint32_t pid, uint64_t time_ns)
{
	struct as_heap *heap;

	for (uint32_t i = 0; i < d->processes.n; i++) {
		if (d->processes.v[i].pub.pid == pid)
			return d->processes.v[i].pub.heap ? i : AS_HEAP_NONE;
	}
	heap = d->host.process(d->host.ctx, pid, time_ns);
	if (heap)
		as_heap_sample(heap, d->area.control->sample_bytes);
	as_vec_push(&d->processes,
		    (struct as_drain_process){.pub = {.pid = pid, .heap = heap}, .turn = 1});
	return heap ? (uint32_t)d->processes.n - 1 : AS_HEAP_NONE;
}

/* A thread whose ring is recycled within one thread's life is the same thread. */
static uint32_t find_thread(struct as_heap_drain *d, struct as_drain_process *p, uint32_t tid,
			    uint64_t time_ns)
{
	bool fresh;
	uint64_t *at = as_map64_put(&p->thread_of, tid, &fresh);

	if (fresh)
		*at = as_heap_thread(p->pub.heap,
				     d->host.thread(d->host.ctx, p->pub.pid, tid, time_ns));
	return (uint32_t)*at;
}

static void begin_thread(struct as_heap_drain *d, struct as_drain_ring *r,
			 const struct as_rt_rec_thread *rec)
{
	as_drain_nodes_reset(r);
	r->resets = 0;
	r->time_ns = AS_MAX(r->time_ns, rec->clock_ns);
	r->tid = rec->tid;
	if (r->process != AS_HEAP_NONE)
		d->processes.v[r->process].nrings--;
	r->process = find_process(d, rec->pid, rec->clock_ns);
	if (r->process == AS_HEAP_NONE)
		return;
	d->processes.v[r->process].nrings++;
	r->thread = find_thread(d, &d->processes.v[r->process], rec->tid, rec->clock_ns);
	as_heap_time(d->processes.v[r->process].pub.heap, r->thread, r->time_ns);
}

/* With sampling the heap's own count is an estimate. */
static void follow_serial(struct as_heap *h, const struct as_drain_ring *r, uint32_t serial)
{
	if (!h->sample_bytes)
		as_heap_serial(h, r->thread, serial);
}

/* Its end was read before. */
static bool was_ended(struct as_heap_drain *d, struct as_drain_ring *r,
		      const struct as_rt_rec_alloc *rec, uint32_t tally)
{
	struct as_heap *h = process_of(d, r)->pub.heap;
	struct as_drain_orphan o;
	struct as_heap_late l;

	if (!as_orphan_take(d, r->process, rec->ptr, rec->after ? rec->after : rec->stamp, &o))
		return false;
	follow_serial(h, r, rec->serial);
	l = (struct as_heap_late){
		.tally = tally,
		.serial = rec->serial,
		.size_bytes = rec->size_bytes,
		.by = o.thread,
		.change = o.kind == AS_DRAIN_CHANGED ? &o.change : NULL,
		.change_tally = o.tally,
	};
	if (o.kind == AS_DRAIN_BEGUN)
		as_heap_alloc_held(h, &l, rec->ptr);
	else
		as_heap_late(h, &l);
	return true;
}

/* It was given out before, and is told now. */
static void on_late_alloc(struct as_heap_drain *d, struct as_drain_ring *r,
			  const struct as_rt_rec_alloc *rec, uint32_t tally)
{
	struct as_heap *h = process_of(d, r)->pub.heap;

	if (r->pending.blocks)
		as_pairs_note_pending(d, r, r->pending.blocks - 1,
				      r->pending.bytes -
					      AS_MIN(r->pending.bytes, rec->size_bytes));
	if (as_heap_is_live(h, rec->ptr)) { /* its end was lost: what is there came later */
		as_heap_late(h, &(struct as_heap_late){.tally = tally,
						       .serial = rec->serial,
						       .size_bytes = rec->size_bytes,
						       .by = r->thread});
		h->unmatched_allocs++;
		return;
	}
	as_heap_alloc_late(h, tally, rec->ptr, rec->size_bytes, rec->serial);
}

void as_drain_alloc(struct as_heap_drain *d, struct as_drain_ring *r,
		    const struct as_rt_rec_alloc *rec)
{
	struct as_heap *h = process_of(d, r)->pub.heap;
	uint32_t tally = as_drain_tally(d, r, rec->node, AS_HEAP_BLOCKS);

	follow_serial(h, r, rec->serial - (rec->ptr != 0));
	if (rec->ptr && was_ended(d, r, rec, tally))
		return;
	if (rec->ptr && rec->after) {
		on_late_alloc(d, r, rec, tally);
		return;
	}
	if (rec->ptr)
		as_heap_end_unseen(h, rec->ptr); /* if one is there still */
	as_heap_alloc(h, tally, rec->ptr, rec->size_bytes);
}

static void on_free(struct as_heap_drain *d, struct as_drain_ring *r,
		    const struct as_rt_rec_free *rec)
{
	struct as_heap *h = process_of(d, r)->pub.heap;

	follow_serial(h, r, rec->serial);
	if (as_heap_free(h, r->thread, rec->ptr) || h->sample_bytes)
		return; /* with sampling most likely another block in the same place: not told */
	as_orphan_add(d, &(struct as_drain_orphan){.kind = AS_DRAIN_FREED,
						   .ptr = rec->ptr,
						   .stamp = rec->stamp,
						   .process = r->process,
						   .thread = r->thread});
}

static void on_begin(struct as_heap_drain *d, struct as_drain_ring *r,
		     const struct as_rt_rec_realloc_begin *rec)
{
	struct as_heap *h = process_of(d, r)->pub.heap;

	if (as_heap_realloc_begin(h, r->thread, rec->ptr) || h->sample_bytes)
		return;
	as_orphan_add(d, &(struct as_drain_orphan){.kind = AS_DRAIN_BEGUN,
						   .ptr = rec->ptr,
						   .stamp = rec->stamp,
						   .process = r->process,
						   .thread = r->thread});
}

/* Of a block whose beginning is still to be read. */
static void change_orphan(struct as_heap_drain *d, struct as_drain_orphan *o, uint32_t tally,
			  const struct as_heap_change *c)
{
	struct as_heap *h = d->processes.v[o->process].pub.heap;

	o->kind = c->new_ptr ? AS_DRAIN_CHANGED : AS_DRAIN_FREED;
	o->change = *c;
	o->tally = tally;
	if (c->new_ptr || c->size_bytes)
		as_heap_realloc_early(h, tally, c);
	if (c->new_ptr || !c->size_bytes)
		as_orphan_add(d, o); /* where it failed the block stays */
}

static void on_realloc(struct as_heap_drain *d, struct as_drain_ring *r,
		       const struct as_rt_rec_realloc *rec)
{
	struct as_heap *h = process_of(d, r)->pub.heap;
	struct as_heap_change c = {rec->old, rec->new_ptr, rec->size_bytes,
				   rec->flags & AS_RT_REALLOC_UNSAMPLED};
	uint32_t tally = as_drain_tally(d, r, rec->node, AS_HEAP_BLOCKS);
	struct as_drain_orphan o;

	follow_serial(h, r, rec->serial - (rec->new_ptr != 0));
	if (rec->new_ptr && rec->new_ptr != rec->old && !c.unsampled)
		as_heap_end_unseen(h, rec->new_ptr);
	if (rec->old && as_orphan_take_begun(d, r, rec->old, &o))
		change_orphan(d, &o, tally, &c);
	else
		as_heap_realloc(h, tally, &c);
}

/* ---- mappings ---- */

static void on_mmap(struct as_heap_drain *d, struct as_drain_ring *r,
		    const struct as_rt_rec_mmap *rec)
{
	struct as_heap *h = process_of(d, r)->pub.heap;

	as_heap_map(h, as_drain_tally(d, r, rec->node, AS_HEAP_MAPPINGS), rec->addr,
		    rec->length_bytes);
}

static void on_munmap(struct as_heap_drain *d, struct as_drain_ring *r,
		      const struct as_rt_rec_munmap *rec)
{
	struct as_heap *h = process_of(d, r)->pub.heap;

	if (rec->failed)
		as_heap_unmap_failed(h, rec->addr, rec->length_bytes);
	else
		as_heap_unmap(h, rec->addr, rec->length_bytes);
}

static void on_mremap(struct as_heap_drain *d, struct as_drain_ring *r,
		      const struct as_rt_rec_mremap *rec)
{
	struct as_heap *h = process_of(d, r)->pub.heap;

	as_heap_unmap(h, rec->old, rec->old_bytes);
	as_heap_map(h, as_drain_tally(d, r, rec->node, AS_HEAP_MAPPINGS), rec->new_addr,
		    rec->new_bytes);
}

/* ---- any record ---- */

void as_drain_count_hook(struct as_drain_process *p, uint16_t hook, uint64_t n)
{
	while (p->pub.hook_events.n <= hook)
		as_vec_push(&p->pub.hook_events, 0);
	p->pub.hook_events.v[hook] += n;
}

static void apply_event(struct as_heap_drain *d, struct as_drain_ring *r,
			const union as_drain_record *rec)
{
	switch (rec->head.kind) {
	case AS_RT_REC_ALLOC:
		as_drain_alloc(d, r, &rec->alloc);
		break;
	case AS_RT_REC_FREE:
		on_free(d, r, &rec->free);
		break;
	case AS_RT_REC_REALLOC_BEGIN:
		on_begin(d, r, &rec->begin);
		break;
	case AS_RT_REC_REALLOC:
		on_realloc(d, r, &rec->realloc);
		break;
	case AS_RT_REC_MMAP:
		on_mmap(d, r, &rec->mmap);
		break;
	case AS_RT_REC_MUNMAP:
		on_munmap(d, r, &rec->munmap);
		break;
	default:
		on_mremap(d, r, &rec->mremap);
		break;
	}
}

static void on_time(struct as_heap_drain *d, struct as_drain_ring *r,
		    const struct as_rt_rec_time *rec)
{
	struct as_drain_process *p = process_of(d, r);

	if (rec->clock_ns <= r->time_ns)
		return;
	r->time_ns = rec->clock_ns;
	if (!p)
		return;
	follow_serial(p->pub.heap, r, rec->serial);
	as_pairs_grant(d, r, rec);
	as_heap_time(p->pub.heap, r->thread, r->time_ns);
}

static void on_mark(struct as_heap_drain *d, struct as_drain_ring *r,
		    const struct as_rt_rec_mark *rec)
{
	struct as_drain_process *p = process_of(d, r);

	if (!p)
		return;
	as_heap_drain_show(d); /* other threads' blocks; this one's are told */
	as_heap_mark(p->pub.heap, rec->name, AS_MIN(rec->bytes, AS_RT_MARK_BYTES));
	as_heap_drain_hide(d);
}

void as_drain_apply(struct as_heap_drain *d, struct as_drain_ring *r,
		    const union as_drain_record *rec)
{
	struct as_drain_process *p = process_of(d, r);

	switch (rec->head.kind) {
	case AS_RT_REC_THREAD:
		begin_thread(d, r, &rec->thread);
		return;
	case AS_RT_REC_NODE:
		as_drain_node_add(r, &rec->node);
		return;
	case AS_RT_REC_RESET:
		as_drain_nodes_reset(r);
		r->resets++;
		return;
	case AS_RT_REC_SUM:
		as_pairs_sum(d, r, &rec->sum);
		return;
	case AS_RT_REC_SYNC:
		if (d->host.sync)
			d->host.sync(d->host.ctx, &rec->sync);
		return;
	case AS_RT_REC_MARK:
		on_mark(d, r, &rec->mark);
		return;
	case AS_RT_REC_TIME:
		on_time(d, r, &rec->time);
		return;
	default:
		break;
	}
	if (!p)
		return;
	apply_event(d, r, rec);
	if (rec->head.kind != AS_RT_REC_REALLOC_BEGIN)
		as_drain_count_hook(p, rec->head.hook, 1);
	if (d->host.event)
		as_drain_tell(d, r, rec);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One record of a ring, applied to the heap of its process. */
#include <string.h>
#include <sys/mman.h>
#include "heap/drain_priv.h"

enum { HOOKS_MAX = 1 << 16 };

uint32_t as_drain_units(uint32_t kind)
{
	static const uint8_t units[AS_RT_REC_KINDS] = {
		[AS_RT_REC_ALLOC] = 2,   [AS_RT_REC_FREE] = 1,   [AS_RT_REC_REALLOC_BEGIN] = 1,
		[AS_RT_REC_REALLOC] = 3, [AS_RT_REC_MMAP] = 3,   [AS_RT_REC_MUNMAP] = 2,
		[AS_RT_REC_MREMAP] = 3,  [AS_RT_REC_NODE] = 2,   [AS_RT_REC_RESET] = 1,
		[AS_RT_REC_TIME] = 1,    [AS_RT_REC_THREAD] = 2, [AS_RT_REC_SYNC] = 3,
		[AS_RT_REC_MARK] = 4,
	};

	return kind < AS_RT_REC_KINDS ? units[kind] : 0;
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
	r->bare[0] = r->bare[1] = AS_HEAP_NONE;
	r->time_ns = AS_MAX(r->time_ns, rec->clock_ns);
	r->tid = rec->tid;
	r->process = find_process(d, rec->pid, rec->clock_ns);
	if (r->process == AS_HEAP_NONE)
		return;
	r->thread = find_thread(d, &d->processes.v[r->process], rec->tid, rec->clock_ns);
	as_heap_time(d->processes.v[r->process].pub.heap, r->thread, r->time_ns);
}

static bool wait_for(struct as_drain_ring *r, uint64_t ptr, bool is_range)
{
	r->ptr = ptr;
	r->is_range = is_range;
	return false;
}

/* Rings that waited for what was done with this address go on. */
static void wake(struct as_heap_drain *d, const struct as_drain_ring *by, uint64_t ptr,
		 bool is_range)
{
	if (!d->nblocked || (!is_range && !d->blocked_at[as_drain_place(ptr)]))
		return;
	as_vec_foreach (r, &d->rings) {
		if (r->wait != AS_DRAIN_BLOCKED || r->process != by->process ||
		    r->is_range != is_range || (!is_range && r->ptr != ptr))
			continue;
		as_drain_unblock(d, r);
	}
}

/* An address that is given out must be free. */
static bool make_free(struct as_heap_drain *d, struct as_drain_ring *r, uint64_t ptr,
		      bool forced)
{
	if (!ptr || !as_heap_is_live(process_of(d, r)->pub.heap, ptr))
		return true;
	if (!forced)
		return wait_for(r, ptr, false);
	as_order_cover(d, r, ptr);
	return true;
}

static bool on_alloc(struct as_heap_drain *d, struct as_drain_ring *r,
		     const struct as_rt_rec_alloc *rec, bool forced)
{
	struct as_heap *h = process_of(d, r)->pub.heap;

	if (!make_free(d, r, rec->ptr, forced))
		return false;
	as_heap_alloc(h, as_drain_tally(d, r, rec->node, AS_HEAP_BLOCKS), rec->ptr,
		      rec->size_bytes);
	as_order_pay(d, r, rec->ptr);
	wake(d, r, rec->ptr, false);
	return true;
}

static bool on_free(struct as_heap_drain *d, struct as_drain_ring *r, uint64_t ptr, bool forced)
{
	struct as_heap *h = process_of(d, r)->pub.heap;

	as_order_choose(d, r, ptr);
	if (as_heap_free(h, r->thread, ptr)) {
		as_order_freed(d, r, ptr);
		as_order_uncover(d, r, ptr);
	} else if (!forced) {
		return wait_for(r, ptr, false);
	} else if (h->sample_bytes || !as_order_owe(d, r, ptr)) {
		/* with sampling most likely another block in the same place: not told, and no debt */
		as_heap_unmatched_free(h);
	}
	wake(d, r, ptr, false);
	return true;
}

/* Not known for good: the REALLOC that follows is counted as one of an unknown block. */
static bool on_begin(struct as_heap_drain *d, struct as_drain_ring *r, uint64_t ptr,
		     bool forced)
{
	struct as_heap *h = process_of(d, r)->pub.heap;

	as_order_choose(d, r, ptr);
	if (as_heap_realloc_begin(h, r->thread, ptr)) {
		as_order_freed(d, r, ptr);
		as_order_uncover(d, r, ptr);
	} else if (!forced) {
		return wait_for(r, ptr, false);
	} else if (!h->sample_bytes) {
		(void)as_order_owe(d, r, ptr); /* if not: the REALLOC is of an unknown block */
	}
	wake(d, r, ptr, false);
	return true;
}

static bool on_realloc(struct as_heap_drain *d, struct as_drain_ring *r,
		       const struct as_rt_rec_realloc *rec, bool forced)
{
	struct as_heap *h = process_of(d, r)->pub.heap;
	struct as_heap_change c = {rec->old, rec->new_ptr, rec->size_bytes,
				   rec->flags & AS_RT_REALLOC_UNSAMPLED};

	if (rec->new_ptr != rec->old && !c.unsampled && !make_free(d, r, rec->new_ptr, forced))
		return false;
	as_heap_realloc(h, as_drain_tally(d, r, rec->node, AS_HEAP_BLOCKS), &c);
	as_order_pay(d, r, rec->new_ptr);
	wake(d, r, rec->new_ptr ? rec->new_ptr : rec->old, false);
	return true;
}

/* ---- mappings ---- */

static bool on_mmap(struct as_heap_drain *d, struct as_drain_ring *r,
		    const struct as_rt_rec_mmap *rec, bool forced)
{
	struct as_heap *h = process_of(d, r)->pub.heap;

	/* Without MAP_FIXED the kernel gives what is free: an unmap is still to be read. */
	if (!forced && !(rec->flags & MAP_FIXED) &&
	    as_heap_is_mapped(h, rec->addr, rec->length_bytes))
		return wait_for(r, rec->addr, true);
	as_heap_map(h, as_drain_tally(d, r, rec->node, AS_HEAP_MAPPINGS), rec->addr,
		    rec->length_bytes);
	return true;
}

static void on_munmap(struct as_heap_drain *d, struct as_drain_ring *r,
		      const struct as_rt_rec_munmap *rec)
{
	struct as_heap *h = process_of(d, r)->pub.heap;

	if (rec->failed)
		as_heap_unmap_failed(h, rec->addr, rec->length_bytes);
	else
		as_heap_unmap(h, rec->addr, rec->length_bytes);
	wake(d, r, 0, true);
}

static void on_mremap(struct as_heap_drain *d, struct as_drain_ring *r,
		      const struct as_rt_rec_mremap *rec)
{
	struct as_heap *h = process_of(d, r)->pub.heap;

	as_heap_unmap(h, rec->old, rec->old_bytes);
	as_heap_map(h, as_drain_tally(d, r, rec->node, AS_HEAP_MAPPINGS), rec->new_addr,
		    rec->new_bytes);
	wake(d, r, 0, true);
}

/* ---- any record ---- */

static void count_hook(struct as_drain_process *p, uint16_t hook)
{
	while (p->pub.hook_events.n <= hook)
		as_vec_push(&p->pub.hook_events, 0);
	p->pub.hook_events.v[hook]++;
}

static bool apply_event(struct as_heap_drain *d, struct as_drain_ring *r,
			const union as_drain_record *rec, bool forced)
{
	switch (rec->head.kind) {
	case AS_RT_REC_ALLOC:
		return on_alloc(d, r, &rec->alloc, forced);
	case AS_RT_REC_FREE:
		return on_free(d, r, rec->free.ptr, forced);
	case AS_RT_REC_REALLOC_BEGIN:
		return on_begin(d, r, rec->begin.ptr, forced);
	case AS_RT_REC_REALLOC:
		return on_realloc(d, r, &rec->realloc, forced);
	case AS_RT_REC_MMAP:
		return on_mmap(d, r, &rec->mmap, forced);
	case AS_RT_REC_MUNMAP:
		on_munmap(d, r, &rec->munmap);
		return true;
	default:
		on_mremap(d, r, &rec->mremap);
		return true;
	}
}

bool as_drain_apply(struct as_heap_drain *d, struct as_drain_ring *r,
		    const union as_drain_record *rec, bool forced)
{
	struct as_drain_process *p;

	switch (rec->head.kind) {
	case AS_RT_REC_THREAD:
		begin_thread(d, r, &rec->thread);
		return true;
	case AS_RT_REC_NODE:
		as_drain_node_add(r, &rec->node);
		return true;
	case AS_RT_REC_RESET:
		as_drain_nodes_reset(r);
		return true;
	case AS_RT_REC_SYNC:
		if (d->host.sync)
			d->host.sync(d->host.ctx, &rec->sync);
		return true;
	case AS_RT_REC_MARK:
		p = process_of(d, r);
		if (p)
			as_heap_mark(p->pub.heap, rec->mark.name,
				     AS_MIN(rec->mark.bytes, AS_RT_MARK_BYTES));
		return true;
	case AS_RT_REC_TIME:
		if (rec->time.clock_ns <= r->time_ns)
			return true;
		r->time_ns = rec->time.clock_ns;
		p = process_of(d, r);
		if (p)
			as_heap_time(p->pub.heap, r->thread, r->time_ns);
		return true;
	default:
		break;
	}
	p = process_of(d, r);
	if (!p)
		return true;
	if (!apply_event(d, r, rec, forced))
		return false;
	if (rec->head.kind != AS_RT_REC_REALLOC_BEGIN)
		count_hook(p, rec->head.hook);
	return true;
}

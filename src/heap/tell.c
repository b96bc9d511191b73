/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Records that were applied, as events for the host: see drain.h. */
#include "heap/drain_priv.h"

static void describe_realloc(const struct as_rt_rec_realloc *rec, struct as_log_event *e)
{
	e->kind = AS_LOG_REALLOC;
	e->address = rec->new_ptr;
	e->size_bytes = rec->size_bytes;
	e->old = rec->old;
	if (!rec->old) {
		e->kind = AS_LOG_ALLOC;
	} else if (!rec->new_ptr && !rec->size_bytes) {
		e->kind = AS_LOG_FREE;
		e->address = rec->old;
		e->old = 0;
	}
}

static void describe(const union as_drain_record *rec, struct as_log_event *e)
{
	switch (rec->head.kind) {
	case AS_RT_REC_ALLOC:
		e->kind = AS_LOG_ALLOC;
		e->address = rec->alloc.ptr;
		e->size_bytes = rec->alloc.size_bytes;
		break;
	case AS_RT_REC_FREE:
		e->kind = AS_LOG_FREE;
		e->address = rec->free.ptr;
		break;
	case AS_RT_REC_REALLOC_BEGIN:
		e->kind = AS_LOG_REALLOC_BEGIN;
		e->address = rec->begin.ptr;
		break;
	case AS_RT_REC_REALLOC:
		describe_realloc(&rec->realloc, e);
		break;
	case AS_RT_REC_MMAP:
		e->kind = AS_LOG_MAP;
		e->address = rec->mmap.addr;
		e->size_bytes = rec->mmap.length_bytes;
		break;
	case AS_RT_REC_MUNMAP:
		e->kind = rec->munmap.failed ? AS_LOG_UNMAP_FAILED : AS_LOG_UNMAP;
		e->address = rec->munmap.addr;
		e->size_bytes = rec->munmap.length_bytes;
		break;
	default:
		e->kind = AS_LOG_REMAP;
		e->address = rec->mremap.new_addr;
		e->size_bytes = rec->mremap.new_bytes;
		e->old = rec->mremap.old;
		e->old_bytes = rec->mremap.old_bytes;
		break;
	}
}

void as_drain_tell(struct as_heap_drain *d, const struct as_drain_ring *r,
		   const union as_drain_record *rec)
{
	struct as_heap *h = d->processes.v[r->process].pub.heap;
	struct as_log_event e = {.time_ns = h->now_ns, .thread = r->thread};

	describe(rec, &e);
	if (as_log_has_stack(e.kind)) /* NO_STACK becomes 0 */
		e.stack = h->tallies.v[d->tally].key.stack + 1;
	d->host.event(d->host.ctx, h, &e);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The rings of the in-target runtime (abi/rt.h) -> a heap per process, while the target runs.
 *
 *	d = as_heap_drain_new(&area, &host, &stacks);
 *	again and again:	control->clock_ns = now;  as_heap_drain_round(d, now);
 *	mappings changed:	as_heap_drain_remapped(d, pid);
 *	a thread is gone:	as_heap_drain_gone(d, its ring);
 *	at the end:		as_heap_drain_finish(d);
 *
 * Order. Rings are merged by the stamps of their records. A round takes what is not younger than itself:
 * the stamp is asked for before the rings are looked at, and by the order in which the runtime
 * writes (rt.h) nothing of what led to what is taken is missing then. So an allocation finds its address
 * free, and a free its block. The exception is a record that is reserved but not written while a signal
 * handler's behind it is: what others told of its block meanwhile is an orphan (orphans.c), which finds its
 * beginning when that comes. What never comes (blocks from before an attach, lost records) is counted:
 * unmatched_frees, unmatched_allocs, unmatched_reallocs.
 *
 * Nodes become stacks where they are named: by module and address, as the host knows the mappings at
 * that time. After as_heap_drain_remapped each node is looked up again when it is named again, so that
 * a library that was unloaded and one that took its place are not mixed up. What targets have summed up by
 * then is taken over first; a node that leads where nothing is mapped any more keeps the stack it had.
 *
 * What a ring holds is the target's and is not believed: bad records are skipped and counted.
 *
 * Cost: about 100 ns a record with what as_heap does of it. Not thread safe.
 */
#ifndef AS_HEAP_DRAIN_H
#define AS_HEAP_DRAIN_H

#include "abi/rt.h"
#include "heap/heap.h"
#include "heap/stacks.h"
#include "session/log.h"

/* The shared memory, as it is mapped in this process. */
struct as_heap_area {
	struct as_rt_control *control;
	void *rings;
	uint32_t ring_bytes, context_max;
	/* The file that control begins, and rings are in: what was never written there is not looked at
	 * when a thread ends. 0: not known. */
	int fd;
};

/* No ring from here on is anybody's. The number is the target's, and not believed. */
static inline uint32_t as_heap_area_top(const struct as_heap_area *a)
{
	uint32_t top = __atomic_load_n(&a->control->rings_top, __ATOMIC_ACQUIRE);

	return top < a->context_max ? top : a->context_max;
}

struct as_heap_host {
	void *ctx;
	/* A process is seen for the first time. NULL: nothing of it is wanted. The heap stays the
	 * host's. */
	struct as_heap *(*process)(void *ctx, uint32_t pid, uint64_t time_ns);
	/* The caller's number of a thread. */
	uint32_t (*thread)(void *ctx, uint32_t pid, uint32_t tid, uint64_t time_ns);
	/* Module and address of a place in code; false: unknown memory. flags are the drain's. */
	bool (*locate)(void *ctx, uint32_t pid, uint64_t avma, struct as_heap_frame *ret);
	/* Mappings have changed, or will: act, then set control->modules_done. May be NULL. */
	void (*sync)(void *ctx, const struct as_rt_rec_sync *r);
	/* Now and then in a long round, for clock and heartbeat: about each 100 us. May be NULL. */
	void (*tick)(void *ctx);
	/* Each call, in its order, after the heap has it: thread is the heap's, stack the number in
	 * `stacks` + 1. The time is the newest clock of the process. NULL: not asked for; where it is, the
	 * target must tell all calls (no AS_RT_SUM_PAIRS, no sampling). */
	void (*event)(void *ctx, const struct as_heap *h, const struct as_log_event *e);
};

struct as_heap_drained { /* of one process */
	uint32_t pid;
	struct as_heap *heap;
	AS_VEC(uint64_t) hook_events; /* by id of the hook */
	uint64_t dropped;             /* events that found no room in their ring */
	uint64_t complete, cut;       /* events whose stack is whole; is not, or is none */
	uint64_t holes;               /* records that were never finished */
	uint64_t bad;                 /* records that made no sense */
	/* Calls that the runtime timed in the process, and how long its part of them took. */
	uint64_t timed_calls, timed_ns;
};

struct as_heap_drain;
struct as_heap_drain *as_heap_drain_new(const struct as_heap_area *area,
					const struct as_heap_host *host,
					struct as_heap_stacks *stacks);
void as_heap_drain_free(struct as_heap_drain *d);
/* What is there now, about 131,072 records and 256 rings of threads that are gone at most. Returns how many
 * of both. now_ns: UINT64_MAX where the targets stand still. */
uint64_t as_heap_drain_round(struct as_heap_drain *d, uint64_t now_ns);
/* After a round: whether a process that stands still has told nothing that is yet to be read. */
bool as_heap_drain_is_read(const struct as_heap_drain *d, uint32_t pid);
/*
 * Threads sum up pairs themselves (rt.h): so heaps lack blocks that are pending there, and pairs that
 * were not taken over yet. After one of these all is there, until as_heap_drain_hide, and no round may
 * be in between.
 *
 *	settle	the targets run: a round, and every thread is asked to tell what it has; at most 2 ms
 *	show	they stand still
 */
void as_heap_drain_settle(struct as_heap_drain *d, uint64_t now_ns);
void as_heap_drain_show(struct as_heap_drain *d);
void as_heap_drain_hide(struct as_heap_drain *d);
void as_heap_drain_remapped(struct as_heap_drain *d, uint32_t pid);
/* The thread whose ring this is writes no more; it is given back when it has been read. */
void as_heap_drain_gone(struct as_heap_drain *d, uint32_t index);
/* After a look for all that are gone: tells threads that wait for a ring whether there may be one. */
void as_heap_drain_tell_full(struct as_heap_drain *d);
/*
 * A process that has ended, and whose rings have been given back: takes it out, with its hook_events, which
 * are the caller's then. False: something of it is still to be read.
 */
bool as_heap_drain_take(struct as_heap_drain *d, uint32_t pid, struct as_heap_drained *ret);
/* A mark in the heap of a process (0: of all), after all that is there. name: not NUL-terminated. */
void as_heap_drain_mark(struct as_heap_drain *d, uint32_t pid, const char *name, size_t n,
			uint64_t now_ns);
/* Makes the mark that another process has asked for (as_hook_mark), if there is one: each round. */
bool as_heap_drain_asked(struct as_heap_drain *d, uint64_t now_ns);
/* All that is there; what waits is waited for no longer. */
void as_heap_drain_finish(struct as_heap_drain *d);
/* n: of processes. Valid until the next round. */
const struct as_heap_drained *as_heap_drain_processes(const struct as_heap_drain *d,
						      size_t *ret_n);

#endif

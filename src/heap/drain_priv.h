/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inside the drain: rings, their nodes, and the processes they belong to. */
#ifndef AS_HEAP_DRAIN_PRIV_H
#define AS_HEAP_DRAIN_PRIV_H

#include "heap/drain.h"

struct as_drain_process {
	struct as_heap_drained pub;
	uint32_t turn;             /* of its mappings: from 1 */
	struct as_map64 frame_of;  /* avma << 1 | exact -> frame, of this turn */
	struct as_map64 thread_of; /* tid -> thread of the heap */
};

struct as_drain_node {
	uint32_t id, parent; /* id 0: not told */
	uint64_t avma;
	uint32_t flags, end;
	/* As of `turn` of the mappings; tally of each domain, AS_HEAP_NONE: not yet */
	uint32_t stack, turn, tally[AS_HEAP_DOMAINS];
};

enum as_drain_wait {
	AS_DRAIN_RUNS,
	AS_DRAIN_EMPTY,
	AS_DRAIN_LATER,   /* the next record is not older than until_ns */
	AS_DRAIN_BLOCKED, /* waits for another ring's record about ptr */
	AS_DRAIN_STALLED, /* the next record is not finished */
};

struct as_drain_ring {
	struct as_rt_ring *ring;
	const uint8_t *data;
	uint32_t index;
	uint64_t at, limit; /* read up to; to be read up to */
	uint64_t told;      /* ring->consumed: `at`, or a little less */
	uint64_t time_ns;   /* of the record at `at`, or less */
	enum as_drain_wait wait;
	uint64_t ptr; /* BLOCKED: by this address; of a mapping where is_range */
	bool is_range;
	bool looked_again; /* BLOCKED: all other rings' ends were read since */
	bool gone;
	uint64_t stalled_ns;
	uint32_t process; /* index; AS_HEAP_NONE: not wanted, or not known */
	uint32_t tid, thread;
	AS_VEC(struct as_drain_node) nodes;
	AS_VEC(struct as_drain_node) once;
	uint32_t bare[AS_HEAP_DOMAINS]; /* tallies without a stack */
};

/* One of two things that the order within a tick left open, until the tick is over: a block that another
 * one was given out on top of (its free is still to be read), or a free that took what another free
 * was for (the block it is for is still to be read). */
struct as_drain_odd {
	bool is_debt;
	uint32_t process, thread; /* debt: whose free */
	uint64_t ptr, tick_ns;
	struct as_live_block block;
};
struct as_drain_freed { /* the last free of an address */
	uint64_t ptr, tick_ns;
	uint32_t process, thread;
};
#define AS_DRAIN_FREED  4096u
#define AS_DRAIN_PLACES 4096u /* of addresses, by hash */

struct as_heap_drain {
	struct as_heap_area area;
	struct as_heap_host host;
	struct as_heap_stacks *stacks;
	AS_VEC(struct as_drain_ring) rings; /* in use */
	uint32_t *ring_of;                  /* per context: index into rings + 1 */
	AS_VEC(struct as_drain_process) processes;
	AS_VEC(uint32_t) path;
	uint64_t until_ns, due_ns; /* due: UINT64_MAX where a ring is crowded */
	uint64_t *lost_of;         /* per context: as last seen */
	uint32_t nblocked, since_tick;
	AS_VEC(struct as_drain_odd) odd;
	/* How many wait for an address of the place, and how many odd ones are there: with hundreds of
	 * threads there are many at a time, and most addresses are none of them. */
	uint32_t blocked_at[AS_DRAIN_PLACES], odd_at[AS_DRAIN_PLACES];
	struct as_drain_freed *freed; /* by hash of the address */
	bool last;                    /* nothing is waited for */
	uint32_t mark_made;           /* the last one asked for through the control page */
	AS_VEC(struct as_heap_drained) shown;
};

static inline uint32_t as_drain_place(uint64_t ptr)
{
	return (uint32_t)(as_mix64(ptr) % AS_DRAIN_PLACES);
}

/* The ring waits for its ptr; and no longer. */
static inline void as_drain_block(struct as_heap_drain *d, struct as_drain_ring *r)
{
	r->wait = AS_DRAIN_BLOCKED;
	d->nblocked++;
	d->blocked_at[as_drain_place(r->ptr)]++;
}
static inline void as_drain_unblock(struct as_heap_drain *d, struct as_drain_ring *r)
{
	r->wait = AS_DRAIN_RUNS;
	d->nblocked--;
	d->blocked_at[as_drain_place(r->ptr)]--;
}

/* nodes.c */
void as_drain_node_add(struct as_drain_ring *r, const struct as_rt_rec_node *rec);
void as_drain_nodes_reset(struct as_drain_ring *r);
/* The tally of an event that names this node. */
uint32_t as_drain_tally(struct as_heap_drain *d, struct as_drain_ring *r, uint32_t node,
			enum as_heap_domain domain);

/* order.c: what the order within a tick left open. */
void as_order_freed(struct as_heap_drain *d, const struct as_drain_ring *r, uint64_t ptr);
/* A free of an unknown block that waits no longer. True: it is for a block that another free took. */
bool as_order_owe(struct as_heap_drain *d, const struct as_drain_ring *r, uint64_t ptr);
/* A block is given out: a free may have been read already. */
void as_order_pay(struct as_heap_drain *d, const struct as_drain_ring *r, uint64_t ptr);
/* A block is given out on top of another. */
void as_order_cover(struct as_heap_drain *d, const struct as_drain_ring *r, uint64_t ptr);
/* Before one of several blocks at an address goes: the ring's own comes to the top. */
void as_order_choose(struct as_heap_drain *d, const struct as_drain_ring *r, uint64_t ptr);
/* After: the next one is live. */
void as_order_uncover(struct as_heap_drain *d, const struct as_drain_ring *r, uint64_t ptr);
/* All that is older than until_ns has been read: what is still open was lost. */
void as_order_close(struct as_heap_drain *d, uint64_t until_ns);

/* events.c: applies the record that was read; `forced`: it waits no longer. False: it must wait, r->ptr
 * is set and nothing was done. */
union as_drain_record {
	struct as_rt_head head;
	struct as_rt_rec_alloc alloc;
	struct as_rt_rec_free free;
	struct as_rt_rec_realloc_begin begin;
	struct as_rt_rec_realloc realloc;
	struct as_rt_rec_mmap mmap;
	struct as_rt_rec_munmap munmap;
	struct as_rt_rec_mremap mremap;
	struct as_rt_rec_node node;
	struct as_rt_rec_time time;
	struct as_rt_rec_thread thread;
	struct as_rt_rec_sync sync;
	struct as_rt_rec_mark mark;
	uint64_t words[8];
};
bool as_drain_apply(struct as_heap_drain *d, struct as_drain_ring *r,
		    const union as_drain_record *rec, bool forced);
/* What a record of this kind is long, in units; 0: unknown. */
uint32_t as_drain_units(uint32_t kind);

#endif

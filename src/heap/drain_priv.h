/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inside the drain: rings, their nodes, and the processes they belong to. */
#ifndef AS_HEAP_DRAIN_PRIV_H
#define AS_HEAP_DRAIN_PRIV_H

#include "heap/drain.h"

struct as_drain_process {
	struct as_heap_drained pub;
	uint32_t turn;   /* of its mappings: from 1 */
	uint32_t nrings; /* of its threads */
	uint64_t timed_ticks;
	struct as_map64 frame_of;  /* avma << 1 | exact -> frame, of this turn */
	struct as_map64 thread_of; /* tid -> thread of the heap */
};

struct as_drain_node {
	uint64_t avma; /* as told, like parent, flags and end */
	uint32_t parent;
	/* AS_HEAP_NONE: not looked for since the process's mappings changed */
	uint32_t stack;
	uint32_t tally; /* of blocks; with AS_DRAIN_COMPLETE where the stack is */
	uint8_t flags, end;
	bool known; /* it was told */
};
struct as_drain_once { /* a node that one event names */
	uint32_t id;
	struct as_drain_node node;
};
#define AS_DRAIN_COMPLETE (1u << 31)

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
	struct as_rt_rec_sum sum;
	uint64_t words[2 * AS_RT_UNITS_MAX];
};

enum as_drain_wait {
	AS_DRAIN_RUNS,
	AS_DRAIN_EMPTY,
	AS_DRAIN_LATER,   /* the next record is younger than the round */
	AS_DRAIN_STALLED, /* the next record is not finished */
};

struct as_drain_ring {
	struct as_rt_ring *ring;
	const uint8_t *data;
	uint32_t index;
	uint64_t at, limit;         /* read up to; to be read up to */
	uint64_t told;              /* ring->consumed: `at`, or a little less */
	uint64_t time_ns;           /* of the record at `at`, or less */
	union as_drain_record next; /* the record at `at`, where `wait` is RUNS or LATER */
	enum as_drain_wait wait;
	bool gone;
	uint64_t stalled_ns;
	uint32_t process; /* index; AS_HEAP_NONE: not wanted, or not known */
	uint32_t tid, thread;
	AS_VEC(struct as_drain_node) nodes;
	AS_VEC(uint32_t)
	was;           /* by node: its stack when modules were others; empty until they are */
	uint32_t turn; /* of the process's mappings, that the nodes' stacks are of */
	AS_VEC(struct as_drain_once) once;
	/* what the target sums up: see pairs.c */
	struct as_rt_tables *tables;
	struct as_rt_sum_set *seen;    /* as taken over so far; NULL: nothing */
	uint64_t resets;               /* read */
	struct as_heap_amount pending; /* as last told */
	uint64_t last_seq, last_pos;
	uint64_t turn_seq; /* of the tables, when modules changed last */
	bool ended;        /* all of it was taken over for good */
};
struct as_drain_shown { /* a pending block that is in the heap for a while */
	uint32_t process;
	uint16_t hook;
	bool complete;
	uint64_t ptr;
};

/* The end of a block whose beginning was not read yet: its record is being written, or never comes. */
enum as_drain_orphan_kind {
	AS_DRAIN_FREED,
	AS_DRAIN_BEGUN,   /* a realloc, which has not returned */
	AS_DRAIN_CHANGED, /* a realloc */
};
struct as_drain_orphan {
	enum as_drain_orphan_kind kind;
	uint64_t ptr, stamp;
	uint32_t process, thread;     /* whose end, and by whom */
	struct as_heap_change change; /* CHANGED */
	uint32_t tally;               /* CHANGED: of the new block */
	bool doubtful;                /* there was no pending block at its address */
	uint32_t next;                /* of those in the same place, + 1 */
};
#define AS_DRAIN_PLACES 4096u /* of addresses, by hash */

struct as_heap_drain {
	struct as_heap_area area;
	struct as_heap_host host;
	struct as_heap_stacks *stacks;
	AS_VEC(struct as_drain_ring) rings; /* in use */
	uint32_t *ring_of;                  /* per context: index into rings + 1 */
	AS_VEC(struct as_drain_process) processes;
	AS_VEC(uint32_t) path;
	uint32_t tally;         /* that was named last */
	AS_VEC(uint32_t) queue; /* rings with a record that is due, a heap by its stamp */
	uint64_t until_ns, due; /* due: of this round, a stamp */
	uint64_t *lost_of;      /* per context: as last seen */
	struct as_drain_timed { /* likewise */
		uint64_t ticks, calls;
	} * timed_of;
	uint64_t start_stamp, start_ns; /* both clocks at the beginning */
	uint64_t stamp_ticks;           /* as_drain_stamp_ticks */
	uint32_t since_tick;
	AS_VEC(struct as_drain_orphan) orphans;
	uint32_t orphan_at[AS_DRAIN_PLACES]; /* the first in each place, + 1; 0: none */
	bool last;                           /* nothing is waited for */
	uint32_t mark_made; /* the last one asked for through the control page */
	AS_VEC(struct as_heap_drained) shown;
	AS_VEC(struct as_drain_shown) shown_blocks;
	size_t orphans_before; /* how many there were when they were last looked at */
	bool doubts;           /* some are doubtful */
};

/* stamp_*.c: what a record would have that is stamped now; before anything is read that follows. */
uint64_t as_drain_stamp_now(void);
/* How long it takes to read the time stamp counter, in its ticks. */
uint64_t as_drain_stamp_ticks(void);

/* nodes.c */
void as_drain_node_add(struct as_drain_ring *r, const struct as_rt_rec_node *rec);
void as_drain_nodes_reset(struct as_drain_ring *r);
void as_drain_nodes_clear(struct as_drain_ring *r);
bool as_drain_knows(const struct as_drain_ring *r, uint32_t node);
/* Its stack is that of now, also when the modules in it have gone. */
void as_drain_look_up(struct as_heap_drain *d, struct as_drain_ring *r, uint32_t node);
/* The tally of an event that names this node, or of n of them. */
uint32_t as_drain_tally_many(struct as_heap_drain *d, struct as_drain_ring *r, uint32_t node,
			     enum as_heap_domain domain, uint64_t n);
static inline uint32_t as_drain_tally(struct as_heap_drain *d, struct as_drain_ring *r,
				      uint32_t node, enum as_heap_domain domain)
{
	return as_drain_tally_many(d, r, node, domain, 1);
}

/* drain.c: what is not younger than `due`, all of it. */
void as_drain_round_to(struct as_heap_drain *d, uint64_t now_ns, uint64_t due);

/* pairs.c */
void as_pairs_sum(struct as_heap_drain *d, struct as_drain_ring *r,
		  const struct as_rt_rec_sum *rec);
/* Modules of the ring's process have changed: what the ring's tables have is of what was there before. */
void as_pairs_before_turn(struct as_heap_drain *d, struct as_drain_ring *r);
/* The ring's thread is gone, and its records are read; clear: another may get its tables. */
void as_pairs_end(struct as_heap_drain *d, struct as_drain_ring *r, bool clear);
/* Pending blocks that are not told, for the time line. */
void as_pairs_note_pending(struct as_heap_drain *d, struct as_drain_ring *r, uint64_t blocks,
			   uint64_t bytes);
/* How far the thread's blocks may grow until a new maximum is possible. */
void as_pairs_grant(struct as_heap_drain *d, struct as_drain_ring *r,
		    const struct as_rt_rec_time *rec);
/* Orphans that no pending block can be the beginning of are counted; in two rounds. */
void as_pairs_close_orphans(struct as_heap_drain *d, bool all_read);

/* orphans.c */
void as_orphan_add(struct as_heap_drain *d, const struct as_drain_orphan *o);
/* The earliest end of a block at ptr after `born`, taken out; false: none. */
bool as_orphan_take(struct as_heap_drain *d, uint32_t process, uint64_t ptr, uint64_t born,
		    struct as_drain_orphan *ret);
bool as_orphan_find(const struct as_heap_drain *d, uint32_t process, uint64_t ptr,
		    uint64_t born);
/* The realloc of ptr that the ring's thread has begun, taken out; false: none. */
bool as_orphan_take_begun(struct as_heap_drain *d, const struct as_drain_ring *r, uint64_t ptr,
			  struct as_drain_orphan *ret);
/* The beginnings of all, or of those of one process, never come: they are counted. AS_HEAP_NONE: all. */
void as_orphans_close(struct as_heap_drain *d, uint32_t process);
/* The same for those that are marked as doubtful; marks all that are there. */
void as_orphans_close_doubtful(struct as_heap_drain *d);
void as_orphans_doubt(struct as_heap_drain *d);
/* A pending block is there: orphans at its address are no longer in doubt. */
void as_orphans_trust(struct as_heap_drain *d, uint32_t process, uint64_t ptr);

/* events.c */
bool as_drain_is_stamped(uint32_t kind);
void as_drain_count_hook(struct as_drain_process *p, uint16_t hook, uint64_t n);
void as_drain_alloc(struct as_heap_drain *d, struct as_drain_ring *r,
		    const struct as_rt_rec_alloc *rec);
static inline uint64_t as_drain_stamp(const union as_drain_record *rec)
{
	return rec->words[1];
}
/* Applies the record that was read. */
void as_drain_apply(struct as_heap_drain *d, struct as_drain_ring *r,
		    const union as_drain_record *rec);
/* tell.c: the record, which was applied just now, for the host. */
void as_drain_tell(struct as_heap_drain *d, const struct as_drain_ring *r,
		   const union as_drain_record *rec);
/* What a record of this kind is long, in units; 0: unknown. */
uint32_t as_drain_units(uint32_t kind);

#endif

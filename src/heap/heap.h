/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a process does with its memory, summed up per stack as it happens: no event is kept.
 *
 *	struct as_heap *h = as_heap_new(start_ns);
 *	thread = as_heap_thread(h, session_thread);
 *	t = as_heap_tally(h, &(struct as_heap_key){.thread = thread, .stack = s});
 *	as_heap_alloc(h, t, ptr, 64);
 *	as_heap_free(h, thread, ptr);
 *	as_heap_finish(h);			peaks and growth of the tallies are now true
 *
 * A tally is the sum over one (thread, stack, domain); what is told of a stack is the sum over its
 * tallies. Domains: blocks of allocators, and mappings, apart.
 *
 * Words. An *allocation* is a call that gives out a block: the malloc family, and realloc. A *free*
 * takes one back: the free family, and a realloc of a block. So allocs - frees = live blocks. *Bytes*
 * are those that were asked for; a realloc adds what it adds to the block, so that a vector that
 * grows to 1 MiB asks for 1 MiB and not for 2. A block belongs to the stack that gave it its size:
 * after a realloc to that of the realloc. Its tally then tells where it was made as well (origin), so
 * that a reader may count it for either.
 *
 * The peak is exact: live_bytes of every tally at the moment when the sum of all was largest (the
 * first such moment). It costs one comparison per event: each new maximum has a number (its epoch);
 * before a tally changes, it notes what it held if it has not changed since the newest maximum.
 *
 * Lifetimes count the allocations that the allocating thread made meanwhile, which no load on the
 * machine changes, and the time, as good as the clock that is told (as_heap_time).
 *
 * Growth: bytes of a tally at 4 to 8 moments at equal distances, which doubles when they are full; a
 * line through them by least squares. The line is over at least the second half of the run.
 *
 * Sampling. With as_heap_sample before the first event only some blocks are told (abi/rt.h), each with a
 * probability that its size gives; every amount is then an estimate, the sum over the blocks told of
 * what they are divided by their probability (Horvitz and Thompson): right on average for each tally,
 * for allocs, bytes, live and all others. Counts of blocks are kept in units of 1/AS_HEAP_UNIT until
 * as_heap_finish, which makes them whole: h->unit says which it is. The variance of bytes and blocks is
 * estimated beside them, by the same rule. The peak is that of the estimate, and so a little high.
 *
 * Cost: about 100 ns an event, 300 to 400 where 2 million blocks are live and freed in any order
 * (bench/heap-drain); memory: 16 bytes a live block (live.h),
 * about 200 bytes a tally. At most AS_LIVE_TALLIES tallies: what is beyond counts for one without a
 * stack, and is told (crowded). Not thread safe. Events of one address must come in their order
 * (drain.h sees to that).
 */
#ifndef AS_HEAP_HEAP_H
#define AS_HEAP_HEAP_H

#include "heap/histogram.h"
#include "heap/live.h"

enum as_heap_domain { AS_HEAP_BLOCKS, AS_HEAP_MAPPINGS, AS_HEAP_DOMAINS };

#define AS_HEAP_NO_STACK UINT32_MAX
#define AS_HEAP_MOMENTS  8u
#define AS_HEAP_TIMELINE 1024u /* rows at most */

struct as_heap_key {
	uint32_t thread, stack; /* stack: the caller's number, AS_HEAP_NO_STACK none */
	enum as_heap_domain domain;
};

struct as_heap_amount {
	uint64_t blocks, bytes;
	/* of the estimates, in blocks and bytes squared; 0 without sampling */
	double blocks_variance, bytes_variance;
};
/* Half the width of a 95 % interval, from a variance. */
double as_heap_half_width(double variance);

#define AS_HEAP_UNIT 1024u

/* Of one tally: what realloc did. first: sizes before the first realloc of a block; last: sizes at
 * its end (free, or the end of the run). Averages are over chains and ended. */
struct as_heap_growth {
	uint64_t reallocs, in_place, copied_bytes; /* copied: of those that moved */
	uint64_t chains, first_bytes; /* blocks that were changed for the first time */
	uint64_t ended, last_bytes, last_max_bytes;
	struct as_histogram last; /* sizes at the end */
};

struct as_heap_blocks {
	uint64_t blocks, bytes;
};

/* What few tallies have: see as_heap_rare_of. */
struct as_heap_rare {
	uint64_t zero, failed;         /* of size 0; those that gave no block are no allocs */
	uint64_t remote_frees;         /* by another thread than the one that allocated */
	struct as_heap_blocks at_exit; /* freed while the process was ending */
	/* of estimates, as in struct as_heap_amount */
	double allocs_variance, bytes_variance;
	double live_blocks_variance, live_bytes_variance;
	double peak_blocks_variance, peak_bytes_variance;
};

struct as_heap_moments { /* live.bytes; true after as_heap_finish */
	float bytes[AS_HEAP_MOMENTS];
};

/* Small: a program has hundred thousands of stacks, and each event is about another one. What few have
 * is in lists of the heap. */
struct as_heap_tally {
	struct as_heap_key key;
	/* Of blocks that realloc changed here: the tally that made them, + 1; 0: this one. A tally of a
	 * stack has one of these for each other that made what it changes, with the same key. */
	uint32_t origin;
	uint64_t peak_epoch;
	uint64_t allocs, bytes; /* reallocs included: see above */
	struct as_heap_blocks live;
	struct as_histogram sizes; /* bytes */
	uint64_t frees, freed_bytes;
	struct as_histogram ages, times; /* allocations; microseconds */
	/* at the maximum of the domain; true after as_heap_finish */
	struct as_heap_blocks peak;
	/* In `rares`, `growths`, `moments`, + 1; 0: not there, and so all 0 */
	uint32_t rare, growth, moments;
	uint8_t nmoments, moment_turn; /* moments that are noted; modulo 256 */
};

struct as_heap_clock { /* at `allocs` allocations it was `time_ns` */
	uint64_t allocs, time_ns;
};
struct as_heap_held { /* between realloc_begin and realloc */
	uint64_t ptr;
	struct as_live_block block;
};
struct as_heap_thread {
	uint32_t number; /* the caller's */
	uint64_t allocs, frees;
	uint64_t now_ns;
	AS_VEC(struct as_heap_clock) clock; /* few: the older, the wider apart */
	AS_VEC(struct as_heap_held) held; /* more than one: a signal handler's within another */
};

struct as_heap_domain_sum {
	struct as_heap_amount live, peak;
	uint64_t peak_epoch, peak_ns;
};

struct as_heap_row { /* of the time line */
	uint64_t time_ns;
	struct as_heap_amount live;
	uint64_t high_bytes; /* the most since the row before */
	uint64_t mapped_bytes, resident_bytes;
};

struct as_heap_flow { /* blocks of one thread that another gave back */
	uint32_t from, to;
	struct as_heap_amount freed;
};

struct as_heap_mark_amount {
	uint32_t tally;
	struct as_heap_blocks live;
};
struct as_heap_mark {
	char *name;
	uint64_t time_ns;
	struct as_heap_amount live;
	/* tallies that had blocks then */
	AS_VEC(struct as_heap_mark_amount) tallies;
};

struct as_heap_range { /* a mapping */
	uint64_t low, high;
	uint32_t tally;
};

struct as_heap_leaks;    /* leak.h */
struct as_heap_resident; /* resident.h */

struct as_heap {
	uint64_t sample_bytes;        /* 0: every block */
	struct as_heap_amount untold; /* of BLOCKS: live, but not in `live`; the drain's */
	uint64_t unit;                /* what counts of blocks are in: 1, or AS_HEAP_UNIT */
	uint64_t start_ns, now_ns;
	struct as_live live;
	AS_VEC(struct as_heap_tally) tallies;
	AS_VEC(struct as_heap_rare) rares;
	AS_VEC(struct as_heap_growth) growths;
	AS_VEC(struct as_heap_moments) moments;
	AS_VEC(struct as_heap_thread) threads;
	struct as_heap_domain_sum sum[AS_HEAP_DOMAINS];
	uint64_t events, allocs, reallocs, frees;
	double allocs_variance;
	uint64_t swept; /* allocations that sweeps are made for */
	uint64_t zero, failed;
	uint64_t unmatched_frees; /* of blocks from before, or of nobody */
	bool forked; /* the host's: blocks from before are those of the process it is a fork of */
	uint64_t unmatched_allocs;   /* of a block that was live: its free was not seen */
	uint64_t unmatched_reallocs; /* of blocks from before: their growth is not known */
	uint64_t crowded;            /* allocations beyond the last tally */
	bool exiting;
	uint32_t overflow; /* the tally of those, 0: none yet, else its number + 1 */
	/* moments for growth */
	uint64_t moment_ns, next_moment_ns;
	uint32_t nmoments, moment_turn; /* turn: how often the distance was doubled */
	AS_VEC(struct as_heap_row) timeline;
	uint64_t row_ns, next_row_ns, high_bytes, resident_bytes;
	AS_VEC(struct as_heap_flow) flows;
	AS_VEC(struct as_heap_mark) marks;
	AS_VEC(struct as_heap_range) ranges;   /* sorted, apart */
	AS_VEC(struct as_heap_range) unmapped; /* what the last unmap took */
	struct as_slots tally_of;              /* but for the overflow */
	struct as_map64 flow_of;
	uint32_t next_sweep;
	/* Of the last look at the process (snapshot/snapshot.h); NULL: none. The heap's. */
	struct as_heap_leaks *leaks;
	struct as_heap_resident *resident;
};

struct as_heap *as_heap_new(uint64_t start_ns);
/* Only blocks chosen one in about so many bytes are told. Before the first event. */
void as_heap_sample(struct as_heap *h, uint64_t sample_bytes);
void as_heap_free_all(struct as_heap *h);

uint32_t as_heap_thread(struct as_heap *h, uint32_t number);
/* A thread's clock: time never runs backwards. */
void as_heap_time(struct as_heap *h, uint32_t thread, uint64_t time_ns);
/* Resident memory of the process, as last seen: for the time line. */
void as_heap_resident(struct as_heap *h, uint64_t bytes);

uint32_t as_heap_tally(struct as_heap *h, const struct as_heap_key *key);
/* Valid until the next event. */
const struct as_heap_rare *as_heap_rare_of(const struct as_heap *h,
					   const struct as_heap_tally *t);
/* NULL: no realloc. */
const struct as_heap_growth *as_heap_growth_of(const struct as_heap *h,
					       const struct as_heap_tally *t);

/* The thread has made so many allocations, modulo 2^32: those that come are numbered from there. What is
 * not ahead of what is known is ignored. */
void as_heap_serial(struct as_heap *h, uint32_t thread, uint32_t serial);
/* Ends the block, if one is there: its free was not seen. Before its address is given out again. */
void as_heap_end_unseen(struct as_heap *h, uint64_t ptr);
/* ptr 0: it failed. */
void as_heap_alloc(struct as_heap *h, uint32_t tally, uint64_t ptr, uint64_t size_bytes);
/* False: the block is not known, nothing was counted. */
bool as_heap_free(struct as_heap *h, uint32_t thread, uint64_t ptr);
/* A free of a block that will not be known any more: from before, or of nobody. */
void as_heap_unmatched_free(struct as_heap *h);

struct as_heap_change {
	uint64_t old_ptr, new_ptr, size_bytes;
	bool unsampled; /* sampling: the new block was not chosen */
};
/* The block is about to be given to realloc: its address may be given out anew from now on. It
 * stays counted. False: it is not known. */
bool as_heap_realloc_begin(struct as_heap *h, uint32_t thread, uint64_t ptr);
/* The end of that (or all of it, where the block never left its place). old 0: an allocation. new
 * 0: a free where size is 0, else it failed and the block stays. */
void as_heap_realloc(struct as_heap *h, uint32_t tally, const struct as_heap_change *c);

/* A realloc of a block that is not known yet. */
void as_heap_realloc_early(struct as_heap *h, uint32_t tally, const struct as_heap_change *c);

/* Whether a block is there. */
bool as_heap_is_live(const struct as_heap *h, uint64_t ptr);
/* A block that was given out before, as the thread's allocation number `serial`, and is there still. */
void as_heap_alloc_late(struct as_heap *h, uint32_t tally, uint64_t ptr, uint64_t size_bytes,
			uint32_t serial);
/* As if that had not been told. */
void as_heap_take_back(struct as_heap *h, uint64_t ptr);

/* Blocks that were allocated and freed by one thread, all of a kind: their size, age and time (us) have so
 * many bits. */
struct as_heap_pairs {
	uint32_t tally, by;
	uint64_t n, bytes;
	uint32_t size_bits, age_bits, time_bits;
};
void as_heap_pairs(struct as_heap *h, const struct as_heap_pairs *p);

/* A block whose end was told before it: freed, or changed by as_heap_realloc_early. It was the thread's
 * allocation number `serial`. */
struct as_heap_late {
	uint32_t tally, serial;
	uint64_t size_bytes;
	uint32_t by;                         /* the thread that ended it */
	const struct as_heap_change *change; /* NULL: freed */
	uint32_t change_tally;
};
void as_heap_late(struct as_heap *h, const struct as_heap_late *l);
/* The same where l->by is in the middle of a realloc: the end of that comes. */
void as_heap_alloc_held(struct as_heap *h, const struct as_heap_late *l, uint64_t ptr);

/* What lies in the range before is unmapped by it. */
void as_heap_map(struct as_heap *h, uint32_t tally, uint64_t ptr, uint64_t size_bytes);
void as_heap_unmap(struct as_heap *h, uint64_t ptr, uint64_t size_bytes);
/* The last unmap was of this range, and failed. */
void as_heap_unmap_failed(struct as_heap *h, uint64_t ptr, uint64_t size_bytes);

void as_heap_exit_begins(struct as_heap *h);
/* After AS_HEAP_MARKS of them, none. */
#define AS_HEAP_MARKS 1000u
void as_heap_mark(struct as_heap *h, const char *name, size_t n);

/* No more events: peaks, growth and chains of the blocks that are left become true. Once. */
void as_heap_finish(struct as_heap *h);
/* Peaks and moments as they are now; more events may follow. */
void as_heap_settle(struct as_heap *h);

/* Bytes that the tally grows by over the moments, by least squares; steps: between how many
 * moments, rises: in how many of them there were more bytes than before. */
struct as_heap_slope {
	double bytes;
	uint32_t steps, rises;
};
void as_heap_slope(const struct as_heap *h, const struct as_heap_tally *t,
		   struct as_heap_slope *ret);

#endif

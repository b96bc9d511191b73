/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inside a heap: what heap.c, time.c and ranges.c share. */
#ifndef AS_HEAP_HEAP_PRIV_H
#define AS_HEAP_HEAP_PRIV_H

#include "heap/heap.h"

/* What a block that is told stands for. */
struct as_heap_weight {
	uint64_t blocks; /* in h->unit */
	uint64_t bytes;
	double factor;
	double blocks_variance, bytes_variance;
};
struct as_heap_weight as_heap_estimate(const struct as_heap *h, uint64_t size_bytes);

/* What is always told: mappings, and blocks without sampling. */
static inline struct as_heap_weight as_heap_one(const struct as_heap *h, uint64_t size_bytes)
{
	return (struct as_heap_weight){.blocks = h->unit, .bytes = size_bytes, .factor = 1};
}

static inline struct as_heap_weight as_heap_weigh(const struct as_heap *h, uint64_t size_bytes)
{
	return h->sample_bytes ? as_heap_estimate(h, size_bytes) : as_heap_one(h, size_bytes);
}

/* Counts of blocks in 1. */
void as_heap_make_whole(struct as_heap *h);

/* A tally's live amount and its domain's; call as_heap_note_peak when the event is done. */
void as_heap_add_live(struct as_heap *h, struct as_heap_tally *t,
		      const struct as_heap_weight *w);
void as_heap_remove_live(struct as_heap *h, struct as_heap_tally *t,
			 const struct as_heap_weight *w);
void as_heap_note_peak(struct as_heap *h, enum as_heap_domain domain);

void as_heap_moments_init(struct as_heap *h);
/* Moments that passed since the tally last changed: it held then what it holds now. */
void as_heap_moments_catch_up(struct as_heap *h, struct as_heap_tally *t);
/* The end of the run is a row of the time line. */
void as_heap_moments_end(struct as_heap *h);

/* When the thread had made so many allocations. */
uint64_t as_heap_clock_at(const struct as_heap_thread *t, uint64_t allocs);

#endif

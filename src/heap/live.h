/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The blocks that are allocated now: address -> size, tally, birth. At most 16 bytes a block in all
 * when there are many, and no pauses: nothing is ever rehashed or moved in bulk.
 *
 *	struct as_live m;
 *	as_live_init(&m);
 *	as_live_add(&m, ptr, &(struct as_live_block){.size_bytes = 64, .tally = t, .birth = n});
 *	if (as_live_take(&m, ptr, &b)) …	it was there, and is no longer
 *	as_live_clear(&m);
 *
 * 65,536 buckets, each a chain of cells of 128 bytes with 10 blocks of 12 bytes; only the first cell of
 * a chain has room. An address is 47 bits (user space of x86-64; what is above is ignored): its KiB,
 * turned by a function that can be undone, gives the bucket and 21 bits of the key, its place in that
 * KiB the other 10, so that the key is exact. Neighbours in memory are neighbours here: what a program
 * allocates together costs few cache misses, and the newest are found first. At 2 million blocks a
 * chain has about 3 cells. Sizes from 16 KiB up are kept aside, for about 30 bytes more.
 * Not thread safe.
 */
#ifndef AS_HEAP_LIVE_H
#define AS_HEAP_LIVE_H

#include <stdbool.h>
#include "base/map.h"

#define AS_LIVE_BUCKETS (1u << 16)
#define AS_LIVE_TALLIES (1u << 21) /* numbers of tallies are smaller */
#define AS_LIVE_BIRTHS  (1u << 29) /* births are counted modulo this */

struct as_live_block {
	uint64_t size_bytes;
	uint32_t tally;
	uint32_t birth; /* the caller's */
	bool grown;     /* likewise: realloc has changed it */
};

struct as_live_cell;
struct as_live {
	uint32_t *bucket; /* first cell + 1, 0: empty */
	AS_VEC(struct as_live_cell *) slabs;
	uint32_t ncells, spare; /* ever used; first of those that are free, + 1 */
	struct as_map64 large;  /* address -> size */
	uint64_t n;
};

void as_live_init(struct as_live *m);
void as_live_clear(struct as_live *m);
bool as_live_find(const struct as_live *m, uint64_t ptr, struct as_live_block *ret);
/* The address must not be there. */
void as_live_add(struct as_live *m, uint64_t ptr, const struct as_live_block *b);
bool as_live_take(struct as_live *m, uint64_t ptr, struct as_live_block *ret);
/* Every block of one bucket; where fn returns true, birth and grown are taken over from *b. */
void as_live_visit(struct as_live *m, uint32_t bucket,
		   bool (*fn)(void *ctx, uint64_t ptr, struct as_live_block *b), void *ctx);
uint64_t as_live_memory(const struct as_live *m); /* bytes it takes */

#endif

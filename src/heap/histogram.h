/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Counts by powers of two, small while few are used: most stacks allocate one size. Bucket 0 holds
 * the value 0, bucket k the values from 2^(k-1) to 2^k - 1, the last all above.
 */
#ifndef AS_HEAP_HISTOGRAM_H
#define AS_HEAP_HISTOGRAM_H

#include <stdint.h>
#include <stdlib.h>
#include "base/mem.h"

#define AS_HISTOGRAM_BUCKETS 64u

struct as_histogram {
	uint64_t used; /* bit k: bucket k has a count */
	union {
		uint64_t one;   /* of the only bucket used */
		uint64_t *many; /* of the buckets used, in order */
	};
};

static inline uint32_t as_histogram_bucket(uint64_t value)
{
	uint32_t k = value ? 64u - (uint32_t)__builtin_clzll(value) : 0;

	return AS_MIN(k, AS_HISTOGRAM_BUCKETS - 1);
}

/* One of this value less, which was counted. */
void as_histogram_take(struct as_histogram *h, uint64_t value);
void as_histogram_widen(struct as_histogram *h, uint32_t bucket, uint64_t n);

static inline uint32_t as_histogram_rank(const struct as_histogram *h, uint32_t bucket)
{
	return (uint32_t)__builtin_popcountll(h->used & ((1ull << bucket) - 1));
}

static inline void as_histogram_add_many(struct as_histogram *h, uint64_t value, uint64_t n)
{
	uint32_t bucket = as_histogram_bucket(value);
	uint64_t bit = 1ull << bucket;

	if (h->used == bit)
		h->one += n;
	else if (h->used & bit)
		h->many[as_histogram_rank(h, bucket)] += n;
	else
		as_histogram_widen(h, bucket, n);
}

static inline void as_histogram_add(struct as_histogram *h, uint64_t value)
{
	as_histogram_add_many(h, value, 1);
}

/* All counts divided, rounded to nearest. */
static inline void as_histogram_divide(struct as_histogram *h, uint64_t by)
{
	uint64_t *v = h->used & (h->used - 1) ? h->many : &h->one;
	uint32_t n = (uint32_t)__builtin_popcountll(h->used);

	for (uint32_t i = 0; i < n; i++)
		v[i] = (v[i] + by / 2) / by;
}

static inline uint64_t as_histogram_get(const struct as_histogram *h, uint32_t bucket)
{
	uint64_t bit = 1ull << bucket;

	if (!(h->used & bit))
		return 0;
	return h->used == bit ? h->one : h->many[as_histogram_rank(h, bucket)];
}

static inline void as_histogram_clear(struct as_histogram *h)
{
	if (h->used & (h->used - 1))
		free(h->many);
	*h = (struct as_histogram){0};
}

#endif

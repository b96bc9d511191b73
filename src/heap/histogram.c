/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "heap/histogram.h"

#include <string.h>

/* A bucket's first count. */
void as_histogram_widen(struct as_histogram *h, uint32_t bucket, uint64_t n)
{
	uint32_t have = (uint32_t)__builtin_popcountll(h->used);
	uint32_t at = as_histogram_rank(h, bucket);

	if (have == 0) {
		h->one = n;
	} else if (have == 1) {
		uint64_t *many = as_xreallocarray(NULL, 2, sizeof *many);

		many[1 - at] = h->one;
		many[at] = n;
		h->many = many;
	} else {
		h->many = as_xreallocarray(h->many, have + 1, sizeof *h->many);
		memmove(h->many + at + 1, h->many + at, (have - at) * sizeof *h->many);
		h->many[at] = n;
	}
	h->used |= 1ull << bucket;
}

void as_histogram_take(struct as_histogram *h, uint64_t value)
{
	uint32_t bucket = as_histogram_bucket(value), at = as_histogram_rank(h, bucket);
	uint32_t have = (uint32_t)__builtin_popcountll(h->used);
	uint64_t *v = have > 1 ? h->many : &h->one, one;

	if (--v[at])
		return;
	h->used &= ~(1ull << bucket);
	if (have < 2)
		return;
	memmove(v + at, v + at + 1, (have - 1 - at) * sizeof *v);
	if (have > 2)
		return;
	one = v[0];
	free(h->many);
	h->one = one;
}

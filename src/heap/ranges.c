/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Mappings: sorted ranges, apart from each other. A part may be unmapped or mapped anew. */
#include <stdlib.h>
#include <string.h>
#include "heap/heap_priv.h"

/* The first range that ends behind addr. */
static size_t find(const struct as_heap *h, uint64_t addr)
{
	size_t lo = 0, hi = h->ranges.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (h->ranges.v[mid].high <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void insert(struct as_heap *h, const struct as_heap_range *r)
{
	struct as_heap_weight w = as_heap_one(h, r->high - r->low);
	size_t at = find(h, r->low);

	as_vec_push(&h->ranges, *r);
	memmove(h->ranges.v + at + 1, h->ranges.v + at,
		(h->ranges.n - 1 - at) * sizeof *h->ranges.v);
	h->ranges.v[at] = *r;
	as_heap_add_live(h, &h->tallies.v[r->tally], &w);
}

static struct as_heap_range take(struct as_heap *h, size_t at)
{
	struct as_heap_range r = h->ranges.v[at];
	struct as_heap_weight w = as_heap_one(h, r.high - r.low);

	h->ranges.n--;
	memmove(h->ranges.v + at, h->ranges.v + at + 1,
		(h->ranges.n - at) * sizeof *h->ranges.v);
	as_heap_remove_live(h, &h->tallies.v[r.tally], &w);
	return r;
}

/* What does not lie in [low, high) stays. */
static void cut(struct as_heap *h, uint64_t low, uint64_t high)
{
	size_t at = find(h, low);

	while (at < h->ranges.n && h->ranges.v[at].low < high) {
		struct as_heap_range r = take(h, at), part = r;

		if (r.low < low) {
			part.high = low;
			insert(h, &part);
			at++;
		}
		if (r.high > high) {
			part = (struct as_heap_range){high, r.high, r.tally};
			insert(h, &part);
			at++;
		}
		part = (struct as_heap_range){AS_MAX(r.low, low), AS_MIN(r.high, high),
					      r.tally};
		as_vec_push(&h->unmapped, part);
		h->tallies.v[r.tally].frees += h->unit;
		h->tallies.v[r.tally].freed_bytes += part.high - part.low;
	}
}

static uint64_t end_of(uint64_t ptr, uint64_t size_bytes)
{
	uint64_t end = ptr + size_bytes;

	if (end < ptr || end > UINT64_MAX - 4095)
		return UINT64_MAX;
	return (end + 4095) & ~4095ull; /* the kernel maps whole pages */
}

void as_heap_map(struct as_heap *h, uint32_t tally, uint64_t ptr, uint64_t size_bytes)
{
	struct as_heap_range r = {ptr, end_of(ptr, size_bytes), tally};
	struct as_heap_tally *t = &h->tallies.v[tally];

	h->events++;
	if (r.high <= r.low)
		return;
	h->unmapped.n = 0;
	cut(h, r.low, r.high);
	t->allocs += h->unit;
	t->bytes += r.high - r.low;
	as_histogram_add_many(&t->sizes, r.high - r.low, h->unit);
	insert(h, &r);
	as_heap_note_peak(h, AS_HEAP_MAPPINGS);
}

void as_heap_unmap(struct as_heap *h, uint64_t ptr, uint64_t size_bytes)
{
	h->events++;
	h->unmapped.n = 0;
	cut(h, ptr, end_of(ptr, size_bytes));
}

void as_heap_unmap_failed(struct as_heap *h, uint64_t ptr, uint64_t size_bytes)
{
	uint64_t high = end_of(ptr, size_bytes);

	as_vec_foreach (r, &h->unmapped) {
		struct as_heap_tally *t = &h->tallies.v[r->tally];

		if (r->low < ptr || r->high > high)
			continue;
		t->frees -= h->unit;
		t->freed_bytes -= r->high - r->low;
		insert(h, r);
	}
	h->unmapped.n = 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Address -> block: regions of 128 MiB, in each the first block of every 512 bytes. */
#include <stdlib.h>
#include <sys/mman.h>

#include "heap/leak_priv.h"

enum { REGION_BITS = 27, GRANULE_BITS = 9, ADDRESS_BITS = 47 };
#define REGIONS  (1u << (ADDRESS_BITS - REGION_BITS))
#define GRANULES (1u << (REGION_BITS - GRANULE_BITS))

/* What a region has: nothing, one block that covers all of it (its number), or a table. */
struct region {
	uint32_t
		*first; /* by granule: number + 1 of the first block that touches it; 0: none */
	uint32_t whole; /* number + 1 */
};
struct as_leak_index {
	struct region *region;
	/* Regions that have something. Words of the process that are no addresses are anywhere, and each
	 * would have a page of `region` of its own. */
	uint64_t used[REGIONS / 64];
	AS_VEC(uint32_t *)
	tables; /* of regions: to look for them would read all of `region` in */
};

/* Zeroed memory that is there when it is first written: most of it never is. */
static void *map_zeroed(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		as_oom();
	return p;
}

static uint64_t end_of(const struct as_leak_block *b)
{
	return b->low + AS_MAX(b->bytes, 1ull);
}

static void add_part(struct as_leak_index *x, struct region *r, uint32_t number, uint64_t low,
		     uint64_t last)
{
	if (!r->first) {
		r->first = map_zeroed(GRANULES * sizeof *r->first);
		as_vec_push(&x->tables, r->first);
	}
	for (uint64_t g = low >> GRANULE_BITS; g <= last >> GRANULE_BITS; g++) {
		uint32_t *at = &r->first[g % GRANULES];

		if (!*at)
			*at = number + 1;
	}
}

static void add(struct as_leak_index *x, uint32_t number, uint64_t low, uint64_t end)
{
	while (low < end) {
		uint64_t region = low >> REGION_BITS, stop = (region + 1) << REGION_BITS;
		struct region *r = &x->region[region];

		x->used[region / 64] |= 1ull << region % 64;
		if (low == region << REGION_BITS && end >= stop)
			r->whole = number + 1;
		else
			add_part(x, r, number, low, AS_MIN(end, stop) - 1);
		low = stop;
	}
}

struct as_leak_index *as_leak_index_new(const struct as_leak_block *v, size_t n)
{
	struct as_leak_index *x = as_xcalloc(1, sizeof *x);

	x->region = map_zeroed(REGIONS * sizeof *x->region);
	for (size_t i = 0; i < n; i++)
		add(x, (uint32_t)i, v[i].low, AS_MIN(end_of(&v[i]), 1ull << ADDRESS_BITS));
	return x;
}

void as_leak_index_free(struct as_leak_index *x)
{
	if (!x)
		return;
	as_vec_foreach (table, &x->tables)
		munmap(*table, GRANULES * sizeof **table);
	as_vec_clear(&x->tables);
	munmap(x->region, REGIONS * sizeof *x->region);
	free(x);
}

uint32_t as_leak_index_find(const struct as_leak_index *x, const struct as_leak_block *v,
			    uint64_t avma)
{
	const struct region *r;
	uint64_t region;
	uint32_t i, next;

	if (avma >> ADDRESS_BITS)
		return UINT32_MAX;
	region = avma >> REGION_BITS;
	if (!(x->used[region / 64] >> region % 64 & 1))
		return UINT32_MAX;
	r = &x->region[region];
	if (r->whole)
		return r->whole - 1;
	i = r->first[(avma >> GRANULE_BITS) % GRANULES];
	if (!i)
		return UINT32_MAX;
	/* the list ends with a block above all addresses */
	for (next = i--; v[next].low <= avma; next++)
		i = next;
	return avma >= v[i].low && avma < end_of(&v[i]) ? i : UINT32_MAX;
}

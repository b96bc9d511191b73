/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "heap/live.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	CELL_BLOCKS = 10,
	SLAB_CELLS = 1 << 14, /* 2 MiB: a large page */
	REGION_BITS = 37,     /* of an address of 47 bits, in KiB */
	KEY_REGION_BITS = 21,
	SIZE_BITS = 14,
	BIRTH_BITS = 29,
	TALLY_BITS = 21,
};
#define ADDRESS_MASK ((1ull << 47) - 1)
#define REGION_MASK  ((1ull << REGION_BITS) - 1)
#define TURN         0x1545f4914full /* odd */
#define SIZE_LARGE   ((1u << SIZE_BITS) - 1)
#define GROWN        (1u << 31)

/* Two cache lines. entry: tally, size, birth from the lowest bit up. */
struct as_live_cell {
	uint32_t next, n; /* next: + 1 */
	uint32_t key[CELL_BLOCKS];
	uint64_t entry[CELL_BLOCKS];
};
_Static_assert(sizeof(struct as_live_cell) == 128, "two lines");
_Static_assert(TALLY_BITS + SIZE_BITS + BIRTH_BITS == 64, "an entry is full");

struct place {
	uint32_t bucket, key;
};

static uint64_t inverse(uint64_t odd)
{
	uint64_t x = odd; /* Newton: the number of right bits doubles from 3 */

	for (int i = 0; i < 5; i++)
		x *= 2 - odd * x;
	return x;
}

/* x ^= x >> h undoes itself where h is at least half of the bits. */
static uint64_t fold(uint64_t x)
{
	return x ^ x >> (REGION_BITS + 1) / 2;
}

static struct place place_of(uint64_t ptr)
{
	uint64_t region = fold(fold(ptr >> 10 & REGION_MASK) * TURN & REGION_MASK);

	return (struct place){(uint32_t)(region >> KEY_REGION_BITS),
			      ((uint32_t)region & ((1u << KEY_REGION_BITS) - 1)) << 10 |
				      (uint32_t)(ptr & 1023)};
}

static uint64_t address_of(uint32_t bucket, uint32_t key)
{
	uint64_t region = (uint64_t)bucket << KEY_REGION_BITS | (key & ~GROWN) >> 10;

	return fold(fold(region) * inverse(TURN) & REGION_MASK) << 10 | (key & 1023);
}

/* ---- cells ---- */

static struct as_live_cell *cell(const struct as_live *m, uint32_t id)
{
	return &m->slabs.v[(id - 1) / SLAB_CELLS][(id - 1) % SLAB_CELLS];
}

/* Large pages halve the cost of a cell that is not in the cache; the first slab stays small for small
 * programs. */
static void add_slab(struct as_live *m)
{
	size_t bytes = SLAB_CELLS * sizeof(struct as_live_cell);
	struct as_live_cell *slab = aligned_alloc(bytes, bytes);

	if (!slab)
		as_oom();
	if (m->slabs.n)
		(void)madvise(slab, bytes, MADV_HUGEPAGE); /* only a wish */
	as_vec_push(&m->slabs, slab);
}

static uint32_t new_cell(struct as_live *m)
{
	uint32_t id = m->spare;

	if (id) {
		m->spare = cell(m, id)->next;
		return id;
	}
	if (m->ncells % SLAB_CELLS == 0)
		add_slab(m);
	return ++m->ncells;
}

static void put_entry(struct as_live_cell *c, uint32_t i, uint32_t key,
		      const struct as_live_block *v)
{
	c->key[i] = key | (v->grown ? GROWN : 0);
	c->entry[i] = v->tally | AS_MIN(v->size_bytes, (uint64_t)SIZE_LARGE) << TALLY_BITS |
		      (uint64_t)v->birth << (TALLY_BITS + SIZE_BITS);
}

static void get_entry(const struct as_live *m, uint64_t ptr, const struct as_live_cell *c,
		      uint32_t i, struct as_live_block *ret)
{
	uint64_t e = c->entry[i];

	ret->tally = (uint32_t)e & (AS_LIVE_TALLIES - 1);
	ret->size_bytes = e >> TALLY_BITS & SIZE_LARGE;
	ret->birth = (uint32_t)(e >> (TALLY_BITS + SIZE_BITS));
	ret->grown = c->key[i] & GROWN;
	if (ret->size_bytes == SIZE_LARGE)
		ret->size_bytes = *as_map64_get(&m->large, ptr & ADDRESS_MASK);
}

/* Its index, CELL_BLOCKS when absent. All at once: the branches of a search cannot be foretold. */
static uint32_t find_key(const struct as_live_cell *c, uint32_t key)
{
	uint32_t hits = 1u << CELL_BLOCKS;

	for (uint32_t i = 0; i < CELL_BLOCKS; i++)
		hits |= (uint32_t)((c->key[i] ^ key) << 1 == 0) << i;
	hits &= (1u << c->n) - 1;
	return hits ? (uint32_t)__builtin_ctz(hits) : CELL_BLOCKS;
}

static struct as_live_cell *find_cell(const struct as_live *m, struct place at, uint32_t *ret)
{
	for (uint32_t id = m->bucket[at.bucket]; id;) {
		struct as_live_cell *c = cell(m, id);

		*ret = find_key(c, at.key);
		if (*ret != CELL_BLOCKS)
			return c;
		id = c->next;
	}
	return NULL;
}

/* ---- the map ---- */

void as_live_init(struct as_live *m)
{
	*m = (struct as_live){0};
	m->bucket = as_xcalloc(AS_LIVE_BUCKETS, sizeof *m->bucket);
}

void as_live_clear(struct as_live *m)
{
	as_vec_foreach (slab, &m->slabs)
		free(*slab);
	as_vec_clear(&m->slabs);
	free(m->bucket);
	as_map64_clear(&m->large);
	*m = (struct as_live){0};
}

bool as_live_find(const struct as_live *m, uint64_t ptr, struct as_live_block *ret)
{
	uint32_t i;
	const struct as_live_cell *c = find_cell(m, place_of(ptr), &i);

	if (!c)
		return false;
	get_entry(m, ptr, c, i, ret);
	return true;
}

void as_live_add(struct as_live *m, uint64_t ptr, const struct as_live_block *v)
{
	struct place at = place_of(ptr);
	uint32_t id = m->bucket[at.bucket];
	struct as_live_cell *c = id ? cell(m, id) : NULL;

	if (!c || c->n == CELL_BLOCKS) {
		uint32_t next = id;

		id = m->bucket[at.bucket] = new_cell(m);
		c = cell(m, id);
		memset(c, 0, sizeof *c);
		c->next = next;
	}
	put_entry(c, c->n++, at.key, v);
	m->n++;
	if (v->size_bytes >= SIZE_LARGE)
		*as_map64_put(&m->large, ptr & ADDRESS_MASK, NULL) = v->size_bytes;
}

bool as_live_take(struct as_live *m, uint64_t ptr, struct as_live_block *ret)
{
	struct place at = place_of(ptr);
	uint32_t i, first = m->bucket[at.bucket];
	struct as_live_cell *c = find_cell(m, at, &i), *head;

	if (!c)
		return false;
	get_entry(m, ptr, c, i, ret);
	if (ret->size_bytes >= SIZE_LARGE)
		(void)as_map64_del(&m->large, ptr & ADDRESS_MASK); /* its size came from it */
	head = cell(m, first);
	head->n--;
	m->n--;
	c->key[i] = head->key[head->n];
	c->entry[i] = head->entry[head->n];
	if (!head->n) {
		m->bucket[at.bucket] = head->next;
		head->next = m->spare;
		m->spare = first;
	}
	return true;
}

void as_live_visit(struct as_live *m, uint32_t bucket,
		   bool (*fn)(void *ctx, uint64_t ptr, struct as_live_block *b), void *ctx)
{
	for (uint32_t id = m->bucket[bucket]; id; id = cell(m, id)->next) {
		struct as_live_cell *c = cell(m, id);

		for (uint32_t i = 0; i < c->n; i++) {
			uint64_t ptr = address_of(bucket, c->key[i]);
			struct as_live_block v;

			get_entry(m, ptr, c, i, &v);
			if (fn(ctx, ptr, &v))
				put_entry(c, i, c->key[i] & ~GROWN, &v);
		}
	}
}

uint64_t as_live_memory(const struct as_live *m)
{
	return AS_LIVE_BUCKETS * sizeof *m->bucket +
	       m->slabs.n * SLAB_CELLS * sizeof(struct as_live_cell) +
	       m->large.cap * sizeof *m->large.slot;
}

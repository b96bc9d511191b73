/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * as_map64: open addressing, 64-bit key (any value but UINT64_MAX) to 64-bit value; load <=
 * 0.6, linear probing, backward-shift deletion. as_intern: distinct byte strings get dense ids
 * from 0. as_slots: numbers of what its owner keeps. All: zero-initialised is valid; not thread safe.
 */
#ifndef AS_BASE_MAP_H
#define AS_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/mem.h"

struct as_map64_slot {
	uint64_t key, val;
};
struct as_map64 {
	struct as_map64_slot *slot;
	size_t n, cap; /* cap is 0 or a power of two */
};
/* NULL when absent; valid until the next put or del */
uint64_t *as_map64_get(const struct as_map64 *m, uint64_t key);
/* slot for key, 0 when new; ret_new may be NULL */
uint64_t *as_map64_put(struct as_map64 *m, uint64_t key, bool *ret_new);
bool as_map64_del(struct as_map64 *m, uint64_t key);
void as_map64_clear(struct as_map64 *m);
static inline uint64_t as_mix64(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	return x ^ x >> 32;
}

/*
 * What the owner keeps in a list of its own, found by what it is: 4 bytes a slot where a map has 16.
 *
 *	as_slots_reserve(&s, hash_of, list);	room for one more
 *	for (at = as_slots_home(&s, hash); s.slot[at]; at = as_slots_next(&s, at)) {
 *		if (it is list[s.slot[at] - 1]) …	found
 *	}
 *	as_slots_put(&s, at, number);		it was not there
 */
struct as_slots {
	uint32_t *slot; /* number + 1, 0 empty */
	size_t n, cap;  /* cap is 0 or a power of two; load <= 0.6 */
};
/* hash_of tells the hash of what is there already, by its number. */
void as_slots_reserve(struct as_slots *s,
		      uint64_t (*hash_of)(const void *list, uint32_t number), const void *list);
void as_slots_clear(struct as_slots *s);
static inline size_t as_slots_home(const struct as_slots *s, uint64_t hash)
{
	return hash & (s->cap - 1);
}
static inline size_t as_slots_next(const struct as_slots *s, size_t at)
{
	return (at + 1) & (s->cap - 1);
}
static inline void as_slots_put(struct as_slots *s, size_t at, uint32_t number)
{
	s->slot[at] = number + 1;
	s->n++;
}

struct as_intern {
	struct as_arena arena;
	AS_VEC(struct as_intern_str {
		const char *p;
		uint32_t len;
		uint32_t hash;
	})
	str;            /* str.v[id] */
	uint32_t *slot; /* id + 1, 0 empty */
	size_t cap;
};
uint32_t as_intern(struct as_intern *in, const char *p, size_t n);
uint32_t as_intern_str(struct as_intern *in, const char *s);
bool as_intern_find(const struct as_intern *in, const char *p, size_t n, uint32_t *ret_id);
const char *as_intern_get(const struct as_intern *in, uint32_t id); /* NUL-terminated */
void as_intern_clear(struct as_intern *in);

#endif

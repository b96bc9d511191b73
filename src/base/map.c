/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Hash map of 64-bit integers and string interning: see map.h. */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define NO_KEY UINT64_MAX

static size_t home(const struct as_map64 *m, uint64_t key)
{
	return as_mix64(key) & (m->cap - 1);
}

/* The slot that holds key, or the empty one where it would go. cap > 0 and one slot is empty. */
static struct as_map64_slot *probe(const struct as_map64 *m, uint64_t key)
{
	size_t i = home(m, key);

	while (m->slot[i].key != key && m->slot[i].key != NO_KEY)
		i = (i + 1) & (m->cap - 1);
	return &m->slot[i];
}

static void map_grow(struct as_map64 *m)
{
	struct as_map64 bigger = {.cap = m->cap ? m->cap * 2 : 16, .n = m->n};

	bigger.slot = as_xarray(bigger.cap, sizeof *bigger.slot);
	for (size_t i = 0; i < bigger.cap; i++)
		bigger.slot[i] = (struct as_map64_slot){.key = NO_KEY};
	for (size_t i = 0; i < m->cap; i++) {
		if (m->slot[i].key != NO_KEY)
			*probe(&bigger, m->slot[i].key) = m->slot[i];
	}
	free(m->slot);
	*m = bigger;
}

uint64_t *as_map64_get(const struct as_map64 *m, uint64_t key)
{
	if (!m->n || key == NO_KEY)
		return NULL;

	struct as_map64_slot *s = probe(m, key);

	return s->key == key ? &s->val : NULL;
}

uint64_t *as_map64_put(struct as_map64 *m, uint64_t key, bool *ret_new)
{
	if (key == NO_KEY)
		abort(); /* the caller's bug: the key marks an empty slot */
	if ((m->n + 1) * 5 > m->cap * 3)
		map_grow(m);

	struct as_map64_slot *s = probe(m, key);
	bool fresh = s->key == NO_KEY;

	if (fresh) {
		*s = (struct as_map64_slot){.key = key};
		m->n++;
	}
	if (ret_new)
		*ret_new = fresh;
	return &s->val;
}

bool as_map64_del(struct as_map64 *m, uint64_t key)
{
	if (!m->n || key == NO_KEY)
		return false;

	struct as_map64_slot *s = probe(m, key);

	if (s->key != key)
		return false;

	/* Backward shift: pull later entries of the run into the hole unless that passes their
	 * home. */
	size_t mask = m->cap - 1, hole = (size_t)(s - m->slot);

	for (size_t i = (hole + 1) & mask; m->slot[i].key != NO_KEY; i = (i + 1) & mask) {
		size_t from_home = (i - home(m, m->slot[i].key)) & mask;

		if (from_home < ((i - hole) & mask))
			continue;
		m->slot[hole] = m->slot[i];
		hole = i;
	}
	m->slot[hole] = (struct as_map64_slot){.key = NO_KEY};
	m->n--;
	return true;
}

void as_map64_clear(struct as_map64 *m)
{
	free(m->slot);
	*m = (struct as_map64){0};
}

void as_slots_reserve(struct as_slots *s,
		      uint64_t (*hash_of)(const void *list, uint32_t number), const void *list)
{
	struct as_slots bigger = {.n = s->n, .cap = s->cap ? 2 * s->cap : 64};

	if ((s->n + 1) * 5 <= s->cap * 3)
		return;
	bigger.slot = as_xarray(bigger.cap, sizeof *bigger.slot);
	memset(bigger.slot, 0, bigger.cap * sizeof *bigger.slot);
	for (size_t i = 0; i < s->cap; i++) {
		size_t at;

		if (!s->slot[i])
			continue;
		at = as_slots_home(&bigger, hash_of(list, s->slot[i] - 1));
		while (bigger.slot[at])
			at = as_slots_next(&bigger, at);
		bigger.slot[at] = s->slot[i];
	}
	free(s->slot);
	*s = bigger;
}

void as_slots_clear(struct as_slots *s)
{
	free(s->slot);
	*s = (struct as_slots){0};
}

static uint32_t *intern_probe(const struct as_intern *in, const char *p, size_t n,
			      uint32_t hash)
{
	size_t i = hash & (in->cap - 1);

	for (; in->slot[i]; i = (i + 1) & (in->cap - 1)) {
		const struct as_intern_str *s = &in->str.v[in->slot[i] - 1];

		if (s->hash == hash && s->len == n && memcmp(s->p, p, n) == 0)
			break;
	}
	return &in->slot[i];
}

static void intern_grow(struct as_intern *in)
{
	size_t cap = in->cap ? in->cap * 2 : 64;

	free(in->slot);
	in->slot = as_xcalloc(cap, sizeof *in->slot);
	in->cap = cap;
	for (size_t id = 0; id < in->str.n; id++) {
		size_t i = in->str.v[id].hash & (cap - 1);

		while (in->slot[i])
			i = (i + 1) & (cap - 1);
		in->slot[i] = (uint32_t)id + 1;
	}
}

uint32_t as_intern(struct as_intern *in, const char *p, size_t n)
{
	if (n > UINT32_MAX - 1 || in->str.n >= UINT32_MAX - 1)
		as_oom();
	if ((in->str.n + 1) * 5 > in->cap * 3)
		intern_grow(in);
	if (n == 0)
		p = "";

	uint32_t hash = (uint32_t)as_hash64(p, n);
	uint32_t *slot = intern_probe(in, p, n, hash);

	if (*slot)
		return *slot - 1;

	/* Not as_arena_strndup: the bytes may hold a NUL. The arena zeroes, so the end is there. */
	char *copy = as_arena_alloc(&in->arena, n + 1);

	memcpy(copy, p, n);
	as_vec_push(&in->str,
		    (struct as_intern_str){.p = copy, .len = (uint32_t)n, .hash = hash});
	*slot = (uint32_t)in->str.n;
	return (uint32_t)in->str.n - 1;
}

uint32_t as_intern_str(struct as_intern *in, const char *s)
{
	return as_intern(in, s, strlen(s));
}

bool as_intern_find(const struct as_intern *in, const char *p, size_t n, uint32_t *ret_id)
{
	if (!in->cap || n > UINT32_MAX - 1)
		return false;
	if (n == 0)
		p = "";

	uint32_t *slot = intern_probe(in, p, n, (uint32_t)as_hash64(p, n));

	if (!*slot)
		return false;
	*ret_id = *slot - 1;
	return true;
}

const char *as_intern_get(const struct as_intern *in, uint32_t id)
{
	return id < in->str.n ? in->str.v[id].p : "";
}

void as_intern_clear(struct as_intern *in)
{
	as_arena_clear(&in->arena);
	as_vec_clear(&in->str);
	free(in->slot);
	in->slot = NULL;
	in->cap = 0;
}

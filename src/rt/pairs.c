/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "rt/pairs.h"

#define SUM_MAX ((1ull << (64 - AS_RT_SUM_SHIFT)) - 1)

static void add_grown(struct as_rt_tables *t, int64_t bytes)
{
	__asm__ volatile("addq %1, %0" : "+m"(t->grown) : "r"(bytes) : "memory", "cc");
}

static struct rt_birth birth_at(const struct as_rt_pending_set *s, uint32_t way)
{
	uint64_t what = s->what[way];
	return (struct rt_birth){.ptr = s->block[way] >> 16,
				 .size = s->block[way] & (AS_RT_TOLD - 1),
				 .node = AS_RT_WHAT_NODE(what),
				 .hook = (uint16_t)AS_RT_WHAT_ID(what),
				 .serial = (uint32_t)(what >> 32)};
}

static bool is_pending(const struct as_rt_pending_set *s, uint32_t way)
{
	return s->block[way] && !(s->block[way] & AS_RT_TOLD);
}

static void leave_pending(struct as_rt_tables *t, uint64_t size)
{
	t->pending_bytes -= size;
	t->pending_blocks--;
}

static void tell_late(struct rt_context *c, struct as_rt_pending_set *s, uint32_t way,
		      uint64_t stamp)
{
	struct rt_birth b = birth_at(s, way);
	(void)rt_emit_birth(c, &b, stamp, s->after[way]);
	*(volatile uint64_t *)&s->block[way] |= AS_RT_TOLD;
	leave_pending(c->tables, b.size);
}

/* ---- all at once ---- */

static __attribute__((noinline)) void flush_pending(struct rt_context *c)
{
	struct as_rt_tables *t = c->tables;
	uint32_t n = t->nrecent;
	if (!t->pending_blocks) {
		t->nrecent = 0;
		return;
	}
	uint64_t stamp = rt_stamp(c);
	if (n <= AS_RT_RECENT) {
		for (uint32_t i = 0; i < n; i++) {
			uint32_t at = t->recent[i];
			struct as_rt_pending_set *s =
				&t->pending[at >> 2 & (AS_RT_PENDING_SETS - 1)];
			if (is_pending(s, at & 3))
				tell_late(c, s, at & 3, stamp);
		}
	} else {
		for (uint32_t i = 0; i < AS_RT_PENDING_SETS; i++)
			for (uint32_t way = 0; way < AS_RT_WAYS; way++)
				if (is_pending(&t->pending[i], way))
					tell_late(c, &t->pending[i], way, stamp);
	}
	t->nrecent = 0;
}

/* False: there is no room for it now. */
static bool tell_sum(struct rt_context *c, struct as_rt_sum_set *s, uint32_t way)
{
	struct as_rt_tables *t = c->tables;
	const uint64_t w[4] = {0, s->key[way], s->word[way], (uint64_t)(s - t->sum) << 2 | way};
	if (!rt_emit(c, AS_RT_REC_SUM, 0, w, 2))
		return false;
	*(volatile uint64_t *)&s->key[way] = 0;
	RT_BARRIER();
	s->word[way] = 0;
	t->nsums--;
	return true;
}

void as_rt_flush(struct rt_context *c)
{
	rt_change_begins(c);
	flush_pending(c);
	rt_change_ends(c->tables);
}

bool as_rt_flush_all(struct rt_context *c)
{
	struct as_rt_tables *t = c->tables;
	if (!t)
		return true;
	if (t->seq & 1)
		return false; /* a handler's, within a change */
	bool ok = true;
	rt_change_begins(c);
	flush_pending(c);
	for (uint32_t i = 0; ok && t->nsums && i < AS_RT_SUM_SETS; i++)
		for (uint32_t way = 0; way < AS_RT_WAYS; way++)
			if (t->sum[i].key[way] && !tell_sum(c, &t->sum[i], way))
				ok = false;
	rt_change_ends(t);
	return ok;
}

void as_rt_look_at_recorder(struct rt_context *c)
{
	struct as_rt_tables *t = c->tables;
	uint32_t asked = *(const volatile uint32_t *)&c->ring->flush_asked;
	int64_t grant = *(const volatile int64_t *)&c->ring->grant;
	t->now_us = c->clock_ns / 1000;
	if (t->seq & 1)
		return;
	if (grant > t->ceiling)
		t->ceiling = grant;
	if (asked == t->flush_done)
		return;
	as_rt_flush(c);
	t->flush_stamp = rt_stamp(c);
	RT_BARRIER();
	*(volatile uint32_t *)&t->flush_done = asked;
}

/* ---- a maximum ---- */

/* Before so many bytes more are told or pending. */
static __attribute__((noinline)) void rise(struct rt_context *c, int64_t to)
{
	struct as_rt_tables *t = c->tables;
	int64_t grant = *(const volatile int64_t *)&c->ring->grant;
	if (grant > t->ceiling)
		t->ceiling = grant;
	if (to <= t->ceiling)
		return;
	flush_pending(c);
	t->ceiling = to;
}

void as_rt_grow(struct rt_context *c, int64_t bytes)
{
	struct as_rt_tables *t = c->tables;
	if (t->grown + bytes > t->ceiling) {
		rt_change_begins(c);
		rise(c, t->grown + bytes);
		rt_change_ends(t);
	}
	add_grown(t, bytes);
}

/* ---- blocks ---- */

void as_rt_tell_birth(struct rt_context *c, const struct rt_birth *b)
{
	as_rt_grow(c, b->size < INT64_MAX / 4 ? (int64_t)b->size : INT64_MAX / 4);
	(void)rt_emit_birth(c, b, rt_stamp(c), 0);
}

/* ---- places ---- */

struct place {
	struct as_rt_pending_set *set; /* NULL: none */
	uint32_t way;
};

static inline struct place find(struct as_rt_tables *t, uint64_t ptr)
{
	uint32_t home = rt_pending_place(ptr);
	struct as_rt_pending_set *s = &t->pending[home];
	uint32_t hits = rt_ways_of(s, ptr);
	if (RT_UNLIKELY(!hits && t->spilled[home])) {
		s = &t->pending[rt_second_place(ptr)];
		hits = rt_ways_of(s, ptr);
	}
	return (struct place){hits ? s : 0, hits ? (uint32_t)__builtin_ctz(hits) : 0};
}

static inline void clear_place(struct as_rt_tables *t, struct as_rt_pending_set *s,
			       uint32_t way)
{
	uint32_t home = rt_pending_place(s->block[way] >> 16);
	if (RT_UNLIKELY(s != &t->pending[home] && t->spilled[home]))
		t->spilled[home]--;
	*(volatile uint64_t *)&s->block[way] = 0;
}

static inline uint32_t empty_ways(const struct as_rt_pending_set *s)
{
	uint32_t none = 0;
	RT_ALL_WAYS
	for (uint32_t i = 0; i < AS_RT_WAYS; i++)
		none |= (uint32_t)!s->block[i] << i;
	return none;
}

/* What needs its place least: told, else the oldest. */
static uint32_t victim_of(const struct as_rt_pending_set *s)
{
	uint32_t way = 0;
	for (uint32_t i = 1; i < AS_RT_WAYS && is_pending(s, way); i++)
		if (!is_pending(s, i) || (int32_t)((uint32_t)(s->what[i] >> 32) -
						   (uint32_t)(s->what[way] >> 32)) < 0)
			way = i;
	return way;
}

/* An empty place for ptr, whatever it takes. One that has the address already is of a block that another
 * thread has freed. */
static __attribute__((noinline)) struct place make_place(struct rt_context *c, uint64_t ptr)
{
	struct as_rt_tables *t = c->tables;
	uint32_t home = rt_pending_place(ptr), none;
	struct place p = find(t, ptr);
	if (p.set) {
		add_grown(t, -(int64_t)(p.set->block[p.way] & (AS_RT_TOLD - 1)));
		if (is_pending(p.set, p.way))
			tell_late(c, p.set, p.way, rt_stamp(c));
		clear_place(t, p.set, p.way);
	}
	p.set = &t->pending[home];
	none = empty_ways(p.set);
	if (!none && t->spilled[home] < 255) {
		struct as_rt_pending_set *second = &t->pending[rt_second_place(ptr)];
		none = empty_ways(second);
		if (none) {
			p.set = second;
			t->spilled[home]++;
		}
	}
	if (none) {
		p.way = (uint32_t)__builtin_ctz(none);
		return p;
	}
	p.way = victim_of(p.set);
	if (is_pending(p.set, p.way))
		tell_late(c, p.set, p.way, rt_stamp(c));
	clear_place(t, p.set, p.way);
	return p;
}

static inline void note_recent(struct as_rt_tables *t, struct place p)
{
	uint32_t n = t->nrecent;
	if (n < AS_RT_RECENT)
		t->recent[n] = (uint16_t)((p.set - t->pending) << 2 | p.way);
	t->nrecent = n < AS_RT_RECENT + 1 ? n + 1 : n;
}

static inline void put(struct rt_context *c, struct place p, const struct rt_birth *b,
		       bool told)
{
	struct as_rt_pending_set *s = p.set;
	uint32_t way = p.way;
	uint64_t after = c->control->freed[as_rt_freed_place(b->ptr)];
	s->what[way] =
		b->node | (uint32_t)b->hook << AS_RT_WHAT_HOOK | (uint64_t)b->serial << 32;
	s->born_us[way] = c->tables->now_us;
	s->after[way] = after ? after : 1;
	RT_BARRIER();
	*(volatile uint64_t *)&s->block[way] = b->ptr << 16 | b->size | (told ? AS_RT_TOLD : 0);
}

void as_rt_know(struct rt_context *c, const struct rt_birth *b)
{
	struct as_rt_tables *t = c->tables;
	as_rt_grow(c, b->size < INT64_MAX / 4 ? (int64_t)b->size : INT64_MAX / 4);
	if (b->size >= AS_RT_PAIR_BYTES)
		return;
	rt_change_begins(c);
	put(c, make_place(c, b->ptr), b, true);
	rt_change_ends(t);
}

void as_rt_pend(struct rt_context *c, const struct rt_birth *b)
{
	struct as_rt_tables *t = c->tables;
	uint32_t home = rt_pending_place(b->ptr);
	struct place p = {.set = &t->pending[home]};
	bool told = false;
	rt_change_begins(c);
	if (RT_UNLIKELY(t->grown + (int64_t)b->size > t->ceiling)) {
		rise(c, t->grown + (int64_t)b->size);
		told = t->grown + (int64_t)b->size == t->ceiling;
	}
	if (RT_UNLIKELY(t->pending_bytes + b->size > AS_RT_PENDING_BYTES))
		flush_pending(c);
	told |= c->home->ends != 0;
	uint32_t none = empty_ways(p.set);
	if (RT_LIKELY(none && !rt_ways_of(p.set, b->ptr) && !t->spilled[home]))
		p.way = (uint32_t)__builtin_ctz(none);
	else
		p = make_place(c, b->ptr);
	put(c, p, b, told);
	add_grown(t, (int64_t)b->size);
	if (RT_UNLIKELY(told)) {
		(void)rt_emit_birth(c, b, rt_stamp(c), 0);
	} else {
		t->pending_blocks++;
		t->pending_bytes += b->size;
		if (t->pending_bytes > t->most_bytes)
			t->most_bytes = t->pending_bytes;
		note_recent(t, p);
	}
	rt_change_ends(t);
}

/* ---- sums ---- */

/* The sum of the key in a set that has none of it, with nothing in it; -1: there is no room. */
static __attribute__((noinline)) int new_sum(struct rt_context *c, struct as_rt_sum_set *s,
					     uint64_t key, int full)
{
	struct as_rt_tables *t = c->tables;
	int way = full;
	for (int i = 0; way < 0 && i < (int)AS_RT_WAYS; i++)
		if (!s->key[i])
			way = i;
	if (way < 0)
		way = (int)(t->victim++ & (AS_RT_WAYS - 1));
	if (s->key[way] && !tell_sum(c, s, (uint32_t)way))
		return -1;
	t->nsums++;
	s->word[way] = 0;
	RT_BARRIER();
	*(volatile uint64_t *)&s->key[way] = key;
	return way;
}

static inline void add_to_sum(struct rt_context *c, uint64_t key, uint64_t size)
{
	uint64_t h = key * 0x9e3779b97f4a7c15ull;
	struct as_rt_sum_set *s = &c->tables->sum[h >> 40 & (AS_RT_SUM_SETS - 1)];
	uint32_t hits = 0;
	RT_ALL_WAYS
	for (uint32_t i = 0; i < AS_RT_WAYS; i++)
		hits |= (uint32_t)(s->key[i] == key) << i;
	int way = RT_LIKELY(hits) ? __builtin_ctz(hits) : new_sum(c, s, key, -1);
	if (RT_UNLIKELY(way >= 0 && s->word[way] >> AS_RT_SUM_SHIFT >= SUM_MAX))
		way = new_sum(c, s, key, way);
	if (RT_UNLIKELY(way < 0)) {
		(void)rt_add_own(&c->ring->lost[AS_RT_REC_ALLOC], 1);
		(void)rt_add_own(&c->ring->lost[AS_RT_REC_FREE], 1);
		return;
	}
	*(volatile uint64_t *)&s->word[way] += (1ull << AS_RT_SUM_SHIFT) | size;
}

enum rt_end as_rt_end_block(struct rt_context *c, uint64_t ptr, uint16_t hook)
{
	struct as_rt_tables *t = c->tables;
	rt_change_begins(c); /* first: a handler may take the place */
	struct place p = find(t, ptr);
	struct as_rt_pending_set *s = p.set;
	uint32_t way = p.way;
	if (!s) {
		rt_change_ends(t);
		return RT_END_UNKNOWN;
	}
	uint64_t block = s->block[way], what = s->what[way], size = block & (AS_RT_TOLD - 1);
	uint64_t after = c->control->freed[as_rt_freed_place(ptr)];
	bool own = s->after[way] == (after ? after : 1);
	add_grown(t, -(int64_t)size);
	if (RT_UNLIKELY(block & AS_RT_TOLD || !own || c->home->ends)) {
		if (!(block & AS_RT_TOLD))
			tell_late(c, s, way, rt_stamp(c));
		clear_place(t, s, way);
		rt_change_ends(t);
		return own ? RT_END_OWN : RT_END_UNKNOWN;
	}
	/* first: where the thread ends in between the pair is missing, and nothing seems to leak */
	clear_place(t, s, way);
	leave_pending(t, size);
	uint32_t age = (uint32_t)c->serial - (uint32_t)(what >> 32);
	add_to_sum(c,
		   AS_RT_SUM_SET | (uint32_t)what | (uint64_t)hook << 32 |
			   (uint64_t)rt_bits(size) << 44 | (uint64_t)rt_bits(age) << 49 |
			   (uint64_t)rt_bits(t->now_us - s->born_us[way]) << 55,
		   size);
	rt_change_ends(t);
	return RT_END_SUMMED;
}

uint64_t as_rt_take_block(struct rt_context *c, uint64_t ptr)
{
	struct as_rt_tables *t = c->tables;
	uint64_t size = 0;
	rt_change_begins(c);
	struct place p = find(t, ptr);
	if (p.set) {
		size = p.set->block[p.way] & (AS_RT_TOLD - 1);
		if (is_pending(p.set, p.way))
			tell_late(c, p.set, p.way, rt_stamp(c));
		clear_place(t, p.set, p.way);
	}
	rt_change_ends(t);
	add_grown(t, -(int64_t)size);
	return size;
}

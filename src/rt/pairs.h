/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Pairs of allocations and frees, summed up here (abi/rt.h, "Pairs").
 *
 * Concurrency: tables are their thread's. A signal handler that comes while they are being changed (seq is
 * odd) leaves them alone; `grown` is changed by one instruction.
 */
#ifndef AS_RT_PAIRS_H
#define AS_RT_PAIRS_H

#include "rt/rt_priv.h"

#define RT_ALL_WAYS _Pragma("GCC unroll 4")

/* An allocation, as it is told. */
struct rt_birth {
	uint64_t ptr, size;
	uint32_t node, serial;
	uint16_t hook;
};

static inline bool rt_emit_birth(struct rt_context *c, const struct rt_birth *b, uint64_t stamp,
				 uint64_t after)
{
	const uint64_t w[6] = {
		0, stamp, b->ptr, b->size, b->node | (uint64_t)b->serial << 32, after};
	bool ok = rt_emit(c, AS_RT_REC_ALLOC, b->hook, w, 3);
	if (!ok)
		(void)rt_add_own(&c->ring->lost_bytes, b->size);
	return ok;
}

/* The thread's tables, when the call at frame may use them: they are not being changed. A change in a frame
 * that is gone was left by longjmp. */
static inline struct as_rt_tables *rt_tables(const struct rt_context *c,
					     const struct rt_frame *frame)
{
	struct as_rt_tables *t = c->tables;
	uint64_t sp = (uintptr_t)frame;
	if (RT_UNLIKELY(t && t->seq & 1 &&
			!(sp > c->change_sp && c->change_sp >= c->own_lo && sp <= c->own_last)))
		return 0;
	return t;
}

static inline void rt_change_begins(struct rt_context *c)
{
	c->change_sp = (uintptr_t)__builtin_frame_address(0);
	RT_BARRIER();
	*(volatile uint64_t *)&c->tables->seq |= 1;
	RT_BARRIER();
}

static inline void rt_change_ends(struct as_rt_tables *t)
{
	RT_BARRIER();
	*(volatile uint64_t *)&t->seq = (t->seq | 1) + 1;
}

static inline uint32_t rt_pending_place(uint64_t ptr)
{
	return (uint32_t)(ptr >> 4 ^ ptr >> 14 ^ ptr >> 24) & (AS_RT_PENDING_SETS - 1);
}

/* Where it may be, too: another one. */
static inline uint32_t rt_second_place(uint64_t ptr)
{
	return rt_pending_place(ptr) ^ ((uint32_t)(ptr >> 9) & 511) ^ 512;
}

/* Ways of the set that hold ptr: a bit each. All at once, since branches of a search are not foretold. */
static inline uint32_t rt_ways_of(const struct as_rt_pending_set *s, uint64_t ptr)
{
	uint32_t hits = 0;
	RT_ALL_WAYS
	for (uint32_t i = 0; i < AS_RT_WAYS; i++)
		hits |= (uint32_t)(s->block[i] >> 16 == ptr) << i;
	return hits;
}

static inline uint32_t rt_bits(uint64_t n)
{
	return n ? 64 - (uint32_t)__builtin_clzll(n) : 0;
}

/* A new block: pending, or told now. The tables are being changed. */
void as_rt_pend(struct rt_context *c, const struct rt_birth *b);
/* One that is too large for that, or with a node that serves once. */
void as_rt_tell_birth(struct rt_context *c, const struct rt_birth *b);
/* A block is freed by `hook`. */
enum rt_end {
	RT_END_SUMMED,  /* it was pending, and that is no record */
	RT_END_OWN,     /* it is the thread's, and told */
	RT_END_UNKNOWN, /* it may be anybody's */
};
enum rt_end as_rt_end_block(struct rt_context *c, uint64_t ptr, uint16_t hook);
/* A block is about to be changed: told, when it was not. Returns its size, 0 where that is not known. */
uint64_t as_rt_take_block(struct rt_context *c, uint64_t ptr);
/* A block that is told by other means than these. */
void as_rt_know(struct rt_context *c, const struct rt_birth *b);
/* The thread's blocks grow by so much with what is told next. */
void as_rt_grow(struct rt_context *c, int64_t bytes);
/* All pending blocks are told. */
void as_rt_flush(struct rt_context *c);
/* That, and all sums: nodes are about to be forgotten. False: not now. */
bool as_rt_flush_all(struct rt_context *c);
/* The clock has changed: what the recorder wants. */
void as_rt_look_at_recorder(struct rt_context *c);

#endif

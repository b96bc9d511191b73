/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which blocks are told (abi/rt.h, "Sampling"). Distances between marks are exponential: the number
 * of marks on any bytes is then the same by law whatever blocks they are cut into, and a block is
 * chosen independently of all others.
 */
#include "rt/rt_priv.h"

#define LOG_BITS 26
#define LN2_Q32  2977044472ull /* ln 2 * 2^32 */

/* A sequence that visits every number once, mixed (the method of splitmix64). */
static uint64_t next_random(struct rt_context *c)
{
	uint64_t z = c->random += 0x9e3779b97f4a7c15ull;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* -log2(x / 2^64) * 2^LOG_BITS, x > 0: one bit of the logarithm by each squaring. */
static uint64_t negative_log2(uint64_t x)
{
	uint32_t zeros = (uint32_t)__builtin_clzll(x);
	uint64_t y = x << zeros >> 32, log = 0; /* y: 1 to 2, in units of 2^-31 */
	for (int i = 0; i < LOG_BITS; i++) {
		y = y * y >> 31;
		log = log << 1 | y >> 32;
		y >>= y >> 32;
	}
	return ((uint64_t)(zeros + 1) << LOG_BITS) - log;
}

int64_t as_rt_draw(struct rt_context *c)
{
	uint64_t ln = negative_log2(next_random(c) | 1) * LN2_Q32 >> 32;
	unsigned __int128 bytes = (unsigned __int128)ln * c->control->sample_bytes >> LOG_BITS;
	/* bytes are whole: a mark lies on the one it falls into */
	return bytes < INT64_MAX ? (int64_t)bytes + 1 : INT64_MAX;
}

/* Other threads fill and empty the bucket meanwhile. */
void as_rt_sample_mark(struct rt_context *c, uint64_t ptr)
{
	uint32_t *b = rt_sampled_bucket(c, ptr), key = rt_sampled_key(ptr);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t none = 0;
		if (__atomic_compare_exchange_n(&b[i], &none, key, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return;
	}
	__atomic_store_n(&b[1], AS_RT_SAMPLED_ALL, __ATOMIC_RELEASE);
}

void as_rt_sample_unmark(struct rt_context *c, uint64_t ptr)
{
	uint32_t *b = rt_sampled_bucket(c, ptr);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t key = rt_sampled_key(ptr);
		if (__atomic_compare_exchange_n(&b[i], &key, 0, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return;
	}
}

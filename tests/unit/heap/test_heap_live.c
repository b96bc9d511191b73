/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The map of live blocks against a plain one, and what it takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "heap/live.h"

static uint64_t state = 88172645463325252ull;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* Small blocks side by side, large ones, and addresses from all over the 48 bits. */
static uint64_t some_address(void)
{
	uint64_t r = next();

	switch (r % 4) {
	case 0:
		return 0x555500000000ull + (r >> 8) % 4096 * 32;
	case 1:
		return 0x7f0000000000ull + (r >> 8) % 4096 * 4096 + 16;
	case 2:
		return 0x10000 + (r >> 8) % 512;
	default:
		return ((r >> 8) % 2048 * 0x1000193000ull) & 0x7fffffffffffull;
	}
}

static uint64_t some_size(void)
{
	static const uint64_t edge[] = {0,          16382,      16383,           16384,
					1ull << 20, 1ull << 32, (1ull << 47) - 1};
	uint64_t r = next();

	return r % 3 ? (r >> 8) % 5000 : edge[(r >> 8) % AS_ARRAY_LEN(edge)];
}

struct truth {
	struct as_map64 index;
	AS_VEC(struct as_live_block) blocks;
};

static void assert_same(const struct as_live_block *a, const struct as_live_block *b)
{
	assert_int_equal(a->size_bytes, b->size_bytes);
	assert_int_equal(a->tally, b->tally);
	assert_int_equal(a->birth, b->birth);
	assert_int_equal(a->grown, b->grown);
}

struct seen {
	const struct truth *t;
	uint64_t n;
};

static bool see(void *ctx, uint64_t ptr, struct as_live_block *b)
{
	struct seen *s = ctx;
	const uint64_t *at = as_map64_get(&s->t->index, ptr);

	assert_non_null(at);
	assert_same(b, &s->t->blocks.v[*at]);
	s->n++;
	return false;
}

static void it_holds_what_a_plain_map_holds(void **unused)
{
	struct as_live m;
	struct truth t = {0};
	struct seen s = {.t = &t};

	as_live_init(&m);
	for (int i = 0; i < 400000; i++) {
		uint64_t ptr = some_address();
		uint64_t *at = as_map64_get(&t.index, ptr);
		struct as_live_block b = {some_size(), (uint32_t)next() % AS_LIVE_TALLIES,
					  (uint32_t)next() % AS_LIVE_BIRTHS, next() % 2};
		struct as_live_block got;

		assert_int_equal(as_live_find(&m, ptr, &got), at != NULL);
		if (at) {
			assert_same(&got, &t.blocks.v[*at]);
			assert_true(as_live_take(&m, ptr, &got));
			assert_same(&got, &t.blocks.v[*at]);
			assert_true(as_map64_del(&t.index, ptr));
			assert_false(as_live_take(&m, ptr, &got));
			continue;
		}
		as_live_add(&m, ptr, &b);
		*as_map64_put(&t.index, ptr, NULL) = t.blocks.n;
		as_vec_push(&t.blocks, b);
		assert_int_equal(m.n, t.index.n);
	}
	for (uint32_t i = 0; i < AS_LIVE_BUCKETS; i++)
		as_live_visit(&m, i, see, &s);
	assert_int_equal(s.n, t.index.n);
	as_live_clear(&m);
	as_map64_clear(&t.index);
	as_vec_clear(&t.blocks);
}

static bool make_old(void *ctx, uint64_t ptr, struct as_live_block *b)
{
	b->birth = 7;
	return true;
}

static void a_visit_can_change_births(void **unused)
{
	struct as_live m;
	struct as_live_block b = {200000, 3, 99, true};

	as_live_init(&m);
	as_live_add(&m, 0x7fffffffe010, &b);
	for (uint32_t i = 0; i < AS_LIVE_BUCKETS; i++)
		as_live_visit(&m, i, make_old, NULL);
	assert_true(as_live_take(&m, 0x7fffffffe010, &b));
	assert_same(&b, &(struct as_live_block){200000, 3, 7, true});
	as_live_clear(&m);
}

static double bytes_each(const struct as_live *m)
{
	return (double)as_live_memory(m) / (double)m->n;
}

static void two_million_blocks_take_sixteen_bytes_each(void **unused)
{
	static const uint64_t distance[] = {32, 48, 1040, 8192};

	for (size_t d = 0; d < AS_ARRAY_LEN(distance); d++) {
		struct as_live m;
		struct as_live_block b;

		as_live_init(&m);
		for (uint64_t i = 0; i < 2000000; i++)
			as_live_add(&m, 0x555555554000 + i * distance[d],
				    &(struct as_live_block){24, (uint32_t)i & 0xfff,
							    (uint32_t)i, false});
		assert_true(bytes_each(&m) <= 16);
		for (uint64_t i = 0; i < 2000000; i++)
			assert_true(as_live_take(&m, 0x555555554000 + i * distance[d], &b));
		assert_int_equal(m.n, 0);
		as_live_clear(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_holds_what_a_plain_map_holds),
		cmocka_unit_test(a_visit_can_change_births),
		cmocka_unit_test(two_million_blocks_take_sixteen_bytes_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

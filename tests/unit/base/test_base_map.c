/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* base: the integer map against a naive model, and interning. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/map.h"

static void an_empty_map_has_nothing(void **state)
{
	struct as_map64 m = {0};

	assert_null(as_map64_get(&m, 0));
	assert_false(as_map64_del(&m, 0));
	as_map64_clear(&m);
}

static uint64_t few_hashes(const void *list, uint32_t number)
{
	return ((const uint32_t *)list)[number] % 7 * 0x9e3779b97f4a7c15ull;
}

static uint32_t number_of(struct as_slots *s, const uint32_t *list, uint32_t value)
{
	size_t at = as_slots_home(s, few_hashes(&value, 0));

	while (s->slot[at] && list[s->slot[at] - 1] != value)
		at = as_slots_next(s, at);
	return s->slot[at];
}

static void slots_find_what_the_list_has(void **state)
{
	enum { N = 3000 };
	struct as_slots s = {0};
	uint32_t list[N];

	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		size_t at;

		as_slots_reserve(&s, few_hashes, list);
		list[i] = i * i + 1;
		assert_int_equal(number_of(&s, list, list[i]), 0);
		at = as_slots_home(&s, few_hashes(list, i));
		while (s.slot[at])
			at = as_slots_next(&s, at);
		as_slots_put(&s, at, i);
	}
	assert_int_equal(s.n, N);
	assert_true(s.n * 5 <= s.cap * 3);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(number_of(&s, list, i * i + 1), i + 1);
	assert_int_equal(number_of(&s, list, 3), 0);
	as_slots_clear(&s);
	assert_null(s.slot);
}

static void a_new_value_is_zero_and_stays_put(void **state)
{
	struct as_map64 m = {0};
	bool fresh;
	uint64_t *v = as_map64_put(&m, 0, &fresh);

	assert_true(fresh);
	assert_int_equal(*v, 0);
	*v = 7;
	v = as_map64_put(&m, 0, &fresh);
	assert_false(fresh);
	assert_int_equal(*v, 7);
	assert_int_equal(*as_map64_get(&m, 0), 7);
	assert_null(as_map64_get(&m, UINT64_MAX));
	as_map64_clear(&m);
}

/*
 * Keys come from a small range, so that runs collide, wrap around the end and get holes; a
 * plain array is the model. Every fourth range uses keys that share their low bits.
 */
static void random_puts_and_deletions_agree_with_an_array(void **state)
{
	enum { KEYS = 400, STEPS = 60000 };
	uint64_t seed = 42;

	for (unsigned round = 0; round < 8; round++) {
		struct as_map64 m = {0};
		uint64_t model[KEYS] = {0};
		bool present[KEYS] = {0};
		size_t n = 0;
		unsigned shift = round % 4 == 3 ? 32 : 0;

		for (int step = 0; step < STEPS / 8; step++) {
			seed = as_mix64(seed + 0x9e3779b97f4a7c15ull);

			size_t k = seed % KEYS;
			uint64_t key = (uint64_t)k << shift;

			if (seed >> 40 & 1) {
				bool fresh;

				*as_map64_put(&m, key, &fresh) = seed;
				assert_int_equal(fresh, !present[k]);
				n += fresh;
				model[k] = seed;
				present[k] = true;
			} else {
				assert_int_equal(as_map64_del(&m, key), present[k]);
				n -= present[k];
				present[k] = false;
			}
			assert_int_equal(m.n, n);
			if (step % 97)
				continue;
			for (size_t i = 0; i < KEYS; i++) {
				uint64_t *v = as_map64_get(&m, (uint64_t)i << shift);

				assert_int_equal(v != NULL, present[i]);
				if (v)
					assert_int_equal(*v, model[i]);
			}
		}
		as_map64_clear(&m);
	}
}

static void a_large_map_finds_all(void **state)
{
	struct as_map64 m = {0};

	for (uint64_t i = 0; i < 200000; i++)
		*as_map64_put(&m, i * 4096, NULL) = i;
	assert_int_equal(m.n, 200000);
	assert_true(m.n * 5 <= m.cap * 3);
	for (uint64_t i = 0; i < 200000; i++)
		assert_int_equal(*as_map64_get(&m, i * 4096), i);
	as_map64_clear(&m);
}

static void equal_strings_get_one_id(void **state)
{
	struct as_intern in = {0};
	char name[32];

	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 5000; i++) {
			int n = snprintf(name, sizeof name, "name-%u", i);

			assert_int_equal(as_intern(&in, name, (size_t)n), i);
		}
	}
	assert_string_equal(as_intern_get(&in, 4999), "name-4999");
	assert_string_equal(as_intern_get(&in, 5000), "");

	uint32_t id;

	assert_true(as_intern_find(&in, "name-17", 7, &id));
	assert_int_equal(id, 17);
	assert_false(as_intern_find(&in, "name-", 5, &id));
	as_intern_clear(&in);
	assert_false(as_intern_find(&in, "name-17", 7, &id));
	assert_int_equal(as_intern_str(&in, "again"), 0);
	as_intern_clear(&in);
}

static void strings_with_nul_and_the_empty_string_are_distinct(void **state)
{
	struct as_intern in = {0};

	assert_int_equal(as_intern(&in, NULL, 0), 0);
	assert_int_equal(as_intern(&in, "a", 1), 1);
	assert_int_equal(as_intern(&in, "a\0b", 3), 2);
	assert_int_equal(as_intern(&in, "a\0c", 3), 3);
	assert_int_equal(as_intern_str(&in, ""), 0);
	assert_memory_equal(as_intern_get(&in, 3), "a\0c", 4);
	as_intern_clear(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_map_has_nothing),
		cmocka_unit_test(slots_find_what_the_list_has),
		cmocka_unit_test(a_new_value_is_zero_and_stays_put),
		cmocka_unit_test(random_puts_and_deletions_agree_with_an_array),
		cmocka_unit_test(a_large_map_finds_all),
		cmocka_unit_test(equal_strings_get_one_id),
		cmocka_unit_test(strings_with_nul_and_the_empty_string_are_distinct),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* base: growable buffers, bounded reader, LEB128, CRC, hash, arena, vector. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"

static void a_zeroed_buffer_is_an_empty_string(void **state)
{
	struct as_buf b = {0};

	assert_string_equal(as_buf_str(&b), "");
	as_buf_reset(&b);
	as_buf_add(&b, NULL, 0);
	assert_string_equal(as_buf_str(&b), "");
	as_buf_clear(&b);

	char *s = as_buf_detach(&b);

	assert_string_equal(s, "");
	free(s);
}

static void a_buffer_stays_terminated_while_it_grows(void **state)
{
	struct as_buf b = {0};

	for (int i = 0; i < 5000; i++) {
		as_buf_addc(&b, (char)('a' + i % 26));
		assert_true(b.len < b.cap);
		assert_int_equal(b.p[b.len], 0);
	}
	assert_int_equal(b.len, 5000);
	as_buf_fill(&b, '-', 3);
	assert_string_equal(b.p + 5000, "---");
	as_buf_reset(&b);
	assert_string_equal(as_buf_str(&b), "");
	as_buf_clear(&b);
}

static void formatted_text_longer_than_the_room_is_whole(void **state)
{
	struct as_buf b = {0};

	for (int width = 0; width < 400; width++) {
		as_buf_reset(&b);
		as_buf_addf(&b, "<%*s>", width, "x");
		assert_int_equal(b.len, (width ? width : 1) + 2);
		assert_int_equal(b.p[b.len - 1], '>');
	}
	as_buf_clear(&b);
}

static void unsigned_leb_round_trips_at_every_bit_length(void **state)
{
	struct as_buf b = {0};

	for (int bit = 0; bit <= 64; bit++) {
		uint64_t edge = bit == 64 ? 0 : (uint64_t)1 << bit;

		for (uint64_t v = edge - 2, i = 0; i < 4; v++, i++) {
			as_buf_reset(&b);
			as_buf_uleb(&b, v);
			assert_true(b.len <= 10);

			struct as_rd r = AS_RD(b.p, b.len);

			assert_int_equal(as_rd_uleb(&r), v);
			assert_false(r.bad);
			assert_int_equal(as_rd_left(&r), 0);
		}
	}
	as_buf_clear(&b);
}

static void signed_leb_round_trips_at_every_bit_length(void **state)
{
	struct as_buf b = {0};

	for (int bit = 0; bit < 64; bit++) {
		for (int sign = 0; sign < 2; sign++) {
			for (uint64_t i = 0; i < 4; i++) {
				uint64_t u = ((uint64_t)1 << bit) - 2 + i;
				int64_t v = (int64_t)(sign ? 0 - u : u);

				as_buf_reset(&b);
				as_buf_sleb(&b, v);

				struct as_rd r = AS_RD(b.p, b.len);

				assert_true(as_rd_sleb(&r) == v);
				assert_false(r.bad);
				assert_int_equal(as_rd_left(&r), 0);
			}
		}
	}
	as_buf_clear(&b);
}

/* The examples of the DWARF standard, appendix C, and padded forms as linkers write them. */
static void known_and_padded_leb_forms_decode(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		uint64_t u;
		int64_t s;
	} cases[] = {
		{"\x02", 1, 2, 2},
		{"\x7f", 1, 127, -1},
		{"\x80\x01", 2, 128, 128},
		{"\x81\x01", 2, 129, 129},
		{"\x80\x7f", 2, 16256, -128},
		{"\xff\x7e", 2, 16255, -129},
		{"\x85\x80\x80\x00", 4, 5, 5},
		{"\x85\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 13, 5, 5},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
		struct as_rd u = AS_RD(cases[i].bytes, cases[i].n);
		struct as_rd s = u;

		assert_int_equal(as_rd_uleb(&u), cases[i].u);
		assert_true(as_rd_sleb(&s) == cases[i].s);
		assert_false(u.bad || s.bad);
	}

	/* Minus one, padded beyond 64 bits with copies of the sign. */
	struct as_rd r = AS_RD("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 12);

	assert_true(as_rd_sleb(&r) == -1);
	assert_false(r.bad);
}

static void leb_with_bits_beyond_64_is_bad(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} cases[] = {
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11},
		{"\x80\x80", 2},
		{"", 0},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
		struct as_rd u = AS_RD(cases[i].bytes, cases[i].n);
		struct as_rd s = u;

		assert_int_equal(as_rd_uleb(&u), 0);
		assert_true(u.bad);
		assert_int_equal(as_rd_sleb(&s), 0);
		assert_true(s.bad);
	}
}

static void endless_leb_padding_ends_with_the_input(void **state)
{
	char *zeros = as_xmalloc(1 << 20);

	memset(zeros, 0x80, 1 << 20);

	struct as_rd r = AS_RD(zeros, 1 << 20);

	assert_int_equal(as_rd_uleb(&r), 0);
	assert_true(r.bad);
	free(zeros);
}

static void reads_past_the_end_yield_zero_for_ever(void **state)
{
	static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 'h', 'i', 0, 'x'};
	struct as_rd r = AS_RD(bytes, sizeof bytes);

	assert_int_equal(as_rd_u8(&r), 1);
	assert_int_equal(as_rd_u16(&r), 0x0302);
	assert_int_equal(as_rd_u32(&r), 0x07060504);
	assert_int_equal(as_rd_uint(&r, 2), 0x0908);
	assert_string_equal(as_rd_cstr(&r), "hi");
	assert_false(r.bad);
	assert_string_equal(as_rd_cstr(&r), ""); /* no NUL after the x */
	assert_true(r.bad);
	assert_int_equal(as_rd_u8(&r), 0);
	assert_int_equal(as_rd_u64(&r), 0);
	assert_null(as_rd_bytes(&r, 0));
}

static void skipping_more_than_the_address_space_is_bad(void **state)
{
	static const uint8_t bytes[4];
	struct as_rd r = AS_RD(bytes, sizeof bytes);

	as_rd_skip(&r, UINT64_MAX);
	assert_true(r.bad);
	assert_int_equal(as_rd_left(&r), 4);

	struct as_rd wide = AS_RD(bytes, sizeof bytes);

	assert_int_equal(as_rd_uint(&wide, 9), 0);
	assert_true(wide.bad);
}

/* RFC 3720, B.4: 32 zeros, 32 ones, ascending; and the usual check string. */
static void crc32c_gives_the_published_values(void **state)
{
	uint8_t b[32];

	assert_int_equal(as_crc32c(0, "123456789", 9), 0xe3069283);
	memset(b, 0, 32);
	assert_int_equal(as_crc32c(0, b, 32), 0x8a9136aa);
	memset(b, 0xff, 32);
	assert_int_equal(as_crc32c(0, b, 32), 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		b[i] = (uint8_t)i;
	assert_int_equal(as_crc32c(0, b, 32), 0x46dd794e);
	for (size_t cut = 0; cut <= 32; cut++)
		assert_int_equal(as_crc32c(as_crc32c(0, b, cut), b + cut, 32 - cut),
				 0x46dd794e);
}

static void the_hash_spreads_similar_keys(void **state)
{
	/* 64 k keys that differ in one counter fill 16 low and 16 high bits as chance would. */
	static uint8_t low[1 << 16], high[1 << 16];
	size_t low_used = 0, high_used = 0;

	for (uint32_t i = 0; i < 1 << 16; i++) {
		char key[32] = "std::collections::";

		memcpy(key + 18, &i, 4);

		uint64_t h = as_hash64(key, 22 + i % 3);

		low_used += !low[h & 0xffff]++;
		high_used += !high[h >> 48]++;
	}
	/* Expected 1 - 1/e = 41,427 of 65,536; the standard deviation is about 103. */
	assert_in_range(low_used, 40900, 41950);
	assert_in_range(high_used, 40900, 41950);
}

static void every_bit_of_a_key_changes_half_of_the_hash(void **state)
{
	for (size_t n = 1; n <= 40; n++) {
		uint8_t key[40] = {0};
		uint64_t h = as_hash64(key, n);
		unsigned flips = 0;

		for (size_t bit = 0; bit < 8 * n; bit++) {
			key[bit / 8] ^= (uint8_t)(1 << bit % 8);

			unsigned d = (unsigned)__builtin_popcountll(h ^ as_hash64(key, n));

			key[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_in_range(d, 8, 56);
			flips += d;
		}
		assert_in_range(flips / (8 * n), 28, 36);
	}
}

static void arena_pieces_are_zeroed_aligned_and_apart(void **state)
{
	struct as_arena a = {0};
	uint64_t seed = 1;
	unsigned char *piece[2000];
	size_t size[2000];

	for (size_t i = 0; i < 2000; i++) {
		seed = as_mix64(seed + i);
		size[i] = seed % (i % 100 == 0 ? 200000 : 200);
		piece[i] = as_arena_alloc(&a, size[i]);
		assert_int_equal((uintptr_t)piece[i] % 8, 0);
		for (size_t k = 0; k < size[i]; k++)
			assert_int_equal(piece[i][k], 0);
		memset(piece[i], (int)(i & 0xff), size[i]);
	}
	for (size_t i = 0; i < 2000; i++) {
		for (size_t k = 0; k < size[i]; k++)
			assert_int_equal(piece[i][k], i & 0xff);
	}
	assert_string_equal(as_arena_strndup(&a, "abcdef", 3), "abc");
	assert_string_equal(as_arena_strdup(&a, ""), "");
	as_arena_clear(&a);
	assert_int_equal(a.used_bytes, 0);
	as_arena_clear(&a);
}

static void a_vector_keeps_what_was_pushed(void **state)
{
	AS_VEC(struct pair {
		int a;
		int64_t b;
	})
	v = {0};

	for (int i = 0; i < 1000; i++)
		as_vec_push(&v, (struct pair){i, -i});

	int at = 0;

	as_vec_foreach (it, &v) {
		assert_int_equal(it->a, at);
		at++;
	}
	assert_int_equal(at, 1000);
	as_vec_clear(&v);
	assert_null(v.v);
}

static void large_arrays_begin_where_large_pages_do(void **state)
{
	enum { N = 700000 };
	AS_VEC(uint64_t) v = {0};
	void *array;

	(void)state;
	for (uint64_t i = 0; i < N; i++)
		as_vec_push(&v, i * i);
	for (uint64_t i = 0; i < N; i++)
		assert_int_equal(v.v[i], i * i);
	assert_int_equal((uintptr_t)v.v % AS_LARGE_BYTES, 0);
	as_vec_reserve(&v, 4 * (size_t)N);
	assert_int_equal(v.n, N);
	assert_int_equal(v.v[N - 1], (uint64_t)(N - 1) * (N - 1));
	as_vec_clear(&v);
	array = as_xarray(AS_LARGE_BYTES / 16, 16);
	assert_int_equal((uintptr_t)array % AS_LARGE_BYTES, 0);
	free(array);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_zeroed_buffer_is_an_empty_string),
		cmocka_unit_test(a_buffer_stays_terminated_while_it_grows),
		cmocka_unit_test(formatted_text_longer_than_the_room_is_whole),
		cmocka_unit_test(unsigned_leb_round_trips_at_every_bit_length),
		cmocka_unit_test(signed_leb_round_trips_at_every_bit_length),
		cmocka_unit_test(known_and_padded_leb_forms_decode),
		cmocka_unit_test(leb_with_bits_beyond_64_is_bad),
		cmocka_unit_test(endless_leb_padding_ends_with_the_input),
		cmocka_unit_test(reads_past_the_end_yield_zero_for_ever),
		cmocka_unit_test(skipping_more_than_the_address_space_is_bad),
		cmocka_unit_test(crc32c_gives_the_published_values),
		cmocka_unit_test(the_hash_spreads_similar_keys),
		cmocka_unit_test(every_bit_of_a_key_changes_half_of_the_hash),
		cmocka_unit_test(arena_pieces_are_zeroed_aligned_and_apart),
		cmocka_unit_test(a_vector_keeps_what_was_pushed),
		cmocka_unit_test(large_arrays_begin_where_large_pages_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

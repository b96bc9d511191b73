/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* pprof files, read back by a decoder of the wire format that shares nothing with the writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <zlib.h>
#include "base/buf.h"
#include "exchange/exchange.h"
#include "exchange/protobuf.h"
#include "hand_model.h"

/* ---- reading ---- */

struct field {
	unsigned number;
	bool is_bytes;
	uint64_t value; /* or the length of bytes */
	const uint8_t *bytes;
};

static uint64_t varint(const uint8_t **p, const uint8_t *end)
{
	uint64_t v = 0;

	for (unsigned shift = 0;; shift += 7) {
		uint8_t byte;

		assert_true(*p < end && shift < 64);
		byte = *(*p)++;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return v;
	}
}

static bool next_field(const uint8_t **p, const uint8_t *end, struct field *ret)
{
	uint64_t key;

	if (*p == end)
		return false;
	key = varint(p, end);
	*ret = (struct field){.number = (unsigned)(key >> 3), .is_bytes = (key & 7) == 2};
	assert_true((key & 7) == 0 || (key & 7) == 2);
	ret->value = varint(p, end);
	if (ret->is_bytes) {
		assert_true(ret->value <= (uint64_t)(end - *p));
		ret->bytes = *p;
		*p += ret->value;
	}
	return true;
}

struct message {
	const uint8_t *p, *end;
};

/* The n-th field of that number; a message, string or packed list. */
static bool nth(struct message in, unsigned number, unsigned n, struct field *ret)
{
	while (next_field(&in.p, in.end, ret)) {
		if (ret->number == number && n-- == 0)
			return true;
	}
	return false;
}

static struct message message(struct message in, unsigned number, unsigned n)
{
	struct field f;

	assert_true(nth(in, number, n, &f));
	assert_true(f.is_bytes);
	return (struct message){f.bytes, f.bytes + f.value};
}

static uint64_t number(struct message in, unsigned field_number)
{
	struct field f;

	return nth(in, field_number, 0, &f) ? f.value : 0;
}

static unsigned count(struct message in, unsigned field_number)
{
	struct field f;
	unsigned n = 0;

	while (nth(in, field_number, n, &f))
		n++;
	return n;
}

static unsigned packed(struct message in, unsigned field_number, uint64_t *ret, unsigned max)
{
	struct message list = message(in, field_number, 0);
	unsigned n = 0;

	while (list.p < list.end) {
		assert_true(n < max);
		ret[n++] = varint(&list.p, list.end);
	}
	return n;
}

static const char *string(struct message profile, uint64_t index)
{
	static char text[8][256];
	static unsigned turn;
	struct message s = message(profile, 6, (unsigned)index);

	turn = (turn + 1) % 8;
	snprintf(text[turn], sizeof text[turn], "%.*s", (int)(s.end - s.p), (const char *)s.p);
	return text[turn];
}

static struct message by_id(struct message profile, unsigned kind, uint64_t id)
{
	for (unsigned i = 0;; i++) {
		struct message m = message(profile, kind, i);

		if (number(m, 1) == id)
			return m;
	}
}

/* "main@10 <- leaf@11": the names along a sample, innermost first. */
static void names_of(struct message profile, struct message sample, struct as_buf *out)
{
	uint64_t ids[64];
	unsigned n = packed(sample, 1, ids, 64);

	as_buf_reset(out);
	for (unsigned i = 0; i < n; i++) {
		struct message location = by_id(profile, 4, ids[i]);
		unsigned lines = count(location, 4);

		assert_true(lines > 0);
		for (unsigned k = 0; k < lines; k++) {
			struct message line = message(location, 4, k);
			struct message function = by_id(profile, 5, number(line, 1));

			as_buf_addf(out, "%s%s", out->len ? " " : "",
				    string(profile, number(function, 2)));
		}
	}
}

static struct as_buf file, plain;

static int clear(void **state)
{
	as_buf_clear(&file);
	as_buf_clear(&plain);
	return 0;
}

/* Writes and unpacks; the message lives until the next call. */
static struct message profile_of(const struct as_model *m, const struct as_query *q)
{
	struct as_export_options o = {.query = q};
	struct as_sink sink;
	z_stream z = {0};

	as_buf_reset(&file);
	as_buf_reset(&plain);
	as_sink_init_buf(&sink, &file);
	assert_int_equal(as_exporter_find("pprof")->write(m, &o, &sink, NULL), 0);
	assert_int_equal(as_sink_finish(&sink, NULL), 0);
	as_sink_clear(&sink);
	as_buf_reserve(&plain, 1 << 20);
	z.next_in = (uint8_t *)file.p;
	z.avail_in = (unsigned)file.len;
	z.next_out = (uint8_t *)plain.p;
	z.avail_out = 1 << 20;
	assert_int_equal(inflateInit2(&z, MAX_WBITS + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	plain.len = z.total_out;
	inflateEnd(&z);
	return (struct message){(uint8_t *)plain.p, (uint8_t *)plain.p + plain.len};
}

/* ---- the model of most tests: main calls work, in which inner is inlined; a syscall ---- */

static uint32_t fn_main, fn_work, fn_inner, fn_sys;
static uint32_t st_main, st_work, st_sys;

static void make(struct as_model *m)
{
	hm_init(m);
	fn_main = hm_function(m, "main", HM_APP);
	fn_work = hm_function(m, "app::work", HM_APP);
	fn_inner = hm_function(m, "app::inner<u8>", HM_APP);
	fn_sys = hm_function(m, "do_syscall_64", HM_KERNEL);
	st_main = hm_stack(m, AS_NONE, hm_frame(m, HM_APP, &fn_main, 1));
	st_work = hm_stack(m, st_main, hm_frame(m, HM_APP, (uint32_t[]){fn_inner, fn_work}, 2));
	st_sys = hm_stack(m, st_work, hm_frame(m, HM_KERNEL, &fn_sys, 1));
	m->frames.v[2].addr = 0xffffffff81000123;
	m->frames.v[2].flags |= AS_FRAME_EXACT;
	m->modules.v[HM_APP].build_id_len = 4;
	memcpy(m->modules.v[HM_APP].build_id, "\x01\xab\x00\xff", 4);
	as_vec_push(&m->maps, (struct as_m_map){.avma = 0x555500001000,
						.size_bytes = 0x3000,
						.off = 0x800,
						.svma = 0x1000,
						.knows_svma = true,
						.process = 0,
						.module = HM_APP});
	hm_samples(m, 0, st_work, AS_END_ROOT, 5);
	hm_samples(m, 1, st_work, AS_END_ROOT, 3);
	hm_samples(m, 0, st_sys, AS_END_ROOT, 2);
	hm_samples(m, 0, st_main, AS_END_SHORT, 1);
}

static void the_head_says_what_is_counted(void **state)
{
	struct as_model m;
	struct message p, type;

	make(&m);
	p = profile_of(&m, NULL);
	assert_int_equal(count(p, 1), 2);
	type = message(p, 1, 0);
	assert_string_equal(string(p, number(type, 1)), "samples");
	assert_string_equal(string(p, number(type, 2)), "count");
	type = message(p, 1, 1);
	assert_string_equal(string(p, number(type, 1)), "cpu");
	assert_string_equal(string(p, number(type, 2)), "nanoseconds");
	assert_string_equal(string(p, number(p, 14)), "cpu");
	assert_int_equal(number(p, 12), 1000000); /* the period of 1,000 Hz */
	assert_int_equal(number(p, 9), 1700000000000000000);
	assert_string_equal(string(p, 0), "");
	hm_clear(&m);
}

static void a_sample_stands_for_a_thread_and_stack(void **state)
{
	struct as_model m;
	AS_CLEANUP(as_buf_clear) struct as_buf names = {0};
	struct message p, label;
	uint64_t values[4];

	make(&m);
	p = profile_of(&m, NULL);
	assert_int_equal(count(p, 2), 4);
	names_of(p, message(p, 2, 0), &names);
	assert_string_equal(names.p, "app::inner<u8> app::work main");
	assert_int_equal(packed(message(p, 2, 0), 2, values, 4), 2);
	assert_int_equal(values[0], 5);
	assert_int_equal(values[1], 5 * HM_WEIGHT_NS);
	label = message(message(p, 2, 1), 3, 0);
	assert_string_equal(string(p, number(label, 1)), "thread");
	assert_string_equal(string(p, number(label, 2)), "worker");
	label = message(message(p, 2, 1), 3, 1);
	assert_string_equal(string(p, number(label, 1)), "tid");
	assert_int_equal(number(label, 3), 101);
	names_of(p, message(p, 2, 2), &names);
	assert_string_equal(names.p, "do_syscall_64 app::inner<u8> app::work main");
	names_of(p, message(p, 2, 3), &names);
	assert_string_equal(names.p, "main [truncated: x]");
	hm_clear(&m);
}

static void mappings_are_places_in_one_address_space(void **state)
{
	struct as_model m;
	struct message p, map, location;

	make(&m);
	p = profile_of(&m, NULL);
	assert_int_equal(count(p, 3), 2);
	map = message(p, 3, 0);
	assert_string_equal(string(p, number(map, 5)), "/bin/app");
	assert_string_equal(string(p, number(map, 6)), "01ab00ff");
	assert_int_equal(number(map, 2), 0x555500001000);
	assert_int_equal(number(map, 3), 0x555500004000);
	assert_int_equal(number(map, 4), 0x800);
	for (unsigned has = 7; has <= 10; has++)
		assert_int_equal(number(map, has), 1);
	/* a return address, so the byte before it; the kernel's is where it was interrupted */
	location = by_id(p, 4, 2);
	assert_int_equal(number(location, 2), number(map, 1));
	assert_int_equal(number(location, 3), 0x55550000200f);
	location = by_id(p, 4, 3);
	assert_int_equal(number(location, 3), 0xffffffff81000123);
	map = by_id(p, 3, number(location, 2));
	assert_string_equal(string(p, number(map, 5)), "[kernel]");
	assert_int_equal(number(map, 8), 0);
	hm_clear(&m);
}

static void without_map_records_mappings_hold_their_locations(void **state)
{
	struct as_model m;
	struct message p;

	make(&m);
	m.maps.n = 0;
	m.frames.v[0].addr = UINT64_MAX;
	m.frames.v[1].addr = 0;
	p = profile_of(&m, NULL);
	for (unsigned i = 0; i < count(p, 4); i++) {
		struct message location = message(p, 4, i), map;
		uint64_t at = number(location, 3);

		if (!number(location, 2))
			continue;
		map = by_id(p, 3, number(location, 2));
		assert_true(number(map, 2) <= at && at < number(map, 3));
	}
	hm_clear(&m);
}

static void lost_samples_are_a_sample_of_their_own(void **state)
{
	struct as_model m;
	AS_CLEANUP(as_buf_clear) struct as_buf names = {0};
	struct as_query focus = {.focus = "work"};
	struct message p;
	uint64_t values[2];
	bool told = false;

	make(&m);
	m.lost_kernel = 7;
	p = profile_of(&m, NULL);
	assert_int_equal(count(p, 2), 5);
	names_of(p, message(p, 2, 4), &names);
	assert_string_equal(names.p, "[lost]");
	packed(message(p, 2, 4), 2, values, 2);
	assert_int_equal(values[0], 7);
	assert_int_equal(values[1], 7 * HM_WEIGHT_NS);
	for (unsigned i = 0; i < count(p, 13); i++) {
		uint64_t id;

		packed((struct message){p.p, p.end}, 13, &id, 1);
		told |= strstr(string(p, id + i), "lost: 7") != NULL;
	}
	assert_true(told);
	/* of a part nobody knows how many were lost */
	p = profile_of(&m, &focus);
	assert_int_equal(count(p, 2), 3);
	hm_clear(&m);
}

static void what_is_hidden_is_not_there(void **state)
{
	struct as_model m;
	AS_CLEANUP(as_buf_clear) struct as_buf names = {0};
	struct as_query q = {.hide = "work|main", .no_kernel = true};
	struct message p;

	make(&m);
	p = profile_of(&m, &q);
	names_of(p, message(p, 2, 2), &names);
	assert_string_equal(names.p, "app::inner<u8>");
	names_of(p, message(p, 2, 3), &names);
	assert_string_equal(names.p, "[truncated: x]");
	q.hide = ".";
	m.samples.v[m.samples.n - 1].end = AS_END_ROOT;
	p = profile_of(&m, &q);
	names_of(p, message(p, 2, 3), &names);
	assert_string_equal(names.p, AS_EXPORT_NO_FRAMES);
	hm_clear(&m);
}

static void names_are_made_valid_utf8(void **state)
{
	struct as_model m;
	struct message p;
	bool seen = false;

	make(&m);
	m.functions.v[fn_main].brief = "a\xff\xc0\x80\n\"b\"";
	m.threads.v[0].name = "\xed\xa0\x80";
	p = profile_of(&m, NULL);
	for (unsigned i = 0; i < count(p, 6); i++) {
		const char *s = string(p, i);

		for (const char *c = s; *c; c++)
			assert_true((uint8_t)*c < 0xf5 && (uint8_t)*c != 0xc0);
		seen |= strcmp(s, "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\n\"b\"") == 0;
	}
	assert_true(seen);
	hm_clear(&m);
}

static void more_samples_of_the_same_stacks_add_no_messages(void **state)
{
	struct as_model m;
	struct message p;
	size_t before;

	make(&m);
	p = profile_of(&m, NULL);
	before = (size_t)(p.end - p.p);
	for (unsigned i = 0; i < 200; i++)
		hm_samples(&m, 0, st_work, AS_END_ROOT, 100);
	p = profile_of(&m, NULL);
	assert_int_equal(count(p, 2), 4);
	assert_true((size_t)(p.end - p.p) < before + 32);
	hm_clear(&m);
}

static void numbers_of_all_lengths_come_back(void **state)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	uint64_t v[64 + 1] = {0}, got[64 + 1];
	struct message m;

	for (unsigned i = 0; i < 64; i++)
		v[i] = 1ull << i;
	v[64] = UINT64_MAX;
	as_pb_packed(&b, 5, v, 65);
	as_pb_u64(&b, 6, UINT64_MAX);
	as_pb_u64(&b, 7, 0);
	as_pb_bytes(&b, 8, "", 0);
	m = (struct message){(uint8_t *)b.p, (uint8_t *)b.p + b.len};
	assert_int_equal(packed(m, 5, got, 65), 65);
	assert_memory_equal(got, v, sizeof v);
	assert_true(number(m, 6) == UINT64_MAX);
	assert_int_equal(count(m, 7), 0);
	assert_int_equal(count(m, 8), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_head_says_what_is_counted),
		cmocka_unit_test(a_sample_stands_for_a_thread_and_stack),
		cmocka_unit_test(mappings_are_places_in_one_address_space),
		cmocka_unit_test(without_map_records_mappings_hold_their_locations),
		cmocka_unit_test(lost_samples_are_a_sample_of_their_own),
		cmocka_unit_test(what_is_hidden_is_not_there),
		cmocka_unit_test(names_are_made_valid_utf8),
		cmocka_unit_test(more_samples_of_the_same_stacks_add_no_messages),
		cmocka_unit_test(numbers_of_all_lengths_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, clear);
}

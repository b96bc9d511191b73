/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* base: errors, numbers for and from people, quoting, JSON. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/sys.h"

static void a_failure_carries_status_errno_and_message(void **state)
{
	struct as_error err;

	assert_int_equal(as_fail(&err, AS_E_IO, ENOENT, "cannot open '%s'", "x"), AS_E_IO);
	assert_int_equal(err.status, AS_E_IO);
	assert_int_equal(err.sys_errno, ENOENT);
	assert_string_equal(err.msg, "cannot open 'x'");
	assert_int_equal(as_wrap(&err, "session %d", 3), AS_E_IO);
	assert_string_equal(err.msg, "session 3: cannot open 'x'");
	assert_int_equal(as_fail(NULL, AS_E_LIMIT, 0, "unseen"), AS_E_LIMIT);
	assert_true(as_wrap(NULL, "unseen") < 0);
}

static void a_failure_may_quote_the_message_it_replaces(void **state)
{
	struct as_error err;

	as_fail(&err, AS_E_IO, 0, "inner");
	as_fail(&err, AS_E_FORMAT, 0, "outer of %s", err.msg);
	assert_string_equal(err.msg, "outer of inner");
}

static void long_messages_are_cut_at_a_character(void **state)
{
	struct as_error err;
	char text[3000];

	for (size_t lead = 0; lead < 4; lead++) {
		memset(text, 'x', lead);
		for (size_t i = lead; i + 4 < sizeof text; i += 3)
			memcpy(text + i, "\xe2\x82\xac", 4);
		as_fail(&err, AS_E_IO, 0, "%s", text);
		assert_in_range(strlen(err.msg), sizeof err.msg - 4, sizeof err.msg - 1);
		assert_int_equal((strlen(err.msg) - lead) % 3, 0);
		as_wrap(&err, "%s", text);
		assert_in_range(strlen(err.msg), sizeof err.msg - 9, sizeof err.msg - 1);
	}

	/* A short cause survives a context of any length. */
	as_fail(&err, AS_E_IO, 0, "no space left");
	as_wrap(&err, "%s", text);
	assert_non_null(strstr(err.msg, ": no space left"));
}

static void whole_numbers_parse_or_are_refused(void **state)
{
	static const char *const bad[] = {"",
					  "-1",
					  "+1",
					  " 1",
					  "1 ",
					  "0x",
					  "1x",
					  "18446744073709551616",
					  "0xg",
					  "１",
					  "0x10000000000000000"};
	uint64_t v = 5;

	for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++)
		assert_false(as_parse_u64(bad[i], &v));
	assert_int_equal(v, 5);
	assert_true(as_parse_u64("18446744073709551615", &v));
	assert_true(v == UINT64_MAX);
	assert_true(as_parse_u64("0xFFffFFffFFffFFff", &v));
	assert_true(v == UINT64_MAX);
	assert_true(as_parse_u64("007", &v));
	assert_int_equal(v, 7);
}

static void fractions_parse_without_surprises(void **state)
{
	static const char *const bad[] = {"",    ".",  "inf", "nan", "0x1p3", "1e999",
					  "1,5", " 1", "1 ",  "--1", "1e",    "-"};
	double v = 5;

	for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++)
		assert_false(as_parse_double(bad[i], &v));
	assert_true(v == 5);
	assert_true(as_parse_double("-1.5e2", &v));
	assert_true(v == -150);
	assert_true(as_parse_double(".5", &v));
	assert_true(v == 0.5);
	assert_true(as_parse_double("5.", &v));
	assert_true(v == 5);
}

static void durations_and_sizes_know_their_units(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} times[] = {
		{"10", 10000000000},  {"10s", 10000000000},  {"1.5m", 90000000000},
		{"200ms", 200000000}, {"3us", 3000},         {"3µs", 3000},
		{"4ns", 4},           {"2h", 7200000000000}, {"0", 0},
		{"0.001", 1000000},   {"1e3ns", 1000},
	};
	static const struct {
		const char *text;
		uint64_t bytes;
	} sizes[] = {
		{"64", 64},
		{"8K", 8192},
		{"8KiB", 8192},
		{"2M", 2097152},
		{"1G", 1073741824},
		{"1.5k", 1536},
		{"18446744073709551615", UINT64_MAX},
	};
	uint64_t v;

	for (size_t i = 0; i < AS_ARRAY_LEN(times); i++) {
		assert_true(as_parse_duration_ns(times[i].text, &v));
		assert_int_equal(v, times[i].ns);
	}
	for (size_t i = 0; i < AS_ARRAY_LEN(sizes); i++) {
		assert_true(as_parse_size(sizes[i].text, &v));
		assert_true(v == sizes[i].bytes);
	}
	assert_false(as_parse_duration_ns("10 s", &v));
	assert_false(as_parse_duration_ns("-1s", &v));
	assert_false(as_parse_duration_ns("1e30s", &v));
	assert_false(as_parse_duration_ns("s", &v));
	assert_false(as_parse_size("1Kib!", &v));
	assert_false(as_parse_size("17179869184G", &v));
}

static const char *duration(struct as_buf *b, uint64_t ns)
{
	as_buf_reset(b);
	as_fmt_duration(b, ns);
	return as_buf_str(b);
}

static const char *bytes(struct as_buf *b, uint64_t n)
{
	as_buf_reset(b);
	as_fmt_bytes(b, n);
	return as_buf_str(b);
}

static const char *count(struct as_buf *b, uint64_t n)
{
	as_buf_reset(b);
	as_fmt_count(b, n);
	return as_buf_str(b);
}

static void figures_read_as_people_write_them(void **state)
{
	struct as_buf b = {0};

	assert_string_equal(duration(&b, 412), "412 ns");
	assert_string_equal(duration(&b, 999), "999 ns");
	assert_string_equal(duration(&b, 1000), "1.00 µs");
	assert_string_equal(duration(&b, 3100000), "3.10 ms");
	assert_string_equal(duration(&b, 9999000), "10.0 ms");
	assert_string_equal(duration(&b, 999499), "999 µs");
	assert_string_equal(duration(&b, 999500), "1.00 ms");
	assert_string_equal(duration(&b, 12400000000), "12.4 s");
	assert_string_equal(duration(&b, 600000000000), "10.0 min");
	assert_string_equal(duration(&b, 36000000000000), "10.0 h");
	assert_string_equal(bytes(&b, 0), "0 B");
	assert_string_equal(bytes(&b, 1023), "1023 B");
	assert_string_equal(bytes(&b, 212 * 1024), "212 KiB");
	assert_string_equal(bytes(&b, 1048575), "1.00 MiB");
	assert_string_equal(bytes(&b, UINT64_MAX), "16.0 EiB");
	assert_string_equal(count(&b, 0), "0");
	assert_string_equal(count(&b, 999), "999");
	assert_string_equal(count(&b, 21640), "21,640");
	assert_string_equal(count(&b, UINT64_MAX), "18,446,744,073,709,551,615");
	as_buf_clear(&b);
}

static void quoted(const char *in, size_t n, const char *want)
{
	struct as_buf b = {0};

	as_fmt_quoted(&b, in, n);
	assert_string_equal(as_buf_str(&b), want);
	as_buf_clear(&b);
}

static void quoting_leaves_nothing_a_terminal_would_obey(void **state)
{
	quoted("plain é 中", 12, "plain é 中");
	quoted("\x1b[31m", 5, "\\x1b[31m");
	quoted("a\nb\x7f", 4, "a\\x0ab\\x7f");
	quoted("\0", 1, "\\x00");
	quoted("\xc2\x9b", 2, "\\xc2\\x9b");                   /* CSI as one C1 character */
	quoted("\xe2\x80\xae", 3, "\\xe2\\x80\\xae");          /* right-to-left override */
	quoted("\xc0\xaf", 2, "\\xc0\\xaf");                   /* over-long slash */
	quoted("\xed\xa0\x80", 3, "\\xed\\xa0\\x80");          /* surrogate */
	quoted("\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80"); /* beyond U+10FFFF */
	quoted("\xe4\xb8", 2, "\\xe4\\xb8");                   /* cut short */
	quoted("\xf0\x9f\x98\x80", 4, "\xf0\x9f\x98\x80");
}

static void invalid_bytes_are_one_column_each(void **state)
{
	assert_int_equal(as_text_width("abc", 3), 3);
	assert_int_equal(as_text_width("\xff\xfe", 2), 2);
	assert_int_equal(as_text_width("\xe4\xb8", 2), 2);
	assert_int_equal(as_text_width("", 0), 0);
}

static void json_escapes_and_nests(void **state)
{
	struct as_buf b = {0};
	struct as_json j = {.out = &b};

	as_json_obj(&j, NULL);
	as_json_str(&j, "a\"\\\n\t\r\x01", "\x7f</é\xff");
	as_json_arr(&j, "list");
	as_json_u64(&j, NULL, UINT64_MAX);
	as_json_i64(&j, NULL, INT64_MIN);
	as_json_bool(&j, NULL, true);
	as_json_null(&j, NULL);
	as_json_str(&j, NULL, NULL);
	as_json_obj(&j, NULL);
	as_json_end(&j);
	as_json_arr(&j, NULL);
	as_json_end(&j);
	as_json_end(&j);
	as_json_strn(&j, "n", "x\0y", 3);
	as_json_end(&j);
	assert_string_equal(
		as_buf_str(&b),
		"{\"a\\\"\\\\\\n\\t\\r\\u0001\":\"\\u007f</é\xef\xbf\xbd\","
		"\"list\":[18446744073709551615,-9223372036854775808,true,null,null,{},[]],"
		"\"n\":\"x\\u0000y\"}");
	as_buf_clear(&b);
}

static void json_indents_on_request(void **state)
{
	struct as_buf b = {0};
	struct as_json j = {.out = &b, .indent = true};

	as_json_obj(&j, NULL);
	as_json_arr(&j, "a");
	as_json_i64(&j, NULL, 1);
	as_json_i64(&j, NULL, 2);
	as_json_end(&j);
	as_json_obj(&j, "o");
	as_json_end(&j);
	as_json_end(&j);
	assert_string_equal(as_buf_str(&b),
			    "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"o\": {}\n}\n");
	as_buf_clear(&b);
}

static void json_numbers_that_are_none_become_null(void **state)
{
	struct as_buf b = {0};
	struct as_json j = {.out = &b};

	as_json_arr(&j, NULL);
	as_json_num(&j, NULL, NAN, 6);
	as_json_num(&j, NULL, -INFINITY, 6);
	as_json_num(&j, NULL, 0.1, 6);
	as_json_num(&j, NULL, 1e300, 3);
	as_json_num(&j, NULL, -0.000012345, 3);
	as_json_num(&j, NULL, 123456, 0);
	as_json_end(&j);
	assert_string_equal(as_buf_str(&b), "[null,null,0.1,1e+300,-1.23e-05,1e+05]");
	as_buf_clear(&b);
}

static void json_deeper_than_its_state_stays_inside_it(void **state)
{
	struct as_buf b = {0};
	struct as_json j = {.out = &b};

	for (int i = 0; i < 200; i++)
		as_json_arr(&j, NULL);
	for (int i = 0; i < 200; i++)
		as_json_end(&j);
	as_json_end(&j);
	assert_int_equal(j.depth, 0);
	assert_int_equal(b.len, 400);
	as_buf_clear(&b);
}

static void text_of_files_shows_and_moves_nothing(void **state)
{
	static const struct {
		const char *in, *out;
	} t[] = {
		{"a\tb é", "a\tb é"},
		{"\x0cnew page", "␌new page"},
		{"\x1b[31mred\x7f", "␛[31mred␡"},
		{"bad \xff\xc3 end", "bad \xef\xbf\xbd\xef\xbf\xbd end"},
		{"\xc2\x9b"
		 "31m",
		 "\xef\xbf\xbd"
		 "31m"},
		{"\xe2\x80\xae"
		 "hidden",
		 "\xef\xbf\xbd"
		 "hidden"}, /* reorders what follows */
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(t); i++) {
		struct as_buf b = {0};

		as_fmt_text(&b, t[i].in, strlen(t[i].in));
		assert_string_equal(as_buf_str(&b), t[i].out);
		as_buf_clear(&b);
	}
}

static void text_in_markup_is_no_markup(void **state)
{
	struct as_buf b = {0};

	as_fmt_markup(&b, "</p> a&b \"q\" 'l \xc3\xa9 \xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd");
	assert_string_equal(as_buf_str(&b),
			    "&lt;/p&gt; a&amp;b &quot;q&quot; 'l \xc3\xa9 ??\xef\xbf\xbd");
	as_buf_clear(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failure_carries_status_errno_and_message),
		cmocka_unit_test(a_failure_may_quote_the_message_it_replaces),
		cmocka_unit_test(long_messages_are_cut_at_a_character),
		cmocka_unit_test(whole_numbers_parse_or_are_refused),
		cmocka_unit_test(fractions_parse_without_surprises),
		cmocka_unit_test(durations_and_sizes_know_their_units),
		cmocka_unit_test(figures_read_as_people_write_them),
		cmocka_unit_test(quoting_leaves_nothing_a_terminal_would_obey),
		cmocka_unit_test(text_of_files_shows_and_moves_nothing),
		cmocka_unit_test(text_in_markup_is_no_markup),
		cmocka_unit_test(invalid_bytes_are_one_column_each),
		cmocka_unit_test(json_escapes_and_nests),
		cmocka_unit_test(json_indents_on_request),
		cmocka_unit_test(json_numbers_that_are_none_become_null),
		cmocka_unit_test(json_deeper_than_its_state_stays_inside_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tables of typed cells: alignment, hiding, cutting, JSON and CSV; and the small formats. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/sys.h"
#include "view/text/table.h"

static struct as_share share(double percent, double half)
{
	return (struct as_share){.value = percent / 100,
				 .low = (percent - half) / 100,
				 .high = (percent + half) / 100,
				 .samples = (uint64_t)(percent * 10)};
}

/* self, total, function, where */
static void add_row(struct as_table *t, struct as_share self, struct as_share total,
		    const char *name, const char *where)
{
	as_table_row(t);
	as_table_share(t, 0, &self);
	as_table_share(t, 1, &total);
	as_table_text(t, 2, name);
	as_table_text(t, 3, where);
}

static void make(struct as_table *t)
{
	*t = (struct as_table){0};
	as_table_column(t, (struct as_column){"self", "self", AS_CELL_SHARE, 0});
	as_table_column(t, (struct as_column){"total", "total", AS_CELL_SHARE, 0});
	as_table_column(t, (struct as_column){"name", "function", AS_CELL_TEXT, AS_COL_FLEX});
	as_table_column(t, (struct as_column){"where", "", AS_CELL_TEXT,
					      AS_COL_FLEX | AS_COL_HIDE_SAME});
}

static void print(const struct as_table *t, int width, struct as_buf *out)
{
	struct as_style style = {.width = width};

	as_buf_reset(out);
	as_table_print(t, &style, out);
}

static void numbers_stand_on_their_decimal_point(void **state)
{
	struct as_table t;
	struct as_buf out = {0};

	make(&t);
	add_row(&t, share(23.1, 0.8), share(100, 0), "memchr::find", "memchr");
	add_row(&t, share(19.8, 10.2), share(61.3, 1), "tokenize", "src/tokenize.rs:88");
	add_row(&t, (struct as_share){.value = 0, .low = 0, .high = 0.0037, .samples = 0},
		share(0.4, 0.1), "rare", "x");
	as_table_mark(&t, 0, "┘");
	print(&t, 100, &out);
	assert_string_equal(
		out.p, "   self             total          function\n"
		       "    23.1 ±0.8  %    100.0      %   memchr::find   memchr\n"
		       "    19.8 ±10.2       61.3 ±1.0     tokenize       src/tokenize.rs:88\n"
		       "   ≤ 0.4        ┘     0.4 ±0.1     rare           x\n");
	as_buf_clear(&out);
	as_table_clear(&t);
}

static void columns_without_news_are_left_out(void **state)
{
	struct as_table t;
	struct as_buf out = {0};

	make(&t);
	add_row(&t, share(23.1, 0.8), share(50, 1), "a", "app");
	add_row(&t, share(9.8, 0.8), share(50, 1), "b", "app");
	print(&t, 100, &out);
	assert_null(strstr(out.p, "app"));
	as_table_clear(&t);
	make(&t);
	add_row(&t, share(23.1, 0.8), share(50, 1), "a", "app");
	print(&t, 100, &out); /* a single row says nothing about sameness */
	assert_non_null(strstr(out.p, "app"));
	as_table_clear(&t);
	as_buf_clear(&out);
}

static void names_are_cut_in_the_middle_and_never_wrapped(void **state)
{
	static const int widths[] = {40, 60, 80, 120, 200};
	struct as_table t;
	struct as_buf out = {0};

	make(&t);
	add_row(&t, share(50.3, 1.3), share(97.1, 0.6),
		"<core::iter::adapters::map::Map<I,F> as "
		"core::iter::traits::iterator::Iterator>::fold",
		"src/a/very/long/path/to/the/file_with_code.rs:1234");
	add_row(&t, share(1.3, 0.3), share(7.1, 0.6), "größe::µ→Ω", "b");
	for (size_t i = 0; i < AS_ARRAY_LEN(widths); i++) {
		int lines = 0;

		print(&t, widths[i], &out);
		for (const char *p = out.p; *p; lines++) {
			size_t n = strcspn(p, "\n");

			assert_true(as_text_width(p, n) <= (size_t)AS_MAX(widths[i], 60));
			assert_true(n == 0 || p[n - 1] != ' ');
			p += n + 1;
		}
		assert_int_equal(lines, 3);
	}
	assert_non_null(strstr(out.p, "iterator::Iterator>::fold")); /* 200 columns: whole */
	print(&t, 80, &out);
	assert_non_null(strstr(out.p, "…"));
	as_table_clear(&t);
	as_buf_clear(&out);
}

static void control_characters_never_reach_the_terminal(void **state)
{
	struct as_table t;
	struct as_buf out = {0};

	make(&t);
	add_row(&t, share(1, 0), share(2, 0), "a\033[31mb\nc\td\177", "\x80\xff");
	print(&t, 120, &out);
	for (const char *p = out.p; *p; p++)
		assert_true(*p == '\n' || (unsigned char)*p >= ' ');
	assert_non_null(strstr(out.p, "\\x1b[31mb\\x0ac\\x09d\\x7f"));
	as_table_clear(&t);
	as_buf_clear(&out);
}

static void data_carries_shares_with_interval_and_samples(void **state)
{
	struct as_table t;
	struct as_buf out = {0};
	struct as_json j = {.out = &out};

	make(&t);
	add_row(&t, share(25, 1), share(50, 2), "a,\"b\"", "x\ny");
	as_table_csv(&t, &out);
	assert_string_equal(out.p,
			    "self,self_low,self_high,total,total_low,total_high,name,where,"
			    "self_samples,total_samples\n"
			    "0.25,0.24,0.26,0.5,0.48,0.52,\"a,\"\"b\"\"\",\"x\ny\",250,500\n");
	as_buf_reset(&out);
	as_json_obj(&j, NULL);
	as_table_json(&t, "rows", &j);
	as_json_end(&j);
	assert_string_equal(out.p,
			    "{\"rows\":[{\"self\":0.25,\"self_low\":0.24,\"self_high\":0.26,"
			    "\"total\":0.5,\"total_low\":0.48,\"total_high\":0.52,"
			    "\"name\":\"a,\\\"b\\\"\",\"where\":\"x\\ny\",\"self_samples\":250,"
			    "\"total_samples\":500}]}");
	as_table_clear(&t);
	as_buf_clear(&out);
}

static void cutting_keeps_both_ends_and_the_width(void **state)
{
	static const char *const texts[] = {"alloc::raw_vec::RawVec::grow_one",
					    "größe::µ→Ω::日本語の名前", "x", "\xff\xfe broken",
					    ""};
	struct as_buf out = {0};

	for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++) {
		for (size_t width = 3; width < 50; width++) {
			as_buf_reset(&out);
			as_style_cut(&out, texts[i], width);
			assert_true(as_text_width(as_buf_str(&out), out.len) <= width);
		}
	}
	as_buf_reset(&out);
	as_style_cut(&out, "alloc::raw_vec::RawVec::grow_one", 20);
	assert_string_equal(out.p, "alloc::r…c::grow_one");
	as_buf_clear(&out);
}

static void small_counts_are_bounds(void **state)
{
	static const struct {
		double value, low, high;
		const char *text;
	} c[] = {{0.231, 0.223, 0.239, "23.1 ±0.8"}, {0, 0, 0.00371, "≤ 0.4"},
		 {0.0002, 0, 0.001, "≤ 0.1"},        {0.025, 0.004, 0.0851, "2.5 ≤8.6"},
		 {1, 0.0251, 1, "100.0 ≥2.5"},       {0.5, NAN, NAN, "50.0"},
		 {1, 0.99, 1, "100.0 ±1.0"},         {0, 0, 0, "0.0"}};
	struct as_buf out = {0};

	for (size_t i = 0; i < AS_ARRAY_LEN(c); i++) {
		struct as_share s = {.value = c[i].value, .low = c[i].low, .high = c[i].high};

		as_buf_reset(&out);
		as_style_share(&out, &s);
		assert_string_equal(out.p, c[i].text);
	}
	as_buf_clear(&out);
}

static void shell_words_and_modules_read_well(void **state)
{
	static const char *const shell[][2] = {{"malloc", "malloc"},
					       {"<A as B>::c", "'<A as B>::c'"},
					       {"it's", "'it'\\''s'"},
					       {"", "''"}};
	static const char *const module[][2] = {
		{"libc.so.6", "libc"}, {"/usr/lib/libm.so", "libm"},       {"app", "app"},
		{"[vdso]", "[vdso]"},  {"libfoo.source", "libfoo.source"}, {".so", ".so"}};
	struct as_buf out = {0};

	for (size_t i = 0; i < AS_ARRAY_LEN(shell); i++) {
		as_buf_reset(&out);
		as_style_shell(&out, shell[i][0]);
		assert_string_equal(out.p, shell[i][1]);
	}
	for (size_t i = 0; i < AS_ARRAY_LEN(module); i++) {
		as_buf_reset(&out);
		as_style_module(&out, module[i][0]);
		assert_string_equal(out.p, module[i][1]);
	}
	as_buf_clear(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_stand_on_their_decimal_point),
		cmocka_unit_test(columns_without_news_are_left_out),
		cmocka_unit_test(names_are_cut_in_the_middle_and_never_wrapped),
		cmocka_unit_test(control_characters_never_reach_the_terminal),
		cmocka_unit_test(data_carries_shares_with_interval_and_samples),
		cmocka_unit_test(cutting_keeps_both_ends_and_the_width),
		cmocka_unit_test(small_counts_are_bounds),
		cmocka_unit_test(shell_words_and_modules_read_well),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}

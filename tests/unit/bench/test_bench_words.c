/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* bench/words, bench/params: commands from texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "bench/params.h"
#include "bench/words.h"

static struct as_error err;

static void texts_are_split_as_a_shell_would(void **state)
{
	static const struct {
		const char *text;
		const char *words[6];
	} rows[] = {
		{"true", {"true"}},
		{"  a\tb\nc  ", {"a", "b", "c"}},
		{"grep -i 'to do' notes", {"grep", "-i", "to do", "notes"}},
		{"a \"b c\" d\"e\"'f'", {"a", "b c", "def"}},
		{"a '' \"\"", {"a", "", ""}},
		{"a\\ b \\| \\\\ \\'", {"a b", "|", "\\", "'"}},
		{"a \"\\\"\\\\\\$\\n\"", {"a", "\"\\$\\n"}},
		{"a '$x * | `'", {"a", "$x * | `"}},
		{"a \"* | ; <\"", {"a", "* | ; <"}},
		{"a b~ c=d {e,f} [g] #h", {"a", "b~", "c=d", "{e,f}", "[g]", "#h"}},
		{"a\\\nb", {"ab"}},
		{"sed s/ä/ö/", {"sed", "s/ä/ö/"}},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++) {
		struct as_words w = {0};
		size_t n = 0;

		assert_int_equal(as_words_split(rows[i].text, &w, &err), 0);
		for (; n < AS_ARRAY_LEN(rows[i].words) && rows[i].words[n]; n++) {
			assert_true(n < w.n);
			assert_string_equal(w.v[n], rows[i].words[n]);
		}
		assert_int_equal(w.n, n);
		assert_null(w.v[w.n]);
		as_words_clear(&w);
	}
}

static void what_only_a_shell_understands_is_refused_by_name(void **state)
{
	static const struct {
		const char *text, *named;
	} rows[] = {
		{"ls | wc", "'|'"},      {"a && b", "'&'"},
		{"a; b", "';'"},         {"a > b", "'>'"},
		{"a < b", "'<'"},        {"(a)", "'('"},
		{"echo $HOME", "'$'"},   {"echo `a`", "'`'"},
		{"ls *.c", "'*'"},       {"ls ?.c", "'?'"},
		{"~/a", "'~'"},          {"echo \"$HOME\"", "'$'"},
		{"echo \"`a`\"", "'`'"}, {"FOO=1 a", "the variable before the program"},
		{"a)", "')'"},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++) {
		struct as_words w = {0};

		assert_int_equal(as_words_split(rows[i].text, &w, &err), AS_E_USAGE);
		assert_non_null(strstr(err.msg, rows[i].named));
		assert_non_null(strstr(err.msg, "assay bench --shell"));
		assert_null(w.v);
	}
}

static void what_is_not_closed_or_empty_is_refused(void **state)
{
	static const char *const texts[] = {"", "  \n", "a 'b", "a \"b", "a \"b\\\""};

	for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++) {
		struct as_words w = {0};

		assert_int_equal(as_words_split(texts[i], &w, &err), AS_E_USAGE);
		assert_null(w.v);
	}
}

static void values_are(const char *text, const char *joined)
{
	AS_CLEANUP(as_buf_clear) struct as_buf all = {0};
	struct as_params p = {0};

	assert_int_equal(as_params_add(&p, "n", text, &err), 0);
	for (size_t i = 0; i < p.v[0].n; i++)
		as_buf_addf(&all, "%s%s", i ? " " : "", p.v[0].v[i]);
	assert_string_equal(as_buf_str(&all), joined);
	as_params_clear(&p);
}

static void ranges_and_lists_are_what_they_say(void **state)
{
	values_are("1..4", "1 2 3 4");
	values_are("1..10..4", "1 5 9");
	values_are("3..1", "3 2 1");
	values_are("10..1..-4", "10 6 2");
	values_are("-1..1", "-1 0 1");
	values_are("0.1..0.5..0.2", "0.1 0.3 0.5"); /* exact: no 0.30000000000000004 */
	values_are("0..1..0.25", "0 0.25 0.50 0.75 1.00");
	values_are("2..1.5..-0.25", "2 1.75 1.50");
	values_are("1..1", "1");
	values_are("a,b,c", "a b c");
	values_are("a\\,b,c", "a,b c");
	values_are("one", "one");
	values_are("a..b", "a..b");
	values_are("1,,2", "1  2");
}

static void ranges_without_end_are_refused(void **state)
{
	static const char *const texts[] = {"1..5..0", "1..5..-1", "5..1..1", "1..1000000",
					    "0..1..0.0000001"};
	struct as_params p = {0};

	for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++) {
		assert_true(as_params_add(&p, "n", texts[i], &err) < 0);
		assert_non_null(strstr(err.msg, "'n'"));
		as_params_clear(&p);
	}
	assert_int_equal(as_params_add(&p, "a b", "1", &err), AS_E_USAGE);
	assert_int_equal(as_params_add(&p, "", "1", &err), AS_E_USAGE);
	assert_int_equal(as_params_add(&p, "n", "1..999", &err), 0);
	assert_int_equal(as_params_add(&p, "n", "1", &err), AS_E_USAGE);
	assert_int_equal(as_params_add(&p, "m", "1..2", &err), AS_E_LIMIT);
	as_params_clear(&p);
	assert_int_equal(as_params_scan(&p, "n", (const char *[]){"1", "x", NULL}, &err),
			 AS_E_USAGE);
	assert_non_null(strstr(err.msg, "'x', the greatest of parameter 'n'"));
	as_params_clear(&p);
}

static void combinations_count_the_first_fastest(void **state)
{
	static const char *const lines[] = {"./a 1 -x", "./a 2 -x", "./a 1 -y", "./a 2 -y"};
	struct as_params p = {0};

	assert_int_equal(as_params_scan(&p, "n", (const char *[]){"1", "2", NULL}, &err), 0);
	assert_int_equal(as_params_add(&p, "flag", "-x,-y", &err), 0);
	assert_int_equal(as_params_count(&p), 4);
	for (size_t i = 0; i < 4; i++) {
		char *text = as_params_fill(&p, i, "./a {n} {flag}");

		assert_string_equal(text, lines[i]);
		free(text);
	}
	assert_null(as_params_fill(&p, 0, NULL));

	char *other = as_params_fill(&p, 3, "{x} {n {{n}} {flag");

	assert_string_equal(other, "{x} {n {2} {flag");
	free(other);
	as_params_clear(&p);
	assert_int_equal(as_params_count(&p), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_split_as_a_shell_would),
		cmocka_unit_test(what_only_a_shell_understands_is_refused_by_name),
		cmocka_unit_test(what_is_not_closed_or_empty_is_refused),
		cmocka_unit_test(ranges_and_lists_are_what_they_say),
		cmocka_unit_test(ranges_without_end_are_refused),
		cmocka_unit_test(combinations_count_the_first_fastest),
	};

	return cmocka_run_group_tests_name("bench_words", tests, NULL, NULL);
}

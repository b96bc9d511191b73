/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What other harnesses print, and a program that is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "bench/foreign.h"

static bool line(const char *text, const char *id, double *ret)
{
	return as_foreign_bencher_line(text, strlen(text), id, ret);
}

static void lines_of_libtest_are_read_and_others_are_not(void **state)
{
	double ns = 0;

	assert_true(line("test parse::small ... bench:       1,234 ns/iter (+/- 56)",
			 "parse::small", &ns));
	assert_true(ns == 1234);
	/* since 1.78 */
	assert_true(line("test a ... bench:   1,234,567.89 ns/iter (+/- 0.50) = 12 MB/s", "a",
			 &ns));
	assert_true(ns == 1234567.89);
	assert_false(line("test ab ... bench:  1 ns/iter (+/- 0)", "a", &ns));
	assert_false(line("test a ... ok", "a", &ns));
	assert_false(line("test a ... bench: fast ns/iter", "a", &ns));
	assert_false(line("test a ... bench:  12 s/iter", "a", &ns));
	assert_false(line("test a ... bench:", "a", &ns));
	assert_false(line("", "a", &ns));
}

static void a_program_that_answers_in_no_known_way_is_told_so(void **state)
{
	struct as_foreign f = {.exe = "/bin/echo", .home = "/nonexistent"};
	struct as_foreign_ids ids;
	struct as_error err = {0};

	assert_int_equal(as_foreign_list(&f, &ids, &err), AS_E_FORMAT);
	assert_non_null(strstr(err.msg, "in no way that is known here"));
	f.exe = "/bin/false";
	assert_int_equal(as_foreign_list(&f, &ids, &err), AS_E_IO);
	assert_non_null(strstr(err.msg, "status 1"));
	f.exe = "/nonexistent";
	assert_int_equal(as_foreign_list(&f, &ids, &err), AS_E_NOTFOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_libtest_are_read_and_others_are_not),
		cmocka_unit_test(a_program_that_answers_in_no_known_way_is_told_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

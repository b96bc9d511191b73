/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* history: entries by name, copies of programs, and what stands in the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sys.h"
#include "opened.h"

static void save(struct as_history *h, const char *name, const char *result)
{
	struct as_history_entry e = {.name = as_xstrdup(name),
				     .kind = as_xstrdup("stat"),
				     .time_s = 1000,
				     .machine = as_xstrdup("m"),
				     .program = as_xstrdup("/p"),
				     .copy = as_xstrdup("/c"),
				     .arguments = as_xstrdup("[\"a'b\"]"),
				     .result = as_xstrdup(result)};

	assert_int_equal(as_history_save(h, &e, &err), 0);
	as_history_entry_clear(&e);
}

static void the_newest_entry_of_a_name_is_found(void **state)
{
	struct as_history *h = open_it(), *other = open_it();
	struct as_history_entry e;

	save(h, "main", "1");
	save(other, "main", "2"); /* another process */
	save(h, "x'; DROP TABLE entry; --", "3");
	assert_int_equal(as_history_find(h, "main", &e, &err), 0);
	assert_string_equal(e.result, "2");
	assert_string_equal(e.arguments, "[\"a'b\"]");
	assert_int_equal(e.time_s, 1000);
	as_history_entry_clear(&e);
	assert_int_equal(as_history_find(h, "x'; DROP TABLE entry; --", &e, &err), 0);
	as_history_entry_clear(&e);
	as_history_close(h);
	as_history_close(other);
	h = open_it();
	assert_int_equal(as_history_find(h, "main", &e, &err), 0);
	as_history_entry_clear(&e);
	as_history_close(h);
}

static void an_unknown_name_is_answered_with_those_there_are(void **state)
{
	struct as_history *h = open_it();
	struct as_history_entry e;

	save(h, "one", "1");
	save(h, "two\nlines", "1");
	assert_int_equal(as_history_find(h, "none", &e, &err), AS_E_NOTFOUND);
	assert_non_null(strstr(err.msg, "'one'"));
	assert_null(strchr(err.msg, '\n')); /* quoted */
	as_history_close(h);
}

static void programs_are_kept_once_and_can_be_run(void **state)
{
	struct as_history *h = open_it();
	char *copy = NULL, *again = NULL, *script = NULL;
	AS_CLEANUP(as_free_autop) char *program = as_history_which("true");

	assert_non_null(program);
	assert_int_equal(as_history_keep_program(h, program, &copy, &err), 0);
	assert_int_equal(as_history_keep_program(h, program, &again, &err), 0);
	assert_string_equal(copy, again);
	assert_int_equal(access(copy, X_OK), 0);
	fx_write("script", "#!/bin/sh\n");
	assert_int_equal(as_history_keep_program(h, fx_path("script"), &script, &err), 0);
	assert_null(script);
	assert_true(as_history_keep_program(h, "/no/such/file", &script, &err) < 0);
	free(copy);
	free(again);
	as_history_close(h);
}

static void a_damaged_or_newer_history_is_refused_and_left_as_it_is(void **state)
{
	struct as_history *h = open_it();
	const char *path = fx_path("history.db");
	AS_CLEANUP(as_buf_clear) struct as_buf before = {0};
	AS_CLEANUP(as_buf_clear) struct as_buf after = {0};
	FILE *f;

	save(h, "main", "1");
	as_history_close(h);
	f = fopen(path, "r+");
	fseek(f, 60, SEEK_SET); /* user_version: 4 bytes, big endian */
	fwrite("\0\0\0\7", 1, 4, f);
	fclose(f);
	assert_int_equal(as_history_open(fx_dir(), &h, &err), AS_E_UNSUPPORTED);
	assert_non_null(strstr(err.msg, "newer assay"));
	f = fopen(path, "w");
	for (int i = 0; i < 4096; i++)
		fputc(i * 7, f);
	fclose(f);
	assert_int_equal(as_read_file(path, 1 << 20, &before, &err), 0);
	assert_true(as_history_open(fx_dir(), &h, &err) < 0);
	assert_int_equal(as_read_file(path, 1 << 20, &after, &err), 0);
	assert_true(before.len == after.len && !memcmp(before.p, after.p, after.len));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_newest_entry_of_a_name_is_found, fx_empty,
						NULL),
		cmocka_unit_test_setup_teardown(
			an_unknown_name_is_answered_with_those_there_are, fx_empty, NULL),
		cmocka_unit_test_setup_teardown(programs_are_kept_once_and_can_be_run, fx_empty,
						NULL),
		cmocka_unit_test_setup_teardown(
			a_damaged_or_newer_history_is_refused_and_left_as_it_is, fx_empty,
			NULL),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

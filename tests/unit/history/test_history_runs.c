/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Benchmarks over time: nothing lost between writers, one key per machine, series in their order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "history/runs.h"
#include "opened.h"

static int save(struct as_history *h, const char *name, const char *suite, const char *machine,
		double value)
{
	struct as_history_run run = {.name = (char *)(uintptr_t)name,
				     .suite = (char *)(uintptr_t)suite,
				     .machine = (char *)(uintptr_t)machine,
				     .time_s = 1700000000,
				     .result = (char *)(uintptr_t) "{}"};
	struct as_history_point points[] = {
		{(char *)(uintptr_t) "parse", (char *)(uintptr_t) "base",
		 (char *)(uintptr_t) "time", (char *)(uintptr_t) "s", value * 2, NAN, NAN},
		{(char *)(uintptr_t) "parse", (char *)(uintptr_t) "head",
		 (char *)(uintptr_t) "time", (char *)(uintptr_t) "s", value, value - 1,
		 value + 1},
		{(char *)(uintptr_t) "print", NULL, NULL, NULL, NAN, NAN, NAN},
	};

	return as_history_run_save(h, &run, points, 3, NULL, &err);
}

static void a_run_is_found_by_name_number_and_age(void **state)
{
	struct as_history *h = open_it();
	struct as_history_run run;

	assert_int_equal(save(h, "main", "/a", "m", 1), AS_OK);
	assert_int_equal(save(h, "", "/a", "m", 2), AS_OK);
	assert_int_equal(save(h, "other", "/b", "m", 3), AS_OK);
	assert_int_equal(as_history_run_find(h, "main", NULL, &run, &err), AS_OK);
	assert_int_equal(run.id, 1);
	assert_string_equal(run.suite, "/a");
	as_history_run_clear(&run);
	assert_int_equal(as_history_run_find(h, "#2", NULL, &run, &err), AS_OK);
	assert_int_equal(run.id, 2);
	as_history_run_clear(&run);
	assert_int_equal(as_history_run_find(h, "last", "/a", &run, &err), AS_OK);
	assert_int_equal(run.id, 2);
	as_history_run_clear(&run);
	assert_int_equal(as_history_run_find(h, "last", NULL, &run, &err), AS_OK);
	assert_int_equal(run.id, 3);
	as_history_run_clear(&run);
	assert_int_equal(as_history_run_find(h, "nightly", NULL, &run, &err), AS_E_NOTFOUND);
	assert_non_null(strstr(err.msg, "'nightly'; saved were 'other', 'main'"));
	as_history_close(h);
}

static void a_series_is_of_one_machine_and_the_newer_side(void **state)
{
	struct as_history *h = open_it();
	struct as_history_series s;
	struct as_history_names names;

	for (int i = 0; i < 5; i++)
		assert_int_equal(save(h, "", "/a", i == 2 ? "other" : "m", 10 + i), AS_OK);
	assert_int_equal(
		as_history_series(h,
				  &(struct as_history_wanted){.bench = "parse", .machine = "m"},
				  &s, &err),
		AS_OK);
	assert_int_equal(s.v.n, 4);
	assert_true(s.v.v[0].value == 10 && s.v.v[3].value == 14 && s.v.v[3].low == 13);
	as_history_series_clear(&s);
	assert_int_equal(
		as_history_series(h,
				  &(struct as_history_wanted){.bench = "parse", .side = "base"},
				  &s, &err),
		AS_OK);
	assert_true(s.v.n == 5 && s.v.v[0].value == 20 && isnan(s.v.v[0].low));
	as_history_series_clear(&s);
	assert_int_equal(as_history_benches(h, "/a", &names, &err), AS_OK);
	assert_int_equal(names.v.n, 2);
	assert_string_equal(names.v.v[0], "parse");
	as_history_names_clear(&names);
	assert_int_equal(as_history_benches(h, "/nowhere", &names, &err), AS_OK);
	assert_int_equal(names.v.n, 0);
	as_history_close(h);
}

/* bheisler/criterion.rs#473: parallel runs corrupted the files. Eight processes that make the database
 * and write at once. */
static void writers_at_once_lose_nothing(void **state)
{
	enum { WRITERS = 8, EACH = 12 };
	struct as_history_series s;
	struct as_history *h;
	int status;

	for (int w = 0; w < WRITERS; w++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid)
			continue;
		h = NULL;
		if (as_history_open(fx_dir(), &h, &err) < 0)
			_exit(1);
		for (int i = 0; i < EACH; i++) {
			if (save(h, "", "/a", "m", 100 * w + i) < 0)
				_exit(2);
		}
		as_history_close(h);
		_exit(0);
	}
	for (int w = 0; w < WRITERS; w++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	h = open_it();
	assert_int_equal(
		as_history_series(h, &(struct as_history_wanted){.bench = "parse"}, &s, &err),
		AS_OK);
	assert_int_equal(s.v.n, WRITERS * EACH);
	as_history_series_clear(&s);
	as_history_close(h);
}

static void a_history_of_the_version_before_is_taken_over(void **state)
{
	sqlite3 *db;
	struct as_history_entry e = {0};
	struct as_history *h;

	assert_int_equal(sqlite3_open(fx_path("history.db"), &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(
			db,
			"CREATE TABLE entry (id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind"
			" TEXT NOT NULL, time_s INTEGER NOT NULL, machine TEXT NOT NULL,"
			" program TEXT NOT NULL, copy TEXT NOT NULL, arguments TEXT NOT NULL,"
			" result TEXT NOT NULL);"
			"INSERT INTO entry VALUES (1, 'old', 'stat', 5, 'm', 'p', '', '[]', "
			"'{}');"
			"PRAGMA user_version = 1",
			NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	h = open_it();
	assert_int_equal(as_history_find(h, "old", &e, &err), AS_OK);
	assert_int_equal(e.time_s, 5);
	as_history_entry_clear(&e);
	assert_int_equal(save(h, "new", "/a", "m", 1), AS_OK);
	as_history_close(h);
}

/* folo-rs/folo#429: the key of the machine held a MHz figure that each boot measures anew */
static void one_machine_has_one_key_over_boots(void **state)
{
	static const char boot[] =
		"processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) "
		"Xeon(R) Processor @ 2.10GHz\nstepping\t: 8\ncpu MHz\t\t: "
		"2099.998\nbogomips\t: 4199.99\n\nprocessor\t: 1\n";
	static const char later[] =
		"processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: "
		"Intel(R) Xeon(R) Processor @ 2.10GHz\nstepping\t: 8\ncpu "
		"MHz\t\t: 2101.412\nbogomips\t: 4202.82\n\nprocessor\t: 1\n";
	static const char other[] = "model name\t: AMD EPYC 7B13\nstepping\t: 8\n";
	static const char arm[] =
		"processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU "
		"variant\t: 0x3\nCPU part\t: 0xd0c\n";
	AS_CLEANUP(as_free_autop) char *a = as_history_fingerprint_of(boot, 2, "x86_64");
	AS_CLEANUP(as_free_autop) char *b = as_history_fingerprint_of(later, 2, "x86_64");
	AS_CLEANUP(as_free_autop) char *c = as_history_fingerprint_of(other, 2, "x86_64");
	AS_CLEANUP(as_free_autop) char *d = as_history_fingerprint_of(boot, 4, "x86_64");
	AS_CLEANUP(as_free_autop) char *e = as_history_fingerprint_of(arm, 4, "aarch64");
	AS_CLEANUP(as_free_autop) char *here = as_history_fingerprint();
	AS_CLEANUP(as_free_autop) char *again = as_history_fingerprint();

	assert_string_equal(a, b);
	assert_string_equal(a,
			    "Intel(R) Xeon(R) Processor @ 2.10GHz stepping 8, 2 CPUs, x86_64");
	assert_string_not_equal(a, c);
	assert_string_not_equal(a, d);
	assert_non_null(strstr(e, "0xd0c"));
	assert_null(strstr(e, "50.00"));
	assert_string_equal(here, again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_run_is_found_by_name_number_and_age, fx_empty,
						NULL),
		cmocka_unit_test_setup_teardown(a_series_is_of_one_machine_and_the_newer_side,
						fx_empty, NULL),
		cmocka_unit_test_setup_teardown(writers_at_once_lose_nothing, fx_empty, NULL),
		cmocka_unit_test_setup_teardown(a_history_of_the_version_before_is_taken_over,
						fx_empty, NULL),
		cmocka_unit_test(one_machine_has_one_key_over_boots),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

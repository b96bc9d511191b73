/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* measure: one run against what the program is known to do, repeats and pairs of real programs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "measure/repeat.h"

#define SH(text) ((char *[]){"sh", "-c", text, NULL})

static struct as_error err;

static struct as_run run_of(char *const argv[])
{
	struct as_run run;

	assert_int_equal(as_run_once(&(struct as_run_request){.argv = argv}, &run, &err), 0);
	return run;
}

static void a_sleep_takes_wall_time_and_no_cpu_time(void **state)
{
	struct as_run r = run_of((char *[]){"sleep", "0.2", NULL});

	assert_true(r.v[AS_M_WALL] >= 0.2);
	assert_true(r.v[AS_M_CPU] < 0.1 && r.v[AS_M_UTILISATION] < 0.5);
	assert_true(r.v[AS_M_VOLUNTARY] >= 1);
	assert_int_equal(r.wait_status, 0);
}

static void work_takes_cpu_time(void **state)
{
	struct as_run r = run_of(SH("i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"));

	assert_true(r.v[AS_M_CPU] > 0.01);
	assert_true(fabs(r.v[AS_M_CPU] - r.v[AS_M_USER] - r.v[AS_M_SYSTEM]) < 1e-9);
	assert_true(r.v[AS_M_CPU] < r.v[AS_M_WALL] * 1.5);
	assert_true(r.v[AS_M_RSS] > 100 * 1024 && r.v[AS_M_MINOR_FAULTS] > 10);
}

static void bytes_written_are_counted(void **state)
{
	struct as_run r = run_of(SH("head -c 300000 /dev/zero | cat >/dev/null"));

	if (isnan(r.v[AS_M_WRITTEN]))
		skip(); /* /proc/PID/io is not readable here */
	assert_true(r.v[AS_M_WRITTEN] >= 600000 && r.v[AS_M_WRITTEN] < 700000);
}

static void exit_statuses_and_signals_are_told(void **state)
{
	struct as_run r = run_of(SH("exit 7"));

	assert_int_equal(WEXITSTATUS(r.wait_status), 7);
	r = run_of(SH("kill -TERM $$"));
	assert_true(WIFSIGNALED(r.wait_status));
}

static void a_program_that_is_not_there_is_an_error_with_its_errno(void **state)
{
	char *argv[] = {"/no/such/program", NULL};
	struct as_run r;

	assert_int_equal(as_run_once(&(struct as_run_request){.argv = argv}, &r, &err),
			 AS_E_NOTFOUND);
	assert_int_equal(r.exec_errno, ENOENT);
}

static void input_and_output_are_redirected_and_ours_stay(void **state)
{
	char in[] = "/tmp/measure-in.XXXXXX", out[] = "/tmp/measure-out.XXXXXX";
	int fd = mkstemp(in), fo = mkstemp(out);
	struct as_run_request q = {.argv = SH("cat; echo err >&2"), .input = in, .output = out};
	struct as_buf text = {0};
	struct as_run r;

	assert_int_equal(write(fd, "hello\n", 6), 6);
	assert_int_equal(as_run_once(&q, &r, &err), 0);
	assert_int_equal(as_read_file(out, 100, &text, &err), 0);
	assert_string_equal(as_buf_str(&text), "hello\nerr\n");
	q.input = "/no/such/file";
	assert_int_equal(as_run_once(&q, &r, &err), AS_E_IO);
	assert_non_null(strstr(err.msg, "/no/such/file"));
	assert_true(isatty(1) || write(1, "", 0) == 0);
	as_buf_clear(&text);
	close(fd);
	close(fo);
	unlink(in);
	unlink(out);
}

static void runs_are_as_many_as_asked_for_and_warm_ups_are_not_kept(void **state)
{
	struct as_repeat_request q = {
		.run.argv = SH("exit 0"), .warmup = 2, .runs = 5, .seed = 1};
	struct as_repeat r;

	assert_int_equal(as_repeat(&q, &r, &err), 0);
	assert_int_equal(r.side[0].v.n, 5);
	assert_int_equal(r.failed_run, 0);
	as_repeat_clear(&r);
}

static void a_failing_run_ends_it_and_is_named(void **state)
{
	struct as_repeat_request q = {.run.argv = SH("exit 3"), .runs = 5, .seed = 1};
	struct as_repeat r;

	assert_int_equal(as_repeat(&q, &r, &err), 0);
	assert_int_equal(r.side[0].v.n, 1);
	assert_int_equal(r.failed_run, 1);
	assert_int_equal(WEXITSTATUS(r.failed_status), 3);
	as_repeat_clear(&r);
	q.ignore_failure = true;
	assert_int_equal(as_repeat(&q, &r, &err), 0);
	assert_int_equal(r.side[0].v.n, 5);
	as_repeat_clear(&r);
	q.setup = "exit 4";
	assert_int_equal(as_repeat(&q, &r, &err), AS_E_IO);
	assert_non_null(strstr(err.msg, "--setup 'exit 4' failed (status 4)"));
}

static void twice_the_work_is_slower_and_the_same_is_not(void **state)
{
	struct as_repeat_request q = {
		.run.argv = SH("i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done"),
		.other.argv = SH("i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done"),
		.budget_s = 5,
		.delta = 0.05,
		.seed = 5,
	};
	struct as_repeat r;

	/* a verdict has a power, and the machine is shared: three in a row are a fault */
	for (int attempt = 1;; attempt++) {
		assert_int_equal(as_repeat(&q, &r, &err), 0);
		if (r.look.verdict == AS_VERDICT_SLOWER || attempt == 3)
			break;
		as_repeat_clear(&r);
	}
	assert_int_equal(r.look.verdict, AS_VERDICT_SLOWER);
	assert_true(r.look.plain.value > 0.2);
	assert_int_equal(r.side[0].v.n, r.side[1].v.n);
	as_repeat_clear(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sleep_takes_wall_time_and_no_cpu_time),
		cmocka_unit_test(work_takes_cpu_time),
		cmocka_unit_test(bytes_written_are_counted),
		cmocka_unit_test(exit_statuses_and_signals_are_told),
		cmocka_unit_test(a_program_that_is_not_there_is_an_error_with_its_errno),
		cmocka_unit_test(input_and_output_are_redirected_and_ours_stay),
		cmocka_unit_test(runs_are_as_many_as_asked_for_and_warm_ups_are_not_kept),
		cmocka_unit_test(a_failing_run_ends_it_and_is_named),
		cmocka_unit_test(twice_the_work_is_slower_and_the_same_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

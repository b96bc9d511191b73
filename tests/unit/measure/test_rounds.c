/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* measure/rounds, strays, shell: real programs in rounds, ended, left behind. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/sys.h"
#include "measure/rounds.h"
#include "measure/shell.h"

#define SH(text)                                                                               \
	((char *[]){(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",                   \
		    (char *)(uintptr_t)(text), NULL})
#define WORK(n) SH("i=0; while [ $i -lt " #n " ]; do i=$((i+1)); done")

static struct as_error err;
static char folder[] = "/tmp/test_rounds.XXXXXX";

static double since(uint64_t ns)
{
	return (double)(as_now_ns() - ns) / 1e9;
}

static void each_is_paired_with_the_first_and_decided_ones_drop_out(void **state)
{
	struct as_arm arms[] = {{.run.argv = WORK(20000)},
				{.run.argv = WORK(80000)},
				{.run.argv = WORK(20100)}};
	struct as_rounds_request q = {.arms = arms,
				      .n = 3,
				      .min_runs = 5,
				      .max_runs = 60,
				      .delta = 0.02,
				      .budget_s = 20,
				      .seed = 7};
	struct as_rounds r;

	/* a verdict has a power, and the machine is shared: three in a row are a fault */
	for (int attempt = 1;; attempt++) {
		assert_int_equal(as_rounds(&q, &r, &err), 0);
		if ((r.v[1].look.verdict == AS_VERDICT_SLOWER &&
		     r.v[1].runs.v.n < r.v[2].runs.v.n) ||
		    attempt == 3)
			break;
		as_rounds_clear(&r);
	}
	assert_int_equal(r.v[1].look.verdict, AS_VERDICT_SLOWER);
	assert_true(r.v[1].look.plain.value > 0.5);
	assert_int_equal(r.v[1].d[0].n, r.v[1].runs.v.n);
	assert_int_equal(r.v[2].d[0].n, r.v[2].runs.v.n);
	/* four times the work is seen long before a half per cent is called equal */
	assert_true(r.v[1].runs.v.n < r.v[2].runs.v.n);
	assert_int_equal(r.v[0].runs.v.n, r.v[2].runs.v.n);
	assert_true(r.v[0].seconds > 0 && r.wall_seconds >= r.seconds);
	for (size_t i = 0; i < r.v[1].rounds.n; i++)
		assert_int_equal(r.v[1].rounds.v[i], i);
	as_rounds_clear(&r);
}

static void the_level_is_shared_by_all_comparisons(void **state)
{
	struct as_arm arms[6];
	struct as_rounds_request q = {
		.arms = arms, .n = 6, .min_runs = 12, .max_runs = 12, .delta = 0.02, .seed = 3};
	char **argv = WORK(300);
	struct as_rounds r;

	for (size_t i = 0; i < 6; i++)
		arms[i] = (struct as_arm){.run.argv = argv};
	assert_int_equal(as_rounds(&q, &r, &err), 0);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(r.v[i].runs.v.n, 12); /* exactly */
	for (size_t i = 1; i < 6; i++) {
		assert_true(r.v[i].look.level <= 0.05 / 5 + 1e-9);
		assert_true(r.v[i].look.level > 0.009);
	}
	as_rounds_clear(&r);
}

static void a_shell_aside_runs_in_each_round_and_is_compared_with_nothing(void **state)
{
	struct as_arm arms[] = {{.run.argv = WORK(500)}, {.run.argv = SH(""), .aside = true}};
	struct as_rounds_request q = {
		.arms = arms, .n = 2, .min_runs = 7, .max_runs = 7, .seed = 3};
	struct as_rounds r;

	assert_int_equal(as_rounds(&q, &r, &err), 0);
	assert_int_equal(r.v[0].runs.v.n, 7);
	assert_int_equal(r.v[1].runs.v.n, 7);
	assert_int_equal(r.v[1].d[0].n, 0);
	as_rounds_clear(&r);
}

static void one_that_fails_is_out_and_keeps_what_it_had(void **state)
{
	char text[256];
	struct as_arm arms[3] = {{.run.argv = SH("exit 0")}, {0}, {.run.argv = SH("exit 0")}};
	struct as_rounds_request q = {
		.arms = arms, .n = 3, .min_runs = 10, .max_runs = 10, .seed = 3};
	struct as_rounds r;

	snprintf(text, sizeof text, "echo x >>%s/n; [ $(wc -l <%s/n) -lt 7 ] || exit 9", folder,
		 folder);
	arms[1].run.argv = SH(text);
	assert_int_equal(as_rounds(&q, &r, &err), 0);
	assert_true(r.v[1].out);
	assert_int_equal(r.v[1].failed_run, 7);
	assert_int_equal(WEXITSTATUS(r.v[1].failed_status), 9);
	assert_int_equal(r.v[1].runs.v.n, 7);
	assert_int_equal(r.v[0].runs.v.n, 10);
	assert_int_equal(r.v[2].runs.v.n, 10);
	as_rounds_clear(&r);

	/* a status that is no failure */
	bool fine[256] = {[9] = true};

	q.ignored = fine;
	assert_int_equal(as_rounds(&q, &r, &err), 0);
	assert_int_equal(r.v[1].runs.v.n, 10);
	assert_int_equal(r.v[1].failures, 0);
	as_rounds_clear(&r);
}

static void one_that_hangs_is_ended_with_all_it_started(void **state)
{
	struct as_arm arms[] = {
		{.run.argv = SH("exit 0")},
		{.run.argv =
			 SH("trap '' TERM; sleep 1000 & sh -c 'trap \"\" TERM; sleep 1001; :'; "
			    ":")}};
	struct as_rounds_request q = {.arms = arms,
				      .n = 2,
				      .min_runs = 3,
				      .max_runs = 3,
				      .timeout_s = 0.3,
				      .seed = 3};
	uint64_t start = as_now_ns();
	struct as_rounds r;

	assert_int_equal(as_rounds(&q, &r, &err), 0);
	assert_true(r.v[1].out);
	assert_int_equal(r.v[1].timeouts, 1);
	assert_int_equal(r.v[1].timeout_run, 1);
	assert_int_equal(r.v[1].runs.v.n, 0);
	assert_true(since(start) < 20);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	as_rounds_clear(&r);
}

static void a_hard_budget_ends_even_a_run(void **state)
{
	struct as_arm arms[] = {{.run.argv = SH("sleep 60")}, {.run.argv = SH("exit 0")}};
	struct as_rounds_request q = {
		.arms = arms, .n = 2, .min_runs = 10, .budget_s = 1.5, .budget_hard = true};
	uint64_t start = as_now_ns();
	struct as_rounds r;

	assert_int_equal(as_rounds(&q, &r, &err), 0);
	assert_true(r.out_of_budget);
	assert_int_equal(r.v[0].runs.v.n, 0);
	assert_int_equal(r.v[0].timeouts, 0); /* it is not its fault */
	assert_true(since(start) < 15);
	as_rounds_clear(&r);

	/* what is done around the runs counts, and is ended as well */
	arms[0] = (struct as_arm){.run.argv = SH("exit 0"), .prepare = "sleep 60"};
	q.n = 1;
	start = as_now_ns();
	assert_int_equal(as_rounds(&q, &r, &err), 0);
	assert_true(r.out_of_budget);
	assert_true(since(start) < 15);
	as_rounds_clear(&r);
}

static void what_a_run_leaves_behind_is_ended_and_named(void **state)
{
	char text[256];
	struct as_arm arm = {.run = {.output_pipe = true}};
	struct as_rounds_request q = {.arms = &arm, .n = 1, .min_runs = 2, .max_runs = 2};
	struct as_rounds r;
	AS_CLEANUP(as_buf_clear) struct as_buf pids = {0};
	int pid;

	/* a daemon: a session of its own, the pipe kept open */
	snprintf(text, sizeof text,
		 "setsid sh -c 'echo $$ >>%s/pids; exec sleep 1000' & "
		 "while ! [ -s %s/pids ]; do sleep 0.01; done",
		 folder, folder);
	arm.run.argv = SH(text);
	assert_int_equal(as_rounds(&q, &r, &err), 0);
	assert_int_equal(r.v[0].runs.v.n, 2);
	assert_true(r.v[0].left >= 1);
	assert_true(strstr("sleep sh setsid", r.v[0].left_name) != NULL);
	as_rounds_clear(&r);
	snprintf(text, sizeof text, "%s/pids", folder);
	assert_int_equal(as_read_file(text, 1000, &pids, &err), 0);
	assert_int_equal(sscanf(as_buf_str(&pids), "%d", &pid), 1);
	assert_int_equal(kill(pid, 0), -1);
	unlink(text);
}

static void a_server_that_prepare_starts_stays_until_the_end(void **state)
{
	char prepare[256], check[256];
	struct as_arm arm = {.prepare = prepare, .run.argv = SH(check)};
	struct as_rounds_request q = {.arms = &arm, .n = 1, .min_runs = 3, .max_runs = 3};
	struct as_rounds r;

	snprintf(prepare, sizeof prepare,
		 "[ -s %s/server ] || { sleep 1000 & echo $! >%s/server; }", folder, folder);
	snprintf(check, sizeof check, "kill -0 $(cat %s/server)", folder);
	assert_int_equal(as_rounds(&q, &r, &err), 0);
	assert_int_equal(r.v[0].failures, 0);
	assert_int_equal(r.v[0].left, 0);
	as_rounds_clear(&r);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void gigabytes_into_a_pipe_are_read_and_forgotten(void **state)
{
	struct as_arm arm = {
		.run = {.argv = SH("head -c 1000000000 /dev/zero"), .output_pipe = true}};
	struct as_rounds_request q = {.arms = &arm, .n = 1, .min_runs = 1, .max_runs = 1};
	struct as_rounds r;

	assert_int_equal(as_rounds(&q, &r, &err), 0);
	assert_int_equal(r.v[0].failures, 0);
	assert_true(r.v[0].runs.v.v[0].v[AS_M_WRITTEN] >= 1e9);
	as_rounds_clear(&r);
}

static void a_file_for_output_holds_the_last_run(void **state)
{
	char path[256];
	struct as_arm arm = {
		.run = {.argv = SH("echo one"), .output = path, .output_anew = true}};
	struct as_rounds_request q = {.arms = &arm, .n = 1, .min_runs = 3, .max_runs = 3};
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	struct as_rounds r;

	snprintf(path, sizeof path, "%s/out", folder);
	assert_int_equal(as_rounds(&q, &r, &err), 0);
	assert_int_equal(as_read_file(path, 1000, &text, &err), 0);
	assert_string_equal(as_buf_str(&text), "one\n");
	as_rounds_clear(&r);
}

static volatile int interrupted;

static void stop_after_four(void *ctx, size_t arm, size_t n, const struct as_look *look)
{
	interrupted = n >= 4;
}

static void interrupted_what_there_is_stays(void **state)
{
	struct as_arm arm = {.run.argv = SH("exit 0")};
	struct as_rounds_request q = {.arms = &arm,
				      .n = 1,
				      .min_runs = 1000,
				      .max_runs = 1000,
				      .interrupted = &interrupted,
				      .progress = stop_after_four};
	struct as_rounds r;

	assert_int_equal(as_rounds(&q, &r, &err), 0);
	assert_int_equal(r.v[0].runs.v.n, 4);
	assert_true(r.interrupted);
	as_rounds_clear(&r);
	interrupted = 0;
}

static void interrupt_at_once(int sig)
{
	interrupted++;
}

static void what_does_not_heed_an_interruption_is_ended(void **state)
{
	struct as_arm arm = {.run.argv = SH("trap '' INT; sleep 1000; :")};
	struct as_rounds_request q = {.arms = &arm,
				      .n = 1,
				      .min_runs = 1,
				      .max_runs = 1,
				      .interrupted = &interrupted};
	struct sigaction sa = {.sa_handler = interrupt_at_once};
	uint64_t start = as_now_ns();
	struct as_rounds r;

	(void)sigaction(SIGALRM, &sa, NULL);
	alarm(1);
	assert_int_equal(as_rounds(&q, &r, &err), 0);
	assert_true(r.interrupted);
	assert_true(since(start) < 30);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	as_rounds_clear(&r);
	interrupted = 0;
	(void)signal(SIGALRM, SIG_DFL);
}

static void shell_commands_fail_in_words(void **state)
{
	struct as_shell_request q = {.command = "exit 3", .what = "prepare"};

	assert_int_equal(as_shell_run(&q, &err), AS_E_IO);
	assert_string_equal(err.msg, "--prepare 'exit 3' failed (status 3)");
	q.silent = true;
	assert_int_equal(as_shell_run(&q, &err), AS_E_IO);
	assert_non_null(strstr(err.msg, "--show-output"));
	q.command = "sleep 100";
	q.deadline_ns = as_now_ns() + 100000000;
	assert_int_equal(as_shell_run(&q, &err), AS_E_LIMIT);
	q.command = NULL;
	assert_int_equal(as_shell_run(&q, &err), 0);
	q = (struct as_shell_request){.command = ":", .what = "setup", .shell = "/no/shell"};
	assert_int_equal(as_shell_run(&q, &err), AS_E_IO);
}

static int make_folder(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const files[] = {"n", "pids", "server", "out"};

	for (size_t i = 0; i < AS_ARRAY_LEN(files); i++) {
		char path[256];

		snprintf(path, sizeof path, "%s/%s", folder, files[i]);
		(void)unlink(path);
	}
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_paired_with_the_first_and_decided_ones_drop_out),
		cmocka_unit_test(the_level_is_shared_by_all_comparisons),
		cmocka_unit_test(a_shell_aside_runs_in_each_round_and_is_compared_with_nothing),
		cmocka_unit_test(one_that_fails_is_out_and_keeps_what_it_had),
		cmocka_unit_test(one_that_hangs_is_ended_with_all_it_started),
		cmocka_unit_test(a_hard_budget_ends_even_a_run),
		cmocka_unit_test(what_a_run_leaves_behind_is_ended_and_named),
		cmocka_unit_test(a_server_that_prepare_starts_stays_until_the_end),
		cmocka_unit_test(gigabytes_into_a_pipe_are_read_and_forgotten),
		cmocka_unit_test(a_file_for_output_holds_the_last_run),
		cmocka_unit_test(interrupted_what_there_is_stays),
		cmocka_unit_test(what_does_not_heed_an_interruption_is_ended),
		cmocka_unit_test(shell_commands_fail_in_words),
	};

	return cmocka_run_group_tests_name("rounds", tests, make_folder, remove_folder);
}

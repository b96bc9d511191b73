/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Launching and attaching, against real children. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "collect/collect.h"

static void wait_for(struct as_target *t)
{
	for (int i = 0; i < 2000 && !as_target_poll(t); i++)
		usleep(5000);
	assert_true(t->exited);
}

static int run(char *const argv[], struct as_target *t)
{
	struct as_error err = {0};
	int r = as_target_prepare(argv, NULL, t, &err);

	if (r >= 0)
		r = as_target_release(t, &err);
	if (r >= 0)
		wait_for(t);
	return r;
}

static void exit_status_and_usage_are_the_programs_own(void **state)
{
	struct as_target t;

	assert_int_equal(run((char *[]){"sh", "-c", "exit 3", NULL}, &t), 0);
	assert_true(WIFEXITED(t.wait_status));
	assert_int_equal(WEXITSTATUS(t.wait_status), 3);
	assert_true(t.end_ns > t.start_ns);
	assert_true(t.usage.ru_maxrss > 0);
	as_target_clear(&t);
}

static void death_by_signal_is_told(void **state)
{
	struct as_target t;

	assert_int_equal(run((char *[]){"sh", "-c", "kill -TERM $$", NULL}, &t), 0);
	assert_true(WIFSIGNALED(t.wait_status));
	assert_int_equal(WTERMSIG(t.wait_status), SIGTERM);
	as_target_clear(&t);
}

static void a_missing_program_and_one_without_rights_differ(void **state)
{
	char path[] = "/tmp/assay-target-XXXXXX";
	int fd = mkstemp(path);
	struct as_target t;

	assert_int_equal(run((char *[]){"no-such-program-here", NULL}, &t), AS_E_NOTFOUND);
	assert_int_equal(run((char *[]){"/no/such/program", NULL}, &t), AS_E_NOTFOUND);
	assert_int_equal(run((char *[]){"", NULL}, &t), AS_E_NOTFOUND);
	assert_int_equal(run((char *[]){path, NULL}, &t), AS_E_ACCESS);
	assert_int_equal(run((char *[]){"/tmp", NULL}, &t), AS_E_ACCESS);
	close(fd);
	unlink(path);
}

static void an_interpreter_that_is_missing_fails_at_release(void **state)
{
	char path[] = "/tmp/assay-target-XXXXXX";
	int fd = mkstemp(path);
	struct as_error err = {0};
	struct as_target t;

	assert_int_equal(as_write_all(fd, "#!/no/such/interpreter\n", 23, NULL), 0);
	fchmod(fd, 0755);
	close(fd);
	assert_int_equal(as_target_prepare((char *[]){path, NULL}, NULL, &t, &err), 0);
	assert_int_equal(as_target_release(&t, &err), AS_E_NOTFOUND);
	assert_non_null(strstr(err.msg, path));
	assert_true(t.exited);
	as_target_clear(&t);
	unlink(path);
}

static void scripts_with_and_without_an_interpreter_line_run(void **state)
{
	static const char *const text[] = {"#!/bin/sh\nexit 5\n", "exit 5\n"};

	for (size_t i = 0; i < AS_ARRAY_LEN(text); i++) {
		char path[] = "/tmp/assay-target-XXXXXX";
		int fd = mkstemp(path);
		struct as_target t;

		assert_int_equal(as_write_all(fd, text[i], strlen(text[i]), NULL), 0);
		fchmod(fd, 0755);
		close(fd);
		assert_int_equal(run((char *[]){path, NULL}, &t), 0);
		assert_int_equal(WEXITSTATUS(t.wait_status), 5);
		as_target_clear(&t);
		unlink(path);
	}
}

/* Runs argv with standard output into a file and returns its text. */
static char *output_of(char *const argv[])
{
	char path[] = "/tmp/assay-target-XXXXXX";
	int fd = mkstemp(path), saved = dup(1);
	struct as_buf b = {0};
	struct as_target t;

	fflush(stdout);
	dup2(fd, 1);
	close(fd);
	assert_int_equal(run(argv, &t), 0);
	dup2(saved, 1);
	close(saved);
	as_target_clear(&t);
	assert_int_equal(as_read_file(path, 1 << 20, &b, NULL), 0);
	unlink(path);
	return as_buf_detach(&b);
}

static void the_child_has_no_descriptor_of_ours(void **state)
{
	/* 9: held open across exec on purpose, so that the list is known to show what is inherited */
	int witness = dup2(2, 9);
	char *text = output_of(
		(char *[]){"sh", "-c", "cd /proc/self/fd; for f in *; do echo $f; done", NULL});
	char line[16];

	assert_int_equal(witness, 9);
	assert_non_null(strstr(text, "9\n"));
	close(witness);
	for (int fd = 3; fd < 64; fd++) {
		int flags = fcntl(fd, F_GETFD);

		/* what our own starter left open to us is the child's by right */
		snprintf(line, sizeof line, "\n%d\n", fd);
		if (fd != 9 && (flags < 0 || flags & FD_CLOEXEC) && strstr(text, line))
			assert_true(fd <= 4); /* the shell's own: its directory */
	}
	free(text);
}

static void the_childs_signals_are_those_we_were_started_with(void **state)
{
	char *before = output_of((char *[]){"grep", "^Sig[BI]", "/proc/self/status", NULL}),
	     *after;
	sigset_t block, old;
	void (*pipe_before)(int) = signal(SIGPIPE, SIG_IGN);

	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	sigprocmask(SIG_BLOCK, &block, &old);
	after = output_of((char *[]){"grep", "^Sig[BI]", "/proc/self/status", NULL});
	sigprocmask(SIG_SETMASK, &old, NULL);
	signal(SIGPIPE, pipe_before);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void the_child_waits_until_it_is_released(void **state)
{
	char path[] = "/tmp/assay-target-XXXXXX";
	int fd = mkstemp(path);
	struct as_error err = {0};
	struct as_target t;

	close(fd);
	unlink(path);
	assert_int_equal(as_target_prepare((char *[]){"touch", path, NULL}, NULL, &t, &err), 0);
	usleep(50000);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(as_target_release(&t, &err), 0);
	wait_for(&t);
	assert_int_equal(access(path, F_OK), 0);
	as_target_clear(&t);
	unlink(path);
}

static void a_child_never_released_goes_away_without_running(void **state)
{
	struct as_error err = {0};
	struct as_target t;
	pid_t pid;

	assert_int_equal(
		as_target_prepare((char *[]){"sh", "-c", "exit 9", NULL}, NULL, &t, &err), 0);
	pid = t.pid;
	as_target_clear(&t);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
}

static void attaching_tells_whether_the_process_lives(void **state)
{
	struct as_error err = {0};
	struct as_target t;
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	assert_int_equal(as_target_attach(pid, &t, &err), 0);
	assert_true(t.attached);
	assert_false(as_target_poll(&t));
	kill(pid, SIGKILL);
	for (int i = 0; i < 400 && !as_target_poll(&t); i++)
		usleep(5000);
	assert_true(t.exited);
	as_target_clear(&t);
	/* a zombie now */
	assert_int_equal(as_target_attach(pid, &t, &err), AS_E_NOTFOUND);
	waitpid(pid, NULL, 0);
	assert_int_equal(as_target_attach(pid, &t, &err), AS_E_NOTFOUND);
	assert_int_equal(as_target_attach(0, &t, &err), AS_E_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit_status_and_usage_are_the_programs_own),
		cmocka_unit_test(death_by_signal_is_told),
		cmocka_unit_test(a_missing_program_and_one_without_rights_differ),
		cmocka_unit_test(an_interpreter_that_is_missing_fails_at_release),
		cmocka_unit_test(scripts_with_and_without_an_interpreter_line_run),
		cmocka_unit_test(the_child_has_no_descriptor_of_ours),
		cmocka_unit_test(the_childs_signals_are_those_we_were_started_with),
		cmocka_unit_test(the_child_waits_until_it_is_released),
		cmocka_unit_test(a_child_never_released_goes_away_without_running),
		cmocka_unit_test(attaching_tells_whether_the_process_lives),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Settings changed and put back, on a machine made of files: killed anywhere, damaged, full, in a crowd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

#include "base/sys.h"
#include "doctor/fix_priv.h"
#include "doctor_tree.h"

#define GOVERNOR(n) "sys/devices/system/cpu/cpu" #n "/cpufreq/scaling_governor"
#define STATE       "tree/state/doctor.state"

/* What every machine here begins as. Two CPUs that differ, a limit that is low already. */
static const struct tree_file settings[] = {
	{GOVERNOR(0), "powersave\n"},
	{GOVERNOR(1), "schedutil\n"},
	{"sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"},
	{"proc/sys/kernel/perf_event_paranoid", "4\n"},
	{"proc/sys/kernel/kptr_restrict", "0\n"},
	{"proc/sys/kernel/nmi_watchdog", "1\n"},
	{"proc/sys/kernel/randomize_va_space", "2\n"},
};
static const char *const changed[] = {"performance", "performance", "1", "1", "0", "0", "2"};

struct machine {
	struct tree tree;
	struct as_fix_env env;
};

static void put_settings(void)
{
	for (size_t i = 0; i < AS_ARRAY_LEN(settings); i++)
		tree_put(settings[i].path, settings[i].text);
}

static void machine_init(struct machine *m)
{
	tree_init(&m->tree);
	tree_put("sys/devices/system/cpu/online", "0-1\n");
	tree_put("proc/sys/kernel/random/boot_id", "11111111-2222\n");
	put_settings();
	m->env = (struct as_fix_env){.d = &m->tree.d,
				     .state_dir = as_xstrdup(fx_path("tree/state"))};
}

static void machine_clear(struct machine *m)
{
	as_fix_env_clear(&m->env);
}

static bool setting_is(size_t i, const char *value)
{
	char path[200], line[64];

	snprintf(path, sizeof path, "tree/%s", settings[i].path);
	return as_doctor_line(line, sizeof line, fx_dir(), "%s", path) &&
	       strncmp(line, value, strlen(line)) == 0 && strlen(line) == strcspn(value, "\n");
}

/* -1: all as found; else the first that is not. */
static int not_as_found(void)
{
	for (size_t i = 0; i < AS_ARRAY_LEN(settings); i++) {
		if (!setting_is(i, settings[i].text))
			return (int)i;
	}
	return -1;
}

static void assert_as_found(const char *when)
{
	int i = not_as_found();

	if (i >= 0)
		fail_msg("%s: %s is not as it was found", when, settings[i].path);
}

static void assert_changed(void)
{
	for (size_t i = 0; i < AS_ARRAY_LEN(settings); i++) {
		if (!setting_is(i, changed[i]))
			fail_msg("%s is not changed", settings[i].path);
	}
}

static int apply(const struct machine *m, struct as_error *err)
{
	struct as_changes c;
	int r = as_fix_apply(&m->env, NULL, 0, &c, err);

	as_changes_clear(&c);
	return r;
}

static int restore(const struct machine *m, struct as_error *err)
{
	struct as_changes c;
	int r = as_fix_restore(&m->env, &c, err);

	as_changes_clear(&c);
	return r;
}

static bool state_is_there(void)
{
	return access(fx_path(STATE), F_OK) == 0;
}

/* ---- plain ---- */

static enum as_change_kind kind_of(const struct as_changes *c, const char *name)
{
	as_vec_foreach (it, &c->all) {
		if (strcmp(it->name, name) == 0)
			return it->kind;
	}
	fail_msg("nothing is said of %s", name);
	return AS_CHANGE_FAILED;
}

static void what_is_changed_is_put_back(void **state)
{
	struct as_changes c;
	struct machine m;

	(void)state;
	machine_init(&m);
	assert_false(as_fix_pending(&m.env));
	assert_int_equal(as_fix_apply(&m.env, NULL, 0, &c, NULL), 0);
	assert_int_equal(kind_of(&c, "governor"), AS_CHANGE_DONE);
	assert_int_equal(kind_of(&c, "kptr_restrict"), AS_CHANGE_ALREADY);
	as_changes_clear(&c);
	assert_changed();
	assert_true(as_fix_pending(&m.env));
	assert_int_equal(as_fix_restore(&m.env, &c, NULL), 0);
	assert_int_equal(kind_of(&c, "governor"), AS_CHANGE_DONE);
	as_changes_clear(&c);
	assert_as_found("restored");
	assert_false(state_is_there());
	assert_int_equal(as_fix_restore(&m.env, &c, NULL), 0);
	assert_true(c.nothing);
	as_changes_clear(&c);
	machine_clear(&m);
}

static void the_first_found_value_counts(void **state)
{
	static const char *const aslr[] = {"aslr"}, *const none[] = {"nonsense"};
	struct as_error err = {0};
	struct as_changes c;
	struct machine m;

	(void)state;
	machine_init(&m);
	assert_int_equal(apply(&m, NULL), 0);
	assert_int_equal(apply(&m, NULL), 0);
	assert_int_equal(as_fix_apply(&m.env, aslr, 1, &c, NULL), 0);
	assert_int_equal(kind_of(&c, "aslr"), AS_CHANGE_DONE);
	as_changes_clear(&c);
	assert_int_equal(as_fix_apply(&m.env, none, 1, &c, &err), AS_E_USAGE);
	assert_non_null(strstr(err.msg, "governor"));
	as_changes_clear(&c);
	assert_int_equal(restore(&m, NULL), 0);
	assert_as_found("after three changes");
	machine_clear(&m);
}

static void what_somebody_else_changed_is_left(void **state)
{
	struct as_changes c;
	struct machine m;

	(void)state;
	machine_init(&m);
	assert_int_equal(apply(&m, NULL), 0);
	tree_put(GOVERNOR(0), "ondemand\n");
	assert_int_equal(as_fix_restore(&m.env, &c, NULL), 0);
	assert_true(setting_is(0, "ondemand"));
	assert_true(setting_is(1, "schedutil"));
	size_t left = 0;
	as_vec_foreach (it, &c.all)
		left += it->kind == AS_CHANGE_LEFT;
	assert_int_equal(left, 1);
	as_changes_clear(&c);
	machine_clear(&m);
}

static void a_setting_that_has_gone_is_no_failure(void **state)
{
	struct as_changes c;
	struct machine m;

	(void)state;
	machine_init(&m);
	assert_int_equal(apply(&m, NULL), 0);
	assert_int_equal(fx_sh("rm tree/" GOVERNOR(1)), 0); /* the CPU was taken away */
	assert_int_equal(as_fix_restore(&m.env, &c, NULL), 0);
	as_changes_clear(&c);
	assert_false(state_is_there());
	machine_clear(&m);
}

static void the_next_start_of_the_machine_undoes_all(void **state)
{
	struct as_changes c;
	struct machine m;

	(void)state;
	machine_init(&m);
	assert_int_equal(apply(&m, NULL), 0);
	tree_put("proc/sys/kernel/random/boot_id", "33333333-4444\n");
	put_settings();
	tree_put("proc/sys/kernel/perf_event_paranoid",
		 "1\n"); /* as --fix had set it: not ours */
	assert_false(as_fix_pending(&m.env));
	assert_int_equal(as_fix_restore(&m.env, &c, NULL), 0);
	assert_true(c.stale);
	assert_int_equal(c.all.n, 0);
	as_changes_clear(&c);
	assert_true(setting_is(3, "1"));
	assert_false(state_is_there());
	machine_clear(&m);
}

/* ---- killed ---- */

enum end { DONE, KILLED };

/* Runs it in a child and kills that at its nth system call. */
static enum end killed_at(const struct machine *m,
			  int (*what)(const struct machine *, struct as_error *), unsigned n)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			_exit(99);
		(void)raise(SIGSTOP);
		_exit(what(m, NULL) == 0 ? 0 : 1);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (unsigned i = 0; WIFSTOPPED(status) && i < 2 * n; i++) { /* entry and exit */
		if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) != 0)
			break;
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	if (WIFEXITED(status)) {
		if (WEXITSTATUS(status) == 99)
			fx_skip("ptrace is not allowed here");
		assert_int_equal(WEXITSTATUS(status), 0);
		return DONE;
	}
	kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) == pid && !WIFSIGNALED(status) && !WIFEXITED(status))
		;
	return KILLED;
}

static void start_over(void)
{
	put_settings();
	(void)unlink(fx_path(STATE));
}

static void killed_anywhere_in_fix_all_is_put_back(void **state)
{
	unsigned n = 0, half = 0;
	struct machine m;

	(void)state;
	machine_init(&m);
	for (; n < 5000; n++) {
		char when[64];

		snprintf(when, sizeof when, "killed at system call %u of --fix", n);
		if (killed_at(&m, apply, n) == DONE)
			break;
		half += not_as_found() >= 0 && !setting_is(5, "0");
		/* every second time it is asked for again before it is put back */
		if (n % 2)
			assert_int_equal(apply(&m, NULL), 0);
		assert_int_equal(restore(&m, NULL), 0);
		assert_as_found(when);
		assert_false(state_is_there());
		start_over();
	}
	assert_true(n > 50 && n < 5000);
	assert_true(half > 10); /* it was cut short between settings */
	assert_changed();
	print_message("killed at each of %u system calls\n", n);
	machine_clear(&m);
}

static void killed_anywhere_in_restore_all_is_put_back(void **state)
{
	unsigned n = 0, half = 0;
	struct machine m;

	(void)state;
	machine_init(&m);
	for (; n < 5000; n++) {
		char when[64];

		snprintf(when, sizeof when, "killed at system call %u of --restore", n);
		assert_int_equal(apply(&m, NULL), 0);
		if (killed_at(&m, restore, n) == DONE)
			break;
		half += setting_is(5, "1") && setting_is(0, "performance");
		assert_int_equal(restore(&m, NULL), 0);
		assert_as_found(when);
		assert_false(state_is_there());
		start_over();
	}
	assert_true(n > 30 && n < 5000);
	assert_true(half > 5);
	assert_as_found("not killed");
	print_message("killed at each of %u system calls\n", n);
	machine_clear(&m);
}

/* ---- the state file ---- */

/* A machine that fails in the middle of a write leaves any part of it. */
static void a_torn_state_puts_back_what_was_acted_on(void **state)
{
	struct machine m;
	unsigned char *whole;
	size_t n;

	(void)state;
	machine_init(&m);
	assert_int_equal(apply(&m, NULL), 0);
	whole = fx_read(STATE, &n);
	assert_non_null(whole);
	for (size_t cut = 0; cut <= n; cut++) {
		size_t lines = 0;

		put_settings();
		fx_write_bytes(STATE, whole, cut);
		for (size_t i = 0; i < cut; i++)
			lines += whole[i] == '\n';
		/* what has its whole line was changed, in the order of the table */
		static const size_t order[] = {0, 1, 2, 3, 5};
		for (size_t i = 0; i + 2 < lines; i++)
			tree_put(settings[order[i]].path, changed[order[i]]);
		assert_int_equal(restore(&m, NULL), 0);
		assert_as_found("torn");
		assert_false(state_is_there());
	}
	free(whole);
	machine_clear(&m);
}

static void a_foreign_state_is_left_as_it_is(void **state)
{
	static const char *const texts[] = {"hello\n", "assay-doctor-state 2\nboot x\n", "\n",
					    "assay-doctor-state 1\nshoe 1\n"};
	struct as_error err = {0};
	struct machine m;

	(void)state;
	machine_init(&m);
	tree_put("state/doctor.state", "");
	for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++) {
		unsigned char *now;
		size_t n;

		fx_write(STATE, texts[i]);
		assert_int_equal(apply(&m, &err), AS_E_FORMAT);
		assert_non_null(strstr(err.msg, "doctor.state"));
		assert_int_equal(restore(&m, &err), AS_E_FORMAT);
		assert_as_found("foreign state");
		now = fx_read(STATE, &n);
		assert_true(now && n == strlen(texts[i]) && memcmp(now, texts[i], n) == 0);
		free(now);
	}
	machine_clear(&m);
}

static void a_damaged_line_costs_that_line_only(void **state)
{
	static const char *const lines[] = {
		"governor\tsys\n",
		"\n",
		"\x01\x02\xff\n",
		"governor\ta\tb\tc d\n",
		"nonsense\tsys/kernel/x\t1\t0\n",
		"governor\tdevices/system/cpu/cpu0/cpufreq/scaling_governor\t"
		"a-value-that-is-much-too-long-for-any-setting\tperformance\n"};
	struct as_error err = {0};
	struct machine m;

	(void)state;
	machine_init(&m);
	for (size_t i = 0; i < AS_ARRAY_LEN(lines); i++) {
		unsigned char *whole;
		size_t n;

		assert_int_equal(apply(&m, NULL), 0);
		whole = fx_read(STATE, &n);
		assert_non_null(whole);
		FILE *f = fopen(fx_path(STATE), "ab");
		assert_non_null(f);
		fputs(lines[i], f);
		fclose(f);
		assert_int_equal(apply(&m, &err), 0); /* nothing to be changed: not opened */
		tree_put("proc/sys/kernel/kptr_restrict", "2\n");
		assert_int_equal(apply(&m, &err), AS_E_FORMAT);
		assert_non_null(strstr(err.msg, "--restore"));
		assert_true(setting_is(4, "2"));
		tree_put("proc/sys/kernel/kptr_restrict", "0\n");
		assert_int_equal(restore(&m, &err), AS_E_FORMAT);
		assert_non_null(strstr(err.msg, "line 8"));
		assert_null(strchr(err.msg, 1));
		assert_as_found("one line damaged");
		assert_true(state_is_there());
		free(whole);
		start_over();
	}
	machine_clear(&m);
}

/* The state file may have been written by anybody who could: only settings are ever touched. */
static void only_settings_are_written_whatever_the_state_says(void **state)
{
	static const char text[] =
		"assay-doctor-state 1\nboot 11111111-2222\n"
		"governor\tdevices/system/cpu/cpu0/cpufreq/../../../../../x\tevil\tgood\n"
		"governor\tdevices/system/cpu/cpu0/../../../../x\tevil\tgood\n"
		"perf_event_paranoid\t../x\tevil\tgood\n"
		"aslr\tdevices/system/cpu/cpufreq/boost\tevil\tgood\n";
	unsigned char *x;
	struct machine m;
	size_t n;

	(void)state;
	machine_init(&m);
	tree_put("sys/x", "good\n");
	tree_put("x", "good\n");
	tree_put("sys/devices/system/cpu/cpufreq/boost", "good\n");
	tree_put("state/doctor.state", text);
	assert_int_equal(restore(&m, NULL), 0);
	x = fx_read("tree/sys/x", &n);
	assert_true(n == 5 && memcmp(x, "good\n", 5) == 0);
	free(x);
	x = fx_read("tree/x", &n);
	assert_true(n == 5 && memcmp(x, "good\n", 5) == 0);
	free(x);
	x = fx_read("tree/sys/devices/system/cpu/cpufreq/boost", &n);
	assert_true(n == 5 && memcmp(x, "good\n", 5) == 0);
	free(x);
	assert_true(state_is_there()); /* it says that something is not put back */
	machine_clear(&m);
}

/* ---- no place, no rights ---- */

static int apply_with_limit(const struct machine *m, rlim_t bytes, char *ret, size_t n)
{
	struct rlimit limit = {bytes, bytes};
	int status, fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		struct as_error err = {0};

		signal(SIGXFSZ, SIG_IGN);
		if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
			_exit(99);
		int r = apply(m, &err);
		if (write(fds[1], err.msg, strlen(err.msg)) < 0)
			_exit(98);
		_exit(r == 0 ? 0 : r == AS_E_IO ? 1 : 2);
	}
	close(fds[1]);
	ssize_t got = read(fds[0], ret, n - 1);
	ret[AS_MAX(got, 0)] = 0;
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Files may not grow beyond a size: a disk that becomes full at every byte. */
static void without_room_for_the_state_nothing_is_changed(void **state)
{
	struct machine m;
	unsigned char *whole;
	char why[512];
	size_t n;

	(void)state;
	machine_init(&m);
	assert_int_equal(apply(&m, NULL), 0);
	whole = fx_read(STATE, &n);
	free(whole);
	assert_int_equal(restore(&m, NULL), 0);
	for (size_t room = 12; room < n; room++) { /* "performance\n" must fit */
		int r = apply_with_limit(&m, room, why, sizeof why);

		assert_int_equal(r, 1);
		assert_non_null(strstr(why, "state"));
		if (room < strlen("assay-doctor-state 1\nboot 11111111-2222\ngovernor"))
			assert_as_found("no room for the first line");
		assert_int_equal(restore(&m, NULL), 0);
		assert_as_found("no room");
		assert_false(state_is_there());
	}
	machine_clear(&m);
}

static void a_state_that_cannot_be_made_changes_nothing(void **state)
{
	struct as_error err = {0};
	struct machine m;

	(void)state;
	machine_init(&m);
	tree_put("state", "a file where the folder should be");
	assert_true(apply(&m, &err) < 0);
	assert_non_null(strstr(err.msg, "nothing is changed"));
	assert_as_found("no folder");
	assert_int_equal(fx_sh("rm tree/state; mkdir tree/state; ln -s /dev/null %s", STATE),
			 0);
	assert_true(apply(&m, &err) < 0); /* a link: not followed */
	assert_as_found("a link for a state");
	machine_clear(&m);
}

/* As an ordinary user: root may write every file. */
static int refused(const struct machine *m, struct as_error *err)
{
	struct as_changes c = {0};
	int r;

	(void)err;
	if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
		return -1;
	r = as_fix_apply(&m->env, NULL, 0, &c, NULL);
	for (size_t i = 0; r == 0 && i < c.all.n; i++) {
		bool locked = c.all.v[i].path && strstr(c.all.v[i].path, "cpu0/");

		if (locked && (c.all.v[i].kind != AS_CHANGE_FAILED ||
			       !strstr(c.all.v[i].why, "only root")))
			r = 1;
		if (!locked && c.all.v[i].kind == AS_CHANGE_FAILED)
			r = 2;
	}
	as_changes_clear(&c);
	return r;
}

static void refused_settings_are_told_and_the_rest_is_changed(void **state)
{
	struct machine m;
	int status;
	pid_t pid;

	(void)state;
	machine_init(&m);
	assert_int_equal(fx_sh("mkdir tree/state; chmod 755 . ; chmod -R a+rwX tree\n"
			       "chmod 444 tree/" GOVERNOR(0)),
			 0);
	pid = fork();
	if (pid == 0)
		_exit(refused(&m, NULL) & 0xff);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(setting_is(0, "powersave") && setting_is(1, "performance"));
	assert_int_equal(restore(&m, NULL), 0);
	assert_as_found("one was refused");
	machine_clear(&m);
}

/* ---- in a crowd ---- */

static void many_at_once_leave_it_as_found(void **state)
{
	enum { CROWD = 12, ROUNDS = 10 };
	struct machine m;

	(void)state;
	machine_init(&m);
	for (int round = 0; round < ROUNDS; round++) {
		pid_t pid[CROWD];

		for (int i = 0; i < CROWD; i++) {
			pid[i] = fork();
			if (pid[i] == 0)
				_exit(i % 3 == 2 ? restore(&m, NULL) != 0
						 : apply(&m, NULL) != 0);
		}
		for (int i = 0; i < CROWD; i++) {
			int status;

			assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		}
		assert_int_equal(restore(&m, NULL), 0);
		assert_as_found("a crowd");
	}
	machine_clear(&m);
}

static void no_sleep(uint64_t ns)
{
	(void)ns;
}

static void a_doctor_that_is_stuck_is_named(void **state)
{
	struct as_error err = {0};
	struct machine m;
	int fd;

	(void)state;
	machine_init(&m);
	m.tree.d.sleep_ns = no_sleep;
	assert_int_equal(apply(&m, NULL), 0);
	fd = open(fx_path(STATE), O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(restore(&m, &err), AS_E_IO);
	assert_non_null(strstr(err.msg, "another assay doctor"));
	close(fd);
	assert_int_equal(restore(&m, NULL), 0);
	assert_as_found("it has ended");
	machine_clear(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_changed_is_put_back),
		cmocka_unit_test(the_first_found_value_counts),
		cmocka_unit_test(what_somebody_else_changed_is_left),
		cmocka_unit_test(a_setting_that_has_gone_is_no_failure),
		cmocka_unit_test(the_next_start_of_the_machine_undoes_all),
		cmocka_unit_test(killed_anywhere_in_fix_all_is_put_back),
		cmocka_unit_test(killed_anywhere_in_restore_all_is_put_back),
		cmocka_unit_test(a_torn_state_puts_back_what_was_acted_on),
		cmocka_unit_test(a_foreign_state_is_left_as_it_is),
		cmocka_unit_test(a_damaged_line_costs_that_line_only),
		cmocka_unit_test(only_settings_are_written_whatever_the_state_says),
		cmocka_unit_test(without_room_for_the_state_nothing_is_changed),
		cmocka_unit_test(a_state_that_cannot_be_made_changes_nothing),
		cmocka_unit_test(refused_settings_are_told_and_the_rest_is_changed),
		cmocka_unit_test(many_at_once_leave_it_as_found),
		cmocka_unit_test(a_doctor_that_is_stuck_is_named),
	};

	/* hundreds of states are brought to the disk: one of memory will do */
	if (access("/dev/shm", W_OK) == 0)
		(void)setenv("TMPDIR", "/dev/shm", 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

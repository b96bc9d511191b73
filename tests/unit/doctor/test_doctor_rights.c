/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every check of rights and of what can be done, shown users that have them and such that lack them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/sys.h"
#include "collect/collect.h"
#include "doctor_tree.h"

#define OK   AS_SEVERITY_OK
#define INFO AS_SEVERITY_INFO
#define WARN AS_SEVERITY_WARN
#define BAD  AS_SEVERITY_BAD

#define KERNEL "proc/sys/kernel/"
#define USER_CAPS                                                                              \
	{                                                                                      \
		"proc/self/status", "CapEff:\t0000000000000000\nSeccomp:\t0\nNoNewPrivs:\t0\n" \
	}
#define ROOT_CAPS                                                                              \
	{                                                                                      \
		"proc/self/status", "CapEff:\t000001ffffffffff\nSeccomp:\t0\nNoNewPrivs:\t0\n" \
	}
/* what docker leaves to root */
#define DOCKER_CAPS                                                                            \
	{                                                                                      \
		"proc/self/status", "CapEff:\t00000000a80425fb\nSeccomp:\t2\n"                 \
	}
#define PERFMON_CAPS                                                                           \
	{                                                                                      \
		"proc/self/status", "CapEff:\t0000004000000000\n"                              \
	}

/* ---- engines ---- */

static int yes(struct as_probe_result *ret)
{
	*ret = (struct as_probe_result){.can = AS_PROBE_YES};
	return 0;
}

static int partly(struct as_probe_result *ret)
{
	*ret = (struct as_probe_result){
		.can = AS_PROBE_PARTLY, .why = "user mode only", .remedy = "sudo assay record"};
	return 0;
}

static int no(struct as_probe_result *ret)
{
	*ret = (struct as_probe_result){.why = "perf_event_paranoid 3",
					.remedy = "sudo sysctl x"};
	return 0;
}

static int broken(struct as_probe_result *ret)
{
	(void)yes(
		ret); /* an engine that fails to tell cannot be used, whatever it left there */
	return AS_E_IO;
}

static const struct as_collector can_do = {
	.name = "good", .summary = "all of it", .probe = yes};
static const struct as_collector can_part = {
	.name = "part", .summary = "some", .probe = partly};
static const struct as_collector can_not = {.name = "none", .summary = "all", .probe = no};
static const struct as_collector is_broken = {
	.name = "hurt", .summary = "all", .probe = broken};

static void engines(struct tree *t, const struct as_collector *first,
		    const struct as_collector *second)
{
	static const struct as_collector *all[3];

	all[0] = first;
	all[1] = second;
	all[2] = NULL;
	t->d.engines = all;
}

static void good_engine(struct tree *t)
{
	engines(t, &can_do, &can_part);
}

static void second_engine(struct tree *t)
{
	engines(t, &can_not, &can_do);
}

static void part_engine(struct tree *t)
{
	engines(t, &can_part, NULL);
}

static void no_engine(struct tree *t)
{
	engines(t, &can_not, NULL);
}

static void broken_engine(struct tree *t)
{
	engines(t, &is_broken, NULL);
}

/* ---- users ---- */

static void root(struct tree *t)
{
	t->d.uid = 0;
}

static void little_mlock(struct tree *t)
{
	t->d.memlock_bytes = 64 << 10;
}

static void little_mlock_root(struct tree *t)
{
	t->d.memlock_bytes = 64 << 10;
	t->d.uid = 0;
}

static void few_files(struct tree *t)
{
	t->d.nofile = 128;
}

static void usual_files(struct tree *t)
{
	t->d.nofile = 1024;
}

static const struct scene scenes[] = {
	{"engines", "good", {{0}}, good_engine, OK, "engine good (all of it)", NULL},
	{"engines",
	 "first cannot, second can",
	 {{0}},
	 second_engine,
	 INFO,
	 "cannot be used",
	 "x"},
	{"engines",
	 "in part",
	 {{0}},
	 part_engine,
	 WARN,
	 "in part: user mode",
	 "sudo assay record"},
	{"engines", "none", {{0}}, no_engine, BAD, "perf_event_paranoid 3", "sudo sysctl x"},

	{"perf_event_paranoid",
	 "1",
	 {{KERNEL "perf_event_paranoid", "1\n"}, USER_CAPS},
	 NULL,
	 OK,
	 "paranoid 1",
	 NULL},
	{"perf_event_paranoid",
	 "-1",
	 {{KERNEL "perf_event_paranoid", "-1\n"}, USER_CAPS},
	 NULL,
	 OK,
	 "paranoid -1",
	 NULL},
	{"perf_event_paranoid",
	 "2",
	 {{KERNEL "perf_event_paranoid", "2\n"}, USER_CAPS},
	 NULL,
	 WARN,
	 "no kernel time",
	 "--fix perf_event_paranoid"},
	{"perf_event_paranoid",
	 "Debian's 3",
	 {{KERNEL "perf_event_paranoid", "3\n"}, USER_CAPS},
	 NULL,
	 BAD,
	 "no sampling",
	 "record cannot run"},
	{"perf_event_paranoid",
	 "Ubuntu's 4",
	 {{KERNEL "perf_event_paranoid", "4\n"}, USER_CAPS},
	 NULL,
	 BAD,
	 "no sampling",
	 NULL},
	{"perf_event_paranoid",
	 "4, root",
	 {{KERNEL "perf_event_paranoid", "4\n"}, ROOT_CAPS},
	 root,
	 OK,
	 "does not bind",
	 NULL},
	{"perf_event_paranoid",
	 "4, CAP_PERFMON",
	 {{KERNEL "perf_event_paranoid", "4\n"}, PERFMON_CAPS},
	 NULL,
	 OK,
	 "does not bind",
	 NULL},
	{"perf_event_paranoid",
	 "root of docker",
	 {{KERNEL "perf_event_paranoid", "2\n"}, DOCKER_CAPS},
	 root,
	 WARN,
	 "no kernel time",
	 NULL},
	{"perf_event_paranoid",
	 "a kernel without",
	 {{KERNEL "ostype", "Linux\n"}, USER_CAPS},
	 NULL,
	 BAD,
	 "no perf events",
	 NULL},
	{"perf_event_paranoid", "unknown", {{0}}, NULL, INFO, "cannot be seen", NULL},

	{"kptr_restrict",
	 "0 and may sample the kernel",
	 {{KERNEL "kptr_restrict", "0\n"}, {KERNEL "perf_event_paranoid", "1\n"}, USER_CAPS},
	 NULL,
	 OK,
	 "names of kernel",
	 NULL},
	{"kptr_restrict",
	 "0 and may not",
	 {{KERNEL "kptr_restrict", "0\n"}, {KERNEL "perf_event_paranoid", "2\n"}, USER_CAPS},
	 NULL,
	 INFO,
	 "no names",
	 "--fix perf_event_paranoid"},
	{"kptr_restrict",
	 "1",
	 {{KERNEL "kptr_restrict", "1\n"}, USER_CAPS},
	 NULL,
	 INFO,
	 "kptr_restrict 1",
	 "--fix kptr_restrict"},
	{"kptr_restrict",
	 "1, root",
	 {{KERNEL "kptr_restrict", "1\n"}, ROOT_CAPS},
	 root,
	 OK,
	 NULL,
	 NULL},
	{"kptr_restrict",
	 "2 binds root",
	 {{KERNEL "kptr_restrict", "2\n"}, ROOT_CAPS},
	 root,
	 INFO,
	 "kptr_restrict 2",
	 "--fix kptr_restrict"},

	{"capabilities", "root", {ROOT_CAPS}, root, OK, "root", NULL},
	{"capabilities",
	 "none",
	 {USER_CAPS},
	 NULL,
	 INFO,
	 "an ordinary user without cap_perfmon,cap_bpf,cap_sys_ptrace,cap_syslog",
	 "setcap"},
	{"capabilities",
	 "root of docker",
	 {DOCKER_CAPS},
	 root,
	 INFO,
	 "root without cap_perfmon",
	 "docker run"},
	{"capabilities",
	 "some",
	 {PERFMON_CAPS},
	 NULL,
	 INFO,
	 "without cap_bpf,cap_sys_ptrace",
	 NULL},
	{"capabilities", "unknown", {{0}}, NULL, INFO, "cannot be seen", NULL},

	{"seccomp", "none", {USER_CAPS}, NULL, OK, "no system call filter", NULL},
	{"seccomp", "a filter", {DOCKER_CAPS}, NULL, INFO, "in force", "seccomp=unconfined"},
	{"seccomp",
	 "no_new_privs",
	 {{"proc/self/status", "NoNewPrivs:\t1\nSeccomp:\t0\n"}},
	 NULL,
	 INFO,
	 "no_new_privs",
	 NULL},
	{"seccomp",
	 "a kernel without",
	 {{"proc/self/status", "Name:\tx\n"}},
	 NULL,
	 OK,
	 NULL,
	 NULL},
	{"seccomp", "unknown", {{0}}, NULL, INFO, "cannot be seen", NULL},

	{"mlock", "no limit", {USER_CAPS}, NULL, OK, NULL, NULL},
	{"mlock",
	 "little, but the kernel's allowance is enough",
	 {{KERNEL "perf_event_mlock_kb", "516\n"}, USER_CAPS},
	 little_mlock,
	 OK,
	 NULL,
	 NULL},
	{"mlock",
	 "little",
	 {{KERNEL "perf_event_mlock_kb", "4\n"}, USER_CAPS},
	 little_mlock,
	 WARN,
	 "4 KiB a CPU, ulimit -l 64 KiB",
	 "ulimit -l unlimited"},
	{"mlock",
	 "little, root",
	 {{KERNEL "perf_event_mlock_kb", "4\n"}, ROOT_CAPS},
	 little_mlock_root,
	 OK,
	 NULL,
	 NULL},

	{"nofile", "usual", {{0}}, usual_files, OK, NULL, NULL},
	{"nofile", "few", {{0}}, few_files, WARN, "128 open files", "ulimit -n"},
	{"nofile",
	 "usual, but of 500 CPUs",
	 {{"sys/devices/system/cpu/online", "0-499\n"}},
	 usual_files,
	 WARN,
	 "1024 open files",
	 NULL},

	{"sample_rate",
	 "usual",
	 {{KERNEL "perf_event_max_sample_rate", "100000\n"}},
	 NULL,
	 OK,
	 "100000",
	 NULL},
	{"sample_rate",
	 "lowered",
	 {{KERNEL "perf_event_max_sample_rate", "250\n"}},
	 NULL,
	 WARN,
	 "250 samples",
	 "sysctl"},

	{"tracefs",
	 "there",
	 {{"sys/kernel/tracing/events/sched/sched_switch/id", "316\n"}},
	 NULL,
	 OK,
	 "tracepoints",
	 NULL},
	{"tracefs",
	 "where it was before 4.1",
	 {{"sys/kernel/debug/tracing/events/sched/sched_switch/id", "316\n"}},
	 NULL,
	 OK,
	 "tracepoints",
	 NULL},
	{"tracefs", "closed", {{0}}, NULL, INFO, "cannot be read by this user", "remount"},
	{"tracefs", "not mounted", {{0}}, root, INFO, "is not mounted", "mount -t tracefs"},

	{"yama",
	 "open",
	 {{KERNEL "yama/ptrace_scope", "0\n"}, USER_CAPS},
	 NULL,
	 OK,
	 NULL,
	 NULL},
	{"yama",
	 "a kernel without",
	 {{KERNEL "ostype", "Linux\n"}, USER_CAPS},
	 NULL,
	 OK,
	 NULL,
	 NULL},
	{"yama",
	 "Ubuntu's 1",
	 {{KERNEL "yama/ptrace_scope", "1\n"}, USER_CAPS},
	 NULL,
	 INFO,
	 "ptrace_scope 1",
	 "sudo assay record -p"},
	{"yama",
	 "1, root",
	 {{KERNEL "yama/ptrace_scope", "1\n"}, ROOT_CAPS},
	 root,
	 OK,
	 NULL,
	 NULL},
	{"yama",
	 "3 binds root",
	 {{KERNEL "yama/ptrace_scope", "3\n"}, ROOT_CAPS},
	 root,
	 INFO,
	 "ptrace_scope 3",
	 "next start"},
	{"yama", "unknown", {{0}}, NULL, INFO, "cannot be seen", NULL},

	{"can", "record", {{0}}, good_engine, OK, "record (engine good)", NULL},
	{"can", "the second engine", {{0}}, second_engine, OK, "record (engine good)", NULL},
	{"can",
	 "nothing",
	 {{0}},
	 no_engine,
	 BAD,
	 "record (perf_event_paranoid 3)",
	 "sudo sysctl x"},
	{"can", "an engine that fails to tell", {{0}}, broken_engine, BAD, "record", NULL},
};

static void every_user_is_told_as_it_is(void **state)
{
	(void)state;
	scenes_play(scenes, AS_ARRAY_LEN(scenes));
}

static void every_check_is_shown_both_kinds(void **state)
{
	(void)state;
	scenes_are_of_both_kinds(scenes, AS_ARRAY_LEN(scenes), AS_AREA_RIGHTS);
	scenes_are_of_both_kinds(scenes, AS_ARRAY_LEN(scenes), AS_AREA_CAN);
}

static void what_cannot_be_seen_is_no_verdict(void **state)
{
	struct as_findings out = {0};
	struct tree t;

	(void)state;
	tree_init(&t);
	for (const struct as_check *c = as_checks; c->id; c++) {
		if (c->area == AS_AREA_RIGHTS)
			assert_int_equal(c->check(&t.d, &out), 0);
	}
	as_vec_foreach (f, &out.all) {
		if (f->severity >= WARN)
			fail_msg("%s: '%s'", f->id, f->what);
	}
	as_findings_clear(&out);
}

static enum as_severity of(const struct as_findings *f, const char *id)
{
	as_vec_foreach (it, &f->all) {
		if (strcmp(it->id, id) == 0)
			return it->severity;
	}
	fail_msg("nothing is said of %s", id);
	return BAD;
}

static void abilities(void (*with)(struct tree *), const struct tree_file *files, size_t n,
		      struct as_findings *out)
{
	struct tree t;

	tree_init(&t);
	for (size_t i = 0; i < n; i++)
		tree_put(files[i].path, files[i].text);
	with(&t);
	*out = (struct as_findings){0};
	assert_int_equal(as_check_can(&t.d, out), 0);
}

static void abilities_follow_rights(void **state)
{
	static const struct tree_file all[] = {
		{KERNEL "kptr_restrict", "0\n"},
		{KERNEL "perf_event_paranoid", "1\n"},
		{"sys/bus/event_source/devices/cpu/type", "4\n"}};
	static const struct tree_file hidden[] = {{KERNEL "kptr_restrict", "2\n"}};
	struct as_findings f;

	(void)state;
	abilities(good_engine, all, AS_ARRAY_LEN(all), &f);
	assert_int_equal(of(&f, "can-record"), OK);
	assert_int_equal(of(&f, "can-kernel-stacks"), OK);
	assert_int_equal(of(&f, "can-counters"), OK);
	assert_int_equal(as_findings_worst(&f), OK);
	as_findings_clear(&f);

	abilities(good_engine, hidden, AS_ARRAY_LEN(hidden), &f);
	assert_int_equal(of(&f, "can-kernel-names"), INFO);
	assert_int_equal(of(&f, "can-counters"), INFO);
	as_findings_clear(&f);

	abilities(part_engine, NULL, 0, &f);
	assert_int_equal(of(&f, "can-record"), OK);
	assert_int_equal(of(&f, "can-kernel-stacks"), WARN);
	as_findings_clear(&f);

	abilities(no_engine, NULL, 0, &f);
	assert_int_equal(of(&f, "can-record"), BAD);
	assert_int_equal(of(&f, "can-stat"), OK);
	assert_int_equal(of(&f, "can-read"), OK);
	as_findings_clear(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_user_is_told_as_it_is),
		cmocka_unit_test(every_check_is_shown_both_kinds),
		cmocka_unit_test(what_cannot_be_seen_is_no_verdict),
		cmocka_unit_test(abilities_follow_rights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

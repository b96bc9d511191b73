/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every check of the machine, shown machines that are as they should be and such that are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/sys.h"
#include "doctor_tree.h"

#define OK   AS_SEVERITY_OK
#define INFO AS_SEVERITY_INFO
#define WARN AS_SEVERITY_WARN
#define BAD  AS_SEVERITY_BAD

#define CPU  "sys/devices/system/cpu/"
#define ZONE "sys/class/thermal/thermal_zone"
#define LOAD "4.10 3.90 3.50 5/186 4711\n"

/* ---- what was measured ---- */

static void measured(struct tree *t)
{
	t->vitals.noise = (struct as_noise){.repetitions = 900,
					    .typical_ms = 1,
					    .spread = 0.002,
					    .range = 0.01,
					    .speed = 0.001,
					    .worst_gap_ms = 0.05,
					    .lost = 0.001,
					    .waited = 0,
					    .cpu = 1};
	t->vitals.pulse = (struct as_pulse){
		.interval_ns = 1000000000, .cpus_online = 4, .sibling_busy = 0};
}

static void spread(struct tree *t)
{
	measured(t);
	t->vitals.noise.spread = 0.02;
	t->vitals.noise.speed = 0.02;
}

static void gaps(struct tree *t)
{
	measured(t);
	t->vitals.noise.lost = 0.3;
	t->vitals.noise.waited = 0.29;
	t->vitals.noise.worst_gap_ms = 20;
}

static void others(struct tree *t, double cpus)
{
	measured(t);
	t->vitals.pulse.others_cpus = cpus;
	t->vitals.pulse.top[0] = (struct as_cpu_user){"cc1plus", cpus};
}

static void others_little(struct tree *t)
{
	others(t, 0.1);
}

static void others_some(struct tree *t)
{
	others(t, 1.5);
}

static void others_unseen(struct tree *t)
{
	others(t, 0.1);
	t->vitals.pulse.others_cpus = 1.5;
	t->vitals.pulse.unseen_cpus = 1.4;
}

static void others_all(struct tree *t)
{
	others(t, 3.9);
}

static void stolen_some(struct tree *t)
{
	measured(t);
	t->vitals.pulse.steal = 0.02;
}

static void stolen_much(struct tree *t)
{
	measured(t);
	t->vitals.pulse.steal = 0.2;
}

static void throttled(struct tree *t)
{
	measured(t);
	t->vitals.pulse.throttled_count = 7;
	t->vitals.pulse.throttled_ns = 350000000;
}

static void hot(struct tree *t)
{
	measured(t);
	t->vitals.pulse.thermal_events = 12;
}

static void swapping(struct tree *t)
{
	measured(t);
	t->vitals.pulse.swap_out_pages = 4321;
}

static void sibling(struct tree *t)
{
	measured(t);
	t->vitals.pulse.sibling_busy = 0.9;
}

static void slow(struct tree *t)
{
	measured(t);
	t->vitals.pulse.khz = 1200000;
}

static void fast(struct tree *t)
{
	measured(t);
	t->vitals.pulse.khz = 3400000;
}

static void slow_clock(struct tree *t)
{
	measured(t);
	t->vitals.clock_ns = 900;
}

/* ---- machines ---- */

static const struct scene scenes[] = {
	{"noise", "quiet", {{0}}, measured, OK, "±0.20 %", NULL},
	{"noise", "uneven", {{0}}, spread, WARN, "±2.0 %", "in pairs"},
	{"noise", "gaps", {{0}}, gaps, BAD, "worst gap 20 ms", "mostly waiting for a CPU"},
	{"noise", "not run", {{0}}, NULL, SILENT, NULL, NULL},

	{"load", "idle", {{"proc/loadavg", "0.00 0.01 0.05 1/80 9\n"}}, measured, OK, NULL, 0},
	{"load", "a little", {{"proc/loadavg", LOAD}}, others_little, INFO, "cc1plus 0.10", 0},
	{"load", "some", {{"proc/loadavg", LOAD}}, others_some, WARN, "1.5 of 4", "4 others"},
	{"load",
	 "short ones",
	 {{"proc/loadavg", LOAD}},
	 others_unseen,
	 WARN,
	 "(cc1plus 0.10, unseen 1.40)",
	 "ended meanwhile"},
	{"load",
	 "all",
	 {{"proc/loadavg", LOAD},
	  {"proc/pressure/cpu", "some avg10=42.50 avg60=1.00 avg300=0.00 total=5\n"}},
	 others_all,
	 BAD,
	 "3.9 of 4 CPUs busy (cc1plus 3.90)",
	 "42 %"},
	{"load", "unknown", {{0}}, measured, INFO, "cannot be seen", NULL},

	{"steal", "none", {{0}}, measured, OK, "steal 0.0 %", NULL},
	{"steal", "some", {{0}}, stolen_some, WARN, "steal 2.0 %", "in pairs"},
	{"steal", "much", {{0}}, stolen_much, BAD, "steal 20.0 %", "20.0 %"},
	{"steal", "not measured", {{0}}, NULL, SILENT, NULL, NULL},

	{"quota",
	 "v2 without",
	 {{"proc/self/cgroup", "0::/a/b\n"},
	  {"cgroup/cgroup.procs", ""},
	  {"cgroup/a/b/cpu.max", "max 100000\n"}},
	 NULL,
	 OK,
	 "no CPU quota",
	 NULL},
	{"quota",
	 "v2, of the folder above",
	 {{"proc/self/cgroup", "0::/a/b\n"},
	  {"cgroup/cgroup.procs", ""},
	  {"cgroup/a/cpu.max", "150000 100000\n"},
	  {"cgroup/a/b/cpu.max", "max 100000\n"}},
	 measured,
	 WARN,
	 "1.5 CPUs",
	 "/tree/cgroup/a/cpu.max"},
	{"quota",
	 "v2, reached",
	 {{"proc/self/cgroup", "0::/a\n"},
	  {"cgroup/cgroup.procs", ""},
	  {"cgroup/a/cpu.max", "50000 100000\n"}},
	 throttled,
	 BAD,
	 "0.50 CPUs, and it was reached",
	 "7 times for 350.0 ms"},
	{"quota",
	 "v1 without",
	 {{"proc/self/cgroup", "4:memory:/x\n3:cpu,cpuacct:/a\n"},
	  {"cgroup/cpu,cpuacct/cpu.shares", "1024\n"},
	  {"cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n"},
	  {"cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"}},
	 NULL,
	 OK,
	 "no CPU quota",
	 NULL},
	{"quota",
	 "v1",
	 {{"proc/self/cgroup", "4:memory:/x\n3:cpuacct,cpu:/a\n0::/y\n"},
	  {"cgroup/cpu/cpu.shares", "1024\n"},
	  {"cgroup/cpu/a/cpu.cfs_quota_us", "200000\n"},
	  {"cgroup/cpu/a/cpu.cfs_period_us", "100000\n"}},
	 NULL,
	 WARN,
	 "2.0 CPUs",
	 "/a/cpu.cfs_quota_us"},
	/* of systemd's hybrid layout, and seen from inside of a container with the host's path */
	{"quota",
	 "hybrid",
	 {{"proc/self/cgroup", "1:name=systemd:/a\n0::/a\n"},
	  {"cgroup/unified/cgroup.procs", ""},
	  {"cgroup/unified/a/cpu.max", "300000 100000\n"}},
	 NULL,
	 WARN,
	 "3.0 CPUs",
	 "unified/a/cpu.max"},
	{"quota",
	 "container on v1",
	 {{"proc/self/cgroup", "3:cpu:/docker/0123\n"},
	  {"cgroup/cpu/cpu.shares", "1024\n"},
	  {"cgroup/cpu/cpu.cfs_quota_us", "100000\n"},
	  {"cgroup/cpu/cpu.cfs_period_us", "100000\n"}},
	 NULL,
	 WARN,
	 "1.0 CPUs",
	 NULL},
	{"quota",
	 "no cgroups",
	 {{"proc/self/cgroup", "0::/a\n"}},
	 NULL,
	 INFO,
	 "cannot be seen",
	 0},
	{"quota",
	 "damaged",
	 {{"proc/self/cgroup", "0::/a\n"},
	  {"cgroup/cgroup.procs", ""},
	  {"cgroup/a/cpu.max", "many few\n"}},
	 NULL,
	 OK,
	 "no CPU quota",
	 NULL},

	{"cpuset",
	 "all",
	 {{CPU "online", "0-3\n"}, {"proc/self/status", "Cpus_allowed_list:\t0-7\n"}},
	 NULL,
	 OK,
	 "4 CPUs",
	 NULL},
	{"cpuset",
	 "few",
	 {{CPU "online", "0-3\n"}, {"proc/self/status", "Cpus_allowed_list:\t1,3\n"}},
	 NULL,
	 INFO,
	 "CPUs 1,3 may be used (2 of 4)",
	 NULL},

	{"governor",
	 "performance",
	 {{CPU "online", "0\n"}, {CPU "cpu0/cpufreq/scaling_governor", "performance\n"}},
	 NULL,
	 OK,
	 "performance",
	 NULL},
	{"governor",
	 "powersave on one of two",
	 {{CPU "online", "0-1\n"},
	  {CPU "cpu0/cpufreq/scaling_governor", "performance\n"},
	  {CPU "cpu1/cpufreq/scaling_governor", "powersave\n"}},
	 spread,
	 WARN,
	 "powersave on 1 of 2",
	 "varied by ±2.0 %"},
	{"governor", "none", {{CPU "online", "0\n"}}, NULL, OK, "no frequency scaling", NULL},
	{"governor", "no /sys", {{0}}, NULL, INFO, "cannot be seen", NULL},

	{"turbo", "Intel, off", {{CPU "intel_pstate/no_turbo", "1\n"}}, NULL, OK, "off", NULL},
	{"turbo",
	 "Intel",
	 {{CPU "intel_pstate/no_turbo", "0\n"}},
	 measured,
	 INFO,
	 "on",
	 "turbo"},
	{"turbo",
	 "unsteady",
	 {{CPU "intel_pstate/no_turbo", "0\n"}},
	 spread,
	 WARN,
	 "on",
	 "±2.0"},
	{"turbo", "AMD", {{CPU "cpufreq/boost", "1\n"}}, measured, INFO, "turbo on", NULL},
	{"turbo", "AMD, off", {{CPU "cpufreq/boost", "0\n"}}, NULL, OK, "turbo off", NULL},
	{"turbo", "none", {{0}}, NULL, SILENT, NULL, NULL},

	{"frequency",
	 "as said",
	 {{CPU "cpu1/cpufreq/base_frequency", "3400000\n"}},
	 fast,
	 OK,
	 "3.40 GHz",
	 NULL},
	{"frequency",
	 "below base",
	 {{CPU "cpu1/cpufreq/base_frequency", "3400000\n"}},
	 slow,
	 WARN,
	 "1.20 GHz under load, base is 3.40",
	 "35 %"},
	{"frequency",
	 "below base, in MHz",
	 {{CPU "cpu1/acpi_cppc/nominal_freq", "2400\n"}},
	 slow,
	 WARN,
	 "base is 2.40",
	 "50 %"},
	{"frequency",
	 "below the limit",
	 {{CPU "cpu1/cpufreq/scaling_max_freq", "2400000\n"}},
	 slow,
	 WARN,
	 "the limit is 2.40",
	 NULL},
	{"frequency",
	 "idle: low is no fault",
	 {{CPU "cpu0/cpufreq/scaling_cur_freq", "800000\n"},
	  {CPU "cpu0/cpufreq/base_frequency", "3400000\n"}},
	 NULL,
	 OK,
	 "0.80 GHz",
	 NULL},
	{"frequency", "unknown", {{0}}, measured, SILENT, NULL, NULL},

	{"temperature",
	 "cool",
	 {{ZONE "0/temp", "45000\n"}, {ZONE "0/type", "x86_pkg_temp\n"}},
	 NULL,
	 OK,
	 "45 °C",
	 NULL},
	{"temperature",
	 "near the limit",
	 {{ZONE "0/temp", "93000\n"},
	  {ZONE "0/type", "x86_pkg_temp\n"},
	  {ZONE "0/trip_point_0_type", "active\n"},
	  {ZONE "0/trip_point_0_temp", "50000\n"},
	  {ZONE "0/trip_point_1_type", "passive\n"},
	  {ZONE "0/trip_point_1_temp", "100000\n"}},
	 NULL,
	 WARN,
	 "93 °C at x86_pkg_temp",
	 "100 °C"},
	{"temperature",
	 "hot, no limit told",
	 {{ZONE "3/temp", "96000\n"}},
	 NULL,
	 WARN,
	 "hot",
	 0},
	{"temperature", "no sensor", {{0}}, NULL, SILENT, NULL, NULL},

	{"throttle",
	 "never",
	 {{CPU "online", "0\n"}, {CPU "cpu0/thermal_throttle/core_throttle_count", "0\n"}},
	 measured,
	 OK,
	 "no thermal",
	 NULL},
	{"throttle",
	 "once",
	 {{CPU "online", "0\n"}, {CPU "cpu0/thermal_throttle/core_throttle_count", "17\n"}},
	 measured,
	 INFO,
	 "17 times",
	 NULL},
	{"throttle", "now", {{CPU "online", "0\n"}}, hot, BAD, "just now", "12 events"},
	{"throttle", "no counters", {{0}}, measured, SILENT, NULL, NULL},

	{"smt", "off", {{CPU "smt/active", "0\n"}}, measured, OK, "no SMT", NULL},
	{"smt", "other idle", {{CPU "smt/active", "1\n"}}, measured, INFO, "was idle", NULL},
	{"smt",
	 "other busy",
	 {{CPU "smt/active", "1\n"}},
	 sibling,
	 WARN,
	 "busy 90 %",
	 "±0.10 %"},
	{"smt",
	 "old kernel",
	 {{CPU "online", "0-1\n"}, {CPU "cpu1/topology/thread_siblings_list", "0-1\n"}},
	 NULL,
	 INFO,
	 "share a core",
	 NULL},
	{"smt",
	 "old kernel, none",
	 {{CPU "online", "0-1\n"}, {CPU "cpu1/topology/thread_siblings_list", "1\n"}},
	 NULL,
	 OK,
	 "no SMT",
	 NULL},
	{"smt", "unknown", {{0}}, NULL, INFO, "cannot be seen", NULL},

	{"memory",
	 "plenty",
	 {{"proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 800 kB\nSwapTotal: 0 kB\n"}},
	 measured,
	 OK,
	 "no swapping",
	 NULL},
	{"memory",
	 "little",
	 {{"proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 50 kB\n"}},
	 measured,
	 WARN,
	 "only 5 %",
	 NULL},
	{"memory",
	 "swapped before",
	 {{"proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 800 kB\nSwapTotal: 4096 kB\n"
			   "SwapFree: 2048 kB\n"}},
	 measured,
	 INFO,
	 "2.00 MiB in swap",
	 NULL},
	{"memory",
	 "swapping",
	 {{"proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 800 kB\n"}},
	 swapping,
	 BAD,
	 "4321 pages",
	 NULL},
	{"memory", "unknown", {{0}}, measured, INFO, "cannot be seen", NULL},

	{"numa", "one", {{"sys/devices/system/node/online", "0\n"}}, NULL, OK, "one", NULL},
	{"numa",
	 "two, balanced",
	 {{"sys/devices/system/node/online", "0-1\n"},
	  {"proc/sys/kernel/numa_balancing", "1\n"}},
	 NULL,
	 INFO,
	 "2 memory nodes, and the kernel moves",
	 "numactl"},
	{"numa", "a kernel without", {{0}}, NULL, SILENT, NULL, NULL},

	{"aslr",
	 "on",
	 {{"proc/sys/kernel/randomize_va_space", "2\n"}},
	 NULL,
	 OK,
	 "random",
	 NULL},
	{"aslr",
	 "off",
	 {{"proc/sys/kernel/randomize_va_space", "0\n"}},
	 NULL,
	 INFO,
	 "not",
	 "=2"},

	{"aslr",
	 "off for the session",
	 {{"proc/sys/kernel/randomize_va_space", "2\n"},
	  {"proc/self/personality", "00040000\n"}},
	 NULL,
	 INFO,
	 "in this session",
	 "setarch"},
	{"thp",
	 "on request",
	 {{"sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"}},
	 NULL,
	 OK,
	 "on request",
	 NULL},
	{"thp",
	 "always",
	 {{"sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"}},
	 NULL,
	 INFO,
	 "for every program",
	 "madvise"},
	{"thp", "a kernel without", {{0}}, NULL, SILENT, NULL, NULL},

	{"clock",
	 "tsc",
	 {{"sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"}},
	 measured,
	 OK,
	 "clock tsc",
	 NULL},
	{"clock",
	 "hpet",
	 {{"sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"}},
	 slow_clock,
	 WARN,
	 "slow clock source hpet, 900 ns",
	 "dmesg"},
	{"clock",
	 "tsc that is slow",
	 {{"sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"}},
	 slow_clock,
	 WARN,
	 "900 ns a reading",
	 NULL},

	{"virtual",
	 "metal",
	 {{"proc/cpuinfo", "flags\t\t: fpu sse2\n"}},
	 NULL,
	 OK,
	 "no virt",
	 0},
	{"virtual",
	 "metal named by a cloud",
	 {{"proc/cpuinfo", "flags\t\t: fpu sse2\n"},
	  {"sys/class/dmi/id/product_name", "EC2 m5.metal\n"}},
	 NULL,
	 OK,
	 "no virtual machine",
	 NULL},
	{"virtual",
	 "KVM",
	 {{"proc/cpuinfo", "flags\t\t: fpu hypervisor sse2\n"},
	  {"sys/class/dmi/id/product_name", "KVM\n"}},
	 NULL,
	 INFO,
	 "virtual machine (KVM)",
	 "--vs"},
	{"virtual",
	 "Xen",
	 {{"proc/cpuinfo", "flags\t\t: fpu hypervisor\n"}, {"sys/hypervisor/type", "xen\n"}},
	 NULL,
	 INFO,
	 "(xen)",
	 NULL},
	{"virtual",
	 "ARM, by its name",
	 {{"proc/cpuinfo", "Features\t: fp asimd\n"},
	  {"sys/class/dmi/id/product_name", "QEMU Virtual Machine\n"}},
	 NULL,
	 INFO,
	 "QEMU",
	 NULL},
	{"virtual",
	 "ARM",
	 {{"proc/cpuinfo", "Features\t: fp\n"}},
	 NULL,
	 INFO,
	 "cannot be seen",
	 0},

	{"container", "none", {{"proc/1/cgroup", "0::/init.scope\n"}}, NULL, OK, "no", NULL},
	{"container", "docker", {{"root/.dockerenv", ""}}, NULL, INFO, "(docker)", "--cap-add"},
	{"container", "podman", {{"root/run/.containerenv", ""}}, NULL, INFO, "(podman)", NULL},
	{"container",
	 "nspawn",
	 {{"root/run/systemd/container", "lxc\n"}},
	 NULL,
	 INFO,
	 "(lxc)",
	 0},
	{"container",
	 "by cgroup",
	 {{"proc/1/cgroup", "3:cpu:/kubepods/x\n"}},
	 NULL,
	 INFO,
	 "kub",
	 0},
	{"container", "proc hidden", {{0}}, NULL, INFO, "cannot be seen", NULL},

	{"pmu",
	 "Intel hybrid",
	 {{"sys/bus/event_source/devices/cpu_core/type", "4\n"}},
	 NULL,
	 OK,
	 "hardware counters",
	 NULL},
	{"pmu",
	 "none",
	 {{"sys/bus/event_source/devices/software/type", "1\n"},
	  {"proc/cpuinfo", "flags\t\t: fpu hypervisor\n"}},
	 NULL,
	 INFO,
	 "this virtual machine has no PMU",
	 "timer"},
	{"pmu", "unknown", {{0}}, NULL, INFO, "cannot be seen", NULL},

	{"nmi_watchdog",
	 "off",
	 {{"proc/sys/kernel/nmi_watchdog", "0\n"}},
	 NULL,
	 OK,
	 NULL,
	 NULL},
	{"nmi_watchdog",
	 "on",
	 {{"proc/sys/kernel/nmi_watchdog", "1\n"},
	  {"sys/bus/event_source/devices/cpu/type", "4\n"}},
	 NULL,
	 INFO,
	 "holds one",
	 "--fix nmi_watchdog"},
	{"nmi_watchdog",
	 "on, without counters to hold",
	 {{"proc/sys/kernel/nmi_watchdog", "1\n"}},
	 NULL,
	 OK,
	 NULL,
	 NULL},
};

static void every_machine_is_told_as_it_is(void **state)
{
	(void)state;
	scenes_play(scenes, AS_ARRAY_LEN(scenes));
}

static void every_check_is_shown_both_kinds(void **state)
{
	(void)state;
	scenes_are_of_both_kinds(scenes, AS_ARRAY_LEN(scenes), AS_AREA_MACHINE);
}

/* A kernel of which nothing can be seen: no check says that all is well, none that it is not. */
static void what_cannot_be_seen_is_no_verdict(void **state)
{
	struct as_findings out = {0};
	struct tree t;

	(void)state;
	tree_init(&t);
	for (const struct as_check *c = as_checks; c->id; c++) {
		if (c->area == AS_AREA_MACHINE)
			assert_int_equal(c->check(&t.d, &out), 0);
	}
	as_vec_foreach (f, &out.all) {
		if (f->severity != INFO || !strstr(f->what, "cannot be seen"))
			fail_msg("%s: '%s'", f->id, f->what);
	}
	assert_true(out.all.n >= 8);
	as_findings_clear(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_machine_is_told_as_it_is),
		cmocka_unit_test(every_check_is_shown_both_kinds),
		cmocka_unit_test(what_cannot_be_seen_is_no_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

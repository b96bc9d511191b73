/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A second of looking: two looks at counters made of files, and the figures of the noise test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/sys.h"
#include "doctor_tree.h"

#define CPU "sys/devices/system/cpu/"

/* ---- two looks at the counters ---- */

static uint64_t fake_now;

static uint64_t fake_clock(void)
{
	return fake_now;
}

static void counters(const char *stat, const char *spinner, const char *own)
{
	char line[256];

	tree_put("proc/stat", stat);
	snprintf(line, sizeof line,
		 "77 (a (b) c) R 1 1 1 0 -1 4194304 1 0 0 0 %s 0 0 20 0 1 0 500 1 1\n",
		 spinner);
	tree_put("proc/77/stat", line);
	snprintf(line, sizeof line,
		 "42 (assay) R 1 1 1 0 -1 4194304 1 0 0 0 %s 0 0 20 0 1 0 9 1\n", own);
	tree_put("proc/42/stat", line);
}

static void what_lies_between_two_looks(void **state)
{
	struct as_snapshot a, b;
	struct as_pulse p;
	struct tree t;

	(void)state;
	tree_init(&t);
	t.d.now_ns = fake_clock;
	t.d.self = 42;
	t.d.ticks_hz = 100;
	tree_put(CPU "online", "0-1\n");
	tree_put(CPU "cpu0/topology/thread_siblings_list", "0-1\n");
	tree_put(CPU "cpu0/cpufreq/scaling_cur_freq", "2100000\n");
	tree_put(CPU "cpu0/thermal_throttle/core_throttle_count", "3\n");
	tree_put("proc/self/cgroup", "0::/a\n");
	tree_put("cgroup/cgroup.procs", "");
	tree_put("cgroup/a/cpu.stat", "usage_usec 1\nnr_throttled 2\nthrottled_usec 1000\n");
	tree_put("proc/vmstat", "pgpgin 3\npswpin 10\npswpout 20\n");
	/* user nice system idle iowait irq softirq steal guest */
	counters("cpu  0 0 0 0 0 0 0 0 0\ncpu0 100 0 0 900 0 0 0 0 0\ncpu1 50 0 0 950 0 0 0 0 "
		 "0\n",
		 "300 20", "10 0");
	fake_now = 5000000000;
	as_snapshot_take(&t.d, &a);
	tree_put(CPU "cpu0/thermal_throttle/core_throttle_count", "5\n");
	tree_put("cgroup/a/cpu.stat", "usage_usec 1\nnr_throttled 6\nthrottled_usec 51000\n");
	tree_put("proc/vmstat", "pgpgin 3\npswpin 14\npswpout 20\n");
	counters("cpu  0 0 0 0 0 0 0 0 0\ncpu0 180 0 0 910 0 0 0 10 0\ncpu1 130 0 0 970 0 0 0 "
		 "0 0\n",
		 "360 30", "90 0");
	fake_now += 1000000000;
	as_snapshot_take(&t.d, &b);
	as_pulse_between(&t.d, &a, &b, 0, &p);

	assert_int_equal(p.interval_ns, 1000000000);
	assert_true(p.cpus_online == 2);
	/* 160 ticks busy, 80 of them ours */
	assert_true(p.others_cpus > 0.79 && p.others_cpus < 0.81);
	assert_true(p.unseen_cpus > 0.09 &&
		    p.unseen_cpus < 0.11); /* 70 of 80 ticks have a name */
	assert_true(p.steal > 0.049 && p.steal < 0.051);
	assert_true(p.sibling_busy > 0.79 && p.sibling_busy < 0.81);
	assert_string_equal(p.top[0].name, "a (b) c");
	assert_true(p.top[0].cpus > 0.69 && p.top[0].cpus < 0.71);
	assert_string_equal(p.top[1].name, "");
	assert_int_equal(p.thermal_events, 2);
	assert_int_equal(p.throttled_count, 4);
	assert_int_equal(p.throttled_ns, 50000000);
	assert_int_equal(p.swap_in_pages, 4);
	assert_int_equal(p.swap_out_pages, 0);
	assert_int_equal(p.khz, 2100000);
	as_snapshot_clear(&a);
	as_snapshot_clear(&b);
}

static void throttling_of_cgroup_v1_is_read(void **state)
{
	struct as_snapshot a;
	struct tree t;

	(void)state;
	tree_init(&t);
	tree_put("proc/self/cgroup", "2:cpu,cpuacct:/a\n");
	tree_put("cgroup/cpu,cpuacct/cpu.shares", "1024\n");
	tree_put("cgroup/cpu,cpuacct/a/cpu.stat", "nr_periods 9\nnr_throttled 4\n"
						  "throttled_time 12345\n");
	as_snapshot_take(&t.d, &a);
	assert_int_equal(a.throttled_count, 4);
	assert_int_equal(a.throttled_ns, 12345);
	as_snapshot_clear(&a);
}

static void a_machine_without_counters_is_looked_at(void **state)
{
	struct as_vitals v;
	struct tree t;

	(void)state;
	tree_init(&t);
	as_vitals_measure(&t.d, false, &v);
	assert_true(v.pulse.interval_ns >= 200000000);
	assert_true(v.pulse.cpus_online == 0 && v.pulse.sibling_busy < 0);
	assert_int_equal(v.noise.repetitions, 0);
}

/* ---- noise ---- */

static void an_even_loop_has_no_noise(void **state)
{
	uint32_t slices[2000];
	struct as_noise n;

	(void)state;
	for (size_t i = 0; i < AS_ARRAY_LEN(slices); i++)
		slices[i] = 2000;
	as_noise_from_slices(slices, AS_ARRAY_LEN(slices), 500, &n);
	assert_int_equal(n.repetitions, 4);
	assert_true(n.typical_ms > 0.999 && n.typical_ms < 1.001);
	assert_true(n.spread == 0 && n.range == 0 && n.speed == 0 && n.lost == 0);
	assert_int_equal(n.gaps, 0);
}

static void gaps_are_told_from_a_slower_clock(void **state)
{
	uint32_t slices[5000];
	struct as_noise n;

	(void)state;
	for (size_t i = 0; i < AS_ARRAY_LEN(slices); i++)
		slices[i] = 2000;
	slices[1200] += 4000000;
	slices[3300] += 1000000;
	slices[3301] += AS_NOISE_GAP_NS; /* just none */
	as_noise_from_slices(slices, AS_ARRAY_LEN(slices), 500, &n);
	assert_int_equal(n.gaps, 2);
	assert_true(n.worst_gap_ms > 3.99 && n.worst_gap_ms < 4.01);
	assert_true(n.lost > 0.33 && n.lost < 0.34); /* 5 of 15 ms */
	assert_true(n.speed < 0.001);

	for (size_t i = 0; i < AS_ARRAY_LEN(slices); i++)
		slices[i] = i / 500 % 2 ? 2200 : 2000;
	as_noise_from_slices(slices, AS_ARRAY_LEN(slices), 500, &n);
	assert_int_equal(n.gaps, 0);
	assert_true(n.lost == 0);
	assert_true(n.speed > 0.05 && n.speed == n.spread);
}

static void too_little_is_no_noise_test(void **state)
{
	uint32_t slices[3] = {1, 2, 3};
	struct as_noise n;

	(void)state;
	as_noise_from_slices(slices, 3, 500, &n);
	assert_int_equal(n.repetitions, 0);
	as_noise_from_slices(NULL, 0, 0, &n);
	assert_int_equal(n.repetitions, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_lies_between_two_looks),
		cmocka_unit_test(throttling_of_cgroup_v1_is_read),
		cmocka_unit_test(a_machine_without_counters_is_looked_at),
		cmocka_unit_test(an_even_loop_has_no_noise),
		cmocka_unit_test(gaps_are_told_from_a_slower_clock),
		cmocka_unit_test(too_little_is_no_noise_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

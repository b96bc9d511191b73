/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* measure: events of processors that are not here, from saved descriptions and saved counts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/perf_event.h>
#include <math.h>
#include <unistd.h>

#include "measure/counters.h"
#include "measure/formula.h"
#include "pmu_trees.h"

static struct as_error err;

/* The plan of a list on that machine; clear with end. */
static struct as_plan on(const char *const (*tree)[2], const char *list)
{
	char *root = make_tree(tree);
	struct as_plan p;
	int r = as_plan_make(list, root, &p, &err);

	drop_tree(root);
	if (r < 0)
		fail_msg("%s: %s", list ? list : "(default)", err.msg);
	return p;
}

static int fails_on(const char *const (*tree)[2], const char *list, const char *says)
{
	char *root = make_tree(tree);
	struct as_plan p;
	int r = as_plan_make(list, root, &p, &err);

	drop_tree(root);
	if (r == AS_OK)
		fail_msg("'%s' was understood", list);
	if (!strstr(err.msg, says))
		fail_msg("'%s': %s", list, err.msg);
	return r;
}

static const struct as_event *event_of(const struct as_plan *p, const char *name)
{
	as_vec_foreach (e, &p->events.v) {
		if (strcmp(e->name, name) == 0)
			return e;
	}
	fail_msg("no event '%s'", name);
	return NULL;
}

static int row_of(const struct as_plan *p, const char *name)
{
	for (int m = 0; m < as_plan_rows(p); m++) {
		if (strcmp(as_plan_row(p, m).name, name) == 0)
			return m;
	}
	return -1;
}

static void check(const struct as_plan *p, const char *name, uint32_t type, uint64_t config)
{
	const struct as_event *e = event_of(p, name);

	if (e->type != type || e->config[0] != config)
		fail_msg("%s: type %u, config %#llx", name, e->type,
			 (unsigned long long)e->config[0]);
}

/* ---- names ---- */

static void parameters_go_where_the_description_says(void **state)
{
	struct as_plan p = on(amd_zen4, "cpu/event=0x1a0,umask=0x1e,cmask=6,inv/,r01c4,"
					"cpu/cpu-cycles,cmask=2/u,cpu/config=0x123,name=mine/");

	/* bits 8 to 11 of the event lie at 32 */
	check(&p, "cpu/event=0x1a0,umask=0x1e,cmask=6,inv/", 4, 0x106801ea0);
	check(&p, "r01c4", PERF_TYPE_RAW, 0x1c4);
	check(&p, "cpu/cpu-cycles,cmask=2/u", 4, 0x2000076);
	assert_true(event_of(&p, "cpu/cpu-cycles,cmask=2/u")->user);
	assert_false(event_of(&p, "cpu/cpu-cycles,cmask=2/u")->kernel);
	check(&p, "mine", 4, 0x123);
	as_plan_clear(&p);
	p = on(intel_skylake, "offcore/open,core=0x1f/");
	check(&p, "offcore/open,core=0x1f/", 12, 0x7 | 0xf << 10 | 1 << 20);
	as_plan_clear(&p);
	p = on(intel_hybrid, "cpu_core/mem-loads,ldlat=30/");
	assert_int_equal(event_of(&p, "cpu_core/mem-loads,ldlat=30/")->config[1], 30);
	check(&p, "cpu_core/mem-loads,ldlat=30/", 4, 0x1cd);
	as_plan_clear(&p);
}

static void names_are_those_of_perf(void **state)
{
	struct as_plan p =
		on(amd_zen4, "cycles,instructions:u,branch_misses,L1-dcache-load-misses,"
			     "LLC-loads:k,dTLB-stores,iTLB-load-misses,page-faults,cs");

	check(&p, "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	check(&p, "instructions:u", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	assert_false(event_of(&p, "instructions:u")->kernel);
	check(&p, "branch_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES);
	check(&p, "L1-dcache-load-misses", PERF_TYPE_HW_CACHE, 0x10000);
	check(&p, "LLC-loads:k", PERF_TYPE_HW_CACHE, 0x2);
	assert_false(event_of(&p, "LLC-loads:k")->user);
	check(&p, "dTLB-stores", PERF_TYPE_HW_CACHE, 0x103);
	check(&p, "iTLB-load-misses", PERF_TYPE_HW_CACHE, 0x10004);
	check(&p, "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	check(&p, "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES);
	assert_int_equal(row_of(&p, "ipc") >= 0, 1);
	as_plan_clear(&p);
}

static void a_hybrid_machine_counts_per_kind_of_core(void **state)
{
	struct as_plan p = on(intel_hybrid, "cycles,LLC-loads,r01c4");

	check(&p, "cpu_core/cycles/", 4, 0x3c);
	check(&p, "cpu_atom/cycles/", 10, 0x3c);
	check(&p, "cpu_core/LLC-loads/", PERF_TYPE_HW_CACHE, 4ull << 32 | 2);
	check(&p, "cpu_atom/LLC-loads/", PERF_TYPE_HW_CACHE, 10ull << 32 | 2);
	check(&p, "cpu_atom/r01c4/", 10, 0x1c4);
	as_plan_clear(&p);
	p = on(intel_hybrid, "cpu_atom/instructions/,slots");
	check(&p, "cpu_atom/instructions/", 10, 0xc0);
	check(&p, "cpu_core/slots/", 4, 0x400);
	as_plan_clear(&p);
}

static void groups_are_counted_together(void **state)
{
	struct as_plan p =
		on(amd_zen4, "{cycles,instructions}:u,branches,{cpu/event=1,umask=2/,cs}");

	assert_int_equal(event_of(&p, "cycles:u")->group, 1);
	assert_int_equal(event_of(&p, "instructions:u")->group, 1);
	assert_int_equal(event_of(&p, "branches")->group, 0);
	assert_int_equal(event_of(&p, "cpu/event=1,umask=2/")->group, 2);
	assert_int_equal(event_of(&p, "cs")->group, 2);
	as_plan_clear(&p);
}

static void what_cannot_be_is_refused_with_its_reason(void **state)
{
	fails_on(amd_zen4, "cpu/evnt=1/",
		 "no parameter 'evnt'; it has cmask edge event inv umask");
	fails_on(amd_zen4, "cpu/umask=0x1ff/", "8 bits");
	fails_on(amd_zen4, "cpu/umask=x/", "no number");
	fails_on(amd_zen4, "cpuu/event=1/", "no PMU 'cpuu' here; there are amd_l3 cpu");
	fails_on(amd_zen4, "amd_l3/event=1/", "whole machine");
	fails_on(amd_zen4, "nothing", "no figure and no event 'nothing'");
	fails_on(amd_zen4, "{wall,cycles}", "cannot be in a group");
	fails_on(amd_zen4, "{,cycles}", "no figure and no event ''");
	fails_on(amd_zen4, "{cycles", "no group");
	fails_on(amd_zen4, "cycles:p", "sampling");
	fails_on(amd_zen4, "cs:u", "happens in the kernel");
	fails_on(intel_skylake, "offcore/open/", "needs a value: core=");
	assert_int_equal(fails_on(no_pmu_at_all, "cycles", "no PMU here: 'cycles'"),
			 AS_E_UNSUPPORTED);
	fails_on(no_pmu_at_all, "topdown", "no PMU here");
	fails_on(no_pmu_at_all, "cache", "no PMU here");
	fails_on(intel_skylake, "sched:sched_switch", "tracepoints cannot be seen");
}

static void by_default_there_is_what_takes_no_turns(void **state)
{
	struct as_plan p = on(no_pmu_at_all, NULL);

	assert_true(p.no_pmu);
	assert_int_equal(p.events.v.n, 1); /* migrations, a figure */
	assert_false(as_plan_wanted(&p, AS_M_COUNT_));
	assert_ptr_equal(as_plan_event(&p, AS_M_MIGRATIONS), &p.events.v.v[0]);
	as_plan_clear(&p);
	p = on(intel_hybrid, NULL);
	assert_true(row_of(&p, "cpu_core/ipc/") > 0 && row_of(&p, "cpu_atom/ipc/") > 0);
	assert_true(row_of(&p, "cpu_core/memory_bound/") > 0);
	assert_int_equal(row_of(&p, "cpu_atom/retiring/"), -1); /* would take turns */
	as_plan_clear(&p);
	p = on(amd_zen4, NULL);
	assert_true(row_of(&p, "branch_miss_rate") > 0);
	assert_int_equal(row_of(&p, "retiring"), -1);
	as_plan_clear(&p);
}

/* ---- counts ---- */

/* Counts by the events' base names; all seen all of the time unless `seen` is less. */
struct saved {
	const char *pmu, *base;
	uint64_t value;
};

static void derive(const struct as_plan *p, const struct saved *s, size_t n, double *v)
{
	struct as_reading r[AS_EVENTS_MAX];
	float counted[AS_ROWS_MAX] = {0}, error[AS_ROWS_MAX] = {0};

	for (size_t i = 0; i < p->events.v.n; i++) {
		const struct as_event *e = &p->events.v.v[i];
		bool found = false;

		for (size_t k = 0; k < n; k++) {
			if (strcmp(s[k].base, e->base) != 0 || strcmp(s[k].pmu, e->pmu) != 0)
				continue;
			r[i] = (struct as_reading){s[k].value, 1000000000, 1000000000};
			found = true;
		}
		if (!found)
			fail_msg("no count of %s %s was saved", e->pmu, e->base);
	}
	as_counters_values(p, r, NULL, v, counted, error);
	as_plan_derive(p, v, counted);
}

static void is(const struct as_plan *p, const double *v, const char *name, double value)
{
	int row = row_of(p, name);

	if (row < 0)
		fail_msg("no row '%s'", name);
	if (!(fabs(v[row] - value) < 1e-6))
		fail_msg("%s is %g, not %g", name, v[row], value);
}

static void top_down_of_intel(void **state)
{
	struct as_plan p = on(intel_hybrid, "topdown");
	static const struct saved s[] = {
		{"cpu_core", "slots", 1000},
		{"cpu_core", "topdown_retiring", 400},
		{"cpu_core", "topdown_bad_spec", 100},
		{"cpu_core", "topdown_fe_bound", 200},
		{"cpu_core", "topdown_be_bound", 300},
		{"cpu_core", "topdown_heavy_ops", 50},
		{"cpu_core", "topdown_br_mispredict", 90},
		{"cpu_core", "topdown_fetch_lat", 150},
		{"cpu_core", "topdown_mem_bound", 220},
		{"cpu_atom", "topdown_retiring", 10},
		{"cpu_atom", "topdown_bad_spec", 10},
		{"cpu_atom", "topdown_fe_bound", 20},
		{"cpu_atom", "topdown_be_bound", 60},
	};
	double v[AS_ROWS_MAX];

	check(&p, "cpu_core/topdown-retiring/", 4, 0x8000);
	check(&p, "cpu_atom/topdown-retiring/", 10, 0xc2);
	assert_int_equal(event_of(&p, "cpu_core/topdown-mem-bound/")->group,
			 event_of(&p, "cpu_core/slots/")->group);
	assert_ptr_equal(event_of(&p, "cpu_core/slots/"),
			 &p.events.v.v[4]); /* leads its group */
	derive(&p, s, AS_ARRAY_LEN(s), v);
	is(&p, v, "cpu_core/retiring/", 0.4);
	is(&p, v, "cpu_core/bad_speculation/", 0.1);
	is(&p, v, "cpu_core/frontend_bound/", 0.2);
	is(&p, v, "cpu_core/backend_bound/", 0.3);
	is(&p, v, "cpu_core/light_operations/", 0.35);
	is(&p, v, "cpu_core/machine_clears/", 0.01);
	is(&p, v, "cpu_core/fetch_bandwidth/", 0.05);
	is(&p, v, "cpu_core/memory_bound/", 0.22);
	is(&p, v, "cpu_core/core_bound/", 0.08);
	is(&p, v, "cpu_atom/retiring/", 0.1);
	is(&p, v, "cpu_atom/backend_bound/", 0.6);
	as_plan_clear(&p);
}

static void top_down_of_intel_before_ice_lake(void **state)
{
	struct as_plan p = on(intel_skylake, "topdown");
	static const struct saved s[] = {
		{"", "topdown_total_slots", 2000}, /* times its scale of 2 */
		{"", "topdown_slots_issued", 2200}, {"", "topdown_slots_retired", 2000},
		{"", "topdown_fetch_bubbles", 400}, {"", "topdown_recovery_bubbles", 100},
	};
	double v[AS_ROWS_MAX];

	derive(&p, s, AS_ARRAY_LEN(s), v);
	is(&p, v, "retiring", 0.5);
	is(&p, v, "bad_speculation", 0.1);
	is(&p, v, "frontend_bound", 0.1);
	is(&p, v, "backend_bound", 0.3);
	as_plan_clear(&p);
}

static void top_down_of_amd(void **state)
{
	struct as_plan p = on(amd_zen4, "topdown");
	static const struct saved s[] = {
		{"", "zen_cycles", 1000},         {"", "zen_ops_retired", 3000},
		{"", "zen_ops_dispatched", 3300}, {"", "zen_no_ops", 900},
		{"", "zen_backend_stalls", 1500}, {"", "zen_sibling_stalls", 300},
		{"", "zen_not_complete", 200},    {"", "zen_load_not_complete", 160},
		{"", "zen4_no_ops_at_all", 100},
	};
	double v[AS_ROWS_MAX];

	check(&p, "zen_backend_stalls", 4, 0x100001ea0);
	check(&p, "zen4_no_ops_at_all", 4, 0x1060001a0);
	derive(&p, s, AS_ARRAY_LEN(s), v);
	is(&p, v, "retiring", 0.5);
	is(&p, v, "bad_speculation", 0.05);
	is(&p, v, "frontend_bound", 0.15);
	is(&p, v, "fetch_latency", 0.1);
	is(&p, v, "fetch_bandwidth", 0.05);
	is(&p, v, "backend_bound", 0.25);
	is(&p, v, "memory_bound", 0.2);
	is(&p, v, "core_bound", 0.05);
	is(&p, v, "smt_contention", 0.05);
	as_plan_clear(&p);
}

static void top_down_of_arm(void **state)
{
	struct as_plan p = on(arm_neoverse, "topdown,cycles,instructions");
	static const struct saved s[] = {
		{"", "cpu_cycles", 1000},
		{"", "stall_slot", 4000},
		{"", "stall_slot_frontend", 1000},
		{"", "stall_slot_backend", 3000},
		{"", "op_retired", 3600},
		{"", "op_spec", 4000},
		{"", "cycles", 1000},
		{"", "instructions", 3000},
	};
	double v[AS_ROWS_MAX];

	check(&p, "stall_slot_backend", 8, 0x3d);
	derive(&p, s, AS_ARRAY_LEN(s), v);
	is(&p, v, "retiring", 0.45);
	is(&p, v, "bad_speculation", 0.05);
	is(&p, v, "frontend_bound", 0.125);
	is(&p, v, "backend_bound", 0.375);
	is(&p, v, "ipc", 3);
	as_plan_clear(&p);
}

static void events_that_took_turns_are_scaled_with_an_error(void **state)
{
	struct as_plan p = on(amd_zen4, "cycles,branches,branch-misses,cs");
	/* enabled 1 s: all of it, a quarter, 0.5 % */
	struct as_reading r[] = {{1000, 1000000000, 1000000000},
				 {500, 1000000000, 250000000},
				 {7, 1000000000, 5000000},
				 {3, 1000000000, 1000000000}};
	double v[AS_ROWS_MAX];
	float counted[AS_ROWS_MAX] = {0}, error[AS_ROWS_MAX] = {0};

	as_counters_values(&p, r, NULL, v, counted, error);
	as_plan_derive(&p, v, counted);
	assert_true(v[AS_M_COUNT_] == 1000 && counted[AS_M_COUNT_] == 1 &&
		    error[AS_M_COUNT_] == 0);
	assert_true(v[AS_M_COUNT_ + 1] == 2000 && counted[AS_M_COUNT_ + 1] == 0.25f);
	/* 62.5 turns of 250 */
	assert_true(fabs(error[AS_M_COUNT_ + 1] - 1.96 * sqrt(0.75 / 62.5)) < 1e-6);
	assert_true(isnan(v[AS_M_COUNT_ + 2])); /* not counted is not 0 */
	assert_true(isnan(v[row_of(&p, "branch_miss_rate")]));
	assert_true(v[AS_M_COUNT_ + 3] == 3);
	/* never on a CPU: software events saw nothing, the others were not counted */
	memset(r, 0, sizeof r);
	as_counters_values(&p, r, NULL, v, counted, error);
	assert_true(isnan(v[AS_M_COUNT_]) && v[AS_M_COUNT_ + 3] == 0);
	/* from one reading to the next */
	struct as_reading a[4] = {
		{10, 100, 100}, {10, 100, 100}, {10, 100, 100}, {10, 100, 100}};
	struct as_reading b[4] = {
		{30, 300, 300}, {30, 300, 300}, {30, 300, 300}, {11, 300, 300}};

	as_counters_values(&p, b, a, v, counted, error);
	assert_true(v[AS_M_COUNT_] == 20 && v[AS_M_COUNT_ + 3] == 1);
	as_plan_clear(&p);
}

static void time_on_the_other_kind_of_core_is_not_extrapolated(void **state)
{
	struct as_plan p = on(intel_hybrid, "cycles,instructions");
	/* 98 % of a second on the big cores; on the small ones instructions took turns */
	struct as_reading r[4];
	double v[AS_ROWS_MAX];
	float counted[AS_ROWS_MAX] = {0}, error[AS_ROWS_MAX] = {0};
	struct as_buf placed = {0};

	for (size_t i = 0; i < p.events.v.n; i++) {
		bool atom = strcmp(p.events.v.v[i].pmu, "cpu_atom") == 0;
		bool cycles = strcmp(p.events.v.v[i].base, "cycles") == 0;

		r[i] = (struct as_reading){atom ? 100 : 5000, 1000000000,
					   !atom    ? 980000000
					   : cycles ? 20000000
						    : 10000000};
	}
	as_counters_values(&p, r, NULL, v, counted, error);
	as_plan_derive(&p, v, counted);
	is(&p, v, "cpu_core/cycles/", 5000);
	is(&p, v, "cpu_atom/cycles/", 100);
	is(&p, v, "cpu_atom/instructions/", 200);
	assert_true(fabsf(counted[row_of(&p, "cpu_atom/ipc/")] - 0.5f) < 1e-6f);
	assert_true(counted[row_of(&p, "cpu_core/ipc/")] == 1);
	as_counters_placed(&p, r, &placed);
	assert_string_equal(as_buf_str(&placed), "cpu_atom 2 %, cpu_core 98 %");
	as_buf_clear(&placed);
	/* never there: nothing happened, nothing is unknown */
	for (size_t i = 0; i < p.events.v.n; i++)
		r[i].running_ns = strcmp(p.events.v.v[i].pmu, "cpu_atom") == 0 ? 0 : 1000000000;
	as_counters_values(&p, r, NULL, v, counted, error);
	is(&p, v, "cpu_atom/cycles/", 0);
	as_plan_clear(&p);
}

/* ---- here ---- */

static void software_events_are_counted_from_the_exec_on(void **state)
{
	char *argv[] = {"sh", "-c", "exit 0", NULL};
	struct as_plan p;
	struct as_run run;

	assert_int_equal(as_plan_make("page-faults,task-clock,dummy", "", &p, &err), 0);
	assert_int_equal(as_plan_probe(&p, &err), 0);
	assert_int_equal(
		as_run_once(&(struct as_run_request){.argv = argv, .plan = &p}, &run, &err), 0);
	/* the kernel counts both ways: the start of a program has few faults besides */
	assert_true(fabs(run.v[AS_M_COUNT_] - run.v[AS_M_MINOR_FAULTS] -
			 run.v[AS_M_MAJOR_FAULTS]) < 30);
	assert_true(run.v[AS_M_COUNT_ + 1] > 0 && run.v[AS_M_COUNT_ + 1] < 1);
	assert_true(run.v[AS_M_COUNT_ + 2] == 0 && run.counted[AS_M_COUNT_ + 2] == 1);
	as_plan_clear(&p);
}

static double five(void *ctx, const char *name, size_t n)
{
	return n == 2 && memcmp(name, "no", 2) == 0 ? NAN : 5;
}

static void formulas_mean_what_they_say(void **state)
{
	assert_true(as_formula("1 + 2 * a - 4 / (3 - 1)", five, NULL) == 9);
	assert_true(as_formula("max(a - 7, 0) / a", five, NULL) == 0);
	assert_true(as_formula("a_b.c", five, NULL) == 5);
	assert_true(isnan(as_formula("a / (a - a)", five, NULL)));
	assert_true(isnan(as_formula("a + no", five, NULL)));
	assert_true(isnan(as_formula("a +", five, NULL)));
	assert_true(isnan(as_formula("(a", five, NULL)));
	assert_true(isnan(as_formula("a b", five, NULL)));
	assert_true(isnan(as_formula("", five, NULL)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters_go_where_the_description_says),
		cmocka_unit_test(names_are_those_of_perf),
		cmocka_unit_test(a_hybrid_machine_counts_per_kind_of_core),
		cmocka_unit_test(groups_are_counted_together),
		cmocka_unit_test(what_cannot_be_is_refused_with_its_reason),
		cmocka_unit_test(by_default_there_is_what_takes_no_turns),
		cmocka_unit_test(top_down_of_intel),
		cmocka_unit_test(top_down_of_intel_before_ice_lake),
		cmocka_unit_test(top_down_of_amd),
		cmocka_unit_test(top_down_of_arm),
		cmocka_unit_test(events_that_took_turns_are_scaled_with_an_error),
		cmocka_unit_test(time_on_the_other_kind_of_core_is_not_extrapolated),
		cmocka_unit_test(software_events_are_counted_from_the_exec_on),
		cmocka_unit_test(formulas_mean_what_they_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

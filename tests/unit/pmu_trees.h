/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* /sys/bus/event_source/devices of four machines, as their kernels (6.x) describe them: file, text. */
#ifndef AS_TEST_PMU_TREES_H
#define AS_TEST_PMU_TREES_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"

#define X86_FORMATS(pmu, event_bits)                                                           \
	{pmu "/format/event", event_bits}, {pmu "/format/umask", "config:8-15"},               \
		{pmu "/format/edge", "config:18"}, {pmu "/format/inv", "config:23"},           \
	{                                                                                      \
		pmu "/format/cmask", "config:24-31"                                            \
	}

static const char *const intel_hybrid[][2] = {
	/* Alder Lake */
	{"cpu_core/type", "4"},
	{"cpu_core/cpus", "0-15"},
	{"cpu_core/perf_event_mux_interval_ms", "4"},
	X86_FORMATS("cpu_core", "config:0-7"),
	{"cpu_core/format/ldlat", "config1:0-15"},
	{"cpu_core/format/frontend", "config1:0-23"},
	{"cpu_core/events/cpu-cycles", "event=0x3c"},
	{"cpu_core/events/instructions", "event=0xc0"},
	{"cpu_core/events/branch-instructions", "event=0xc4"},
	{"cpu_core/events/branch-misses", "event=0xc5"},
	{"cpu_core/events/cache-references", "event=0x2e,umask=0x4f"},
	{"cpu_core/events/cache-misses", "event=0x2e,umask=0x41"},
	{"cpu_core/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"},
	{"cpu_core/events/slots", "event=0x00,umask=0x4"},
	{"cpu_core/events/topdown-retiring", "event=0x00,umask=0x80"},
	{"cpu_core/events/topdown-bad-spec", "event=0x00,umask=0x81"},
	{"cpu_core/events/topdown-fe-bound", "event=0x00,umask=0x82"},
	{"cpu_core/events/topdown-be-bound", "event=0x00,umask=0x83"},
	{"cpu_core/events/topdown-heavy-ops", "event=0x00,umask=0x84"},
	{"cpu_core/events/topdown-br-mispredict", "event=0x00,umask=0x85"},
	{"cpu_core/events/topdown-fetch-lat", "event=0x00,umask=0x86"},
	{"cpu_core/events/topdown-mem-bound", "event=0x00,umask=0x87"},
	{"cpu_atom/type", "10"},
	{"cpu_atom/cpus", "16-23"},
	X86_FORMATS("cpu_atom", "config:0-7"),
	{"cpu_atom/events/cpu-cycles", "event=0x3c"},
	{"cpu_atom/events/instructions", "event=0xc0"},
	{"cpu_atom/events/topdown-retiring", "event=0xc2,umask=0x0"},
	{"cpu_atom/events/topdown-bad-spec", "event=0x73,umask=0x0"},
	{"cpu_atom/events/topdown-fe-bound", "event=0x71,umask=0x0"},
	{"cpu_atom/events/topdown-be-bound", "event=0x74,umask=0x0"},
	{"power/type", "24"},
	{"power/cpumask", "0"},
	{"power/format/event", "config:0-7"},
	{"power/events/energy-pkg", "event=0x02"},
	{"power/events/energy-pkg.scale", "2.3283064365386962890625e-10"},
	{"power/events/energy-pkg.unit", "Joules"},
	{"software/type", "1"},
	{NULL, NULL},
};
static const char *const intel_skylake[][2] = {
	{"cpu/type", "4"},
	{"cpu/perf_event_mux_interval_ms", "4"},
	X86_FORMATS("cpu", "config:0-7"),
	{"cpu/events/topdown-total-slots", "event=0x3c,umask=0x0,any=1"},
	{"cpu/events/topdown-total-slots.scale", "2"},
	{"cpu/format/any", "config:21"},
	{"cpu/events/topdown-slots-issued", "event=0xe,umask=0x1"},
	{"cpu/events/topdown-slots-retired", "event=0xc2,umask=0x2"},
	{"cpu/events/topdown-fetch-bubbles", "event=0x9c,umask=0x1"},
	{"cpu/events/topdown-recovery-bubbles", "event=0xd,umask=0x3,cmask=1,any=1"},
	{"cpu/events/topdown-recovery-bubbles.scale", "2"},
	{"offcore/type", "12"},
	{"offcore/format/event", "config:0-7"},
	{"offcore/format/core", "config:10-13,20"},
	{"offcore/events/open", "event=0x7,core=?"},
	{NULL, NULL},
};
static const char *const amd_zen4[][2] = {
	{"cpu/type", "4"},
	X86_FORMATS("cpu", "config:0-7,32-35"),
	{"cpu/events/cpu-cycles", "event=0x76"},
	{"cpu/events/instructions", "event=0xc0"},
	{"cpu/events/branch-instructions", "event=0xc2"},
	{"cpu/events/branch-misses", "event=0xc3"},
	{"amd_l3/type", "13"},
	{"amd_l3/cpumask", "0,8"},
	{"../../../../proc/cpuinfo",
	 "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"},
	{NULL, NULL},
};
static const char *const arm_neoverse[][2] = {
	/* V2 */
	{"armv8_pmuv3_0/type", "8"},
	{"armv8_pmuv3_0/cpus", "0-71"},
	{"armv8_pmuv3_0/caps/slots", "0x00000008"},
	{"armv8_pmuv3_0/format/event", "config:0-15"},
	{"armv8_pmuv3_0/format/long", "config1:0"},
	{"armv8_pmuv3_0/events/cpu_cycles", "event=0x0011"},
	{"armv8_pmuv3_0/events/inst_retired", "event=0x0008"},
	{"armv8_pmuv3_0/events/op_retired", "event=0x003a"},
	{"armv8_pmuv3_0/events/op_spec", "event=0x003b"},
	{"armv8_pmuv3_0/events/stall_slot", "event=0x003f"},
	{"armv8_pmuv3_0/events/stall_slot_backend", "event=0x003d"},
	{"armv8_pmuv3_0/events/stall_slot_frontend", "event=0x003e"},
	{"smmuv3_pmcg_2b402/type", "9"},
	{"smmuv3_pmcg_2b402/cpumask", "0"},
	{NULL, NULL},
};
static const char *const no_pmu_at_all[][2] = {
	{"software/type", "1"},
	{"tracepoint/type", "2"},
	{"msr/type", "9"},
	{"msr/format/event", "config:0-63"},
	{"msr/events/tsc", "event=0x00"},
	{NULL, NULL},
};

/* Writes a tree below a new folder, whose name is returned; free with drop_tree. */
static char *make_tree(const char *const (*files)[2])
{
	char *root = as_xstrdup("/tmp/pmu-tree.XXXXXX");

	if (!mkdtemp(root))
		abort();
	for (; (*files)[0]; files++) {
		AS_CLEANUP(as_free_autop)
		char *path = strncmp((*files)[0], "../", 3) == 0
				     ? as_xasprintf("%s/%s", root, (*files)[0] + 12)
				     : as_xasprintf("%s/sys/bus/event_source/devices/%s", root,
						    (*files)[0]);
		AS_CLEANUP(as_free_autop) char *text = as_xasprintf("%s\n", (*files)[1]);
		char *slash = strrchr(path, '/');

		*slash = 0;
		if (as_mkdir_parents(path, NULL) < 0)
			abort();
		*slash = '/';
		if (as_write_file_atomic(path, text, strlen(text), NULL) < 0)
			abort();
	}
	return root;
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static void drop_tree(char *root)
{
	nftw(root, drop, 16, FTW_DEPTH | FTW_PHYS);
	free(root);
}

#endif

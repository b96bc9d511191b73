/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Events by name, as perf names them, into what perf_event_open takes:
 *
 *	cycles, branch-misses, L1-dcache-load-misses …	the kernel's own, of every core PMU
 *	topdown-retiring, slots …			events the core PMU describes in sysfs
 *	cpu/event=0x3c,umask=0x1,name=x/, msr/tsc/	a PMU's, by parameters or by name
 *	r01c4						raw
 *	page-faults, context-switches …		software events
 *	sched:sched_switch				tracepoints
 *
 * each with ":u" and ":k" (after a PMU's closing slash without the colon): user or kernel mode only.
 * "{a,b}" are counted at the same times. '-' and '_' are the same.
 *
 *	struct as_events ev = {0};
 *	r = as_events_add(&pmus, root, "cycles:u", group, &ev, err);
 *	as_events_clear(&ev);
 *
 * On a hybrid machine a core event stands once per core PMU ("cpu_core/cycles/").
 * Source: perf_event_open(2); names of perf-list(1).
 * Pure but for the numbers of tracepoints; any thread.
 */
#ifndef AS_MEASURE_EVENT_H
#define AS_MEASURE_EVENT_H

#include "measure/pmu.h"
#include "measure/run.h"

struct as_event {
	char *name;      /* as it is shown */
	char *base;      /* without PMU, braces and modifiers, '-' as '_': what formulas say */
	const char *pmu; /* core PMU it is of, where there are several; else "" */
	uint32_t type;
	uint64_t config[AS_PMU_CONFIGS];
	bool user, kernel; /* modes it is counted in */
	bool user_only;    /* set when opened: this user may count no kernel */
	bool in_kernel; /* software: happens in kernel mode only, nothing would be seen in user */
	bool any_mode;    /* a clock: what is left out by mode is not left out of it */
	int group;        /* > 0: those of one number are counted together */
	double scale;     /* value = count * scale */
	const char *unit; /* "count", or what sysfs says */
	double mux_seconds;
};
struct as_events {
	AS_VEC(struct as_event) v;
};
/* Adds one event (several on a hybrid machine). root: as for as_pmus_load. AS_E_USAGE: it cannot be
 * understood, or would count the whole machine; AS_E_UNSUPPORTED: no PMU here. pmus outlives ev. */
int as_events_add(const struct as_pmus *pmus, const char *root, const char *text, int group,
		  struct as_events *ev, struct as_error *err);
void as_events_clear(struct as_events *ev);

#endif

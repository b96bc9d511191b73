/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Counters of a process and all it starts: the events of a plan, inherited. What this machine does not
 * have is left out, not zero.
 *
 *	struct as_counters c = {0};
 *	as_counters_add(&c, plan, pid, true);		// counts from its exec on; or, false, from now on
 *	as_counters_read(&c, plan, now);		// counts so far
 *	as_counters_values(plan, now, NULL, v, counted, error);
 *	as_counters_close(&c);
 *
 * Events that did not fit into the processor's counters take turns; a count is then scaled by enabled
 * over running time. Its error: turns are a sample without replacement, n of N, and a turn's count is
 * taken to vary as much as its mean (as that of rare events does): 1.96 sqrt((1 - n/N) / n) at 95 %.
 * Seen for less than 2 turns or 1 % of the time: not counted (NaN), not 0.
 *
 * On a hybrid machine an event counts only while the task is on its kind of core. That is no turn and
 * is not scaled: a program that is on the small cores for 2 % of its time has not the 50 fold there. The
 * time on that kind of core is that of the event of its PMU that was seen longest.
 *
 * Source: perf_event_open(2); W. Cochran, Sampling Techniques, 2.5 (sampling without replacement).
 */
#ifndef AS_MEASURE_COUNTERS_H
#define AS_MEASURE_COUNTERS_H

#include <sys/types.h>
#include "base/buf.h"
#include "measure/plan.h"

struct as_reading {
	uint64_t value, enabled_ns, running_ns;
};

struct as_counters {
	AS_VEC(int) fd; /* events of the plan, per task; or -errno */
};
/* A task, thread or process. at_exec: it has not called exec yet. Never fails: events that cannot be had
 * stay out. */
void as_counters_add(struct as_counters *c, const struct as_plan *plan, pid_t tid,
		     bool at_exec);
/* ret: one per event, all tasks together. */
void as_counters_read(const struct as_counters *c, const struct as_plan *plan,
		      struct as_reading *ret);
void as_counters_close(struct as_counters *c);

/* Rows of the plan from what was read; before NULL: from the start on. v, counted and error have
 * as_plan_rows places: the value, the share of the time it was seen (1: all of it), and the relative half
 * of the 95 % interval that the rest leaves (0: none). Other rows than events' are not touched. Pure. */
void as_counters_values(const struct as_plan *plan, const struct as_reading *now,
			const struct as_reading *before, double *v, float *counted,
			float *error);
/* As a text for what is counted per kind of core: "cpu_core 93 %, cpu_atom 7 %" of the time; "" elsewhere.
 * Pure. */
void as_counters_placed(const struct as_plan *plan, const struct as_reading *r,
			struct as_buf *out);

#endif

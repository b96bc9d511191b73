/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Counters of one process and all it starts, from its exec to its end: perf events that are
 * inherited and enabled at exec. What this machine does not have is left out, not zero.
 *
 * Source: perf_event_open(2); scaling by time enabled over time running as documented there.
 */
#ifndef AS_MEASURE_COUNTERS_H
#define AS_MEASURE_COUNTERS_H

#include <sys/types.h>
#include "measure/run.h"

struct as_counters {
	int fd[AS_M_COUNT_]; /* -1: not open */
};
/* For a process that has not called exec yet. Never fails: metrics that cannot be had stay out. */
void as_counters_open(struct as_counters *c, pid_t pid, const struct as_run_request *q);
/* Into run->v and run->counted; a counter that never ran gives NaN and 0. */
void as_counters_read(const struct as_counters *c, struct as_run *run);
void as_counters_close(struct as_counters *c);

/* value * enabled / running; NaN when it never ran. ret_counted: running / enabled. */
double as_counter_scaled(uint64_t value, uint64_t enabled_ns, uint64_t running_ns,
			 double *ret_counted);

#endif

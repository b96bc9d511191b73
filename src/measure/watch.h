/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A running process, or a command from its start, looked at in intervals: what it and its descendants used
 * in each of them.
 *
 *	attached	as_watch_attach: from now on, until it ends, the time is up, or we are interrupted
 *	a command	as_watch_begin, _tick and _end around the waiting of as_run_once (run.c)
 *
 * Its threads and children at the start are looked at, and what they start later. The cost to the program
 * is that of its counters; /proc is read beside it.
 */
#ifndef AS_MEASURE_WATCH_H
#define AS_MEASURE_WATCH_H

#include "measure/counters.h"
#include "measure/tree.h"

struct as_watch_row {
	double at_s, seconds; /* its end, from the start on; how long it was */
	double rss_bytes;     /* of all processes at its end; 0: not known */
	double v[AS_ROWS_MAX];
	float counted[AS_ROWS_MAX], error[AS_ROWS_MAX];
};

struct as_watch_rows {
	double interval_s; /* 0: no rows */
	void (*row)(void *ctx, const struct as_watch_row *row);
	void *ctx;
};

/* State between two looks. */
struct as_watch {
	const struct as_plan *plan;
	const struct as_watch_rows *rows;
	struct as_tree tree;
	uint64_t start_ns, last_ns, due_ns;
	double steal_s;
	double v[AS_M_COUNT_]; /* so far, at the last look */
	struct as_reading r[AS_EVENTS_MAX];
	double v0[AS_M_COUNT_], steal0_s; /* at the start */
	struct as_reading r0[AS_EVENTS_MAX];
};
/* c: the process's counters, already open. */
void as_watch_begin(struct as_watch *w, const struct as_plan *plan,
		    const struct as_watch_rows *rows, pid_t pid, const struct as_counters *c);
/* Now, if it is due or `last`: a row. Returns ns until the next one is due; UINT64_MAX: never. */
uint64_t as_watch_tick(struct as_watch *w, const struct as_counters *c, bool last);
void as_watch_end(struct as_watch *w);

struct as_attach_request {
	pid_t pid;
	const struct as_plan *plan;
	struct as_watch_rows rows;
	double duration_s; /* 0: none */
	const volatile int *interrupted;
};
/* ret: of the whole time; ret_ended: the process ended. AS_E_NOTFOUND, AS_E_ACCESS: with the remedy. */
int as_watch_attach(const struct as_attach_request *q, struct as_run *ret, bool *ret_ended,
		    struct as_error *err);

/* Time stolen from all CPUs since boot, in seconds; NaN where it is not told. */
double as_stolen_s(void);

#endif

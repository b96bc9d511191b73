/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One run of a command, measured from outside: times, memory, faults, switches, I/O, waits, and
 * counters of the kernel or the processor. Everything is of the command and what it started and
 * waited for. Nothing is loaded into it.
 *
 *	struct as_run run;
 *	r = as_run_once(&(struct as_run_request){.argv = argv}, &run, err);
 *	if (run.v[AS_M_WALL] …			// NaN: not measured here
 *
 *	fork, held ── counters opened ── released: exec ── … ── ended, not yet reaped:
 *	clock, /proc/PID/{io,schedstat} ── reaped: rusage
 *
 * Cost to the command: counters that count while it runs (one read of a register at each context
 * switch); system calls are counted only when asked for, which costs each of them about 0.1 µs.
 *
 * Thread rule: one run at a time per process (it waits for its child).
 */
#ifndef AS_MEASURE_RUN_H
#define AS_MEASURE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sched.h>
#include "base/err.h"

/* M(ID, name, unit, text): the figures of a run, in the order they are shown. Units: s, B, count,
 * 1 (a ratio). The text is a phrase of at most 40 columns. */
#define AS_METRICS(M)                                                                          \
	M(WALL, "wall", "s", "from start to end")                                              \
	M(CPU, "cpu", "s", "user + system, of all its threads")                                \
	M(USER, "user", "s", "in its own code")                                                \
	M(SYSTEM, "system", "s", "in the kernel for it")                                       \
	M(UTILISATION, "utilisation", "1", "CPU time / wall time; 100 %: one CPU")             \
	M(RSS, "peak_rss", "B", "most memory at once, of one process")                         \
	M(RSS_OWN, "peak_rss_own", "B", "of the program without its children")                 \
	M(RSS_CHILDREN, "peak_rss_children", "B", "of the largest of its children")            \
	M(MINOR_FAULTS, "minor_faults", "count", "pages mapped without reading a disk")        \
	M(MAJOR_FAULTS, "major_faults", "count", "pages read from a disk")                     \
	M(VOLUNTARY, "voluntary_switches", "count", "it waited for something")                 \
	M(INVOLUNTARY, "involuntary_switches", "count", "others took its CPU")                 \
	M(MIGRATIONS, "migrations", "count", "went on on another CPU")                         \
	M(RUN_WAIT, "run_wait", "s", "ready, but no CPU free (main thread)")                   \
	M(BLOCKED, "blocked", "s", "on a disk, lock, timer (main thread)")                     \
	M(DISK_WAIT, "disk_wait", "s", "waited for a disk (main thread)")                      \
	M(STEAL, "steal", "s", "the host had the machine's CPUs")                              \
	M(READ, "read", "B", "read with system calls")                                         \
	M(WRITTEN, "written", "B", "written with system calls")                                \
	M(DISK_READ, "disk_read", "B", "read from disks")                                      \
	M(DISK_WRITTEN, "disk_written", "B", "to be written to disks")                         \
	M(SYSCALLS, "syscalls", "count", "calls into the kernel")

enum as_metric {
#define AS_M(id, name, unit, text) AS_M_##id,
	AS_METRICS(AS_M)
#undef AS_M
		AS_M_COUNT_
};
struct as_metric_info {
	const char *name, *unit, *text;
	bool is_share; /* 0 … 1, shown in per cent */
};
extern const struct as_metric_info as_metrics[AS_M_COUNT_];
/* AS_M_COUNT_: there is no metric of that name. */
enum as_metric as_metric_find(const char *name, size_t n);

struct as_plan;
struct as_watch_rows;
#define AS_ENV_PAD_MAX 4096 /* stacks start anywhere within a page */

struct as_run_request {
	char *const *argv;
	const char *folder; /* where it runs; NULL: here */
	const char *input;  /* file for standard input; NULL: ours */
	const char *output; /* file for standard output and error; NULL: ours */
	bool output_anew;   /* the file is emptied first, not added to */
	bool output_pipe;   /* a pipe instead, that is read and forgotten; error: /dev/null */
	uint64_t
		deadline_ns; /* of CLOCK_MONOTONIC: it is ended then, with its tree; 0: never */
	const cpu_set_t *cpus; /* that it may run on; NULL: as we may */
	/* length of a variable added, so that stacks start elsewhere; AS_ENV_PAD_MAX at most */
	unsigned env_pad_bytes;
	const char *
		number; /* HYPERFINE_ITERATION of its environment, for scripts that number what they
			     * write; NULL: as it is with us */
	const struct as_plan *plan;       /* events to count; NULL: none */
	const struct as_watch_rows *rows; /* given in intervals, needs a plan; NULL: none */
	const volatile int *interrupted;  /* set: the signal is passed on; may be NULL */
	bool impatient;                   /* and what does not heed it is ended (wait.h) */
};

#define AS_EVENTS_MAX  64
#define AS_DERIVED_MAX 40
#define AS_ROWS_MAX    (AS_M_COUNT_ + AS_EVENTS_MAX + AS_DERIVED_MAX)

/* Places: the figures, then the plan's events and derived rows (plan.h). */
struct as_run {
	double v[AS_ROWS_MAX]; /* NaN: not measured */
	/* per counter: share of its time it was really counting, 0..1, scaled when below 1; and the
	 * relative error that leaves (counters.h) */
	float counted[AS_ROWS_MAX], error[AS_ROWS_MAX];
	char placed[80]; /* hybrid machine: the time on each kind of core; else "" */
	int wait_status;
	bool timed_out; /* ended at the deadline: what was measured until then is no run */
	int exec_errno; /* the program could not be run; the rest means nothing */
};

int as_run_once(const struct as_run_request *q, struct as_run *ret, struct as_error *err);

#endif

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
 * 1 (a ratio). */
#define AS_METRICS(M)                                                                          \
	M(WALL, "wall", "s", "from start to end")                                              \
	M(CPU, "cpu", "s", "user + system")                                                    \
	M(USER, "user", "s", "in the program's own code")                                      \
	M(SYSTEM, "system", "s", "in the kernel for it")                                       \
	M(UTILISATION, "utilisation", "1", "CPU time over wall time")                          \
	M(RSS, "peak_rss", "B", "most memory resident at once, of one process")                \
	M(MINOR_FAULTS, "minor_faults", "count", "pages mapped without I/O")                   \
	M(MAJOR_FAULTS, "major_faults", "count", "pages read from a disk")                     \
	M(VOLUNTARY, "voluntary_switches", "count", "it waited for something")                 \
	M(INVOLUNTARY, "involuntary_switches", "count", "others took its CPU")                 \
	M(MIGRATIONS, "migrations", "count", "went on on another CPU")                         \
	M(RUN_WAIT, "run_wait", "s", "ready, but no CPU was free; of the main thread")         \
	M(BLOCKED, "blocked", "s", "waited for a disk, a lock, a timer …; of the main thread") \
	M(STEAL, "steal", "s", "taken from this virtual machine by its host, all CPUs")        \
	M(READ, "read", "B", "read by system calls")                                           \
	M(WRITTEN, "written", "B", "written by system calls")                                  \
	M(DISK_READ, "disk_read", "B", "read from disks")                                      \
	M(DISK_WRITTEN, "disk_written", "B", "to be written to disks")                         \
	M(SYSCALLS, "syscalls", "count", "system calls")                                       \
	M(CYCLES, "cycles", "count", "processor cycles")                                       \
	M(INSTRUCTIONS, "instructions", "count", "instructions retired")                       \
	M(IPC, "ipc", "1", "instructions per cycle")                                           \
	M(BRANCHES, "branches", "count", "branches retired")                                   \
	M(BRANCH_MISSES, "branch_misses", "count", "branches predicted wrong")                 \
	M(CACHE_REFERENCES, "cache_references", "count", "look-ups in the last cache level")   \
	M(CACHE_MISSES, "cache_misses", "count", "of them not found")

enum as_metric {
#define AS_M(id, name, unit, text) AS_M_##id,
	AS_METRICS(AS_M)
#undef AS_M
		AS_M_COUNT_
};
struct as_metric_info {
	const char *name, *unit, *text;
};
extern const struct as_metric_info as_metrics[AS_M_COUNT_];
/* AS_M_COUNT_: there is no metric of that name. */
enum as_metric as_metric_find(const char *name, size_t n);

struct as_run_request {
	char *const *argv;
	const char *folder;     /* where it runs; NULL: here */
	const char *input;      /* file for standard input; NULL: ours */
	const char *output;     /* file for standard output and error; NULL: ours */
	const cpu_set_t *cpus;  /* that it may run on; NULL: as we may */
	unsigned env_pad_bytes; /* length of a variable added, so that stacks start elsewhere */
	bool syscalls;          /* count them */
	bool counters;          /* those of the processor, where there are any */
	const volatile int *interrupted; /* set: the signal is passed on; may be NULL */
};

struct as_run {
	double v[AS_M_COUNT_]; /* NaN: not measured */
	/* per counter: share of its time it was really counting, 0..1; scaled when below 1 */
	double counted[AS_M_COUNT_];
	int wait_status;
	int exec_errno; /* the program could not be run; the rest means nothing */
};

int as_run_once(const struct as_run_request *q, struct as_run *ret, struct as_error *err);

#endif

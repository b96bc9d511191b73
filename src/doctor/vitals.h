/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A second of looking: what the machine did meanwhile (as_pulse) and how evenly it ran a loop
 * that always does the same (as_noise).
 */
#ifndef AS_DOCTOR_VITALS_H
#define AS_DOCTOR_VITALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/mem.h"

struct as_doctor;

/* ---- what the machine does ---- */

struct as_cpu_ticks {
	uint32_t cpu;
	uint64_t busy, steal, total;
};
struct as_proc_ticks {
	pid_t pid;
	uint64_t start, ticks;
	char name[32];
};
/* The counters of one moment. Unreadable ones stay 0. */
struct as_snapshot {
	uint64_t time_ns;
	AS_VEC(struct as_cpu_ticks) cpus;
	AS_VEC(struct as_proc_ticks) procs;
	uint64_t thermal_events; /* of all CPUs and packages */
	uint64_t swap_in_pages, swap_out_pages;
	uint64_t throttled_ns, throttled_count; /* of our cgroup and those above it */
};
void as_snapshot_take(const struct as_doctor *d, struct as_snapshot *ret);
void as_snapshot_clear(struct as_snapshot *s);

#define AS_PULSE_TOP 3
struct as_pulse {
	uint64_t interval_ns;
	double cpus_online;  /* 0: not known */
	double others_cpus;  /* CPUs kept busy by others than us, mean over the interval */
	double steal;        /* share of all CPU time taken by the hypervisor */
	double sibling_busy; /* of the CPUs that share a core with ours; < 0: not known */
	struct as_cpu_user {
		char name[32]; /* all processes of one name together */
		double cpus;
	} top[AS_PULSE_TOP]; /* largest first; name "" ends */
	double unseen_cpus;  /* of others_cpus: of no process that was there at the end */
	uint64_t thermal_events, swap_in_pages, swap_out_pages;
	uint64_t throttled_ns, throttled_count;
	uint64_t khz; /* of the CPU we ran on, right after the loop; 0: not known */
};
/* cpu: the one that ran us, for its sibling and its frequency; < 0: not known. */
void as_pulse_between(const struct as_doctor *d, const struct as_snapshot *a,
		      const struct as_snapshot *b, int cpu, struct as_pulse *ret);

/* ---- the noise test ---- */

/*
 * A loop of dependent multiplications, cut into slices of about 2 us with a look at the clock
 * between them; 1 ms of slices is a repetition. Not pinned: what moves it is part of the noise. A
 * slice longer than its usual time by AS_NOISE_GAP_NS has a gap in it: the loop did not run.
 */
#define AS_NOISE_GAP_NS 10000

struct as_noise {
	unsigned repetitions; /* 0: not measured */
	double typical_ms;    /* median repetition */
	double spread; /* robust relative deviation of repetitions: 1.4826 MAD / median */
	double range;  /* (95th - 5th percentile) / median */
	double speed;  /* robust relative deviation of the time without gaps */
	double worst_gap_ms;
	double lost;   /* share of the time lost in gaps */
	double waited; /* share of the time spent runnable without a CPU; < 0: not known */
	uint32_t gaps, moves; /* moves: changes of CPU seen */
	int cpu;              /* the last one; < 0: not known */
};
/* One reading of the clock per slice. slices: durations in ns; per: slices of a repetition. */
void as_noise_from_slices(const uint32_t *slices, size_t n, size_t per, struct as_noise *ret);
void as_noise_run(const struct as_doctor *d, uint64_t length_ns, struct as_noise *ret);

/* ---- both ---- */

struct as_vitals {
	struct as_pulse pulse;
	struct as_noise noise;
	double clock_ns; /* one reading of CLOCK_MONOTONIC; 0: not measured */
};
/* noise: 1 s of the test; else a quarter of a second of waiting. */
void as_vitals_measure(const struct as_doctor *d, bool noise, struct as_vitals *ret);

#endif

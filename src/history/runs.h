/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Benchmarks over time: every run with its figures, in the history beside what was saved by name.
 *
 *	as_history_open(NULL, &h, err);
 *	as_history_run_save(h, &run, points, n, err);
 *	as_history_series(h, &(struct as_history_wanted){.bench = "parse/small"}, &series, err);
 *
 * A run is one transaction: of two writers at once neither loses anything, and a reader sees all of a
 * run or nothing. Series are of one machine: fingerprints hold what stays over boots and kernels (model of
 * the processor, CPUs, architecture), and nothing that moves, such as MHz or bogomips.
 *
 * Thread rule: as history.h.
 */
#ifndef AS_HISTORY_RUNS_H
#define AS_HISTORY_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "history/history.h"

struct as_history_run {
	int64_t id; /* 0: to be given */
	uint64_t time_s;
	char *name;                        /* it was saved as; "" none */
	char *suite;                       /* where it was run: the folder of the project */
	char *machine;                     /* fingerprint */
	char *toolchain, *revision, *tool; /* "" not known; revision ends with -dirty */
	char *result;                      /* assay.bench/1 */
};
struct as_history_point {
	char *bench, *side, *metric, *unit; /* side "" where there is one only */
	double value, low, high;            /* NaN: not known */
};

/* Texts are borrowed; NULL counts as "". ret_id may be NULL. */
int as_history_run_save(struct as_history *h, const struct as_history_run *run,
			const struct as_history_point *points, size_t n, int64_t *ret_id,
			struct as_error *err);
/* The newest of that name; "#12" by number; "last" the newest of this suite (NULL: of all).
 * AS_E_NOTFOUND with the names there are. */
int as_history_run_find(struct as_history *h, const char *name, const char *suite,
			struct as_history_run *ret, struct as_error *err);
void as_history_run_clear(struct as_history_run *r);

struct as_history_wanted {
	const char *bench, *side; /* exactly; side NULL: of each run the one stored last */
	const char *suite;        /* NULL: of all */
	const char *machine;      /* NULL: of all */
};
struct as_history_entry_of {
	int64_t run;
	uint64_t time_s;
	char *machine, *revision, *unit;
	double value, low, high;
};
struct as_history_series {
	AS_VEC(struct as_history_entry_of) v; /* oldest first */
};
int as_history_series(struct as_history *h, const struct as_history_wanted *q,
		      struct as_history_series *ret, struct as_error *err);
void as_history_series_clear(struct as_history_series *s);

/* Names of the benches of a suite (NULL: of all), the most recently run first; caller frees each. */
struct as_history_names {
	AS_VEC(char *) v;
};
int as_history_benches(struct as_history *h, const char *suite, struct as_history_names *ret,
		       struct as_error *err);
void as_history_names_clear(struct as_history_names *n);

/* Of this machine; caller frees. as_history_fingerprint_of: of a /proc/cpuinfo, for tests. */
char *as_history_fingerprint(void);
char *as_history_fingerprint_of(const char *cpuinfo, long cpus, const char *architecture);

#endif

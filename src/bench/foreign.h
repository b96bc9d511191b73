/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Bench programs of other harnesses, each run in a fresh process as often as asked: what one process says
 * of one benchmark is one value, and how processes differ is seen from outside.
 *
 *	libtest		`--list` ends with "N tests, M benchmarks"; "test ID ... bench: 1,234 ns/iter"
 *	criterion	`--list` says "ID: bench"; run with a folder of its own (CRITERION_HOME), short
 *			settings and one benchmark, then read sample.json: the low quartile of its samples
 *
 * Nothing is decided by a name or a string in the file: what a program says decides, and a program that
 * says nothing known is told as such.
 *
 * Thread rule: none shared.
 */
#ifndef AS_BENCH_FOREIGN_H
#define AS_BENCH_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"
#include "base/mem.h"
#include "results/result.h"

enum as_foreign_kind {
	AS_FOREIGN_UNKNOWN,
	AS_FOREIGN_LIBTEST,
	AS_FOREIGN_CRITERION,
	AS_FOREIGN_KINDS_
};
extern const char *const as_foreign_names[AS_FOREIGN_KINDS_];

struct as_foreign {
	const char *exe, *folder; /* borrowed; exe absolute */
	char *const *environment; /* borrowed; NULL: ours */
	const volatile int *interrupted;
	const char *home; /* borrowed: an empty folder of our own */
	double timeout_s; /* of one process; 0: 120 */
	enum as_foreign_kind kind;
	bool whole_seconds; /* its settings take no parts of a second (criterion 0.3) */
};
struct as_foreign_ids {
	AS_VEC(char *) v;
};
/* Sets f->kind, and the ids in the program's order. AS_E_FORMAT: it answers in no known way; AS_E_IO: it
 * fails. */
int as_foreign_list(struct as_foreign *f, struct as_foreign_ids *ret, struct as_error *err);
void as_foreign_ids_clear(struct as_foreign_ids *ids);

struct as_foreign_sample {
	double value, median, min, max; /* ns per iteration; value: what is compared */
	AS_VEC(double) batches;         /* per iteration; empty where the harness tells none */
	double seconds;                 /* of the process */
	enum as_bench_throughput throughput;
	double throughput_n, throughput_n2;
};
/* measure_s: how long the harness is to measure; taken as a wish. AS_E_IO: it failed, with its words. */
int as_foreign_sample(struct as_foreign *f, const char *id, double measure_s,
		      struct as_foreign_sample *ret, struct as_error *err);
void as_foreign_sample_clear(struct as_foreign_sample *s);

/* ---- texts, apart for tests ---- */

/* "test a::b ... bench:       1,234 ns/iter (+/- 56)" of `id` -> ns; false: no such line. */
bool as_foreign_bencher_line(const char *line, size_t n, const char *id, double *ret_ns);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Things compared with themselves on this machine: how often is that called a difference, and how small
 * a difference could be seen here.
 *
 *	r = as_self_test_run(&(struct as_self_test_request){.count = 200}, &ret, err);
 *	as_self_test_text(&ret, &out);		ret.passed: not more than chance allows
 *
 * Half of the comparisons are of functions (a hash, a chain of multiplications, walks through memory; this
 * program is its own bench program), half of a command (gzip of a megabyte), each of 20 pairs, by the same
 * code that compares everything else. Of intervals at 95 % one in twenty does not hold the truth: so many
 * are expected, and the test fails above 5 % and two standard errors. Verdicts have a floor below them and
 * are counted apart.
 *
 * loaded: meanwhile each CPU that we may use has a busy loop of its own, pinned to it. (Loops that are not
 * pinned gather on one CPU and leave the others free.) They end with us.
 *
 * Thread rule: one at a time. Cost: about 0.5 s a comparison.
 */
#ifndef AS_BENCH_SELF_TEST_H
#define AS_BENCH_SELF_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"

enum { AS_SELF_TEST_FUNCTIONS, AS_SELF_TEST_COMMANDS, AS_SELF_TESTS_ };
#define AS_SELF_TEST_PAIRS 20

struct as_self_test_request {
	uint64_t count; /* comparisons in all; 0: 200 */
	bool loaded;
	const char *folder; /* private and writable */
	const volatile int *interrupted;
	void (*progress)(void *ctx, uint64_t done, uint64_t of); /* may be NULL */
	void *progress_ctx;
	uint64_t seed; /* 0: from the clock */
};

struct as_self_test_kind {
	uint64_t n;        /* comparisons */
	uint64_t outside;  /* intervals at 95 % without 1 in them */
	uint64_t verdicts; /* called slower or faster */
	double se;         /* of an ln ratio by 20 pairs: median over comparisons */
	double pair_s;     /* a pair takes */
};
struct as_self_test {
	struct as_self_test_kind kind[AS_SELF_TESTS_];
	bool loaded, interrupted, passed;
	double seconds;
};
/* AS_E_NOTFOUND: no gzip. A comparison that fails is an error: nothing here may fail. */
int as_self_test_run(const struct as_self_test_request *q, struct as_self_test *ret,
		     struct as_error *err);
void as_self_test_text(const struct as_self_test *t, struct as_buf *out);
/* schema assay.self-test/1 */
void as_self_test_json(const struct as_self_test *t, struct as_buf *out);

/* The bench program that this program is when it is asked as a worker of its own self-test. Exit status. */
int as_self_test_worker(int argc, char *const *argv);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the files of a suite share. */
#ifndef AS_BENCH_SUITE_PRIV_H
#define AS_BENCH_SUITE_PRIV_H

#include "bench/foreign.h"
#include "bench/suite.h"
#include "harness/driver.h"

struct as_suite_state { /* of a target */
	const struct as_suite_target *target;
	bool ours; /* both sides answer assay's protocol */
	struct as_foreign foreign[2];
	struct as_fn_copies copies; /* of ours, two sides */
	bool has_copies;
	struct as_layout_pair pair;
};

struct as_suite_item {
	struct as_suite_state *state;
	char *id;
	bool on[2];
	bool measured;
	char *failed; /* one line; NULL: it did not */
	struct as_bench bench[2];
	struct as_bench_comparison comparison;
	double relative; /* half-width of the only side's interval over its value */
};

struct as_suite {
	const struct as_suite_request *q;
	struct as_suite_result *result;
	struct as_suite_state *states;
	AS_VEC(struct as_suite_item) items;
	uint64_t began_ns, random;
};

double as_suite_elapsed(const struct as_suite *s);
uint64_t as_suite_random(struct as_suite *s);

/* ---- suite_measure.c ---- */

/* Replaces what is known of the item. AS_E_CANCELLED, else AS_OK: a failure is in item->failed. */
int as_suite_measure(struct as_suite *s, struct as_suite_item *item, double budget_s,
		     double alpha, struct as_error *err);
void as_suite_item_reset(struct as_suite_item *item);
struct as_fn_side as_suite_side(const struct as_suite_item *item, int side, const char *exe,
				char *const argv[3]);

/* ---- suite_layout.c ---- */

/* Takes a verdict of slower or faster to other layouts, and the verdict accordingly. */
int as_suite_check_layout(struct as_suite *s, struct as_suite_item *item, double budget_s,
			  struct as_error *err);

#endif

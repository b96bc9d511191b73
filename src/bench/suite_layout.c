/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pairs of links measured by the driver: see layout.h. */
#include <math.h>
#include <stdlib.h>

#include "bench/suite_priv.h"

#define PAIRS 6 /* of processes, for a pair of links */

struct measured {
	struct as_suite *s;
	struct as_suite_item *item;
};

/* Trimmed mean of the ln ratios of a few pairs of processes; NaN: it could not be measured. */
static double compare_links(void *ctx, const char *const exe[2])
{
	static char bench[] = "--bench";
	const struct measured *m = ctx;
	struct as_fn_request q = {.id = m->item->id,
				  .sides = 2,
				  .budget_s = 1,
				  .processes = PAIRS,
				  .fixed = true,
				  .as_they_are = true,
				  .no_allocs = true,
				  .iterations = m->item->bench[0].iterations,
				  .delta = m->s->q->delta,
				  .seed = as_suite_random(m->s),
				  .interrupted = m->s->q->interrupted};
	struct as_fn_result r = {0};
	char *argv[2][3];
	double value = NAN;

	for (int k = 0; k < 2; k++) {
		argv[k][0] = (char *)m->item->state->target->side[k].exe;
		argv[k][1] = bench;
		argv[k][2] = NULL;
		q.side[k] = as_suite_side(m->item, k, exe[k], argv[k]);
	}
	if (as_fn_measure(&q, &r, NULL) == AS_OK && !r.failed && r.d.n >= 3) {
		struct as_trimmed mean;

		as_trimmed_interval(r.d.v, r.d.n, AS_PAIRED_TRIM, 0.05, &mean);
		value = mean.value;
	}
	as_fn_result_clear(&r);
	return value;
}

int as_suite_check_layout(struct as_suite *s, struct as_suite_item *item, double budget_s,
			  struct as_error *err)
{
	struct measured m = {s, item};
	const struct as_suite_target *t = item->state->target;
	struct as_layout_pair *p = &item->state->pair;

	for (int k = 0; k < 2; k++) {
		p->exe[k] = t->side[k].exe;
		p->watch[k] = t->side[k].watch;
	}
	if (!p->path)
		p->path = as_xasprintf("%s/link.%zu", s->q->folder,
				       (size_t)(item->state - s->states));
	return as_layout_check(
		&(struct as_layout_check){.pair = p,
					  .layouts = s->q->layouts,
					  .budget_s = budget_s,
					  .interrupted = s->q->interrupted,
					  .compare = item->state->ours ? compare_links : NULL,
					  .ctx = &m},
		&item->comparison, err);
}

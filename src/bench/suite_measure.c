/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One benchmark of a suite, by assay's driver or by its own harness: see suite.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "bench/function.h"
#include "bench/suite_priv.h"
#include "stats/runs.h"

#define NS              1e-9
#define PROCESSES_LEAST 3
#define PROCESSES_MOST  1000
#define SHARE_MIN_S     0.05 /* of the time, for a process of another harness */
#define SHARE_MAX_S     0.5

void as_suite_item_reset(struct as_suite_item *item)
{
	for (int k = 0; item->measured && k < 2; k++)
		as_bench_clear(&item->bench[k]);
	if (item->measured)
		as_bench_comparison_clear(&item->comparison);
	free(item->failed);
	item->failed = NULL;
	item->measured = false;
}

static void begin(struct as_suite_item *item)
{
	as_suite_item_reset(item);
	as_bench_init(&item->bench[0]);
	as_bench_init(&item->bench[1]);
	as_bench_comparison_init(&item->comparison);
	item->measured = true;
	item->relative = NAN;
}

static void summarise(struct as_suite_item *item)
{
	const struct as_bench_estimate *e = &item->bench[0].time;

	item->relative = (e->high - e->low) / 2 / e->value;
}

/* ---- assay's own harness ---- */

struct as_fn_side as_suite_side(const struct as_suite_item *item, int side, const char *exe,
				char *const argv[3])
{
	const struct as_suite_program *p = &item->state->target->side[side];

	return (struct as_fn_side){.exe = exe ? exe : p->exe,
				   .argv = argv,
				   .env = p->environment,
				   .folder = p->folder};
}

static int measure_ours(struct as_suite *s, struct as_suite_item *item, double budget_s,
			double alpha, struct as_error *err)
{
	static char bench[] = "--bench";
	const struct as_suite_request *q = s->q;
	struct as_fn_request request = {.id = item->id,
					.sides = q->sides,
					.budget_s = budget_s,
					.cap_s = AS_MAX(3 * budget_s, 2),
					.delta = q->delta,
					.alpha = alpha,
					.as_they_are = item->state->has_copies,
					.seed = as_suite_random(s),
					.interrupted = q->interrupted};
	struct as_fn_result result = {0};
	char *argv[2][3];
	int r;

	for (unsigned k = 0; k < q->sides; k++) {
		const char *exe = item->state->has_copies ? item->state->copies.path[k] : NULL;

		argv[k][0] = (char *)item->state->target->side[k].exe;
		argv[k][1] = bench;
		argv[k][2] = NULL;
		request.side[k] = as_suite_side(item, (int)k, exe, argv[k]);
	}
	r = as_fn_measure(&request, &result, err);
	if (r == AS_OK) {
		for (unsigned k = 0; k < q->sides; k++)
			as_bench_from_function(&result, (int)k,
					       q->sides > 1 ? q->labels[k] : NULL,
					       &item->bench[k]);
		if (q->sides > 1)
			as_bench_compare_functions(&result, q->labels, &item->comparison);
		if (result.failed)
			item->failed = as_xstrdup(result.failed);
	} else if (r != AS_E_CANCELLED && err) {
		item->failed = as_xstrdup(err->msg);
		r = AS_OK;
	}
	as_fn_result_clear(&result);
	return r;
}

/* ---- other harnesses ---- */

struct foreign_pairs {
	struct as_suite *s;
	struct as_suite_item *item;
	double budget_s, share_s;
	uint64_t began_ns;
	AS_VEC(double) d, medians;
	struct as_sequence sequence;
	struct as_look look;
};

static double spent(const struct foreign_pairs *p)
{
	return (double)(as_now_ns() - p->began_ns) / 1e9;
}

/* 1: go on; 0: it failed. */
static int sample_side(struct foreign_pairs *p, int side, double *ret_median,
		       struct as_error *err)
{
	struct as_bench *b = &p->item->bench[side];
	struct as_foreign_sample sample;
	struct as_error why = {0};
	int r = as_foreign_sample(&p->item->state->foreign[side], p->item->id, p->share_s,
				  &sample, &why);

	if (r == AS_E_CANCELLED) {
		as_foreign_sample_clear(&sample);
		return as_fail(err, r, 0, "%s", why.msg);
	}
	if (r < 0 && p->s->q->sides > 1)
		p->item->failed = as_xasprintf("%s: %s", p->s->q->labels[side], why.msg);
	else if (r < 0)
		p->item->failed = as_xstrdup(why.msg);
	if (r == AS_OK) {
		as_vec_push(&b->samples, sample.value * NS);
		for (size_t i = 0; i < sample.batches.n; i++)
			as_vec_push(&b->batch_times, sample.batches.v[i] * NS);
		b->batches = sample.batches.n;
		b->throughput = sample.throughput;
		b->throughput_n = (uint64_t)sample.throughput_n;
		b->throughput_n2 = (uint64_t)sample.throughput_n2;
		*ret_median = sample.median;
	}
	as_foreign_sample_clear(&sample);
	return r == AS_OK;
}

static int sample_alone(struct foreign_pairs *p, struct as_error *err)
{
	double median;
	int r = 1;

	for (size_t n = 0; r > 0 && n < PROCESSES_MOST; n++) {
		if (n >= PROCESSES_LEAST && spent(p) + spent(p) / (double)n > p->budget_s)
			break;
		r = sample_side(p, 0, &median, err);
	}
	return r;
}

static int sample_pairs(struct foreign_pairs *p, struct as_error *err)
{
	int r = 1;

	while (r > 0) {
		int first = as_suite_random(p->s) & 1;
		double median[2];
		bool last;
		size_t n;

		for (int k = 0; k < 2 && r > 0; k++)
			r = sample_side(p, k ? !first : first, &median[k ? !first : first],
					err);
		if (r <= 0)
			break;
		n = p->d.n + 1;
		as_vec_push(&p->d, log(p->item->bench[1].samples.v[n - 1] /
				       p->item->bench[0].samples.v[n - 1]));
		as_vec_push(&p->medians, log(median[1] / median[0]));
		last = n >= PROCESSES_LEAST && spent(p) * (1 + 1 / (double)n) > p->budget_s;
		if (last || as_sequence_due(&p->sequence, n))
			p->look = as_sequence_look(&p->sequence, p->d.v, n,
						   last ? 1
							: AS_MIN(0.99, spent(p) / p->budget_s));
		if (last || p->look.verdict != AS_VERDICT_UNDECIDED)
			break;
	}
	return r;
}

static struct as_bench_estimate ratio_of(const double *d, size_t n)
{
	struct as_trimmed t;

	as_trimmed_interval(d, n, AS_PAIRED_TRIM, 0.05, &t);
	return (struct as_bench_estimate){exp(t.value), exp(t.lo), exp(t.hi)};
}

static void compare_foreign(struct foreign_pairs *p)
{
	static const enum as_bench_verdict of[AS_VERDICT_COUNT_] = {
		[AS_VERDICT_UNDECIDED] = AS_BENCH_UNDECIDED,
		[AS_VERDICT_EQUAL] = AS_BENCH_EQUAL,
		[AS_VERDICT_SLOWER] = AS_BENCH_SLOWER,
		[AS_VERDICT_FASTER] = AS_BENCH_FASTER,
	};
	struct as_bench_comparison *c = &p->item->comparison;

	c->name = as_xstrdup(p->item->id);
	c->a = as_xstrdup(p->s->q->labels[0]);
	c->b = as_xstrdup(p->s->q->labels[1]);
	c->metric = as_xstrdup("time");
	c->verdict = of[p->look.verdict];
	c->delta = p->sequence.rule.delta;
	c->processes = p->d.n;
	c->seconds = spent(p);
	c->seconds_needed =
		c->verdict != AS_BENCH_UNDECIDED ? 0
		: p->look.pairs_needed && p->d.n
			? c->seconds * ((double)p->look.pairs_needed / (double)p->d.n - 1)
			: NAN;
	if (p->d.n) {
		c->ratio = c->by_wall = ratio_of(p->d.v, p->d.n);
		c->by_median = ratio_of(p->medians.v, p->medians.n);
	}
	for (size_t i = 0; i < p->d.n; i++)
		as_vec_push(&c->d, p->d.v[i]);
	if (p->item->failed)
		as_bench_note(&c->notes, "failed", "%s", p->item->failed);
}

static void describe(struct foreign_pairs *p)
{
	for (unsigned k = 0; k < p->s->q->sides; k++) {
		struct as_bench *b = &p->item->bench[k];

		b->kind = AS_BENCH_FUNCTION;
		b->name = as_xstrdup(p->item->id);
		b->side = p->s->q->sides > 1 ? as_xstrdup(p->s->q->labels[k]) : NULL;
		b->unit = as_xstrdup("s");
		b->metric = as_xstrdup("time");
		b->processes = b->samples.n;
		as_bench_summarise(b);
		b->wall = b->time;
	}
}

static int measure_foreign(struct as_suite *s, struct as_suite_item *item, double budget_s,
			   double alpha, struct as_error *err)
{
	struct foreign_pairs p = {
		.s = s,
		.item = item,
		.budget_s = budget_s,
		.share_s = AS_MIN(SHARE_MAX_S, AS_MAX(SHARE_MIN_S, budget_s / 20)),
		.began_ns = as_now_ns()};
	struct as_sequence_rule rule = {.alpha = alpha, .delta = s->q->delta};
	int r;

	as_sequence_init(&p.sequence, &rule);
	r = s->q->sides > 1 ? sample_pairs(&p, err) : sample_alone(&p, err);
	if (s->q->sides > 1)
		compare_foreign(&p);
	describe(&p);
	as_vec_clear(&p.d);
	as_vec_clear(&p.medians);
	return r < 0 ? r : AS_OK;
}

int as_suite_measure(struct as_suite *s, struct as_suite_item *item, double budget_s,
		     double alpha, struct as_error *err)
{
	int r;

	begin(item);
	r = item->state->ours ? measure_ours(s, item, budget_s, alpha, err)
			      : measure_foreign(s, item, budget_s, alpha, err);
	summarise(item);
	if (item->failed && !item->bench[0].name)
		item->bench[0].name = as_xstrdup(item->id);
	return r;
}

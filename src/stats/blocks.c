/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shares with design effects: see blocks.h. */
#include "stats/blocks.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "stats/interval.h"

#define BLOCK_NS_MIN 20000000u

/* Blocks for so much time and so many samples. */
static uint64_t how_many(uint64_t length_ns, uint64_t n_samples)
{
	uint64_t want = AS_MIN(n_samples / AS_BLOCK_SAMPLES, (uint64_t)AS_BLOCKS_MAX);
	uint64_t fit = length_ns / BLOCK_NS_MIN;

	return AS_MAX(AS_MIN(want, fit), (uint64_t)1);
}

void as_blocks_init(struct as_blocks *b, uint64_t start_ns, uint64_t end_ns, uint64_t n_samples)
{
	uint64_t length = end_ns > start_ns ? end_ns - start_ns : 1;
	uint64_t n = how_many(length, n_samples);

	*b = (struct as_blocks){
		.start_ns = start_ns,
		.block_ns = length / n + (length % n != 0), /* n blocks cover the run */
		.n_blocks = (size_t)n,
		.w = as_xcalloc((size_t)n, sizeof *b->w),
	};
}

static struct as_run_span within(const struct as_run_span *run, const struct as_run_span *scope)
{
	uint64_t start = AS_MAX(run->start_ns, scope->start_ns);

	return (struct as_run_span){start, AS_MAX(AS_MIN(run->end_ns, scope->end_ns), start)};
}

/* Lays the blocks of the runs out; the last of a run is up to half a block longer or shorter. */
static void lay_out(struct as_blocks *b, const struct as_run_span *runs,
		    const struct as_run_span *scope)
{
	uint32_t at = 0;

	for (size_t i = 0; i < b->n_runs; i++) {
		struct as_run_span s = within(&runs[i], scope);
		uint64_t n = (s.end_ns - s.start_ns + b->block_ns / 2) / b->block_ns;

		b->runs[i] = (struct as_block_run){
			.start_ns = s.start_ns, .first = at, .n = (uint32_t)AS_MAX(n, 1u)};
		at += b->runs[i].n;
	}
	b->n_blocks = at;
	b->w = as_xcalloc(at, sizeof *b->w);
	b->run_of = as_xcalloc(at, sizeof *b->run_of);
	for (size_t i = 0; i < b->n_runs; i++) {
		for (uint32_t k = 0; k < b->runs[i].n; k++)
			b->run_of[b->runs[i].first + k] = (uint32_t)i;
	}
}

void as_blocks_init_runs(struct as_blocks *b, const struct as_run_span *runs, size_t n,
			 const struct as_run_span *scope, uint64_t n_samples)
{
	uint64_t length = 0;
	size_t from = 0, to = n;

	while (to > 0 && runs[to - 1].start_ns > scope->end_ns)
		to--;
	while (from + 1 < to && runs[from + 1].start_ns <= scope->start_ns)
		from++;
	if (to < from + 2) {
		as_blocks_init(b, scope->start_ns, scope->end_ns, n_samples);
		return;
	}
	for (size_t i = from; i < to; i++) {
		struct as_run_span s = within(&runs[i], scope);

		length += s.end_ns - s.start_ns;
	}
	length = AS_MAX(length, (uint64_t)1);
	n = how_many(length, n_samples);
	*b = (struct as_blocks){
		.start_ns = scope->start_ns,
		.block_ns = length / n + (length % n != 0),
		.runs = as_xcalloc(to - from, sizeof *b->runs),
		.n_runs = to - from,
	};
	lay_out(b, runs + from, scope);
}

void as_blocks_clear(struct as_blocks *b)
{
	free(b->w);
	free(b->runs);
	free(b->run_of);
	*b = (struct as_blocks){0};
}

static uint32_t index_in_runs(const struct as_blocks *b, uint64_t time_ns)
{
	size_t lo = 0, hi = b->n_runs; /* the run is in [lo, hi) */
	const struct as_block_run *r;
	uint64_t i;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (b->runs[mid].start_ns <= time_ns)
			lo = mid;
		else
			hi = mid;
	}
	r = &b->runs[lo];
	i = time_ns > r->start_ns ? (time_ns - r->start_ns) / b->block_ns : 0;
	return r->first + (uint32_t)AS_MIN(i, (uint64_t)r->n - 1);
}

uint32_t as_blocks_index(const struct as_blocks *b, uint64_t time_ns)
{
	if (b->n_runs)
		return index_in_runs(b, time_ns);
	if (time_ns <= b->start_ns || !b->n_blocks)
		return 0;

	uint64_t i = (time_ns - b->start_ns) / b->block_ns;

	return (uint32_t)AS_MIN(i, (uint64_t)b->n_blocks - 1);
}

void as_blocks_add(struct as_blocks *b, uint32_t block, double weight)
{
	b->w[block] += weight;
	b->sum_w += weight;
	b->sum_weight2 += weight * weight;
	b->n_samples++;
}

static void finish_runs(struct as_blocks *b)
{
	b->sum_rw2 = 0;
	b->n_runs_used = 0;
	for (size_t i = 0; i < b->n_runs; i++) {
		struct as_block_run *r = &b->runs[i];

		r->w = 0;
		for (uint32_t k = 0; k < r->n; k++)
			r->w += b->w[r->first + k];
		b->sum_rw2 += r->w * r->w;
		b->n_runs_used += r->w > 0;
	}
	if (b->n_runs_used < AS_RUNS_MIN)
		return;
	b->runs_worth = AS_MAX(b->sum_w * b->sum_w / b->sum_rw2, 2.0);
	b->run_quantile = as_student_quantile(0.5 + AS_CONFIDENCE / 2, b->runs_worth - 1);
	if (b->stopped)
		b->run_quantile *= sqrt(1 + AS_STOPPED_COST / b->runs_worth);
}

void as_blocks_finish(struct as_blocks *b)
{
	finish_runs(b);
	b->sum_w2 = b->sum_dw2 = 0;
	for (size_t i = 0; i < b->n_blocks; i++) {
		b->sum_w2 += b->w[i] * b->w[i];
		if (i) {
			double d = b->w[i] - b->w[i - 1];

			b->sum_dw2 += d * d;
		}
	}
	b->quantile = as_student_quantile(0.5 + AS_CONFIDENCE / 2, 2 * (double)b->n_blocks / 3);
}

/* The row changes by dx from block to block + 1. */
static void add_step(struct as_share_row *r, const struct as_blocks *b, uint32_t block,
		     double dx)
{
	r->sum_dx2 += dx * dx;
	r->sum_dxdw += dx * (b->w[block + 1] - b->w[block]);
}

/* The open block is over; so is its run when the next one is in another. */
static void close_in_run(struct as_share_row *r, const struct as_blocks *b, size_t next)
{
	uint32_t run = b->run_of[r->block_open];

	r->x_run += r->x_open;
	if (next < b->n_blocks && b->run_of[next] == run)
		return;
	r->sum_rx2 += r->x_run * r->x_run;
	r->sum_rxw += r->x_run * b->runs[run].w;
	r->n_runs += r->x_run > 0;
	r->x_run = 0;
}

/*
 * The open block is over and the row's next one is `next` (n_blocks: none). Rows are mostly
 * absent, and steps between absences add nothing, so only the steps around present blocks are made.
 */
static void close_block(struct as_share_row *r, const struct as_blocks *b, size_t next)
{
	uint32_t at = r->block_open;

	r->sum_x2 += r->x_open * r->x_open;
	r->sum_xw += r->x_open * b->w[at];
	if (b->n_runs)
		close_in_run(r, b, next);
	if (at > 0)
		add_step(r, b, at - 1, r->x_open - r->x_prev);
	if (next != (size_t)at + 1) {
		add_step(r, b, at, -r->x_open);
		r->x_prev = 0;
	} else {
		r->x_prev = r->x_open;
	}
}

void as_share_add_many(struct as_share_row *r, const struct as_blocks *b, uint32_t block,
		       double weight, uint64_t samples)
{
	bool first = r->n_samples == 0;

	r->n_samples += samples;
	r->sum_x += weight;
	if (!first && block <= r->block_open) {
		r->x_open += weight;
		return;
	}
	if (!first)
		close_block(r, b, block);
	r->block_open = block;
	r->x_open = weight;
}

void as_share_add(struct as_share_row *r, const struct as_blocks *b, uint32_t block,
		  double weight)
{
	as_share_add_many(r, b, block, weight, 1);
}

/* sum (dx - p dw)^2 and sum (x - p w)^2 over all blocks; rounding may leave them just below 0. */
static double residual2(double xx, double xw, double ww, double p)
{
	double v = xx - 2 * p * xw + p * p * ww;

	return v > 0 ? v : 0;
}

/* How much wider, squared, than that of independent samples the interval is that blocks tell. */
static double between_blocks(const struct as_share_row *r, const struct as_blocks *b,
			     double independent, struct as_share_estimate *ret)
{
	double n = (double)b->n_blocks, p = ret->share, w2 = b->sum_w * b->sum_w;
	double unsure = b->quantile / ret->quantile;
	double near =
		n / (2 * (n - 1)) / w2 * residual2(r->sum_dx2, r->sum_dxdw, b->sum_dw2, p);
	double between = n / (n - 1) / w2 * residual2(r->sum_x2, r->sum_xw, b->sum_w2, p);

	ret->deff = AS_MAX(1.0, near / independent);
	ret->drift = near > 0 ? between / near : 1;
	return near / independent * unsure * unsure;
}

/* The same that runs tell. */
static double between_runs(const struct as_share_row *r, const struct as_blocks *b,
			   double independent, struct as_share_estimate *ret)
{
	double n = b->runs_worth, unsure = b->run_quantile / ret->quantile;
	double runs = n / (n - 1) / (b->sum_w * b->sum_w) *
		      residual2(r->sum_rx2, r->sum_rxw, b->sum_rw2, ret->share);

	ret->deff = AS_MAX(ret->deff, runs / independent);
	return runs / independent * unsure * unsure;
}

void as_share_interval(const struct as_share_row *row, const struct as_blocks *b,
		       struct as_share_estimate *ret)
{
	*ret = (struct as_share_estimate){.hi = 1,
					  .deff = 1,
					  .drift = 1,
					  .quantile =
						  as_normal_quantile(0.5 + AS_CONFIDENCE / 2)};
	if (!(b->sum_w > 0))
		return;

	struct as_share_row r = *row;

	if (r.n_samples)
		close_block(&r, b, b->n_blocks);

	double p = AS_MIN(r.sum_x / b->sum_w, 1.0);
	double n_kish = b->sum_w * b->sum_w / b->sum_weight2;
	double independent = p * (1 - p) / n_kish, inflate = 1;

	ret->share = p;
	ret->runs = r.n_runs;
	if (independent > 0) {
		if (b->n_blocks >= AS_BLOCKS_MIN)
			inflate = between_blocks(&r, b, independent, ret);
		if (b->n_runs_used >= AS_RUNS_MIN)
			inflate = AS_MAX(inflate, between_runs(&r, b, independent, ret));
		/* However alike, the samples of a row are one observation at least. */
		inflate = AS_MAX(1.0, AS_MIN(inflate, AS_MIN(p, 1 - p) * n_kish));
	}
	ret->n_eff = n_kish / inflate;

	struct as_interval i =
		as_proportion_interval(p * ret->n_eff, ret->n_eff, ret->quantile);

	ret->lo = AS_MIN(i.lo, p);
	ret->hi = AS_MAX(i.hi, p);
}

bool as_rows_separable(const struct as_share_estimate *a, const struct as_share_estimate *b)
{
	double n = AS_MIN(a->n_eff, b->n_eff), quantile = AS_MAX(a->quantile, b->quantile);
	double ka = a->share * n, kb = b->share * n, both = ka + kb;

	if (!(both > 0) || a->share == b->share)
		return false;
	if (both < 40) {
		/* Twice the tail of a fair coin: P(X <= min) = I_1/2(both - min, min + 1). */
		double less = AS_MIN(ka, kb);

		return 2 * as_beta_cdf(0.5, both - less, less + 1) < 1 - AS_CONFIDENCE;
	}
	return fabs(ka - kb) > quantile * sqrt(both);
}

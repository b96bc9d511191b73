/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shares with design effects: see blocks.h. */
#include "stats/blocks.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "stats/interval.h"

#define BLOCK_NS_MIN 20000000u

void as_blocks_init(struct as_blocks *b, uint64_t start_ns, uint64_t end_ns, uint64_t n_samples)
{
	uint64_t length = end_ns > start_ns ? end_ns - start_ns : 1;
	uint64_t want = AS_MIN(n_samples / AS_BLOCK_SAMPLES, (uint64_t)AS_BLOCKS_MAX);
	uint64_t fit = length / BLOCK_NS_MIN;
	uint64_t n = AS_MAX(AS_MIN(want, fit), (uint64_t)1);

	*b = (struct as_blocks){
		.start_ns = start_ns,
		.block_ns = length / n + (length % n != 0), /* n blocks cover the run */
		.n_blocks = (size_t)n,
		.w = as_xcalloc((size_t)n, sizeof *b->w),
	};
}

void as_blocks_clear(struct as_blocks *b)
{
	free(b->w);
	*b = (struct as_blocks){0};
}

uint32_t as_blocks_index(const struct as_blocks *b, uint64_t time_ns)
{
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

void as_blocks_finish(struct as_blocks *b)
{
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

/*
 * The open block is over and the row's next one is `next` (n_blocks: none). Rows are mostly
 * absent, and steps between absences add nothing, so only the steps around present blocks are made.
 */
static void close_block(struct as_share_row *r, const struct as_blocks *b, size_t next)
{
	uint32_t at = r->block_open;

	r->sum_x2 += r->x_open * r->x_open;
	r->sum_xw += r->x_open * b->w[at];
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

	double n = (double)b->n_blocks, p = AS_MIN(r.sum_x / b->sum_w, 1.0);
	double n_kish = b->sum_w * b->sum_w / b->sum_weight2;
	double independent = p * (1 - p) / n_kish, inflate = 1;

	ret->share = p;
	if (b->n_blocks >= AS_BLOCKS_MIN && independent > 0) {
		double w2 = b->sum_w * b->sum_w, unsure = b->quantile / ret->quantile;
		double near = n / (2 * (n - 1)) / w2 *
			      residual2(r.sum_dx2, r.sum_dxdw, b->sum_dw2, p);
		double between = n / (n - 1) / w2 * residual2(r.sum_x2, r.sum_xw, b->sum_w2, p);

		ret->deff = AS_MAX(1.0, near / independent);
		ret->drift = near > 0 ? between / near : 1;
		/* However alike, the samples of a row are one observation at least. */
		inflate =
			AS_MIN(near / independent * unsure * unsure, AS_MIN(p, 1 - p) * n_kish);
		inflate = AS_MAX(1.0, inflate);
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

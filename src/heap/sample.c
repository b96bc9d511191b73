/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Estimates from the blocks that were chosen (heap.h, "Sampling"). A block of s bytes is told with the
 * probability p = 1 - exp(-s / sample_bytes) (s at least AS_RT_SAMPLE_LEAST), independently of all others:
 * it stands for 1/p blocks, and adds (1 - p) / p^2 to the variance of their number.
 */
#include <math.h>
#include "abi/rt.h"
#include "heap/heap_priv.h"

void as_heap_sample(struct as_heap *h, uint64_t sample_bytes)
{
	if (!sample_bytes)
		return;
	h->sample_bytes = sample_bytes;
	h->unit = AS_HEAP_UNIT;
}

double as_heap_half_width(double variance)
{
	return variance > 0 ? 1.96 * sqrt(variance) : 0;
}

struct as_heap_weight as_heap_estimate(const struct as_heap *h, uint64_t size_bytes)
{
	double size = (double)size_bytes;
	double least = AS_RT_SAMPLE_LEAST;
	double p = -expm1(-AS_MAX(size, least) / (double)h->sample_bytes);
	double factor = 1 / p, variance = (1 - p) * factor * factor;

	return (struct as_heap_weight){
		.blocks = (uint64_t)((double)h->unit * factor + 0.5),
		.bytes = (uint64_t)(size * factor + 0.5),
		.factor = factor,
		.blocks_variance = variance,
		.bytes_variance = size * size * variance,
	};
}

/* ---- whole numbers at the end ---- */

static void make_whole(uint64_t *count, uint64_t unit)
{
	*count = (*count + unit / 2) / unit;
}

static void make_tally_whole(struct as_heap_tally *t, uint64_t unit)
{
	uint64_t *const counts[] = {&t->allocs, &t->frees, &t->live.blocks, &t->peak.blocks};

	for (size_t i = 0; i < AS_ARRAY_LEN(counts); i++)
		make_whole(counts[i], unit);
	as_histogram_divide(&t->sizes, unit);
	as_histogram_divide(&t->ages, unit);
	as_histogram_divide(&t->times, unit);
}

static void make_rare_whole(struct as_heap_rare *r, uint64_t unit)
{
	make_whole(&r->zero, unit);
	make_whole(&r->remote_frees, unit);
	make_whole(&r->at_exit.blocks, unit);
}

static void make_growth_whole(struct as_heap_growth *g, uint64_t unit)
{
	make_whole(&g->reallocs, unit);
	make_whole(&g->in_place, unit);
	make_whole(&g->chains, unit);
	make_whole(&g->ended, unit);
	as_histogram_divide(&g->last, unit);
}

void as_heap_make_whole(struct as_heap *h)
{
	if (h->unit == 1)
		return;
	as_vec_foreach (t, &h->tallies)
		make_tally_whole(t, h->unit);
	as_vec_foreach (r, &h->rares)
		make_rare_whole(r, h->unit);
	as_vec_foreach (g, &h->growths)
		make_growth_whole(g, h->unit);
	for (int d = 0; d < AS_HEAP_DOMAINS; d++) {
		make_whole(&h->sum[d].live.blocks, h->unit);
		make_whole(&h->sum[d].peak.blocks, h->unit);
	}
	make_whole(&h->allocs, h->unit);
	make_whole(&h->reallocs, h->unit);
	make_whole(&h->zero, h->unit);
	h->frees = h->allocs - h->sum[AS_HEAP_BLOCKS].live.blocks;
	as_vec_foreach (row, &h->timeline)
		make_whole(&row->live.blocks, h->unit);
	as_vec_foreach (f, &h->flows)
		make_whole(&f->freed.blocks, h->unit);
	as_vec_foreach (m, &h->marks) {
		make_whole(&m->live.blocks, h->unit);
		as_vec_foreach (a, &m->tallies)
			make_whole(&a->live.blocks, h->unit);
	}
	h->unit = 1;
}

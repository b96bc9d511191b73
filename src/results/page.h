/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Results as an HTML page that stands alone: no script, nothing from elsewhere, drawings as SVG in it.
 * Light or dark as the reader's system is. For each benchmark its distribution, its runs in their
 * order, its pairs, its history; growth over a parameter on logarithmic axes.
 *
 *	as_bench_page(&(struct as_bench_page_request){.set = &set, .trends = &trends}, &html);
 *
 * All text is escaped; a policy in the page forbids what an escape could have missed. Series above
 * AS_BENCH_PAGE_POINTS are thinned. Cost: linear; 50 benchmarks with two sides of 100 samples and 200 runs
 * of history some 30 ms. Thread rule: pure.
 */
#ifndef AS_RESULTS_PAGE_H
#define AS_RESULTS_PAGE_H

#include "results/keep.h"
#include "results/result.h"

#define AS_BENCH_PAGE_POINTS 1000

struct as_bench_page_request {
	const struct as_bench_set *set;       /* NULL: history only */
	const struct as_bench_trends *trends; /* NULL: none */
};
void as_bench_page(const struct as_bench_page_request *q, struct as_buf *out);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Results for people: the terminal, Markdown for a pull request, an HTML page that stands alone.
 * All of them show the declared estimate (results/result.h), and none changes a verdict.
 *
 *	as_bench_text(&set, &style, &out);
 *
 * Cost: linear in the samples; 50 benchmarks with history take some tens of milliseconds. Thread
 * rule: pure, any thread.
 */
#ifndef AS_RESULTS_REPORT_H
#define AS_RESULTS_REPORT_H

#include "results/result.h"
#include "view/text/style.h"

/* A line per benchmark or comparison, its notes below it, complexities, and the line of the suite.
 * What a narrow terminal has no room for is left out by rank: range, spread, memory, throughput. */
void as_bench_text(const struct as_bench_set *s, const struct as_style *style,
		   struct as_buf *out);
/* GitHub's tables; slower and faster first, what did not change folded away. */
void as_bench_markdown(const struct as_bench_set *s, struct as_buf *out);

/* ---- pieces ---- */

/* Three significant digits: "1.82 µs", "0.530 ns", "3.10 MiB", "12.4 k"; unit as in as_bench. "-" for
 * NaN. */
void as_bench_value(struct as_buf *out, const char *unit, double x);
/* Likewise, with times in `time_unit` ("us", "ms", "s") whatever their size; NULL: as above. */
void as_bench_value_in(struct as_buf *out, const char *time_unit, const char *unit, double x);
/* "+2.4 % [-0.9, +5.6]"; "x2.31 [2.28, 2.35]" where the ratio is above 2 or below a half. */
void as_bench_change(struct as_buf *out, const struct as_bench_estimate *ratio);
/* "2.20 GiB/s, 1.02 M elem/s"; nothing when there is no throughput. */
void as_bench_rate(struct as_buf *out, const struct as_bench *b);
/* "3 slower, 1 undecided" of the comparisons, the gravest first; "" when there are none. */
void as_bench_tally(struct as_buf *out, const struct as_bench_set *s);

#define AS_BENCH_SPARK 9 /* cells */
/* The distribution of n values as AS_BENCH_SPARK block characters from the least to the greatest
 * (what lies more than 4 quartile ranges outside counts in the outermost cell). Nothing for n < 3. */
void as_bench_spark(struct as_buf *out, const double *v, size_t n);

/* The benches that a comparison is about; NULL: not in the set. */
const struct as_bench *as_bench_side(const struct as_bench_set *s,
				     const struct as_bench_comparison *c, int side);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Results for what reads them elsewhere; hyperfine's shapes are in hyperfine.h.
 *
 *	as_bench_github(&set, &out);	github-action-benchmark: customSmallerIsBetter
 *	as_bench_openmetrics(&set, &out);
 *	as_bench_export_criterion(&set, "target/criterion", "main", err);	critcmp, CI actions
 *
 * The figure is the declared estimate everywhere. Thread rule: any thread.
 */
#ifndef AS_RESULTS_EXPORT_H
#define AS_RESULTS_EXPORT_H

#include "results/result.h"

void as_bench_github(const struct as_bench_set *s, struct as_buf *out);
/* OpenMetrics 1.0 text with its end; gauges of seconds with quantile-free low and high. */
void as_bench_openmetrics(const struct as_bench_set *s, struct as_buf *out);
/* Folders as criterion 0.3.3 and later writes them, one per benchmark; only those in seconds. Existing
 * files of that baseline are replaced, each as a whole. */
int as_bench_export_criterion(const struct as_bench_set *s, const char *home,
			      const char *baseline, struct as_error *err);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the driver of function benchmarks measured (harness/driver.h), as results.
 *
 *	as_bench_from_function(&result, 0, "head", &bench);		as_vec_push(&set.benches, bench);
 *	as_bench_compare_functions(&result, sides, &comparison);	as_vec_push(&set.comparisons, …);
 *
 * Times become seconds; a custom unit stays what it is. Thread rule: pure.
 */
#ifndef AS_BENCH_FUNCTION_H
#define AS_BENCH_FUNCTION_H

#include "harness/driver.h"
#include "results/result.h"

/* side: 0 or 1 of r; label: as_bench.side, NULL: none. The caller owns *ret. */
void as_bench_from_function(const struct as_fn_result *r, int side, const char *label,
			    struct as_bench *ret);
/* r has two sides, called labels. */
void as_bench_compare_functions(const struct as_fn_result *r, const char *const labels[2],
				struct as_bench_comparison *ret);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* bench/bench-functions, our side. */
#include <assay/bench.h>

uint64_t bench_work(void);

ASSAY_BENCH(work)
{
	ASSAY_ITER(b)
	assay_black_box(bench_work());
}

ASSAY_BENCH_MAIN

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The functions of the self-test: see self_test.h. */
#include <assay/bench.h>
#include <stdlib.h>

#include "bench/self_test.h"

#define WORDS (1u << 16)

struct data {
	uint32_t words[WORDS];
};

static double hash(void *ctx, uint64_t iters)
{
	const struct data *d = ctx;
	uint64_t h = 14695981039346656037ull, begin = assay_bench_begin();

	for (uint64_t i = 0; i < iters; i++) {
		for (size_t k = 0; k < 4096; k++)
			h = d->words[k] & 1 ? (h ^ d->words[k]) * 1099511628211ull
					    : h + (h << 5 ^ d->words[k]);
		assay_black_box(h);
	}
	return (double)(assay_bench_end() - begin);
}

static double chain(void *ctx, uint64_t iters)
{
	uint64_t x = 1, begin = assay_bench_begin();

	for (uint64_t i = 0; i < iters; i++) {
		for (int k = 0; k < 100; k++)
			x = x * 6364136223846793005ull + 1;
		assay_black_box(x);
	}
	return (double)(assay_bench_end() - begin);
}

static double memory(void *ctx, uint64_t iters)
{
	const struct data *d = ctx;
	uint32_t at = 1;
	uint64_t begin = assay_bench_begin();

	for (uint64_t i = 0; i < iters; i++) {
		for (int k = 0; k < 1000; k++)
			at = (d->words[at] + (uint32_t)k) % WORDS;
		assay_black_box(at);
	}
	return (double)(assay_bench_end() - begin);
}

int as_self_test_worker(int argc, char *const *argv)
{
	static const struct {
		const char *name;
		assay_bench_fn fn;
	} all[] = {{"hash", hash}, {"chain", chain}, {"memory", memory}};
	struct assay_bench *run = assay_bench_open(argc, argv, NULL);
	struct data *d = malloc(sizeof *d);
	uint64_t s = 12345;

	for (size_t i = 0; d && i < WORDS; i++) {
		s = s * 6364136223846793005ull + 1442695040888963407ull;
		d->words[i] = (uint32_t)(s >> 33);
	}
	for (size_t i = 0; d && i < sizeof all / sizeof all[0]; i++) {
		const struct assay_bench_spec spec = {.size = sizeof spec,
						      .function = all[i].name};

		(void)assay_bench_one(run, &spec, all[i].fn, d); /* remembered by close */
	}
	free(d);
	return assay_bench_close(run);
}

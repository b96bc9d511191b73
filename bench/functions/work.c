/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The function that bench/bench-functions has all harnesses measure: FNV-1a over a buffer, an operation
 * that depends on the one before. How much it does is a number beside the code (WORK bytes), so that
 * "slower by 2 %" is 2 % more of the same work by the very same instructions.
 */
#include <stddef.h>
#include <stdint.h>

uint64_t bench_work(void);

#ifndef WORK
#define WORK 10000
#endif

static unsigned char buffer[1 << 16];
static volatile size_t work_bytes = WORK;

__attribute__((noinline, aligned(64))) uint64_t bench_work(void)
{
	uint64_t h = 14695981039346656037u;
	size_t n = work_bytes;

	for (size_t i = 0; i < n; i++)
		h = (h ^ buffer[i]) * 1099511628211u;
	return h;
}

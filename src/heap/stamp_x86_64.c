/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <x86intrin.h>
#include "heap/drain_priv.h"

uint64_t as_drain_stamp_ticks(void)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 64; i++) {
		uint64_t began = __rdtsc();

		least = AS_MIN(least, __rdtsc() - began);
	}
	return least;
}

uint64_t as_drain_stamp_now(void)
{
	uint64_t stamp = __rdtsc();

	_mm_lfence();
	return stamp;
}

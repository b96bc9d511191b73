/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pieces of the workloads: work that the compiler keeps, and clocks. Workloads are programs
 * with a known profile; they depend on nothing of the tool. */
#ifndef AS_TESTS_WORKLOAD_H
#define AS_TESTS_WORKLOAD_H

#include <stdlib.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile unsigned long sink;

static inline double clock_s(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline double cpu_s(void)
{
	return clock_s(CLOCK_THREAD_CPUTIME_ID);
}

/* Additions, n of them: about 1 ns each. */
static inline __attribute__((always_inline)) void work(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink += i;
}

static inline double arg(int argc, char **argv, int i, double otherwise)
{
	return i < argc ? strtod(argv[i], NULL) : otherwise;
}

#endif

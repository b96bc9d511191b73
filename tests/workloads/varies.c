/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* varies SECONDS SHARE SPREAD: part_a and part_b take turns, 1 ms a round of the two. The share of
 * part_a differs from run to run, uniformly between SHARE - SPREAD and SHARE + SPREAD, as a program
 * does whose layout, input or threads fall out differently each time. */
#include <unistd.h>

#include "workload.h"

static NOINLINE __attribute__((aligned(128))) void part_a(unsigned long n)
{
	work(n);
}

static NOINLINE __attribute__((aligned(128))) void part_b(unsigned long n)
{
	work(n + 1); /* equal functions would become one */
}

/* splitmix64 of the clock and the process: any even spread will do. */
static double drawn(void)
{
	struct timespec now;
	unsigned long x;

	clock_gettime(CLOCK_MONOTONIC, &now);
	x = (unsigned long)now.tv_nsec + (unsigned long)getpid() * 0x9e3779b97f4a7c15ul;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ul;
	x = (x ^ x >> 27) * 0x94d049bb133111ebul;
	return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

int main(int argc, char **argv)
{
	double seconds = arg(argc, argv, 1, 0.1);
	double share = arg(argc, argv, 2, 0.3) + arg(argc, argv, 3, 0.1) * (2 * drawn() - 1);
	double end = cpu_s() + seconds;
	unsigned long a = (unsigned long)(600000 * share), b = 600000 - a;

	while (cpu_s() < end) {
		part_a(a);
		part_b(b);
	}
	return 0;
}

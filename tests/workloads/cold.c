/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* cold SECONDS: works in the part of a function that compilers move away (NAME.cold), which keeps
 * the frame that the hot part made. */
#include <stdio.h>
#include "workload.h"

static __attribute__((cold)) NOINLINE void rarely(double seconds)
{
	double until = cpu_s() + seconds;

	do
		work(20000);
	while (cpu_s() < until);
}

static NOINLINE int split_function(int n, double seconds)
{
	volatile char locals[200];

	locals[n & 127] = 1;
	if (__builtin_expect(n > 1000, 0)) {
		rarely(seconds / 2);
		for (double until = cpu_s() + seconds / 2; cpu_s() < until;)
			work(20000);
		rarely(0);
	}
	return n + locals[3];
}

int main(int argc, char **argv)
{
	int n = split_function(1001 + argc, arg(argc, argv, 1, 0.3));

	sink += (unsigned long)n;
	return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* split SECONDS A B [C]: functions share_a, share_b, share_c take CPU time in the ratio A : B :
 * C, in slices of a few 100 µs measured by the thread's own clock, so that the split is exact
 * to 0.1 %. */
#include "workload.h"

static NOINLINE void share_a(double until)
{
	do
		work(2000);
	while (cpu_s() < until);
}

static NOINLINE void share_b(double until)
{
	do
		work(2001);
	while (cpu_s() < until);
}

static NOINLINE void share_c(double until)
{
	do
		work(2002);
	while (cpu_s() < until);
}

int main(int argc, char **argv)
{
	double seconds = arg(argc, argv, 1, 1), a = arg(argc, argv, 2, 70),
	       b = arg(argc, argv, 3, 30);
	double c = arg(argc, argv, 4, 0), sum = a + b + c, start = cpu_s(), slice = 0.000731;

	for (double t = 0; t < seconds; t += slice) {
		share_a(start + t + slice * a / sum);
		share_b(start + t + slice * (a + b) / sum);
		if (c > 0)
			share_c(start + t + slice);
	}
	return 0;
}

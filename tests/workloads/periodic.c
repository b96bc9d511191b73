/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* periodic SECONDS [PERIOD_S SHARE]: phase_a runs for SHARE (0.3) of every PERIOD (0.01 s of
 * CPU time), phase_b for the rest: a trap for samplers with a fixed interval. */
#include "workload.h"

static NOINLINE void phase_a(double until)
{
	do
		work(2000);
	while (cpu_s() < until);
}

static NOINLINE void phase_b(double until)
{
	do
		work(2001);
	while (cpu_s() < until);
}

int main(int argc, char **argv)
{
	double seconds = arg(argc, argv, 1, 1), period = arg(argc, argv, 2, 0.01),
	       share = arg(argc, argv, 3, 0.3);
	double start = cpu_s();

	for (int k = 0; k * period < seconds; k++) {
		phase_a(start + (k + share) * period);
		phase_b(start + (k + 1) * period);
	}
	return 0;
}

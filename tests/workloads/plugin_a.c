/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* First of two libraries of the same size that loader.c maps at the same address. */
#include "workload.h"

void plugin_a(double seconds);

void plugin_a(double seconds)
{
	double until = cpu_s() + seconds;

	do
		work(20000);
	while (cpu_s() < until);
}

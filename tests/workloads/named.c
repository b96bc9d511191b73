/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* named SECONDS NAME: gives itself that name and works. */
#include <stdio.h>
#include <sys/prctl.h>
#include "workload.h"

int main(int argc, char **argv)
{
	double until = cpu_s() + arg(argc, argv, 1, 0.2);

	if (argc > 2)
		prctl(PR_SET_NAME, argv[2]);
	do
		work(20000);
	while (cpu_s() < until);
	return 0;
}

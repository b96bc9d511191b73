/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* exiting SECONDS: the main thread ends at once, another one works on; SECONDS after that the
 * process ends with 3. */
#include <pthread.h>
#include "workload.h"

static NOINLINE void survivor_work(double seconds)
{
	double until = clock_s(CLOCK_MONOTONIC) + seconds;

	do
		work(20000);
	while (clock_s(CLOCK_MONOTONIC) < until);
}

static double seconds;

static void *survivor(void *p)
{
	survivor_work(seconds);
	exit(3);
	return p;
}

int main(int argc, char **argv)
{
	pthread_t t;

	seconds = arg(argc, argv, 1, 0.3);
	pthread_create(&t, NULL, survivor, NULL);
	pthread_exit(NULL);
}

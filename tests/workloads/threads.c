/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* threads N SECONDS [storm]: thread i works (i + 1) * SECONDS of CPU time, so two share 1 : 2.
 * storm: N threads one after the other, a millisecond each. */
#include <pthread.h>
#include <stdio.h>
#include "workload.h"

struct job {
	double seconds;
	int number;
};

static NOINLINE void thread_work(double seconds)
{
	double until = cpu_s() + seconds;

	do
		work(2000);
	while (cpu_s() < until);
}

static void *thread_main(void *p)
{
	struct job *j = p;
	char name[16];

	snprintf(name, sizeof name, "my worker; #%d", j->number);
	pthread_setname_np(pthread_self(), name);
	thread_work(j->seconds);
	return NULL;
}

int main(int argc, char **argv)
{
	int n = (int)arg(argc, argv, 1, 2);
	double seconds = arg(argc, argv, 2, 0.3);
	pthread_t *t = calloc((size_t)n, sizeof *t);
	struct job *j = calloc((size_t)n, sizeof *j);

	for (int i = 0; i < n; i++) {
		j[i] = (struct job){argc > 3 ? 0.001 : seconds * (i + 1), i};
		pthread_create(&t[i], NULL, thread_main, &j[i]);
		if (argc > 3)
			pthread_join(t[i], NULL);
	}
	for (int i = 0; i < n && argc <= 3; i++)
		pthread_join(t[i], NULL);
	free(t);
	free(j);
	return 0;
}

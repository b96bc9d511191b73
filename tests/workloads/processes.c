/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* processes fork|exec|nested N SECONDS: N children one after the other, each works SECONDS of
 * CPU time; exec: through this program executed anew; nested: four at a time, each with a child
 * of its own. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "workload.h"

static NOINLINE void child_work(double seconds)
{
	double until = cpu_s() + seconds;

	do
		work(2000);
	while (cpu_s() < until);
}

static void child(const char *what, char **argv, double seconds)
{
	char text[32];

	if (!strcmp(what, "exec")) {
		snprintf(text, sizeof text, "%g", seconds);
		execl("/proc/self/exe", argv[0], "work", "1", text, (char *)NULL);
		_exit(9);
	}
	if (!strcmp(what, "nested") && fork() == 0) {
		child_work(seconds);
		_exit(0);
	}
	child_work(seconds);
	while (wait(NULL) > 0)
		;
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "fork";
	int n = (int)arg(argc, argv, 2, 100), together = strcmp(what, "nested") ? 1 : 4;
	double seconds = arg(argc, argv, 3, 0.004);

	if (!strcmp(what, "work")) {
		child_work(seconds);
		return 0;
	}
	for (int i = 0; i < n; i++) {
		if (fork() == 0)
			child(what, argv, seconds);
		if ((i + 1) % together == 0)
			while (wait(NULL) > 0)
				;
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

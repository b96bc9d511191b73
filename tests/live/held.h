/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A command that waits, forked and not yet run, until its hooks are prepared. */
#ifndef AS_LIVE_HELD_H
#define AS_LIVE_HELD_H

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* It runs once a byte is written to *ret_hold, and ends with 127 where it cannot. */
static inline pid_t start_held(char **argv, int *ret_hold)
{
	int hold[2];
	char byte;
	pid_t pid;

	if (pipe2(hold, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		exit(2);
	if (!pid) {
		close(hold[1]);
		if (read(hold[0], &byte, 1) == 1)
			execvp(argv[0], argv);
		_exit(127);
	}
	close(hold[0]);
	*ret_hold = hold[1];
	return pid;
}

#endif

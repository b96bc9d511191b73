/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Waiting for the end of a child without reaping it: until a time, until we are interrupted, with what
 * it prints read meanwhile. In each case it returns only when the child has ended.
 */
#ifndef AS_MEASURE_WAIT_H
#define AS_MEASURE_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define AS_HEED_S 2

struct as_wait {
	pid_t pid;
	int pidfd;            /* of pid; -1: the kernel has none (before 5.3) */
	bool drain;           /* what comes out of pipe_fd is read and forgotten */
	int pipe_fd;          /* non-blocking */
	uint64_t deadline_ns; /* of CLOCK_MONOTONIC; 0: none. Then its tree is ended */
	const volatile int *interrupted; /* 1: it gets SIGINT, more: SIGKILL; may be NULL */
	/* what does not heed the first SIGINT within AS_HEED_S is ended with its tree: in the
	 * background of a shell it is ignored */
	bool impatient;
	bool timed_out; /* out */
};
void as_wait_for_end(struct as_wait *w);
int as_pidfd(pid_t pid); /* -1: none */

#endif

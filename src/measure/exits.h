/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Ends of processes as the kernel announces them to root (taskstats): the peak memory of each, where wait
 * tells only the greatest of a program and its children.
 *
 *	struct as_exits x;
 *	if (as_exits_open(&x)) … run … as_exits_peaks(&x, pid, &own, &children);
 *	as_exits_close(&x);
 *
 * A child whose parent ended before it is not found. Source: Documentation/accounting/taskstats.rst of
 * Linux.
 * Cost: a message of 0.5 KB per thread that ends on this machine, kept until it is read.
 */
#ifndef AS_MEASURE_EXITS_H
#define AS_MEASURE_EXITS_H

#include <stdbool.h>
#include <sys/types.h>

struct as_exits {
	int fd; /* -1: not open */
};
/* False without the right to (CAP_NET_ADMIN, outside of containers), and where the kernel has it not. */
bool as_exits_open(struct as_exits *x);
/* Reads all that came; root has ended. NaN: not told (messages were lost), or no child. */
void as_exits_peaks(struct as_exits *x, pid_t root, double *ret_own_bytes,
		    double *ret_children_bytes);
void as_exits_close(struct as_exits *x);

#endif

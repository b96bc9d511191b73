/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * target_lean.c: a child that is small before its exec. The kernel counts the greatest memory of a
 * process over all programs it was, so that a copy of us would be the floor of what is measured: 3 MiB
 * for a program that needs 1. The child gives back what it does not need and sets its peak anew.
 */
#ifndef AS_COLLECT_TARGET_PRIV_H
#define AS_COLLECT_TARGET_PRIV_H

#include <stdbool.h>
#include <stddef.h>

struct as_lean_range {
	void *at;
	size_t bytes;
	bool is_code; /* of a file that is needed: given back and read again */
};
#define AS_LEAN_MAX 128
struct as_lean {
	struct as_lean_range v[AS_LEAN_MAX];
	size_t n;
};
/* Before the fork: what the child can do without. Cost: 0.1 ms. */
void as_lean_plan(struct as_lean *ret);
/* In the child; afterwards it may call read, write, chdir, getrusage, execve and _exit only. */
void as_lean_become(const struct as_lean *l);

#endif

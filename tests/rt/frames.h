/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Call chains of many kinds of frame, compiled with -O2 and without frame pointers: from each of
 * their innermost functions the given allocation and then `then` is called, with one caller.
 */
#ifndef RT_FRAMES_H
#define RT_FRAMES_H

#include <stddef.h>

struct frames {
	void *(*alloc)(size_t);
	void (*then)(struct frames *f, void *ptr);
	size_t size;
	unsigned long sink;
};

/* depth calls deep; which kinds of frame, path says (three bits a call). */
void frames_run(struct frames *f, int depth, unsigned long path);
/* depth frames of one function, then an allocation. */
void frames_recurse(struct frames *f, int depth);

#endif

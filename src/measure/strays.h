/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Processes a command leaves behind, and trees of processes that have to be ended.
 *
 *	as_strays_begin(&s);			orphans below us become our children
 *	…					what is our child now may stay
 *	as_strays_mark(&s);
 *	run a command
 *	n = as_strays_end(&s, name);		what it left behind is ended
 *	as_strays_finish(&s);
 *
 * A process that a command started and did not wait for would go on beside the runs that follow and be
 * told as theirs; it is given AS_STRAY_GRACE_MS to end by itself, then SIGTERM, then SIGKILL.
 *
 * Cost where nothing was left: one system call. Thread rule: one thread at a time.
 */
#ifndef AS_MEASURE_STRAYS_H
#define AS_MEASURE_STRAYS_H

#include <stdbool.h>
#include <sys/types.h>
#include "base/mem.h"

#define AS_STRAY_GRACE_MS 100
#define AS_END_GRACE_MS   500 /* between SIGTERM and SIGKILL */
#define AS_STRAY_NAME     32

struct as_strays {
	AS_VEC(pid_t) known; /* children that may stay */
	bool was_reaper;
};
void as_strays_begin(struct as_strays *s);
void as_strays_mark(struct as_strays *s);
/* Returns how many had to be ended; name: of the first, "" when there was none. */
size_t as_strays_end(const struct as_strays *s, char name[AS_STRAY_NAME]);
/* Ends what is left of the marked ones, too; as before as_strays_begin. */
void as_strays_finish(struct as_strays *s);

/* SIGTERM to the process and all its descendants, SIGKILL to what is there after AS_END_GRACE_MS. The
 * process itself, our child, is not reaped. */
void as_end_tree(pid_t root);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A process and its descendants as /proc tells them now: what they have used so far.
 *
 *	struct as_tree t = {.root = pid};
 *	as_tree_read(&t, a);  …  as_tree_read(&t, b);	// b[m] - a[m]: used between the two
 *	as_tree_clear(&t);
 *
 * CPU time, faults and bytes are sums over the living processes and over the children each of them has
 * waited for: what a child used moves to its parent when it is reaped, so that the sum only grows. A
 * process whose parent ended before it is lost from there on. Waiting and switches are of threads: those
 * that have ended count as they were last seen.
 *
 * Thread rule: one thread at a time.
 */
#ifndef AS_MEASURE_TREE_H
#define AS_MEASURE_TREE_H

#include <sys/types.h>
#include "base/map.h"
#include "measure/run.h"

#define AS_TREE_MAX 4096 /* processes that are looked at */

struct as_tree_thread {
	double waited_s, voluntary, involuntary;
};
struct as_tree {
	pid_t root;
	AS_VEC(pid_t) pids; /* alive at the last reading, the root first */
	/* as_tree's own */
	struct as_map64 known; /* tid -> place in threads */
	AS_VEC(struct as_tree_thread) threads;
	double peak_bytes;
};
/* v: AS_M_COUNT_ places: user, system, cpu, faults, switches, run_wait, I/O so far; peak_rss: the
 * greatest of one process so far; others stay NaN. ret_rss: what all have now. False: the root is gone. */
bool as_tree_read(struct as_tree *t, double *v, double *ret_rss);
/* All threads of all processes, for opening counters. Appends. */
typedef AS_VEC(pid_t) as_tids;
void as_tree_tids(struct as_tree *t, as_tids *ret);
void as_tree_clear(struct as_tree *t);

#endif

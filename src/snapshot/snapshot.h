/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A process looked at while it stands still: which of its blocks are leaked, and of what its resident
 * memory consists.
 *
 *	struct as_snapshot_spec spec = {.pid = pid, .hooked = h, .heap = heap,
 *					.drain = read_all_rings, .ctx = me};
 *	r = as_snapshot_look(&spec, err);	heap->leaks, heap->resident are there now
 *
 * The order: all threads are stopped; `drain` is called, so that the heap is what it is at that moment;
 * registers, mappings and the pages of files are noted; the process is forked in its place by a
 * system call of one of its threads, so that it can go on while the copy is read (or it stays
 * stopped, where `stay` says so: it is about to end); blocks and the copy's pages are noted; the copy is
 * read, and ended. What was there from an earlier
 * look is replaced. The rows of a session are written with the heap (heap/write.h).
 *
 * Pause: about 1 ms, and for each GiB of resident memory what /proc/PID/smaps and a fork take, 20 ms
 * each and more (as_heap_leaks.pause_ns says what it was). Blocks cost none.
 *
 * Roots: registers; stacks from the stack pointer up; writable mappings, but for memory that the
 * allocator manages, stacks of threads that have ended, and what assay put there. docs/internals/leaks.md.
 *
 * Thread rule: one call at a time for a process, from any thread that does not trace it already; the heap
 * is the caller's meanwhile. x86-64 only; elsewhere AS_E_UNSUPPORTED.
 */
#ifndef AS_SNAPSHOT_SNAPSHOT_H
#define AS_SNAPSHOT_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/err.h"
#include "heap/heap.h"
#include "hook/hooked.h"

struct as_snapshot_spec {
	pid_t pid;
	const struct as_hooked *hooked; /* what is assay's own in it; NULL: nothing */
	struct as_heap *heap;
	/* Called while the process stands still: everything in its rings goes into the heap. NULL: it
	 * is there. */
	void (*drain)(void *ctx);
	void *ctx;
	/* There are blocks that the heap does not know (from before an attach, or not chosen by
	 * sampling): all memory of the allocator but the known blocks is a root, so that nothing seems
	 * lost that such a block points to. */
	bool partial;
	bool stay; /* it stays stopped until all is done: no copy is made */
	/* At exit: the thread that calls it, and its stack pointer where it did (of the AS_RT_EXIT
	 * notice, which must not be answered before): what lies below belongs to the C library's end
	 * and to the in-target runtime. 0: not at exit. */
	pid_t exit_tid;
	uint64_t exit_sp;
};

/* AS_E_ACCESS, AS_E_NOTFOUND (it has ended): nothing was noted. */
int as_snapshot_look(const struct as_snapshot_spec *spec, struct as_error *err);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A recording of memory: a program and everything it starts, or a running process, with the in-target
 * runtime (rt/) in each of them, put in by hook/; what it tells is summed up by heap/ and written as a
 * session, with names.
 *
 *	struct as_track_request q = {.argv = argv, .output = "app.heap.assay", …};
 *	as_track(&q, &outcome, err);
 *
 * Two threads. The caller's does what stops processes or needs the one that traces them: patches, exec
 * and dlopen of targets, the session. A second one does nothing but read rings and set the clock
 * (drain.c), so that no target waits for the first. Whatever a target waits for, it waits for a bounded
 * time, and goes on without assay.
 *
 *	track.c		request -> session -> loop -> end
 *	area.c		a process with the runtime in it, and the children that run its code
 *	watch.c		what targets tell: modules, exec; where code is
 *	drain.c		the second thread
 *	look.c		leaks, and what memory consists of (snapshot/)
 *	save.c		heaps -> session, while they grow and at their end
 *	events.c	every call -> session, where that is asked for
 *	cpu.c		an engine of collect/ beside it
 *
 * Thread rule: one recording at a time, as it reaps children. x86-64 only, else AS_E_UNSUPPORTED.
 */
#ifndef AS_TRACK_TRACK_H
#define AS_TRACK_TRACK_H

#include "collect/collect.h"

/* How it stands: sums over all processes, as far as their rings were read. */
struct as_track_state {
	uint64_t elapsed_ns;
	uint64_t live_bytes, live_blocks, peak_bytes; /* peak: of each process at its own */
	uint64_t allocs, frees, events, dropped;
	uint64_t resident_bytes;
	size_t processes; /* that run */
};

struct as_track_request {
	char *const *argv;     /* NULL with pid */
	const char *folder;    /* where it runs; NULL: here */
	pid_t pid;             /* 0 with argv */
	uint64_t duration_ns;  /* 0: until it ends */
	uint64_t sample_bytes; /* 0: every block; else one is chosen in about so many bytes */
	const char *output;    /* session path */
	bool events;           /* every call is kept as well; not with sample_bytes */
	bool no_leaks; /* leaks are not looked for, nor what resident memory consists of */
	/* CPU samples are taken beside it, into the same session, by this engine (NULL: the best that
	 * can). cpu NULL: none. */
	const struct as_record_options *cpu;
	const char *engine;
	struct as_resolve_options resolve;
	const struct as_recording_note *notes; /* may be NULL */
	size_t nnotes;
	/* as in struct as_recording_request */
	const volatile int *interrupted, *interrupt_signal;
	/* Each time it grows, a mark "signal 1" … is made in all processes. NULL: never. */
	const volatile int *marks;
	/* Called every state_every_ns and at the end; NULL: not. */
	void (*state)(void *ctx, const struct as_track_state *s);
	void *state_ctx;
	uint64_t state_every_ns;
};

/*
 * Runs it from start to finished session. On failure after the target has started the target goes on,
 * and what was recorded stays. A program that cannot be patched runs, and a note says why it was not
 * seen. ret->samples: events.
 */
int as_track(const struct as_track_request *q, struct as_recording_outcome *ret,
	     struct as_error *err);

#endif

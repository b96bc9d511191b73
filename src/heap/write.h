/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Heaps -> records of a session (records.def, HEAP…). Threads and processes are the caller's records:
 * as_heap_thread was given the session's number of the thread.
 *
 *	struct as_heap_writer o;
 *	as_heap_writer_init(&o, w, &stacks);
 *	as_heap_write_stacks(&o);		FRAME and STACK, those that are new
 *	as_heap_write(&o, process, &drained);	once per process, after as_heap_finish
 *	as_heap_writer_clear(&o);
 *
 * Frames and stacks of the session are numbered as in `stacks`, from first_frame and first_stack on:
 * where something else has written some before, set those after init.
 */
#ifndef AS_HEAP_WRITE_H
#define AS_HEAP_WRITE_H

#include "heap/drain.h"
#include "session/session.h"

/* Blocks that lived for fewer allocations of their thread are churn. */
#define AS_HEAP_CHURN_ALLOCS 1024u

struct as_heap_writer {
	struct as_session_writer *w;
	const struct as_heap_stacks *stacks;
	uint32_t first_frame, first_stack;
	/* Where the caller has written the stacks itself: their numbers in the session + 1. */
	const uint32_t *stack_of;
	uint32_t nframes, nstacks; /* written so far */
	uint32_t nrows;
	AS_VEC(uint64_t) sizes, ages, times, last; /* lists of the record being written */
};

void as_heap_writer_init(struct as_heap_writer *o, struct as_session_writer *w,
			 const struct as_heap_stacks *stacks);
void as_heap_writer_clear(struct as_heap_writer *o);
void as_heap_write_stacks(struct as_heap_writer *o);
void as_heap_write(struct as_heap_writer *o, uint32_t process, const struct as_heap_drained *p);

/*
 * The same for a process that goes on, as often as wanted: rows that have changed are written anew, and
 * replace what was there. `last`: it has ended, as_heap_finish was called; otherwise as_heap_settle.
 */
struct as_heap_written_row {
	uint32_t tally;
	uint64_t version; /* what the row was made of; 0: it is not written */
};
struct as_heap_written {         /* zeroed before the first time */
	AS_VEC(uint32_t) row_of; /* by tally: the row's id; AS_HEAP_NONE: none */
	AS_VEC(struct as_heap_written_row) rows; /* in the order of their ids */
	uint64_t time_ns;                        /* the time line is written up to here */
	size_t marks;
};
void as_heap_write_so_far(struct as_heap_writer *o, uint32_t process,
			  const struct as_heap_drained *p, struct as_heap_written *so_far,
			  bool last);
void as_heap_written_clear(struct as_heap_written *w);

#endif

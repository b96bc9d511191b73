/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The event log of a recording of memory: events <-> HEAP_EVENTS records. Each record stands for itself:
 * what it holds is told as differences within it. docs/formats/session.md has the bytes.
 *
 *	struct as_log_out o = {0};
 *	as_log_put(&o, w, &event);		again and again: records of about 32 KiB
 *	as_log_flush(&o, w);			what is left
 *	as_log_clear(&o);
 *
 *	struct as_log_in in;			in a sink's heap_events
 *	as_log_begin(&in, record);
 *	while (as_log_next(&in, &event))
 *		…
 *	in.rd.bad: what follows made no sense
 *
 * Not thread safe. Cost: 10 to 20 ns an event either way.
 */
#ifndef AS_SESSION_LOG_H
#define AS_SESSION_LOG_H

#include "session/session.h"

enum as_log_kind {
	AS_LOG_ALLOC = 0,         /* address 0: it failed */
	AS_LOG_FREE = 1,          /* a realloc to nothing, too */
	AS_LOG_REALLOC_BEGIN = 2, /* the address may be given out again from here on */
	AS_LOG_REALLOC = 3,       /* of old; address 0: it failed, and the block stays */
	AS_LOG_MAP = 4,           /* what was mapped there before is unmapped */
	AS_LOG_UNMAP = 5,
	AS_LOG_UNMAP_FAILED = 6, /* the unmap before was of this range, and failed */
	AS_LOG_REMAP = 7,        /* of old and old_bytes */
	AS_LOG_KINDS = 8,
};

struct as_log_event {
	uint64_t time_ns;
	uint64_t address, size_bytes; /* size 0 where a kind has none */
	uint64_t old, old_bytes;      /* of REALLOC and REMAP; else 0 */
	uint32_t thread;
	uint32_t stack; /* STACK id + 1, 0: no frames; of the kinds that have one */
	enum as_log_kind kind;
};

static inline bool as_log_has_stack(enum as_log_kind kind)
{
	return kind == AS_LOG_ALLOC || kind == AS_LOG_REALLOC || kind == AS_LOG_MAP ||
	       kind == AS_LOG_REMAP;
}
static inline bool as_log_has_size(enum as_log_kind kind)
{
	return kind != AS_LOG_FREE && kind != AS_LOG_REALLOC_BEGIN;
}
static inline bool as_log_has_old(enum as_log_kind kind)
{
	return kind == AS_LOG_REALLOC || kind == AS_LOG_REMAP;
}

struct as_log_out {
	struct as_buf bytes;
	uint64_t begin_ns;        /* of the record that is being made */
	struct as_log_event last; /* what differences are to */
};
void as_log_put(struct as_log_out *o, struct as_session_writer *w,
		const struct as_log_event *e);
void as_log_flush(struct as_log_out *o, struct as_session_writer *w);
void as_log_clear(struct as_log_out *o);

struct as_log_in {
	struct as_rd rd;
	struct as_log_event last;
};
/* The record's bytes must last as long as it is read. */
void as_log_begin(struct as_log_in *in, const struct as_rec_heap_events *r);
bool as_log_next(struct as_log_in *in, struct as_log_event *ret);

#endif

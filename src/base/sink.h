/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Output as a stream: bytes are appended to `out` by whatever writes into an as_buf (text, JSON,
 * protobuf) and passed on in large pieces, packed with gzip where that was asked for. The first
 * failure sticks: what follows is dropped, and as_sink_finish tells. Memory stays at one piece
 * however much is written, as long as as_sink_spill is called now and then.
 *
 *	struct as_sink s;
 *	r = as_sink_open(&s, path, err);
 *	as_sink_gzip(&s);
 *	for (…) {
 *		as_buf_addf(&s.out, …);
 *		as_sink_spill(&s);
 *	}
 *	r = as_sink_finish(&s, err);
 *	as_sink_clear(&s);
 *
 * Not thread safe.
 */
#ifndef AS_BASE_SINK_H
#define AS_BASE_SINK_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"

struct as_gzip;
struct as_sink {
	struct as_buf out;   /* append here */
	uint64_t text_bytes; /* passed on so far, before packing */
	uint64_t bytes;      /* written so far */
	struct as_error failed;
	/* as_sink's own */
	int fd; /* -1: into `to` */
	struct as_buf *to;
	struct as_gzip *gz; /* NULL: as it is */
	char *path, *temp;  /* of a file that is renamed when finished; else NULL */
};

/* To a regular file by way of a temporary one beside it, which takes its name in as_sink_finish;
 * devices and pipes are written to, links followed. path NULL or "-": standard output. */
int as_sink_open(struct as_sink *s, const char *path, struct as_error *err);
void as_sink_init_fd(struct as_sink *s, int fd);             /* fd stays the caller's */
void as_sink_init_buf(struct as_sink *s, struct as_buf *to); /* appends */
/* All that follows is one gzip member. Once, before anything is written. The same input gives the
 * same bytes: no time stamp. */
void as_sink_gzip(struct as_sink *s);

#define AS_SINK_PIECE ((size_t)64 << 10)
void as_sink_pass_(struct as_sink *s);
/* Passes `out` on when it has grown to a piece. */
static inline void as_sink_spill(struct as_sink *s)
{
	if (s->out.len >= AS_SINK_PIECE)
		as_sink_pass_(s);
}
/* A negative status after the first failure: a long loop can end early. */
static inline int as_sink_status(const struct as_sink *s)
{
	return s->failed.status;
}
/* Writes what is left and gives the file its name. The first failure of all, if any; EPIPE has
 * sys_errno set. The temporary file is gone after a failure. */
int as_sink_finish(struct as_sink *s, struct as_error *err);
/* Frees; without as_sink_finish the file at path is as it was. Takes a zeroed sink. */
void as_sink_clear(struct as_sink *s);

#endif

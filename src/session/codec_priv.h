/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Bytes of one record <-> its struct, generated from records.def.
 *
 *	record	: uleb type, uleb payload length, payload
 *	payload	: the fields in order: U uleb, S sleb, T uleb length + bytes, V uleb count + ulebs
 *
 * A field called time_rel is absolute in the struct and relative to the chunk's base on disk;
 * the difference wraps, so a time before the base is merely longer. One called stack_rel is stored as the
 * difference to that of the last record of its type in the chunk: in the order of their stacks records
 * that follow each other are near. Missing trailing fields read as 0, and trailing zeros are not written.
 */
#ifndef AS_SESSION_CODEC_PRIV_H
#define AS_SESSION_CODEC_PRIV_H

#include "base/mem.h"
#include "session/session.h"

#define AS_CODEC_TEXT_MAX (1u << 20) /* bytes of one T field; the writer cuts longer ones */
#define AS_CODEC_LIST_MAX (1u << 16) /* numbers of one V field; likewise */

#define AS_CODEC_TYPES 64 /* ids of records.def are smaller */

struct as_codec_state {   /* zeroed at the start of a chunk */
	uint64_t time_ns; /* base */
	bool time_set;    /* by the chunk's first record with a time */
	uint64_t next_id[AS_CODEC_TYPES];
	uint64_t last_stack;
};

/* Appends the whole record. */
#define R(id, NAME, name, fields)                                                              \
	void as_codec_put_##name(struct as_buf *b, const struct as_rec_##name *r,              \
				 struct as_codec_state *s);
#include "session/records.def"
#undef R

struct as_codec_scratch { /* memory of V fields while their record is delivered */
	AS_VEC(uint64_t) list;
};

enum as_codec_result { AS_CODEC_OK, AS_CODEC_UNKNOWN, AS_CODEC_BAD };

struct as_codec_call {
	const struct as_record_sink *sink;
	struct as_codec_state state;
	struct as_codec_scratch *scratch;
	int status; /* what the sink's callback returned */
	bool end;   /* it was an END record, with this count: */
	uint64_t end_records;
};
/* Decodes one payload and hands it to the sink. */
enum as_codec_result as_codec_deliver(struct as_codec_call *c, uint64_t type, struct as_rd rd);

#endif

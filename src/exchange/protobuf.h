/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Writes protobuf's wire format into an as_buf: a key (field number << 3 | wire type), then a
 * varint, or a length and bytes. Source: the encoding guide at protobuf.dev. Fields that hold
 * their default (0, "") are left out, as proto3 does. A nested message is made in a buffer of its
 * own and added as bytes.
 *
 *	as_pb_u64(&line, 1, function);
 *	as_pb_bytes(&location, 4, line.p, line.len);
 */
#ifndef AS_EXCHANGE_PROTOBUF_H
#define AS_EXCHANGE_PROTOBUF_H

#include "base/buf.h"

void as_pb_u64(struct as_buf *b, unsigned field, uint64_t v);
void as_pb_bool(struct as_buf *b, unsigned field, bool v);
/* Written even when n is 0: an element of a repeated field. */
void as_pb_bytes(struct as_buf *b, unsigned field, const void *p, size_t n);
/* A repeated number in one piece; nothing when n is 0. */
void as_pb_packed(struct as_buf *b, unsigned field, const uint64_t *v, size_t n);

#endif

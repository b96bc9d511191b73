/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Protobuf's wire format: see protobuf.h. */
#include "exchange/protobuf.h"

enum { VARINT = 0, LENGTH = 2 };

static void key(struct as_buf *b, unsigned field, unsigned type)
{
	as_buf_uleb(b, (uint64_t)field << 3 | type);
}

static size_t varint_size(uint64_t v)
{
	size_t n = 1;

	while (v >= 0x80) {
		v >>= 7;
		n++;
	}
	return n;
}

void as_pb_u64(struct as_buf *b, unsigned field, uint64_t v)
{
	if (!v)
		return;
	key(b, field, VARINT);
	as_buf_uleb(b, v);
}

void as_pb_bool(struct as_buf *b, unsigned field, bool v)
{
	as_pb_u64(b, field, v);
}

void as_pb_bytes(struct as_buf *b, unsigned field, const void *p, size_t n)
{
	key(b, field, LENGTH);
	as_buf_uleb(b, n);
	as_buf_add(b, p, n);
}

void as_pb_packed(struct as_buf *b, unsigned field, const uint64_t *v, size_t n)
{
	size_t bytes = 0;
	char *at;

	if (!n)
		return;
	for (size_t i = 0; i < n; i++)
		bytes += varint_size(v[i]);
	key(b, field, LENGTH);
	as_buf_uleb(b, bytes);
	as_buf_reserve(b, bytes);
	at = b->p + b->len;
	for (size_t i = 0; i < n; i++) {
		uint64_t rest = v[i];

		for (; rest >= 0x80; rest >>= 7)
			*at++ = (char)(rest | 0x80);
		*at++ = (char)rest;
	}
	*at = '\0';
	b->len += bytes;
}

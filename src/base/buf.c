/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Growable bytes and the bounded reader: see buf.h. */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void as_buf_reserve(struct as_buf *b, size_t extra)
{
	size_t need;

	if (__builtin_add_overflow(b->len, extra, &need) || need > SIZE_MAX - 1)
		as_oom();
	need++; /* the NUL */
	if (need <= b->cap)
		return;

	size_t cap = b->cap < 64 ? 64 : b->cap + b->cap / 2;

	if (cap < need)
		cap = need;
	b->p = as_xrealloc(b->p, cap);
	b->cap = cap;
	b->p[b->len] = '\0';
}

void as_buf_add(struct as_buf *b, const void *p, size_t n)
{
	as_buf_reserve(b, n);
	if (n)
		memcpy(b->p + b->len, p, n);
	b->len += n;
	b->p[b->len] = '\0';
}

void as_buf_adds(struct as_buf *b, const char *s)
{
	as_buf_add(b, s, strlen(s));
}

void as_buf_addc(struct as_buf *b, char c)
{
	as_buf_reserve(b, 1);
	b->p[b->len++] = c;
	b->p[b->len] = '\0';
}

void as_buf_vaddf(struct as_buf *b, const char *fmt, va_list ap)
{
	va_list again;

	va_copy(again, ap);
	as_buf_reserve(b, 1);

	size_t room = b->cap - b->len;
	int n = vsnprintf(b->p + b->len, room, fmt, ap);

	if (n >= 0 && (size_t)n >= room) {
		as_buf_reserve(b, (size_t)n);
		n = vsnprintf(b->p + b->len, (size_t)n + 1, fmt, again);
	}
	va_end(again);
	if (n > 0)
		b->len += (size_t)n;
	b->p[b->len] = '\0';
}

void as_buf_addf(struct as_buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	as_buf_vaddf(b, fmt, ap);
	va_end(ap);
}

void as_buf_fill(struct as_buf *b, char c, size_t n)
{
	as_buf_reserve(b, n);
	memset(b->p + b->len, c, n);
	b->len += n;
	b->p[b->len] = '\0';
}

void as_buf_uleb(struct as_buf *b, uint64_t v)
{
	do {
		uint8_t byte = v & 0x7f;

		v >>= 7;
		as_buf_addc(b, (char)(byte | (v ? 0x80 : 0)));
	} while (v);
}

void as_buf_sleb(struct as_buf *b, int64_t v)
{
	for (;;) {
		uint8_t byte = v & 0x7f;

		v >>= 7; /* arithmetic in gcc and clang */
		if ((v == 0 && !(byte & 0x40)) || (v == -1 && (byte & 0x40))) {
			as_buf_addc(b, (char)byte);
			return;
		}
		as_buf_addc(b, (char)(byte | 0x80));
	}
}

static void add_le(struct as_buf *b, uint64_t v, unsigned size)
{
	char bytes[8];

	for (unsigned i = 0; i < size; i++)
		bytes[i] = (char)(v >> (8 * i));
	as_buf_add(b, bytes, size);
}

void as_buf_le32(struct as_buf *b, uint32_t v)
{
	add_le(b, v, 4);
}

void as_buf_le64(struct as_buf *b, uint64_t v)
{
	add_le(b, v, 8);
}

void as_buf_reset(struct as_buf *b)
{
	b->len = 0;
	if (b->p)
		b->p[0] = '\0';
}

void as_buf_clear(struct as_buf *b)
{
	free(b->p);
	*b = (struct as_buf){0};
}

char *as_buf_detach(struct as_buf *b)
{
	if (!b->p)
		as_buf_reserve(b, 0);

	char *p = b->p;

	*b = (struct as_buf){0};
	return p;
}

const char *as_buf_str(const struct as_buf *b)
{
	return b->p ? b->p : "";
}

/* Takes n bytes, or marks the reader bad for good. */
static const uint8_t *rd_take(struct as_rd *r, uint64_t n)
{
	if (r->bad || n > as_rd_left(r)) {
		r->bad = true;
		return NULL;
	}

	const uint8_t *p = r->p;

	r->p += n;
	return p;
}

uint64_t as_rd_uint(struct as_rd *r, unsigned size_bytes)
{
	if (size_bytes < 1 || size_bytes > 8) {
		r->bad = true;
		return 0;
	}

	const uint8_t *p = rd_take(r, size_bytes);
	uint64_t v = 0;

	if (!p)
		return 0;
	for (unsigned i = 0; i < size_bytes; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

uint8_t as_rd_u8(struct as_rd *r)
{
	const uint8_t *p = rd_take(r, 1);

	return p ? *p : 0;
}

uint16_t as_rd_u16(struct as_rd *r)
{
	const uint8_t *p = rd_take(r, 2);

	return p ? (uint16_t)(p[0] | p[1] << 8) : 0;
}

uint32_t as_rd_u32(struct as_rd *r)
{
	const uint8_t *p = rd_take(r, 4);

	return p ? as_get_le32(p) : 0;
}

uint64_t as_rd_u64(struct as_rd *r)
{
	const uint8_t *p = rd_take(r, 8);

	return p ? as_get_le64(p) : 0;
}

/*
 * LEB128. Padding beyond 64 bits is legal (linkers relax into padded forms) as long as it
 * carries no value: zero bits for unsigned, copies of the sign for signed. Bits that do not fit
 * are damage.
 */
uint64_t as_rd_uleb(struct as_rd *r)
{
	uint64_t v = 0;

	for (unsigned shift = 0;; shift = shift < 70 ? shift + 7 : shift) {
		const uint8_t *p = rd_take(r, 1);

		if (!p)
			return 0;

		uint64_t bits = *p & 0x7f;

		if ((shift > 63 && bits) || (shift == 63 && bits > 1)) {
			r->bad = true;
			return 0;
		}
		if (shift <= 63)
			v |= bits << shift;
		if (!(*p & 0x80))
			return v;
	}
}

int64_t as_rd_sleb(struct as_rd *r)
{
	uint64_t v = 0;

	for (unsigned shift = 0;; shift = shift < 70 ? shift + 7 : shift) {
		const uint8_t *p = rd_take(r, 1);

		if (!p)
			return 0;

		uint64_t bits = *p & 0x7f;

		if (shift < 63) {
			v |= bits << shift;
		} else if (shift == 63) {
			if (bits != 0 && bits != 0x7f) {
				r->bad = true;
				return 0;
			}
			v |= bits << 63;
		} else if (bits != (v >> 63 ? 0x7f : 0)) {
			r->bad = true;
			return 0;
		}
		if (*p & 0x80)
			continue;
		if (shift < 57 && (bits & 0x40))
			v |= ~(uint64_t)0 << (shift + 7);
		return (int64_t)v;
	}
}

const char *as_rd_cstr(struct as_rd *r)
{
	const uint8_t *nul = r->bad || r->p == r->end ? NULL : memchr(r->p, 0, as_rd_left(r));

	if (!nul) {
		r->bad = true;
		return "";
	}

	const char *s = (const char *)r->p;

	r->p = nul + 1;
	return s;
}

const uint8_t *as_rd_bytes(struct as_rd *r, size_t n)
{
	return rd_take(r, n);
}

void as_rd_skip(struct as_rd *r, uint64_t n)
{
	(void)rd_take(r, n); /* bad says it */
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * as_buf: growable bytes. Invariants: p is NUL-terminated at p[len] whenever p != NULL; len <
 * cap. Zero-initialised is valid and empty. as_rd: bounded reader over untrusted bytes; after a
 * read past the end `bad` is set, every later read yields 0, and the caller checks once.
 */
#ifndef AS_BASE_BUF_H
#define AS_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdarg.h>

struct as_buf {
	char *p;
	size_t len, cap;
};

void as_buf_reserve(struct as_buf *b, size_t extra);
void as_buf_add(struct as_buf *b, const void *p, size_t n);
void as_buf_adds(struct as_buf *b, const char *s);
void as_buf_addc(struct as_buf *b, char c);
void as_buf_addf(struct as_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void as_buf_vaddf(struct as_buf *b, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
void as_buf_fill(struct as_buf *b, char c, size_t n);
void as_buf_uleb(struct as_buf *b, uint64_t v);
void as_buf_sleb(struct as_buf *b, int64_t v);
void as_buf_le32(struct as_buf *b, uint32_t v);
void as_buf_le64(struct as_buf *b, uint64_t v);
void as_buf_reset(struct as_buf *b);   /* len = 0, memory kept */
void as_buf_clear(struct as_buf *b);   /* frees */
char *as_buf_detach(struct as_buf *b); /* the string (never NULL); caller frees; b is empty */
const char *as_buf_str(const struct as_buf *b); /* "" when empty */

struct as_rd {
	const uint8_t *p, *end;
	bool bad;
};
#define AS_RD(ptr, n)                                                                          \
	((struct as_rd){(const uint8_t *)(ptr), (const uint8_t *)(ptr) + (n), false})
static inline size_t as_rd_left(const struct as_rd *r)
{
	return (size_t)(r->end - r->p);
}
uint8_t as_rd_u8(struct as_rd *r);
uint16_t as_rd_u16(struct as_rd *r);
uint32_t as_rd_u32(struct as_rd *r);
uint64_t as_rd_u64(struct as_rd *r);
uint64_t as_rd_uint(struct as_rd *r, unsigned size_bytes); /* 1..8 bytes, little endian */
uint64_t as_rd_uleb(struct as_rd *r);
int64_t as_rd_sleb(struct as_rd *r);
const char *as_rd_cstr(struct as_rd *r);               /* "" and bad when unterminated */
const uint8_t *as_rd_bytes(struct as_rd *r, size_t n); /* NULL and bad when short */
void as_rd_skip(struct as_rd *r, uint64_t n);

static inline uint32_t as_get_le32(const void *p)
{
	const uint8_t *b = p;
	return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
	       (uint32_t)b[3] << 24;
}
static inline uint64_t as_get_le64(const void *p)
{
	return (uint64_t)as_get_le32(p) | (uint64_t)as_get_le32((const uint8_t *)p + 4) << 32;
}
/* crc: 0 to start with. SSE4.2 where present. */
uint32_t as_crc32c(uint32_t crc, const void *p, size_t n);
uint64_t as_hash64(const void *p, size_t n); /* fast, not cryptographic, stable across runs */

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * File and chunk headers, little endian:
 *
 *	file  (24)	0 magic[8] "ASSAYS1\n"	8 version	12 must-understand bits
 *			16 may-ignore bits	20 zero
 *	chunk (32)	0 "ACHK"		4 stored bytes	8 raw bytes	12 sequence from 0
 *			16 base time ns (8)	24 flags (1: zstd)
 *			28 CRC32C of the 28 bytes before it and of the stored bytes behind it
 */
#ifndef AS_SESSION_CHUNK_PRIV_H
#define AS_SESSION_CHUNK_PRIV_H

#include <stdint.h>
#include "base/buf.h"

#define AS_SESSION_VERSION  1u
#define AS_FILE_HEAD_BYTES  24u
#define AS_CHUNK_HEAD_BYTES 32u
#define AS_CHUNK_MAGIC      0x4b484341u /* "ACHK" */
#define AS_CHUNK_ZSTD       1u
/* A writer's chunk ends after 256 KiB and one record; more than this is damage. */
#define AS_CHUNK_RAW_MAX    (8u << 20)
#define AS_CHUNK_STORED_MAX (8u << 20)

struct as_chunk_head {
	uint32_t stored_bytes, raw_bytes, sequence, flags, crc;
	uint64_t base_ns;
};

static inline void as_chunk_put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static inline uint32_t as_chunk_crc(const uint8_t *head, const void *stored, size_t n)
{
	return as_crc32c(as_crc32c(0, head, AS_CHUNK_HEAD_BYTES - 4), stored, n);
}

/* Fills the 32 bytes at p; the stored bytes already stand behind them. */
static inline void as_chunk_put_head(const struct as_chunk_head *h, uint8_t *p)
{
	as_chunk_put32(p, AS_CHUNK_MAGIC);
	as_chunk_put32(p + 4, h->stored_bytes);
	as_chunk_put32(p + 8, h->raw_bytes);
	as_chunk_put32(p + 12, h->sequence);
	as_chunk_put32(p + 16, (uint32_t)h->base_ns);
	as_chunk_put32(p + 20, (uint32_t)(h->base_ns >> 32));
	as_chunk_put32(p + 24, h->flags);
	as_chunk_put32(p + 28, as_chunk_crc(p, p + AS_CHUNK_HEAD_BYTES, h->stored_bytes));
}

/* False when these 32 bytes are no chunk header of this version. */
static inline bool as_chunk_get_head(const uint8_t *p, struct as_chunk_head *ret)
{
	ret->stored_bytes = as_get_le32(p + 4);
	ret->raw_bytes = as_get_le32(p + 8);
	ret->sequence = as_get_le32(p + 12);
	ret->base_ns = as_get_le64(p + 16);
	ret->flags = as_get_le32(p + 24);
	ret->crc = as_get_le32(p + 28);
	return as_get_le32(p) == AS_CHUNK_MAGIC && ret->stored_bytes <= AS_CHUNK_STORED_MAX &&
	       ret->raw_bytes <= AS_CHUNK_RAW_MAX && !(ret->flags & ~AS_CHUNK_ZSTD);
}

#endif

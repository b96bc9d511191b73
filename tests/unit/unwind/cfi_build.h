/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Writes .eh_frame and .debug_frame by hand for tests: entries with patched lengths.
 *
 *	struct cfi_build c = {.svma = 0x5000};
 *	size_t cie = cfi_cie(&c, "zR", 0x1b, CFI_X86);
 *	cfi_fde(&c, cie, 0x1000, 0x40, (const uint8_t[]){0x41, 0x0e, 16}, 3);
 */
#ifndef AS_TESTS_CFI_BUILD_H
#define AS_TESTS_CFI_BUILD_H

#include <string.h>
#include "base/buf.h"
#include "base/mem.h"
#include "unwind/table.h"

struct cfi_build {
	struct as_buf b;
	uint64_t svma; /* of the section */
	bool debug_frame;
	bool wide;   /* 64-bit DWARF lengths */
	uint8_t enc; /* of the last CIE */
	bool augmented;
	unsigned version; /* 0: 1 in .eh_frame, 4 in .debug_frame */
};

enum cfi_machine { CFI_X86, CFI_ARM };

static inline size_t cfi_begin_entry(struct cfi_build *c)
{
	size_t at = c->b.len;
	if (c->wide)
		as_buf_le32(&c->b, 0xffffffff);
	if (c->wide)
		as_buf_le64(&c->b, 0);
	else
		as_buf_le32(&c->b, 0);
	return at;
}

static inline void cfi_end_entry(struct cfi_build *c, size_t at)
{
	size_t body = at + (c->wide ? 12 : 4);
	while ((c->b.len - body) % 4)
		as_buf_addc(&c->b, 0);
	uint64_t len = c->b.len - body;
	memcpy(c->b.p + at + (c->wide ? 4 : 0), &len, c->wide ? 8 : 4);
}

static inline void cfi_id(struct cfi_build *c, uint64_t v)
{
	if (c->wide && c->debug_frame)
		as_buf_le64(&c->b, v);
	else
		as_buf_le32(&c->b, (uint32_t)v);
}

static inline void cfi_pointer(struct cfi_build *c, unsigned enc, uint64_t v)
{
	uint64_t pos = c->svma + c->b.len;
	if ((enc & 0x70) == 0x10)
		v -= pos;
	switch (enc & 0x0f) {
	case 0x01:
		as_buf_uleb(&c->b, v);
		break;
	case 0x09:
		as_buf_sleb(&c->b, (int64_t)v);
		break;
	case 0x02:
	case 0x0a:
		as_buf_add(&c->b, &v, 2);
		break;
	case 0x03:
	case 0x0b:
		as_buf_le32(&c->b, (uint32_t)v);
		break;
	default:
		as_buf_le64(&c->b, v);
	}
}

static inline size_t cfi_cie(struct cfi_build *c, const char *aug, uint8_t enc,
			     enum cfi_machine m)
{
	static const uint8_t x86[] = {0x0c, 7, 8, 0x90, 1}, arm[] = {0x0c, 31, 0};
	size_t at = cfi_begin_entry(c);
	unsigned version = c->version ? c->version : c->debug_frame ? 4 : 1;
	cfi_id(c, c->debug_frame ? (c->wide ? UINT64_MAX : 0xffffffff) : 0);
	as_buf_addc(&c->b, (char)version);
	as_buf_add(&c->b, aug, strlen(aug) + 1);
	if (version == 4)
		as_buf_add(&c->b, "\x08\x00", 2);
	as_buf_uleb(&c->b, m == CFI_X86 ? 1 : 4);
	as_buf_sleb(&c->b, -8);
	as_buf_uleb(&c->b, m == CFI_X86 ? 16 : 30);
	c->augmented = aug[0] == 'z';
	c->enc = 0;
	if (c->augmented) {
		size_t len_at = c->b.len;
		as_buf_addc(&c->b, 0);
		for (aug++; *aug; aug++) {
			if (*aug == 'R')
				as_buf_addc(&c->b, (char)(c->enc = enc));
			else if (*aug == 'L')
				as_buf_addc(&c->b, 0x1b);
			else if (*aug == 'P') {
				as_buf_addc(&c->b, (char)0x9b);
				as_buf_le32(&c->b, 0x1234);
			}
		}
		c->b.p[len_at] = (char)(c->b.len - len_at - 1);
	}
	if (m == CFI_X86)
		as_buf_add(&c->b, x86, sizeof x86);
	else
		as_buf_add(&c->b, arm, sizeof arm);
	cfi_end_entry(c, at);
	return at;
}

static inline void cfi_fde(struct cfi_build *c, size_t cie, uint64_t start, uint64_t len,
			   const void *program, size_t n)
{
	size_t at = cfi_begin_entry(c);
	cfi_id(c, c->debug_frame ? cie : c->b.len - cie);
	cfi_pointer(c, c->enc, start);
	cfi_pointer(c, c->enc & 0x0f, len);
	if (c->augmented)
		as_buf_uleb(&c->b, 0);
	as_buf_add(&c->b, program, n);
	cfi_end_entry(c, at);
}

/* n bytes of program written in place: CFI_PROGRAM(0x41, 0x0e, 16) */
#define CFI_PROGRAM(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static inline struct as_cfi_input cfi_input(const struct cfi_build *c, enum as_arch arch)
{
	struct as_cfi_input in = {.arch = arch};
	struct as_bytes bytes = {(const uint8_t *)c->b.p, c->b.len};
	if (c->debug_frame)
		in.debug_frame = bytes;
	else
		in.eh_frame = bytes;
	in.eh_frame_svma = c->svma;
	return in;
}

#endif

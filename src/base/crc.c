/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * CRC-32C (polynomial 0x1edc6f41, reflected 0x82f63b78; RFC 3720 appendix B.4) and a 64-bit
 * hash of byte strings. The CRC uses the SSE4.2 instruction where the processor has it, else a
 * table of 16 entries (a nibble at a time: small, and nothing to initialise).
 */
#include "base/buf.h"

#include <string.h>

static uint32_t crc32c_table(uint32_t crc, const uint8_t *p, size_t n)
{
	static const uint32_t nibble[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
		0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
		0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};

	for (; n; n--) {
		crc ^= *p++;
		crc = nibble[crc & 15] ^ crc >> 4;
		crc = nibble[crc & 15] ^ crc >> 4;
	}
	return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const uint8_t *p,
							       size_t n)
{
	uint64_t c = crc;

	for (; n >= 8; p += 8, n -= 8)
		c = __builtin_ia32_crc32di(c, as_get_le64(p));
	crc = (uint32_t)c;
	for (; n; n--)
		crc = __builtin_ia32_crc32qi(crc, *p++);
	return crc;
}
#endif

uint32_t as_crc32c(uint32_t crc, const void *p, size_t n)
{
	crc = ~crc;
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		return ~crc32c_sse42(crc, p, n);
#endif
	return ~crc32c_table(crc, p, n);
}

/* Multiplies to 128 bits and folds: every input bit reaches every output bit. */
static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 m = (unsigned __int128)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* Odd constants from the fractional digits of pi and e; 32 bits set on average. */
#define K0 0x243f6a8885a308d3ull
#define K1 0x13198a2e03707345ull
#define K2 0xb7e151628aed2a6bull
#define K3 0xbf7158809cf4f3c7ull

uint64_t as_hash64(const void *data, size_t n)
{
	const uint8_t *p = data;
	uint64_t h = K0 ^ fold((uint64_t)n ^ K1, K2);
	size_t left = n;

	for (; left > 16; p += 16, left -= 16)
		h = fold(as_get_le64(p) ^ K1 ^ h, as_get_le64(p + 8) ^ K3) ^
		    (h << 23 | h >> 41);

	uint64_t a = 0, b = 0;

	if (left >= 8) {
		a = as_get_le64(p);
		b = as_get_le64(p + left - 8);
	} else if (left >= 4) {
		a = as_get_le32(p);
		b = as_get_le32(p + left - 4);
	} else if (left) {
		a = (uint64_t)p[0] << 16 | (uint64_t)p[left / 2] << 8 | p[left - 1];
	}
	return fold(fold(a ^ K2 ^ h, b ^ K1) ^ h, K3);
}

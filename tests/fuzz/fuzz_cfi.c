/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Unwind tables from arbitrary sections and code: compile, open, look up everywhere, extents,
 * and the blob's reader on arbitrary bytes. First byte: what the rest is (bit 0 aarch64, bit 1
 * also .debug_frame, bit 2 a zero ends it, bit 3 a blob, bit 4 code of a PLT, bits 5-7 share of
 * code).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "unwind/table.h"

static void look_up(const struct as_utable *t)
{
	struct as_rule r;
	for (uint64_t a = 0; a < 0x40000; a += 61)
		(void)as_utable_find(t, a, &r);
	for (unsigned bit = 10; bit < 64; bit++)
		(void)as_utable_find(t, (1ull << bit) - 1, &r);
}

static void read_blob(const uint8_t *data, size_t n)
{
	struct as_utable t;
	struct as_error err;
	uint8_t *copy = malloc(n + 32);
	memcpy(copy, data, n);
	if (n >= 32) {
		/* what the fuzzer cannot guess */
		uint32_t crc = as_crc32c(0, copy + 32, n - 32);
		uint64_t size = n;
		memcpy(copy, "ASUTAB1\n", 8);
		memcpy(copy + 16, &size, 8);
		memcpy(copy + 24, &crc, 4);
	}
	if (!as_utable_open(copy, n, &t, &err))
		look_up(&t);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (n < 1)
		return 0;
	uint8_t how = *data++;
	n--;
	if (how & 8) {
		read_blob(data, n);
		return 0;
	}
	size_t ncode = n * (how >> 5) / 8;
	struct as_code_range range = {0x3000, {data, ncode}, how & 16};
	struct as_bytes cfi = {data + ncode, n - ncode};
	struct as_cfi_input in = {
		.arch = how & 1 ? AS_ARCH_AARCH64 : AS_ARCH_X86_64,
		.eh_frame = cfi,
		.eh_frame_svma = 0x1000,
		.eh_frame_terminated_by_zero = how & 4,
		.code = &range,
		.ncode = 1,
		.entry_svma = 0x3010,
	};
	if (how & 2)
		in.debug_frame = cfi;
	struct as_buf out = {0};
	struct as_utable t;
	struct as_error err;
	struct as_extent *e = NULL;
	size_t ne;
	if (!as_utable_compile(&in, &out, NULL, &err)) {
		if (as_utable_open(out.p, out.len, &t, &err))
			abort(); /* what we write we can read */
		look_up(&t);
	}
	if (!as_cfi_extents(&in, &e, &ne, &err))
		free(e);
	as_buf_clear(&out);
	return 0;
}

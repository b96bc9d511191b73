/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gzip and base64 in one pass: see page.h. */
#include "view/page/page.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
	LEVEL = 6,        /* 9 takes three times as long for one percent */
	GZIP = 15 + 16,   /* window of 32 KiB; gzip's header instead of zlib's */
	CHUNK = 3 * 16384 /* a multiple of 3: base64 in between needs no padding */
};

static void add_base64(struct as_buf *out, const uint8_t *p, size_t n)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	as_buf_reserve(out, n / 3 * 4 + 8);
	for (; n; p += 3) {
		size_t k = AS_MIN(n, 3u);
		uint32_t v = (uint32_t)p[0] << 16 | (k > 1 ? (uint32_t)p[1] << 8 : 0) |
			     (k > 2 ? p[2] : 0);
		char four[4] = {digit[v >> 18], digit[v >> 12 & 63],
				k > 1 ? digit[v >> 6 & 63] : '=', k > 2 ? digit[v & 63] : '='};

		as_buf_add(out, four, 4);
		n -= k;
	}
}

void as_page_pack(const void *p, size_t n, struct as_buf *out)
{
	static const size_t at_once = 1u << 30; /* zlib counts in 32 bits */
	uint8_t *chunk = as_xmalloc(CHUNK);
	z_stream z = {.next_out = chunk, .avail_out = CHUNK};
	const uint8_t *at = p;
	int r = Z_OK;

	if (deflateInit2(&z, LEVEL, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		as_oom();
	while (r != Z_STREAM_END) {
		if (!z.avail_in) {
			z.next_in = (Bytef *)(uintptr_t)at;
			z.avail_in = (uInt)AS_MIN(n, at_once);
			at += z.avail_in;
			n -= z.avail_in;
		}
		r = deflate(&z, n ? Z_NO_FLUSH : Z_FINISH);
		if (!z.avail_out || r == Z_STREAM_END) {
			add_base64(out, chunk, CHUNK - z.avail_out);
			z.next_out = chunk;
			z.avail_out = CHUNK;
		}
	}
	(void)deflateEnd(&z); /* nothing is left in it */
	free(chunk);
}

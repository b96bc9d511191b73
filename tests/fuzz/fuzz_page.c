/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Any records as a session, and the page's data made of it: columns that the page's reader takes
 * (indices, areas), and the listings that such a session embeds. Seeds: those of fuzz_session.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "view/page/page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const void *bytes, size_t n)
{
	struct as_page_request q = {.embedded_only = true};
	struct as_model *m;
	struct as_buf b = {0};

	if (as_model_load_mem(bytes, n, &m, NULL) < 0)
		return;
	q.model = m;
	if (as_page_container(&q, &b, NULL) < 0 || b.len < 16 ||
	    memcmp(b.p, "ASVIEW1\n", 8) != 0 || 12 + (size_t)as_get_le32(b.p + 8) > b.len)
		abort();
	as_buf_clear(&b);
	for (uint32_t f = 0; f < m->functions.n && f < 4; f++) {
		struct as_listing_request r = {
			.model = m, .function = f, .embedded_only = true};
		struct as_listing *l;

		if (as_listing_make(&r, &l, NULL) < 0)
			continue;
		as_page_listing(m, l, &b);
		as_listing_free(l);
		as_buf_reset(&b);
	}
	as_buf_clear(&b);
	as_model_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct as_buf b = {0};

	if (size > 1u << 20)
		return 0;
	/* File header, then the input as the records of an uncompressed chunk. */
	as_buf_adds(&b, "ASSAYS1\n");
	as_buf_le32(&b, 1);
	as_buf_fill(&b, 0, 12);
	as_buf_adds(&b, "ACHK");
	as_buf_le32(&b, (uint32_t)size);
	as_buf_le32(&b, (uint32_t)size);
	as_buf_fill(&b, 0, 16);
	as_buf_le32(&b, as_crc32c(as_crc32c(0, b.p + 20, 28), data, size));
	as_buf_add(&b, data, size);
	use(b.p, b.len);
	as_buf_clear(&b);
	return 0;
}

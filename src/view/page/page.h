/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The page of `assay view`: one HTML file that stands alone. The page itself (web/, packed into
 * the binary) is the same for all sessions; what is made here is its data: the columns of the
 * session model, what the first screen says, and the text of the hottest functions. Layout of the
 * data: docs/formats/view.md.
 *
 *	struct as_page_request q = {.model = m, .file = "app.assay"};
 *	r = as_page_make(&q, &html, err);
 *
 * Everything from a session is data: it stands in base64 of gzip of JSON, never in the markup,
 * but for the program's name in <title>, which is escaped. Cost: linear in samples and stacks
 * (0.8 s of CPU for 1 M samples on 100 k stacks, a page of 11 MiB), and the listings'; memory of
 * 3 times the HTML, less than as_profile_make takes.
 * Thread rule: one page at a time per model (listings).
 */
#ifndef AS_VIEW_PAGE_H
#define AS_VIEW_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "model/model.h"
#include "view/listing/listing.h"

struct as_page_request {
	const struct as_model *model;
	const struct as_model *base; /* to compare with; NULL: none */
	const char *file; /* the session as the user named it; NULL: found by default */
	/* The filters the page begins with; by and shape are not looked at. The page holds the
	 * whole session all the same: its reader can take them away, and its first screen is of
	 * the whole. */
	struct as_query query;
	/* Of a session of memory: the page begins with what came and went between two of its marks, as
	 * as_heap_moments_find has them. since NULL: nothing is compared; since "" is the start, at ""
	 * the end. */
	const char *since, *at;
	bool plumbing;      /* begins with what stands between the program and its allocator */
	bool served;        /* may ask its server for listings (connect-src 'self') */
	bool no_listing;    /* without source and assembly */
	bool embedded_only; /* listings of the recording alone, nothing of this machine */
	const char *cache_dir; /* of symbol indexes, for listings; NULL: none */
};

/* Appends the document. AS_E_USAGE and AS_E_NOTFOUND as as_profile_make on the query, and on marks. */
int as_page_make(const struct as_page_request *q, struct as_buf *out, struct as_error *err);

/* ---- pieces, used by the server and by tests ---- */

/* The container before compression. */
int as_page_container(const struct as_page_request *q, struct as_buf *out,
		      struct as_error *err);
/* gzip (no name, no time: the same bytes for the same session), then base64 without line ends. */
void as_page_pack(const void *p, size_t n, struct as_buf *out);
/* The page's content security policy, for a header. */
void as_page_policy(bool served, struct as_buf *out);
/* One listing as a JSON object with its `sources` inlined; of very large functions only what stands
 * near sampled instructions. */
void as_page_listing(const struct as_model *m, const struct as_listing *l, struct as_buf *out);

#endif

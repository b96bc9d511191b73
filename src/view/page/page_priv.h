/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The container of the page while it is made: see page.h and docs/formats/view.md. */
#ifndef AS_VIEW_PAGE_PRIV_H
#define AS_VIEW_PAGE_PRIV_H

#include "base/json.h"
#include "base/map.h"
#include "view/page/page.h"

struct as_page {
	const struct as_page_request *q;
	const struct as_model *m;
	struct as_json j;          /* the header */
	struct as_buf area;        /* the columns */
	struct as_intern strings;  /* texts of columns; 0 is "" */
	struct as_map64 string_of; /* address of a text of the model -> index into strings */
};

/* columns.c: the tables that are columns, and "columns" of the header. */
void as_page_columns(struct as_page *p);
/* meta.c: "meta": all that the first screen shows, which is of the whole session. */
void as_page_meta(struct as_page *p, const struct as_profile *whole);
/* memory.c: "memory" of meta, in a session of memory. */
void as_page_memory(struct as_page *p);
/* listing.c: "listings" and "sources" of the hottest functions, within a budget: those under
 * the page's filters first. */
void as_page_listings(struct as_page *p, const struct as_profile *filtered,
		      const struct as_profile *whole);

/* pick.c: sets keep[i] for the instructions to show, all when there are at most max, else those
 * nearest to sampled ones; returns how many. */
size_t as_page_pick(const struct as_model *m, const struct as_listing *l, size_t max,
		    uint8_t *keep);

/* Numbers of JavaScript are exact below 2^53. Addresses beyond are the kernel's, whose upper 16 bits
 * are all ones: they are left out. */
#define AS_PAGE_ADDR_MAX (1ull << 53)
static inline uint64_t as_page_addr(uint64_t addr)
{
	return addr < AS_PAGE_ADDR_MAX ? addr : addr & ((1ull << 48) - 1);
}

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The container of the page while it is made: see page.h and docs/formats/view.md. */
#ifndef AS_VIEW_PAGE_PRIV_H
#define AS_VIEW_PAGE_PRIV_H

#include "base/json.h"
#include "base/map.h"
#include "view/page/page.h"

struct as_page_mark_row { /* live bytes of a row of the heap at a moment of the page */
	uint32_t moment, row;
	uint64_t bytes;
};
struct as_page_marks {
	struct as_heap_moments all;
	uint32_t *id; /* of each: its number on the page; AS_NONE: left out */
	size_t n;
	AS_VEC(struct as_page_mark_row) rows;
	uint32_t since,
		at; /* what the page begins with; AS_NONE: nothing, or the start, or the end */
};

struct as_page {
	const struct as_page_request *q;
	const struct as_model *m;
	struct as_json j;           /* the header */
	struct as_buf area;         /* the columns */
	struct as_intern strings;   /* texts of columns; 0 is "" */
	struct as_page_marks marks; /* of a session of memory */
	struct as_map64 string_of;  /* address of a text of the model -> index into strings */
};

/* columns.c: the tables that are columns, and "columns" of the header. */
void as_page_columns(struct as_page *p);
/* meta.c: "meta": all that the first screen shows, which is of the whole session. */
void as_page_meta(struct as_page *p, const struct as_profile *whole);
/* memory.c: "memory" of meta, in a session of memory. */
void as_page_memory(struct as_page *p);
/* marks.c: what was live at marks. AS_E_NOTFOUND when the request names a mark that there is not. */
int as_page_marks_make(struct as_page *p, struct as_error *err);
void as_page_marks_clear(struct as_page_marks *k);
uint64_t as_page_moment(const struct as_page_marks *k, uint32_t moment);
/* "moments" of "memory". */
void as_page_moments(struct as_page *p);
/* looks.c: "leaks" and "resident" of "memory". */
void as_page_looks(struct as_page *p);
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

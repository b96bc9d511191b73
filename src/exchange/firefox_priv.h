/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The Firefox Profiler's processed profile, between its two files: firefox_tables.c writes what all
 * threads share (libs, shared), firefox.c the head and the threads.
 *
 * Pinned to processed version 70. The number moves every few weeks, and every reader brings what is
 * older up to date while loading, so it is never chased. 70 because it is the first in which a frame
 * names its library itself: before, the library hung at the function, and a function that is inlined
 * into two libraries (any generic of a workspace with several binaries) had a wrong address in one.
 * Source: docs-developer/CHANGELOG-formats.md and src/types/profile.ts of firefox-devtools/profiler.
 *
 * Entries of the frame table: the selection's shown places in their order, then a marker per reason
 * why stacks are cut, then "[no frames]".
 */
#ifndef AS_EXCHANGE_FIREFOX_PRIV_H
#define AS_EXCHANGE_FIREFOX_PRIV_H

#include "base/json.h"
#include "exchange/exchange_priv.h"
#include "exchange/timeline_priv.h"

#define AS_FIREFOX_VERSION       70
/* Of the format that browsers write: processed profiles must name one, and readers ignore it. */
#define AS_FIREFOX_GECKO_VERSION 24

struct as_fx {
	const struct as_selection *s;
	const struct as_export_options *o;
	struct as_sink *out;
	struct as_json j;
	uint32_t *stack_of_group; /* index into the stack table that is written */
	uint32_t lost_name;       /* string number of the marker's name */
};

/* Members of the document: "libs", "shared". Fills stack_of_group and lost_name. */
void as_fx_tables(struct as_fx *x);

/* firefox_memory.c: members of a thread, and of the document, of a session of memory. threads: in the
 * order of the document. */
void as_fx_native_allocations(struct as_fx *x, uint32_t thread);
void as_fx_memory_counters(struct as_fx *x, const uint32_t *threads, size_t n);

/* A column of a table, as [a,b,c]: begin, put each, end. */
static inline void as_fx_next(struct as_fx *x, bool *first)
{
	if (!*first)
		as_buf_addc(&x->out->out, ',');
	*first = false;
	as_sink_spill(x->out);
}

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where a source file may be (source_where.c), for source.c. */
#ifndef AS_CODE_SOURCE_PRIV_H
#define AS_CODE_SOURCE_PRIV_H

#include "code/source.h"

/* A place to try. fixed: files there never change. True ends the search. */
typedef bool (*as_source_try_fn)(void *ctx, const char *root, const char *path, bool fixed);
/* Calls fn for each place in order; notes gets a line for a place that was ruled out. */
bool as_source_places(const struct as_source_query *q, as_source_try_fn fn, void *ctx,
		      struct as_buf *notes);

/* The sentence for a file of Rust's library that is not there; NULL: it is no such file. */
const char *as_source_remedy(const struct as_source_query *q);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A bounded folder of files made from other files (unwind tables, symbol indexes): written by
 * temporary name and rename, so that a reader sees a whole file or none; the oldest go when the
 * folder grows past its budget. Names are made by the caller from build-ids (hex), never from
 * target text. All failures are silent but told by the return value: a cache may not cost a run.
 */
#ifndef AS_BASE_CACHE_H
#define AS_BASE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* dir/kind/name; dir and kind are created. Files of dir/kind beyond max_bytes in all are
 * removed, least recently used first. */
bool as_cache_put(const char *dir, const char *kind, const char *name, const void *p, size_t n,
		  uint64_t max_bytes);
/* Maps a file read-only; marks it used. NULL when absent or empty. Unmap with as_cache_unmap. */
void *as_cache_map(const char *dir, const char *kind, const char *name, size_t *ret_n);
void as_cache_unmap(void *p, size_t n);
/* For a file found damaged. */
void as_cache_remove(const char *dir, const char *kind, const char *name);

#endif

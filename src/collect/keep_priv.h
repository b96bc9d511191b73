/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Source lines for keep.c: wanted while modules are open, read and written at the end. */
#ifndef AS_COLLECT_KEEP_PRIV_H
#define AS_COLLECT_KEEP_PRIV_H

#include "collect/resolve_priv.h"

struct as_keep_sources;
struct as_keep_sources *as_keep_sources_new(const char *const *source_dirs);
void as_keep_sources_free(struct as_keep_sources *s); /* NULL is fine */
/* The module that what is wanted next belongs to: its root (or NULL), when its file was made. */
void as_keep_sources_module(struct as_keep_sources *s, const char *root, uint64_t newest_ns);
/* Lines lo … hi of file with `context` around them; heat: samples, the hottest files go first. */
void as_keep_sources_want(struct as_keep_sources *s, const char *file, uint32_t lo, uint32_t hi,
			  uint32_t context, uint64_t heat);
void as_keep_sources_write(struct as_resolver *v, struct as_keep_sources *s);

#endif

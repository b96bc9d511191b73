/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* /tmp/perf-PID.map: "START SIZE name" lines (hex, hex, rest of line). A later line wins where
 * ranges overlap, since JITs append when code moves. Damaged lines are counted and skipped. */
#ifndef AS_SYMBOL_PERFMAP_H
#define AS_SYMBOL_PERFMAP_H

#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct as_perfmap;
int as_perfmap_parse(const char *text, size_t n, struct as_perfmap **ret, struct as_error *err);
/* Reads /tmp/perf-<nspid>.map through root (/proc/PID/root) as a regular file owned by the
 * target's user or root. */
int as_perfmap_load(const char *root, int nspid, struct as_perfmap **ret, struct as_error *err);
void as_perfmap_free(struct as_perfmap *p);
const char *as_perfmap_find(const struct as_perfmap *p, uint64_t avma, uint64_t *ret_start);
size_t as_perfmap_skipped(const struct as_perfmap *p);

#endif

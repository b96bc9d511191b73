/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The parts of a comparison of memory as text: diff.c has what stands around the rows. */
#ifndef AS_VIEW_MEMORY_DIFF_PRIV_H
#define AS_VIEW_MEMORY_DIFF_PRIV_H

#include "view/memory/diff.h"
#include "view/text/table.h"

enum { AS_MEMORY_DIFF_NAME = 5 };
/* heading: of the names. */
void as_memory_diff_columns(const struct as_heap_diff *d, const char *heading,
			    struct as_table *t);
void as_memory_diff_row(const struct as_heap_diff *d, const struct as_heap_diff_row *r,
			const struct as_style *style, struct as_table *t);
/* "+1.20 MiB", "−340 B", "0 B" */
void as_memory_diff_change(const struct as_heap_diff *d, uint64_t a, uint64_t b,
			   struct as_buf *out);
void as_memory_diff_amount(const struct as_heap_diff *d, uint64_t n, struct as_buf *out);
/* Calls of both sides as one tree: the branches that hold a change. */
void as_memory_diff_tree(const struct as_memory_diff_view *v, const struct as_style *style,
			 struct as_buf *out);

#endif

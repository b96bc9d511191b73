/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The parts of a comparison as text: diff.c has what stands around the rows. */
#ifndef AS_VIEW_DIFF_PRIV_H
#define AS_VIEW_DIFF_PRIV_H

#include "view/diff/diff.h"
#include "view/text/table.h"

void as_diff_rows_text(const struct as_diff_view *v, const struct as_style *style,
		       struct as_buf *out);
void as_diff_tree_text(const struct as_diff_view *v, const struct as_style *style,
		       struct as_buf *out);

/* Columns of both; the last two are the name and where it is. */
enum { AS_DIFF_NAME = 5 };
void as_diff_columns(const struct as_diff *d, const struct as_style *style, const char *name,
		     struct as_table *t);
void as_diff_row(const struct as_diff *d, const struct as_diff_row *r,
		 const struct as_style *style, struct as_table *t);

#endif

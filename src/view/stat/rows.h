/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rows over time: as a table that fits the terminal, lines of JSON (docs/formats/stat-json.md), or CSV.
 *
 *	struct as_stat_rows s;
 *	as_stat_rows_init(&s, plan, style, AS_STAT_TEXT);
 *	as_stat_rows_add(&s, &row, &out);		// with the heading when one is due
 */
#ifndef AS_VIEW_STAT_ROWS_H
#define AS_VIEW_STAT_ROWS_H

#include "measure/plan.h"
#include "measure/watch.h"
#include "view/text/style.h"

enum as_stat_format {
	AS_STAT_TEXT,
	AS_STAT_JSON,
	AS_STAT_CSV
}; /* order of the option's choices */

struct as_stat_rows {
	const struct as_plan *plan;
	struct as_style style;
	enum as_stat_format format;
	bool asked; /* figures were chosen by name: all of them are columns */
	size_t given;
	int column[AS_ROWS_MAX]; /* rows of the plan that are shown, from the left */
	size_t columns, left_out;
};
void as_stat_rows_init(struct as_stat_rows *s, const struct as_plan *plan,
		       const struct as_style *style, enum as_stat_format format, bool asked);
void as_stat_rows_add(struct as_stat_rows *s, const struct as_watch_row *row,
		      struct as_buf *out);
/* What the table had no room for; text only. */
void as_stat_rows_end(const struct as_stat_rows *s, struct as_buf *out);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pieces that tables of runs and of intervals share. */
#ifndef AS_VIEW_STAT_PRIV_H
#define AS_VIEW_STAT_PRIV_H

#include "measure/plan.h"
#include "view/text/style.h"

/* "12.4 ms", "3.1 MiB", "93 %", "21,640" */
void as_stat_value(struct as_buf *out, const struct as_metric_info *info, double x);
/* ",name", as a field of CSV. */
void as_stat_csv_name(struct as_buf *out, const char *name);
/* The event's name as it is, a figure's with blanks. */
void as_stat_row_name(struct as_buf *out, const struct as_plan *p, int row);
/* What the plan could not have, a line each. */
void as_stat_notes(const struct as_plan *p, bool asked, struct as_buf *out);

#endif

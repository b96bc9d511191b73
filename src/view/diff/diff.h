/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A comparison of sessions as text and JSON (docs/formats/diff-json.md), limits a build may not
 * pass, and the calibration that shows how often identical halves are called different.
 */
#ifndef AS_VIEW_DIFF_H
#define AS_VIEW_DIFF_H

#include "model/diff/diff.h"
#include "view/text/style.h"

struct as_diff_view {
	const struct as_diff *diff;
	uint64_t top; /* unresolved rows shown at most; 0: 10. Resolved ones are all shown */
};
void as_diff_text(const struct as_diff_view *v, const struct as_style *style,
		  struct as_buf *out);
void as_diff_json(const struct as_diff_view *v, struct as_buf *out);

/*
 * "total(parse) > +5%": self or total of a function grows by more than 5 % of what it was;
 * "self(parse) > +2pp": by more than 2 percentage points of all CPU time. Not met only when the
 * whole interval is beyond the limit. A function that neither side has is AS_E_NOTFOUND; several
 * that match (exact name, else part of one) are all held to it.
 */
struct as_limit {
	bool total, points; /* points: of share, else relative */
	double value;       /* fraction */
	char *name;
};
int as_limit_parse(const char *text, struct as_limit *ret, struct as_error *err);
void as_limit_clear(struct as_limit *l);
/* d: made with request.total == l->total. Appends a line for every row beyond the limit. */
int as_limit_check(const struct as_limit *l, const struct as_diff *d, struct as_buf *out,
		   bool *ret_beyond, struct as_error *err);

/* Halves of one session, drawn at random by time, compared `times` times. */
struct as_calibration {
	uint64_t times, rows; /* comparisons; rows that could be found, in all of them */
	uint64_t false_rows, false_times; /* called up or down; comparisons with any */
};
int as_diff_calibrate(const struct as_model *m, const struct as_diff_request *q, uint64_t times,
		      struct as_calibration *ret, struct as_error *err);
void as_calibration_text(const struct as_calibration *c, struct as_buf *out);

#endif

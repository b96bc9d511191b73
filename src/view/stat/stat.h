/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What runs of a command said, as text, JSON (docs/formats/stat-json.md) and CSV.
 */
#ifndef AS_VIEW_STAT_H
#define AS_VIEW_STAT_H

#include "measure/plan.h"
#include "measure/repeat.h"
#include "view/text/style.h"

struct as_stat_view {
	const struct as_repeat_request *request;
	const struct as_repeat *repeat;
	const struct as_plan *plan; /* rows to show; those never measured are left out */
	const char *baseline;       /* of --baseline: which one; NULL: none */
	const char *title;          /* of what was attached to; NULL: the command */
	pid_t pid;                  /* the same; 0: none */
	bool one_line;              /* JSON */
	bool asked;                 /* rows were chosen by name */
	/* what sets the two apart besides the build, a line each; NULL: nothing */
	const char *baseline_note;
	bool all;            /* also those that are 0 in every run */
	bool unoptimised[2]; /* the program of each command is known to be */
};
void as_stat_text(const struct as_stat_view *v, const struct as_style *style,
		  struct as_buf *out);
void as_stat_json(const struct as_stat_view *v, struct as_buf *out);
void as_stat_csv(const struct as_stat_view *v, struct as_buf *out); /* a line per run */

#endif

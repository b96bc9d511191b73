/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What record prints when the program has ended: one line about the run, the hottest functions
 * with what can and cannot be ranked, trust block, next steps.
 */
#ifndef AS_VIEW_SUMMARY_H
#define AS_VIEW_SUMMARY_H

#include "model/memory/alloc_time.h"
#include "view/text/style.h"

struct as_summary_request {
	const struct as_model *model;
	const char *
		file; /* as later commands must name it; NULL when they find it by themselves */
	const struct as_alloc_time *alloc_time; /* as in struct as_report_request */
};
int as_summary_text(const struct as_summary_request *s, const struct as_style *style,
		    struct as_buf *out, struct as_error *err);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What record prints when the program has ended: one line about the run, the hottest functions
 * with what can and cannot be ranked, trust block, next steps.
 */
#ifndef AS_VIEW_SUMMARY_H
#define AS_VIEW_SUMMARY_H

#include "view/text/style.h"

/* file: the session as later commands must name it; NULL when they find it by themselves. */
int as_summary_text(const struct as_model *m, const char *file, const struct as_style *style,
		    struct as_buf *out, struct as_error *err);

#endif

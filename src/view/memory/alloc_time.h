/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What reports say of CPU time that memory costs (model/memory/alloc_time.h). */
#ifndef AS_VIEW_ALLOC_TIME_H
#define AS_VIEW_ALLOC_TIME_H

#include "base/json.h"
#include "model/memory/alloc_time.h"
#include "view/text/style.h"

/* What it comes to, then the lines that cost most, with what they allocate and what would help. */
void as_alloc_time_text(const struct as_model *m, const struct as_alloc_time *t,
			const struct as_style *style, struct as_buf *out);
void as_alloc_time_json(const struct as_model *m, const struct as_alloc_time *t,
			struct as_json *j); /* "alloc_time": {…} */
/* "growing 81 %, freeing 19 %": what ns were spent on, by kind; nothing of 0. */
void as_alloc_time_split(const uint64_t ns[AS_ALLOC_KINDS], struct as_buf *out);

#endif

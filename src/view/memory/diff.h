/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A comparison of memory as text and JSON (docs/formats/diff-json.md). Figures were counted: there are
 * no verdicts, only differences. */
#ifndef AS_VIEW_MEMORY_DIFF_H
#define AS_VIEW_MEMORY_DIFF_H

#include "model/memory/diff.h"
#include "view/text/style.h"

struct as_memory_diff_view {
	const struct as_heap_diff *diff;
	uint64_t top; /* rows shown at most; 0: 20 in text, all in JSON */
};
void as_memory_diff_text(const struct as_memory_diff_view *v, const struct as_style *style,
			 struct as_buf *out);
void as_memory_diff_json(const struct as_memory_diff_view *v, struct as_buf *out);

#endif

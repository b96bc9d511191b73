/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Leaks and resident memory, of sessions that looked for them: beside the table of a report. */
#ifndef AS_VIEW_LEAKS_H
#define AS_VIEW_LEAKS_H

#include "base/json.h"
#include "view/text/style.h"

/* Each stack that lost blocks, once, with what these lead to; then the other classes in one line. Nothing
 * when leaks were not looked for. */
void as_leaks_text(const struct as_model *m, const struct as_style *style, struct as_buf *out);
/* What resident memory consists of, and which stacks keep pages that are nearly empty. */
void as_resident_text(const struct as_model *m, const struct as_style *style,
		      struct as_buf *out);
/* What resident memory consists of, by number from 0 on: "free, held by the allocator" and a key, "held";
 * NULL: there is no such kind. */
const char *as_resident_kind(unsigned kind, const char **ret_key);
/* "libc.so.6": a part's name without its folder; "" where it has none. */
const char *as_resident_name(const struct as_m_rss_part *p);
/* "leaks": {…} and "resident": […], docs/formats/report-json.md; null when not looked for. */
void as_leaks_json(const struct as_model *m, struct as_json *j);
void as_resident_json(const struct as_model *m, struct as_json *j);

#endif

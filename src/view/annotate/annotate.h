/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * assay annotate: one function with its cost by source line and by instruction, as text for the
 * terminal or as JSON (docs/formats/annotate-json.md).
 *
 *	struct as_annotate_request q = {.model = m, .function = "tokenize"};
 *	r = as_annotate_make(&q, &style, &out, err);
 *
 * Three sources meet here: the cost (model/profile/annotate.h), the text (view/listing/listing.h),
 * and what people call the function. Text and cost meet at svmas and at inline chains; where the text
 * is missing the costs stand alone, at file:line and at addresses, and a note says where was looked.
 *
 * The text shows, per line of the function: the line, below it what was inlined there (indented,
 * with file:line), below each place its instructions. What has less than 0.5 % of the function's
 * samples is folded ("⋯ 34 lines without samples"), but for `context` rows around the rest.
 */
#ifndef AS_VIEW_ANNOTATE_H
#define AS_VIEW_ANNOTATE_H

#include "model/profile/annotate.h"
#include "view/listing/listing.h"
#include "view/text/style.h"

enum as_annotate_show { AS_ANNOTATE_BOTH, AS_ANNOTATE_SOURCE, AS_ANNOTATE_ASM };
enum as_annotate_format { AS_ANNOTATE_TEXT, AS_ANNOTATE_JSON };    /* order of --format */
enum as_annotate_of { AS_ANNOTATE_PROGRAM, AS_ANNOTATE_FUNCTION }; /* order of --percent */

struct as_annotate_request {
	const struct as_model *model;
	struct as_query query; /* filters */
	const char *function;  /* a name as as_functions_find takes it */
	enum as_annotate_show show;
	enum as_annotate_format format;
	enum as_annotate_of of; /* text: what shares are of */
	int64_t context;        /* rows around those with cost; < 0: 3 */
	bool full;              /* fold nothing */
	bool embedded_only;     /* as in a listing request, like the next two */
	const char *cache_dir;
	const char *const *roots;
	const char *file; /* the session as the user named it; NULL: found by default */
};

/* AS_E_NOTFOUND with near names; AS_E_USAGE when a name fits too many functions to choose. */
int as_annotate_make(const struct as_annotate_request *q, const struct as_style *style,
		     struct as_buf *out, struct as_error *err);

/* ---- pieces, used by tests ---- */

struct as_annotate_view {
	const struct as_annotate_request *q;
	const struct as_annotation *a;
	const struct as_listing *l;
	const struct as_function_matches *matches; /* the first is shown */
};
void as_annotate_text(const struct as_annotate_view *v, const struct as_style *style,
		      struct as_buf *out);
void as_annotate_json(const struct as_annotate_view *v, struct as_buf *out);

#endif

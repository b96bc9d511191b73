/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Flame graphs: one SVG file that stands alone. It is a plain picture where scripts do not run;
 * in a browser it zooms, searches and answers to the keyboard. No network, no fonts, nothing
 * outside the file.
 *
 * Layout (layout.c) and drawing (svg.c) are apart: the layout turns a call tree
 * into boxes in fractions of the width and rows of depth. What cannot be seen is not drawn but
 * counted: boxes narrower than `min_width`, and the middle of stacks deeper than
 * AS_FLAME_DEPTH, which becomes one box that says how many frames it stands for; the frames
 * nearest to the leaf are drawn below it, merged. The widths of a row's boxes sum up to at most
 * the whole, always.
 */
#ifndef AS_VIEW_FLAME_H
#define AS_VIEW_FLAME_H

#include <stdbool.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "model/model.h"

#define AS_FLAME_DEPTH     128          /* rows from the root before the middle is folded */
#define AS_FLAME_TAIL      24           /* rows kept at the leaf end of folded stacks */
#define AS_FLAME_BOXES     20000        /* boxes drawn at most: bounds the file at about 5 MB */
#define AS_FLAME_MIN_WIDTH (0.1 / 1200) /* a tenth of a pixel of a usual window */

struct as_flame_request {
	const struct as_model *model;
	struct as_query query; /* scope and filters; by and shape are set here */
	const char *title;     /* NULL: the recorded command */
	bool inverted, by_thread, full_names;
};
/* Appends the document to out. AS_E_USAGE as as_profile_make. */
int as_flame_svg(const struct as_flame_request *q, struct as_buf *out, struct as_error *err);

struct as_diff;
/*
 * Both sides of a comparison in one picture: a box is as wide as the mean of its shares on the two
 * sides, so that what is gone and what is new both show; red where it takes more, blue where less,
 * the stronger the larger the change; grey where the change is not resolved or is one of the share
 * alone. diff: made with request.tree; q->model: of its second side, query as in its request.
 */
int as_flame_diff_svg(const struct as_flame_request *q, const struct as_diff *diff,
		      struct as_buf *out, struct as_error *err);

struct as_heap_diff;
/* The same of two sessions of memory, where every difference is one: grey is what is the same. */
int as_flame_memory_diff_svg(const struct as_flame_request *q, const struct as_heap_diff *diff,
			     struct as_buf *out, struct as_error *err);

/* ---- the layout ---- */

struct as_box {
	double x, width, self; /* fractions of the whole */
	uint32_t depth;        /* 0: the root */
	uint32_t key;          /* of the profile; AS_NONE: root or folded */
	uint32_t node;         /* of the profile; AS_NONE: folded, or below what is */
	uint32_t folded;       /* > 0: stands for up to this many frames */
	uint32_t folded_key;   /* the function most of them are, AS_NONE: several */
	uint64_t samples;
	double low, high; /* interval of width as a share; NaN: not known */
};
struct as_flame {
	AS_VEC(struct as_box) boxes; /* parents before children */
	uint32_t rows;               /* depth of the deepest box + 1 */
	uint64_t hidden;             /* nodes not drawn, as too narrow */
	double hidden_width;         /* time whose own box is not drawn, a fraction */
	double min_width;
};
void as_flame_layout(const struct as_profile *p, struct as_flame *ret);
void as_flame_clear(struct as_flame *f);

#endif

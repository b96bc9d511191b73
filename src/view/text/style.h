/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How text is shown: width, colour, and the small formats all views share. Colour carries a
 * meaning once (bad, uncertain) and never alone. Everything appends to an as_buf.
 */
#ifndef AS_VIEW_STYLE_H
#define AS_VIEW_STYLE_H

#include <stdbool.h>
#include <stddef.h>
#include "base/buf.h"
#include "model/model.h"

struct as_style {
	int width; /* columns */
	bool color;
	bool full_names; /* no short forms, nothing cut */
};

enum as_ink { AS_INK_PLAIN, AS_INK_BAD, AS_INK_UNSURE, AS_INK_FAINT, AS_INK_STRONG };
void as_style_ink(const struct as_style *s, struct as_buf *out, enum as_ink ink);

/* At most `width` columns; what does not fit is taken from the middle and becomes "…". Control
 * characters are shown as \xNN. */
void as_style_cut(struct as_buf *out, const char *text, size_t width);
/*
 * "23.1 ±0.8": value and half of the interval. "2.5 ≤8.6": value and upper end, where the interval
 * is wider than the value; "97.0 ≥80.1" likewise towards all, and "99.8 ±0.6" the distance to the
 * lower end where the upper one is all. "≤ 0.4": nothing or nearly nothing seen, and the upper end.
 * "50.0": no interval, or one too small to matter.
 */
void as_style_share(struct as_buf *out, const struct as_share *s);
/* Half the interval, 0..1; NaN where there is none. */
double as_style_half(const struct as_share *s);
/* "libc" of "libc.so.6", "python3" of "python3.11". */
void as_style_module(struct as_buf *out, const char *name);
/* A source path without what all of them share: the working directory, cargo's registry,
 * rustc's build directory. */
void as_style_path(struct as_buf *out, const struct as_model *m, const char *path);
/* The row's file, which is set: as as_style_where shows the program's own, else as a path. */
void as_style_file(struct as_buf *out, const struct as_model *m, const struct as_row *row);
/*
 * Where a function comes from, in few letters: file:line for the program's own code (files
 * below the recorded working directory or compiled with relative paths), else its crate, else
 * its module.
 */
void as_style_where(struct as_buf *out, const struct as_model *m, const struct as_row *row);
/* True for what as_style_where shows as file:line. */
bool as_style_is_own(const struct as_model *m, const struct as_row *row);
/* True when a terminal can show text as it is: no control characters, no broken UTF-8. */
bool as_style_plain(const char *text);
/* A word for a shell: quoted when it must be. For plain text only. */
void as_style_shell(struct as_buf *out, const char *word);

#endif

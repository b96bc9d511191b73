/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Cells of text in columns, for reports: widths are found, columns left out by rank until a line
 * fits, names cut last.
 */
#ifndef AS_RESULTS_GRID_PRIV_H
#define AS_RESULTS_GRID_PRIV_H

#include "base/mem.h"
#include "view/text/style.h"

#define AS_GRID_COLUMNS 10

enum as_grid_align { AS_GRID_LEFT, AS_GRID_RIGHT, AS_GRID_POINT /* on the decimal point */ };

struct as_grid_cell {
	char *text; /* owned; NULL: empty */
	enum as_ink ink;
};
struct as_grid_line {
	struct as_grid_cell cell[AS_GRID_COLUMNS];
	char *below; /* lines that follow it as they are; NULL: none */
};
struct as_grid {
	enum as_grid_align align[AS_GRID_COLUMNS];
	int rank[AS_GRID_COLUMNS];      /* 0: always there; the greatest is left out first */
	bool flexible[AS_GRID_COLUMNS]; /* cut when all else is */
	size_t columns;
	AS_VEC(struct as_grid_line) lines;
};
struct as_grid_line *as_grid_line(struct as_grid *g); /* a new one; valid until the next */
/* Takes the buffer's text; empty: no cell. */
void as_grid_set(struct as_grid_line *l, size_t column, struct as_buf *text, enum as_ink ink);
void as_grid_print(struct as_grid *g, const struct as_style *style, struct as_buf *out);
void as_grid_clear(struct as_grid *g);

#endif

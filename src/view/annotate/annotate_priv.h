/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * From a listing and an annotation to rows on the screen:
 *
 *	tree.c		costs and text of one function as one tree of places
 *	rows.c		that tree as rows: what is shown, what is folded
 *	arrows.c	jumps between rows as lanes of a gutter; pure layout
 *	text.c		rows as text: columns, gutter
 *	lines.c		rows as text: what stands right of them
 *	notes.c		what stands above and below: figures, skid, trust, next steps
 *	json.c		everything as JSON
 */
#ifndef AS_VIEW_ANNOTATE_PRIV_H
#define AS_VIEW_ANNOTATE_PRIV_H

#include "view/annotate/annotate.h"

/* A place: a line of the function (parent AS_NONE), or of a function inlined there. */
struct as_an_place {
	uint32_t parent, first_child, next; /* siblings: heaviest first, then by line */
	uint32_t depth;
	uint32_t cost;     /* index into annotation places; AS_NONE: no samples */
	uint32_t function; /* index into functions; AS_NONE: no sample has it */
	const char *name, *file;
	uint32_t line;
	uint32_t first_insn, last_insn, n_insns; /* chained by as_an_insn.next */
};
struct as_an_insn {
	const struct as_listing_insn *text; /* NULL: the code is not known */
	uint64_t svma;
	uint32_t cost; /* index into annotation insns; AS_NONE: no samples */
	uint32_t place, next;
};
struct as_an_tree {
	const struct as_annotate_view *v;
	AS_VEC(struct as_an_place) places; /* the annotation's first, with its numbers */
	AS_VEC(struct as_an_insn) insns;   /* by svma; those of other modules last */
	AS_VEC(uint32_t) roots;            /* the function's own file first; by file and line */
};
void as_an_tree_make(const struct as_annotate_view *v, struct as_an_tree *ret);
void as_an_tree_clear(struct as_an_tree *t);

/* NULL without samples. By the request: of all samples or of the function's. */
const struct as_cost *as_an_place_cost(const struct as_an_tree *t, uint32_t place);
const struct as_cost *as_an_insn_cost(const struct as_an_tree *t, uint32_t insn);
/* Of the function's samples, whatever the request wants; 0 without. */
double as_an_place_share(const struct as_an_tree *t, uint32_t place);
double as_an_insn_share(const struct as_an_tree *t, uint32_t insn);
const struct as_listing_file *as_an_file(const struct as_an_tree *t, const char *path);
/* Text of a line; NULL when it is not known. */
const char *as_an_line_text(const struct as_listing_file *f, uint32_t line);

enum as_an_kind {
	AS_AN_FILE,   /* the file the next rows are of */
	AS_AN_SOURCE, /* a line of the function */
	AS_AN_INLINE, /* a place inlined there */
	AS_AN_CALLS,  /* without instructions: what a place calls */
	AS_AN_INSN,
	AS_AN_PART, /* a part of the function that stands elsewhere */
	AS_AN_FOLD,
};
struct as_an_row {
	enum as_an_kind kind;
	uint32_t place, insn; /* AS_NONE where they make no sense */
	uint32_t via;         /* INLINE: the outermost of the places this row stands for */
	uint32_t line;
	const char *file;
	uint32_t depth;
	uint32_t folded; /* FOLD: how many */
	bool insns;      /* FOLD: instructions, not lines */
	double share;    /* FOLD: total, of the function's samples */
	double most;     /* FOLD: the largest of them; 0: rows stand above that have more */
};
struct as_an_rows {
	AS_VEC(struct as_an_row) v;
	bool anything_folded;
	bool by_address; /* asked for, or without any line number */
};
void as_an_rows_make(const struct as_an_tree *t, struct as_an_rows *ret);

/* Jumps as lanes. All arrows that lead to one row are one arrow. Short ones stand right; what
 * finds no lane is left out. */
struct as_an_jump {
	uint32_t from, to; /* rows */
};
struct as_an_gutter {
	uint32_t lanes; /* columns; 0: nothing to draw */
	uint8_t *cell;  /* per row and lane, left to right: enum as_an_cell bits */
};
enum as_an_cell {
	AS_AN_UP = 1, /* a line from the middle of the cell */
	AS_AN_DOWN = 2,
	AS_AN_RIGHT = 4,
	AS_AN_LEFT = 8,
	AS_AN_HEAD = 16, /* in the last lane: an arrow head stands right of it */
};
void as_an_gutter_make(const struct as_an_jump *jumps, size_t njumps, uint32_t nrows,
		       uint32_t max_lanes, struct as_an_gutter *ret);
void as_an_gutter_clear(struct as_an_gutter *g);
const char *as_an_cell_text(uint8_t cell);

/* ---- printing: text.c and lines.c ---- */

struct as_an_printer {
	const struct as_an_tree *t;
	const struct as_an_rows *rows;
	const struct as_style *style;
	struct as_buf *out;
	struct as_an_gutter gutter;
	bool totals, samples, by_address;
	size_t left; /* columns before the text of a row */
	int address; /* digits */
};

enum { AS_AN_WIDE = 110, AS_AN_NUMBER = 5 };
enum as_ink as_an_row_ink(const struct as_an_printer *p, const struct as_an_row *r);
void as_an_shorten_path(struct as_buf *b); /* "build/../src/a.c" is "src/a.c" */
/* What stands right of the gutter. */
void as_an_row_text(struct as_an_printer *p, size_t row);

void as_an_print(const struct as_an_tree *t, const struct as_an_rows *rows,
		 const struct as_style *style, struct as_buf *out);

void as_an_header(const struct as_an_tree *t, const struct as_style *style, struct as_buf *out);
void as_an_footer(const struct as_an_tree *t, const struct as_an_rows *rows,
		  const struct as_style *style, struct as_buf *out);
/* What kind of samples these are and what that does to single instructions, in plain words. */
void as_an_skid(const struct as_annotation *a, struct as_buf *out);
const char *as_an_skid_class(const struct as_annotation *a); /* "timer", "counter", "unknown" */

#endif

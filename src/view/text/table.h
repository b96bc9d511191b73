/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tables of typed cells. A view says what the cells are; hiding, aligning, cutting and the
 * three formats are the table's business.
 *
 *	struct as_table t = {0};
 *	as_table_column(&t, (struct as_column){"self", "self", AS_CELL_SHARE, 0});
 *	as_table_column(&t, (struct as_column){"name", "function", AS_CELL_TEXT, AS_COL_FLEX});
 *	as_table_row(&t);  as_table_share(&t, 0, &share);  as_table_text(&t, 1, "main");
 *	as_table_print(&t, &style, &out);
 *	as_table_clear(&t);
 *
 * Text: shares stand on their decimal point, the unit in the first row; a column all of whose
 * cells are equal (AS_COL_HIDE_SAME) or empty/zero (AS_COL_HIDE_EMPTY) is left out; AS_COL_FLEX
 * columns are cut in the middle to the width; nothing wraps. JSON and CSV: all columns but
 * text-only ones; a share becomes key, key_low, key_high and, after all others, key_samples.
 * Strings given are copied.
 */
#ifndef AS_VIEW_TABLE_H
#define AS_VIEW_TABLE_H

#include "base/json.h"
#include "base/mem.h"
#include "view/text/style.h"

enum as_cell_type {
	AS_CELL_TEXT,
	AS_CELL_SHARE,    /* struct as_share */
	AS_CELL_COUNT,    /* uint64_t */
	AS_CELL_DURATION, /* uint64_t ns; a number of seconds in data */
	AS_CELL_BYTES,    /* uint64_t */
};

enum as_column_flags {
	AS_COL_HIDE_SAME = 1,
	AS_COL_HIDE_EMPTY = 2,
	AS_COL_FLEX = 4,
	AS_COL_DATA_ONLY = 8, /* not in text */
	AS_COL_TEXT_ONLY = 16,
	AS_COL_SPARE = 32, /* text: left out when all columns do not fit uncut */
	AS_COL_FAINT = 64,
};

struct as_column {
	const char *key;  /* in JSON and CSV; static */
	const char *head; /* in text; static */
	enum as_cell_type type;
	unsigned flags;
};

struct as_cell {
	bool set;
	const char *text;
	const char *lead; /* before text, never cut: the guides of a tree */
	const char *mark; /* after a share: "┐" */
	struct as_share share;
	uint64_t value;
};

struct as_table {
	AS_VEC(struct as_column) columns;
	AS_VEC(struct as_cell) cells; /* rows of columns.n cells */
	size_t nrows;
	struct as_arena arena;
};

/* all columns before the first row */
size_t as_table_column(struct as_table *t, struct as_column c);
size_t as_table_row(struct as_table *t); /* later calls fill this row */
void as_table_text(struct as_table *t, size_t column, const char *text);
void as_table_lead(struct as_table *t, size_t column, const char *lead);
void as_table_share(struct as_table *t, size_t column, const struct as_share *s);
void as_table_mark(struct as_table *t, size_t column, const char *mark); /* static text */
void as_table_value(struct as_table *t, size_t column, uint64_t v);
void as_table_clear(struct as_table *t);

void as_table_print(const struct as_table *t, const struct as_style *style, struct as_buf *out);
void as_table_csv(const struct as_table *t, struct as_buf *out);
/* An array of objects under key. */
void as_table_json(const struct as_table *t, const char *key, struct as_json *j);

#endif

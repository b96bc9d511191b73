/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reports: a question asked of a session, and its answer as text, JSON or CSV. Answer first
 * (the table), then how sure (trust block), then what to do (next steps). JSON: docs/formats/
 * report-json.md.
 *
 *	struct as_report_request q = {.model = m, .query = {.by = AS_BY_FUNCTION}, .top = 20};
 *	r = as_report_make(&q, &style, &out, err);
 *
 * Shares are of all samples of the chosen threads and time; the rows of a report that --focus
 * or --ignore narrowed therefore sum to less than 100 %.
 * Cost: as_profile_make plus what is shown.
 */
#ifndef AS_VIEW_REPORT_H
#define AS_VIEW_REPORT_H

#include "model/memory/alloc_time.h"
#include "view/text/style.h"
#include "view/text/table.h"

enum as_report_format { AS_REPORT_TEXT, AS_REPORT_JSON, AS_REPORT_CSV }; /* order of --format */

/* Tables of sessions of memory that have rows of their own (view/memory/memory.h). */
enum as_memory_table {
	AS_TABLE_NONE,
	AS_TABLE_TYPE,
	AS_TABLE_SIZE,
	AS_TABLE_LIFETIME,
	AS_TABLE_AGE,
	AS_TABLE_REALLOC
};

struct as_report_request {
	const struct as_model *model;
	enum as_memory_table table; /* NONE: as the query says */
	struct as_query query;
	uint64_t top; /* rows of a flat table, lines of a tree; 0: the default of the shape */
	double min_share; /* flat: rows below are left out; trees: nodes below are folded */
	enum as_report_format format;
	const char *file; /* the session as the user named it; NULL: found by default */
	/* Of a session of both, what memory costs in time: told with a report of time. NULL: not. */
	const struct as_alloc_time *alloc_time;
};
int as_report_make(const struct as_report_request *q, const struct as_style *style,
		   struct as_buf *out, struct as_error *err);

/* ---- pieces, used by summary.c and tests ---- */

/* Flat: rows of p into t. */
void as_report_flat(const struct as_report_request *q, const struct as_profile *p,
		    const struct as_style *style, struct as_table *t);
/* Trees: nodes of p, parents before children, into t. */
void as_report_tree(const struct as_report_request *q, const struct as_profile *p,
		    const struct as_style *style, struct as_table *t);
/* "indexer: 12.4 s wall, 21.7 s CPU on 2 threads, exit 0      indexer.assay (212 KiB)" */
void as_report_header(const struct as_model *m, const struct as_style *style,
		      struct as_buf *out);
/* "indexer": last component of the recorded program, safe for a terminal; never empty. */
void as_report_program(const struct as_model *m, struct as_buf *out);
void as_report_json(const struct as_report_request *q, const struct as_profile *p,
		    const struct as_table *t, struct as_buf *out);
/* "focus 'y', time 2 s..": what narrows a query, nothing for a plain one. */
void as_report_filters(const struct as_query *q, struct as_buf *out);
/* What stands before the rows, up to the amounts of a session of memory. */
void as_report_json_head(const struct as_model *m, double weight, double kept_weight,
			 struct as_json *j);
void as_report_filter_json(const struct as_query *q, struct as_json *j); /* "filter": {…} */
/* Name shown for a row: brief or full, by the style. */
const char *as_report_name(const struct as_row *row, const struct as_style *style);
const char *as_report_by_word(enum as_by by, bool plural);
/* Seconds of recording that would tell this row from the next; 0: no useful number. */
double as_report_more_seconds(const struct as_row *a, const struct as_row *b,
			      double duration_s);

#endif

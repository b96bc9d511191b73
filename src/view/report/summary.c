/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The summary of a recording: see summary.h. */
#include "view/report/summary.h"

#include <math.h>
#include <string.h>

#include "base/sys.h"
#include "view/memory/alloc_time.h"
#include "view/memory/memory.h"
#include "view/report/next.h"
#include "view/report/report.h"
#include "view/report/trust.h"

enum { ROWS = 8 };
static const double ROW_WORTH = 0.01, MORE_MAX_S = 600;

/*
 * How long a recording would tell a run of tied rows apart: the longest of its neighbours.
 * Behind the rows' marks as one note per run: "not separable: 30 s more would tell".
 */
static void tie_notes(const struct as_profile *p, size_t n, double duration_s,
		      struct as_table *t)
{
	size_t column = 0;

	while (strcmp(t->columns.v[column].key, "note") != 0)
		column++;

	for (size_t i = 0; i < n; i++) {
		double more = 0;
		size_t end = i;

		while (end + 1 < n && p->rows.v[end].tied_with_next) {
			more = fmax(more,
				    as_report_more_seconds(&p->rows.v[end], &p->rows.v[end + 1],
							   duration_s));
			end++;
		}
		if (end == i)
			continue;

		struct as_buf b = {0};

		as_buf_adds(&b, "not separable");
		if (end == i + 1 && more > 0 && more <= MORE_MAX_S)
			as_buf_addf(&b, ": %.0f %s more would tell",
				    ceil(more < 90 ? more : more / 60),
				    more < 90 ? "s" : "min");
		t->cells.v[i * t->columns.n + column].set = true;
		t->cells.v[i * t->columns.n + column].text = as_arena_strdup(&t->arena, b.p);
		as_buf_clear(&b);
		i = end;
	}
}

int as_summary_text(const struct as_summary_request *s, const struct as_style *style,
		    struct as_buf *out, struct as_error *err)
{
	const struct as_model *m = s->model;
	struct as_report_request q = {.model = m, .file = s->file};
	struct as_profile *p;
	struct as_table t = {0};
	int r = as_profile_make(m, &q.query, &p, err);

	if (r < 0)
		return r;
	q.top = 1; /* rows with time of their own, and always the hottest */
	while (q.top < ROWS && q.top < p->rows.n && p->rows.v[q.top].self.value >= ROW_WORTH)
		q.top++;
	as_report_header(m, style, out);
	if (m->heap.is)
		as_memory_header(m, style, out);
	as_buf_addc(out, '\n');
	as_report_flat(&q, p, style, &t);
	if (t.nrows) {
		tie_notes(p, t.nrows, (double)m->summary.wall_ns / 1e9, &t);
		as_table_print(&t, style, out);
		as_buf_addc(out, '\n');
	}
	if (s->alloc_time)
		as_alloc_time_text(m, s->alloc_time, style, out);
	as_trust_text(m, style, out);

	struct as_next_request next = {
		.model = m, .flat = p, .file = s->file, .asked = &q.query};

	if (as_model_is_counted(m))
		as_memory_next(&q, style, out);
	else
		as_next_text(&next, style, out);
	as_table_clear(&t);
	as_profile_free(p);
	return 0;
}

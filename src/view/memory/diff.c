/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a build, or a part of a run, has more or less of: see diff.h. */
#include "view/memory/diff_priv.h"

#include <string.h>

#include "base/sys.h"
#include "view/memory/memory.h"
#include "view/report/report.h"
#include "view/text/table.h"

enum { TOP = 20 };

void as_memory_diff_amount(const struct as_heap_diff *d, uint64_t n, struct as_buf *out)
{
	if (as_measure_is_bytes(d->request.b->measure))
		as_fmt_bytes(out, n);
	else
		as_fmt_count(out, n);
}

/* "+1.20 MiB", "−340 B", "0 B" */
void as_memory_diff_change(const struct as_heap_diff *d, uint64_t a, uint64_t b,
			   struct as_buf *out)
{
	if (a != b)
		as_buf_adds(out, b > a ? "+" : "−");
	as_memory_diff_amount(d, b > a ? b - a : a - b, out);
}

/* "+12.3 %" of what it was; nothing where that was nothing. */
static void add_percent(uint64_t a, uint64_t b, struct as_buf *out)
{
	double change = a ? ((double)b - (double)a) / (double)a * 100 : 0;

	if (a && a != b)
		as_buf_addf(out, "%s%.*f %%", b > a ? "+" : "−", change < 1000 ? 1 : 0,
			    change < 0 ? -change : change);
}

/* ---- text ---- */

static void add_side(const struct as_heap_diff *d, bool after, const struct as_style *style,
		     struct as_buf *out)
{
	const struct as_model *m = after ? d->request.b : d->request.a;
	uint64_t start = m->recording.start_ns;

	as_style_ink(style, out, AS_INK_FAINT);
	as_buf_addf(out, "%-7s ", after ? "after" : "before");
	as_style_ink(style, out, AS_INK_PLAIN);
	as_style_cut(out, m->path ? m->path : "-", 40);
	if (m->heap.at && *m->heap.at) {
		as_buf_adds(out, " at ");
		as_fmt_quoted(out, m->heap.at, strlen(m->heap.at));
		if (m->heap.at_ns > start) {
			as_buf_adds(out, " (");
			as_fmt_duration(out, m->heap.at_ns - start);
			as_buf_addc(out, ')');
		}
	} else if (m->heap.at) {
		as_buf_adds(out, " at its start");
	} else if (m->measure == AS_MEASURE_LIVE) {
		as_buf_adds(out, " at its end");
	}
	as_buf_adds(out, ": ");
	as_memory_diff_amount(d, after ? d->b : d->a, out);
	if (after) {
		AS_CLEANUP(as_buf_clear) struct as_buf percent = {0};

		as_buf_adds(out, ", ");
		as_memory_diff_change(d, d->a, d->b, out);
		add_percent(d->a, d->b, &percent);
		if (percent.len)
			as_buf_addf(out, ", %s", percent.p);
	}
	as_buf_addc(out, '\n');
}

static void name_cells(const struct as_heap_diff *d, const struct as_heap_diff_row *r,
		       const struct as_style *style, size_t column, struct as_table *t)
{
	const struct as_model *m = r->in_b ? d->request.b : d->request.a;
	enum as_by by = d->request.query.by;
	AS_CLEANUP(as_buf_clear) struct as_buf name = {0};
	AS_CLEANUP(as_buf_clear) struct as_buf where = {0};

	if (by == AS_BY_FUNCTION) {
		as_style_where(&where, m, &r->row);
	} else if ((by == AS_BY_LINE || by == AS_BY_FILE) && r->row.file && *r->row.file) {
		as_style_file(&name, m, &r->row);
		if (by == AS_BY_LINE) {
			as_buf_addf(&name, ":%u", r->row.line);
			as_buf_adds(&where, as_report_name(&r->row, style));
		}
	}
	as_table_text(t, column, name.len ? name.p : as_report_name(&r->row, style));
	as_table_text(t, column + 1, as_buf_str(&where));
}

void as_memory_diff_columns(const struct as_heap_diff *d, const char *heading,
			    struct as_table *t)
{
	enum as_cell_type type =
		as_measure_is_bytes(d->request.b->measure) ? AS_CELL_BYTES : AS_CELL_COUNT;

	as_table_column(t, (struct as_column){"a", "before", type, 0});
	as_table_column(t, (struct as_column){"b", "after", type, 0});
	as_table_column(t, (struct as_column){"delta", "change", AS_CELL_TEXT, 0});
	as_table_column(t, (struct as_column){"percent", "", AS_CELL_TEXT, AS_COL_HIDE_EMPTY});
	as_table_column(t, (struct as_column){"note", "", AS_CELL_TEXT, AS_COL_HIDE_EMPTY});
	as_table_column(t, (struct as_column){"name", heading, AS_CELL_TEXT, AS_COL_FLEX});
	as_table_column(t, (struct as_column){"where", "", AS_CELL_TEXT,
					      AS_COL_FLEX | AS_COL_HIDE_EMPTY | AS_COL_SPARE |
						      AS_COL_FAINT});
}

void as_memory_diff_row(const struct as_heap_diff *d, const struct as_heap_diff_row *r,
			const struct as_style *style, struct as_table *t)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_table_row(t);
	as_table_value(t, 0, r->a);
	as_table_value(t, 1, r->b);
	as_memory_diff_change(d, r->a, r->b, &b);
	as_table_text(t, 2, b.p);
	as_buf_reset(&b);
	add_percent(r->a, r->b, &b);
	as_table_text(t, 3, as_buf_str(&b));
	as_table_text(t, 4, !r->in_a || !r->a ? "new" : !r->in_b || !r->b ? "gone" : "");
	name_cells(d, r, style, AS_MEMORY_DIFF_NAME, t);
}

static void rows_text(const struct as_memory_diff_view *v, const struct as_style *style,
		      struct as_buf *out)
{
	const struct as_heap_diff *d = v->diff;
	size_t changed = d->rows.n - d->same, top = v->top ? v->top : TOP;
	struct as_table t = {0};

	as_memory_diff_columns(d, as_report_by_word(d->request.query.by, false), &t);
	for (size_t i = 0; i < changed && i < top; i++)
		as_memory_diff_row(d, &d->rows.v[i], style, &t);
	if (t.nrows)
		as_table_print(&t, style, out);
	if (changed > t.nrows)
		as_buf_addf(out, "   … %zu more that changed (--top N)\n", changed - t.nrows);
	if (d->same || !changed)
		as_buf_addf(out, "%s%zu %s the same on both sides\n", t.nrows ? "\n" : "",
			    d->same, as_report_by_word(d->request.query.by, d->same != 1));
	as_table_clear(&t);
}

void as_memory_diff_text(const struct as_memory_diff_view *v, const struct as_style *style,
			 struct as_buf *out)
{
	const struct as_heap_diff *d = v->diff;

	add_side(d, false, style, out);
	add_side(d, true, style, out);
	as_buf_addf(out, "%s %s, %s\n\n",
		    d->request.total || d->request.tree ? "total" : "self",
		    as_measure_name(d->request.b->measure),
		    "counted, not sampled: every difference is one");
	if (d->request.tree)
		as_memory_diff_tree(v, style, out);
	else
		rows_text(v, style, out);
}

/* ---- JSON ---- */

/* The keys of a row within its object. */
static void json_row(const struct as_heap_diff *d, const struct as_heap_diff_row *r,
		     struct as_json *j)
{
	as_json_str(j, "name", r->row.name);
	as_json_str(j, "full_name", r->row.full_name);
	as_json_str(j, "module", r->row.module);
	as_json_str(j, "crate", r->row.crate);
	as_json_str(j, "file", r->row.file);
	as_json_u64(j, "line", r->row.line);
	as_json_u64(j, "amount_a", r->a);
	as_json_u64(j, "amount_b", r->b);
	as_json_i64(j, "amount_delta", (int64_t)(r->b - r->a));
	as_json_num(j, "share_a", d->a ? (double)r->a / (double)d->a : 0, 6);
	as_json_num(j, "share_b", d->b ? (double)r->b / (double)d->b : 0, 6);
	as_json_str(j, "only", !r->in_a ? "b" : !r->in_b ? "a" : "");
}

/* All nodes, depth first; parents by position in the array. */
static void json_tree(const struct as_heap_diff *d, struct as_json *j)
{
	AS_CLEANUP(as_free_autop)
	uint64_t *position = as_xcalloc(d->nodes.n + 1, sizeof *position);
	uint64_t n = 0;

	for (uint32_t i = d->nodes.n ? d->nodes.v[0].first_child : AS_NONE; i != AS_NONE;) {
		const struct as_heap_diff_node *k = &d->nodes.v[i];

		position[i] = n++;
		as_json_obj(j, NULL);
		json_row(d, &(struct as_heap_diff_row){k->row, k->a, k->b, k->a > 0, k->b > 0},
			 j);
		as_json_u64(j, "depth", k->depth);
		if (k->parent)
			as_json_u64(j, "parent", position[k->parent]);
		else
			as_json_null(j, "parent");
		as_json_end(j);
		if (k->first_child != AS_NONE) {
			i = k->first_child;
			continue;
		}
		while (i && d->nodes.v[i].next_sibling == AS_NONE)
			i = d->nodes.v[i].parent;
		i = i ? d->nodes.v[i].next_sibling : AS_NONE;
	}
}

static void json_side(const struct as_model *m, const char *key, struct as_json *j)
{
	as_json_obj(j, key);
	as_json_str(j, "file", m->path ? m->path : "");
	if (m->heap.at)
		as_json_str(j, "mark", m->heap.at);
	else
		as_json_null(j, "mark");
	as_json_end(j);
}

void as_memory_diff_json(const struct as_memory_diff_view *v, struct as_buf *out)
{
	const struct as_heap_diff *d = v->diff;
	const struct as_heap_diff_request *q = &d->request;
	struct as_json j = {.out = out, .indent = true};
	size_t top = v->top ? v->top : SIZE_MAX;

	as_json_obj(&j, NULL);
	as_json_str(&j, "schema", "assay.diff/1");
	as_json_str(&j, "by", as_report_by_word(q->query.by, false));
	as_json_str(&j, "measure", q->total || q->tree ? "total" : "self");
	as_json_str(&j, "shape", q->tree ? "tree" : "flat");
	as_json_str(&j, "memory", as_measure_name(q->b->measure));
	as_json_str(&j, "unit", as_measure_is_bytes(q->b->measure) ? "bytes" : "count");
	json_side(q->a, "a", &j);
	json_side(q->b, "b", &j);
	as_json_u64(&j, "amount_a", d->a);
	as_json_u64(&j, "amount_b", d->b);
	as_json_i64(&j, "amount_delta", (int64_t)(d->b - d->a));
	as_json_u64(&j, "same", d->same);
	as_json_arr(&j, "rows");
	if (q->tree)
		json_tree(d, &j);
	for (size_t i = 0; !q->tree && i < d->rows.n && i < top; i++) {
		as_json_obj(&j, NULL);
		json_row(d, &d->rows.v[i], &j);
		as_json_end(&j);
	}
	as_json_end(&j);
	as_json_end(&j);
	as_buf_addc(out, '\n');
}

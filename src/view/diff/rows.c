/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows of a comparison as text: what changed, what is new, what is gone, what is inlined now. */
#include <math.h>
#include <string.h>

#include "base/sys.h"
#include "view/diff/diff_priv.h"
#include "view/report/report.h"

enum { UNRESOLVED_SHOWN = 10, CPU_WIDTH = 100, SIDES_WIDTH = 120 };

/* Of both sides together. */
static const double LITTLE = 0.002; /* no news while not resolved */
static const double MUCH = 0.2;     /* that nothing changed is news */

static void add_points(struct as_buf *out, const struct as_diff_row *r)
{
	double half = (r->high - r->low) / 2;

	as_buf_addf(out, "%+6.2f ±%.2f", 100 * r->delta, 100 * half);
}

/* "+391 ±45 ms": both in the unit of the larger. */
static void add_seconds(struct as_buf *out, const struct as_diff_row *r)
{
	static const struct unit {
		double s;
		const char *name;
	} units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}};
	double half = (r->cpu_high - r->cpu_low) / 2;
	double size = AS_MAX(fabs(r->cpu_delta_s), half);
	size_t u = 0;
	int digits;

	if (!isfinite(size)) {
		as_buf_addc(out, '-');
		return;
	}
	while (u + 1 < AS_ARRAY_LEN(units) && size < units[u].s)
		u++;
	size /= units[u].s;
	digits = size < 10 ? 2 : size < 100 ? 1 : 0;
	as_buf_addf(out, "%+.*f ±%.*f %s", digits, r->cpu_delta_s / units[u].s, digits,
		    half / units[u].s, units[u].name);
}

static void add_verdict(struct as_buf *out, const struct as_diff_row *r)
{
	as_buf_adds(out, as_change_name(r->change));
	if (!r->a.sessions || !r->b.sessions)
		as_buf_adds(out, r->a.sessions ? ", gone" : ", new");
	if (r->share_only)
		as_buf_adds(out, ", share");
	if (r->one_run)
		as_buf_adds(out, ", in one run");
}

void as_diff_columns(const struct as_diff *d, const struct as_style *style, const char *name,
		     struct as_table *t)
{
	static const struct as_column columns[] = {
		{"a", "before", AS_CELL_SHARE, 0},
		{"b", "after", AS_CELL_SHARE, 0},
		{"delta", "points", AS_CELL_TEXT, 0},
		{"cpu", "CPU time", AS_CELL_TEXT, AS_COL_HIDE_SAME},
		{"verdict", "", AS_CELL_TEXT, 0},
		{"name", "", AS_CELL_TEXT, AS_COL_FLEX},
		{"where", "", AS_CELL_TEXT,
		 AS_COL_FLEX | AS_COL_HIDE_EMPTY | AS_COL_SPARE | AS_COL_FAINT},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(columns); i++) {
		struct as_column c = columns[i];

		if (i == AS_DIFF_NAME)
			c.head = name;
		if (i == 3 &&
		    (isnan(d->cpu_a_s) || isnan(d->cpu_b_s) || style->width < CPU_WIDTH))
			c.flags |= AS_COL_SPARE;
		as_table_column(t, c);
	}
}

/* In a narrow terminal the change's interval has to do: the name is worth more than the sides'. */
static void add_side(struct as_table *t, size_t column, const struct as_share *share,
		     const struct as_style *style)
{
	struct as_share s = *share;

	if (style->width < SIDES_WIDTH)
		s.low = s.high = NAN;
	as_table_share(t, column, &s);
}

static void add_name(struct as_table *t, const struct as_diff *d, const struct as_row *row,
		     const struct as_model *m, const struct as_style *style)
{
	enum as_by by = d->request.query.by;
	AS_CLEANUP(as_buf_clear) struct as_buf name = {0};
	AS_CLEANUP(as_buf_clear) struct as_buf where = {0};

	if (by == AS_BY_FUNCTION) {
		as_style_where(&where, m, row);
	} else if ((by == AS_BY_LINE || by == AS_BY_FILE) && row->file && *row->file) {
		as_style_file(&name, m, row);
		if (by == AS_BY_LINE) {
			as_buf_addf(&name, ":%u", row->line);
			as_buf_adds(&where, as_report_name(row, style));
		}
	}
	as_table_text(t, AS_DIFF_NAME, name.len ? name.p : as_report_name(row, style));
	as_table_text(t, AS_DIFF_NAME + 1, as_buf_str(&where));
}

void as_diff_row(const struct as_diff *d, const struct as_diff_row *r,
		 const struct as_style *style, struct as_table *t)
{
	const struct as_diff_request *q = &d->request;
	const struct as_model *m = r->b.sessions ? q->b[0] : q->a[0];
	struct as_row row = {.name = r->name,
			     .full_name = r->full_name,
			     .module = r->module,
			     .file = r->file,
			     .crate = r->crate,
			     .line = r->line};
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_table_row(t);
	add_side(t, 0, &r->a.share, style);
	add_side(t, 1, &r->b.share, style);
	add_points(&b, r);
	as_table_text(t, 2, as_buf_str(&b));
	as_buf_reset(&b);
	add_seconds(&b, r);
	as_table_text(t, 3, as_buf_str(&b));
	as_buf_reset(&b);
	add_verdict(&b, r);
	as_table_text(t, 4, as_buf_str(&b));
	add_name(t, d, &row, m, style);
}

/* ---- sections ---- */

enum section { BOTH, NEW, GONE, SECTIONS };

static enum section section_of(const struct as_diff_row *r)
{
	return !r->a.sessions ? NEW : !r->b.sessions ? GONE : BOTH;
}

/* Returns how many rows of the section are not in the table. */
static size_t make_table(const struct as_diff_view *v, enum section section,
			 const struct as_style *style, struct as_table *t)
{
	const struct as_diff *d = v->diff;
	uint64_t left = v->top ? v->top : UNRESOLVED_SHOWN;
	size_t hidden = 0;

	as_diff_columns(d, style, as_report_by_word(d->request.query.by, false), t);
	as_vec_foreach (r, &d->rows) {
		double share = r->a.share.value + r->b.share.value;
		bool always = r->change >= AS_CHANGE_UP || share >= MUCH;

		if (section_of(r) != section)
			continue;
		if (!always && (left == 0 || share < LITTLE)) {
			hidden++;
			continue;
		}
		left -= !always;
		as_diff_row(d, r, style, t);
	}
	return hidden;
}

static void add_section(const struct as_diff_view *v, enum section section,
			const struct as_style *style, struct as_buf *out)
{
	static const char *const head[SECTIONS] = {NULL, "only after", "only before"};
	enum as_by by = v->diff->request.query.by;
	struct as_table t = {0};
	size_t hidden = make_table(v, section, style, &t);

	if (head[section] && t.nrows + hidden == 0) {
		as_table_clear(&t);
		return;
	}
	if (head[section]) {
		size_t n = t.nrows + hidden;

		as_buf_addf(out, "\n%s: ", head[section]);
		as_fmt_count(out, n);
		as_buf_addf(out, " %s", as_report_by_word(by, n != 1));
		if (hidden && t.nrows)
			as_buf_addf(out, ", the first %zu", t.nrows);
		as_buf_adds(out, t.nrows ? "\n" : ", none above 0.2 %\n");
	}
	if (t.nrows || !head[section])
		as_table_print(&t, style, out);
	as_table_clear(&t);
}

static void add_inlinings(const struct as_diff *d, const struct as_style *style,
			  struct as_buf *out)
{
	size_t left = UNRESOLVED_SHOWN;

	if (d->inlinings.n)
		as_buf_adds(out,
			    "\ninlined on one side only: their time counts for what they are "
			    "inlined into, on both sides\n");
	as_vec_foreach (i, &d->inlinings) {
		struct as_row row = {.name = i->name, .full_name = i->full_name};
		double share = i->now ? i->a : i->b;

		if (left == 0)
			break;
		left--;
		as_buf_addf(out, "   %4.1f %% %s   ", 100 * share,
			    i->now ? "before" : "after ");
		as_fmt_quoted(out, as_report_name(&row, style),
			      strlen(as_report_name(&row, style)));
		if (i->likely)
			as_buf_adds(out, i->now ? ": gone, its time is now in "
						: ": new, its time was in ");
		else
			as_buf_adds(out, i->now ? ": inlined now, into "
						: ": no longer inlined into ");
		as_fmt_quoted(out, i->into, strlen(i->into));
		as_buf_addc(out, '\n');
	}
	if (d->inlinings.n > UNRESOLVED_SHOWN)
		as_buf_addf(out, "   and %zu more\n", d->inlinings.n - UNRESOLVED_SHOWN);
}

void as_diff_rows_text(const struct as_diff_view *v, const struct as_style *style,
		       struct as_buf *out)
{
	for (int s = BOTH; s < SECTIONS; s++)
		add_section(v, (enum section)s, style, out);
	add_inlinings(v->diff, style, out);
}

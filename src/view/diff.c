/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What differs between two sides, resolved rows first: see diff.h. */
#include "view/diff.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/sys.h"
#include "view/report.h"
#include "view/table.h"

enum { UNRESOLVED_SHOWN = 10 };

/* ---- text ---- */

static void add_points(struct as_buf *out, const struct as_diff_row *r)
{
	double half = (r->high - r->low) / 2;

	as_buf_addf(out, "%+6.2f ±%.2f", 100 * r->delta, 100 * half);
}

static void add_seconds(struct as_buf *out, double s)
{
	if (isnan(s)) {
		as_buf_addc(out, '-');
		return;
	}
	as_buf_addc(out, s < 0 ? '-' : '+');
	as_fmt_duration(out, (uint64_t)(fabs(s) * 1e9));
}

static const char *presence(const struct as_diff_row *r)
{
	return !r->a.sessions ? "new" : !r->b.sessions ? "gone" : "";
}

static void add_verdict(struct as_buf *out, const struct as_diff_row *r)
{
	as_buf_adds(out, as_change_name(r->change));
	if (*presence(r))
		as_buf_addf(out, ", %s", presence(r));
	if (r->share_only)
		as_buf_adds(out, ", as a share only");
	if (r->one_run)
		as_buf_adds(out, ", in one run");
}

static void add_row(struct as_table *t, const struct as_diff *d, const struct as_diff_row *r,
		    const struct as_style *style)
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
	as_table_share(t, 0, &r->a.share);
	as_table_share(t, 1, &r->b.share);
	add_points(&b, r);
	as_table_text(t, 2, as_buf_str(&b));
	as_buf_reset(&b);
	add_seconds(&b, r->cpu_delta_s);
	as_table_text(t, 3, as_buf_str(&b));
	as_buf_reset(&b);
	add_verdict(&b, r);
	as_table_text(t, 4, as_buf_str(&b));
	as_table_text(t, 5, as_report_name(&row, style));
	as_buf_reset(&b);
	if (q->query.by == AS_BY_LINE || q->query.by == AS_BY_FILE)
		as_style_file(&b, m, &row);
	else if (q->query.by == AS_BY_FUNCTION)
		as_style_where(&b, m, &row);
	as_table_text(t, 6, as_buf_str(&b));
}

static void make_table(const struct as_diff_view *v, const struct as_style *style,
		       struct as_table *t)
{
	const struct as_diff *d = v->diff;
	uint64_t left = v->top ? v->top : UNRESOLVED_SHOWN;
	static const struct as_column columns[] = {
		{"a", "before", AS_CELL_SHARE, 0},
		{"b", "after", AS_CELL_SHARE, 0},
		{"delta", "change, points", AS_CELL_TEXT, 0},
		{"cpu", "CPU", AS_CELL_TEXT, AS_COL_HIDE_SAME},
		{"verdict", "", AS_CELL_TEXT, 0},
		{"name", "function", AS_CELL_TEXT, AS_COL_FLEX},
		{"where", "", AS_CELL_TEXT,
		 AS_COL_FLEX | AS_COL_HIDE_EMPTY | AS_COL_SPARE | AS_COL_FAINT},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(columns); i++) {
		struct as_column c = columns[i];

		if (i == 5)
			c.head = as_report_by_word(d->request.query.by, false);
		as_table_column(t, c);
	}
	as_vec_foreach (r, &d->rows) {
		bool resolved = r->change >= AS_CHANGE_UP;

		/* a row that hardly anybody has is no news while it is not resolved */
		if (!resolved && (left == 0 || r->a.share.value + r->b.share.value < 0.002))
			continue;
		left -= !resolved;
		add_row(t, d, r, style);
	}
}

static void add_side(const struct as_model *const *m, size_t n, const char *label,
		     const struct as_style *style, struct as_buf *out)
{
	as_style_ink(style, out, AS_INK_FAINT);
	as_buf_addf(out, "%-7s ", label);
	as_style_ink(style, out, AS_INK_PLAIN);
	for (size_t i = 0; i < n && i < 3; i++) {
		as_buf_adds(out, i ? ", " : "");
		as_style_cut(out, m[i]->path ? m[i]->path : "-", 40);
	}
	if (n > 3)
		as_buf_addf(out, " and %zu more", n - 3);
	as_buf_adds(out, n > 1 ? "; per run " : ": ");
}

static void add_head(const struct as_diff *d, const struct as_style *style, struct as_buf *out)
{
	const struct as_diff_request *q = &d->request;
	uint64_t samples[2] = {0};

	for (size_t i = 0; i < q->na; i++)
		samples[0] += q->a[i]->samples.n;
	for (size_t i = 0; i < q->nb; i++)
		samples[1] += q->b[i]->samples.n;
	for (int k = 0; k < 2; k++) {
		double cpu = k ? d->cpu_b_s : d->cpu_a_s;

		add_side(k ? q->b : q->a, k ? q->nb : q->na, k ? "after" : "before", style,
			 out);
		if (!isnan(cpu)) {
			as_fmt_duration(out, (uint64_t)(cpu * 1e9));
			as_buf_adds(out, " CPU, ");
		}
		as_fmt_count(out, samples[k]);
		as_buf_adds(out, " samples\n");
	}
	as_buf_addc(out, '\n');
}

static void add_line(struct as_buf *out, const struct as_style *style, const char *label,
		     const char *text)
{
	as_style_ink(style, out, AS_INK_FAINT);
	as_buf_addf(out, "%-7s", label);
	as_style_ink(style, out, AS_INK_PLAIN);
	as_buf_addf(out, "%s\n", text);
}

static void add_counts(const struct as_diff *d, const struct as_style *style,
		       struct as_buf *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	size_t up = d->counts[AS_CHANGE_UP], down = d->counts[AS_CHANGE_DOWN];

	if (up + down)
		as_buf_addf(&b, "%zu up, %zu down; ", up, down);
	else
		as_buf_adds(&b, "no difference is resolved; ");
	as_buf_addf(&b, "%zu equal within %.2g points, %zu undecided",
		    d->counts[AS_CHANGE_EQUAL], 100 * d->request.min_effect,
		    d->counts[AS_CHANGE_UNDECIDED]);
	as_buf_addc(out, '\n');
	add_line(out, style, "rows", as_buf_str(&b));
}

static void add_trust(const struct as_diff *d, const struct as_style *style, struct as_buf *out)
{
	const struct as_diff_request *q = &d->request;
	bool several = q->na + q->nb > 2;
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_buf_addf(&b, "95 %% intervals, levels adjusted for %zu rows", d->rows.n);
	if (d->widened > 1.05)
		as_buf_addf(
			&b, "; widened x%.2g: %s", d->widened,
			several ? "runs of one side differ by more than their samples explain"
				: "all rows differ by more than their samples explain");
	add_line(out, style, "trust", as_buf_str(&b));
	as_buf_reset(&b);
	if (!isnan(d->drift) && fabs(d->drift - 1) > 0.02) {
		as_buf_addf(&b, "the typical row took x%.2f the CPU time: %s", d->drift,
			    several ? "a slower or faster machine, or a change everywhere"
				    : "with one run a side that may be the machine");
		add_line(out, style, "", as_buf_str(&b));
	}
	if (!several)
		add_line(out, style, "next",
			 "several runs a side tell the machine's doing from the program's: "
			 "assay diff A1 A2 A3 --vs B1 B2 B3");
}

void as_diff_text(const struct as_diff_view *v, const struct as_style *style,
		  struct as_buf *out)
{
	struct as_table t = {0};

	add_head(v->diff, style, out);
	make_table(v, style, &t);
	as_table_print(&t, style, out);
	as_table_clear(&t);
	add_counts(v->diff, style, out);
	add_trust(v->diff, style, out);
}

/* ---- JSON ---- */

static void json_row(struct as_json *j, const struct as_diff_row *r)
{
	as_json_obj(j, NULL);
	as_json_str(j, "name", r->name);
	as_json_str(j, "full_name", r->full_name);
	as_json_str(j, "module", r->module);
	as_json_str(j, "crate", r->crate);
	as_json_str(j, "file", r->file);
	as_json_u64(j, "line", r->line);
	as_json_num(j, "share_a", r->a.share.value, 6);
	as_json_num(j, "share_b", r->b.share.value, 6);
	as_json_num(j, "delta", r->delta, 6);
	as_json_num(j, "delta_low", r->low, 6);
	as_json_num(j, "delta_high", r->high, 6);
	as_json_num(j, "cpu_a_s", r->a.cpu_s, 6);
	as_json_num(j, "cpu_b_s", r->b.cpu_s, 6);
	as_json_num(j, "cpu_delta_s", r->cpu_delta_s, 6);
	as_json_num(j, "cpu_delta_low_s", r->cpu_low, 6);
	as_json_num(j, "cpu_delta_high_s", r->cpu_high, 6);
	as_json_u64(j, "samples_a", r->a.share.samples);
	as_json_u64(j, "samples_b", r->b.share.samples);
	as_json_num(j, "p", r->p, 4);
	as_json_num(j, "p_adjusted", r->adjusted, 4);
	as_json_str(j, "verdict", as_change_name(r->change));
	as_json_bool(j, "share_only", r->share_only);
	as_json_bool(j, "one_run", r->one_run);
	as_json_end(j);
}

void as_diff_json(const struct as_diff_view *v, struct as_buf *out)
{
	struct as_json j = {.out = out, .indent = true};
	const struct as_diff *d = v->diff;

	as_json_obj(&j, NULL);
	as_json_str(&j, "schema", "assay.diff/1");
	as_json_str(&j, "by", as_report_by_word(d->request.query.by, false));
	as_json_str(&j, "measure", d->request.total ? "total" : "self");
	as_json_u64(&j, "runs_a", d->request.na);
	as_json_u64(&j, "runs_b", d->request.nb);
	as_json_num(&j, "cpu_a_s", d->cpu_a_s, 6);
	as_json_num(&j, "cpu_b_s", d->cpu_b_s, 6);
	as_json_num(&j, "min_effect", d->request.min_effect, 6);
	as_json_num(&j, "widened", d->widened, 4);
	as_json_num(&j, "drift", d->drift, 4);
	as_json_obj(&j, "counts");
	for (int c = 0; c < AS_CHANGE_COUNT_; c++)
		as_json_u64(&j, as_change_name((enum as_change)c), d->counts[c]);
	as_json_end(&j);
	as_json_arr(&j, "rows");
	as_vec_foreach (r, &d->rows)
		json_row(&j, r);
	as_json_end(&j);
	as_json_end(&j);
	as_buf_addc(out, '\n');
}

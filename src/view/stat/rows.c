/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows over time: see rows.h. */
#include "view/stat/rows.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/sys.h"
#include "view/stat/stat_priv.h"

#define TIME_WIDTH  9
#define LEAST_WIDTH 10
#define PER_HEADING 20

/* What is shown when nothing was chosen, and its heading. */
static const struct {
	enum as_metric metric;
	const char *heading;
} by_default[] = {
	{AS_M_UTILISATION, "cpu"},     {AS_M_USER, "user"},
	{AS_M_SYSTEM, "system"},       {AS_M_RSS, "memory"},
	{AS_M_MINOR_FAULTS, "faults"}, {AS_M_RUN_WAIT, "run wait"},
	{AS_M_VOLUNTARY, "waits"},     {AS_M_INVOLUNTARY, "preempted"},
	{AS_M_READ, "read"},           {AS_M_WRITTEN, "written"},
	{AS_M_MIGRATIONS, "moves"},    {AS_M_MAJOR_FAULTS, "from disk"},
};

/* Not of an interval: its length, what only the end tells. */
static bool is_shown(const struct as_plan *p, int row)
{
	return as_plan_wanted(p, row) && row != AS_M_WALL && row != AS_M_BLOCKED;
}

/* Memory is what there is at the end of the interval, not the most there was. */
static const char *name_of(const struct as_plan *p, int row)
{
	return row == AS_M_RSS ? "rss" : as_plan_row(p, row).name;
}

static void heading(const struct as_stat_rows *s, int row, struct as_buf *out)
{
	for (size_t i = 0; !s->asked && i < AS_ARRAY_LEN(by_default); i++) {
		if (by_default[i].metric == (enum as_metric)row) {
			as_buf_adds(out, by_default[i].heading);
			return;
		}
	}
	if (row == AS_M_RSS)
		as_buf_adds(out, "memory");
	else
		as_stat_row_name(out, s->plan, row);
}

static size_t width_of(const struct as_stat_rows *s, int row)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	heading(s, row, &b);
	return AS_MAX(as_text_width(b.p, b.len) + 2, (size_t)LEAST_WIDTH);
}

static void add_column(struct as_stat_rows *s, int row, size_t *used)
{
	size_t w = width_of(s, row);

	if (s->format == AS_STAT_TEXT && *used + w > (size_t)s->style.width) {
		s->left_out++;
		return;
	}
	*used += w;
	s->column[s->columns++] = row;
}

void as_stat_rows_init(struct as_stat_rows *s, const struct as_plan *plan,
		       const struct as_style *style, enum as_stat_format format, bool asked)
{
	size_t used = TIME_WIDTH;

	*s = (struct as_stat_rows){
		.plan = plan, .style = *style, .format = format, .asked = asked};
	if (asked || format != AS_STAT_TEXT) {
		for (int m = 0; m < as_plan_rows(plan); m++) {
			if (is_shown(plan, m))
				add_column(s, m, &used);
		}
		return;
	}
	for (int m = AS_M_COUNT_; m < as_plan_rows(plan); m++) {
		if (is_shown(plan, m) && strstr(as_plan_row(plan, m).name, "ipc"))
			add_column(s, m, &used);
	}
	for (size_t i = 0; i < AS_ARRAY_LEN(by_default); i++)
		add_column(s, by_default[i].metric, &used);
	for (int m = AS_M_COUNT_; m < as_plan_rows(plan); m++) {
		if (is_shown(plan, m) && !strstr(as_plan_row(plan, m).name, "ipc"))
			add_column(s, m, &used);
	}
}

static void right(struct as_buf *out, const struct as_buf *text, size_t width)
{
	size_t w = as_text_width(text->p, text->len);

	as_buf_fill(out, ' ', w < width ? width - w : 1);
	as_buf_add(out, text->p, text->len);
}

static void add_headings(const struct as_stat_rows *s, struct as_buf *out)
{
	as_style_ink(&s->style, out, AS_INK_FAINT);
	as_buf_addf(out, "%*s", TIME_WIDTH, "time");
	for (size_t i = 0; i < s->columns; i++) {
		AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

		heading(s, s->column[i], &b);
		right(out, &b, width_of(s, s->column[i]));
	}
	as_style_ink(&s->style, out, AS_INK_PLAIN);
	as_buf_addc(out, '\n');
}

static void add_text(const struct as_stat_rows *s, const struct as_watch_row *row,
		     struct as_buf *out)
{
	if (s->given % PER_HEADING == 0)
		add_headings(s, out);
	as_buf_addf(out, "%*.3f", TIME_WIDTH, row->at_s);
	for (size_t i = 0; i < s->columns; i++) {
		AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
		int m = s->column[i];
		struct as_metric_info info = as_plan_row(s->plan, m);

		if (isnan(row->v[m]))
			as_buf_addc(&b, '-');
		else if (row->v[m] == 0)
			as_buf_addc(&b, '0');
		else
			as_stat_value(&b, &info, row->v[m]);
		if (row->counted[m] > 0 && row->counted[m] < 0.999f && m >= AS_M_COUNT_)
			as_buf_addc(&b, '~'); /* scaled: it took turns */
		right(out, &b, width_of(s, m));
	}
	as_buf_addc(out, '\n');
}

static void add_json(const struct as_stat_rows *s, const struct as_watch_row *row,
		     struct as_buf *out)
{
	struct as_json j = {.out = out};

	as_json_obj(&j, NULL);
	as_json_str(&j, "schema", "assay.stat.interval/1");
	as_json_num(&j, "time", row->at_s, 9);
	as_json_num(&j, "seconds", row->seconds, 9);
	as_json_obj(&j, "metrics");
	for (size_t i = 0; i < s->columns; i++) {
		if (!isnan(row->v[s->column[i]]))
			as_json_num(&j, name_of(s->plan, s->column[i]), row->v[s->column[i]],
				    9);
	}
	as_json_end(&j);
	as_json_obj(&j, "counted");
	for (size_t i = 0; i < s->columns; i++) {
		int m = s->column[i];

		if (m >= AS_M_COUNT_ && row->counted[m] < 0.999f)
			as_json_num(&j, name_of(s->plan, m), row->counted[m], 4);
	}
	as_json_end(&j);
	as_json_end(&j);
	as_buf_addc(out, '\n');
}

static void add_csv(const struct as_stat_rows *s, const struct as_watch_row *row,
		    struct as_buf *out)
{
	if (!s->given) {
		as_buf_adds(out, "time,seconds");
		for (size_t i = 0; i < s->columns; i++)
			as_stat_csv_name(out, name_of(s->plan, s->column[i]));
		as_buf_addc(out, '\n');
	}
	as_buf_addf(out, "%.6f,%.6f", row->at_s, row->seconds);
	for (size_t i = 0; i < s->columns; i++) {
		if (isnan(row->v[s->column[i]]))
			as_buf_addc(out, ',');
		else
			as_buf_addf(out, ",%.9g", row->v[s->column[i]]);
	}
	as_buf_addc(out, '\n');
}

void as_stat_rows_add(struct as_stat_rows *s, const struct as_watch_row *row,
		      struct as_buf *out)
{
	if (s->format == AS_STAT_JSON)
		add_json(s, row, out);
	else if (s->format == AS_STAT_CSV)
		add_csv(s, row, out);
	else
		add_text(s, row, out);
	s->given++;
}

void as_stat_rows_end(const struct as_stat_rows *s, struct as_buf *out)
{
	if (s->format == AS_STAT_TEXT && s->left_out && s->given)
		as_buf_addf(out,
			    "note   %zu more columns did not fit: -e chooses, --format csv has "
			    "all\n",
			    s->left_out);
}

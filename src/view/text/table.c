/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tables of typed cells: see table.h. */
#include "view/text/table.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"

enum { GAP = 3, INDENT = 3, FLEX_MIN = 12 };

size_t as_table_column(struct as_table *t, struct as_column c)
{
	assert(t->nrows == 0);
	as_vec_push(&t->columns, c);
	return t->columns.n - 1;
}

size_t as_table_row(struct as_table *t)
{
	for (size_t i = 0; i < t->columns.n; i++)
		as_vec_push(&t->cells, (struct as_cell){0});
	return t->nrows++;
}

static struct as_cell *last_row(struct as_table *t, size_t column)
{
	assert(t->nrows && column < t->columns.n);
	return &t->cells.v[(t->nrows - 1) * t->columns.n + column];
}

void as_table_text(struct as_table *t, size_t column, const char *text)
{
	struct as_cell *c = last_row(t, column);

	c->set = true;
	c->text = as_arena_strdup(&t->arena, text ? text : "");
}

void as_table_lead(struct as_table *t, size_t column, const char *lead)
{
	last_row(t, column)->lead = as_arena_strdup(&t->arena, lead);
}

void as_table_share(struct as_table *t, size_t column, const struct as_share *s)
{
	struct as_cell *c = last_row(t, column);

	c->set = true;
	c->share = *s;
}

void as_table_mark(struct as_table *t, size_t column, const char *mark)
{
	last_row(t, column)->mark = mark;
}

void as_table_value(struct as_table *t, size_t column, uint64_t v)
{
	struct as_cell *c = last_row(t, column);

	c->set = true;
	c->value = v;
}

void as_table_clear(struct as_table *t)
{
	as_vec_clear(&t->columns);
	as_vec_clear(&t->cells);
	as_arena_clear(&t->arena);
	t->nrows = 0;
}

/* ---- text ---- */

static const struct as_cell *cell_at(const struct as_table *t, size_t row, size_t column)
{
	return &t->cells.v[row * t->columns.n + column];
}

/* The cell as text, without lead, padding and cutting. */
static void cell_text(const struct as_table *t, const struct as_cell *c, size_t column,
		      struct as_buf *out)
{
	if (!c->set)
		return;
	switch (t->columns.v[column].type) {
	case AS_CELL_TEXT:
		as_fmt_quoted(out, c->text, strlen(c->text));
		break;
	case AS_CELL_SHARE:
		as_style_share(out, &c->share);
		break;
	case AS_CELL_COUNT:
		as_fmt_count(out, c->value);
		break;
	case AS_CELL_DURATION:
		as_fmt_duration(out, c->value);
		break;
	case AS_CELL_BYTES:
		as_fmt_bytes(out, c->value);
		break;
	}
}

static bool cell_empty(const struct as_table *t, const struct as_cell *c, size_t column)
{
	if (!c->set)
		return true;
	switch (t->columns.v[column].type) {
	case AS_CELL_TEXT:
		return !*c->text;
	case AS_CELL_SHARE:
		return !(c->share.value > 0);
	default:
		return c->value == 0;
	}
}

static bool cells_equal(const struct as_table *t, size_t row, size_t column)
{
	struct as_buf a = {0}, b = {0};

	cell_text(t, cell_at(t, 0, column), column, &a);
	cell_text(t, cell_at(t, row, column), column, &b);

	bool equal = strcmp(as_buf_str(&a), as_buf_str(&b)) == 0;

	as_buf_clear(&a);
	as_buf_clear(&b);
	return equal;
}

static bool column_hidden(const struct as_table *t, size_t column)
{
	unsigned flags = t->columns.v[column].flags;
	bool same = t->nrows > 1, empty = true;

	if (flags & AS_COL_DATA_ONLY)
		return true;
	for (size_t i = 0; i < t->nrows; i++) {
		empty &= cell_empty(t, cell_at(t, i, column), column);
		if (same && flags & AS_COL_HIDE_SAME)
			same = cells_equal(t, i, column);
	}
	return (flags & AS_COL_HIDE_EMPTY && empty) || (flags & AS_COL_HIDE_SAME && same);
}

/* How a share column is laid out: digits before the point, width after it. */
struct layout {
	bool hidden;
	size_t width; /* as printed */
	size_t left,
		right; /* SHARE: columns up to and after the decimal point's left digit run */
	bool marks;
};

/* Columns before the first '.', of the value itself. */
static size_t share_left(const char *s, size_t *ret_right)
{
	const char *dot = strchr(s, '.');
	size_t left = dot ? as_text_width(s, (size_t)(dot - s)) : as_text_width(s, strlen(s));

	*ret_right = as_text_width(s, strlen(s)) - left;
	return left;
}

static void measure(const struct as_table *t, size_t column, struct layout *l)
{
	const struct as_column *c = &t->columns.v[column];
	size_t head = as_text_width(c->head, strlen(c->head));
	struct as_buf b = {0};

	l->hidden = column_hidden(t, column);
	for (size_t i = 0; i < t->nrows && !l->hidden; i++) {
		const struct as_cell *cell = cell_at(t, i, column);
		size_t right;

		as_buf_reset(&b);
		cell_text(t, cell, column, &b);
		if (c->type != AS_CELL_SHARE) {
			size_t lead =
				cell->lead ? as_text_width(cell->lead, strlen(cell->lead)) : 0;

			l->width =
				AS_MAX(l->width, lead + as_text_width(as_buf_str(&b), b.len));
			continue;
		}
		if (!cell->set)
			continue;
		l->left = AS_MAX(l->left, share_left(as_buf_str(&b), &right));
		l->right = AS_MAX(l->right, right);
		l->marks |= cell->mark != NULL;
	}
	if (c->type == AS_CELL_SHARE)
		l->width = l->left + l->right + 2 + l->marks;
	l->width = AS_MAX(l->width, head);
	as_buf_clear(&b);
}

static size_t total_width(const struct layout *l, size_t n)
{
	size_t total = INDENT, shown = 0;

	for (size_t i = 0; i < n; i++) {
		if (!l[i].hidden) {
			total += l[i].width;
			shown++;
		}
	}
	return total + (shown ? shown - 1 : 0) * GAP;
}

/* Narrows to the style's width: spare columns go first, then the widest flexible one shrinks. */
static void fit(const struct as_table *t, struct layout *l, size_t width)
{
	size_t n = t->columns.n;

	for (size_t i = 0; i < n && total_width(l, n) > width; i++) {
		if (t->columns.v[i].flags & AS_COL_SPARE)
			l[i].hidden = true;
	}
	while (total_width(l, n) > width) {
		size_t over = total_width(l, n) - width, widest = n, second = FLEX_MIN;

		for (size_t i = 0; i < n; i++) {
			if (!(t->columns.v[i].flags & AS_COL_FLEX) || l[i].hidden)
				continue;
			if (widest == n || l[i].width > l[widest].width)
				widest = i;
		}
		if (widest == n || l[widest].width <= FLEX_MIN)
			return;
		for (size_t i = 0; i < n; i++) {
			if (i != widest && t->columns.v[i].flags & AS_COL_FLEX && !l[i].hidden)
				second = AS_MAX(second, l[i].width);
		}

		size_t room = l[widest].width - second;

		l[widest].width -= AS_MAX(AS_MIN(over, room), 1u);
	}
}

static void trim_line(struct as_buf *out)
{
	while (out->len && out->p[out->len - 1] == ' ')
		out->p[--out->len] = 0;
	as_buf_addc(out, '\n');
}

static void print_share(const struct as_cell *c, const struct layout *l, bool first,
			const struct as_style *style, struct as_buf *out)
{
	struct as_buf b = {0};
	size_t right = 0, left, used;

	as_style_share(&b, &c->share);
	left = share_left(as_buf_str(&b), &right);
	as_buf_fill(out, ' ', l->left - left);
	as_buf_adds(out, as_buf_str(&b));
	as_buf_fill(out, ' ', l->right - right);
	as_buf_adds(out, first ? " %" : "  ");
	used = l->left + l->right + 2;
	if (l->marks) {
		if (c->mark)
			as_style_ink(style, out, AS_INK_UNSURE);
		as_buf_adds(out, c->mark ? c->mark : " ");
		if (c->mark)
			as_style_ink(style, out, AS_INK_PLAIN);
		used++;
	}
	as_buf_fill(out, ' ', l->width - used);
	as_buf_clear(&b);
}

static void print_text(const struct as_cell *c, const struct layout *l, bool left_aligned,
		       const char *text, struct as_buf *out)
{
	struct as_buf b = {0};
	size_t lead = 0, w;

	if (c && c->lead) {
		as_buf_adds(&b, c->lead);
		lead = as_text_width(c->lead, strlen(c->lead));
	}
	as_style_cut(&b, text, l->width > lead + 3 ? l->width - lead : 3);
	w = as_text_width(as_buf_str(&b), b.len);
	if (!left_aligned)
		as_buf_fill(out, ' ', l->width - AS_MIN(w, l->width));
	as_buf_adds(out, as_buf_str(&b));
	if (left_aligned)
		as_buf_fill(out, ' ', l->width - AS_MIN(w, l->width));
	as_buf_clear(&b);
}

static void print_head(const struct as_table *t, const struct layout *l,
		       const struct as_style *style, struct as_buf *out)
{
	as_style_ink(style, out, AS_INK_FAINT);
	as_buf_fill(out, ' ', INDENT);
	for (size_t i = 0; i < t->columns.n; i++) {
		const struct as_column *c = &t->columns.v[i];
		bool left = c->type == AS_CELL_TEXT || c->type == AS_CELL_SHARE;

		if (l[i].hidden)
			continue;
		print_text(NULL, &l[i], left, c->head, out);
		as_buf_fill(out, ' ', GAP);
	}
	trim_line(out);
	as_style_ink(style, out, AS_INK_PLAIN);
}

static void print_row(const struct as_table *t, const struct layout *l, size_t row,
		      const struct as_style *style, struct as_buf *out)
{
	struct as_buf b = {0};

	as_buf_fill(out, ' ', INDENT);
	for (size_t i = 0; i < t->columns.n; i++) {
		const struct as_cell *c = cell_at(t, row, i);
		bool faint = t->columns.v[i].flags & AS_COL_FAINT;

		if (l[i].hidden)
			continue;
		if (faint)
			as_style_ink(style, out, AS_INK_FAINT);
		if (t->columns.v[i].type == AS_CELL_SHARE && c->set) {
			print_share(c, &l[i], row == 0, style, out);
		} else {
			as_buf_reset(&b);
			cell_text(t, c, i, &b);
			print_text(c, &l[i],
				   t->columns.v[i].type == AS_CELL_TEXT ||
					   t->columns.v[i].type == AS_CELL_SHARE,
				   as_buf_str(&b), out);
		}
		if (faint)
			as_style_ink(style, out, AS_INK_PLAIN);
		as_buf_fill(out, ' ', GAP);
	}
	trim_line(out);
	as_buf_clear(&b);
}

void as_table_print(const struct as_table *t, const struct as_style *style, struct as_buf *out)
{
	AS_CLEANUP(as_free_autop) struct layout *l = as_xcalloc(t->columns.n + 1, sizeof *l);

	for (size_t i = 0; i < t->columns.n; i++)
		measure(t, i, &l[i]);
	if (!style->full_names)
		fit(t, l, (size_t)style->width);
	print_head(t, l, style, out);
	for (size_t row = 0; row < t->nrows; row++)
		print_row(t, l, row, style, out);
}

/* ---- data ---- */

/* Control characters but newline, and what is no UTF-8, are shown as on a terminal: people look at
 * CSV there. */
static void csv_text(struct as_buf *out, const char *s)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	for (;; s++) {
		size_t n = strcspn(s, "\n");

		as_fmt_quoted(&b, s, n);
		s += n;
		if (!*s)
			break;
		as_buf_addc(&b, '\n');
	}
	s = as_buf_str(&b);
	if (s[strcspn(s, ",\"\n")] == 0) {
		as_buf_adds(out, s);
		return;
	}
	as_buf_addc(out, '"');
	for (; *s; s++) {
		if (*s == '"')
			as_buf_addc(out, '"');
		as_buf_addc(out, *s);
	}
	as_buf_addc(out, '"');
}

static void csv_number(struct as_buf *out, double v)
{
	if (isfinite(v))
		as_buf_addf(out, "%.6g", v);
}

static void csv_cell(const struct as_table *t, size_t row, size_t i, struct as_buf *out)
{
	const struct as_cell *c = cell_at(t, row, i);

	switch (t->columns.v[i].type) {
	case AS_CELL_TEXT:
		csv_text(out, c->set ? c->text : "");
		break;
	case AS_CELL_SHARE:
		csv_number(out, c->set ? c->share.value : NAN);
		as_buf_addc(out, ',');
		csv_number(out, c->set ? c->share.low : NAN);
		as_buf_addc(out, ',');
		csv_number(out, c->set ? c->share.high : NAN);
		break;
	case AS_CELL_DURATION:
		csv_number(out, c->set ? (double)c->value / 1e9 : NAN);
		break;
	default:
		if (c->set)
			as_buf_addf(out, "%llu", (unsigned long long)c->value);
	}
}

static bool in_data(const struct as_table *t, size_t i)
{
	return !(t->columns.v[i].flags & AS_COL_TEXT_ONLY);
}

static void csv_row(const struct as_table *t, size_t row, struct as_buf *out)
{
	const char *comma = "";

	for (size_t i = 0; i < t->columns.n; i++) {
		if (!in_data(t, i))
			continue;
		as_buf_adds(out, comma);
		csv_cell(t, row, i, out);
		comma = ",";
	}
	for (size_t i = 0; i < t->columns.n; i++) {
		const struct as_cell *c = cell_at(t, row, i);

		if (!in_data(t, i) || t->columns.v[i].type != AS_CELL_SHARE)
			continue;
		as_buf_adds(out, comma);
		if (c->set)
			as_buf_addf(out, "%llu", (unsigned long long)c->share.samples);
		comma = ",";
	}
	as_buf_addc(out, '\n');
}

void as_table_csv(const struct as_table *t, struct as_buf *out)
{
	const char *comma = "";

	for (size_t i = 0; i < t->columns.n; i++) {
		const char *key = t->columns.v[i].key;

		if (!in_data(t, i))
			continue;
		as_buf_addf(out, "%s%s", comma, key);
		if (t->columns.v[i].type == AS_CELL_SHARE)
			as_buf_addf(out, ",%s_low,%s_high", key, key);
		comma = ",";
	}
	for (size_t i = 0; i < t->columns.n; i++) {
		if (!in_data(t, i) || t->columns.v[i].type != AS_CELL_SHARE)
			continue;
		as_buf_addf(out, "%s%s_samples", comma, t->columns.v[i].key);
		comma = ",";
	}
	as_buf_addc(out, '\n');
	for (size_t row = 0; row < t->nrows; row++)
		csv_row(t, row, out);
}

static void json_key(struct as_buf *b, const char *key, const char *suffix)
{
	as_buf_reset(b);
	as_buf_addf(b, "%s%s", key, suffix);
}

static void json_share(struct as_json *j, const char *key, const struct as_cell *c,
		       struct as_buf *b)
{
	as_json_num(j, key, c->set ? c->share.value : NAN, 6);
	json_key(b, key, "_low");
	as_json_num(j, b->p, c->set ? c->share.low : NAN, 6);
	json_key(b, key, "_high");
	as_json_num(j, b->p, c->set ? c->share.high : NAN, 6);
}

static void json_cell(const struct as_table *t, size_t row, size_t i, struct as_json *j,
		      struct as_buf *b)
{
	const struct as_cell *c = cell_at(t, row, i);
	const char *key = t->columns.v[i].key;

	if (t->columns.v[i].type == AS_CELL_SHARE)
		json_share(j, key, c, b);
	else if (!c->set)
		as_json_null(j, key);
	else if (t->columns.v[i].type == AS_CELL_TEXT)
		as_json_str(j, key, c->text);
	else if (t->columns.v[i].type == AS_CELL_DURATION)
		as_json_num(j, key, (double)c->value / 1e9, 9);
	else
		as_json_u64(j, key, c->value);
}

void as_table_json(const struct as_table *t, const char *key, struct as_json *j)
{
	struct as_buf b = {0};

	as_json_arr(j, key);
	for (size_t row = 0; row < t->nrows; row++) {
		as_json_obj(j, NULL);
		for (size_t i = 0; i < t->columns.n; i++) {
			if (in_data(t, i))
				json_cell(t, row, i, j, &b);
		}
		for (size_t i = 0; i < t->columns.n; i++) {
			const struct as_cell *c = cell_at(t, row, i);

			if (!in_data(t, i) || t->columns.v[i].type != AS_CELL_SHARE || !c->set)
				continue;
			json_key(&b, t->columns.v[i].key, "_samples");
			as_json_u64(j, b.p, c->share.samples);
		}
		as_json_end(j);
	}
	as_json_end(j);
	as_buf_clear(&b);
}

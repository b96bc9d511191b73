/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Columns of reports: see grid_priv.h. */
#include "results/grid_priv.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"

#define GAP         2
#define NAME_MIDDLE 24
#define NAME_LEAST  12

struct as_grid_line *as_grid_line(struct as_grid *g)
{
	as_vec_push(&g->lines, (struct as_grid_line){0});
	return &g->lines.v[g->lines.n - 1];
}

void as_grid_set(struct as_grid_line *l, size_t column, struct as_buf *text, enum as_ink ink)
{
	struct as_buf clean = {0};

	as_fmt_quoted(&clean, as_buf_str(text), text->len);
	free(l->cell[column].text);
	l->cell[column] = (struct as_grid_cell){clean.len ? as_buf_detach(&clean) : NULL, ink};
	as_buf_clear(text);
}

void as_grid_clear(struct as_grid *g)
{
	as_vec_foreach (l, &g->lines) {
		for (size_t c = 0; c < AS_GRID_COLUMNS; c++)
			free(l->cell[c].text);
		free(l->below);
	}
	as_vec_clear(&g->lines);
}

static size_t width_of(const char *s)
{
	return s ? as_text_width(s, strlen(s)) : 0;
}

/* Columns before the decimal point (or the end of the digits), and of the fraction with its point. */
static void digits_of(const char *s, size_t *ret_whole, size_t *ret_fraction)
{
	size_t n = strcspn(s, "0123456789"), digits;

	n += strspn(s + n, "0123456789,");
	*ret_whole = as_text_width(s, n);
	digits = s[n] == '.' ? strspn(s + n + 1, "0123456789") : 0;
	*ret_fraction = digits ? digits + 1 : 0;
}

/* Numbers get blanks before them and behind their fraction, so that points stand in a column. */
static void align_points(struct as_grid *g, size_t c)
{
	size_t whole = 0, fraction = 0, w, f;

	as_vec_foreach (l, &g->lines) {
		if (!l->cell[c].text)
			continue;
		digits_of(l->cell[c].text, &w, &f);
		whole = AS_MAX(whole, w);
		fraction = AS_MAX(fraction, f);
	}
	as_vec_foreach (l, &g->lines) {
		struct as_buf b = {0};
		const char *s = l->cell[c].text;
		size_t bytes;

		if (!s)
			continue;
		digits_of(s, &w, &f);
		as_buf_fill(&b, ' ', whole - w);
		bytes = strcspn(s, "0123456789");
		bytes += strspn(s + bytes, "0123456789,");
		bytes += f;
		as_buf_add(&b, s, bytes);
		if (s[bytes])
			as_buf_fill(&b, ' ', fraction - f);
		as_buf_adds(&b, s + bytes);
		free(l->cell[c].text);
		l->cell[c].text = as_buf_detach(&b);
	}
}

static void find_widths(struct as_grid *g, size_t width[AS_GRID_COLUMNS])
{
	for (size_t c = 0; c < g->columns; c++) {
		width[c] = 0;
		if (g->align[c] == AS_GRID_POINT)
			align_points(g, c);
		as_vec_foreach (l, &g->lines)
			width[c] = AS_MAX(width[c], width_of(l->cell[c].text));
	}
}

static size_t total(const struct as_grid *g, const size_t width[AS_GRID_COLUMNS])
{
	size_t sum = 0;

	for (size_t c = 0; c < g->columns; c++)
		sum += width[c] ? width[c] + GAP : 0;
	return sum ? sum - GAP : 0;
}

/* Leaves out columns of at least this rank until the line fits. */
static void leave_out(const struct as_grid *g, size_t have, int least,
		      size_t width[AS_GRID_COLUMNS])
{
	while (total(g, width) > have) {
		int worst = least - 1, at = -1;

		for (size_t c = 0; c < g->columns; c++) {
			if (width[c] && g->rank[c] > worst) {
				worst = g->rank[c];
				at = (int)c;
			}
		}
		if (at < 0)
			break;
		width[at] = 0;
	}
}

static void cut_names(const struct as_grid *g, size_t have, size_t least,
		      size_t width[AS_GRID_COLUMNS])
{
	for (size_t c = 0; c < g->columns; c++) {
		size_t over = total(g, width);

		if (g->flexible[c] && over > have && width[c] > least)
			width[c] = AS_MAX(width[c] - AS_MIN(width[c], over - have), least);
	}
}

/* The column of rank 1 is worth more than the whole of a long name. */
static void fit(const struct as_grid *g, const struct as_style *style,
		size_t width[AS_GRID_COLUMNS])
{
	size_t have = (size_t)AS_MAX(style->width, 40);

	leave_out(g, have, 2, width);
	if (style->full_names)
		return;
	cut_names(g, have, NAME_MIDDLE, width);
	leave_out(g, have, 1, width);
	cut_names(g, have, NAME_LEAST, width);
}

static void print_cell(const struct as_style *style, const struct as_grid_cell *cell,
		       bool right, size_t width, struct as_buf *out)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	size_t w;

	if (cell->text)
		as_style_cut(&text, cell->text, width);
	w = width_of(as_buf_str(&text));
	if (right)
		as_buf_fill(out, ' ', width - AS_MIN(w, width));
	if (cell->ink != AS_INK_PLAIN)
		as_style_ink(style, out, cell->ink);
	as_buf_adds(out, as_buf_str(&text));
	if (cell->ink != AS_INK_PLAIN)
		as_style_ink(style, out, AS_INK_PLAIN);
	if (!right)
		as_buf_fill(out, ' ', width - AS_MIN(w, width));
}

static void trim_blanks(struct as_buf *out)
{
	while (out->len && out->p[out->len - 1] == ' ')
		out->p[--out->len] = 0;
}

void as_grid_print(struct as_grid *g, const struct as_style *style, struct as_buf *out)
{
	size_t width[AS_GRID_COLUMNS];

	find_widths(g, width);
	fit(g, style, width);
	as_vec_foreach (l, &g->lines) {
		bool first = true;

		for (size_t c = 0; c < g->columns; c++) {
			if (!width[c])
				continue;
			as_buf_fill(out, ' ', first ? 0 : GAP);
			first = false;
			print_cell(style, &l->cell[c], g->align[c] == AS_GRID_RIGHT, width[c],
				   out);
		}
		trim_blanks(out);
		as_buf_addc(out, '\n');
		if (l->below)
			as_buf_adds(out, l->below);
	}
}

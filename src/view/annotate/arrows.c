/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Jumps as lanes of a gutter. Arrows to one row share a lane and become one figure from their
 * outermost ends; figures are laid out shortest first, each in the rightmost lane that is free
 * over its whole length, so that nested loops nest in the picture. What finds no lane is left out:
 * the instruction's text still says where it leads.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "view/annotate/annotate_priv.h"

struct figure {
	uint32_t first, n; /* jumps[first … +n], all to one row */
	uint32_t lo, hi, lane;
};

static int by_target(const void *pa, const void *pb)
{
	const struct as_an_jump *a = pa, *b = pb;

	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	return a->from < b->from ? -1 : a->from > b->from;
}

static int by_length(const void *pa, const void *pb)
{
	const struct figure *a = pa, *b = pb;

	if (a->hi - a->lo != b->hi - b->lo)
		return a->hi - a->lo < b->hi - b->lo ? -1 : 1;
	return a->lo < b->lo ? -1 : a->lo > b->lo;
}

static bool is_free(const uint8_t *used, uint32_t lo, uint32_t hi)
{
	return !memchr(used + lo, 1, hi - lo + 1);
}

/* used[lane * nrows + row]; AS_NONE: no lane is free. */
static uint32_t take_lane(uint8_t *used, uint32_t nrows, uint32_t max_lanes,
			  const struct figure *f)
{
	for (uint32_t lane = 0; lane < max_lanes; lane++) {
		uint8_t *row = used + (size_t)lane * nrows;

		if (!is_free(row, f->lo, f->hi))
			continue;
		memset(row + f->lo, 1, f->hi - f->lo + 1);
		return lane;
	}
	return AS_NONE;
}

/* The way from the lane to the text. */
static void draw_end(struct as_an_gutter *g, const struct figure *f, uint32_t row, bool head)
{
	uint8_t *cell = g->cell + (size_t)row * g->lanes;
	uint32_t at = g->lanes - 1 - f->lane;

	cell[at] |= AS_AN_RIGHT;
	for (uint32_t c = at + 1; c < g->lanes; c++)
		cell[c] |= AS_AN_LEFT | AS_AN_RIGHT;
	if (head)
		cell[g->lanes - 1] |= AS_AN_HEAD;
}

static void draw(struct as_an_gutter *g, const struct figure *f, const struct as_an_jump *jumps)
{
	uint32_t at = g->lanes - 1 - f->lane;

	for (uint32_t row = f->lo; row <= f->hi; row++)
		g->cell[(size_t)row * g->lanes + at] |=
			(row > f->lo ? AS_AN_UP : 0) | (row < f->hi ? AS_AN_DOWN : 0);
	for (uint32_t i = f->first; i < f->first + f->n; i++)
		draw_end(g, f, jumps[i].from, false);
	draw_end(g, f, jumps[f->first].to, true);
}

void as_an_gutter_make(const struct as_an_jump *jumps, size_t njumps, uint32_t nrows,
		       uint32_t max_lanes, struct as_an_gutter *ret)
{
	struct as_an_jump *j = as_xreallocarray(NULL, njumps + 1, sizeof *j);
	AS_VEC(struct figure) figures = {0};
	uint8_t *used = as_xcalloc((size_t)nrows + 1, max_lanes + 1);
	size_t n = 0;

	*ret = (struct as_an_gutter){0};
	for (size_t i = 0; i < njumps; i++) {
		if (jumps[i].from != jumps[i].to && jumps[i].from < nrows &&
		    jumps[i].to < nrows)
			j[n++] = jumps[i];
	}
	if (n)
		qsort(j, n, sizeof *j, by_target);
	for (uint32_t i = 0; i < n; i++) {
		struct figure *f = figures.n ? &figures.v[figures.n - 1] : NULL;

		if (!f || j[f->first].to != j[i].to) {
			as_vec_push(&figures,
				    (struct figure){.first = i, .lo = j[i].to, .hi = j[i].to});
			f = &figures.v[figures.n - 1];
		}
		f->n++;
		f->lo = AS_MIN(f->lo, j[i].from);
		f->hi = AS_MAX(f->hi, j[i].from);
	}
	if (figures.n)
		qsort(figures.v, figures.n, sizeof *figures.v, by_length);
	as_vec_foreach (f, &figures) {
		f->lane = take_lane(used, nrows, max_lanes, f);
		if (f->lane != AS_NONE)
			ret->lanes = AS_MAX(ret->lanes, f->lane + 1);
	}
	free(used);
	ret->cell = as_xcalloc((size_t)nrows + 1, ret->lanes + 1);
	as_vec_foreach (f, &figures) {
		if (f->lane != AS_NONE)
			draw(ret, f, j);
	}
	as_vec_clear(&figures);
	free(j);
}

void as_an_gutter_clear(struct as_an_gutter *g)
{
	free(g->cell);
	g->cell = NULL;
}

const char *as_an_cell_text(uint8_t cell)
{
	static const char *const text[16] = {" ", "│", "│", "│", "─", "╰", "╭", "├",
					     "─", "╯", "╮", "┤", "─", "┴", "┬", "┼"};

	return text[cell & 15];
}

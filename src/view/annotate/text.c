/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rows as text. Columns, left to right:
 *
 *	self	total	samples	mark	gutter	line number | address	text
 *
 * total stands only where it says more than self, samples only on a wide terminal, the gutter only
 * where there are jumps. The mark and the colour say the same: how much of the function's own
 * code this is.
 */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/sys.h"
#include "view/annotate/annotate_priv.h"
#include "view/memory/memory.h"

enum {
	FIGURE = 11, /* "100.0 ±12.3" */
	FIGURE_POINT = 3,
	SAMPLES = 9,
	LANES_NARROW = 3,
	LANES_WIDE = 6,
	REACH = 60, /* by source: rows an arrow may span */
};
/* Of the function's samples. */
static const double HOT = 0.2, WARM = 0.05, LUKEWARM = 0.01;

/* ---- jumps ---- */

/* Row per instruction: its own, or in a listing by address the fold it stands in. */
static void find_jumps(const struct as_an_printer *p, uint32_t *row_of, struct as_an_jump **ret,
		       size_t *ret_n)
{
	const struct as_an_tree *t = p->t;
	AS_VEC(struct as_an_jump) jumps = {0};
	struct as_map64 by_svma = {0};

	for (uint32_t i = 0; i < t->insns.n; i++) {
		if (t->insns.v[i].text && row_of[i] != AS_NONE)
			*as_map64_put(&by_svma, t->insns.v[i].svma, NULL) = i;
	}
	for (uint32_t i = 0; i < t->insns.n; i++) {
		const struct as_listing_insn *insn = t->insns.v[i].text;
		const uint64_t *to;
		uint32_t from = row_of[i], reach;

		if (!insn || from == AS_NONE || !insn->target ||
		    (insn->kind != AS_INSN_JUMP && insn->kind != AS_INSN_BRANCH))
			continue;
		to = as_map64_get(&by_svma, insn->target);
		if (!to)
			continue;
		reach = row_of[*to] > from ? row_of[*to] - from : from - row_of[*to];
		if (p->by_address || reach <= REACH)
			as_vec_push(&jumps, (struct as_an_jump){from, row_of[*to]});
	}
	as_map64_clear(&by_svma);
	*ret = jumps.v;
	*ret_n = jumps.n;
}

static void make_gutter(struct as_an_printer *p)
{
	uint32_t *row_of = as_xreallocarray(NULL, p->t->insns.n + 1, sizeof *row_of);
	struct as_an_jump *jumps = NULL;
	size_t njumps = 0;

	memset(row_of, 0xff, (p->t->insns.n + 1) * sizeof *row_of);
	for (uint32_t i = 0; i < p->rows->v.n; i++) {
		if (p->rows->v.v[i].kind == AS_AN_INSN)
			row_of[p->rows->v.v[i].insn] = i;
	}
	find_jumps(p, row_of, &jumps, &njumps);
	as_an_gutter_make(jumps, njumps, (uint32_t)p->rows->v.n,
			  p->style->width < AS_AN_WIDE ? LANES_NARROW : LANES_WIDE, &p->gutter);
	free(jumps);
	free(row_of);
}

/* ---- cells ---- */

static void pad(struct as_an_printer *p, size_t from, size_t width)
{
	size_t used = as_text_width(p->out->p + from, p->out->len - from);

	if (used < width)
		as_buf_fill(p->out, ' ', width - used);
}

/* Decimal points stand below each other; "≤ 0.4" has its own. */
static void figure(struct as_an_printer *p, const struct as_share *s)
{
	struct as_buf b = {0};
	size_t from = p->out->len, point;

	if (s && s->samples) {
		as_style_share(&b, s);
		point = as_text_width(b.p, strcspn(b.p, "."));
		if (point < FIGURE_POINT)
			as_buf_fill(p->out, ' ', FIGURE_POINT - point);
		as_buf_adds(p->out, b.p);
	}
	pad(p, from, FIGURE + 1);
	as_buf_clear(&b);
}

static const struct as_cost *cost_of(const struct as_an_printer *p, const struct as_an_row *r)
{
	if (r->kind == AS_AN_INSN)
		return as_an_insn_cost(p->t, r->insn);
	if ((r->kind == AS_AN_SOURCE || r->kind == AS_AN_INLINE) && r->place != AS_NONE)
		return as_an_place_cost(p->t, r->place);
	return NULL;
}

/* How many, or what they come to in a session of memory. */
static void add_samples(const struct as_an_printer *p, const struct as_share *s,
			struct as_buf *b)
{
	const struct as_annotation *a = p->t->v->a;
	bool of_function = p->t->v->q->of == AS_ANNOTATE_FUNCTION;
	double whole = of_function ? a->of_all.total.value * a->weight : a->weight;

	if (as_model_is_counted(a->model))
		as_memory_amount(a->model, s->value * whole, b);
	else
		as_fmt_count(b, s->samples);
}

static double heat_of(const struct as_an_printer *p, const struct as_an_row *r)
{
	const struct as_annotation *a = p->t->v->a;
	uint32_t c = AS_NONE;

	if (r->kind == AS_AN_INSN) {
		c = p->t->insns.v[r->insn].cost;
		return c == AS_NONE ? 0 : a->insns.v[c].of_function.code.value;
	}
	if ((r->kind == AS_AN_SOURCE || r->kind == AS_AN_INLINE) && r->place != AS_NONE)
		c = p->t->places.v[r->place].cost;
	return c == AS_NONE ? 0 : a->places.v[c].of_function.code.value;
}

static enum as_ink ink_of(double heat)
{
	return heat >= HOT ? AS_INK_BAD : heat >= WARM ? AS_INK_UNSURE : AS_INK_PLAIN;
}

enum as_ink as_an_row_ink(const struct as_an_printer *p, const struct as_an_row *r)
{
	return ink_of(heat_of(p, r));
}

/* Inks the text only where it is not plain: no codes on most rows. */
static void ink_on(struct as_an_printer *p, enum as_ink ink)
{
	if (ink != AS_INK_PLAIN)
		as_style_ink(p->style, p->out, ink);
}

static void ink_off(struct as_an_printer *p, enum as_ink ink)
{
	if (ink != AS_INK_PLAIN)
		as_style_ink(p->style, p->out, AS_INK_PLAIN);
}

static void figures(struct as_an_printer *p, const struct as_an_row *r)
{
	const struct as_cost *c = cost_of(p, r);
	double heat = heat_of(p, r);
	size_t from;

	ink_on(p, ink_of(heat));
	figure(p, c ? &c->self : NULL);
	if (p->totals) /* an instruction's is news only where it calls */
		figure(p, c && (r->kind != AS_AN_INSN || c->total.samples != c->self.samples)
				  ? &c->total
				  : NULL);
	if (p->samples) {
		struct as_buf b = {0};

		if (c)
			add_samples(p, p->totals ? &c->total : &c->self, &b);
		from = as_text_width(as_buf_str(&b), b.len);
		as_buf_fill(p->out, ' ', from < SAMPLES - 1 ? SAMPLES - 1 - from : 0);
		as_buf_adds(p->out, as_buf_str(&b));
		as_buf_addc(p->out, ' ');
		as_buf_clear(&b);
	}
	as_buf_adds(p->out, heat >= HOT        ? "█"
			    : heat >= WARM     ? "▌"
			    : heat >= LUKEWARM ? "▏"
					       : " ");
	ink_off(p, ink_of(heat));
}

static void gutter(struct as_an_printer *p, size_t row)
{
	const uint8_t *cell = p->gutter.cell + row * p->gutter.lanes;
	uint8_t last;

	if (!p->gutter.lanes)
		return;
	last = cell[p->gutter.lanes - 1];
	as_style_ink(p->style, p->out, AS_INK_FAINT);
	for (uint32_t i = 0; i < p->gutter.lanes; i++)
		as_buf_adds(p->out, as_an_cell_text(cell[i]));
	as_buf_adds(p->out, last & AS_AN_HEAD ? "▸" : last & AS_AN_RIGHT ? "─" : " ");
	as_style_ink(p->style, p->out, AS_INK_PLAIN);
}

static void print_row(struct as_an_printer *p, size_t row)
{
	const struct as_an_row *r = &p->rows->v.v[row];

	figures(p, r);
	gutter(p, row);
	as_an_row_text(p, row);
	while (p->out->len && p->out->p[p->out->len - 1] == ' ')
		p->out->p[--p->out->len] = 0;
	as_buf_addc(p->out, '\n');
}

/* ---- all of it ---- */

static bool totals_are_news(const struct as_an_printer *p)
{
	as_vec_foreach (r, &p->rows->v) {
		const struct as_cost *c = cost_of(p, r);

		if (c && c->total.samples != c->self.samples)
			return true;
	}
	return false;
}

static int address_digits(const struct as_an_tree *t)
{
	uint64_t most = 0;
	int n = 1;

	as_vec_foreach (i, &t->insns)
		most = AS_MAX(most, i->svma);
	while (most >>= 4)
		n++;
	return n;
}

static void head(struct as_an_printer *p)
{
	as_style_ink(p->style, p->out, AS_INK_FAINT);
	as_buf_addf(p->out, "%-*s", FIGURE + 1, "  self %");
	if (p->totals)
		as_buf_addf(p->out, "%-*s", FIGURE + 1, " total %");
	if (p->samples)
		as_buf_addf(p->out, "%*s ", SAMPLES - 1,
			    as_model_is_counted(p->t->v->a->model)
				    ? as_measure_name(p->t->v->a->model->measure)
				    : "samples");
	as_buf_fill(p->out, ' ', 1 + (p->gutter.lanes ? p->gutter.lanes + 1 : 0));
	if (p->by_address)
		as_buf_addf(p->out, " %*s  instruction", p->address, "at");
	else
		as_buf_addf(p->out, "%*s  source", AS_AN_NUMBER, "line");
	as_style_ink(p->style, p->out, AS_INK_PLAIN);
	as_buf_addc(p->out, '\n');
}

void as_an_print(const struct as_an_tree *t, const struct as_an_rows *rows,
		 const struct as_style *style, struct as_buf *out)
{
	struct as_an_printer p = {.t = t, .rows = rows, .style = style, .out = out};

	p.by_address = rows->by_address;
	p.samples = style->width >= AS_AN_WIDE;
	p.totals = totals_are_news(&p);
	p.address = address_digits(t);
	make_gutter(&p);
	p.left = FIGURE + 1 + (p.totals ? FIGURE + 1 : 0) + (p.samples ? SAMPLES : 0) + 1 +
		 (p.gutter.lanes ? p.gutter.lanes + 1 : 0);
	head(&p);
	for (size_t i = 0; i < rows->v.n; i++)
		print_row(&p, i);
	as_an_gutter_clear(&p.gutter);
}

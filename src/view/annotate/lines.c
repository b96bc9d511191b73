/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What stands right of the gutter: source lines, inlined places, instructions, folds. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/sys.h"
#include "view/annotate/annotate_priv.h"

enum { TAB = 4, INDENT_MAX = 6 };

/* Columns left for text that starts after `used` columns of the text area. */
static size_t room(const struct as_an_printer *p, size_t used)
{
	size_t width = (size_t)p->style->width, taken = p->left + used;

	return width > taken + 8 ? width - taken : 8;
}

/* Code says most at its beginning. */
static void cut_end(struct as_buf *out, const char *text, size_t width)
{
	struct as_buf clean = {0};
	size_t n;

	as_fmt_quoted(&clean, text, strlen(text));
	n = clean.len;
	if (as_text_width(as_buf_str(&clean), n) > width) {
		for (n = 0; as_text_width(clean.p, n + 1) < width; n++)
			;
		while (n && (clean.p[n] & 0xc0) == 0x80)
			n--;
	}
	as_buf_add(out, as_buf_str(&clean), n);
	if (n < clean.len)
		as_buf_adds(out, "…");
	as_buf_clear(&clean);
}

/* Source: tabs as TAB columns, cut at its end, where the least is said. */
static void code_line(struct as_an_printer *p, const char *text, size_t width)
{
	struct as_buf b = {0};
	size_t column = 0;

	for (const char *s = text; *s; s++) {
		if (*s == '\t') {
			as_buf_fill(&b, ' ', TAB - column % TAB);
			column += TAB - column % TAB;
		} else {
			as_buf_addc(&b, *s);
			column += (*s & 0xc0) != 0x80;
		}
	}
	while (b.len && (b.p[b.len - 1] == ' ' || b.p[b.len - 1] == '\r'))
		b.p[--b.len] = 0;
	cut_end(p->out, as_buf_str(&b), width);
	as_buf_clear(&b);
}

static size_t indent(struct as_an_printer *p, uint32_t depth)
{
	size_t n = AS_AN_NUMBER + 2 + 2 * AS_MIN(depth, (uint32_t)INDENT_MAX);

	as_buf_fill(p->out, ' ', n);
	return n;
}

static void source_row(struct as_an_printer *p, const struct as_an_row *r)
{
	const char *text = as_an_line_text(as_an_file(p->t, r->file), r->line);
	bool hot = as_an_row_ink(p, r) == AS_INK_BAD;

	if (r->line)
		as_buf_addf(p->out, "%*u  ", AS_AN_NUMBER, r->line);
	else
		as_buf_addf(p->out, "%*s  ", AS_AN_NUMBER, "?");
	if (hot)
		as_style_ink(p->style, p->out, AS_INK_STRONG);
	if (text)
		code_line(p, text, room(p, AS_AN_NUMBER + 2));
	else if (!r->line)
		as_buf_adds(p->out, "(no line known)");
	if (hot)
		as_style_ink(p->style, p->out, AS_INK_PLAIN);
}

static const char *place_name(const struct as_an_printer *p, uint32_t place)
{
	const struct as_an_place *at = &p->t->places.v[place];

	if (p->style->full_names && at->function != AS_NONE)
		return p->t->v->a->model->functions.v[at->function].full;
	return at->name;
}

/* "next ‹ fold ‹ sum": the innermost first, what only passes on behind it; in less room
 * "next ‹ 2 more". */
static void inlined_names(const struct as_an_printer *p, const struct as_an_row *r,
			  size_t width, struct as_buf *b)
{
	size_t n = 0, innermost = 0;

	for (uint32_t at = r->place;; at = p->t->places.v[at].parent) {
		const char *name = place_name(p, at);

		as_buf_adds(b, b->len ? " ‹ " : "");
		as_fmt_quoted(b, name, strlen(name));
		if (!n++)
			innermost = b->len;
		if (at == r->via)
			break;
	}
	if (n < 2 || as_text_width(b->p, b->len) <= width)
		return;
	b->p[b->len = innermost] = 0;
	as_buf_addf(b, " ‹ %zu more", n - 1);
}

void as_an_shorten_path(struct as_buf *b)
{
	char *up;

	while (b->len && (up = strstr(b->p, "/../"))) {
		char *from = up;

		while (from > b->p && from[-1] != '/')
			from--;
		if (from == up || strncmp(from, "../", 3) == 0)
			return;
		memmove(from, up + 4, strlen(up + 4) + 1);
		b->len -= (size_t)(up + 4 - from);
	}
}

/* file:line of an inlined place; narrow: the last part of the path. */
static void place_path(const struct as_an_printer *p, const char *file, uint32_t line,
		       struct as_buf *b)
{
	struct as_buf path = {0};
	const char *from;

	as_style_path(&path, p->t->v->a->model, file);
	as_an_shorten_path(&path);
	from = as_buf_str(&path);
	if (p->style->width < AS_AN_WIDE) {
		const char *slash = strrchr(from, '/');

		from = slash && slash[1] ? slash + 1 : from;
	}
	as_fmt_quoted(b, from, strlen(from));
	if (line)
		as_buf_addf(b, ":%u", line);
	as_buf_clear(&path);
}

/* The end of a path says most. */
static void add_tail(struct as_buf *out, const char *text, size_t width)
{
	size_t n = strlen(text), from = n > 8 * width ? n - 8 * width : 0;

	if (from || as_text_width(text, n) > width) {
		while (from < n && as_text_width(text + from, n - from) >= width)
			from++;
		while ((text[from] & 0xc0) == 0x80)
			from++;
		as_buf_adds(out, "…");
	}
	as_buf_adds(out, text + from);
}

static void inline_row(struct as_an_printer *p, const struct as_an_row *r)
{
	const char *text = as_an_line_text(as_an_file(p->t, r->file), r->line);
	struct as_buf names = {0}, where = {0};
	size_t used = indent(p, r->depth - 1), space = room(p, used + 2), wn, wp;

	if (r->file && r->file[0])
		place_path(p, r->file, r->line, &where);
	wp = as_text_width(as_buf_str(&where), where.len);
	inlined_names(p, r, space > wp + 2 ? space - wp - 2 : 0, &names);
	wn = as_text_width(names.p, names.len);
	as_buf_adds(p->out, "↳ ");
	if (wn + 2 + wp > space) { /* both give way, the path first */
		wp = AS_MIN(wp, AS_MAX(space / 2, space > wn + 2 ? space - wn - 2 : 0));
		wn = AS_MIN(wn, space - AS_MIN(space, wp + 2));
	}
	as_style_cut(p->out, names.p, wn);
	as_buf_adds(p->out, "  ");
	as_style_ink(p->style, p->out, AS_INK_FAINT);
	add_tail(p->out, as_buf_str(&where), wp);
	as_style_ink(p->style, p->out, AS_INK_PLAIN);
	if (text) {
		text += strspn(text, " \t");
		if (*text && space > wn + wp + 20) {
			as_buf_adds(p->out, "  ");
			code_line(p, text, space - wn - wp - 4);
		}
	}
	as_buf_clear(&names);
	as_buf_clear(&where);
}

/* "clock_gettime@plt" leads to "__GI___clock_gettime". */
static bool says_it(const struct as_listing_insn *i, const char *callee)
{
	char base[128];
	size_t n;

	if (i && strstr(i->text, callee))
		return true;
	if (!i || !i->target_name)
		return false;
	n = strcspn(i->target_name, "@");
	if (n == 0 || n >= sizeof base)
		return false;
	memcpy(base, i->target_name, n);
	base[n] = 0;
	return strstr(callee, base) || strstr(base, callee);
}

/* What an instruction called, where its own text does not say it (a call through a pointer). */
static void callees(const struct as_an_printer *p, const struct as_an_row *r, struct as_buf *b)
{
	const struct as_annotation *a = p->t->v->a;
	const struct as_an_insn *i = &p->t->insns.v[r->insn];
	const struct as_annotated_insn *cost;
	uint64_t least;

	if (i->cost == AS_NONE || !a->insns.v[i->cost].ncalls)
		return;
	cost = &a->insns.v[i->cost];
	/* where a timer interrupted it, any instruction seems to call the kernel */
	least = cost->of_all.total.samples /
		(i->text && i->text->kind == AS_INSN_CALL ? 20 : 2);
	for (uint32_t k = 0; k < cost->ncalls; k++) {
		const struct as_annotated_call *call = &a->calls.v[cost->call + k];
		const char *name = a->model->functions.v[call->function].brief;

		if (call->of_all.samples < least || (k == 0 && says_it(i->text, name)))
			return;
		as_buf_adds(b, k ? ", " : "");
		as_fmt_quoted(b, name, strlen(name));
		if (cost->ncalls > 1)
			as_buf_addf(b, " %.1f", call->of_all.value * 100);
	}
}

/* By address: the place, where it is another one than above. */
static void insn_place(const struct as_an_printer *p, const struct as_an_row *r, size_t row,
		       struct as_buf *b)
{
	const struct as_an_place *at = &p->t->places.v[r->place];
	const char *slash = strrchr(at->file, '/');

	if (row && p->rows->v.v[row - 1].kind == AS_AN_INSN &&
	    p->rows->v.v[row - 1].place == r->place)
		return;
	if (at->parent != AS_NONE) {
		as_fmt_quoted(b, at->name, strlen(at->name));
		as_buf_addc(b, ' ');
	}
	if (at->file[0] && at->line) {
		const char *name = slash ? slash + 1 : at->file;

		as_fmt_quoted(b, name, strlen(name));
		as_buf_addf(b, ":%u", at->line);
	}
}

static void insn_row(struct as_an_printer *p, const struct as_an_row *r, size_t row)
{
	const struct as_an_insn *i = &p->t->insns.v[r->insn];
	struct as_buf text = {0}, place = {0}, called = {0};
	size_t used = 1, space;
	bool hot = as_an_row_ink(p, r) == AS_INK_BAD;

	if (p->by_address)
		as_buf_addc(p->out, ' ');
	else
		used = indent(p, r->depth);
	used += (size_t)p->address + 2;
	space = room(p, used);
	as_style_ink(p->style, p->out, AS_INK_FAINT);
	as_buf_addf(p->out, "%*llx", p->address, (unsigned long long)i->svma);
	as_style_ink(p->style, p->out, AS_INK_PLAIN);
	as_buf_adds(p->out, "  ");
	callees(p, r, &called);
	if (i->text) {
		size_t wish = as_text_width(as_buf_str(&called), called.len);
		size_t give = called.len ? AS_MIN(wish + 4, AS_MAX(space / 2, (size_t)12)) : 0;

		cut_end(&text, i->text->text, space > give + 8 ? space - give : 8);
	}
	if (called.len) {
		size_t taken = as_text_width(as_buf_str(&text), text.len) + (text.len ? 4 : 2);

		as_buf_adds(&text, text.len ? "  → " : "→ ");
		if (strchr(called.p, ','))
			cut_end(&text, called.p, space > taken ? space - taken : 0);
		else
			as_style_cut(&text, called.p, space > taken ? space - taken : 0);
	}
	if (p->by_address)
		insn_place(p, r, row, &place);
	if (hot)
		as_style_ink(p->style, p->out, AS_INK_STRONG);
	as_style_cut(p->out, as_buf_str(&text), space);
	if (hot)
		as_style_ink(p->style, p->out, AS_INK_PLAIN);
	if (place.len) {
		size_t wt = AS_MIN(space, as_text_width(as_buf_str(&text), text.len));
		size_t column = AS_MAX(wt + 2, AS_MIN((size_t)44, space / 2));

		if (column + 12 < space) {
			as_buf_fill(p->out, ' ', column - wt);
			as_style_ink(p->style, p->out, AS_INK_FAINT);
			as_style_cut(p->out, place.p, space - column);
			as_style_ink(p->style, p->out, AS_INK_PLAIN);
		}
	}
	as_buf_clear(&text);
	as_buf_clear(&place);
	as_buf_clear(&called);
}

struct called {
	uint32_t function;
	double share;
};

static int most_called(const void *pa, const void *pb)
{
	const struct called *a = pa, *b = pb;

	if (a->share != b->share)
		return a->share < b->share ? 1 : -1;
	return a->function < b->function ? -1 : a->function > b->function;
}

/* Calls of a place to functions that are worth it, summed over its instructions. */
static size_t calls_of(const struct as_an_printer *p, uint32_t place, struct called **ret)
{
	const struct as_an_tree *t = p->t;
	const struct as_annotation *a = t->v->a;
	double least = a->of_all.total.value / 100;
	AS_VEC(struct called) called = {0};
	struct as_map64 ids = {0};
	size_t n = 0;

	for (uint32_t i = t->places.v[place].first_insn; i != AS_NONE; i = t->insns.v[i].next) {
		uint32_t c = t->insns.v[i].cost;

		for (uint32_t k = 0; c != AS_NONE && k < a->insns.v[c].ncalls; k++) {
			const struct as_annotated_call *call =
				&a->calls.v[a->insns.v[c].call + k];
			bool fresh;
			uint64_t *id = as_map64_put(&ids, call->function, &fresh);

			if (fresh) {
				*id = called.n;
				as_vec_push(&called, (struct called){call->function, 0});
			}
			called.v[*id].share += call->of_all.value;
		}
	}
	as_map64_clear(&ids);
	if (called.n)
		qsort(called.v, called.n, sizeof *called.v, most_called);
	while (n < called.n && called.v[n].share >= least)
		n++;
	*ret = called.v;
	return n;
}

static void calls_row(struct as_an_printer *p, const struct as_an_row *r)
{
	enum { NAMES = 4 };
	struct called *called;
	size_t used = indent(p, r->depth), n = calls_of(p, r->place, &called);
	struct as_buf b = {0};

	for (size_t i = 0; i < AS_MIN(n, (size_t)NAMES); i++) {
		const char *name = p->t->v->a->model->functions.v[called[i].function].brief;

		as_buf_adds(&b, i ? ", " : "→ ");
		as_fmt_quoted(&b, name, strlen(name));
		as_buf_addf(&b, " %.1f", called[i].share * 100);
	}
	if (n > NAMES)
		as_buf_addf(&b, " and %zu more", n - NAMES);
	as_style_ink(p->style, p->out, AS_INK_FAINT);
	as_style_cut(p->out, as_buf_str(&b), room(p, used));
	as_style_ink(p->style, p->out, AS_INK_PLAIN);
	free(called);
	as_buf_clear(&b);
}

static void fold_row(struct as_an_printer *p, const struct as_an_row *r)
{
	struct as_buf b = {0};
	double of = p->t->v->q->of == AS_ANNOTATE_FUNCTION ? 1 : p->t->v->a->of_all.total.value;
	size_t used = 1;

	if (p->by_address)
		as_buf_addc(p->out, ' ');
	else
		used = indent(p, r->depth);
	as_buf_adds(&b, "⋯ ");
	as_fmt_count(&b, r->folded);
	as_buf_addf(&b, r->insns ? " instruction%s" : " line%s", r->folded == 1 ? "" : "s");
	if (r->share > 0)
		as_buf_addf(&b, ": %.1f %%", r->share * of * 100);
	if (r->most > 0)
		as_buf_addf(&b, ", each ≤ %.1f %%", r->most * of * 100);
	if (r->share <= 0)
		as_buf_adds(&b, " without samples");
	as_style_ink(p->style, p->out, AS_INK_FAINT);
	as_style_cut(p->out, b.p, room(p, used));
	as_style_ink(p->style, p->out, AS_INK_PLAIN);
	as_buf_clear(&b);
}

static void file_row(struct as_an_printer *p, const struct as_an_row *r)
{
	const struct as_listing_file *f = as_an_file(p->t, r->file);
	struct as_buf path = {0}, clean = {0};

	if (r->file && r->file[0])
		as_style_path(&path, p->t->v->a->model, r->file);
	else
		as_buf_adds(&path, "(no file known)");
	as_an_shorten_path(&path);
	as_fmt_quoted(&clean, path.p, path.len);
	as_buf_fill(p->out, ' ', AS_AN_NUMBER + 2);
	as_style_ink(p->style, p->out, AS_INK_FAINT);
	add_tail(p->out, clean.p, room(p, AS_AN_NUMBER + 2 + 16));
	if (!f || !f->lines.n)
		as_buf_adds(p->out, "  (not found)");
	as_style_ink(p->style, p->out, AS_INK_PLAIN);
	as_buf_clear(&path);
	as_buf_clear(&clean);
}

static void part_row(struct as_an_printer *p, const struct as_an_row *r)
{
	as_style_ink(p->style, p->out, AS_INK_FAINT);
	as_buf_addf(p->out, " ── another part of the function, at %llx ──",
		    (unsigned long long)p->t->insns.v[r->insn].svma);
	as_style_ink(p->style, p->out, AS_INK_PLAIN);
}

void as_an_row_text(struct as_an_printer *p, size_t row)
{
	const struct as_an_row *r = &p->rows->v.v[row];

	switch (r->kind) {
	case AS_AN_FILE:
		file_row(p, r);
		break;
	case AS_AN_SOURCE:
		source_row(p, r);
		break;
	case AS_AN_INLINE:
		inline_row(p, r);
		break;
	case AS_AN_CALLS:
		calls_row(p, r);
		break;
	case AS_AN_INSN:
		insn_row(p, r, row);
		break;
	case AS_AN_PART:
		part_row(p, r);
		break;
	case AS_AN_FOLD:
		fold_row(p, r);
		break;
	}
}

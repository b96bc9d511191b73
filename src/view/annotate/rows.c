/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What of a function is shown, and what is folded: see annotate_priv.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view/annotate/annotate_priv.h"

enum {
	CONTEXT = 3,
	LEAST_FOLD = 3,
	DEPTH_MAX = 12,
	LINES_MAX = 1000000,
	INSNS_MAX = 8,
	MANY_WARM = 20,
	LOOP_MAX = 64
};

/* Of the function's samples: what is less stands in a fold; inlined places need more, because each
 * takes a row of its own besides its line's. */
static const double WORTH_LINE = 0.005, WORTH_INLINE = 0.01, SAME = 0.97, EVEN = 0.1,
		    WORTH_LOOP = 0.05;

struct maker {
	const struct as_an_tree *t;
	struct as_an_rows *out;
	uint32_t context;
	bool full, with_insns;
};

static struct as_an_row row_of(enum as_an_kind kind)
{
	return (struct as_an_row){
		.kind = kind, .place = AS_NONE, .insn = AS_NONE, .via = AS_NONE};
}

static void put(struct maker *k, struct as_an_row r)
{
	as_vec_push(&k->out->v, r);
}

static void put_fold(struct maker *k, uint32_t n, double share, const struct as_an_row *like)
{
	struct as_an_row r = *like;

	if (!n)
		return;
	r.kind = AS_AN_FOLD;
	r.folded = n;
	r.share = share;
	put(k, r);
	k->out->anything_folded = true;
}

/* ---- below a place ---- */

static int hottest_first(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return a < b ? 1 : a > b ? -1 : 0;
}

/*
 * The least share that an instruction of a place needs to be shown. An unrolled loop has hundreds of
 * instructions with a sample or two each: the hottest stand for them, unless they are no hotter
 * than the others; then none is shown.
 */
static double least_share(const struct maker *k, uint32_t place)
{
	const struct as_an_tree *t = k->t;
	double *shares, least = WORTH_LINE;
	uint32_t n = 0, warm = 0, all = t->places.v[place].n_insns;

	if (k->full || !all)
		return 0;
	shares = as_xreallocarray(NULL, all, sizeof *shares);
	for (uint32_t i = t->places.v[place].first_insn; i != AS_NONE; i = t->insns.v[i].next) {
		shares[n] = as_an_insn_share(t, i);
		warm += shares[n++] >= WORTH_LINE;
	}
	if (n < warm + LEAST_FOLD && n <= INSNS_MAX) {
		least = 0; /* a fold would take as many rows */
	} else if (warm > INSNS_MAX) {
		qsort(shares, n, sizeof *shares, hottest_first);
		least = warm > MANY_WARM && shares[0] < EVEN * as_an_place_share(t, place)
				? INFINITY
				: shares[INSNS_MAX - 1];
	}
	free(shares);
	return least;
}

static void put_insns(struct maker *k, uint32_t place, uint32_t depth)
{
	const struct as_an_tree *t = k->t;
	struct as_an_row r = row_of(AS_AN_INSN);
	uint32_t folded = 0, shown = 0;
	double share = 0, least = least_share(k, place);

	r.place = place;
	r.depth = depth;
	for (uint32_t i = t->places.v[place].first_insn; i != AS_NONE; i = t->insns.v[i].next) {
		double s = as_an_insn_share(t, i);

		r.insn = i;
		if (k->full || (s >= least && shown < INSNS_MAX + LEAST_FOLD)) {
			put(k, r);
			shown++;
		} else {
			folded++;
			share += s;
			r.most = AS_MAX(r.most, s);
		}
	}
	r.insn = AS_NONE;
	r.insns = true;
	if (shown)
		r.most = 0; /* those above the fold are hotter */
	/* a place without any instruction worth a row has said so with its own figure */
	if (shown || least == INFINITY)
		put_fold(k, folded, share, &r);
}

static bool calls_something(const struct as_an_tree *t, uint32_t place)
{
	const struct as_annotation *a = t->v->a;

	for (uint32_t i = t->places.v[place].first_insn; i != AS_NONE; i = t->insns.v[i].next) {
		uint32_t c = t->insns.v[i].cost;

		if (c != AS_NONE && a->insns.v[c].ncalls && /* heaviest first */
		    a->calls.v[a->insns.v[c].call].of_all.value >=
			    WORTH_INLINE * a->of_all.total.value)
			return true;
	}
	return false;
}

static void put_inner(struct maker *k, uint32_t place, uint32_t depth)
{
	if (k->with_insns) {
		put_insns(k, place, depth);
	} else if (calls_something(k->t, place)) {
		struct as_an_row r = row_of(AS_AN_CALLS);

		r.place = place;
		r.depth = depth;
		put(k, r);
	}
}

/* Follows places that only pass on: `next` inlined into `fold` inlined into `sum` is one row. */
static uint32_t skip_passing(const struct maker *k, uint32_t place)
{
	const struct as_an_tree *t = k->t;

	for (;;) {
		uint32_t child = t->places.v[place].first_child;

		if (k->full || child == AS_NONE ||
		    as_an_place_share(t, child) < SAME * as_an_place_share(t, place))
			return place;
		place = child;
	}
}

static uint32_t first_worth(const struct maker *k, uint32_t child)
{
	for (; child != AS_NONE; child = k->t->places.v[child].next) {
		double s = as_an_place_share(k->t, child);

		if (k->full ? (s > 0 || k->with_insns) : s >= WORTH_INLINE)
			return child;
	}
	return AS_NONE;
}

/* Where to go up after a row: `via` remembers the sibling to go on with. */
struct open {
	uint32_t via, depth;
};

/* What was inlined below a root, heaviest first. Depth is the input's: no recursion. */
static void put_inlined(struct maker *k, uint32_t root)
{
	const struct as_an_tree *t = k->t;
	AS_VEC(struct open) open = {0};
	uint32_t at = first_worth(k, t->places.v[root].first_child), depth = 1;

	while (at != AS_NONE || open.n) {
		struct as_an_row r = row_of(AS_AN_INLINE);

		if (at == AS_NONE) {
			struct open o = open.v[--open.n];

			depth = o.depth;
			at = first_worth(k, t->places.v[o.via].next);
			continue;
		}
		r.via = at;
		r.place = skip_passing(k, at);
		r.depth = AS_MIN(depth, (uint32_t)DEPTH_MAX);
		r.line = t->places.v[r.place].line;
		r.file = t->places.v[r.place].file;
		put(k, r);
		put_inner(k, r.place, r.depth);
		as_vec_push(&open, (struct open){at, depth});
		depth++;
		at = first_worth(k, t->places.v[r.place].first_child);
	}
	as_vec_clear(&open);
}

/* ---- lines ---- */

/* A line of the function: several roots when functions of one file share it. */
struct line {
	uint32_t first, n; /* roots.v[first … +n] */
};

static double line_share(const struct maker *k, const struct line *l)
{
	double s = 0;

	for (uint32_t i = l->first; i < l->first + l->n; i++)
		s += as_an_place_share(k->t, k->t->roots.v[i]);
	return s;
}

static void put_line(struct maker *k, const struct line *l, const char *file, uint32_t number)
{
	struct as_an_row r = row_of(AS_AN_SOURCE);

	r.line = number;
	r.file = file;
	if (!l || !l->n) {
		put(k, r);
		return;
	}
	for (uint32_t i = l->first; i < l->first + l->n; i++) {
		r.place = k->t->roots.v[i];
		put(k, r);
		if (as_an_place_share(k->t, r.place) < WORTH_LINE && !k->full)
			continue;
		put_inner(k, r.place, 0);
		put_inlined(k, r.place);
	}
}

/* Lines [lo, hi] of one file with the roots that stand on them. */
struct stretch {
	const char *file;
	uint32_t lo, hi, first, n; /* roots.v[first … +n], ascending by line, line >= lo */
	bool has_text;
};

static struct line line_at(const struct maker *k, const struct stretch *s, uint32_t number,
			   uint32_t *at)
{
	const struct as_an_tree *t = k->t;
	struct line l;

	while (*at < s->first + s->n && t->places.v[t->roots.v[*at]].line < number)
		++*at;
	l.first = *at;
	while (*at < s->first + s->n && t->places.v[t->roots.v[*at]].line == number)
		++*at;
	l.n = *at - l.first;
	return l;
}

/* A fold takes a row itself: short gaps are shown. */
static void close_gaps(uint8_t *shown, size_t n)
{
	size_t begin = 0; /* of the gap */

	for (size_t i = 0; i <= n; i++) {
		if (i < n && !shown[i])
			continue;
		if (i - begin < LEAST_FOLD)
			memset(shown + begin, 1, i - begin);
		begin = i + 1;
	}
}

/* shown[i]: line lo + i is shown: it has cost, or stands near one that has. */
static void choose_lines(const struct maker *k, const struct stretch *s, uint8_t *shown)
{
	uint32_t at = s->first, count = s->hi - s->lo + 1;

	for (uint32_t i = 0; i < count; i++) {
		struct line l = line_at(k, s, s->lo + i, &at);

		if (!k->full && line_share(k, &l) < WORTH_LINE)
			continue;
		for (uint32_t c = i - AS_MIN(i, k->context); c <= i + k->context && c < count;
		     c++)
			shown[c] = 1;
	}
	close_gaps(shown, count);
}

static void put_with_text(struct maker *k, const struct stretch *s)
{
	uint32_t at = s->first, folded = 0;
	uint8_t *shown = as_xcalloc(s->hi - s->lo + 1, 1);
	double share = 0;
	struct as_an_row r = row_of(AS_AN_FOLD);

	choose_lines(k, s, shown);
	for (uint32_t n = s->lo; n <= s->hi; n++) {
		struct line l = line_at(k, s, n, &at);

		if (!shown[n - s->lo]) {
			folded++;
			share += line_share(k, &l);
			continue;
		}
		put_fold(k, folded, share, &r);
		folded = 0;
		share = 0;
		put_line(k, &l, s->file, n);
	}
	put_fold(k, folded, share, &r);
	free(shown);
}

/* Rows of costs alone: a fold stands only where some was folded. */
static void put_without_text(struct maker *k, const struct stretch *s)
{
	uint32_t at = s->first, folded = 0;
	double share = 0;
	struct as_an_row r = row_of(AS_AN_FOLD);

	while (at < s->first + s->n) {
		uint32_t number = k->t->places.v[k->t->roots.v[at]].line;
		struct line l = line_at(k, s, number, &at);
		double here = line_share(k, &l);

		if (k->full || here >= WORTH_LINE) {
			put_line(k, &l, s->file, number);
		} else {
			folded += here > 0;
			share += here;
		}
	}
	put_fold(k, folded, share, &r);
}

/* Without text, only lines with something on them. A function's first line belongs to it. */
static struct stretch stretch_at(const struct maker *k, uint32_t first)
{
	const struct as_an_tree *t = k->t;
	const struct as_an_place *p = &t->places.v[t->roots.v[first]];
	const struct as_m_function *f = &t->v->a->model->functions.v[t->v->a->function];
	const struct as_listing_file *text = as_an_file(t, p->file);
	struct stretch s = {.file = p->file, .lo = p->line, .first = first};
	const char *closing;

	for (uint32_t i = first; i < t->roots.n; i++) {
		const struct as_an_place *q = &t->places.v[t->roots.v[i]];

		if (strcmp(q->file, p->file) != 0)
			break;
		s.n++;
		if (s.lo == 0)
			s.lo = q->line;
		s.hi = q->line;
	}
	if (!text || !text->lines.n || !s.hi || s.hi - s.lo > LINES_MAX)
		return s;
	s.has_text = true;
	if (f->line && f->line < s.lo && strcmp(f->file, p->file) == 0)
		s.lo = f->line;
	if (!s.lo)
		s.lo = s.hi;
	closing = as_an_line_text(text, s.hi + 1); /* often without code */
	if (closing && closing[strspn(closing, " \t")] == '}')
		s.hi++;
	return s;
}

static void put_file(struct maker *k, const struct stretch *s)
{
	struct as_an_row r = row_of(AS_AN_FILE);

	r.file = s->file;
	put(k, r);
}

static bool stretch_worth(const struct maker *k, const struct stretch *s)
{
	for (uint32_t i = s->first; i < s->first + s->n; i++) {
		if (k->full || as_an_place_share(k->t, k->t->roots.v[i]) > 0)
			return true;
	}
	return false;
}

static void by_source(struct maker *k)
{
	const struct as_an_tree *t = k->t;

	for (uint32_t at = 0; at < t->roots.n;) {
		struct stretch s = stretch_at(k, at);

		at += s.n;
		if (!stretch_worth(k, &s) && s.first)
			continue;
		put_file(k, &s);
		if (t->places.v[t->roots.v[s.first]].line == 0) { /* lines that nobody knows */
			struct line none = {s.first, 0};

			while (s.n && t->places.v[t->roots.v[s.first]].line == 0) {
				none.n++;
				s.first++;
				s.n--;
			}
			if (k->full || line_share(k, &none) > 0)
				put_line(k, &none, s.file, 0);
		}
		if (s.n && s.has_text)
			put_with_text(k, &s);
		else
			put_without_text(k, &s);
	}
}

/* ---- addresses ---- */

static uint32_t insn_at(const struct as_an_tree *t, uint64_t svma)
{
	size_t lo = 0, hi = t->insns.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->insns.v[mid].svma < svma)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->insns.n && t->insns.v[lo].svma == svma ? (uint32_t)lo : AS_NONE;
}

/* A short loop that is hot is shown as a whole, with the jump that makes it one. */
static void show_loops(const struct as_an_tree *t, uint8_t *shown)
{
	for (uint32_t i = 0; i < t->insns.n; i++) {
		const struct as_listing_insn *insn = t->insns.v[i].text;
		uint32_t from;
		double share = 0;

		if (!insn || !insn->target || insn->target > insn->svma ||
		    (insn->kind != AS_INSN_JUMP && insn->kind != AS_INSN_BRANCH))
			continue;
		from = insn_at(t, insn->target);
		if (from == AS_NONE || from > i || i - from > LOOP_MAX)
			continue;
		for (uint32_t k = from; k <= i; k++)
			share += as_an_insn_share(t, k);
		if (share >= WORTH_LOOP)
			memset(shown + from, 1, i - from + 1);
	}
}

static void choose_insns(const struct maker *k, uint8_t *shown)
{
	const struct as_an_tree *t = k->t;
	size_t n = t->insns.n;

	for (size_t i = 0; i < n; i++) {
		if (!k->full && as_an_insn_share(t, (uint32_t)i) < WORTH_LINE)
			continue;
		for (size_t c = i - AS_MIN(i, (size_t)k->context); c <= i + k->context && c < n;
		     c++)
			shown[c] = 1;
	}
	show_loops(t, shown);
	close_gaps(shown, n);
}

static void by_address(struct maker *k)
{
	const struct as_an_tree *t = k->t;
	uint8_t *shown = as_xcalloc(t->insns.n + 1, 1);
	struct as_an_row fold = row_of(AS_AN_FOLD), part = row_of(AS_AN_PART);
	uint32_t folded = 0;
	double share = 0;

	fold.insns = true;
	choose_insns(k, shown);
	for (uint32_t i = 0; i < t->insns.n; i++) {
		struct as_an_row r = row_of(AS_AN_INSN);
		bool starts = i && t->insns.v[i].text && t->insns.v[i].text->starts_part;

		if (starts || shown[i]) {
			put_fold(k, folded, share, &fold);
			folded = 0;
			share = 0;
		}
		if (starts) {
			part.insn = i;
			put(k, part);
		}
		if (!shown[i]) {
			folded++;
			share += as_an_insn_share(t, i);
			continue;
		}
		r.insn = i;
		r.place = t->insns.v[i].place;
		put(k, r);
	}
	put_fold(k, folded, share, &fold);
	free(shown);
}

static bool has_lines(const struct as_an_tree *t)
{
	as_vec_foreach (p, &t->places) {
		if (p->line)
			return true;
	}
	return false;
}

void as_an_rows_make(const struct as_an_tree *t, struct as_an_rows *ret)
{
	const struct as_annotate_request *q = t->v->q;
	struct maker k = {.t = t,
			  .out = ret,
			  .context = q->context < 0 ? CONTEXT
						    : (uint32_t)AS_MIN(q->context, 1000000),
			  .full = q->full,
			  .with_insns = q->show != AS_ANNOTATE_SOURCE};

	*ret = (struct as_an_rows){0};
	ret->by_address =
		q->show == AS_ANNOTATE_ASM || (q->show == AS_ANNOTATE_BOTH && !has_lines(t));
	if (ret->by_address)
		by_address(&k);
	else
		by_source(&k);
}

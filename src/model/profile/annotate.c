/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Annotations: see annotate.h. A frame that has the function is a *site*: an instruction and paths
 * of places in the tree of lines. A stack is the list of rows its sites touch (*marks*), each row
 * once; a sample then adds its weight to those.
 */
#include "model/profile/annotate.h"

#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "model/profile/profile_priv.h"

enum { MARK_TOTAL = 1, MARK_CODE = 2, MARK_SELF = 4, MARK_ALL = 7 };
enum { FRAME_HAS = 1, FRAME_SEEN = 2 }; /* the function; any visible place */
enum { TOTAL, CODE, SELF, FIGURES };
#define NO_MARKS (AS_NONE - 1)

/* As in shares.c: enough blocks for the variance, few enough to be quick. */
#define ASKED_SAMPLES (256 * AS_BLOCK_SAMPLES)

struct mark {
	uint32_t row;
	uint8_t bits;
};
struct row {
	struct as_share_row all[FIGURES], of[FIGURES];
	uint32_t epoch, mark; /* of the walk that touched it last, and where its mark is */
};
struct step { /* of a site: a place on a path, outermost first */
	uint32_t place;
	bool innermost;
};
struct site {
	uint32_t insn, host, first, n; /* steps.v[first … +n] */
	bool is_self;                  /* the function itself is innermost */
};
struct marks_of { /* a distinct stack */
	size_t first, n;
};

struct work {
	struct as_build b;
	const struct as_annotate_query *q;
	struct as_annotation *a;
	uint8_t *frame; /* FRAME_* */
	uint8_t *stack; /* 1: the function is in it */
	uint32_t *site; /* per frame: index into sites; AS_NONE: not yet made */
	uint32_t *end;  /* per stack: index into ends; AS_NONE: not yet walked */
	AS_VEC(struct site) sites;
	AS_VEC(struct step) steps;
	AS_VEC(struct marks_of) ends;
	AS_VEC(struct mark) marks;
	AS_VEC(struct row) rows; /* 0: the function */
	AS_VEC(uint32_t) place_row, insn_row, call_row;
	struct as_map64 place_ids, insn_ids, call_ids;
	struct as_blocks all, of;
	uint32_t epoch;
};

/* ---- rows ---- */

static uint32_t new_row(struct work *w)
{
	as_vec_push(&w->rows, (struct row){.epoch = 0});
	return (uint32_t)w->rows.n - 1;
}

static uint32_t find_place(struct work *w, uint32_t parent, const struct as_m_place *p)
{
	struct as_annotation *a = w->a;
	const char *file = p->file[0] ? p->file : w->b.m->functions.v[p->function].file;
	uint64_t h = as_hash64(file, strlen(file)) ^
		     as_mix64((uint64_t)parent << 32 | p->function) ^ as_mix64(p->line) * 3;

	for (;; h++) {
		bool fresh;
		uint64_t *id = as_map64_put(&w->place_ids, h >> 1, &fresh);
		const struct as_annotated_place *have;

		if (fresh) {
			*id = a->places.n;
			as_vec_push(&a->places,
				    (struct as_annotated_place){.parent = parent,
								.function = p->function,
								.line = p->line,
								.file = file});
			as_vec_push(&w->place_row, new_row(w));
			return (uint32_t)*id;
		}
		have = &a->places.v[*id];
		if (have->parent == parent && have->function == p->function &&
		    have->line == p->line && strcmp(have->file, file) == 0)
			return (uint32_t)*id;
	}
}

static uint64_t start_of(const struct as_annotate_query *q, uint32_t module, uint64_t svma)
{
	size_t lo = 0, hi = q->nstarts;

	if (!hi || module != q->module || svma < q->starts[0] || svma >= q->end)
		return svma;
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (q->starts[mid] <= svma)
			lo = mid;
		else
			hi = mid;
	}
	return q->starts[lo];
}

static uint32_t find_insn(struct work *w, const struct as_m_frame *f, uint32_t place)
{
	struct as_annotation *a = w->a;
	uint64_t at = f->addr - !(f->flags & AS_FRAME_EXACT);
	uint64_t svma = start_of(w->q, f->module, at);

	for (uint64_t h = as_mix64(svma) ^ f->module;; h++) {
		bool fresh;
		uint64_t *id = as_map64_put(&w->insn_ids, h >> 1, &fresh);

		if (fresh) {
			*id = a->insns.n;
			as_vec_push(&a->insns, (struct as_annotated_insn){.module = f->module,
									  .svma = svma,
									  .place = place});
			as_vec_push(&w->insn_row, new_row(w));
			return (uint32_t)*id;
		}
		if (a->insns.v[*id].svma == svma && a->insns.v[*id].module == f->module)
			return (uint32_t)*id;
	}
}

static uint32_t call_row(struct work *w, uint32_t insn, uint32_t function)
{
	bool fresh;
	uint64_t *id = as_map64_put(&w->call_ids, (uint64_t)insn << 32 | function, &fresh);

	if (fresh) {
		*id = w->a->calls.n;
		as_vec_push(&w->a->calls,
			    (struct as_annotated_call){.insn = insn, .function = function});
		as_vec_push(&w->call_row, new_row(w));
	}
	return w->call_row.v[*id];
}

/* ---- frames and stacks ---- */

static void note_host(struct as_annotation *a, uint32_t function)
{
	as_vec_foreach (h, &a->hosts) {
		if (*h == function)
			return;
	}
	as_vec_push(&a->hosts, function);
}

/* Every occurrence of the function in the chain begins a path of its own. */
static const struct site *site_of(struct work *w, uint32_t frame)
{
	const struct as_m_frame *f = &w->b.m->frames.v[frame];
	struct site s = {.first = (uint32_t)w->steps.n};
	uint32_t n, innermost = AS_NONE, last = AS_NONE;
	const struct as_m_place *p;

	if (w->site[frame] != AS_NONE)
		return &w->sites.v[w->site[frame]];
	p = as_filter_places(&w->b, f, &n);
	for (uint32_t i = n; i-- > 0;) {
		if (!as_filter_hides(&w->b, &p[i]))
			innermost = i;
	}
	for (uint32_t from = n; from-- > 0;) {
		uint32_t at = AS_NONE;

		if (p[from].function != w->q->function)
			continue;
		for (uint32_t i = from + 1; i-- > 0;) {
			if (as_filter_hides(&w->b, &p[i]))
				continue;
			at = find_place(w, at, &p[i]);
			as_vec_push(&w->steps, (struct step){at, i == innermost});
		}
		last = at;
	}
	s.n = (uint32_t)w->steps.n - s.first;
	s.is_self = p[innermost].function == w->q->function;
	s.insn = find_insn(w, f, last);
	note_host(w->a, w->b.m->places.v[f->chain + f->nchain - 1].function);
	w->site[frame] = (uint32_t)w->sites.n;
	as_vec_push(&w->sites, s);
	return &w->sites.v[w->sites.n - 1];
}

static void look_at_frames(struct work *w)
{
	const struct as_model *m = w->b.m;

	for (size_t i = 0; i < m->frames.n; i++) {
		uint32_t n;
		const struct as_m_place *p = as_filter_places(&w->b, &m->frames.v[i], &n);

		for (uint32_t k = 0; k < n; k++) {
			if (as_filter_hides(&w->b, &p[k]))
				continue;
			w->frame[i] |= FRAME_SEEN;
			if (p[k].function == w->q->function)
				w->frame[i] |= FRAME_HAS;
		}
	}
	for (size_t i = 0; i < m->stacks.n; i++) {
		const struct as_m_stack *s = &m->stacks.v[i];

		w->stack[i] = (w->frame[s->frame] & FRAME_HAS) ||
			      (s->parent != AS_NONE && w->stack[s->parent]);
	}
}

static void mark(struct work *w, uint32_t row, uint8_t bits)
{
	struct row *r = &w->rows.v[row];

	if (r->epoch == w->epoch) {
		w->marks.v[r->mark].bits |= bits;
		return;
	}
	r->epoch = w->epoch;
	r->mark = (uint32_t)w->marks.n;
	as_vec_push(&w->marks, (struct mark){row, bits});
}

static void mark_site(struct work *w, const struct site *s, bool leaf)
{
	uint8_t code = MARK_TOTAL | (leaf ? MARK_CODE : 0);

	mark(w, 0, code | (leaf && s->is_self ? MARK_SELF : 0));
	mark(w, w->insn_row.v[s->insn], leaf ? MARK_ALL : MARK_TOTAL);
	for (uint32_t i = s->first; i < s->first + s->n; i++) {
		const struct step *step = &w->steps.v[i];

		mark(w, w->place_row.v[step->place],
		     code | (leaf && step->innermost ? MARK_SELF : 0));
	}
}

/* The outermost visible function of a frame: what its caller's instruction called. */
static uint32_t entered(const struct work *w, const struct as_m_frame *f)
{
	uint32_t n;
	const struct as_m_place *p = as_filter_places(&w->b, f, &n);

	while (n-- > 0) {
		if (!as_filter_hides(&w->b, &p[n]))
			return p[n].function;
	}
	return AS_NONE;
}

static uint32_t walk(struct work *w, uint32_t stack)
{
	const struct as_model *m = w->b.m;
	struct marks_of end = {.first = w->marks.n};
	uint32_t callee = AS_NONE;

	w->epoch++;
	for (uint32_t at = stack; at != AS_NONE && w->stack[at]; at = m->stacks.v[at].parent) {
		uint32_t frame = m->stacks.v[at].frame;
		bool leaf = callee == AS_NONE;

		if (!(w->frame[frame] & FRAME_SEEN))
			continue;
		if (w->frame[frame] & FRAME_HAS) {
			const struct site *s = site_of(w, frame);
			uint32_t insn = s->insn;

			mark_site(w, s, leaf);
			if (!leaf)
				mark(w, call_row(w, insn, callee), MARK_TOTAL);
		}
		callee = entered(w, &m->frames.v[frame]);
	}
	end.n = w->marks.n - end.first;
	as_vec_push(&w->ends, end);
	return (uint32_t)w->ends.n - 1;
}

/* Index into ends; NO_MARKS when the function is not in the sample or the sample is dropped. */
static uint32_t end_of(struct work *w, const struct as_m_sample *s)
{
	if (s->stack == AS_NONE || !as_filter_keeps(&w->b, s) || !w->stack[s->stack])
		return NO_MARKS;
	if (w->end[s->stack] == AS_NONE)
		w->end[s->stack] = walk(w, s->stack);
	return w->end[s->stack];
}

/* ---- samples ---- */

struct span {
	uint64_t n, first, last;
};

static void span_add(struct span *s, uint64_t time_ns)
{
	if (s->n++ == 0)
		s->first = time_ns;
	s->last = time_ns;
}

static void make_blocks(struct work *w)
{
	const struct as_m_sample *v = w->b.m->samples.v;
	struct span all = {0}, of = {0};

	for (size_t i = w->b.lo; i < w->b.hi; i++) {
		if (!as_filter_in_scope(&w->b, &v[i]))
			continue;
		span_add(&all, v[i].time_ns);
		w->a->weight += (double)as_model_weight(w->b.m, i);
		if (end_of(w, &v[i]) != NO_MARKS)
			span_add(&of, v[i].time_ns);
	}
	w->a->samples = all.n;
	as_blocks_of_model(&w->all, w->b.m, &(struct as_run_span){all.first, all.last}, all.n);
	as_blocks_of_model(&w->of, w->b.m, &(struct as_run_span){of.first, of.last}, of.n);
	for (size_t i = w->b.lo; i < w->b.hi; i++) {
		double weight = (double)as_model_weight(w->b.m, i);

		if (!as_filter_in_scope(&w->b, &v[i]))
			continue;
		as_blocks_add(&w->all, as_blocks_index(&w->all, v[i].time_ns), weight);
		if (end_of(w, &v[i]) != NO_MARKS)
			as_blocks_add(&w->of, as_blocks_index(&w->of, v[i].time_ns), weight);
	}
	as_blocks_finish(&w->all);
	as_blocks_finish(&w->of);
}

static void add_sample(struct work *w, size_t sample, const struct marks_of *end)
{
	const struct as_m_sample *s = &w->b.m->samples.v[sample];
	double weight = (double)as_model_weight(w->b.m, sample);
	uint32_t all = as_blocks_index(&w->all, s->time_ns);
	uint32_t of = as_blocks_index(&w->of, s->time_ns);

	for (size_t i = end->first; i < end->first + end->n; i++) {
		struct row *r = &w->rows.v[w->marks.v[i].row];

		for (unsigned k = 0; k < FIGURES; k++) {
			if (!(w->marks.v[i].bits & 1u << k))
				continue;
			as_share_add(&r->all[k], &w->all, all, weight);
			as_share_add(&r->of[k], &w->of, of, weight);
		}
	}
}

static void add_samples(struct work *w)
{
	for (size_t i = w->b.lo; i < w->b.hi; i++) {
		const struct as_m_sample *s = &w->b.m->samples.v[i];
		uint32_t end;

		if (!as_filter_in_scope(&w->b, s))
			continue;
		end = end_of(w, s);
		if (end != NO_MARKS)
			add_sample(w, i, &w->ends.v[end]);
	}
}

/* ---- the answer ---- */

static struct as_share share_of(const struct work *w, const struct as_share_row *r,
				const struct as_blocks *b)
{
	struct as_share_estimate e;

	as_share_interval(r, b, &e);
	if (as_model_is_counted(w->b.m)) /* counted, not sampled */
		e.lo = e.hi = e.share;
	return (struct as_share){e.share, e.lo, e.hi, e.deff, r->n_samples, e.runs};
}

/* Figures of the same samples are the same: most rows have one or two distinct ones. */
static struct as_cost cost_of(const struct work *w, const struct as_share_row r[FIGURES],
			      const struct as_blocks *b)
{
	struct as_cost c = {.total = share_of(w, &r[TOTAL], b)};

	c.code = r[CODE].n_samples == r[TOTAL].n_samples ? c.total : share_of(w, &r[CODE], b);
	c.self = r[SELF].n_samples == r[CODE].n_samples ? c.code : share_of(w, &r[SELF], b);
	return c;
}

static int by_address(const void *pa, const void *pb)
{
	const struct as_annotated_insn *a = pa, *b = pb;

	if (a->module != b->module)
		return a->module < b->module ? -1 : 1;
	return a->svma < b->svma ? -1 : a->svma > b->svma;
}

static int by_insn(const void *pa, const void *pb)
{
	const struct as_annotated_call *a = pa, *b = pb;

	if (a->insn != b->insn)
		return a->insn < b->insn ? -1 : 1;
	if (a->of_all.value != b->of_all.value)
		return a->of_all.value < b->of_all.value ? 1 : -1;
	return a->function < b->function ? -1 : a->function > b->function;
}

/* Instructions get their order; the calls follow them. */
static void sort_insns(struct as_annotation *a)
{
	uint32_t *now = as_xreallocarray(NULL, a->insns.n + 1, sizeof *now);

	for (uint32_t i = 0; i < a->insns.n; i++)
		a->insns.v[i].call = i; /* its old number */
	if (a->insns.n)
		qsort(a->insns.v, a->insns.n, sizeof *a->insns.v, by_address);
	for (uint32_t i = 0; i < a->insns.n; i++)
		now[a->insns.v[i].call] = i;
	as_vec_foreach (c, &a->calls)
		c->insn = now[c->insn];
	free(now);
	if (a->calls.n)
		qsort(a->calls.v, a->calls.n, sizeof *a->calls.v, by_insn);
	for (uint32_t i = 0, at = 0; i < a->insns.n; i++) {
		a->insns.v[i].call = at;
		while (at < a->calls.n && a->calls.v[at].insn == i)
			at++;
		a->insns.v[i].ncalls = at - a->insns.v[i].call;
	}
}

static bool tied(const struct work *w)
{
	const struct as_annotation *a = w->a;
	uint32_t first = AS_NONE, second = AS_NONE;
	struct as_share_estimate x, y;

	for (uint32_t i = 0; i < a->places.n; i++) {
		double v = a->places.v[i].of_all.code.value;

		if (a->places.v[i].parent != AS_NONE || v <= 0)
			continue;
		if (first == AS_NONE || v > a->places.v[first].of_all.code.value) {
			second = first;
			first = i;
		} else if (second == AS_NONE || v > a->places.v[second].of_all.code.value) {
			second = i;
		}
	}
	if (second == AS_NONE || as_model_is_counted(w->b.m))
		return false;
	as_share_interval(&w->rows.v[w->place_row.v[first]].all[CODE], &w->all, &x);
	as_share_interval(&w->rows.v[w->place_row.v[second]].all[CODE], &w->all, &y);
	return !as_rows_separable(&x, &y);
}

static void publish(struct work *w)
{
	struct as_annotation *a = w->a;

	a->of_all = cost_of(w, w->rows.v[0].all, &w->all);
	a->of_function = cost_of(w, w->rows.v[0].of, &w->of);
	for (size_t i = 0; i < a->places.n; i++) {
		const struct row *r = &w->rows.v[w->place_row.v[i]];

		a->places.v[i].of_all = cost_of(w, r->all, &w->all);
		a->places.v[i].of_function = cost_of(w, r->of, &w->of);
	}
	for (size_t i = 0; i < a->insns.n; i++) {
		const struct row *r = &w->rows.v[w->insn_row.v[i]];

		a->insns.v[i].of_all = cost_of(w, r->all, &w->all);
		a->insns.v[i].of_function = cost_of(w, r->of, &w->of);
	}
	for (size_t i = 0; i < a->calls.n; i++)
		a->calls.v[i].of_all =
			share_of(w, &w->rows.v[w->call_row.v[i]].all[TOTAL], &w->all);
	a->lines_tied = tied(w);
	sort_insns(a);
}

static uint32_t *none_array(size_t n)
{
	uint32_t *p = as_xreallocarray(NULL, n + 1, sizeof *p);

	memset(p, 0xff, (n + 1) * sizeof *p);
	return p;
}

static void work_clear(struct work *w)
{
	as_filter_clear(&w->b);
	free(w->frame);
	free(w->stack);
	free(w->site);
	free(w->end);
	as_vec_clear(&w->sites);
	as_vec_clear(&w->steps);
	as_vec_clear(&w->ends);
	as_vec_clear(&w->marks);
	as_vec_clear(&w->rows);
	as_vec_clear(&w->place_row);
	as_vec_clear(&w->insn_row);
	as_vec_clear(&w->call_row);
	as_map64_clear(&w->place_ids);
	as_map64_clear(&w->insn_ids);
	as_map64_clear(&w->call_ids);
	as_blocks_clear(&w->all);
	as_blocks_clear(&w->of);
}

int as_annotation_make(const struct as_model *m, const struct as_annotate_query *q,
		       struct as_annotation **ret, struct as_error *err)
{
	struct as_annotation *a = as_xcalloc(1, sizeof *a);
	struct work w = {.b = {.m = m, .q = &a->query}, .q = q, .a = a};
	int r;

	a->model = m;
	a->function = q->function;
	a->query = q->query;
	a->query.by = AS_BY_FUNCTION;
	a->query.shape = AS_SHAPE_FLAT;
	a->query.of = NULL;
	r = q->function < m->functions.n
		    ? as_filter_make(&w.b, err)
		    : as_fail(err, AS_E_USAGE, 0, "no function %u in this session",
			      q->function);
	if (r < 0) {
		work_clear(&w);
		as_annotation_free(a);
		return r;
	}
	w.frame = as_xcalloc(m->frames.n + 1, 1);
	w.stack = as_xcalloc(m->stacks.n + 1, 1);
	w.site = none_array(m->frames.n);
	w.end = none_array(m->stacks.n);
	new_row(&w);
	look_at_frames(&w);
	make_blocks(&w);
	add_samples(&w);
	publish(&w);
	work_clear(&w);
	*ret = a;
	return AS_OK;
}

void as_annotation_free(struct as_annotation *a)
{
	if (!a)
		return;
	as_vec_clear(&a->places);
	as_vec_clear(&a->insns);
	as_vec_clear(&a->calls);
	as_vec_clear(&a->hosts);
	free(a);
}

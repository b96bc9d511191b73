/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One linear pass over the DIEs of a unit collects the address ranges of functions and of
 * inlined calls; the ranges are then painted over each other in the order of the DIEs (children
 * after parents), which leaves sorted intervals without overlap, each pointing to its innermost
 * function.
 *
 * Lexical blocks need no ranges of their own: an inlined call inside a block has the function
 * around the block as caller. Everything else is stepped over with the ready-made steps of its
 * abbreviation.
 */
#include "symbol/dwarf_priv.h"

#include <stdlib.h>

#include "symbol/dwarf_const.h"

struct span {
	uint32_t lo, hi, node;
};

struct pass {
	struct as_dw *dw;
	struct as_dw_unit *u;
	const struct as_dw_abbrevs *t;
	struct as_block *b;
	AS_VEC(struct span) span;
	AS_VEC(struct as_block_node) node;
	AS_VEC(struct as_block_func) func;
	struct as_map64 func_of; /* ref -> index */
	uint32_t cur_node, first_lo;
	uint32_t stack[AS_DW_MAX_DEPTH]; /* node around, per level */
};

struct die {
	struct as_dw_val low, high, ranges, entry, origin;
	uint64_t file, line, column;
};

static uint32_t func_index(struct pass *p, uint64_t ref)
{
	bool is_new;
	uint64_t *slot = as_map64_put(&p->func_of, ref == AS_DW_NOREF ? ref - 1 : ref, &is_new);

	if (is_new) {
		*slot = p->func.n;
		as_vec_push(&p->func, (struct as_block_func){.ref = ref});
	}
	return (uint32_t)*slot;
}

static void add_span(void *ctx, uint64_t lo, uint64_t hi)
{
	struct pass *p = ctx;
	uint64_t base = p->dw->in.text_lo;

	if (!as_dw_in_text(p->dw, lo, hi))
		return;

	struct span s = {(uint32_t)(lo - base), (uint32_t)(hi - base), p->cur_node};

	if (p->first_lo == AS_BLOCK_NONE)
		p->first_lo = s.lo;
	as_vec_push(&p->span, s);
}

static void read_die(struct pass *p, struct as_rd *r, const struct as_dw_abbrev *a,
		     struct die *d)
{
	*d = (struct die){.file = AS_BLOCK_NO_FILE};
	for (uint32_t i = 0; i < a->nattrs; i++) {
		const struct as_dw_attr *at = &p->t->attr.v[a->attr0 + i];
		struct as_dw_val v;

		as_dw_form_read(r, p->u, at, &v);
		switch (at->name) {
		case DW_AT_low_pc:
			d->low = v;
			break;
		case DW_AT_high_pc:
			d->high = v;
			break;
		case DW_AT_ranges:
			d->ranges = v;
			break;
		case DW_AT_entry_pc:
			d->entry = v;
			break;
		case DW_AT_abstract_origin:
			d->origin = v;
			break;
		case DW_AT_call_file:
			d->file = v.u;
			break;
		case DW_AT_call_line:
			d->line = v.u;
			break;
		case DW_AT_call_column:
			d->column = v.u;
			break;
		default:
			break;
		}
	}
}

static void add_spans(struct pass *p, const struct die *d)
{
	uint64_t lo, hi;

	if (d->ranges.form) {
		(void)as_dw_ranges(p->dw, p->u, &d->ranges, add_span, p);
		return;
	}
	if (!as_dw_addr(p->u, &d->low, &lo) || !d->high.form)
		return;
	if (as_dw_is_addr_form(d->high.form)) {
		if (!as_dw_addr(p->u, &d->high, &hi))
			return;
	} else if (__builtin_add_overflow(lo, d->high.u, &hi)) {
		return;
	}
	add_span(p, lo, hi);
}

static uint32_t entry_of(const struct pass *p, const struct die *d)
{
	uint64_t a;

	if (as_dw_addr(p->u, &d->entry, &a) && as_dw_in_text(p->dw, a, a + 1))
		return (uint32_t)(a - p->dw->in.text_lo);
	return p->first_lo;
}

/* Reads a function or inlined call; the node its children hang on. */
static uint32_t take_function(struct pass *p, struct as_rd *r, const struct as_dw_abbrev *a,
			      uint64_t off, uint32_t parent)
{
	bool inlined = a->tag == DW_TAG_inlined_subroutine;
	struct die d;

	if (!inlined && !a->has_pc) {
		as_dw_die_skip(r, p->u, p->t, a);
		return AS_BLOCK_NONE;
	}
	read_die(p, r, a, &d);
	p->cur_node = (uint32_t)p->node.n;
	p->first_lo = AS_BLOCK_NONE;

	size_t before = p->span.n;

	add_spans(p, &d);
	if (!inlined && p->span.n == before)
		return AS_BLOCK_NONE; /* thrown away by the linker */

	struct as_block_node n = {.parent = AS_BLOCK_NONE};

	if (inlined) {
		n.func = func_index(p, as_dw_ref(p->u, &d.origin)) | AS_BLOCK_INLINED;
		n.parent = parent;
		n.a = (uint32_t)AS_MIN(d.line, UINT32_MAX);
		n.b = as_block_pack(d.file, d.column);
	} else {
		n.func = func_index(p, (uint64_t)p->u->f->idx << 48 | off);
		n.a = entry_of(p, &d);
		n.b = AS_BLOCK_NONE;
	}
	as_vec_push(&p->node, n);
	return p->cur_node;
}

/* False when the unit is damaged. */
static bool walk_dies(struct pass *p)
{
	const uint8_t *info = p->u->f->sec[AS_DW_INFO].p;
	struct as_rd r = AS_RD(info + p->u->die_off, p->u->end - p->u->die_off);
	size_t depth = 0;

	p->stack[0] = AS_BLOCK_NONE;
	while (r.p < r.end) {
		uint64_t off = (uint64_t)(r.p - info), code = as_dw_uleb(&r);

		if (!code) {
			if (r.bad || !depth)
				return !r.bad;
			if (--depth == 0)
				return true;
			continue;
		}

		const struct as_dw_abbrev *a = as_dw_abbrev_find(p->t, code);
		uint32_t node = p->stack[depth];

		if (!a)
			return false;
		if (a->tag == DW_TAG_subprogram || a->tag == DW_TAG_inlined_subroutine)
			node = take_function(p, &r, a, off, node);
		else
			as_dw_die_skip(&r, p->u, p->t, a);
		if (r.bad)
			return false;
		if (a->children) {
			if (++depth == AS_DW_MAX_DEPTH)
				return false;
			p->stack[depth] = node;
		}
	}
	return true;
}

static int span_by_lo(const void *x, const void *y)
{
	const struct span *a = x, *b = y;

	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	return a->node < b->node ? -1 : a->node > b->node;
}

/* Max-heap of open spans by node: the latest DIE is on top. */
struct heap {
	AS_VEC(struct span) h;
};

static void heap_push(struct heap *q, struct span s)
{
	as_vec_push(&q->h, s);
	for (size_t i = q->h.n - 1; i && q->h.v[(i - 1) / 2].node < s.node; i = (i - 1) / 2) {
		q->h.v[i] = q->h.v[(i - 1) / 2];
		q->h.v[(i - 1) / 2] = s;
	}
}

static void heap_pop(struct heap *q)
{
	struct span last = q->h.v[--q->h.n];
	size_t i = 0;

	if (!q->h.n)
		return;
	for (;;) {
		size_t c = 2 * i + 1;

		if (c >= q->h.n)
			break;
		if (c + 1 < q->h.n && q->h.v[c + 1].node > q->h.v[c].node)
			c++;
		if (q->h.v[c].node <= last.node)
			break;
		q->h.v[i] = q->h.v[c];
		i = c;
	}
	q->h.v[i] = last;
}

typedef AS_VEC(struct as_block_seg) seg_vec;

static void emit(seg_vec *out, uint32_t lo, uint32_t node)
{
	if (out->n && out->v[out->n - 1].lo == lo)
		out->v[out->n - 1].node = node;
	else if (!out->n || out->v[out->n - 1].node != node)
		as_vec_push(out, (struct as_block_seg){lo, node});
	/* Overwriting may have made two neighbours equal. */
	if (out->n > 1 && out->v[out->n - 1].node == out->v[out->n - 2].node)
		out->n--;
}

/* Ends the intervals on top of the heap that end before limit. */
static void close_until(struct heap *q, seg_vec *out, uint32_t limit)
{
	while (q->h.n && q->h.v[0].hi <= limit) {
		uint32_t hi = q->h.v[0].hi;

		while (q->h.n && q->h.v[0].hi <= hi)
			heap_pop(q);
		emit(out, hi, q->h.n ? q->h.v[0].node : AS_BLOCK_NONE);
	}
}

static void flatten(struct pass *p)
{
	struct heap q = {0};
	seg_vec out = {0};

	if (p->span.n)
		qsort(p->span.v, p->span.n, sizeof *p->span.v, span_by_lo);
	as_vec_foreach (s, &p->span) {
		close_until(&q, &out, s->lo);
		heap_push(&q, *s);
		emit(&out, s->lo, q.h.v[0].node);
	}
	close_until(&q, &out, UINT32_MAX);
	as_vec_clear(&q.h);
	p->b->seg = out.v;
	p->b->nseg = out.n;
}

static void clear_pass(struct pass *p)
{
	as_vec_clear(&p->span);
	as_map64_clear(&p->func_of);
}

static void decode_functions(struct as_dw *dw, struct as_dw_unit *u, struct as_block *b)
{
	struct pass p = {.dw = dw, .u = u, .b = b};

	p.t = as_dw_abbrevs_get(dw, u);
	if (!p.t || !walk_dies(&p)) {
		as_dw_damaged(dw, u, "its entries are damaged");
		b->incomplete = true;
		clear_pass(&p);
		as_vec_clear(&p.node);
		as_vec_clear(&p.func);
		return;
	}
	flatten(&p);
	b->node = p.node.v;
	b->nnode = p.node.n;
	b->func = p.func.v;
	b->nfunc = p.func.n;
	clear_pass(&p);
}

struct as_block *as_dw_block(struct as_dw *dw, uint32_t unit)
{
	struct as_dw_unit *skel = dw->file.v[0]->unit.v[unit];

	if (!as_dw_read_root(dw, skel))
		return NULL;

	struct as_block *b = as_xcalloc(1, sizeof *b);
	struct as_dw_unit *full = as_dw_split_unit(dw, skel);

	b->dw = dw;
	if (full)
		decode_functions(dw, full, b);
	else
		b->incomplete = true;
	b->lines = as_dw_lines_get(dw, skel);
	if (b->lines) {
		as_dw_lines_decode(dw, skel, b->lines);
		as_dw_lines_flatten(dw, b->lines, b);
		b->nfile = b->lines->file.n + 1;
	}
	return b;
}

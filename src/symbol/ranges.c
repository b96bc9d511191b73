/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parts of a function and the chains of its instructions: see ranges.h. */
#include "symbol/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "symbol/plt_priv.h"
#include "symbol/symmod_priv.h"

#define MAX_CLAIMS   8
/* Beyond, going through all names once more takes too long (10 ms and more). */
#define MANY_SYMBOLS 30000

/* Root of each node, once per block: the physical function it is part of. */
static const uint32_t *roots(struct as_block *b)
{
	if (b->root || !b->nnode)
		return b->root;
	b->root = as_xreallocarray(NULL, b->nnode, sizeof *b->root);
	for (uint32_t i = 0; i < b->nnode; i++) {
		const struct as_block_node *n = &b->node[i];

		b->root[i] = as_block_is_inlined(n) && n->parent < i ? b->root[n->parent] : i;
	}
	return b->root;
}

static size_t parts_of_root(const struct as_symmod *m, struct as_block *b, uint32_t root,
			    struct as_sympart *ret, size_t max)
{
	const uint32_t *root_of = roots(b);
	size_t n = 0;

	for (size_t i = 0; i + 1 < b->nseg; i++) {
		uint32_t node = b->seg[i].node;
		uint64_t lo = m->text_lo + b->seg[i].lo, hi = m->text_lo + b->seg[i + 1].lo;

		if (node >= b->nnode || root_of[node] != root || lo >= hi)
			continue;
		if (n && ret[n - 1].hi == lo)
			ret[n - 1].hi = hi;
		else if (n < max)
			ret[n++] = (struct as_sympart){lo, hi};
		else
			break;
	}
	return n;
}

static size_t parts_from_dwarf(struct as_symmod *m, uint64_t svma, struct as_sympart *ret,
			       size_t max)
{
	uint32_t rel = (uint32_t)(svma - m->text_lo), unit[MAX_CLAIMS];
	size_t n = as_symrange_find(m->range, m->nrange, rel, unit, MAX_CLAIMS);

	for (size_t i = 0; i < n; i++) {
		struct as_block *b = as_symmod_block(m, unit[i]);
		uint32_t seg = b ? as_block_find_seg(b, rel) : AS_BLOCK_NONE;

		if (seg != AS_BLOCK_NONE && b->seg[seg].node < b->nnode)
			return parts_of_root(m, b, roots(b)[b->seg[seg].node], ret, max);
	}
	return 0;
}

static int by_lo(const void *x, const void *y)
{
	const struct as_sympart *a = x, *b = y;

	return a->lo < b->lo ? -1 : a->lo > b->lo;
}

static size_t parts_from_symbols(struct as_symmod *m, uint64_t svma, struct as_sympart *ret,
				 size_t max)
{
	struct as_symtab *t = as_symmod_symtab(m);
	struct as_symtab_hit hit;
	size_t n = 0, kept = 0;

	if (!max || !t || !as_symtab_find(t, svma, &hit) || !hit.size_bytes)
		return 0;
	ret[n++] = (struct as_sympart){hit.start, hit.start + hit.size_bytes};
	if (!hit.synthetic && as_symtab_count(t) < MANY_SYMBOLS)
		n += as_symtab_other_parts(t, &hit, ret + 1, max - 1);
	qsort(ret, n, sizeof *ret, by_lo);
	for (size_t i = 0; i < n; i++) {
		if (kept && ret[kept - 1].hi >= ret[i].lo)
			ret[kept - 1].hi = AS_MAX(ret[kept - 1].hi, ret[i].hi);
		else
			ret[kept++] = ret[i];
	}
	return kept;
}

static bool in_text(const struct as_symmod *m, uint64_t svma)
{
	return svma >= m->text_lo && svma < m->text_hi;
}

static void ignore_chain(void *ctx, size_t index, uint64_t svma,
			 const struct as_symchain *chain)
{
	*(enum as_symsource *)ctx = chain->source;
}

size_t as_symmod_parts(struct as_symmod *m, uint64_t svma, struct as_sympart *ret, size_t max)
{
	enum as_symsource source = AS_SYM_NONE;
	size_t n = 0;

	/* also reads the units that tell no ranges, where that is needed */
	as_symmod_resolve(m, &svma, 1, ignore_chain, &source);
	if (in_text(m, svma) && source == AS_SYM_DWARF)
		n = parts_from_dwarf(m, svma, ret, max);
	return n ? n : parts_from_symbols(m, svma, ret, max);
}

/* ---- ranges ---- */

/* Where at the latest something may change after svma. */
static uint64_t next_change(struct as_symmod *m, uint64_t svma, uint64_t hi)
{
	uint32_t rel = (uint32_t)(svma - m->text_lo), unit[MAX_CLAIMS];
	size_t n = as_symrange_find(m->range, m->nrange, rel, unit, MAX_CLAIMS);
	uint64_t base = m->text_lo, end = hi;
	size_t i = 0, top = m->nrange;

	for (size_t k = 0; k < n; k++) {
		struct as_block *b = as_symmod_block(m, unit[k]);
		uint32_t seg, row;

		if (!b)
			continue;
		seg = as_block_find_seg(b, rel) + 1; /* NONE + 1 is the first */
		row = as_block_find_row(b, rel) + 1;
		if (seg < b->nseg)
			end = AS_MIN(end, base + b->seg[seg].lo);
		if (row < b->nrow)
			end = AS_MIN(end, base + b->row[row].lo);
	}
	while (i < top) { /* the first claim that begins behind */
		size_t mid = i + (top - i) / 2;

		if (m->range[mid].lo <= rel)
			i = mid + 1;
		else
			top = mid;
	}
	if (i < m->nrange)
		end = AS_MIN(end, base + m->range[i].lo);
	for (size_t k = i; k-- && m->range[k].max_hi > rel;) {
		if (m->range[k].hi > rel)
			end = AS_MIN(end, base + m->range[k].hi);
	}
	return end > svma ? end : svma + 1;
}

/* Symbols end somewhere, too, where there is no DWARF. */
static uint64_t end_of_symbol(struct as_symmod *m, uint64_t svma, uint64_t end)
{
	struct as_symname s;

	if (!as_symmod_name(m, svma, &s))
		return end;
	return s.svma + s.size_bytes > svma ? AS_MIN(end, s.svma + s.size_bytes) : svma + 1;
}

struct cut {
	AS_VEC(struct as_symframe) frame;
	enum as_symsource source;
	uint64_t lo, hi;
	bool any;
	as_symrange_fn fn;
	void *ctx;
};

static bool same_frame(const struct as_symframe *a, const struct as_symframe *b)
{
	return a->linkage == b->linkage && a->name == b->name && a->file == b->file &&
	       a->line == b->line && a->column == b->column && a->func_svma == b->func_svma &&
	       a->inlined == b->inlined && a->line_from_call == b->line_from_call &&
	       a->decl_file == b->decl_file && a->decl_line == b->decl_line;
}

static bool same_chain(const struct cut *c, const struct as_symchain *chain)
{
	if (c->frame.n != chain->n || c->source != chain->source)
		return false;
	for (size_t i = 0; i < chain->n; i++) {
		if (!same_frame(&c->frame.v[i], &chain->frames[i]))
			return false;
	}
	return true;
}

static void flush(struct cut *c)
{
	struct as_symchain chain = {c->frame.v, c->frame.n, c->source};

	if (c->any)
		c->fn(c->ctx, c->lo, c->hi, &chain);
	c->any = false;
}

static void on_piece(void *ctx, size_t index, uint64_t svma, const struct as_symchain *chain)
{
	struct cut *c = ctx;

	if (c->any && same_chain(c, chain))
		return;
	flush(c);
	c->frame.n = 0;
	for (size_t i = 0; i < chain->n; i++)
		as_vec_push(&c->frame, chain->frames[i]);
	c->source = chain->source;
	c->lo = svma;
	c->any = true;
}

void as_symmod_ranges(struct as_symmod *m, uint64_t lo, uint64_t hi, as_symrange_fn fn,
		      void *ctx)
{
	struct cut c = {.fn = fn, .ctx = ctx};

	for (uint64_t at = lo; at < hi; at = c.hi) {
		as_symmod_resolve(m, &at, 1, on_piece, &c);
		c.hi = in_text(m, at) ? next_change(m, at, hi) : hi;
		if (c.source != AS_SYM_DWARF)
			c.hi = end_of_symbol(m, at, c.hi);
	}
	flush(&c);
	as_vec_clear(&c.frame);
}

bool as_symmod_name(struct as_symmod *m, uint64_t svma, struct as_symname *ret)
{
	struct as_symtab *t = as_symmod_symtab(m);
	struct as_symtab_hit hit;

	if (!t || !as_symtab_find(t, svma, &hit))
		return false;
	*ret = (struct as_symname){hit.name, hit.start, hit.size_bytes, hit.synthetic};
	return true;
}

static void on_slot(void *ctx, uint64_t svma, const char *name, uint64_t target)
{
	struct as_symmod *m = ctx;
	struct as_symname s;
	size_t n;
	char *text;

	if (!name) {
		if (!as_symmod_name(m, target, &s) || s.svma != target || s.synthetic)
			return;
		n = strlen(s.linkage);
		text = as_arena_alloc(&m->data_names, n + 5);
		memcpy(text, s.linkage, n);
		memcpy(text + n, "@got", 5);
		name = text;
	}
	as_vec_push(&m->data, (struct as_symdatum){svma, 8, name});
}

static void on_data_symbol(void *ctx, const struct as_elf_symbol *s)
{
	struct as_symmod *m = ctx;

	if (!s->func && !s->untyped && s->size_bytes)
		as_vec_push(&m->data, (struct as_symdatum){s->svma, s->size_bytes, s->name});
}

static int by_datum(const void *x, const void *y)
{
	const struct as_symdatum *a = x, *b = y;

	if (a->svma != b->svma)
		return a->svma < b->svma ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void read_data(struct as_symmod *m)
{
	struct as_symtab *t = as_symmod_symtab(m);

	m->data_tried = true;
	if (!as_elf_find_section(m->elf, ".symtab"))
		as_symmod_find_debug(m);
	as_plt_each_slot(m->elf, &m->data_names, on_slot, m);
	if (t && as_symtab_count(t) < MANY_SYMBOLS)
		(void)as_elf_each_symbol(m->elf, on_data_symbol, m,
					 NULL); /* damage costs names */
	if (m->dbg && t && as_symtab_count(t) < MANY_SYMBOLS)
		(void)as_elf_each_symbol(m->dbg, on_data_symbol, m, NULL);
	if (m->data.n)
		qsort(m->data.v, m->data.n, sizeof *m->data.v, by_datum);
}

bool as_symmod_data_name(struct as_symmod *m, uint64_t svma, struct as_symname *ret)
{
	size_t lo = 0, hi;

	if (in_text(m, svma) && as_symmod_name(m, svma, ret))
		return true;
	if (!m->data_tried)
		read_data(m);
	for (hi = m->data.n; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->data.v[mid].svma <= svma)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo > 1 && m->data.v[lo - 2].svma == m->data.v[lo - 1].svma)
		lo--; /* the first name in order, whatever the tables' order */
	if (!lo || svma - m->data.v[lo - 1].svma >= m->data.v[lo - 1].size_bytes)
		return false;
	*ret = (struct as_symname){m->data.v[lo - 1].name, m->data.v[lo - 1].svma,
				   m->data.v[lo - 1].size_bytes, false};
	return true;
}

struct as_elf *as_symmod_elf(struct as_symmod *m)
{
	return m->elf;
}

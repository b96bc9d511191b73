/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * From an address to its frames: innermost function, the calls it was inlined into, the line of
 * the pc. Rows with line 0 ("no source line") are repaired from the same function and marked.
 */
#include "symbol/symmod_priv.h"

#include <string.h>

#define MAX_CHAIN      512 /* frames of one address */
#define MAX_NEIGHBOURS 64  /* intervals looked at for a call site */

static uint32_t seg_end(const struct as_block *b, uint32_t seg)
{
	return seg + 1 < b->nseg ? b->seg[seg + 1].lo : UINT32_MAX;
}

static bool usable(const struct as_block_row *r)
{
	return r->line && as_block_file(r->filecol) != AS_BLOCK_NO_FILE;
}

/* The call made by node in whose inlined body seg lies, or NULL. */
static const struct as_block_node *call_of(const struct as_block *b, uint32_t seg,
					   uint32_t node)
{
	uint32_t n = b->seg[seg].node;

	for (int i = 0; i < MAX_CHAIN && n < b->nnode; i++) {
		const struct as_block_node *call = &b->node[n];

		if (!as_block_is_inlined(call) || call->parent >= n)
			return NULL;
		if (call->parent == node)
			return call->a ? call : NULL;
		n = call->parent;
	}
	return NULL;
}

static void use_place(struct as_block *b, struct as_symframe *f, uint32_t line,
		      uint32_t filecol)
{
	f->line = line;
	f->file = as_block_path(b, as_block_file(filecol));
	f->column = as_block_column(filecol);
	f->line_from_call = true;
}

static bool repair_from_rows(struct as_block *b, uint32_t seg, uint32_t row,
			     struct as_symframe *f)
{
	uint32_t lo = b->seg[seg].lo, hi = seg_end(b, seg);

	for (uint32_t i = row; i-- && b->row[i + 1].lo > lo;) {
		if (usable(&b->row[i])) {
			use_place(b, f, b->row[i].line, b->row[i].filecol);
			return true;
		}
	}
	for (uint32_t i = row + 1; i < b->nrow && b->row[i].lo < hi; i++) {
		if (usable(&b->row[i])) {
			use_place(b, f, b->row[i].line, b->row[i].filecol);
			return true;
		}
	}
	return false;
}

/* Nearest place of the same function: a row in the same interval, a call it makes, its head. */
static void repair(struct as_block *b, uint32_t seg, uint32_t row, struct as_symframe *f)
{
	uint32_t node = b->seg[seg].node;

	if (repair_from_rows(b, seg, row, f))
		return;
	for (uint32_t d = 1; d <= MAX_NEIGHBOURS; d++) {
		const struct as_block_node *call = NULL;

		if (d <= seg)
			call = call_of(b, seg - d, node);
		if (!call && seg + d < b->nseg)
			call = call_of(b, seg + d, node);
		if (call) {
			use_place(b, f, call->a, call->b);
			return;
		}
	}
	if (f->decl_line) {
		f->line = f->decl_line;
		f->file = f->decl_file;
		f->column = 0;
		f->line_from_call = true;
	}
}

bool as_chain_line(struct as_block *b, uint32_t rel, struct as_symframe *f)
{
	uint32_t i = as_block_find_row(b, rel);

	if (i == AS_BLOCK_NONE || as_block_file(b->row[i].filecol) == AS_BLOCK_NO_FILE)
		return false;
	f->file = as_block_path(b, as_block_file(b->row[i].filecol));
	f->line = b->row[i].line;
	f->column = as_block_column(b->row[i].filecol);
	return true;
}

/*
 * Counts the further names of a function and, where DWARF has only its plain name (local
 * classes, lambdas, line tables only), takes the mangled one of its symbol. Once per function:
 * both stay in the block.
 */
void as_chain_name_function(struct as_symmod *m, struct as_block *b, struct as_block_node *n)
{
	struct as_symtab *t = as_symmod_symtab(m);
	uint64_t entry = m->text_lo + n->a;
	struct as_symtab_hit hit;
	struct as_block_func f;

	n->b = 0;
	if (!t || !as_symtab_find(t, entry, &hit) || hit.start != entry || hit.synthetic)
		return;
	n->b = hit.aliases;
	if (!b->dw || !as_block_get_func(b, n->func, &f) || (f.linkage && !f.plain))
		return;
	if (!strncmp(hit.name, "_Z", 2) || !strncmp(hit.name, "_R", 2) || !f.linkage) {
		b->func[n->func].linkage = hit.name;
		if (!f.name)
			b->func[n->func].name = hit.name;
	}
}

static void finish_function(struct as_symmod *m, struct as_block *b, struct as_block_node *n)
{
	struct as_symframe *last = &m->frame.v[m->frame.n - 1];
	struct as_block_func f;

	if (n->b == AS_BLOCK_NONE) {
		as_chain_name_function(m, b, n);
		if (as_block_get_func(b, n->func, &f)) {
			last->linkage = f.linkage;
			last->name = f.name;
			last->generic = f.generic;
		}
	}
	for (size_t i = 0; i < m->frame.n; i++)
		m->frame.v[i].func_svma = m->text_lo + n->a;
	last->aliases = n->b;
}

static void add_frame(struct as_symmod *m, struct as_block *b, const struct as_block_node *n)
{
	struct as_symframe f = {.inlined = as_block_is_inlined(n)};
	struct as_block_func fn;

	if (as_block_get_func(b, n->func, &fn)) {
		f.linkage = fn.linkage;
		f.name = fn.name;
		f.generic = fn.generic;
		f.decl_file = fn.decl_file;
		f.decl_line = fn.decl_line;
	}
	as_vec_push(&m->frame, f);
}

/* Without inlined calls the function alone stands for the chain, at the line of the pc. */
static void drop_inlined(struct as_symmod *m)
{
	struct as_symframe inner = m->frame.v[0], outer = m->frame.v[m->frame.n - 1];

	outer.file = inner.file;
	outer.line = inner.line;
	outer.column = inner.column;
	outer.line_from_call = inner.line_from_call;
	m->frame.v[0] = outer;
	m->frame.n = 1;
}

bool as_chain_build(struct as_symmod *m, struct as_block *b, uint32_t rel)
{
	uint32_t seg = as_block_find_seg(b, rel), node;

	m->frame.n = 0;
	if (seg == AS_BLOCK_NONE || b->seg[seg].node >= b->nnode)
		return false;
	node = b->seg[seg].node;
	add_frame(m, b, &b->node[node]);

	struct as_symframe *inner = &m->frame.v[0];
	bool has_row = as_chain_line(b, rel, inner);

	if (has_row && !inner->line)
		repair(b, seg, as_block_find_row(b, rel), inner);
	while (as_block_is_inlined(&b->node[node]) && m->frame.n < MAX_CHAIN) {
		const struct as_block_node *call = &b->node[node];

		if (call->parent >= node)
			break;
		node = call->parent;
		add_frame(m, b, &b->node[node]);

		struct as_symframe *f = &m->frame.v[m->frame.n - 1];

		f->line = call->a;
		f->file = as_block_path(b, as_block_file(call->b));
		f->column = as_block_column(call->b);
	}
	if (!as_block_is_inlined(&b->node[node]))
		finish_function(m, b, &b->node[node]);
	if (m->no_inlines)
		drop_inlined(m);
	return true;
}

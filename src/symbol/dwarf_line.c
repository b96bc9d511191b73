/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Line programs, versions 2 to 5: file tables (paths joined as addr2line tools join them) and
 * rows. A row says nothing about is_stmt here: for a sampled pc every row counts.
 */
#include "symbol/dwarf_priv.h"

#include <stdlib.h>

#include "symbol/dwarf_const.h"

void as_dw_lines_free(struct as_dw_lines *l)
{
	if (!l)
		return;
	as_vec_clear(&l->dir);
	as_vec_clear(&l->file);
	as_vec_clear(&l->row);
	free(l);
}

static const char *next_string(struct as_rd *r)
{
	const char *s = (const char *)r->p;

	as_dw_form_skip(r, NULL, DW_FORM_string);
	return r->bad ? "" : s;
}

/* Directories and files of versions 2 to 4; index 0 of both stands for the unit itself. */
static bool read_tables_v4(struct as_rd *r, struct as_dw_unit *u, struct as_dw_lines *l)
{
	as_vec_push(&l->dir, u->comp_dir ? u->comp_dir : "");
	while (!r->bad && as_rd_left(r) && *r->p)
		as_vec_push(&l->dir, next_string(r));
	as_dw_advance(r, 1);
	as_vec_push(&l->file, (struct as_dw_line_file){.name = NULL});
	while (!r->bad && as_rd_left(r) && *r->p) {
		struct as_dw_line_file f = {.name = next_string(r)};

		f.dir = as_dw_uleb(r);
		(void)as_dw_uleb(r);
		(void)as_dw_uleb(r);
		as_vec_push(&l->file, f);
	}
	as_dw_advance(r, 1);
	return !r->bad;
}

struct entry_format {
	uint64_t content;
	struct as_dw_attr attr;
};

/* One table of version 5: format, count, entries. */
static bool read_table_v5(struct as_rd *r, const struct as_dw_unit *u, struct as_dw_lines *l,
			  bool files)
{
	struct entry_format fmt[256];
	unsigned nfmt = (unsigned)as_dw_fixed(r, 1);

	for (unsigned i = 0; i < nfmt; i++) {
		uint64_t form;

		fmt[i].content = as_dw_uleb(r);
		form = as_dw_uleb(r);
		fmt[i].attr = (struct as_dw_attr){.form = (uint16_t)form, .fixed_bytes = -1};
		if (form > UINT16_MAX)
			return false;
	}

	uint64_t count = as_dw_uleb(r);

	if (r->bad || count > as_rd_left(r) || (count && !nfmt))
		return false;
	for (uint64_t n = 0; n < count && !r->bad; n++) {
		struct as_dw_line_file f = {0};
		const uint8_t *start = r->p;

		for (unsigned i = 0; i < nfmt; i++) {
			struct as_dw_val v;

			as_dw_form_read(r, u, &fmt[i].attr, &v);
			if (fmt[i].content == DW_LNCT_path)
				f.name = as_dw_str(u, &v);
			else if (fmt[i].content == DW_LNCT_directory_index)
				f.dir = v.u;
		}
		if (r->p == start)
			return false; /* entries without bytes could be told without end */
		if (files)
			as_vec_push(&l->file, f);
		else
			as_vec_push(&l->dir, f.name ? f.name : "");
	}
	return !r->bad;
}

static bool read_header(struct as_rd *r, struct as_dw_unit *u, struct as_dw_lines *l)
{
	const uint8_t *base = u->f->sec[AS_DW_LINE].p;
	uint64_t length = as_dw_fixed(r, 4);

	l->off_size = 4;
	if (length == 0xffffffff) {
		l->off_size = 8;
		length = as_dw_fixed(r, 8);
	}
	if (r->bad || length > as_rd_left(r))
		return false;
	r->end = r->p + length;
	l->end = (uint64_t)(r->end - base);
	l->version = (uint16_t)as_dw_fixed(r, 2);
	if (l->version < 2 || l->version > 5)
		return false;
	l->addr_size = u->addr_size;
	if (l->version >= 5) {
		l->addr_size = (uint8_t)as_dw_fixed(r, 1);
		as_dw_advance(r, 1); /* segment selector */
	}

	uint64_t header = as_dw_fixed(r, l->off_size);

	if (r->bad || header > as_rd_left(r))
		return false;
	l->prog_off = (uint64_t)(r->p - base) + header;
	l->min_inst = (uint8_t)as_dw_fixed(r, 1);
	l->max_ops = l->version >= 4 ? (uint8_t)as_dw_fixed(r, 1) : 1;
	as_dw_advance(r, 1); /* default is_stmt */
	l->line_base = (int8_t)as_dw_fixed(r, 1);
	l->line_range = (uint8_t)as_dw_fixed(r, 1);
	l->opcode_base = (uint8_t)as_dw_fixed(r, 1);
	l->oplen = r->p;
	as_dw_advance(r, l->opcode_base ? l->opcode_base - 1u : 0);
	if (!l->max_ops)
		l->max_ops = 1;
	return !r->bad && l->line_range && (l->addr_size == 4 || l->addr_size == 8);
}

struct as_dw_lines *as_dw_lines_get(struct as_dw *dw, struct as_dw_unit *u)
{
	const struct as_dw_sect *s = &u->f->sec[AS_DW_LINE];
	bool is_new;

	if (u->lines || !u->has_line || u->line_off >= s->n)
		return u->lines;

	uint64_t *slot = as_map64_put(&u->f->lines_of, u->line_off, &is_new);

	if (is_new) {
		struct as_dw_lines *l = as_xcalloc(1, sizeof *l);
		struct as_rd r = AS_RD(s->p + u->line_off, s->n - u->line_off);
		bool ok = read_header(&r, u, l);

		l->comp_dir = u->comp_dir;
		struct as_dw_unit as_here = *u; /* the table has its own offset size */

		as_here.off_size = l->off_size;
		if (ok && l->version >= 5)
			ok = read_table_v5(&r, &as_here, l, false) &&
			     read_table_v5(&r, &as_here, l, true);
		else if (ok)
			ok = read_tables_v4(&r, u, l);
		l->damaged = !ok;
		if (!ok)
			as_dw_note(dw, "line table 0x%llx skipped: damaged header",
				   (unsigned long long)u->line_off);
		*slot = (uint64_t)(uintptr_t)l;
	}
	u->lines = (struct as_dw_lines *)(uintptr_t)*slot;
	return u->lines;
}

static void append_path(struct as_buf *b, const char *part)
{
	if (!*part)
		return;
	if (b->len && b->p[b->len - 1] != '/')
		as_buf_addc(b, '/');
	as_buf_adds(b, part);
}

/*
 * comp_dir / directory / name, each only where what follows is relative. Directory 0 is
 * comp_dir: in version 5 it stands in the table, before that it is left out of it.
 */
const char *as_dw_line_path(struct as_dw *dw, struct as_dw_lines *l, uint64_t index)
{
	struct as_buf b = {0};

	if (index >= l->file.n)
		return NULL;

	struct as_dw_line_file *f = &l->file.v[index];

	if (f->joined || !f->name || !*f->name)
		return f->joined;
	if (*f->name == '/') {
		f->joined = f->name;
		return f->joined;
	}

	const char *dir = f->dir < l->dir.n ? l->dir.v[f->dir] : "";

	if (*dir != '/' && (l->version < 5 || f->dir) && l->comp_dir && *l->comp_dir)
		as_buf_adds(&b, l->comp_dir);
	if (l->version >= 5 || f->dir)
		append_path(&b, dir);
	else if (!b.len)
		append_path(&b, dir);
	append_path(&b, f->name);
	f->joined = as_arena_strndup(&dw->arena, b.p, b.len);
	as_buf_clear(&b);
	return f->joined;
}

struct machine {
	struct as_dw *dw;
	struct as_dw_lines *l;
	struct as_rd r;
	uint64_t addr, op_index, line, file, column;
	bool tombstone; /* the sequence belongs to discarded code */
};

static void reset_machine(struct machine *m)
{
	m->addr = m->op_index = m->column = 0;
	m->line = m->file = 1;
	m->tombstone = false;
}

static void add_row(struct machine *m, bool end)
{
	as_vec_push(&m->l->row,
		    (struct as_dw_row){
			    .addr = m->addr,
			    .line = (uint32_t)AS_MIN(m->line, UINT32_MAX),
			    .file = (uint32_t)AS_MIN(m->file, UINT32_MAX),
			    .column = m->column <= UINT16_MAX ? (uint16_t)m->column : 0,
			    .end = end,
		    });
}

static void advance_op(struct machine *m, uint64_t n)
{
	if (m->l->max_ops == 1) {
		m->addr += n * m->l->min_inst;
		return;
	}
	m->addr += m->l->min_inst * ((m->op_index + n) / m->l->max_ops);
	m->op_index = (m->op_index + n) % m->l->max_ops;
}

static void special_opcode(struct machine *m, uint8_t op)
{
	uint8_t adj = op - m->l->opcode_base;

	advance_op(m, adj / m->l->line_range);
	m->line += (uint64_t)(int64_t)(m->l->line_base + adj % m->l->line_range);
	add_row(m, false);
}

static void define_file(struct machine *m, struct as_rd *r)
{
	struct as_dw_line_file f = {.name = next_string(r)};

	f.dir = as_dw_uleb(r);
	if (!r->bad)
		as_vec_push(&m->l->file, f);
}

static void extended_opcode(struct machine *m)
{
	uint64_t n = as_dw_uleb(&m->r);

	if (m->r.bad || !n || n > as_rd_left(&m->r)) {
		m->r.bad |= n != 0;
		return;
	}

	struct as_rd r = AS_RD(m->r.p, n);

	m->r.p += n;
	switch (as_dw_fixed(&r, 1)) {
	case DW_LNE_end_sequence:
		add_row(m, true);
		reset_machine(m);
		break;
	case DW_LNE_set_address:
		/* The operand's own length counts: some tools write it wide in 32-bit units. */
		m->addr = n - 1 <= 8 ? as_dw_fixed(&r, (unsigned)n - 1) : 0;
		m->op_index = 0;
		break;
	case DW_LNE_define_file:
		define_file(m, &r);
		break;
	default:
		break;
	}
}

static void standard_opcode(struct machine *m, uint8_t op)
{
	struct as_rd *r = &m->r;

	switch (op) {
	case DW_LNS_copy:
		add_row(m, false);
		break;
	case DW_LNS_advance_pc:
		advance_op(m, as_dw_uleb(r));
		break;
	case DW_LNS_advance_line:
		m->line += (uint64_t)as_rd_sleb(r);
		break;
	case DW_LNS_set_file:
		m->file = as_dw_uleb(r);
		break;
	case DW_LNS_set_column:
		m->column = as_dw_uleb(r);
		break;
	case DW_LNS_const_add_pc:
		advance_op(m, (255u - m->l->opcode_base) / m->l->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		m->addr += as_dw_fixed(r, 2);
		m->op_index = 0;
		break;
	case DW_LNS_negate_stmt:
	case DW_LNS_set_basic_block:
	case DW_LNS_set_prologue_end:
	case DW_LNS_set_epilogue_begin:
		break;
	case DW_LNS_set_isa:
		(void)as_dw_uleb(r);
		break;
	default:
		for (unsigned i = 0; i < m->l->oplen[op - 1]; i++)
			(void)as_dw_uleb(r);
	}
}

void as_dw_lines_decode(struct as_dw *dw, struct as_dw_unit *u, struct as_dw_lines *l)
{
	const struct as_dw_sect *s = &u->f->sec[AS_DW_LINE];

	if (l->row.n || l->damaged || l->prog_off > l->end)
		return;
	/* Units may share a program; only damaged input does so more than a few times. */
	if (l->end - l->prog_off > dw->lines_left) {
		as_dw_note(dw, "line table 0x%llx skipped: used too often",
			   (unsigned long long)u->line_off);
		return;
	}
	dw->lines_left -= l->end - l->prog_off;

	struct machine m = {
		.dw = dw, .l = l, .r = AS_RD(s->p + l->prog_off, l->end - l->prog_off)};

	reset_machine(&m);
	while (as_rd_left(&m.r) && !m.r.bad) {
		uint8_t op = (uint8_t)as_dw_fixed(&m.r, 1);

		if (op >= l->opcode_base)
			special_opcode(&m, op);
		else if (op)
			standard_opcode(&m, op);
		else
			extended_opcode(&m);
	}
	if (m.r.bad)
		as_dw_note(dw,
			   "line table 0x%llx is damaged: rows after the damage are missing",
			   (unsigned long long)u->line_off);
}

struct sequence {
	uint64_t lo, hi;
	size_t first, n; /* rows without the end row */
};

static int sequence_by_lo(const void *x, const void *y)
{
	const struct sequence *a = x, *b = y;

	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

typedef AS_VEC(struct as_block_row) row_vec;

static void put_row(row_vec *out, uint32_t lo, uint32_t line, uint32_t filecol)
{
	struct as_block_row *last = out->n ? &out->v[out->n - 1] : NULL;

	/* The last of several rows at one address counts. */
	if (last && last->lo == lo) {
		last->line = line;
		last->filecol = filecol;
		if (out->n < 2 || last[-1].line != line || last[-1].filecol != filecol)
			return;
		out->n--;
		return;
	}
	if (last && last->line == line && last->filecol == filecol)
		return;
	as_vec_push(out, (struct as_block_row){lo, line, filecol});
}

static void put_sequence(struct as_dw *dw, const struct as_dw_lines *l,
			 const struct sequence *q, uint64_t from, row_vec *out)
{
	uint64_t base = dw->in.text_lo, at = AS_MAX(q->lo, from);

	for (size_t i = q->first; i < q->first + q->n; i++) {
		const struct as_dw_row *row = &l->row.v[i];

		if (row->addr >= q->hi)
			break;
		/* Rows that go back are damage; rows below from belong to an earlier sequence. */
		at = AS_MAX(at, row->addr);
		put_row(out, (uint32_t)(at - base), row->line,
			as_block_pack(row->file, row->column));
	}
	put_row(out, (uint32_t)(q->hi - base), 0, AS_BLOCK_NO_FILE);
}

void as_dw_lines_flatten(struct as_dw *dw, struct as_dw_lines *l, struct as_block *b)
{
	AS_VEC(struct sequence) seq = {0};
	row_vec out = {0};
	size_t first = 0;
	uint64_t done = 0;

	for (size_t i = 0; i < l->row.n; i++) {
		if (!l->row.v[i].end)
			continue;

		struct sequence q = {l->row.v[first].addr, l->row.v[i].addr, first, i - first};

		first = i + 1;
		if (q.n && as_dw_in_text(dw, q.lo, q.hi))
			as_vec_push(&seq, q);
	}
	if (seq.n)
		qsort(seq.v, seq.n, sizeof *seq.v, sequence_by_lo);
	as_vec_foreach (q, &seq) {
		if (q->hi <= done)
			continue;
		put_sequence(dw, l, q, done, &out);
		done = q->hi;
	}
	as_vec_clear(&seq);
	as_vec_clear(&l->row); /* the block has them now */
	b->row = out.v;
	b->nrow = out.n;
}

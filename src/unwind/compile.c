/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * From functions' CFI to table rows, and what CFI leaves out or gets wrong (see table.h).
 * Functions are taken in address order; each is cut where the next begins.
 */
#include "unwind/arch_priv.h"
#include "unwind/builder_priv.h"
#include "unwind/cfi_priv.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Shorter gaps between functions are padding: they keep the rule before them. */
#define GAP_MIN_BYTES      16
/* Reading code pages of every function costs more than it finds in large modules: the functions
 * looked for are in C libraries, and the C libraries are smaller than this. */
#define PATCH_MAX_FDES     32768
#define PATCH_MAX_FUNCTION 128

enum { SLOT_CFA, SLOT_FP, SLOT_RA, SLOT_OTHER, SLOTS };

struct compiler {
	const struct as_cfi_input *in;
	const struct as_uarch *arch;
	struct as_ut_builder b;
	struct as_cfi_index index;
	struct as_cfi_run *run;
	struct as_code_range *code; /* sorted */
	size_t ncode, code_hint;
	uint64_t cursor; /* end of what the rows cover so far */
	uint32_t rule_end, rule_signal;
	struct as_cfi_stats stats;
};

static bool fits16(int64_t v)
{
	return v >= INT16_MIN && v <= INT16_MAX;
}

static bool fits32(int64_t v)
{
	return v >= INT32_MIN && v <= INT32_MAX;
}

/* "register + offset [deref [+ offset]]": the shapes that have a rule of their own. */
static bool simple_expr(const struct as_cfi_rule *e, unsigned reg, int64_t *ret_off,
			bool *ret_deref, uint64_t *ret_plus)
{
	struct as_rd r = AS_RD(e->expr, e->len);
	if (as_rd_u8(&r) != 0x70 + reg)
		return false;
	*ret_off = as_rd_sleb(&r);
	*ret_deref = false;
	*ret_plus = 0;
	if (!r.bad && as_rd_left(&r) && *r.p == 0x06) {
		r.p++;
		*ret_deref = true;
		if (as_rd_left(&r) && *r.p == 0x23) {
			r.p++;
			*ret_plus = as_rd_uleb(&r);
		}
	}
	return !r.bad && !as_rd_left(&r) && fits16(*ret_off);
}

/* What linkers write for lazy PLT entries: sp + 8 + ((pc & 15) >= N) * 8. */
static bool plt_expr(const struct as_cfi_rule *e, int *ret_threshold)
{
	static const uint8_t shape[] = {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a,
					0x30, 0x2a, 0x33, 0x24, 0x22};
	if (e->len != sizeof shape || memcmp(e->expr, shape, 6) ||
	    memcmp(e->expr + 7, shape + 7, 4) || e->expr[6] < 0x30 || e->expr[6] > 0x3f)
		return false;
	*ret_threshold = e->expr[6] - 0x30;
	return true;
}

static uint32_t rule_expr(struct compiler *c)
{
	c->stats.expr++;
	return as_ut_rule(&c->b, AS_UT_CFA_EXPR, 0);
}

/* The part of w0 that says where the caller's fp is; false: only an expression can tell. */
static bool fp_part(struct compiler *c, const struct as_cfi_rule *fp, unsigned *ret_kind,
		    int64_t *ret_off)
{
	bool deref;
	uint64_t plus;
	*ret_off = 0;
	switch (fp->kind) {
	case AS_CFI_UNSET:
	case AS_CFI_SAME:
		*ret_kind = AS_UT_FP_SAME;
		return true;
	case AS_CFI_OFFSET:
		*ret_kind = AS_UT_FP_CFA;
		*ret_off = fp->off;
		return fits16(fp->off);
	case AS_CFI_EXPR:
		*ret_kind = AS_UT_FP_MEM;
		return simple_expr(fp, c->arch->fp, ret_off, &deref, &plus) && !deref;
	case AS_CFI_UNDEF:
		*ret_kind = AS_UT_FP_UNDEF;
		return true;
	default:
		return false;
	}
}

static uint32_t rule_cfa(struct compiler *c, const struct as_cfi_rule *cfa, unsigned fp_kind,
			 int64_t fp_off)
{
	int threshold;
	int64_t off;
	bool deref;
	uint64_t plus;
	if (cfa->kind == AS_CFI_REG) {
		if (!fits32(cfa->off))
			return rule_expr(c);
		if (cfa->reg == c->arch->sp)
			return as_ut_rule(&c->b, as_ut_w0(AS_UT_CFA_SP, fp_kind, fp_off),
					  (int32_t)cfa->off);
		if (cfa->reg == c->arch->fp)
			return as_ut_rule(&c->b, as_ut_w0(AS_UT_CFA_FP, fp_kind, fp_off),
					  (int32_t)cfa->off);
		/* the register takes the place of the fp offset */
		if (fp_kind == AS_UT_FP_CFA || fp_kind == AS_UT_FP_MEM)
			return rule_expr(c);
		c->stats.other_reg++;
		return as_ut_rule(&c->b,
				  AS_UT_CFA_REG | fp_kind << 8 | (uint32_t)cfa->reg << 24,
				  (int32_t)cfa->off);
	}
	if (cfa->kind != AS_CFI_EXPR)
		return rule_expr(c);
	if (c->arch->arch == AS_ARCH_X86_64 && plt_expr(cfa, &threshold))
		return as_ut_rule(&c->b, as_ut_w0(AS_UT_CFA_PLT, fp_kind, fp_off), threshold);
	unsigned kind = AS_UT_CFA_DEREF_SP;
	bool ok = simple_expr(cfa, c->arch->sp, &off, &deref, &plus);
	if (!ok) {
		kind = AS_UT_CFA_DEREF_FP;
		ok = simple_expr(cfa, c->arch->fp, &off, &deref, &plus);
	}
	if (!ok || !deref || plus > 0x7fff)
		return rule_expr(c);
	return as_ut_rule(&c->b, as_ut_w0(kind, fp_kind, fp_off),
			  (int32_t)((uint32_t)(uint16_t)(int16_t)off | (uint32_t)plus << 16));
}

static uint32_t rule_x86_64(struct compiler *c, const struct as_cfi_rows *row, bool signal)
{
	const struct as_cfi_rule *cfa = &row->slot[SLOT_CFA], *ra = &row->slot[SLOT_RA];
	unsigned fp_kind;
	int64_t fp_off;
	bool plain_ra = ra->kind == AS_CFI_OFFSET && ra->off == -8;
	if (signal && !plain_ra)
		return c->rule_signal;
	if (ra->kind == AS_CFI_UNDEF)
		return c->rule_end;
	if (!fp_part(c, &row->slot[SLOT_FP], &fp_kind, &fp_off))
		return rule_expr(c);
	if (ra->kind == AS_CFI_REG && cfa->kind == AS_CFI_REG && cfa->reg == c->arch->sp &&
	    fp_kind == AS_UT_FP_SAME && fits32(cfa->off))
		return as_ut_rule(&c->b, as_ut_w0(AS_UT_CFA_RAREG, fp_kind, ra->reg),
				  (int32_t)cfa->off);
	if (!plain_ra)
		return rule_expr(c);
	return rule_cfa(c, cfa, fp_kind, fp_off);
}

/*
 * The return address is in x30 until it is saved: next to x29 (the usual pair), or alone, for
 * which AS_UT_FP_MEM stands: x29 unchanged, return address at CFA + offset.
 */
static uint32_t rule_aarch64(struct compiler *c, const struct as_cfi_rows *row, bool signal)
{
	const struct as_cfi_rule *fp = &row->slot[SLOT_FP], *ra = &row->slot[SLOT_RA];
	bool fp_kept = fp->kind == AS_CFI_UNSET || fp->kind == AS_CFI_SAME;
	bool ra_kept = ra->kind == AS_CFI_UNSET || ra->kind == AS_CFI_SAME;
	if (signal)
		return c->rule_signal;
	if (ra->kind == AS_CFI_UNDEF)
		return c->rule_end;
	if (ra_kept && fp_kept)
		return rule_cfa(c, &row->slot[SLOT_CFA], AS_UT_FP_SAME, 0);
	if (ra_kept && fp->kind == AS_CFI_UNDEF)
		return rule_cfa(c, &row->slot[SLOT_CFA], AS_UT_FP_UNDEF, 0);
	if (ra->kind != AS_CFI_OFFSET || !fits16(ra->off))
		return rule_expr(c);
	if (fp->kind == AS_CFI_OFFSET && fp->off == ra->off - 8 && fits16(fp->off))
		return rule_cfa(c, &row->slot[SLOT_CFA], AS_UT_FP_CFA, fp->off);
	if (fp_kept)
		return rule_cfa(c, &row->slot[SLOT_CFA], AS_UT_FP_MEM, ra->off);
	return rule_expr(c);
}

static uint32_t rule_of_row(struct compiler *c, const struct as_cfi_rows *row, bool signal)
{
	return c->arch->arch == AS_ARCH_X86_64 ? rule_x86_64(c, row, signal)
					       : rule_aarch64(c, row, signal);
}

/* The bytes from svma to the end of its range; n = 0 when they are not given. */
static struct as_bytes code_at(struct compiler *c, uint64_t svma)
{
	for (size_t i = 0; i <= c->ncode; i++) {
		size_t k = i ? i - 1 : c->code_hint;
		if (k >= c->ncode || svma - c->code[k].svma >= c->code[k].code.n)
			continue;
		c->code_hint = k;
		size_t at = (size_t)(svma - c->code[k].svma);
		return (struct as_bytes){c->code[k].code.p + at, c->code[k].code.n - at};
	}
	return (struct as_bytes){NULL, 0};
}

/* Code without CFI: the entry point is a root, the rest gets rows from being read. */
static void gap_code(struct compiler *c, uint64_t svma, const uint8_t *code, size_t n)
{
	uint64_t entry = c->in->entry_svma;
	if (entry >= svma && entry - svma < n) {
		size_t at = (size_t)(entry - svma),
		       len = c->arch->entry_length(code + at, n - at);
		c->arch->scan(&c->b, svma, code, at);
		as_ut_row(&c->b, entry, c->rule_end);
		c->arch->scan(&c->b, entry + len, code + at + len, n - at - len);
	} else {
		c->arch->scan(&c->b, svma, code, n);
	}
	c->stats.synthesised++;
}

/* A root or trampoline right here takes the byte before it, too: no row may come between. */
static bool known_code(struct compiler *c, uint64_t svma)
{
	struct as_bytes code = code_at(c, svma);
	return c->arch->is_context_start(code.p, code.n) ||
	       c->arch->is_sigreturn(code.p, code.n);
}

/* [from, to) has no FDE. */
static void gap(struct compiler *c, uint64_t from, uint64_t to)
{
	if (from && to - from < GAP_MIN_BYTES)
		return;
	if (from && !known_code(c, from))
		as_ut_row(&c->b, from, 0);
	for (size_t i = 0; i < c->ncode; i++) {
		const struct as_code_range *r = &c->code[i];
		uint64_t a = AS_MAX(r->svma, from), z = AS_MIN(r->svma + r->code.n, to);
		if (a >= z)
			continue;
		size_t at = (size_t)(a - r->svma), n = (size_t)(z - a);
		if (r->plt) {
			c->arch->plt(&c->b, a, r->svma, r->code, n);
			c->stats.synthesised++;
		} else {
			gap_code(c, a, r->code.p + at, n);
		}
		if (z < to)
			as_ut_row(&c->b, z, 0);
		c->stats.covered_bytes += n;
	}
}

static bool is_entry(const struct compiler *c, const struct as_fde_ref *f)
{
	return c->in->entry_svma &&
	       c->in->entry_svma - f->start_svma < f->end_svma - f->start_svma;
}

/* What the code at a function's start says against its CFI: 0 nothing, else the rule for all of
 * it. */
static uint32_t forced_rule(struct compiler *c, const struct as_fde_ref *f,
			    const struct as_cie *cie)
{
	uint64_t len = f->end_svma - f->start_svma;
	if (is_entry(c, f))
		return c->rule_end;
	if (c->index.nfde > PATCH_MAX_FDES || len > PATCH_MAX_FUNCTION || cie->signal)
		return 0;
	struct as_bytes code = code_at(c, f->start_svma);
	code.n = AS_MIN(code.n, len);
	if (c->arch->is_context_start(code.p, code.n))
		return c->rule_end;
	if (c->arch->is_sigreturn(code.p, code.n) ||
	    (code.n && c->arch->is_sigreturn(code.p + 1, code.n - 1)))
		return c->rule_signal;
	return 0;
}

static void function(struct compiler *c, const struct as_fde_ref *f, uint64_t end)
{
	const struct as_cfi_section *sec = &c->index.sec[f->debug_frame];
	struct as_fde fde = {
		.start_svma = f->start_svma,
		.end_svma = end,
		.insn = sec->p + f->insn_off,
		.insn_end = sec->p + f->insn_off + f->insn_len,
		.cie = c->index.cie[f->cie],
		.sec = sec,
	};
	uint32_t forced = forced_rule(c, f, &fde.cie);
	c->stats.covered_bytes += end - f->start_svma;
	if (forced) {
		bool early = forced != c->rule_end || !is_entry(c, f);
		early = early && f->start_svma > c->b.floor;
		as_ut_row(&c->b, f->start_svma - early, forced);
		c->stats.synthesised++;
		return;
	}
	as_cfi_begin(c->run, &fde);
	while (as_cfi_next(c->run)) {
		uint32_t rule = rule_of_row(c, &c->run->cur, fde.cie.signal);
		uint64_t at = c->run->row_start;
		/* a root whose first byte is a return address (coroutine starts) */
		if (rule == c->rule_end && at == f->start_svma && at > c->b.floor)
			at--;
		as_ut_row(&c->b, at, rule);
	}
	if (c->run->bad) {
		as_ut_row(&c->b, c->run->row_start, 0);
		c->stats.bad_entries++;
	}
}

static int by_svma(const void *pa, const void *pb)
{
	const struct as_code_range *a = pa, *b = pb;
	return a->svma < b->svma ? -1 : a->svma > b->svma;
}

/* Ranges in order, without overlaps, inside what a table can hold. */
static void sort_code(struct compiler *c)
{
	c->code = as_xcalloc(c->in->ncode + 1, sizeof *c->code);
	for (size_t i = 0; i < c->in->ncode; i++) {
		const struct as_code_range *r = &c->in->code[i];
		if (r->code.p && r->code.n && r->svma < AS_CFI_SVMA_LIMIT &&
		    r->code.n < AS_CFI_SVMA_LIMIT)
			c->code[c->ncode++] = *r;
	}
	if (c->ncode > 1)
		qsort(c->code, c->ncode, sizeof *c->code, by_svma);
	for (size_t i = 1; i < c->ncode; i++) {
		struct as_code_range *p = &c->code[i - 1];
		if (c->code[i].svma - p->svma < p->code.n)
			p->code.n = (size_t)(c->code[i].svma - p->svma);
	}
}

/* Pages a table of this input may have: those of its code, and some for each function elsewhere. */
static uint64_t page_budget(const struct compiler *c)
{
	uint64_t pages = 65536 + 64 * (uint64_t)c->index.nfde;
	for (size_t i = 0; i < c->ncode; i++)
		pages += (c->code[i].code.n >> AS_UT_PAGE_SHIFT) + 2;
	return pages;
}

static void compile_all(struct compiler *c)
{
	c->rule_end = as_ut_rule(&c->b, AS_UT_CFA_END, 0);
	c->rule_signal = as_ut_rule(&c->b, AS_UT_CFA_SIGNAL, 0);
	for (size_t i = 0; i < c->index.nfde; i++) {
		const struct as_fde_ref *f = &c->index.fde[i];
		uint64_t end = f->end_svma;
		if (i + 1 < c->index.nfde)
			end = AS_MIN(end, f[1].start_svma);
		gap(c, c->cursor, f->start_svma);
		function(c, f, end);
		c->cursor = end;
	}
	if (c->cursor) {
		/* the last row must not reach past the last function */
		as_ut_row(&c->b, c->cursor, 0);
	}
	gap(c, c->cursor, UINT64_MAX);
}

int as_utable_compile(const struct as_cfi_input *in, struct as_buf *out,
		      struct as_cfi_stats *stats, struct as_error *err)
{
	static const uint8_t others[64] = {[0 ... 63] = SLOT_OTHER};
	struct compiler c = {.in = in, .arch = as_uarch_get(in->arch)};
	uint8_t slots[64];
	if (!c.arch)
		return as_fail(err, AS_E_UNSUPPORTED, 0,
			       "no unwinding for this processor architecture");
	int r = as_cfi_index_build(in, &c.index, err);
	if (r < 0)
		return r;
	memcpy(slots, others, sizeof slots);
	slots[c.arch->fp] = SLOT_FP;
	slots[c.arch->ra] = SLOT_RA;
	c.run = as_xmalloc(sizeof *c.run);
	as_cfi_run_init(c.run, slots, SLOTS);
	sort_code(&c);
	as_ut_builder_init(&c.b, page_budget(&c));
	c.b.passed = in->passed;
	c.b.passed_ctx = in->passed_ctx;
	compile_all(&c);
	size_t before = out->len;
	as_ut_finish(&c.b, in->arch, out);
	c.stats.nfde = c.index.nfde;
	c.stats.ncie = c.index.ncie;
	c.stats.bad_entries += c.index.bad_entries;
	c.stats.rows_raw = c.b.rows_raw;
	c.stats.rows = c.b.rows_total;
	c.stats.rules = c.b.rules.n;
	c.stats.segments = c.b.segs.n;
	c.stats.table_bytes = out->len - before;
	if (stats)
		*stats = c.stats;
	if (!c.b.segs.n) {
		out->len = before;
		r = as_fail(err, AS_E_FORMAT, 0, "no usable unwind information");
	}
	as_ut_builder_clear(&c.b);
	as_cfi_index_clear(&c.index);
	free(c.code);
	free(c.run);
	return r;
}

int as_cfi_extents(const struct as_cfi_input *in, struct as_extent **ret, size_t *ret_n,
		   struct as_error *err)
{
	struct as_cfi_index x;
	int r = as_cfi_index_build(in, &x, err);
	if (r < 0)
		return r;
	struct as_extent *e = as_xcalloc(x.nfde + 1, sizeof *e);
	for (size_t i = 0; i < x.nfde; i++) {
		e[i].start_svma = x.fde[i].start_svma;
		e[i].end_svma = x.fde[i].end_svma;
		if (i + 1 < x.nfde && e[i].end_svma > x.fde[i + 1].start_svma)
			e[i].end_svma = x.fde[i + 1].start_svma;
	}
	*ret = e;
	*ret_n = x.nfde;
	as_cfi_index_clear(&x);
	return AS_OK;
}

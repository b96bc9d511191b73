/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Compiled tables against an independent reader of the same CFI: elfutils' libdw, on the
 * programs and libraries of this machine, 20,000 addresses each. Where the two differ on
 * purpose (what CFI gets wrong and the compiler mends) the difference must belong to a named
 * class; anything else fails with the address.
 */
#include <elfutils/libdw.h>
#include <gelf.h>
#include <glob.h>
#include <dwarf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "cfi_file.h"
#include "base/mem.h"

#define SAMPLES 20000

enum mend {
	SAME,
	ENTRY_POINT,   /* e_entry's function is a root */
	CONTEXT_START, /* __start_context is a root */
	BYTE_BEFORE,   /* the byte before a root or trampoline belongs to it */
	EXPRESSION,    /* left to the general evaluator */
	NO_ORACLE,     /* libdw has no frame here */
	WRONG,
	MENDS,
};

struct expect {
	unsigned cfa, fp;
	int64_t cfa_off, fp_off;
	unsigned reg;
	unsigned ra;
	int64_t ra_off;
	bool signal, root, ra_reg;
	unsigned ra_regno;
};
#define OTHERWISE UINT32_MAX

struct machine {
	enum as_arch arch;
	unsigned sp, fp, ra;
};
static const struct machine x86_64 = {AS_ARCH_X86_64, 7, 6, 16};
static const struct machine aarch64 = {AS_ARCH_AARCH64, 31, 29, 30};

static unsigned rule_cfa(struct as_rule r)
{
	return r.w0 & 0xff;
}

/* reg + off of a libdw location; false for any other shape. */
static bool breg(const Dwarf_Op *op, unsigned *reg, int64_t *off)
{
	if (op->atom == DW_OP_bregx) {
		*reg = (unsigned)op->number;
		*off = (int64_t)op->number2;
		return true;
	}
	if (op->atom < DW_OP_breg0 || op->atom > DW_OP_breg31)
		return false;
	*reg = op->atom - DW_OP_breg0;
	*off = (int64_t)op->number;
	return true;
}

static void expect_cfa(Dwarf_Frame *f, const struct machine *m, struct expect *x)
{
	Dwarf_Op *ops;
	size_t n;
	x->cfa = AS_UT_CFA_EXPR;
	if (dwarf_frame_cfa(f, &ops, &n) || !n || !breg(&ops[0], &x->reg, &x->cfa_off))
		return;
	if (n == 1)
		x->cfa = x->reg == m->sp   ? AS_UT_CFA_SP
			 : x->reg == m->fp ? AS_UT_CFA_FP
					   : AS_UT_CFA_REG;
	bool deref = n >= 2 && ops[1].atom == DW_OP_deref &&
		     (n == 2 || (n == 3 && ops[2].atom == DW_OP_plus_uconst));
	if (deref && (x->reg == m->fp || x->reg == m->sp)) {
		x->cfa = x->reg == m->sp ? AS_UT_CFA_DEREF_SP : AS_UT_CFA_DEREF_FP;
		uint64_t plus = n == 3 ? ops[2].number : 0;
		x->cfa_off = (int32_t)((uint32_t)(uint16_t)x->cfa_off | (uint32_t)plus << 16);
	}
	if (n == 9 && ops[1].atom == DW_OP_breg16 && ops[5].atom == DW_OP_ge) {
		x->cfa = AS_UT_CFA_PLT;
		x->cfa_off = ops[4].atom - DW_OP_lit0;
	}
}

/* Where a register of the caller is: a fp kind of the table, and its offset. */
static void expect_register(Dwarf_Frame *f, unsigned reg, unsigned *ret_kind, int64_t *ret_off)
{
	Dwarf_Op mem[3], *ops;
	size_t n;
	*ret_kind = AS_UT_FP_SAME;
	*ret_off = 0;
	if (dwarf_frame_register(f, (int)reg, mem, &ops, &n))
		return;
	if (n == 0) {
		*ret_kind = ops ? AS_UT_FP_UNDEF : AS_UT_FP_SAME;
	} else if (ops[0].atom == DW_OP_call_frame_cfa && n <= 2) {
		*ret_kind = AS_UT_FP_CFA;
		*ret_off = n == 2 ? (int64_t)ops[1].number : 0;
	} else if (n == 1 && ops[0].atom == DW_OP_breg0 + reg) {
		*ret_kind = AS_UT_FP_MEM;
		*ret_off = (int64_t)ops[0].number;
	} else {
		*ret_kind = OTHERWISE;
	}
}

static void expect_registers(Dwarf_Frame *f, const struct machine *m, struct expect *x)
{
	Dwarf_Op mem[3], *ops;
	size_t n;
	expect_register(f, m->fp, &x->fp, &x->fp_off);
	expect_register(f, m->ra, &x->ra, &x->ra_off);
	x->root = x->ra == AS_UT_FP_UNDEF;
	if (dwarf_frame_register(f, (int)m->ra, mem, &ops, &n) || n != 1)
		return;
	unsigned atom = ops[0].atom;
	if (atom == DW_OP_regx || (atom >= DW_OP_reg0 && atom <= DW_OP_reg31)) {
		x->ra_reg = true;
		x->ra_regno = atom == DW_OP_regx ? (unsigned)ops[0].number : atom - DW_OP_reg0;
	}
}

static bool agrees_x86_64(const struct expect *x, struct as_rule r)
{
	int16_t fp_off = (int16_t)(r.w0 >> 16);
	if (x->ra_reg)
		return rule_cfa(r) == AS_UT_CFA_RAREG && (uint16_t)fp_off == x->ra_regno &&
		       r.w1 == x->cfa_off;
	if (x->ra != AS_UT_FP_CFA || x->ra_off != -8 || x->fp == OTHERWISE)
		return false;
	if (x->cfa == AS_UT_CFA_REG)
		return r.w0 >> 24 == x->reg && (r.w0 >> 8 & 0xff) == x->fp;
	return (r.w0 >> 8 & 0xff) == x->fp && fp_off == x->fp_off;
}

/* x30 in its register, alone in memory, or right above x29. */
static bool agrees_aarch64(const struct expect *x, struct as_rule r)
{
	int16_t off = (int16_t)(r.w0 >> 16);
	unsigned kind = r.w0 >> 8 & 0xff;
	if (x->ra == AS_UT_FP_SAME)
		return kind == x->fp && (kind == AS_UT_FP_SAME || kind == AS_UT_FP_UNDEF);
	if (x->ra != AS_UT_FP_CFA)
		return false;
	if (x->fp == AS_UT_FP_SAME)
		return kind == AS_UT_FP_MEM && off == x->ra_off;
	return x->fp == AS_UT_FP_CFA && kind == AS_UT_FP_CFA && off == x->fp_off &&
	       x->ra_off == x->fp_off + 8;
}

static bool agrees(const struct expect *x, const struct machine *m, struct as_rule r)
{
	bool plain = m->arch == AS_ARCH_X86_64 && x->ra == AS_UT_FP_CFA && x->ra_off == -8;
	if (x->signal && !plain)
		return rule_cfa(r) == AS_UT_CFA_SIGNAL;
	if (x->root)
		return rule_cfa(r) == AS_UT_CFA_END;
	if (!x->ra_reg &&
	    (rule_cfa(r) != x->cfa || r.w1 != x->cfa_off || x->cfa == AS_UT_CFA_EXPR))
		return false;
	return m->arch == AS_ARCH_X86_64 ? agrees_x86_64(x, r) : agrees_aarch64(x, r);
}

/* Can only the general evaluator say this? */
static bool needs_expression(const struct expect *x, const struct machine *m)
{
	if (x->cfa == AS_UT_CFA_EXPR || x->cfa == AS_UT_CFA_REG || x->fp == OTHERWISE)
		return true;
	if (x->fp_off != (int16_t)x->fp_off || x->ra_off != (int16_t)x->ra_off)
		return true; /* does not fit a row */
	if (m->arch == AS_ARCH_X86_64)
		return x->ra != AS_UT_FP_CFA || x->ra_off != -8;
	return x->ra == OTHERWISE || x->fp != x->ra || x->ra_off != x->fp_off + 8;
}

static const uint8_t *code_at(const struct cfi_file *f, uint64_t svma, size_t *n)
{
	for (size_t i = 0; i < f->in.ncode; i++) {
		const struct as_code_range *r = &f->code[i];
		if (svma - r->svma < r->code.n) {
			*n = r->code.n - (svma - r->svma);
			return r->code.p + (svma - r->svma);
		}
	}
	*n = 0;
	return NULL;
}

/* __start_context of glibc: x86-64, and aarch64 after a nop. */
static bool is_context_start(const struct cfi_file *f, uint64_t svma)
{
	static const uint8_t x86_code[] = {0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24};
	static const uint8_t arm_code[] = {0x1f, 0x20, 0x03, 0xd5, 0xe0, 0x03, 0x13, 0xaa};
	size_t n;
	const uint8_t *code = code_at(f, svma, &n);
	if (f->in.arch == AS_ARCH_AARCH64)
		return n >= sizeof arm_code && !memcmp(code, arm_code, sizeof arm_code);
	return n >= sizeof x86_code && !memcmp(code, x86_code, sizeof x86_code);
}

static enum mend judge(const struct cfi_file *f, const struct as_utable *t,
		       const struct as_extent *e, uint64_t at, Dwarf_CFI *cfi)
{
	const struct machine *m = f->in.arch == AS_ARCH_AARCH64 ? &aarch64 : &x86_64;
	struct expect x = {0};
	struct as_rule r, next;
	Dwarf_Frame *frame;
	Dwarf_Addr start, end;
	if (!as_utable_find(t, at, &r))
		return WRONG;
	if (dwarf_cfi_addrframe(cfi, at, &frame))
		return NO_ORACLE;
	dwarf_frame_info(frame, &start, &end, &x.signal);
	expect_cfa(frame, m, &x);
	expect_registers(frame, m, &x);
	free(frame);
	if (agrees(&x, m, r))
		return SAME;
	unsigned kind = rule_cfa(r);
	if (kind == AS_UT_CFA_EXPR && needs_expression(&x, m))
		return EXPRESSION;
	if (kind == AS_UT_CFA_END &&
	    f->in.entry_svma - e->start_svma < e->end_svma - e->start_svma)
		return ENTRY_POINT;
	if (kind == AS_UT_CFA_END && is_context_start(f, e->start_svma))
		return CONTEXT_START;
	if ((kind == AS_UT_CFA_END || kind == AS_UT_CFA_SIGNAL) && at + 1 == e->end_svma &&
	    as_utable_find(t, at + 1, &next) && rule_cfa(next) == kind)
		return BYTE_BEFORE;
	fprintf(stderr,
		"%#lx: rule %#x %d, libdw: cfa %u off %ld reg %u fp %u off %ld ra %u off %ld\n",
		at, r.w0, r.w1, x.cfa, x.cfa_off, x.reg, x.fp, x.fp_off, x.ra, x.ra_off);
	return WRONG;
}

static void compare(const char *path, unsigned max_unlike)
{
	static struct cfi_file f;
	struct as_buf blob = {0};
	struct as_utable t;
	struct as_error err;
	struct as_extent *e;
	size_t n, count[MENDS] = {0};
	if (!cfi_file_open(path, &f) || !f.in.eh_frame.n) {
		print_message("skipped, not here: %s\n", path);
		return;
	}
	assert_int_equal(as_utable_compile(&f.in, &blob, NULL, &err), 0);
	assert_int_equal(as_utable_open(blob.p, blob.len, &t, &err), 0);
	assert_int_equal(as_cfi_extents(&f.in, &e, &n, &err), 0);
	elf_version(EV_CURRENT);
	Elf *elf = elf_memory((char *)f.map, f.size);
	Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
	assert_non_null(cfi);
	uint64_t x = 88172645463325252ull;
	for (size_t i = 0; i < SAMPLES; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		/* each function's start and end as well as its inside */
		const struct as_extent *d = &e[(i * 7919 + (x & 3)) % n];
		uint64_t len = d->end_svma - d->start_svma, at = d->start_svma;
		if (i % 8)
			at += i % 8 == 1 ? len - 1 : (x >> 20) % len;
		count[judge(&f, &t, d, at, cfi)]++;
	}
	print_message("%s: %zu same, entry %zu, context %zu, byte before %zu, expression %zu, "
		      "no oracle %zu\n",
		      path, count[SAME], count[ENTRY_POINT], count[CONTEXT_START],
		      count[BYTE_BEFORE], count[EXPRESSION], count[NO_ORACLE]);
	assert_int_equal(count[WRONG], 0);
	assert_true(SAMPLES - count[SAME] <= max_unlike);
	dwarf_cfi_end(cfi);
	elf_end(elf);
	free(e);
	as_buf_clear(&blob);
	cfi_file_close(&f);
}

static void tables_of_installed_programs_agree_with_libdw(void **state)
{
	static const char *const paths[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/lib64/ld-linux-x86-64.so.2",
		"/lib/x86_64-linux-gnu/libm.so.6",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/lib/x86_64-linux-gnu/libgcc_s.so.1",
		"/usr/bin/git",
		"/usr/bin/python3",
		"/usr/bin/perl",
		"/proc/self/exe",
	};
	for (size_t i = 0; i < AS_ARRAY_LEN(paths); i++)
		compare(paths[i], SAMPLES / 50);
}

/* The cross compiler's C library, where it is installed. */
static void tables_of_aarch64_libraries_agree_with_libdw(void **state)
{
	static const char *const paths[] = {
		"/usr/aarch64-linux-gnu/lib/libc.so.6",
		"/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1",
		"/usr/aarch64-linux-gnu/lib/libm.so.6",
		"/usr/aarch64-linux-gnu/lib/libstdc++.so.6",
	};
	for (size_t i = 0; i < AS_ARRAY_LEN(paths); i++)
		compare(paths[i], SAMPLES / 5);
}

/* Rust's own compiler and cargo, wherever this machine keeps them. */
static void tables_of_rust_programs_agree_with_libdw(void **state)
{
	static const char *const patterns[] = {
		"/.rustup/toolchains/*/lib/librustc_driver-*.so",
		"/.rustup/toolchains/*/bin/cargo",
		"/.rustup/toolchains/*/lib/rustlib/*/bin/rust-lld",
	};
	const char *home = getenv("HOME");
	for (size_t i = 0; home && i < AS_ARRAY_LEN(patterns); i++) {
		char path[512];
		glob_t g;
		snprintf(path, sizeof path, "%s%s", home, patterns[i]);
		if (glob(path, 0, NULL, &g))
			continue;
		compare(g.gl_pathv[0], SAMPLES / 50);
		globfree(&g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_of_installed_programs_agree_with_libdw),
		cmocka_unit_test(tables_of_aarch64_libraries_agree_with_libdw),
		cmocka_unit_test(tables_of_rust_programs_agree_with_libdw),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

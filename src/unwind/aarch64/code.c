/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* aarch64 machine code: call sites, known roots and trampolines, functions and PLTs without CFI. */
#include "unwind/arch_priv.h"
#include "unwind/builder_priv.h"
#include "base/buf.h"

#include <string.h>

/* rt_sigframe at sp: siginfo 128, ucontext up to its sigcontext 176, fault address 8 */
static const int8_t ucontext_regs[33] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
					 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
					 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};

static uint32_t word(const uint8_t *code, size_t i)
{
	return as_get_le32(code + 4 * i);
}

static bool after_call(const uint8_t *code, size_t n)
{
	if (n < 4)
		return false;
	uint32_t w = as_get_le32(code + n - 4);
	return (w & 0xfc000000) == 0x94000000 || /* bl */
	       (w & 0xfefff000) == 0xd63f0000;   /* blr, blraa, blrab, blraaz, blrabz */
}

/* At stp x29, x30, [sp, #imm]! (maybe signing first), or at ret. */
static int bare_leaf(const uint8_t *code)
{
	uint32_t at = word(code, 2), next = word(code, 3);
	if (at == 0xd503233f || at == 0xd503245f) /* paciasp, bti c */
		at = next;
	return at == 0xd65f03c0 || (at & 0xffc07fff) == 0xa9807bfd ? 0 : -1;
}

/* glibc's __startcontext, entered at a nop: mov x0, x19; cbnz x0, …; b exit */
static bool is_context_start(const uint8_t *code, size_t n)
{
	size_t i = 0, words = n / 4;
	while (i < 4 && i < words && word(code, i) == 0xd503201f)
		i++;
	return words >= i + 3 && word(code, i) == 0xaa1303e0 &&
	       (word(code, i + 1) & 0xff00001f) == 0xb5000000 &&
	       (word(code, i + 2) & 0xfc000000) == 0x14000000;
}

/* mov x8, #139 (rt_sigreturn); svc #0 */
static bool is_sigreturn(const uint8_t *code, size_t n)
{
	return n >= 8 && word(code, 0) == 0xd2801168 && word(code, 1) == 0xd4000001;
}

static bool is_jump(uint32_t w)
{
	return (w & 0xfc000000) == 0x14000000 || /* b */
	       (w & 0xfffffc1f) == 0xd61f0000;   /* br */
}

static bool is_return(uint32_t w)
{
	return (w & 0xfffffc1f) == 0xd65f0000 || w == 0xd65f0bff || w == 0xd65f0fff;
}

static size_t entry_length(const uint8_t *code, size_t n)
{
	size_t words = n / 4 < 40 ? n / 4 : 40;
	for (size_t i = 0; i < words; i++)
		if (is_jump(word(code, i)) || word(code, i) == 0)
			return 4 * (i + 1);
	return 4 * words < n ? 4 * words : n;
}

struct frame {
	int64_t cfa_off; /* CFA = sp + this */
	int64_t ra_off;  /* from CFA; 0: still in x30 */
	bool pair;       /* x29 is saved 8 below it */
	bool fp_based;
	int64_t fp_cfa; /* CFA = x29 + this */
};

static void emit(struct as_ut_builder *b, uint64_t pc, const struct frame *f)
{
	unsigned kind = f->fp_based ? AS_UT_CFA_FP : AS_UT_CFA_SP;
	unsigned fp = !f->ra_off ? AS_UT_FP_SAME : f->pair ? AS_UT_FP_CFA : AS_UT_FP_MEM;
	as_ut_emit(b, pc, as_ut_w0(kind, fp, f->ra_off - (f->pair ? 8 : 0)),
		   f->fp_based ? f->fp_cfa : f->cfa_off);
}

/* One instruction's effect on where things are; false when it has none. */
static bool frame_step(struct frame *f, uint32_t w)
{
	int64_t imm7 = (int64_t)((int32_t)(w << 10) >> 25) * 8;
	if ((w & 0xffc07fff) == 0xa9807bfd) { /* stp x29, x30, [sp, #imm]! */
		f->cfa_off -= imm7;
		f->ra_off = 8 - f->cfa_off;
		f->pair = true;
		return true;
	}
	if ((w & 0xffc07fff) == 0xa9007bfd) { /* stp x29, x30, [sp, #imm] */
		f->ra_off = imm7 + 8 - f->cfa_off;
		f->pair = true;
		return true;
	}
	if ((w & 0xffe00fff) == 0xf8000ffe) { /* str x30, [sp, #imm]! */
		f->cfa_off -= (int64_t)((int32_t)(w << 11) >> 23);
		f->ra_off = -f->cfa_off;
		return true;
	}
	if ((w & 0xff8003ff) == 0xd10003ff) { /* sub sp, sp, #imm */
		f->cfa_off += (int64_t)(w >> 10 & 0xfff) << (w >> 22 & 1 ? 12 : 0);
		return true;
	}
	if ((w & 0xff8003ff) == 0x910003fd) { /* add x29, sp, #imm */
		f->fp_based = true;
		f->fp_cfa = f->cfa_off - ((int64_t)(w >> 10 & 0xfff) << (w >> 22 & 1 ? 12 : 0));
		return true;
	}
	if ((w & 0xffc07fff) == 0xa8c07bfd || /* ldp x29, x30, [sp], #imm */
	    (w & 0xffc07fff) == 0xa9407bfd) { /* ldp x29, x30, [sp, #imm] */
		f->fp_based = false;
		f->ra_off = 0;
		f->pair = false;
		if ((w & 0xffc07fff) == 0xa8c07bfd)
			f->cfa_off -= imm7;
		return true;
	}
	if ((w & 0xffe00fff) == 0xf84007fe) { /* ldr x30, [sp], #imm */
		f->ra_off = 0;
		f->cfa_off -= (int64_t)((int32_t)(w << 11) >> 23);
		return true;
	}
	if ((w & 0xff8003ff) == 0x910003ff) { /* add sp, sp, #imm */
		f->cfa_off -= (int64_t)(w >> 10 & 0xfff) << (w >> 22 & 1 ? 12 : 0);
		return true;
	}
	return false;
}

/* Roots and trampolines known by their bytes; the length of what was found, else 0. */
static size_t known_code(struct as_ut_builder *b, uint64_t svma, const uint8_t *code, size_t n)
{
	bool sig = is_sigreturn(code, n);
	if (!sig && !is_context_start(code, n))
		return 0;
	as_ut_emit(b, svma > b->floor ? svma - 1 : svma, sig ? AS_UT_CFA_SIGNAL : AS_UT_CFA_END,
		   0);
	size_t at = 0;
	while (!sig && word(code, at) == 0xd503201f)
		at++;
	return sig ? 8 : 4 * at + 12;
}

/* A function's end: padding or a known prologue after a return. After a return in the middle
 * the state of the body, as it was before the epilogue, holds again. */
static void scan(struct as_ut_builder *b, uint64_t svma, const uint8_t *code, size_t n)
{
	size_t at = -svma & 3;
	struct frame f = {0}, body = {0};
	bool fresh = true;
	for (; at + 4 <= n; at += 4) {
		uint32_t w = as_get_le32(code + at);
		if (fresh) {
			size_t known = known_code(b, svma + at, code + at, n - at);
			if (known) {
				at += known - 4;
				continue;
			}
		}
		if (fresh && (w == 0 || w == 0xd503201f))
			continue;
		if (fresh || f.cfa_off < 0)
			f = (struct frame){0};
		if (fresh)
			emit(b, svma + at, &f);
		fresh = false;
		bool restores =
			(w & 0xff8003ff) == 0x910003ff || (w & 0xffc07fff) == 0xa8c07bfd ||
			(w & 0xffc07fff) == 0xa9407bfd || (w & 0xffe00fff) == 0xf84007fe;
		if (!restores && frame_step(&f, w)) {
			body = f;
			emit(b, svma + at + 4, &f);
		} else if (restores && frame_step(&f, w)) {
			emit(b, svma + at + 4, &f);
		} else if (is_return(w) || is_jump(w)) {
			uint32_t next = at + 8 <= n ? as_get_le32(code + at + 4) : 0;
			struct frame try = {0};
			if (next == 0 || next == 0xd503201f || next == 0xd503233f ||
			    frame_step(&try, next)) {
				fresh = true;
				body = (struct frame){0};
			} else {
				f = body;
				emit(b, svma + at + 4, &f);
			}
		}
	}
}

/* Entry 0: stp x16, x30, [sp, #-16]!, maybe after bti; the others do not touch the stack. */
static void plt(struct as_ut_builder *b, uint64_t svma, uint64_t section_svma,
		struct as_bytes section, size_t n)
{
	struct frame f = {0};
	emit(b, svma, &f);
	for (size_t at = 0; at + 4 <= section.n && at < 8; at += 4) {
		if (as_get_le32(section.p + at) != 0xa9bf7bf0)
			continue;
		struct frame pushed = {.cfa_off = 16, .ra_off = -8};
		if (svma <= section_svma + at + 4 && svma + n >= section_svma + 32) {
			emit(b, section_svma + at + 4, &pushed);
			emit(b, section_svma + 32, &f);
		}
		return;
	}
}

const struct as_uarch as_uarch_aarch64 = {
	.arch = AS_ARCH_AARCH64,
	.pc = 32,
	.sp = 31,
	.fp = 29,
	.ra = 30,
	.ra_in_register = true,
	.preserved = 0x7ffull << 19, /* x19-x29 */
	.address_mask = (1ull << 48) - 1,
	.ucontext_off = 312,
	.ucontext_count = 33,
	.ucontext_regs = ucontext_regs,
	.after_call = after_call,
	.bare_leaf = bare_leaf,
	.is_context_start = is_context_start,
	.is_sigreturn = is_sigreturn,
	.entry_length = entry_length,
	.scan = scan,
	.plt = plt,
};

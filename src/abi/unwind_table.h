/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) AND Apache-2.0 */
/*
 * The compact unwind table: what .eh_frame/.debug_frame of one module compile to. Flat, free of
 * pointers, little-endian u32 words; the same bytes serve user space (mapped from the cache), BPF
 * maps and in-target code. Addresses are svma (link-time addresses of the module).
 *
 * A table is a sequence of segments; each stands alone, covers a contiguous range of 1 KiB pages
 * and is at most AS_UT_SEG_MAX_WORDS long, so that a segment fits one BPF chunk. Small modules
 * have one.
 *
 *	word  0			magic AS_UT_SEG_MAGIC
 *	      1			first page (svma >> 10)
 *	      2			number of pages
 *	      3			word offset of the rules, from the segment's start
 *	      4			number of rules
 *	      5			number of rows
 *	      6			number of words in the segment
 *	      7			0
 *	      8 … 8+npages	word offset of the first row of each page; one more for the end
 *	      rows		(svma & 0x3ff) << 22 | rule index; sorted; valid up to the next row,
 *				whatever page that is in. Word before the first row: a row that
 *				holds the rule in force at the segment's start
 *	      rules		two words each, see AS_UT_RULE_*
 *
 * Rule, x86-64 (three registers are tracked: rip, rsp, rbp):
 *	w0 = cfa kind | fp kind << 8 | (u16)fp offset << 16		w1 = (s32) cfa offset
 *	The return address is at CFA-8 and the caller's rsp is the CFA unless the kind says else.
 * Rule, aarch64 (pc, sp, x29, x30): same words, but the fp kinds tell of the return address, too:
 *	AS_UT_FP_CFA	x29 at CFA+off, the return address at CFA+off+8 (the usual pair)
 *	AS_UT_FP_MEM	x30 alone at CFA+off, x29 unchanged
 *	AS_UT_FP_SAME	x29 unchanged, the return address still in x30 (leaf)
 */
#ifndef AS_ABI_UNWIND_TABLE_H
#define AS_ABI_UNWIND_TABLE_H

#define AS_UT_PAGE_SHIFT     10
#define AS_UT_RULE_MASK      0x3fffffu
#define AS_UT_SEG_MAGIC      0x31545541u /* "AUT1" */
#define AS_UT_SEG_HEAD_WORDS 8
#define AS_UT_SEG_MAX_WORDS  (1u << 20) /* 4 MiB, one BPF chunk */

enum as_ut_cfa {
	AS_UT_CFA_NONE = 0,     /* no unwind information here */
	AS_UT_CFA_SP = 1,       /* CFA = sp + w1 */
	AS_UT_CFA_FP = 2,       /* CFA = fp + w1 */
	AS_UT_CFA_DEREF_SP = 3, /* CFA = *(sp + (s16)w1) + (w1 >> 16 & 0x7fff) */
	AS_UT_CFA_DEREF_FP = 4, /* CFA = *(fp + (s16)w1) + (w1 >> 16 & 0x7fff) */
	AS_UT_CFA_PLT = 5, /* x86-64 lazy PLT entry: CFA = sp + 8 + ((pc & 15) >= w1 ? 8 : 0) */
	AS_UT_CFA_SIGNAL = 6, /* signal trampoline: all registers from the ucontext at sp */
	AS_UT_CFA_END = 7,    /* the thread's first frame: the stack is complete */
	AS_UT_CFA_EXPR = 8,   /* needs the full CFI of the module (general evaluator) */
	/* leaf only: return address in register (u16)fp offset, CFA = sp + w1 */
	AS_UT_CFA_RAREG = 9,
	/* CFA = register (w0 >> 24) + w1; right where that register is known (leaf) */
	AS_UT_CFA_REG = 10,
};

enum as_ut_fp {
	AS_UT_FP_SAME = 0,  /* caller's fp = fp */
	AS_UT_FP_CFA = 1,   /* caller's fp = *(CFA + fp offset) */
	AS_UT_FP_UNDEF = 2, /* caller's fp unknown: 0 */
	AS_UT_FP_MEM = 3,   /* caller's fp = *(fp + fp offset); aarch64: see above */
};

#endif

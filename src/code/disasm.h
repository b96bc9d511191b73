/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Bytes -> instructions as text.
 *
 *	struct as_disasm *d = as_disasm_new(as_elf_arch(e), name_of, ctx);
 *	for (size_t at = 0; at < n; at += insn.len)
 *		as_disasm_next(d, p + at, n - at, svma + at, &insn);	// insn.text
 *	as_disasm_free(d);
 *
 * x86-64 in Intel syntax (Zydis), AArch64 (Capstone). Both are optional at build time: without the
 * one for an architecture its instructions read ".byte 0x…" and as_disasm_missing says why. Bytes
 * that are no instruction, or of which the end is missing, are AS_INSN_BAD: ".byte 0x…", one byte
 * (AArch64: ".word", four), and decoding goes on behind them.
 *
 * Addresses are svma; direct targets and addresses that are relative to the pc are shown as
 * such, or by the name the callback gives. Any bytes are safe. Cost: about 0.25 us an instruction.
 * Thread rule: a decoder belongs to one thread at a time.
 */
#ifndef AS_CODE_DISASM_H
#define AS_CODE_DISASM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/arch.h"

enum as_insn_kind {
	AS_INSN_PLAIN,
	AS_INSN_JUMP,   /* always taken */
	AS_INSN_BRANCH, /* conditional */
	AS_INSN_CALL,
	AS_INSN_RETURN,
	AS_INSN_BAD, /* no instruction: text is ".byte 0x…" */
};

struct as_insn {
	uint64_t svma;
	uint64_t target;  /* of a direct jump, branch or call; 0: none */
	uint64_t data;    /* what an operand relative to the pc refers to; 0: none */
	const char *text; /* valid until the next call */
	uint8_t len;      /* >= 1 */
	uint8_t kind;     /* enum as_insn_kind */
};

/*
 * What to write for svma: a name, with *ret_off bytes added ("name+0x10"), or NULL for the number.
 * code: the target of a jump, branch or call; else data. The pointer must stay valid until the
 * next call.
 */
typedef const char *(*as_disasm_name_fn)(void *ctx, uint64_t svma, bool code,
					 uint64_t *ret_off);

struct as_disasm;
/* Never NULL; name may be NULL: numbers only. */
struct as_disasm *as_disasm_new(enum as_arch arch, as_disasm_name_fn name, void *ctx);
void as_disasm_free(struct as_disasm *d);
/* The instruction at p, n >= 1 bytes that stand at svma. */
void as_disasm_next(struct as_disasm *d, const uint8_t *p, size_t n, uint64_t svma,
		    struct as_insn *ret);
/* The same without text: for targets and lengths, several times faster. */
void as_disasm_skim(struct as_disasm *d, const uint8_t *p, size_t n, uint64_t svma,
		    struct as_insn *ret);
/* NULL when instructions of arch can be shown, else a sentence that says what is missing. */
const char *as_disasm_missing(enum as_arch arch);

#endif

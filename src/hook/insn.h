/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Machine instructions as they matter to a patch: where they go, whether they depend on where they
 * stand, and how they read when they stand elsewhere.
 *
 *	as_hook_decode(p, n, address, &insn);
 *	bytes = as_hook_move(p, &insn, address, to, out);	// 0: cannot be moved there
 *
 * x86-64 only; other builds decode nothing, and as_hook_cannot_patch says so. Any bytes are safe.
 * Cost: about 0.1 us an instruction. Thread rule: none, no state is kept.
 */
#ifndef AS_HOOK_INSN_H
#define AS_HOOK_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/arch.h"
#include "base/err.h"

#define AS_HOOK_INSN_MAX  15 /* bytes of an instruction */
#define AS_HOOK_MOVED_MAX 32 /* bytes of a moved one */
#define AS_HOOK_JUMP      5  /* bytes of a jump that reaches 2 GiB */

enum as_hook_insn_kind {
	AS_HOOK_PLAIN,
	AS_HOOK_NOP,   /* what compilers fill gaps with, endbr64 apart */
	AS_HOOK_ENDBR, /* endbr64 */
	AS_HOOK_JMP,   /* direct */
	AS_HOOK_JCC,
	AS_HOOK_CALL, /* direct */
	AS_HOOK_RET,
	AS_HOOK_IJMP, /* through a register or memory */
	AS_HOOK_ICALL,
	AS_HOOK_STOP,  /* never goes on: ud2, hlt, int3 */
	AS_HOOK_SHORT, /* a direct branch that has no far form: loop, jrcxz, xbegin */
};

struct as_hook_insn {
	uint64_t target; /* of a direct branch; or what an operand relative to the pc names */
	uint8_t len, kind;
	uint8_t rel_off, rel_bytes; /* the displacement of a direct branch; 0: none */
	uint8_t disp_off;  /* the displacement of an operand relative to the pc; 0: none */
	uint8_t modrm_off; /* of an indirect branch */
	bool on_sp;        /* an indirect branch through memory at rsp, or through rsp */
	bool fixed;        /* depends on its place in a way that cannot be mended */
	bool is_lea;       /* takes an address: the table of a switch, perhaps */
};

/* NULL when functions of arch can be patched by this build, else a sentence that says why not. */
const char *as_hook_cannot_patch(enum as_arch arch);

/* The instruction at p, of n bytes at most, that stands at address; false: none. */
bool as_hook_decode(const uint8_t *p, size_t n, uint64_t address, struct as_hook_insn *ret);

/*
 * Writes what does at `to` what the instruction p does at `from`, and returns how many bytes that
 * took; 0: it cannot be moved, or its operand is further than 2 GiB from there. Branches take their
 * far form. A call is moved as a push of the address it would return to and a jump: what it calls
 * returns into the function it stood in, and no frame of the copy is ever on a stack.
 */
size_t as_hook_move(const uint8_t *p, const struct as_hook_insn *in, uint64_t from, uint64_t to,
		    uint8_t out[AS_HOOK_MOVED_MAX]);

/* e9: a jump at `at` to `to`; false: too far. */
bool as_hook_jump(uint64_t at, uint64_t to, uint8_t out[AS_HOOK_JUMP]);

/*
 * The piece that a patched function jumps to: the address of the hook into r11, then on to the
 * code that serves it. r11 is nobody's where an exported function begins (the PLT uses it, too).
 * Returns the bytes written, 0: too far.
 */
#define AS_HOOK_THUNK_MAX 16
size_t as_hook_thunk(uint64_t at, uint64_t hook, uint64_t code, uint8_t out[AS_HOOK_THUNK_MAX]);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Just enough of x86-64 instructions to follow the stack pointer: lengths of all, and what the
 * few that matter do to rsp, rbp and the flow of control.
 */
#ifndef AS_UNWIND_X86_64_INSN_PRIV_H
#define AS_UNWIND_X86_64_INSN_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum as_x86_kind {
	AS_X86_OTHER = 0,
	AS_X86_NOP,
	AS_X86_PUSH, /* also pushf and push imm; reg = DWARF number, -1 for those */
	AS_X86_POP,
	AS_X86_ADD_RSP, /* rsp += value */
	AS_X86_RSP_TO_RBP,
	AS_X86_RBP_TO_RSP, /* rsp = rbp + value */
	AS_X86_LEAVE,
	AS_X86_LOSE_RSP, /* rsp becomes something we do not follow */
	AS_X86_ZERO_RBP, /* xor %ebp,%ebp: marks a thread's first function */
	AS_X86_CALL,     /* value = distance from the next instruction; 0: indirect */
	AS_X86_JCC,      /* value as above */
	AS_X86_JMP,      /* value as above */
	AS_X86_JMP_INDIRECT,
	AS_X86_RET,
	AS_X86_HLT, /* hlt, ud2, int3: control does not go on */
};

struct as_x86_insn {
	uint8_t len;
	uint8_t kind; /* enum as_x86_kind */
	int8_t reg;
	bool frame_access; /* memory below rbp, in a frame that rbp points to */
	int32_t value;
};

bool as_x86_decode(const uint8_t *code, size_t n, struct as_x86_insn *ret);

/* Rows for code without CFI: [svma, svma + n). */
struct as_ut_builder;
enum as_x86_scan_flags {
	AS_X86_SCAN_FUNCTION = 1, /* svma is known to be a function's start */
	AS_X86_SCAN_FRAMES = 2,   /* the code keeps frame pointers throughout */
};
/* Reads every instruction (scan.c). flags: enum as_x86_scan_flags. */
void as_x86_scan_exact(struct as_ut_builder *b, uint64_t svma, const uint8_t *code, size_t n,
		       unsigned flags);
/* Large code that keeps frame pointers, by its prologues (frames.c); false: it is no such code. */
bool as_x86_scan_frames(struct as_ut_builder *b, uint64_t svma, const uint8_t *code, size_t n);
/* What fits the code. */
void as_x86_scan(struct as_ut_builder *b, uint64_t svma, const uint8_t *code, size_t n);

#endif

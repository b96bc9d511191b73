/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The user-space stack unwinder. Sans-I/O: registers and callbacks in, frames out; it opens and
 * reads nothing itself, so tests feed it saved registers and stack bytes.
 *
 * Two ways down, chosen per stack: the compact table with three registers (fast; nearly
 * always), and, where a row says EXPR or REG and the fast way cannot know the register, the
 * module's full CFI with all registers and a DWARF expression evaluator, restarted from the
 * leaf (slow, exact). Where a pc has no row: frame pointer, accepted only if the return address
 * lies right after a call instruction in executable code; else the stack ends with
 * AS_END_NOCFI. No frame is invented.
 *
 * Return addresses are looked up at ra-1, except above signal frames and at the leaf (`exact`).
 *
 * Thread rule: an as_unwinder belongs to one thread; tables may be shared.
 */
#ifndef AS_UNWIND_UNWIND_H
#define AS_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/arch.h"
#include "abi/stack_end.h"
#include "unwind/table.h"

#define AS_UREG_COUNT 35

struct as_uregs {
	uint64_t r[AS_UREG_COUNT]; /* DWARF numbers; x86-64: r[16] = rip; aarch64: r[32] = pc */
	uint64_t valid;            /* bit i: r[i] is known */
};

/* What the unwinder needs to know of the module that holds an avma. */
struct as_unwind_module {
	const struct as_utable *table;  /* NULL: none */
	const struct as_cfi_input *cfi; /* full CFI for the slow way; NULL: not available */
	uint64_t bias;                  /* avma - svma, modulo 2^64 */
	uint64_t start_avma, end_avma;  /* of the mapping */
	uint32_t id;                    /* caller's module id, returned in frames */
};

/*
 * What is worth keeping between stacks: a function index of each module whose full CFI was
 * needed more than now and then (without one, each such frame reads through the module's CFI).
 * Optional. Stale entries only cost time: what they lead to is read again from the CFI given.
 */
struct as_unwinder;
struct as_unwinder *as_unwinder_new(void);
void as_unwinder_free(struct as_unwinder *u);

struct as_unwind_env {
	enum as_arch arch;
	void *ctx;
	/* The executable mapping that holds avma; false: none. */
	bool (*find)(void *ctx, uint64_t avma, struct as_unwind_module *ret);
	/* n bytes of target memory at avma: 0, or negative when not all of it is available.
	 * AS_E_LIMIT means "beyond the copied part of the stack" (ends with AS_END_SHORT). */
	int (*read)(void *ctx, uint64_t avma, void *out, size_t n);
	/* The n code bytes that end at avma, [avma - n, avma), for call sites and trampolines;
	 * NULL: call sites are taken for granted. */
	int (*read_code)(void *ctx, uint64_t avma, void *out, size_t n);
	struct as_unwinder *unwinder; /* may be NULL */
};

struct as_uframe {
	uint64_t avma; /* pc of the leaf, else the raw return address */
	uint64_t svma; /* avma - bias; equals avma when module is AS_NO_MODULE */
	/* stack pointer (x86-64: CFA of the callee) in this frame, for continuation */
	uint64_t sp;
	uint32_t module; /* id from as_unwind_module, or AS_NO_MODULE */
	bool exact;      /* a pc, not a return address: leaf, or interrupted by a signal */
	bool signal;     /* this frame is a signal trampoline */
};
#define AS_NO_MODULE UINT32_MAX

struct as_unwind_result {
	size_t nframes;
	enum as_stack_end end;
	/* registers in the last frame, to continue from with more memory */
	struct as_uregs last;
	uint64_t lowest_sp, highest_addr; /* stack bytes touched: [lowest_sp, highest_addr) */
	bool used_full_cfi, used_frame_pointer;
	bool zero_root; /* ROOT because the return address was 0; memory given back reads so, too */
};

/* Unwinds from regs; at most max frames (AS_END_DEPTH beyond). frames[0] is the leaf. */
void as_unwind(const struct as_unwind_env *env, const struct as_uregs *regs,
	       struct as_uframe *frames, size_t max, struct as_unwind_result *ret);

/*
 * Continues at result->last into frames[result->nframes …] with the callbacks of env (for
 * instance a reader of live memory); frames already there are kept.
 */
void as_unwind_continue(const struct as_unwind_env *env, struct as_uframe *frames, size_t max,
			struct as_unwind_result *inout);

/* True when the bytes before a return address end in a call instruction of arch. code: the n
 * bytes (>= 1) that lie right before it. aarch64: BL/BLR. x86-64: E8, FF /2, with prefixes. */
bool as_is_after_call(enum as_arch arch, const uint8_t *code, size_t n);

#endif

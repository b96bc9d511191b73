/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Detours: the first bytes of a function become a jump to code of ours, which calls the function
 * through a *trampoline*, a copy of the instructions that had to go, followed by a jump to the rest.
 *
 *	r = as_detour_plan(code, svma, &d);		// AS_DETOUR_OK, or why not
 *	n = as_detour_trampoline(&d, bias, at, out);	// what stands at `at`, avma
 *	as_detour_patch(&d, bias, thunk, bytes);	// d.window bytes for d.svma + bias
 *
 * The plan is of the file; the two others are made when it is known where things are in a process.
 * Where a thread has stopped inside the window, or a signal handler has interrupted one there,
 * as_detour_moved_pc says where it goes on. Nothing else can be inside: a call ends the window and
 * returns behind it.
 *
 * What is refused is refused for a reason that can be told (as_detour_reason). Function tracing will
 * plan its entries with the same windows, and exits beside them.
 *
 * Cost: a few us a function beside as_hook_code_targets. Thread rule: that of code.h.
 */
#ifndef AS_HOOK_PLAN_H
#define AS_HOOK_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hook/code.h"
#include "hook/insn.h"

#define AS_DETOUR_INSNS      5 /* in a window: five of one byte */
#define AS_DETOUR_WINDOW     (AS_HOOK_JUMP - 1 + AS_HOOK_INSN_MAX)
#define AS_DETOUR_TRAMPOLINE 192 /* bytes at most: endbr64, the moved instructions, the jump */

enum as_detour_verdict {
	AS_DETOUR_OK,
	AS_DETOUR_NO_FUNCTION, /* no function begins there */
	AS_DETOUR_NO_CODE,     /* bytes that are no instruction */
	AS_DETOUR_SHORT,       /* the function and what fills the gap behind it are too short */
	AS_DETOUR_TARGET,      /* something branches into the window */
	AS_DETOUR_LOOP,        /* the function branches to its own first instruction */
	AS_DETOUR_CALL,        /* a call that does not end the window */
	AS_DETOUR_FIXED,       /* an instruction that cannot be moved */
	AS_DETOUR_VERDICTS_
};
const char *as_detour_reason(enum as_detour_verdict v); /* "something branches into …" */

struct as_detour {
	uint64_t entry_svma; /* of the function */
	uint64_t svma;       /* of the first byte that changes: behind endbr64 */
	uint64_t end_svma;   /* of the function, padding apart */
	uint8_t window;      /* bytes that change, 5 … AS_DETOUR_WINDOW */
	uint8_t ninsn;       /* instructions in the window that are the function's own */
	bool ends;           /* the last of them never goes on to the next */
	bool calls;          /* the last of them is a call: not with a shadow stack */
	uint8_t old[AS_DETOUR_WINDOW];
	uint8_t moved_from[AS_DETOUR_INSNS]; /* offset in the window … */
	/* … and in the trampoline, set by as_detour_trampoline */
	uint8_t moved_to[AS_DETOUR_INSNS];
};

enum as_detour_verdict as_detour_plan(struct as_hook_code *c, uint64_t svma,
				      struct as_detour *ret);

/* Writes the trampoline that will stand at at_avma and fills moved_to. Returns its bytes, 0: `at` is
 * too far from something the moved instructions refer to. */
size_t as_detour_trampoline(struct as_detour *d, uint64_t bias, uint64_t at_avma,
			    uint8_t out[AS_DETOUR_TRAMPOLINE]);
/* The new bytes: a jump to thunk_avma, int3 behind it. False: too far. */
bool as_detour_patch(const struct as_detour *d, uint64_t bias, uint64_t thunk_avma,
		     uint8_t out[AS_DETOUR_WINDOW]);
/* pc_avma inside the window, behind its first byte: its place in the trampoline. Else pc_avma. */
uint64_t as_detour_moved_pc(const struct as_detour *d, uint64_t bias, uint64_t trampoline_avma,
			    uint64_t pc_avma);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * DWARF expressions as CFI uses them: arithmetic, stack, branches, memory and registers.
 * Bounded in steps and depth, so that a loop in damaged input ends. Operations on variables and
 * on types (pieces, fbreg, calls, entry values) are refused.
 */
#ifndef AS_UNWIND_EXPR_PRIV_H
#define AS_UNWIND_EXPR_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "unwind/unwind.h"

#define AS_EXPR_MAX_STEPS 2048
#define AS_EXPR_MAX_DEPTH 64

struct as_expr_env {
	const struct as_uregs *regs;
	uint64_t bias; /* added to DW_OP_addr */
	uint64_t cfa;  /* for DW_OP_call_frame_cfa, when cfa_known */
	bool cfa_known;
	void *ctx;
	int (*read)(void *ctx, uint64_t avma, void *out, size_t n); /* as in as_unwind_env */
};

/*
 * The top of the stack after p[0 … n). initial, if not NULL, is pushed first. 0, or AS_E_FORMAT
 * (damaged), AS_E_UNSUPPORTED (refused operation), AS_E_NOTFOUND (an unknown register), or what
 * read returned.
 */
int as_expr_eval(const struct as_expr_env *env, const uint8_t *p, size_t n,
		 const uint64_t *initial, uint64_t *ret);

#endif

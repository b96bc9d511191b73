/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* State of one unwinding, shared by the fast way (unwind.c) and the slow one (full.c). */
#ifndef AS_UNWIND_WALK_PRIV_H
#define AS_UNWIND_WALK_PRIV_H

#include "unwind/arch_priv.h"
#include "unwind/unwind.h"

#define AS_WALK_MAX_SWITCHES 16

/* What a step returns: one of these or an enum as_stack_end. */
enum {
	WALK_NEXT = -1,    /* w->next holds the caller */
	WALK_RESTART = -2, /* three registers do not suffice */
	WALK_NO_CFI = -3,  /* full CFI has no rule here: use the table's */
};

struct as_walk_next {
	uint64_t pc, sp, fp;
	bool fp_known;
	bool all;   /* regs holds everything, the three above are unused */
	bool exact; /* the caller was interrupted, not calling */
	struct as_uregs regs;
};

struct as_walk {
	const struct as_unwind_env *env;
	const struct as_uarch *arch;
	struct as_uframe *frames;
	size_t max;
	struct as_unwind_result *ret;
	struct as_uregs regs; /* of the current frame, the last one recorded */
	bool exact;           /* its pc is a pc, not a return address */
	bool full;
	bool has_mod;
	unsigned switches;
	struct as_unwind_module mod;
	struct as_walk_next next;
};

int as_walk_read(struct as_walk *w, uint64_t avma, void *out, size_t n);
bool as_walk_after_call(struct as_walk *w, uint64_t ra);
int as_walk_progress(struct as_walk *w, uint64_t cfa, uint64_t ra, bool may_switch);
int as_walk_table(struct as_walk *w, struct as_rule rule);
int as_walk_signal(struct as_walk *w);
/* One step by the module's CFI, all registers. */
int as_walk_full(struct as_walk *w, uint64_t svma);

#endif

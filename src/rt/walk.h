/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One step of the in-target stack walk, x86-64: from a frame to its caller by the module's
 * compact unwind table (abi/unwind_table.h). The text is also compiled into a test, where it is
 * held against the user-space unwinder at every instruction of a program.
 *
 * Before including this file the includer defines AS_RT_READ(env, avma, ret): 8 bytes of stack to
 * *ret; false: they cannot be read.
 *
 * Tables were checked by the tool before it mapped them (as_utable_open); a wrong one yields wrong
 * frames, never a wrong access outside of it.
 */
#ifndef AS_RT_WALK_H
#define AS_RT_WALK_H

#include <stdbool.h>
#include <stdint.h>
#include "abi/rt.h"
#include "abi/stack_end.h"
#include "abi/unwind_table.h"

#ifndef AS_RT_READ
#define AS_RT_READ(env, avma, ret) (*(ret) = *(const uint64_t *)(uintptr_t)(avma), true)
#endif

struct as_rt_walk {
	uint64_t pc, sp, fp; /* of the frame to look at */
	uint64_t slot;       /* where pc was read */
	/* Not 0: pc is exact, and all registers lie in the ucontext there (leaf or interrupted). */
	uint64_t uc;
	enum as_stack_end end; /* after AS_RT_STEP_END */
};

enum as_rt_step { AS_RT_STEP_CALLER, AS_RT_STEP_SIGNAL, AS_RT_STEP_END };

struct as_rt_rule {
	uint32_t w0;
	int32_t w1;
	bool known; /* avma lies in a known mapping */
	bool self;  /* in a copy of the runtime */
};

/* Of a frame made by `push rbp; mov rsp, rbp`. */
#define AS_RT_FP_FRAME (AS_UT_CFA_FP | AS_UT_FP_CFA << 8 | (uint32_t)(uint16_t)-16 << 16)
/* ucontext: gregs begin at 40; r8-r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip */
#define AS_RT_UC_RBP   120
#define AS_RT_UC_RSP   160
#define AS_RT_UC_RIP   168

/* The address of DWARF register reg in the ucontext. */
static inline uint64_t as_rt_uc_register(uint64_t uc, uint32_t reg)
{
	static const uint8_t place[17] = {13, 12, 14, 11, 9, 8, 10, 15, 0,
					  1,  2,  3,  4,  5, 6, 7,  16};
	return uc + 40 + 8 * (uint64_t)place[reg < 17 ? reg : 16];
}

/*
 * The module that holds avma, in the set that was current at `seq`. A copy, taken before the set
 * can have been written again: only then are its fields one entry's. False: none.
 */
static inline bool as_rt_find_module(const struct as_rt_control *control, uint32_t seq,
				     uint64_t avma, struct as_rt_module *ret)
{
	const struct as_rt_module_set *set = &control->module_set[seq & 1];
	uint32_t lo = 0, n = *(const volatile uint32_t *)&set->count;
	if (!n || n > AS_RT_MODULES_MAX)
		return false;
	while (n > 1) {
		uint32_t half = n / 2;
		lo = set->module[lo + half].start_avma <= avma ? lo + half : lo;
		n -= half;
	}
	*ret = set->module[lo];
	if (__atomic_load_n(&control->modules_seq, __ATOMIC_ACQUIRE) - seq > 1)
		return false;
	return avma >= ret->start_avma && avma < ret->end_avma;
}

/* As as_utable_find(), without a check that the tool has made. False: no row. */
static inline bool as_rt_find_row(const struct as_rt_module *m, uint64_t svma,
				  struct as_rt_rule *ret)
{
	const uint8_t *blob = (const uint8_t *)(uintptr_t)m->table;
	const uint32_t *dir = (const uint32_t *)(const void *)(blob + 32);
	uint64_t page = svma >> AS_UT_PAGE_SHIFT;
	uint32_t lo = 0, n = m->segments;
	while (n > 1) {
		uint32_t half = n / 2;
		lo = dir[4 * (lo + half)] <= page ? lo + half : lo;
		n -= half;
	}
	dir += 4 * (uint64_t)lo;
	if (!m->segments || page - dir[0] >= dir[1])
		return false;
	const uint32_t *w = (const uint32_t *)(const void *)(blob + dir[2]);
	const uint32_t *first = w + AS_UT_SEG_HEAD_WORDS + (page - w[1]);
	const uint32_t *row = w + first[0];
	uint64_t rows = first[1] - first[0];
	uint32_t key = (uint32_t)svma << (32 - AS_UT_PAGE_SHIFT) | AS_UT_RULE_MASK;
	while (rows > 1) {
		uint64_t half = rows / 2;
		row = row[half - 1] <= key ? row + half : row;
		rows -= half;
	}
	row += rows && *row <= key;
	const uint32_t *rule = w + w[3] + 2 * (uint64_t)(row[-1] & AS_UT_RULE_MASK);
	ret->w0 = rule[0];
	ret->w1 = (int32_t)rule[1];
	return true;
}

/* The rule in force at avma. exact: avma is a pc; else a return address - 1. */
static inline struct as_rt_rule as_rt_find_rule(const struct as_rt_control *control,
						uint32_t seq, uint64_t avma, bool exact)
{
	struct as_rt_rule r = {.w0 = AS_UT_CFA_NONE};
	struct as_rt_module m;
	if (!as_rt_find_module(control, seq, avma, &m))
		return r;
	r.known = true;
	r.self = m.flags & AS_RT_MODULE_SELF;
	/* every call of the runtime is made with a frame pointer set up */
	if (r.self && (!exact || !m.table)) {
		r.w0 = AS_RT_FP_FRAME;
		r.w1 = 16;
		return r;
	}
	if (m.table)
		(void)as_rt_find_row(&m, avma - m.bias, &r);
	return r;
}

static inline enum as_rt_step as_rt_end(struct as_rt_walk *w, enum as_stack_end end)
{
	w->end = end;
	return AS_RT_STEP_END;
}

/* Everything the interrupted code had is in the ucontext the trampoline's sp points at. */
static inline enum as_rt_step as_rt_step_signal(void *env, struct as_rt_walk *w)
{
	uint64_t uc = w->sp, pc, sp, fp;
	if (!AS_RT_READ(env, uc + AS_RT_UC_RIP, &pc) ||
	    !AS_RT_READ(env, uc + AS_RT_UC_RSP, &sp) ||
	    !AS_RT_READ(env, uc + AS_RT_UC_RBP, &fp))
		return as_rt_end(w, AS_END_FAULT);
	if (!pc)
		return as_rt_end(w, AS_END_BAD);
	*w = (struct as_rt_walk){
		.pc = pc, .sp = sp, .fp = fp, .slot = uc + AS_RT_UC_RIP, .uc = uc};
	return AS_RT_STEP_SIGNAL;
}

/* The canonical frame address by rule r; false: the walk ends, w->end says why. */
static inline bool as_rt_cfa(void *env, struct as_rt_walk *w, const struct as_rt_rule *r,
			     uint64_t *ret)
{
	uint64_t cfa;
	w->end = AS_END_EXPR;
	switch (r->w0 & 0xff) {
	case AS_UT_CFA_SP:
		*ret = w->sp + (uint64_t)(int64_t)r->w1;
		return true;
	case AS_UT_CFA_FP:
		*ret = w->fp + (uint64_t)(int64_t)r->w1;
		return w->fp != 0;
	case AS_UT_CFA_PLT:
		*ret = w->sp + 8 + ((w->pc & 15) >= (uint32_t)r->w1 ? 8 : 0);
		return true;
	case AS_UT_CFA_DEREF_SP:
	case AS_UT_CFA_DEREF_FP:
		cfa = (r->w0 & 0xff) == AS_UT_CFA_DEREF_SP ? w->sp : w->fp;
		if (!AS_RT_READ(env, cfa + (uint64_t)(int64_t)(int16_t)(r->w1 & 0xffff),
				&cfa)) {
			w->end = AS_END_FAULT;
			return false;
		}
		*ret = cfa + ((uint32_t)r->w1 >> 16 & 0x7fff);
		return true;
	case AS_UT_CFA_REG:
		if (!w->uc ||
		    !AS_RT_READ(env, as_rt_uc_register(w->uc, r->w0 >> 24 & 31), &cfa))
			return false;
		*ret = cfa + (uint64_t)(int64_t)r->w1;
		return true;
	case AS_UT_CFA_END:
		w->end = AS_END_ROOT;
		return false;
	default:
		return false;
	}
}

/* Out of code without a rule: by the frame pointer, which the reader of the stack has to check. */
static inline enum as_rt_step as_rt_step_fp(void *env, struct as_rt_walk *w)
{
	uint64_t fp, ra, at = w->fp;
	if (!at || at & 7 || at < w->sp || !AS_RT_READ(env, at, &fp) ||
	    !AS_RT_READ(env, at + 8, &ra) || !ra)
		return as_rt_end(w, AS_END_NOCFI);
	*w = (struct as_rt_walk){.pc = ra, .sp = at + 16, .fp = fp, .slot = at + 8};
	return AS_RT_STEP_CALLER;
}

/* Moves w to the caller. r: the rule in force at the frame's pc. */
static inline enum as_rt_step as_rt_step(void *env, struct as_rt_walk *w,
					 const struct as_rt_rule *r)
{
	uint32_t kind = r->w0 & 0xff;
	uint64_t cfa, slot, ra, fp = w->fp;
	/* REG rules have none: their register stands there */
	uint64_t off = (uint64_t)(int64_t)(int16_t)(r->w0 >> 16);

	if (!r->known)
		return as_rt_end(w, AS_END_NOMAP);
	if (kind == AS_UT_CFA_SIGNAL)
		return as_rt_step_signal(env, w);
	if (kind == AS_UT_CFA_NONE)
		return as_rt_step_fp(env, w);
	if (kind == AS_UT_CFA_RAREG) {
		if (!w->uc)
			return as_rt_end(w, AS_END_EXPR);
		cfa = w->sp + (uint64_t)(int64_t)r->w1;
		slot = as_rt_uc_register(w->uc, r->w0 >> 16 & 31);
	} else {
		if (!as_rt_cfa(env, w, r, &cfa))
			return AS_RT_STEP_END;
		if (cfa <= w->sp && !w->uc)
			return as_rt_end(w, AS_END_BAD);
		slot = cfa - 8;
		switch (r->w0 >> 8 & 0xff) {
		case AS_UT_FP_CFA:
			if (!AS_RT_READ(env, cfa + off, &fp))
				return as_rt_end(w, AS_END_FAULT);
			break;
		case AS_UT_FP_MEM:
			if (!AS_RT_READ(env, w->fp + off, &fp))
				return as_rt_end(w, AS_END_FAULT);
			break;
		case AS_UT_FP_UNDEF:
			fp = 0;
			break;
		default:
			break;
		}
	}
	if (!AS_RT_READ(env, slot, &ra))
		return as_rt_end(w, AS_END_FAULT);
	if (!ra)
		return as_rt_end(w, AS_END_ROOT);
	*w = (struct as_rt_walk){.pc = ra, .sp = cfa, .fp = fp, .slot = slot};
	return AS_RT_STEP_CALLER;
}

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/unwind.h"
#include "unwind/arch_priv.h"
#include "unwind/walk_priv.h"
#include "base/buf.h"
#include "base/err.h"

#include <string.h>

bool as_is_after_call(enum as_arch arch, const uint8_t *code, size_t n)
{
	const struct as_uarch *a = as_uarch_get(arch);
	return a && a->after_call(code, n);
}

int as_walk_read(struct as_walk *w, uint64_t avma, void *out, size_t n)
{
	struct as_unwind_result *r = w->ret;
	int e = w->env->read(w->env->ctx, avma, out, n);
	if (e)
		return e == AS_E_LIMIT ? AS_END_SHORT : AS_END_FAULT;
	if (avma < r->lowest_sp)
		r->lowest_sp = avma;
	if (avma + n > r->highest_addr)
		r->highest_addr = avma + n;
	return WALK_NEXT;
}

static int read_word(struct as_walk *w, uint64_t avma, uint64_t *ret)
{
	uint8_t b[8];
	int e = as_walk_read(w, avma, b, sizeof b);
	if (e == WALK_NEXT)
		*ret = as_get_le64(b);
	return e;
}

/* The module of avma into w->mod; the last one found is tried first. */
static bool find_module(struct as_walk *w, uint64_t avma)
{
	if (w->has_mod && avma - w->mod.start_avma < w->mod.end_avma - w->mod.start_avma)
		return true;
	w->has_mod = w->env->find(w->env->ctx, avma, &w->mod);
	return w->has_mod;
}

/* Does ra follow a call? Without a reader of code it is taken for granted. */
bool as_walk_after_call(struct as_walk *w, uint64_t ra)
{
	uint8_t code[8];
	size_t n = sizeof code;
	if (!w->env->read_code)
		return true;
	if (w->env->read_code(w->env->ctx, ra, code, n)) {
		/* ra may be near the start of its mapping */
		n = w->arch->ra_in_register ? 4 : 5;
		if (w->env->read_code(w->env->ctx, ra, code, n))
			return false;
	}
	return w->arch->after_call(code, n);
}

/* A signal trampoline outside all modules (of an emulator, or a vdso nobody could read). */
static bool is_unknown_trampoline(struct as_walk *w, uint64_t pc)
{
	uint8_t code[16];
	return w->env->read_code &&
	       !w->env->read_code(w->env->ctx, pc + sizeof code, code, sizeof code) &&
	       w->arch->is_sigreturn(code, sizeof code);
}

/*
 * A caller's frame lies above its callee's, except where the stack was switched (coroutines,
 * large stacks on the heap): such a step back must be explained by a call site.
 */
int as_walk_progress(struct as_walk *w, uint64_t cfa, uint64_t ra, bool may_switch)
{
	uint64_t sp = w->regs.r[w->arch->sp];
	if (cfa > sp || (cfa == sp && w->exact && (w->arch->ra_in_register || may_switch)))
		return WALK_NEXT;
	if (!may_switch || cfa == sp || w->switches == AS_WALK_MAX_SWITCHES ||
	    !w->env->read_code || !as_walk_after_call(w, ra))
		return AS_END_BAD;
	w->switches++;
	return WALK_NEXT;
}

static bool known(const struct as_walk *w, unsigned reg)
{
	return reg < AS_UREG_COUNT && w->regs.valid >> reg & 1;
}

/* The address a DEREF rule reads its CFA from. */
static int deref_cfa(struct as_walk *w, unsigned reg, int32_t w1, uint64_t *ret)
{
	if (!known(w, reg))
		return WALK_RESTART;
	int e = read_word(w, w->regs.r[reg] + (uint64_t)(int16_t)w1, ret);
	*ret += (uint32_t)w1 >> 16 & 0x7fff;
	return e;
}

static int find_cfa(struct as_walk *w, struct as_rule rule, uint64_t *ret)
{
	const struct as_uarch *a = w->arch;
	unsigned reg = a->sp;
	*ret = 0;
	switch (rule.w0 & 0xff) {
	case AS_UT_CFA_SP:
	case AS_UT_CFA_RAREG:
		break;
	case AS_UT_CFA_FP:
		reg = a->fp;
		break;
	case AS_UT_CFA_REG:
		reg = rule.w0 >> 24;
		break;
	case AS_UT_CFA_DEREF_SP:
		return deref_cfa(w, a->sp, rule.w1, ret);
	case AS_UT_CFA_DEREF_FP:
		return deref_cfa(w, a->fp, rule.w1, ret);
	case AS_UT_CFA_PLT:
		*ret = w->regs.r[a->sp] + 8;
		if ((w->regs.r[a->pc] & 15) >= (uint32_t)rule.w1)
			*ret += 8;
		return WALK_NEXT;
	default:
		return WALK_RESTART;
	}
	if (!known(w, reg))
		return WALK_RESTART;
	*ret = w->regs.r[reg] + (uint64_t)(int64_t)rule.w1;
	return WALK_NEXT;
}

/*
 * GCC writes no DW_CFA_restore in epilogues: after `pop %rbp` the row still has rbp in its slot,
 * which is below rsp by then, outside of any copy of the stack. The register holds the value already.
 * (Where a function keeps it in the red zone the slot is right, and readable only in the moment of
 * the sample: it is tried first.)
 */
static bool below_stack(const struct as_walk *w, uint64_t slot)
{
	return w->exact && slot < w->regs.r[w->arch->sp];
}

/* Caller's fp and return address, x86-64: the usual case is one read of both. */
static int caller_x86_64(struct as_walk *w, struct as_rule rule, uint64_t cfa)
{
	struct as_walk_next *n = &w->next;
	int64_t off = (int16_t)(rule.w0 >> 16);
	unsigned fp = w->arch->fp;
	uint8_t b[16];
	int e;
	n->fp = w->regs.r[fp];
	n->fp_known = known(w, fp);
	if ((rule.w0 & 0xff) == AS_UT_CFA_RAREG) {
		unsigned reg = (uint16_t)(rule.w0 >> 16);
		if (!w->exact || !known(w, reg))
			return WALK_RESTART;
		n->pc = w->regs.r[reg];
		return WALK_NEXT;
	}
	unsigned kind = rule.w0 >> 8 & 0xff;
	if (kind == AS_UT_FP_CFA && off == -16 && !below_stack(w, cfa - 16)) {
		e = as_walk_read(w, cfa - 16, b, sizeof b);
		if (e == WALK_NEXT) {
			n->fp = as_get_le64(b);
			n->fp_known = true;
			n->pc = as_get_le64(b + 8);
		}
		return e;
	}
	e = read_word(w, cfa - 8, &n->pc);
	if (e != WALK_NEXT || kind == AS_UT_FP_SAME)
		return e;
	if (kind == AS_UT_FP_UNDEF || (kind == AS_UT_FP_MEM && !n->fp_known)) {
		n->fp_known = false;
		return WALK_NEXT;
	}
	uint64_t slot = (kind == AS_UT_FP_CFA ? cfa : n->fp) + (uint64_t)off, saved;
	e = read_word(w, slot, &saved);
	if (e != WALK_NEXT && !below_stack(w, slot))
		return e;
	if (e == WALK_NEXT) {
		n->fp = saved;
		n->fp_known = true;
	}
	return WALK_NEXT;
}

static int caller_aarch64(struct as_walk *w, struct as_rule rule, uint64_t cfa)
{
	struct as_walk_next *n = &w->next;
	uint64_t off = (uint64_t)(int16_t)(rule.w0 >> 16);
	unsigned fp = w->arch->fp, lr = w->arch->ra;
	uint8_t b[16];
	int e;
	n->fp = w->regs.r[fp];
	n->fp_known = known(w, fp);
	switch (rule.w0 >> 8 & 0xff) {
	case AS_UT_FP_CFA:
		e = as_walk_read(w, cfa + off, b, sizeof b);
		if (e != WALK_NEXT)
			return e;
		n->fp = as_get_le64(b);
		n->fp_known = true;
		n->pc = as_get_le64(b + 8);
		return WALK_NEXT;
	case AS_UT_FP_MEM: /* return address alone */
		return read_word(w, cfa + off, &n->pc);
	case AS_UT_FP_UNDEF:
		n->fp_known = false;
		break;
	}
	if (!w->exact || !known(w, lr))
		return AS_END_BAD;
	n->pc = w->regs.r[lr];
	return WALK_NEXT;
}

int as_walk_table(struct as_walk *w, struct as_rule rule)
{
	uint64_t cfa;
	int e = find_cfa(w, rule, &cfa);
	if (e != WALK_NEXT)
		return e;
	unsigned kind = rule.w0 & 0xff;
	e = w->arch->arch == AS_ARCH_X86_64 ? caller_x86_64(w, rule, cfa)
					    : caller_aarch64(w, rule, cfa);
	if (e != WALK_NEXT)
		return e;
	w->next.pc &= w->arch->address_mask;
	w->next.sp = cfa;
	if (!w->next.pc) {
		w->ret->zero_root = true;
		return AS_END_ROOT;
	}
	return as_walk_progress(w, cfa, w->next.pc,
				kind != AS_UT_CFA_SP && kind != AS_UT_CFA_PLT);
}

/* All registers are where the kernel saved them. */
int as_walk_signal(struct as_walk *w)
{
	const struct as_uarch *a = w->arch;
	uint8_t b[33 * 8];
	size_t n = a->ucontext_count;
	int e = as_walk_read(w, w->regs.r[a->sp] + a->ucontext_off, b, n * 8);
	if (e != WALK_NEXT)
		return e;
	struct as_uregs *to = &w->next.regs;
	*to = (struct as_uregs){0};
	for (size_t i = 0; i < n; i++) {
		unsigned reg = (unsigned)a->ucontext_regs[i];
		to->r[reg] = as_get_le64(b + 8 * i);
		to->valid |= 1ull << reg;
	}
	w->next.all = true;
	w->next.exact = true;
	if (!to->r[a->pc])
		return AS_END_BAD;
	w->frames[w->ret->nframes - 1].signal = true;
	return WALK_NEXT;
}

/* A return address found without a rule: it must follow a call, in code that is known. */
static bool believable(struct as_walk *w, uint64_t ra)
{
	struct as_unwind_module mod;
	if (!ra || !as_walk_after_call(w, ra))
		return false;
	return w->env->read_code || w->env->find(w->env->ctx, ra - 1, &mod);
}

/* A leaf in its first or last instructions still has its caller's frame pointer. */
static bool bare_leaf_step(struct as_walk *w)
{
	const struct as_uarch *a = w->arch;
	uint64_t sp = w->regs.r[a->sp], ra;
	uint8_t code[16];
	if (!w->exact || !w->env->read_code ||
	    w->env->read_code(w->env->ctx, w->regs.r[a->pc] + 8, code, sizeof code))
		return false;
	int off = a->bare_leaf(code);
	if (off < 0 || !known(w, a->ra_in_register ? a->ra : a->sp))
		return false;
	if (a->ra_in_register)
		ra = w->regs.r[a->ra] & a->address_mask;
	else if (read_word(w, sp + (uint64_t)off, &ra) != WALK_NEXT)
		return false;
	if (!believable(w, ra))
		return false;
	w->next.pc = ra;
	w->next.sp = a->ra_in_register ? sp : sp + (uint64_t)off + 8;
	w->next.fp = w->regs.r[a->fp];
	w->next.fp_known = known(w, a->fp);
	return true;
}

/* A pc without a rule: the frame pointer, if what it leads to is a call site. */
static int frame_pointer_step(struct as_walk *w, int otherwise)
{
	const struct as_uarch *a = w->arch;
	uint64_t fp = w->regs.r[a->fp], sp = w->regs.r[a->sp];
	uint8_t b[16];
	if (bare_leaf_step(w))
		return WALK_NEXT;
	if (!known(w, a->fp) || !fp || fp % 8 || fp < sp)
		return otherwise;
	int e = as_walk_read(w, fp, b, sizeof b);
	if (e != WALK_NEXT)
		return e == AS_END_SHORT ? e : otherwise;
	uint64_t ra = as_get_le64(b + 8) & a->address_mask;
	if (!believable(w, ra))
		return otherwise;
	w->next.fp = as_get_le64(b);
	w->next.fp_known = true;
	w->next.pc = ra;
	w->next.sp = fp + 16;
	w->ret->used_frame_pointer = true;
	return WALK_NEXT;
}

/* From the current frame to its caller, into w->next. */
static int step(struct as_walk *w)
{
	uint64_t at = w->regs.r[w->arch->pc] - !w->exact;
	struct as_rule rule = {0};
	w->next.all = w->next.exact = false;
	bool found = find_module(w, at);
	if (!found || !(w->mod.table || w->mod.cfi)) {
		if (is_unknown_trampoline(w, at + !w->exact))
			return as_walk_signal(w);
		return frame_pointer_step(w, found ? AS_END_NOCFI : AS_END_NOMAP);
	}
	bool has = w->mod.table && as_utable_find(w->mod.table, at - w->mod.bias, &rule);
	unsigned kind = has ? rule.w0 & 0xff : AS_UT_CFA_NONE;
	if (kind == AS_UT_CFA_END)
		return AS_END_ROOT;
	if (kind == AS_UT_CFA_SIGNAL)
		return as_walk_signal(w);
	if (w->full) {
		int e = as_walk_full(w, at - w->mod.bias);
		if (e != WALK_NO_CFI)
			return e;
	}
	if (!w->mod.table && w->mod.cfi && !w->full)
		return WALK_RESTART;
	if (kind == AS_UT_CFA_NONE)
		return frame_pointer_step(w, AS_END_NOCFI);
	return as_walk_table(w, rule);
}

static void record(struct as_walk *w)
{
	const struct as_uarch *a = w->arch;
	uint64_t pc = w->regs.r[a->pc];
	struct as_uframe *f = &w->frames[w->ret->nframes++];
	bool mapped = find_module(w, pc - !w->exact);
	*f = (struct as_uframe){
		.avma = pc,
		.svma = mapped ? pc - w->mod.bias : pc,
		.sp = w->regs.r[a->sp],
		.module = mapped ? w->mod.id : AS_NO_MODULE,
		.exact = w->exact,
	};
}

static void commit(struct as_walk *w)
{
	const struct as_uarch *a = w->arch;
	const struct as_walk_next *n = &w->next;
	if (n->all) {
		w->regs = n->regs;
	} else {
		w->regs.r[a->pc] = n->pc;
		w->regs.r[a->sp] = n->sp;
		w->regs.r[a->fp] = n->fp;
		w->regs.valid = 1ull << a->pc | 1ull << a->sp |
				(uint64_t)(n->fp_known && n->fp) << a->fp;
	}
	w->exact = n->exact;
}

/* A return address in no mapping is shown only when code can be seen there and it is a call site. */
static bool plausible(struct as_walk *w)
{
	const struct as_walk_next *n = &w->next;
	uint64_t pc = n->all ? n->regs.r[w->arch->pc] : n->pc;
	if (find_module(w, pc - !n->exact))
		return true;
	return n->exact || as_walk_after_call(w, pc) || is_unknown_trampoline(w, pc);
}

static int walk(struct as_walk *w)
{
	for (;;) {
		int e = step(w);
		if (e == WALK_RESTART && w->full)
			return AS_END_EXPR;
		if (e != WALK_NEXT)
			return e;
		if (!plausible(w))
			return AS_END_NOMAP;
		if (w->ret->nframes >= w->max)
			return AS_END_DEPTH;
		commit(w);
		record(w);
	}
}

static void finish(struct as_walk *w, int end)
{
	w->ret->end = (enum as_stack_end)end;
	w->ret->last = w->regs;
	w->ret->used_full_cfi = w->full;
}

static void start(struct as_walk *w, const struct as_uregs *regs)
{
	uint64_t sp = regs->r[w->arch->sp];
	*w->ret = (struct as_unwind_result){.lowest_sp = sp, .highest_addr = sp};
	w->regs = *regs;
	w->exact = true;
	w->switches = 0;
}

void as_unwind(const struct as_unwind_env *env, const struct as_uregs *regs,
	       struct as_uframe *frames, size_t max, struct as_unwind_result *ret)
{
	struct as_walk w;
	w.env = env;
	w.arch = as_uarch_get(env->arch);
	w.frames = frames;
	w.max = max;
	w.ret = ret;
	w.full = w.has_mod = false;
	*ret = (struct as_unwind_result){.end = AS_END_NOSTACK};
	uint64_t need = w.arch ? 1ull << w.arch->pc | 1ull << w.arch->sp : 0;
	if (!need || (regs->valid & need) != need || !max)
		return;
	start(&w, regs);
	record(&w);
	int e = walk(&w);
	if (e == WALK_RESTART) {
		start(&w, regs);
		w.full = true;
		record(&w);
		e = walk(&w);
	}
	finish(&w, e);
}

void as_unwind_continue(const struct as_unwind_env *env, struct as_uframe *frames, size_t max,
			struct as_unwind_result *inout)
{
	struct as_walk w;
	w.env = env;
	w.arch = as_uarch_get(env->arch);
	w.frames = frames;
	w.max = max;
	w.ret = inout;
	w.has_mod = false;
	w.switches = 0;
	if (!w.arch || !inout->nframes || inout->nframes > max)
		return;
	w.full = inout->used_full_cfi;
	w.regs = inout->last;
	w.exact = frames[inout->nframes - 1].exact;
	int e = walk(&w);
	if (e == WALK_RESTART) {
		/* the leaf's registers are gone: from here on with what is known here */
		w.full = true;
		e = walk(&w);
	}
	finish(&w, e);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The slow way: one frame by its module's CFI, with every register CFI knows of. */
#include "unwind/cfi_priv.h"
#include "unwind/expr_priv.h"
#include "unwind/memo_priv.h"
#include "unwind/walk_priv.h"
#include "base/err.h"

#include <string.h>

struct full {
	struct as_walk *w;
	struct as_expr_env expr;
	uint64_t cfa;
};

static int read_for_expr(void *ctx, uint64_t avma, void *out, size_t n)
{
	int e = as_walk_read(ctx, avma, out, n);
	return e == WALK_NEXT ? 0 : e == AS_END_SHORT ? AS_E_LIMIT : AS_E_IO;
}

static int end_of_status(int status)
{
	return status == AS_E_LIMIT ? AS_END_SHORT
	       : status == AS_E_IO  ? AS_END_FAULT
				    : AS_END_EXPR;
}

static int find_cfa(struct full *f, const struct as_cfi_rule *rule)
{
	const struct as_uregs *regs = &f->w->regs;
	if (rule->kind == AS_CFI_REG) {
		if (rule->reg >= AS_UREG_COUNT || !(regs->valid >> rule->reg & 1))
			return AS_END_EXPR;
		f->cfa = regs->r[rule->reg] + (uint64_t)rule->off;
		return WALK_NEXT;
	}
	if (rule->kind != AS_CFI_EXPR)
		return AS_END_EXPR;
	int e = as_expr_eval(&f->expr, rule->expr, rule->len, NULL, &f->cfa);
	return e < 0 ? end_of_status(e) : WALK_NEXT;
}

/* Value of a register in the caller: 0, AS_E_NOTFOUND when it has none, or why it is not to be
 * had. */
static int caller_value(struct full *f, const struct as_cfi_rule *rule, unsigned reg,
			uint64_t *ret)
{
	const struct as_uregs *regs = &f->w->regs;
	uint8_t b[8];
	uint64_t at;
	int e;
	switch (rule->kind) {
	case AS_CFI_REG:
		reg = rule->reg;
		/* fall through */
	case AS_CFI_UNSET:
	case AS_CFI_SAME:
		if (reg >= AS_UREG_COUNT || !(regs->valid >> reg & 1))
			return AS_E_NOTFOUND;
		*ret = regs->r[reg];
		return 0;
	case AS_CFI_VAL_OFFSET:
		*ret = f->cfa + (uint64_t)rule->off;
		return 0;
	case AS_CFI_VAL_EXPR:
		return as_expr_eval(&f->expr, rule->expr, rule->len, &f->cfa, ret);
	case AS_CFI_OFFSET:
		at = f->cfa + (uint64_t)rule->off;
		break;
	case AS_CFI_EXPR:
		e = as_expr_eval(&f->expr, rule->expr, rule->len, &f->cfa, &at);
		if (e < 0)
			return e;
		break;
	default:
		return AS_E_NOTFOUND;
	}
	e = read_for_expr(f->w, at, b, sizeof b);
	if (!e)
		*ret = as_get_le64(b);
	/* popped already in an epilogue without DW_CFA_restore: see below_stack in unwind.c */
	else if (f->w->exact && at < regs->r[f->w->arch->sp] && reg < AS_UREG_COUNT &&
		 regs->valid >> reg & 1) {
		*ret = regs->r[reg];
		e = 0;
	}
	return e;
}

static int apply(struct full *f, const struct as_cfi_rows *row, const struct as_cie *cie)
{
	struct as_walk *w = f->w;
	const struct as_uarch *a = w->arch;
	struct as_uregs *to = &w->next.regs;
	int e = find_cfa(f, &row->slot[0]);
	if (e != WALK_NEXT)
		return e;
	f->expr.cfa = f->cfa;
	f->expr.cfa_known = true;
	unsigned ra_reg = cie->ra_reg < AS_UREG_COUNT ? (unsigned)cie->ra_reg : a->ra;
	const struct as_cfi_rule *ra = &row->slot[ra_reg + 1];
	if (ra->kind == AS_CFI_UNDEF)
		return AS_END_ROOT;
	bool ra_kept = ra->kind == AS_CFI_UNSET || ra->kind == AS_CFI_SAME;
	if (ra_kept && (!a->ra_in_register || !w->exact))
		return AS_END_BAD; /* a call has overwritten it */
	uint64_t pc;
	e = caller_value(f, ra, ra_reg, &pc);
	if (e)
		return end_of_status(e);
	*to = (struct as_uregs){0};
	for (unsigned reg = 0; reg < AS_UREG_COUNT; reg++) {
		const struct as_cfi_rule *rule = &row->slot[reg + 1];
		bool lost = rule->kind == AS_CFI_UNSET &&
			    !(cie->signal || (a->preserved >> reg & 1));
		if (!lost && !caller_value(f, rule, reg, &to->r[reg]))
			to->valid |= 1ull << reg;
	}
	if (row->slot[a->sp + 1].kind == AS_CFI_UNSET || !(to->valid >> a->sp & 1))
		to->r[a->sp] = f->cfa;
	to->r[a->pc] = pc & a->address_mask;
	to->valid |= 1ull << a->sp | 1ull << a->pc;
	w->next.all = true;
	w->next.exact = cie->signal;
	if (!to->r[a->pc]) {
		w->ret->zero_root = true;
		return AS_END_ROOT;
	}
	if (cie->signal)
		return WALK_NEXT;
	bool on_sp = row->slot[0].kind == AS_CFI_REG && row->slot[0].reg == a->sp;
	return as_walk_progress(w, to->r[a->sp], to->r[a->pc], !on_sp || !ra_kept);
}

int as_walk_full(struct as_walk *w, uint64_t svma)
{
	struct as_cfi_section sec[2];
	struct as_fde fde;
	struct as_cfi_run run;
	if (!w->mod.cfi)
		return WALK_NO_CFI;
	as_cfi_sections(w->mod.cfi, sec);
	if (!as_unwinder_find_fde(w->env->unwinder, w->mod.cfi, sec, svma, &fde))
		return WALK_NO_CFI;
	struct full f = {
		.w = w,
		.expr = {.regs = &w->regs,
			 .bias = w->mod.bias,
			 .ctx = w,
			 .read = read_for_expr},
	};
	as_cfi_run_init(&run, as_cfi_all_slots, AS_CFI_MAX_SLOTS);
	as_cfi_begin(&run, &fde);
	while (as_cfi_next(&run))
		if (svma < run.row_end)
			return apply(&f, &run.cur, &fde.cie);
	return WALK_NO_CFI;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The CFA program interpreter: from a function's instructions to rows of rules. */
#include "unwind/cfi_priv.h"

#include <string.h>

const uint8_t as_cfi_all_slots[64] = {
	1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
	23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 36, 36, 36, 36, 36, 36, 36, 36,
	36, 36, 36, 36, 36, 36, 36, 36, 36, 36, 36, 36, 36, 36, 36, 36, 36, 36, 36, 36,
};

enum {
	CFA_advance_loc = 0x40,
	CFA_offset = 0x80,
	CFA_restore = 0xc0,
	CFA_nop = 0x00,
	CFA_set_loc = 0x01,
	CFA_advance_loc1 = 0x02,
	CFA_advance_loc2 = 0x03,
	CFA_advance_loc4 = 0x04,
	CFA_offset_extended = 0x05,
	CFA_restore_extended = 0x06,
	CFA_undefined = 0x07,
	CFA_same_value = 0x08,
	CFA_register = 0x09,
	CFA_remember_state = 0x0a,
	CFA_restore_state = 0x0b,
	CFA_def_cfa = 0x0c,
	CFA_def_cfa_register = 0x0d,
	CFA_def_cfa_offset = 0x0e,
	CFA_def_cfa_expression = 0x0f,
	CFA_expression = 0x10,
	CFA_offset_extended_sf = 0x11,
	CFA_def_cfa_sf = 0x12,
	CFA_def_cfa_offset_sf = 0x13,
	CFA_val_offset = 0x14,
	CFA_val_offset_sf = 0x15,
	CFA_val_expression = 0x16,
	CFA_AARCH64_negate_ra_state_with_pc = 0x2c,
	CFA_AARCH64_negate_ra_state = 0x2d, /* elsewhere GNU_window_save */
	CFA_GNU_args_size = 0x2e,
	CFA_GNU_negative_offset_extended = 0x2f,
};

static inline uint64_t uleb(struct as_rd *r)
{
	if (r->p < r->end && *r->p < 0x80)
		return *r->p++;
	return as_rd_uleb(r);
}

static inline struct as_cfi_rule *slot(struct as_cfi_run *run, uint64_t reg)
{
	return &run->cur.slot[reg < 64 ? run->slot_of[reg] : run->nslots - 1];
}

static inline void copy_rows(const struct as_cfi_run *run, struct as_cfi_rows *to,
			     const struct as_cfi_rows *from)
{
	memcpy(to->slot, from->slot, run->nslots * sizeof to->slot[0]);
}

static inline int64_t scaled(const struct as_cfi_run *run, uint64_t v)
{
	return (int64_t)(v * (uint64_t)run->cie->data_align);
}

static void set_offset(struct as_cfi_run *run, uint64_t reg, uint8_t kind, int64_t off)
{
	struct as_cfi_rule *s = slot(run, reg);
	s->kind = kind;
	s->off = off;
}

static void set_expr(struct as_cfi_run *run, struct as_cfi_rule *s, uint8_t kind)
{
	uint64_t n = uleb(&run->rd);
	const uint8_t *p = as_rd_bytes(&run->rd, n);
	if (!p)
		return;
	s->kind = kind;
	s->len = (uint32_t)n;
	s->expr = p;
}

static void set_cfa(struct as_cfi_run *run, uint64_t reg, int64_t off)
{
	if (reg >= 64) {
		run->rd.bad = true;
		return;
	}
	run->cur.slot[0] =
		(struct as_cfi_rule){.kind = AS_CFI_REG, .reg = (uint8_t)reg, .off = off};
}

/* A change of only the offset or only the register needs a register rule to change. */
static struct as_cfi_rule *cfa_register(struct as_cfi_run *run)
{
	if (run->cur.slot[0].kind != AS_CFI_REG)
		run->rd.bad = true;
	return &run->cur.slot[0];
}

static void restore(struct as_cfi_run *run, uint64_t reg)
{
	unsigned i = reg < 64 ? run->slot_of[reg] : run->nslots - 1;
	if (run->init_valid)
		run->cur.slot[i] = run->init.slot[i];
}

static void remember_state(struct as_cfi_run *run)
{
	if (run->depth == AS_CFI_REMEMBER_DEPTH) {
		run->rd.bad = true;
		return;
	}
	copy_rows(run, &run->stack[run->depth++], &run->cur);
}

static void restore_state(struct as_cfi_run *run)
{
	if (!run->depth) {
		run->rd.bad = true;
		return;
	}
	copy_rows(run, &run->cur, &run->stack[--run->depth]);
}

static void set_register(struct as_cfi_run *run, uint64_t reg)
{
	uint64_t from = uleb(&run->rd);
	struct as_cfi_rule *s = slot(run, reg);
	s->kind = from < 64 ? AS_CFI_REG : AS_CFI_UNDEF;
	s->reg = (uint8_t)(from & 63);
	s->off = 0;
}

/* Everything but the advances and the three packed opcodes. */
static void execute(struct as_cfi_run *run, uint8_t op)
{
	struct as_rd *r = &run->rd;
	struct as_cfi_rule *s;
	uint64_t reg;
	switch (op) {
	case CFA_nop:
	case CFA_AARCH64_negate_ra_state:
	case CFA_AARCH64_negate_ra_state_with_pc:
		break;
	case CFA_offset_extended:
		reg = uleb(r);
		set_offset(run, reg, AS_CFI_OFFSET, scaled(run, uleb(r)));
		break;
	case CFA_offset_extended_sf:
		reg = uleb(r);
		set_offset(run, reg, AS_CFI_OFFSET, scaled(run, (uint64_t)as_rd_sleb(r)));
		break;
	case CFA_GNU_negative_offset_extended:
		reg = uleb(r);
		set_offset(run, reg, AS_CFI_OFFSET, scaled(run, 0 - uleb(r)));
		break;
	case CFA_val_offset:
		reg = uleb(r);
		set_offset(run, reg, AS_CFI_VAL_OFFSET, scaled(run, uleb(r)));
		break;
	case CFA_val_offset_sf:
		reg = uleb(r);
		set_offset(run, reg, AS_CFI_VAL_OFFSET, scaled(run, (uint64_t)as_rd_sleb(r)));
		break;
	case CFA_restore_extended:
		restore(run, uleb(r));
		break;
	case CFA_undefined:
		slot(run, uleb(r))->kind = AS_CFI_UNDEF;
		break;
	case CFA_same_value:
		slot(run, uleb(r))->kind = AS_CFI_SAME;
		break;
	case CFA_register:
		set_register(run, uleb(r));
		break;
	case CFA_remember_state:
		remember_state(run);
		break;
	case CFA_restore_state:
		restore_state(run);
		break;
	case CFA_def_cfa:
		reg = uleb(r);
		set_cfa(run, reg, (int64_t)uleb(r));
		break;
	case CFA_def_cfa_sf:
		reg = uleb(r);
		set_cfa(run, reg, scaled(run, (uint64_t)as_rd_sleb(r)));
		break;
	case CFA_def_cfa_register:
		s = cfa_register(run);
		set_cfa(run, uleb(r), s->off);
		break;
	case CFA_def_cfa_offset:
		cfa_register(run)->off = (int64_t)uleb(r);
		break;
	case CFA_def_cfa_offset_sf:
		cfa_register(run)->off = scaled(run, (uint64_t)as_rd_sleb(r));
		break;
	case CFA_def_cfa_expression:
		set_expr(run, &run->cur.slot[0], AS_CFI_EXPR);
		break;
	case CFA_expression:
		set_expr(run, slot(run, uleb(r)), AS_CFI_EXPR);
		break;
	case CFA_val_expression:
		set_expr(run, slot(run, uleb(r)), AS_CFI_VAL_EXPR);
		break;
	case CFA_GNU_args_size:
		(void)uleb(r);
		break;
	default:
		r->bad = true;
	}
}

/* An absolute address inside a program (not written by today's compilers). */
static uint64_t set_loc(struct as_cfi_run *run)
{
	struct as_fde f;
	struct as_rd r = run->rd;
	struct as_cie plain = *run->cie;
	/* an FDE body is an address and a length: read one address by parsing twice the place */
	plain.augmented = false;
	unsigned size =
		(plain.fde_enc & 0x0f) == 0x03 || (plain.fde_enc & 0x0f) == 0x0b ? 4 : 8;
	uint8_t two[16] = {0};
	if (as_rd_left(&r) < size || (plain.fde_enc & 0x70) > 0x10) {
		run->rd.bad = true;
		return 0;
	}
	memcpy(two, r.p, size);
	struct as_cfi_section here = *run->sec;
	here.svma += (uint64_t)(r.p - here.p);
	here.p = two;
	here.n = sizeof two;
	as_rd_skip(&run->rd, size);
	if (!as_cfi_parse_fde(&here, &plain, AS_RD(two, sizeof two), &f)) {
		run->rd.bad = true;
		return 0;
	}
	return f.start_svma;
}

/* Runs up to the next advance; true with the distance when there was one. */
static bool run_to_advance(struct as_cfi_run *run, uint64_t *ret_distance)
{
	struct as_rd *r = &run->rd;
	while (r->p < r->end && !r->bad) {
		uint8_t op = *r->p++;
		uint64_t n;
		switch (op & 0xc0) {
		case CFA_advance_loc:
			*ret_distance = (op & 0x3f) * run->cie->code_align;
			return true;
		case CFA_offset:
			set_offset(run, op & 0x3f, AS_CFI_OFFSET, scaled(run, uleb(r)));
			continue;
		case CFA_restore:
			restore(run, op & 0x3f);
			continue;
		}
		switch (op) {
		case CFA_advance_loc1:
			n = as_rd_u8(r);
			break;
		case CFA_advance_loc2:
			n = as_rd_u16(r);
			break;
		case CFA_advance_loc4:
			n = as_rd_u32(r);
			break;
		case CFA_set_loc:
			*ret_distance = set_loc(run) - run->next;
			return !r->bad;
		default:
			execute(run, op);
			continue;
		}
		*ret_distance = n * run->cie->code_align;
		return !r->bad;
	}
	return false;
}

void as_cfi_run_init(struct as_cfi_run *run, const uint8_t slot_of[64], unsigned nslots)
{
	run->slot_of = slot_of;
	run->nslots = nslots;
	run->init_valid = false;
	run->init_cie.insn = NULL;
}

/* The CIE's own program gives the rules every function starts from; kept for the next FDE. */
static void run_cie(struct as_cfi_run *run)
{
	uint64_t ignored;
	if (run->init_valid && run->init_cie.insn == run->cie->insn &&
	    run->init_cie.insn_end == run->cie->insn_end) {
		copy_rows(run, &run->cur, &run->init);
		return;
	}
	run->init_valid = false;
	memset(run->cur.slot, 0, run->nslots * sizeof run->cur.slot[0]);
	run->rd = AS_RD(run->cie->insn, run->cie->insn_end - run->cie->insn);
	run->depth = 0;
	while (run_to_advance(run, &ignored))
		;
	if (run->rd.bad)
		return;
	copy_rows(run, &run->init, &run->cur);
	run->init_cie = *run->cie;
	run->init_valid = true;
}

void as_cfi_begin(struct as_cfi_run *run, const struct as_fde *fde)
{
	run->sec = fde->sec;
	run->cie = &fde->cie;
	run->next = run->row_start = run->row_end = fde->start_svma;
	run->end = fde->end_svma;
	run->done = run->bad = false;
	run_cie(run);
	run->depth = 0;
	run->rd = AS_RD(fde->insn, fde->insn_end - fde->insn);
	if (!run->init_valid)
		run->bad = run->done = true;
}

bool as_cfi_next(struct as_cfi_run *run)
{
	if (run->done || run->next >= run->end)
		return false;
	run->row_start = run->next;
	uint64_t distance = 0;
	while (distance == 0) {
		if (!run_to_advance(run, &distance)) {
			run->done = true;
			run->row_end = run->end;
			run->bad = run->rd.bad;
			return !run->bad;
		}
	}
	if (distance > run->end - run->next) {
		run->next = run->end;
		run->done = true;
	} else {
		run->next += distance;
	}
	run->row_end = run->next;
	return true;
}

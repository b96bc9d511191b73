/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Abbreviation tables, each read once per offset and kept with ready-made steps to skip a DIE:
 * runs of fixed-size values are one addition. Skipping is what the linear pass does most.
 */
#include "symbol/dwarf_priv.h"

#include <stdlib.h>

#include "symbol/dwarf_const.h"

static void add_op(struct as_dw_abbrevs *t, struct as_dw_abbrev *a, enum as_dw_op_kind kind,
		   uint32_t n)
{
	if (kind == AS_DW_OP_FIXED) {
		if (!n)
			return;
		if (a->nops && t->op.v[t->op.n - 1].kind == AS_DW_OP_FIXED) {
			t->op.v[t->op.n - 1].n += n;
			return;
		}
	}
	as_vec_push(&t->op, (struct as_dw_op){.kind = (uint8_t)kind, .n = n});
	a->nops++;
}

static bool add_attr_op(struct as_dw_abbrevs *t, struct as_dw_abbrev *a,
			const struct as_dw_attr *at)
{
	if (at->fixed_bytes >= 0) {
		add_op(t, a, AS_DW_OP_FIXED, (uint32_t)at->fixed_bytes);
		return true;
	}
	switch (at->form) {
	case DW_FORM_string:
		add_op(t, a, AS_DW_OP_STRING, 0);
		return true;
	case DW_FORM_block1:
		add_op(t, a, AS_DW_OP_BLOCK, 1);
		return true;
	case DW_FORM_block2:
		add_op(t, a, AS_DW_OP_BLOCK, 2);
		return true;
	case DW_FORM_block4:
		add_op(t, a, AS_DW_OP_BLOCK, 4);
		return true;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		add_op(t, a, AS_DW_OP_BLOCK, 0);
		return true;
	case DW_FORM_indirect:
		add_op(t, a, AS_DW_OP_INDIRECT, 0);
		return true;
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		add_op(t, a, AS_DW_OP_ULEB, 0);
		return true;
	default:
		return false;
	}
}

static bool read_attrs(struct as_rd *r, const struct as_dw_unit *u, struct as_dw_abbrevs *t,
		       struct as_dw_abbrev *a)
{
	for (;;) {
		uint64_t name = as_dw_uleb(r), form = as_dw_uleb(r);

		if (r->bad || form > UINT16_MAX)
			return false;
		if (!name && !form)
			return true;

		struct as_dw_attr at = {
			.name = name <= UINT16_MAX ? (uint16_t)name : 0,
			.form = (uint16_t)form,
		};

		if (form == DW_FORM_implicit_const)
			at.implicit = as_rd_sleb(r);
		at.fixed_bytes = (int16_t)as_dw_form_bytes(at.form, u);
		if (name == DW_AT_low_pc || name == DW_AT_ranges)
			a->has_pc = true;
		if (!add_attr_op(t, a, &at))
			return false;
		as_vec_push(&t->attr, at);
		a->nattrs++;
	}
}

static int by_code(const void *x, const void *y)
{
	const struct as_dw_abbrev *a = x, *b = y;

	return a->code < b->code ? -1 : a->code > b->code;
}

/*
 * Reads up to the declaration of last (0: all). A damaged table keeps the declarations before
 * the damage: units that use only those are fine, the others meet an unknown code.
 */
static struct as_dw_abbrevs *read_table(struct as_dw *dw, const struct as_dw_unit *u,
					uint64_t last)
{
	const struct as_dw_sect *s = &u->f->sec[AS_DW_ABBREV];
	struct as_dw_abbrevs *t = as_xcalloc(1, sizeof *t);
	size_t n = AS_MIN(s->n - u->abbrev_off, dw->abbrevs_left);
	struct as_rd r = AS_RD(s->p + u->abbrev_off, n);
	bool sorted = true;

	for (;;) {
		uint64_t code = as_dw_uleb(&r);

		if (r.bad || !code)
			break;

		uint64_t tag = as_dw_uleb(&r);
		struct as_dw_abbrev a = {
			.code = code,
			.tag = tag <= UINT16_MAX ? (uint16_t)tag : 0,
			.children = as_dw_fixed(&r, 1) != 0,
			.attr0 = (uint32_t)t->attr.n,
			.op0 = (uint32_t)t->op.n,
		};

		if (r.bad || !read_attrs(&r, u, t, &a))
			break;
		if (t->ab.n && t->ab.v[t->ab.n - 1].code >= code)
			sorted = false;
		as_vec_push(&t->ab, a);
		if (code == last)
			break;
	}
	dw->abbrevs_left -= (uint64_t)(r.p - (s->p + u->abbrev_off));
	if (!sorted)
		qsort(t->ab.v, t->ab.n, sizeof *t->ab.v, by_code);
	t->dense = t->ab.n && t->ab.v[0].code == 1 && t->ab.v[t->ab.n - 1].code == t->ab.n;
	return t;
}

static bool in_section(struct as_dw *dw, struct as_dw_unit *u)
{
	if (u->abbrev_off < u->f->sec[AS_DW_ABBREV].n && !(u->abbrev_off >> 48))
		return true;
	as_dw_damaged(dw, u, "its abbreviations are not in the file");
	return false;
}

/* Sizes of values depend on these, so they are part of the key. 0: seen, not read whole. */
static uint64_t *slot_of(struct as_dw_unit *u, bool *ret_new)
{
	uint64_t key = u->abbrev_off | (uint64_t)u->addr_size << 48 |
		       (uint64_t)u->off_size << 52 | (uint64_t)(u->version <= 2) << 56;

	return as_map64_put(&u->f->abbrev_of, key, ret_new);
}

struct as_dw_abbrevs *as_dw_abbrevs_get(struct as_dw *dw, struct as_dw_unit *u)
{
	if (u->abbrevs)
		return u->abbrevs;
	if (!in_section(dw, u))
		return NULL;

	uint64_t *slot = slot_of(u, NULL);

	if (!*slot)
		*slot = (uint64_t)(uintptr_t)read_table(dw, u, 0);
	u->abbrevs = (struct as_dw_abbrevs *)(uintptr_t)*slot;
	return u->abbrevs;
}

struct as_dw_abbrevs *as_dw_abbrevs_upto(struct as_dw *dw, struct as_dw_unit *u, uint64_t code,
					 struct as_dw_abbrevs **ret_own)
{
	bool is_new;

	*ret_own = NULL;
	if (!in_section(dw, u))
		return NULL;
	(void)slot_of(u, &is_new);
	if (!is_new) /* the units of one LTO run share a table, and their roots stand anywhere in it */
		return as_dw_abbrevs_get(dw, u);
	return *ret_own = read_table(dw, u, code);
}

void as_dw_abbrevs_free(struct as_dw_abbrevs *t)
{
	if (!t)
		return;
	as_vec_clear(&t->ab);
	as_vec_clear(&t->attr);
	as_vec_clear(&t->op);
	free(t);
}

const struct as_dw_abbrev *as_dw_abbrev_find(const struct as_dw_abbrevs *t, uint64_t code)
{
	if (t->dense)
		return code - 1 < t->ab.n ? &t->ab.v[code - 1] : NULL;

	size_t lo = 0, hi = t->ab.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->ab.v[mid].code < code)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->ab.n && t->ab.v[lo].code == code ? &t->ab.v[lo] : NULL;
}

void as_dw_die_skip(struct as_rd *r, const struct as_dw_unit *u, const struct as_dw_abbrevs *t,
		    const struct as_dw_abbrev *a)
{
	for (uint32_t i = 0; i < a->nops; i++) {
		const struct as_dw_op *op = &t->op.v[a->op0 + i];

		switch ((enum as_dw_op_kind)op->kind) {
		case AS_DW_OP_FIXED:
			as_dw_advance(r, op->n);
			break;
		case AS_DW_OP_ULEB:
			while (r->p < r->end && *r->p & 0x80)
				r->p++;
			as_dw_advance(r, 1);
			break;
		case AS_DW_OP_STRING:
			as_dw_form_skip(r, u, DW_FORM_string);
			break;
		case AS_DW_OP_BLOCK:
			as_dw_advance(r, op->n ? as_dw_fixed(r, op->n) : as_dw_uleb(r));
			break;
		case AS_DW_OP_INDIRECT:
			as_dw_form_skip(r, u, DW_FORM_indirect);
			break;
		}
	}
}

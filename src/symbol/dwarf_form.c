/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Attribute values: sizes, stepping over, reading, and what strings, addresses and references
 * they stand for. */
#include "symbol/dwarf_priv.h"

#include "symbol/dwarf_const.h"

#define VARIABLE (-1)

int as_dw_form_bytes(uint16_t form, const struct as_dw_unit *u)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_ref_sup4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return u->addr_size;
	case DW_FORM_ref_addr:
		return u->version <= 2 ? u->addr_size : u->off_size;
	case DW_FORM_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return u->off_size;
	default:
		return VARIABLE;
	}
}

/* The real form behind DW_FORM_indirect. */
static uint16_t indirect_form(struct as_rd *r)
{
	uint64_t form = as_dw_uleb(r);

	/* A second indirection is legal in no version, and implicit_const has its value elsewhere. */
	if (form == DW_FORM_indirect || form == DW_FORM_implicit_const || form > UINT16_MAX) {
		r->bad = true;
		return DW_FORM_flag_present;
	}
	return (uint16_t)form;
}

static void skip_string(struct as_rd *r)
{
	const uint8_t *nul = r->p < r->end ? memchr(r->p, 0, as_rd_left(r)) : NULL;

	if (!nul) {
		r->bad = true;
		r->p = r->end;
		return;
	}
	r->p = nul + 1;
}

void as_dw_form_skip(struct as_rd *r, const struct as_dw_unit *u, uint16_t form)
{
	if (form == DW_FORM_indirect)
		form = indirect_form(r);

	int n = as_dw_form_bytes(form, u);

	if (n >= 0) {
		as_dw_advance(r, (uint64_t)n);
		return;
	}
	switch (form) {
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		(void)as_dw_uleb(r);
		return;
	case DW_FORM_string:
		skip_string(r);
		return;
	case DW_FORM_block1:
		as_dw_advance(r, as_dw_fixed(r, 1));
		return;
	case DW_FORM_block2:
		as_dw_advance(r, as_dw_fixed(r, 2));
		return;
	case DW_FORM_block4:
		as_dw_advance(r, as_dw_fixed(r, 4));
		return;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		as_dw_advance(r, as_dw_uleb(r));
		return;
	default:
		r->bad = true; /* an unknown form has an unknown size */
	}
}

void as_dw_form_read(struct as_rd *r, const struct as_dw_unit *u, const struct as_dw_attr *at,
		     struct as_dw_val *ret)
{
	uint16_t form = at->form;

	*ret = (struct as_dw_val){.form = form};
	if (form == DW_FORM_indirect) {
		form = indirect_form(r);
		ret->form = form;
	}

	int n = at->fixed_bytes >= 0 ? at->fixed_bytes : as_dw_form_bytes(form, u);

	switch (form) {
	case DW_FORM_implicit_const:
		ret->u = (uint64_t)at->implicit;
		return;
	case DW_FORM_flag_present:
		ret->u = 1;
		return;
	case DW_FORM_sdata:
		ret->u = (uint64_t)as_rd_sleb(r);
		return;
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		ret->u = as_dw_uleb(r);
		return;
	case DW_FORM_string:
		ret->p = r->p;
		skip_string(r);
		return;
	default:
		break;
	}
	if (n > 0 && n <= 8)
		ret->u = as_dw_fixed(r, (unsigned)n);
	else
		as_dw_form_skip(r, u, form); /* blocks and data16: nobody asks for them */
}

const char *as_dw_cstr_at(const struct as_dw_sect *s, uint64_t off)
{
	if (off >= s->n || !memchr(s->p + off, 0, s->n - off))
		return NULL;
	return (const char *)s->p + off;
}

static const char *string_by_index(const struct as_dw_unit *u, uint64_t index)
{
	const struct as_dw_sect *s = &u->f->sec[AS_DW_STR_OFFSETS];
	uint64_t at;

	if (index > s->n ||
	    __builtin_add_overflow(u->str_offsets_base, index * u->off_size, &at) || at >= s->n)
		return NULL;

	struct as_rd r = AS_RD(s->p + at, s->n - at);
	uint64_t off = as_dw_fixed(&r, u->off_size);

	return r.bad ? NULL : as_dw_cstr_at(&u->f->sec[AS_DW_STR], off);
}

const char *as_dw_str(const struct as_dw_unit *u, const struct as_dw_val *v)
{
	switch (v->form) {
	case DW_FORM_string:
		return (const char *)v->p;
	case DW_FORM_strp:
		return as_dw_cstr_at(&u->f->sec[AS_DW_STR], v->u);
	case DW_FORM_line_strp:
		return as_dw_cstr_at(&u->f->sec[AS_DW_LINE_STR], v->u);
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		return u->f->sup ? as_dw_cstr_at(&u->f->sup->sec[AS_DW_STR], v->u) : NULL;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		return string_by_index(u, v->u);
	default:
		return NULL;
	}
}

bool as_dw_is_addr_form(uint16_t form)
{
	switch (form) {
	case DW_FORM_addr:
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		return true;
	default:
		return false;
	}
}

bool as_dw_addrx(const struct as_dw_unit *u, uint64_t index, uint64_t *ret)
{
	const struct as_dw_sect *s = u->addr;
	uint64_t at;

	if (!s || index > s->n ||
	    __builtin_add_overflow(u->addr_base, index * u->addr_size, &at) || at >= s->n)
		return false;

	struct as_rd r = AS_RD(s->p + at, s->n - at);
	uint64_t a = as_dw_fixed(&r, u->addr_size);

	if (r.bad)
		return false;
	*ret = a;
	return true;
}

bool as_dw_addr(const struct as_dw_unit *u, const struct as_dw_val *v, uint64_t *ret)
{
	if (!as_dw_is_addr_form(v->form))
		return false;
	if (v->form != DW_FORM_addr)
		return as_dw_addrx(u, v->u, ret);
	*ret = v->u;
	return true;
}

static uint64_t make_ref(const struct as_dw_file *f, uint64_t off)
{
	if (off >= f->sec[AS_DW_INFO].n || off >> 48)
		return AS_DW_NOREF;
	return (uint64_t)f->idx << 48 | off;
}

uint64_t as_dw_ref(const struct as_dw_unit *u, const struct as_dw_val *v)
{
	uint64_t off;

	switch (v->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		if (__builtin_add_overflow(u->off, v->u, &off) || off >= u->end)
			return AS_DW_NOREF;
		return make_ref(u->f, off);
	case DW_FORM_ref_addr:
		/* In a package, offsets count from the unit's own contribution; there is one
		 * unit in it. */
		return make_ref(u->f, v->u);
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
	case DW_FORM_GNU_ref_alt:
		return u->f->sup ? make_ref(u->f->sup, v->u) : AS_DW_NOREF;
	default:
		return AS_DW_NOREF;
	}
}

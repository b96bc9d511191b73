/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* DW_AT_ranges: .debug_ranges (DWARF 3, 4) and .debug_rnglists (5). */
#include "symbol/dwarf_priv.h"

#include "symbol/dwarf_const.h"

struct walk {
	struct as_dw *dw;
	const struct as_dw_unit *u;
	as_dw_range_fn fn;
	void *ctx;
	uint64_t base;
};

static void tell(struct walk *w, uint64_t lo, uint64_t hi)
{
	if (lo < hi)
		w->fn(w->ctx, lo, hi);
}

static bool spend(struct as_dw *dw)
{
	if (!dw->ranges_left)
		return false;
	dw->ranges_left--;
	return true;
}

static bool walk_ranges(struct walk *w, uint64_t off)
{
	const struct as_dw_sect *s = w->u->ranges;
	uint64_t max = w->u->addr_size == 8 ? UINT64_MAX : UINT32_MAX;

	if (off >= s->n)
		return false;

	struct as_rd r = AS_RD(s->p + off, s->n - off);

	while (spend(w->dw)) {
		uint64_t lo = as_dw_fixed(&r, w->u->addr_size);
		uint64_t hi = as_dw_fixed(&r, w->u->addr_size);

		if (r.bad)
			return false;
		if (!lo && !hi)
			return true;
		if (lo == max)
			w->base = hi;
		else
			tell(w, w->base + lo, w->base + hi);
	}
	return false;
}

/* One entry; false at the end of the list or at damage (then r->bad). */
static bool walk_rnglist_entry(struct walk *w, struct as_rd *r)
{
	unsigned size = w->u->addr_size;
	uint64_t a = 0, b = 0;

	switch (as_dw_fixed(r, 1)) {
	case DW_RLE_end_of_list:
		return false;
	case DW_RLE_base_addressx:
		r->bad |= !as_dw_addrx(w->u, as_dw_uleb(r), &w->base);
		return !r->bad;
	case DW_RLE_startx_endx:
		r->bad |= !as_dw_addrx(w->u, as_dw_uleb(r), &a);
		r->bad |= !as_dw_addrx(w->u, as_dw_uleb(r), &b);
		break;
	case DW_RLE_startx_length:
		r->bad |= !as_dw_addrx(w->u, as_dw_uleb(r), &a);
		b = a + as_dw_uleb(r);
		break;
	case DW_RLE_offset_pair:
		a = w->base + as_dw_uleb(r);
		b = w->base + as_dw_uleb(r);
		break;
	case DW_RLE_base_address:
		w->base = as_dw_fixed(r, size);
		return !r->bad;
	case DW_RLE_start_end:
		a = as_dw_fixed(r, size);
		b = as_dw_fixed(r, size);
		break;
	case DW_RLE_start_length:
		a = as_dw_fixed(r, size);
		b = a + as_dw_uleb(r);
		break;
	default:
		r->bad = true;
	}
	if (!r->bad)
		tell(w, a, b);
	return !r->bad;
}

static bool walk_rnglist(struct walk *w, uint64_t off)
{
	const struct as_dw_sect *s = &w->u->f->sec[AS_DW_RNGLISTS];

	if (off >= s->n)
		return false;

	struct as_rd r = AS_RD(s->p + off, s->n - off);

	while (spend(w->dw)) {
		if (!walk_rnglist_entry(w, &r))
			return !r.bad;
	}
	return false;
}

static bool rnglist_by_index(const struct as_dw_unit *u, uint64_t index, uint64_t *ret_off)
{
	const struct as_dw_sect *s = &u->f->sec[AS_DW_RNGLISTS];
	uint64_t at;

	if (index > s->n ||
	    __builtin_add_overflow(u->rnglists_base, index * u->off_size, &at) || at >= s->n)
		return false;

	struct as_rd r = AS_RD(s->p + at, s->n - at);
	uint64_t off = as_dw_fixed(&r, u->off_size);

	return !r.bad && !__builtin_add_overflow(u->rnglists_base, off, ret_off);
}

bool as_dw_ranges(struct as_dw *dw, const struct as_dw_unit *u, const struct as_dw_val *v,
		  as_dw_range_fn fn, void *ctx)
{
	struct walk w = {.dw = dw, .u = u, .fn = fn, .ctx = ctx, .base = u->low_pc};
	uint64_t off = v->u;

	switch (v->form) {
	case DW_FORM_rnglistx:
		if (!rnglist_by_index(u, v->u, &off))
			return false;
		break;
	case DW_FORM_sec_offset:
	case DW_FORM_data4:
	case DW_FORM_data8:
		break;
	default:
		return false;
	}
	if (u->version >= 5)
		return walk_rnglist(&w, off);
	/* The base of a skeleton counts for its split unit, not for itself. */
	if (u->skeleton)
		off += u->skeleton->ranges_base;
	return walk_ranges(&w, off);
}

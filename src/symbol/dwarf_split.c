/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Split DWARF: the full unit of a skeleton, in the package beside the object (.dwp, index
 * versions 2 and 5) or in its own .dwo. Both are recognised by the 64-bit id that the skeleton
 * carries; a file with another id is from another build and refused by name.
 */
#include "symbol/dwarf_priv.h"

#include "symbol/dwarf_const.h"

struct contributions {
	uint64_t off[16]; /* by DW_SECT_* */
	bool has_info;
};

struct package_index {
	const uint8_t *hash, *row, *id, *off;
	uint64_t columns, units, slots;
};

static bool index_open(const struct as_dw_sect *s, struct package_index *ix)
{
	struct as_rd r = AS_RD(s->p, s->n);

	as_dw_advance(&r, 4); /* 2 as 32 bits, or 5 as 16 and padding: the rest is the same */
	ix->columns = as_dw_fixed(&r, 4);
	ix->units = as_dw_fixed(&r, 4);
	ix->slots = as_dw_fixed(&r, 4);
	if (r.bad || ix->columns > 32 || !ix->slots || ix->slots & (ix->slots - 1))
		return false;
	ix->hash = r.p;
	as_dw_advance(&r, ix->slots * 8);
	ix->row = r.p;
	as_dw_advance(&r, ix->slots * 4);
	ix->id = r.p;
	as_dw_advance(&r, ix->columns * 4);
	ix->off = r.p;
	as_dw_advance(&r, ix->columns * ix->units * 4);
	return !r.bad;
}

static bool index_find(const struct as_dw_sect *s, uint64_t id, struct contributions *ret)
{
	struct package_index ix;

	if (!index_open(s, &ix))
		return false;

	uint64_t mask = ix.slots - 1, at = id & mask, step = ((id >> 32) & mask) | 1;

	for (uint64_t n = 0; n < ix.slots; n++, at = (at + step) & mask) {
		uint32_t row = as_get_le32(ix.row + at * 4);

		if (!row)
			return false;
		if (as_get_le64(ix.hash + at * 8) != id)
			continue;
		if (row > ix.units)
			return false;
		for (uint64_t c = 0; c < ix.columns; c++) {
			uint32_t kind = as_get_le32(ix.id + c * 4);

			if (kind < AS_ARRAY_LEN(ret->off))
				ret->off[kind] =
					as_get_le32(ix.off + ((row - 1) * ix.columns + c) * 4);
			ret->has_info |= kind == DW_SECT_INFO;
		}
		return ret->has_info;
	}
	return false;
}

static struct as_dw_unit *from_package(struct as_dw *dw, const struct as_dw_unit *skel)
{
	struct as_dw_sect sec[AS_DW_SEC_COUNT_] = {{0}};
	struct contributions c = {0};

	if (!dw->package_tried) {
		dw->package_tried = true;
		if (dw->in.split(dw->in.split_ctx, NULL, sec))
			dw->package = as_dw_add_split(dw, sec);
	}
	if (!dw->package || !index_find(&dw->package->sec[AS_DW_CU_INDEX], skel->dwo_id, &c))
		return NULL;

	struct as_dw_unit *u = as_dw_unit_parse(dw, dw->package, c.off[DW_SECT_INFO]);

	if (!u)
		return NULL;
	u->abbrev_off += c.off[DW_SECT_ABBREV];
	u->str_offsets_base += c.off[DW_SECT_STR_OFFSETS];
	if (u->version >= 5)
		u->rnglists_base += c.off[DW_SECT_RNGLISTS];
	u->line_base = c.off[DW_SECT_LINE];
	return as_dw_read_root(dw, u) ? u : NULL;
}

static struct as_dw_unit *from_dwo(struct as_dw *dw, const struct as_dw_unit *skel)
{
	struct as_dw_sect sec[AS_DW_SEC_COUNT_] = {{0}};
	struct as_dw_file *f;

	if (!dw->in.split(dw->in.split_ctx, skel, sec))
		return NULL;
	f = as_dw_add_split(dw, sec);
	if (!f)
		return NULL;
	as_dw_scan_units(dw, f);
	for (size_t i = 0; i < f->unit.n; i++) {
		struct as_dw_unit *u = f->unit.v[i];

		if (u->type == DW_UT_split_type || !as_dw_read_root(dw, u))
			continue;
		if (u->tag == DW_TAG_compile_unit && u->has_dwo_id && u->dwo_id == skel->dwo_id)
			return u;
	}
	as_dw_note(dw, "split file '%s' refused: it is from another build", skel->dwo_name);
	return NULL;
}

struct as_dw_unit *as_dw_split_unit(struct as_dw *dw, struct as_dw_unit *skel)
{
	if (!skel->dwo_name || !skel->has_dwo_id)
		return skel;
	if (skel->split_tried || !dw->in.split)
		return skel->full;
	skel->split_tried = true;

	struct as_dw_unit *u = from_package(dw, skel);

	if (!u)
		u = from_dwo(dw, skel);
	if (!u || u->damaged)
		return NULL;
	u->skeleton = skel;
	u->addr = skel->addr;
	u->addr_base = skel->addr_base;
	u->ranges = skel->ranges;
	u->low_pc = skel->low_pc;
	if (!u->comp_dir)
		u->comp_dir = skel->comp_dir;
	skel->full = u;
	return u;
}

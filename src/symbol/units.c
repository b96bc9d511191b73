/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Units of a module: see units.h. */
#include "symbol/units.h"

#include <stdlib.h>

#include "symbol/dwarf_const.h"
#include "symbol/dwarf_priv.h"
#include "symbol/symmod_priv.h"

/* What only "full" debug information has: -g1 and line-tables-only leave these out. */
static bool tells_more(uint16_t tag)
{
	return tag == DW_TAG_formal_parameter || tag == DW_TAG_base_type ||
	       tag == DW_TAG_structure_type;
}

static bool is_full(struct as_dw *dw, struct as_dw_unit *u)
{
	const uint8_t *info = u->f->sec[AS_DW_INFO].p;
	struct as_rd r = AS_RD(info + u->die_off, u->end - u->die_off);
	const struct as_dw_abbrevs *t = as_dw_abbrevs_get(dw, u);

	for (unsigned i = 0; t && r.p < r.end && !r.bad && i < AS_UNITS_MAX_DIES; i++) {
		uint64_t code = as_dw_uleb(&r);
		const struct as_dw_abbrev *a = code ? as_dw_abbrev_find(t, code) : NULL;

		if (!code)
			continue;
		if (!a)
			return false;
		if (tells_more(a->tag))
			return true;
		as_dw_die_skip(&r, u, t, a);
	}
	return false;
}

static uint64_t *code_by_unit(const struct as_dw *dw, size_t n)
{
	uint64_t *bytes = as_xcalloc(n + 1, sizeof *bytes);

	as_vec_foreach (r, &dw->range) {
		if (r->unit < n)
			bytes[r->unit] += r->hi - r->lo;
	}
	return bytes;
}

static const char *text_or_none(const char *s)
{
	return s ? s : "";
}

static void tell(struct as_dw *dw, struct as_dw_unit *u, struct as_unit *out)
{
	struct as_dw_unit *full = u;

	out->name = text_or_none(u->name);
	out->comp_dir = text_or_none(u->comp_dir);
	out->split_name = u->dwo_name;
	out->lang = u->lang;
	out->version = u->version;
	out->abbrev_off = u->abbrev_off;
	out->detail = u->has_line ? AS_UNIT_LINES : AS_UNIT_BARE;
	if (u->dwo_name) {
		full = as_dw_split_unit(dw, u);
		out->split_missing = !full || full == u;
		full = full ? full : u;
	}
	if (full != u && !*out->name)
		out->name = text_or_none(full->name);
	out->producer = text_or_none(full->producer ? full->producer : u->producer);
	out->lang = full->lang ? full->lang : u->lang;
	if (out->judged && !full->damaged && is_full(dw, full))
		out->detail = AS_UNIT_FULL;
}

size_t as_symmod_units(struct as_symmod *m, as_unit_fn fn, void *ctx)
{
	size_t n, told = 0;
	uint64_t *bytes;

	if (!as_symmod_load_dwarf(m))
		return 0;
	n = m->dw->file.v[0]->unit.n;
	bytes = code_by_unit(m->dw, n);
	for (size_t i = 0; i < n; i++) {
		struct as_dw_unit *u = m->dw->file.v[0]->unit.v[i];
		struct as_unit out = {.code_bytes = bytes[i],
				      .judged = told < AS_UNITS_MAX_JUDGED};

		if (u->type == DW_UT_type || !as_dw_read_root(m->dw, u) ||
		    u->tag == DW_TAG_partial_unit)
			continue;
		tell(m->dw, u, &out);
		told++;
		fn(ctx, &out);
	}
	free(bytes);
	return told;
}

const char *as_symmod_debug_file(struct as_symmod *m)
{
	as_symmod_find_debug(m);
	return m->dbg ? as_elf_name(m->dbg) : NULL;
}

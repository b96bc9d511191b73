/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Unit headers, root DIEs and the table of which unit claims which addresses. DIE trees are not
 * touched here: only the root of each unit is read.
 */
#include "symbol/dwarf_priv.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/sys.h"
#include "symbol/dwarf_const.h"

const char *const as_dw_sec_name[AS_DW_SEC_COUNT_] = {
	[AS_DW_INFO] = ".debug_info",         [AS_DW_ABBREV] = ".debug_abbrev",
	[AS_DW_STR] = ".debug_str",           [AS_DW_STR_OFFSETS] = ".debug_str_offsets",
	[AS_DW_LINE] = ".debug_line",         [AS_DW_LINE_STR] = ".debug_line_str",
	[AS_DW_ADDR] = ".debug_addr",         [AS_DW_RANGES] = ".debug_ranges",
	[AS_DW_RNGLISTS] = ".debug_rnglists", [AS_DW_ARANGES] = ".debug_aranges",
	[AS_DW_CU_INDEX] = ".debug_cu_index",
};

void as_dw_note(struct as_dw *dw, const char *fmt, ...)
{
	struct as_buf line = {0};
	va_list ap;

	if (!dw->in.notes || dw->nnotes > AS_DW_MAX_NOTES)
		return;
	if (dw->nnotes++ == AS_DW_MAX_NOTES) {
		as_buf_adds(dw->in.notes,
			    "further damage in the debug information is not listed\n");
		return;
	}
	va_start(ap, fmt);
	as_buf_vaddf(&line, fmt, ap);
	va_end(ap);
	as_fmt_quoted(dw->in.notes, line.p, line.len); /* names come from the file */
	as_buf_addc(dw->in.notes, '\n');
	as_buf_clear(&line);
}

void as_dw_damaged(struct as_dw *dw, struct as_dw_unit *u, const char *why)
{
	if (!u->damaged)
		as_dw_note(dw, "unit 0x%llx skipped: %s", (unsigned long long)u->off, why);
	u->damaged = true;
}

bool as_dw_in_text(const struct as_dw *dw, uint64_t lo, uint64_t hi)
{
	/* Linkers leave 0 (or an address outside) where the code was thrown away. */
	return lo && lo < hi && lo >= dw->in.text_lo && hi <= dw->in.text_hi;
}

static bool parse_header(struct as_rd *r, struct as_dw_unit *u)
{
	uint64_t length = as_dw_fixed(r, 4);

	u->off_size = 4;
	if (length == 0xffffffff) {
		u->off_size = 8;
		length = as_dw_fixed(r, 8);
	} else if (length >= 0xfffffff0) {
		return false;
	}
	if (r->bad || length > as_rd_left(r))
		return false;
	u->end = (uint64_t)(r->p - u->f->sec[AS_DW_INFO].p) + length;
	r->end = r->p + length;
	u->version = (uint16_t)as_dw_fixed(r, 2);
	if (u->version >= 5) {
		u->type = (uint8_t)as_dw_fixed(r, 1);
		u->addr_size = (uint8_t)as_dw_fixed(r, 1);
		u->abbrev_off = as_dw_fixed(r, u->off_size);
	} else {
		u->type = DW_UT_compile;
		u->abbrev_off = as_dw_fixed(r, u->off_size);
		u->addr_size = (uint8_t)as_dw_fixed(r, 1);
	}
	if (u->type == DW_UT_skeleton || u->type == DW_UT_split_compile) {
		u->dwo_id = as_dw_fixed(r, 8);
		u->has_dwo_id = true;
	} else if (u->type == DW_UT_type || u->type == DW_UT_split_type) {
		as_dw_advance(r, 8u + u->off_size);
	}
	u->die_off = (uint64_t)(r->p - u->f->sec[AS_DW_INFO].p);
	return true;
}

struct as_dw_unit *as_dw_unit_parse(struct as_dw *dw, struct as_dw_file *f, uint64_t off)
{
	const struct as_dw_sect *s = &f->sec[AS_DW_INFO];
	struct as_dw_unit h = {.f = f, .off = off};

	if (off >= s->n || f->unit.n >= AS_DW_MAX_UNITS)
		return NULL;

	struct as_rd r = AS_RD(s->p + off, s->n - off);

	if (!parse_header(&r, &h)) {
		as_dw_note(dw, "units from 0x%llx on skipped: damaged header",
			   (unsigned long long)off);
		return NULL;
	}

	struct as_dw_unit *u = as_arena_alloc(&dw->arena, sizeof *u);

	*u = h;
	u->addr = &f->sec[AS_DW_ADDR];
	u->ranges = &f->sec[AS_DW_RANGES];
	if (f->split && u->version >= 5) {
		u->str_offsets_base = u->off_size == 8 ? 16 : 8;
		u->rnglists_base = u->off_size == 8 ? 20 : 12;
	}
	if (r.bad || u->version < 2 || u->version > 5 ||
	    (u->addr_size != 8 && u->addr_size != 4))
		as_dw_damaged(dw, u, "unknown version or address size");
	as_vec_push(&f->unit, u);
	for (size_t i = f->unit.n - 1; i && f->unit.v[i - 1]->off > off; i--) {
		f->unit.v[i] = f->unit.v[i - 1];
		f->unit.v[i - 1] = u;
	}
	return u;
}

void as_dw_scan_units(struct as_dw *dw, struct as_dw_file *f)
{
	uint64_t off = 0;

	while (off < f->sec[AS_DW_INFO].n) {
		struct as_dw_unit *u = as_dw_unit_parse(dw, f, off);

		if (!u)
			return;
		off = u->end;
	}
}

struct root {
	struct as_dw_val name, comp_dir, stmt_list, low, dwo_name, addr_base, str_base,
		rng_base, producer;
};

static void take_root_attr(struct as_dw_unit *u, struct root *t, uint16_t name,
			   const struct as_dw_val *v)
{
	switch (name) {
	case DW_AT_name:
		t->name = *v;
		break;
	case DW_AT_comp_dir:
		t->comp_dir = *v;
		break;
	case DW_AT_producer:
		t->producer = *v;
		break;
	case DW_AT_stmt_list:
		t->stmt_list = *v;
		break;
	case DW_AT_low_pc:
		t->low = *v;
		break;
	case DW_AT_high_pc:
		u->high_val = *v;
		break;
	case DW_AT_ranges:
		u->ranges_val = *v;
		break;
	case DW_AT_language:
		u->lang = (uint32_t)v->u;
		break;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		t->dwo_name = *v;
		break;
	case DW_AT_GNU_dwo_id:
		u->dwo_id = v->u;
		u->has_dwo_id = true;
		break;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		t->addr_base = *v;
		break;
	case DW_AT_str_offsets_base:
		t->str_base = *v;
		break;
	case DW_AT_rnglists_base:
		t->rng_base = *v;
		break;
	case DW_AT_GNU_ranges_base:
		u->ranges_base = v->u;
		break;
	default:
		break;
	}
}

static void use_root(struct as_dw_unit *u, const struct root *t)
{
	/* Bases first: the other values may be indexes. */
	if (t->addr_base.form)
		u->addr_base = t->addr_base.u;
	if (t->str_base.form)
		u->str_offsets_base = t->str_base.u;
	if (t->rng_base.form)
		u->rnglists_base = t->rng_base.u;
	u->name = as_dw_str(u, &t->name);
	u->comp_dir = as_dw_str(u, &t->comp_dir);
	u->dwo_name = as_dw_str(u, &t->dwo_name);
	u->producer = as_dw_str(u, &t->producer);
	u->has_line = t->stmt_list.form != 0;
	u->line_off = t->stmt_list.u;
	u->has_low = as_dw_addr(u, &t->low, &u->low_pc);
}

static bool read_root_with(struct as_dw *dw, struct as_dw_unit *u, struct as_rd *r,
			   const struct as_dw_abbrev *a, const struct as_dw_abbrevs *t)
{
	struct root root = {0};

	if (!a) {
		as_dw_damaged(dw, u, "unknown abbreviation code");
		return false;
	}
	u->tag = a->tag;
	for (uint32_t i = 0; i < a->nattrs; i++) {
		const struct as_dw_attr *at = &t->attr.v[a->attr0 + i];
		struct as_dw_val v;

		as_dw_form_read(r, u, at, &v);
		take_root_attr(u, &root, at->name, &v);
	}
	if (r->bad) {
		as_dw_damaged(dw, u, "its first entry is cut short");
		return false;
	}
	use_root(u, &root);
	return true;
}

bool as_dw_read_root(struct as_dw *dw, struct as_dw_unit *u)
{
	if (u->root_read || u->damaged)
		return !u->damaged;
	u->root_read = true;

	struct as_rd r = AS_RD(u->f->sec[AS_DW_INFO].p + u->die_off, u->end - u->die_off);
	uint64_t code = as_dw_uleb(&r);
	struct as_dw_abbrevs *t = u->abbrevs, *own = NULL;

	if (r.bad || !code) {
		/* An empty unit (padding) is no damage. */
		u->damaged = true;
		return false;
	}
	if (!t)
		t = as_dw_abbrevs_upto(dw, u, code, &own);
	if (t)
		(void)read_root_with(dw, u, &r, as_dw_abbrev_find(t, code), t);
	as_dw_abbrevs_free(own);
	return !u->damaged;
}

struct as_dw_unit *as_dw_unit_at(struct as_dw *dw, uint64_t ref, uint64_t *ret_off)
{
	uint64_t off = ref & ((1ull << 48) - 1);
	size_t file = ref >> 48;

	if (ref == AS_DW_NOREF || file >= dw->file.n || !dw->file.v[file])
		return NULL;

	struct as_dw_file *f = dw->file.v[file];
	size_t lo = 0, hi = f->unit.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (f->unit.v[mid]->off <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || off >= f->unit.v[lo - 1]->end || off < f->unit.v[lo - 1]->die_off)
		return NULL;
	if (!as_dw_read_root(dw, f->unit.v[lo - 1]))
		return NULL;
	*ret_off = off;
	return f->unit.v[lo - 1];
}

void as_dw_add_range(struct as_dw *dw, uint32_t unit, uint64_t lo, uint64_t hi)
{
	uint64_t base = dw->in.text_lo;

	if (as_dw_in_text(dw, lo, hi))
		as_vec_push(&dw->range, (struct as_symrange){.lo = (uint32_t)(lo - base),
							     .hi = (uint32_t)(hi - base),
							     .unit = unit});
}

struct add_ctx {
	struct as_dw *dw;
	uint32_t unit;
	bool any;
};

static void add_unit_range(void *ctx, uint64_t lo, uint64_t hi)
{
	struct add_ctx *c = ctx;

	as_dw_add_range(c->dw, c->unit, lo, hi);
	c->any = true;
}

static void read_aranges_set(struct as_dw *dw, struct as_rd *r)
{
	const uint8_t *set = r->p;
	uint64_t length = as_dw_fixed(r, 4);
	unsigned off_size = 4;

	if (length == 0xffffffff) {
		off_size = 8;
		length = as_dw_fixed(r, 8);
	}
	if (r->bad || length > as_rd_left(r)) {
		r->p = r->end;
		return;
	}

	struct as_rd s = AS_RD(r->p, length);
	uint64_t s_info = dw->file.v[0]->sec[AS_DW_INFO].n;

	r->p += length;

	uint64_t version = as_dw_fixed(&s, 2), info = as_dw_fixed(&s, off_size);
	unsigned addr = (unsigned)as_dw_fixed(&s, 1), segment = (unsigned)as_dw_fixed(&s, 1);

	if (s.bad || version != 2 || (addr != 4 && addr != 8) || segment)
		return;
	/* Pairs are aligned to their own size, counted from the start of the set. */
	as_dw_advance(&s, (2 * addr - (size_t)(s.p - set) % (2 * addr)) % (2 * addr));
	while (as_rd_left(&s) >= 2 * addr) {
		uint64_t lo = as_dw_fixed(&s, addr), n = as_dw_fixed(&s, addr), hi;

		if (!__builtin_add_overflow(lo, n, &hi) && as_dw_in_text(dw, lo, hi) &&
		    info < s_info)
			as_vec_push(&dw->arange, (struct as_dw_arange){info, lo, hi});
	}
}

static int arange_by_info(const void *x, const void *y)
{
	const struct as_dw_arange *a = x, *b = y;

	return a->unit_off < b->unit_off ? -1 : a->unit_off > b->unit_off;
}

static void read_aranges(struct as_dw *dw)
{
	const struct as_dw_sect *s = &dw->file.v[0]->sec[AS_DW_ARANGES];
	struct as_rd r = AS_RD(s->p, s->n);

	dw->aranges_read = true;
	while (as_rd_left(&r))
		read_aranges_set(dw, &r);
	if (dw->arange.n)
		qsort(dw->arange.v, dw->arange.n, sizeof *dw->arange.v, arange_by_info);
	for (size_t i = dw->arange.n; i--;)
		*as_map64_put(&dw->arange_of, dw->arange.v[i].unit_off, NULL) = i + 1;
}

static bool ranges_from_aranges(struct as_dw *dw, uint32_t unit, uint64_t off)
{
	if (!dw->aranges_read)
		read_aranges(dw);

	const uint64_t *first = as_map64_get(&dw->arange_of, off);

	if (!first)
		return false;
	for (size_t i = *first - 1; i < dw->arange.n && dw->arange.v[i].unit_off == off; i++)
		as_dw_add_range(dw, unit, dw->arange.v[i].lo, dw->arange.v[i].hi);
	return true;
}

static void ranges_of_unit(struct as_dw *dw, uint32_t index)
{
	struct as_dw_unit *u = dw->file.v[0]->unit.v[index];

	if (u->type == DW_UT_type || !as_dw_read_root(dw, u))
		return;
	if (u->tag != DW_TAG_compile_unit && u->tag != DW_TAG_skeleton_unit)
		return;

	struct add_ctx c = {.dw = dw, .unit = index};
	uint64_t hi = 0;

	if (u->ranges_val.form) {
		if (!as_dw_ranges(dw, u, &u->ranges_val, add_unit_range, &c) && !c.any)
			as_vec_push(&dw->open_unit, index);
		return;
	}
	if (u->has_low && u->high_val.form) {
		if (as_dw_is_addr_form(u->high_val.form))
			(void)as_dw_addr(u, &u->high_val, &hi);
		else if (__builtin_add_overflow(u->low_pc, u->high_val.u, &hi))
			hi = 0;
		as_dw_add_range(dw, index, u->low_pc, hi);
		/* Strict DWARF 2 has no word for code in several sections: these are the main
		 * ones. */
		if (u->version > 2)
			return;
	}
	if (!ranges_from_aranges(dw, index, u->off))
		as_vec_push(&dw->open_unit, index);
}

void as_dw_make_ranges(struct as_dw *dw)
{
	for (uint32_t i = 0; i < dw->file.v[0]->unit.n; i++)
		ranges_of_unit(dw, i);
	as_dw_sort_ranges(dw);
}

static int range_by_lo(const void *x, const void *y)
{
	const struct as_symrange *a = x, *b = y;

	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	return a->unit < b->unit ? -1 : a->unit > b->unit;
}

void as_dw_sort_ranges(struct as_dw *dw)
{
	uint32_t max = 0;
	size_t n = 0;

	if (dw->range.n)
		qsort(dw->range.v, dw->range.n, sizeof *dw->range.v, range_by_lo);
	as_vec_foreach (r, &dw->range) {
		struct as_symrange *last = n ? &dw->range.v[n - 1] : NULL;

		max = AS_MAX(max, r->hi);
		if (last && last->unit == r->unit && r->lo <= last->hi) {
			last->hi = AS_MAX(last->hi, r->hi);
			last->max_hi = max;
			continue;
		}
		r->max_hi = max;
		dw->range.v[n++] = *r;
	}
	dw->range.n = n;
}

static struct as_dw_file *add_file(struct as_dw *dw, const struct as_dw_sect *sec)
{
	struct as_dw_file *f = as_arena_alloc(&dw->arena, sizeof *f);

	for (int i = 0; i < AS_DW_SEC_COUNT_; i++) {
		f->sec[i] = sec[i];
		if (!sec[i].p) /* so that a reader over it is well-defined */
			f->sec[i] = (struct as_dw_sect){.p = (const uint8_t *)"", .n = 0};
	}
	f->idx = (uint16_t)dw->file.n;
	as_vec_push(&dw->file, f);
	return f;
}

struct as_dw_file *as_dw_add_split(struct as_dw *dw, const struct as_dw_sect *sec)
{
	if (dw->file.n >= AS_DW_MAX_FILES)
		return NULL;

	struct as_dw_file *f = add_file(dw, sec);

	f->split = true;
	dw->abbrevs_left += 4 * (uint64_t)sec[AS_DW_ABBREV].n;
	dw->ranges_left += sec[AS_DW_RNGLISTS].n + sec[AS_DW_INFO].n;
	dw->lines_left += 4 * (uint64_t)sec[AS_DW_LINE].n;
	return f;
}

struct as_dw *as_dw_new(const struct as_dw_input *in)
{
	struct as_dw *dw = as_xcalloc(1, sizeof *dw);

	dw->in = *in;
	if (in->text_hi - in->text_lo >= UINT32_MAX) {
		dw->in.text_hi = in->text_lo + UINT32_MAX - 1;
		as_dw_note(dw, "code beyond 4 GiB has no lines");
	}

	struct as_dw_file *f = add_file(dw, in->main), *sup = add_file(dw, in->sup);

	f->sup = sup->sec[AS_DW_INFO].n ? sup : NULL;
	/* Sound files read each table once and each range list once or twice. */
	dw->abbrevs_left =
		4 * (uint64_t)(f->sec[AS_DW_ABBREV].n + sup->sec[AS_DW_ABBREV].n) + 4096;
	dw->ranges_left = 4 * (uint64_t)(f->sec[AS_DW_RANGES].n + f->sec[AS_DW_RNGLISTS].n) +
			  f->sec[AS_DW_INFO].n + 4096;
	dw->lines_left = 4 * (uint64_t)(f->sec[AS_DW_LINE].n + sup->sec[AS_DW_LINE].n);
	as_dw_scan_units(dw, sup);
	as_dw_scan_units(dw, f);
	as_dw_make_ranges(dw);
	return dw;
}

static void free_file(struct as_dw_file *f)
{
	for (size_t i = 0; i < f->unit.n; i++)
		as_dw_scopes_free(f->unit.v[i]->scopes);
	as_vec_clear(&f->unit);
	for (size_t i = 0; i < f->abbrev_of.cap; i++) {
		if (f->abbrev_of.slot[i].key != UINT64_MAX)
			as_dw_abbrevs_free(
				(struct as_dw_abbrevs *)(uintptr_t)f->abbrev_of.slot[i].val);
	}
	for (size_t i = 0; i < f->lines_of.cap; i++) {
		if (f->lines_of.slot[i].key != UINT64_MAX)
			as_dw_lines_free(
				(struct as_dw_lines *)(uintptr_t)f->lines_of.slot[i].val);
	}
	as_map64_clear(&f->abbrev_of);
	as_map64_clear(&f->lines_of);
}

void as_dw_free(struct as_dw *dw)
{
	if (!dw)
		return;
	as_vec_foreach (f, &dw->file)
		free_file(*f);
	as_vec_clear(&dw->file);
	as_vec_clear(&dw->range);
	as_vec_clear(&dw->open_unit);
	as_vec_clear(&dw->arange);
	as_map64_clear(&dw->arange_of);
	as_arena_clear(&dw->arena);
	free(dw);
}

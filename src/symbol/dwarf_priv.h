/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The DWARF reader: section bytes in, a flat index per unit out (block_priv.h). It opens no
 * files; split units come through the loader callback. Sections stay valid until as_dw_free.
 *
 *	as_dw_new(&input)  ->  scans unit headers and root DIEs, makes the unit range table
 *	as_dw_block()      ->  decodes one unit: intervals, inline tree, line rows
 *
 * Everything is bounded: positions only move forward, nesting, origin chains and range
 * counts have limits, and a damaged unit costs that unit and one note. Offsets are 64-bit,
 * DWARF 2 to 5, both offset sizes, addresses of 4 or 8 bytes, little endian.
 */
#ifndef AS_SYMBOL_DWARF_PRIV_H
#define AS_SYMBOL_DWARF_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "symbol/block_priv.h"

#define AS_DW_MAX_DEPTH   2048  /* nesting of DIEs */
#define AS_DW_MAX_ORIGINS 16    /* abstract_origin/specification steps */
#define AS_DW_MAX_FILES   65535 /* split files of one module */
#define AS_DW_MAX_UNITS   (1u << 22)
#define AS_DW_MAX_NOTES   8 /* further ones are counted */
#define AS_DW_NOREF       UINT64_MAX

struct as_dw_sect {
	const uint8_t *p;
	size_t n;
};

enum as_dw_sec {
	AS_DW_INFO,
	AS_DW_ABBREV,
	AS_DW_STR,
	AS_DW_STR_OFFSETS,
	AS_DW_LINE,
	AS_DW_LINE_STR,
	AS_DW_ADDR,
	AS_DW_RANGES,
	AS_DW_RNGLISTS,
	AS_DW_ARANGES,
	AS_DW_CU_INDEX,
	AS_DW_SEC_COUNT_
};
/* ".debug_info", …; for split files ".dwo" follows the name (not for the index). */
extern const char *const as_dw_sec_name[AS_DW_SEC_COUNT_];

struct as_dw_val {
	uint16_t form;    /* 0: absent */
	uint64_t u;       /* the number, offset, index or address */
	const uint8_t *p; /* DW_FORM_string */
};

struct as_dw_attr {
	uint16_t name, form;
	int16_t fixed_bytes; /* -1: depends on the value */
	int64_t implicit;
};

enum as_dw_op_kind {
	AS_DW_OP_FIXED,
	AS_DW_OP_ULEB,
	AS_DW_OP_STRING,
	AS_DW_OP_BLOCK,
	AS_DW_OP_INDIRECT
};
struct as_dw_op {
	uint8_t kind; /* enum as_dw_op_kind */
	uint32_t n;   /* FIXED: bytes; BLOCK: width of the length, 0 for ULEB */
};

struct as_dw_abbrev {
	uint64_t code;
	uint32_t attr0, nattrs; /* in as_dw_abbrevs.attr */
	uint32_t op0, nops;     /* how to step over the values */
	uint16_t tag;
	bool children;
	bool has_pc; /* low_pc or ranges among the attributes */
};

struct as_dw_abbrevs {
	AS_VEC(struct as_dw_abbrev) ab; /* sorted by code; dense when ab.v[i].code == i + 1 */
	AS_VEC(struct as_dw_attr) attr;
	AS_VEC(struct as_dw_op) op;
	bool dense;
};

struct as_dw_file;
struct as_dw_lines;
struct as_dw_scopes;

struct as_dw_unit {
	struct as_dw_file *f;
	uint64_t off, end, die_off; /* in .debug_info: header, one past, root DIE */
	uint64_t abbrev_off;
	struct as_dw_abbrevs *abbrevs; /* NULL until needed */
	uint64_t str_offsets_base, rnglists_base, ranges_base;
	uint64_t addr_base;
	const struct as_dw_sect *addr, *ranges; /* of the skeleton's file for a split unit */
	uint64_t low_pc;                        /* base of the range lists */
	struct as_dw_val ranges_val, high_val;  /* of the root, as read */
	uint64_t line_off, line_base;           /* line_base: of a contribution in a package */
	uint64_t dwo_id;
	const char *name, *comp_dir, *dwo_name, *producer;
	struct as_dw_unit *skeleton; /* of a split unit */
	struct as_dw_unit *full;     /* of a skeleton, once found */
	struct as_dw_scopes *scopes; /* NULL until needed */
	struct as_dw_lines *lines;
	uint32_t lang;
	uint16_t version, tag;
	uint8_t addr_size, off_size, type;
	bool has_line, has_dwo_id, has_low, damaged, root_read, split_tried;
};

struct as_dw_file {
	struct as_dw_sect sec[AS_DW_SEC_COUNT_];
	struct as_dw_file *sup;           /* dwz common file */
	AS_VEC(struct as_dw_unit *) unit; /* by offset */
	uint16_t idx;                     /* in as_dw.file */
	bool split;
	struct as_map64 abbrev_of; /* offset and sizes -> struct as_dw_abbrevs * */
	struct as_map64 lines_of;  /* offset -> struct as_dw_lines * */
};

struct as_dw_arange {
	uint64_t unit_off, lo, hi;
};

struct as_dw;
/*
 * Sections of the split file of a skeleton; with u NULL those of the package beside the object.
 * False when there is none (told by the callee in the notes).
 */
typedef bool (*as_dw_split_fn)(void *ctx, const struct as_dw_unit *u,
			       struct as_dw_sect sec[AS_DW_SEC_COUNT_]);

struct as_dw_input {
	struct as_dw_sect main[AS_DW_SEC_COUNT_];
	struct as_dw_sect sup[AS_DW_SEC_COUNT_]; /* dwz common file, or empty */
	uint64_t text_lo, text_hi; /* ranges outside are dead code; hi - lo < 4 GiB */
	as_dw_split_fn split;      /* may be NULL */
	void *split_ctx;
	struct as_buf *notes; /* lines; may be NULL */
};

struct as_dw {
	struct as_dw_input in;
	struct as_arena arena;
	AS_VEC(struct as_dw_file *) file; /* 0 main, 1 the common file */
	AS_VEC(struct as_symrange) range; /* by lo once sorted */
	AS_VEC(uint32_t) open_unit;       /* units that tell no range */
	struct as_map64 arange_of;        /* .debug_info offset -> 1 + first entry in arange */
	AS_VEC(struct as_dw_arange) arange;
	bool aranges_read;
	struct as_dw_file *package; /* the .dwp, once opened */
	bool package_tried;
	uint64_t ranges_left, abbrevs_left,
		lines_left; /* budgets: damaged input may refer to one list often */
	size_t nnotes;
};

/* NULL: too many */
struct as_dw_file *as_dw_add_split(struct as_dw *dw, const struct as_dw_sect *sec);
struct as_dw *as_dw_new(const struct as_dw_input *in);
void as_dw_free(struct as_dw *dw);
void as_dw_note(struct as_dw *dw, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Says once that a unit is given up. */
void as_dw_damaged(struct as_dw *dw, struct as_dw_unit *u, const char *why);
bool as_dw_in_text(const struct as_dw *dw, uint64_t lo, uint64_t hi);

/* Inline readers for the hot loops; same contract as as_rd_*. */
static inline uint64_t as_dw_uleb(struct as_rd *r)
{
	if (r->p < r->end && *r->p < 0x80)
		return *r->p++;
	return as_rd_uleb(r);
}
static inline uint64_t as_dw_fixed(struct as_rd *r, unsigned n)
{
	uint64_t v = 0;

	if ((size_t)(r->end - r->p) < n) {
		r->bad = true;
		r->p = r->end;
		return 0;
	}
	switch (n) {
	case 1:
		v = *r->p;
		break;
	case 4:
		v = as_get_le32(r->p);
		break;
	case 8:
		v = as_get_le64(r->p);
		break;
	default:
		for (unsigned i = 0; i < n && i < 8; i++)
			v |= (uint64_t)r->p[i] << (8 * i);
	}
	r->p += n;
	return v;
}
static inline void as_dw_advance(struct as_rd *r, uint64_t n)
{
	if ((size_t)(r->end - r->p) < n) {
		r->bad = true;
		r->p = r->end;
	} else {
		r->p += n;
	}
}

/* dwarf_form.c */
int as_dw_form_bytes(uint16_t form, const struct as_dw_unit *u); /* -1: depends on the value */
void as_dw_form_skip(struct as_rd *r, const struct as_dw_unit *u, uint16_t form);
void as_dw_form_read(struct as_rd *r, const struct as_dw_unit *u, const struct as_dw_attr *at,
		     struct as_dw_val *ret);
const char *as_dw_str(const struct as_dw_unit *u, const struct as_dw_val *v); /* NULL: none */
bool as_dw_addr(const struct as_dw_unit *u, const struct as_dw_val *v, uint64_t *ret);
bool as_dw_is_addr_form(uint16_t form);
bool as_dw_addrx(const struct as_dw_unit *u, uint64_t index, uint64_t *ret);
/* File index << 48 | offset of the DIE; AS_DW_NOREF when it is no (supported) reference. */
uint64_t as_dw_ref(const struct as_dw_unit *u, const struct as_dw_val *v);
const char *as_dw_cstr_at(const struct as_dw_sect *s, uint64_t off);

/* dwarf_abbrev.c */
/* NULL: damaged */
struct as_dw_abbrevs *as_dw_abbrevs_get(struct as_dw *dw, struct as_dw_unit *u);
/* At least as far as the declaration of code; for the roots of units that are not decoded.
 * *ret_own is what the caller frees, NULL when the table is kept for other units. */
struct as_dw_abbrevs *as_dw_abbrevs_upto(struct as_dw *dw, struct as_dw_unit *u, uint64_t code,
					 struct as_dw_abbrevs **ret_own);
void as_dw_abbrevs_free(struct as_dw_abbrevs *t);
const struct as_dw_abbrev *as_dw_abbrev_find(const struct as_dw_abbrevs *t, uint64_t code);
void as_dw_die_skip(struct as_rd *r, const struct as_dw_unit *u, const struct as_dw_abbrevs *t,
		    const struct as_dw_abbrev *a);

/* dwarf_unit.c */
void as_dw_scan_units(struct as_dw *dw, struct as_dw_file *f);
/* The unit whose header is at off, added to f; NULL when the header is damaged. */
struct as_dw_unit *as_dw_unit_parse(struct as_dw *dw, struct as_dw_file *f, uint64_t off);
bool as_dw_read_root(struct as_dw *dw, struct as_dw_unit *u);
/* Ranges of all units of the main file; open_unit gets those that tell none. */
void as_dw_make_ranges(struct as_dw *dw);
void as_dw_add_range(struct as_dw *dw, uint32_t unit, uint64_t lo, uint64_t hi);
void as_dw_sort_ranges(struct as_dw *dw); /* after the last as_dw_add_range */
struct as_dw_unit *as_dw_unit_at(struct as_dw *dw, uint64_t ref, uint64_t *ret_off);

/* dwarf_ranges.c: calls fn for each range of the attribute; false when the list is damaged. */
typedef void (*as_dw_range_fn)(void *ctx, uint64_t lo, uint64_t hi);
bool as_dw_ranges(struct as_dw *dw, const struct as_dw_unit *u, const struct as_dw_val *v,
		  as_dw_range_fn fn, void *ctx);

/* dwarf_line.c */
struct as_dw_line_file {
	const char *name;
	uint64_t dir;
	const char *joined; /* NULL until asked for */
};
struct as_dw_row {
	uint64_t addr;
	uint32_t line, file;
	uint16_t column;
	bool end; /* one past the sequence */
};
struct as_dw_lines {
	AS_VEC(const char *) dir;
	AS_VEC(struct as_dw_line_file) file;
	AS_VEC(struct as_dw_row) row; /* as the program gave them; by sequences */
	uint64_t prog_off, end;       /* in .debug_line */
	uint16_t version;
	uint8_t addr_size, off_size, min_inst, max_ops, line_range, opcode_base;
	int8_t line_base;
	const uint8_t *oplen;
	const char *comp_dir;
	bool damaged;
};
/* header only; NULL: none */
struct as_dw_lines *as_dw_lines_get(struct as_dw *dw, struct as_dw_unit *u);
void as_dw_lines_decode(struct as_dw *dw, struct as_dw_unit *u, struct as_dw_lines *l);
/* The index as DW_AT_decl_file and DW_AT_call_file have it. NULL when there is no such file. */
const char *as_dw_line_path(struct as_dw *dw, struct as_dw_lines *l, uint64_t index);
void as_dw_lines_free(struct as_dw_lines *l);
/* Rows of all live sequences of the unit, sorted and flat, into b. */
void as_dw_lines_flatten(struct as_dw *dw, struct as_dw_lines *l, struct as_block *b);

/* dwarf_name.c */
void as_dw_func_resolve(struct as_dw *dw, uint64_t ref, struct as_block_func *ret);
void as_dw_scopes_free(struct as_dw_scopes *s);

/* dwarf_inline.c: NULL when the unit is damaged or has no code. unit: index in the main file. */
struct as_block *as_dw_block(struct as_dw *dw, uint32_t unit);

/* dwarf_split.c: the full unit of a skeleton; the skeleton itself when it is not split; NULL
 * when missing. */
struct as_dw_unit *as_dw_split_unit(struct as_dw *dw, struct as_dw_unit *skel);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The DWARF reader on sections written by hand: what compilers rarely emit, and limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "symbol/dwarf_const.h"
#include "symbol/dwarf_priv.h"

#define TEXT_LO 0x1000
#define TEXT_HI 0x9000

/* Sections under construction and the reader over them. */
struct bench {
	struct as_buf sec[AS_DW_SEC_COUNT_];
	struct as_buf notes;
	struct as_dw *dw;
};

static void le16(struct as_buf *b, unsigned v)
{
	as_buf_addc(b, (char)v);
	as_buf_addc(b, (char)(v >> 8));
}

/* Abbreviation: code, tag, children, then attribute and form pairs up to 0. */
static void abbrev(struct bench *t, unsigned code, unsigned tag, bool children, ...)
{
	struct as_buf *b = &t->sec[AS_DW_ABBREV];
	va_list ap;

	as_buf_uleb(b, code);
	as_buf_uleb(b, tag);
	as_buf_addc(b, children);
	va_start(ap, children);
	for (unsigned name; (name = va_arg(ap, unsigned));) {
		unsigned form = va_arg(ap, unsigned);

		as_buf_uleb(b, name);
		as_buf_uleb(b, form);
		if (form == DW_FORM_implicit_const)
			as_buf_sleb(b, va_arg(ap, int));
	}
	va_end(ap);
	le16(b, 0);
}

static size_t begin_unit(struct bench *t, unsigned version)
{
	struct as_buf *b = &t->sec[AS_DW_INFO];
	size_t at = b->len;

	as_buf_le32(b, 0);
	le16(b, version);
	if (version >= 5) {
		as_buf_addc(b, DW_UT_compile);
		as_buf_addc(b, 8);
		as_buf_le32(b, 0);
	} else {
		as_buf_le32(b, 0);
		as_buf_addc(b, 8);
	}
	return at;
}

static void put32(struct as_buf *b, size_t at, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		b->p[at + (size_t)i] = (char)(v >> (8 * i));
}

static void end_unit(struct bench *t, size_t at)
{
	put32(&t->sec[AS_DW_INFO], at, (uint32_t)(t->sec[AS_DW_INFO].len - at - 4));
}

static struct as_buf *info(struct bench *t)
{
	return &t->sec[AS_DW_INFO];
}

static void str(struct as_buf *b, const char *s)
{
	as_buf_add(b, s, strlen(s) + 1);
}

static void open_reader(struct bench *t)
{
	struct as_dw_input in = {.text_lo = TEXT_LO, .text_hi = TEXT_HI, .notes = &t->notes};

	for (int i = 0; i < AS_DW_SEC_COUNT_; i++)
		in.main[i] = (struct as_dw_sect){(const uint8_t *)t->sec[i].p, t->sec[i].len};
	t->dw = as_dw_new(&in);
}

static void close_reader(struct bench *t)
{
	as_dw_free(t->dw);
	for (int i = 0; i < AS_DW_SEC_COUNT_; i++)
		as_buf_clear(&t->sec[i]);
	as_buf_clear(&t->notes);
}

/* Name of the innermost function at svma; "" for none. */
static const char *name_at(struct as_block *b, uint64_t svma)
{
	uint32_t seg = as_block_find_seg(b, (uint32_t)(svma - TEXT_LO));
	struct as_block_func f;

	if (seg == AS_BLOCK_NONE || b->seg[seg].node == AS_BLOCK_NONE)
		return "";
	assert_true(as_block_get_func(b, b->node[b->seg[seg].node].func, &f));
	return f.name ? f.name : "?";
}

/* Root with the whole of the text, and a function with plain bounds. */
static void plain_abbrevs(struct bench *t)
{
	abbrev(t, 1, DW_TAG_compile_unit, true, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
	       DW_FORM_data4, 0);
	abbrev(t, 2, DW_TAG_subprogram, true, DW_AT_name, DW_FORM_string, DW_AT_low_pc,
	       DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0);
	abbrev(t, 3, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, DW_AT_low_pc,
	       DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0);
}

static void add_root(struct bench *t)
{
	as_buf_uleb(info(t), 1);
	as_buf_le64(info(t), TEXT_LO);
	as_buf_le32(info(t), TEXT_HI - TEXT_LO);
}

static void add_function(struct bench *t, unsigned code, const char *name, uint64_t lo,
			 uint32_t n)
{
	as_buf_uleb(info(t), code);
	str(info(t), name);
	as_buf_le64(info(t), lo);
	as_buf_le32(info(t), n);
}

static void the_last_entry_wins_where_ranges_overlap_and_the_outer_one_resumes(void **st)
{
	struct bench t = {0};
	struct as_block *b;
	size_t u;

	(void)st;
	plain_abbrevs(&t);
	u = begin_unit(&t, 4);
	add_root(&t);
	add_function(&t, 3, "outer", 0x2000, 0x100);
	add_function(&t, 3, "inner", 0x2040, 0x20);
	add_function(&t, 3, "beyond", 0x20f0, 0x20); /* sticks out of outer */
	add_function(&t, 3, "same", 0x3000, 0x10);
	add_function(&t, 3, "again", 0x3000, 0x10);
	add_function(&t, 3, "dead", 0, 0x10);
	add_function(&t, 3, "outside", TEXT_HI - 1, 0x10);
	as_buf_addc(info(&t), 0);
	end_unit(&t, u);
	open_reader(&t);
	b = as_dw_block(t.dw, 0);
	assert_string_equal(name_at(b, 0x1fff), "");
	assert_string_equal(name_at(b, 0x2000), "outer");
	assert_string_equal(name_at(b, 0x203f), "outer");
	assert_string_equal(name_at(b, 0x2040), "inner");
	assert_string_equal(name_at(b, 0x205f), "inner");
	assert_string_equal(name_at(b, 0x2060), "outer");
	assert_string_equal(name_at(b, 0x20f0), "beyond");
	assert_string_equal(name_at(b, 0x210f), "beyond");
	assert_string_equal(name_at(b, 0x2110), "");
	assert_string_equal(name_at(b, 0x3008), "again");
	assert_string_equal(name_at(b, TEXT_HI - 1), "");
	assert_string_equal(as_buf_str(&t.notes), "");
	as_block_free(b);
	close_reader(&t);
}

static void every_kind_of_range_list_entry_is_read(void **st)
{
	struct bench t = {0};
	struct as_buf *r = &t.sec[AS_DW_RNGLISTS];
	struct as_block *b;
	size_t u;

	(void)st;
	abbrev(&t, 1, DW_TAG_compile_unit, true, DW_AT_low_pc, DW_FORM_addr, DW_AT_addr_base,
	       DW_FORM_sec_offset, DW_AT_rnglists_base, DW_FORM_sec_offset, DW_AT_ranges,
	       DW_FORM_rnglistx, 0);
	abbrev(&t, 2, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, DW_AT_ranges,
	       DW_FORM_rnglistx, 0);
	u = begin_unit(&t, 5);
	as_buf_uleb(info(&t), 1);
	as_buf_le64(info(&t), 0x1100);
	as_buf_le32(info(&t), 8);
	as_buf_le32(info(&t), 12);
	as_buf_uleb(info(&t), 0);
	as_buf_uleb(info(&t), 2);
	str(info(&t), "f");
	as_buf_uleb(info(&t), 1);
	as_buf_addc(info(&t), 0);
	end_unit(&t, u);

	as_buf_fill(&t.sec[AS_DW_ADDR], 0, 8);
	as_buf_le64(&t.sec[AS_DW_ADDR], 0x2000);
	as_buf_le64(&t.sec[AS_DW_ADDR], 0x3000);
	as_buf_le64(&t.sec[AS_DW_ADDR], 0x3010);

	as_buf_fill(r, 0, 12); /* header; the offsets start here */
	as_buf_le32(r, 8);
	as_buf_le32(r, 8 + 18);
	as_buf_addc(r, DW_RLE_start_end);
	as_buf_le64(r, TEXT_LO);
	as_buf_le64(r, TEXT_HI);
	as_buf_addc(r, DW_RLE_end_of_list);
	as_buf_addc(r, DW_RLE_offset_pair); /* from the unit's base 0x1100 */
	as_buf_uleb(r, 0x10);
	as_buf_uleb(r, 0x20);
	as_buf_addc(r, DW_RLE_base_addressx);
	as_buf_uleb(r, 0);
	as_buf_addc(r, DW_RLE_offset_pair); /* 0x2000 */
	as_buf_uleb(r, 0x10);
	as_buf_uleb(r, 0x20);
	as_buf_addc(r, DW_RLE_startx_endx);
	as_buf_uleb(r, 1);
	as_buf_uleb(r, 2);
	as_buf_addc(r, DW_RLE_startx_length);
	as_buf_uleb(r, 2);
	as_buf_uleb(r, 0x10);
	as_buf_addc(r, DW_RLE_base_address);
	as_buf_le64(r, 0x4000);
	as_buf_addc(r, DW_RLE_offset_pair);
	as_buf_uleb(r, 0);
	as_buf_uleb(r, 1);
	as_buf_addc(r, DW_RLE_start_length);
	as_buf_le64(r, 0x5000);
	as_buf_uleb(r, 2);
	as_buf_addc(r, DW_RLE_end_of_list);

	open_reader(&t);
	assert_int_equal(t.dw->range.n, 1);
	b = as_dw_block(t.dw, 0);
	static const struct {
		uint64_t lo, hi;
	} want[] = {{0x1110, 0x1120},
		    {0x2010, 0x2020},
		    {0x3000, 0x3020},
		    {0x4000, 0x4001},
		    {0x5000, 0x5002}};
	assert_int_equal(b->nseg, 2 * AS_ARRAY_LEN(want));
	for (size_t i = 0; i < AS_ARRAY_LEN(want); i++) {
		assert_int_equal(b->seg[2 * i].lo, want[i].lo - TEXT_LO);
		assert_int_equal(b->seg[2 * i + 1].lo, want[i].hi - TEXT_LO);
		assert_int_equal(b->seg[2 * i + 1].node, AS_BLOCK_NONE);
	}
	assert_string_equal(as_buf_str(&t.notes), "");
	as_block_free(b);
	close_reader(&t);
}

static void base_selection_moves_version_4_ranges(void **st)
{
	struct bench t = {0};
	struct as_buf *r = &t.sec[AS_DW_RANGES];
	struct as_block *b;
	size_t u;

	(void)st;
	abbrev(&t, 1, DW_TAG_compile_unit, true, DW_AT_low_pc, DW_FORM_addr, DW_AT_ranges,
	       DW_FORM_sec_offset, 0);
	abbrev(&t, 2, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, DW_AT_ranges,
	       DW_FORM_sec_offset, 0);
	u = begin_unit(&t, 4);
	as_buf_uleb(info(&t), 1);
	as_buf_le64(info(&t), 0x1000);
	as_buf_le32(info(&t), 0);
	as_buf_uleb(info(&t), 2);
	str(info(&t), "f");
	as_buf_le32(info(&t), 0);
	as_buf_addc(info(&t), 0);
	end_unit(&t, u);
	static const uint64_t list[] = {0x10, 0x20, UINT64_MAX, 0x3000, 0x1, 0x2, 0, 0};
	for (size_t i = 0; i < AS_ARRAY_LEN(list); i++)
		as_buf_le64(r, list[i]);
	open_reader(&t);
	b = as_dw_block(t.dw, 0);
	assert_string_equal(name_at(b, 0x1010), "f");
	assert_string_equal(name_at(b, 0x1020), "");
	assert_string_equal(name_at(b, 0x3001), "f");
	assert_string_equal(name_at(b, 0x3002), "");
	assert_int_equal(t.dw->range.n, 2);
	as_block_free(b);
	close_reader(&t);
}

static void origins_that_go_in_circles_end(void **st)
{
	struct bench t = {0};
	struct as_block *b;
	size_t u, first;

	(void)st;
	plain_abbrevs(&t);
	abbrev(&t, 4, DW_TAG_subprogram, false, DW_AT_abstract_origin, DW_FORM_ref4,
	       DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0);
	u = begin_unit(&t, 4);
	add_root(&t);
	first = info(&t)->len - u;
	for (int i = 0; i < 2; i++) { /* each refers to the other */
		as_buf_uleb(info(&t), 4);
		as_buf_le32(info(&t), (uint32_t)(i ? first : first + 17));
		as_buf_le64(info(&t), 0x2000u + 0x100u * (unsigned)i);
		as_buf_le32(info(&t), 0x10);
	}
	as_buf_addc(info(&t), 0);
	end_unit(&t, u);
	open_reader(&t);
	b = as_dw_block(t.dw, 0);
	assert_string_equal(name_at(b, 0x2000), "?");
	assert_string_equal(name_at(b, 0x2100), "?");
	as_block_free(b);
	close_reader(&t);
}

static void nesting_beyond_the_limit_costs_the_unit_with_one_note(void **st)
{
	struct bench t = {0};
	struct as_block *b;
	size_t u;

	(void)st;
	plain_abbrevs(&t);
	u = begin_unit(&t, 4);
	add_root(&t);
	for (int i = 0; i < 3 * AS_DW_MAX_DEPTH; i++)
		add_function(&t, 2, "f", 0x2000, 0x10);
	end_unit(&t, u);
	u = begin_unit(&t, 4);
	add_root(&t);
	add_function(&t, 3, "good", 0x2000, 0x10);
	as_buf_addc(info(&t), 0);
	end_unit(&t, u);
	open_reader(&t);
	b = as_dw_block(t.dw, 0);
	assert_int_equal(b->nseg, 0);
	as_block_free(b);
	assert_string_equal(as_buf_str(&t.notes),
			    "unit 0x0 skipped: its entries are damaged\n");
	b = as_dw_block(t.dw, 1);
	assert_string_equal(name_at(b, 0x2000), "good");
	as_block_free(b);
	close_reader(&t);
}

static void a_range_list_used_without_end_is_cut_off(void **st)
{
	struct bench t = {0};
	struct as_buf *r = &t.sec[AS_DW_RANGES];
	struct as_block *b;
	size_t u;

	(void)st;
	plain_abbrevs(&t);
	abbrev(&t, 4, DW_TAG_subprogram, false, DW_AT_ranges, DW_FORM_sec_offset, 0);
	for (unsigned i = 0; i < 3000; i++) {
		as_buf_le64(r, 0x1000 + i * 2);
		as_buf_le64(r, 0x1001 + i * 2);
	}
	as_buf_fill(r, 0, 16);
	u = begin_unit(&t, 4);
	add_root(&t);
	for (int i = 0; i < 20000; i++) {
		as_buf_uleb(info(&t), 4);
		as_buf_le32(info(&t), 0);
	}
	as_buf_addc(info(&t), 0);
	end_unit(&t, u);
	open_reader(&t);
	b = as_dw_block(t.dw, 0); /* 60 million ranges if all were taken */
	assert_int_equal(t.dw->ranges_left, 0);
	as_block_free(b);
	close_reader(&t);
}

static void odd_forms_are_stepped_over(void **st)
{
	struct bench t = {0};
	struct as_block *b;
	size_t u;

	(void)st;
	plain_abbrevs(&t);
	abbrev(&t, 4, 0x34, false, 0x2201, DW_FORM_indirect, 0x2202, DW_FORM_implicit_const, -5,
	       0x2203, DW_FORM_data16, 0x2204, DW_FORM_block2, 0x2205, DW_FORM_exprloc, 0x2206,
	       DW_FORM_strx3, 0x2207, DW_FORM_sdata, 0x2208, DW_FORM_flag_present, 0x2209,
	       DW_FORM_loclistx, 0);
	u = begin_unit(&t, 5);
	add_root(&t);
	as_buf_uleb(info(&t), 4);
	as_buf_uleb(info(&t), DW_FORM_block1); /* behind the indirection */
	as_buf_addc(info(&t), 3);
	as_buf_fill(info(&t), 'x', 3);
	as_buf_fill(info(&t), 'y', 16);
	le16(info(&t), 2);
	as_buf_fill(info(&t), 'z', 2);
	as_buf_uleb(info(&t), 1);
	as_buf_fill(info(&t), 'e', 1);
	as_buf_fill(info(&t), 0, 3);
	as_buf_sleb(info(&t), -12345678);
	as_buf_uleb(info(&t), 300);
	add_function(&t, 3, "after", 0x2000, 0x10);
	as_buf_addc(info(&t), 0);
	end_unit(&t, u);
	open_reader(&t);
	b = as_dw_block(t.dw, 0);
	assert_string_equal(name_at(b, 0x2000), "after");
	assert_string_equal(as_buf_str(&t.notes), "");
	as_block_free(b);
	close_reader(&t);
}

static void an_unknown_form_costs_the_unit(void **st)
{
	struct bench t = {0};
	struct as_block *b;
	size_t u;

	(void)st;
	plain_abbrevs(&t);
	abbrev(&t, 4, 0x34, false, 0x2201, 0x7e, 0);
	u = begin_unit(&t, 4);
	add_root(&t);
	as_buf_uleb(info(&t), 4);
	as_buf_addc(info(&t), 0);
	end_unit(&t, u);
	open_reader(&t);
	b = as_dw_block(t.dw, 0);
	assert_int_equal(b->nseg, 0);
	assert_string_equal(as_buf_str(&t.notes),
			    "unit 0x0 skipped: its entries are damaged\n");
	as_block_free(b);
	close_reader(&t);
}

/* A version 4 program with one directory and two files. */
static void add_line_program(struct bench *t)
{
	struct as_buf *l = &t->sec[AS_DW_LINE];
	size_t header;

	as_buf_le32(l, 0);
	le16(l, 4);
	header = l->len;
	as_buf_le32(l, 0);
	as_buf_addc(l, 1);  /* min_inst */
	as_buf_addc(l, 1);  /* max_ops */
	as_buf_addc(l, 1);  /* default is_stmt */
	as_buf_addc(l, -3); /* line_base */
	as_buf_addc(l, 12); /* line_range */
	as_buf_addc(l, 13); /* opcode_base */
	as_buf_add(l, "\0\1\1\1\1\0\0\0\1\0\0\1", 12);
	str(l, "sub");
	as_buf_addc(l, 0);
	str(l, "a.c");
	as_buf_add(l, "\1\0\0", 3);
	str(l, "/abs/b.c");
	as_buf_add(l, "\0\0\0", 3);
	as_buf_addc(l, 0);
	put32(l, header, (uint32_t)(l->len - header - 4));

	as_buf_add(l, "\0\11\2", 3); /* set_address */
	as_buf_le64(l, 0x2000);
	as_buf_addc(l, DW_LNS_advance_line);
	as_buf_sleb(l, 9); /* line 10 */
	as_buf_addc(l, DW_LNS_set_column);
	as_buf_uleb(l, 7);
	as_buf_addc(l, DW_LNS_copy);                   /* 0x2000: 10 */
	as_buf_addc(l, (char)(13 + 12 * 4 + (2 + 3))); /* 0x2004: 12 */
	as_buf_addc(l, DW_LNS_const_add_pc);           /* + 20 */
	as_buf_addc(l, DW_LNS_copy);                   /* 0x2018: 12, merged */
	as_buf_addc(l, DW_LNS_fixed_advance_pc);
	le16(l, 0x10);
	as_buf_addc(l, DW_LNS_set_file);
	as_buf_uleb(l, 2);
	as_buf_addc(l, DW_LNS_copy); /* 0x2028: b.c:12 */
	as_buf_addc(l, DW_LNS_advance_pc);
	as_buf_uleb(l, 8);
	as_buf_add(l, "\0\1\1", 3); /* end at 0x2030 */
	put32(l, 0, (uint32_t)(l->len - 4));
}

static void check_row(struct as_block *b, uint64_t svma, const char *path, unsigned line)
{
	uint32_t i = as_block_find_row(b, (uint32_t)(svma - TEXT_LO));
	const char *p;

	assert_true(i != AS_BLOCK_NONE);
	p = as_block_path(b, as_block_file(b->row[i].filecol));
	if (!path) {
		assert_null(p);
		return;
	}
	assert_non_null(p);
	assert_string_equal(p, path);
	assert_int_equal(b->row[i].line, line);
	assert_int_equal(as_block_column(b->row[i].filecol), 7);
}

static void line_programs_run_all_opcodes_and_join_paths(void **st)
{
	struct bench t = {0};
	struct as_block *b;
	size_t u;

	(void)st;
	abbrev(&t, 1, DW_TAG_compile_unit, false, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
	       DW_FORM_data4, DW_AT_comp_dir, DW_FORM_string, DW_AT_stmt_list,
	       DW_FORM_sec_offset, 0);
	u = begin_unit(&t, 4);
	add_root(&t);
	str(info(&t), "/comp");
	as_buf_le32(info(&t), 0);
	end_unit(&t, u);
	add_line_program(&t);
	open_reader(&t);
	b = as_dw_block(t.dw, 0);
	assert_int_equal(b->nrow, 4);
	check_row(b, 0x2000, "/comp/sub/a.c", 10);
	check_row(b, 0x2003, "/comp/sub/a.c", 10);
	check_row(b, 0x2004, "/comp/sub/a.c", 12);
	check_row(b, 0x2027, "/comp/sub/a.c", 12);
	check_row(b, 0x2028, "/abs/b.c", 12);
	check_row(b, 0x202f, "/abs/b.c", 12);
	check_row(b, 0x2030, NULL, 0);
	as_block_free(b);
	close_reader(&t);
}

static void every_prefix_of_the_sections_is_survived(void **st)
{
	(void)st;
	for (size_t cut = 0; cut < 400; cut++) {
		struct bench t = {0};
		struct as_block *b;
		size_t u, left = cut;

		abbrev(&t, 1, DW_TAG_compile_unit, true, DW_AT_low_pc, DW_FORM_addr,
		       DW_AT_high_pc, DW_FORM_data4, DW_AT_comp_dir, DW_FORM_string,
		       DW_AT_stmt_list, DW_FORM_sec_offset, 0);
		abbrev(&t, 3, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string,
		       DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0);
		u = begin_unit(&t, 4);
		add_root(&t);
		str(info(&t), "/comp");
		as_buf_le32(info(&t), 0);
		add_function(&t, 3, "f", 0x2000, 0x30);
		as_buf_addc(info(&t), 0);
		end_unit(&t, u);
		add_line_program(&t);
		for (int i = 0; i < AS_DW_SEC_COUNT_; i++) {
			size_t n = t.sec[i].len;

			t.sec[i].len = AS_MIN(n, left);
			left -= t.sec[i].len;
		}
		open_reader(&t);
		b = t.dw->file.v[0]->unit.n ? as_dw_block(t.dw, 0) : NULL;
		if (b)
			(void)name_at(b, 0x2000);
		as_block_free(b);
		close_reader(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			the_last_entry_wins_where_ranges_overlap_and_the_outer_one_resumes),
		cmocka_unit_test(every_kind_of_range_list_entry_is_read),
		cmocka_unit_test(base_selection_moves_version_4_ranges),
		cmocka_unit_test(origins_that_go_in_circles_end),
		cmocka_unit_test(nesting_beyond_the_limit_costs_the_unit_with_one_note),
		cmocka_unit_test(a_range_list_used_without_end_is_cut_off),
		cmocka_unit_test(odd_forms_are_stepped_over),
		cmocka_unit_test(an_unknown_form_costs_the_unit),
		cmocka_unit_test(line_programs_run_all_opcodes_and_join_paths),
		cmocka_unit_test(every_prefix_of_the_sections_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The DWARF reader on arbitrary sections. Input: a byte of flags, then for every section of
 * as_dw_sec a 16-bit length, then the contents. Flag 1: the sections serve as dwz common file
 * too; flag 2: also as split file of every skeleton; flag 4: also as package.
 */
#include <stdint.h>
#include <stdlib.h>

#include "symbol/dwarf_priv.h"

struct input {
	struct as_dw_sect sec[AS_DW_SEC_COUNT_];
	uint8_t flags;
};

static bool split(void *ctx, const struct as_dw_unit *u,
		  struct as_dw_sect sec[AS_DW_SEC_COUNT_])
{
	const struct input *in = ctx;

	if (!(in->flags & (u ? 2 : 4)))
		return false;
	memcpy(sec, in->sec, sizeof in->sec);
	return true;
}

static void ask(struct as_block *b)
{
	struct as_block_func f;

	for (size_t i = 0; i < b->nseg; i++) {
		if (i && b->seg[i - 1].lo >= b->seg[i].lo)
			abort();
		if (b->seg[i].node != AS_BLOCK_NONE && b->seg[i].node >= b->nnode)
			abort();
		if (as_block_find_seg(b, b->seg[i].lo) != i)
			abort();
	}
	for (size_t i = 0; i < b->nnode; i++) {
		if (b->node[i].parent != AS_BLOCK_NONE && b->node[i].parent >= i)
			abort();
	}
	for (size_t i = 0; i < b->nrow; i++) {
		if (i && b->row[i - 1].lo >= b->row[i].lo)
			abort();
		(void)as_block_path(b, as_block_file(b->row[i].filecol));
	}
	for (uint32_t i = 0; i < b->nfunc && i < 256; i++)
		(void)as_block_get_func(b, i, &f);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct input in = {0};
	struct as_rd r = AS_RD(p, n);
	uint16_t len[AS_DW_SEC_COUNT_];
	struct as_buf notes = {0};
	struct as_dw_input di = {.text_lo = 0x1000,
				 .text_hi = 0x100000,
				 .split = split,
				 .split_ctx = &in,
				 .notes = &notes};
	struct as_dw *dw;

	in.flags = as_rd_u8(&r);
	for (int i = 0; i < AS_DW_SEC_COUNT_; i++)
		len[i] = as_rd_u16(&r);
	for (int i = 0; i < AS_DW_SEC_COUNT_ && !r.bad; i++) {
		size_t k = AS_MIN(len[i], as_rd_left(&r));

		in.sec[i] = (struct as_dw_sect){r.p, k};
		r.p += k;
	}
	memcpy(di.main, in.sec, sizeof di.main);
	if (in.flags & 1)
		memcpy(di.sup, in.sec, sizeof di.sup);
	dw = as_dw_new(&di);
	for (uint32_t i = 0; i < dw->file.v[0]->unit.n && i < 64; i++) {
		struct as_block *b = as_dw_block(dw, i);

		if (b)
			ask(b);
		as_block_free(b);
	}
	as_dw_free(dw);
	as_buf_clear(&notes);
	return 0;
}

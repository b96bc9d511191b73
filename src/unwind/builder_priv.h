/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rows in, blob out. Rows arrive in ascending order and go straight into the words of the open
 * segment, so that building needs little more memory than the table itself: 4 bytes a row, 4 a
 * page, 8 a rule.
 */
#ifndef AS_UNWIND_BUILDER_PRIV_H
#define AS_UNWIND_BUILDER_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/mem.h"
#include "unwind/table.h"

#define AS_UT_MAX_BLOB        (512u << 20)
#define AS_UT_SVMA_LIMIT      (1ull << 42) /* page numbers are 32 bits */
/* A stretch of pages without rules longer than this starts a new segment. */
#define AS_UT_MAX_EMPTY_PAGES 256

struct as_ut_segment {
	uint32_t first_page, npages, nwords;
	size_t off; /* in body */
};

struct as_ut_builder {
	AS_VEC(uint32_t) rows; /* words of the open segment, with rule numbers of the builder */
	AS_VEC(uint32_t) pages; /* index into rows of each page's first row */
	AS_VEC(struct as_rule) rules;
	AS_VEC(uint32_t) rule_seg;   /* last segment that used the rule, + 1 */
	AS_VEC(uint32_t) rule_local; /* its number there */
	AS_VEC(struct as_ut_segment) segs;
	uint32_t *hash;
	size_t hash_cap;
	uint64_t last_key;
	uint32_t last_key_rule;
	struct as_buf body;
	bool open;
	uint64_t first_page;
	uint32_t carry_rule, last_rule, nlocal;
	uint64_t last_pc; /* UINT64_MAX: no row to replace */
	uint64_t floor;   /* highest pc so far */
	uint64_t page_budget;
	size_t rows_total, rows_raw;
	void (*passed)(void *ctx); /* as in struct as_cfi_input */
	void *passed_ctx;
	bool full; /* a limit was hit: later rows are dropped */
};

void as_ut_builder_init(struct as_ut_builder *b, uint64_t page_budget);
void as_ut_builder_clear(struct as_ut_builder *b);
uint32_t as_ut_rule(struct as_ut_builder *b, uint32_t w0, int32_t w1);
/* rule is in force from pc on. A pc below the last one is ignored. */
void as_ut_row(struct as_ut_builder *b, uint64_t pc, uint32_t rule);
void as_ut_finish(struct as_ut_builder *b, enum as_arch arch, struct as_buf *out);

static inline uint32_t as_ut_w0(unsigned cfa, unsigned fp, int64_t fp_off)
{
	return cfa | fp << 8 | (uint32_t)(uint16_t)(int16_t)fp_off << 16;
}
static inline void as_ut_emit(struct as_ut_builder *b, uint64_t pc, uint32_t w0, int64_t w1)
{
	as_ut_row(b, pc, as_ut_rule(b, w0, (int32_t)w1));
}

#endif

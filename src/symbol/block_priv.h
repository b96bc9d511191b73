/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One decoded unit as flat arrays: what a look-up needs and what the disk cache keeps.
 *
 *	seg[i].lo <= a < seg[i + 1].lo  ->  seg[i].node is the innermost function at a
 *	node[i].parent < i, or NONE     ->  the callers it was inlined into
 *	row[i].lo <= a < row[i + 1].lo  ->  row[i] is the line of a (AS_BLOCK_NO_FILE: none)
 *
 * All addresses are svma - text_lo of the module, in 32 bits. Names and paths of a freshly
 * decoded block come from the reader on demand; those of a cached block are offsets into its
 * string pool. Everything read through the functions below is bounds-checked, since a cache
 * file is input.
 */
#ifndef AS_SYMBOL_BLOCK_PRIV_H
#define AS_SYMBOL_BLOCK_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/mem.h"

#define AS_BLOCK_NONE      UINT32_MAX
#define AS_BLOCK_FILE_BITS 20
#define AS_BLOCK_NO_FILE   ((1u << AS_BLOCK_FILE_BITS) - 1)
#define AS_BLOCK_MAX_COL   ((1u << (32 - AS_BLOCK_FILE_BITS)) - 1)

struct as_block_seg {
	uint32_t lo, node;
};
/* An inlined call: a = call line, b = call file and column, packed. A function: parent = NONE,
 * a = entry, b = aliases (NONE: not counted yet). */
struct as_block_node {
	uint32_t func, parent, a, b;
};
#define AS_BLOCK_INLINED 0x80000000u /* in func: the node is an inlined call */
struct as_block_row {
	uint32_t lo, line, filecol;
};
struct as_block_func {
	uint64_t ref;                           /* DIE, while the block hangs on the reader */
	const char *linkage, *name, *decl_file; /* NULL: unknown */
	const char *generic;                    /* as in struct as_symframe */
	uint32_t decl_line;
	bool resolved;
	bool plain; /* linkage is only the source name: DWARF has no linkage name */
};
struct as_block_disk_func {
	/* offsets into the pool, 0: none */
	uint32_t linkage, name, decl_file, generic;
	uint32_t decl_line, reserved;
};

/* Addresses that a unit claims; max_hi: of this and all earlier ranges. */
struct as_symrange {
	uint32_t lo, hi, max_hi, unit;
};
/* Units that claim rel, lowest first; returns how many (at most max). */
size_t as_symrange_find(const struct as_symrange *range, size_t n, uint32_t rel, uint32_t *ret,
			size_t max);

struct as_dw;
struct as_dw_lines;

struct as_block {
	struct as_block_seg *seg;
	struct as_block_node *node;
	struct as_block_row *row;
	size_t nseg, nnode, nrow, nfunc, nfile;
	/* fresh */
	struct as_dw *dw; /* NULL: cached */
	struct as_dw_lines *lines;
	struct as_block_func *func;
	bool incomplete; /* something was missing: do not keep on disk */
	uint32_t *root;  /* per node its function's node; NULL until ranges.c needs it */
	/* cached */
	const struct as_block_disk_func *disk_func;
	const uint32_t *disk_path;
	const char *pool; /* NUL-terminated */
	size_t npool;
};

static inline uint32_t as_block_pack(uint64_t file, uint64_t column)
{
	uint32_t f = file < AS_BLOCK_NO_FILE ? (uint32_t)file : AS_BLOCK_NO_FILE;
	uint32_t c = column <= AS_BLOCK_MAX_COL ? (uint32_t)column : 0;

	return f | c << AS_BLOCK_FILE_BITS;
}
static inline uint32_t as_block_file(uint32_t filecol)
{
	return filecol & AS_BLOCK_NO_FILE;
}
static inline uint32_t as_block_column(uint32_t filecol)
{
	return filecol >> AS_BLOCK_FILE_BITS;
}

void as_block_free(struct as_block *b); /* a fresh one; NULL is fine */
/* Index of the interval or row that holds rel; AS_BLOCK_NONE when before the first. */
uint32_t as_block_find_seg(const struct as_block *b, uint32_t rel);
uint32_t as_block_find_row(const struct as_block *b, uint32_t rel);
bool as_block_get_func(struct as_block *b, uint32_t func, struct as_block_func *ret);
const char *as_block_path(struct as_block *b, uint32_t file); /* NULL: unknown */
static inline bool as_block_is_inlined(const struct as_block_node *n)
{
	return n->func & AS_BLOCK_INLINED;
}

#endif

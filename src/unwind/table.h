/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * CFI -> compact unwind table (layout: abi/unwind_table.h), and the table's blob:
 *
 *	offset	size	what
 *	0	8	"ASUTAB1\n"
 *	8	4	arch (enum as_arch)
 *	12	4	number of segments
 *	16	8	total size in bytes
 *	24	4	CRC32C of everything after byte 32
 *	28	4	flags (0)
 *	32	16 * n	segment directory: first page, npages, byte offset from the blob's start, nwords
 *	…		segments, 8-aligned
 *
 * Pure: reads bytes, writes bytes, opens nothing. Damaged CFI costs the damaged entries, never more;
 * output is bounded by a constant times the input.
 *
 * Method: rows and rules as in the OTel and framehop designs (three registers, deduplicated rules),
 * pages of 1 KiB. What CFI gets wrong is mended here, so that every reader sees plain rows: root
 * functions without "RA undefined" (_start, __start_context, clone3), LLD's .plt without CFI,
 * functions without an FDE (prologue scan), signal trampolines without the 'S' augmentation.
 */
#ifndef AS_UNWIND_TABLE_H
#define AS_UNWIND_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/arch.h"
#include "abi/unwind_table.h"
#include "base/buf.h"
#include "base/err.h"

struct as_bytes {
	const uint8_t *p;
	size_t n;
};

/* An executable section: its code serves prologue analysis, PLT synthesis and root recognition. */
struct as_code_range {
	uint64_t svma;
	struct as_bytes code;
	bool plt; /* section name starts with ".plt" */
};

struct as_cfi_input {
	enum as_arch arch;
	struct as_bytes eh_frame; /* may be empty */
	uint64_t eh_frame_svma;
	/* found through PT_GNU_EH_FRAME only: length not trusted */
	bool eh_frame_terminated_by_zero;
	struct as_bytes debug_frame; /* may be empty; used for what eh_frame does not cover */
	uint64_t text_base_svma,
		data_base_svma; /* for DW_EH_PE_textrel/datarel; data = .got or hdr */
	const struct as_code_range *code;
	size_t ncode;
	uint64_t entry_svma; /* e_entry of executables and of ld.so, else 0 */
	/* Called for every 16 MiB of code that was read, so that a mapped file's pages can be
	 * given back; NULL: never. */
	void (*passed)(void *ctx);
	void *passed_ctx;
};

struct as_cfi_stats {
	size_t nfde, ncie, rows_raw, rows, rules, segments, table_bytes;
	size_t expr, other_reg, bad_entries, synthesised;
	uint64_t covered_bytes; /* code bytes that have a rule */
};

/* Appends a blob to out. stats may be NULL. AS_E_FORMAT when there is nothing usable. */
int as_utable_compile(const struct as_cfi_input *in, struct as_buf *out,
		      struct as_cfi_stats *stats, struct as_error *err);

/* A view of a blob owned by the caller (8-aligned memory). */
struct as_utable {
	const uint8_t *blob;
	size_t size;
	enum as_arch arch;
	uint32_t nsegs;
};
/* Checks header, CRC and every offset, so that lookups need no further checks. */
int as_utable_open(const void *blob, size_t size, struct as_utable *ret, struct as_error *err);

struct as_rule {
	uint32_t w0;
	int32_t w1;
};
/* The rule in force at svma. False when no page of the table holds svma. About 35 ns on a 4 MiB
 * table. */
bool as_utable_find(const struct as_utable *t, uint64_t svma, struct as_rule *ret);

/* Function extents from FDEs, sorted by start, for stripped binaries: [start, end) pairs appended. */
struct as_extent {
	uint64_t start_svma, end_svma;
};
int as_cfi_extents(const struct as_cfi_input *in, struct as_extent **ret, size_t *ret_n,
		   struct as_error *err);

#endif

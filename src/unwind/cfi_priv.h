/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Call frame information, read from untrusted bytes: entries of .eh_frame/.debug_frame, and the
 * CFA program of one function as a sequence of rows.
 *
 *	as_cfi_begin(&run, &fde);
 *	while (as_cfi_next(&run))
 *		row [run.row_start, run.row_end) has the rules run.cur
 *
 * One interpreter serves two readers: the table compiler follows few registers (a slot map
 * sends the others to a slot nobody reads), the slow way of the unwinder follows all.
 * Everything borrowed from as_cfi_input must outlive the run. Nothing here allocates but
 * as_cfi_index_build.
 */
#ifndef AS_UNWIND_CFI_PRIV_H
#define AS_UNWIND_CFI_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "unwind/table.h"

#define AS_CFI_MAX_SLOTS      37 /* CFA + registers 0..34 + one for what nobody asked for */
#define AS_CFI_REMEMBER_DEPTH 64
#define AS_CFI_SVMA_LIMIT     (1ull << 42) /* what the table can hold */

struct as_cfi_section {
	const uint8_t *p;
	size_t n;
	uint64_t svma;
	bool eh;        /* .eh_frame, else .debug_frame */
	bool zero_ends; /* a zero length ends the section, else it is skipped */
	uint64_t text_base, data_base;
};

struct as_cie {
	size_t off; /* in its section */
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_reg;
	uint8_t fde_enc, addr_size;
	bool signal, augmented;
	const uint8_t *insn, *insn_end;
};

struct as_fde {
	uint64_t start_svma, end_svma;
	const uint8_t *insn, *insn_end;
	struct as_cie cie;
	const struct as_cfi_section *sec;
};

/* The sections of an input: [0] .eh_frame, [1] .debug_frame; n == 0 where there is none. */
void as_cfi_sections(const struct as_cfi_input *in, struct as_cfi_section sec[2]);

enum as_cfi_entry { AS_CFI_END, AS_CFI_CIE, AS_CFI_FDE, AS_CFI_BAD };
/*
 * The entry at *off; *off moves to the next one. For an FDE ret_cie_off and the bytes after the
 * CIE pointer are returned, for the caller to parse with the CIE it has at hand.
 */
enum as_cfi_entry as_cfi_entry_next(const struct as_cfi_section *sec, size_t *off,
				    size_t *ret_cie_off, struct as_rd *ret_body);
bool as_cfi_parse_cie(const struct as_cfi_section *sec, size_t off, struct as_cie *ret);
/* Fills ret but for its cie, which the caller sets. */
bool as_cfi_parse_fde(const struct as_cfi_section *sec, const struct as_cie *cie,
		      struct as_rd body, struct as_fde *ret);
/* The FDE at off of its section, with its CIE. */
bool as_cfi_load_fde(const struct as_cfi_section *sec, size_t off, struct as_fde *ret);

/* All FDEs, sorted by start, starts distinct; .debug_frame only where .eh_frame says nothing. */
struct as_fde_ref {
	uint64_t start_svma, end_svma;
	uint32_t insn_off, insn_len; /* the CFA program, in the section */
	uint32_t cie;                /* index into cies */
	uint32_t off;                /* of the entry, in the section */
	bool debug_frame;
};
struct as_cfi_index {
	struct as_cfi_section sec[2];
	struct as_fde_ref *fde;
	size_t nfde;
	struct as_cie *cie;
	size_t ncie, bad_entries;
};
int as_cfi_index_build(const struct as_cfi_input *in, struct as_cfi_index *ret,
		       struct as_error *err);
void as_cfi_index_clear(struct as_cfi_index *x);
/*
 * The FDE whose [start, end) holds svma: by index, else by reading through the sections. The
 * index gives a place only; what is there is parsed again from sec, so that an index older than
 * the bytes misses and never misleads.
 */
bool as_cfi_index_find(const struct as_cfi_index *x, const struct as_cfi_section sec[2],
		       uint64_t svma, struct as_fde *ret);
bool as_cfi_scan_find(const struct as_cfi_section sec[2], uint64_t svma, struct as_fde *ret);

enum as_cfi_kind {
	AS_CFI_UNSET = 0, /* not mentioned: same value for preserved registers */
	AS_CFI_SAME,
	AS_CFI_UNDEF,
	AS_CFI_OFFSET,     /* at CFA + off */
	AS_CFI_VAL_OFFSET, /* is CFA + off */
	AS_CFI_REG,        /* in another register (as the CFA's rule: register + off) */
	AS_CFI_EXPR,       /* at the address an expression yields (CFA's rule: its value) */
	AS_CFI_VAL_EXPR,
};
struct as_cfi_rule {
	uint8_t kind;
	uint8_t reg;
	uint32_t len;
	union {
		int64_t off;
		const uint8_t *expr;
	};
};
struct as_cfi_rows {
	struct as_cfi_rule slot[AS_CFI_MAX_SLOTS]; /* [0] is the CFA */
};

struct as_cfi_run {
	/* set by the owner once */
	const uint8_t *slot_of; /* register < 64 -> slot >= 1 */
	unsigned nslots;        /* the last slot takes what nobody asked for */
	/* the row */
	uint64_t row_start, row_end;
	struct as_cfi_rows cur;
	bool bad; /* the program stopped making sense at row_start */
	/* private */
	const struct as_cfi_section *sec;
	const struct as_cie *cie;
	struct as_cie init_cie;
	bool init_valid;
	uint64_t end, next;
	struct as_rd rd;
	bool done;
	unsigned depth;
	struct as_cfi_rows init, stack[AS_CFI_REMEMBER_DEPTH];
};
void as_cfi_run_init(struct as_cfi_run *run, const uint8_t slot_of[64], unsigned nslots);
/* fde and its section must stay until the run ends. */
void as_cfi_begin(struct as_cfi_run *run, const struct as_fde *fde);
bool as_cfi_next(struct as_cfi_run *run);
/* Slot maps: every register to its own slot (reg + 1); AS_CFI_MAX_SLOTS slots. */
extern const uint8_t as_cfi_all_slots[64];

#endif

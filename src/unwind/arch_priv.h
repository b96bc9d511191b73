/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What differs between architectures: register numbers, the signal frame's layout, and reading
 * machine code where CFI is missing or wrong. One constant table each, picked at run time,
 * since a session may come from another machine.
 */
#ifndef AS_UNWIND_ARCH_PRIV_H
#define AS_UNWIND_ARCH_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/arch.h"
#include "unwind/table.h"

/* Takes rows while code is read; pc ascending. */
struct as_ut_builder;

struct as_uarch {
	enum as_arch arch;
	uint8_t pc, sp, fp;
	uint8_t ra; /* the register that holds the return address (x86-64: the column) */
	bool ra_in_register;    /* calls put the return address into a register */
	uint64_t preserved;     /* registers a call keeps */
	uint64_t address_mask;  /* what of a return address is address (aarch64: no PAC bits) */
	uint16_t ucontext_off;  /* first saved register above sp in a signal trampoline */
	uint8_t ucontext_count; /* words saved there */
	const int8_t *ucontext_regs; /* DWARF number of each, -1: ignored */

	bool (*after_call)(const uint8_t *code, size_t n);
	/*
	 * A leaf without CFI stopped where the frame is not yet or no longer built: how many bytes
	 * above sp its return address lies (ra_in_register: 0 means still there), -1: cannot be
	 * told. The 16 bytes of code are those around pc, which is at code + 8.
	 */
	int (*bare_leaf)(const uint8_t *code);
	/* Code at a function's start, n bytes. */
	bool (*is_context_start)(const uint8_t *code, size_t n);
	bool (*is_sigreturn)(const uint8_t *code, size_t n);
	/* Length of _start when it has no CFI: END is in force that far. */
	size_t (*entry_length)(const uint8_t *code, size_t n);
	/* Rows for code without CFI: [svma, svma + n). */
	void (*scan)(struct as_ut_builder *b, uint64_t svma, const uint8_t *code, size_t n);
	/* Rows for a PLT section without CFI; code is the part from svma, section its start. */
	void (*plt)(struct as_ut_builder *b, uint64_t svma, uint64_t section_svma,
		    struct as_bytes section, size_t n);
};

extern const struct as_uarch as_uarch_x86_64, as_uarch_aarch64;

static inline const struct as_uarch *as_uarch_get(enum as_arch arch)
{
	switch (arch) {
	case AS_ARCH_X86_64:
		return &as_uarch_x86_64;
	case AS_ARCH_AARCH64:
		return &as_uarch_aarch64;
	default:
		return NULL;
	}
}

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Inside of the checks of binaries: functions of a file, and what their instructions say.
 *
 * Functions are sorted by address, apart, and inside one executable section or segment.
 */
#ifndef AS_DOCTOR_BINARY_PRIV_H
#define AS_DOCTOR_BINARY_PRIV_H

#include "doctor/binary.h"
#include "symbol/symbol.h"
#include "unwind/table.h"

struct as_function {
	uint64_t svma, size_bytes;
	const char *name; /* linkage; NULL: from unwind tables */
};

struct as_binary {
	struct as_elf *elf;
	struct as_symmod *symbols;  /* NULL: the quick look */
	struct as_code_range *code; /* executable sections but .plt, .init, .fini */
	size_t ncode;
	struct as_extent *fde;
	size_t nfde;
	AS_VEC(struct as_function) function;
	struct as_arena names;
};

/* binary_functions.c */
int as_binary_open(const char *path, struct as_binary *ret, struct as_error *err);
void as_binary_close(struct as_binary *b);
void as_binary_code(struct as_binary *b); /* fills code */
void as_binary_fdes(struct as_binary *b); /* fills fde */
size_t as_binary_eh_frame_bytes(const struct as_binary *b);
void as_binary_functions(struct as_binary *b); /* all of them, from symbols or FDEs */
/* About max functions from all over .symtab (or .dynsym), without reading the rest of it. */
void as_binary_some_functions(struct as_binary *b, size_t max);
/* The program's own, by its name: not std, not the C start files. NULL: not known, true. */
bool as_binary_is_own(const char *linkage);

/* binary_code.c */
struct as_code_count {
	unsigned insns, stack_moves, saves, wide; /* saves: pushes of r12 … r15; wide: (E)VEX */
	bool frame_pointer, framed;               /* framed: calls, pushes or moves rsp */
	uint64_t frame_bytes;                     /* as far as the first instructions tell */
};
struct as_disasm;
void as_code_count(struct as_disasm *d, const uint8_t *p, size_t n, uint64_t svma,
		   unsigned max_insns, struct as_code_count *ret);
bool as_code_unoptimised(const struct as_code_count *c);
void as_binary_judge_code(struct as_binary *b, struct as_binary_facts *f);
void as_binary_big_frames(struct as_binary *b, struct as_binary_facts *f);
void as_binary_unwind_gaps(struct as_binary *b, struct as_binary_facts *f);

/* binary_debug.c */
void as_binary_debug(struct as_binary *b, struct as_binary_facts *f);
void as_binary_debug_share(struct as_binary *b,
			   struct as_binary_facts *f); /* needs functions */

/* binary_linked.c: notes, dynamic section, strings */
void as_binary_linked(struct as_binary *b, struct as_binary_facts *f);

#endif

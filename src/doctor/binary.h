/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a program is made of, decided from its file: was it optimised, what does its debug
 * information tell, can its stacks be unwound, what is linked in.
 *
 *	struct as_binary_facts f;
 *	r = as_binary_facts_read(path, &f, err);
 *	as_binary_findings(&f, profile, &found);	// doctor.h
 *	as_binary_facts_clear(&f);
 *
 * Optimised or not is read off the instructions of functions, not off names: compilers that do not
 * optimise keep every value in the stack frame and nothing in the registers a callee has to save
 * (r12 … r15). A function of twelve and more instructions of which a fifth are moves to or from its
 * frame, and that saves none of these registers, counts as unoptimised. Measured over rustc
 * 1.95 (-C opt-level 0 1 2 3 s), gcc 12 and clang 14 (-O0 … -O3, -Os, -Og; C and C++): 0.55 … 1 of the
 * program's own functions with optimisation off, at most 0.04 of those of any other build. The
 * precompiled parts of std are always optimised, so own functions are judged by their crate's
 * name where names are there; where too few have one the functions without a name decide.
 * x86-64 only; AS_OPTIMISED_UNKNOWN elsewhere, and where there is too little code to tell.
 *
 * Bounded: functions are sampled, sections are searched once. Cost: 30 ms for a program of 5 MB,
 * 0.5 s for one of 150 MB. Any file is safe: damage costs what is damaged.
 */
#ifndef AS_DOCTOR_BINARY_H
#define AS_DOCTOR_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/arch.h"
#include "base/err.h"
#include "base/mem.h"
#include "elf/elf.h"

enum as_optimised {
	AS_OPTIMISED_UNKNOWN,
	AS_OPTIMISED_NO,
	AS_OPTIMISED_PARTLY, /* some of its own functions are not */
	AS_OPTIMISED_YES,
};
enum as_debug_level {
	AS_DEBUG_NONE,  /* none of the program's own code has lines */
	AS_DEBUG_LINES, /* line tables: functions, lines, inlined calls */
	AS_DEBUG_FULL,  /* variables and types too */
};
enum as_libc { AS_LIBC_NONE, AS_LIBC_GLIBC, AS_LIBC_MUSL, AS_LIBC_OTHER };

#define AS_BINARY_FRAMES     5
#define AS_BINARY_BIG_FRAME  (64u << 10)
#define AS_BINARY_MAX_NEEDED 64

struct as_big_frame {
	char *name; /* linkage name, or the address */
	uint64_t bytes;
};

struct as_runtime { /* "tokio" "1.38.0" */
	const char *name;
	char version[24]; /* "": unknown */
};

struct as_binary_facts {
	char *path;
	enum as_arch arch;
	uint64_t size_bytes, text_bytes;
	bool rust, go, library; /* library: a shared object that is no program */

	/* linking */
	bool is_static, pie;
	enum as_libc libc;
	char *needed[AS_BINARY_MAX_NEEDED]; /* DT_NEEDED */
	size_t nneeded;
	struct as_build_id build_id;

	/* names */
	bool symtab; /* .symtab is there, here or in the debug file */
	bool own_symtab;
	size_t names_legacy, names_v0, names_cxx; /* of functions */

	/* debug information */
	enum as_debug_level debug;
	unsigned dwarf_version; /* of most own units; 0 none */
	bool debug_std_only;    /* only the precompiled standard library has some */
	char *debug_file;       /* separate file it was found in; NULL none */
	bool debuglink;         /* names a separate file */
	size_t units, own_units, split_units, split_missing;
	char *split_example; /* a missing .dwo */
	double debug_share;  /* own functions that have lines; < 0: no names to sample by */

	/* how it was compiled */
	char *rustc, *gcc, *clang, *linker; /* versions as they state them; NULL not seen */
	char *flags;            /* gcc's -O and -m options as DW_AT_producer states */
	unsigned codegen_units; /* of the program's own crate; 0 unknown */
	bool lto_known, lto;
	bool debug_assertions, overflow_checks;

	/* from the code */
	enum as_optimised optimised;
	size_t judged_own, unopt_own; /* functions */
	size_t judged_unnamed, unopt_unnamed;
	bool judged_by_name; /* own functions decided; else those without a name */
	char *unopt_example; /* linkage name */
	double stack_share;  /* moves to and from the frame per instruction, own functions */
	double own_fp_share; /* the same of own functions: std has them since 1.80 */
	double fp_share;     /* bytes of functions that keep a frame pointer; < 0 unknown */
	double avx_share;    /* own functions with VEX or EVEX instructions; < 0 unknown */
	struct as_big_frame frame[AS_BINARY_FRAMES]; /* largest first */
	size_t nframes, nbig;

	/* unwind tables; bytes without padding */
	uint64_t without_fde_bytes;
	size_t without_fde_places;
	char *without_fde_example;
	bool has_fdes, main_without_fde;

	/* what is linked in */
	const char *allocator; /* "jemalloc", "mimalloc", …; NULL: that of the C library */
	struct as_runtime runtime[4];
	size_t nruntimes;
};

int as_binary_facts_read(const char *path, struct as_binary_facts *ret, struct as_error *err);
void as_binary_facts_clear(struct as_binary_facts *f);

/*
 * Optimised or not, from a sample small enough to be made before every recording: at most 5 ms, any
 * size. AS_OPTIMISED_UNKNOWN for what is no program, cannot be read or is too large to sample by
 * name.
 */
enum as_optimised as_binary_optimised(const char *path);

#endif

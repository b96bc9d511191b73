/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Address -> functions, lines and inline chains, for one module at a time.
 *
 *	struct as_symmod *m;
 *	r = as_symmod_open(&spec, &m, err);
 *	as_symmod_resolve(m, svmas, n, on_chain, ctx);	// calls back once per address
 *	as_symmod_close(m);
 *
 * Sources in order: the disk cache (index of this build-id), DWARF, .symtab/.dynsym bounded by
 * size or FDE, mini debug info, FDE extents ("module+0x1234" functions). A name is used only
 * inside its extent: no nearest-symbol guessing. Strings live until close. Thread rule: one
 * module, one thread.
 *
 * Cost (46 MB Rust binary): 0.1 s and 50 MB for any number of addresses without an index, 10 ms
 * with one. Close writes the index, so that the next session has it.
 */
#ifndef AS_SYMBOL_SYMBOL_H
#define AS_SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "elf/elf.h"

struct as_symframe {
	const char *linkage; /* mangled name, or the plain one; NULL: unknown */
	const char *name; /* source name when there is no linkage name; else same as linkage */
	/* Last component with type parameters ("push<u8, alloc::alloc::Global>"), where the
	 * linkage name does not tell them (rustc's legacy mangling) and debug information does;
	 * else NULL */
	const char *generic;
	const char *file; /* path as compiled, comp_dir joined; NULL: unknown */
	uint32_t line,
		column; /* of the pc in this frame: for outer frames the call site; 0 unknown */
	const char *decl_file; /* where the function is declared; NULL unknown */
	uint32_t decl_line;
	uint64_t func_svma; /* entry of the physical function; same for all frames of a chain */
	uint32_t aliases;   /* further names at the same address (ICF) */
	bool inlined;       /* this frame was inlined into the next one */
	bool line_from_call; /* line 0 in the line table: repaired from the nearest call site */
	bool synthetic;      /* name made from an FDE extent */
};

enum as_symsource {
	AS_SYM_NONE,
	AS_SYM_DWARF,
	AS_SYM_SYMTAB,
	AS_SYM_DYNSYM,
	AS_SYM_MINIDEBUG,
	AS_SYM_EXTENT
};

struct as_symchain {
	const struct as_symframe
		*frames; /* innermost first; n >= 1 except for unknown addresses */
	size_t n;
	enum as_symsource source;
};

struct as_symmod_spec {
	int fd;            /* the file that really ran (pinned), dup'ed; -1: use image */
	const void *image; /* for the vdso; copied */
	size_t image_size;
	const char *path;            /* as the target saw it: for messages, debug files, dwp */
	const char *root;            /* /proc/PID/root prefix, or NULL */
	struct as_build_id expected; /* len 0: not checked; else a mismatch is refused */
	const char *cache_dir;       /* NULL: no disk cache */
	/* FDE extents (unwind/table.h), for stripped code; may be NULL */
	const struct as_extent *extents;
	size_t nextents;
	bool no_inlines;
};

struct as_symmod;
int as_symmod_open(const struct as_symmod_spec *spec, struct as_symmod **ret,
		   struct as_error *err);
void as_symmod_close(struct as_symmod *m);

typedef void (*as_symchain_fn)(void *ctx, size_t index, uint64_t svma,
			       const struct as_symchain *chain);
/* Calls fn once per address, in any order; chain pointers are valid during the call only,
 * strings until close. Reads only the units that hold one of the addresses. */
void as_symmod_resolve(struct as_symmod *m, const uint64_t *svmas, size_t n, as_symchain_fn fn,
		       void *ctx);

/* What a reader should know: "debug file refused: …", "unit 0x… skipped: …", "no line tables". */
const char *as_symmod_notes(const struct as_symmod *m); /* lines, "" when all is well */
bool as_symmod_has_lines(const struct as_symmod *m);
bool as_symmod_has_inlines(const struct as_symmod *m);

#endif

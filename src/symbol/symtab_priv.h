/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Index of the function symbols of one module: what symbol.c falls back to where there is no
 * DWARF.
 *
 *	struct as_symtab_spec spec = {.elf = e, .debug = dbg, .module = "libfoo.so",
 *				      .extents = ext, .nextents = n};
 *	as_symtab_build(&spec, &t, err);
 *	if (as_symtab_find(t, svma, &hit))
 *		… hit.name (linkage name), hit.start, hit.aliases, hit.source …
 *	as_symtab_free(t);
 *
 * A symbol covers [svma, svma + size), or when its size is unknown (assembly) the rest of the FDE
 * extent it lies in. Without one it ends at the next symbol, extent or section end, provided that
 * the tables name local functions, too; else (stripped objects) it covers only its own address.
 * Untyped labels are functions where an extent begins, or outside of all extents in sections of
 * code; local ones of those only when no function goes before them.
 * Where ranges nest the one that starts last wins; a symbol without size never hides one with a
 * size. Code that no symbol covers but an extent does gets a synthetic name "module+0x1234"
 * (start of the extent).
 *
 * Stubs of the PLT are named after what they lead to (plt_priv.h).
 *
 * Of several names at one address the choice is: function over untyped label, plain over IFUNC,
 * global over weak over local, shortest, first in strcmp order. The others are counted and can
 * be listed.
 *
 * Names belong to the objects, which must stay open as long as the table; synthetic ones and
 * those of stubs to the table. Names are linkage names with their suffixes: as_demangle takes
 * those off and tells `.cold`. Memory: 40 bytes per symbol. Thread rule: one thread at a time
 * (look-ups make synthetic names).
 */
#ifndef AS_SYMBOL_SYMTAB_PRIV_H
#define AS_SYMBOL_SYMTAB_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "elf/elf.h"
#include "symbol/symbol.h"
#include "unwind/table.h"

struct as_symtab;

struct as_symtab_spec {
	struct as_elf *elf;   /* the module itself: its segments say what is code */
	struct as_elf *debug; /* its debug file, which has the fuller .symtab; or NULL */
	const char *module;   /* for synthetic names: file name without its directories */
	const struct as_extent *extents; /* sorted by start; copied; may be NULL */
	size_t nextents;
};

struct as_symtab_hit {
	const char *name;
	uint64_t start, size_bytes; /* size of the covered range */
	uint32_t aliases;           /* further names at start */
	enum as_symsource source;
	bool synthetic;
	bool cold; /* the name ends in .cold: outlined unlikely part of the function it names */
};

/* Damaged symbol tables give fewer symbols, not a failure. */
int as_symtab_build(const struct as_symtab_spec *spec, struct as_symtab **ret,
		    struct as_error *err);
void as_symtab_free(struct as_symtab *t);
bool as_symtab_find(struct as_symtab *t, uint64_t svma, struct as_symtab_hit *ret);
/* The parts with other names of the function that hit stands for: "f.cold" for "f" and the other way
 * round; none when one of these names is there twice. Returns how many, at most max. */
struct as_sympart;
size_t as_symtab_other_parts(struct as_symtab *t, const struct as_symtab_hit *hit,
			     struct as_sympart *ret, size_t max);
/* All names at exactly this address, the chosen one first. */
void as_symtab_each_alias(const struct as_symtab *t, uint64_t start_svma,
			  void (*fn)(void *ctx, const char *name), void *ctx);
size_t as_symtab_count(const struct as_symtab *t); /* distinct addresses */

#endif

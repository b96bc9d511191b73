/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inside of a symbol module: what symbol.c, chain.c, dwarf_load.c and index.c share. */
#ifndef AS_SYMBOL_SYMMOD_PRIV_H
#define AS_SYMBOL_SYMMOD_PRIV_H

#include "base/buf.h"
#include "base/mem.h"
#include "elf/elf.h"
#include "symbol/block_priv.h"
#include "symbol/symbol.h"
#include "symbol/symtab_priv.h"
#include "unwind/table.h"

struct as_symindex; /* index.c: the disk cache of this module */

struct as_symdatum {
	uint64_t svma, size_bytes;
	const char *name;
};

struct as_symmod {
	struct as_elf *elf;
	struct as_elf *dbg;            /* debug file; NULL: elf itself, or none */
	struct as_elf *alt;            /* dwz common file */
	AS_VEC(struct as_elf *) split; /* .dwp and .dwo files, open until close */
	char *path, *root, *cache_dir;
	const char *module;     /* path without its directories */
	struct as_build_id key; /* build-id, or the content id where there is none */
	uint64_t text_lo, text_hi;
	struct as_extent *extents;
	size_t nextents;
	bool no_inlines;

	struct as_dw *dw; /* NULL: not loaded, or no DWARF */
	bool debug_tried, dwarf_tried, open_done;
	const struct as_symrange *range; /* of the index or of dw */
	size_t nrange;
	struct as_block **block; /* per unit; NULL: not there yet */
	bool *block_tried;
	size_t nunits;
	bool fresh; /* a block was decoded that the index does not have */

	struct as_symindex *index; /* NULL: none */
	struct as_symtab *symtab;
	bool symtab_tried;

	AS_VEC(struct as_symdatum) data; /* by svma, once they are asked for (ranges.c) */
	struct as_arena data_names;
	bool data_tried;

	struct as_buf notes;
	AS_VEC(struct as_symframe) frame;
};

/* dwarf_load.c: finds the debug file, once; cheap: nothing in it is read. */
void as_symmod_find_debug(struct as_symmod *m);
/* dwarf_load.c: finds the debug files and opens the reader; once. False: no DWARF. */
bool as_symmod_load_dwarf(struct as_symmod *m);

/* symbol.c */
struct as_symtab *as_symmod_symtab(struct as_symmod *m); /* NULL: no symbols */
struct as_block *as_symmod_block(struct as_symmod *m, uint32_t unit);

/* chain.c: frames of rel from b into m->frame; false when b has no function there. */
bool as_chain_build(struct as_symmod *m, struct as_block *b, uint32_t rel);
/* Fills in what the symbol table knows of a function node: alias count, mangled name. */
void as_chain_name_function(struct as_symmod *m, struct as_block *b, struct as_block_node *n);
/* The line of rel alone, into f; false when b has none. */
bool as_chain_line(struct as_block *b, uint32_t rel, struct as_symframe *f);

/* index.c */
/* NULL: none or refused (then a note) */
struct as_symindex *as_symindex_open(struct as_symmod *m);
void as_symindex_close(struct as_symindex *ix);
const struct as_symrange *as_symindex_ranges(const struct as_symindex *ix, size_t *ret_n);
size_t as_symindex_units(const struct as_symindex *ix);
bool as_symindex_open_done(const struct as_symindex *ix);
struct as_block *as_symindex_block(struct as_symindex *ix, uint32_t unit); /* NULL: not kept */
/* Deletes the indexes used longest ago until the rest fits. */
void as_symindex_trim(const char *dir, uint64_t quota_bytes);
void as_symindex_save(struct as_symmod *m); /* what was decoded, with what the old index has */

#endif

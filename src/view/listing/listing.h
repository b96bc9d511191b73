/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One function as text: its source lines and its instructions, each instruction with the inline
 * chain it stands for. Costs are not here: they come from a profile and meet the listing at svmas
 * and at (file, line).
 *
 *	struct as_listing_request q = {.model = m, .function = f};
 *	r = as_listing_make(&q, &l, err);
 *	for (size_t i = 0; i < l->insns.n; i++) … l->insns.v[i].text
 *	as_listing_free(l);
 *
 * Where it comes from, in order: what the recording embedded (CODE, CODE_LINES and SOURCE records);
 * the module's file on this machine, when its build-id is the recorded one; source files found by
 * src/code/source.h, refused when newer than the module. What could not be found is said in
 * `notes` and in a file's `why`, with the places that were looked at, and is not an error: a
 * function without source has instructions, one without code has lines, and one with neither has
 * notes.
 *
 * Cost: a few ms for embedded functions; opening a module's debug information otherwise (0.1 s for
 * 46 MB). Thread rule: one request at a time per model. The model must outlive the listing.
 */
#ifndef AS_VIEW_LISTING_H
#define AS_VIEW_LISTING_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/mem.h"
#include "code/disasm.h"
#include "model/model.h"

struct as_listing_place {     /* one function of an inline chain */
	const char *function; /* brief name */
	uint32_t key;         /* index into model->functions; AS_NONE: no sample has it */
	const char *file;     /* as the debug information has it; NULL unknown */
	uint32_t line, column;
	bool inlined;
};

struct as_listing_insn {
	uint64_t svma;
	uint64_t target;         /* svma of a direct jump, branch or call; 0: none */
	const char *text;        /* Intel syntax, names of call targets instead of numbers */
	const char *target_name; /* symbol a direct call or jump leads to; NULL: none known */
	uint32_t place, nplaces; /* places.v[place … +nplaces], innermost first; 0: unknown */
	uint8_t len;
	uint8_t kind; /* enum as_insn_kind */
	bool starts_part; /* first instruction of a part: code between it and the last is left out */
};

struct as_listing_file {
	const char *path;  /* as the debug information has it: what places refer to */
	const char *found; /* where the text came from; NULL: it was not found */
	const char *why;   /* not found or refused: a sentence with the places looked at */
	uint32_t first;    /* number of lines.v[0] */
	uint32_t total;    /* lines of the whole file; 0 unknown */
	/* Without line ends; UTF-8 with damage made U+FFFD. Lines between two hot regions that are
	 * left out are the pointer as_listing_left_out (an empty text). */
	AS_VEC(const char *) lines;
};

struct as_listing {
	uint32_t function; /* index into model->functions */
	uint32_t module;   /* index into model->modules; AS_NONE unknown */
	bool code_embedded, source_embedded;
	AS_VEC(struct as_listing_insn) insns; /* by svma */
	AS_VEC(struct as_listing_place) places;
	AS_VEC(struct as_listing_file) files; /* the function's own first */
	AS_VEC(const char *) notes;
	struct as_arena arena;
};

/*
 * Modules and source files kept open from one request to the next: opening a large module takes
 * tenths of a second. Belongs to one model and is freed before it. Costs the memory of the modules'
 * symbol tables, and up to 64 MiB of sources.
 */
struct as_listing_files;
struct as_listing_files *as_listing_files_new(const char *cache_dir);
void as_listing_files_free(struct as_listing_files *f);

struct as_listing_request {
	const struct as_model *model;
	uint32_t function;
	bool no_source, no_code;
	uint32_t context;      /* source lines around those that stand in the chains; 0: 10 */
	bool embedded_only;    /* never look at this machine's files */
	const char *cache_dir; /* of symbol indexes; NULL: none */
	struct as_listing_files *files; /* NULL: files are opened for this request alone */
	const char *const
		*roots; /* further folders to look for sources in; NULL ends; may be NULL */
};

extern const char as_listing_left_out[];

/* An inlined function's listing is the code of every physical function that holds it and has
 * samples there, restricted to the instructions that stand for it. AS_E_NOTFOUND never. */
int as_listing_make(const struct as_listing_request *q, struct as_listing **ret,
		    struct as_error *err);
void as_listing_free(struct as_listing *l);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What resolve.c (names) and keep.c (text of hot functions) share while modules are open. */
#ifndef AS_COLLECT_RESOLVE_PRIV_H
#define AS_COLLECT_RESOLVE_PRIV_H

#include "collect/recorder_priv.h"
#include "symbol/symbol.h"

struct as_keep;

struct as_resolver {
	struct as_recorder *r;
	const struct as_resolve_options *o;
	struct as_map64 functions; /* hash of identity -> function id */
	uint64_t nfunctions;
	uint32_t module;        /* session id of the module in work */
	const uint32_t *places; /* ids of its places, in the order of the addresses */
	AS_VEC(uint64_t) chain;
	struct as_buf full, brief, crate;
	struct as_keep *keep;
	bool brief_only; /* functions without samples: their short names are enough */
};

uint64_t as_resolver_string(struct as_resolver *v, const char *s); /* id; 0 for NULL */
/* Short form of a linkage name; valid until the next call. */
const char *as_resolver_brief(struct as_resolver *v, const char *linkage);
/* The four numbers of a place in SYMBOL and CODE_LINES; writes the function's record if need be. */
void as_resolver_place(struct as_resolver *v, const struct as_symframe *f, uint64_t ret[4]);

/*
 * keep.c: bytes, chains and source lines of functions that have at least 0.5 % of the samples in
 * their own code or below them. note is called for each resolved place of a module, module when
 * all are, while it is open; finish writes the sources.
 */
struct as_keep *as_keep_new(const struct as_recorder *r, const struct as_resolve_options *o);
void as_keep_note(struct as_resolver *v, size_t index, uint64_t svma,
		  const struct as_symchain *chain);
void as_keep_module(struct as_resolver *v, const struct as_module *m, struct as_symmod *sym);
void as_keep_finish(struct as_resolver *v); /* frees it as well */

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A function as a stretch of code: which parts it has (hot, cold) and what each of its
 * instructions stands for. For listings of source and assembly.
 *
 *	n = as_symmod_parts(m, svma, part, AS_SYMPART_MAX);
 *	for (size_t i = 0; i < n; i++)
 *		as_symmod_ranges(m, part[i].lo, part[i].hi, on_range, ctx);
 *
 * Addresses are svma. Cost: linear in the function, and once in the units that hold it; they are
 * read as as_symmod_resolve reads them. Thread rule as there.
 */
#ifndef AS_SYMBOL_RANGES_H
#define AS_SYMBOL_RANGES_H

#include "symbol/symbol.h"

#define AS_SYMPART_MAX 64

struct as_sympart {
	uint64_t lo, hi; /* [lo, hi) */
};

/*
 * Parts of the physical function that holds svma, ascending and apart; returns how many (at most
 * max), 0: nothing is known there. From DWARF where there is; else its symbol (or FDE extent) with
 * the `.cold` symbols of the same name, when that name is the only one of its kind (and the
 * module has less than 30,000 symbols).
 */
size_t as_symmod_parts(struct as_symmod *m, uint64_t svma, struct as_sympart *ret, size_t max);

/* Calls fn for [lo, hi) cut where the chain changes, ascending, without gaps; neighbours have
 * different chains. chain->n is 0 where nothing is known. Chain pointers are valid during the
 * call only, strings until close. */
typedef void (*as_symrange_fn)(void *ctx, uint64_t lo, uint64_t hi,
			       const struct as_symchain *chain);
void as_symmod_ranges(struct as_symmod *m, uint64_t lo, uint64_t hi, as_symrange_fn fn,
		      void *ctx);

struct as_symname {
	const char *linkage; /* until close */
	uint64_t svma, size_bytes;
	bool synthetic; /* made from an FDE extent */
};
/* The symbol that holds svma; names of PLT stubs end in "@plt". From the symbol tables alone. */
bool as_symmod_name(struct as_symmod *m, uint64_t svma, struct as_symname *ret);

/*
 * What stands at svma in data: a slot of the GOT ("memcpy@got"), an object of the symbol tables (in
 * modules of less than 30,000 functions); or the function there. The first call reads the tables
 * once.
 */
bool as_symmod_data_name(struct as_symmod *m, uint64_t svma, struct as_symname *ret);

/* The module's file, open until as_symmod_close: for its bytes. */
struct as_elf *as_symmod_elf(struct as_symmod *m);

#endif

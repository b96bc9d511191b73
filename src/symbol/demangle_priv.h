/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pieces of demangling that symtab.c shares. */
#ifndef AS_SYMBOL_DEMANGLE_PRIV_H
#define AS_SYMBOL_DEMANGLE_PRIV_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Length of a linkage name without what compilers append to clones: .llvm.<hex>, .cold,
 * .part.N, .constprop.N, .isra.N, .lto_priv.N, .localalias, and their like, in any number.
 * *ret_cold tells whether .cold was among them.
 */
size_t as_linkage_stem(const char *linkage, bool *ret_cold);

/* name begins with _R: whether it nests at most 1,000 deep, back references followed. */
bool as_rust_v0_is_bounded(const char *name, size_t n);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Names. Rust legacy and v0 and Itanium C++ may stand in one binary; each symbol is recognised on
 * its own. The full form is what rustc-demangle prints with "{:#}" (no hash); the short form is for
 * tables: see as_name_short.
 */
#ifndef AS_SYMBOL_DEMANGLE_H
#define AS_SYMBOL_DEMANGLE_H

#include <stdbool.h>
#include "base/buf.h"

enum as_lang { AS_LANG_C, AS_LANG_RUST, AS_LANG_CXX };

/* Appends the demangled full form of linkage to out (linkage itself when it is not mangled). LLVM
 * and GCC suffixes (.llvm.123, .cold, .part.0, .constprop.1) are kept out of the name; `.cold` is
 * told. What "@plt" follows is demangled alone. */
enum as_lang as_demangle(const char *linkage, struct as_buf *out, bool *ret_cold);

enum as_name_flags {
	AS_NAME_FOLD_GENERICS = 1, /* Vec<T>::push for Vec<alloc::string::String>::push */
};
/*
 * Short display form of a demangled name; the rules stand in name_rust.c and name_cxx.c:
 *	methods		Vec<T,A>::extend, parse::Context::run	std's types alone, others with one module
 *	functions	memchr::memmem::find, mem::swap	the last three components, std's two
 *	closures	indexer::tokenize::{closure}
 *	C++		std::vector<int>::push_back	no arguments, no default template arguments
 * Hashes, disambiguators and lifetimes are dropped. Deterministic; never empty; at most 16 KiB.
 * Folding leaves generics out, but for what drop_in_place drops.
 */
void as_name_short(const char *full, enum as_lang lang, unsigned flags, struct as_buf *out);
/* First path component of a Rust name ("<alloc::vec::Vec<T> as …>" → alloc); "" for others. */
void as_name_crate(const char *full, enum as_lang lang, struct as_buf *out);

/*
 * Adds the path of a Rust function of which only the last component is known, by the file it stands
 * in: "rem" in /rustc/…/library/core/src/ops/arith.rs is core::ops::arith::rem. A guess: the place of
 * its text, not of its type. Returns false, and adds nothing, when the file is none of Rust's.
 */
bool as_name_by_file(const char *name, const char *file, struct as_buf *out);

#endif

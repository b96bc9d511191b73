/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What kind of code a function is: the program's own, the language's library, an async or thread
 * runtime, … Reports colour by it, the page folds by it, exporters name it.
 *
 *	enum as_category c = as_function_category(m, f);
 *	puts(as_category_info(c)->label);
 *
 * Told from the function's names, crate, file and module alone, first rule that holds:
 *
 *	1. marker flag; kernel modules; generated code; no module and no name
 *	2. what it does: allocator entry points and internals, panic and unwinding paths
 *	3. whose it is: the language's library, a runtime's crate, another crate or shared object
 *	4. else the program's own
 *
 * A crate counts as another's when its source came from a registry or a git checkout, or when it
 * stands in a shared object of the system; a Rust shared object elsewhere (librustc_driver) is the
 * program's own. Cost: some hundred string comparisons at most; keep the answer per function.
 */
#ifndef AS_MODEL_CATEGORY_H
#define AS_MODEL_CATEGORY_H

#include "model/model.h"

/* X(NAME, key, label, meaning). Order and keys are a promise to pages and scripts: append only. */
#define AS_CATEGORIES(X)                                                                       \
	X(USER, "user", "Program", "the program's own code")                                   \
	X(STD, "std", "Standard library",                                                      \
	  "the language's library: std, core, alloc and hashbrown, or libstdc++")              \
	X(RUNTIME, "runtime", "Runtime",                                                       \
	  "async and thread runtimes: tokio, futures, rayon, crossbeam, OpenMP and the like")  \
	X(PANIC, "panic", "Panic and unwinding",                                               \
	  "raising, formatting and unwinding panics and exceptions")                           \
	X(ALLOCATOR, "allocator", "Allocator",                                                 \
	  "getting and returning memory: malloc and free, jemalloc, mimalloc")                 \
	X(LIBRARY, "library", "Libraries",                                                     \
	  "other people's code: crates from a registry, libc and other shared objects")        \
	X(KERNEL, "kernel", "Kernel", "the operating system working for the program")          \
	X(JIT, "jit", "Generated code", "machine code that the program made while it ran")     \
	X(MARKER, "marker", "Markers",                                                         \
	  "no code: where a stack could not be followed, or samples were lost")                \
	X(UNKNOWN, "unknown", "Unknown", "code in memory that belongs to no known file")

enum as_category {
#define X(NAME, key, label, meaning) AS_CATEGORY_##NAME,
	AS_CATEGORIES(X)
#undef X
		AS_CATEGORY_COUNT_
};

struct as_category_info {
	const char *key;     /* one word, lower case, for files */
	const char *label;   /* for people */
	const char *meaning; /* the rest of the sentence "this is …" */
};

const struct as_category_info *as_category_info(enum as_category c);

/* function: index into m->functions; AS_NONE or out of range is UNKNOWN. */
enum as_category as_function_category(const struct as_model *m, uint32_t function);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Counting what a program allocates, without preloading anything: the entries of the global offset
 * tables of all loaded objects that point to malloc and its like are pointed to functions of ours, which
 * count and call the ones they replaced. Done in a process that takes no times.
 *
 * Seen: what calls the C library's allocator from any object, itself included (strdup), through its
 * table: C, C++'s new, Rust's default allocator. Not seen: static programs, and allocators that get their
 * memory elsewhere (a jemalloc or mimalloc linked in under other names).
 *
 * Counting is for the whole process; one caller at a time turns it on and off. The hooks themselves may
 * be called from any thread (a spin lock around the table of live blocks).
 */
#ifndef AS_HARNESS_ALLOC_PRIV_H
#define AS_HARNESS_ALLOC_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct as_alloc_counts {
	uint64_t calls; /* that gave memory; realloc is one */
	uint64_t bytes; /* asked for; of realloc: what it grew by */
	uint64_t peak;  /* most that was alive at once, of what was allocated while counting */
};

/* Once. false: nothing can be seen here. */
bool as_alloc_patch(void);
/* From empty counts. */
void as_alloc_begin(void);
void as_alloc_end(struct as_alloc_counts *ret);
/* Within begin and end: only what is between on and off counts, if there is any such stretch. Anyone may
 * call them; without a patch they do nothing. */
void as_alloc_on(void);
void as_alloc_off(void);

/* ---- alloc_patch.c and alloc.c ---- */
#define AS_ALLOC_NAMES(F)                                                                      \
	F(malloc)                                                                              \
	F(calloc)                                                                              \
	F(realloc)                                                                             \
	F(reallocarray)                                                                        \
	F(free)                                                                                \
	F(posix_memalign)                                                                      \
	F(aligned_alloc)                                                                       \
	F(memalign)                                                                            \
	F(valloc)
enum {
#define F(name) AS_ALLOC_##name,
	AS_ALLOC_NAMES(F)
#undef F
		AS_ALLOC_NAMES_
};
struct as_alloc_hook {
	const char *name;
	void *ours, *real; /* real: set by as_alloc_find_real */
};
extern struct as_alloc_hook as_alloc_hooks[AS_ALLOC_NAMES_];
/* Points every table entry of a hook's name to ours; returns how many. */
size_t as_alloc_patch_tables(void);

#endif

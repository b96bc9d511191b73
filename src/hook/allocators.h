/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which functions of a module give and take memory, by name: the C allocator and its relatives, the
 * families of jemalloc, mimalloc and tcmalloc under their prefixes, and what else a recorder of memory
 * has to see (mappings, exec, the dynamic linker's notice of new modules).
 *
 *	as_allocators_find(elf, AS_HOOKS_HEAP | AS_HOOKS_LOADER, &list);
 *	for (i < list.n) … list.v[i].name, .svma, .kind …
 *	as_allocators_clear(&list);
 *
 * Aliases are one entry: the calls of any of the names are seen at their common address. What only
 * looks (malloc_usable_size) is left out, and Rust's shims, which the compiler may inline and which
 * always lead to an allocator. Names that are local to the module count when the whole set of them is
 * there, as in a static-pie program, or one that was linked with LTO.
 *
 * operator new in its throwing forms cannot be called from in-target code. Where it is an allocator's
 * own (jemalloc, mimalloc, tcmalloc: elsewhere it calls malloc, which is seen) it is told together
 * with its form that returns null, which is to be called in its stead. Thread rule: none.
 */
#ifndef AS_HOOK_ALLOCATORS_H
#define AS_HOOK_ALLOCATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/rt.h"
#include "base/mem.h"
#include "elf/elf.h"

enum as_hook_group {
	AS_HOOKS_HEAP = 1,
	AS_HOOKS_MAPPINGS = 2, /* mmap, munmap, mremap */
	AS_HOOKS_LOADER = 4,   /* _dl_debug_state: modules come and go */
	AS_HOOKS_EXEC = 8,     /* a new program takes the place of this one */
	AS_HOOKS_MARKS = 16,   /* assay_heap_mark of the program (assay/heap.h) */
	AS_HOOKS_SECCOMP = 32, /* prctl, syscall, mlockall: what the runtime may do changes */
	AS_HOOKS_EXIT = 64,    /* exit, _exit: the process is about to end */
};
/* All that a recorder of blocks needs. */
#define AS_HOOKS_OF_HEAP                                                                       \
	(AS_HOOKS_HEAP | AS_HOOKS_LOADER | AS_HOOKS_EXEC | AS_HOOKS_MARKS | AS_HOOKS_SECCOMP)

enum as_allocator_family {
	AS_ALLOCATOR_NONE, /* not of an allocator: mappings, loader, exec */
	AS_ALLOCATOR_C,    /* malloc and relatives of an allocator that is not known by name */
	AS_ALLOCATOR_GLIBC,
	AS_ALLOCATOR_MUSL,
	AS_ALLOCATOR_JEMALLOC,
	AS_ALLOCATOR_MIMALLOC,
	AS_ALLOCATOR_TCMALLOC,
};
const char *as_allocator_name(enum as_allocator_family f); /* "glibc malloc"; NONE: "" */

struct as_allocator {
	uint64_t svma;
	const char *name; /* of the elf: valid until it is closed */
	uint8_t kind;     /* enum as_rt_kind */
	uint8_t group;    /* enum as_hook_group, one */
	uint8_t family;   /* enum as_allocator_family */
	bool local;
	uint64_t instead_svma; /* AS_RT_NEW: of what returns null where this one throws */
	bool counted;          /* AS_RT_NEW: count and size come first */
	bool by_signature; /* has no name in the file: known by what it does (signature.h) */
};
struct as_allocators {
	struct as_allocator *v;
	size_t n, cap;
};

/* groups: enum as_hook_group, or'ed. Sorted by svma. A damaged symbol table gives fewer. */
void as_allocators_find(struct as_elf *elf, unsigned groups, struct as_allocators *ret);
void as_allocators_clear(struct as_allocators *a);

#endif

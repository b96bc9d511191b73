/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Inside of snapshot.h:
 *	smaps.c		mappings and pages
 *	areas.c		what each writable mapping is: the allocator's, a stack, a module's data …
 *	roots.c		where the mark begins
 *	parts.c		of what resident memory consists
 *	snapshot.c	the order of things
 */
#ifndef AS_SNAPSHOT_SNAPSHOT_PRIV_H
#define AS_SNAPSHOT_SNAPSHOT_PRIV_H

#include "heap/leak.h"
#include "heap/resident.h"
#include "snapshot/smaps.h"

#define AS_SNAPSHOT_WORDS 96u

/* What a thread of the process was doing; registers that may hold pointers. */
struct as_snapshot_thread {
	uint64_t sp, fs; /* sp: in use from here up */
	uint64_t word[AS_SNAPSHOT_WORDS];
	uint32_t nwords;
};

enum as_area_kind {
	AS_AREA_OTHER,     /* roots: data of modules, mappings of the program */
	AS_AREA_ALLOCATOR, /* only live blocks are looked at */
	AS_AREA_ASSAY,     /* nothing is */
};
struct as_area {              /* of the mapping with the same index */
	uint8_t kind;         /* enum as_area_kind */
	uint32_t arena;       /* AS_ARENA_…; 0: not known of whom, or none */
	uint64_t dead_thread; /* what described it; 0: none */
	uint64_t dead_end;    /* below this: the stack of a thread that has ended; 0: none */
	uint64_t stack_low, stack_high; /* in use by a thread; equal: none */
	/* in the list of blocks: those that lie in it */
	size_t first_block, end_block;
};

struct as_snapshot {
	struct as_leak_memory memory;
	struct as_smaps maps;
	struct as_area *area;
	AS_VEC(struct as_snapshot_thread) threads;
	AS_VEC(struct as_leak_range) ours;   /* assay's own, sorted or not */
	AS_VEC(struct as_heap_range) ranges; /* mappings of the program, sorted */
	AS_VEC(uint64_t) arenas; /* addresses of glibc's states, see AS_ARENA_FIRST */
	struct as_leaks leaks;
	bool partial;      /* as in the spec */
	bool is_glibc;     /* blocks may have its headers */
	bool is_geometric; /* sizes are rounded up to four classes per power of two */
};

/* After the blocks are sealed, the maps and threads are there. */
void as_snapshot_areas(struct as_snapshot *s);
void as_snapshot_roots(struct as_snapshot *s);
void as_snapshot_parts(struct as_snapshot *s, struct as_heap_resident *ret);

/* The first of `ranges` that ends behind the address. */
size_t as_snapshot_first_range(const struct as_snapshot *s, uint64_t avma);
/* 8 bytes of the process; false: not readable. */
bool as_snapshot_word(const struct as_snapshot *s, uint64_t avma, uint64_t *ret);

#define AS_ARENA_MAIN   1u
#define AS_ARENA_MAPPED 2u /* blocks with a mapping each; not an arena */
#define AS_ARENA_FIRST  3u /* of arenas: AS_ARENA_FIRST + index */

#endif

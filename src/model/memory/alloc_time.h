/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * CPU time that memory costs: samples taken below an entry of an allocator (malloc, operator new,
 * __rust_realloc, free …), or in the kernel's path of a page fault on memory without a file. The measure
 * ALLOC_TIME (heap.h) keeps just those, on the function of the program that asked: what stands between
 * it and the allocator is folded, as in sessions of memory, and shares stay shares of all CPU time.
 *
 *	r = as_model_measure(m, AS_MEASURE_ALLOC_TIME, true, err);	any session with CPU samples
 *
 * Where the session has memory as well (assay record --heap) both sides are of the same stacks:
 *
 *	as_alloc_time_make(m, &t, err);		which lines cost how much, and what they allocate
 *	as_alloc_time_clear(&t);
 *
 * A sample counts for the outermost entry it is below: the malloc within realloc is realloc. One whose
 * page fault is within an allocator counts as a page fault. Without names of the kernel's functions page
 * faults are not told, and those outside of allocators do not count.
 *
 * Thread rule: none shared. as_alloc_time_make changes the model's measure and puts it back.
 */
#ifndef AS_MODEL_ALLOC_TIME_H
#define AS_MODEL_ALLOC_TIME_H

#include "model/memory/tables.h"

enum as_alloc_kind {
	AS_ALLOC_NONE, /* the sample is not of memory */
	AS_ALLOC_NEW,
	AS_ALLOC_REALLOC,
	AS_ALLOC_FREE,
	AS_ALLOC_FAULT,
	AS_ALLOC_KINDS
};
const char *as_alloc_kind_name(enum as_alloc_kind kind); /* "allocating", "growing", … */
/* The kind of an allocator's function by its name, NONE for all others. */
enum as_alloc_kind as_alloc_kind_of_name(const char *full, const char *linkage);

struct as_alloc_line {
	const char *name, *full_name, *file, *module; /* of the model or the arena */
	uint32_t line;
	struct as_share share;              /* of all CPU time */
	uint64_t kind_ns[AS_ALLOC_KINDS];   /* by kind; NONE is 0 */
	uint64_t values[AS_HEAP_VALUES];    /* what was allocated there */
	const struct as_heap_chain *growth; /* the chain that copied most there; NULL: none */
};
struct as_alloc_time {
	struct as_share share;          /* all of it */
	double kind[AS_ALLOC_KINDS];    /* shares */
	bool has_faults;                /* the kernel's functions have names */
	AS_VEC(struct as_alloc_line) v; /* by share, largest first */
	struct as_heap_chains chains;
	struct as_arena arena;
};
/* AS_E_USAGE: no CPU samples, or no memory, in the session. */
int as_alloc_time_make(struct as_model *m, struct as_alloc_time *ret, struct as_error *err);
void as_alloc_time_clear(struct as_alloc_time *t);

#endif

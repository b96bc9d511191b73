/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Allocators without names, found by what they do: in a program that was linked with one and then
 * stripped.
 *
 *	as_signature_find(&program, &found, err);
 *	found.list	functions that allocate and free, as as_allocators_find tells those with names
 *	as_signature_clear(&found);
 *
 * Candidates are functions that are called from many places, those near to an allocator's messages, and
 * those that nothing but calls tells of. Each is tried in a copy of the program (hook/trial.h), and is
 * what it is only when all of this holds:
 *
 *	malloc		blocks of 24 and 100,000 bytes, twice each, can be written to their ends and do not
 *			overlap; 2^63 - 1 bytes are refused with null
 *	free		a block that it was given, and none of its neighbours, is given out again by malloc
 *	realloc		keeps what is in the block, gives the old one back, refuses 2^63 - 1
 *	calloc		700 zeros where bytes were not, count times size, refuses what overflows
 *	memalign, posix_memalign  16 KiB aligned, twice
 *
 * each with senseless values in all other arguments, so that a function of more arguments is not taken for
 * one of fewer. Further forms take a zero there (jemalloc's flags) or an alignment.
 *
 * A function that always goes through another one of the same kind is a wrapper (xmalloc, operator new)
 * and is left alone; one that sometimes does not has a way of its own, and is told. A part that only
 * functions that are told call is left out. So a program that has two allocators has both, and no
 * block is told twice.
 *
 * operator new that throws cannot be tried. Any bytes are safe. Cost: once per program, 0.1 to 2 s. Thread
 * rule: the thread that traces.
 */
#ifndef AS_HOOK_SIGNATURE_H
#define AS_HOOK_SIGNATURE_H

#include "hook/allocators.h"
#include "hook/code.h"

struct as_signature_program {
	struct as_elf *elf;
	int fd; /* of its file; stays the caller's */
	const char *name;
	const struct as_extent *extents; /* of call-frame information; sorted, may be none */
	size_t nextents;
};

struct as_signature {
	struct as_allocators list; /* names are constants */
	struct as_hook_code *code; /* to plan with; of the program's elf */
	/* where the allocator itself lies: first and last function of the list; lo == hi: not known */
	uint64_t lo_svma, hi_svma;
	size_t tried, runs; /* functions, experiments */
};

/* AS_E_NOTFOUND: there is none that can be known for sure, AS_E_UNSUPPORTED: nothing can be tried; the
 * message says why. */
int as_signature_find(const struct as_signature_program *p, struct as_signature *ret,
		      struct as_error *err);
void as_signature_clear(struct as_signature *s);

#endif

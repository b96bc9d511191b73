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
 * operator new that throws is one that gives blocks, whose blocks are taken by that free and come again
 * from it, and which ends in abort() when 2^63 - 1 bytes are asked for: nobody catches what it throws.
 * valloc is one whose blocks come again, too, and begin with a page.
 *
 * Any bytes are safe. Cost: 0.5 to 5 s of processor time, most of it the kernel's, which makes some hundred
 * processes. Thread rule: the thread that traces.
 */
#ifndef AS_HOOK_SIGNATURE_H
#define AS_HOOK_SIGNATURE_H

#include "base/buf.h"
#include "base/mem.h"
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
	/* Functions that only calls tell of, sorted: what code was completed with. */
	AS_VEC(struct as_extent) found;
	bool is_sure; /* no experiment was left out for want of processes: it would be found again */
	size_t tried, runs; /* functions, experiments */
};

/* AS_E_NOTFOUND: there is none that can be known for sure, AS_E_UNSUPPORTED: nothing can be tried; the
 * message says why. */
int as_signature_find(const struct as_signature_program *p, struct as_signature *ret,
		      struct as_error *err);
void as_signature_clear(struct as_signature *s);

/*
 * What was found, kept as bytes for the next time: found.c. Key: of the loaded segments of the file and
 * of this build of the search. as_signature_read takes any bytes, and gives what was written with the
 * same key or false; an empty list: there is nothing to be found.
 */
#define AS_SIGNATURE_KEY_BYTES 40
void as_signature_key(const struct as_elf *elf, char ret[AS_SIGNATURE_KEY_BYTES]);
void as_signature_write(const struct as_signature *s, const char *key, struct as_buf *ret);
bool as_signature_read(const struct as_signature_program *p, const char *key, const void *bytes,
		       size_t n, struct as_signature *ret);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Inside of signature.h:
 *	signature.c	candidates, and which of those that passed are told
 *	found.c		what was found, as bytes
 *	x86_64/proofs.c	what a function has to show to be malloc, free, …
 */
#ifndef AS_HOOK_SIGNATURE_PRIV_H
#define AS_HOOK_SIGNATURE_PRIV_H

#include "hook/signature.h"
#include "hook/trial.h"

/* What stands in the argument behind those that a function of its kind has. */
enum as_proof_form {
	AS_PROOF_ALONE,   /* senseless: it has no more arguments */
	AS_PROOF_FLAGS,   /* 0, as in mallocx(size, flags) */
	AS_PROOF_ALIGNED, /* 16, as in mi_malloc_aligned(size, alignment) */
	AS_PROOF_PAGES,   /* senseless; blocks begin with a page, as those of valloc(size) */
	AS_PROOF_FORMS,
};

/* What it is called in reports; NULL: there is no such thing. A constant. */
const char *as_signature_name(enum as_rt_kind kind, enum as_proof_form form);

/* Sets lo_svma and hi_svma, of the list. */
void as_signature_span(struct as_signature *s);

struct as_proof {
	struct as_trial *trial;
	uint64_t
		give; /* avma of a malloc, with its form, for kinds that need one; 0: none yet */
	uint64_t take; /* avma of a free that takes its blocks; 0: none yet */
	enum as_proof_form give_form, take_form;
};

/* Whether the function at avma is of that kind (AS_RT_SIZE, FREE, REALLOC, COUNT, ALIGN, POINTER, NEW). */
bool as_proof_try(const struct as_proof *p, enum as_rt_kind kind, enum as_proof_form form,
		  uint64_t avma);

/* Which of n functions are worth it: one call of each. What is not may_be is not of that kind. */
struct as_proof_sift {
	uint64_t avma;
	size_t fn; /* this and rank: the caller's */
	uint32_t rank;
	bool may_be;
	bool hung; /* alone, it did not come back */
};
void as_proof_sift(const struct as_proof *p, enum as_rt_kind kind, enum as_proof_form form,
		   struct as_proof_sift *list, size_t n);

struct as_proof_member {
	uint64_t avma;
	uint8_t kind, form; /* enum as_rt_kind, enum as_proof_form */
	/* set by as_proof_ways: the others that some call of it went through, by bit, and whether every one
	 * went through at least one */
	uint64_t through;
	bool always;
	bool changes_r10, changes_r11;
};
/*
 * Whether `instead` can be called in the place of avma: in the same memory both give the same blocks
 * with the same bytes in them, so that neither writes to them.
 */
bool as_proof_same(const struct as_proof *p, enum as_proof_form form, uint64_t avma,
		   uint64_t instead);
/* Whether p->take takes the blocks of m, which is no free. */
bool as_proof_owned(const struct as_proof *p, const struct as_proof_member *m);
/* Calls m often and for all sizes, and looks which of the n other functions (avma) it comes through. */
bool as_proof_ways(const struct as_proof *p, struct as_proof_member *m, const uint64_t *other,
		   size_t n);

#endif

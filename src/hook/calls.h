/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Who calls whom in a module that may have neither symbols nor call-frame information.
 *
 *	as_calls_new(elf, extents, n, &calls, err);
 *	code = as_calls_code(calls);		// its functions, completed by what is called
 *	as_calls_sites(calls, i);		// how many branches lead to the i-th
 *	as_calls_free(calls);
 *
 * Where no function is known, each address that a call leads to, or that code or data point to, begins one.
 * These are found by their bytes, without decoding: now and then some other bytes look like one, and a
 * function begins where none does. What is made of it must not depend on that.
 *
 * Addresses are svma. Cost: about 40 ns a byte of text. Thread rule: one thread.
 */
#ifndef AS_HOOK_CALLS_H
#define AS_HOOK_CALLS_H

#include "hook/code.h"

struct as_calls;
int as_calls_new(struct as_elf *elf, const struct as_extent *extents, size_t n,
		 struct as_calls **ret, struct as_error *err);
void as_calls_free(struct as_calls *c);

/* The calls' own; index i is the one of as_hook_code_at. */
struct as_hook_code *as_calls_code(const struct as_calls *c);
/* Takes it: the caller frees it with as_hook_code_free, after the calls. */
struct as_hook_code *as_calls_take_code(struct as_calls *c);
uint32_t as_calls_sites(const struct as_calls *c, size_t i);
/* Whether the function was found by calls only. */
bool as_calls_is_found(const struct as_calls *c, size_t i);
/* Whether code or data hold its address: it may be called from anywhere. */
bool as_calls_is_taken(const struct as_calls *c, size_t i);
struct as_calls_edge {
	uint32_t to, count; /* branches from the one to the beginning of the other */
};
/* Of function i, by decoding it; itself apart. */
const struct as_calls_edge *as_calls_edges(const struct as_calls *c, size_t i, size_t *ret_n);

/* Sets refers[i] where function i refers to an address of the sorted list, by an operand relative to
 * the pc or as it is. */
void as_calls_refer(const struct as_calls *c, const uint64_t *svma, size_t n, bool *refers);

/* Where main may begin: addresses of code that what the entry leads to has in its first argument. */
size_t as_calls_main(const struct as_calls *c, uint64_t *ret, size_t max);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The code of a module as a patcher must know it: where functions begin and end, and whether
 * anything branches into the first bytes of one.
 *
 *	as_hook_code_new(elf, extents, n, &code, err);
 *	i = as_hook_code_find(code, svma);
 *	as_hook_code_targets(code, svma + 1, svma + 5);	// bit i: byte i is a target
 *	as_hook_code_free(code);
 *
 * Functions are the extents of the call-frame information and the symbols with a size; neither is
 * enough (musl has no call-frame information, stripped code no symbols). Branches are found without
 * decoding the module: a near branch ends in the distance to its target, so that every four bytes
 * behind an opcode of one that lead into the text are a suspect; suspects that matter are confirmed
 * by decoding the function they stand in. Short branches reach 127 bytes: there everything is
 * decoded. Switches: the tables whose address the function itself takes.
 *
 * Cost: 2 ns a byte of text once, then a few us a question, and a pass over the text for each byte
 * that is suspected. Memory: an eighth of the text. Addresses are svma. Thread rule: one thread.
 */
#ifndef AS_HOOK_CODE_H
#define AS_HOOK_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "elf/elf.h"
#include "unwind/table.h"

#define AS_HOOK_MAX_TEXT (1ull << 30) /* bytes of executable segments that are looked at */

struct as_hook_function {
	uint64_t svma, end_svma; /* end: of its own bytes, padding apart */
};

struct as_hook_code;
/* elf must stay open as long as the result; extents (sorted) are copied and may be NULL.
 * AS_E_UNSUPPORTED: not code this build can patch. */
int as_hook_code_new(struct as_elf *elf, const struct as_extent *extents, size_t n,
		     struct as_hook_code **ret, struct as_error *err);
void as_hook_code_free(struct as_hook_code *c);

size_t as_hook_code_count(const struct as_hook_code *c);
/* Sorted by svma, each svma once. */
const struct as_hook_function *as_hook_code_at(const struct as_hook_code *c, size_t i);
/* The function that begins at svma; SIZE_MAX: none does. */
size_t as_hook_code_find(const struct as_hook_code *c, uint64_t svma);
/* Where the next function begins, or the end of the segment. */
uint64_t as_hook_code_next(const struct as_hook_code *c, size_t i);
/* n bytes at svma, or NULL when not all of them are code. */
const uint8_t *as_hook_code_bytes(const struct as_hook_code *c, uint64_t svma, size_t n);

/* Bit i is set when svma + i, i < n <= 32, is where a branch, a call or a switch leads from anywhere
 * in the module, or where another function begins. */
uint32_t as_hook_code_targets(struct as_hook_code *c, uint64_t svma, unsigned n);

#endif

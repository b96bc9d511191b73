/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inside the leak check: leak.c marks, leak_index.c finds blocks, leak_inside.c knows layouts, leak_lost.c
 * finds owners. */
#ifndef AS_HEAP_LEAK_PRIV_H
#define AS_HEAP_LEAK_PRIV_H

#include "heap/leak.h"

#define AS_LEAK_BUFFER_BYTES (1u << 20)

/* leak_index.c: address -> block, one or two loads when there is none. */
struct as_leak_index *as_leak_index_new(const struct as_leak_block *v, size_t n);
void as_leak_index_free(struct as_leak_index *x);
/* UINT32_MAX: none. */
uint32_t as_leak_index_find(const struct as_leak_index *x, const struct as_leak_block *v,
			    uint64_t avma);

/* leak_inside.c: whether a pointer to the place in the block is as good as one to its beginning;
 * AS_LEAK_START: no. Reads a few words of the process. */
enum as_leak_inside as_leak_inside_of(const struct as_leak_memory *m,
				      const struct as_leak_block *b, uint64_t avma);

/* leak.c: calls fn with what blocks hold, in pieces of at most AS_LEAK_BUFFER_BYTES; number: of the
 * block in the list. What cannot be read is left out and counted. */
typedef void (*as_leak_words_fn)(void *ctx, uint32_t number, const uint64_t *word, size_t n);
struct as_leak_scan {
	void *ctx;
	as_leak_words_fn fn;
};
void as_leak_scan_blocks(struct as_leaks *l, const uint32_t *list, size_t n,
			 const struct as_leak_scan *to);

/* leak_lost.c: classes and owners of what nothing reached (class still AS_LEAK_LOST). */
void as_leak_find_owners(struct as_leaks *l);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Memory by lifetime. Small things: as_xmalloc and friends, which end the process with one
 * clear message when memory is out (the tool cannot go on; in-target code never uses these).
 * Sizes that come from input are checked against a named limit by the caller first.
 *
 * as_arena: bump allocation, freed as a whole. Not thread safe. Returned memory is zeroed and
 * 8-aligned.
 *
 * AS_CLEANUP(fn) runs fn(&var) when var leaves scope; AS_STEAL(p) gives ownership away.
 */
#ifndef AS_BASE_MEM_H
#define AS_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

void *as_xmalloc(size_t n) __attribute__((malloc, returns_nonnull));
void *as_xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *as_xrealloc(void *p, size_t n) __attribute__((returns_nonnull));
/* n * size with an overflow check. */
void *as_xreallocarray(void *p, size_t n, size_t size) __attribute__((returns_nonnull));
/*
 * n * size bytes, not cleared, for an array that is filled: from AS_LARGE_BYTES on it lies on large pages
 * where the kernel has them. A page that is touched first costs a microsecond or, on a virtual machine,
 * twenty; a large one hardly more, and it spares misses of the TLB. free() frees it.
 */
void *as_xarray(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
#define AS_LARGE_BYTES ((size_t)2 << 20)
char *as_xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *as_xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
char *as_xasprintf(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), malloc, returns_nonnull));
void as_oom(void) __attribute__((noreturn, cold));

#define AS_CLEANUP(fn) __attribute__((cleanup(fn)))
#define AS_STEAL(p)                                                                            \
	({                                                                                     \
		__typeof__(p) steal_ = (p);                                                    \
		(p) = NULL;                                                                    \
		steal_;                                                                        \
	})

void as_free_autop(void *pp); /* AS_CLEANUP(as_free_autop) char *s = … */
void as_close_autop(int *fd); /* closes when >= 0 */

#define AS_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define AS_MIN(a, b)    ((a) < (b) ? (a) : (b))
#define AS_MAX(a, b)    ((a) > (b) ? (a) : (b))

struct as_arena_block;
struct as_arena {
	struct as_arena_block *head; /* newest block; NULL when empty */
	size_t used_bytes;           /* sum of all allocations, for budgets */
};
void *as_arena_alloc(struct as_arena *a, size_t n) __attribute__((returns_nonnull));
char *as_arena_strndup(struct as_arena *a, const char *s, size_t n)
	__attribute__((returns_nonnull));
char *as_arena_strdup(struct as_arena *a, const char *s) __attribute__((returns_nonnull));
void as_arena_clear(struct as_arena *a); /* frees all; the arena can be used again */

/*
 * Growable array of any type:
 *	AS_VEC(struct as_row) rows = {0};
 *	as_vec_push(&rows, row);	rows.v[rows.n - 1]
 *	as_vec_clear(&rows);		frees
 */
#define AS_VEC(type)                                                                           \
	struct {                                                                               \
		type *v;                                                                       \
		size_t n, cap;                                                                 \
	}
void *as_vec_grow_(void *v, size_t *cap, size_t need, size_t size);
#define as_vec_reserve(vec, need)                                                              \
	((void)((need) > (vec)->cap ? ((vec)->v = as_vec_grow_((vec)->v, &(vec)->cap, (need),  \
							       sizeof *(vec)->v))              \
				    : 0))
#define as_vec_push(vec, ...)                                                                  \
	do {                                                                                   \
		as_vec_reserve(vec, (vec)->n + 1);                                             \
		(vec)->v[(vec)->n++] = (__VA_ARGS__);                                          \
	} while (0)
#define as_vec_foreach(it, vec)                                                                \
	for (__typeof__(*(vec)->v) *it = (vec)->v; it && it < (vec)->v + (vec)->n; it++)
#define as_vec_clear(vec)                                                                      \
	do {                                                                                   \
		free((vec)->v);                                                                \
		(vec)->v = NULL;                                                               \
		(vec)->n = (vec)->cap = 0;                                                     \
	} while (0)

#endif

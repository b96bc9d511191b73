/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a selection of a session of memory says beside functions: how large its blocks are and how
 * long they live, what types own them, and which of them grow step by step.
 *
 *	r = as_selection_make(m, &query, &s, err);
 *	as_heap_bins_make(s, AS_HEAP_SIZES, &bins);
 *	as_heap_types_make(s, &types);	… as_heap_types_clear(&types);
 *	as_heap_chains_make(s, &chains);	… as_heap_chains_clear(&chains);
 *	as_selection_free(s);
 *
 * Bins count by powers of two: bin 0 the value 0, bin k the values from 2^(k-1) to 2^k - 1.
 *
 * A *type* is the container whose code stands between a function of the program and the allocator,
 * as the names of that code tell: Vec<T>, String, Box<T>, HashMap<K, V>, std::vector<T>. The outermost
 * of the plumbing decides: a Vec within a String is the String's. Names of old Rust mangling do not hold
 * the parameters: they are debug information's, or "Vec<T>" without it. No such code: "".
 *
 * A *chain* is a block that realloc changed at least once, from its first size to its last. The rows
 * are of the innermost places of the folded stacks: function, file and line.
 *
 * Thread rule: pure. Names are the model's, or belong to what was made.
 */
#ifndef AS_MODEL_HEAP_TABLES_H
#define AS_MODEL_HEAP_TABLES_H

#include "base/buf.h"
#include "model/profile/selection.h"

#define AS_HEAP_BINS 64u

enum as_heap_bins_of {
	AS_HEAP_SIZES,     /* bytes, of what was allocated */
	AS_HEAP_AGES,      /* allocations of the thread meanwhile, of what was freed */
	AS_HEAP_LIFETIMES, /* microseconds, of what was freed */
	AS_HEAP_LAST_SIZES /* bytes, of chains at their end */
};
struct as_heap_bins {
	uint64_t count[AS_HEAP_BINS], total;
};
void as_heap_bins_make(const struct as_selection *s, enum as_heap_bins_of of,
		       struct as_heap_bins *ret);
/* The last value of the bin below which at least this share of all are; 0: none are. */
uint64_t as_heap_bins_quantile(const struct as_heap_bins *b, double share);
static inline uint64_t as_heap_bin_first(unsigned bin)
{
	return bin ? 1ull << (bin - 1) : 0;
}
static inline uint64_t as_heap_bin_last(unsigned bin)
{
	return bin ? (1ull << (bin - 1)) * 2 - 1 : 0;
}

struct as_heap_type {
	const char *name; /* "": no container */
	uint64_t weight;  /* in the model's measure */
	uint64_t values[AS_HEAP_VALUES];
};
struct as_heap_types {
	AS_VEC(struct as_heap_type) v; /* by weight, heaviest first */
	struct as_arena arena;
};
void as_heap_types_make(const struct as_selection *s, struct as_heap_types *ret);
void as_heap_types_clear(struct as_heap_types *t);
/*
 * "alloc::vec::Vec<T,A>::push" and "push<u8, alloc::alloc::Global>": appends "alloc::vec::Vec<u8,
 * alloc::alloc::Global>::push". Debug information lists the parameters of the type before those of the
 * function, as the type's own list has them. Names that do not fit together stay as they are.
 */
void as_heap_with_parameters(const char *full, const char *generic, struct as_buf *out);
/* The type that a function's name shows, appended; false: it shows none. */
bool as_heap_type_of_name(const char *full, struct as_buf *out);
/* Bytes of a value of that type in Rust or C++ on 64-bit machines; 0: not known. */
uint64_t as_heap_size_of_type(const char *name, size_t n);

struct as_heap_chain {
	const struct as_m_place *place; /* NULL: no frames */
	const char *type;               /* "": not known */
	uint64_t reallocs, in_place, copied_bytes, chains, first_bytes;
	uint64_t ended, last_bytes, last_max_bytes;
	struct as_heap_bins last;
};
struct as_heap_chains {
	AS_VEC(struct as_heap_chain) v; /* by bytes copied, then by reallocs */
	struct as_arena arena;
};
void as_heap_chains_make(const struct as_selection *s, struct as_heap_chains *ret);
void as_heap_chains_clear(struct as_heap_chains *c);
/* A size to begin with that at least 9 of 10 chains never outgrow; 0: none ended. */
uint64_t as_heap_chain_capacity(const struct as_heap_chain *c);

#endif

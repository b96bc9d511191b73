/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which blocks of a process that stands still can still be reached: a conservative mark.
 *
 *	struct as_leaks l;
 *	as_leaks_init(&l, &memory);
 *	as_leaks_add_live(&l, heap);			or as_leaks_add, block by block
 *	as_leaks_seal(&l);
 *	as_leaks_root_word(&l, rsp…);			each register
 *	as_leaks_root(&l, low, high);			stacks, writable data, …
 *	as_leaks_finish(&l);				now every block has its class
 *	as_leaks_clear(&l);
 *
 * A word at an address that is a multiple of 8 and whose value lies in a block points to it. The classes
 * are those of memcheck's leak check:
 *
 *	reachable	a chain of pointers to beginnings of blocks leads to it from a root
 *	possible	a chain does, but one pointer of it leads inside of a block
 *	lost		nothing points to it but perhaps blocks that are lost, too: of those that
 *			point to each other in a circle, the one with the lowest address
 *	indirect	a lost block leads to it
 *
 * Each indirect block is charged to the lost block that leads to it (the first, where several do), its
 * owner. A pointer inside counts as one to the beginning where the layout of the block says that
 * programs hold it so (enum as_leak_inside).
 *
 * What is not found: a block that a stale word points to (in a register, in a part of a stack frame that
 * is not in use, in memory that an allocator keeps without our knowing it) seems reachable; one whose
 * pointer is kept in a changed form (xor, compressed, in a vector register only) seems lost.
 *
 * Memory is read in batches and never kept; blocks are visited without recursion. Cost: 24 bytes a
 * block, 2 bytes for each KiB that the blocks span; time about that of reading the memory twice
 * (bench/heap-leaks). Of lost blocks at most AS_LEAK_EDGES pointers to each other are noted; what is
 * beyond is counted (edges_beyond) and may give a tree more than one owner. Not thread safe.
 */
#ifndef AS_HEAP_LEAK_H
#define AS_HEAP_LEAK_H

#include "heap/heap.h"

#define AS_LEAK_EDGES (1u << 26)

enum as_leak_class {
	AS_LEAK_LOST,
	AS_LEAK_INDIRECT,
	AS_LEAK_POSSIBLE,
	AS_LEAK_REACHABLE,
	AS_LEAK_CLASSES
};

/* Pointers inside of blocks that count as if they pointed to the beginning. The first four as in
 * memcheck; the others are what Rust's library holds. */
enum as_leak_inside {
	AS_LEAK_START,      /* none was needed */
	AS_LEAK_STD_STRING, /* characters behind length, capacity and count: old std::string */
	AS_LEAK_LENGTH64,   /* behind 8 bytes with the size of what follows */
	AS_LEAK_NEW_ARRAY,  /* behind the number of elements: new T[n] with destructors */
	AS_LEAK_BASE_CLASS, /* a second vtable pointer: multiple inheritance */
	AS_LEAK_RUST_ARC,   /* behind two counts: Arc::into_raw, Rc::into_raw, std::thread */
	AS_LEAK_RUST_HASH,  /* control bytes behind the buckets: HashMap, HashSet */
	AS_LEAK_INSIDES
};

struct as_leak_range {
	uint64_t low, high;
};

enum as_leak_memory_kind { AS_LEAK_OTHER, AS_LEAK_CODE, AS_LEAK_DATA };

/* The process's memory. */
struct as_leak_memory {
	void *ctx;
	/* The ranges' bytes, one after the other; how many could be read before the first that could
	 * not. At most AS_LEAK_BATCH ranges. */
	size_t (*read)(void *ctx, const struct as_leak_range *v, size_t n, void *buf);
	/* The first part of [low, high) that holds something: mapped, readable, ever touched. False:
	 * none. NULL: all of it. */
	bool (*next)(void *ctx, uint64_t low, uint64_t high, struct as_leak_range *ret);
	/* Of a mapped file, code or other; NULL: no vtables are looked for. */
	enum as_leak_memory_kind (*kind)(void *ctx, uint64_t avma);
};
#define AS_LEAK_BATCH 512u

struct as_leak_block {
	uint64_t low, bytes;
	uint32_t tally;
	uint8_t class;  /* enum as_leak_class; true after as_leaks_finish */
	uint8_t inside; /* enum as_leak_inside: why a pointer into it was enough */
	uint8_t tries;
	bool queued;
};

struct as_leak_index;
struct as_leaks {
	struct as_leak_memory memory;
	AS_VEC(struct as_leak_block) blocks; /* sorted by address */
	/* owner[i]: of a lost or indirect block its owner's number, of others UINT32_MAX. NULL before
	 * as_leaks_finish. */
	uint32_t *owner;
	uint64_t scanned_bytes, unread_bytes; /* unread: of roots and blocks */
	uint64_t edges_beyond;
	uint64_t overlaps; /* blocks that lay in others: left out */
	/* own */
	uint64_t lowest, highest; /* where blocks are */
	struct as_leak_index *index;
	AS_VEC(uint32_t) queue;
	uint8_t *buffer;
};

void as_leaks_init(struct as_leaks *l, const struct as_leak_memory *m);
void as_leaks_clear(struct as_leaks *l);
void as_leaks_add(struct as_leaks *l, uint64_t ptr, uint64_t bytes, uint32_t tally);
/* All live blocks, of the domain of allocators. */
void as_leaks_add_live(struct as_leaks *l, const struct as_heap *h);
/* No more blocks. */
void as_leaks_seal(struct as_leaks *l);
/* The block that holds the address, its number; false: none. After as_leaks_seal. */
bool as_leaks_find(const struct as_leaks *l, uint64_t avma, uint32_t *ret);
/* The first block that ends behind the address; blocks.n: none. */
size_t as_leaks_first(const struct as_leaks *l, uint64_t avma);

void as_leaks_root_word(struct as_leaks *l, uint64_t word);
/* All words in the range but those of live blocks. */
void as_leaks_root(struct as_leaks *l, uint64_t low, uint64_t high);
void as_leaks_finish(struct as_leaks *l);

const char *as_leak_class_name(enum as_leak_class c);

/* ---- sums, which outlive the blocks ---- */

struct as_leak_row { /* of one tally */
	uint32_t tally;
	struct as_heap_amount amount[AS_LEAK_CLASSES];
	struct as_heap_amount owned; /* indirect blocks of the trees that its lost blocks own */
};

struct as_heap_leaks {
	uint64_t time_ns; /* CLOCK_MONOTONIC, of the stop */
	bool at_exit;
	uint64_t pause_ns, cpu_ns; /* it stood still; what looking cost us */
	uint64_t scanned_bytes, unread_bytes, edges_beyond;
	uint32_t threads;
	uint64_t inside[AS_LEAK_INSIDES]; /* blocks */
	struct as_heap_amount sum[AS_LEAK_CLASSES];
	AS_VEC(struct as_leak_row) rows;
};

void as_heap_leaks_sum(const struct as_leaks *l, struct as_heap_leaks *ret);
void as_heap_leaks_free(struct as_heap_leaks *k); /* NULL is fine */

#endif

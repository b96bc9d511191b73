/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a look at a process found (records HEAP_LEAKS to HEAP_PIN): leaked blocks by stack, and of what its
 * resident memory consisted.
 *
 *	as_model_leaks(m, &list);		stacks with leaked blocks, the most first
 *	as_leak_list_clear(&list);
 *
 * Classes are those of memcheck's leak check, and one more: what is reachable or possibly lost, and was
 * allocated by the C library, the dynamic linker or Rust's standard library for themselves, a few blocks
 * only, is the *runtime's*: kept until the end on purpose. What such a function allocates for its caller
 * (strdup, getline, …) is not.
 */
#ifndef AS_MODEL_LEAKS_H
#define AS_MODEL_LEAKS_H

#include "base/mem.h"
#include "session/session.h"

struct as_m_leak {
	struct as_rec_heap_leak r;
	bool runtime; /* its reachable and possibly lost blocks are the runtime's */
};
struct as_m_rss_part {
	struct as_rec_heap_rss_part r;
	const char *name; /* "": none */
};
struct as_m_look {
	AS_VEC(struct as_rec_heap_leaks) leaks; /* at most one for each process */
	AS_VEC(struct as_m_leak) rows;
	AS_VEC(struct as_rec_heap_rss) rss;
	AS_VEC(struct as_m_rss_part) parts;
	AS_VEC(struct as_rec_heap_pin) pins;
	uint64_t *leaked; /* by row of the heap: bytes lost, and what they lead to */
};

struct as_leak_sum {
	uint64_t blocks, bytes;
};
/* A stack (folded: model/memory/heap.h) of one process, summed up over its threads. */
struct as_leak_owner {
	uint32_t process, stack; /* stack AS_NONE: no frames */
	struct as_leak_sum lost, owned, possible, reachable, runtime;
	/* what the whole run says of the stack: */
	uint64_t live_bytes, exit_bytes; /* freed only while the process ended */
	int64_t growth_bytes;
	uint64_t growth_steps, growth_rises; /* of the thread that grew most */
};
struct as_leak_list {
	AS_VEC(struct as_leak_owner)
	owners; /* by bytes lost and owned, then possibly lost, … */
	struct as_leak_owner sum;
};

struct as_model;
/* Empty when leaks were not looked for (m->heap.look.leaks.n is 0). */
void as_model_leaks(const struct as_model *m, struct as_leak_list *ret);
void as_leak_list_clear(struct as_leak_list *l);

/* Blocks of a function that keep pages of a process, of all its threads and stacks. */
struct as_model_pin {
	uint32_t function; /* of the folded stacks; AS_NONE: they have no frames */
	uint64_t pages, bytes, blocks, live_bytes;
};
struct as_model_pins {
	AS_VEC(struct as_model_pin) v; /* by bytes, the most first */
};
void as_model_pins_find(const struct as_model *m, uint64_t process, struct as_model_pins *ret);
void as_model_pins_clear(struct as_model_pins *p);

/* A stack whose blocks grow as long as the program runs: in all but one of at least 4 steps at most, and
 * by more than half of what is there at the end. A cache stops. */
bool as_leak_grows(const struct as_leak_owner *o);

#endif

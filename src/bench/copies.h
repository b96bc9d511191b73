/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Copies of programs, so that builds are compared and not files: one that a linker wrote and one that
 * was copied differ by up to a percent of a short run, through the pages they lie in.
 *
 *	as_copies_init(&c);
 *	as_copy_add(&c, "./old", &path, err);	// path: to be run instead; NULL: it is run as it is
 *	…
 *	as_copies_make(&c, err);
 *	as_copies_clear(&c);			// removed
 *
 * Copied is an ELF program of at most AS_COPY_MAX bytes that lies outside of the system's folders (what
 * is installed was written in one way, and may look for files beside it), changes no rights when it is
 * run, and finds no library by $ORIGIN. The copies lie in one private folder, under their own names, in
 * folders whose names make the paths equally long, and are written in an order that is drawn.
 */
#ifndef AS_BENCH_COPIES_H
#define AS_BENCH_COPIES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/mem.h"

#define AS_COPY_MAX (256u << 20)

struct as_copy {
	char *from, *to, *why_not; /* why_not: it is run as it is, because …; NULL: to is run */
};
struct as_copies {
	char *folder;
	struct as_copy *v;
	size_t n, cap;
};
/* Looks at the program `name` runs; nothing is written yet. Returns its place. */
size_t as_copies_add(struct as_copies *c, const char *name);
/* Whether two programs of those are different files that can be copied. */
bool as_copies_differ(const struct as_copies *c);
/* Writes copy i, or all with SIZE_MAX. A folder where no program may be run: none is copied. */
int as_copies_make(struct as_copies *c, size_t i, uint64_t seed, struct as_error *err);
void as_copies_clear(struct as_copies *c);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Of what the resident memory of a process consists. The parts sum up to what the kernel says (VmRSS,
 * exactly: sums over /proc/PID/smaps), but for pages that were read and never written.
 *
 *	live		bytes of live blocks, as far as their pages are resident
 *	rounding	what sizes were rounded up by, and headers: told by the allocator's own rules
 *			(glibc: its headers; jemalloc, mimalloc: their size classes), else in held
 *	held		free, kept by the allocator: by arena
 *	mapping		mapped by the program itself: by stack
 *	reserved	mapped by the program without any access: by stack. Addresses, hardly ever memory
 *	anonymous	mapped by nobody who was seen
 *	stacks		of threads
 *	module, file	mapped files: those with code, others (shared memory is one)
 *	assay		put there by assay
 *
 * Untouched: bytes of live blocks whose pages are not resident.
 *
 * A page that holds few bytes of live blocks (less than a tenth) is *pinned*: no allocator can give it
 * back. What is free in it is charged to the blocks in it, in equal parts.
 */
#ifndef AS_HEAP_RESIDENT_H
#define AS_HEAP_RESIDENT_H

#include <stdint.h>
#include "base/mem.h"

enum as_resident_kind {
	AS_RESIDENT_LIVE,
	AS_RESIDENT_ROUNDING,
	AS_RESIDENT_HELD,
	AS_RESIDENT_MAPPING,
	AS_RESIDENT_ANONYMOUS,
	AS_RESIDENT_STACKS,
	AS_RESIDENT_MODULE,
	AS_RESIDENT_FILE,
	AS_RESIDENT_ASSAY,
	AS_RESIDENT_RESERVED,
	AS_RESIDENT_KINDS
};

#define AS_RESIDENT_NO_TALLY UINT32_MAX

struct as_resident_part {
	enum as_resident_kind kind;
	uint32_t tally; /* MAPPING, RESERVED: who; else AS_RESIDENT_NO_TALLY */
	char *name;     /* HELD: the arena; MODULE, FILE: path; else NULL */
	uint64_t bytes, mapped_bytes;
};

struct as_resident_pin { /* of one tally */
	uint32_t tally;
	uint64_t pages, bytes; /* bytes: its share of what is free in them */
	uint64_t blocks, live_bytes;
};

struct as_heap_resident {
	uint64_t time_ns;
	uint64_t rss_bytes, swapped_bytes;
	uint64_t untouched_bytes;
	/* Of what is held: in pages without a live block; in pages that are pinned. */
	uint64_t free_bytes, pinned_pages, pinned_bytes;
	AS_VEC(struct as_resident_part) parts;
	AS_VEC(struct as_resident_pin) pins;
};

void as_heap_resident_free(struct as_heap_resident *r); /* NULL is fine */

#endif

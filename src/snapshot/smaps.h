/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Mappings of a process with what is resident of them, page by page (/proc/PID/smaps and pagemap).
 *
 *	as_smaps_read(pid, &m, err);
 *	as_smaps_pages(&m, pid, AS_SMAPS_ALL);
 *	as_smap_resident(as_smaps_find(&m, avma), low, high)
 *	as_smaps_clear(&m);
 *
 * Addresses are avma. Cost: that of the two files, about 10 ms for each GiB that is resident. Thread
 * rule: none.
 */
#ifndef AS_SNAPSHOT_SMAPS_H
#define AS_SNAPSHOT_SMAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/err.h"
#include "base/mem.h"
#include "heap/leak.h"

#define AS_SMAP_BYTES_MAX (1ull << 38)

enum as_smap_kind {
	AS_SMAP_ANONYMOUS,
	AS_SMAP_FILE, /* also shared memory */
	AS_SMAP_HEAP, /* what brk moves */
	AS_SMAP_STACK,
	AS_SMAP_SPECIAL, /* vdso, vvar: the kernel's */
};

struct as_smap {
	uint64_t low, high, off;
	uint8_t kind; /* enum as_smap_kind */
	bool read, write, exec, shared;
	bool device; /* reading may have effects: it is not read */
	bool huge;   /* more than AS_SMAP_BYTES_MAX: its pages are not looked at */
	bool alone;  /* a fork does not have its contents (madvise) */
	char *path;  /* NULL: none */
	uint64_t rss_bytes, swapped_bytes;
	/* A bit per page; NULL: not known, all count as there. content: resident or swapped. */
	uint64_t *present, *content;
};
struct as_smaps {
	AS_VEC(struct as_smap) map; /* sorted, apart */
};

int as_smaps_read(pid_t pid, struct as_smaps *ret, struct as_error *err);
/* The text of smaps, NUL-terminated; it is changed. Lines that make no sense are skipped. */
void as_smaps_parse(char *text, struct as_smaps *ret);
/* Whose pages: a fork has those of private memory as its parent had them, so that they can be read from it
 * while the parent goes on; those of files and shared memory it has only when it touches them. */
enum as_smaps_pages { AS_SMAPS_FORKED = 1, AS_SMAPS_NOT_FORKED = 2, AS_SMAPS_ALL = 3 };
/* Which pages are there. Where pagemap cannot be read, all are. */
void as_smaps_pages(struct as_smaps *m, pid_t pid, enum as_smaps_pages which);
void as_smaps_clear(struct as_smaps *m);

struct as_smap *as_smaps_find(const struct as_smaps *m, uint64_t avma); /* NULL: none */
/* Bytes of [low, high) on resident pages; what is not of the mapping is left out. */
uint64_t as_smap_resident(const struct as_smap *m, uint64_t low, uint64_t high);
/* The first part of [low, high) on pages with contents. */
bool as_smap_next(const struct as_smap *m, uint64_t low, uint64_t high,
		  struct as_leak_range *ret);

#endif

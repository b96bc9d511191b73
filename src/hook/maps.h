/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The address space of a process: what is mapped, and where there is room for code of ours.
 *
 *	as_maps_read(pid, &maps, err);
 *	as_maps_place(&maps, module_lo, module_hi, bytes, &at);
 *	as_maps_clear(&maps);
 *
 * Addresses are avma. Cost: that of reading /proc/PID/maps. Thread rule: none.
 */
#ifndef AS_HOOK_MAPS_H
#define AS_HOOK_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/err.h"
#include "base/mem.h"

enum as_map_kind {
	AS_MAP_OTHER,
	AS_MAP_FILE,
	AS_MAP_HEAP,  /* grows upwards */
	AS_MAP_STACK, /* of the first thread; grows downwards */
	AS_MAP_VDSO,
};

struct as_map {
	uint64_t start, end;
	uint8_t kind; /* enum as_map_kind */
	bool read, write, exec;
};

struct as_maps {
	AS_VEC(struct as_map) map; /* sorted */
};

int as_maps_read(pid_t pid, struct as_maps *ret, struct as_error *err);
void as_maps_clear(struct as_maps *m);
const struct as_map *as_maps_find(const struct as_maps *m, uint64_t avma); /* NULL: nothing */

/* How far code of ours may be from the code it serves, end to end: a jump reaches 2 GiB, and so do
 * the operands of moved instructions, which refer to data behind or before the code. */
#define AS_HOOK_REACH 0x6cccc000ull /* 1.7 GiB */

/*
 * Room for bytes (a multiple of 4096) within AS_HOOK_REACH of all of [lo, hi); the nearest below if
 * there is some, and never where the heap or a stack will grow. False: none.
 */
bool as_maps_place(const struct as_maps *m, uint64_t lo, uint64_t hi, uint64_t bytes,
		   uint64_t *ret_avma);
/*
 * Room for much data, 64 GiB below the modules: so that what the program maps later lies where it would
 * have been, near the others, and in no range that programs (Lisp systems, sanitizers) have for
 * themselves. Where there is none, in the middle of the largest gap. A multiple of 2 MiB; 0: none.
 */
uint64_t as_maps_place_far(const struct as_maps *m, uint64_t bytes);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What is known of modules: which of their functions are wanted and how they are detoured. Found once per
 * file, for all processes that have it mapped.
 *
 *	known = as_hook_known_new();
 *	spec.known = known;			// of as_hook_spec, with spec.modules
 *	as_hook_known_free(known);		// after all that was hooked with it
 *
 * Thread rule: one thread.
 */
#ifndef AS_HOOK_KNOWN_H
#define AS_HOOK_KNOWN_H

#include "hook/allocators.h"
#include "hook/plan.h"
#include "image/image.h"

struct as_known_function {
	struct as_detour detour;
	struct as_allocator what;
	uint8_t verdict; /* enum as_detour_verdict */
};

struct as_known_module {
	/* id of as_image; the file as it was, should it be written to */
	uint32_t id;
	unsigned groups;
	uint64_t bytes;
	int64_t mtime_ns;

	struct as_elf *elf; /* open: names are its; NULL: there are none */
	AS_VEC(struct as_known_function) fn;
	uint64_t internal_svma[AS_RT_INTERNAL]; /* as_rt_home.internal */
	uint32_t ninternal;
	/* An allocator that is not seen, or only in part: "jemalloc"; NULL: none is known of. And why. */
	const char *unseen;
	char *why;
};

struct as_hook_known;
struct as_hook_known *as_hook_known_new(void);
void as_hook_known_free(struct as_hook_known *k); /* NULL is fine */

/* Functions of a module that are of one of the groups (enum as_hook_group). Valid until k is freed. A
 * module that cannot be read has none. */
const struct as_known_module *as_hook_known_get(struct as_hook_known *k, struct as_image *im,
						struct as_module *m, unsigned groups);
/* How many modules were looked through. */
size_t as_hook_known_count(const struct as_hook_known *k);

#endif

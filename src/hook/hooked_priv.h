/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Inside of hooked.h:
 *	scan.c		modules of the process -> functions, planned
 *	inject.c	memory in the target; code, copies and jumps
 *	modules.c	what the target is told of its modules: where they are, how stacks are read
 *	attach.c	the order of things, and back
 *	launch.c	from exec to where everything is loaded
 *	rights.c	programs that lose something when they are traced
 *	unseen.c	allocators without names
 *	known.c		what is known of modules, for all processes
 *	internal.c	frees that an allocator makes of itself
 *	mark.c		a mark asked for from outside
 */
#ifndef AS_HOOK_HOOKED_PRIV_H
#define AS_HOOK_HOOKED_PRIV_H

#include "base/mem.h"
#include "hook/hooked.h"
#include "hook/known.h"
#include "hook/maps.h"
#include "hook/stop.h"
#include "image/image.h"

#define AS_HOOK_MAX_FUNCTIONS 2000 /* of one process: what fits into the home */
#define AS_HOOK_HOME_BYTES    0x10000u
#define AS_HOOK_ISLAND_ROOM   0x20000u /* for thunks and copies behind the image */
#define AS_HOOK_RING_BYTES    (1u << 20)
#define AS_HOOK_FEW_CONTEXTS                                                                   \
	1024u /* with so many or fewer it is space for tables that is short, too */
#define AS_HOOK_TABLE_BYTES (256ull << 20) /* of address space, for unwind tables */

/* Code of ours near the modules it serves: the image, a note, then thunks and copies. */
struct as_island {
	uint64_t avma, bytes, used;
};
/* Behind the image, so that a later attach knows what was there before. 64 bytes are kept for it. */
struct as_island_note {
	uint64_t magic; /* AS_RT_MAGIC */
	uint64_t contexts_avma, contexts_bytes;
};
#define AS_ISLAND_NOTE_BYTES 64u

struct as_hooked_module {
	uint32_t id;           /* of as_image */
	uint64_t bias, lo, hi; /* avma of all its segments */
	char *path;
	/* an allocator that has no names; NULL: none known. And why it is not seen, or NULL. */
	const char *unseen, *why;
	bool present; /* in the map that was read last */
};

/* An unwind table in the shared memory. */
struct as_hooked_table {
	uint32_t module;   /* of as_image; UINT32_MAX: the in-target image */
	uint32_t segments; /* 0: it has none, or there was no room */
	uint64_t off;      /* in the shared memory */
};

struct as_hooked_function {
	struct as_detour detour;
	struct as_allocator what;
	uint32_t module; /* in as_hooked.module */
	uint16_t id;
	uint8_t state, verdict;
	uint64_t thunk_avma, copy_avma;
	uint8_t patch[AS_DETOUR_WINDOW];
};

struct as_hooked {
	pid_t pid;
	int mem_fd, shared_fd; /* -1: none */
	struct as_hook_spec spec;
	struct as_image *image;
	struct as_hook_known *known;
	AS_VEC(struct as_hooked_module) module;
	AS_VEC(struct as_hooked_function) fn;
	AS_VEC(struct as_island) island;
	AS_VEC(struct as_hooked_table) table;
	uint64_t home_avma, contexts_avma, shared_avma, sampled_avma;
	uint64_t contexts_bytes;
	AS_VEC(struct as_island_note) earlier; /* left by those that were here before */
	void *shared;                          /* mapped here, too; NULL: not yet */
	/* tables_off: where the rings end */
	size_t shared_bytes, tables_off, table_bytes, tables_used;
	struct as_rt_home home;
	struct as_hook_cost cost;
	uint64_t internal_avma[AS_RT_INTERNAL]; /* as_rt_home.internal */
	uint32_t ninternal;
	uint32_t tid_off; /* as_rt_control.tid_off */
	bool has_shadow_stack, detached;
};

static inline uint64_t as_hooked_avma(const struct as_hooked *h,
				      const struct as_hooked_function *f)
{
	return f->detour.svma + h->module.v[f->module].bias;
}

/* scan.c: reads the map; new modules' functions are added as AS_HOOK_REFUSED with their verdict,
 * or AS_HOOK_GONE when they can be patched and are not yet. *ret_from: the first new one. */
int as_hooked_scan(struct as_hooked *h, size_t *ret_from, struct as_error *err);

/* inject.c */
static inline uint64_t as_hooked_image_bytes(const struct as_rt_image *im)
{
	return (im->bytes + 4095ull) & ~4095ull;
}
struct as_hooked *as_hooked_new(pid_t pid, const struct as_hook_spec *spec,
				struct as_error *err);
/* Maps what the functions from `from` on need; in a stop. */
int as_hooked_map(struct as_hooked *h, struct as_stop *s, struct as_error *err);
/* Whether a function can be patched, but no code of ours is near enough. */
bool as_hooked_needs_island(struct as_hooked *h);
/* Writes the image, thunks and copies for the functions from `from` on; needs no stop. */
int as_hooked_write(struct as_hooked *h, size_t from, struct as_error *err);

/*
 * internal.c: of a module whose functions are list. lo, hi: where the allocator lies, when it has
 * no names.
 */
void as_hooked_find_internal(struct as_known_module *m, const struct as_allocators *list,
			     uint64_t lo, uint64_t hi);

/* unseen.c: which allocator a program without symbols holds, as far as that can be told; NULL: none. */
const char *as_hooked_find_unseen(struct as_elf *elf);
/* What it says of a static program without symbols that has nothing an allocator is known by. */
#define AS_HOOKED_ANY "a C library"

/* modules.c: the map that was scanned last, for the code in the target. */
void as_hooked_publish(struct as_hooked *h);

/* attach.c */
/* Finds what earlier attaches left in the process. */
void as_hooked_find_earlier(struct as_hooked *h);
int as_hooked_check_gs(struct as_hooked *h, struct as_stop *s, struct as_error *err);
void as_hooked_set_gs(struct as_hooked *h, struct as_stop *s);
bool as_hooked_any_wanted(const struct as_hooked *h);
/* There is none: why. */
int as_hooked_fail_nothing(const struct as_hooked *h, struct as_error *err);
/* From threads that stand still, as_rt_control.tid_off. */
void as_hooked_find_tid_off(struct as_hooked *h, const struct as_stop *s);
/* Patches them: in a stop, or (NULL) when nothing runs their code yet. */
int as_hooked_patch(struct as_hooked *h, size_t from, struct as_stop *s, struct as_error *err);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Calls of free that glibc makes of itself: a thread that ends gives back its cache of blocks by free, and
 * the program has freed all of them before. They are told apart by where they return to. In the shared
 * library what others of its functions free goes through its procedure linkage table, so that a program
 * can have another allocator; a direct call is the allocator's own. In a static program all calls
 * are direct, and the function is known by its name.
 */
#include "hook/hooked_priv.h"

#include <string.h>

#define CALL       0xe8
#define CALL_BYTES 5
#define FUNCTION   "__malloc_arena_thread_freeres"

struct range {
	uint64_t lo, hi; /* svma; lo == hi: not found */
};

static void on_symbol(void *ctx, const struct as_elf_symbol *s)
{
	struct range *r = ctx;

	if (s->func && !strcmp(s->name, FUNCTION))
		*r = (struct range){s->svma, s->svma + s->size_bytes};
}

/* Direct calls of free_svma within r. */
static void find_calls(struct as_known_module *m, const struct range *r, uint64_t free_svma)
{
	const struct as_elf_section *s = as_elf_find_section(m->elf, ".text");
	const uint8_t *p;
	size_t n;

	if (!s || as_elf_section_data(m->elf, ".text", &p, &n, NULL) < 0)
		return;
	for (size_t i = 0; i + CALL_BYTES <= n; i++) {
		uint64_t next = s->svma + i + CALL_BYTES;

		if (p[i] != CALL || next <= r->lo || next > r->hi ||
		    next + (uint64_t)(int64_t)(int32_t)as_get_le32(p + i + 1) != free_svma)
			continue;
		if (m->ninternal == AS_RT_INTERNAL)
			return;
		m->internal_svma[m->ninternal++] = next;
	}
}

void as_hooked_find_internal(struct as_known_module *m, const struct as_allocators *list,
			     uint64_t lo, uint64_t hi)
{
	struct range r = {lo, hi};

	as_vec_foreach (a, list) {
		if (a->kind != AS_RT_FREE || a->family > AS_ALLOCATOR_GLIBC ||
		    (strcmp(a->name, "free") != 0 && strcmp(a->name, "cfree") != 0))
			continue;
		/* without a name: of all functions among the allocator's only this one frees */
		if (a->by_signature && a->family != AS_ALLOCATOR_GLIBC)
			return;
		if (r.lo == r.hi)
			(void)as_elf_each_symbol(m->elf, on_symbol, &r, NULL);
		if (r.lo == r.hi && strstr(as_elf_name(m->elf), "/libc.so"))
			r.hi = UINT64_MAX;
		if (r.lo != r.hi)
			find_calls(m, &r, a->svma);
		return;
	}
}

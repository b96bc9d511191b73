/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Allocators without names: a program that was linked with one and then stripped. What they say when
 * something is wrong, and the names of their settings, are still in it.
 */
#include "hook/hooked_priv.h"

#include <string.h>

#define MAX_BYTES (64u << 20) /* of constants that are looked through */

static const struct sign {
	const char *text, *what;
} signs[] = {
	{"<jemalloc>: ", "jemalloc"},
	{"mimalloc: warning: ", "mimalloc"},
	{"tcmalloc.current_total_thread_cache_bytes", "tcmalloc"},
};

/* Libraries come stripped, and have their functions' names all the same. */
static bool is_program(const struct as_elf *elf)
{
	return as_elf_find_section(elf, ".interp") || !as_elf_find_section(elf, ".dynamic");
}

const char *as_hooked_find_unseen(struct as_elf *elf)
{
	const uint8_t *p;
	size_t n;

	if (as_elf_find_section(elf, ".symtab") || !is_program(elf) ||
	    as_elf_section_data(elf, ".rodata", &p, &n, NULL) < 0)
		return NULL;
	n = AS_MIN(n, (size_t)MAX_BYTES);
	for (size_t i = 0; i < AS_ARRAY_LEN(signs); i++) {
		if (memmem(p, n, signs[i].text, strlen(signs[i].text)))
			return signs[i].what;
	}
	return NULL;
}

size_t as_hook_unseen_count(const struct as_hooked *h)
{
	size_t n = 0;

	as_vec_foreach (m, &h->module)
		n += m->unseen != NULL;
	return n;
}

void as_hook_unseen(const struct as_hooked *h, size_t i, const char **ret_path,
		    const char **ret_what)
{
	*ret_path = *ret_what = "";
	as_vec_foreach (m, &h->module) {
		if (!m->unseen || i--)
			continue;
		*ret_path = m->path;
		*ret_what = m->unseen;
		return;
	}
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Allocators without names: a program that was linked with one and then stripped. What they say when
 * something is wrong, and the names of their settings, are still in it.
 */
#include "hook/hooked_priv.h"

#include <elf.h>
#include <string.h>

#include "base/buf.h"

#ifndef DF_1_PIE
#define DF_1_PIE 0x08000000
#endif

#define MAX_BYTES (64u << 20) /* of constants that are looked through */

static const struct sign {
	const char *text, *what;
} signs[] = {
	{"<jemalloc>: ", "jemalloc"},
	{"mimalloc: warning: ", "mimalloc"},
	{"malloc(): corrupted top size", "glibc's malloc"},
	{"tcmalloc.current_total_thread_cache_bytes", "tcmalloc"},
};

/* Of .dynamic; 0: not there. */
static uint64_t dynamic_value(struct as_elf *elf, uint64_t tag)
{
	const uint8_t *p;
	size_t n;

	if (as_elf_section_data(elf, ".dynamic", &p, &n, NULL) < 0)
		return 0;
	for (size_t i = 0; i + 16 <= n; i += 16) {
		if (as_get_le64(p + i) == tag)
			return as_get_le64(p + i + 8);
	}
	return 0;
}

/*
 * Libraries come stripped, and have their functions' names all the same. Some have an interpreter
 * (libc).
 */
static bool is_program(struct as_elf *elf)
{
	if (as_elf_find_section(elf, ".interp"))
		return !dynamic_value(elf, DT_SONAME);
	return !as_elf_find_section(elf, ".dynamic") ||
	       dynamic_value(elf, DT_FLAGS_1) & DF_1_PIE;
}

const char *as_hooked_find_unseen(struct as_elf *elf)
{
	bool is_static = !as_elf_find_section(elf, ".interp");
	const uint8_t *p;
	size_t n;

	if (as_elf_find_section(elf, ".symtab") || !is_program(elf))
		return NULL;
	if (as_elf_section_data(elf, ".rodata", &p, &n, NULL) < 0)
		n = 0;
	n = AS_MIN(n, (size_t)MAX_BYTES);
	for (size_t i = 0; i < AS_ARRAY_LEN(signs); i++) {
		if (n && memmem(p, n, signs[i].text, strlen(signs[i].text)))
			return signs[i].what;
	}
	return is_static ? AS_HOOKED_ANY : NULL;
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

const char *as_hook_unseen_why(const struct as_hooked *h, size_t i)
{
	as_vec_foreach (m, &h->module) {
		if (m->unseen && !i--)
			return m->why;
	}
	return NULL;
}

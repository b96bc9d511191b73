/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Any bytes as an object file: open, ids, every section, symbols, address translation, index. */
#include <stdint.h>
#include <stdlib.h>
#include "elf/debugfile.h"
#include "elf/elf.h"
#include "symbol/symtab_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

static void on_symbol(void *ctx, const struct as_elf_symbol *s)
{
	for (const char *p = s->name; *p; p++)
		sink += (uint8_t)*p;
}

static void read_sections(struct as_elf *e)
{
	const struct as_elf_section *s;
	size_t n;

	s = as_elf_sections(e, &n);
	for (size_t i = 0; i < n && i < 200; i++) {
		const uint8_t *p;
		size_t len;

		if (as_elf_section_data(e, s[i].name, &p, &len, NULL) == AS_OK && len)
			sink += p[0] + p[len - 1];
	}
}

static void index_symbols(struct as_elf *e)
{
	static const struct as_extent extents[] = {{0x1000, 0x1010}, {0x1020, 0x1080}};
	struct as_symtab_spec spec = {
		.elf = e, .module = "m", .extents = extents, .nextents = 2};
	struct as_symtab_hit hit;
	struct as_symtab *t;

	if (as_symtab_build(&spec, &t, NULL) < 0)
		return;
	for (uint64_t at = 0x1000; at < 0x1100; at += 7)
		sink += as_symtab_find(t, at, &hit);
	sink += as_symtab_find(t, as_elf_entry(e), &hit);
	as_symtab_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const no_dirs[] = {NULL};
	struct as_debug_search search = {.debug_dirs = no_dirs, .root = "/nonexistent"};
	struct as_build_id id;
	struct as_elf *e, *found;
	const uint8_t *p;
	uint64_t v;
	size_t len;

	if (as_elf_open_mem(data, size, "input", &e, NULL) < 0)
		return 0;
	as_elf_content_id(e, &id);
	read_sections(e);
	(void)as_elf_each_symbol(e, on_symbol, NULL, NULL);
	if (as_elf_bias(e, 0x7f0000001000, 0x2000, 0x1000, &v))
		sink += v;
	if (as_elf_svma_of_off(e, 0x1000, &v) && (p = as_elf_at(e, v, 8)) != NULL)
		sink += p[7];
	if ((p = as_elf_eh_frame(e, &v, &len)) != NULL && len)
		sink += p[len - 1];
	index_symbols(e);
	if (as_debugfile_find(e, &search, &found, NULL, NULL) == AS_OK)
		as_elf_close(found);
	if (as_debugfile_alt(e, &search, &found, NULL, NULL) == AS_OK)
		as_elf_close(found);
	as_elf_drop_caches(e);
	as_elf_close(e);
	return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Entries of global offset tables that name an allocator's function, pointed to ours: see alloc_priv.h.
 * Sources: System V ABI, dynamic section and relocation; its supplements for x86-64 and AArch64.
 */
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/alloc_priv.h"

/* Relocations whose place holds a function's address and nothing else. */
#if defined(__x86_64__)
static const unsigned address_types[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_64};
#elif defined(__aarch64__)
static const unsigned address_types[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT,
					 R_AARCH64_ABS64};
#else
static const unsigned address_types[] = {0};
#endif

struct tables {
	const ElfW(Sym) * symbols;
	const char *strings;
	const ElfW(Rela) * rela[2]; /* of data, of calls */
	size_t n[2];
};

/* glibc makes these addresses absolute when it loads an object; musl and the vdso leave them. */
static const void *loaded(const struct dl_phdr_info *o, ElfW(Addr) v)
{
	return (const void *)(v < o->dlpi_addr ? v + o->dlpi_addr : v);
}

static bool find_tables(const struct dl_phdr_info *o, struct tables *t)
{
	const ElfW(Dyn) *d = NULL;

	*t = (struct tables){0};
	for (int i = 0; i < o->dlpi_phnum; i++) {
		if (o->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const ElfW(Dyn) *)(o->dlpi_addr + o->dlpi_phdr[i].p_vaddr);
	}
	for (; d && d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_SYMTAB:
			t->symbols = loaded(o, d->d_un.d_ptr);
			break;
		case DT_STRTAB:
			t->strings = loaded(o, d->d_un.d_ptr);
			break;
		case DT_RELA:
			t->rela[0] = loaded(o, d->d_un.d_ptr);
			break;
		case DT_RELASZ:
			t->n[0] = d->d_un.d_val / sizeof(ElfW(Rela));
			break;
		case DT_JMPREL:
			t->rela[1] = loaded(o, d->d_un.d_ptr);
			break;
		case DT_PLTRELSZ:
			t->n[1] = d->d_un.d_val / sizeof(ElfW(Rela));
			break;
		default:
			break;
		}
	}
	return t->symbols && t->strings;
}

static bool is_address(unsigned long type)
{
	for (size_t i = 0; i < sizeof address_types / sizeof *address_types; i++) {
		if (address_types[i] == type)
			return true;
	}
	return false;
}

/* Whether the place is in memory of this object that is written to, or was before it was protected. */
static int protection(const struct dl_phdr_info *o, uintptr_t at, bool *ret_sealed)
{
	int found = -1;

	*ret_sealed = false;
	for (int i = 0; i < o->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &o->dlpi_phdr[i];
		uintptr_t from = o->dlpi_addr + p->p_vaddr;

		if (at < from || at + sizeof(void *) > from + p->p_memsz)
			continue;
		if (p->p_type == PT_LOAD)
			found = p->p_flags & PF_W ? PROT_READ | PROT_WRITE : -1;
		if (p->p_type == PT_GNU_RELRO)
			*ret_sealed = true;
	}
	return found;
}

static bool point(const struct dl_phdr_info *o, uintptr_t at, void *to)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE), page = at & ~(page_bytes - 1);
	bool sealed;

	if (at % sizeof(void *) || protection(o, at, &sealed) < 0)
		return false;
	if (sealed && mprotect((void *)page, page_bytes, PROT_READ | PROT_WRITE) < 0)
		return false;
	*(void **)at = to;
	if (sealed)
		(void)mprotect((void *)page, page_bytes, PROT_READ); /* open is no harm */
	return true;
}

static int patch_object(struct dl_phdr_info *o, size_t size, void *ctx)
{
	struct tables t;
	size_t *patched = ctx;

	if (!find_tables(o, &t))
		return 0;
	for (int k = 0; k < 2; k++) {
		for (size_t i = 0; t.rela[k] && i < t.n[k]; i++) {
			const ElfW(Rela) *r = &t.rela[k][i];
			const char *name;

			if (!is_address(ELF64_R_TYPE(r->r_info)) || !ELF64_R_SYM(r->r_info) ||
			    r->r_addend)
				continue;
			name = t.strings + t.symbols[ELF64_R_SYM(r->r_info)].st_name;
			for (int h = 0; h < AS_ALLOC_NAMES_; h++) {
				if (as_alloc_hooks[h].real &&
				    strcmp(as_alloc_hooks[h].name, name) == 0)
					*patched += point(o, o->dlpi_addr + r->r_offset,
							  as_alloc_hooks[h].ours);
			}
		}
	}
	return 0;
}

size_t as_alloc_patch_tables(void)
{
	size_t patched = 0;

	(void)dl_iterate_phdr(patch_object, &patched); /* 0: the last callback's */
	return patched;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For tests and benchmarks of unwind/: the as_cfi_input of an ELF file, mapped, without any
 * library that the code under test also uses. 64-bit little-endian files only.
 */
#ifndef AS_TESTS_CFI_FILE_H
#define AS_TESTS_CFI_FILE_H

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "unwind/table.h"

#define CFI_FILE_MAX_RANGES 64

struct cfi_file {
	uint8_t *map;
	size_t size;
	struct as_cfi_input in;
	struct as_code_range code[CFI_FILE_MAX_RANGES];
	bool is_exec; /* ET_EXEC */
};

static inline void cfi_file_close(struct cfi_file *f)
{
	if (f->map)
		munmap(f->map, f->size);
	f->map = NULL;
}

static inline void cfi_file_section(struct cfi_file *f, const Elf64_Shdr *s, const char *name)
{
	struct as_bytes bytes = {f->map + s->sh_offset, s->sh_size};
	if (s->sh_type == SHT_NOBITS || s->sh_offset > f->size ||
	    s->sh_size > f->size - s->sh_offset)
		return;
	if (!strcmp(name, ".eh_frame")) {
		f->in.eh_frame = bytes;
		f->in.eh_frame_svma = s->sh_addr;
	} else if (!strcmp(name, ".debug_frame") && !(s->sh_flags & SHF_COMPRESSED)) {
		f->in.debug_frame = bytes;
	} else if (!strcmp(name, ".text")) {
		f->in.text_base_svma = s->sh_addr;
	}
	if (s->sh_flags & SHF_EXECINSTR && f->in.ncode < CFI_FILE_MAX_RANGES)
		f->code[f->in.ncode++] =
			(struct as_code_range){s->sh_addr, bytes, !strncmp(name, ".plt", 4)};
}

/* False when path is no such file or has no sections. f stays where it is until closed. */
static inline bool cfi_file_open(const char *path, struct cfi_file *f)
{
	struct stat st;
	memset(f, 0, sizeof *f);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(Elf64_Ehdr)) {
		close(fd);
		return false;
	}
	f->size = (size_t)st.st_size;
	f->map = mmap(NULL, f->size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (f->map == MAP_FAILED) {
		f->map = NULL;
		return false;
	}
	const Elf64_Ehdr *h = (const void *)f->map;
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64 ||
	    !h->e_shnum || h->e_shoff > f->size ||
	    h->e_shnum * sizeof(Elf64_Shdr) > f->size - h->e_shoff) {
		cfi_file_close(f);
		return false;
	}
	f->in.arch = h->e_machine == EM_AARCH64 ? AS_ARCH_AARCH64 : AS_ARCH_X86_64;
	f->in.entry_svma = h->e_entry;
	f->in.code = f->code;
	f->is_exec = h->e_type == ET_EXEC;
	const Elf64_Shdr *s = (const void *)(f->map + h->e_shoff);
	const char *names = (const char *)f->map + s[h->e_shstrndx].sh_offset;
	for (unsigned i = 0; i < h->e_shnum; i++)
		cfi_file_section(f, &s[i], names + s[i].sh_name);
	return true;
}

#endif

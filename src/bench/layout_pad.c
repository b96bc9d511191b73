/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Padding as an object file: no assembler is needed, as there may be none for the target. */
#include <elf.h>
#include <string.h>

#include "base/mem.h"
#include "bench/layout_priv.h"

enum { NONE, TEXT, SYMTAB, STRTAB, SHSTRTAB, STACK, SECTIONS };

/* The name begins with .text so that linkers put it among the code, in the order of the files. */
static const char names[] = "\0.text.assay_pad\0.symtab\0.strtab\0.shstrtab\0.note.GNU-stack";
static const uint32_t name_at[SECTIONS] = {0, 1, 17, 25, 33, 43};

static uint64_t add(struct as_buf *out, const void *p, size_t n, size_t start)
{
	uint64_t off;

	as_buf_fill(out, 0, (8 - (out->len - start) % 8) % 8);
	off = out->len - start;
	as_buf_add(out, p, n);
	return off;
}

void as_layout_pad_object(uint16_t machine, const char *symbol, uint64_t size_bytes,
			  struct as_buf *out)
{
	size_t start = out->len, n = strlen(symbol);
	Elf64_Ehdr h = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				    EV_CURRENT},
			.e_type = ET_REL,
			.e_machine = machine,
			.e_version = EV_CURRENT,
			.e_ehsize = sizeof h,
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = SECTIONS,
			.e_shstrndx = SHSTRTAB};
	Elf64_Sym symbols[2] = {{0},
				{.st_name = 1,
				 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				 .st_other = STV_HIDDEN,
				 .st_shndx = TEXT,
				 .st_size = size_bytes}};
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0}, strings = {0};
	Elf64_Shdr s[SECTIONS] = {0};

	as_buf_fill(&text, 0, size_bytes);
	as_buf_addc(&strings, 0);
	as_buf_add(&strings, symbol, n + 1);
	as_buf_add(out, &h, sizeof h);
	s[TEXT] = (Elf64_Shdr){.sh_type = SHT_PROGBITS,
			       .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			       .sh_addralign = 1,
			       .sh_size = size_bytes};
	s[TEXT].sh_offset = add(out, as_buf_str(&text), size_bytes, start);
	s[SYMTAB] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
				 .sh_link = STRTAB,
				 .sh_info = 1,
				 .sh_entsize = sizeof symbols[0],
				 .sh_addralign = 8,
				 .sh_size = sizeof symbols};
	s[SYMTAB].sh_offset = add(out, symbols, sizeof symbols, start);
	s[STRTAB] =
		(Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_addralign = 1, .sh_size = strings.len};
	s[STRTAB].sh_offset = add(out, strings.p, strings.len, start);
	s[SHSTRTAB] =
		(Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_addralign = 1, .sh_size = sizeof names};
	s[SHSTRTAB].sh_offset = add(out, names, sizeof names, start);
	/* absent, it would ask for an executable stack */
	s[STACK] = (Elf64_Shdr){
		.sh_type = SHT_PROGBITS, .sh_addralign = 1, .sh_offset = s[SHSTRTAB].sh_offset};
	for (int i = 0; i < SECTIONS; i++)
		s[i].sh_name = name_at[i];
	h.e_shoff = add(out, s, sizeof s, start);
	memcpy(out->p + start, &h, sizeof h);
}

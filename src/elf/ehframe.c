/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* .eh_frame of an object without section headers, through PT_GNU_EH_FRAME: see elf.h. */
#include <elf.h>
#include "base/buf.h"
#include "elf/elf_priv.h"

#define EH_PE_PCREL  0x10
#define EH_PE_SDATA4 0x0b
#define EH_PE_UDATA4 0x03
#define EH_PE_UDATA8 0x04

static bool eh_frame_hdr(const struct as_elf *e, uint64_t *ret_svma, uint64_t *ret_off)
{
	uint64_t phoff = as_get_le64(e->img.p + offsetof(Elf64_Ehdr, e_phoff));
	uint32_t n = (uint32_t)as_get_le32(e->img.p + offsetof(Elf64_Ehdr, e_phnum)) & 0xffff;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = phoff + (uint64_t)i * sizeof(Elf64_Phdr);
		if (at < phoff || !as_elf_in_file(e, at, sizeof(Elf64_Phdr)))
			return false;
		const uint8_t *p = e->img.p + at;
		if (as_get_le32(p) != PT_GNU_EH_FRAME)
			continue;
		*ret_off = as_get_le64(p + offsetof(Elf64_Phdr, p_offset));
		*ret_svma = as_get_le64(p + offsetof(Elf64_Phdr, p_vaddr));
		return as_elf_in_file(e, *ret_off, 12);
	}
	return false;
}

const uint8_t *as_elf_eh_frame(const struct as_elf *e, uint64_t *ret_svma, size_t *ret_n)
{
	uint64_t hdr_svma, off, at;
	if (!eh_frame_hdr(e, &hdr_svma, &off))
		return NULL;
	const uint8_t *h = e->img.p + off;
	/* Linkers write the pointer pc-relative in four bytes; eight absolute ones are the
	 * other form seen. */
	if (h[0] != 1)
		return NULL;
	if (h[1] == (EH_PE_PCREL | EH_PE_SDATA4))
		at = hdr_svma + 4 + (uint64_t)(int64_t)(int32_t)as_get_le32(h + 4);
	else if (h[1] == EH_PE_UDATA4)
		at = as_get_le32(h + 4);
	else if (h[1] == EH_PE_UDATA8)
		at = as_get_le64(h + 4);
	else
		return NULL;
	for (size_t i = 0; i < e->nseg; i++) {
		const struct as_elf_segment *s = &e->seg[i];
		if (at < s->svma || at >= s->svma + s->filesz)
			continue;
		*ret_svma = at;
		*ret_n = (size_t)(s->svma + s->filesz - at);
		return as_elf_at(e, at, *ret_n);
	}
	return NULL;
}

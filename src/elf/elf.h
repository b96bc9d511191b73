/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Object files: one opened ELF file (or image in memory) with its program headers, sections
 * (decompressed on demand: SHF_COMPRESSED zlib and zstd, .zdebug), build-id, symbols. Built on
 * libelf for the container; every offset is checked again before use. Reads through a private mmap;
 * a file that shrinks underneath is guarded by reading with pread into memory when it is small and
 * by as_elf's SIGBUS note in elf.c otherwise.
 *
 * Addresses are svma unless named otherwise. Thread rule: one as_elf per thread at a time.
 */
#ifndef AS_ELF_ELF_H
#define AS_ELF_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/arch.h"
#include "base/err.h"

struct as_elf;

struct as_elf_segment { /* PT_LOAD */
	uint64_t svma, memsz, off, filesz;
	bool exec, write;
};

struct as_elf_section {
	const char *name;
	uint64_t svma, size_bytes; /* size after decompression */
	uint64_t off;
	uint32_t type;
	uint64_t flags;
	bool nobits, compressed;
};

struct as_build_id {
	uint8_t len; /* 0: none; at most 20 are kept */
	uint8_t id[20];
};

/* Takes fd over (also on failure). name is for messages. */
int as_elf_open_fd(int fd, const char *name, struct as_elf **ret, struct as_error *err);
int as_elf_open(const char *path, struct as_elf **ret, struct as_error *err);
/* An image in memory (vdso, a core, a test); bytes are copied. */
int as_elf_open_mem(const void *p, size_t n, const char *name, struct as_elf **ret,
		    struct as_error *err);
void as_elf_close(struct as_elf *e);

enum as_arch as_elf_arch(const struct as_elf *e);
bool as_elf_is_exec(const struct as_elf *e); /* ET_EXEC */
uint64_t as_elf_entry(const struct as_elf *e);
uint64_t as_elf_size(const struct as_elf *e);
const char *as_elf_name(const struct as_elf *e);
/* The file became shorter while it was open: what was read beyond its new end were zeros. */
bool as_elf_shrunk(const struct as_elf *e);
const struct as_elf_segment *as_elf_segments(const struct as_elf *e, size_t *ret_n);
const struct as_elf_section *as_elf_sections(const struct as_elf *e, size_t *ret_n);
const struct as_build_id *as_elf_build_id(const struct as_elf *e);
/* Stands in for a build-id where there is none: hash of head, tail, pages between and
 * size. len = 16. */
void as_elf_content_id(const struct as_elf *e, struct as_build_id *ret);

const struct as_elf_section *as_elf_find_section(const struct as_elf *e, const char *name);
/*
 * Contents of a section by name (".debug_info" also finds ".zdebug_info"), decompressed; valid
 * until close. AS_E_NOTFOUND when absent or NOBITS. Declared sizes are checked against
 * AS_ELF_MAX_SECTION and against the compressed size (ratio 1,100:1).
 */
#define AS_ELF_MAX_SECTION (4ull << 30)
int as_elf_section_data(struct as_elf *e, const char *name, const uint8_t **ret_p,
			size_t *ret_n, struct as_error *err);
/* Bytes of the file image at an svma range (inside one segment's file part); NULL when not there. */
const uint8_t *as_elf_at(const struct as_elf *e, uint64_t svma, size_t n);
/* .eh_frame found through PT_GNU_EH_FRAME, for objects without section headers: from there to the
 * end of its segment (the terminator ends it). NULL when there is none. */
const uint8_t *as_elf_eh_frame(const struct as_elf *e, uint64_t *ret_svma, size_t *ret_n);
/* Releases decompressed sections and advises the mapping away; later calls load again. */
void as_elf_drop_caches(struct as_elf *e);
/* Only advises the mapping away: all pointers stay valid. */
void as_elf_give_back_pages(struct as_elf *e);

/* svma of the byte at file offset off, through the (executable, if any) segment that holds it. */
bool as_elf_svma_of_off(const struct as_elf *e, uint64_t off, uint64_t *ret_svma);

/*
 * avma - svma for a mapping of this file: start_avma maps file offset pgoff. Picks the segment
 * that holds the offset (LLD layouts, several executable segments, huge-page alignment). Where
 * segments share a page of the file an executable one is taken: ask for executable mappings.
 */
bool as_elf_bias(const struct as_elf *e, uint64_t start_avma, uint64_t len, uint64_t pgoff,
		 uint64_t *ret_bias);

/*
 * Symbols of .symtab, then .dynsym (a name may come twice), then those of .gnu_debugdata. Without
 * undefined, absolute, TLS, section, file and mapping symbols ($x, $d). A status below 0 means that
 * one table was damaged; what the others hold was delivered.
 */
struct as_elf_symbol {
	uint64_t svma, size_bytes; /* size 0: unknown */
	const char *name;          /* mangled, version suffix cut; valid until close */
	bool func, ifunc, global, weak, dynamic;
	bool untyped; /* STT_NOTYPE: what assembly makes of a label */
	bool mini;    /* from .gnu_debugdata */
};
typedef void (*as_elf_symbol_fn)(void *ctx, const struct as_elf_symbol *s);
int as_elf_each_symbol(struct as_elf *e, as_elf_symbol_fn fn, void *ctx, struct as_error *err);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Inside of src/elf: the opened object, its bytes, and loading one section by index.
 *
 * Invariants: img.n >= sizeof(Elf64_Ehdr); for every section i, sec[i] and priv[i] describe the
 * same header, but nothing of it is checked against the file: as_elf_load_section does that.
 */
#ifndef AS_ELF_ELF_PRIV_H
#define AS_ELF_ELF_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "base/mem.h"
#include "elf/elf.h"

/*
 * The bytes of a file. Up to AS_ELF_READ_MAX they are read into memory; larger files are mapped
 * and registered with the SIGBUS guard, see image.c.
 */
#define AS_ELF_READ_MAX (1u << 20)
struct as_elf_image {
	const uint8_t *p;
	size_t n;
	int guard;   /* slot of the guard; -1: not mapped */
	bool mapped; /* munmap, else free */
};
/* fd stays the caller's. A zero-filled image can be cleared. */
int as_elf_image_load(int fd, const char *name, struct as_elf_image *img, struct as_error *err);
void as_elf_image_clear(struct as_elf_image *img);
bool as_elf_image_cut(const struct as_elf_image *img); /* the file shrank while it was mapped */
void as_elf_image_advise_away(const struct as_elf_image *img);

struct as_elf_section_priv {
	uint32_t link;
	uint64_t file_size_bytes; /* in the file, before decompression */
	uint64_t entsize;
	uint8_t *data; /* decompressed copy, or NULL */
	size_t ndata;
	char *strings; /* the terminated copy of a string table, see symbols.c; or NULL */
	bool pinned;   /* handed out until close: as_elf_drop_caches keeps it */
};

struct as_elf {
	char *name;
	struct as_elf_image img;
	enum as_arch arch;
	uint16_t type;
	uint64_t entry;
	struct as_elf_segment *seg;
	size_t nseg;
	struct as_elf_section *sec;
	struct as_elf_section_priv *priv;
	size_t nsec;
	uint64_t dyn_off, dyn_size; /* PT_DYNAMIC; 0, 0: none */
	struct as_build_id id;
	struct as_arena names; /* section names; freed at close */
	/* the object inside .gnu_debugdata; NULL: none or not yet looked */
	struct as_elf *mini;
	bool mini_tried, is_mini;
};

/* Contents of section i as stored or decompressed; valid until close or as_elf_drop_caches. */
int as_elf_load_section(struct as_elf *e, size_t i, const uint8_t **ret_p, size_t *ret_n,
			struct as_error *err);
/* Size a compressed section says it has; false when its header is damaged. */
bool as_elf_declared_size(const struct as_elf *e, const struct as_elf_section *s,
			  uint64_t file_size, uint64_t *ret_size);
/* An object over bytes that become its own (malloc); p is freed also on failure. */
int as_elf_open_owned(uint8_t *p, size_t n, const char *name, struct as_elf **ret,
		      struct as_error *err);
/* Decompresses xz; at most max bytes, memory-limited. *ret_p is malloc'ed. */
int as_elf_unxz(const uint8_t *p, size_t n, size_t max, uint8_t **ret_p, size_t *ret_n);
/* The object inside .gnu_debugdata, opened once; NULL when there is none or it is damaged. */
struct as_elf *as_elf_mini(struct as_elf *e);

static inline bool as_elf_in_file(const struct as_elf *e, uint64_t off, uint64_t n)
{
	return off <= e->img.n && n <= e->img.n - off;
}

#endif

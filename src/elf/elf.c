/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Opening an object: identification, program headers, section headers, build-id, address
 * translation. libelf decodes the headers once (it knows the escapes for more than 65,279
 * sections or segments); they are copied and libelf is left. Contents are read from our image
 * with our own checks. Damage beyond the file header does not refuse the file: what can be read
 * of it is worth having.
 *
 * SIGBUS: see image.c. Files over 1 MiB are mapped; one that shrinks reads as zeros from there
 * on and as_elf_shrunk tells so.
 */
#include "elf/elf_priv.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/buf.h"

#define MAX_SECTIONS     (1u << 20)
#define MAX_SECTION_NAME 255
/* The build-id stands among the first notes; more are not looked at. */
#define MAX_NOTES        64
#define MAX_NOTE_BYTES   (64u << 10)
#define NOTE_GNU_ID      3

static int check_ident(const struct as_elf *e, struct as_error *err)
{
	const uint8_t *p = e->img.p;

	if (e->img.n < sizeof(Elf64_Ehdr) || memcmp(p, ELFMAG, SELFMAG) != 0)
		return as_fail(err, AS_E_FORMAT, 0, "'%s' is not an ELF file", e->name);
	if (p[EI_CLASS] != ELFCLASS64)
		return as_fail(err, AS_E_UNSUPPORTED, 0,
			       "'%s' is a %s ELF file; only 64-bit ones can be read", e->name,
			       p[EI_CLASS] == ELFCLASS32 ? "32-bit" : "damaged");
	if (p[EI_DATA] != ELFDATA2LSB)
		return as_fail(err, AS_E_UNSUPPORTED, 0,
			       "'%s' is a %s ELF file; only little-endian ones can be read",
			       e->name, p[EI_DATA] == ELFDATA2MSB ? "big-endian" : "damaged");
	return AS_OK;
}

static enum as_arch arch_of(unsigned machine)
{
	switch (machine) {
	case EM_X86_64:
		return AS_ARCH_X86_64;
	case EM_AARCH64:
		return AS_ARCH_AARCH64;
	default:
		return AS_ARCH_NONE;
	}
}

/* Scans notes for the GNU build-id. align is 4 or 8: padding of name and descriptor. */
static bool find_id_note(const uint8_t *p, size_t n, size_t align, struct as_build_id *ret)
{
	struct as_rd r = AS_RD(p, AS_MIN(n, (size_t)MAX_NOTE_BYTES));

	while (as_rd_left(&r) >= 12) {
		uint32_t namesz = as_rd_u32(&r), descsz = as_rd_u32(&r), type = as_rd_u32(&r);
		const uint8_t *name = as_rd_bytes(&r, namesz);
		const uint8_t *desc;

		as_rd_skip(&r, -(uint64_t)(r.p - p) & (align - 1));
		desc = as_rd_bytes(&r, descsz);
		if (!name || !desc || r.bad)
			return false;
		if (type == NOTE_GNU_ID && namesz == 4 && memcmp(name, "GNU", 4) == 0 &&
		    descsz) {
			ret->len = (uint8_t)AS_MIN((size_t)descsz, sizeof ret->id);
			memcpy(ret->id, desc, ret->len);
			return true;
		}
		as_rd_skip(&r, -(uint64_t)(r.p - p) & (align - 1));
	}
	return false;
}

/* ph: headers as libelf points to them, not always aligned. */
static void load_segments(struct as_elf *e, const void *ph, size_t n)
{
	unsigned notes = 0;

	e->seg = as_xcalloc(n ? n : 1, sizeof *e->seg);
	for (size_t i = 0; i < n; i++) {
		Elf64_Phdr h;

		memcpy(&h, (const char *)ph + i * sizeof h, sizeof h);
		if (h.p_type == PT_NOTE && !e->id.len && notes++ < MAX_NOTES &&
		    as_elf_in_file(e, h.p_offset, h.p_filesz))
			find_id_note(e->img.p + h.p_offset, h.p_filesz, h.p_align == 8 ? 8 : 4,
				     &e->id);
		if (h.p_type == PT_DYNAMIC) {
			e->dyn_off = h.p_offset;
			e->dyn_size = h.p_filesz;
		}
		if (h.p_type != PT_LOAD || h.p_offset + h.p_filesz < h.p_offset ||
		    h.p_vaddr + h.p_memsz < h.p_vaddr)
			continue;
		e->seg[e->nseg++] = (struct as_elf_segment){
			.svma = h.p_vaddr,
			.memsz = h.p_memsz,
			.off = h.p_offset,
			.filesz = AS_MIN(h.p_filesz, h.p_memsz),
			.exec = h.p_flags & PF_X,
			.write = h.p_flags & PF_W,
		};
	}
}

/* The name at offset at of the string table; a copy, since the table need not end in NUL. */
static const char *section_name(struct as_elf *e, uint64_t tab_off, uint64_t tab_size,
				uint32_t at)
{
	const char *s;
	size_t max;

	if (at >= tab_size || !as_elf_in_file(e, tab_off, tab_size))
		return "";
	s = (const char *)e->img.p + tab_off + at;
	max = AS_MIN((size_t)(tab_size - at), (size_t)MAX_SECTION_NAME);
	return as_arena_strndup(&e->names, s, strnlen(s, max));
}

static void load_section_header(struct as_elf *e, size_t i, const Elf64_Shdr *h,
				const Elf64_Shdr *strtab)
{
	struct as_elf_section *s = &e->sec[i];

	s->name = strtab ? section_name(e, strtab->sh_offset, strtab->sh_size, h->sh_name) : "";
	s->svma = h->sh_addr;
	s->off = h->sh_offset;
	s->type = h->sh_type;
	s->flags = h->sh_flags;
	s->nobits = h->sh_type == SHT_NOBITS;
	s->size_bytes = h->sh_size;
	s->compressed = !s->nobits &&
			((h->sh_flags & SHF_COMPRESSED) || strncmp(s->name, ".zdebug", 7) == 0);
	e->priv[i].link = h->sh_link;
	e->priv[i].entsize = h->sh_entsize;
	e->priv[i].file_size_bytes = h->sh_size;
	if (s->compressed && !as_elf_declared_size(e, s, h->sh_size, &s->size_bytes))
		s->size_bytes = 0;
}

static void load_sections(struct as_elf *e, Elf *le)
{
	Elf64_Shdr tab, *strtab = NULL;
	size_t n, names;

	if (elf_getshdrnum(le, &n) != 0 || n == 0 || n > MAX_SECTIONS)
		return;
	if (elf_getshdrstrndx(le, &names) == 0 && names != SHN_UNDEF && names < n) {
		const void *h = elf64_getshdr(elf_getscn(le, names));

		if (h) {
			memcpy(&tab, h, sizeof tab);
			if (tab.sh_type != SHT_NOBITS)
				strtab = &tab;
		}
	}
	e->sec = as_xcalloc(n, sizeof *e->sec);
	e->priv = as_xcalloc(n, sizeof *e->priv);
	for (size_t i = 0; i < n; i++) {
		const void *p = elf64_getshdr(elf_getscn(le, i));
		Elf64_Shdr h;

		if (!p)
			break;
		memcpy(&h, p, sizeof h); /* not always aligned */
		load_section_header(e, i, &h, strtab);
		e->nsec = i + 1;
	}
}

/* --only-keep-debug files keep the note's section while their PT_NOTE points nowhere. */
static void id_from_sections(struct as_elf *e)
{
	unsigned notes = 0;

	for (size_t i = 0; i < e->nsec && !e->id.len; i++) {
		const struct as_elf_section *s = &e->sec[i];

		if (s->type == SHT_NOTE && notes++ < MAX_NOTES && !s->compressed &&
		    as_elf_in_file(e, s->off, s->size_bytes) &&
		    !find_id_note(e->img.p + s->off, s->size_bytes, 4, &e->id))
			find_id_note(e->img.p + s->off, s->size_bytes, 8, &e->id);
	}
}

static int load_headers(struct as_elf *e, struct as_error *err)
{
	Elf64_Ehdr *eh;
	Elf64_Phdr *ph;
	size_t nph = 0;
	Elf *le;
	int r = check_ident(e, err);

	if (r < 0)
		return r;
	elf_version(EV_CURRENT);
	/* libelf takes a writable pointer and does not write to native-endian images */
	le = elf_memory((char *)(uintptr_t)e->img.p, e->img.n);
	eh = le && elf_kind(le) == ELF_K_ELF ? elf64_getehdr(le) : NULL;
	if (!eh) {
		elf_end(le);
		return as_fail(err, AS_E_FORMAT, 0, "'%s' is a damaged ELF file: %s", e->name,
			       elf_errmsg(-1));
	}
	e->arch = arch_of(eh->e_machine);
	e->type = eh->e_type;
	e->entry = eh->e_entry;
	ph = elf64_getphdr(le);
	if (!ph || elf_getphdrnum(le, &nph) != 0)
		nph = 0;
	load_segments(e, ph, nph);
	load_sections(e, le);
	elf_end(le);
	id_from_sections(e);
	return AS_OK;
}

static int open_image(struct as_elf_image *img, const char *name, struct as_elf **ret,
		      struct as_error *err)
{
	struct as_elf *e = as_xcalloc(1, sizeof *e);
	int r;

	e->name = as_xstrdup(name ? name : "");
	e->img = *img;
	r = load_headers(e, err);
	if (r < 0) {
		as_elf_close(e);
		return r;
	}
	*ret = e;
	return AS_OK;
}

int as_elf_open_owned(uint8_t *p, size_t n, const char *name, struct as_elf **ret,
		      struct as_error *err)
{
	struct as_elf_image img = {.p = p, .n = n, .guard = -1};

	return open_image(&img, name, ret, err);
}

int as_elf_open_mem(const void *p, size_t n, const char *name, struct as_elf **ret,
		    struct as_error *err)
{
	uint8_t *copy = as_xmalloc(n ? n : 1);

	if (n)
		memcpy(copy, p, n);
	return as_elf_open_owned(copy, n, name, ret, err);
}

int as_elf_open_fd(int fd, const char *name, struct as_elf **ret, struct as_error *err)
{
	struct as_elf_image img = {.guard = -1};
	int r = as_elf_image_load(fd, name, &img, err);

	close(fd);
	return r < 0 ? r : open_image(&img, name, ret, err);
}

int as_elf_open(const char *path, struct as_elf **ret, struct as_error *err)
{
	/* O_NONBLOCK: a FIFO planted at this path must not hang us */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return as_fail(err, errno == ENOENT ? AS_E_NOTFOUND : AS_E_IO, errno,
			       "cannot open '%s': %s", path, strerror(errno));
	return as_elf_open_fd(fd, path, ret, err);
}

void as_elf_close(struct as_elf *e)
{
	if (!e)
		return;
	as_elf_close(e->mini);
	for (size_t i = 0; i < e->nsec; i++) {
		free(e->priv[i].data);
		free(e->priv[i].strings);
	}
	free(e->sec);
	free(e->priv);
	free(e->seg);
	free(e->name);
	as_arena_clear(&e->names);
	as_elf_image_clear(&e->img);
	free(e);
}

enum as_arch as_elf_arch(const struct as_elf *e)
{
	return e->arch;
}

bool as_elf_is_exec(const struct as_elf *e)
{
	return e->type == ET_EXEC;
}

uint64_t as_elf_entry(const struct as_elf *e)
{
	return e->entry;
}

uint64_t as_elf_size(const struct as_elf *e)
{
	return e->img.n;
}

const char *as_elf_name(const struct as_elf *e)
{
	return e->name;
}

bool as_elf_shrunk(const struct as_elf *e)
{
	return as_elf_image_cut(&e->img);
}

const struct as_elf_segment *as_elf_segments(const struct as_elf *e, size_t *ret_n)
{
	*ret_n = e->nseg;
	return e->seg;
}

const struct as_elf_section *as_elf_sections(const struct as_elf *e, size_t *ret_n)
{
	*ret_n = e->nsec;
	return e->sec;
}

const struct as_build_id *as_elf_build_id(const struct as_elf *e)
{
	return &e->id;
}

/*
 * Head and tail alone are equal for two links of nearly the same program, so some pages between
 * are taken too: 16 of 4 KiB, evenly spaced.
 */
void as_elf_content_id(const struct as_elf *e, struct as_build_id *ret)
{
	enum { PAGE = 4096, PAGES = 16 };
	struct as_buf b = {0};
	uint64_t h[2];

	as_buf_le64(&b, e->img.n);
	if (e->img.n <= (size_t)PAGE * PAGES) {
		as_buf_add(&b, e->img.p, e->img.n);
	} else {
		for (size_t i = 0; i < PAGES; i++)
			as_buf_add(&b, e->img.p + (e->img.n - PAGE) / (PAGES - 1) * i, PAGE);
		as_buf_add(&b, e->img.p + e->img.n - PAGE, PAGE);
	}
	h[0] = as_hash64(b.p, b.len);
	as_buf_le64(&b, h[0]);
	h[1] = as_hash64(b.p + 8, b.len - 8);
	as_buf_clear(&b);
	*ret = (struct as_build_id){.len = 16};
	memcpy(ret->id, h, sizeof h);
}

const uint8_t *as_elf_at(const struct as_elf *e, uint64_t svma, size_t n)
{
	for (size_t i = 0; i < e->nseg; i++) {
		const struct as_elf_segment *s = &e->seg[i];

		if (svma >= s->svma && svma - s->svma <= s->filesz &&
		    n <= s->filesz - (svma - s->svma) &&
		    as_elf_in_file(e, s->off + (svma - s->svma), n))
			return e->img.p + s->off + (svma - s->svma);
	}
	return NULL;
}

bool as_elf_svma_of_off(const struct as_elf *e, uint64_t off, uint64_t *ret_svma)
{
	const struct as_elf_segment *best = NULL;

	for (size_t i = 0; i < e->nseg; i++) {
		const struct as_elf_segment *s = &e->seg[i];

		if (off >= s->off && off - s->off < s->filesz &&
		    (!best || (s->exec && !best->exec)))
			best = s;
	}
	if (!best)
		return false;
	*ret_svma = best->svma + (off - best->off);
	return true;
}

/* A mapping of len bytes from file offset pgoff, judged against one segment. */
static unsigned mapping_score(const struct as_elf_segment *s, uint64_t pgoff, uint64_t page,
			      uint64_t len)
{
	uint64_t first = s->off & ~(page - 1);
	uint64_t end = (s->off + s->filesz + page - 1) & ~(page - 1);
	unsigned score;

	if (!s->filesz || pgoff < first || pgoff >= end || (s->svma - s->off) % page)
		return 0;
	/* Neighbours share the page where one ends and the next begins: the one that starts
	 * there was mapped there. Else the bytes themselves decide. */
	score = pgoff == first ? 8 : pgoff >= s->off && pgoff - s->off < s->filesz ? 4 : 1;
	if (s->exec)
		score += 2;
	return score * 2 + (end - pgoff == len);
}

bool as_elf_bias(const struct as_elf *e, uint64_t start_avma, uint64_t len, uint64_t pgoff,
		 uint64_t *ret_bias)
{
	static const uint64_t pages[] = {4096, 16384, 65536};
	size_t npages = e->arch == AS_ARCH_X86_64 ? 1 : AS_ARRAY_LEN(pages);
	const struct as_elf_segment *best = NULL;
	unsigned best_score = 0;

	for (size_t k = 0; k < npages && !best; k++) {
		for (size_t i = 0; i < e->nseg; i++) {
			unsigned score = mapping_score(&e->seg[i], pgoff, pages[k], len);

			if (score > best_score) {
				best_score = score;
				best = &e->seg[i];
			}
		}
	}
	if (!best)
		return false;
	*ret_bias = start_avma - (best->svma - best->off + pgoff);
	return true;
}

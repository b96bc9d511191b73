/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A module's unwind data: the compact table (from the disk cache or compiled here), the full
 * CFI for rules the table cannot express, and FDE extents for symbols of stripped code.
 */
#include "image/image_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/cache.h"
#include "base/sys.h"
#include "elf/debugfile.h"

/* The number changes whenever the compiler makes other tables of the same file. */
#define CACHE_KIND       "unwind-3"
#define CACHE_MAX_BYTES  (256u << 20)
/* What compiles faster than a file is written and read back is compiled each time. */
#define WORTH_CACHING_NS 300000u
/* Below this share of code with rules another file's .debug_frame is looked for. */
#define ENOUGH_COVERAGE  0.75

static struct as_elf *open_module(const struct as_module *m)
{
	struct as_elf *elf = NULL;
	if (m->image)
		(void)as_elf_open_mem(m->image, m->image_size, m->path, &elf, NULL);
	else if (m->fd >= 0) {
		int fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 3);
		if (fd >= 0)
			(void)as_elf_open_fd(fd, m->path, &elf, NULL);
	}
	return elf; /* NULL: no object file; a module without tables */
}

static struct as_bytes section(struct as_elf *elf, const char *name)
{
	struct as_bytes b = {0};
	if (as_elf_section_data(elf, name, &b.p, &b.n, NULL) < 0)
		return (struct as_bytes){0};
	return b;
}

/* Where section headers were stripped, PT_GNU_EH_FRAME still leads to .eh_frame. */
static void eh_frame_by_sections(struct as_elf *elf, struct as_cfi_input *in)
{
	const struct as_elf_section *s = as_elf_find_section(elf, ".eh_frame");
	if (!s || s->nobits)
		return;
	in->eh_frame = section(elf, ".eh_frame");
	in->eh_frame_svma = s->svma;
}

static size_t code_ranges(struct as_elf *elf, struct as_code_range **ret)
{
	size_t nsec, n = 0;
	const struct as_elf_section *sec = as_elf_sections(elf, &nsec);
	size_t nseg;
	const struct as_elf_segment *seg = as_elf_segments(elf, &nseg);
	struct as_code_range *r = as_xcalloc(nsec + nseg + 1, sizeof *r);
	for (size_t i = 0; i < nsec; i++) {
		if (!(sec[i].flags & 4 /* SHF_EXECINSTR */) || sec[i].nobits ||
		    !sec[i].size_bytes)
			continue;
		const uint8_t *p = as_elf_at(elf, sec[i].svma, sec[i].size_bytes);
		if (p)
			r[n++] = (struct as_code_range){sec[i].svma,
							{p, sec[i].size_bytes},
							!strncmp(sec[i].name, ".plt", 4)};
	}
	for (size_t i = 0; !n && i < nseg; i++) { /* no section headers */
		const uint8_t *p =
			seg[i].exec ? as_elf_at(elf, seg[i].svma, seg[i].filesz) : NULL;
		if (p)
			r[n++] = (struct as_code_range){seg[i].svma, {p, seg[i].filesz}, false};
	}
	*ret = r;
	return n;
}

static void eh_frame_by_header(struct as_elf *elf, struct as_cfi_input *in)
{
	uint64_t svma;
	size_t n;
	const uint8_t *p = as_elf_eh_frame(elf, &svma, &n);
	if (!p)
		return;
	in->eh_frame = (struct as_bytes){p, n};
	in->eh_frame_svma = svma;
	in->eh_frame_terminated_by_zero = true;
}

static void give_back_pages(void *elf)
{
	as_elf_give_back_pages(elf);
}

static void fill_input(struct as_elf *elf, struct as_module_state *s)
{
	struct as_cfi_input *in = &s->cfi;
	memset(in, 0, sizeof *in);
	in->arch = as_elf_arch(elf);
	eh_frame_by_sections(elf, in);
	if (!in->eh_frame.n)
		eh_frame_by_header(elf, in);
	in->debug_frame = section(elf, ".debug_frame");
	const struct as_elf_section *got = as_elf_find_section(elf, ".got");
	const struct as_elf_section *text = as_elf_find_section(elf, ".text");
	in->data_base_svma = got ? got->svma : 0;
	in->text_base_svma = text ? text->svma : 0;
	in->entry_svma = as_elf_entry(elf);
	free(s->code);
	in->ncode = code_ranges(elf, &s->code);
	in->code = s->code;
	in->passed = give_back_pages;
	in->passed_ctx = elf;
}

static double coverage(const struct as_cfi_input *in, const struct as_cfi_stats *st)
{
	uint64_t code = 0;
	for (size_t i = 0; i < in->ncode; i++)
		code += in->code[i].code.n;
	return code ? (double)st->covered_bytes / (double)code : 1.0;
}

/* .debug_frame of the separate debug file; keeps that file open in s->debug. */
static bool debug_frame_elsewhere(const struct as_module *m, struct as_module_state *s)
{
	struct as_debug_search where = {.root = m->root, .object_path = m->path};
	if (s->cfi.debug_frame.n || s->debug)
		return false;
	if (as_debugfile_find(s->elf, &where, &s->debug, NULL, NULL) < 0 || !s->debug)
		return false;
	s->cfi.debug_frame = section(s->debug, ".debug_frame");
	return s->cfi.debug_frame.n > 0;
}

static bool load_cfi(struct as_module *m)
{
	struct as_module_state *s = m->state;
	if (!s->cfi_tried) {
		s->cfi_tried = true;
		s->elf = open_module(m);
		if (s->elf)
			fill_input(s->elf, s);
	}
	return s->elf != NULL;
}

const struct as_cfi_input *as_image_module_cfi(struct as_image *im, struct as_module *m)
{
	if (m->kind == AS_MODULE_JIT || !load_cfi(m))
		return NULL;
	m->state->cfi_kept = true;
	return &m->state->cfi;
}

static void cache_name(const struct as_module *m, char out[64])
{
	static const char hex[] = "0123456789abcdef";
	size_t k = 0;
	for (size_t i = 0; i < m->build_id.len; i++) {
		out[k++] = hex[m->build_id.id[i] >> 4];
		out[k++] = hex[m->build_id.id[i] & 15];
	}
	snprintf(out + k, 64 - k, "-%llx", (unsigned long long)m->size_bytes);
}

static bool from_cache(struct as_image *im, struct as_module *m, const char *name)
{
	struct as_module_state *s = m->state;
	size_t n;
	void *p = as_cache_map(im->cache_dir, CACHE_KIND, name, &n);
	if (!p)
		return false;
	if (as_utable_open(p, n, &s->table, NULL) < 0) {
		as_cache_unmap(p, n);
		as_cache_remove(im->cache_dir, CACHE_KIND, name);
		return false;
	}
	s->blob = p;
	s->blob_size = n;
	s->blob_mapped = true;
	im->cost.tables_cached++;
	return true;
}

/* The file's pages and the decompressed sections are only needed while compiling. */
static void release_cfi(struct as_module *m)
{
	struct as_module_state *s = m->state;
	as_elf_close(s->elf);
	as_elf_close(s->debug);
	s->elf = s->debug = NULL;
	s->cfi_tried = false;
	free(s->code);
	s->code = NULL;
	memset(&s->cfi, 0, sizeof s->cfi);
}

static bool compile(struct as_image *im, struct as_module *m)
{
	struct as_module_state *s = m->state;
	struct as_buf blob = {0};
	struct as_cfi_stats st = {0};
	bool had_cfi = s->cfi_kept;
	uint64_t t0 = as_now_ns();
	if (!load_cfi(m))
		return false;
	int r = as_utable_compile(&s->cfi, &blob, &st, NULL);
	if ((r < 0 || coverage(&s->cfi, &st) < ENOUGH_COVERAGE) &&
	    debug_frame_elsewhere(m, s)) {
		as_buf_reset(&blob);
		r = as_utable_compile(&s->cfi, &blob, &st, NULL);
	}
	if (!had_cfi)
		release_cfi(m);
	im->cost.build_ns += as_now_ns() - t0;
	if (r < 0) {
		as_buf_clear(&blob);
		return false;
	}
	im->cost.tables_built++;
	s->blob_size = blob.len;
	s->blob = as_buf_detach(&blob);
	return as_utable_open(s->blob, s->blob_size, &s->table, NULL) == AS_OK;
}

const struct as_utable *as_image_module_table(struct as_image *im, struct as_module *m)
{
	struct as_module_state *s = m->state;
	if (s->table_tried || m->kind == AS_MODULE_JIT)
		return m->table;
	s->table_tried = true;
	char name[64];
	cache_name(m, name);
	bool cacheable = m->build_id.len > 0 && m->kind == AS_MODULE_FILE;
	uint64_t before = im->cost.build_ns;
	if (cacheable && from_cache(im, m, name)) {
		m->table = &s->table;
	} else if (compile(im, m)) {
		m->table = &s->table;
		if (cacheable && im->cost.build_ns - before >= WORTH_CACHING_NS)
			(void)as_cache_put(im->cache_dir, CACHE_KIND, name, s->blob,
					   s->blob_size, CACHE_MAX_BYTES);
	}
	if (m->table)
		im->cost.table_bytes += s->blob_size;
	return m->table;
}

const struct as_extent *as_image_module_extents(struct as_image *im, struct as_module *m,
						size_t *ret_n)
{
	struct as_module_state *s = m->state;
	if (!s->extents_tried && m->kind != AS_MODULE_JIT) {
		bool had_cfi = s->cfi_kept;
		s->extents_tried = true;
		if (load_cfi(m))
			(void)as_cfi_extents(&s->cfi, &s->extents, &s->nextents, NULL);
		if (!had_cfi)
			release_cfi(m);
	}
	*ret_n = s->nextents;
	return s->extents;
}

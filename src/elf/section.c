/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Section contents, decompressed on demand: SHF_COMPRESSED with zlib or zstd (the header may be
 * unaligned), and the older .zdebug_* form ("ZLIB" and a big-endian size). A declared size is
 * believed only below AS_ELF_MAX_SECTION and below 1,100 times the compressed size (deflate
 * cannot exceed 1,032:1) plus a small slack, and the stream must yield exactly that many bytes.
 */
#include "elf/elf_priv.h"

#include <elf.h>
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include "base/buf.h"

#define MAX_RATIO     1100
#define RATIO_SLACK   (1u << 16)
#define XZ_MEMORY_MAX (128u << 20)
#define ZDEBUG_HEADER 12

/* Elf64_Chdr read bytewise: it need not be aligned. */
struct chdr {
	uint32_t type;
	uint64_t size;
};

static bool read_chdr(const uint8_t *p, size_t n, struct chdr *ret)
{
	if (n < sizeof(Elf64_Chdr))
		return false;
	*ret = (struct chdr){.type = as_get_le32(p), .size = as_get_le64(p + 8)};
	return true;
}

static bool read_zdebug(const uint8_t *p, size_t n, uint64_t *ret_size)
{
	uint64_t v = 0;

	if (n < ZDEBUG_HEADER || memcmp(p, "ZLIB", 4) != 0)
		return false;
	for (int i = 4; i < ZDEBUG_HEADER; i++)
		v = v << 8 | p[i];
	*ret_size = v;
	return true;
}

bool as_elf_declared_size(const struct as_elf *e, const struct as_elf_section *s,
			  uint64_t file_size, uint64_t *ret_size)
{
	struct chdr h;

	if (!as_elf_in_file(e, s->off, file_size))
		return false;
	if (!(s->flags & SHF_COMPRESSED))
		return read_zdebug(e->img.p + s->off, file_size, ret_size);
	if (!read_chdr(e->img.p + s->off, file_size, &h))
		return false;
	*ret_size = h.size;
	return true;
}

/* zlib counts in 32 bits; inflate in pieces. Several members may follow one another (ld -r). */
static bool inflate_all(const uint8_t *in, size_t nin, uint8_t *out, size_t nout)
{
	z_stream z = {0};
	int r = Z_OK;

	if (inflateInit(&z) != Z_OK)
		return false;
	z.next_in = (Bytef *)(uintptr_t)in;
	z.next_out = out;
	while (nout > 0 || z.avail_out > 0) {
		if (!z.avail_in) {
			z.avail_in = (uInt)AS_MIN(nin, (size_t)1 << 30);
			nin -= z.avail_in;
		}
		if (!z.avail_out) {
			z.avail_out = (uInt)AS_MIN(nout, (size_t)1 << 30);
			nout -= z.avail_out;
		}
		r = inflate(&z, Z_NO_FLUSH);
		if (r == Z_STREAM_END && (nout || z.avail_out) && (z.avail_in || nin))
			r = inflateReset(&z);
		if (r != Z_OK)
			break;
	}
	inflateEnd(&z);
	return !nout && !z.avail_out;
}

static bool unzstd_all(const uint8_t *in, size_t nin, uint8_t *out, size_t nout)
{
	size_t got = ZSTD_decompress(out, nout, in, nin);

	return !ZSTD_isError(got) && got == nout;
}

static int decompress(struct as_elf *e, size_t i, struct as_error *err)
{
	const struct as_elf_section *s = &e->sec[i];
	struct as_elf_section_priv *v = &e->priv[i];
	const uint8_t *in = e->img.p + s->off;
	uint64_t nin = v->file_size_bytes, skip = ZDEBUG_HEADER, size;
	uint32_t type = ELFCOMPRESS_ZLIB;
	struct chdr h;
	bool ok;

	if (!as_elf_declared_size(e, s, nin, &size))
		return as_fail(err, AS_E_FORMAT, 0, "section '%s' of '%s' is damaged", s->name,
			       e->name);
	if ((s->flags & SHF_COMPRESSED) && read_chdr(in, nin, &h)) {
		type = h.type;
		skip = sizeof(Elf64_Chdr);
	}
	if (type != ELFCOMPRESS_ZLIB && type != 2 /* ELFCOMPRESS_ZSTD */)
		return as_fail(err, AS_E_UNSUPPORTED, 0,
			       "section '%s' of '%s' is compressed in an unknown way (%u)",
			       s->name, e->name, type);
	if (size > AS_ELF_MAX_SECTION || (size - AS_MIN(size, RATIO_SLACK)) / MAX_RATIO > nin)
		return as_fail(err, AS_E_LIMIT, 0,
			       "section '%s' of '%s' claims an implausible size (%llu bytes)",
			       s->name, e->name, (unsigned long long)size);
	v->data = malloc(size ? size : 1);
	if (!v->data)
		return as_fail(err, AS_E_LIMIT, ENOMEM, "no memory for section '%s' of '%s'",
			       s->name, e->name);
	ok = type == ELFCOMPRESS_ZLIB ? inflate_all(in + skip, nin - skip, v->data, size)
				      : unzstd_all(in + skip, nin - skip, v->data, size);
	if (!ok) {
		free(AS_STEAL(v->data));
		return as_fail(err, AS_E_FORMAT, 0, "section '%s' of '%s' does not decompress",
			       s->name, e->name);
	}
	v->ndata = size;
	return AS_OK;
}

int as_elf_load_section(struct as_elf *e, size_t i, const uint8_t **ret_p, size_t *ret_n,
			struct as_error *err)
{
	const struct as_elf_section *s = &e->sec[i];
	struct as_elf_section_priv *v = &e->priv[i];

	if (s->nobits || s->type == SHT_NULL)
		return as_fail(err, AS_E_NOTFOUND, 0, "section '%s' of '%s' has no contents",
			       s->name, e->name);
	if (!as_elf_in_file(e, s->off, v->file_size_bytes))
		return as_fail(err, AS_E_FORMAT, 0,
			       "section '%s' of '%s' lies outside the file", s->name, e->name);
	if (!s->compressed) {
		*ret_p = e->img.p + s->off;
		*ret_n = v->file_size_bytes;
		return AS_OK;
	}
	if (!v->data) {
		int r = decompress(e, i, err);

		if (r < 0)
			return r;
	}
	*ret_p = v->data;
	*ret_n = v->ndata;
	return AS_OK;
}

static bool name_fits(const char *have, const char *want)
{
	if (strcmp(have, want) == 0)
		return true;
	return strncmp(want, ".debug", 6) == 0 && strncmp(have, ".zdebug", 7) == 0 &&
	       strcmp(have + 7, want + 6) == 0;
}

const struct as_elf_section *as_elf_find_section(const struct as_elf *e, const char *name)
{
	for (size_t i = 0; i < e->nsec; i++) {
		if (name_fits(e->sec[i].name, name))
			return &e->sec[i];
	}
	return NULL;
}

int as_elf_section_data(struct as_elf *e, const char *name, const uint8_t **ret_p,
			size_t *ret_n, struct as_error *err)
{
	const struct as_elf_section *s = as_elf_find_section(e, name);

	if (!s)
		return as_fail(err, AS_E_NOTFOUND, 0, "'%s' has no section '%s'", e->name,
			       name);
	return as_elf_load_section(e, (size_t)(s - e->sec), ret_p, ret_n, err);
}

void as_elf_give_back_pages(struct as_elf *e)
{
	as_elf_image_advise_away(&e->img);
}

void as_elf_drop_caches(struct as_elf *e)
{
	for (size_t i = 0; i < e->nsec; i++) {
		if (!e->priv[i].pinned)
			free(AS_STEAL(e->priv[i].data));
	}
	as_elf_image_advise_away(&e->img);
	if (e->mini)
		as_elf_drop_caches(e->mini);
}

int as_elf_unxz(const uint8_t *p, size_t n, size_t max, uint8_t **ret_p, size_t *ret_n)
{
	lzma_stream z = LZMA_STREAM_INIT;
	struct as_buf out = {0};
	lzma_ret r;

	if (lzma_stream_decoder(&z, XZ_MEMORY_MAX, 0) != LZMA_OK)
		return AS_E_LIMIT;
	z.next_in = p;
	z.avail_in = n;
	do {
		as_buf_reserve(&out, 1u << 16);
		z.next_out = (uint8_t *)out.p + out.len;
		z.avail_out = 1u << 16;
		r = lzma_code(&z, LZMA_FINISH);
		out.len += (1u << 16) - z.avail_out;
	} while (r == LZMA_OK && out.len <= max);
	lzma_end(&z);
	if (r != LZMA_STREAM_END || out.len > max) {
		as_buf_clear(&out);
		return r == LZMA_OK || r == LZMA_MEMLIMIT_ERROR ? AS_E_LIMIT : AS_E_FORMAT;
	}
	*ret_n = out.len;
	*ret_p = (uint8_t *)as_buf_detach(&out);
	return AS_OK;
}

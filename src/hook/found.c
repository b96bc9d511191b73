/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the search of signature.h found, as bytes: a header, the functions, then the extents that only calls
 * tell of. All little endian.
 */
#include "hook/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hook/signature_priv.h"

#define MAGIC     0x47495341u /* ASIG */
#define VERSION   1u          /* of the bytes, and of what the search finds */
#define MAX_LIST  64u
#define MAX_FOUND (1u << 17)
#define HEADER    (4 + 4 + 8 + AS_SIGNATURE_KEY_BYTES + 4 + 4)
#define A_LISTED  24u
#define A_FOUND   16u

/* ---- the key ---- */

void as_signature_key(const struct as_elf *elf, char ret[AS_SIGNATURE_KEY_BYTES])
{
	static const char version[] = ASSAY_VERSION;
	uint64_t hash = as_hash64(version, sizeof version) + VERSION, bytes = 0;
	size_t n;
	const struct as_elf_segment *s = as_elf_segments(elf, &n);

	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = s[i].filesz ? as_elf_at(elf, s[i].svma, s[i].filesz) : NULL;
		const uint64_t w[4] = {hash, s[i].svma, s[i].filesz,
				       p ? as_hash64(p, s[i].filesz) : 0};

		hash = as_hash64(w, sizeof w);
		bytes += s[i].filesz;
	}
	snprintf(ret, AS_SIGNATURE_KEY_BYTES, "%016llx-%llx", (unsigned long long)hash,
		 (unsigned long long)bytes);
}

/* ---- written ---- */

static enum as_proof_form form_of(const struct as_allocator *a)
{
	unsigned f = 0;

	while (f < AS_PROOF_FORMS &&
	       as_signature_name((enum as_rt_kind)a->kind, (enum as_proof_form)f) != a->name)
		f++;
	return (enum as_proof_form)f;
}

void as_signature_write(const struct as_signature *s, const char *key, struct as_buf *ret)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char padded[AS_SIGNATURE_KEY_BYTES] = {0};

	memcpy(padded, key, strnlen(key, sizeof padded - 1));
	as_buf_add(&b, padded, sizeof padded);
	as_buf_le32(&b, (uint32_t)s->list.n);
	as_buf_le32(&b, (uint32_t)s->found.n);
	as_vec_foreach (a, &s->list) {
		as_buf_le64(&b, a->svma);
		as_buf_le64(&b, a->instead_svma);
		as_buf_le32(&b, a->kind);
		as_buf_le32(&b, (uint32_t)form_of(a) | (uint32_t)a->family << 16);
	}
	as_vec_foreach (f, &s->found) {
		as_buf_le64(&b, f->start_svma);
		as_buf_le64(&b, f->end_svma);
	}
	as_buf_le32(ret, MAGIC);
	as_buf_le32(ret, VERSION);
	as_buf_le64(ret, as_hash64(b.p, b.len));
	as_buf_add(ret, b.p, b.len);
}

/* ---- read ---- */

static bool is_code(const struct as_elf *elf, uint64_t svma, uint64_t bytes)
{
	size_t n;
	const struct as_elf_segment *s = as_elf_segments(elf, &n);

	for (size_t i = 0; i < n; i++) {
		if (s[i].exec && svma - s[i].svma < s[i].filesz &&
		    bytes <= s[i].filesz - (svma - s[i].svma))
			return true;
	}
	return false;
}

static bool read_listed(struct as_rd *r, const struct as_elf *elf, struct as_signature *ret)
{
	struct as_allocator a = {.svma = as_rd_u64(r),
				 .group = AS_HOOKS_HEAP,
				 .local = true,
				 .by_signature = true};
	uint32_t kind, form;

	a.instead_svma = as_rd_u64(r);
	kind = as_rd_u32(r);
	form = as_rd_u32(r);
	a.name = as_signature_name((enum as_rt_kind)kind, (enum as_proof_form)(form & 0xffff));
	if (r->bad || !a.name || form >> 16 > AS_ALLOCATOR_TCMALLOC ||
	    !is_code(elf, a.svma, 1) || (kind == AS_RT_NEW) != (a.instead_svma != 0) ||
	    (a.instead_svma && !is_code(elf, a.instead_svma, 1)) ||
	    (ret->list.n && ret->list.v[ret->list.n - 1].svma >= a.svma))
		return false;
	a.kind = (uint8_t)kind;
	a.family = (uint8_t)(form >> 16);
	as_vec_push(&ret->list, a);
	return true;
}

static bool read_found(struct as_rd *r, const struct as_elf *elf, struct as_signature *ret)
{
	struct as_extent f = {.start_svma = as_rd_u64(r)};

	f.end_svma = as_rd_u64(r);
	if (r->bad || f.end_svma <= f.start_svma ||
	    !is_code(elf, f.start_svma, f.end_svma - f.start_svma) ||
	    (ret->found.n && ret->found.v[ret->found.n - 1].start_svma >= f.start_svma))
		return false;
	as_vec_push(&ret->found, f);
	return true;
}

static bool read_all(const struct as_elf *elf, const char *key, struct as_rd *r,
		     struct as_signature *ret)
{
	uint32_t magic = as_rd_u32(r), version = as_rd_u32(r), nlist, nfound;
	uint64_t hash = as_rd_u64(r);
	const uint8_t *p = r->p;

	if (r->bad || magic != MAGIC || version != VERSION ||
	    hash != as_hash64(p, as_rd_left(r)))
		return false;
	p = as_rd_bytes(r, AS_SIGNATURE_KEY_BYTES);
	if (!p || strncmp((const char *)p, key, AS_SIGNATURE_KEY_BYTES) != 0)
		return false;
	nlist = as_rd_u32(r);
	nfound = as_rd_u32(r);
	if (r->bad || nlist > MAX_LIST || nfound > MAX_FOUND ||
	    as_rd_left(r) != (size_t)nlist * A_LISTED + (size_t)nfound * A_FOUND)
		return false;
	for (uint32_t i = 0; i < nlist; i++) {
		if (!read_listed(r, elf, ret))
			return false;
	}
	for (uint32_t i = 0; i < nfound; i++) {
		if (!read_found(r, elf, ret))
			return false;
	}
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct as_extent *x = a, *y = b;

	return x->start_svma < y->start_svma ? -1 : x->start_svma > y->start_svma;
}

static bool complete(const struct as_signature_program *p, struct as_signature *ret)
{
	AS_VEC(struct as_extent) all = {0};
	int r;

	for (size_t i = 0; i < p->nextents; i++)
		as_vec_push(&all, p->extents[i]);
	as_vec_foreach (f, &ret->found)
		as_vec_push(&all, *f);
	if (all.n)
		qsort(all.v, all.n, sizeof *all.v, by_start);
	r = as_hook_code_new(p->elf, all.v, all.n, &ret->code, NULL);
	as_vec_clear(&all);
	return r == 0;
}

bool as_signature_read(const struct as_signature_program *p, const char *key, const void *bytes,
		       size_t n, struct as_signature *ret)
{
	struct as_rd r = AS_RD(bytes, n);

	memset(ret, 0, sizeof *ret);
	if (!read_all(p->elf, key, &r, ret) || !complete(p, ret)) {
		as_signature_clear(ret);
		return false;
	}
	as_signature_span(ret);
	return true;
}

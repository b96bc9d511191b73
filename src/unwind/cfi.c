/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* .eh_frame and .debug_frame: entries, encodings, and the sorted index of functions. */
#include "unwind/cfi_priv.h"
#include "base/map.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define AS_CFI_MAX_SECTION (2ull << 30)

enum {
	PE_OMIT = 0xff,
	PE_FORMAT = 0x0f,
	PE_APPLICATION = 0x70,
	PE_INDIRECT = 0x80,
	PE_PCREL = 0x10,
	PE_TEXTREL = 0x20,
	PE_DATAREL = 0x30,
	PE_ALIGNED = 0x50,
};

void as_cfi_sections(const struct as_cfi_input *in, struct as_cfi_section sec[2])
{
	sec[0] = (struct as_cfi_section){
		.p = in->eh_frame.p,
		.n = in->eh_frame.p && in->eh_frame.n < AS_CFI_MAX_SECTION ? in->eh_frame.n : 0,
		.svma = in->eh_frame_svma,
		.eh = true,
		.zero_ends = in->eh_frame_terminated_by_zero,
		.text_base = in->text_base_svma,
		.data_base = in->data_base_svma,
	};
	sec[1] = (struct as_cfi_section){
		.p = in->debug_frame.p,
		.n = in->debug_frame.p && in->debug_frame.n < AS_CFI_MAX_SECTION
			     ? in->debug_frame.n
			     : 0,
	};
}

/* The number itself, without what it is relative to. */
static uint64_t read_format(struct as_rd *r, unsigned format, unsigned addr_size)
{
	switch (format) {
	case 0x00:
		return as_rd_uint(r, addr_size);
	case 0x01:
		return as_rd_uleb(r);
	case 0x02:
		return as_rd_u16(r);
	case 0x03:
		return as_rd_u32(r);
	case 0x04:
	case 0x0c:
		return as_rd_u64(r);
	case 0x09:
		return (uint64_t)as_rd_sleb(r);
	case 0x0a:
		return (uint64_t)(int64_t)(int16_t)as_rd_u16(r);
	case 0x0b:
		return (uint64_t)(int64_t)(int32_t)as_rd_u32(r);
	default:
		r->bad = true;
		return 0;
	}
}

/* A pointer with what it is relative to. Indirect ones would need memory we do not have. */
static uint64_t read_pointer(const struct as_cfi_section *sec, struct as_rd *r, unsigned enc,
			     unsigned addr_size)
{
	if (enc & PE_INDIRECT) {
		r->bad = true;
		return 0;
	}
	uint64_t pos = sec->svma + (uint64_t)(r->p - sec->p);
	uint64_t v;
	switch (enc & PE_APPLICATION) {
	case 0:
		return read_format(r, enc & PE_FORMAT, addr_size);
	case PE_PCREL:
		return pos + read_format(r, enc & PE_FORMAT, addr_size);
	case PE_TEXTREL:
		return sec->text_base + read_format(r, enc & PE_FORMAT, addr_size);
	case PE_DATAREL:
		return sec->data_base + read_format(r, enc & PE_FORMAT, addr_size);
	case PE_ALIGNED:
		as_rd_skip(r, -pos & (addr_size - 1));
		v = as_rd_uint(r, addr_size);
		return v;
	default:
		r->bad = true;
		return 0;
	}
}

enum as_cfi_entry as_cfi_entry_next(const struct as_cfi_section *sec, size_t *off,
				    size_t *ret_cie_off, struct as_rd *ret_body)
{
	while (*off < sec->n && sec->n - *off >= 4) {
		size_t at = *off;
		struct as_rd r = AS_RD(sec->p + at, sec->n - at);
		uint64_t len = as_rd_u32(&r);
		bool wide = len == 0xffffffff;
		if (wide)
			len = as_rd_u64(&r);
		if (r.bad || len > as_rd_left(&r))
			return AS_CFI_END;
		*off = (size_t)(r.p - sec->p) + (size_t)len;
		if (len == 0) {
			if (sec->zero_ends)
				return AS_CFI_END;
			continue;
		}
		r.end = r.p + len;
		/* the pointer stays 4 bytes wide in .eh_frame, whatever the length's form */
		size_t id_at = (size_t)(r.p - sec->p);
		bool wide_id = wide && !sec->eh;
		uint64_t id = wide_id ? as_rd_u64(&r) : as_rd_u32(&r);
		uint64_t cie_id = sec->eh ? 0 : wide_id ? UINT64_MAX : 0xffffffff;
		if (r.bad)
			return AS_CFI_BAD;
		*ret_body = r;
		if (id == cie_id) {
			*ret_cie_off = at;
			return AS_CFI_CIE;
		}
		uint64_t cie_off = sec->eh ? id_at - id : id;
		if (cie_off >= sec->n)
			return AS_CFI_BAD;
		*ret_cie_off = (size_t)cie_off;
		return AS_CFI_FDE;
	}
	return AS_CFI_END;
}

/* Augmentation data of a 'z' CIE; letters we do not know end it, the rest is skipped by length. */
static bool parse_augmentation(const struct as_cfi_section *sec, struct as_cie *c,
			       const char *aug, struct as_rd *r)
{
	uint64_t n = as_rd_uleb(r);
	if (r->bad || n > as_rd_left(r))
		return false;
	struct as_rd a = AS_RD(r->p, n);
	r->p += n;
	for (aug++; *aug; aug++) {
		unsigned enc;
		switch (*aug) {
		case 'R':
			c->fde_enc = as_rd_u8(&a);
			break;
		case 'L':
			(void)as_rd_u8(&a);
			break;
		case 'P':
			enc = as_rd_u8(&a);
			(void)read_pointer(sec, &a, enc & ~PE_INDIRECT, c->addr_size);
			break;
		case 'S':
			c->signal = true;
			break;
		case 'B': /* aarch64: signed with key B */
		case 'G': /* aarch64: memory tagging */
			break;
		default:
			return !a.bad;
		}
	}
	return !a.bad && c->fde_enc != PE_OMIT;
}

bool as_cfi_parse_cie(const struct as_cfi_section *sec, size_t off, struct as_cie *ret)
{
	struct as_rd r;
	size_t at = off, self;
	if (as_cfi_entry_next(sec, &at, &self, &r) != AS_CFI_CIE || self != off)
		return false;
	struct as_cie c = {.off = off, .addr_size = 8};
	unsigned version = as_rd_u8(&r);
	if (version != 1 && version != 3 && version != 4)
		return false;
	const char *aug = as_rd_cstr(&r);
	if (aug[0] == 'e' && aug[1] == 'h' && !aug[2])
		as_rd_skip(&r, 8); /* gcc 2: a pointer to exception data */
	if (version == 4) {
		c.addr_size = as_rd_u8(&r);
		if (as_rd_u8(&r) != 0) /* segmented addresses */
			return false;
	}
	if (c.addr_size != 8 && c.addr_size != 4)
		return false;
	c.code_align = as_rd_uleb(&r);
	c.data_align = as_rd_sleb(&r);
	c.ra_reg = version == 1 ? as_rd_u8(&r) : as_rd_uleb(&r);
	c.augmented = aug[0] == 'z';
	if (c.augmented && !parse_augmentation(sec, &c, aug, &r))
		return false;
	if (!c.augmented && aug[0] && !(aug[0] == 'e' && aug[1] == 'h'))
		return false;
	if (r.bad)
		return false;
	c.insn = r.p;
	c.insn_end = r.end;
	*ret = c;
	return true;
}

bool as_cfi_parse_fde(const struct as_cfi_section *sec, const struct as_cie *cie,
		      struct as_rd body, struct as_fde *ret)
{
	uint64_t start = read_pointer(sec, &body, cie->fde_enc, cie->addr_size);
	uint64_t len = read_format(&body, cie->fde_enc & PE_FORMAT, cie->addr_size);
	if (cie->augmented)
		as_rd_skip(&body, as_rd_uleb(&body));
	if (body.bad)
		return false;
	/* functions the linker threw away stay in .debug_frame at address 0 */
	if (start == 0 || start >= AS_CFI_SVMA_LIMIT || len > AS_CFI_SVMA_LIMIT - start)
		len = 0;
	ret->start_svma = start;
	ret->end_svma = start + len;
	ret->insn = body.p;
	ret->insn_end = body.end;
	ret->sec = sec;
	return true;
}

bool as_cfi_load_fde(const struct as_cfi_section *sec, size_t off, struct as_fde *ret)
{
	size_t cie_off;
	struct as_rd body;
	struct as_fde f;
	if (as_cfi_entry_next(sec, &off, &cie_off, &body) != AS_CFI_FDE ||
	    !as_cfi_parse_cie(sec, cie_off, &f.cie) || !as_cfi_parse_fde(sec, &f.cie, body, &f))
		return false;
	*ret = f;
	return true;
}

struct index_build {
	struct as_cfi_index *x;
	AS_VEC(struct as_fde_ref) fde;
	AS_VEC(struct as_cie) cie;
	/* section offset * 2 + section -> index + 1, or UINT64_MAX when bad */
	struct as_map64 cie_at;
	uint64_t last_key, last_val;
};

static const struct as_cie *cie_get(struct index_build *b, unsigned s, size_t off,
				    uint32_t *ret_index)
{
	uint64_t key = (uint64_t)off * 2 + s;
	if (key != b->last_key) {
		bool is_new;
		uint64_t *v = as_map64_put(&b->cie_at, key, &is_new);
		if (is_new) {
			struct as_cie c;
			*v = UINT64_MAX;
			if (as_cfi_parse_cie(&b->x->sec[s], off, &c)) {
				as_vec_push(&b->cie, c);
				*v = b->cie.n;
			}
		}
		b->last_key = key;
		b->last_val = *v;
	}
	if (b->last_val == UINT64_MAX)
		return NULL;
	*ret_index = (uint32_t)(b->last_val - 1);
	return &b->cie.v[*ret_index];
}

static void index_section(struct index_build *b, unsigned s)
{
	const struct as_cfi_section *sec = &b->x->sec[s];
	size_t off = 0, cie_off;
	struct as_rd body;
	for (;;) {
		size_t at = off;
		enum as_cfi_entry e = as_cfi_entry_next(sec, &off, &cie_off, &body);
		if (e == AS_CFI_END)
			break;
		if (e == AS_CFI_CIE)
			continue;
		struct as_fde f;
		uint32_t cie = 0;
		const struct as_cie *c = e == AS_CFI_FDE ? cie_get(b, s, cie_off, &cie) : NULL;
		if (!c || !as_cfi_parse_fde(sec, c, body, &f)) {
			b->x->bad_entries++;
			continue;
		}
		if (f.end_svma == f.start_svma)
			continue;
		as_vec_push(&b->fde, (struct as_fde_ref){
					     .start_svma = f.start_svma,
					     .end_svma = f.end_svma,
					     .insn_off = (uint32_t)(f.insn - sec->p),
					     .insn_len = (uint32_t)(f.insn_end - f.insn),
					     .cie = cie,
					     .off = (uint32_t)at,
					     .debug_frame = s == 1,
				     });
	}
}

static int by_start(const void *pa, const void *pb)
{
	const struct as_fde_ref *a = pa, *b = pb;
	if (a->start_svma != b->start_svma)
		return a->start_svma < b->start_svma ? -1 : 1;
	if (a->debug_frame != b->debug_frame)
		return a->debug_frame ? 1 : -1;
	return a->off < b->off ? -1 : a->off > b->off;
}

/* Distinct starts; .debug_frame entries that begin inside an .eh_frame one go. */
static size_t drop_covered(struct as_fde_ref *f, size_t n)
{
	size_t out = 0;
	uint64_t eh_end = 0;
	for (size_t i = 0; i < n; i++) {
		if (out && f[i].start_svma == f[out - 1].start_svma)
			continue;
		if (f[i].debug_frame && f[i].start_svma < eh_end)
			continue;
		if (!f[i].debug_frame && f[i].end_svma > eh_end)
			eh_end = f[i].end_svma;
		f[out++] = f[i];
	}
	return out;
}

static bool is_sorted(const struct as_fde_ref *f, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (by_start(&f[i - 1], &f[i]) > 0)
			return false;
	return true;
}

int as_cfi_index_build(const struct as_cfi_input *in, struct as_cfi_index *ret,
		       struct as_error *err)
{
	struct as_cfi_index x = {0};
	struct index_build b = {.x = &x, .last_key = UINT64_MAX};
	as_cfi_sections(in, x.sec);
	index_section(&b, 0);
	index_section(&b, 1);
	as_map64_clear(&b.cie_at);
	if (!is_sorted(b.fde.v, b.fde.n))
		qsort(b.fde.v, b.fde.n, sizeof *b.fde.v, by_start);
	x.nfde = drop_covered(b.fde.v, b.fde.n);
	x.fde = b.fde.v;
	x.cie = b.cie.v;
	x.ncie = b.cie.n;
	*ret = x;
	(void)err;
	return AS_OK;
}

void as_cfi_index_clear(struct as_cfi_index *x)
{
	if (!x)
		return;
	free(x->fde);
	free(x->cie);
	*x = (struct as_cfi_index){0};
}

bool as_cfi_index_find(const struct as_cfi_index *x, const struct as_cfi_section sec[2],
		       uint64_t svma, struct as_fde *ret)
{
	size_t lo = 0, hi = x->nfde;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (x->fde[mid].start_svma <= svma)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || svma >= x->fde[lo - 1].end_svma)
		return false;
	const struct as_fde_ref *f = &x->fde[lo - 1];
	return as_cfi_load_fde(&sec[f->debug_frame], f->off, ret) && ret->start_svma <= svma &&
	       svma < ret->end_svma;
}

static bool scan_section(const struct as_cfi_section *sec, uint64_t svma, struct as_fde *ret)
{
	struct as_cie cie = {.off = SIZE_MAX};
	bool cie_ok = false;
	size_t off = 0, cie_off;
	struct as_rd body;
	enum as_cfi_entry e;
	while ((e = as_cfi_entry_next(sec, &off, &cie_off, &body)) != AS_CFI_END) {
		if (e != AS_CFI_FDE)
			continue;
		if (cie_off != cie.off) {
			cie_ok = as_cfi_parse_cie(sec, cie_off, &cie);
			cie.off = cie_off;
		}
		struct as_fde f;
		if (!cie_ok || !as_cfi_parse_fde(sec, &cie, body, &f))
			continue;
		if (svma >= f.start_svma && svma < f.end_svma) {
			f.cie = cie;
			*ret = f;
			return true;
		}
	}
	return false;
}

bool as_cfi_scan_find(const struct as_cfi_section sec[2], uint64_t svma, struct as_fde *ret)
{
	return scan_section(&sec[0], svma, ret) || scan_section(&sec[1], svma, ret);
}

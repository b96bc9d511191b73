/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The table's blob: building segments, checking, looking up. */
#include "unwind/table.h"
#include "unwind/arch_priv.h"
#include "unwind/builder_priv.h"
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#define BLOB_HEAD    32
#define SEG_ENTRY    16
#define PAGE_BYTES   (1u << AS_UT_PAGE_SHIFT)
#define ROW_SHIFT    (32 - AS_UT_PAGE_SHIFT)
/* words one page can add: a row and a rule per byte */
#define PAGE_MAX_ADD (3 * PAGE_BYTES + 8)

static const char blob_magic[8] = "ASUTAB1\n";

void as_ut_builder_init(struct as_ut_builder *b, uint64_t page_budget)
{
	*b = (struct as_ut_builder){.last_pc = UINT64_MAX, .page_budget = page_budget};
	b->hash_cap = 1024;
	b->hash = as_xcalloc(b->hash_cap, sizeof *b->hash);
	b->last_key = UINT64_MAX;
	(void)as_ut_rule(b, AS_UT_CFA_NONE, 0); /* rule 0 */
}

void as_ut_builder_clear(struct as_ut_builder *b)
{
	as_vec_clear(&b->rows);
	as_vec_clear(&b->pages);
	as_vec_clear(&b->rules);
	as_vec_clear(&b->rule_seg);
	as_vec_clear(&b->rule_local);
	as_vec_clear(&b->segs);
	free(b->hash);
	b->hash = NULL;
	as_buf_clear(&b->body);
}

static uint64_t rule_key(struct as_rule r)
{
	return (uint64_t)r.w0 << 32 | (uint32_t)r.w1;
}

static void rehash(struct as_ut_builder *b)
{
	free(b->hash);
	b->hash_cap *= 2;
	b->hash = as_xcalloc(b->hash_cap, sizeof *b->hash);
	for (size_t i = 0; i < b->rules.n; i++) {
		size_t at = as_mix64(rule_key(b->rules.v[i])) & (b->hash_cap - 1);
		while (b->hash[at])
			at = (at + 1) & (b->hash_cap - 1);
		b->hash[at] = (uint32_t)i + 1;
	}
}

uint32_t as_ut_rule(struct as_ut_builder *b, uint32_t w0, int32_t w1)
{
	struct as_rule r = {w0, w1};
	uint64_t key = rule_key(r);
	if (key == b->last_key)
		return b->last_key_rule;
	size_t at = as_mix64(key) & (b->hash_cap - 1);
	while (b->hash[at] && rule_key(b->rules.v[b->hash[at] - 1]) != key)
		at = (at + 1) & (b->hash_cap - 1);
	if (!b->hash[at]) {
		if (b->rules.n > AS_UT_RULE_MASK - 1)
			return 0;
		as_vec_push(&b->rules, r);
		as_vec_push(&b->rule_seg, 0u);
		as_vec_push(&b->rule_local, 0u);
		b->hash[at] = (uint32_t)b->rules.n;
		if (b->rules.n * 2 > b->hash_cap) {
			rehash(b);
			return (uint32_t)b->rules.n - 1;
		}
	}
	b->last_key = key;
	b->last_key_rule = b->hash[at] - 1;
	return b->last_key_rule;
}

static size_t segment_words(const struct as_ut_builder *b)
{
	return AS_UT_SEG_HEAD_WORDS + b->pages.n + 1 + 1 + b->rows.n + 1 +
	       2 * (size_t)b->nlocal;
}

static void count_rule(struct as_ut_builder *b, uint32_t rule)
{
	uint32_t seg = (uint32_t)b->segs.n + 1;
	if (b->rule_seg.v[rule] == seg)
		return;
	b->rule_seg.v[rule] = seg;
	b->rule_local.v[rule] = b->nlocal++;
}

static void close_segment(struct as_ut_builder *b)
{
	if (!b->open)
		return;
	size_t npages = b->pages.n, nrows = b->rows.n;
	uint32_t rows_off = (uint32_t)(AS_UT_SEG_HEAD_WORDS + npages + 1 + 1);
	uint32_t rules_off = (uint32_t)((rows_off + nrows + 1) & ~1u);
	uint32_t nwords = rules_off + 2 * b->nlocal;
	struct as_ut_segment s = {(uint32_t)b->first_page, (uint32_t)npages, nwords,
				  b->body.len};
	as_buf_reserve(&b->body, (size_t)nwords * 4);
	uint32_t *w = (uint32_t *)(void *)(b->body.p + b->body.len);
	memset(w, 0, (size_t)rules_off * 4);
	const uint32_t head[AS_UT_SEG_HEAD_WORDS] = {
		AS_UT_SEG_MAGIC, s.first_page,    s.npages, rules_off,
		b->nlocal,       (uint32_t)nrows, nwords,
	};
	memcpy(w, head, sizeof head);
	for (size_t i = 0; i < npages; i++)
		w[AS_UT_SEG_HEAD_WORDS + i] = rows_off + b->pages.v[i];
	w[AS_UT_SEG_HEAD_WORDS + npages] = rows_off + (uint32_t)nrows;
	w[rows_off - 1] = b->rule_local.v[b->carry_rule];
	for (size_t i = 0; i < nrows; i++) {
		uint32_t row = b->rows.v[i];
		w[rows_off + i] =
			(row & ~AS_UT_RULE_MASK) | b->rule_local.v[row & AS_UT_RULE_MASK];
	}
	uint32_t seg = (uint32_t)b->segs.n + 1;
	for (size_t i = 0; i < b->rules.n; i++)
		if (b->rule_seg.v[i] == seg)
			memcpy(w + rules_off + 2 * b->rule_local.v[i], &b->rules.v[i],
			       sizeof b->rules.v[i]);
	b->body.len += (size_t)nwords * 4;
	b->rows_total += nrows;
	as_vec_push(&b->segs, s);
	b->rows.n = b->pages.n = 0;
	b->nlocal = 0;
	b->open = false;
	b->last_pc = UINT64_MAX;
	if (b->body.len > AS_UT_MAX_BLOB)
		b->full = true;
}

static void open_segment(struct as_ut_builder *b, uint64_t page)
{
	b->open = true;
	b->first_page = page;
	b->carry_rule = b->last_rule;
	count_rule(b, b->carry_rule);
}

/* Makes page the last one of the open segment; false when no more pages may be had. */
static bool reach_page(struct as_ut_builder *b, uint64_t page)
{
	if (b->open && b->last_rule == 0 &&
	    page > b->first_page + b->pages.n + AS_UT_MAX_EMPTY_PAGES)
		close_segment(b);
	if (!b->open)
		open_segment(b, page);
	while (b->first_page + b->pages.n <= page) {
		if (segment_words(b) + PAGE_MAX_ADD > AS_UT_SEG_MAX_WORDS) {
			uint64_t next = b->first_page + b->pages.n;
			close_segment(b);
			open_segment(b, next);
		}
		if (!b->page_budget || b->full) {
			b->full = true;
			return false;
		}
		b->page_budget--;
		as_vec_push(&b->pages, (uint32_t)b->rows.n);
	}
	return true;
}

void as_ut_row(struct as_ut_builder *b, uint64_t pc, uint32_t rule)
{
	b->rows_raw++;
	if (pc < b->floor)
		return;
	b->floor = pc;
	if (pc == b->last_pc && b->rows.n) {
		/* replaces the row; when it now repeats its predecessor it goes */
		uint32_t *row = &b->rows.v[b->rows.n - 1];
		uint32_t before = b->rows.n > 1 ? row[-1] & AS_UT_RULE_MASK : b->carry_rule;
		b->last_rule = rule;
		if (before == rule) {
			b->rows.n--;
			b->last_pc = UINT64_MAX;
			return;
		}
		count_rule(b, rule);
		*row = (*row & ~AS_UT_RULE_MASK) | rule;
		return;
	}
	if (rule == b->last_rule || b->full || pc >= AS_UT_SVMA_LIMIT)
		return;
	if (!reach_page(b, pc >> AS_UT_PAGE_SHIFT))
		return;
	count_rule(b, rule);
	as_vec_push(&b->rows, (uint32_t)(pc & (PAGE_BYTES - 1)) << ROW_SHIFT | rule);
	b->last_pc = pc;
	b->last_rule = rule;
}

void as_ut_finish(struct as_ut_builder *b, enum as_arch arch, struct as_buf *out)
{
	close_segment(b);
	size_t base = out->len, n = b->segs.n;
	size_t head = BLOB_HEAD + SEG_ENTRY * n, total = head + b->body.len;
	as_buf_reserve(out, total);
	as_buf_add(out, blob_magic, sizeof blob_magic);
	as_buf_le32(out, (uint32_t)arch);
	as_buf_le32(out, (uint32_t)n);
	as_buf_le64(out, total);
	as_buf_le32(out, 0);
	as_buf_le32(out, 0);
	for (size_t i = 0; i < n; i++) {
		as_buf_le32(out, b->segs.v[i].first_page);
		as_buf_le32(out, b->segs.v[i].npages);
		as_buf_le32(out, (uint32_t)(head + b->segs.v[i].off));
		as_buf_le32(out, b->segs.v[i].nwords);
	}
	as_buf_add(out, b->body.p ? b->body.p : "", b->body.len);
	uint32_t crc = as_crc32c(0, out->p + base + BLOB_HEAD, total - BLOB_HEAD);
	memcpy(out->p + base + 24, &crc, sizeof crc);
}

static bool check_segment(const uint32_t *w, uint32_t nwords)
{
	if (nwords < AS_UT_SEG_HEAD_WORDS + 4 || nwords > AS_UT_SEG_MAX_WORDS ||
	    w[0] != AS_UT_SEG_MAGIC || w[6] != nwords)
		return false;
	uint32_t npages = w[2], rules = w[3], nrules = w[4];
	if (!npages || !nrules || npages > nwords || rules > nwords || rules % 2 ||
	    nrules > (nwords - rules) / 2)
		return false;
	uint64_t first_row = (uint64_t)AS_UT_SEG_HEAD_WORDS + npages + 1 + 1;
	if (first_row > rules)
		return false;
	const uint32_t *page = w + AS_UT_SEG_HEAD_WORDS;
	if (page[0] != first_row || page[npages] > rules)
		return false;
	for (uint32_t i = 0; i < npages; i++) {
		if (page[i] > page[i + 1])
			return false;
		for (uint32_t k = page[i] + 1; k < page[i + 1]; k++)
			if (w[k] >> ROW_SHIFT <= w[k - 1] >> ROW_SHIFT)
				return false;
	}
	for (uint32_t k = page[0] - 1; k < page[npages]; k++)
		if ((w[k] & AS_UT_RULE_MASK) >= nrules)
			return false;
	return true;
}

int as_utable_open(const void *blob, size_t size, struct as_utable *ret, struct as_error *err)
{
	const uint8_t *p = blob;
	if ((uintptr_t)p % 8)
		return as_fail(err, AS_E_USAGE, 0,
			       "an unwind table must lie at a multiple of 8");
	if (size < BLOB_HEAD || memcmp(p, blob_magic, sizeof blob_magic))
		return as_fail(err, AS_E_FORMAT, 0, "not an unwind table");
	uint32_t arch = as_get_le32(p + 8), n = as_get_le32(p + 12);
	if (!as_uarch_get((enum as_arch)arch) || as_get_le64(p + 16) != size ||
	    as_get_le32(p + 28))
		return as_fail(err, AS_E_FORMAT, 0, "unwind table: damaged header");
	if (!n || n > (size - BLOB_HEAD) / SEG_ENTRY)
		return as_fail(err, AS_E_FORMAT, 0, "unwind table: damaged directory");
	if (as_crc32c(0, p + BLOB_HEAD, size - BLOB_HEAD) != as_get_le32(p + 24))
		return as_fail(err, AS_E_FORMAT, 0, "unwind table: wrong checksum");
	uint64_t end_page = 0;
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *d = p + BLOB_HEAD + SEG_ENTRY * (size_t)i;
		uint32_t first = as_get_le32(d), npages = as_get_le32(d + 4);
		uint32_t off = as_get_le32(d + 8), nwords = as_get_le32(d + 12);
		if (first < end_page || off % 8 || off > size || nwords > (size - off) / 4)
			return as_fail(err, AS_E_FORMAT, 0, "unwind table: damaged directory");
		const uint32_t *w = (const uint32_t *)(const void *)(p + off);
		if (!check_segment(w, nwords) || w[1] != first || w[2] != npages)
			return as_fail(err, AS_E_FORMAT, 0, "unwind table: damaged segment");
		end_page = (uint64_t)first + npages;
	}
	*ret = (struct as_utable){
		.blob = p, .size = size, .arch = (enum as_arch)arch, .nsegs = n};
	return AS_OK;
}

/* The segment whose pages hold page, or NULL. */
static const uint32_t *find_segment(const struct as_utable *t, uint64_t page)
{
	const uint32_t *dir = (const uint32_t *)(const void *)(t->blob + BLOB_HEAD);
	uint32_t lo = 0, hi = t->nsegs;
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (dir[4 * (size_t)mid] <= page)
			lo = mid;
		else
			hi = mid;
	}
	dir += 4 * (size_t)lo;
	if (page - dir[0] >= dir[1])
		return NULL;
	return (const uint32_t *)(const void *)(t->blob + dir[2]);
}

bool as_utable_find(const struct as_utable *t, uint64_t svma, struct as_rule *ret)
{
	uint64_t page = svma >> AS_UT_PAGE_SHIFT;
	const uint32_t *w = find_segment(t, page);
	if (!w)
		return false;
	const uint32_t *dir = w + AS_UT_SEG_HEAD_WORDS + (page - w[1]);
	const uint32_t *row = w + dir[0];
	size_t n = dir[1] - dir[0];
	uint32_t key = (uint32_t)svma << ROW_SHIFT | AS_UT_RULE_MASK;
	/* how many rows of the page start at or before svma: no branch depends on the data */
	while (n > 1) {
		size_t half = n / 2;
		row = row[half - 1] <= key ? row + half : row;
		n -= half;
	}
	row += n && *row <= key;
	const uint32_t *rule = w + w[3] + 2 * (size_t)(row[-1] & AS_UT_RULE_MASK);
	ret->w0 = rule[0];
	ret->w1 = (int32_t)rule[1];
	return true;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "hook/calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "hook/insn.h"

#define CALL           0xe8
#define MAX_FOUND      (1u << 16) /* functions that only calls tell of */
#define MAX_FOUND_SIZE 0x10000u
#define MAX_START      400u /* instructions of the entry's own code that are looked at */
#define MAX_DEPTH      2

struct as_calls {
	struct as_elf *elf;
	struct as_hook_code *code;
	uint32_t *sites;
	bool *found;  /* by calls only */
	bool *taken;  /* its address */
	size_t *edge; /* of function i: edges.v[edge[i]] to edges.v[edge[i + 1] - 1] */
	AS_VEC(struct as_calls_edge) edges;
};

typedef void (*branch_fn)(void *ctx, const uint8_t *opcode, uint64_t target);

/* Everything in the text that may be a near branch. */
static void each_branch(const struct as_elf *elf, branch_fn fn, void *ctx)
{
	size_t nseg;
	const struct as_elf_segment *s = as_elf_segments(elf, &nseg);

	for (size_t k = 0; k < nseg; k++) {
		const uint8_t *p = s[k].exec && s[k].filesz
					   ? as_elf_at(elf, s[k].svma, s[k].filesz)
					   : NULL;

		for (uint64_t i = 1; p && i + 4 <= s[k].filesz; i++) {
			bool jcc = i >= 2 && p[i - 2] == 0x0f && (p[i - 1] & 0xf0) == 0x80;

			if ((p[i - 1] & 0xfe) != CALL && !jcc)
				continue;
			fn(ctx, p + i - 1,
			   s[k].svma + i + 4 + (uint64_t)(int64_t)(int32_t)as_get_le32(p + i));
		}
	}
}

static bool is_code(const struct as_elf *elf, uint64_t svma)
{
	size_t n;
	const struct as_elf_segment *s = as_elf_segments(elf, &n);

	for (size_t i = 0; i < n; i++) {
		if (s[i].exec && svma - s[i].svma < s[i].filesz)
			return true;
	}
	return false;
}

/* The last function that begins at svma or before; SIZE_MAX: none. */
static size_t function_over(const struct as_hook_code *c, uint64_t svma)
{
	size_t lo = 0, hi = as_hook_code_count(c);

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (as_hook_code_at(c, mid)->svma <= svma)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? lo - 1 : SIZE_MAX;
}

/* ---- functions that nothing but calls tells of ---- */

struct finder {
	const struct as_elf *elf;
	const struct as_hook_code *code;
	AS_VEC(uint64_t) target;
	/* second pass: functions whose address is taken; NULL: the first */
	bool *taken;
};

static void on_call(void *ctx, const uint8_t *opcode, uint64_t target)
{
	struct finder *f = ctx;
	size_t i;

	if (*opcode != CALL || f->target.n == MAX_FOUND * 16 || !is_code(f->elf, target))
		return;
	i = function_over(f->code, target);
	if (i == SIZE_MAX || target >= as_hook_code_at(f->code, i)->end_svma)
		as_vec_push(&f->target, target);
}

static void add_target(struct finder *f, uint64_t target)
{
	const uint8_t call = CALL;
	size_t i = f->taken ? as_hook_code_find(f->code, target) : SIZE_MAX;

	if (i != SIZE_MAX)
		f->taken[i] = true;
	if (!f->taken)
		on_call(f, &call, target);
}

/* Addresses that code takes: lea rel32(%rip), %reg; mov $imm32, %reg. Looked for in all bytes. */
static void add_taken(struct finder *f, const struct as_elf_segment *s, const uint8_t *p)
{
	for (uint64_t i = 0; i + 7 <= s->filesz; i++) {
		uint32_t word = as_get_le32(p + i + 3);

		if ((p[i] & 0xf8) == 0x48 && p[i + 1] == 0x8d && (p[i + 2] & 0xc7) == 0x05)
			add_target(f, s->svma + i + 7 + (uint64_t)(int64_t)(int32_t)word);
		else if ((p[i] & 0xf8) == 0x48 && p[i + 1] == 0xc7 && (p[i + 2] & 0xf8) == 0xc0)
			add_target(f, word);
		else if ((p[i] & 0xf8) == 0xb8)
			add_target(f, as_get_le32(p + i + 1));
	}
}

/* What code and data point to, relocations among them. */
static void add_pointed_to(struct finder *f)
{
	size_t n;
	const struct as_elf_segment *s = as_elf_segments(f->elf, &n);

	for (size_t k = 0; k < n; k++) {
		const uint8_t *p =
			s[k].filesz ? as_elf_at(f->elf, s[k].svma, s[k].filesz) : NULL;

		if (p && s[k].exec)
			add_taken(f, &s[k], p);
		for (uint64_t i = -s[k].svma & 7; p && !s[k].exec && i + 8 <= s[k].filesz;
		     i += 8)
			add_target(f, as_get_le64(p + i));
	}
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

typedef AS_VEC(struct as_extent) extent_list;

/* Ends are where the next one begins, which is known when all of them are. */
static void add_found(struct finder *f, extent_list *list)
{
	size_t n = 0;

	if (f->target.n)
		qsort(f->target.v, f->target.n, sizeof *f->target.v, by_value);
	for (size_t i = 0; i < f->target.n; i++) {
		if (!n || f->target.v[i] != f->target.v[n - 1])
			f->target.v[n++] = f->target.v[i];
	}
	f->target.n = AS_MIN(n, (size_t)MAX_FOUND);
	for (size_t i = 0; i < f->target.n; i++) {
		uint64_t at = f->target.v[i], end = at + MAX_FOUND_SIZE;
		size_t before = function_over(f->code, at), next = before + 1;

		if (i + 1 < f->target.n)
			end = AS_MIN(end, f->target.v[i + 1]);
		if (next < as_hook_code_count(f->code))
			end = AS_MIN(end, as_hook_code_at(f->code, next)->svma);
		while (end > at && !is_code(f->elf, end - 1))
			end = at + (end - at) / 2;
		as_vec_push(list, (struct as_extent){at, end});
	}
}

static int complete(struct as_calls *c, const struct as_extent *extents, size_t n,
		    struct as_error *err)
{
	struct as_hook_code *known;
	struct finder f = {.elf = c->elf};
	extent_list list = {0};
	int r = as_hook_code_new(c->elf, extents, n, &known, err);

	if (r < 0)
		return r;
	f.code = known;
	for (size_t i = 0; i < n; i++)
		as_vec_push(&list, extents[i]);
	each_branch(c->elf, on_call, &f);
	add_pointed_to(&f);
	add_found(&f, &list);
	r = as_hook_code_new(c->elf, list.v, list.n, &c->code, err);
	if (r == 0) {
		c->found = as_xcalloc(as_hook_code_count(c->code) + 1, sizeof *c->found);
		as_vec_foreach (t, &f.target) {
			size_t i = as_hook_code_find(c->code, *t);

			if (i != SIZE_MAX)
				c->found[i] = true;
		}
	}
	as_vec_clear(&f.target);
	as_vec_clear(&list);
	as_hook_code_free(known);
	return r;
}

static void find_taken(struct as_calls *c)
{
	struct finder f = {.elf = c->elf, .code = c->code};

	f.taken = c->taken = as_xcalloc(as_hook_code_count(c->code) + 1, sizeof *c->taken);
	add_pointed_to(&f);
}

static void count_site(void *ctx, const uint8_t *opcode, uint64_t target)
{
	struct as_calls *c = ctx;
	size_t i = as_hook_code_find(c->code, target);

	(void)opcode;
	if (i != SIZE_MAX)
		c->sites[i]++;
}

static void add_edge(struct as_calls *c, size_t from, size_t to)
{
	for (size_t k = c->edge[from]; k < c->edges.n; k++) {
		if (c->edges.v[k].to == to) {
			c->edges.v[k].count++;
			return;
		}
	}
	as_vec_push(&c->edges, (struct as_calls_edge){(uint32_t)to, 1});
}

static void decode_function(struct as_calls *c, size_t i)
{
	const struct as_hook_function *f = as_hook_code_at(c->code, i);

	for (uint64_t a = f->svma; a < f->end_svma;) {
		const uint8_t *p = as_hook_code_bytes(c->code, a, f->end_svma - a);
		struct as_hook_insn in;
		size_t j;

		if (!p || !as_hook_decode(p, f->end_svma - a, a, &in))
			return;
		a += in.len;
		if (!in.rel_bytes || in.target - f->svma < f->end_svma - f->svma)
			continue;
		j = as_hook_code_find(c->code, in.target);
		if (j == SIZE_MAX)
			continue;
		add_edge(c, i, j);
		/* short ones were not counted by their bytes */
		c->sites[j] += in.rel_bytes == 1;
	}
}

int as_calls_new(struct as_elf *elf, const struct as_extent *extents, size_t n,
		 struct as_calls **ret, struct as_error *err)
{
	struct as_calls *c = as_xcalloc(1, sizeof *c);
	int r;

	c->elf = elf;
	r = complete(c, extents, n, err);
	if (r < 0) {
		as_calls_free(c);
		return r;
	}
	c->sites = as_xcalloc(as_hook_code_count(c->code) + 1, sizeof *c->sites);
	each_branch(elf, count_site, c);
	c->edge = as_xcalloc(as_hook_code_count(c->code) + 1, sizeof *c->edge);
	for (size_t i = 0; i < as_hook_code_count(c->code); i++) {
		decode_function(c, i);
		c->edge[i + 1] = c->edges.n;
	}
	find_taken(c);
	*ret = c;
	return 0;
}

void as_calls_free(struct as_calls *c)
{
	if (!c)
		return;
	as_hook_code_free(c->code);
	free(c->sites);
	free(c->found);
	free(c->taken);
	free(c->edge);
	as_vec_clear(&c->edges);
	free(c);
}

struct as_hook_code *as_calls_code(const struct as_calls *c)
{
	return c->code;
}

struct as_hook_code *as_calls_take_code(struct as_calls *c)
{
	return AS_STEAL(c->code);
}

uint32_t as_calls_sites(const struct as_calls *c, size_t i)
{
	return c->sites[i];
}

bool as_calls_is_found(const struct as_calls *c, size_t i)
{
	return c->found[i];
}

bool as_calls_is_taken(const struct as_calls *c, size_t i)
{
	return c->taken[i];
}

const struct as_calls_edge *as_calls_edges(const struct as_calls *c, size_t i, size_t *ret_n)
{
	*ret_n = c->edge[i + 1] - c->edge[i];
	return *ret_n ? &c->edges.v[c->edge[i]] : NULL;
}

/* ---- references ---- */

static bool is_listed(const uint64_t *svma, size_t n, uint64_t at)
{
	if (at < svma[0] || at > svma[n - 1])
		return false;
	return bsearch(&at, svma, n, sizeof *svma, by_value) != NULL;
}

void as_calls_refer(const struct as_calls *c, const uint64_t *svma, size_t n, bool *refers)
{
	for (size_t i = 0; n && i < as_hook_code_count(c->code); i++) {
		const struct as_hook_function *f = as_hook_code_at(c->code, i);
		size_t bytes = (size_t)(f->end_svma - f->svma);
		const uint8_t *p = as_hook_code_bytes(c->code, f->svma, bytes);

		for (size_t k = 0; p && k + 4 <= bytes && !refers[i]; k++) {
			uint32_t word = as_get_le32(p + k);
			uint64_t there = f->svma + k + 4 + (uint64_t)(int64_t)(int32_t)word;

			refers[i] = is_listed(svma, n, word) || is_listed(svma, n, there);
		}
	}
}

/* ---- main ---- */

struct starter {
	const struct as_calls *c;
	uint64_t *v;
	size_t n, max;
};

static void add_main(struct starter *s, uint64_t svma)
{
	if (s->n == s->max || !is_code(s->c->elf, svma))
		return;
	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i] == svma)
			return;
	}
	s->v[s->n++] = svma;
}

/* mov $imm32, %edi; mov $imm32, %rdi; lea rel32(%rip), %rdi */
static void look_at(struct starter *s, const uint8_t *p, const struct as_hook_insn *in)
{
	if (in->len == 5 && p[0] == 0xbf)
		add_main(s, as_get_le32(p + 1));
	else if (in->len == 7 && p[0] == 0x48 && p[1] == 0xc7 && p[2] == 0xc7)
		add_main(s, as_get_le32(p + 3));
	else if (in->len == 7 && p[0] == 0x48 && p[1] == 0x8d && p[2] == 0x3d)
		add_main(s, in->target);
}

static void follow(struct starter *s, uint64_t a, int depth)
{
	for (int i = 0; i < (int)MAX_START; i++) {
		const uint8_t *p = NULL;
		struct as_hook_insn in;
		size_t room = AS_HOOK_INSN_MAX;

		while (room && !(p = as_hook_code_bytes(s->c->code, a, room)))
			room--;
		if (!p || !as_hook_decode(p, room, a, &in))
			return;
		look_at(s, p, &in);
		if (in.rel_bytes == 4 && depth < MAX_DEPTH &&
		    (in.kind == AS_HOOK_CALL || in.kind == AS_HOOK_JMP))
			follow(s, in.target, depth + 1);
		if (in.kind == AS_HOOK_RET || in.kind == AS_HOOK_STOP ||
		    in.kind == AS_HOOK_JMP || in.kind == AS_HOOK_IJMP)
			return;
		a += in.len;
	}
}

size_t as_calls_main(const struct as_calls *c, uint64_t *ret, size_t max)
{
	struct starter s = {.c = c, .v = ret, .max = max};

	follow(&s, as_elf_entry(c->elf), 0);
	return s.n;
}

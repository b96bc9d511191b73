/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "hook/code.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "hook/insn.h"

#define MAX_TABLES  64   /* switches of one function */
#define MAX_ENTRIES 4096 /* of one switch */
#define SHORT_REACH 130  /* bytes from which a short branch may come, its own length included */

struct text { /* an executable segment */
	uint64_t svma, size;
	const uint8_t *p;
	uint64_t *
		suspect; /* one bit a byte: a near branch may lead there; NULL: not yet looked */
};

struct as_hook_code {
	struct as_elf *elf;
	AS_VEC(struct as_hook_function) fn;
	AS_VEC(struct text) text;
};

/* ---- functions ---- */

static const struct text *text_of(const struct as_hook_code *c, uint64_t svma)
{
	as_vec_foreach (t, &c->text) {
		if (svma - t->svma < t->size)
			return t;
	}
	return NULL;
}

static void add_function(struct as_hook_code *c, uint64_t start, uint64_t end)
{
	const struct text *t = text_of(c, start);

	if (t && end > start && end - t->svma <= t->size)
		as_vec_push(&c->fn, (struct as_hook_function){start, end});
}

static void on_symbol(void *ctx, const struct as_elf_symbol *s)
{
	if ((s->func || s->ifunc) && s->size_bytes)
		add_function(ctx, s->svma, s->svma + s->size_bytes);
}

/* By start; of those that share one the longest first. */
static int by_start(const void *a, const void *b)
{
	const struct as_hook_function *x = a, *y = b;

	if (x->svma != y->svma)
		return x->svma < y->svma ? -1 : 1;
	return x->end_svma == y->end_svma ? 0 : x->end_svma > y->end_svma ? -1 : 1;
}

static void sort_functions(struct as_hook_code *c)
{
	size_t n = 0;

	if (!c->fn.n)
		return;
	qsort(c->fn.v, c->fn.n, sizeof *c->fn.v, by_start);
	for (size_t i = 1; i < c->fn.n; i++) {
		if (c->fn.v[i].svma != c->fn.v[n].svma)
			c->fn.v[++n] = c->fn.v[i];
	}
	c->fn.n = n + 1;
}

static int find_text(struct as_hook_code *c, struct as_error *err)
{
	size_t n;
	const struct as_elf_segment *s = as_elf_segments(c->elf, &n);
	uint64_t total = 0;

	for (size_t i = 0; i < n; i++) {
		const uint8_t *p;

		if (!s[i].exec || !s[i].filesz)
			continue;
		p = as_elf_at(c->elf, s[i].svma, s[i].filesz);
		if (!p)
			continue;
		total += s[i].filesz;
		as_vec_push(&c->text, (struct text){s[i].svma, s[i].filesz, p, NULL});
	}
	if (!total)
		return as_fail(err, AS_E_FORMAT, 0, "no code in it");
	if (total > AS_HOOK_MAX_TEXT)
		return as_fail(err, AS_E_LIMIT, 0, "more than %llu MiB of code",
			       AS_HOOK_MAX_TEXT >> 20);
	return 0;
}

int as_hook_code_new(struct as_elf *elf, const struct as_extent *extents, size_t n,
		     struct as_hook_code **ret, struct as_error *err)
{
	const char *cannot = as_hook_cannot_patch(as_elf_arch(elf));
	struct as_hook_code *c;
	int r;

	if (cannot)
		return as_fail(err, AS_E_UNSUPPORTED, 0, "%s", cannot);
	c = as_xcalloc(1, sizeof *c);
	c->elf = elf;
	r = find_text(c, err);
	if (r < 0) {
		as_hook_code_free(c);
		return r;
	}
	for (size_t i = 0; i < n; i++)
		add_function(c, extents[i].start_svma, extents[i].end_svma);
	/* a damaged table costs the symbols in it; what the others told is there */
	(void)as_elf_each_symbol(elf, on_symbol, c, NULL);
	sort_functions(c);
	*ret = c;
	return 0;
}

void as_hook_code_free(struct as_hook_code *c)
{
	if (!c)
		return;
	as_vec_foreach (t, &c->text)
		free(t->suspect);
	as_vec_clear(&c->text);
	as_vec_clear(&c->fn);
	free(c);
}

size_t as_hook_code_count(const struct as_hook_code *c)
{
	return c->fn.n;
}

const struct as_hook_function *as_hook_code_at(const struct as_hook_code *c, size_t i)
{
	return &c->fn.v[i];
}

/* The first function that begins at svma or behind it. */
static size_t lower(const struct as_hook_code *c, uint64_t svma)
{
	size_t lo = 0, hi = c->fn.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->fn.v[mid].svma < svma)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

size_t as_hook_code_find(const struct as_hook_code *c, uint64_t svma)
{
	size_t i = lower(c, svma);

	return i < c->fn.n && c->fn.v[i].svma == svma ? i : SIZE_MAX;
}

uint64_t as_hook_code_next(const struct as_hook_code *c, size_t i)
{
	const struct text *t = text_of(c, c->fn.v[i].svma);
	uint64_t end = t->svma + t->size;

	return i + 1 < c->fn.n && c->fn.v[i + 1].svma < end ? c->fn.v[i + 1].svma : end;
}

const uint8_t *as_hook_code_bytes(const struct as_hook_code *c, uint64_t svma, size_t n)
{
	const struct text *t = text_of(c, svma);

	return t && n <= t->size - (svma - t->svma) ? t->p + (svma - t->svma) : NULL;
}

/* ---- near branches ---- */

static inline bool get_bit(const uint64_t *bits, uint64_t i)
{
	return bits[i / 64] >> (i % 64) & 1;
}

/* Whether the four bytes at p can be the distance of a near branch: call, jmp, jcc, xbegin. */
static inline bool behind_opcode(const uint8_t *text, const uint8_t *p)
{
	if (p == text)
		return false;
	if ((p[-1] & 0xfe) == 0xe8)
		return true;
	return p - text >= 2 &&
	       ((p[-2] == 0x0f && (p[-1] & 0xf0) == 0x80) || (p[-2] == 0xc7 && p[-1] == 0xf8));
}

typedef void (*suspect_fn)(void *ctx, uint64_t svma, uint64_t target);

/* Everything in t that may be a near branch: svma is where its distance begins. */
static void each_suspect(const struct text *t, suspect_fn fn, void *ctx)
{
	for (uint64_t i = 1; i + 4 <= t->size; i++) {
		int32_t rel;

		if (!behind_opcode(t->p, t->p + i))
			continue;
		memcpy(&rel, t->p + i, 4);
		fn(ctx, t->svma + i, t->svma + i + 4 + (uint64_t)(int64_t)rel);
	}
}

static void mark(void *ctx, uint64_t svma, uint64_t target)
{
	const struct text *t = text_of(ctx, target);

	(void)svma;
	if (t)
		t->suspect[(target - t->svma) / 64] |= 1ull << ((target - t->svma) % 64);
}

static void mark_suspects(struct as_hook_code *c)
{
	if (!c->text.n || c->text.v[0].suspect)
		return;
	as_vec_foreach (t, &c->text)
		t->suspect = as_xcalloc(t->size / 64 + 1, 8);
	as_vec_foreach (t, &c->text)
		each_suspect(t, mark, c);
	as_elf_give_back_pages(c->elf);
}

/* ---- what one question is about ---- */

struct question {
	struct as_hook_code *c;
	uint64_t svma;
	unsigned n;
	uint32_t suspects, found;
};

static void found(struct question *q, uint64_t target)
{
	if (target - q->svma < q->n)
		q->found |= 1u << (target - q->svma);
}

/* The last function that begins at svma or before; SIZE_MAX: none. */
static size_t function_over(const struct as_hook_code *c, uint64_t svma)
{
	size_t i = lower(c, svma + 1);

	return i ? i - 1 : SIZE_MAX;
}

/* Decodes from the start of a function: true when a branch ends where `end` is, or when that cannot
 * be told because the bytes are no code. */
static bool branch_ends_at(const struct as_hook_code *c, uint64_t end)
{
	size_t i = function_over(c, end - 1);
	uint64_t a = i == SIZE_MAX ? end : c->fn.v[i].svma;

	while (a < end) {
		const uint8_t *p = as_hook_code_bytes(c, a, end - a);
		struct as_hook_insn in;

		if (!p || !as_hook_decode(p, end - a, a, &in))
			return true;
		a += in.len;
		if (a == end)
			return in.rel_bytes == 4;
	}
	return true;
}

static void confirm(void *ctx, uint64_t svma, uint64_t target)
{
	struct question *q = ctx;

	if (target - q->svma < q->n && q->suspects >> (target - q->svma) & 1 &&
	    branch_ends_at(q->c, svma + 4))
		found(q, target);
}

static void ask_near(struct question *q)
{
	const struct text *t = text_of(q->c, q->svma);

	mark_suspects(q->c);
	for (unsigned i = 0; i < q->n && q->svma + i - t->svma < t->size; i++) {
		if (get_bit(t->suspect, q->svma + i - t->svma))
			q->suspects |= 1u << i;
	}
	if (!q->suspects)
		return;
	as_vec_foreach (other, &q->c->text)
		each_suspect(other, confirm, q);
}

/* A switch: distances from the table itself, as long as they lead into the function. */
static void ask_table(struct question *q, const struct as_hook_function *f, uint64_t table)
{
	for (unsigned i = 0; i < MAX_ENTRIES; i++) {
		const uint8_t *p = as_elf_at(q->c->elf, table + 4 * i, 4);
		uint64_t target;

		if (!p)
			return;
		target = table + (uint64_t)(int64_t)(int32_t)as_get_le32(p);
		if (target - f->svma >= f->end_svma - f->svma)
			return;
		found(q, target);
	}
}

/* Of the function that the question is about everything, of others what can reach by short branch. */
static void ask_function(struct question *q, const struct as_hook_function *f)
{
	bool own = q->svma >= f->svma && q->svma < f->end_svma;
	uint64_t end = own ? f->end_svma : AS_MIN(f->end_svma, q->svma + q->n + SHORT_REACH);
	uint64_t table[MAX_TABLES];
	size_t ntables = 0;
	bool jumps = false;

	for (uint64_t a = f->svma; a < end;) {
		const uint8_t *p = as_hook_code_bytes(q->c, a, f->end_svma - a);
		struct as_hook_insn in;

		if (!p || !as_hook_decode(p, f->end_svma - a, a, &in))
			break;
		if (in.rel_bytes)
			found(q, in.target);
		else if (in.is_lea && ntables < MAX_TABLES)
			table[ntables++] = in.target;
		jumps |= in.kind == AS_HOOK_IJMP;
		a += in.len;
	}
	for (size_t i = 0; own && jumps && i < ntables; i++)
		ask_table(q, f, table[i]);
}

/* Functions from which a short branch can come, the one of the question among them. */
static void ask_neighbours(struct question *q)
{
	uint64_t from = q->svma > SHORT_REACH ? q->svma - SHORT_REACH : 0;
	size_t i = function_over(q->c, from);

	for (i = i == SIZE_MAX ? 0 : i; i < q->c->fn.n; i++) {
		if (q->c->fn.v[i].svma >= q->svma + q->n + SHORT_REACH)
			return;
		found(q, q->c->fn.v[i].svma);
		ask_function(q, &q->c->fn.v[i]);
	}
}

uint32_t as_hook_code_targets(struct as_hook_code *c, uint64_t svma, unsigned n)
{
	struct question q = {.c = c, .svma = svma, .n = AS_MIN(n, 32u)};

	if (!text_of(c, svma))
		return 0;
	ask_near(&q);
	ask_neighbours(&q);
	return q.found;
}

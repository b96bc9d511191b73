/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Whether two programs hold the same machine code, wherever it lies. Functions are compared by name:
 * their instructions byte by byte, but for the distances to other places, of which the function or
 * object they lead to is compared instead. Constants have to be the same bytes, but for jump tables:
 * words that are distances from one place near before them (the table's start) to code, and lead to the
 * same place of the same function in both programs. Where anything else differs nothing is claimed.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "bench/layout.h"
#include "code/disasm.h"
#include "elf/elf.h"

#define INSN_MAX  16
#define PAD_NAME  "assay_pad"
/* a word of a jump table lies at most so far behind the table's start: 1,024 cases */
#define TABLE_MAX 4096

struct function {
	const char *name;
	uint64_t svma, size_bytes;
	uint64_t hash;
};
struct program {
	struct as_elf *elf;
	struct as_disasm *disasm;
	AS_VEC(struct function) f; /* by svma, then by name and hash */
	AS_VEC(uint64_t) pointers; /* svma of words that are relocated */
	bool pointers_read;
};

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void on_symbol(void *ctx, const struct as_elf_symbol *s)
{
	struct program *p = ctx;

	if (s->func && s->size_bytes && !s->dynamic &&
	    strncmp(s->name, PAD_NAME, sizeof PAD_NAME - 1) != 0)
		as_vec_push(&p->f, (struct function){s->name, s->svma, s->size_bytes, 0});
}

static int by_place(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->svma != y->svma)
		return x->svma < y->svma ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
	const struct function *x = a, *y = b;
	int d = strcmp(x->name, y->name);

	if (d == 0)
		d = x->hash < y->hash ? -1 : x->hash > y->hash;
	return d;
}

static const struct function *function_at(const struct program *p, uint64_t svma)
{
	size_t lo = 0, hi = p->f.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (p->f.v[mid].svma <= svma)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || svma - p->f.v[lo - 1].svma >= p->f.v[lo - 1].size_bytes)
		return NULL;
	while (lo > 1 && p->f.v[lo - 2].svma == p->f.v[lo - 1].svma)
		lo--; /* of several names always the first */
	return &p->f.v[lo - 1];
}

/* Zeros where the instruction holds the distance to `to`. */
static void mask(uint8_t *bytes, size_t n, uint64_t distance)
{
	uint32_t four = (uint32_t)distance;

	for (size_t at = n; at >= 1; at--) {
		if (at >= 4 && as_get_le32(bytes + at - 4) == four) {
			memset(bytes + at - 4, 0, 4);
			return;
		}
	}
}

static void add_place(const struct program *p, const struct function *own, uint64_t to,
		      struct as_buf *out)
{
	const struct function *f = function_at(p, to);

	if (f == own || (f && f->svma == own->svma))
		as_buf_addf(out, "+%llx", (unsigned long long)(to - own->svma));
	else if (f)
		as_buf_addf(out, "%s+%llx", f->name, (unsigned long long)(to - f->svma));
	else
		as_buf_addc(out, '?'); /* constants are compared as a whole */
}

static void hash_function(struct program *p, struct function *f)
{
	AS_CLEANUP(as_buf_clear) struct as_buf all = {0};
	const uint8_t *code = as_elf_at(p->elf, f->svma, f->size_bytes);

	for (uint64_t at = 0; code && at < f->size_bytes;) {
		uint8_t bytes[INSN_MAX] = {0};
		struct as_insn insn;
		size_t n;

		as_disasm_skim(p->disasm, code + at, f->size_bytes - at, f->svma + at, &insn);
		n = AS_MIN((size_t)insn.len, sizeof bytes);
		memcpy(bytes, code + at, n);
		if (insn.target || insn.data) {
			uint64_t to = insn.target ? insn.target : insn.data;
			const struct function *other = function_at(p, to);

			if (!other || other->svma != f->svma)
				mask(bytes, n, to - (f->svma + at + insn.len));
			add_place(p, f, to, &all);
		}
		as_buf_add(&all, bytes, n);
		at += insn.len;
	}
	f->hash = as_hash64(as_buf_str(&all), all.len);
}

static int load(const char *path, struct program *p, struct as_error *err)
{
	int r = as_elf_open(path, &p->elf, err);

	if (r < 0)
		return r;
	p->disasm = as_disasm_new(as_elf_arch(p->elf), NULL, NULL);
	(void)as_elf_each_symbol(p->elf, on_symbol, p, NULL); /* damaged: fewer functions */
	if (p->f.n)
		qsort(p->f.v, p->f.n, sizeof *p->f.v, by_place);
	return AS_OK;
}

static void clear(struct program *p)
{
	as_disasm_free(p->disasm);
	as_elf_close(p->elf);
	as_vec_clear(&p->f);
	as_vec_clear(&p->pointers);
}

static bool is_pointer(struct program *p, uint64_t svma)
{
	const uint8_t *bytes;
	size_t n;

	if (!p->pointers.n && !p->pointers_read &&
	    as_elf_section_data(p->elf, ".rela.dyn", &bytes, &n, NULL) == AS_OK) {
		for (size_t at = 0; at + sizeof(Elf64_Rela) <= n; at += sizeof(Elf64_Rela))
			as_vec_push(&p->pointers, as_get_le64(bytes + at));
		if (p->pointers.n)
			qsort(p->pointers.v, p->pointers.n, sizeof *p->pointers.v, by_number);
	}
	p->pointers_read = true;
	return p->pointers.n &&
	       bsearch(&svma, p->pointers.v, p->pointers.n, sizeof *p->pointers.v, by_number);
}

/* A section as both programs have it. */
struct both {
	struct program *a, *b;
	uint64_t svma_a, svma_b;
	const uint8_t *in_a, *in_b;
	size_t bytes;
	size_t table; /* where the jump table found last begins */
};

static bool leads_alike(const struct both *s, size_t table, size_t at)
{
	uint64_t to_a = s->svma_a + table + (uint64_t)(int32_t)as_get_le32(s->in_a + at);
	uint64_t to_b = s->svma_b + table + (uint64_t)(int32_t)as_get_le32(s->in_b + at);
	const struct function *f = function_at(s->a, to_a), *g = function_at(s->b, to_b);

	return f && g && to_a - f->svma == to_b - g->svma && strcmp(f->name, g->name) == 0;
}

/* Whether the words at `at` differ as those of one jump table do that lies elsewhere. */
static bool is_table_word(struct both *s, size_t at)
{
	if (at % 4 || s->bytes - at < 4)
		return false;
	if (s->table <= at && at - s->table < TABLE_MAX && leads_alike(s, s->table, at))
		return true;
	for (size_t back = 0; back <= at && back < TABLE_MAX; back += 4) {
		if (leads_alike(s, at - back, at)) {
			s->table = at - back;
			return true;
		}
	}
	return false;
}

static bool same_words(struct both *s, size_t at, size_t n)
{
	for (size_t i = 0; i < n; i += 4) {
		if (memcmp(s->in_a + at + i, s->in_b + at + i, AS_MIN((size_t)4, n - i)) != 0 &&
		    !is_table_word(s, at + i))
			return false;
	}
	return true;
}

/* Words that the dynamic linker fills in are left out: some linkers write addresses there too. */
static bool same_section(struct program *a, struct program *b, const char *name)
{
	const struct as_elf_section *x = as_elf_find_section(a->elf, name);
	const struct as_elf_section *y = as_elf_find_section(b->elf, name);
	const uint8_t *p, *q;
	size_t n, m;
	bool has = as_elf_section_data(a->elf, name, &p, &n, NULL) == AS_OK;
	struct both s;

	if (has != (as_elf_section_data(b->elf, name, &q, &m, NULL) == AS_OK))
		return false;
	if (!has)
		return true;
	if (n != m)
		return false;
	s = (struct both){a, b, x->svma, y->svma, p, q, n, 0};
	for (size_t at = 0; at < n; at += 8) {
		size_t step = AS_MIN((size_t)8, n - at);

		if (memcmp(p + at, q + at, step) != 0 &&
		    !(is_pointer(a, x->svma + at) && is_pointer(b, y->svma + at)) &&
		    !same_words(&s, at, step))
			return false;
	}
	return true;
}

static bool same_data(struct program *a, struct program *b)
{
	/* pointers are zeros here, and in the relocations of position-independent programs */
	static const char *const names[] = {".rodata", ".data", ".data.rel.ro", ".tdata"};

	for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
		if (!same_section(a, b, names[i]))
			return false;
	}
	return as_elf_arch(a->elf) == as_elf_arch(b->elf);
}

static bool same_functions(struct program *a, struct program *b)
{
	if (!a->f.n || a->f.n != b->f.n || as_disasm_missing(as_elf_arch(a->elf)))
		return false;
	for (size_t i = 0; i < a->f.n; i++) {
		hash_function(a, &a->f.v[i]);
		hash_function(b, &b->f.v[i]);
	}
	qsort(a->f.v, a->f.n, sizeof *a->f.v, by_name);
	qsort(b->f.v, b->f.n, sizeof *b->f.v, by_name);
	for (size_t i = 0; i < a->f.n; i++) {
		if (by_name(&a->f.v[i], &b->f.v[i]) != 0)
			return false;
	}
	return true;
}

int as_layout_same_code(const char *a, const char *b, bool *ret, struct as_error *err)
{
	struct program x = {0}, y = {0};
	int r = load(a, &x, err);

	*ret = false;
	if (r == AS_OK)
		r = load(b, &y, err);
	if (r == AS_OK && same_data(&x, &y))
		*ret = same_section(&x, &y, ".text") || same_functions(&x, &y);
	clear(&x);
	clear(&y);
	return r;
}

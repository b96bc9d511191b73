/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "symbol/plt_priv.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"

/* Names may share their tails; real tables stay far below this many bytes per entry. */
#define MAX_NAME       4096u
#define MAX_NAME_BYTES (64u << 20)
#define ENTRY          16u

struct slot {
	uint64_t svma;
	uint32_t symbol;
};

struct plt {
	struct as_arena *arena;
	as_plt_fn fn;
	void *ctx;
	const uint8_t *sym, *str;
	size_t nsym, nstr;
	AS_VEC(struct slot) slots; /* sorted */
	AS_VEC(uint32_t) lazy;     /* symbols of .rela.plt in its order */
	size_t budget;
};

static void add_slots(struct plt *p, struct as_elf *e, const char *section, bool lazy)
{
	const uint8_t *r;
	size_t n;

	if (as_elf_section_data(e, section, &r, &n, NULL) < 0)
		return;
	for (; n >= sizeof(Elf64_Rela); r += sizeof(Elf64_Rela), n -= sizeof(Elf64_Rela)) {
		uint32_t type = as_get_le32(r + 8), symbol = as_get_le32(r + 12);

		if (lazy)
			as_vec_push(&p->lazy, symbol);
		if (symbol && (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT))
			as_vec_push(&p->slots, (struct slot){as_get_le64(r), symbol});
	}
}

static int by_svma(const void *pa, const void *pb)
{
	const struct slot *a = pa, *b = pb;

	return a->svma < b->svma ? -1 : a->svma > b->svma;
}

static uint32_t symbol_of_slot(const struct plt *p, uint64_t svma)
{
	const struct slot key = {svma, 0};
	const struct slot *s =
		p->slots.n ? bsearch(&key, p->slots.v, p->slots.n, sizeof key, by_svma) : NULL;

	return s ? s->symbol : 0;
}

/* The symbol an entry of n bytes leads to; 0: none. */
static uint32_t symbol_of_entry(const struct plt *p, uint64_t svma, const uint8_t *code,
				size_t n)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	size_t at = n > 4 && !memcmp(code, endbr64, 4) ? 4 : 0;

	at += at < n && code[at] == 0xf2; /* bnd jmp */
	if (n - at >= 6 && code[at] == 0xff && code[at + 1] == 0x25) {
		int32_t to = (int32_t)as_get_le32(code + at + 2);

		return symbol_of_slot(p, svma + at + 6 + (uint64_t)(int64_t)to);
	}
	if (n - at >= 5 && code[at] == 0x68) {
		uint32_t i = as_get_le32(code + at + 1);

		return i < p->lazy.n ? p->lazy.v[i] : 0;
	}
	return 0;
}

static const char *name_of_symbol(struct plt *p, uint32_t symbol, const char suffix[5])
{
	uint32_t at;
	const char *s;
	size_t n;
	char *name;

	if (!symbol || symbol >= p->nsym)
		return NULL;
	at = as_get_le32(p->sym + symbol * sizeof(Elf64_Sym));
	if (!at || at >= p->nstr)
		return NULL;
	s = (const char *)p->str + at;
	n = strnlen(s, AS_MIN(p->nstr - at, (size_t)MAX_NAME));
	if (!n || n == p->nstr - at || n == MAX_NAME || n > p->budget)
		return NULL;
	p->budget -= n;
	name = as_arena_alloc(p->arena, n + 5);
	memcpy(name, s, n);
	memcpy(name + n, suffix, 5);
	return name;
}

static void read_section(struct plt *p, struct as_elf *e, const struct as_elf_section *s)
{
	const uint8_t *code;
	size_t n, size = ENTRY;

	if (as_elf_section_data(e, s->name, &code, &n, NULL) < 0)
		return;
	/* without IBT nothing but a jump and two bytes of padding */
	if (strcmp(s->name, ".plt.got") == 0 && n && code[0] == 0xff)
		size = 8;
	for (size_t at = 0; at < n; at += size) {
		size_t len = AS_MIN(size, n - at);
		const char *name = name_of_symbol(
			p, symbol_of_entry(p, s->svma + at, code + at, len), "@plt");

		if (name)
			p->fn(p->ctx, s->svma + at, len, name);
	}
}

static bool is_plt(const struct as_elf_section *s)
{
	return s->flags & SHF_EXECINSTR && strncmp(s->name, ".plt", 4) == 0;
}

static bool has_plt(const struct as_elf_section *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (is_plt(&s[i]))
			return true;
	}
	return false;
}

static bool load_tables(struct plt *p, struct as_elf *e)
{
	size_t nbytes;

	if (as_elf_section_data(e, ".dynsym", &p->sym, &nbytes, NULL) < 0 ||
	    as_elf_section_data(e, ".dynstr", &p->str, &p->nstr, NULL) < 0)
		return false;
	p->nsym = nbytes / sizeof(Elf64_Sym);
	add_slots(p, e, ".rela.plt", true);
	add_slots(p, e, ".rela.dyn", false);
	return true;
}

void as_plt_each(struct as_elf *e, struct as_arena *arena, as_plt_fn fn, void *ctx)
{
	struct plt p = {.arena = arena, .fn = fn, .ctx = ctx, .budget = MAX_NAME_BYTES};
	const struct as_elf_section *s;
	size_t n;

	s = as_elf_sections(e, &n);
	if (as_elf_arch(e) != AS_ARCH_X86_64 || !has_plt(s, n) || !load_tables(&p, e))
		return;
	if (p.slots.n)
		qsort(p.slots.v, p.slots.n, sizeof *p.slots.v, by_svma);
	for (size_t i = 0; i < n; i++) {
		if (is_plt(&s[i]))
			read_section(&p, e, &s[i]);
	}
	as_vec_clear(&p.slots);
	as_vec_clear(&p.lazy);
}

/* Relative relocations are many; only those of the GOT itself are told. */
static void each_relative(struct as_elf *e, as_plt_slot_fn fn, void *ctx)
{
	const struct as_elf_section *got = as_elf_find_section(e, ".got");
	const uint8_t *r;
	size_t n;

	if (!got || as_elf_section_data(e, ".rela.dyn", &r, &n, NULL) < 0)
		return;
	for (; n >= sizeof(Elf64_Rela); r += sizeof(Elf64_Rela), n -= sizeof(Elf64_Rela)) {
		uint64_t svma = as_get_le64(r);

		if (as_get_le32(r + 8) == R_X86_64_RELATIVE && svma >= got->svma &&
		    svma - got->svma < got->size_bytes)
			fn(ctx, svma, NULL, as_get_le64(r + 16));
	}
}

void as_plt_each_slot(struct as_elf *e, struct as_arena *arena, as_plt_slot_fn fn, void *ctx)
{
	struct plt p = {.arena = arena, .budget = MAX_NAME_BYTES};

	if (as_elf_arch(e) != AS_ARCH_X86_64)
		return;
	if (load_tables(&p, e)) {
		as_vec_foreach (slot, &p.slots) {
			const char *name = name_of_symbol(&p, slot->symbol, "@got");

			if (name)
				fn(ctx, slot->svma, name, 0);
		}
	}
	each_relative(e, fn, ctx);
	as_vec_clear(&p.slots);
	as_vec_clear(&p.lazy);
}

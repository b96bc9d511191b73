/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Symbols: .symtab, then .dynsym, then those of the object inside .gnu_debugdata (xz, "mini
 * debug info": the .symtab entries a distribution strips). Undefined, absolute, common, TLS,
 * section and file symbols and the mapping symbols of AArch64 ($x, $d) are no code or data of
 * this module and are skipped.
 */
#include "elf/elf_priv.h"

#include <elf.h>
#include <string.h>
#include "base/buf.h"

#define MINI_MAX (256u << 20)

struct strings {
	const char *p;
	size_t n;
	/* Names may share their tails, so that a small table could hold endless text. Real ones come
	 * nowhere near this many bytes; what is beyond is not delivered. */
	uint64_t budget_bytes;
};

static bool wanted_type(unsigned type)
{
	return type == STT_NOTYPE || type == STT_OBJECT || type == STT_FUNC ||
	       type == STT_GNU_IFUNC;
}

static bool mapping_symbol(const char *s)
{
	return s[0] == '$' && s[1] && strchr("xdat", s[1]) && (!s[2] || s[2] == '.');
}

static const char *symbol_name(struct strings *str, uint32_t at)
{
	size_t n;

	if (at == 0 || at >= str->n)
		return NULL;
	n = strnlen(str->p + at, str->budget_bytes);
	if (n == str->budget_bytes)
		return NULL;
	str->budget_bytes -= n;
	return str->p + at;
}

static bool read_symbol(const uint8_t *p, struct strings *str, struct as_elf_symbol *out)
{
	unsigned info = p[4], shndx = (unsigned)p[6] | (unsigned)p[7] << 8;
	unsigned type = ELF64_ST_TYPE(info), bind = ELF64_ST_BIND(info);

	if (!wanted_type(type) || shndx == SHN_UNDEF || shndx == SHN_ABS || shndx == SHN_COMMON)
		return false;
	out->name = symbol_name(str, as_get_le32(p));
	if (!out->name || !out->name[0] || mapping_symbol(out->name))
		return false;
	out->svma = as_get_le64(p + 8);
	out->size_bytes = as_get_le64(p + 16);
	out->func = type == STT_FUNC || type == STT_GNU_IFUNC;
	out->ifunc = type == STT_GNU_IFUNC;
	out->untyped = type == STT_NOTYPE;
	out->global = bind == STB_GLOBAL || bind == STB_GNU_UNIQUE;
	out->weak = bind == STB_WEAK;
	return true;
}

static uint64_t name_budget(const struct as_elf *e)
{
	return 8 * (uint64_t)e->img.n + (1u << 20);
}

/*
 * A string table that can be read with strlen, "@VERSION" and "@@VERSION" cut. The table is
 * copied once when it has versions or no NUL at its end; cutting in the copy, not per symbol,
 * keeps the memory bounded by the file when many symbols share one long name.
 */
static int load_strings(struct as_elf *e, size_t i, struct strings *ret, struct as_error *err)
{
	struct as_elf_section_priv *v = &e->priv[i];
	const uint8_t *p;
	size_t n;
	int r = as_elf_load_section(e, i, &p, &n, err);

	if (r < 0)
		return r;
	v->pinned = true;
	if (!v->strings && n && (p[n - 1] || memchr(p, '@', n))) {
		v->strings = as_xmalloc(n + 1);
		memcpy(v->strings, p, n);
		v->strings[n] = '\0';
		for (char *at = v->strings;
		     (at = memchr(at, '@', n - (size_t)(at - v->strings)));)
			*at = '\0';
	}
	*ret = (struct strings){v->strings ? v->strings : (const char *)p, n, name_budget(e)};
	return AS_OK;
}

static void deliver(const uint8_t *p, size_t n, struct strings *str, struct as_elf_symbol s,
		    as_elf_symbol_fn fn, void *ctx)
{
	for (; n >= sizeof(Elf64_Sym); p += sizeof(Elf64_Sym), n -= sizeof(Elf64_Sym)) {
		if (read_symbol(p, str, &s))
			fn(ctx, &s);
	}
}

/* There is one table of each type; further ones are damage. */
static int each_of_table(struct as_elf *e, uint32_t type, as_elf_symbol_fn fn, void *ctx,
			 struct as_error *err)
{
	struct as_elf_symbol s = {.dynamic = type == SHT_DYNSYM, .mini = e->is_mini};

	for (size_t i = 0; i < e->nsec; i++) {
		struct strings str = {0};
		const uint8_t *p;
		size_t n;
		int r;

		if (e->sec[i].type != type || e->priv[i].link >= e->nsec)
			continue;
		r = as_elf_load_section(e, i, &p, &n, err);
		if (r == AS_OK)
			r = load_strings(e, e->priv[i].link, &str, err);
		if (r == AS_OK)
			deliver(p, n, &str, s, fn, ctx);
		return r;
	}
	return AS_OK;
}

/*
 * .dynsym of an object without section headers, through PT_DYNAMIC. Nothing states its length but
 * the hash tables; linkers put the strings right after it, so that their start bounds it.
 */
static void each_dynamic(struct as_elf *e, as_elf_symbol_fn fn, void *ctx)
{
	uint64_t symtab = 0, strtab = 0, strsz = 0, n;
	struct strings str;
	const uint8_t *p, *names;
	struct as_rd r;

	if (e->nsec || !as_elf_in_file(e, e->dyn_off, e->dyn_size))
		return;
	r = AS_RD(e->img.p + e->dyn_off, e->dyn_size);
	while (as_rd_left(&r) >= sizeof(Elf64_Dyn)) {
		uint64_t tag = as_rd_u64(&r), val = as_rd_u64(&r);

		if (tag == DT_NULL)
			break;
		if (tag == DT_SYMTAB)
			symtab = val;
		else if (tag == DT_STRTAB)
			strtab = val;
		else if (tag == DT_STRSZ)
			strsz = val;
	}
	n = strtab > symtab ? strtab - symtab : 0;
	p = as_elf_at(e, symtab, n);
	names = as_elf_at(e, strtab, strsz);
	if (!p || !names || !strsz || names[strsz - 1])
		return;
	str = (struct strings){(const char *)names, strsz, name_budget(e)};
	deliver(p, n, &str, (struct as_elf_symbol){.dynamic = true}, fn, ctx);
}

struct as_elf *as_elf_mini(struct as_elf *e)
{
	const uint8_t *p;
	uint8_t *out;
	size_t n, nout;

	if (e->mini_tried || e->is_mini)
		return e->mini;
	e->mini_tried = true;
	if (as_elf_section_data(e, ".gnu_debugdata", &p, &n, NULL) < 0)
		return NULL;
	if (as_elf_unxz(p, n, AS_MIN((size_t)MINI_MAX, n * 1100 + (1u << 20)), &out, &nout) < 0)
		return NULL;
	if (as_elf_open_owned(out, nout, e->name, &e->mini, NULL) < 0)
		e->mini = NULL;
	else
		e->mini->is_mini = true;
	return e->mini;
}

int as_elf_each_symbol(struct as_elf *e, as_elf_symbol_fn fn, void *ctx, struct as_error *err)
{
	static const uint32_t tables[] = {SHT_SYMTAB, SHT_DYNSYM};
	struct as_elf *mini;
	int ret = AS_OK;

	for (size_t i = 0; i < AS_ARRAY_LEN(tables); i++) {
		/* NOTFOUND: the contents were stripped (a debug file's .dynsym) */
		int r = each_of_table(e, tables[i], fn, ctx, ret < 0 ? NULL : err);

		if (r < 0 && r != AS_E_NOTFOUND && ret == AS_OK)
			ret = r;
	}
	each_dynamic(e, fn, ctx);
	mini = as_elf_mini(e);
	if (mini && each_of_table(mini, SHT_SYMTAB, fn, ctx, NULL) < 0)
		mini = NULL; /* damaged inside: what was read stands */
	return ret;
}

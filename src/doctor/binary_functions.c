/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where the functions of a file are, and whose. */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/binary_priv.h"
#include "symbol/demangle.h"
#include "symbol/ranges.h"

#define MAX_FUNCTIONS 1000000u
#define MIN_FUNCTION  24u /* bytes; shorter ones say nothing */

int as_binary_open(const char *path, struct as_binary *ret, struct as_error *err)
{
	memset(ret, 0, sizeof *ret);
	return as_elf_open(path, &ret->elf, err);
}

void as_binary_close(struct as_binary *b)
{
	as_symmod_close(b->symbols);
	as_elf_close(b->elf);
	free(b->code);
	free(b->fde);
	as_vec_clear(&b->function);
	as_arena_clear(&b->names);
	memset(b, 0, sizeof *b);
}

/* ---- code ---- */

static bool is_code(const struct as_elf_section *s)
{
	return (s->flags & SHF_EXECINSTR) && (s->flags & SHF_ALLOC) && !s->nobits &&
	       s->size_bytes && strncmp(s->name, ".plt", 4) != 0 &&
	       strcmp(s->name, ".init") != 0 && strcmp(s->name, ".fini") != 0;
}

static int by_svma(const void *x, const void *y)
{
	const struct as_code_range *a = x, *b = y;

	return a->svma < b->svma ? -1 : a->svma > b->svma;
}

void as_binary_code(struct as_binary *b)
{
	size_t nsec, nseg;
	const struct as_elf_section *sec = as_elf_sections(b->elf, &nsec);
	const struct as_elf_segment *seg = as_elf_segments(b->elf, &nseg);
	struct as_code_range *r = as_xcalloc(nsec + nseg + 1, sizeof *r);
	size_t n = 0;

	for (size_t i = 0; i < nsec; i++) {
		const uint8_t *p = is_code(&sec[i])
					   ? as_elf_at(b->elf, sec[i].svma, sec[i].size_bytes)
					   : NULL;

		if (p)
			r[n++] = (struct as_code_range){sec[i].svma, {p, sec[i].size_bytes}, 0};
	}
	for (size_t i = 0; !nsec && i < nseg; i++) {
		const uint8_t *p = seg[i].exec && seg[i].filesz
					   ? as_elf_at(b->elf, seg[i].svma, seg[i].filesz)
					   : NULL;

		if (p)
			r[n++] = (struct as_code_range){seg[i].svma, {p, seg[i].filesz}, 0};
	}
	if (n)
		qsort(r, n, sizeof *r, by_svma);
	b->code = r;
	b->ncode = n;
}

/* Bytes of code from svma to the end of its section; NULL when there is no code. */
static const uint8_t *code_at(const struct as_binary *b, uint64_t svma, uint64_t *ret_left)
{
	for (size_t i = 0; i < b->ncode; i++) {
		const struct as_code_range *c = &b->code[i];

		if (svma >= c->svma && svma - c->svma < c->code.n) {
			*ret_left = c->code.n - (svma - c->svma);
			return c->code.p + (svma - c->svma);
		}
	}
	return NULL;
}

size_t as_binary_eh_frame_bytes(const struct as_binary *b)
{
	const struct as_elf_section *s = as_elf_find_section(b->elf, ".eh_frame");

	return s ? (size_t)s->size_bytes : SIZE_MAX;
}

void as_binary_fdes(struct as_binary *b)
{
	struct as_cfi_input in = {.arch = as_elf_arch(b->elf)};
	const struct as_elf_section *s = as_elf_find_section(b->elf, ".eh_frame");

	if (s && !s->nobits &&
	    as_elf_section_data(b->elf, ".eh_frame", &in.eh_frame.p, &in.eh_frame.n, NULL) >= 0)
		in.eh_frame_svma = s->svma;
	else
		in.eh_frame = (struct as_bytes){0};
	if (!in.eh_frame.n) {
		in.eh_frame.p = as_elf_eh_frame(b->elf, &in.eh_frame_svma, &in.eh_frame.n);
		in.eh_frame_terminated_by_zero = true;
		if (!in.eh_frame.p)
			in.eh_frame.n = 0;
	}
	if (as_elf_section_data(b->elf, ".debug_frame", &in.debug_frame.p, &in.debug_frame.n,
				NULL) < 0)
		in.debug_frame = (struct as_bytes){0};
	in.code = b->code;
	in.ncode = b->ncode;
	in.entry_svma = as_elf_entry(b->elf);
	if (as_cfi_extents(&in, &b->fde, &b->nfde, NULL) < 0) {
		b->fde = NULL;
		b->nfde = 0;
	}
}

/* ---- functions ---- */

static void add(struct as_binary *b, uint64_t svma, uint64_t size, const char *name)
{
	uint64_t left;

	if (size < MIN_FUNCTION || b->function.n >= MAX_FUNCTIONS || !code_at(b, svma, &left))
		return;
	as_vec_push(&b->function,
		    (struct as_function){svma, AS_MIN(size, left),
					 name ? as_arena_strdup(&b->names, name) : NULL});
}

static void on_symbol(void *ctx, const struct as_elf_symbol *s)
{
	if (s->func)
		add(ctx, s->svma, s->size_bytes, s->name);
}

static int function_by_svma(const void *x, const void *y)
{
	const struct as_function *a = x, *b = y;

	return a->svma < b->svma ? -1 : a->svma > b->svma;
}

/* Aliases once, overlaps cut. */
static void settle(struct as_binary *b)
{
	size_t n = 0;

	if (b->function.n)
		qsort(b->function.v, b->function.n, sizeof *b->function.v, function_by_svma);
	as_vec_foreach (f, &b->function) {
		struct as_function *last = n ? &b->function.v[n - 1] : NULL;

		if (last && last->svma == f->svma) {
			last->size_bytes = AS_MAX(last->size_bytes, f->size_bytes);
			continue;
		}
		if (last && last->svma + last->size_bytes > f->svma)
			last->size_bytes = f->svma - last->svma;
		b->function.v[n++] = *f;
	}
	b->function.n = n;
}

static void from_fdes(struct as_binary *b)
{
	struct as_symname s;

	b->function.n = 0;
	for (size_t i = 0; i < b->nfde; i++) {
		uint64_t at = b->fde[i].start_svma;
		bool named = b->symbols && as_symmod_name(b->symbols, at, &s) && !s.synthetic;

		add(b, at, b->fde[i].end_svma - at, named ? s.linkage : NULL);
	}
	settle(b);
}

void as_binary_functions(struct as_binary *b)
{
	/* a damaged table gives what it has */
	(void)as_elf_each_symbol(b->elf, on_symbol, b, NULL);
	settle(b);
	if (b->function.n < b->nfde / 4)
		from_fdes(b);
}

/* ---- a few functions of a table of any size ---- */

static size_t greatest_divisor(size_t a, size_t b)
{
	while (b) {
		size_t t = a % b;

		a = b;
		b = t;
	}
	return a;
}

static void from_table(struct as_binary *b, const char *table, const char *strings, size_t max)
{
	const uint8_t *p, *str;
	size_t n, nstr, step, at = 0;

	if (as_elf_section_data(b->elf, table, &p, &n, NULL) < 0 ||
	    as_elf_section_data(b->elf, strings, &str, &nstr, NULL) < 0)
		return;
	n /= sizeof(Elf64_Sym);
	/* A step without a common factor with n visits all over the table, each entry once. */
	step = (size_t)((double)n * 0.381966) | 1;
	while (n && greatest_divisor(step, n) != 1)
		step += 2;
	for (size_t i = 0; i < AS_MIN(n, max); i++, at = (at + step) % n) {
		Elf64_Sym s;

		memcpy(&s, p + at * sizeof s, sizeof s);
		if (ELF64_ST_TYPE(s.st_info) == STT_FUNC && s.st_shndx != SHN_UNDEF &&
		    s.st_name < nstr && memchr(str + s.st_name, 0, nstr - s.st_name))
			add(b, s.st_value, s.st_size, (const char *)str + s.st_name);
	}
}

void as_binary_some_functions(struct as_binary *b, size_t max)
{
	from_table(b, ".symtab", ".strtab", max);
	if (!b->function.n)
		from_table(b, ".dynsym", ".dynstr", max);
	settle(b);
}

/* ---- whose ---- */

static bool in_list(const char *const *list, const char *s)
{
	for (; *list; list++) {
		if (strcmp(*list, s) == 0)
			return true;
	}
	return false;
}

/* What the tool chain links into every program: start files, Rust's entries without a path, division. */
static bool of_tool_chain(const char *s)
{
	static const char *const names[] = {"_start",
					    "_init",
					    "_fini",
					    "frame_dummy",
					    "deregister_tm_clones",
					    "register_tm_clones",
					    "__libc_csu_init",
					    "__libc_csu_fini",
					    "__do_global_dtors_aux",
					    "_dl_relocate_static_pie",
					    "rust_begin_unwind",
					    "rust_eh_personality",
					    "rust_oom",
					    "rust_panic",
					    NULL};
	static const char *const begin[] = {"_Unwind_", "__rust",  "__rdl_",
					    "__rg_",    "__rdos_", NULL};
	size_t n = strlen(s);

	for (const char *const *b = begin; *b; b++) {
		if (strncmp(s, *b, strlen(*b)) == 0)
			return true;
	}
	return in_list(names, s) ||
	       (strncmp(s, "__", 2) == 0 && n > 5 && strcmp(s + n - 3, "ti3") == 0);
}

/*
 * The crate of a Rust name without demangling it: the first component of a legacy path, or the first
 * crate root of a v0 one. False: that does not tell (an impl of the legacy scheme).
 */
static bool crate_of(const char *linkage, const char **ret, size_t *ret_n)
{
	const char *s = linkage + 3, *end;
	size_t n = 0;

	if (strncmp(linkage, "_R", 2) == 0) {
		s = strstr(linkage, "Cs");
		s = s ? strchr(s, '_') : NULL;
		if (!s++)
			return false;
	} else if (strncmp(linkage, "_ZN", 3) != 0) {
		return false;
	}
	for (; *s >= '0' && *s <= '9' && n < 1000; s++)
		n = n * 10 + (size_t)(*s - '0');
	s += linkage[1] == 'R' && *s == '_';
	end = memchr(s, 0, n);
	if (!n || end || *s == '_')
		return false;
	*ret = s;
	*ret_n = n;
	return true;
}

/* A legacy path ends with its hash, 17h and 16 digits; behind it .llvm.123, .cold. */
static bool has_legacy_hash(const char *linkage)
{
	for (const char *s = strstr(linkage, "17h"); s; s = strstr(s + 3, "17h")) {
		if (strspn(s + 3, "0123456789abcdef") == 16 && s[19] == 'E' &&
		    (!s[20] || s[20] == '.'))
			return true;
	}
	return false;
}

static bool is_rust_name(const char *linkage)
{
	return strncmp(linkage, "_R", 2) == 0 ||
	       (strncmp(linkage, "_ZN", 3) == 0 && has_legacy_hash(linkage));
}

bool as_binary_is_own(const char *linkage)
{
	static const char *const theirs[] = {
		"core",           "std",         "alloc",
		"hashbrown",      "addr2line",   "gimli",
		"object",         "miniz_oxide", "adler",
		"adler2",         "libc",        "panic_unwind",
		"panic_abort",    "unwind",      "std_detect",
		"rustc_demangle", "memchr",      "compiler_builtins",
		"__rustc",        NULL};
	AS_CLEANUP(as_buf_clear) struct as_buf full = {0}, crate = {0};
	const char *s;
	bool cold;
	size_t n;

	if (!linkage)
		return true;
	if (of_tool_chain(linkage))
		return false;
	if (!is_rust_name(linkage))
		return true;
	if (crate_of(linkage, &s, &n)) {
		as_buf_add(&crate, s, n);
	} else {
		enum as_lang lang = as_demangle(linkage, &full, &cold);

		as_name_crate(as_buf_str(&full), lang, &crate);
	}
	return !in_list(theirs, as_buf_str(&crate));
}

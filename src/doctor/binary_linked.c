/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is linked in and by whom: .comment, notes, the dynamic section, strings of the program. */
#include <ctype.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "doctor/binary_priv.h"

#define MAX_COMMENT (1u << 20)
#define MAX_DYNAMIC 4096u
#define MAX_STRINGS (512u << 20)

static bool section(struct as_binary *b, const char *name, const uint8_t **p, size_t *n)
{
	return as_elf_section_data(b->elf, name, p, n, NULL) >= 0 && *n;
}

static void set_once(char **to, const char *s, size_t n)
{
	if (!*to && n)
		*to = as_xstrndup(s, n);
}

/* ---- .comment ---- */

static void take_comment(struct as_binary_facts *f, const char *s)
{
	const char *lld = "Linker: ", *rust = "rustc version ";
	const char *clang = strstr(s, "clang version ");
	size_t n = strnlen(s, 200);

	if (strncmp(s, rust, strlen(rust)) == 0) {
		set_once(&f->rustc, s + strlen(rust), n - strlen(rust));
		f->rust = true;
	} else if (strncmp(s, lld, strlen(lld)) == 0) {
		n = strcspn(s + strlen(lld), "(");
		while (n && s[strlen(lld) + n - 1] == ' ')
			n--;
		set_once(&f->linker, s + strlen(lld), n);
	} else if (strncmp(s, "mold ", 5) == 0 || strncmp(s, "Wild ", 5) == 0) {
		set_once(&f->linker, s, strcspn(s, "("));
	} else if (strncmp(s, "GCC: ", 5) == 0) {
		const char *close = strstr(s, ") ");

		s = close ? close + 2 : s + 5;
		set_once(&f->gcc, s, strnlen(s, 40));
	} else if (clang) {
		clang += strlen("clang version ");
		set_once(&f->clang, clang, strcspn(clang, " ("));
	}
}

static void comments(struct as_binary *b, struct as_binary_facts *f)
{
	const uint8_t *p;
	size_t n;

	if (!section(b, ".comment", &p, &n))
		return;

	struct as_rd r = AS_RD(p, AS_MIN(n, (size_t)MAX_COMMENT));

	while (as_rd_left(&r) && !r.bad) {
		const char *s = as_rd_cstr(&r);

		if (*s)
			take_comment(f, s);
	}
}

/* ---- the dynamic section ---- */

struct dynamic {
	uint64_t strtab, strsz, flags_1;
	uint64_t needed[AS_BINARY_MAX_NEEDED];
	size_t nneeded;
	bool any, soname;
};

static void read_dynamic(const uint8_t *p, size_t n, struct dynamic *d)
{
	struct as_rd r = AS_RD(p, n);

	for (unsigned i = 0; i < MAX_DYNAMIC && as_rd_left(&r) >= 16; i++) {
		uint64_t tag = as_rd_u64(&r), val = as_rd_u64(&r);

		if (tag == DT_NULL)
			return;
		d->any = true;
		if (tag == DT_NEEDED && d->nneeded < AS_BINARY_MAX_NEEDED)
			d->needed[d->nneeded++] = val;
		else if (tag == DT_STRTAB)
			d->strtab = val;
		else if (tag == DT_STRSZ)
			d->strsz = val;
		else if (tag == DT_FLAGS_1)
			d->flags_1 = val;
		else if (tag == DT_SONAME)
			d->soname = true;
	}
}

/* "" when there is no PT_INTERP. */
static void read_program_headers(struct as_binary *b, struct dynamic *d, char *interp, size_t n)
{
	const uint8_t *ph;
	size_t nseg;
	const struct as_elf_segment *seg = as_elf_segments(b->elf, &nseg);
	Elf64_Ehdr eh;

	*interp = 0;
	if (!nseg || seg[0].off != 0)
		return;
	ph = as_elf_at(b->elf, seg[0].svma, sizeof eh);
	if (!ph)
		return;
	memcpy(&eh, ph, sizeof eh);
	for (unsigned i = 0; i < eh.e_phnum; i++) {
		const uint8_t *at =
			as_elf_at(b->elf, seg[0].svma + eh.e_phoff + i * sizeof(Elf64_Phdr),
				  sizeof(Elf64_Phdr));
		const uint8_t *p;
		Elf64_Phdr x;

		if (!at)
			return;
		memcpy(&x, at, sizeof x);
		if (x.p_type != PT_INTERP && x.p_type != PT_DYNAMIC)
			continue;
		p = as_elf_at(b->elf, x.p_vaddr, x.p_filesz);
		if (p && x.p_type == PT_DYNAMIC)
			read_dynamic(p, x.p_filesz, d);
		else if (p)
			snprintf(interp, n, "%.*s", (int)AS_MIN(x.p_filesz, n - 1), p);
	}
}

static void dynamic(struct as_binary *b, struct as_binary_facts *f)
{
	struct dynamic d = {0};
	char interp[256];
	const uint8_t *str;

	read_program_headers(b, &d, interp, sizeof interp);
	str = d.strsz ? as_elf_at(b->elf, d.strtab, d.strsz) : NULL;
	for (size_t i = 0; str && i < d.nneeded; i++) {
		if (d.needed[i] < d.strsz &&
		    memchr(str + d.needed[i], 0, d.strsz - d.needed[i]))
			f->needed[f->nneeded++] = as_xstrdup((const char *)str + d.needed[i]);
	}
	f->pie = !as_elf_is_exec(b->elf) && (*interp || (d.flags_1 & DF_1_PIE));
	f->library = !as_elf_is_exec(b->elf) && !*interp && !(d.flags_1 & DF_1_PIE);
	f->is_static = !*interp && !f->nneeded && !f->library;
	if (strstr(interp, "ld-musl"))
		f->libc = AS_LIBC_MUSL;
	else if (strstr(interp, "ld-linux"))
		f->libc = AS_LIBC_GLIBC;
	for (size_t i = 0; f->libc == AS_LIBC_NONE && i < f->nneeded; i++) {
		if (strncmp(f->needed[i], "libc.so.6", 9) == 0)
			f->libc = AS_LIBC_GLIBC;
		else if (strncmp(f->needed[i], "libc.musl", 9) == 0)
			f->libc = AS_LIBC_MUSL;
	}
}

/* ---- strings ---- */

static const char *find(const uint8_t *p, size_t n, const char *s)
{
	return memmem(p, n, s, strlen(s));
}

/* Where crates lie when they are compiled: …/tokio-1.38.0/src/runtime/… */
static void find_runtimes(struct as_binary_facts *f, const uint8_t *p, size_t n)
{
	static const char *const names[] = {"tokio",  "async-std", "smol",  "async-executor",
					    "monoio", "glommio",   "compio"};

	for (size_t i = 0; i < AS_ARRAY_LEN(names) && f->nruntimes < AS_ARRAY_LEN(f->runtime);
	     i++) {
		char key[40];
		const char *s = (const char *)p, *end = (const char *)p + n;
		size_t len = (size_t)snprintf(key, sizeof key, "/%s-", names[i]);

		while ((s = memmem(s, (size_t)(end - s), key, len))) {
			struct as_runtime *r = &f->runtime[f->nruntimes];
			size_t k = 0;

			s += len;
			while (s + k < end && k + 1 < sizeof r->version &&
			       (isalnum((unsigned char)s[k]) || strchr(".+-", s[k])) && s[k])
				k++;
			if (s == end || !isdigit((unsigned char)*s) || s + k >= end ||
			    s[k] != '/')
				continue;
			r->name = names[i];
			snprintf(r->version, sizeof r->version, "%.*s", (int)k, s);
			f->nruntimes++;
			break;
		}
	}
}

/* "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/…": std's paths in its panics. */
static bool has_std_paths(const uint8_t *p, size_t n)
{
	static const char key[] = "/rustc/";
	const uint8_t *end = p + n;

	while ((p = memmem(p, (size_t)(end - p), key, sizeof key - 1))) {
		size_t k = 0;

		p += sizeof key - 1;
		while (p + k < end && k < 40 && isxdigit(p[k]))
			k++;
		if (k == 40)
			return true;
	}
	return false;
}

/* In two parts, so that this program does not have the texts itself. */
static bool has_text(const uint8_t *p, size_t n, const char *head, const char *tail)
{
	const uint8_t *end = p + n;
	size_t h = strlen(head), t = strlen(tail);

	while ((p = memmem(p, (size_t)(end - p), head, h))) {
		p += h;
		if ((size_t)(end - p) >= t && memcmp(p, tail, t) == 0)
			return true;
	}
	return false;
}

static void find_strings(struct as_binary_facts *f, const uint8_t *p, size_t n)
{
	static const struct {
		const char *head, *tail, *name;
	} allocators[] = {
		{"<jemal", "loc>: ", "jemalloc"},
		{"mimal", "loc: ", "mimalloc"},
		{"tcmal", "loc: ", "tcmalloc"},
	};

	for (size_t i = 0; !f->allocator && i < AS_ARRAY_LEN(allocators); i++) {
		if (has_text(p, n, allocators[i].head, allocators[i].tail))
			f->allocator = allocators[i].name;
	}
	/* of Rust's core and std */
	f->debug_assertions |= has_text(p, n, "unsafe precon", "dition(s) violated");
	f->overflow_checks |= has_text(p, n, "attempt to ", "add with overflow") ||
			      has_text(p, n, "attempt to ", "multiply with overflow");
	/* distributions have std elsewhere than below /rustc/HASH */
	f->rust |= has_std_paths(p, n) || has_text(p, n, "library/st", "d/src/");
	if (f->is_static && f->libc == AS_LIBC_NONE) {
		if (find(p, n, "GNU C Library") || find(p, n, "glibc: "))
			f->libc = AS_LIBC_GLIBC;
		else if (find(p, n, "No error information") || /* of errno 0, of %a */
			 find(p, n, "-0X+0X 0X-0x+0x 0x"))
			f->libc = AS_LIBC_MUSL;
	}
	find_runtimes(f, p, n);
}

static void strings(struct as_binary *b, struct as_binary_facts *f)
{
	size_t n;
	const struct as_elf_section *s = as_elf_sections(b->elf, &n);
	size_t budget = MAX_STRINGS;
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = (s[i].flags & SHF_ALLOC) && !s[i].nobits &&
						   strncmp(s[i].name, ".rodata", 7) == 0
					   ? as_elf_at(b->elf, s[i].svma, s[i].size_bytes)
					   : NULL;

		if (!p || s[i].size_bytes > budget)
			continue;
		budget -= s[i].size_bytes;
		any = true;
		find_strings(f, p, s[i].size_bytes);
	}
	if (any)
		return;

	const struct as_elf_segment *seg = as_elf_segments(b->elf, &n);

	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = as_elf_at(b->elf, seg[i].svma, seg[i].filesz);

		if (p && seg[i].filesz <= budget)
			find_strings(f, p, seg[i].filesz);
	}
}

/* ---- symbols ---- */

/* Paths may be remapped out of the texts; names of functions stay. */
static void runtime_by_name(struct as_binary_facts *f, const char *symbol)
{
	static const struct {
		const char *part, *name;
	} runtimes[] = {{"5tokio7runtime", "tokio"}, {"9async_std4task", "async-std"}};

	for (size_t i = 0; !f->nruntimes && i < AS_ARRAY_LEN(runtimes); i++) {
		if (strstr(symbol, runtimes[i].part))
			f->runtime[f->nruntimes++].name = runtimes[i].name;
	}
}

static void on_symbol(void *ctx, const struct as_elf_symbol *s)
{
	static const struct {
		const char *symbol, *name;
	} allocators[] = {
		{"je_malloc", "jemalloc"},     {"_rjem_malloc", "jemalloc"},
		{"mi_malloc", "mimalloc"},     {"tc_malloc", "tcmalloc"},
		{"sn_rust_alloc", "snmalloc"}, {"_rjem_mallocx", "jemalloc"},
		{"rpmalloc", "rpmalloc"},
	};
	struct as_binary_facts *f = ctx;
	size_t n = strlen(s->name);

	if (!s->func)
		return;
	if (f->is_static && f->libc == AS_LIBC_NONE) {
		if (strcmp(s->name, "__libc_setup_tls") == 0)
			f->libc = AS_LIBC_GLIBC;
		else if (strcmp(s->name, "__init_libc") == 0)
			f->libc = AS_LIBC_MUSL;
	}
	f->symtab |= !s->dynamic && !s->mini;
	f->own_symtab |= !s->dynamic && !s->mini;
	for (size_t i = 0; !f->allocator && i < AS_ARRAY_LEN(allocators); i++) {
		if (strcmp(s->name, allocators[i].symbol) == 0)
			f->allocator = allocators[i].name;
	}
	if (s->name[0] != '_')
		return;
	if (!f->nruntimes)
		runtime_by_name(f, s->name);
	if (s->name[1] == 'R')
		f->names_v0++;
	else if (strncmp(s->name, "_ZN", 3) == 0 && n > 20 &&
		 strncmp(s->name + n - 20, "17h", 3) == 0 && s->name[n - 1] == 'E')
		f->names_legacy++;
	else if (s->name[1] == 'Z')
		f->names_cxx++;
}

static void allocator_of_libraries(struct as_binary_facts *f)
{
	static const char *const names[] = {"jemalloc", "mimalloc", "tcmalloc", "snmalloc"};

	for (size_t i = 0; i < f->nneeded; i++) {
		for (size_t k = 0; !f->allocator && k < AS_ARRAY_LEN(names); k++) {
			if (strstr(f->needed[i], names[k]))
				f->allocator = names[k];
		}
	}
}

void as_binary_linked(struct as_binary *b, struct as_binary_facts *f)
{
	f->build_id = *as_elf_build_id(b->elf);
	f->go = as_elf_find_section(b->elf, ".note.go.buildid") != NULL;
	f->debuglink = as_elf_find_section(b->elf, ".gnu_debuglink") != NULL;
	comments(b, f);
	dynamic(b, f);
	strings(b, f);
	/* a damaged table gives what it has */
	(void)as_elf_each_symbol(b->elf, on_symbol, f, NULL);
	f->rust |= f->names_v0 || f->names_legacy;
	if (!f->rust)
		f->nruntimes = 0;
	allocator_of_libraries(f);
	if (!f->linker && as_elf_find_section(b->elf, ".note.gnu.gold-version"))
		f->linker = as_xstrdup("GNU gold");
}

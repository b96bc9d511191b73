/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the debug information of a binary tells, and what the compilers wrote into it. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/sys.h"
#include "doctor/binary_priv.h"
#include "symbol/units.h"

#define LANG_MIPS_ASSEMBLER 0x8001
#define LANG_ASSEMBLY       0x31 /* DWARF 6 */
#define LANG_RUST           0x1c
#define OBJECTS_MAX         4096u

/* Where the units of one object file of std and of the program are found: link-time optimisation
 * makes them one. */
struct digest {
	struct as_binary_facts *f;
	size_t lines, full, judged, std_with_lines;
	size_t version[8];
	AS_VEC(uint64_t) own_objects;
	AS_VEC(uint64_t) std_objects;
};

static bool starts(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

/* A folder rustc-1.63.0: where a distribution builds std (Debian below /usr/src, Fedora, Arch). */
static bool in_rustc_source(const char *path)
{
	const char *s = strstr(path, "/rustc-");

	return s && s[7] >= '0' && s[7] <= '9';
}

static bool is_precompiled(const struct as_unit *u)
{
	return in_rustc_source(u->comp_dir) || in_rustc_source(u->name) ||
	       starts(u->name, "library/") || starts(u->name, "/rustc/") ||
	       starts(u->comp_dir, "/rustc/") || strstr(u->name, "/rustc/") ||
	       starts(u->comp_dir, "/cargo/registry/") || starts(u->name, "/cargo/registry/") ||
	       starts(u->comp_dir, "/rust/deps/") || starts(u->name, "/rust/deps/");
}

static bool is_c_start_file(const struct as_unit *u)
{
	return u->lang == LANG_MIPS_ASSEMBLER || u->lang == LANG_ASSEMBLY ||
	       strstr(u->comp_dir, "/csu") || strstr(u->comp_dir, "glibc") ||
	       strstr(u->comp_dir, "libgcc");
}

/* "GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O2 …": the options that matter. */
static void gcc_flags(struct as_binary_facts *f, const char *producer)
{
	struct as_buf b = {0};

	if (f->flags || !starts(producer, "GNU "))
		return;
	for (const char *s = producer; (s = strchr(s, ' '));) {
		size_t n = strcspn(++s, " ");

		if (n > 1 && s[0] == '-' &&
		    (s[1] == 'O' || starts(s, "-march=") || starts(s, "-flto") ||
		     starts(s, "-fno-omit-frame-pointer")))
			as_buf_addf(&b, "%s%.*s", b.len ? " " : "", (int)n, s);
	}
	f->flags = as_buf_detach(&b);
	if (strstr(f->flags, "-flto"))
		f->lto = f->lto_known = true;
}

static void take_producer(struct as_binary_facts *f, const struct as_unit *u)
{
	const char *rust = strstr(u->producer, "rustc version "), *clang;

	if (rust) {
		rust += strlen("rustc version ");
		f->rust = true;
		if (!f->rustc) {
			size_t n = strcspn(rust, ")");

			f->rustc = as_xstrndup(rust, n + (rust[n] == ')' && strchr(rust, '(')));
		}
		return;
	}
	clang = strstr(u->producer, "clang version ");
	if (clang && !f->clang) {
		clang += strlen("clang version ");
		f->clang = as_xstrndup(clang, strcspn(clang, " ("));
	}
	if (starts(u->producer, "GNU GIMPLE"))
		f->lto = f->lto_known = true;
	gcc_flags(f, u->producer);
}

/* "src/main.rs/@/app.92a842c621288330-cgu.3" */
static void codegen_unit(struct as_binary_facts *f, const struct as_unit *u)
{
	const char *s = strstr(u->name, "-cgu.");
	uint64_t n;

	if (s && as_parse_u64(s + 5, &n) && n < 4096)
		f->codegen_units = AS_MAX(f->codegen_units, (unsigned)n + 1);
}

static void on_unit(void *ctx, const struct as_unit *u)
{
	struct digest *d = ctx;
	struct as_binary_facts *f = d->f;

	f->units++;
	if (u->split_name)
		f->split_units++;
	if (u->split_missing && !f->split_missing++)
		f->split_example = as_xstrdup(u->split_name);
	if (is_precompiled(u)) {
		d->std_with_lines += u->detail >= AS_UNIT_LINES;
		if (d->std_objects.n < OBJECTS_MAX)
			as_vec_push(&d->std_objects, u->abbrev_off);
		return;
	}
	if (is_c_start_file(u) || u->detail == AS_UNIT_BARE)
		return;
	f->own_units++;
	d->version[u->version & 7]++;
	d->judged += u->judged;
	d->lines++;
	d->full += u->detail == AS_UNIT_FULL;
	take_producer(f, u);
	if (u->lang == LANG_RUST) {
		codegen_unit(f, u);
		if (d->own_objects.n < OBJECTS_MAX)
			as_vec_push(&d->own_objects, u->abbrev_off);
	}
}

static bool share_an_object(const struct digest *d)
{
	as_vec_foreach (a, &d->own_objects) {
		as_vec_foreach (b, &d->std_objects) {
			if (*a == *b)
				return true;
		}
	}
	return false;
}

static void conclude(struct digest *d)
{
	struct as_binary_facts *f = d->f;
	unsigned best = 0;

	for (unsigned v = 1; v < AS_ARRAY_LEN(d->version); v++) {
		if (d->version[v] > d->version[best])
			best = v;
	}
	f->dwarf_version = d->version[best] ? best : 0;
	/* A unit of nothing but functions without parameters is full or not: most decide. */
	if (d->lines)
		f->debug = d->full * 4 >= d->judged && d->full ? AS_DEBUG_FULL : AS_DEBUG_LINES;
	f->debug_std_only = !d->lines && d->std_with_lines;
	if (d->own_objects.n && d->std_objects.n) {
		f->lto_known = true;
		f->lto |= share_an_object(d);
	}
	as_vec_clear(&d->own_objects);
	as_vec_clear(&d->std_objects);
}

static void on_name(void *ctx, const struct as_elf_symbol *s)
{
	if (s->func && !s->dynamic && !s->mini)
		*(bool *)ctx = true;
}

static void names_elsewhere(struct as_binary_facts *f)
{
	struct as_elf *e;

	if (f->symtab || !f->debug_file || as_elf_open(f->debug_file, &e, NULL) < 0)
		return;
	(void)as_elf_each_symbol(e, on_name, &f->symtab, NULL); /* what is readable counts */
	as_elf_close(e);
}

/* ---- how many of the program's functions have it ---- */

struct covered {
	size_t asked, have;
};

static void on_chain(void *ctx, size_t index, uint64_t svma, const struct as_symchain *chain)
{
	struct covered *c = ctx;

	(void)index;
	(void)svma;
	c->asked++;
	c->have += chain->source == AS_SYM_DWARF;
}

void as_binary_debug_share(struct as_binary *b, struct as_binary_facts *f)
{
	enum { ASKED = 64 };
	size_t step = AS_MAX(b->function.n / 1000, (size_t)1), n = 0, nask;
	uint64_t own[1001], ask[ASKED];
	struct covered c = {0};

	f->debug_share = -1;
	if (!b->symbols || f->debug == AS_DEBUG_NONE)
		return;
	for (size_t i = 0; i < b->function.n && n < AS_ARRAY_LEN(own); i += step) {
		const char *name = b->function.v[i].name;

		/* rustc makes main of a Rust program, and gives it no lines */
		if (name && as_binary_is_own(name) && !(f->rust && strcmp(name, "main") == 0))
			own[n++] = b->function.v[i].svma;
	}
	if (!n)
		return;
	nask = AS_MIN(n, (size_t)ASKED);
	for (size_t i = 0; i < nask; i++)
		ask[i] = own[i * n / nask];
	as_symmod_resolve(b->symbols, ask, nask, on_chain, &c);
	f->debug_share = c.asked ? (double)c.have / (double)c.asked : -1;
	/* only start files or a library that was compiled elsewhere */
	if (c.asked && c.have * 50 < c.asked) {
		f->debug = AS_DEBUG_NONE;
		f->debug_std_only = true;
	}
}

void as_binary_debug(struct as_binary *b, struct as_binary_facts *f)
{
	struct digest d = {.f = f};
	const char *file;

	if (!b->symbols)
		return;
	as_symmod_units(b->symbols, on_unit, &d);
	file = as_symmod_debug_file(b->symbols);
	if (file)
		f->debug_file = as_xstrdup(file);
	conclude(&d);
	names_elsewhere(f);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Chains and lines of binaries made by real compilers, the disk index, and damaged input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include "fixture.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sys.h"
#include "symbol/symbol.h"
#include "symbol/symmod_priv.h"
#include "unwind/table.h"

/* leaf_mark is an address inside leaf, inlined into mid (line 9), inlined into outer (line 13). */
static const char c_source[] =
	"static volatile int sink;\n"
	"static inline __attribute__((always_inline)) int leaf(int x)\n"
	"{\n"
	"	__asm__ volatile(\".globl leaf_mark\\nleaf_mark:\\n\\tnop\\n\\tnop\");\n"
	"	return x + sink;\n"
	"}\n"
	"static inline __attribute__((always_inline)) int mid(int x)\n"
	"{\n"
	"	return leaf(x * 3) + 1;\n"
	"}\n"
	"__attribute__((noinline)) int outer(int x)\n"
	"{\n"
	"	int y = mid(x);\n"
	"	return y ^ sink;\n"
	"}\n"
	"int main(int argc, char **argv) { (void)argv; return outer(argc); }\n";

static const char rust_source[] =
	"#![allow(named_asm_labels)] mod deep {\n"
	"    #[inline(always)]\n"
	"    pub fn leaf(x: u64) -> u64 {\n"
	"        unsafe { std::arch::asm!(\".globl leaf_mark\", \"leaf_mark:\", \"nop\", "
	"\"nop\") };\n"
	"        x ^ 5\n"
	"    }\n"
	"    #[inline(always)]\n"
	"    pub fn mid(x: u64) -> u64 {\n"
	"        leaf(x.wrapping_mul(3)) + 1\n"
	"    }\n"
	"}\n"
	"#[inline(never)]\n"
	"fn outer(x: u64) -> u64 { deep::mid(x) }\n"
	"fn main() { println!(\"{}\", outer(std::env::args().count() as u64)); }\n";

struct want {
	const char *name; /* part of the linkage name */
	unsigned line;
	const char *file; /* end of the path */
};
static const struct want c_chain[] = {
	{"leaf", 4, "/t.c"}, {"mid", 9, "/t.c"}, {"outer", 13, "/t.c"}};
static const struct want rust_chain[] = {
	{"leaf", 4, "t.rs"}, {"mid", 9, "t.rs"}, {"outer", 13, "t.rs"}};

struct symbol_at {
	const char *name;
	uint64_t svma, size_bytes;
};

static void on_symbol(void *ctx, const struct as_elf_symbol *s)
{
	struct symbol_at *w = ctx;

	if (!strcmp(s->name, w->name)) {
		w->svma = s->svma;
		w->size_bytes = s->size_bytes;
	}
}

static uint64_t svma_of(const char *exe, const char *name)
{
	struct as_elf *e;
	struct symbol_at w = {.name = name};
	struct as_error err;

	if (as_elf_open(fx_path(exe), &e, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(as_elf_each_symbol(e, on_symbol, &w, NULL), AS_OK);
	as_elf_close(e);
	assert_true(w.svma != 0);
	return w.svma;
}

static int try_open(const char *exe, struct as_symmod_spec spec, struct as_symmod **m,
		    struct as_error *err)
{
	spec.path = fx_path(exe);
	spec.fd = open(spec.path, O_RDONLY | O_CLOEXEC);
	assert_true(spec.fd >= 0);

	int r = as_symmod_open(&spec, m, err);

	close(spec.fd);
	return r;
}

static struct as_symmod *must_open(const char *exe, const char *cache)
{
	struct as_symmod_spec spec = {.cache_dir = cache};
	struct as_symmod *m;
	struct as_error err;

	if (try_open(exe, spec, &m, &err) < 0)
		fail_msg("%s", err.msg);
	return m;
}

struct answer {
	struct as_buf text; /* one line per frame */
	size_t n;
	struct as_symframe first, last;
	enum as_symsource source;
};

static void on_chain(void *ctx, size_t index, uint64_t svma, const struct as_symchain *c)
{
	struct answer *a = ctx;

	as_buf_addf(&a->text, "%zu %llx\n", index, (unsigned long long)svma);
	for (size_t i = 0; i < c->n; i++) {
		const struct as_symframe *f = &c->frames[i];

		as_buf_addf(&a->text, "%s|%s|%s|%u|%u|%d|%d|%llx|%u\n",
			    f->linkage ? f->linkage : "??", f->name ? f->name : "??",
			    f->file ? f->file : "??", f->line, f->column, f->inlined,
			    f->line_from_call, (unsigned long long)f->func_svma, f->aliases);
	}
	a->n = c->n;
	a->source = c->source;
	a->first = c->n ? c->frames[0] : (struct as_symframe){0};
	a->last = c->n ? c->frames[c->n - 1] : (struct as_symframe){0};
}

static struct answer resolve(struct as_symmod *m, uint64_t svma)
{
	struct answer a = {0};

	as_symmod_resolve(m, &svma, 1, on_chain, &a);
	return a;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n >= k && !strcmp(s + n - k, end);
}

struct check {
	const struct want *want;
	size_t n;
	uint64_t entry;
};

static void check_chain(void *ctx, size_t index, uint64_t svma, const struct as_symchain *c)
{
	const struct check *k = ctx;

	(void)index;
	(void)svma;
	assert_int_equal(c->source, AS_SYM_DWARF);
	assert_int_equal(c->n, k->n);
	for (size_t i = 0; i < c->n; i++) {
		const struct as_symframe *f = &c->frames[i];

		assert_non_null(f->linkage);
		assert_non_null(strstr(f->linkage, k->want[i].name));
		assert_int_equal(f->line, k->want[i].line);
		assert_non_null(f->file);
		assert_true(ends_with(f->file, k->want[i].file));
		assert_true(f->file[0] == '/' || k->want[i].file[0] != '/');
		assert_int_equal(f->inlined, i + 1 < c->n);
		assert_false(f->synthetic);
		if (k->entry)
			assert_int_equal(f->func_svma, k->entry);
	}
}

static void check_mark(struct as_symmod *m, uint64_t mark, const struct want *want,
		       uint64_t entry)
{
	struct check k = {want, 3, entry};

	as_symmod_resolve(m, &mark, 1, check_chain, &k);
}

static void c_variant(const char *tool, const char *cmd)
{
	struct as_symmod *m;

	fx_need(tool);
	fx_write("t.c", c_source);
	if (fx_sh("rm -f t t.dwp *.dwo; %s", cmd) != 0)
		fx_skip("'%s' does not work here", cmd);
	m = must_open("t", NULL);
	check_mark(m, svma_of("t", "leaf_mark"), c_chain, svma_of("t", "outer"));
	assert_string_equal(as_symmod_notes(m), "");
	assert_true(as_symmod_has_lines(m));
	as_symmod_close(m);
}

static void the_chain_is_right_in_every_dwarf_version_of_gcc(void **st)
{
	(void)st;
	c_variant("gcc", "gcc -O2 -gdwarf-2 $PWD/t.c -o t");
	c_variant("gcc", "gcc -O2 -gdwarf-3 $PWD/t.c -o t");
	c_variant("gcc", "gcc -O2 -gdwarf-4 $PWD/t.c -o t");
	c_variant("gcc", "gcc -O2 -gdwarf-5 $PWD/t.c -o t");
	c_variant("gcc", "gcc -O2 -gdwarf-5 -gdwarf64 $PWD/t.c -o t");
	c_variant("gcc", "gcc -O2 -gdwarf-4 t.c -o t"); /* relative path joined with comp_dir */
	c_variant("gcc", "gcc -O2 -gdwarf-5 t.c -o t");
}

static void the_chain_is_right_with_clang(void **st)
{
	(void)st;
	c_variant("clang", "clang -O2 -gdwarf-4 t.c -o t");
	c_variant("clang", "clang -O2 -gdwarf-5 t.c -o t");
	c_variant("clang", "clang -O2 -g -ffunction-sections -Wl,--gc-sections t.c -o t");
	c_variant("clang", "clang -O2 -gline-tables-only t.c -o t");
}

static void the_chain_is_right_with_lto_and_without_pie(void **st)
{
	(void)st;
	c_variant("gcc", "gcc -O2 -g -flto t.c -o t");
	c_variant("gcc", "gcc -O2 -g -no-pie t.c -o t");
	c_variant("gcc", "gcc -O2 -g -fdebug-types-section t.c -o t");
}

static void compressed_sections_are_read(void **st)
{
	(void)st;
	c_variant("gcc", "gcc -O2 -g -Wl,--compress-debug-sections=zlib t.c -o t");
	c_variant("gcc", "gcc -O2 -gdwarf-4 t.c -o t && objcopy "
			 "--compress-debug-sections=zlib-gnu t");
	c_variant("objcopy", "gcc -O2 -g t.c -o t && objcopy --compress-debug-sections=zstd t");
}

static void split_units_are_read_from_their_own_files(void **st)
{
	(void)st;
	c_variant("gcc", "gcc -O2 -gdwarf-4 -gsplit-dwarf -c t.c && gcc t.o -o t");
	c_variant("gcc", "gcc -O2 -gdwarf-5 -gsplit-dwarf -c t.c && gcc t.o -o t");
	c_variant("clang", "clang -O2 -gdwarf-4 -gsplit-dwarf -c t.c && clang t.o -o t");
	c_variant("clang", "clang -O2 -gdwarf-5 -gsplit-dwarf -c t.c && clang t.o -o t");
}

static void split_units_are_read_from_a_package(void **st)
{
	(void)st;
	c_variant("dwp", "gcc -O2 -gdwarf-4 -gsplit-dwarf -c t.c && gcc t.o -o t && "
			 "dwp -e t -o t.dwp && rm t.dwo");
	c_variant("llvm-dwp", "clang -O2 -gdwarf-5 -gsplit-dwarf -c t.c && clang t.o -o t && "
			      "llvm-dwp -e t -o t.dwp && rm t.dwo");
}

static void dwz_files_are_read_with_their_common_file(void **st)
{
	(void)st;
	c_variant("dwz", "gcc -O2 -gdwarf-4 t.c -o t && dwz t");
	c_variant("dwz", "gcc -O2 -gdwarf-4 t.c -o t && cp t u && dwz -m common.sup t u");
	c_variant("dwz", "gcc -O2 -gdwarf-5 t.c -o t && cp t u && dwz -5 -m common.sup t u");
}

static void a_missing_split_file_leaves_the_function_and_its_line(void **st)
{
	struct as_symmod *m;
	struct answer a;

	(void)st;
	fx_need("gcc");
	fx_write("t.c", c_source);
	assert_int_equal(fx_sh("rm -f t.dwp; gcc -O2 -gdwarf-5 -gsplit-dwarf -c t.c && "
			       "gcc t.o -o t && rm t.dwo"),
			 0);
	m = must_open("t", NULL);
	a = resolve(m, svma_of("t", "leaf_mark"));
	assert_int_equal(a.n, 1);
	assert_string_equal(a.first.linkage, "outer");
	assert_int_equal(a.first.line, 4);
	assert_non_null(strstr(as_symmod_notes(m), "t.dwo' not found"));
	as_symmod_close(m);
	as_buf_clear(&a.text);
}

static void a_split_file_of_another_build_is_refused(void **st)
{
	struct as_symmod *m;
	struct answer a;

	(void)st;
	fx_need("gcc");
	fx_write("t.c", c_source);
	assert_int_equal(fx_sh("rm -f t.dwp; gcc -O2 -gdwarf-5 -gsplit-dwarf -c t.c && "
			       "gcc t.o -o t && gcc -DX -O1 -gdwarf-5 -gsplit-dwarf -c t.c"),
			 0);
	m = must_open("t", NULL);
	a = resolve(m, svma_of("t", "leaf_mark"));
	assert_int_equal(a.n, 1);
	assert_string_equal(a.first.linkage, "outer");
	assert_non_null(strstr(as_symmod_notes(m), "another build"));
	as_symmod_close(m);
	as_buf_clear(&a.text);
}

static void rust_variant(const char *flags)
{
	struct as_symmod *m;

	fx_need("rustc");
	fx_write("t.rs", rust_source);
	if (fx_sh("rm -f t t.dwp; rustc %s t.rs -o t", flags) != 0)
		fx_skip("rustc %s does not work here", flags);
	m = must_open("t", NULL);
	check_mark(m, svma_of("t", "leaf_mark"), rust_chain, 0);
	as_symmod_close(m);
}

static void the_chain_is_right_with_rustc(void **st)
{
	(void)st;
	rust_variant("-O -g");
	rust_variant("-O -g -C symbol-mangling-version=v0");
	rust_variant("-C opt-level=s -C debuginfo=line-tables-only");
	rust_variant("-O -g -C split-debuginfo=packed");
}

static void a_stripped_file_uses_its_debug_file(void **st)
{
	struct as_symmod *m;
	uint64_t mark, outer;

	(void)st;
	fx_need("gcc");
	fx_write("t.c", c_source);
	assert_int_equal(
		fx_sh("gcc -O2 -g t.c -o t && cp t full && objcopy --only-keep-debug t t.debug "
		      "&& objcopy --strip-all --add-gnu-debuglink=t.debug t"),
		0);
	mark = svma_of("full", "leaf_mark");
	outer = svma_of("full", "outer");
	m = must_open("t", NULL);
	check_mark(m, mark, c_chain, outer);
	as_symmod_close(m);
	assert_int_equal(fx_sh("echo >> t.debug"), 0);
	m = must_open("t", NULL);
	assert_non_null(strstr(as_symmod_notes(m), "t.debug"));
	as_symmod_close(m);
}

static void without_dwarf_the_symbol_bounds_the_name(void **st)
{
	struct as_symmod *m;
	struct answer a;
	uint64_t mark;

	(void)st;
	fx_need("gcc");
	fx_write("t.c", c_source);
	assert_int_equal(fx_sh("gcc -O2 t.c -o t"), 0);
	mark = svma_of("t", "leaf_mark");
	m = must_open("t", NULL);
	a = resolve(m, mark + 1);
	assert_int_equal(a.source, AS_SYM_SYMTAB);
	assert_int_equal(a.n, 1);
	assert_string_equal(a.first.linkage, "outer");
	assert_int_equal(a.first.func_svma, svma_of("t", "outer"));
	assert_null(a.first.file);
	assert_false(as_symmod_has_lines(m));
	as_buf_clear(&a.text);
	a = resolve(m, 0x10); /* the ELF header is no function */
	assert_int_equal(a.n, 0);
	assert_int_equal(a.source, AS_SYM_NONE);
	as_buf_clear(&a.text);
	as_symmod_close(m);
}

static void extents_name_code_without_symbols(void **st)
{
	struct as_extent extent[1];
	struct as_symmod_spec spec = {.extents = extent, .nextents = 1};
	struct as_symmod *m;
	struct as_error err;
	struct answer a;
	char want[64];
	uint64_t outer;

	(void)st;
	fx_need("gcc");
	fx_write("t.c", c_source);
	assert_int_equal(fx_sh("gcc -O2 t.c -o t && cp t full && strip -s t"), 0);
	outer = svma_of("full", "outer");
	extent[0] = (struct as_extent){outer, outer + 16};
	assert_int_equal(try_open("t", spec, &m, &err), AS_OK);
	a = resolve(m, outer + 3);
	assert_int_equal(a.source, AS_SYM_EXTENT);
	assert_true(a.first.synthetic);
	snprintf(want, sizeof want, "t+0x%llx", (unsigned long long)outer);
	assert_string_equal(a.first.linkage, want);
	as_buf_clear(&a.text);
	as_symmod_close(m);
}

static void another_build_is_refused_by_name(void **st)
{
	struct as_symmod_spec spec = {.expected = {.len = 20, .id = {1, 2, 3}}};
	struct as_symmod *m = NULL;
	struct as_error err;

	(void)st;
	fx_need("gcc");
	fx_write("t.c", c_source);
	assert_int_equal(fx_sh("gcc -O2 t.c -o t"), 0);
	assert_int_equal(try_open("t", spec, &m, &err), AS_E_NOTFOUND);
	assert_null(m);
	assert_non_null(strstr(err.msg, "/t' is not the file that was recorded"));
}

static void without_inlines_the_function_stands_at_the_line_of_the_pc(void **st)
{
	struct as_symmod_spec spec = {.no_inlines = true};
	struct as_symmod *m;
	struct as_error err;
	struct answer a;

	(void)st;
	fx_need("gcc");
	fx_write("t.c", c_source);
	assert_int_equal(fx_sh("gcc -O2 -g t.c -o t"), 0);
	assert_int_equal(try_open("t", spec, &m, &err), AS_OK);
	a = resolve(m, svma_of("t", "leaf_mark"));
	assert_int_equal(a.n, 1);
	assert_string_equal(a.first.linkage, "outer");
	assert_int_equal(a.first.line, 4);
	as_buf_clear(&a.text);
	as_symmod_close(m);
}

static void line_zero_is_repaired_and_marked(void **st)
{
	struct as_symmod *m;
	struct answer a;

	(void)st;
	fx_need("clang");
	fx_write("z.c",
		 "volatile int sink;\n"
		 "__attribute__((noinline)) int outer(int x)\n"
		 "{\n"
		 "	sink = x;\n"
		 "	__asm__ volatile(\".loc 1 0\\n.globl "
		 "zero_mark\\nzero_mark:\\n\\tnop\");\n"
		 "	return x;\n"
		 "}\n"
		 "int main(int argc, char **argv) { (void)argv; return outer(argc); }\n");
	if (fx_sh("clang -O1 -gdwarf-4 z.c -o t") != 0)
		fx_skip("clang does not take .loc in inline assembly");
	m = must_open("t", NULL);
	a = resolve(m, svma_of("t", "zero_mark"));
	assert_string_equal(a.first.linkage, "outer");
	assert_true(a.first.line_from_call);
	assert_true(a.first.line >= 2 && a.first.line <= 6);
	as_buf_clear(&a.text);
	as_symmod_close(m);
}

/*
 * 100 units with one abbreviation table, whose roots' declaration stands behind 70 others: what the
 * LTO of rustc 1.75 makes.
 */
static void units_may_share_a_long_abbreviation_table(void **st)
{
	enum { UNITS = 100, FILLERS = 70 };
	struct as_buf b = {0};
	struct as_symmod *m;
	char name[16];

	(void)st;
	fx_need("gcc");
	as_buf_adds(&b, ".section .debug_abbrev\n.Labbrev:\n");
	for (int i = 1; i <= FILLERS; i++)
		as_buf_addf(&b, ".uleb128 %d\n.byte 0x34,0,3,8,0x49,0x13,0,0\n", i);
	as_buf_adds(&b, ".byte 71,0x11,1,3,8,0,0\n"               /* unit: name */
			".byte 72,0x2e,0,3,8,0x11,1,0x12,6,0,0\n" /* function: name, pc */
			".byte 0\n");
	for (int i = 0; i < UNITS; i++) {
		as_buf_addf(&b,
			    ".text\n.globl f%d\n.type f%d,@function\nf%d: nop; nop; ret\n"
			    ".Lend%d:\n.size f%d, .-f%d\n",
			    i, i, i, i, i, i);
		as_buf_addf(&b,
			    ".section .debug_info\n.long .Le%d-.Lb%d\n.Lb%d:\n.short 4\n"
			    ".long .Labbrev\n.byte 8\n.byte 71\n.asciz \"u%d.c\"\n",
			    i, i, i, i);
		as_buf_addf(&b,
			    ".byte 72\n.asciz \"name%d\"\n.quad f%d\n.long .Lend%d-f%d\n"
			    ".byte 0\n.Le%d:\n",
			    i, i, i, i, i);
	}
	as_buf_adds(&b, ".text\n.globl main\nmain: xorl %eax,%eax\nret\n"
			".section .note.GNU-stack,\"\",@progbits\n");
	fx_write("units.s", b.p);
	as_buf_clear(&b);
	if (fx_sh("gcc units.s -o units") != 0)
		fx_skip("the assembler here is for another machine");
	m = must_open("units", NULL);
	for (int i = 0; i < UNITS; i++) {
		struct answer a;

		snprintf(name, sizeof name, "f%d", i);
		a = resolve(m, svma_of("units", name));
		snprintf(name, sizeof name, "name%d", i);
		assert_int_equal(a.n, 1);
		assert_int_equal(a.source, AS_SYM_DWARF);
		assert_string_equal(a.first.name, name);
		as_buf_clear(&a.text);
	}
	assert_string_equal(as_symmod_notes(m), "");
	as_symmod_close(m);
}

static void containers_qualify_names_without_linkage_names(void **st)
{
	struct as_symmod *m;
	struct answer a;

	(void)st;
	fx_need("g++");
	fx_write("q.cpp", "volatile int sink;\n"
			  "namespace ns { template <class F> inline "
			  "__attribute__((always_inline)) int call(F f) { return f(3); }\n"
			  "__attribute__((noinline)) int outer(int x) { struct Local { static "
			  "inline __attribute__((always_inline)) int twice(int v) { __asm__ "
			  "volatile(\".globl leaf_mark\\nleaf_mark: nop\"); return v + sink; } "
			  "}; return Local::twice(x); } }\n"
			  "int main(int argc, char **) { return ns::outer(argc); }\n");
	assert_int_equal(fx_sh("g++ -O2 -g q.cpp -o t"), 0);
	m = must_open("t", NULL);
	a = resolve(m, svma_of("t", "leaf_mark"));
	assert_int_equal(a.n, 2);
	assert_non_null(strstr(a.first.name, "Local::twice"));
	assert_string_equal(a.last.linkage, "_ZN2ns5outerEi");
	as_buf_clear(&a.text);
	as_symmod_close(m);
}

static void folded_functions_tell_their_other_names(void **st)
{
	struct as_symmod *m;
	struct answer a;

	(void)st;
	fx_need("gcc");
	fx_write("a.c",
		 "volatile int sink;\n"
		 "__attribute__((noinline)) int outer(int x) { sink = x; return x; }\n"
		 "int second(int) __attribute__((alias(\"outer\")));\n"
		 "int main(int argc, char **argv) { (void)argv; return outer(argc); }\n");
	assert_int_equal(fx_sh("gcc -O2 -g a.c -o t"), 0);
	m = must_open("t", NULL);
	a = resolve(m, svma_of("t", "outer") + 1);
	assert_int_equal(a.first.aliases, 1);
	as_buf_clear(&a.text);
	as_symmod_close(m);
}

/* Addresses of all of .text, at most max of them. */
static size_t text_addresses(const char *exe, uint64_t *ret, size_t max)
{
	struct as_elf *e;
	const struct as_elf_section *s;
	struct as_error err;
	uint64_t seed = 1;
	size_t n = 0;

	assert_int_equal(as_elf_open(fx_path(exe), &e, &err), AS_OK);
	s = as_elf_find_section(e, ".text");
	assert_non_null(s);
	for (; n < max; n++) {
		seed = as_mix64(seed + n);
		ret[n] = s->svma + seed % s->size_bytes;
	}
	as_elf_close(e);
	return n;
}

static char *answers(const char *exe, const char *cache, const uint64_t *addr, size_t n)
{
	struct as_symmod *m = must_open(exe, cache);
	struct answer a = {0};

	as_symmod_resolve(m, addr, n, on_chain, &a);
	as_symmod_close(m);
	return as_buf_detach(&a.text);
}

static size_t count_files(const char *dir)
{
	char cmd[PATH_MAX + 64];
	char line[32] = "";
	FILE *f;

	snprintf(cmd, sizeof cmd, "ls '%s' | wc -l > '%s'", dir, fx_path("count"));
	(void)fx_sh("%s", cmd);
	f = fopen(fx_path("count"), "r");
	if (f && fgets(line, sizeof line, f))
		line[strcspn(line, "\n")] = '\0';
	if (f)
		fclose(f);

	uint64_t n = 0;

	(void)as_parse_u64(line, &n);
	return n;
}

static void a_warm_index_gives_the_same_answers(void **st)
{
	uint64_t addr[500];
	char *cold, *first, *warm;
	size_t n;

	(void)st;
	fx_need("rustc");
	fx_write("t.rs", rust_source);
	assert_int_equal(fx_sh("rm -rf cache; rustc -O -g t.rs -o t"), 0);
	n = text_addresses("t", addr, 500);
	cold = answers("t", NULL, addr, n);
	/* A few units first, so that the second run has to add others to the index. */
	first = answers("t", fx_path("cache"), addr, 5);
	free(first);
	first = answers("t", fx_path("cache"), addr, n);
	assert_string_equal(first, cold);
	assert_int_equal(count_files(fx_path("cache")), 1);
	/* Without its DWARF the file has the same build-id but only the index can answer. */
	assert_int_equal(fx_sh("mv cache/*.idx keep.idx; cp keep.idx cache/$(basename "
			       "$(readelf -n t | sed -n 's/.*Build ID: //p')).idx"),
			 0);
	warm = answers("t", fx_path("cache"), addr, n);
	assert_string_equal(warm, cold);
	free(cold);
	free(first);
	free(warm);
}

static void a_torn_or_damaged_index_is_ignored(void **st)
{
	uint64_t addr[100];
	unsigned char *good;
	char *want;
	size_t n, size;
	uint64_t seed = 7;

	(void)st;
	fx_need("gcc");
	fx_write("t.c", c_source);
	assert_int_equal(fx_sh("rm -rf cache; gcc -O2 -g t.c -o t"), 0);
	n = text_addresses("t", addr, 100);
	want = answers("t", NULL, addr, n);
	free(answers("t", fx_path("cache"), addr, n));
	assert_int_equal(fx_sh("mv cache/*.idx good.idx && echo cache/$(readelf -n t | sed -n "
			       "'s/.*Build ID: //p').idx > name"),
			 0);
	good = fx_read("good.idx", &size);
	assert_true(size > 200);
	for (int i = 0; i < 60; i++) {
		unsigned char *bad = malloc(size);
		size_t keep = size;
		char *got;

		memcpy(bad, good, size);
		seed = as_mix64(seed + (uint64_t)i);
		if (i % 3 == 0)
			keep = seed % size;
		else
			bad[seed % size] ^= (unsigned char)(1u << (seed >> 40 & 7));
		fx_write_bytes("bad.idx", bad, keep);
		assert_int_equal(fx_sh("mkdir -p cache; cp bad.idx $(cat name)"), 0);
		got = answers("t", fx_path("cache"), addr, n);
		assert_string_equal(got, want);
		free(got);
		free(bad);
	}
	free(good);
	free(want);
}

static void the_index_directory_keeps_what_was_used_last(void **st)
{
	(void)st;
	assert_int_equal(
		fx_sh("rm -rf c2; mkdir c2; cd c2; for n in 1 2 3 4; do "
		      "head -c 1000 /dev/zero > $n.idx; touch -d @$((1000 + n)) $n.idx; "
		      "done; touch -d @1 other.txt; touch -d @1 5.idx.tmp.77; "
		      "touch 6.idx.tmp.78; touch -d @5000 1.idx"),
		0);
	as_symindex_trim(fx_path("c2"), 2500);
	/* 2 and 3 were used longest ago; foreign files and a writer at work stay. */
	assert_int_equal(
		fx_sh("test \"$(cd c2; echo *)\" = '1.idx 4.idx 6.idx.tmp.78 other.txt'"), 0);
	as_symindex_trim(fx_path("absent"), 0);
}

/* Flips bytes of the debug sections; whatever comes out, it comes back and says what it left out. */
static void damaged_dwarf_never_ends_the_run(void **st)
{
	static const char *const section[] = {
		".debug_info",     ".debug_abbrev",      ".debug_line",
		".debug_rnglists", ".debug_line_str",    ".debug_aranges",
		".debug_ranges",   ".debug_str_offsets", ".debug_addr"};
	uint64_t addr[64], seed = 3;
	unsigned char *good;
	size_t size, n;
	struct as_elf *e;
	struct as_error err;

	(void)st;
	fx_need("clang");
	fx_write("t.c", c_source);
	assert_int_equal(fx_sh("clang -O2 -gdwarf-5 t.c -o t"), 0);
	n = text_addresses("t", addr, 63);
	addr[n++] = svma_of("t", "leaf_mark");
	good = fx_read("t", &size);
	assert_int_equal(as_elf_open(fx_path("t"), &e, &err), AS_OK);
	for (int i = 0; i < 400; i++) {
		const struct as_elf_section *s =
			as_elf_find_section(e, section[(unsigned)i % AS_ARRAY_LEN(section)]);
		unsigned char *bad = malloc(size);
		struct as_symmod_spec spec = {
			.fd = -1, .image = bad, .image_size = size, .path = "t"};
		struct as_symmod *m;
		struct answer a = {0};

		memcpy(bad, good, size);
		for (int k = 0; s && s->size_bytes && k <= i % 4; k++) {
			seed = as_mix64(seed + (uint64_t)k + (uint64_t)i);
			bad[s->off + seed % s->size_bytes] = (unsigned char)(seed >> 32);
		}
		assert_int_equal(as_symmod_open(&spec, &m, &err), AS_OK);
		as_symmod_resolve(m, addr, n, on_chain, &a);
		as_symmod_close(m);
		as_buf_clear(&a.text);
		free(bad);
	}
	as_elf_close(e);
	free(good);
}

static void a_damaged_unit_costs_only_that_unit(void **st)
{
	struct as_symmod *m;
	struct answer a;
	unsigned char *p;
	size_t size;
	struct as_elf *e;
	struct as_error err;

	(void)st;
	fx_need("gcc");
	fx_write("t.c", c_source);
	fx_write("u.c", "volatile int other;\nint outside(int x)\n{\n	other = x;\n	return "
			"x;\n}\n");
	assert_int_equal(fx_sh("gcc -O2 -gdwarf-4 -c t.c u.c && gcc t.o u.o -o t"), 0);
	assert_int_equal(as_elf_open(fx_path("t"), &e, &err), AS_OK);

	const struct as_elf_section *s = as_elf_find_section(e, ".debug_info");
	uint64_t first_len;

	p = fx_read("t", &size);
	first_len = as_get_le32(p + s->off);
	/* Unknown abbreviation codes in the second half of the first unit. */
	memset(p + s->off + 4 + first_len / 2, 0x7f, first_len / 2);
	fx_write_bytes("t", p, size);
	as_elf_close(e);
	free(p);
	m = must_open("t", NULL);
	a = resolve(m, svma_of("t", "leaf_mark"));
	assert_int_equal(a.n, 1);
	assert_string_equal(a.first.linkage, "outer");
	assert_int_equal(a.first.line, 4);
	as_buf_clear(&a.text);
	a = resolve(m, svma_of("t", "outside"));
	assert_int_equal(a.source, AS_SYM_DWARF);
	assert_string_equal(a.first.linkage, "outside");
	as_buf_clear(&a.text);
	assert_non_null(strstr(as_symmod_notes(m), "unit 0x0 skipped"));
	assert_null(strchr(strchr(as_symmod_notes(m), '\n') + 1, '\n'));
	as_symmod_close(m);
}

struct text_line {
	char *p;
};

static char *next_line(struct text_line *t)
{
	char *s = t->p, *nl = s ? strchr(s, '\n') : NULL;

	if (!nl)
		return NULL;
	*nl = '\0';
	t->p = nl + 1;
	return s;
}

struct oracle {
	struct text_line out;
	size_t frames, addresses;
};

/* Frame by frame against llvm-addr2line; lines of 0 there are repaired here. */
static void check_oracle(void *ctx, size_t index, uint64_t svma, const struct as_symchain *c)
{
	struct oracle *o = ctx;
	char want[32];

	(void)index;
	snprintf(want, sizeof want, "0x%llx", (unsigned long long)svma);
	assert_string_equal(next_line(&o->out), want);
	for (size_t i = 0; i < c->n; i++) {
		const struct as_symframe *f = &c->frames[i];
		char *name = next_line(&o->out), *place = next_line(&o->out), *colon;

		assert_non_null(place);
		colon = strchr(place, ' ');
		if (colon)
			*colon = '\0'; /* (discriminator) */
		colon = strrchr(place, ':');
		assert_non_null(colon);
		if (f->inlined)
			assert_string_equal(f->linkage, name);
		if (f->line && !f->line_from_call) {
			uint64_t line = 0;

			(void)as_parse_u64(colon + 1, &line);
			assert_int_equal(f->line, line);
			*colon = '\0';
			assert_string_equal(f->file, place);
		}
		o->frames++;
	}
	if (!c->n) {
		(void)next_line(&o->out);
		(void)next_line(&o->out);
	}
	assert_true(!o->out.p || !*o->out.p || !strncmp(o->out.p, "0x", 2));
	o->addresses++;
}

static void two_thousand_chains_equal_those_of_llvm(void **st)
{
	static uint64_t addr[2000];
	struct as_buf in = {0};
	struct oracle o = {0};
	struct as_symmod *m;
	unsigned char *text;
	size_t n, size;

	(void)st;
	fx_need("llvm-addr2line");
	fx_need("rustc");
	fx_write("t.rs", rust_source);
	assert_int_equal(fx_sh("rustc -O -g t.rs -o t"), 0);
	n = text_addresses("t", addr, 2000);
	for (size_t i = 0; i < n; i++)
		as_buf_addf(&in, "0x%llx\n", (unsigned long long)addr[i]);
	fx_write("in", in.p);
	as_buf_clear(&in);
	assert_int_equal(fx_sh("llvm-addr2line -aif -e t < in > out"), 0);
	text = fx_read("out", &size);
	assert_non_null(text);
	text[size] = '\0';
	o.out.p = (char *)text;
	m = must_open("t", NULL);
	as_symmod_resolve(m, addr, n, check_oracle, &o);
	assert_int_equal(o.addresses, n);
	assert_true(o.frames > n);
	as_symmod_close(m);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_chain_is_right_in_every_dwarf_version_of_gcc),
		cmocka_unit_test(the_chain_is_right_with_clang),
		cmocka_unit_test(the_chain_is_right_with_lto_and_without_pie),
		cmocka_unit_test(compressed_sections_are_read),
		cmocka_unit_test(split_units_are_read_from_their_own_files),
		cmocka_unit_test(split_units_are_read_from_a_package),
		cmocka_unit_test(dwz_files_are_read_with_their_common_file),
		cmocka_unit_test(a_missing_split_file_leaves_the_function_and_its_line),
		cmocka_unit_test(a_split_file_of_another_build_is_refused),
		cmocka_unit_test(the_chain_is_right_with_rustc),
		cmocka_unit_test(a_stripped_file_uses_its_debug_file),
		cmocka_unit_test(without_dwarf_the_symbol_bounds_the_name),
		cmocka_unit_test(extents_name_code_without_symbols),
		cmocka_unit_test(another_build_is_refused_by_name),
		cmocka_unit_test(without_inlines_the_function_stands_at_the_line_of_the_pc),
		cmocka_unit_test(line_zero_is_repaired_and_marked),
		cmocka_unit_test(units_may_share_a_long_abbreviation_table),
		cmocka_unit_test(containers_qualify_names_without_linkage_names),
		cmocka_unit_test(folded_functions_tell_their_other_names),
		cmocka_unit_test(a_warm_index_gives_the_same_answers),
		cmocka_unit_test(a_torn_or_damaged_index_is_ignored),
		cmocka_unit_test(the_index_directory_keeps_what_was_used_last),
		cmocka_unit_test(damaged_dwarf_never_ends_the_run),
		cmocka_unit_test(a_damaged_unit_costs_only_that_unit),
		cmocka_unit_test(two_thousand_chains_equal_those_of_llvm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

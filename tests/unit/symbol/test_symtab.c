/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The symbol index: what a symbol covers and which of several names is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "fixture.h"
#include "base/mem.h"
#include "symbol/symtab_priv.h"

struct module {
	struct as_elf *e, *debug;
	struct as_symtab *t;
	AS_VEC(struct as_extent) ext;
};

static struct as_elf *open_fixture(const char *name)
{
	struct as_error err = {0};
	struct as_elf *e = NULL;

	if (as_elf_open(fx_path(name), &e, &err) < 0)
		fail_msg("%s", err.msg);
	return e;
}

struct lookup {
	const char *name;
	uint64_t svma, size;
};

static void on_symbol(void *ctx, const struct as_elf_symbol *s)
{
	struct lookup *l = ctx;

	if (strcmp(s->name, l->name) == 0) {
		l->svma = s->svma;
		l->size = s->size_bytes;
	}
}

static struct lookup symbol(const char *file, const char *name)
{
	struct as_elf *e = open_fixture(file);
	struct lookup l = {.name = name};

	as_elf_each_symbol(e, on_symbol, &l, NULL);
	as_elf_close(e);
	if (!l.svma)
		fail_msg("no symbol '%s' in '%s'", name, file);
	return l;
}

static struct module build(const char *file, const char *debug, const struct as_extent *ext,
			   size_t n)
{
	struct module m = {.e = open_fixture(file),
			   .debug = debug ? open_fixture(debug) : NULL};
	struct as_symtab_spec spec = {
		.elf = m.e, .debug = m.debug, .module = file, .extents = ext, .nextents = n};

	assert_int_equal(as_symtab_build(&spec, &m.t, NULL), AS_OK);
	return m;
}

static void drop(struct module *m)
{
	as_symtab_free(m->t);
	as_elf_close(m->debug);
	as_elf_close(m->e);
}

static void expect(struct module *m, uint64_t at, const char *name, enum as_symsource source)
{
	struct as_symtab_hit h;

	if (!as_symtab_find(m->t, at, &h)) {
		if (name)
			fail_msg("0x%llx: nothing, not '%s'", (unsigned long long)at, name);
		return;
	}
	if (!name)
		fail_msg("0x%llx: '%s', not nothing", (unsigned long long)at, h.name);
	assert_string_equal(h.name, name);
	assert_int_equal(h.source, source);
	assert_true(at >= h.start);
}

/* Functions with holes between them, aliases, size-less assembly. */
static void make_library(void)
{
	fx_write("l.c",
		 "__attribute__((aligned(256))) int first(int x) { return x + 1; }\n"
		 "__attribute__((aligned(256))) static int hidden(int x) { return x + 2; }\n"
		 "__attribute__((aligned(256))) int third(int x) { return hidden(x) + "
		 "first(x); }\n"
		 "int third_alias(int x) __attribute__((alias(\"third\")));\n"
		 "int weak_third(int x) __attribute__((weak, alias(\"third\")));\n"
		 "__asm__(\".text\\n.balign 256\\n.globl bare\\nbare: nop; nop; nop; ret\\n\"\n"
		 "	\"inner_label: nop; nop; ret\\n.balign 256\\n\"\n"
		 "	\".globl typed\\n.type typed, @function\\ntyped: nop; nop; ret\\n\");\n"
		 "int data_in_data = 5;\n");
	assert_int_equal(
		fx_sh("gcc -O1 -fno-inline -fPIC -shared l.c -o l.so && strip -s l.so -o s.so"),
		0);
}

static void a_symbol_covers_its_size_and_no_more(void **st)
{
	struct lookup first, hidden;
	struct module m;

	fx_need("gcc");
	make_library();
	first = symbol("l.so", "first");
	hidden = symbol("l.so", "hidden");
	m = build("l.so", NULL, NULL, 0);
	expect(&m, first.svma, "first", AS_SYM_SYMTAB);
	expect(&m, first.svma + first.size - 1, "first", AS_SYM_SYMTAB);
	expect(&m, first.svma + first.size, NULL, AS_SYM_NONE);
	expect(&m, hidden.svma + 1, "hidden", AS_SYM_SYMTAB);
	expect(&m, hidden.svma - 1, "typed", AS_SYM_SYMTAB); /* it has no size */
	expect(&m, symbol("l.so", "data_in_data").svma, NULL, AS_SYM_NONE);
	expect(&m, 0, NULL, AS_SYM_NONE);
	expect(&m, UINT64_MAX, NULL, AS_SYM_NONE);
	drop(&m);
}

static void assembly_without_sizes_ends_where_something_else_begins(void **st)
{
	struct lookup copy, loop, plain, sized, last;
	struct module m;

	fx_need("gcc");
	fx_write("a.s",
		 ".text\n.globl _start, copy, plain, sized\n"
		 ".type copy, @function\ncopy: nop\nloop: nop; jmp loop\n"
		 "plain: nop; nop; ret\n" /* no type either */
		 ".type sized, @function\nsized: nop; ret\n.size sized, .-sized\nnop; nop\n"
		 ".type table, @object\ntable: .quad 1\n"
		 ".section .other, \"ax\"\nlast: nop; ret\n_start: nop; ret\n"
		 ".section .rodata\n.globl words\nwords: .quad 1\n");
	assert_int_equal(fx_sh("gcc -nostdlib -static a.s -o a && strip -x a -o g"), 0);
	copy = symbol("a", "copy");
	loop = symbol("a", "loop");
	plain = symbol("a", "plain");
	sized = symbol("a", "sized");
	last = symbol("a", "last");
	m = build("a", NULL, NULL, 0);
	expect(&m, copy.svma, "copy", AS_SYM_SYMTAB);
	expect(&m, loop.svma + 2, "copy", AS_SYM_SYMTAB);
	expect(&m, plain.svma + 2, "plain", AS_SYM_SYMTAB);
	expect(&m, sized.svma + 1, "sized", AS_SYM_SYMTAB);
	expect(&m, sized.svma + 2, NULL, AS_SYM_NONE);
	expect(&m, symbol("a", "table").svma, NULL, AS_SYM_NONE);
	expect(&m, last.svma + 1, "last", AS_SYM_SYMTAB);
	expect(&m, symbol("a", "_start").svma + 1, "_start", AS_SYM_SYMTAB);
	expect(&m, symbol("a", "words").svma, NULL, AS_SYM_NONE);
	drop(&m);
	/* local functions may be missing: no telling where one ends */
	m = build("g", NULL, NULL, 0);
	expect(&m, copy.svma, "copy", AS_SYM_SYMTAB);
	expect(&m, copy.svma + 1, NULL, AS_SYM_NONE);
	drop(&m);
}

static void the_string_functions_of_a_static_musl_program_have_names(void **st)
{
	struct module m;

	fx_need("musl-gcc");
	fx_write("m.c", "#include <string.h>\nchar a[99], b[99];\n"
			"int main(int c, char **v) { memcpy(a, b, c); return a[c]; }");
	assert_int_equal(fx_sh("musl-gcc -fno-builtin -static m.c -o m"), 0);
	m = build("m", NULL, NULL, 0);
	expect(&m, symbol("m", "memcpy").svma + 9, "memcpy", AS_SYM_SYMTAB);
	drop(&m);
}

/* Each stub of o has the name objdump gives it. */
static void check_stubs(const char *how)
{
	struct module m;
	char line[256], *name;
	unsigned long long at;
	size_t n = 0;
	FILE *f;

	assert_int_equal(
		fx_sh("%s p.c -o p && objdump -d p | grep '^[0-9a-f]* <.*@plt>:' > p.txt && "
		      "strip p",
		      how),
		0);
	m = build("p", NULL, NULL, 0);
	f = fopen(fx_path("p.txt"), "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		at = strtoull(line, &name, 16);
		name += 2; /* " <" */
		name[strcspn(name, ">")] = '\0';
		if (strchr(name, '*'))
			continue;
		expect(&m, at, name, AS_SYM_DYNSYM);
		expect(&m, at + 5, name, AS_SYM_DYNSYM);
		n++;
	}
	fclose(f);
	assert_true(n >= 3);
	drop(&m);
}

static void stubs_are_named_after_what_they_lead_to(void **st)
{
	fx_need("gcc");
	fx_need("objdump");
	/* puts is called and its address taken: .plt.got */
	fx_write("p.c", "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
			"int (*volatile f)(const char *);\n"
			"int main(int c, char **v) { f = puts; puts(v[0]); free(malloc(c));\n"
			"	return (int)strlen(getenv(v[0])); }\n");
	check_stubs("gcc -fno-builtin -fplt -Wl,-z,lazy");
	check_stubs("gcc -fno-builtin -fplt -Wl,-z,now");
	check_stubs("gcc -fno-builtin -fplt -fcf-protection -Wl,-z,ibtplt");
	fx_need("ld.lld");
	check_stubs("clang -fno-builtin -fuse-ld=lld -Wl,-z,lazy");
}

static void a_stripped_library_guesses_nothing(void **st)
{
	struct lookup first, hidden, typed;
	struct module m;

	fx_need("gcc");
	make_library();
	first = symbol("l.so", "first");
	hidden = symbol("l.so", "hidden");
	typed = symbol("l.so", "typed");
	m = build("s.so", NULL, NULL, 0);
	expect(&m, first.svma, "first", AS_SYM_DYNSYM);
	expect(&m, hidden.svma, NULL, AS_SYM_NONE);
	/* without a size and an extent a symbol is good for its own address only */
	expect(&m, typed.svma, "typed", AS_SYM_DYNSYM);
	expect(&m, typed.svma + 1, NULL, AS_SYM_NONE);
	drop(&m);
}

static void extents_bound_what_has_no_size_and_name_what_has_no_symbol(void **st)
{
	struct lookup hidden, bare, typed;
	struct as_symtab_hit h;
	struct as_extent ext[3];
	struct module m;
	char want[64];

	fx_need("gcc");
	make_library();
	hidden = symbol("l.so", "hidden");
	bare = symbol("l.so", "bare");
	typed = symbol("l.so", "typed");
	/* the compiler puts the assembly first */
	assert_true(bare.svma < typed.svma && typed.svma < hidden.svma);
	ext[0] = (struct as_extent){bare.svma, bare.svma + 7};
	ext[1] = (struct as_extent){typed.svma, typed.svma + 3};
	ext[2] = (struct as_extent){hidden.svma, hidden.svma + hidden.size};
	m = build("s.so", NULL, ext, 3);
	snprintf(want, sizeof want, "s.so+0x%llx", (unsigned long long)hidden.svma);
	expect(&m, hidden.svma + 1, want, AS_SYM_EXTENT);
	assert_true(as_symtab_find(m.t, hidden.svma + 1, &h) && h.synthetic);
	assert_int_equal(h.start, hidden.svma);
	assert_int_equal(h.size_bytes, hidden.size);
	expect(&m, bare.svma + 6, "bare", AS_SYM_DYNSYM);
	expect(&m, bare.svma + 7, NULL, AS_SYM_NONE);
	expect(&m, typed.svma + 2, "typed", AS_SYM_DYNSYM);
	expect(&m, typed.svma + 3, NULL, AS_SYM_NONE);
	drop(&m);
	/* in the full library the label inside is no function */
	m = build("l.so", NULL, ext, 3);
	expect(&m, symbol("l.so", "inner_label").svma, "bare", AS_SYM_SYMTAB);
	drop(&m);
}

static void count_names(void *ctx, const char *name)
{
	struct as_buf *b = ctx;

	as_buf_adds(b, name);
	as_buf_adds(b, " ");
}

static void of_several_names_one_is_chosen_and_all_are_known(void **st)
{
	struct lookup third;
	struct as_buf names = {0};
	struct as_symtab_hit h;
	struct module m;

	fx_need("gcc");
	make_library();
	third = symbol("l.so", "third");
	m = build("l.so", NULL, NULL, 0);
	assert_true(as_symtab_find(m.t, third.svma + 1, &h));
	assert_string_equal(h.name, "third");
	assert_int_equal(h.aliases, 2);
	as_symtab_each_alias(m.t, third.svma, count_names, &names);
	assert_string_equal(names.p, "third third_alias weak_third ");
	as_buf_clear(&names);
	drop(&m);
}

static void folded_functions_count_as_aliases(void **st)
{
	struct as_symtab_hit h;
	struct lookup one;
	struct module m;

	fx_need("ld.lld");
	fx_write(
		"i.c",
		"int beta(int x) { return x * 3 + 1; } int alpha(int x) { return x * 3 + 1; }\n"
		"int main(int c, char **v) { return beta(c) + alpha(c + 1); }");
	assert_int_equal(
		fx_sh("clang -O1 -fno-inline -ffunction-sections -fuse-ld=lld -Wl,--icf=all i.c"
		      " -o i"),
		0);
	one = symbol("i", "alpha");
	assert_int_equal(one.svma, symbol("i", "beta").svma);
	m = build("i", NULL, NULL, 0);
	assert_true(as_symtab_find(m.t, one.svma, &h));
	assert_string_equal(h.name, "beta"); /* the shorter one */
	assert_int_equal(h.aliases, 1);
	drop(&m);
}

static void symbols_of_the_debug_file_are_used_for_a_stripped_object(void **st)
{
	struct lookup hidden;
	struct module m;

	fx_need("gcc");
	fx_need("objcopy");
	make_library();
	assert_int_equal(fx_sh("objcopy --only-keep-debug l.so l.dbg"), 0);
	hidden = symbol("l.so", "hidden");
	m = build("s.so", "l.dbg", NULL, 0);
	expect(&m, hidden.svma + 1, "hidden", AS_SYM_SYMTAB);
	drop(&m);
}

static void mini_debug_info_is_told_as_such(void **st)
{
	struct lookup hidden;
	struct module m;

	fx_need("gcc");
	fx_need("xz");
	make_library();
	assert_int_equal(
		fx_sh("xz -k -f l.so && objcopy --add-section .gnu_debugdata=l.so.xz s.so"), 0);
	hidden = symbol("l.so", "hidden");
	m = build("s.so", NULL, NULL, 0);
	expect(&m, hidden.svma + 1, "hidden", AS_SYM_MINIDEBUG);
	expect(&m, symbol("l.so", "first").svma, "first", AS_SYM_DYNSYM);
	drop(&m);
}

static void cold_parts_are_told(void **st)
{
	struct as_symtab_hit h;
	struct lookup cold;
	struct module m;

	fx_need("gcc");
	fx_write("c.c",
		 "void die(int) __attribute__((cold, noreturn));\n"
		 "int work(int x) { if (x < 0) die(x); return x * 2; }\n"
		 "int main(int c, char **v) { return work(c); }\n"
		 "void die(int x) { __builtin_trap(); }\n"
		 "__asm__(\".pushsection .text.unlikely\\n.type work.cold, @function\\n\"\n"
		 "\"work.cold: nop; ret\\n.size work.cold, 2\\n.popsection\\n\");");
	assert_int_equal(fx_sh("gcc -O1 c.c -o c"), 0);
	cold = symbol("c", "work.cold");
	m = build("c", NULL, NULL, 0);
	assert_true(as_symtab_find(m.t, cold.svma, &h));
	assert_true(h.cold);
	assert_true(as_symtab_find(m.t, symbol("c", "work").svma, &h));
	assert_false(h.cold);
	drop(&m);
}

/* Every symbol with a size of a large real library is found at its first and last byte. */
static void check_symbol(void *ctx, const struct as_elf_symbol *s)
{
	struct module *m = ctx;
	struct as_symtab_hit h;

	if (!s->func || !s->size_bytes)
		return;
	assert_true(as_symtab_find(m->t, s->svma, &h));
	assert_int_equal(h.start, s->svma);
	assert_true(as_symtab_find(m->t, s->svma + s->size_bytes - 1, &h));
	assert_true(h.start + h.size_bytes >= s->svma + s->size_bytes);
}

static void all_of_libc_is_found(void **st)
{
	struct module m = {0};
	struct as_symtab_spec spec = {.module = "libc.so.6"};

	if (as_elf_open("/lib/x86_64-linux-gnu/libc.so.6", &m.e, NULL) < 0)
		fx_skip("no libc.so.6 at its usual place");
	spec.elf = m.e;
	assert_int_equal(as_symtab_build(&spec, &m.t, NULL), AS_OK);
	assert_true(as_symtab_count(m.t) > 1500);
	as_elf_each_symbol(m.e, check_symbol, &m, NULL);
	drop(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_symbol_covers_its_size_and_no_more),
		cmocka_unit_test(assembly_without_sizes_ends_where_something_else_begins),
		cmocka_unit_test(the_string_functions_of_a_static_musl_program_have_names),
		cmocka_unit_test(stubs_are_named_after_what_they_lead_to),
		cmocka_unit_test(a_stripped_library_guesses_nothing),
		cmocka_unit_test(extents_bound_what_has_no_size_and_name_what_has_no_symbol),
		cmocka_unit_test(of_several_names_one_is_chosen_and_all_are_known),
		cmocka_unit_test(folded_functions_count_as_aliases),
		cmocka_unit_test(symbols_of_the_debug_file_are_used_for_a_stripped_object),
		cmocka_unit_test(mini_debug_info_is_told_as_such),
		cmocka_unit_test(cold_parts_are_told),
		cmocka_unit_test(all_of_libc_is_found),
	};

	return cmocka_run_group_tests_name("symtab", tests, NULL, NULL);
}

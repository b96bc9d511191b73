/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Demangling: known pairs, clone suffixes, hostile input, and equality with the rustc-demangle
 * crate on the symbols of the Rust toolchain installed here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <time.h>
#include "fixture.h"
#include "base/map.h"
#include "base/mem.h"
#include "elf/elf.h"
#include "symbol/demangle.h"

static void check(const char *linkage, enum as_lang lang, const char *want, bool cold)
{
	struct as_buf b = {0};
	bool got_cold = !cold;

	assert_int_equal(as_demangle(linkage, &b, &got_cold), lang);
	assert_string_equal(as_buf_str(&b), want);
	assert_int_equal(got_cold, cold);
	as_buf_clear(&b);
}

static void each_mangling_is_recognised_on_its_own(void **st)
{
	check("_ZN4core3ptr5write17hb1e3a2f4c5d60718E", AS_LANG_RUST, "core::ptr::write",
	      false);
	check("_ZN93_$LT$alloc..vec..Vec$LT$T$C$A$GT$$u20$as$u20$core..iter..traits.."
	      "collect..Extend$LT$T$GT$$GT$6extend17h0123456789abcdefE",
	      AS_LANG_RUST,
	      "<alloc::vec::Vec<T,A> as core::iter::traits::collect::Extend<T>>::extend",
	      false);
	check("_RNvCs1234_7mycrate3foo", AS_LANG_RUST, "mycrate::foo", false);
	check("_RNCNvC7mycrate3foo0", AS_LANG_RUST, "mycrate::foo::{closure#0}", false);
	check("_Z3fooi", AS_LANG_CXX, "foo(int)", false);
	check("main", AS_LANG_C, "main", false);
	check("", AS_LANG_C, "", false);
	check("_Zebra", AS_LANG_C, "_Zebra", false);
	check("_Round", AS_LANG_C, "_Round", false);
}

static void an_anonymous_namespace_is_not_rust(void **st)
{
	check("_ZN12_GLOBAL__N_13fooEv", AS_LANG_CXX, "(anonymous namespace)::foo()", false);
	check("_ZN3foo3barEv", AS_LANG_CXX, "foo::bar()", false);
	/* 17 letters, the first an h, but no hash */
	check("_ZN3foo17hello_this_is_it_E", AS_LANG_CXX, "foo::hello_this_is_it_", false);
}

static void clone_suffixes_stay_out_of_the_name(void **st)
{
	check("_ZN4core3ptr5write17hb1e3a2f4c5d60718E.llvm.1234567890", AS_LANG_RUST,
	      "core::ptr::write", false);
	check("_RNvCs1234_7mycrate3foo.llvm.DEADBEEF", AS_LANG_RUST, "mycrate::foo", false);
	check("_Znwm@plt", AS_LANG_CXX, "operator new(unsigned long)@plt", false);
	check("_RNvCs1234_7mycrate3foo.cold", AS_LANG_RUST, "mycrate::foo", true);
	check("_RNvCs1234_7mycrate3foo.warm", AS_LANG_RUST, "mycrate::foo", false);
	check("_Z3fooi.constprop.0.cold", AS_LANG_CXX, "foo(int)", true);
	check("_Z3fooi.part.0", AS_LANG_CXX, "foo(int)", false);
	check("parse.part.0.cold.3", AS_LANG_C, "parse", true);
	check("parse.isra.0", AS_LANG_C, "parse", false);
	check("counter.5", AS_LANG_C, "counter", false);
	check(".hidden.thing", AS_LANG_C, ".hidden.thing", false);
	check("a.coldroom", AS_LANG_C, "a.coldroom", false);
}

static void wide_constants_keep_all_their_digits(void **st)
{
	check("_RINvMs2_NtCsgVdDwkt78Uu_4jiff4spanNtB6_4Span15try_days_rangedINtNtNtB8_4util"
	      "8rangeint5ri128Knn80000000000000000000000000000000_"
	      "Kn7fffffffffffffffffffffffffffffff_EEB8_",
	      AS_LANG_RUST,
	      "<jiff::span::Span>::try_days_ranged::<jiff::util::rangeint::ri128<"
	      "-0x80000000000000000000000000000000, 0x7fffffffffffffffffffffffffffffff>>",
	      false);
}

static void base62(struct as_buf *b, uint64_t v)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz"
				     "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char text[16];
	int n = 0;

	if (v == 0) {
		as_buf_adds(b, "_");
		return;
	}
	for (v--; n == 0 || v; v /= 62)
		text[n++] = digits[v % 62];
	while (n)
		as_buf_addc(b, text[--n]);
	as_buf_addc(b, '_');
}

/* Each tuple refers twice to the one before it: 2^levels elements when written out. */
static void doubling_name(struct as_buf *b, int levels)
{
	size_t last;

	as_buf_adds(b, "_RINvC1a1f");
	last = b->len - 2; /* references count from after "_R" */
	as_buf_adds(b, "TyyE");
	for (int i = 0; i < levels; i++) {
		size_t here = b->len - 2;

		as_buf_adds(b, "TB");
		base62(b, last);
		as_buf_adds(b, "B");
		base62(b, last);
		as_buf_adds(b, "E");
		last = here;
	}
	as_buf_adds(b, "E");
}

static void a_name_that_doubles_with_every_level_is_stopped(void **st)
{
	struct as_buf b = {0}, out = {0};
	clock_t begin = clock();
	bool cold;

	doubling_name(&b, 5);
	assert_int_equal(as_demangle(b.p, &out, &cold), AS_LANG_RUST);
	as_buf_reset(&b);
	as_buf_reset(&out);
	doubling_name(&b, 60);
	assert_int_equal(as_demangle(b.p, &out, &cold), AS_LANG_C);
	assert_string_equal(out.p, b.p);
	assert_true(clock() - begin < 5 * CLOCKS_PER_SEC);
	as_buf_clear(&b);
	as_buf_clear(&out);
}

static void nesting_without_end_is_survived(void **st)
{
	static const struct {
		const char *head, *unit, *tail;
	} cases[] = {
		{"_Z1f", "P", "i"},
		{"_Z1f", "St", ""},
		{"_ZN", "1a", "Ev"},
		{"_Z1fI", "1aI", "iE"},
		{"_Z1f", "DpPFv", "v"},
		{"_RNvC1a", "R", "1f"},
		{"_RMC1a", "T", "E"},
		{"_RMC1a", "RR", "u"},
		{"_RNvYNtC1a1b", "YNt", "1c"},
		{"_ZN", "17h0123456789abcdef", "E"},
		{"_Z1fIJ", "Jii", "E"},
		{"_RINvC1a1f", "INtC1a1b", "E"},
		{"_RMC1a", "RB3_", ""}, /* points at what holds it */
		{"_RMC1aT", "B3_", "E"},
		{"_RMC1aF", "KC", "uEu"},
		{"_RMC1aD", "NtC1a1bp1cD", "EL_"},
		{"_RMC1a", "A", "uj1_"},
	};
	static const size_t times[] = {10, 300, 1000, 1400, 4000, 60000};

	for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
		for (size_t k = 0; k < AS_ARRAY_LEN(times); k++) {
			struct as_buf b = {0}, out = {0};
			bool cold;

			as_buf_adds(&b, cases[i].head);
			for (size_t n = 0; n < times[k]; n++)
				as_buf_adds(&b, cases[i].unit);
			as_buf_adds(&b, cases[i].tail);
			as_demangle(b.p, &out, &cold);
			assert_true(out.len > 0);
			as_buf_clear(&b);
			as_buf_clear(&out);
		}
	}
}

static const char oracle_toml[] =
	"[package]\nname = \"oracle\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"
	"[dependencies]\nrustc-demangle = \"0.1\"\n";
static const char oracle_config[] =
	"[source.crates-io]\nreplace-with = \"debian\"\n"
	"[source.debian]\ndirectory = \"/usr/share/cargo/registry\"\n";
static const char oracle_main[] =
	"use std::io::{BufRead, Write};\n"
	"fn main() {\n"
	"    let out = std::io::stdout();\n"
	"    let mut out = std::io::BufWriter::new(out.lock());\n"
	"    for line in std::io::stdin().lock().lines() {\n"
	"        let line = line.unwrap();\n"
	"        match rustc_demangle::try_demangle(&line) {\n"
	"            Ok(name) => writeln!(out, \"{:#}\", name).unwrap(),\n"
	"            Err(_) => writeln!(out, \"{}\", line).unwrap(),\n"
	"        }\n"
	"    }\n"
	"}\n";

static void collect_rust(void *ctx, const struct as_elf_symbol *s)
{
	struct as_intern *in = ctx;
	size_t n = strlen(s->name);

	/* suffixes are ours to cut: the crate prints some of them */
	if (in->str.n >= 200000 || n > 8000 || strchr(s->name, '\n'))
		return;
	if (strncmp(s->name, "_R", 2) == 0)
		as_intern(in, s->name, strcspn(s->name, "."));
	else if (strncmp(s->name, "_ZN", 3) == 0 && n > 24 && s->name[n - 1] == 'E' &&
		 strncmp(s->name + n - 20, "17h", 3) == 0)
		as_intern(in, s->name, n);
}

static void collect_from(struct as_intern *in, const char *list_command)
{
	char path[4096];
	FILE *f;

	if (fx_sh("{ %s; } > list", list_command) != 0)
		return;
	f = fopen(fx_path("list"), "r");
	while (f && fgets(path, sizeof path, f)) {
		struct as_elf *e;

		path[strcspn(path, "\n")] = '\0';
		if (as_elf_open(path, &e, NULL) < 0)
			continue;
		as_elf_each_symbol(e, collect_rust, in, NULL);
		as_elf_close(e);
	}
	if (f)
		fclose(f);
}

static void rust_names_equal_those_of_the_rustc_demangle_crate(void **st)
{
	struct as_intern in = {0};
	size_t differ = 0, legacy = 0;
	char line[1 << 16];
	FILE *f;

	fx_need("cargo");
	fx_need("rustc");
	if (access("/usr/share/cargo/registry", R_OK) != 0)
		fx_skip("no crate sources (librust-rustc-demangle-dev)");
	fx_sh("mkdir -p oracle/src oracle/.cargo");
	fx_write("oracle/Cargo.toml", oracle_toml);
	fx_write("oracle/.cargo/config.toml", oracle_config);
	fx_write("oracle/src/main.rs", oracle_main);
	if (fx_sh("cd oracle && cargo build -q --offline --release") != 0)
		fx_skip("the rustc-demangle crate does not build here");
	/* unstripped binaries of the user have legacy names, the toolchain v0 ones */
	collect_from(&in, "ls $(dirname $(command -v cargo))/* "
			  "$(rustc --print sysroot)/bin/* /usr/bin/rg /usr/bin/fdfind; true");
	collect_from(&in, "cd oracle && ls -d $PWD/target/release/oracle");
	collect_from(&in, "ls $(rustc --print sysroot)/lib/*.so; true");
	f = fopen(fx_path("in"), "w");
	for (size_t i = 0; i < in.str.n; i++) {
		legacy += in.str.v[i].p[1] == 'Z';
		fprintf(f, "%s\n", in.str.v[i].p);
	}
	fclose(f);
	assert_int_equal(fx_sh("oracle/target/release/oracle < in > out"), 0);
	f = fopen(fx_path("out"), "r");
	for (size_t i = 0; i < in.str.n && fgets(line, sizeof line, f); i++) {
		struct as_buf b = {0};
		bool cold;

		line[strcspn(line, "\n")] = '\0';
		as_demangle(in.str.v[i].p, &b, &cold);
		if (strcmp(as_buf_str(&b), line) != 0 && differ++ < 5)
			print_message("%s\n  crate %s\n  assay %s\n", in.str.v[i].p, line, b.p);
		as_buf_clear(&b);
	}
	fclose(f);
	print_message("compared %zu Rust names, %zu of them legacy\n", in.str.n, legacy);
	assert_int_equal(differ, 0);
	assert_true(in.str.n >= 8000);
	as_intern_clear(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_mangling_is_recognised_on_its_own),
		cmocka_unit_test(an_anonymous_namespace_is_not_rust),
		cmocka_unit_test(clone_suffixes_stay_out_of_the_name),
		cmocka_unit_test(wide_constants_keep_all_their_digits),
		cmocka_unit_test(a_name_that_doubles_with_every_level_is_stopped),
		cmocka_unit_test(nesting_without_end_is_survived),
		cmocka_unit_test(rust_names_equal_those_of_the_rustc_demangle_crate),
	};

	return cmocka_run_group_tests_name("demangle", tests, NULL, NULL);
}

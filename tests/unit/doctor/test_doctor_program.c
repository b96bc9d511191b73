/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What doctor says of programs: files that are none, and builds with known options. Where a
 * compiler or library is missing that build is skipped and named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <string.h>

#include "base/sys.h"
#include "code/disasm.h"
#include "doctor/binary.h"
#include "doctor/binary_file.h"
#include "doctor/doctor.h"
#include "fixture.h"

#define SILENT (-1)

/* ---- files by their first bytes ---- */

static struct as_file_look look_at(const void *p, size_t n)
{
	struct as_file_look look;

	as_file_look_at(p, n, n, &look);
	return look;
}

static void scripts_are_known_by_their_reader(void **state)
{
	static const struct {
		const char *text, *reader;
	} scripts[] = {
		{"#!/bin/sh\necho\n", "/bin/sh"},
		{"#! /usr/bin/python3 -u\n", "/usr/bin/python3"},
		{"#!/usr/bin/env python3\n", "python3"},
		{"#!/usr/bin/env -S LANG=C perl -w\n", "perl"},
		{"#!/usr/bin/env\n", ""},
		{"#!", ""},
		{"#!\n", ""},
		{"#!/bin/bash\r\n", "/bin/bash"},
	};

	(void)state;
	for (size_t i = 0; i < AS_ARRAY_LEN(scripts); i++) {
		struct as_file_look l = look_at(scripts[i].text, strlen(scripts[i].text));

		assert_int_equal(l.kind, AS_FILE_SCRIPT);
		assert_string_equal(l.reader, scripts[i].reader);
	}
}

static void other_files_are_named(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *what;
	} files[] = {
		{"", 0, "empty"},
		{"hello\n", 6, "text"},
		{"h\303\244llo\n", 7, "text"},
		{"a\0b", 3, "neither"},
		{"MZ\x90", 3, "Windows"},
		{"\0asm\1\0\0\0", 8, "WebAssembly"},
		{"!<arch>\nx", 9, "library"},
		{"\177ELF", 4, "beginning"},
		{"\177ELF\1\1\1\0\0\0\0\0\0\0\0\0\2\0\3\0", 20, "32 bits"},
		{"\177ELF\2\2\1\0\0\0\0\0\0\0\0\0\0\2\0\2", 20, "big-endian"},
		{"\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\76\0", 20, "beginning"},
		{"\177ELF\7\1\1\0\0\0\0\0\0\0\0\0\2\0\76\0", 20, "damaged"},
	};

	(void)state;
	for (size_t i = 0; i < AS_ARRAY_LEN(files); i++) {
		struct as_file_look l = look_at(files[i].bytes, files[i].n);

		if (l.kind != AS_FILE_OTHER || !strstr(l.what, files[i].what))
			fail_msg("'%s' is not in '%s'", files[i].what, l.what ? l.what : "");
	}
}

static void programs_of_this_machine_and_of_others(void **state)
{
	Elf64_Ehdr h = {.e_ident = ELFMAG "\2\1\1", .e_type = ET_DYN, .e_machine = EM_S390};
	struct as_file_look l = look_at(&h, sizeof h);

	(void)state;
	assert_int_equal(l.kind, AS_FILE_PROGRAM);
	assert_string_equal(l.machine, "S/390");
	h.e_machine = 4711;
	assert_string_equal(look_at(&h, sizeof h).machine, "another machine");
	h.e_type = ET_REL;
	assert_int_equal(look_at(&h, sizeof h).kind, AS_FILE_OTHER);
	h.e_type = ET_CORE;
	assert_non_null(strstr(look_at(&h, sizeof h).what, "core dump"));
	h.e_type = ET_EXEC;
	h.e_shoff = 1000;
	h.e_shnum = 10;
	l = look_at(&h, sizeof h);
	assert_int_equal(l.missing_bytes, 1000 + 10 * sizeof(Elf64_Shdr) - sizeof h);
	h.e_shoff = UINT64_MAX - 3;
	assert_int_equal(look_at(&h, sizeof h).missing_bytes, 0);
}

/* ---- builds ---- */

static const struct as_finding *find(const struct as_findings *f, const char *id)
{
	as_vec_foreach (it, &f->all) {
		if (strcmp(it->id, id) == 0)
			return it;
	}
	return NULL;
}

static void write_sources(void)
{
	fx_write("app.c",
		 "#include <assert.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
		 "void *volatile keep;\n"
		 "static int cmp(const void *a, const void *b)\n"
		 "{ return *(const int *)a - *(const int *)b; }\n"
		 "static unsigned mix(unsigned n)\n"
		 "{ unsigned s = 0; for (unsigned i = 0; i < n; i++) s = s * 31 + i; return s; "
		 "}\n"
		 "static void fill(int *a, int n)\n"
		 "{ for (int i = 0; i < n; i++) a[i] = (int)(mix((unsigned)i) % 50); }\n"
		 "static long sum(const int *a, int n)\n"
		 "{ long s = 0; for (int i = 0; i < n; i++) s += a[i]; return s; }\n"
		 "int main(int argc, char **argv)\n"
		 "{ int n = argc * 1000; int *a = malloc(n * sizeof *a); keep = a; assert(a);\n"
		 "  fill(a, n); qsort(a, n, sizeof *a, cmp);\n"
		 "  printf(\"%ld %s\\n\", sum(a, n), argv[0]); free(a); return 0; }\n");
	fx_write("app.rs",
		 "use std::collections::HashMap;\n"
		 "fn parse(s: &str) -> Vec<(String, u64)> { s.split(',').enumerate()\n"
		 "  .map(|(i, w)| (w.trim().to_string(), i as u64)).collect() }\n"
		 "fn count(v: &[(String, u64)]) -> HashMap<String, u64> { let mut m = "
		 "HashMap::new();\n"
		 "  for it in v { *m.entry(it.0.clone()).or_insert(0) += it.1; } m }\n"
		 "fn sum(v: &[u64]) -> u64 { let mut s = 0u64; for x in v { s += x * 3; } s }\n"
		 "fn sort(v: &mut Vec<u64>) { v.sort(); v.dedup(); }\n"
		 "#[inline(never)] fn big(n: usize) -> u64 { let mut a = [1u8; 200000];\n"
		 "  std::hint::black_box(&mut a); a[n % a.len()] as u64 }\n"
		 "fn main() { let arg = "
		 "std::env::args().nth(1).unwrap_or(\"a,b,c,a\".to_string());\n"
		 "  let items = parse(&arg); let m = count(&items);\n"
		 "  let mut v: Vec<u64> = m.values().cloned().collect(); sort(&mut v);\n"
		 "  println!(\"{:?} {} {:?} {}\", v, sum(&v), items, big(v.len())); }\n");
	/* a crate as it lies in cargo's registry: its path is in its panics */
	(void)fx_sh("mkdir -p registry/src/tokio-1.38.0/src/runtime");
	fx_write("registry/src/tokio-1.38.0/src/lib.rs", "pub mod runtime;\n");
	fx_write("registry/src/tokio-1.38.0/src/runtime/mod.rs",
		 "#[inline(never)] pub fn block_on(v: &[u64], i: usize) -> u64 { v[i] }\n");
	fx_write("async.rs",
		 "fn main() { let v: Vec<u64> = std::env::args().map(|a| a.len() as u64)\n"
		 "  .collect(); println!(\"{}\", tokio::runtime::block_on(&v, v.len() - 1)); "
		 "}\n");
}

/* What doctor must say of a build: id and severity (SILENT: not at all), and a part of its words. */
struct said {
	const char *id;
	int severity;
	const char *what;
};
struct variant {
	const char *name, *command; /* makes the file of that name */
	struct said said[6];
};
#define OK   AS_SEVERITY_OK
#define INFO AS_SEVERITY_INFO
#define WARN AS_SEVERITY_WARN
#define BAD  AS_SEVERITY_BAD

#define JEMALLOC "$(ls /usr/lib/*/libjemalloc.a)"

static const struct variant variants[] = {
	{"c0",
	 "gcc -O0 -g app.c -o c0",
	 {{"optimisation", BAD, "without optimisation"},
	  {"debug-info", OK, "full"},
	  {"debug-assertions", SILENT, NULL},
	  {"allocator", OK, "glibc"}}},
	{"c2",
	 "gcc -O2 -g app.c -o c2",
	 {{"optimisation", OK, NULL},
	  {"symbols", OK, NULL},
	  {"debug-assertions", SILENT, NULL}, /* assert() is in many release builds of C */
	  {"truncated", SILENT, NULL},
	  {"build-id", OK, NULL}}},
	{"cnoid",
	 "gcc -O2 -g -Wl,--build-id=none app.c -o cnoid",
	 {{"build-id", INFO, "no build-id"}}},
	{"cstrip",
	 "gcc -O2 -g app.c -o cstrip && strip cstrip",
	 {{"debug-info", WARN, "no debug"},
	  {"symbols", INFO, "stripped"},
	  {"optimisation", -2, 0}}},
	{"clines",
	 "gcc -O2 -g1 app.c -o clines && objcopy --only-keep-debug clines clines.debug && "
	 "strip clines && objcopy --add-gnu-debuglink=clines.debug clines",
	 {{"debug-info", OK, "line tables (DWARF 5) in "},
	  {"symbols", OK, "in the debug file"}}},
	{"clost",
	 "gcc -O2 -g app.c -o clost && objcopy --only-keep-debug clost clost.debug && "
	 "strip clost && objcopy --add-gnu-debuglink=clost.debug clost && rm clost.debug",
	 {{"debug-info", WARN, "separate debug file is missing"}}},
	{"csplit",
	 "gcc -O2 -g -gsplit-dwarf -c app.c -o csplit.o && gcc csplit.o -o csplit && "
	 "rm -f csplit.dwo csplit-app.dwo app.dwo",
	 {{"split-debug", WARN, "1 of 1 split debug files are missing"}}},
	{"cfp", "gcc -O2 -fno-omit-frame-pointer app.c -o cfp", {{"frame-pointers", OK, NULL}}},
	{"cnofp", "gcc -O2 app.c -o cnofp", {{"frame-pointers", INFO, "0 % of its code"}}},
	{"cnoeh",
	 "gcc -O2 -fno-asynchronous-unwind-tables app.c -o cnoeh",
	 {{"unwind-tables", INFO, "not for main"}}}, /* less than 1 KiB of code */
	{"cjeshared", "gcc -O2 app.c -ljemalloc -o cjeshared", {{"allocator", OK, "jemalloc"}}},
	{"cjestatic",
	 "g++ -O2 -x c++ -fpermissive app.c -x none " JEMALLOC " -lpthread -o cjestatic",
	 {{"allocator", OK, "jemalloc"}}},
	{"cjestrip",
	 "g++ -O2 -x c++ -fpermissive app.c -x none " JEMALLOC " -lpthread -o cjestrip && "
	 "strip cjestrip",
	 {{"allocator", OK, "jemalloc"}, {"optimisation", OK, NULL}}},
	{"cmi", "gcc -O2 app.c -lmimalloc -o cmi", {{"allocator", OK, "mimalloc"}}},
	{"cmusl",
	 "musl-gcc -O2 -static app.c -o cmusl && strip cmusl",
	 {{"allocator", INFO, "musl"},
	  {"linking", OK, "static, musl"},
	  {"unwind-tables", WARN, 0}}},
	{"r0",
	 "rustc -g app.rs -o r0",
	 {{"optimisation", BAD, "without optimisation"}, {"debug-assertions", SILENT, NULL}}},
	{"r3",
	 "rustc -O -C debuginfo=line-tables-only app.rs -o r3",
	 {{"optimisation", OK, NULL},
	  {"debug-info", OK, "line tables"},
	  {"debug-assertions", SILENT, NULL},
	  {"big-frames", INFO, "big (19"},
	  {"async-runtime", SILENT, NULL}}},
	{"rbare",
	 "rustc -O app.rs -o rbare",
	 {{"debug-info", WARN, "of its own code"},
	  {"symbols", OK, NULL},
	  {"mangling", -2, NULL}}},
	{"rlegacy",
	 "rustc -O -C symbol-mangling-version=legacy -Z unstable-options app.rs -o rlegacy || "
	 "rustc -O app.rs -o rlegacy",
	 {{"mangling", INFO, "legacy"}}},
	{"rassert",
	 "rustc -O -C debug-assertions=on app.rs -o rassert",
	 {{"optimisation", OK, NULL}, {"debug-assertions", WARN, NULL}}},
	{"rfp",
	 "rustc -O -C force-frame-pointers=yes app.rs -o rfp",
	 {{"frame-pointers", OK, NULL}}},
	{"rlto",
	 "rustc -O -g -C lto=fat -C codegen-units=1 app.rs -o rlto",
	 {{"lto", OK, NULL}, {"optimisation", OK, NULL}}},
	{"rabort",
	 "rustc -O -C panic=abort app.rs -o rabort",
	 {{"unwind-tables", INFO, "not for main"}}},
	{"rabortg",
	 "rustc -O -g -C panic=abort app.rs -o rabortg",
	 {{"optimisation", OK, NULL}, {"debug-info", OK, NULL}}},
	{"rnative",
	 "rustc -O -C target-cpu=native app.rs -o rnative",
	 {{"optimisation", OK, NULL}}},
	{"rnoid",
	 "rustc -O -C link-arg=-Wl,--build-id=none app.rs -o rnoid",
	 {{"build-id", INFO, "no build-id"}}},
	{"rstrip",
	 "rustc -O -C strip=symbols app.rs -o rstrip",
	 {{"symbols", INFO, "stripped"}, {"optimisation", OK, NULL}}},
	{"r0strip",
	 "rustc -C strip=symbols app.rs -o r0strip",
	 {{"symbols", INFO, "stripped"}, {"optimisation", BAD, NULL}}},
	{"rtokiomap",
	 "rustc -O --remap-path-prefix $PWD/registry=x --crate-type rlib --crate-name tokio "
	 "$PWD/registry/src/tokio-1.38.0/src/runtime/../lib.rs -o libtokio.rlib && "
	 "sed -i s/1.38.0/XXXXXX/g libtokio.rlib && "
	 "rustc -O --extern tokio=libtokio.rlib async.rs -o rtokiomap",
	 {{"async-runtime", INFO, "tokio"}}},
	{"rdwo",
	 "rustc -O -g -C split-debuginfo=unpacked app.rs -o rdwo",
	 {{"debug-info", OK, "full"},
	  {"optimisation", OK, NULL},
	  {"split-debug", SILENT, NULL}}},
	{"rdwolost",
	 "rustc -O -g -C split-debuginfo=unpacked app.rs -o rdwolost && rm -f *.dwo *.o",
	 {{"split-debug", WARN, "split debug files are missing"}}},
	{"rtokio",
	 "rustc -O --crate-type rlib --crate-name tokio "
	 "$PWD/registry/src/tokio-1.38.0/src/lib.rs "
	 "-o libtokio.rlib && rustc -O --extern tokio=libtokio.rlib async.rs -o rtokio",
	 {{"async-runtime", INFO, "tokio 1.38.0"}}},
};

/* Instructions are judged on x86-64 only, and with a decoder. */
static bool reads_code(void)
{
#if defined(__x86_64__)
	return !as_disasm_missing(AS_ARCH_X86_64);
#else
	return false;
#endif
}

static bool told_by_code(const char *id)
{
	return strcmp(id, "optimisation") == 0 || strcmp(id, "frame-pointers") == 0 ||
	       strcmp(id, "big-frames") == 0 || strcmp(id, "lto") == 0;
}

/* -2: whatever it is, but not worse than INFO */
static void hold(const struct variant *v, const struct as_findings *f, const struct said *s)
{
	const struct as_finding *x = find(f, s->id);

	if (!reads_code() && told_by_code(s->id))
		return;
	if (s->severity == SILENT) {
		if (x)
			fail_msg("%s: '%s'", v->name, x->what);
		return;
	}
	if (!x)
		fail_msg("%s: nothing is said of %s", v->name, s->id);
	if (s->severity == -2 ? x->severity > INFO : s->severity != (int)x->severity)
		fail_msg("%s: %s is %s: '%s'", v->name, s->id, as_severity_name(x->severity),
			 x->what);
	if (s->what && !strstr(x->what, s->what))
		fail_msg("%s: '%s' is not in '%s'", v->name, s->what, x->what);
}

static void every_build_is_told_as_it_was_made(void **state)
{
	struct as_doctor d;
	size_t judged = 0;

	(void)state;
	write_sources();
	as_doctor_init(&d);
	for (size_t i = 0; i < AS_ARRAY_LEN(variants); i++) {
		const struct variant *v = &variants[i];
		struct as_findings f = {0};
		struct as_error err = {0};

		if (fx_sh("%s", v->command) != 0) {
			print_message("skipped %s: '%s' fails here\n", v->name, v->command);
			continue;
		}
		if (as_doctor_binary(&d, fx_path(v->name), &f, &err) < 0)
			fail_msg("%s: %s", v->name, err.msg);
		for (size_t k = 0; k < AS_ARRAY_LEN(v->said) && v->said[k].id; k++)
			hold(v, &f, &v->said[k]);
		as_vec_foreach (x, &f.all) {
			if (x->severity >= WARN && !(x->why && x->fix))
				fail_msg("%s: no reason or remedy for '%s'", v->name, x->what);
		}
		judged++;
		as_findings_clear(&f);
	}
	print_message("%zu builds\n", judged);
	if (!judged)
		skip();
}

static void a_cut_program_is_said_to_be_cut(void **state)
{
	struct as_findings f = {0};
	struct as_doctor d;

	(void)state;
	write_sources();
	as_doctor_init(&d);
	if (fx_sh("gcc -O2 -g app.c -o whole && head -c 9000 whole >cut") != 0)
		fx_skip("no gcc");
	assert_int_equal(as_doctor_binary(&d, fx_path("cut"), &f, NULL), 0);
	assert_int_equal(f.all.n, 1);
	assert_string_equal(f.all.v[0].id, "truncated");
	assert_int_equal(f.all.v[0].severity, BAD);
	as_findings_clear(&f);
}

/* Programs as they are in use: none of them is unoptimised, cut or for another machine. */
static void programs_of_the_system_are_not_accused(void **state)
{
	static const char *const paths[] = {
		"/usr/bin/git", "/usr/bin/python3", "/usr/bin/sqlite3", "/usr/bin/rg",
		"/usr/bin/gdb", "/usr/bin/clang",   "/usr/bin/node",    "/usr/bin/perl",
		"/bin/bash",    "/bin/busybox"};
	static const char *const never[] = {"truncated", "machine", "debug-assertions"};
	struct as_doctor d;
	size_t seen = 0;

	(void)state;
	as_doctor_init(&d);
	for (size_t i = 0; i < AS_ARRAY_LEN(paths); i++) {
		struct as_findings f = {0};
		const struct as_finding *x;

		if (access(paths[i], R_OK) != 0)
			continue;
		assert_int_equal(as_doctor_binary(&d, paths[i], &f, NULL), 0);
		x = find(&f, "optimisation");
		if (reads_code() && (!x || x->severity != OK))
			fail_msg("%s: '%s'", paths[i], x ? x->what : "");
		for (size_t k = 0; k < AS_ARRAY_LEN(never); k++)
			assert_null(find(&f, never[k]));
		x = find(&f, "allocator");
		if (x && strstr(x->what, "jemalloc"))
			fail_msg("%s: '%s'", paths[i], x->what);
		seen++;
		as_findings_clear(&f);
	}
	if (!seen)
		skip();
}

/* Its own texts on allocators and checks are no evidence. */
static void this_program_is_not_taken_for_what_it_looks_for(void **state)
{
	struct as_binary_facts f;

	(void)state;
	assert_int_equal(as_binary_facts_read("/proc/self/exe", &f, NULL), 0);
	assert_null(f.allocator);
	assert_false(f.debug_assertions);
	assert_false(f.overflow_checks);
	assert_false(f.rust);
	assert_int_equal(f.nruntimes, 0);
	as_binary_facts_clear(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scripts_are_known_by_their_reader),
		cmocka_unit_test(other_files_are_named),
		cmocka_unit_test(programs_of_this_machine_and_of_others),
		cmocka_unit_test(every_build_is_told_as_it_was_made),
		cmocka_unit_test(a_cut_program_is_said_to_be_cut),
		cmocka_unit_test(programs_of_the_system_are_not_accused),
		cmocka_unit_test(this_program_is_not_taken_for_what_it_looks_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

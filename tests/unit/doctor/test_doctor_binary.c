/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What is said of binaries that are built here: rustc, gcc, clang, musl-gcc with known options. A
 * variant whose compiler is missing is skipped and named. Each verdict is a fact of its options.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/sys.h"
#include "code/disasm.h"
#include "doctor/binary.h"
#include "doctor/binary_priv.h"
#include "doctor/profiles.h"

static char folder[] = "/tmp/as-doctor-XXXXXX";

static const char rust_source[] =
	"use std::collections::HashMap;\n"
	"#[derive(Debug, Clone)] struct Item { name: String, n: u64 }\n"
	"fn parse(s: &str) -> Vec<Item> { s.split(',').enumerate()\n"
	"  .map(|(i, w)| Item { name: w.trim().to_string(), n: i as u64 }).collect() }\n"
	"fn count(items: &[Item]) -> HashMap<String, u64> { let mut m = HashMap::new();\n"
	"  for it in items { *m.entry(it.name.clone()).or_insert(0) += it.n; } m }\n"
	"fn sum(v: &[u64]) -> u64 { let mut s = 0u64; for x in v { s += x * 3; } s }\n"
	"fn sort(v: &mut Vec<u64>) { v.sort(); v.dedup(); }\n"
	"fn main() { let arg = std::env::args().nth(1).unwrap_or(\"a,b,c,a\".to_string());\n"
	"  let items = parse(&arg); let m = count(&items);\n"
	"  let mut v: Vec<u64> = m.values().cloned().collect(); sort(&mut v);\n"
	"  println!(\"{:?} {} {:?}\", v, sum(&v), items); }\n";

static const char c_source[] =
	"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
	"struct item { char name[32]; int n; };\n"
	"static int cmp(const void *a, const void *b)\n"
	"{ const struct item *x = a, *y = b; return x->n - y->n; }\n"
	"static int parse(const char *s, struct item *out, int max)\n"
	"{ int n = 0; while (*s && n < max) { size_t k = strcspn(s, \",\");\n"
	"  memcpy(out[n].name, s, k < 31 ? k : 31); out[n].n = (int)k * n % 7; n++;\n"
	"  s += k + (s[k] == ','); } return n; }\n"
	"static long sum(const struct item *it, int n)\n"
	"{ long s = 0; for (int i = 0; i < n; i++) s += it[i].n * 3; return s; }\n"
	"int collatz(unsigned long n)\n"
	"{ int k = 0; while (n != 1) { n = n & 1 ? 3 * n + 1 : n / 2; k++; } return k; }\n"
	"int main(int argc, char **argv) { struct item it[64] = {0};\n"
	"  int n = parse(argc > 1 ? argv[1] : \"aa,bbb,c,dddd\", it, 64);\n"
	"#ifdef BIG\n"
	"  volatile char big[300000]; big[argc] = 1; n += big[argc];\n"
	"#endif\n"
	"  qsort(it, n, sizeof *it, cmp);\n"
	"  printf(\"%d %ld %d\\n\", n, sum(it, n), collatz(27 + n)); return 0; }\n";

static const char cxx_source[] =
	"#include <map>\n#include <string>\n#include <vector>\n#include <iostream>\n"
	"#include <algorithm>\nstruct S { std::string n; int v; };\n"
	"static std::map<std::string, int> count(const std::vector<S> &v)\n"
	"{ std::map<std::string, int> m; for (auto &s : v) m[s.n] += s.v; return m; }\n"
	"int main(int c, char **a) { std::vector<S> v;\n"
	"  for (int i = 0; i < c * 4; i++) v.push_back({a[i % c], i});\n"
	"  std::sort(v.begin(), v.end(), [](const S &x, const S &y) { return x.v < y.v; });\n"
	"  for (auto &p : count(v)) std::cout << p.first << p.second << \"\\n\"; }\n";

/* ---- building ---- */

static bool quietly(char *const argv[])
{
	int status, null;
	pid_t pid = fork();

	if (pid == 0) {
		null = open("/dev/null", O_RDWR);
		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		if (chdir(folder) == 0)
			execvp(argv[0], argv);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

/* words: "gcc -O2 app.c"; "-o NAME" is added. */
static bool build(const char *name, const char *words)
{
	char text[512], *argv[40];
	size_t n = 0;

	snprintf(text, sizeof text, "%s -o %s", words, name);
	for (char *save, *w = strtok_r(text, " ", &save); w && n < 39;
	     w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	argv[n] = NULL;
	return quietly(argv);
}

static bool run(const char *words)
{
	char text[512], *argv[40];
	size_t n = 0;

	snprintf(text, sizeof text, "%s", words);
	for (char *save, *w = strtok_r(text, " ", &save); w && n < 39;
	     w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	argv[n] = NULL;
	return quietly(argv);
}

static void put(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	assert_int_equal(as_write_file_atomic(path, text, strlen(text), NULL), 0);
}

static const char *path_of(const char *name)
{
	static char path[160];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

/* ---- the table ---- */

enum { ANY = -1 };
#define NO      AS_OPTIMISED_NO
#define YES     AS_OPTIMISED_YES
#define UNKNOWN AS_OPTIMISED_UNKNOWN
#define NONE    AS_DEBUG_NONE
#define LINES   AS_DEBUG_LINES
#define FULL    AS_DEBUG_FULL

struct variant {
	const char *name, *words, *after; /* after: run once it is built */
	int optimised, debug, symtab, is_static, libc;
	int rust;
};
static const struct variant variants[] = {
	{"rs0", "rustc -C opt-level=0 app.rs", NULL, NO, NONE, 1, 0, AS_LIBC_GLIBC, 1},
	{"rs0g", "rustc -C opt-level=0 -g app.rs", NULL, NO, FULL, 1, 0, AS_LIBC_GLIBC, 1},
	{"rs1", "rustc -C opt-level=1 app.rs", NULL, YES, NONE, 1, 0, AS_LIBC_GLIBC, 1},
	{"rs2", "rustc -C opt-level=2 -C debuginfo=1 app.rs", NULL, YES, LINES, 1, 0,
	 AS_LIBC_GLIBC, 1},
	{"rs3", "rustc -C opt-level=3 -C debuginfo=2 app.rs", NULL, YES, FULL, 1, 0,
	 AS_LIBC_GLIBC, 1},
	{"rss", "rustc -C opt-level=s -C debuginfo=line-tables-only app.rs", NULL, YES, LINES,
	 1, 0, AS_LIBC_GLIBC, 1},
	{"rsstrip", "rustc -O -C strip=symbols app.rs", NULL, YES, NONE, 0, 0, AS_LIBC_GLIBC,
	 1},
	{"rs0strip", "rustc -C strip=symbols app.rs", NULL, NO, NONE, 0, 0, AS_LIBC_GLIBC, 1},
	{"rslto", "rustc -O -g -C lto=fat -C codegen-units=1 app.rs", NULL, YES, FULL, 1, 0,
	 AS_LIBC_GLIBC, 1},
	{"rsabort", "rustc -O -C panic=abort app.rs", NULL, YES, NONE, 1, 0, AS_LIBC_GLIBC, 1},
	{"rsv0", "rustc -O -C symbol-mangling-version=v0 app.rs", NULL, YES, NONE, 1, 0,
	 AS_LIBC_GLIBC, 1},
	{"rsassert", "rustc -O -C debug-assertions=on app.rs", NULL, YES, NONE, 1, 0,
	 AS_LIBC_GLIBC, 1},
	{"rsstatic", "rustc -O -C target-feature=+crt-static app.rs", NULL, YES, NONE, 1, 1,
	 AS_LIBC_GLIBC, 1},
	{"rsmusl", "rustc -O --target x86_64-unknown-linux-musl app.rs", NULL, YES, NONE, 1, 1,
	 AS_LIBC_MUSL, 1},
	{"gc0", "gcc -O0 -g app.c", NULL, NO, FULL, 1, 0, AS_LIBC_GLIBC, 0},
	{"gcg", "gcc -Og -g app.c", NULL, YES, FULL, 1, 0, AS_LIBC_GLIBC, 0},
	{"gc1", "gcc -O1 -g1 app.c", NULL, YES, LINES, 1, 0, AS_LIBC_GLIBC, 0},
	{"gc2", "gcc -O2 app.c", NULL, YES, NONE, 1, 0, AS_LIBC_GLIBC, 0},
	{"gc3", "gcc -O3 -g -gz app.c", NULL, YES, FULL, 1, 0, AS_LIBC_GLIBC, 0},
	{"gcs", "gcc -Os -fno-omit-frame-pointer app.c", NULL, YES, NONE, 1, 0, AS_LIBC_GLIBC,
	 0},
	{"gcstrip", "gcc -O2 -g app.c", "strip gcstrip", ANY, NONE, 0, 0, AS_LIBC_GLIBC, 0},
	{"gcstatic", "gcc -O2 -static app.c", NULL, YES, NONE, 1, 1, AS_LIBC_GLIBC, 0},
	{"gcbig", "gcc -O2 -DBIG -fstack-clash-protection app.c", NULL, YES, NONE, 1, 0,
	 AS_LIBC_GLIBC, 0},
	{"gcnoeh", "gcc -O2 -fno-asynchronous-unwind-tables -Wl,--build-id=none app.c", NULL,
	 YES, NONE, 1, 0, AS_LIBC_GLIBC, 0},
	{"gclto", "gcc -O2 -g -flto app.c", NULL, YES, FULL, 1, 0, AS_LIBC_GLIBC, 0},
	{"gcnative", "gcc -O3 -mavx2 -ftree-vectorize app.c", NULL, YES, NONE, 1, 0,
	 AS_LIBC_GLIBC, 0},
	{"cl0", "clang -O0 -g app.c", NULL, NO, FULL, 1, 0, AS_LIBC_GLIBC, 0},
	{"cl1", "clang -O1 -gline-tables-only app.c", NULL, YES, LINES, 1, 0, AS_LIBC_GLIBC, 0},
	{"cl3", "clang -O3 app.c", NULL, YES, NONE, 1, 0, AS_LIBC_GLIBC, 0},
	{"cx0", "g++ -O0 -g app.cc", NULL, NO, FULL, 1, 0, AS_LIBC_GLIBC, 0},
	{"cx2", "g++ -O2 app.cc", NULL, YES, NONE, 1, 0, AS_LIBC_GLIBC, 0},
	{"clx0", "clang++ -O0 app.cc", NULL, NO, NONE, 1, 0, AS_LIBC_GLIBC, 0},
	{"muslc", "musl-gcc -O2 app.c", NULL, YES, ANY, 1, 0, AS_LIBC_MUSL, 0},
	{"muslstatic", "musl-gcc -O2 -static app.c", NULL, YES, ANY, 1, 1, AS_LIBC_MUSL, 0},
};

static bool missing[64];

static const struct variant *find_variant(const char *name)
{
	for (size_t i = 0; i < AS_ARRAY_LEN(variants); i++) {
		if (strcmp(variants[i].name, name) == 0)
			return missing[i] ? NULL : &variants[i];
	}
	fail_msg("no variant '%s'", name);
	return NULL;
}

/* Facts of a variant; skips the test where it could not be built. */
static void facts_of(const char *name, struct as_binary_facts *f)
{
	struct as_error err = {0};

	if (!find_variant(name))
		skip();
	if (as_binary_facts_read(path_of(name), f, &err) < 0)
		fail_msg("%s: %s", name, err.msg);
}

static int make_all(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	put("app.rs", rust_source);
	put("app.c", c_source);
	put("app.cc", cxx_source);
	for (size_t i = 0; i < AS_ARRAY_LEN(variants); i++) {
		const struct variant *v = &variants[i];

		missing[i] = !build(v->name, v->words) || (v->after && !run(v->after));
		if (missing[i])
			print_message("skipped %s: '%s' fails here\n", v->name, v->words);
	}
	return 0;
}

static int remove_all(void **state)
{
	char *argv[] = {"rm", "-rf", folder, NULL};

	(void)state;
	return quietly(argv) ? 0 : -1;
}

static void expect(const char *name, const char *what, int want, int got)
{
	if (want != ANY && want != got)
		fail_msg("%s: %s is %d, not %d", name, what, got, want);
}

/* ---- verdicts ---- */

static void every_build_is_told_as_it_was_made(void **state)
{
	size_t judged = 0;

	(void)state;
	for (size_t i = 0; i < AS_ARRAY_LEN(variants); i++) {
		const struct variant *v = &variants[i];
		struct as_binary_facts f;

		if (missing[i])
			continue;
		assert_int_equal(as_binary_facts_read(path_of(v->name), &f, NULL), 0);
		if (!as_disasm_missing(AS_ARCH_X86_64))
			expect(v->name, "optimised", v->optimised, (int)f.optimised);
		expect(v->name, "debug", v->debug, (int)f.debug);
		expect(v->name, "symtab", v->symtab, f.own_symtab);
		expect(v->name, "is_static", v->is_static, f.is_static);
		expect(v->name, "libc", v->libc, (int)f.libc);
		expect(v->name, "rust", v->rust, f.rust);
		judged++;
		as_binary_facts_clear(&f);
	}
	if (!judged)
		skip();
}

static void the_quick_look_never_accuses_an_optimised_build(void **state)
{
	(void)state;
	if (as_disasm_missing(AS_ARCH_X86_64))
		skip();
	for (size_t i = 0; i < AS_ARRAY_LEN(variants); i++) {
		const struct variant *v = &variants[i];
		bool no;

		if (missing[i])
			continue;
		no = as_binary_optimised(path_of(v->name)) == AS_OPTIMISED_NO;
		if (v->optimised == NO && v->symtab && !no)
			fail_msg("%s passes for optimised", v->name);
		if (v->optimised != NO && no)
			fail_msg("%s is called unoptimised", v->name);
	}
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void the_quick_look_is_quick_for_large_programs(void **state)
{
	static const char *const programs[] = {"/usr/bin/node", "/usr/bin/gdb",
					       "/usr/bin/clang", "/usr/bin/python3",
					       "/proc/self/exe"};

	(void)state;
	for (size_t i = 0; i < AS_ARRAY_LEN(programs); i++) {
		double best = 1e9;

		if (access(programs[i], R_OK) != 0)
			continue;
		for (int k = 0; k < 3; k++) {
			double start = cpu_ms();

			if (i + 1 < AS_ARRAY_LEN(programs))
				assert_int_not_equal(as_binary_optimised(programs[i]),
						     AS_OPTIMISED_NO);
			else
				(void)as_binary_optimised(programs[i]);
			best = AS_MIN(best, cpu_ms() - start);
		}
		/* 5 ms is what is promised; a sanitizer's build takes several times that */
		if (best > 50)
			fail_msg("%s takes %.1f ms", programs[i], best);
	}
}

/* ---- single facts ---- */

static void rust_tells_its_version_and_linker(void **state)
{
	struct as_binary_facts f;

	(void)state;
	facts_of("rs3", &f);
	assert_non_null(f.rustc);
	assert_non_null(strstr(f.rustc, "1."));
	assert_true(f.codegen_units > 0);
	assert_true(f.names_legacy + f.names_v0 > 10);
	assert_false(f.debug_assertions);
	assert_true(f.lto_known && !f.lto);
	as_binary_facts_clear(&f);
}

static void debug_assertions_are_seen_in_optimised_code(void **state)
{
	struct as_binary_facts f;

	(void)state;
	facts_of("rsassert", &f);
	/* of both, std of rustc before 1.70 leaves only the overflow checks to be seen */
	assert_true(f.debug_assertions || f.overflow_checks);
	assert_int_equal(f.optimised, as_disasm_missing(AS_ARCH_X86_64) ? UNKNOWN : YES);
	as_binary_facts_clear(&f);
}

static void link_time_optimisation_is_seen(void **state)
{
	struct as_binary_facts f;

	(void)state;
	facts_of("rslto", &f);
	/* rustc 1.63 leaves no unit of std to compare with */
	assert_true(f.lto || !f.lto_known);
	as_binary_facts_clear(&f);
	facts_of("gclto", &f);
	assert_true(f.lto_known && f.lto);
	as_binary_facts_clear(&f);
}

static void main_of_panic_abort_has_no_unwind_table(void **state)
{
	struct as_binary_facts f;

	(void)state;
	facts_of("rsabort", &f);
	assert_true(f.main_without_fde);
	assert_string_equal(f.without_fde_example, "main");
	as_binary_facts_clear(&f);
	facts_of("rs3", &f);
	assert_false(f.main_without_fde);
	as_binary_facts_clear(&f);
}

static void code_without_unwind_tables_is_found(void **state)
{
	struct as_binary_facts f;

	(void)state;
	facts_of("gcnoeh", &f);
	assert_true(f.main_without_fde);
	assert_true(f.without_fde_bytes > f.text_bytes / 4);
	assert_int_equal(f.build_id.len, 0);
	as_binary_facts_clear(&f);
}

static void a_large_frame_is_found_behind_its_stack_probes(void **state)
{
	struct as_binary_facts f;

	(void)state;
	if (as_disasm_missing(AS_ARCH_X86_64))
		skip();
	facts_of("gcbig", &f);
	assert_int_equal(f.nbig, 1);
	assert_string_equal(f.frame[0].name, "main");
	assert_true(f.frame[0].bytes >= 295000 && f.frame[0].bytes < 320000);
	as_binary_facts_clear(&f);
	facts_of("gc2", &f);
	assert_int_equal(f.nbig, 0);
	as_binary_facts_clear(&f);
}

static void frame_pointers_are_counted(void **state)
{
	struct as_binary_facts f;

	(void)state;
	if (as_disasm_missing(AS_ARCH_X86_64))
		skip();
	facts_of("gcs", &f);
	assert_true(f.own_fp_share > 0.9);
	as_binary_facts_clear(&f);
	facts_of("gc2", &f);
	assert_true(f.own_fp_share < 0.1);
	as_binary_facts_clear(&f);
}

static void vector_extensions_are_counted(void **state)
{
	struct as_binary_facts f;

	(void)state;
	if (as_disasm_missing(AS_ARCH_X86_64))
		skip();
	facts_of("gcnative", &f);
	assert_true(f.avx_share > 0);
	as_binary_facts_clear(&f);
	facts_of("gc3", &f);
	assert_true(f.avx_share == 0);
	as_binary_facts_clear(&f);
}

static void a_missing_split_file_is_named(void **state)
{
	struct as_binary_facts f;

	(void)state;
	if (!build("split", "gcc -O2 -g -gsplit-dwarf app.c"))
		skip();
	assert_int_equal(as_binary_facts_read(path_of("split"), &f, NULL), 0);
	assert_int_equal(f.split_units, 1);
	assert_int_equal(f.split_missing, 0);
	assert_int_equal(f.debug, FULL);
	as_binary_facts_clear(&f);
	assert_true(run("find . -name *.dwo -delete"));
	assert_int_equal(as_binary_facts_read(path_of("split"), &f, NULL), 0);
	assert_int_equal(f.split_missing, 1);
	assert_non_null(strstr(f.split_example, ".dwo"));
	as_binary_facts_clear(&f);
}

static void a_separate_debug_file_counts_as_the_binarys_own(void **state)
{
	struct as_binary_facts f;

	(void)state;
	if (!build("sep", "gcc -O2 -g app.c") ||
	    !run("objcopy --only-keep-debug sep sep.debug") || !run("strip sep") ||
	    !run("objcopy --add-gnu-debuglink=sep.debug sep"))
		skip();
	assert_int_equal(as_binary_facts_read(path_of("sep"), &f, NULL), 0);
	assert_int_equal(f.debug, FULL);
	assert_true(f.symtab && !f.own_symtab);
	assert_non_null(strstr(f.debug_file, "sep.debug"));
	as_binary_facts_clear(&f);
	assert_true(run("rm sep.debug"));
	assert_int_equal(as_binary_facts_read(path_of("sep"), &f, NULL), 0);
	assert_int_equal(f.debug, NONE);
	assert_true(f.debuglink && !f.symtab);
	as_binary_facts_clear(&f);
}

static void assembly_alone_is_not_called_unoptimised(void **state)
{
	struct as_binary_facts f;

	(void)state;
	put("hand.s", ".text\n.globl work\n.type work,@function\nwork:\n"
		      ".rept 40\nadd %rdi,%rax\nimul %rsi,%rax\n.endr\nret\n.size work,.-work\n"
		      ".section .note.GNU-stack,\"\"\n");
	if (!build("hand.so", "gcc -shared hand.s"))
		skip();
	assert_int_equal(as_binary_facts_read(path_of("hand.so"), &f, NULL), 0);
	assert_int_not_equal(f.optimised, NO);
	assert_true(f.library);
	as_binary_facts_clear(&f);
}

static void programs_of_the_system_are_not_called_unoptimised(void **state)
{
	static const char *const programs[] = {
		"/usr/bin/python3",
		"/usr/bin/sqlite3",
		"/usr/bin/redis-server",
		"/bin/busybox",
		"/usr/bin/rg",
		"/usr/bin/git",
		"/bin/bash",
		"/usr/bin/busybox",
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/bin/perl",
		"/usr/bin/fdfind",
		"/usr/bin/clang",
		"/lib/x86_64-linux-gnu/libcrypto.so.3",
	};

	(void)state;
	for (size_t i = 0; i < AS_ARRAY_LEN(programs); i++) {
		struct as_binary_facts f;

		if (access(programs[i], R_OK) != 0 ||
		    as_binary_facts_read(programs[i], &f, NULL) < 0)
			continue;
		if (f.optimised == NO || f.optimised == AS_OPTIMISED_PARTLY)
			fail_msg("%s is called unoptimised: %zu of %zu", programs[i],
				 f.unopt_own, f.judged_own);
		as_binary_facts_clear(&f);
	}
}

/* ---- damage ---- */

static void every_cut_is_survived(void **state)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	(void)state;
	if (!find_variant("cx0"))
		skip();
	assert_int_equal(as_read_file(path_of("cx0"), 64 << 20, &b, NULL), 0);
	for (size_t k = 0; k <= 64; k++) {
		struct as_binary_facts f;
		const char *path = path_of("cut");

		assert_int_equal(as_write_file_atomic(path, b.p, b.len * k / 64, NULL), 0);
		(void)as_binary_optimised(path);
		if (as_binary_facts_read(path, &f, NULL) == 0)
			as_binary_facts_clear(&f);
	}
}

static void bytes_that_are_wrong_are_survived(void **state)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	uint64_t seed = 12345;

	(void)state;
	if (!find_variant("gc0"))
		skip();
	assert_int_equal(as_read_file(path_of("gc0"), 64 << 20, &b, NULL), 0);
	for (unsigned k = 0; k < 200; k++) {
		struct as_binary_facts f;
		const char *path = path_of("hurt");
		char *copy = malloc(b.len);

		assert_non_null(copy);
		memcpy(copy, b.p, b.len);
		for (unsigned i = 0; i < 40; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			copy[(seed >> 20) % (i % 4 ? b.len : 1024)] = (char)(seed >> 55);
		}
		assert_int_equal(as_write_file_atomic(path, copy, b.len, NULL), 0);
		(void)as_binary_optimised(path);
		if (as_binary_facts_read(path, &f, NULL) == 0)
			as_binary_facts_clear(&f);
		free(copy);
	}
}

/* ---- Cargo.toml ---- */

static void profile(const char *text, const char *name, struct as_cargo_profile *p)
{
	as_cargo_profile_read(text, strlen(text), name, p);
}

static void profiles_of_a_manifest_are_read(void **state)
{
	static const char text[] =
		"[package]\nname = \"app\"\ndebug = 7\n\n"
		"[profile.release]  # ours\ndebug = \"line-tables-only\" # x\n"
		"strip=false\n lto = 'thin'\ncodegen-units = 1\n"
		"[profile.release.package.foo]\nopt-level = 0\n"
		"[profile.prof]\ninherits = \"release\"\nopt-level = \"s\"\n"
		"[[bin]]\nlto = true\n";
	struct as_cargo_profile p;

	(void)state;
	profile(text, "release", &p);
	assert_true(p.section);
	assert_string_equal(p.debug, "line-tables-only");
	assert_string_equal(p.strip, "false");
	assert_string_equal(p.lto, "thin");
	assert_string_equal(p.codegen_units, "1");
	assert_string_equal(p.opt_level, "");
	profile(text, "prof", &p);
	assert_string_equal(p.opt_level, "s");
	assert_string_equal(p.debug, "line-tables-only");
	profile(text, "bench", &p);
	assert_string_equal(p.lto, "thin");
	profile("profile.release.debug = true\n[profile]\ndev.opt-level = 1\n", "release", &p);
	assert_string_equal(p.debug, "true");
	profile("[profile]\ndev.opt-level = 1\n", "dev", &p);
	assert_string_equal(p.opt_level, "1");
}

static void damaged_manifests_say_nothing(void **state)
{
	static const char *const texts[] = {"",
					    "[",
					    "[profile.release",
					    "=",
					    "[]\n=\n",
					    "[profile.release]\ndebug",
					    "\n\n[profile.release]\n\"\" = \"",
					    "[profile.release]\ndebug ="};
	struct as_cargo_profile p;

	(void)state;
	for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++) {
		profile(texts[i], "release", &p);
		assert_string_equal(p.debug, "");
	}
}

/* What every Rust program has linked in is not its own, with the suffixes of LLVM and gcc, too. */
static void test_own(void **state)
{
	static const char *const own[] = {"main",
					  "_ZN4main4fill17h54f59cf0751aa64aE",
					  "_ZN4main4fill17h54f59cf0751aa64aE.llvm.123",
					  "_ZN3foo3barEv",
					  "_RNvCs1234_4main4fill",
					  "__divide",
					  NULL};
	static const char *const theirs[] = {
		"_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17h8f41de295c31cf57E.llvm."
		"146",
		"_ZN4core3ptr55drop_in_place$LT$std..io..Error$GT$17h4ba014df6338c067E",
		"_ZN5adler5adler6update17h4ba014df6338c067E",
		"_RNvCs1234_4core4fill",
		"rust_begin_unwind",
		"rust_oom",
		"__rdl_alloc",
		"__rust_start_panic",
		"frame_dummy",
		"__udivti3",
		"_start",
		NULL};

	for (const char *const *s = own; *s; s++)
		assert_true(as_binary_is_own(*s));
	for (const char *const *s = theirs; *s; s++)
		assert_false(as_binary_is_own(*s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),
		cmocka_unit_test(every_build_is_told_as_it_was_made),
		cmocka_unit_test(the_quick_look_never_accuses_an_optimised_build),
		cmocka_unit_test(the_quick_look_is_quick_for_large_programs),
		cmocka_unit_test(rust_tells_its_version_and_linker),
		cmocka_unit_test(debug_assertions_are_seen_in_optimised_code),
		cmocka_unit_test(link_time_optimisation_is_seen),
		cmocka_unit_test(main_of_panic_abort_has_no_unwind_table),
		cmocka_unit_test(code_without_unwind_tables_is_found),
		cmocka_unit_test(a_large_frame_is_found_behind_its_stack_probes),
		cmocka_unit_test(frame_pointers_are_counted),
		cmocka_unit_test(vector_extensions_are_counted),
		cmocka_unit_test(a_missing_split_file_is_named),
		cmocka_unit_test(a_separate_debug_file_counts_as_the_binarys_own),
		cmocka_unit_test(assembly_alone_is_not_called_unoptimised),
		cmocka_unit_test(programs_of_the_system_are_not_called_unoptimised),
		cmocka_unit_test(every_cut_is_survived),
		cmocka_unit_test(bytes_that_are_wrong_are_survived),
		cmocka_unit_test(profiles_of_a_manifest_are_read),
		cmocka_unit_test(damaged_manifests_say_nothing),
	};

	return cmocka_run_group_tests(tests, make_all, remove_all);
}

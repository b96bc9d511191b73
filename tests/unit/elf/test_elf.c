/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Object files made by real tools: layouts, compression, symbols, damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include "fixture.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "elf/elf.h"

static const char program[] =
	"#include <stdio.h>\n"
	"__attribute__((noinline)) int counted(int x) { return x * 7 + 1; }\n"
	"static __attribute__((noinline, used)) int hidden_one(int x) { return counted(x) ^ 5; "
	"}\n"
	"int data_word = 3;\n"
	"__thread int tls_word = 4;\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	FILE *f = fopen(\"/proc/self/maps\", \"r\");\n"
	"	char line[512];\n"
	"	printf(\"counted %lx\\n\", (unsigned long)counted);\n"
	"	while (f && fgets(line, sizeof line, f))\n"
	"		fputs(line, stdout);\n"
	"	return hidden_one(argc) == 123456;\n"
	"}\n";

struct wanted {
	const char *name;
	struct as_elf_symbol found;
	unsigned count, total, mini, versioned, mapping, odd;
};

static void on_symbol(void *ctx, const struct as_elf_symbol *s)
{
	struct wanted *w = ctx;

	w->total++;
	w->mini += s->mini;
	w->versioned += strchr(s->name, '@') != NULL;
	w->mapping += s->name[0] == '$';
	w->odd += !s->name[0];
	if (w->name && strcmp(s->name, w->name) == 0) {
		w->found = *s;
		w->count++;
	}
}

static struct as_elf *must_open(const char *path)
{
	struct as_error err = {0};
	struct as_elf *e = NULL;

	if (as_elf_open(path, &e, &err) < 0)
		fail_msg("%s", err.msg);
	return e;
}

static struct wanted find_symbol(struct as_elf *e, const char *name)
{
	struct wanted w = {.name = name};

	assert_int_equal(as_elf_each_symbol(e, on_symbol, &w, NULL), AS_OK);
	return w;
}

/*
 * Runs the program, which prints the address of counted() and its own maps, and checks that the
 * bias of its executable mapping leads from that address back to the symbol.
 */
static void check_translation(const char *exe)
{
	struct as_elf *e = must_open(fx_path(exe));
	struct wanted w = find_symbol(e, "counted");
	unsigned long at = 0, start, end, pgoff;
	char line[1024], perm[8];
	bool held = false;
	uint64_t bias, svma;
	FILE *f;

	assert_true(w.count >= 1);
	assert_int_equal(fx_sh("./%s > out.txt", exe), 0);
	f = fopen(fx_path("out.txt"), "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		if (sscanf(line, "counted %lx", &at) == 1 ||
		    sscanf(line, "%lx-%lx %7s %lx", &start, &end, perm, &pgoff) != 4 ||
		    perm[2] != 'x' || at < start || at >= end)
			continue;
		held = true;
		assert_true(as_elf_bias(e, start, end - start, pgoff, &bias));
		assert_int_equal(at - bias, w.found.svma);
		assert_true(as_elf_svma_of_off(e, at - start + pgoff, &svma));
		assert_int_equal(svma, w.found.svma);
	}
	fclose(f);
	assert_true(held);
	if (as_elf_is_exec(e))
		assert_int_equal(bias, 0);
	as_elf_close(e);
}

static void layout(const char *tool, const char *cmd)
{
	fx_need(tool);
	fx_write("p.c", program);
	if (fx_sh("%s -o p", cmd) != 0)
		fx_skip("'%s' does not work here", cmd);
	check_translation("p");
}

static void addresses_translate_in_a_pie(void **st)
{
	layout("gcc", "gcc -O1 p.c");
}
static void addresses_translate_in_a_fixed_executable(void **st)
{
	layout("gcc", "gcc -O1 -no-pie p.c");
}
static void addresses_translate_in_a_static_executable(void **st)
{
	layout("gcc", "gcc -O1 -static p.c");
}
static void addresses_translate_in_a_static_pie(void **st)
{
	layout("gcc", "gcc -O1 -static-pie p.c");
}
static void addresses_translate_in_a_musl_executable(void **st)
{
	layout("musl-gcc", "musl-gcc -O1 -static p.c");
}
static void addresses_translate_in_the_layout_of_lld(void **st)
{
	layout("ld.lld", "clang -O1 -fuse-ld=lld p.c");
}
static void addresses_translate_without_a_separate_read_only_segment(void **st)
{
	layout("ld.lld", "clang -O1 -fuse-ld=lld -Wl,--no-rosegment p.c");
}
static void addresses_translate_with_the_text_at_a_far_address(void **st)
{
	layout("gcc", "gcc -O1 -Wl,-Ttext-segment=0x10000000 p.c");
}
static void addresses_translate_with_huge_page_alignment(void **st)
{
	layout("gcc", "gcc -O1 -Wl,-z,max-page-size=0x200000 p.c");
}
static void addresses_translate_with_code_and_headers_in_one_segment(void **st)
{
	layout("gcc", "gcc -O1 -Wl,-z,noseparate-code p.c");
}
static void addresses_translate_with_several_executable_segments(void **st)
{
	fx_write("x.ld", "SECTIONS { .hot 0x30000000 : { *(.hot) } } INSERT AFTER .text;");
	fx_write("hot.c",
		 "__attribute__((section(\".hot\"))) int hot(int x) { return x + 2; }");
	layout("gcc", "gcc -O1 -no-pie p.c hot.c -Wl,-T,x.ld");
}

static void a_linkers_address_need_not_equal_its_offset(void **st)
{
	const struct as_elf_segment *seg;
	size_t n, differ = 0;
	struct as_elf *e;

	fx_need("ld.lld");
	fx_write("p.c", program);
	assert_int_equal(fx_sh("clang -O1 -fuse-ld=lld p.c -o p"), 0);
	e = must_open(fx_path("p"));
	seg = as_elf_segments(e, &n);
	for (size_t i = 0; i < n; i++)
		differ += seg[i].exec && seg[i].svma != seg[i].off;
	assert_true(differ > 0);
	as_elf_close(e);
}

static void own_libraries_translate_as_the_loader_says(void **st)
{
	Dl_info info;
	struct link_map *lm;
	struct as_elf *e;
	struct wanted w;

	assert_true(
		dladdr1((void *)(uintptr_t)&strerror, &info, (void **)&lm, RTLD_DL_LINKMAP));
	e = must_open(info.dli_fname);
	w = find_symbol(e, "strerror");
	assert_true(w.count > 0);
	assert_int_equal(w.found.svma + lm->l_addr, (uintptr_t)&strerror);
	assert_true(as_elf_build_id(e)->len == 20);
	as_elf_close(e);
}

static void debug_sections_decompress(void **st)
{
	static const char *const modes[] = {"none", "zlib", "zstd", "zlib-gnu"};
	struct as_buf plain = {0};

	fx_need("gcc");
	fx_write("p.c", program);
	for (size_t i = 0; i < AS_ARRAY_LEN(modes); i++) {
		const uint8_t *p;
		struct as_elf *e;
		size_t n;

		if (fx_sh("gcc -g p.c -o p && objcopy --compress-debug-sections=%s p pc",
			  modes[i])) {
			print_message("skipped: objcopy cannot do %s\n", modes[i]);
			continue;
		}
		e = must_open(fx_path("pc"));
		assert_int_equal(as_elf_section_data(e, ".debug_info", &p, &n, NULL), AS_OK);
		assert_int_equal(as_elf_find_section(e, ".debug_info")->compressed, i > 0);
		assert_int_equal(as_elf_find_section(e, ".debug_info")->size_bytes, n);
		if (i == 0)
			as_buf_add(&plain, p, n);
		assert_int_equal(n, plain.len);
		assert_memory_equal(p, plain.p, n);
		as_elf_drop_caches(e);
		assert_int_equal(as_elf_section_data(e, ".debug_info", &p, &n, NULL), AS_OK);
		assert_memory_equal(p, plain.p, n);
		as_elf_close(e);
	}
	as_buf_clear(&plain);
}

static void a_compressed_section_may_not_claim_the_moon(void **st)
{
	struct as_error err = {0};
	const struct as_elf_section *s;
	unsigned char *bytes;
	const uint8_t *p;
	struct as_elf *e;
	size_t n, got;

	fx_need("gcc");
	fx_write("p.c", program);
	assert_int_equal(fx_sh("gcc -g p.c -Wl,--compress-debug-sections=zlib -o p"), 0);
	bytes = fx_read("p", &n);
	e = must_open(fx_path("p"));
	s = as_elf_find_section(e, ".debug_info");
	assert_non_null(s);
	memset(bytes + s->off + 8, 0, 8);
	/* 3.75 GiB: below the limit of a section, not of the ratio */
	bytes[s->off + 8 + 3] = 0xf0;
	as_elf_close(e);
	assert_int_equal(as_elf_open_mem(bytes, n, "p", &e, NULL), AS_OK);
	assert_int_equal(as_elf_section_data(e, ".debug_info", &p, &got, &err), AS_E_LIMIT);
	assert_non_null(strstr(err.msg, ".debug_info"));
	as_elf_close(e);
	free(bytes);
}

static void a_compressed_section_may_lie_at_an_odd_offset(void **st)
{
	const struct as_elf_section *s;
	unsigned char *bytes, *moved;
	const uint8_t *p, *q;
	struct as_elf *e, *odd;
	size_t n = 0, got, again, header;
	uint64_t off;

	fx_need("gcc");
	fx_write("p.c", program);
	assert_int_equal(fx_sh("gcc -g p.c -Wl,--compress-debug-sections=zlib -o p"), 0);
	bytes = fx_read("p", &n);
	e = must_open(fx_path("p"));
	s = as_elf_find_section(e, ".debug_info");
	assert_true(s && s->compressed);
	/* a copy of the file after itself, one byte off; only this section's header points there */
	moved = calloc(1, 2 * n + 1);
	memcpy(moved, bytes, n);
	memcpy(moved + n + !(n & 1), bytes, n);
	off = n + !(n & 1) + s->off;
	assert_true(s->off % 2 || off % 2);
	header = as_get_le64(bytes + 40) + 64 * (size_t)(s - as_elf_sections(e, &got));
	memcpy(moved + header + 24, &off, 8);
	assert_int_equal(as_elf_open_mem(moved, 2 * n + 1, "p", &odd, NULL), AS_OK);
	assert_int_equal(as_elf_section_data(e, ".debug_info", &p, &got, NULL), AS_OK);
	assert_int_equal(as_elf_section_data(odd, ".debug_info", &q, &again, NULL), AS_OK);
	assert_int_equal(got, again);
	assert_memory_equal(p, q, got);
	as_elf_close(odd);
	as_elf_close(e);
	free(moved);
	free(bytes);
}

static void dynamic_symbols_need_no_section_headers(void **st)
{
	unsigned char *bytes;
	struct as_elf *e;
	size_t n = 0;

	fx_need("gcc");
	fx_write("d.c",
		 "int exported_one(int x) { return x; } int exported_two(void) { return 2; }");
	assert_int_equal(fx_sh("gcc -shared -fPIC d.c -o libd.so"), 0);
	bytes = fx_read("libd.so", &n);
	memset(bytes + 40, 0, 8); /* e_shoff */
	memset(bytes + 60, 0, 4); /* e_shnum, e_shstrndx */
	assert_int_equal(as_elf_open_mem(bytes, n, "libd.so", &e, NULL), AS_OK);
	assert_int_equal(find_symbol(e, "exported_one").count, 1);
	assert_true(find_symbol(e, "exported_two").found.dynamic);
	assert_int_equal(as_elf_build_id(e)->len, 20);
	as_elf_close(e);
	free(bytes);
}

/* 200,000 symbols that share one name of 100,000 bytes: 20 GB of text in a file of 5 MB. */
static void shared_names_are_not_delivered_without_end(void **st)
{
	enum { NSYM = 200000, NAME = 100000 };
	size_t syms = 64 * 4, str = syms + 24 * (size_t)NSYM, end = str + NAME + 2;
	unsigned char *b = calloc(1, end);
	uint64_t v[] = {64, syms, 24 * (uint64_t)NSYM, str, NAME + 2};
	struct wanted w = {0};
	struct as_elf *e;

	memcpy(b, "\177ELF\2\1\1", 7);
	memcpy(b + 16, "\3\0\76\0\1", 5);
	memcpy(b + 40, &v[0], 8);
	memcpy(b + 52, "\100\0\70\0\0\0\100\0\3\0\2", 11);
	b[128 + 4] = 2; /* SHT_SYMTAB, its strings are section 2 */
	b[128 + 40] = 2;
	memcpy(b + 128 + 24, &v[1], 16);
	b[192 + 4] = 3; /* SHT_STRTAB */
	memcpy(b + 192 + 24, &v[3], 16);
	memset(b + str + 1, 'a', NAME);
	for (size_t i = 0; i < NSYM; i++) {
		b[syms + 24 * i] = 1;
		b[syms + 24 * i + 4] = 2; /* STT_FUNC */
		b[syms + 24 * i + 6] = 1;
	}
	assert_int_equal(as_elf_open_mem(b, end, "shared", &e, NULL), AS_OK);
	as_elf_each_symbol(e, on_symbol, &w, NULL);
	assert_in_range(w.total, 100, 1000);
	as_elf_close(e);
	free(b);
}

static void symbols_have_no_versions_and_no_mapping_symbols(void **st)
{
	struct as_elf *e;
	struct wanted w;

	fx_need("gcc");
	fx_write("v.c", "__asm__(\".symver old_f, f@V1\\n.symver new_f, f@@V2\");\n"
			"int old_f(void) { return 1; } int new_f(void) { return 2; }\n"
			"static int impl(void) { return 3; }\n"
			"static int (*pick(void))(void) { return impl; }\n"
			"int dispatched(void) __attribute__((ifunc(\"pick\")));\n"
			"__thread int tls_word = 4; int plain_data = 1;\n"
			"__asm__(\"$x.fake: $d: nop\");\n");
	fx_write("v.map", "V1 { global: f; }; V2 { global: f; dispatched; plain_data; } V1;");
	assert_int_equal(fx_sh("gcc -shared -fPIC v.c -Wl,--version-script=v.map -o libv.so"),
			 0);
	e = must_open(fx_path("libv.so"));
	w = find_symbol(e, "f");
	assert_true(w.count >= 2);
	assert_true(w.found.func);
	assert_int_equal(w.versioned, 0);
	assert_int_equal(w.mapping, 0);
	assert_int_equal(w.odd, 0);
	w = find_symbol(e, "dispatched");
	assert_true(w.count > 0 && w.found.ifunc && w.found.func);
	w = find_symbol(e, "plain_data");
	assert_true(w.count > 0 && !w.found.func);
	assert_int_equal(find_symbol(e, "tls_word").count, 0);
	assert_int_equal(find_symbol(e, "v.c").count, 0);
	as_elf_close(e);
}

static void mini_debug_info_gives_the_stripped_symbols_back(void **st)
{
	struct as_elf *e;
	struct wanted w;

	fx_need("xz");
	fx_need("gcc");
	fx_write("p.c", program);
	assert_int_equal(fx_sh("gcc -g p.c -o p && objcopy --strip-debug p mini &&"
			       "objcopy --only-keep-debug mini mini.dbg && xz -k mini.dbg &&"
			       "strip -s p &&"
			       "objcopy --add-section .gnu_debugdata=mini.dbg.xz p"),
			 0);
	e = must_open(fx_path("p"));
	w = find_symbol(e, "hidden_one");
	assert_int_equal(w.count, 1);
	assert_true(w.found.mini && w.found.func && w.found.size_bytes > 0);
	as_elf_close(e);
}

static void the_same_build_id_is_found_with_and_without_program_headers(void **st)
{
	struct as_build_id a, b;
	struct as_elf *e;

	fx_need("gcc");
	fx_write("p.c", program);
	assert_int_equal(fx_sh("gcc -g p.c -o p && objcopy --only-keep-debug p p.dbg"), 0);
	e = must_open(fx_path("p"));
	a = *as_elf_build_id(e);
	as_elf_close(e);
	e = must_open(fx_path("p.dbg"));
	b = *as_elf_build_id(e);
	as_elf_close(e);
	assert_int_equal(a.len, 20);
	assert_memory_equal(&a, &b, sizeof a);
}

static void content_ids_tell_builds_without_build_id_apart(void **st)
{
	struct as_build_id a, b, c;
	struct as_elf *e;

	fx_need("gcc");
	fx_write("p.c", program);
	assert_int_equal(fx_sh("gcc -Wl,--build-id=none p.c -o p1;"
			       "sed 's/x \\* 7/x * 9/' p.c > q.c;"
			       "cp q.c p.c; gcc -Wl,--build-id=none p.c -o p2"),
			 0);
	e = must_open(fx_path("p1"));
	assert_int_equal(as_elf_build_id(e)->len, 0);
	as_elf_content_id(e, &a);
	as_elf_content_id(e, &b);
	as_elf_close(e);
	e = must_open(fx_path("p2"));
	as_elf_content_id(e, &c);
	as_elf_close(e);
	assert_int_equal(a.len, 16);
	assert_memory_equal(&a, &b, sizeof a);
	assert_memory_not_equal(&a, &c, sizeof a);
}

static void foreign_kinds_are_refused_by_name(void **st)
{
	static const struct {
		unsigned at, value;
		const char *word;
	} cases[] = {{4, 1, "32-bit"}, {5, 2, "big-endian"}, {0, 0, "not an ELF"}};
	unsigned char *bytes;
	size_t n = 0;

	fx_need("gcc");
	fx_write("p.c", program);
	assert_int_equal(fx_sh("gcc p.c -o p"), 0);
	bytes = fx_read("p", &n);
	for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
		unsigned char saved = bytes[cases[i].at];
		struct as_error err = {0};
		struct as_elf *e = NULL;

		bytes[cases[i].at] = (unsigned char)cases[i].value;
		assert_true(as_elf_open_mem(bytes, n, "thing", &e, &err) < 0);
		assert_non_null(strstr(err.msg, cases[i].word));
		assert_non_null(strstr(err.msg, "'thing'"));
		bytes[cases[i].at] = saved;
	}
	free(bytes);
}

static void what_is_no_file_is_refused_without_hanging(void **st)
{
	struct as_error err = {0};
	struct as_elf *e = NULL;

	assert_int_equal(fx_sh("mkfifo pipe; : > empty"), 0);
	assert_int_equal(as_elf_open(fx_path("pipe"), &e, &err), AS_E_FORMAT);
	assert_int_equal(as_elf_open(fx_path("empty"), &e, &err), AS_E_FORMAT);
	assert_int_equal(as_elf_open(fx_dir(), &e, &err), AS_E_FORMAT);
	assert_int_equal(as_elf_open(fx_path("absent"), &e, &err), AS_E_NOTFOUND);
}

static void the_vdso_is_read_from_memory(void **st)
{
	unsigned long base = getauxval(AT_SYSINFO_EHDR);
	struct as_error err = {0};
	struct as_elf *e;

	if (!base)
		fx_skip("this kernel gives no vDSO");
	if (as_elf_open_mem((void *)base, 2 * 4096, "[vdso]", &e, &err) < 0)
		fail_msg("%s", err.msg);
	assert_true(find_symbol(e, "__vdso_clock_gettime").count > 0);
	as_elf_close(e);
}

/* Everything that reads from an object; used on damaged ones. */
static void exercise(const void *p, size_t n)
{
	struct as_build_id id;
	struct as_elf *e;
	struct wanted w = {0};
	const uint8_t *d;
	size_t nsec, nd;
	uint64_t v;

	if (as_elf_open_mem(p, n, "damaged", &e, NULL) < 0)
		return;
	as_elf_content_id(e, &id);
	as_elf_each_symbol(e, on_symbol, &w, NULL);
	as_elf_sections(e, &nsec);
	for (size_t i = 0; i < nsec; i++) {
		volatile uint8_t sum = 0;

		if (as_elf_section_data(e, as_elf_sections(e, &nsec)[i].name, &d, &nd, NULL) <
		    0)
			continue;
		for (size_t k = 0; k < nd; k++)
			sum ^= d[k];
	}
	as_elf_bias(e, 0x7f0000001000, 0x2000, 0x1000, &v);
	as_elf_svma_of_off(e, 0x1000, &v);
	d = as_elf_at(e, as_elf_entry(e), 16);
	if (d)
		w.odd += d[15];
	as_elf_drop_caches(e);
	as_elf_close(e);
}

static unsigned char *small_object(size_t *ret_n)
{
	fx_write("s.c", "int one(int x) { return x; } static int two(int x) { return x + 1; }\n"
			"int (*keep)(int) = two;");
	if (fx_sh("gcc -g -shared -fPIC -nostdlib s.c -o s.full &&"
		  "objcopy --only-keep-debug s.full m && xz -k -f m;"
		  "gcc -g -shared -fPIC -nostdlib s.c -Wl,--compress-debug-sections=zlib -o s "
		  "&&"
		  "if [ -e m.xz ]; then objcopy --add-section .gnu_debugdata=m.xz s; fi"))
		return NULL;
	return fx_read("s", ret_n);
}

static void a_file_cut_at_any_byte_is_survived(void **st)
{
	unsigned char *bytes;
	size_t n = 0;

	fx_need("gcc");
	bytes = small_object(&n);
	assert_non_null(bytes);
	for (size_t i = 0; i < n; i++) {
		/* exact allocations, so that a sanitizer sees a read past the end */
		unsigned char *cut = malloc(i ? i : 1);

		memcpy(cut, bytes, i);
		exercise(cut, i);
		free(cut);
	}
	free(bytes);
}

static void random_damage_is_survived(void **st)
{
	unsigned char *bytes, *copy;
	uint64_t seed = 0x9e3779b97f4a7c15ull;
	size_t n = 0;

	fx_need("gcc");
	bytes = small_object(&n);
	assert_non_null(bytes);
	copy = malloc(n);
	for (int round = 0; round < 4000; round++) {
		memcpy(copy, bytes, n);
		for (int k = 0; k <= round % 24; k++) {
			size_t at;

			seed = as_mix64(seed + 1);
			/* headers are where damage tells */
			at = round % 2   ? seed % n
			     : round % 4 ? seed % 600
					 : n - 1 - seed % 2400 % n;
			copy[at] = (unsigned char)(seed >> 40);
		}
		exercise(copy, n);
	}
	free(copy);
	free(bytes);
}

static void a_large_file_that_shrinks_reads_as_zeros(void **st)
{
	volatile uint8_t sum = 0;
	const uint8_t *p;
	struct as_elf *e;
	size_t n;

	fx_need("gcc");
	fx_write("big.c",
		 "const char filler[8 << 20] = {1}; int main(void) { return filler[9]; }");
	assert_int_equal(fx_sh("gcc big.c -o big"), 0);
	e = must_open(fx_path("big"));
	assert_int_equal(as_elf_section_data(e, ".rodata", &p, &n, NULL), AS_OK);
	assert_true(n >= 8u << 20);
	assert_false(as_elf_shrunk(e));
	assert_int_equal(truncate(fx_path("big"), 4096), 0);
	for (size_t i = 0; i < n; i += 512)
		sum |= p[i];
	assert_int_equal(sum, 0);
	assert_true(as_elf_shrunk(e));
	as_elf_close(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_translate_in_a_pie),
		cmocka_unit_test(addresses_translate_in_a_fixed_executable),
		cmocka_unit_test(addresses_translate_in_a_static_executable),
		cmocka_unit_test(addresses_translate_in_a_static_pie),
		cmocka_unit_test(addresses_translate_in_a_musl_executable),
		cmocka_unit_test(addresses_translate_in_the_layout_of_lld),
		cmocka_unit_test(addresses_translate_without_a_separate_read_only_segment),
		cmocka_unit_test(addresses_translate_with_the_text_at_a_far_address),
		cmocka_unit_test(addresses_translate_with_huge_page_alignment),
		cmocka_unit_test(addresses_translate_with_code_and_headers_in_one_segment),
		cmocka_unit_test(addresses_translate_with_several_executable_segments),
		cmocka_unit_test(a_linkers_address_need_not_equal_its_offset),
		cmocka_unit_test(own_libraries_translate_as_the_loader_says),
		cmocka_unit_test(debug_sections_decompress),
		cmocka_unit_test(a_compressed_section_may_not_claim_the_moon),
		cmocka_unit_test(a_compressed_section_may_lie_at_an_odd_offset),
		cmocka_unit_test(dynamic_symbols_need_no_section_headers),
		cmocka_unit_test(shared_names_are_not_delivered_without_end),
		cmocka_unit_test(symbols_have_no_versions_and_no_mapping_symbols),
		cmocka_unit_test(mini_debug_info_gives_the_stripped_symbols_back),
		cmocka_unit_test(the_same_build_id_is_found_with_and_without_program_headers),
		cmocka_unit_test(content_ids_tell_builds_without_build_id_apart),
		cmocka_unit_test(foreign_kinds_are_refused_by_name),
		cmocka_unit_test(what_is_no_file_is_refused_without_hanging),
		cmocka_unit_test(the_vdso_is_read_from_memory),
		cmocka_unit_test(a_file_cut_at_any_byte_is_survived),
		cmocka_unit_test(random_damage_is_survived),
		cmocka_unit_test(a_large_file_that_shrinks_reads_as_zeros),
	};

	return cmocka_run_group_tests_name("elf", tests, NULL, NULL);
}

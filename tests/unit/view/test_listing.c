/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Listings of programs made by real compilers: against llvm-addr2line and objdump, from the program's
 * file and from what a recording keeps of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "fixture.h"
#include "base/sys.h"
#include "collect/collect.h"
#include "symbol/demangle.h"
#include "view/listing/listing.h"

static const char c_source[] = /* 1 */
	"#include <stdlib.h>\n"
	"#include <stdio.h>\n"
	"static inline unsigned mix(unsigned h, unsigned char c)\n"
	"{\n"
	"	h ^= c;\n"
	"	return h * 16777619u;\n"
	"}\n"
	"static inline unsigned fold(unsigned h, const char *s, size_t n)\n"
	"{\n"
	"	for (size_t i = 0; i < n; i++)\n"
	"		h = mix(h, (unsigned char)s[i]);\n"
	"	return h;\n"
	"}\n"
	"__attribute__((noinline)) unsigned hash(const char *s, size_t n)\n"
	"{\n"
	"	unsigned h = fold(2166136261u, s, n);\n"
	"	if (__builtin_expect(h == 42, 0)) {\n"
	"		puts(\"rare\");\n"
	"		abort();\n"
	"	}\n"
	"	return h;\n"
	"}\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	return (int)hash(argv[0], (size_t)argc * 2);\n"
	"}\n";

static const char rust_source[] =
	"use std::collections::HashMap;\n"
	"#[inline(never)]\n"
	"#[no_mangle]\n"
	"pub fn hash(words: &[String]) -> usize {\n"
	"    let mut m: HashMap<&str, usize> = HashMap::new();\n"
	"    for w in words.iter().filter(|w| !w.is_empty()) {\n"
	"        *m.entry(w.trim()).or_insert(0) += 1;\n"
	"    }\n"
	"    let mut v: Vec<_> = m.iter().map(|(k, n)| (*n, k.len())).collect();\n"
	"    v.sort();\n"
	"    v.len()\n"
	"}\n"
	"fn main() {\n"
	"    let a: Vec<String> = std::env::args().collect();\n"
	"    println!(\"{}\", hash(&a));\n"
	"}\n";

/* ---- a session with a sample at each address that a list names ---- */

static int record_at(const char *exe, const char *list, struct as_resolve_options o)
{
	struct as_session_writer *w;
	struct as_image_listener listener;
	struct as_image *im = as_image_new(NULL);
	struct as_recorder *r;
	struct as_module *m;
	struct as_error err = {0};
	size_t n;
	char *text = (char *)fx_read(list, &n);
	uint64_t now = 1000000000;

	assert_non_null(text);
	text[n] = 0;
	assert_int_equal(as_session_writer_open(fx_path("s.assay"), &w, &err), AS_OK);
	as_write_recording(w, &(struct as_rec_recording){.start_realtime_ns = as_realtime_ns(),
							 .rate_hz = 997});
	as_write_info(w, &(struct as_rec_info){AS_STR("cwd"), AS_STR(fx_dir())});
	r = as_recorder_new(w, im);
	as_recorder_listener(r, &listener);
	as_image_add_listener(im, &listener);
	m = as_image_add_file(im, fx_path(exe), &err);
	if (!m)
		fail_msg("%s", err.msg);
	for (char *p = text, *next; *p; p = next + (*next == '\n')) {
		struct as_raw_frame f = {strtoull(p, &next, 16), m->id, AS_FRAME_EXACT};
		struct as_raw_sample s = {.time_ns = now += 1000000,
					  .pid = 1,
					  .tid = 1,
					  .weight = 1000000,
					  .end = AS_END_ROOT,
					  .frames = &f,
					  .nframes = 1};

		if (next == p)
			break;
		as_recorder_sample(r, &s);
	}
	free(text);
	if (as_recorder_resolve(r, &o, &err) < 0 || as_session_writer_finish(w, &err) < 0)
		fail_msg("%s", err.msg);
	as_recorder_free(r);
	as_image_free(im);
	as_session_writer_close(w);
	return 0;
}

static struct as_model *load(void)
{
	struct as_model *m;
	struct as_error err;

	if (as_model_load(fx_path("s.assay"), &m, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(m->damaged, 0);
	return m;
}

static uint32_t function_of(const struct as_model *m, const char *brief)
{
	for (uint32_t i = 0; i < m->functions.n; i++) {
		if (strcmp(m->functions.v[i].brief, brief) == 0 && m->functions.v[i].same == i)
			return i;
	}
	fail_msg("no function '%s'", brief);
	return 0;
}

static struct as_listing *make(struct as_listing_request q)
{
	struct as_listing *l;
	struct as_error err;

	if (as_listing_make(&q, &l, &err) < 0)
		fail_msg("%s", err.msg);
	return l;
}

static bool has_note(const struct as_listing *l, const char *text)
{
	as_vec_foreach (n, &l->notes) {
		if (strstr(*n, text))
			return true;
	}
	return false;
}

/* Addresses of all instructions of a symbol, by objdump. */
static void list_code(const char *exe, const char *symbol)
{
	assert_int_equal(
		fx_sh("objdump -d --no-show-raw-insn %s | awk -v f='<%s>:' '$2 == f {on = 1; "
		      "next} "
		      "/^$/ {on = 0} on {sub(/:.*/, \"\"); print $1}' > list && test -s list",
		      exe, symbol),
		0);
}

static bool build_c(void)
{
	fx_write("t.c", c_source);
	return fx_sh("touch -d '2020-01-01' t.c && gcc -g -O2 t.c -o t && command -v "
		     "objdump") == 0;
}

static bool build_rust(void)
{
	fx_write("t.rs", rust_source);
	return fx_sh("touch -d '2020-01-01' t.rs && rustc -g -O t.rs -o t && "
		     "command -v objdump llvm-addr2line") == 0;
}

/* ---- against other tools ---- */

static void same_addresses(const struct as_listing *l)
{
	size_t n, i = 0;
	char *text = (char *)fx_read("list", &n);

	text[n] = 0;
	for (char *p = text, *next; *p && i < l->insns.n; p = next + (*next == '\n'), i++)
		assert_int_equal(l->insns.v[i].svma, strtoull(p, &next, 16));
	free(text);
	assert_true(i > 10);
}

/* Lines "file:line" of the chain of each instruction, innermost first, one instruction a line. */
static void write_chains(const struct as_listing *l, const char *name)
{
	struct as_buf b = {0};

	as_vec_foreach (i, &l->insns) {
		for (uint32_t k = 0; k < i->nplaces; k++) {
			const struct as_listing_place *p = &l->places.v[i->place + k];

			as_buf_addf(&b, "%s:%u ", p->file ? p->file : "??", p->line);
		}
		as_buf_addc(&b, '\n');
	}
	fx_write_bytes(name, b.p, b.len);
	as_buf_clear(&b);
}

/* Lines of line 0 are repaired here and not there. */
static void same_lines_as_addr2line(const struct as_listing *l, const char *exe)
{
	struct as_buf b = {0};

	if (!fx_have("llvm-addr2line"))
		return;
	as_vec_foreach (i, &l->insns)
		as_buf_addf(&b, "0x%llx\n", (unsigned long long)i->svma);
	fx_write_bytes("addr", b.p, b.len);
	as_buf_clear(&b);
	write_chains(l, "ours");
	assert_int_equal(
		fx_sh("llvm-addr2line -a -i -e %s < addr | sed 's/ (discriminator.*//' | "
		      "awk '/^0x/ {if (n++) print s; s = \"\"; next} {s = s $0 \" \"} "
		      "END {print s}' > theirs; "
		      "paste -d '|' ours theirs | awk -F'|' "
		      "'$2 ~ /:[0?] / {next} {n++} $1 != $2 {bad++; print} "
		      "END {exit !(n > 10 && bad == 0)}' > differ || { head differ >&2; exit "
		      "1; }",
		      exe),
		0);
}

static void check_tools(const char *exe)
{
	struct as_model *m;
	struct as_listing *l;

	list_code(exe, "hash");
	record_at(exe, "list", (struct as_resolve_options){0});
	m = load();
	l = make((struct as_listing_request){.model = m, .function = function_of(m, "hash")});
	assert_true(l->code_embedded);
	same_addresses(l);
	same_lines_as_addr2line(l, exe);
	as_listing_free(l);
	m->codes.n = 0; /* and the same from the file */
	l = make((struct as_listing_request){.model = m, .function = function_of(m, "hash")});
	assert_false(l->code_embedded);
	same_addresses(l);
	same_lines_as_addr2line(l, exe);
	as_listing_free(l);
	as_model_free(m);
}

static void a_c_function_has_the_lines_that_addr2line_has(void **state)
{
	if (!build_c() || as_disasm_missing(AS_ARCH_X86_64))
		fx_skip("no gcc, no objdump or no disassembler");
	check_tools("t");
}

static void a_rust_function_has_the_lines_that_addr2line_has(void **state)
{
	if (!build_rust() || as_disasm_missing(AS_ARCH_X86_64))
		fx_skip("no rustc, no llvm-addr2line or no disassembler");
	check_tools("t");
}

/* ---- from the recording alone ---- */

static void same_listing(const struct as_listing *a, const struct as_listing *b)
{
	assert_int_equal(a->insns.n, b->insns.n);
	for (size_t i = 0; i < a->insns.n; i++) {
		const struct as_listing_insn *x = &a->insns.v[i], *y = &b->insns.v[i];

		assert_string_equal(x->text, y->text);
		assert_int_equal(x->svma, y->svma);
		assert_int_equal(x->nplaces, y->nplaces);
		assert_int_equal(x->starts_part, y->starts_part);
		for (uint32_t k = 0; k < x->nplaces; k++) {
			const struct as_listing_place *p = &a->places.v[x->place + k];
			const struct as_listing_place *q = &b->places.v[y->place + k];

			assert_string_equal(p->function, q->function);
			assert_int_equal(p->line, q->line);
			assert_int_equal(p->inlined, q->inlined);
		}
	}
}

static void a_listing_needs_neither_program_nor_source(void **state)
{
	struct as_model *m, *again;
	struct as_listing *before, *after;
	struct as_listing_request q = {0};

	if (!build_rust() && !build_c())
		fx_skip("no compiler");
	list_code("t", "hash");
	record_at("t", "list", (struct as_resolve_options){0});
	m = load();
	q.model = m;
	q.function = function_of(m, "hash");
	m->codes.n = 0;
	before = make(q);
	assert_int_equal(fx_sh("rm -f t t.c t.rs"), 0);
	q.model = again = load();
	after = make(q);
	assert_true(after->code_embedded && after->source_embedded);
	same_listing(before, after);
	assert_true(after->files.n > 0);
	assert_non_null(after->files.v[0].found);
	assert_true(after->files.v[0].lines.n > 5);
	assert_true(after->files.v[0].total >= 15);
	as_listing_free(before);
	as_listing_free(after);
	as_model_free(m);
	as_model_free(again);
}

static void sources_are_left_out_on_request(void **state)
{
	struct as_model *m;
	struct as_listing *l;

	if (!build_c())
		fx_skip("no gcc or no objdump");
	list_code("t", "hash");
	record_at("t", "list", (struct as_resolve_options){.no_source = true});
	m = load();
	assert_int_equal(m->sources.n, 0);
	assert_true(m->codes.n > 0);
	l = make((struct as_listing_request){
		.model = m, .function = function_of(m, "hash"), .embedded_only = true});
	assert_true(l->insns.n > 10);
	assert_null(l->files.v[0].found);
	assert_non_null(l->files.v[0].why);
	as_listing_free(l);
	as_model_free(m);
}

static void an_inlined_function_has_only_its_instructions(void **state)
{
	struct as_model *m;
	struct as_listing *l;
	uint32_t f;

	if (!build_c())
		fx_skip("no gcc or no objdump");
	list_code("t", "hash");
	record_at("t", "list", (struct as_resolve_options){0});
	m = load();
	f = function_of(m, "fold");
	l = make((struct as_listing_request){.model = m, .function = f});
	assert_true(l->insns.n > 0);
	assert_true(l->insns.v[0].starts_part);
	as_vec_foreach (i, &l->insns) {
		bool in_it = false;

		for (uint32_t k = 0; k < i->nplaces; k++)
			in_it |= l->places.v[i->place + k].key == f;
		assert_true(in_it);
	}
	assert_true(strstr(l->files.v[0].path, "t.c") != NULL);
	as_listing_free(l);
	as_model_free(m);
}

static void calls_are_named_and_jumps_have_targets(void **state)
{
	struct as_model *m;
	struct as_listing *l;
	unsigned calls = 0, branches = 0;

	if (!build_c() || as_disasm_missing(AS_ARCH_X86_64))
		fx_skip("no gcc, no objdump, or no disassembler");
	list_code("t", "hash");
	record_at("t", "list", (struct as_resolve_options){0});
	m = load();
	l = make((struct as_listing_request){.model = m, .function = function_of(m, "hash")});
	as_vec_foreach (i, &l->insns) {
		if (i->kind == AS_INSN_CALL && i->target_name) {
			calls += strcmp(i->target_name, "puts@plt") == 0 ||
				 strcmp(i->target_name, "abort@plt") == 0;
			assert_non_null(strstr(i->text, i->target_name));
		}
		if (i->kind == AS_INSN_BRANCH) {
			branches++;
			assert_true(i->target >= l->insns.v[0].svma);
		}
	}
	assert_int_equal(calls, 2);
	assert_true(branches >= 2);
	as_listing_free(l);
	as_model_free(m);
}

/* ---- what does not fit ---- */

static void another_build_of_the_program_is_refused(void **state)
{
	struct as_model *m;
	struct as_listing *l;

	if (!build_c())
		fx_skip("no gcc or no objdump");
	list_code("t", "hash");
	record_at("t", "list", (struct as_resolve_options){.no_source = true});
	assert_int_equal(fx_sh("gcc -g -O1 t.c -o t"), 0);
	m = load();
	m->codes.n = 0;
	l = make((struct as_listing_request){.model = m, .function = function_of(m, "hash")});
	assert_int_equal(l->insns.n, 0);
	assert_true(has_note(l, "is not the file that was recorded"));
	assert_true(l->files.n > 0); /* lines are known all the same */
	as_listing_free(l);
	assert_int_equal(fx_sh("rm t"), 0);
	l = make((struct as_listing_request){.model = m, .function = function_of(m, "hash")});
	assert_true(has_note(l, "no instructions"));
	as_listing_free(l);
	as_model_free(m);
}

static void a_source_edited_after_the_build_is_refused(void **state)
{
	struct as_model *m;
	struct as_listing *l;

	if (!build_c())
		fx_skip("no gcc or no objdump");
	assert_int_equal(fx_sh("touch -d '+1 hour' t.c"), 0);
	list_code("t", "hash");
	record_at("t", "list", (struct as_resolve_options){0});
	m = load();
	assert_int_equal(m->sources.n, 0);
	l = make((struct as_listing_request){.model = m, .function = function_of(m, "hash")});
	assert_null(l->files.v[0].found);
	assert_non_null(strstr(l->files.v[0].why, "newer than the program"));
	as_listing_free(l);
	as_model_free(m);
}

static void a_large_function_is_kept_around_its_hot_places(void **state)
{
	struct as_buf b = {0};
	struct as_model *m;
	struct as_listing *l;
	size_t whole, kept;

	as_buf_adds(&b, "volatile int x;\nint hash(int n)\n{\n");
	for (int i = 0; i < 12000; i++)
		as_buf_addf(&b, "	x += n * %d + (x >> %d);\n", i * 77 + 1, i % 9);
	as_buf_adds(&b, "	return x;\n}\nint main(int c, char **v) { return hash(c); }\n");
	fx_write_bytes("t.c", b.p, b.len);
	as_buf_clear(&b);
	if (fx_sh("gcc -g -O1 t.c -o t") != 0 || as_disasm_missing(AS_ARCH_X86_64))
		fx_skip("no gcc or no disassembler");
	list_code("t", "hash");
	assert_int_equal(fx_sh("sed -n '30000,30010p' list > hot; test -s hot"), 0);
	record_at("t", "hot", (struct as_resolve_options){0});
	m = load();
	l = make((struct as_listing_request){
		.model = m, .function = function_of(m, "hash"), .embedded_only = true});
	kept = l->insns.n;
	same_lines_as_addr2line(l, "t");
	as_listing_free(l);
	m->codes.n = 0;
	l = make((struct as_listing_request){.model = m, .function = function_of(m, "hash")});
	whole = l->insns.n;
	as_listing_free(l);
	as_model_free(m);
	assert_true(kept > 100 && kept < 2000);
	assert_true(whole > 50000);
}

static void a_stripped_program_has_instructions_and_no_lines(void **state)
{
	struct as_model *m;
	struct as_listing *l;

	if (!build_c())
		fx_skip("no gcc or no objdump");
	list_code("t", "hash");
	assert_int_equal(fx_sh("strip t"), 0);
	record_at("t", "list", (struct as_resolve_options){0});
	m = load();
	l = make((struct as_listing_request){.model = m,
					     .function =
						     m->places.v[m->frames.v[0].chain].function,
					     .embedded_only = true});
	/* found by its FDE; nothing says where that function's cold part is */
	assert_true(l->insns.n > 5);
	assert_true(has_note(l, "is stripped"));
	as_listing_free(l);
	as_model_free(m);
}

/* Of one program without debug information, told as if it were something else. */
static void what_gives_lines_depends_on_whose_code_it_is(void **state)
{
	static const struct {
		enum as_module_kind kind;
		const char *path;
		uint8_t lang, flags;
		const char *says, *never;
	} t[] = {
		{AS_MODULE_FILE, "/home/u/t", AS_LANG_C, 0, "build with -g", "Cargo"},
		{AS_MODULE_FILE, "/home/u/t", AS_LANG_RUST, 0, "debug = 1", "-g"},
		{AS_MODULE_FILE, "/home/u/t", AS_LANG_C, AS_FUNCTION_SYNTHETIC, "t is stripped",
		 "dbgsym"},
		{AS_MODULE_FILE, "/usr/lib/libz.so.1", AS_LANG_C, 0, "-dbgsym", "Cargo"},
		{AS_MODULE_FILE, "/usr/lib/libz.so.1", AS_LANG_RUST, AS_FUNCTION_SYNTHETIC,
		 "without symbols", "Cargo"},
		{AS_MODULE_KERNEL, "[kernel]", AS_LANG_C, 0, "its vmlinux", "-g "},
		{AS_MODULE_JIT, "[jit]", AS_LANG_C, 0, "perf map", "Cargo"},
		{AS_MODULE_JIT, "[jit]", AS_LANG_C, AS_FUNCTION_SYNTHETIC, "perf-PID.map",
		 "Cargo"},
		{AS_MODULE_VDSO, "[vdso]", AS_LANG_C, 0, "kernel made", "Cargo"},
	};
	struct as_model *m;

	if (!build_c())
		fx_skip("no gcc or no objdump");
	list_code("t", "hash");
	assert_int_equal(fx_sh("strip t"), 0);
	record_at("t", "list", (struct as_resolve_options){0});
	m = load();
	for (size_t i = 0; i < AS_ARRAY_LEN(t); i++) {
		uint32_t function = m->places.v[m->frames.v[0].chain].function;
		struct as_m_function *f = &m->functions.v[function];
		struct as_listing *l;

		m->modules.v[f->module].kind = t[i].kind;
		m->modules.v[f->module].path = t[i].path;
		f->lang = t[i].lang;
		f->flags = t[i].flags;
		l = make((struct as_listing_request){
			.model = m, .function = function, .embedded_only = true});
		if (!has_note(l, t[i].says) || has_note(l, t[i].never))
			fail_msg("%zu: %s", i, l->notes.n ? l->notes.v[l->notes.n - 1] : "");
		as_listing_free(l);
	}
	as_model_free(m);
}

static void a_jump_into_the_cold_part_says_so(void **state)
{
	struct as_model *m;
	struct as_listing *l;
	unsigned cold = 0, others = 0;

	fx_write("t.c",
		 "#include <stdio.h>\n#include <stdlib.h>\n"
		 "__attribute__((cold, noinline)) void rare(unsigned h)\n"
		 "{\n	puts(\"rare\");\n	exit((int)h);\n}\n"
		 "__attribute__((noinline)) unsigned hot(const char *s, size_t n)\n"
		 "{\n	unsigned h = 1;\n	for (size_t i = 0; i < n; i++) {\n"
		 "		h = h * 3 ^ (unsigned char)s[i];\n		if (h == 42)\n"
		 "			rare(h);\n	}\n	return h;\n}\n"
		 "int main(int argc, char **argv)\n"
		 "{\n	return (int)hot(argv[0], (size_t)argc * 2);\n}\n");
	if (fx_sh("gcc -g -O2 t.c -o t && nm t | grep -q 'hot.cold'") != 0 ||
	    as_disasm_missing(AS_ARCH_X86_64))
		fx_skip("no gcc that makes cold parts, or no disassembler");
	list_code("t", "hot");
	for (int live = 0; live < 2; live++) {
		record_at("t", "list", (struct as_resolve_options){0});
		m = load();
		if (live)
			m->codes.n = 0;
		l = make((struct as_listing_request){
			.model = m, .function = function_of(m, "hot"), .embedded_only = !live});
		as_vec_foreach (i, &l->insns) {
			if (i->kind != AS_INSN_BRANCH || !i->target_name)
				continue;
			cold += strstr(i->text, "hot.cold") != NULL &&
				strcmp(i->target_name, "hot.cold") == 0;
			others += strcmp(i->target_name, "hot") == 0;
		}
		as_listing_free(l);
		as_model_free(m);
	}
	assert_true(cold >= 2); /* kept and from the file */
	assert_int_equal(others, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_c_function_has_the_lines_that_addr2line_has),
		cmocka_unit_test(a_rust_function_has_the_lines_that_addr2line_has),
		cmocka_unit_test(a_listing_needs_neither_program_nor_source),
		cmocka_unit_test(sources_are_left_out_on_request),
		cmocka_unit_test(an_inlined_function_has_only_its_instructions),
		cmocka_unit_test(calls_are_named_and_jumps_have_targets),
		cmocka_unit_test(another_build_of_the_program_is_refused),
		cmocka_unit_test(a_source_edited_after_the_build_is_refused),
		cmocka_unit_test(a_large_function_is_kept_around_its_hot_places),
		cmocka_unit_test(a_stripped_program_has_instructions_and_no_lines),
		cmocka_unit_test(what_gives_lines_depends_on_whose_code_it_is),
		cmocka_unit_test(a_jump_into_the_cold_part_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

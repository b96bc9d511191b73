/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Folded stacks: parse(print(x)) = x for any names, and lines that foreign tools split rightly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/mem.h"
#include "exchange/exchange.h"

static uint64_t seed = 88172645463325252ull;

static unsigned below(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)((seed >> 33) % n);
}

/* Names put together from everything that has a meaning somewhere. */
static void random_name(struct as_buf *b)
{
	static const char *const pieces[] = {
		";",      "\n",       "\r",     "\\",      " ",       "12",     "1.5",
		"#",      "a",        "::",     "<T>",     "[u8; 4]", "\t",     "\x7f",
		"\u037E", "\u00A0",   "\u2400", "\u241B",  "\u2421",  "\u2205", "\u2426",
		"\uFF03", "\xe2\x90", "\xc2",   "\xcd",    "\xbe",    "é",      "\xff",
		"_[k]",   "-7",       "\x1b",   "\xef\xbc"};
	unsigned n = below(6);

	as_buf_reset(b);
	for (unsigned i = 0; i < n; i++) {
		if (below(20) == 0)
			as_buf_addc(b, 0);
		else if (below(10) == 0)
			as_buf_addc(b, (char)below(256));
		else
			as_buf_adds(b, pieces[below(AS_ARRAY_LEN(pieces))]);
	}
}

struct expected {
	struct as_buf names[8];
	size_t n;
	unsigned calls;
};

static int compare(void *ctx, const struct as_str *frames, size_t nframes, uint64_t weight)
{
	struct expected *e = ctx;

	e->calls++;
	assert_int_equal(weight, 42);
	assert_int_equal(nframes, e->n);
	for (size_t i = 0; i < nframes; i++) {
		assert_int_equal(frames[i].n, e->names[i].len);
		if (frames[i].n)
			assert_memory_equal(frames[i].p, e->names[i].p, frames[i].n);
	}
	return 0;
}

/* What a tool without our unescaping sees: last blank, digits, ';' between frames. */
static void check_as_foreign_tool(const struct as_buf *line, size_t nframes)
{
	const char *blank = memrchr(line->p, ' ', line->len);
	size_t frames = 1;

	assert_string_equal(blank, " 42\n");
	for (const char *p = line->p; p < blank; p++) {
		frames += *p == ';';
		assert_true((uint8_t)*p >= 0x20);
	}
	assert_int_equal(frames, nframes);
	assert_true(line->p[0] != '#' && line->p[0] != ' ');
	/* flamegraph.pl reads a second number before the weight as one more column */
	while (blank > line->p && strchr("0123456789.", blank[-1]))
		blank--;
	assert_false(blank > line->p && blank[-1] == ' ' && blank[0] != ' ');
}

static void any_names_come_back_from_a_line(void **state)
{
	struct expected e = {0};
	AS_CLEANUP(as_buf_clear) struct as_buf line = {0};

	for (int round = 0; round < 50000; round++) {
		e.n = 1 + below(AS_ARRAY_LEN(e.names));
		as_buf_reset(&line);
		for (size_t i = 0; i < e.n; i++) {
			random_name(&e.names[i]);
			if (i)
				as_buf_addc(&line, ';');
			as_folded_escape(&line, as_buf_str(&e.names[i]), e.names[i].len);
		}
		as_buf_adds(&line, " 42\n");
		check_as_foreign_tool(&line, e.n);
		assert_int_equal(as_folded_parse(line.p, line.len, compare, &e, NULL), 0);
	}
	assert_int_equal(e.calls, 50000);
	for (size_t i = 0; i < AS_ARRAY_LEN(e.names); i++)
		as_buf_clear(&e.names[i]);
}

static void expect_escape(const char *name, const char *want)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	as_folded_escape(&b, name, strlen(name));
	assert_string_equal(as_buf_str(&b), want);
}

static void ordinary_names_stay_as_they_are(void **state)
{
	expect_escape("core::ptr::drop_in_place<alloc::string::String>",
		      "core::ptr::drop_in_place<alloc::string::String>");
	expect_escape("operator new(unsigned long)", "operator new(unsigned long)");
	expect_escape("<[u64; 16] as Sum>::sum", "<[u64\u037E 16] as Sum>::sum");
	expect_escape("libc.so.6+0x1234", "libc.so.6+0x1234");
	expect_escape("thread 12", "thread\u00A012");
	expect_escape("", "\u2205");
}

static int count(void *ctx, const struct as_str *frames, size_t nframes, uint64_t weight)
{
	*(uint64_t *)ctx += weight * 100 + nframes;
	return 0;
}

static void foreign_files_are_read_and_broken_lines_named(void **state)
{
	static const char ok[] = "# comment\n\na;b c;d 10\r\na 2.75\nlast;one 1";
	static const char *const bad[] = {"a;b\n", "a b\n", "a 1x\n",
					  "a 99999999999999999999\n", "12\n"};
	uint64_t sum = 0;
	struct as_error err;

	assert_int_equal(as_folded_parse(ok, sizeof ok - 1, count, &sum, &err), 0);
	assert_int_equal(sum, 1003 + 201 + 102);
	for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
		assert_int_equal(as_folded_parse(bad[i], strlen(bad[i]), count, &sum, &err),
				 AS_E_FORMAT);
		assert_non_null(strstr(err.msg, "line 1"));
	}
}

/* ---- from a model ---- */

static void name_frame(struct as_session_writer *w, uint64_t id, uint64_t module,
		       const char *name)
{
	uint32_t s = as_session_string(w, name, strlen(name));
	uint64_t chain[4] = {id};

	as_write_frame(w, &(struct as_rec_frame){.id = id, .module = module, .addr = id});
	as_write_function(w, &(struct as_rec_function){
				     .id = id, .module = module, .full = s, .brief = s});
	as_write_symbol(w, &(struct as_rec_symbol){.frame = id, .chain = {chain, 4}});
}

static void write_model(const char *path)
{
	struct as_session_writer *w;

	assert_int_equal(as_session_writer_open(path, &w, NULL), 0);
	as_write_process(
		w, &(struct as_rec_process){.id = 0, .name = as_session_string(w, "app", 3)});
	as_write_thread(
		w, &(struct as_rec_thread){.id = 0, .name = as_session_string(w, "main", 4)});
	as_write_module(
		w, &(struct as_rec_module){.id = 0, .path = as_session_string(w, "/app", 4)});
	as_write_module(w, &(struct as_rec_module){.id = 1, .kind = AS_MODULE_KERNEL});
	name_frame(w, 0, 1, "main");
	name_frame(w, 1, 1, "sum<[u8; 4]>");
	name_frame(w, 2, 2, "sys_read");
	for (uint64_t i = 0; i < 3; i++)
		as_write_stack(w, &(struct as_rec_stack){.id = i, .parent = i, .frame = i});
	for (uint64_t i = 0; i < 10; i++)
		as_write_sample(w, &(struct as_rec_sample){
					   .time_rel = i, .weight = 7, .stack = i < 3 ? 2 : 3});
	as_write_sample(w,
			&(struct as_rec_sample){
				.time_rel = 20, .weight = 7, .stack = 1, .end = AS_END_FAULT});
	assert_int_equal(as_session_writer_finish(w, NULL), 0);
	as_session_writer_close(w);
}

static void expect_export(const struct as_model *m, const struct as_folded_options *o,
			  const char *want)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	assert_int_equal(as_export_folded(m, o, &b, NULL), 0);
	assert_string_equal(as_buf_str(&b), want);
}

static void a_session_is_exported_as_sorted_lines(void **state)
{
	char folder[] = "/tmp/assay-test-XXXXXX", path[64];
	struct as_model *m;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/f.assay", folder);
	write_model(path);
	assert_int_equal(as_model_load(path, &m, NULL), 0);
	expect_export(m, &(struct as_folded_options){0},
		      "[truncated: unreadable-stack];main 1\n"
		      "main;sum<[u8\u037E 4]> 3\n"
		      "main;sum<[u8\u037E 4]>;sys_read 7\n");
	expect_export(m,
		      &(struct as_folded_options){.by_thread = true,
						  .by_process = true,
						  .mark_kernel = true,
						  .weight_ns = true},
		      "app;main;[truncated: unreadable-stack];main 7\n"
		      "app;main;main;sum<[u8\u037E 4]> 21\n"
		      "app;main;main;sum<[u8\u037E 4]>;sys_read_[k] 49\n");
	expect_export(m,
		      &(struct as_folded_options){
			      .query = &(struct as_query){.hide = ".", .no_kernel = true}},
		      "[no frames] 10\n[truncated: unreadable-stack] 1\n");
	as_model_free(m);
	unlink(path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_names_come_back_from_a_line),
		cmocka_unit_test(ordinary_names_stay_as_they_are),
		cmocka_unit_test(foreign_files_are_read_and_broken_lines_named),
		cmocka_unit_test(a_session_is_exported_as_sorted_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

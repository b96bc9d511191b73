/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An annotated function as text and JSON, with listings made by hand; jumps as lanes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "annotate_session.h"
#include "base/sys.h"
#include "view/annotate/annotate_priv.h"

/* ---- jumps ---- */

static void expect_gutter(const struct as_an_jump *jumps, size_t n, uint32_t rows,
			  uint32_t lanes, const char *want)
{
	struct as_an_gutter g;
	struct as_buf b = {0};

	as_an_gutter_make(jumps, n, rows, lanes, &g);
	for (uint32_t r = 0; r < rows; r++) {
		for (uint32_t c = 0; c < g.lanes; c++)
			as_buf_adds(&b, as_an_cell_text(g.cell[r * g.lanes + c]));
		as_buf_adds(&b, g.lanes && (g.cell[r * g.lanes + g.lanes - 1] & AS_AN_HEAD)
					? ">\n"
					: "\n");
	}
	assert_string_equal(as_buf_str(&b), want);
	as_buf_clear(&b);
	as_an_gutter_clear(&g);
}

static void loops_nest_and_arrows_to_one_row_are_one(void **state)
{
	const struct as_an_jump nested[] = {{4, 0}, {3, 1}, {2, 1}};
	const struct as_an_jump crossing[] = {{0, 2}, {1, 3}};

	expect_gutter(nested, 3, 5, 4, "╭─>\n│╭>\n│├\n│╰\n╰─\n");
	expect_gutter(crossing, 2, 4, 4, " ╭\n╭┼\n│╰>\n╰─>\n");
}

static void what_finds_no_lane_is_left_out(void **state)
{
	const struct as_an_jump j[] = {{0, 5}, {1, 4}, {2, 3}, {7, 7}, {0, 99}};

	expect_gutter(j, 5, 6, 1, " \n \n╭\n╰>\n \n \n");
}

static void no_jumps_take_no_columns(void **state)
{
	struct as_an_gutter g;

	as_an_gutter_make(NULL, 0, 10, 4, &g);
	assert_int_equal(g.lanes, 0);
	as_an_gutter_clear(&g);
}

static void random_jumps_stay_in_bounds(void **state)
{
	struct as_an_jump j[300];
	unsigned seed = 7;

	for (int round = 0; round < 20; round++) {
		struct as_an_gutter g;

		for (size_t i = 0; i < AS_ARRAY_LEN(j); i++)
			j[i] = (struct as_an_jump){(unsigned)rand_r(&seed) % 500,
						   (unsigned)rand_r(&seed) % 520};
		as_an_gutter_make(j, AS_ARRAY_LEN(j), 500, 6, &g);
		assert_true(g.lanes <= 6);
		for (uint32_t r = 0; r + 1 < 500; r++) { /* lines go on in the next row */
			for (uint32_t c = 0; c < g.lanes; c++)
				assert_int_equal(!!(g.cell[r * g.lanes + c] & AS_AN_DOWN),
						 !!(g.cell[(r + 1) * g.lanes + c] & AS_AN_UP));
		}
		as_an_gutter_clear(&g);
	}
}

/* ---- text ---- */

static struct as_listing *listing;

static int end_listing(void **state)
{
	if (listing) {
		as_vec_clear(&listing->insns);
		as_vec_clear(&listing->places);
		as_vec_foreach (f, &listing->files)
			as_vec_clear(&f->lines);
		as_vec_clear(&listing->files);
		as_vec_clear(&listing->notes);
		free(listing);
	}
	listing = NULL;
	return end(state);
}

static uint32_t chain(const struct at *at, size_t n)
{
	uint32_t first = (uint32_t)listing->places.n;

	for (size_t i = 0; i < n; i++)
		as_vec_push(&listing->places,
			    (struct as_listing_place){
				    .key = (uint32_t)at[i].function,
				    .function = model->functions.v[at[i].function].brief,
				    .file = "src/main.rs",
				    .line = (uint32_t)at[i].line,
				    .inlined = i + 1 < n});
	return first;
}

static void put_insn(uint64_t svma, const char *text, enum as_insn_kind kind, uint64_t target,
		     const struct at *at, size_t n)
{
	as_vec_push(&listing->insns, (struct as_listing_insn){.svma = svma,
							      .target = target,
							      .text = text,
							      .place = chain(at, n),
							      .nplaces = (uint32_t)n,
							      .len = 4,
							      .kind = (uint8_t)kind});
}

static void put_source(uint32_t n)
{
	static const char *const text[] = {"fn sum(v: &[u32]) -> u32 {",
					   "\tlet mut s = 0;",
					   "\tfor x in v {",
					   "\t\ts += x;",
					   "\t}",
					   "\ts",
					   "}",
					   "",
					   "// a comment"};
	struct as_listing_file f = {.path = "src/main.rs", .found = "src/main.rs", .first = 1};

	f.total = n;
	for (uint32_t i = 0; i < n; i++)
		as_vec_push(&f.lines, i < AS_ARRAY_LEN(text) ? text[i] : "// more");
	as_vec_push(&listing->files, f);
}

/* sum(): its loop at lines 3 and 4; `next` inlined into line 3; a call from line 6. */
static void make_sum(bool source, bool code)
{
	uint64_t sum = function("sum"), next = function("Iter::next"), sub = function("sub");
	struct at l2 = {sum, 2}, l3 = {sum, 3}, l4 = {sum, 4}, l6 = {sum, 6}, n40 = {next, 40};
	struct at in3[2] = {n40, l3};

	sample(on(NONE, frame(0x104, AS_FRAME_EXACT, n40, l3, (struct at){0})), 400, 0);
	sample(on(NONE, leaf(0x108, l4)), 300, 0);
	sample(on(NONE, leaf(0x10c, l3)), 100, 0);
	sample(on(on(NONE, caller(0x114, l6)), leaf(0x200, (struct at){sub, 90})), 200, 0);
	loaded();
	listing = as_xcalloc(1, sizeof *listing);
	listing->function = (uint32_t)sum;
	if (source)
		put_source(60);
	if (!code)
		return;
	put_insn(0x100, "xor eax, eax", AS_INSN_PLAIN, 0, &l2, 1);
	put_insn(0x104, "mov ecx, dword ptr [rdi]", AS_INSN_PLAIN, 0, in3, 2);
	put_insn(0x108, "add eax, ecx", AS_INSN_PLAIN, 0, &l4, 1);
	put_insn(0x10c, "jne 0x104", AS_INSN_BRANCH, 0x104, &l3, 1);
	put_insn(0x110, "call sub", AS_INSN_CALL, 0x200, &l6, 1);
	put_insn(0x114, "ret", AS_INSN_RETURN, 0, &l6, 1);
}

static void make_annotation(const struct as_query *query, struct as_annotation **ret)
{
	static uint64_t starts[20000];
	struct as_annotate_query q = {
		.query = *query, .function = listing->function, .starts = starts};

	as_vec_foreach (i, &listing->insns)
		starts[q.nstarts++] = i->svma;
	if (q.nstarts)
		q.end = starts[q.nstarts - 1] + 4;
	assert_int_equal(as_annotation_make(model, &q, ret, NULL), 0);
}

/* The table alone, up to the empty line before the blocks. */
static char *table(const struct as_annotate_request *q, int width)
{
	struct as_annotate_view v = {.q = q, .l = listing};
	struct as_style style = {.width = width};
	struct as_annotation *a;
	struct as_an_tree t;
	struct as_an_rows rows;
	struct as_buf out = {0};

	make_annotation(&q->query, &a);
	v.a = a;
	as_an_tree_make(&v, &t);
	as_an_rows_make(&t, &rows);
	as_an_print(&t, &rows, &style, &out);
	as_vec_clear(&rows.v);
	as_an_tree_clear(&t);
	as_annotation_free(a);
	for (const char *p = out.p; *p;) { /* nothing is wider than the terminal */
		size_t n = strcspn(p, "\n");

		assert_true(as_text_width(p, n) <= (size_t)width);
		p += n + 1;
	}
	return as_buf_detach(&out);
}

static void expect_table(const struct as_annotate_request *q, int width, const char *want)
{
	char *got = table(q, width);

	assert_string_equal(got, want);
	free(got);
}

static void lines_with_what_is_inlined_and_their_instructions(void **state)
{
	make_sum(true, true);
	expect_table(&(struct as_annotate_request){.context = 1}, 80,
		     "  self %     total %        line  source\n"
		     "                                  src/main.rs\n"
		     "                               1  fn sum(v: &[u32]) -> u32 {\n"
		     "                               2      let mut s = 0;\n"
		     " 10.0 ±3.5   50.0 ±4.0  █      3      for x in v {\n"
		     " 10.0 ±3.5              ▌╭─       10c  jne 0x104\n"
		     " 40.0 ±3.0   40.0 ±3.0  █│        ↳ Iter::next  main.rs:40  // more\n"
		     " 40.0 ±3.0              █╰▸         104  mov ecx, dword ptr [rdi]\n"
		     " 30.0 ±3.2   30.0 ±3.2  █      4          s += x;\n"
		     " 30.0 ±3.2              █         108  add eax, ecx\n"
		     "                               5      }\n"
		     "             20.0 ±2.5         6      s\n"
		     "             20.0 ±2.5            110  call sub\n"
		     "                                  114  ret\n"
		     "                               7  }\n");
}

static void lines_alone_name_what_they_call(void **state)
{
	make_sum(true, true);
	expect_table(&(struct as_annotate_request){.show = AS_ANNOTATE_SOURCE, .context = 0},
		     60,
		     "  self %     total %      line  source\n"
		     "                                src/main.rs\n"
		     "                             1  fn sum(v: &[u32]) -> u32 {\n"
		     "                             2      let mut s = 0;\n"
		     " 10.0 ±3.5   50.0 ±4.0  █    3      for x in v {\n"
		     " 40.0 ±3.0   40.0 ±3.0  █       ↳ Iter::next  main.rs:40\n"
		     " 30.0 ±3.2   30.0 ±3.2  █    4          s += x;\n"
		     "                             5      }\n"
		     "             20.0 ±2.5       6      s\n"
		     "                                → sub 20.0\n"
		     "                             7  }\n");
}

static void instructions_alone_stand_in_the_order_of_addresses(void **state)
{
	make_sum(true, true);
	expect_table(&(struct as_annotate_request){.show = AS_ANNOTATE_ASM, .context = 3}, 80,
		     "  self %     total %         at  instruction\n"
		     "                            100  xor eax, eax           main.rs:2\n"
		     " 40.0 ±3.0              █╭▸ 104  mov ecx, dword ptr [rdi]  Iter::next "
		     "main.rs:40\n"
		     " 30.0 ±3.2              █│  108  add eax, ecx           main.rs:4\n"
		     " 10.0 ±3.5              ▌╰─ 10c  jne 0x104              main.rs:3\n"
		     "             20.0 ±2.5      110  call sub               main.rs:6\n"
		     "                            114  ret\n");
}

static void costs_stand_alone_where_there_is_no_text(void **state)
{
	make_sum(false, false);
	expect_table(&(struct as_annotate_request){.context = 3}, 80,
		     "  self %     total %      line  source\n"
		     "                                src/main.rs  (not found)\n"
		     " 10.0 ±3.5   50.0 ±4.0  █    3\n"
		     " 10.0 ±3.5              ▌       10c\n"
		     " 40.0 ±3.0   40.0 ±3.0  █       ↳ Iter::next  main.rs:40\n"
		     " 40.0 ±3.0              █         104\n"
		     " 30.0 ±3.2   30.0 ±3.2  █    4\n"
		     " 30.0 ±3.2              █       108\n"
		     "             20.0 ±2.5       6\n"
		     "             20.0 ±2.5          113  → sub\n");
}

static void shares_of_the_function(void **state)
{
	char *text;

	make_sum(true, true);
	text = table(&(struct as_annotate_request){.context = 1,
						   .show = AS_ANNOTATE_SOURCE,
						   .of = AS_ANNOTATE_FUNCTION,
						   .query.ignore = "sub"},
		     80);
	assert_non_null(strstr(text, " 12.5")); /* 100 of 800 */
	assert_non_null(strstr(text, " 62.5"));
	free(text);
}

/* 20,000 instructions, one of which is hot. */
static void a_large_function_is_folded(void **state)
{
	uint64_t f = function("big");
	struct at at = {f, 4};
	char *text;
	size_t lines = 0;

	sample(on(NONE, leaf(0x1000 + 4 * 12345, at)), 100, 0);
	loaded();
	listing = as_xcalloc(1, sizeof *listing);
	listing->function = (uint32_t)f;
	put_source(9);
	for (uint64_t i = 0; i < 20000; i++)
		put_insn(0x1000 + 4 * i, "nop", AS_INSN_PLAIN, 0, &at, 1);
	text = table(&(struct as_annotate_request){.show = AS_ANNOTATE_ASM, .context = 2}, 80);
	assert_non_null(strstr(text, "⋯ 12,343 instructions without samples"));
	assert_non_null(strstr(text, "⋯ 7,652 instructions without samples"));
	free(text);
	text = table(&(struct as_annotate_request){.show = AS_ANNOTATE_ASM, .full = true}, 80);
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	assert_int_equal(lines, 20001);
	free(text);
	text = table(&(struct as_annotate_request){.context = 2}, 80);
	assert_non_null(strstr(text, "⋯ 19,999 instructions without samples"));
	free(text);
}

/* An unrolled loop: 100 instructions, none of which stands out. */
static void an_even_place_is_one_row(void **state)
{
	uint64_t f = function("even");
	struct at at = {f, 4};
	char *text;

	for (uint64_t i = 0; i < 100; i++)
		sample(on(NONE, leaf(0x1000 + 4 * i, at)), 2 + i % 2, 0);
	loaded();
	listing = as_xcalloc(1, sizeof *listing);
	listing->function = (uint32_t)f;
	put_source(9);
	for (uint64_t i = 0; i < 100; i++)
		put_insn(0x1000 + 4 * i, "add rax, rcx", AS_INSN_PLAIN, 0, &at, 1);
	text = table(&(struct as_annotate_request){.context = 2}, 80);
	assert_non_null(strstr(text, "⋯ 100 instructions: 100.0 %, each ≤ 1.2 %"));
	assert_null(strstr(text, "add rax"));
	free(text);
}

/* A timer that interrupted a line once is nothing it calls. */
static void rare_calls_take_no_row(void **state)
{
	uint64_t f = function("busy"), irq = function("irq");
	struct at at = {f, 4};
	uint64_t on_f = on(NONE, leaf(0x1000, at));
	char *text;

	sample(on_f, 990, 0);
	sample(on(on_f, leaf(0x2000, (struct at){irq, 1})), 5, 0);
	loaded();
	listing = as_xcalloc(1, sizeof *listing);
	listing->function = (uint32_t)f;
	put_source(9);
	text = table(&(struct as_annotate_request){.context = 0, .show = AS_ANNOTATE_SOURCE},
		     80);
	assert_null(strstr(text, "irq"));
	assert_null(strstr(text, "\n\n"));
	free(text);
}

/* Whole documents at several widths, with nothing but valid UTF-8 and no control characters. */
static void documents_are_complete(void **state)
{
	static const int widths[] = {60, 80, 120, 200};
	struct as_annotate_request q = {.context = 1};
	struct as_annotate_view v = {.q = &q};
	struct as_annotation *a;

	make_sum(true, true);
	listing->files.v[0].why = "not found: looked in src/main.rs";
	as_vec_push(&listing->notes, "the module is of another build");
	make_annotation(&q.query, &a);
	v.a = a;
	v.l = listing;
	for (size_t i = 0; i < AS_ARRAY_LEN(widths); i++) {
		struct as_style style = {.width = widths[i], .color = i % 2};
		struct as_buf out = {0};

		as_annotate_text(&v, &style, &out);
		assert_non_null(strstr(out.p, "skid"));
		assert_non_null(strstr(out.p, "the module is of another build"));
		assert_non_null(strstr(out.p, "assay annotate sub"));
		assert_non_null(strstr(out.p, "self 40.0"));
		assert_true(!!strchr(out.p, '\033') == (i % 2 == 1));
		as_buf_clear(&out);
	}
	struct as_buf out = {0};

	as_annotate_json(&v, &out);
	assert_non_null(strstr(out.p, "\"schema\": \"assay.annotate/1\""));
	assert_non_null(strstr(out.p, "\"text\": \"call sub\""));
	as_buf_clear(&out);
	as_annotation_free(a);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end_listing)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_nest_and_arrows_to_one_row_are_one),
		cmocka_unit_test(what_finds_no_lane_is_left_out),
		cmocka_unit_test(no_jumps_take_no_columns),
		cmocka_unit_test(random_jumps_stay_in_bounds),
		T(lines_with_what_is_inlined_and_their_instructions),
		T(lines_alone_name_what_they_call),
		T(instructions_alone_stand_in_the_order_of_addresses),
		T(costs_stand_alone_where_there_is_no_text),
		T(shares_of_the_function),
		T(a_large_function_is_folded),
		T(an_even_place_is_one_row),
		T(rare_calls_take_no_row),
		T(documents_are_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

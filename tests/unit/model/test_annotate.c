/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The cost of one function by line and instruction: sessions made by hand whose answer is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/mem.h"
#include "annotate_session.h"
#include "model/profile/annotate.h"

/* ---- asking ---- */

static struct as_annotation *ask(const struct as_annotate_query *q)
{
	struct as_annotation *a = NULL;
	struct as_error err = {0};

	if (as_annotation_make(loaded(), q, &a, &err) < 0)
		fail_msg("%s", err.msg);
	return a;
}

static struct as_annotation *plain(uint64_t f)
{
	return ask(&(struct as_annotate_query){.function = (uint32_t)f});
}

/* The place with this path of lines, outermost first; -1 ends. */
static const struct as_annotated_place *place(const struct as_annotation *a, const int *lines)
{
	uint32_t at = AS_NONE;

	for (; *lines >= 0; lines++) {
		uint32_t i = 0;

		while (i < a->places.n &&
		       (a->places.v[i].parent != at || a->places.v[i].line != (uint32_t)*lines))
			i++;
		if (i == a->places.n)
			fail_msg("no place at line %d", *lines);
		at = i;
	}
	return &a->places.v[at];
}
#define PLACE(a, ...) place(a, (const int[]){__VA_ARGS__, -1})

static const struct as_annotated_insn *insn(const struct as_annotation *a, uint64_t svma)
{
	as_vec_foreach (i, &a->insns) {
		if (i->svma == svma)
			return i;
	}
	fail_msg("no instruction at %#llx", (unsigned long long)svma);
	return NULL;
}

static void expect(const struct as_cost *c, double self, double code, double total)
{
	if (fabs(c->self.value - self) > 1e-9 || fabs(c->code.value - code) > 1e-9 ||
	    fabs(c->total.value - total) > 1e-9)
		fail_msg("self %g code %g total %g, expected %g %g %g", c->self.value,
			 c->code.value, c->total.value, self, code, total);
	assert_true(c->self.low <= self && self <= c->self.high);
	assert_true(c->code.low <= code && code <= c->code.high);
	assert_true(c->total.low <= total && total <= c->total.high);
}

static void self_is_the_leaf_and_total_holds_the_calls(void **state)
{
	uint64_t main_fn = function("main"), work = function("work"), sub = function("sub");
	uint64_t m = on(NONE, caller(0x105, (struct at){main_fn, 10}));
	uint64_t wk = on(m, leaf(0x200, (struct at){work, 20}));
	uint64_t wc = on(m, caller(0x215, (struct at){work, 21}));
	uint64_t s = on(wc, leaf(0x300, (struct at){sub, 30}));
	struct as_annotation *a;

	sample(wk, 60, 0);
	sample(s, 30, 0);
	sample(on(NONE, leaf(0x100, (struct at){main_fn, 9})), 10, 0);
	a = plain(work);
	expect(&a->of_all, 0.6, 0.6, 0.9);
	expect(&a->of_function, 60 / 90., 60 / 90., 1);
	expect(&PLACE(a, 20)->of_all, 0.6, 0.6, 0.6);
	expect(&PLACE(a, 21)->of_all, 0, 0, 0.3);
	expect(&PLACE(a, 21)->of_function, 0, 0, 30 / 90.);
	expect(&insn(a, 0x200)->of_all, 0.6, 0.6, 0.6);
	expect(&insn(a, 0x214)->of_all, 0, 0, 0.3); /* the last byte of the call */
	assert_int_equal(a->insns.n, 2);
	assert_int_equal(insn(a, 0x214)->ncalls, 1);
	assert_int_equal(a->calls.v[insn(a, 0x214)->call].function, sub);
	assert_false(a->lines_tied);
	as_annotation_free(a);
}

static void an_inlined_callee_stands_at_its_call_and_on_its_own_lines(void **state)
{
	uint64_t f = function("outer"), g = function("inlined"), h = function("deeper");
	struct at at_f = {f, 7}, at_g = {g, 40}, at_h = {h, 90};
	struct as_annotation *a;

	sample(on(NONE, frame(0x10, AS_FRAME_EXACT, at_h, at_g, at_f)), 50, 0);
	sample(on(NONE, frame(0x14, AS_FRAME_EXACT, at_g, at_f, (struct at){0})), 30, 0);
	sample(on(NONE, leaf(0x18, at_f)), 20, 0);
	a = plain(f);
	expect(&a->of_all, 0.2, 1, 1);
	expect(&PLACE(a, 7)->of_all, 0.2, 1, 1);
	expect(&PLACE(a, 7, 40)->of_all, 0.3, 0.8, 0.8);
	expect(&PLACE(a, 7, 40, 90)->of_all, 0.5, 0.5, 0.5);
	expect(&insn(a, 0x10)->of_all, 0.5, 0.5, 0.5);
	as_annotation_free(a);

	a = plain(g); /* which only exists inlined */
	expect(&a->of_all, 0.3, 0.8, 0.8);
	expect(&PLACE(a, 40)->of_all, 0.3, 0.8, 0.8);
	assert_int_equal(a->insns.n, 2);
	assert_int_equal(a->hosts.n, 1);
	assert_int_equal(a->hosts.v[0], f);
	as_annotation_free(a);

	a = ask(&(struct as_annotate_query){.function = (uint32_t)f, .query.no_inline = true});
	expect(&a->of_all, 1, 1, 1);
	assert_int_equal(a->places.n, 1);
	as_annotation_free(a);

	a = ask(&(struct as_annotate_query){.function = (uint32_t)f, .query.hide = "deeper"});
	expect(&PLACE(a, 7, 40)->of_all, 0.8, 0.8, 0.8);
	as_annotation_free(a);
}

static void recursion_counts_once_per_line(void **state)
{
	uint64_t f = function("fib");
	struct at call = {f, 3}, ret = {f, 4};
	uint64_t at = NONE;
	struct as_annotation *a;

	for (int depth = 0; depth < 5; depth++)
		at = on(at, caller(0x20, call));
	sample(on(at, leaf(0x30, ret)), 100, 0);
	a = plain(f);
	expect(&a->of_all, 1, 1, 1);
	expect(&PLACE(a, 3)->of_all, 0, 0, 1);
	expect(&PLACE(a, 4)->of_all, 1, 1, 1);
	expect(&insn(a, 0x1f)->of_all, 0, 0, 1);
	assert_int_equal(PLACE(a, 3)->of_all.total.samples, 100);
	as_annotation_free(a);
}

static void filters_work_as_in_a_profile(void **state)
{
	uint64_t f = function("work"), g = function("other");
	uint64_t up = on(NONE, caller(0x50, (struct at){g, 5}));
	struct as_annotation *a;

	sample(on(up, leaf(0x10, (struct at){f, 1})), 25, 0);
	sample(on(NONE, leaf(0x14, (struct at){f, 2})), 25, 1);
	sample(on(NONE, leaf(0x54, (struct at){g, 6})), 50, 1);
	a = ask(&(struct as_annotate_query){.function = (uint32_t)f, .query.focus = "^other$"});
	expect(&a->of_all, 0.25, 0.25, 0.25);
	assert_int_equal(a->places.n, 1);
	as_annotation_free(a);
	a = ask(&(struct as_annotate_query){.function = (uint32_t)f, .query.thread = "101"});
	expect(&a->of_all, 25 / 75., 25 / 75., 25 / 75.);
	as_annotation_free(a);
	a = ask(&(struct as_annotate_query){.function = (uint32_t)f, .query.to_ns = 25 * MS});
	expect(&a->of_all, 1, 1, 1);
	expect(&PLACE(a, 1)->of_all, 1, 1, 1);
	as_annotation_free(a);
}

static void starts_gather_addresses_into_instructions(void **state)
{
	static const uint64_t starts[] = {0x10, 0x14, 0x19};
	uint64_t f = function("f"), g = function("g");
	struct as_annotation *a;

	sample(on(NONE, leaf(0x14, (struct at){f, 1})), 10, 0);
	sample(on(on(NONE, caller(0x19, (struct at){f, 1})), leaf(0x90, (struct at){g, 1})), 30,
	       0);
	sample(on(NONE, leaf(0x19, (struct at){f, 2})), 60, 0);
	a = ask(&(struct as_annotate_query){.function = (uint32_t)f,
					    .module = 0,
					    .starts = starts,
					    .nstarts = 3,
					    .end = 0x1a});
	assert_int_equal(a->insns.n, 2);
	expect(&insn(a, 0x14)->of_all, 0.1, 0.1, 0.4);
	expect(&insn(a, 0x19)->of_all, 0.6, 0.6, 0.6);
	as_annotation_free(a);
}

static void few_samples_do_not_rank_lines(void **state)
{
	uint64_t f = function("f");
	struct as_annotation *a;

	sample(on(NONE, leaf(0x10, (struct at){f, 1})), 7, 0);
	sample(on(NONE, leaf(0x20, (struct at){f, 2})), 5, 0);
	a = plain(f);
	assert_true(a->lines_tied);
	as_annotation_free(a);
}

static void names_are_matched_and_ranked(void **state)
{
	uint64_t cold = named("app::parse", "app::parse::<u8>");
	uint64_t hot = named("app::parse", "app::parse::<u32>");
	uint64_t part = named("app::parse_all", "app::parse_all");
	struct as_function_matches f;
	struct as_error err = {0};
	struct as_query q = {0};

	sample(on(NONE, leaf(0x10, (struct at){cold, 1})), 10, 0);
	sample(on(NONE, leaf(0x20, (struct at){hot, 1})), 20, 0);
	sample(on(NONE, leaf(0x30, (struct at){part, 1})), 70, 0);
	assert_int_equal(as_functions_find(loaded(), &q, "app::parse", &f, &err), 0);
	assert_int_equal(f.v.n, 2);
	assert_int_equal(f.v.v[0].function, hot);
	assert_int_equal(f.v.v[0].fit, AS_FIT_EXACT);
	assert_true(fabs(f.v.v[0].self.value - 0.2) < 1e-9);
	as_functions_clear(&f);
	assert_int_equal(as_functions_find(loaded(), &q, "app::parse::<u8>", &f, &err), 0);
	assert_int_equal(f.v.n, 1);
	assert_int_equal(f.v.v[0].function, cold);
	as_functions_clear(&f);
	assert_int_equal(as_functions_find(loaded(), &q, "parse", &f, &err), 0);
	assert_int_equal(f.v.n, 3); /* the last part of a path goes before the hotter part */
	assert_int_equal(f.v.v[0].function, hot);
	assert_int_equal(f.v.v[2].function, part);
	assert_int_equal(f.v.v[2].fit, AS_FIT_PART);
	as_functions_clear(&f);
	assert_int_equal(as_functions_find(loaded(), &q, "app::prase_all", &f, &err),
			 AS_E_NOTFOUND);
	assert_non_null(strstr(err.msg, "app::parse_all"));
}

/* Cross-check on random stacks: all figures of the function equal the profile's row. */
static void the_whole_function_equals_its_row_in_a_profile(void **state)
{
	uint64_t f[6], at;
	unsigned seed = 1;
	struct as_profile *p;
	struct as_query q = {0};

	for (int i = 0; i < 6; i++) {
		char name[8];

		snprintf(name, sizeof name, "f%d", i);
		f[i] = function(name);
	}
	for (int n = 0; n < 400; n++) {
		at = NONE;
		for (unsigned depth = 1 + (unsigned)rand_r(&seed) % 6; depth; depth--) {
			struct at a = {f[rand_r(&seed) % 6], 1 + (unsigned)rand_r(&seed) % 4};
			struct at b = {f[rand_r(&seed) % 6], 5 + (unsigned)rand_r(&seed) % 4};

			at = on(at,
				frame(0x1000 + (unsigned)rand_r(&seed) % 64 * 4,
				      depth == 1 ? AS_FRAME_EXACT : 0, a, b, (struct at){0}));
		}
		sample(at, 1 + (unsigned)rand_r(&seed) % 3, (unsigned)rand_r(&seed) % 2);
	}
	assert_int_equal(as_profile_make(loaded(), &q, &p, NULL), 0);
	as_vec_foreach (row, &p->rows) {
		struct as_annotation *a = plain(row->key);
		double self = 0, code = 0;

		assert_true(fabs(a->of_all.self.value - row->self.value) < 1e-12);
		assert_true(fabs(a->of_all.total.value - row->total.value) < 1e-12);
		assert_true(fabs(a->of_all.total.low - row->total.low) < 1e-9);
		assert_true(fabs(a->of_all.self.high - row->self.high) < 1e-9);
		as_vec_foreach (l, &a->places) {
			assert_true(l->parent == AS_NONE ||
				    l->parent < (size_t)(l - a->places.v));
			if (l->function == row->key)
				self += l->of_all.self.value;
		}
		as_vec_foreach (i, &a->insns)
			code += i->of_all.self.value;
		assert_true(self >= a->of_all.self.value - 1e-9);
		assert_true(fabs(code - a->of_all.code.value) < 1e-9);
		as_annotation_free(a);
	}
	as_profile_free(p);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		T(self_is_the_leaf_and_total_holds_the_calls),
		T(an_inlined_callee_stands_at_its_call_and_on_its_own_lines),
		T(recursion_counts_once_per_line),
		T(filters_work_as_in_a_profile),
		T(starts_gather_addresses_into_instructions),
		T(few_samples_do_not_rank_lines),
		T(names_are_matched_and_ranked),
		T(the_whole_function_equals_its_row_in_a_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

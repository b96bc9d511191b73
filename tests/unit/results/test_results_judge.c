/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a suite says as a whole: chance among many, one side, the mean, growth over a parameter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/judge.h"
#include "results/report.h"

static double normal(void)
{
	double u = drand48(), v = drand48();

	return sqrt(-2 * log(u + 1e-300)) * cos(2 * M_PI * v);
}

static const char *note_of(const struct as_bench_notes *notes, const char *kind)
{
	as_vec_foreach (n, notes) {
		if (strcmp(n->kind, kind) == 0)
			return n->text;
	}
	return NULL;
}

/* 20 pairs around `shift`; the verdict as each would have it alone. */
static void push_comparison(struct as_bench_set *s, double shift)
{
	struct as_bench_comparison c;
	double sum = 0, squares = 0, se;

	as_bench_comparison_init(&c);
	c.name = as_xasprintf("b%zu", s->comparisons.n);
	c.a = as_xstrdup("base");
	c.b = as_xstrdup("head");
	for (int i = 0; i < 20; i++) {
		double d = shift + 0.02 * normal();

		as_vec_push(&c.d, d);
		sum += d / 20;
		squares += d * d / 20;
	}
	se = sqrt((squares - sum * sum) / 19);
	c.ratio =
		(struct as_bench_estimate){exp(sum), exp(sum - 2.1 * se), exp(sum + 2.1 * se)};
	c.verdict = c.ratio.low > 1    ? AS_BENCH_SLOWER
		    : c.ratio.high < 1 ? AS_BENCH_FASTER
				       : AS_BENCH_EQUAL;
	c.processes = 20;
	as_vec_push(&s->comparisons, c);
}

static size_t changed(const struct as_bench_set *s)
{
	size_t n = 0;

	as_vec_foreach (c, &s->comparisons)
		n += c->verdict == AS_BENCH_SLOWER || c->verdict == AS_BENCH_FASTER;
	return n;
}

static void what_chance_explains_is_no_verdict(void **state)
{
	size_t before = 0, after = 0, alarms = 0;

	srand48(3);
	for (int r = 0; r < 20; r++) {
		struct as_bench_set s = {0};

		for (int i = 0; i < 60; i++)
			push_comparison(&s, 0);
		before += changed(&s);
		as_bench_judge(&s);
		after += changed(&s);
		alarms += note_of(&s.notes, "one-sided") != NULL;
		as_bench_set_clear(&s);
	}
	assert_true(before > 30); /* 5 % of 1200 */
	assert_true(after <= 3);
	assert_true(alarms <= 1);
}

static void a_real_change_among_many_stays(void **state)
{
	struct as_bench_set s = {0};
	const char *note = NULL;

	srand48(5);
	for (int i = 0; i < 60; i++)
		push_comparison(&s, i == 17 ? 0.05 : 0);
	as_bench_judge(&s);
	assert_int_equal(s.comparisons.v[17].verdict, AS_BENCH_SLOWER);
	as_vec_foreach (c, &s.comparisons)
		note = note ? note : note_of(&c->notes, "fdr");
	assert_non_null(strstr(note, "among 60 comparisons"));
	assert_non_null(strstr(note_of(&s.notes, "geometric-mean"),
			       "geometric mean of 60 comparisons: +0."));
	as_bench_set_clear(&s);
}

/* folo-rs/folo#429: nine runs with 1 to 29 regressions and no improvement */
static void changes_to_one_side_only_are_an_alarm(void **state)
{
	struct as_bench_set s = {0};

	srand48(7);
	for (int i = 0; i < 25; i++)
		push_comparison(&s, 0.03);
	as_bench_judge(&s);
	assert_int_equal(changed(&s), 25);
	assert_non_null(
		strstr(note_of(&s.notes, "one-sided"), "25 of 25 comparisons lean to slower"));
	as_bench_set_clear(&s);
}

static void stored_figures_take_no_part(void **state)
{
	struct as_bench_set s = {0};

	srand48(9);
	for (int i = 0; i < 25; i++) {
		push_comparison(&s, 0.03);
		s.comparisons.v[i].stored = true;
		s.comparisons.v[i].verdict = AS_BENCH_UNDECIDED;
	}
	as_bench_judge(&s);
	assert_int_equal(s.notes.n, 0);
	as_bench_set_clear(&s);
	as_bench_judge(&s);
	assert_int_equal(s.notes.n, 0);
}

static void push_bench(struct as_bench_set *s, const char *name, const char *side, double t)
{
	struct as_bench b;

	as_bench_init(&b);
	b.name = as_xstrdup(name);
	b.side = side ? as_xstrdup(side) : NULL;
	b.time.value = t;
	as_vec_push(&s->benches, b);
}

static void an_environment_that_moved_is_told(void **state)
{
	struct as_bench_set today = {.machine = as_xstrdup("m")},
			    then = {.machine = as_xstrdup("m")};

	srand48(11);
	for (int i = 0; i < 12; i++) {
		push_comparison(&today, 0);
		push_bench(&today, today.comparisons.v[i].name, "base", 1.12e-6);
		push_bench(&then, today.comparisons.v[i].name, NULL, 1e-6);
	}
	as_bench_judge_environment(&today, &then);
	assert_non_null(strstr(note_of(&today.notes, "environment"),
			       "+12 % off its last saved result in 12 benchmarks"));
	free(then.machine);
	then.machine = as_xstrdup("another");
	as_bench_judge_environment(&today, &then);
	assert_int_equal(today.notes.n, 1);
	as_bench_set_clear(&today);
	as_bench_set_clear(&then);
}

/* ---- growth ---- */

static void push_size(struct as_bench_set *s, const char *fmt_value, double n,
		      const char *method, double t)
{
	struct as_bench b;

	as_bench_init(&b);
	b.kind = AS_BENCH_COMMAND;
	b.name = as_xasprintf("sort -n %s %s", fmt_value, method);
	as_vec_push(&b.params, (struct as_bench_param){as_xstrdup("n"), as_xstrdup(fmt_value)});
	as_vec_push(&b.params, (struct as_bench_param){as_xstrdup("how"), as_xstrdup(method)});
	b.time.value = t;
	as_vec_push(&s->benches, b);
}

static void growth_is_told_for_each_other_parameter(void **state)
{
	static const char *const sizes[] = {"64", "1k", "4K", "16384", "65_536", "262144"};
	static const double n[] = {64, 1024, 4096, 16384, 65536, 262144};
	struct as_bench_set s = {0};
	struct as_style style = {.width = 120};
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};

	for (int i = 0; i < 6; i++) {
		push_size(&s, sizes[i], n[i], "heap", 1e-6 + 2e-9 * n[i] * log(n[i]));
		push_size(&s, sizes[i], n[i], "bubble", 1e-6 + 2e-9 * n[i] * n[i]);
	}
	as_bench_find_growth(&s, false);
	assert_int_equal(s.complexities.n, 2);
	assert_string_equal(s.complexities.v[0].name, "sort -n {n} bubble");
	assert_string_equal(s.complexities.v[0].best, "n²");
	assert_string_equal(s.complexities.v[1].best, "n log n");
	assert_int_equal(s.complexities.v[1].n.n, 6);
	as_bench_text(&s, &style, &out);
	assert_non_null(strstr(out.p, "growth sort -n {n} bubble over n: n², exponent 2.00"));
	as_bench_set_clear(&s);
}

static void few_sizes_are_told_only_when_asked(void **state)
{
	struct as_bench_set s = {0};

	push_size(&s, "1", 1, "heap", 1);
	push_size(&s, "2", 2, "heap", 2);
	as_bench_find_growth(&s, false);
	assert_int_equal(s.complexities.n, 0);
	as_bench_find_growth(&s, true);
	assert_int_equal(s.complexities.n, 1);
	assert_string_equal(s.complexities.v[0].best, "cannot tell from 2 sizes, 5 are needed");
	as_bench_set_clear(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_chance_explains_is_no_verdict),
		cmocka_unit_test(a_real_change_among_many_stays),
		cmocka_unit_test(changes_to_one_side_only_are_an_alarm),
		cmocka_unit_test(stored_figures_take_no_part),
		cmocka_unit_test(an_environment_that_moved_is_told),
		cmocka_unit_test(growth_is_told_for_each_other_parameter),
		cmocka_unit_test(few_sizes_are_told_only_when_asked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

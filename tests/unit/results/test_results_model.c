/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results: what is written is read again; damage is one clear error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/result.h"

static struct as_error err;

static void fill_bench(struct as_bench *b)
{
	as_bench_init(b);
	b->kind = AS_BENCH_FUNCTION;
	b->name = as_xstrdup("parse/\"small\"\xff");
	b->group = as_xstrdup("parse");
	b->side = as_xstrdup("head");
	b->unit = as_xstrdup("s");
	b->metric = as_xstrdup("time");
	for (int i = 0; i < 12; i++)
		as_vec_push(&b->samples, 1e-6 * (1 + i % 3));
	as_vec_push(&b->exit_codes, -9);
	b->throughput = AS_THRPT_ELEMENTS_AND_BYTES;
	b->throughput_n = 10;
	b->throughput_n2 = 4096;
	b->allocs = 3;
	b->processes = 12;
	b->iterations = 1000;
	as_vec_push(&b->params, (struct as_bench_param){as_xstrdup("n"), as_xstrdup("1\n2")});
	as_bench_note(&b->notes, "bimodal", "%d kinds of run", 2);
	as_bench_summarise(b);
}

static void fill_set(struct as_bench_set *s)
{
	struct as_bench_comparison c;
	struct as_bench_complexity x = {0};
	struct as_bench b;

	fill_bench(&b);
	*s = (struct as_bench_set){.title = as_xstrdup("suite"), .time_s = 1700000000};
	as_vec_push(&s->benches, b);
	as_bench_comparison_init(&c);
	c.name = as_xstrdup("parse/small");
	c.a = as_xstrdup("base");
	c.b = as_xstrdup("head");
	c.ratio = (struct as_bench_estimate){1.1, 1.05, 1.15};
	c.verdict = AS_BENCH_MOVED;
	c.dropped_timeout = 2;
	as_vec_push(&c.d, 0.0953);
	as_vec_push(&s->comparisons, c);
	x.name = as_xstrdup("sort");
	x.best = as_xstrdup("n log n");
	x.exponent = 1.07;
	x.exponent_low = x.exponent_high = x.knee = NAN;
	as_vec_push(&x.n, 1);
	as_vec_push(&x.t, 2e-9);
	as_vec_push(&s->complexities, x);
}

static void written_results_are_read_again(void **state)
{
	AS_CLEANUP(as_buf_clear) struct as_buf first = {0}, second = {0}, third = {0};
	struct as_bench_set s, back, again;

	fill_set(&s);
	as_bench_json(&s, &first);
	assert_int_equal(as_bench_read("x", first.p, first.len, &back, &err), AS_OK);
	as_bench_json(&back, &second); /* figures are rounded once, rates are made of those */
	assert_int_equal(as_bench_read("y", second.p, second.len, &again, &err), AS_OK);
	as_bench_json(&again, &third);
	assert_string_equal(second.p, third.p);
	assert_int_equal(back.benches.n, 1);
	assert_int_equal(back.benches.v[0].samples.n, 12);
	assert_int_equal(back.benches.v[0].exit_codes.v[0], -9);
	assert_string_equal(back.benches.v[0].params.v[0].value, "1\n2");
	assert_int_equal(back.comparisons.v[0].verdict, AS_BENCH_MOVED);
	assert_true(isnan(back.comparisons.v[0].seconds_needed));
	assert_true(isnan(back.complexities.v[0].knee));
	as_bench_set_clear(&s);
	as_bench_set_clear(&back);
	as_bench_set_clear(&again);
}

static void json_has_the_promised_fields_and_rates(void **state)
{
	static const char *const wanted[] = {"\"schema\": \"assay.bench/1\"",
					     "\"benchmarks\": [",
					     "\"unit\": \"s\"",
					     "\"mean\": ",
					     "\"low\": ",
					     "\"high\": ",
					     "\"comparisons\": [",
					     "\"a\": \"base\"",
					     "\"b\": \"head\"",
					     "\"ratio\": 1.1",
					     "\"verdict\": \"moved\"",
					     "\"processes\": 12",
					     "\"dropped\": {",
					     "\"bytes_per_second\": ",
					     "\"per_second\": "};
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	struct as_bench_set s;

	fill_set(&s);
	as_bench_json(&s, &out);
	for (size_t i = 0; i < AS_ARRAY_LEN(wanted); i++) {
		if (!strstr(out.p, wanted[i]))
			fail_msg("no %s in\n%s", wanted[i], out.p);
	}
	as_bench_set_clear(&s);
}

static void every_truncation_is_an_error(void **state)
{
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	struct as_bench_set s, back;

	fill_set(&s);
	as_bench_json(&s, &out);
	as_bench_set_clear(&s);
	for (size_t n = 0; n + 2 < out.len; n++) {
		AS_CLEANUP(as_free_autop) char *cut = as_xstrndup(out.p, n);

		assert_int_equal(as_bench_read("cut", cut, n, &back, &err), AS_E_FORMAT);
		assert_non_null(strstr(err.msg, "'cut' is no JSON"));
	}
}

static void another_schema_is_told(void **state)
{
	static const char newer[] = "{\"schema\":\"assay.bench/2\",\"benchmarks\":[]}";
	static const char other[] = "{\"schema\":\"assay.stat/1\"}", none[] = "[]";
	static const char listless[] = "{\"schema\":\"assay.bench/1\",\"benchmarks\":{}}";
	struct as_bench_set back;

	assert_int_equal(as_bench_read("f", newer, strlen(newer), &back, &err),
			 AS_E_UNSUPPORTED);
	assert_non_null(strstr(err.msg, "'assay.bench/2'"));
	assert_int_equal(as_bench_read("f", other, strlen(other), &back, &err), AS_E_FORMAT);
	assert_int_equal(as_bench_read("f", none, strlen(none), &back, &err), AS_E_FORMAT);
	assert_int_equal(as_bench_read("f", listless, strlen(listless), &back, &err),
			 AS_E_FORMAT);
}

static void fields_of_the_wrong_kind_count_as_absent(void **state)
{
	static const char odd[] =
		"{\"schema\":\"assay.bench/1\",\"benchmarks\":[7,{\"name\":[],\"mean\":\"x\","
		"\"samples\":[1,\"a\",null],\"parameters\":[],\"throughput\":{\"kind\":3},"
		"\"notes\":[1,{\"kind\":\"k\"}],\"processes\":-4}],\"comparisons\":{},"
		"\"complexities\":[null]}";
	struct as_bench_set back;

	assert_int_equal(as_bench_read("odd", odd, strlen(odd), &back, &err), AS_OK);
	assert_int_equal(back.benches.n, 2);
	assert_string_equal(back.benches.v[1].name, "");
	assert_true(isnan(back.benches.v[1].time.value));
	assert_int_equal(back.benches.v[1].samples.n, 3);
	assert_int_equal(back.benches.v[1].processes, 0);
	assert_int_equal(back.comparisons.n, 0);
	as_bench_set_clear(&back);
}

/* microsoft/pyright#11574: a change could raise the stored baseline that it was compared with */
static void a_figure_changed_by_hand_is_noticed(void **state)
{
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	struct as_bench_set s, back;
	char *digit;

	fill_set(&s);
	as_bench_json(&s, &out);
	as_bench_set_clear(&s);
	assert_int_equal(as_bench_read("x", out.p, out.len, &back, &err), AS_OK);
	assert_int_equal(back.notes.n, 0);
	as_bench_set_clear(&back);
	digit = strstr(out.p, "\"ratio\": 1.1") + strlen("\"ratio\": 1.");
	*digit = '2';
	assert_int_equal(as_bench_read("x", out.p, out.len, &back, &err), AS_OK);
	assert_int_equal(back.notes.n, 1);
	assert_string_equal(back.notes.v[0].kind, "edited");
	as_bench_set_clear(&back);
}

/* bheisler/criterion.rs#434 and kin: one figure is declared, whatever the samples look like */
static void one_estimate_is_declared(void **state)
{
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	struct as_bench_set s = {0}, back;
	struct as_bench b;

	as_bench_init(&b);
	b.name = as_xstrdup("skewed");
	for (int i = 0; i < 20; i++)
		as_vec_push(&b.samples, i == 7 ? 1.0 : 0.01);
	as_bench_summarise(&b);
	assert_true(fabs(b.time.value - 0.01) < 1e-9);
	assert_true(b.mean > 0.05);
	as_vec_push(&s.benches, b);
	as_bench_json(&s, &out);
	assert_int_equal(as_bench_read("x", out.p, out.len, &back, &err), AS_OK);
	assert_true(fabs(back.benches.v[0].time.value - 0.01) < 1e-9);
	as_bench_set_clear(&s);
	as_bench_set_clear(&back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_results_are_read_again),
		cmocka_unit_test(json_has_the_promised_fields_and_rates),
		cmocka_unit_test(every_truncation_is_an_error),
		cmocka_unit_test(another_schema_is_told),
		cmocka_unit_test(fields_of_the_wrong_kind_count_as_absent),
		cmocka_unit_test(a_figure_changed_by_hand_is_noticed),
		cmocka_unit_test(one_estimate_is_declared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reports of results: figures as text, and data of which a plot could not be made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "results/page.h"
#include "results/report.h"

static const struct as_style style = {.width = 80};

static void figures_have_three_digits_and_a_unit(void **state)
{
	static const struct {
		const char *unit;
		double x;
		const char *text;
	} c[] = {
		{"s", 1.82e-6, "1.82 µs"},
		{"s", 0.53e-9, "0.53 ns"},
		{"s", 0, "0 ns"},
		{"s", 3e-14, "3e-05 ns"},
		{"s", 0.99951e-3, "1.00 ms"},
		{"s", 412.4e-9, "412 ns"},
		{"s", 12345.6, "12,346 s"},
		{"s", -0.002, "-2.00 ms"},
		{"s", NAN, "-"},
		{"s", INFINITY, "-"},
		{NULL, 1, "1.00 s"},
		{"B", 12345678, "11.8 MiB"},
		{"cache-misses", 0, "0 cache-misses"},
		{"cycles", 1234567, "1.23 M cycles"},
		{"1", 3, "3"},
		{"1", 2.5, "2.50"},
		{"J", 0.0001234, "0.000123 J"},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(c); i++) {
		AS_CLEANUP(as_buf_clear) struct as_buf out = {0};

		as_bench_value(&out, c[i].unit, c[i].x);
		assert_string_equal(as_buf_str(&out), c[i].text);
	}
}

/* criterion 0.8 prints U+2212, which readers of 0.5's output do not take for a minus */
static void changes_are_percent_or_times_with_an_ascii_sign(void **state)
{
	static const struct {
		struct as_bench_estimate ratio;
		const char *text;
	} c[] = {
		{{1.024, 0.991, 1.056}, "+2.4 % [-0.9, +5.6]"},
		{{0.5, 0.49, 0.51}, "-50.0 % [-51.0, -49.0]"},
		{{2.41, 2.38, 2.44}, "x2.41 [2.38, 2.44]"},
		{{0.001, 0.0009, 0.0011}, "x0.00 [0.00, 0.00]"},
		{{1, NAN, NAN}, "+0.0 %"},
		{{1, -INFINITY, INFINITY}, "+0.0 %"},
		{{NAN, NAN, NAN}, "-"},
		{{0, 0, 0}, "-"},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(c); i++) {
		AS_CLEANUP(as_buf_clear) struct as_buf out = {0};

		as_bench_change(&out, &c[i].ratio);
		assert_string_equal(as_buf_str(&out), c[i].text);
	}
}

static void a_distribution_is_nine_cells_whatever_it_is_of(void **state)
{
	static const double constant[] = {1, 1, 1, 1}, zeros[] = {0, 0, 0};
	static const double odd[] = {NAN, 1, INFINITY, 2, 3, -INFINITY};
	static const double spike[] = {1, 1.1, 1.2, 1.1, 1, 1.15, 1e9};
	static const double huge[] = {-1e308, 0, 1e308};
	static const struct {
		const double *v;
		size_t n;
	} c[] = {{constant, 4}, {zeros, 3}, {odd, 6}, {spike, 7}, {huge, 3}};

	for (size_t i = 0; i < AS_ARRAY_LEN(c); i++) {
		AS_CLEANUP(as_buf_clear) struct as_buf out = {0};

		as_bench_spark(&out, c[i].v, c[i].n);
		assert_int_equal(as_text_width(out.p, out.len), AS_BENCH_SPARK);
	}
	AS_CLEANUP(as_buf_clear) struct as_buf none = {0};

	as_bench_spark(&none, constant, 2);
	as_bench_spark(&none, odd, 2);
	assert_int_equal(none.len, 0);
}

static void push_bench(struct as_bench_set *s, const char *name, double t, size_t n)
{
	struct as_bench b;

	as_bench_init(&b);
	b.name = as_xstrdup(name);
	b.unit = as_xstrdup("s");
	b.metric = as_xstrdup("time");
	for (size_t i = 0; i < n; i++)
		as_vec_push(&b.samples, t);
	as_bench_summarise(&b);
	as_bench_note(&b.notes, "debug-build", "built without optimisation");
	as_vec_push(&s->benches, b);
}

static void degenerate_results_are_shown(void **state)
{
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	struct as_bench_set s = {0};

	as_bench_text(&s, &style, &out);
	assert_int_equal(out.len, 0);
	push_bench(&s, "constant", 1e-6, 20);
	push_bench(&s, "one", 2e-6, 1);
	push_bench(&s, "zeros", 0, 5);
	push_bench(&s, "nothing", 0, 0);
	push_bench(&s, "with\033[31mcolour\n", 1e5, 3);
	as_bench_text(&s, &style, &out);
	assert_string_equal(out.p, "constant                      1.00 µs  ±0.0 %      █\n"
				   "one                           2.00 µs\n"
				   "zeros                         0    ns              █\n"
				   "nothing                       -\n"
				   "with\\x1b[31mcolour\\x0a  100,000    s   ±0.0 %      █\n"

				   "\n"
				   "note   built without optimisation (5 of them)\n"
				   "suite  5 benchmarks\n");
	as_bench_set_clear(&s);
}

static void one_that_was_compared_is_one_line(void **state)
{
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	struct as_bench_set s = {0};
	struct as_bench_comparison c;

	push_bench(&s, "parse", 2e-6, 12);
	push_bench(&s, "parse", 1e-6, 12);
	s.benches.v[0].side = as_xstrdup("base");
	s.benches.v[1].side = as_xstrdup("head");
	as_bench_comparison_init(&c);
	c.name = as_xstrdup("parse");
	c.a = as_xstrdup("base");
	c.b = as_xstrdup("head");
	c.ratio = (struct as_bench_estimate){0.5, 0.49, 0.51};
	c.by_median = c.ratio;
	c.verdict = AS_BENCH_FASTER;
	c.processes = 12;
	as_vec_push(&s.comparisons, c);
	as_bench_text(&s, &style, &out);
	assert_string_equal(out.p,
			    "parse  1.00 µs  -50.0 % [-51.0, -49.0]  faster  12 pairs      █\n"
			    "   note  built without optimisation\n"
			    "\n"
			    "suite  2 benchmarks · 1 faster\n");
	as_bench_set_clear(&s);
}

/* No attribute of a drawing is anything but a number. */
static void check_page(const char *html)
{
	static const char *const bad[] = {"nan", "inf", "-0.0e"};

	for (const char *p = strchr(html, '='); p; p = strchr(p + 1, '=')) {
		if (p[1] != '"')
			continue;
		for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++)
			assert_int_not_equal(strncmp(p + 2, bad[i], strlen(bad[i])), 0);
	}
	assert_non_null(strstr(html, "</html>"));
}

/* bheisler/criterion.rs#471, #467, cargo-criterion#33: equal samples or a logarithmic axis looped for
 * ever; #388: an empty range */
static void pages_of_degenerate_results_end(void **state)
{
	static const double odd[] = {0, -1, NAN, INFINITY, 1e308, -1e308, 1e-308};
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	struct as_bench_trends trends = {0};
	struct as_bench_trend t = {.bench = as_xstrdup("constant"),
				   .unit = as_xstrdup("s"),
				   .machine = as_xstrdup("m")};
	struct as_bench_complexity x = {.name = as_xstrdup("one size"), .knee = 5};
	struct as_bench_comparison c;
	struct as_bench_set s = {0};

	push_bench(&s, "constant", 1e-6, 20);
	push_bench(&s, "zeros", 0, 5);
	push_bench(&s, "nothing", 0, 0);
	push_bench(&s, "<odd>&", 1, 1);
	for (size_t i = 0; i < AS_ARRAY_LEN(odd); i++) {
		as_vec_push(&s.benches.v[3].samples, odd[i]);
		as_vec_push(&t.v, (struct as_bench_trend_point){.revision = as_xstrdup(""),
								.e = {odd[i], odd[i], odd[i]}});
		as_vec_push(&x.n, i % 2 ? odd[i] : 5);
		as_vec_push(&x.t, i % 2 ? 5 : odd[i]);
	}
	as_vec_push(&trends.v, t);
	as_vec_push(&s.complexities, x);
	as_bench_comparison_init(&c);
	c.name = as_xstrdup("constant");
	c.a = as_xstrdup("zeros");
	c.b = as_xstrdup("nowhere");
	for (size_t i = 0; i < AS_ARRAY_LEN(odd); i++)
		as_vec_push(&c.d, odd[i]);
	as_vec_push(&s.comparisons, c);
	as_bench_page(&(struct as_bench_page_request){&s, &trends}, &out);
	check_page(out.p);
	as_buf_reset(&out);
	as_bench_page(&(struct as_bench_page_request){.trends = &trends}, &out);
	check_page(out.p);
	assert_null(strstr(out.p, "<odd>"));
	as_buf_reset(&out);
	as_bench_page(&(struct as_bench_page_request){0}, &out);
	check_page(out.p);
	as_bench_trends_clear(&trends);
	as_bench_set_clear(&s);
}

/* The curve of what was chosen stands beside the points, and all of it within the frame. */
static void growth_is_drawn_with_its_fitted_curve(void **state)
{
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	struct as_bench_complexity x = {.name = as_xstrdup("sort"),
					.best = as_xstrdup("n log n"),
					.exponent = 1.1,
					.knee = NAN};
	struct as_bench_set s = {0};
	const char *fit, *end;
	size_t points = 1;

	for (double n = 8; n < 1e5; n *= 4) {
		as_vec_push(&x.n, n);
		as_vec_push(&x.t, 1e-7 + 3e-9 * n * log2(n));
	}
	as_vec_push(&s.complexities, x);
	as_bench_page(&(struct as_bench_page_request){.set = &s}, &out);
	check_page(out.p);
	fit = strstr(out.p, "<path class=\"fit\" d=\"M");
	assert_non_null(fit);
	end = strchr(fit, '>');
	for (const char *p = fit; p < end; p++)
		points += *p == 'L';
	assert_int_equal(points, 60);
	assert_non_null(strstr(out.p, "class=\"course\""));
	as_bench_set_clear(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_have_three_digits_and_a_unit),
		cmocka_unit_test(changes_are_percent_or_times_with_an_ascii_sign),
		cmocka_unit_test(a_distribution_is_nine_cells_whatever_it_is_of),
		cmocka_unit_test(degenerate_results_are_shown),
		cmocka_unit_test(one_that_was_compared_is_one_line),
		cmocka_unit_test(pages_of_degenerate_results_end),
		cmocka_unit_test(growth_is_drawn_with_its_fitted_curve),
	};
	setlocale(LC_ALL, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}

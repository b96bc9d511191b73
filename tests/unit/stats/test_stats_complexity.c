/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Growth with size: the right model or "cannot separate", whatever the unit, the noise and the sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "stats/complexity.h"

#define TRIALS 150

static double normal(void)
{
	double u = drand48(), v = drand48();

	return sqrt(-2 * log(u + 1e-300)) * cos(2 * M_PI * v);
}

/* k sizes from 10, `decades` apart. */
static void sizes(double *n, size_t k, double decades)
{
	for (size_t i = 0; i < k; i++)
		n[i] = pow(10, 1 + decades * (double)i / (double)(k - 1));
}

static void check_text(const struct as_growth_fit *f, const char *text)
{
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};

	as_growth_text(f, &out);
	assert_string_equal(as_buf_str(&out), text);
}

static void exact_times_are_named_with_their_coefficients(void **state)
{
	double n[6], t[6];
	struct as_growth_fit f;

	sizes(n, 6, 2.5);
	for (int g = 0; g < AS_G_COUNT_; g++) {
		for (size_t i = 0; i < 6; i++)
			t[i] = (g ? 3e-7 : 0) + 2e-9 * as_growth_value((enum as_growth)g, n[i]);
		as_growth_fit(n, t, 6, &f);
		assert_int_equal(f.state, AS_GROWTH_FOUND);
		assert_int_equal(f.best, g);
		assert_true(isnan(f.knee));
		assert_true(fabs(f.coefficient / 2e-9 - 1) < 1e-6);
		assert_true(fabs(f.intercept - (g ? 3e-7 : 0)) < 1e-12);
		check_text(&f, as_growth_names[g]);
	}
}

/* google/benchmark#296: without an intercept it is fitted as something else */
static void an_intercept_below_zero_is_found(void **state)
{
	double n[6] = {8, 16, 64, 256, 1024, 8192}, t[6];
	struct as_growth_fit f;

	for (size_t i = 0; i < 6; i++)
		t[i] = 29 * n[i] - 88;
	as_growth_fit(n, t, 6, &f);
	assert_int_equal(f.best, AS_G_N);
	assert_true(fabs(f.coefficient - 29) < 1e-6 && fabs(f.intercept + 88) < 1e-4);
	assert_true(f.exponent > 0.98 && f.exponent < 1.02);
}

/* google/benchmark#357: the error was scaled by the unit */
static void nothing_depends_on_the_unit(void **state)
{
	double n[7], s[7], ns[7];
	struct as_growth_fit a, b;

	sizes(n, 7, 3);
	srand48(3);
	for (size_t i = 0; i < 7; i++) {
		s[i] = 1e-9 * n[i] * log(n[i]) * exp(0.03 * normal());
		ns[i] = s[i] * 1e9;
	}
	as_growth_fit(n, s, 7, &a);
	as_growth_fit(n, ns, 7, &b);
	assert_int_equal(a.state, b.state);
	assert_int_equal(a.best, b.best);
	for (int g = 0; g < AS_G_COUNT_; g++)
		assert_true(isinf(a.loss[g]) || fabs(a.loss[g] / b.loss[g] - 1) < 1e-9);
	assert_true(fabs(a.exponent - b.exponent) < 1e-9);
}

/* google/benchmark#243: log 1 = 0 */
static void sizes_from_one_give_no_nan(void **state)
{
	double n[6] = {1, 2, 4, 16, 64, 256}, t[6];
	struct as_growth_fit f;

	for (int g = 0; g < AS_G_COUNT_; g++) {
		for (size_t i = 0; i < 6; i++)
			t[i] = 5e-9 + 1e-9 * (g ? as_growth_value((enum as_growth)g, n[i]) : 1);
		as_growth_fit(n, t, 6, &f);
		assert_int_equal(f.best, g);
		assert_int_equal(f.state, AS_GROWTH_FOUND);
		for (int m = 0; m < AS_G_COUNT_; m++)
			assert_false(isnan(f.loss[m]));
		assert_false(isnan(f.coefficient) || isnan(f.intercept) || isnan(f.exponent));
	}
}

static void what_cannot_tell_is_refused(void **state)
{
	double n[8] = {10, 20, 40, 80, 99, 99, -5, NAN}, t[8] = {1, 2, 4, 8, 9, 9, 1, 1};
	struct as_growth_fit f;

	as_growth_fit(n, t, 4, &f);
	check_text(&f, "cannot tell from 4 sizes, 5 are needed");
	as_growth_fit(n, t, 8, &f);
	assert_int_equal(f.sizes, 5);
	check_text(&f, "cannot tell: the sizes are less than 10-fold apart");
	as_growth_fit(n, t, 0, &f);
	assert_int_equal(f.sizes, 0);
	for (size_t i = 0; i < 8; i++) {
		n[i] = pow(3, (double)i);
		t[i] = i % 2 ? 1e-3 : 1e-9;
	}
	as_growth_fit(n, t, 8, &f);
	check_text(&f, "none of 1, log n, n, n log n, n², n³");
	for (size_t i = 0; i < 8; i++)
		t[i] = i == 3 ? INFINITY : 0;
	as_growth_fit(n, t, 8, &f);
	assert_int_equal(f.state, AS_GROWTH_FEW_SIZES);
}

/* google/benchmark#272, #1751: noise made a constant log n or n^2 */
static void a_noisy_constant_is_not_called_growth(void **state)
{
	double n[6], t[6];
	size_t wrong = 0;

	sizes(n, 6, 2);
	srand48(11);
	for (int r = 0; r < TRIALS; r++) {
		struct as_growth_fit f;

		for (size_t i = 0; i < 6; i++)
			t[i] = 1e-6 * (1 + 0.05 * (2 * drand48() - 1));
		as_growth_fit(n, t, 6, &f);
		assert_true(isnan(f.knee));
		wrong += !f.left[AS_G_CONST];
	}
	assert_true(wrong <= TRIALS / 20);
}

/* Of noisy times the true model is the answer or among those that are left, and mostly alone. */
static void the_true_model_is_left(void **state)
{
	static const double noise[] = {0.01, 0.05, 0.1};
	double n[9], t[9];

	srand48(5);
	for (size_t s = 0; s < AS_ARRAY_LEN(noise); s++) {
		for (int g = AS_G_LOG; g < AS_G_COUNT_; g++) {
			size_t alone = 0, left = 0;

			sizes(n, 9, 2.2);
			for (int r = 0; r < TRIALS; r++) {
				struct as_growth_fit f;

				for (size_t i = 0; i < 9; i++)
					t[i] = as_growth_value((enum as_growth)g, n[i]) *
					       exp(noise[s] * normal());
				as_growth_fit(n, t, 9, &f);
				left += f.left[g] && isnan(f.knee);
				alone += f.state == AS_GROWTH_FOUND && (int)f.best == g &&
					 isnan(f.knee);
			}
			if (left < TRIALS * 93 / 100 ||
			    alone < TRIALS * (s == 2 ? 60 : 85) / 100)
				fail_msg("%s with noise %g: left %zu, alone %zu of %d",
					 as_growth_names[g], noise[s], left, alone, TRIALS);
		}
	}
}

static void the_exponents_interval_covers(void **state)
{
	double n[8], t[8];
	size_t held = 0, bounded = 0;

	sizes(n, 8, 3);
	srand48(17);
	for (int r = 0; r < TRIALS; r++) {
		struct as_growth_fit f;

		for (size_t i = 0; i < 8; i++)
			t[i] = (50 + pow(n[i], 1.5)) * exp(0.04 * normal());
		as_growth_fit(n, t, 8, &f);
		held += !(f.low > 1.5) && !(f.high < 1.5);
		bounded += f.high - f.low < 0.5;
	}
	assert_true(held >= TRIALS * 90 / 100);
	assert_true(bounded >= TRIALS * 90 / 100);
}

/* Quadratic from a few 10,000 on, where small inputs look linear: what no single model describes. */
static void a_square_that_shows_only_at_scale_is_found(void **state)
{
	double n[9], t[9];
	size_t found = 0, placed = 0;

	srand48(23);
	for (size_t i = 0; i < 9; i++)
		n[i] = pow(10, 1 + 0.6 * (double)i);
	for (int r = 0; r < TRIALS; r++) {
		struct as_growth_fit f;

		for (size_t i = 0; i < 9; i++)
			t[i] = (1e-7 + 2e-8 * n[i] + 2e-12 * n[i] * n[i]) *
			       exp(0.02 * normal());
		as_growth_fit(n, t, 9, &f);
		found += !isnan(f.knee) && f.after == AS_G_N2;
		placed += f.knee > 3e3 && f.knee < 3e4; /* 1e4: both cost the same */
		if (r == 0)
			check_text(&f, "n, n² at scale");
	}
	assert_true(found >= TRIALS * 90 / 100);
	assert_true(placed >= TRIALS * 85 / 100);
}

/* Each element three times as dear once the cache is full. */
static void leaving_a_cache_is_a_knee_of_the_same_growth(void **state)
{
	double n[14], t[14];
	struct as_growth_fit f;

	srand48(29);
	for (size_t i = 0; i < 14; i++) {
		n[i] = 1000 * pow(2, (double)i);
		t[i] = (1e-9 * n[i] + 2e-9 * fmax(0, n[i] - 64000)) * exp(0.01 * normal());
	}
	as_growth_fit(n, t, 14, &f);
	assert_int_equal(f.best, AS_G_N);
	assert_int_equal(f.after, AS_G_N);
	assert_true(f.knee >= 32000 && f.knee <= 128000);
}

static void many_sizes_take_few_milliseconds(void **state)
{
	enum { MANY = 3000 };
	AS_CLEANUP(as_free_autop) double *n = as_xcalloc(MANY, sizeof *n);
	AS_CLEANUP(as_free_autop) double *t = as_xcalloc(MANY, sizeof *t);
	struct rusage before, after;
	struct as_growth_fit f;
	double ms;

	srand48(31);
	for (size_t i = 0; i < MANY; i++) {
		n[i] = (double)(1 + i / 3);
		t[i] = n[i] * n[i] * exp(0.1 * normal());
	}
	getrusage(RUSAGE_SELF, &before);
	as_growth_fit(n, t, MANY, &f);
	getrusage(RUSAGE_SELF, &after);
	ms = 1e3 * (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
	     1e-3 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec);
	assert_int_equal(f.sizes, AS_GROWTH_MAX);
	assert_int_equal(f.best, AS_G_N2);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(ms < 50);
#else
	assert_true(ms < 500);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_times_are_named_with_their_coefficients),
		cmocka_unit_test(an_intercept_below_zero_is_found),
		cmocka_unit_test(nothing_depends_on_the_unit),
		cmocka_unit_test(sizes_from_one_give_no_nan),
		cmocka_unit_test(what_cannot_tell_is_refused),
		cmocka_unit_test(a_noisy_constant_is_not_called_growth),
		cmocka_unit_test(the_true_model_is_left),
		cmocka_unit_test(the_exponents_interval_covers),
		cmocka_unit_test(a_square_that_shows_only_at_scale_is_found),
		cmocka_unit_test(leaving_a_cache_is_a_knee_of_the_same_growth),
		cmocka_unit_test(many_sizes_take_few_milliseconds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

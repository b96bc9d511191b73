/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* stats/runs: figures of repeated runs, on values whose truth is known. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/mem.h"
#include "stats/interval.h"
#include "stats/runs.h"

static uint64_t seed = 88172645463325252ull;

static double normal(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return as_normal_quantile(((double)(seed >> 11) + 0.5) / 9007199254740992.0);
}

static void times_have_no_interval_below_zero(void **state)
{
	/* a machine that was busy half of the time: neighbours are alike, the interval is wide */
	double v[30];
	struct as_runs_summary s;

	for (size_t i = 0; i < 30; i++)
		v[i] = i < 22 ? 300 + (double)i : 5000 + (double)i;
	as_runs_summarise(v, 30, &s);
	assert_true(s.high > 2 * s.mean);
	assert_true(s.low > 0 && fabs(s.low * s.high - s.mean * s.mean) < 1e-6);
	for (size_t i = 0; i < 30; i++)
		v[i] -= 1000; /* where zero means nothing it stays symmetric */
	as_runs_summarise(v, 30, &s);
	assert_true(fabs((s.high - s.mean) - (s.mean - s.low)) < 1e-6);
}

static void a_few_runs_have_the_t_interval_of_their_mean(void **state)
{
	double v[] = {1, NAN, 2, 3};
	struct as_runs_summary s;

	as_runs_summarise(v, 4, &s);
	assert_int_equal(s.n, 3);
	assert_true(fabs(s.mean - 2) < 1e-12 && fabs(s.sd - 1) < 1e-12);
	assert_true(fabs(s.high - (2 + 4.302653 / sqrt(3))) < 1e-4); /* t(2) */
	assert_true(s.min == 1 && s.max == 3 && s.median == 2);
}

static void two_runs_or_none_have_no_interval(void **state)
{
	double v[] = {1, 2}, none[] = {NAN};
	struct as_runs_summary s;

	as_runs_summarise(v, 2, &s);
	assert_true(s.mean == 1.5 && isinf(s.low) && isinf(s.high));
	as_runs_summarise(none, 1, &s);
	assert_true(s.n == 0 && isnan(s.mean));
}

/* 95 % of 600 intervals hold the truth: 93-97 % allows three standard errors. */
static void coverage(double carry, double *ret_share)
{
	int held = 0, trials = 600;

	for (int t = 0; t < trials; t++) {
		struct as_runs_summary s;
		double v[60], drift = normal();

		for (size_t i = 0; i < AS_ARRAY_LEN(v); i++) {
			drift = carry * drift + sqrt(1 - carry * carry) * normal();
			v[i] = 100 + drift;
		}
		as_runs_summarise(v, AS_ARRAY_LEN(v), &s);
		held += s.low <= 100 && 100 <= s.high;
	}
	*ret_share = (double)held / trials;
}

static void intervals_of_independent_runs_hold_the_truth(void **state)
{
	double share;

	coverage(0, &share);
	if (share < 0.925 || share > 0.98)
		fail_msg("%.3f", share);
}

/* As measured on an idle virtual machine: neighbours correlate. Without widening: 70 %. */
static void intervals_of_drifting_runs_hold_the_truth(void **state)
{
	double share;

	coverage(0.6, &share);
	if (share < 0.90)
		fail_msg("%.3f", share);
}

static void two_groups_are_a_mixture_and_one_is_not(void **state)
{
	double v[40];
	struct as_runs_summary s;

	for (size_t i = 0; i < AS_ARRAY_LEN(v); i++)
		v[i] = (i * 7 % 10 < 4 ? 15 : 10) + 0.1 * normal();
	as_runs_summarise(v, AS_ARRAY_LEN(v), &s);
	assert_true(s.mixture && fabs(s.groups[0] - 10) < 0.2 && fabs(s.groups[1] - 15) < 0.2);
	for (size_t i = 0; i < AS_ARRAY_LEN(v); i++)
		v[i] = 10 + (double)(i % 2) * 1e-3; /* two groups nobody cares about */
	as_runs_summarise(v, AS_ARRAY_LEN(v), &s);
	assert_false(s.mixture);
}

/* Of `trials` times n values in one group: how often two are seen. */
static int mixtures_of(double (*draw)(void), size_t n, int trials)
{
	double v[100];
	struct as_runs_summary s;
	int seen = 0;

	for (int t = 0; t < trials; t++) {
		for (size_t i = 0; i < n; i++)
			v[i] = draw();
		as_runs_summarise(v, n, &s);
		seen += s.mixture;
	}
	return seen;
}

static double bell(void)
{
	return 10 + normal();
}

static double long_tail(void)
{
	return exp(normal());
}

static void one_group_is_hardly_ever_two(void **state)
{
	assert_in_range(mixtures_of(bell, 20, 2000), 0, 30);
	assert_in_range(mixtures_of(bell, 40, 2000), 0, 3);
	assert_in_range(mixtures_of(long_tail, 20, 2000), 0, 40);
	assert_in_range(mixtures_of(long_tail, 100, 500), 0, 1);
	assert_int_equal(mixtures_of(bell, 10, 2000), 0); /* too few to tell */
}

static void what_stands_apart_is_found(void **state)
{
	double v[] = {1, 1.01, 0.99, 1.02, 5, 1, 0.98, NAN, 1.01};
	bool apart[AS_ARRAY_LEN(v)];

	assert_int_equal(as_runs_outliers(v, AS_ARRAY_LEN(v), apart), 1);
	assert_true(apart[4] && !apart[7]);
	v[4] = 1.015; /* not worth a word */
	assert_int_equal(as_runs_outliers(v, AS_ARRAY_LEN(v), apart), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_have_no_interval_below_zero),
		cmocka_unit_test(a_few_runs_have_the_t_interval_of_their_mean),
		cmocka_unit_test(two_runs_or_none_have_no_interval),
		cmocka_unit_test(intervals_of_independent_runs_hold_the_truth),
		cmocka_unit_test(intervals_of_drifting_runs_hold_the_truth),
		cmocka_unit_test(two_groups_are_a_mixture_and_one_is_not),
		cmocka_unit_test(one_group_is_hardly_ever_two),
		cmocka_unit_test(what_stands_apart_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

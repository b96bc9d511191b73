/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stats/paired: intervals against hand-checked values, boundaries against published ones, and the
 * whole procedure against its promise on simulated pairs with fixed seeds.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/mem.h"
#include "stats/interval.h"
#include "stats/paired.h"

static uint64_t seed;

static double uniform(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return ((double)(seed >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return as_normal_quantile(uniform());
}

/* As measured here: mostly calm, now and then a spike ten times as wide. */
static double heavy(void)
{
	return normal() * (uniform() < 0.08 ? 10 : 1);
}

/* Yuen's interval of 1 … 10: trimmed mean of 3 … 8 is 5.5; winsorised 3 3 3 4 5 6 7 8 8 8 about 5.5
 * has sum of squares 42.5, s = 2.1730, se = 2.1730 / (0.6 sqrt 10) = 1.145307, t(5) = 2.57058. */
static void a_trimmed_interval_matches_the_textbook(void **state)
{
	double v[] = {10, 1, 9, 2, 8, 3, 7, 4, 6, 5};
	struct as_trimmed t;

	as_trimmed_interval(v, 10, 0.2, 0.05, &t);
	assert_true(fabs(t.value - 5.5) < 1e-12);
	assert_true(fabs(t.se - 1.145307) < 1e-5);
	assert_true(fabs(t.hi - (5.5 + 2.570582 * 1.145307)) < 1e-4);
	as_trimmed_interval(v, 10, 0, 0.05, &t); /* plain mean: s = 3.02765, t(9) = 2.262157 */
	assert_true(fabs(t.hi - (5.5 + 2.262157 * 3.02765 / sqrt(10))) < 1e-4);
	assert_true(v[0] == 10); /* not sorted in place */
}

static void too_few_values_have_no_bounds(void **state)
{
	double v[] = {1, 2, 3, 4, 5};
	struct as_trimmed t;

	for (size_t n = 0; n < 3; n++) {
		as_trimmed_interval(v, n, 0.2, 0.05, &t);
		assert_true(isinf(t.lo) && isinf(t.hi));
	}
	as_median_interval(v, 5, 0.05, &t);
	assert_true(t.value == 3 && isinf(t.lo) && isinf(t.hi));
	as_median_interval(v, 0, 0.05, &t);
	assert_true(isnan(t.value));
}

/* The sign test's tables: n = 6 -> 1st and 6th, n = 20 -> 6th and 15th, n = 100 -> 40th and 61st. */
static void a_median_interval_matches_the_tables(void **state)
{
	static const size_t cases[][2] = {{6, 1}, {20, 6}, {100, 40}};
	double v[1200];
	struct as_trimmed t;

	for (size_t i = 0; i < AS_ARRAY_LEN(v); i++)
		v[i] = (double)i + 1;
	for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
		as_median_interval(v, cases[i][0], 0.05, &t);
		assert_int_equal((int)t.lo, (int)cases[i][1]);
		assert_int_equal((int)t.hi, (int)(cases[i][0] - cases[i][1] + 1));
	}
	/* both ways of counting agree where they meet */
	as_median_interval(v, 1000, 0.05, &t);
	double lo = t.lo;
	as_median_interval(v, 1001, 0.05, &t);
	assert_true(fabs(t.lo - lo) <= 1);
}

/* One look at the end is a fixed test; alpha t^2 leaves 1.2 % for a look at half-time. */
static void spending_meets_its_ends(void **state)
{
	struct as_sequence s;

	as_sequence_init(&s, &(struct as_sequence_rule){0});
	assert_true(fabs(as_sequence_spend(&s, 1) - 0.05) < 1e-6);
	as_sequence_init(&s, &(struct as_sequence_rule){0});
	assert_true(fabs(as_sequence_spend(&s, 0.5) - 0.0125) < 1e-6);
	double last = as_sequence_spend(&s, 1);
	assert_true(last > 0.0375 && last < 0.05); /* more than Bonferroni, less than free */
	assert_true(fabs(s.spent - 0.05) < 1e-6);
	assert_true(as_sequence_spend(&s, 1.5) == 0); /* nothing left */
}

/* The share of driftless walks that ever cross is the error that was to be spent. */
static void boundaries_spend_what_they_promise(void **state)
{
	double t[] = {0.01, 0.03, 0.08, 0.15, 0.3, 0.5, 0.75, 1}, level[AS_ARRAY_LEN(t)];
	struct as_sequence s;
	int crossed = 0, runs = 20000;

	as_sequence_init(&s, &(struct as_sequence_rule){0});
	for (size_t i = 0; i < AS_ARRAY_LEN(t); i++)
		level[i] = as_sequence_spend(&s, t[i]);
	seed = 88172645463325252ull;
	for (int r = 0; r < runs; r++) {
		double walk = 0, before = 0;

		for (size_t i = 0; i < AS_ARRAY_LEN(t); i++) {
			walk += normal() * sqrt(t[i] - before);
			before = t[i];
			if (erfc(fabs(walk) / sqrt(t[i]) * M_SQRT1_2) < level[i]) {
				crossed++;
				break;
			}
		}
	}
	/* 5 % +- 4 standard errors of 20,000 walks */
	assert_true(fabs((double)crossed / runs - 0.05) < 4 * sqrt(0.05 * 0.95 / runs));
}

struct tally {
	int verdicts[AS_VERDICT_COUNT_];
	double pairs;
};

static struct tally compare(double (*noise)(void), double sd, double truth, int comparisons)
{
	enum { BUDGET = 400 };
	struct tally tally = {0};

	for (int c = 0; c < comparisons; c++) {
		struct as_sequence s;
		struct as_look look = {0};
		double d[BUDGET];
		size_t n = 0;

		as_sequence_init(&s, &(struct as_sequence_rule){0});
		while (n < BUDGET) {
			d[n++] = truth + sd * noise();
			if (!as_sequence_due(&s, n) && n < BUDGET)
				continue;
			look = as_sequence_look(&s, d, n, (double)n / BUDGET);
			if (look.verdict != AS_VERDICT_UNDECIDED)
				break;
		}
		tally.verdicts[look.verdict]++;
		tally.pairs += (double)n / comparisons;
	}
	return tally;
}

static void equal_sides_are_hardly_ever_called_different(void **state)
{
	seed = 4101842887655102017ull;
	struct tally t = compare(heavy, 0.019, 0, 300);

	assert_true(t.verdicts[AS_VERDICT_SLOWER] + t.verdicts[AS_VERDICT_FASTER] <= 4);
	assert_true(t.verdicts[AS_VERDICT_EQUAL] > 285);
}

/* The hardest case: noise so wide that no run can end as equal. */
static void false_verdicts_stay_below_the_level(void **state)
{
	seed = 2463534242ull;
	struct tally t = compare(heavy, 0.2, 0, 400);

	assert_true(t.verdicts[AS_VERDICT_SLOWER] + t.verdicts[AS_VERDICT_FASTER] <=
		    400 * 0.05 + 3 * sqrt(400 * 0.05 * 0.95));
	assert_true(t.verdicts[AS_VERDICT_EQUAL] == 0);
}

static void two_percent_are_found(void **state)
{
	seed = 1181783497276652981ull;
	struct tally slower = compare(heavy, 0.019, 0.02, 100);
	struct tally faster = compare(heavy, 0.019, -0.02, 100);

	assert_true(slower.verdicts[AS_VERDICT_SLOWER] >= 98);
	assert_true(slower.verdicts[AS_VERDICT_FASTER] == 0);
	assert_true(faster.verdicts[AS_VERDICT_FASTER] >= 98);
	assert_true(slower.pairs < 200);
}

static void a_mixture_is_named(void **state)
{
	double d[200];
	struct as_sequence s;

	/* 60 % at 0, 40 % at 0.3: the trimmed mean lies where no pair is */
	for (size_t i = 0; i < AS_ARRAY_LEN(d); i++)
		d[i] = (i % 5 < 3 ? 0 : 0.3) + 1e-4 * (double)(i % 7);
	as_sequence_init(&s, &(struct as_sequence_rule){0});
	assert_true(as_sequence_look(&s, d, AS_ARRAY_LEN(d), 1).mixture);
	for (size_t i = 0; i < AS_ARRAY_LEN(d); i++)
		d[i] = 1e-3 * (double)(i % 7);
	as_sequence_init(&s, &(struct as_sequence_rule){0});
	assert_false(as_sequence_look(&s, d, AS_ARRAY_LEN(d), 1).mixture);
}

static void an_undecided_look_says_what_would_decide(void **state)
{
	struct as_sequence s;
	struct as_look look;
	double d[40];

	seed = 99;
	for (size_t i = 0; i < AS_ARRAY_LEN(d); i++)
		d[i] = 0.002 + 0.06 * normal();
	as_sequence_init(&s, &(struct as_sequence_rule){0});
	look = as_sequence_look(&s, d, AS_ARRAY_LEN(d), 1);
	assert_int_equal(look.verdict, AS_VERDICT_UNDECIDED);
	assert_true(look.pairs_needed > 40 && look.pairs_needed < 4000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trimmed_interval_matches_the_textbook),
		cmocka_unit_test(too_few_values_have_no_bounds),
		cmocka_unit_test(a_median_interval_matches_the_tables),
		cmocka_unit_test(spending_meets_its_ends),
		cmocka_unit_test(boundaries_spend_what_they_promise),
		cmocka_unit_test(equal_sides_are_hardly_ever_called_different),
		cmocka_unit_test(false_verdicts_stay_below_the_level),
		cmocka_unit_test(two_percent_are_found),
		cmocka_unit_test(a_mixture_is_named),
		cmocka_unit_test(an_undecided_look_says_what_would_decide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

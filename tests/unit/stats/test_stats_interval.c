/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stats/interval: quantiles and intervals against values computed with 30 digits (mpmath, by
 * bisection of its incomplete beta and normal functions, or by quadrature).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/mem.h"
#include "stats/interval.h"

static void close_to(double got, double want, double relative)
{
	if (!(fabs(got - want) <= relative * fabs(want)))
		fail_msg("got %.15g, want %.15g", got, want);
}

static void normal_quantiles_match(void **state)
{
	static const double cases[][2] = {
		{0.9, 1.2815515655446},        {0.975, 1.959963984540054},
		{0.995, 2.575829303548901},    {1e-10, -6.361340902404056},
		{0.999999, 4.753424308822899}, {0.025, -1.959963984540054},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++)
		close_to(as_normal_quantile(cases[i][0]), cases[i][1], 1e-10);
	assert_true(fabs(as_normal_quantile(0.5)) < 1e-15);
	assert_true(isnan(as_normal_quantile(0)) && isnan(as_normal_quantile(1)));
	assert_true(isnan(as_normal_quantile(NAN)));
}

static void student_quantiles_match(void **state)
{
	static const double cases[][3] = {
		{0.975, 1, 12.7062047361747},   {0.975, 2, 4.30265272974946},
		{0.975, 3, 3.18244630528371},   {0.975, 5.5, 2.50185861758924},
		{0.975, 10, 2.22813885198627},  {0.975, 30, 2.04227245630124},
		{0.975, 50, 2.00855911210076},  {0.975, 683, 1.96344335381653},
		{0.995, 4, 4.60409487134999},   {0.6, 7, 0.263166861352023},
		{0.025, 10, -2.22813885198627},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++)
		close_to(as_student_quantile(cases[i][0], cases[i][1]), cases[i][2], 1e-10);
	close_to(as_student_quantile(0.975, 1e9), 1.959963984540054, 1e-8);
	close_to(as_student_quantile(0.975, 9e7), 1.959963984540054, 1e-7);
	assert_true(as_student_quantile(0.5, 3) == 0);
	assert_true(isnan(as_student_quantile(0.975, 0)));
}

static void beta_quantiles_match(void **state)
{
	static const double cases[][4] = {
		{.025, 1, 10, 0.00252857854446178},    {.975, 1, 10, 0.308497107818761},
		{.025, 3, 8, 0.0667395111777345},      {.975, 4, 19998, 0.000438278542626153},
		{.025, 3, 19999, 3.09331277354829e-5}, {.5, 1000, 3000, 0.249958329990845},
		{.001, 0.5, 0.5, 2.46739907091694e-6}, {.025, 1, 1000000, 2.53178076637938e-8},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
		const double *c = cases[i];

		close_to(as_beta_quantile(c[0], c[1], c[2]), c[3], 1e-8);
		close_to(as_beta_cdf(c[3], c[1], c[2]), c[0], 1e-8);
	}
	assert_true(as_beta_quantile(0, 2, 3) == 0 && as_beta_quantile(1, 2, 3) == 1);
	assert_true(as_beta_cdf(-1, 2, 3) == 0 && as_beta_cdf(2, 2, 3) == 1);
	assert_true(isnan(as_beta_cdf(0.5, 0, 1)) && isnan(as_beta_quantile(0.5, 1, INFINITY)));
}

static void beta_quantile_inverts_the_distribution(void **state)
{
	for (double a = 0.3; a < 3e5; a *= 3.7) {
		for (double b = 0.3; b < 3e5; b *= 4.3) {
			for (double p = 0.001; p < 1; p += 0.111) {
				double x = as_beta_quantile(p, a, b);

				assert_true(x >= 0 && x <= 1);
				/* Where x rounds to 1 the cdf cannot come back; the rest must. */
				if (1 - x > 1e-6)
					close_to(as_beta_cdf(x, a, b), p, 1e-7);
			}
		}
	}
}

static void intervals_match(void **state)
{
	static const struct {
		double k, n, exact_lo, exact_hi, wilson_lo, wilson_hi;
	} cases[] = {
		{0, 10, 0.0, 0.308497107819, 0.0, 0.277532799863},
		{1, 10, 0.00252857854446, 0.445016117028, 0.0178762130951, 0.404150026795},
		{3, 30, 0.0211171370297, 0.265288450474, 0.0345998887473, 0.256210825792},
		{5, 5, 0.478176249895, 1.0, 0.565517535217, 1.0},
		{2, 100000, 2.4221019627e-6, 7.2244989365e-5, 5.48473851652e-6,
		 7.2926837542e-5},
		{50, 100, 0.398321129503, 0.601678870497, 0.403831530366, 0.596168469634},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
		double k = cases[i].k, n = cases[i].n;
		struct as_interval e = as_exact_interval(k, n, 0.95);
		struct as_interval w = as_wilson_interval(k / n, n, as_normal_quantile(0.975));

		close_to(e.lo, cases[i].exact_lo, 1e-9);
		close_to(e.hi, cases[i].exact_hi, 1e-9);
		close_to(w.lo, cases[i].wilson_lo, 1e-9);
		close_to(w.hi, cases[i].wilson_hi, 1e-9);
	}
}

/* Exact coverage, summed over the binomial distribution: no luck involved. */
static void coverage_of_the_mixed_interval_is_nominal(void **state)
{
	static const unsigned sizes[] = {5, 30, 150, 700};

	for (size_t s = 0; s < AS_ARRAY_LEN(sizes); s++) {
		unsigned n = sizes[s];
		double worst = 1;

		for (double p = 0.003; p < 0.5; p += 0.0071) {
			double covered = 0, log_p = n * log1p(-p);

			for (unsigned k = 0; k <= n; k++) {
				struct as_interval i =
					as_proportion_interval(k, n, 1.959963984540054);

				if (p >= i.lo && p <= i.hi)
					covered += exp(log_p);
				log_p += log((double)(n - k) / (k + 1)) + log(p) - log1p(-p);
			}
			worst = fmin(worst, covered);
		}
		print_message("n = %u: coverage at worst %.2f %%\n", n, 100 * worst);
		assert_true(worst > 0.94);
	}
}

static void impossible_input_gives_the_whole_range(void **state)
{
	struct as_interval none = as_proportion_interval(0, 0, 1.96);
	struct as_interval over = as_exact_interval(7, 5, 0.95);
	struct as_interval tiny = as_proportion_interval(0.3, 0.5, 1.96);

	assert_true(none.lo == 0 && none.hi == 1);
	assert_true(over.lo > 0.4 && over.hi == 1);
	assert_true(tiny.lo >= 0 && tiny.lo <= 0.6 && tiny.hi >= 0.6 && tiny.hi <= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(normal_quantiles_match),
		cmocka_unit_test(student_quantiles_match),
		cmocka_unit_test(beta_quantiles_match),
		cmocka_unit_test(beta_quantile_inverts_the_distribution),
		cmocka_unit_test(intervals_match),
		cmocka_unit_test(coverage_of_the_mixed_interval_is_nominal),
		cmocka_unit_test(impossible_input_gives_the_whole_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Many comparisons (false discovery rate, sign test) and series over time (change points). */
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
#include "stats/changepoint.h"
#include "stats/fdr.h"

#define TRIALS 200

static double normal(void)
{
	double u = drand48(), v = drand48();

	return sqrt(-2 * log(u + 1e-300)) * cos(2 * M_PI * v);
}

static void near(double a, double b, double within)
{
	if (!(fabs(a - b) <= within))
		fail_msg("%.10g is not %.10g", a, b);
}

/* ---- many comparisons ---- */

/* The 15 tests of Benjamini and Hochberg 1995, section 4.1: four are discoveries at 5 %. */
static void the_papers_example_has_four_discoveries(void **state)
{
	static const double p[] = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201,
				   0.0278, 0.0298, 0.0344, 0.0459, 0.3240,
				   0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
	double q[15];
	size_t found = 0;

	as_fdr_adjust(p, 15, q);
	for (size_t i = 0; i < 15; i++)
		found += q[i] <= 0.05;
	assert_int_equal(found, 4);
	near(q[0], 0.0015, 1e-12);
	near(q[3], 0.035625, 1e-12);
	near(q[14], 1, 0);
}

static void order_and_unknown_values_do_not_matter(void **state)
{
	double p[] = {0.04, NAN, 0.01, 0.05, 0.02, 0.03}, q[6];

	as_fdr_adjust(p, 6, q);
	assert_true(isnan(q[1]));
	near(q[0], 0.05, 1e-12);
	near(q[2], 0.05, 1e-12);
	as_fdr_adjust(p, 0, q);
	as_fdr_adjust(p, 6, p); /* in place */
	near(p[4], 0.05, 1e-12);
}

static void the_rate_of_false_discoveries_holds(void **state)
{
	double share = 0;

	srand48(7);
	for (int r = 0; r < TRIALS; r++) {
		double p[50], q[50];
		size_t found = 0, wrong = 0;

		for (size_t i = 0; i < 50; i++) { /* 10 true ones, 4 standard errors off */
			double z = normal() + (i < 10 ? 4 : 0);

			p[i] = erfc(fabs(z) * M_SQRT1_2);
		}
		as_fdr_adjust(p, 50, q);
		for (size_t i = 0; i < 50; i++) {
			found += q[i] <= 0.05;
			wrong += q[i] <= 0.05 && i >= 10;
		}
		share += found ? (double)wrong / (double)found / TRIALS : 0;
	}
	assert_true(share < 0.06);
}

/* 22 / 1024, 2 / 2^15; Student's tables, and 1 - t / sqrt(2 + t^2) for two degrees */
static void exact_tests_have_the_known_values(void **state)
{
	near(as_sign_test(9, 1), 0.021484375, 1e-12);
	near(as_sign_test(1, 9), 0.021484375, 1e-12);
	near(as_sign_test(15, 0), 6.103515625e-05, 1e-15);
	near(as_sign_test(5, 5), 1, 0);
	near(as_sign_test(0, 0), 1, 0);
	near(as_sign_test(5, 4), 1, 1e-12);
	near(as_student_p(-2.262157, 9), 0.05, 1e-6);
	near(as_student_p(1.5, 2), 1 - 1.5 / sqrt(4.25), 1e-10);
	near(as_student_p(1, 1), 0.5, 1e-10);
	assert_true(isnan(as_student_p(NAN, 3)) && isnan(as_student_p(1, 0)));
	assert_true(as_student_p(INFINITY, 3) == 0);
}

/* ---- change points ---- */

enum noise { GAUSS, HEAVY, CONSTANT };

static double one(enum noise kind)
{
	double z = normal();

	if (kind == CONSTANT)
		return 0;
	return kind == GAUSS ? 0.02 * z
			     : 0.02 * z /
				       sqrt((normal() * normal() + normal() * normal() +
					     normal() * normal()) /
					    3); /* t, 3 degrees */
}

static size_t steps(const struct as_change *c, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		k += c[i].is_step;
	return k;
}

static void series_without_a_step_rarely_alert(void **state)
{
	struct as_change c[8];

	srand48(13);
	for (int kind = GAUSS; kind <= CONSTANT; kind++) {
		size_t alerts = 0;

		for (int r = 0; r < TRIALS; r++) {
			double v[50];

			for (size_t i = 0; i < 50; i++)
				v[i] = -14 + one((enum noise)kind);
			alerts +=
				steps(c, as_changes_find(v, 50, AS_CHANGE_MAGNITUDE, c, 8)) > 0;
		}
		if (alerts > TRIALS * 3 / 100)
			fail_msg("noise %d: %zu of %d series alert", kind, alerts, TRIALS);
	}
}

static void a_step_is_found_where_it_is(void **state)
{
	struct as_change c[8];
	size_t found = 0, right = 0, covered = 0;

	srand48(19);
	for (int r = 0; r < TRIALS; r++) {
		double v[40];
		size_t n;

		for (size_t i = 0; i < 40; i++)
			v[i] = one(GAUSS) + (i >= 28 ? 0.06 : 0); /* 3 sd */
		n = as_changes_find(v, 40, AS_CHANGE_MAGNITUDE, c, 8);
		found += steps(c, n) > 0;
		right += n > 0 && c[0].at >= 27 && c[0].at <= 29;
		covered += n > 0 && c[0].low < 0.06 && c[0].high > 0.06;
	}
	assert_true(found >= TRIALS * 93 / 100);
	assert_true(right >= TRIALS * 80 / 100);
	assert_true(covered >= TRIALS * 90 / 100);
}

static void two_steps_are_both_found(void **state)
{
	struct as_change c[8];
	size_t found = 0, more = 0, n = 0;
	double v[60];

	srand48(37);
	for (int r = 0; r < TRIALS; r++) {
		for (size_t i = 0; i < 60; i++)
			v[i] = one(GAUSS) + (i >= 20 ? 0.1 : 0) - (i >= 40 ? 0.15 : 0);
		n = as_changes_find(v, 60, AS_CHANGE_MAGNITUDE, c, 8);
		found += n >= 2 && c[0].is_step && c[n - 1].is_step && c[0].step > 0.05 &&
			 c[n - 1].step < -0.1;
		more += steps(c, n) > 2;
	}
	assert_true(found >= TRIALS * 90 / 100);
	assert_true(more <= TRIALS * 3 / 100);
	if (n)
		assert_int_equal(as_changes_find(v, 60, AS_CHANGE_MAGNITUDE, c, 1), 1);
	assert_int_equal(as_changes_find(v, 60, AS_CHANGE_MAGNITUDE, c, 0), 0);
}

/* coiled/benchmarks#270: one spike in 20 points is no alert, a step of that size is */
static void a_spike_does_not_alert_and_a_step_of_its_size_does(void **state)
{
	struct as_change c[8];
	size_t alerts = 0;

	srand48(41);
	for (size_t r = 0; r < TRIALS; r++) {
		double v[20];

		for (size_t i = 0; i < 20; i++)
			v[i] = one(GAUSS) + (i == r % 20 ? 0.3 : 0);
		alerts += steps(c, as_changes_find(v, 20, AS_CHANGE_MAGNITUDE, c, 8)) > 0;
	}
	assert_true(alerts <= TRIALS * 3 / 100);
	size_t found = 0, place = 0;

	for (size_t r = 0; r < TRIALS; r++) {
		double v[20];
		size_t n, at = 5 + r % 11;

		for (size_t i = 0; i < 20; i++)
			v[i] = one(GAUSS) + (i >= at ? 0.3 : 0);
		n = as_changes_find(v, 20, AS_CHANGE_MAGNITUDE, c, 8);
		found += steps(c, n) > 0 && fabs(c[0].step - 0.3) < 0.05;
		place += n > 0 && c[0].at == at;
	}
	assert_true(found >= TRIALS * 95 / 100);
	assert_true(place >= TRIALS * 95 / 100);
}

/* Days that follow each other are alike (correlation 0.5): drift is not taken for steps. Without the
 * permuted blocks 14 to 39 of 100 such series alert. */
static void a_machine_that_drifts_does_not_alert_much_more(void **state)
{
	struct as_change c[8];
	size_t alerts = 0;

	srand48(59);
	for (int r = 0; r < TRIALS; r++) {
		double v[80], x = 0;

		for (size_t i = 0; i < 80; i++)
			v[i] = x = 0.5 * x + one(GAUSS);
		alerts += steps(c, as_changes_find(v, 80, AS_CHANGE_MAGNITUDE, c, 8)) > 0;
	}
	assert_true(alerts <= TRIALS * 12 / 100);
}

/* rust-lang/rustc-perf#280, #902: what turns noisy alerts no more, on any of the next 30 days */
static void a_series_that_turns_noisy_stops_alerting(void **state)
{
	struct as_change c[8];
	size_t looks = 0, alerts = 0, late = 0;

	srand48(43);
	for (int r = 0; r < 10; r++) {
		double v[90];

		for (size_t i = 0; i < 90; i++)
			v[i] = i < 60 ? 0.005 * normal() : 0.08 * normal();
		for (size_t n = 66; n <= 90; n += 2) {
			size_t found = as_changes_find(v, n, AS_CHANGE_MAGNITUDE, c, 8);

			looks++;
			alerts += steps(c, found) > 0;
			late += n > 80 && steps(c, found) > 0;
		}
	}
	if (alerts * 10 > looks || late > 4)
		fail_msg("%zu of %zu looks alert, late %zu", alerts, looks, late);
}

static void the_answer_is_the_same_again(void **state)
{
	struct as_change a[8], b[8];
	double v[60];
	size_t n;

	srand48(47);
	for (size_t i = 0; i < 60; i++)
		v[i] = i % 7 == 3 ? NAN : one(GAUSS) + (i >= 31 ? 0.08 : 0);
	memset(a, 0, sizeof a);
	memset(b, 0, sizeof b);
	n = as_changes_find(v, 60, AS_CHANGE_MAGNITUDE, a, 8);
	assert_int_equal(as_changes_find(v, 60, AS_CHANGE_MAGNITUDE, b, 8), n);
	assert_memory_equal(a, b, sizeof a);
	assert_true(n >= 1 && a[0].at >= 29 && a[0].at <= 33);
	assert_int_equal(as_changes_find(v, 7, AS_CHANGE_MAGNITUDE, a, 8), 0);
	assert_int_equal(as_changes_find(v, 0, AS_CHANGE_MAGNITUDE, a, 8), 0);
}

static void long_series_take_few_milliseconds(void **state)
{
	enum { MANY = 2000 };
	struct rusage before, after;
	struct as_change c[8];
	double v[MANY], ms;
	size_t n;

	srand48(53);
	for (size_t i = 0; i < MANY; i++)
		v[i] = one(GAUSS) + (i >= MANY - 60 ? 0.05 : 0);
	getrusage(RUSAGE_SELF, &before);
	n = as_changes_find(v, MANY, AS_CHANGE_MAGNITUDE, c, 8);
	getrusage(RUSAGE_SELF, &after);
	ms = 1e3 * (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
	     1e-3 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec);
	assert_int_equal(n, 1);
	assert_true(c[0].at >= MANY - 62 && c[0].at <= MANY - 58);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(ms < 50);
#else
	assert_true(ms < 500);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_papers_example_has_four_discoveries),
		cmocka_unit_test(order_and_unknown_values_do_not_matter),
		cmocka_unit_test(the_rate_of_false_discoveries_holds),
		cmocka_unit_test(exact_tests_have_the_known_values),
		cmocka_unit_test(series_without_a_step_rarely_alert),
		cmocka_unit_test(a_step_is_found_where_it_is),
		cmocka_unit_test(two_steps_are_both_found),
		cmocka_unit_test(a_spike_does_not_alert_and_a_step_of_its_size_does),
		cmocka_unit_test(a_machine_that_drifts_does_not_alert_much_more),
		cmocka_unit_test(a_series_that_turns_noisy_stops_alerting),
		cmocka_unit_test(the_answer_is_the_same_again),
		cmocka_unit_test(long_series_take_few_milliseconds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

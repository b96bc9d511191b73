/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Samples in step with a period of the program are told from all others. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/map.h"
#include "stats/lockstep.h"

#define N 3000

static uint64_t prng_state;
static uint8_t x[N];
static double interval[N];

static double uniform(void)
{
	return (double)(as_mix64(prng_state += 0x9e3779b97f4a7c15ull) >> 11) * 0x1p-53;
}

/* A program that is in the row for the first `share` of each period, sampled at intervals of 1 with
 * that much jitter; late: how much a sample is late at random. */
static void sample(double period, double share, double jitter, double late)
{
	double at = uniform() * period;

	for (int i = 0; i < N; i++) {
		interval[i] = 1 + jitter * (2 * uniform() - 1);
		at += interval[i];
		x[i] = fmod(at + late * uniform(), period) < share * period;
	}
}

static void equal_intervals_are_told_from_jittered_ones(void **state)
{
	prng_state = 1;
	sample(1, 0.3, 0, 0);
	assert_true(as_intervals_likeness(interval, N) > 0.999);
	sample(1, 0.3, 0.05, 0);
	assert_true(as_intervals_likeness(interval, N) > AS_INTERVALS_LIKE);
	sample(1, 0.3, 0.5, 0);
	assert_true(as_intervals_likeness(interval, N) < 0.1);
	interval[7] = 1e9; /* the program slept */
	assert_true(as_intervals_likeness(interval, N) < 0.1);
	assert_true(isnan(as_intervals_likeness(interval, 1)));
}

static void a_beat_is_found_with_its_length(void **state)
{
	static const double periods[] = {1.02, 0.98, 0.505, 3.03, 0.0667};

	prng_state = 2;
	for (size_t i = 0; i < 5; i++) {
		/* alias of the program's frequency */
		double f = 1 / periods[i], beat = 1 / fabs(f - round(f));

		sample(periods[i], 0.3, 0, 0);
		assert_true(fabs((double)as_beat(x, N) - beat) <= 2 + beat * 0.05);
		sample(periods[i], 0.3, 0, 0.15 * periods[i]);
		assert_true(fabs((double)as_beat(x, N) - beat) <= 2 + beat * 0.05);
	}
}

/* Independent samples, a program that stays for exponential times, phases, and one that is always
 * or never there. */
static void no_beat_is_found_in_steady_programs(void **state)
{
	static const double stays[] = {0, 2, 10, 50, 300};
	unsigned found = 0;

	prng_state = 3;
	for (int round = 0; round < 200; round++) {
		double stay = stays[round % 5];
		uint8_t in = 0;

		for (int i = 0; i < N; i++) {
			if (stay == 0 || uniform() < (in ? 1 : 0.4) / stay)
				in = stay == 0 ? uniform() < 0.3 : !in;
			x[i] = in;
		}
		found += as_beat(x, N) != 0;
	}
	print_message("a beat in %u of 200 steady programs\n", found);
	assert_true(found <= 4);
	for (int i = 0; i < N; i++)
		x[i] = i > N / 3 && i < N / 2;
	assert_int_equal(as_beat(x, N), 0);
	for (int i = 0; i < N; i++)
		x[i] = 1;
	assert_int_equal(as_beat(x, N), 0);
	assert_int_equal(as_beat(x, 100), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_intervals_are_told_from_jittered_ones),
		cmocka_unit_test(a_beat_is_found_with_its_length),
		cmocka_unit_test(no_beat_is_found_in_steady_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stats/blocks: does the printed interval hold the truth? Each case simulates a program and a
 * sampler with a fixed seed a few thousand times and counts. The truth is the share of CPU time
 * in that very run, computed from the simulated time line, not the generator's parameter.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "stats/blocks.h"
#include "stats/interval.h"

#define MS 1000000ull

static uint64_t prng_state;

static uint64_t prng(void)
{
	return as_mix64(prng_state += 0x9e3779b97f4a7c15ull);
}

static double uniform(void)
{
	return (double)(prng() >> 11) * 0x1p-53;
}

static double exponential(double mean)
{
	return -mean * log1p(-uniform());
}

struct sample {
	uint64_t t_ns;
	bool in_row;
	double weight;
};

typedef AS_VEC(struct sample) samples_vec;

static int by_time(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

static struct as_share_estimate estimate(const samples_vec *s, uint64_t length_ns)
{
	struct as_blocks b;
	struct as_share_row row = {0};
	struct as_share_estimate share;

	as_blocks_init(&b, 0, length_ns, s->n);
	as_vec_foreach (it, s) {
		as_blocks_add(&b, as_blocks_index(&b, it->t_ns), it->weight);
	}
	as_blocks_finish(&b);
	as_vec_foreach (it, s) {
		if (it->in_row)
			as_share_add(&row, &b, as_blocks_index(&b, it->t_ns), it->weight);
	}
	as_share_interval(&row, &b, &share);
	as_blocks_clear(&b);
	return share;
}

struct tally {
	unsigned runs, held;
	double width, naive_width, deff;
};

static void count_run(struct tally *t, const struct as_share_estimate *s, double truth,
		      double n)
{
	t->runs++;
	t->held += truth >= s->lo && truth <= s->hi;
	t->width += s->hi - s->lo;
	t->naive_width += 2 * 1.96 * sqrt(truth * (1 - truth) / n);
	t->deff += s->deff;
}

static void expect_coverage(const char *what, const struct tally *t, double at_least)
{
	double coverage = (double)t->held / t->runs;

	print_message("%-44s %5.1f %%  width/naive %.2f  deff %.2f\n", what, 100 * coverage,
		      t->width / t->naive_width, t->deff / t->runs);
	assert_true(coverage >= at_least);
}

static void independent_samples_are_covered(void **state)
{
	static const double shares[] = {0.002, 0.02, 0.3, 0.7, 0.98};
	static const unsigned sizes[] = {20, 100, 1000};

	prng_state = 1;
	for (size_t i = 0; i < AS_ARRAY_LEN(shares); i++) {
		for (size_t k = 0; k < AS_ARRAY_LEN(sizes); k++) {
			struct tally t = {0};
			samples_vec s = {0};
			char what[64];

			for (int run = 0; run < 2000; run++) {
				s.n = 0;
				for (unsigned n = 0; n < sizes[k]; n++)
					as_vec_push(&s,
						    (struct sample){n * MS,
								    uniform() < shares[i], 1});

				struct as_share_estimate e = estimate(&s, sizes[k] * MS);

				count_run(&t, &e, shares[i], sizes[k]);
			}
			snprintf(what, sizeof what, "independent, share %g of %u", shares[i],
				 sizes[k]);
			expect_coverage(what, &t, 0.94);
			as_vec_clear(&s);
		}
	}
}

/* 30 % of every 10 ms; the sampler jitters uniformly by half its interval. */
static void a_periodic_program_is_covered(void **state)
{
	static const double interval_ms[] = {1.003, 10};

	prng_state = 2;
	for (size_t i = 0; i < AS_ARRAY_LEN(interval_ms); i++) {
		struct tally t = {0};
		samples_vec s = {0};
		char what[64];

		for (int run = 0; run < 2000; run++) {
			double at = uniform() * 10;

			s.n = 0;
			while ((at += interval_ms[i] * (0.5 + uniform())) < 3000)
				as_vec_push(&s, (struct sample){(uint64_t)(at * 1e6),
								fmod(at, 10) < 3, 1});

			struct as_share_estimate e = estimate(&s, 3000 * MS);

			count_run(&t, &e, 0.3, (double)s.n);
		}
		snprintf(what, sizeof what, "period 10 ms, sampled each %g ms", interval_ms[i]);
		expect_coverage(what, &t, 0.94);
		as_vec_clear(&s);
	}
}

/*
 * A hundred samples at 100 Hz of the same program, with a new period in [3/4, 5/4] for every six:
 * binomial intervals hold the truth in 88 % of such runs, so the design effect has to be seen from
 * this few.
 */
static void few_samples_in_step_are_covered(void **state)
{
	struct tally t = {0};
	samples_vec s = {0};

	prng_state = 10;
	for (int run = 0; run < 2000; run++) {
		double at = uniform() * 10, period = 0;

		s.n = 0;
		for (unsigned n = 0; at < 1100; n++) {
			if (n % 6 == 0)
				period = 7.5 + 5 * uniform();
			as_vec_push(&s, (struct sample){(uint64_t)(at * 1e6), fmod(at, 10) < 3,
							period});
			at += period;
		}

		struct as_share_estimate e = estimate(&s, 1100 * MS);

		count_run(&t, &e, 0.3, (double)s.n);
	}
	expect_coverage("period 10 ms, runs of 6 equal periods", &t, 0.94);
	assert_true(t.width / t.naive_width < 1.6);
	as_vec_clear(&s);
}

/*
 * The program stays in or out of the function for exponential times (an AR(1) process in
 * continuous time); `group` samples come in one burst 0.1 ms apart, as after a delayed
 * interrupt, so that they are far from independent.
 */
static void correlated_case(const char *what, double stay_ms, unsigned group, double at_least)
{
	struct tally t = {0};
	samples_vec s = {0};

	for (int run = 0; run < 2000; run++) {
		double length = 4000, now = 0, inside = 0, burst = 0;
		bool in = uniform() < 0.25;

		s.n = 0;
		while (now < length) {
			double end =
				fmin(now + exponential(in ? stay_ms : 3 * stay_ms), length);

			while (burst < end) {
				for (unsigned g = 0; g < group; g++) {
					double at = fmin(burst + 0.1 * g, length - 1);

					as_vec_push(&s, (struct sample){(uint64_t)(at * 1e6),
									in, 1});
				}
				burst += group * 2 * (0.5 + uniform());
			}
			inside += in ? end - now : 0;
			now = end;
			in = !in;
		}

		struct as_share_estimate e = estimate(&s, (uint64_t)length * MS);

		count_run(&t, &e, inside / length, (double)s.n);
	}
	expect_coverage(what, &t, at_least);
	as_vec_clear(&s);
}

static void a_program_with_memory_is_covered(void **state)
{
	prng_state = 3;
	correlated_case("stays 1 ms", 1, 1, 0.94);
	correlated_case("stays 30 ms", 30, 1, 0.94);
	correlated_case("stays 500 ms", 500, 1, 0.94);
}

static void samples_in_bursts_are_covered(void **state)
{
	prng_state = 4;
	correlated_case("stays 1 ms, bursts of 5", 1, 5, 0.94);
	correlated_case("stays 5 ms, bursts of 8", 5, 8, 0.94);
}

/*
 * Eight threads with profiles from 0 to 100 % take turns on two CPUs in slices of 4 ms on
 * average, some threads far more often than others.
 */
static void threads_with_different_profiles_are_covered(void **state)
{
	struct tally t = {0};
	samples_vec s = {0};

	prng_state = 5;
	for (int run = 0; run < 1500; run++) {
		double inside = 0, length = 3000;

		s.n = 0;
		for (int cpu = 0; cpu < 2; cpu++) {
			double now = 0, next = uniform();

			while (now < length) {
				double u = uniform(), profile = floor(8 * u * u) / 7;
				double end = fmin(now + exponential(4), length);

				inside += profile * (end - now);
				for (; next < end; next += 2 * (0.5 + uniform()))
					as_vec_push(&s,
						    (struct sample){(uint64_t)(next * 1e6),
								    uniform() < profile, 1});
				now = end;
			}
		}

		qsort(s.v, s.n, sizeof *s.v, by_time);

		struct as_share_estimate e = estimate(&s, (uint64_t)length * MS);

		count_run(&t, &e, inside / (2 * length), (double)s.n);
	}
	expect_coverage("8 threads on 2 CPUs, unlike profiles", &t, 0.94);
	as_vec_clear(&s);
}

/* Periods differ 20-fold, as in frequency mode; the truth is the share of weight. */
static void unequal_weights_are_covered(void **state)
{
	struct tally t = {0};
	samples_vec s = {0};

	prng_state = 6;
	for (int run = 0; run < 2000; run++) {
		double n_heavy = 0;

		s.n = 0;
		for (unsigned n = 0; n < 600; n++) {
			double weight = uniform() < 0.1 ? 20 : 1;

			n_heavy += weight;
			as_vec_push(&s, (struct sample){n * 2 * MS, uniform() < 0.2, weight});
		}

		struct as_share_estimate e = estimate(&s, 1200 * MS);

		count_run(&t, &e, 0.2, 600);
		assert_true(e.n_eff < 300); /* Kish: about 600 * 2.9^2 / 40.9 = 123 */
	}
	expect_coverage("weights 1 and 20", &t, 0.94);
	as_vec_clear(&s);
}

/* A run in three phases is no reason for wide intervals: the share in this run is well known. */
static void phases_do_not_widen_the_interval(void **state)
{
	struct tally t = {0};
	samples_vec s = {0};
	double drift = 0;

	prng_state = 7;
	for (int run = 0; run < 1000; run++) {
		s.n = 0;
		for (unsigned n = 0; n < 10000; n++)
			as_vec_push(&s, (struct sample){n * MS, n < 5000, 1});
		/* Jitter: the phase border falls between samples somewhere. */
		for (unsigned k = 0; k < 100; k++)
			s.v[prng() % s.n].in_row ^= uniform() < 0.5;

		struct as_share_estimate e = estimate(&s, 10000 * MS);

		count_run(&t, &e, 0.5, (double)s.n);
		drift += e.drift;
	}
	expect_coverage("two long phases", &t, 0.94);
	assert_true(t.width / t.naive_width < 1.1);
	assert_true(drift / t.runs > 50);
	as_vec_clear(&s);
}

/* What a timer in step with the program does: all neighbours alike, two blocks long. */
static void lumps_raise_the_design_effect(void **state)
{
	samples_vec s = {0};

	for (unsigned n = 0; n < 4000; n++)
		as_vec_push(&s, (struct sample){n * 2 * MS, (n / 20) % 2 == 0, 1});

	struct as_share_estimate e = estimate(&s, 8000 * MS);

	assert_true(fabs(e.share - 0.5) < 1e-9);
	assert_true(e.deff > 5);
	assert_true(e.hi - e.lo > 0.07);
	as_vec_clear(&s);
}

static void no_samples_and_all_samples_have_honest_bounds(void **state)
{
	samples_vec s = {0};
	struct as_share_estimate e = estimate(&s, 1000 * MS);

	assert_true(e.share == 0 && e.lo == 0 && e.hi == 1);
	for (unsigned n = 0; n < 1000; n++)
		as_vec_push(&s, (struct sample){n * MS, false, 1});
	e = estimate(&s, 1000 * MS);
	assert_true(e.lo == 0);
	assert_true(e.hi > 0.003 && e.hi < 0.005); /* the rule of three, two-sided: 3.7 / n */
	as_vec_foreach (it, &s) {
		it->in_row = true;
	}
	e = estimate(&s, 1000 * MS);
	assert_true(e.hi == 1 && e.share == 1 && e.lo > 0.995);
	as_vec_clear(&s);
}

/* One sample of twice the usual weight looks like a cluster of two, and proves nothing. */
static void a_single_sample_is_one_sample(void **state)
{
	samples_vec s = {0};

	for (unsigned n = 0; n < 50; n++)
		as_vec_push(&s, (struct sample){n * 4 * MS, n == 17, n == 17 ? 2 : 1});

	struct as_share_estimate e = estimate(&s, 200 * MS);

	assert_true(fabs(e.share - 2.0 / 51) < 1e-9);
	assert_true(e.share * e.n_eff > 0.999);
	assert_true(e.hi < 0.21);
	as_vec_clear(&s);
}

/* The sparse sums against the plain definition, blocks in random order of presence. */
static void sparse_sums_equal_the_definition(void **state)
{
	prng_state = 8;
	for (int round = 0; round < 200; round++) {
		struct as_blocks b;
		struct as_share_row row = {0};
		double x[64] = {0}, w[64] = {0}, sw = 0, sx = 0, s2 = 0;

		as_blocks_init(&b, 1000, 1000 + 64 * 20 * MS, 64 * 16);
		assert_int_equal(b.n_blocks, 64);
		for (uint32_t i = 0; i < 64; i++) {
			for (unsigned k = prng() % 20; k; k--) {
				w[i] += 1;
				as_blocks_add(&b, i, 1);
			}
		}
		as_blocks_finish(&b);
		for (uint32_t i = 0; i < 64; i++) {
			for (unsigned k = 0; k < (unsigned)w[i]; k++) {
				if (prng() % 16 >= 1 + (unsigned)round % 15)
					continue;
				x[i] += 1;
				as_share_add(&row, &b, i, 1);
			}
			sw += w[i];
			s2 += w[i];
			sx += x[i];
		}

		struct as_share_estimate e;

		as_share_interval(&row, &b, &e);

		double p = sx / sw, near = 0;

		for (int i = 0; i + 1 < 64; i++) {
			double d = (x[i + 1] - p * w[i + 1]) - (x[i] - p * w[i]);

			near += d * d;
		}
		near *= 64.0 / (2 * 63) / (sw * sw);

		double deff = fmax(1, near / (p * (1 - p) * s2 / (sw * sw)));

		assert_true(fabs(e.share - p) < 1e-12);
		assert_true(sx == 0 || fabs(e.deff - deff) < 1e-9 * deff);
		as_blocks_clear(&b);
	}
}

static struct as_share_estimate share_of(double k, double n)
{
	return (struct as_share_estimate){
		.share = k / n, .n_eff = n, .deff = 1, .quantile = 1.959964};
}

static void rows_are_ranked_only_where_the_data_can(void **state)
{
	struct as_share_estimate a = share_of(700, 10000), b = share_of(660, 10000),
				 c = share_of(500, 10000);
	struct as_share_estimate none = share_of(0, 100), five = share_of(5, 100),
				 six = share_of(6, 100);

	assert_false(as_rows_separable(&a, &b));
	assert_true(as_rows_separable(&a, &c));
	assert_true(as_rows_separable(&c, &a));
	assert_false(as_rows_separable(&none, &five)); /* coin: 2 / 2^5 = 0.0625 */
	assert_true(as_rows_separable(&none, &six));   /* 2 / 2^6 = 0.031 */
	assert_false(as_rows_separable(&none, &none));
	c.n_eff /= 10;
	assert_false(as_rows_separable(&a, &c));
}

/* Two rows of equal true share: at most 5 % of runs may rank them. */
static void equal_rows_are_rarely_ranked(void **state)
{
	unsigned ranked = 0;

	prng_state = 9;
	for (int run = 0; run < 4000; run++) {
		unsigned ka = 0, kb = 0;

		for (int n = 0; n < 800; n++) {
			double u = uniform();

			ka += u < 0.1;
			kb += u >= 0.1 && u < 0.2;
		}

		struct as_share_estimate a = share_of(ka, 800), b = share_of(kb, 800);

		ranked += as_rows_separable(&a, &b);
	}
	assert_in_range(ranked, 120, 240);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(independent_samples_are_covered),
		cmocka_unit_test(a_periodic_program_is_covered),
		cmocka_unit_test(few_samples_in_step_are_covered),
		cmocka_unit_test(a_program_with_memory_is_covered),
		cmocka_unit_test(samples_in_bursts_are_covered),
		cmocka_unit_test(threads_with_different_profiles_are_covered),
		cmocka_unit_test(unequal_weights_are_covered),
		cmocka_unit_test(phases_do_not_widen_the_interval),
		cmocka_unit_test(lumps_raise_the_design_effect),
		cmocka_unit_test(no_samples_and_all_samples_have_honest_bounds),
		cmocka_unit_test(a_single_sample_is_one_sample),
		cmocka_unit_test(sparse_sums_equal_the_definition),
		cmocka_unit_test(rows_are_ranked_only_where_the_data_can),
		cmocka_unit_test(equal_rows_are_rarely_ranked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Several runs in one session: the interval speaks of the program's runs. Each case makes a
 * program whose runs differ by a known law, thousands of times with a fixed seed, and counts how
 * often the interval of a few runs holds the share in the long run.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "stats/blocks.h"
#include "stats/until.h"

#define MS       1000000ull
#define RUNS_MAX 100

static uint64_t prng_state;

static double uniform(void)
{
	return (double)(as_mix64(prng_state += 0x9e3779b97f4a7c15ull) >> 11) * 0x1p-53;
}

/* Sum of twelve uniforms: normal enough, and bounded. */
static double normal(void)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += uniform();
	return sum;
}

struct sample {
	uint64_t t_ns;
	bool in_row;
};
struct session {
	AS_VEC(struct sample) v;
	struct as_run_span runs[RUNS_MAX];
	size_t n_runs;
	bool stopped;
};

struct law {
	const char *what;
	double share, sd; /* of a run's share */
	double period_ms; /* > 0: in the row for the first `share` of each period, else by chance */
	unsigned samples[2]; /* of a run, at 1 kHz: from, to */
};

/* Jittered intervals as the recorder makes them: by half their mean. */
static void add_run(struct session *s, const struct law *law)
{
	double share = law->share + law->sd * normal(), at = 0, phase = uniform();
	unsigned n = law->samples[0] +
		     (unsigned)(uniform() * (law->samples[1] - law->samples[0] + 1));
	uint64_t start = s->n_runs ? s->runs[s->n_runs - 1].end_ns + 50 * MS : 1000 * MS;

	for (unsigned i = 0; i < n; i++) {
		double u = law->period_ms > 0 ? at / law->period_ms + phase : uniform();

		as_vec_push(&s->v, (struct sample){start + (uint64_t)(at * 1e6),
						   u - floor(u) < share});
		at += 0.5 + uniform();
	}
	s->runs[s->n_runs++] = (struct as_run_span){start, start + (uint64_t)(at * 1e6)};
}

static struct as_share_estimate estimate(const struct session *s)
{
	struct as_blocks b;
	struct as_share_row row = {0};
	struct as_share_estimate e;
	struct as_run_span scope = {s->v.v[0].t_ns, s->v.v[s->v.n - 1].t_ns};

	as_blocks_init_runs(&b, s->runs, s->n_runs, &scope, AS_MIN(s->v.n, (size_t)1536));
	as_vec_foreach (it, &s->v)
		as_blocks_add(&b, as_blocks_index(&b, it->t_ns), 1);
	b.stopped = s->stopped;
	as_blocks_finish(&b);
	as_vec_foreach (it, &s->v)
		if (it->in_row)
			as_share_add(&row, &b, as_blocks_index(&b, it->t_ns), 1);
	as_share_interval(&row, &b, &e);
	as_blocks_clear(&b);
	return e;
}

struct tally {
	unsigned n, held;
	double width, naive, runs;
};

static void count(struct tally *t, const struct session *s, const struct law *law)
{
	struct as_share_estimate e = estimate(s);

	t->n++;
	t->held += law->share >= e.lo && law->share <= e.hi;
	t->width += e.hi - e.lo;
	t->naive += 2 * 1.96 * sqrt(law->share * (1 - law->share) / (double)s->v.n);
	t->runs += (double)s->n_runs;
}

static double told(const char *what, const struct tally *t)
{
	double coverage = (double)t->held / t->n;

	print_message("%-52s %5.1f %%  width/naive %.2f  runs %.1f\n", what, 100 * coverage,
		      t->width / t->naive, t->runs / t->n);
	return coverage;
}

static void trials_cover(const struct law *law, size_t runs, double least, double most)
{
	struct session s = {0};
	struct tally t = {0};
	char what[96];

	for (int i = 0; i < 1000; i++) {
		s.v.n = s.n_runs = 0;
		while (s.n_runs < runs)
			add_run(&s, law);
		count(&t, &s, law);
	}
	as_vec_clear(&s.v);
	snprintf(what, sizeof what, "%s, %zu runs", law->what, runs);
	assert_true(told(what, &t) >= least);
	assert_true((double)t.held / t.n <= most);
}

static const struct law differ = {"runs differ by 4 points", 0.3, 0.04, 0, {250, 350}};
static const struct law unequal = {"the same, of 50 to 600 samples", 0.3, 0.04, 0, {50, 600}};
static const struct law rare = {"a row of 6 %", 0.06, 0.015, 0, {250, 350}};
static const struct law periodic = {
	"period 10 ms, runs differ by 4 points", 0.3, 0.04, 10, {250, 350}};
static const struct law alike = {"runs alike", 0.3, 0, 0, {250, 350}};

/* The widest of three intervals counts: few runs that differ little are covered too well. */
static void runs_that_differ_are_covered(void **state)
{
	static const size_t runs[] = {3, 5, 10, 30};

	prng_state = 1;
	for (size_t i = 0; i < AS_ARRAY_LEN(runs); i++) {
		double most = runs[i] < 10 ? 1 : 0.98;

		trials_cover(&differ, runs[i], 0.935, most);
		trials_cover(&unequal, runs[i], 0.93, most);
		trials_cover(&rare, runs[i], 0.935, most);
		trials_cover(&periodic, runs[i], 0.935, most);
	}
}

/* Where runs do not differ, their number costs something only while they are few. */
static void runs_that_do_not_differ_cost_little(void **state)
{
	prng_state = 2;
	trials_cover(&alike, 30, 0.945, 0.99);
	trials_cover(&alike, 5, 0.945, 0.995);
}

/* The samples of one interval are those of one run. */
static void a_block_lies_in_one_run(void **state)
{
	const struct as_run_span runs[] = {{0, 100 * MS},
					   {150 * MS, 151 * MS},
					   {200 * MS, 500 * MS},
					   {500 * MS, 500 * MS}};
	struct as_blocks b;

	as_blocks_init_runs(&b, runs, 4, &(struct as_run_span){0, 500 * MS}, 10000);
	assert_int_equal(b.n_runs, 4);
	for (uint64_t t = 0; t < 600; t++) {
		uint32_t run = b.run_of[as_blocks_index(&b, t * MS)];

		assert_int_equal(run, t < 150 ? 0 : t < 200 ? 1 : t < 500 ? 2 : 3);
	}
	assert_int_equal(as_blocks_index(&b, UINT64_MAX), b.n_blocks - 1);
	as_blocks_clear(&b);
	/* a stretch of time within one run has no runs, one that cuts two has both */
	as_blocks_init_runs(&b, runs, 4, &(struct as_run_span){210 * MS, 400 * MS}, 10000);
	assert_int_equal(b.n_runs, 0);
	assert_int_equal(b.n_blocks, 9);
	as_blocks_clear(&b);
	as_blocks_init_runs(&b, runs, 4, &(struct as_run_span){150 * MS, 400 * MS}, 10000);
	assert_int_equal(b.n_runs, 2);
	assert_int_equal(b.runs[0].n, 1);
	assert_int_equal(b.runs[1].first, 1);
	as_blocks_clear(&b);
}

/* ---- stopping when it is known well enough ---- */

static double half_width(const struct session *s)
{
	struct as_share_estimate e = estimate(s);

	return (e.hi - e.lo) / 2;
}

/* As record --until does it: looks when they are due, until the row is known to +- target. */
static void until_runs_suffice(struct session *s, const struct law *law, double target)
{
	size_t due = AS_UNTIL_RUNS;

	s->v.n = s->n_runs = 0;
	while (s->n_runs < RUNS_MAX) {
		double factor;

		add_run(s, law);
		if (s->n_runs < due)
			continue;
		factor = as_until_factor(half_width(s), target);
		if (factor <= 1)
			return;
		due = (size_t)ceil((double)s->n_runs * as_until_growth(factor));
	}
}

static void stopping_after_enough_runs_covers(void **state)
{
	static const struct {
		const struct law *law;
		double target;
	} cases[] = {{&differ, 0.02},   {&differ, 0.03}, {&unequal, 0.03},
		     {&periodic, 0.02}, {&rare, 0.0075}, {&alike, 0.01}};
	struct session s = {.stopped = true};

	prng_state = 3;
	for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
		struct tally t = {0};
		char what[96];

		for (int n = 0; n < 1000; n++) {
			until_runs_suffice(&s, cases[i].law, cases[i].target);
			count(&t, &s, cases[i].law);
		}
		snprintf(what, sizeof what, "%s, until ± %g", cases[i].law->what,
			 cases[i].target);
		assert_true(told(what, &t) >= 0.93);
	}
	as_vec_clear(&s.v);
}

/* One long run that is stopped: looks after AS_UNTIL_FIRST_S seconds at 1 kHz and so on. */
static void stopping_one_run_covers(void **state)
{
	static const struct law laws[] = {
		{"one run, 30 %", 0.3, 0, 0, {40000, 40000}},
		{"one run, 6 %", 0.06, 0, 0, {40000, 40000}},
		{"one run, period 10 ms", 0.3, 0, 10, {40000, 40000}},
		{"one run, period 400 ms", 0.3, 0, 400, {40000, 40000}},
	};
	struct session s = {0}, whole = {0};

	prng_state = 4;
	for (size_t i = 0; i < AS_ARRAY_LEN(laws); i++) {
		struct tally t = {0};

		for (int n = 0; n < 250; n++) {
			size_t due = AS_UNTIL_FIRST_S * 1000;
			double factor;

			whole.v.n = whole.n_runs = 0;
			add_run(&whole, &laws[i]);
			do {
				s.v.n = 0;
				for (size_t k = 0; k < due; k++)
					as_vec_push(&s.v, whole.v.v[k]);
				factor = as_until_factor(half_width(&s), 0.01);
				due = (size_t)ceil((double)due * as_until_growth(factor));
			} while (factor > 1 && due < whole.v.n);
			count(&t, &s, &laws[i]);
		}
		assert_true(told(laws[i].what, &t) >= 0.93);
	}
	as_vec_clear(&s.v);
	as_vec_clear(&whole.v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_that_differ_are_covered),
		cmocka_unit_test(runs_that_do_not_differ_cost_little),
		cmocka_unit_test(a_block_lies_in_one_run),
		cmocka_unit_test(stopping_after_enough_runs_covers),
		cmocka_unit_test(stopping_one_run_covers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* bench/command_result: what rounds whose truth is known are told as. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/map.h"
#include "bench/command_priv.h"

static uint64_t seed;

static double uniform(void)
{
	return (double)(as_mix64(++seed) >> 11) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(1 - uniform())) * cos(2 * M_PI * uniform());
}

struct made {
	struct as_command commands[3];
	struct as_arm_result arms[3];
	struct as_rounds rounds;
	struct as_copies copies;
	struct as_commands_request q;
	struct as_commands_result result;
};

static void begin(struct made *m, size_t n)
{
	static char *const names[] = {(char *)(uintptr_t) "a", (char *)(uintptr_t) "b",
				      (char *)(uintptr_t) "c"};

	*m = (struct made){0};
	for (size_t i = 0; i < n; i++)
		m->commands[i].name = m->commands[i].text = names[i];
	m->rounds = (struct as_rounds){.v = m->arms, .n = n, .wall_seconds = 1};
	m->q = (struct as_commands_request){.v = m->commands, .n = n};
	m->q.rounds.delta = 0.01;
}

/* One more run of arm i, all of it CPU time. */
static void run(struct made *m, size_t i, double seconds)
{
	struct as_run r = {0};

	for (int k = 0; k < AS_M_COUNT_; k++)
		r.v[k] = 0;
	r.v[AS_M_WALL] = r.v[AS_M_CPU] = r.v[AS_M_USER] = seconds;
	r.v[AS_M_RSS] = 1 << 20;
	as_vec_push(&m->arms[i].rounds, (uint32_t)m->arms[i].runs.v.n);
	as_runs_push(&m->arms[i].runs, &r);
}

static void pair(struct made *m, double a, double b)
{
	run(m, 0, a);
	run(m, 1, b);
	as_vec_push(&m->arms[1].d[0], log(b / a));
	as_vec_push(&m->arms[1].d[1], log(b / a));
}

static void tell(struct made *m)
{
	struct as_measured measured = {.q = &m->q, .rounds = &m->rounds, .copies = &m->copies};

	for (size_t i = 1; i < m->rounds.n; i++) {
		for (int k = 0; k < 2; k++)
			as_trimmed_interval(m->arms[i].d[k].v, m->arms[i].d[k].n,
					    AS_PAIRED_TRIM, 0.05, &m->arms[i].by[k]);
	}
	as_commands_tell(&measured, &m->result);
}

static void end(struct made *m)
{
	for (size_t i = 0; i < m->rounds.n; i++) {
		as_runs_clear(&m->arms[i].runs);
		as_vec_clear(&m->arms[i].rounds);
		as_vec_clear(&m->arms[i].d[0]);
		as_vec_clear(&m->arms[i].d[1]);
	}
	as_commands_result_clear(&m->result);
}

static const char *note(const struct as_bench_notes *notes, const char *kind)
{
	as_vec_foreach (n, notes) {
		if (strcmp(n->kind, kind) == 0)
			return n->text;
	}
	return NULL;
}

/* The interval beside a ratio says where the ratio lies: 93 of 100 such intervals at least hold it. */
static void the_interval_of_a_ratio_holds_it(void **state)
{
	int held = 0;

	seed = 1;
	for (int sim = 0; sim < 200; sim++) {
		const struct as_bench_comparison *c;
		struct made m;

		begin(&m, 2);
		for (int i = 0; i < 20; i++) {
			double drift = exp(0.2 * sin(i / 3.0));

			pair(&m, 0.01 * drift * exp(0.03 * normal()),
			     0.014 * drift * exp(0.03 * normal()));
		}
		tell(&m);
		c = &m.result.set.comparisons.v[0];
		assert_true(c->ratio.low < c->ratio.value && c->ratio.value < c->ratio.high);
		held += c->ratio.low <= 1.4 && 1.4 <= c->ratio.high;
		assert_true(c->p < 0.01);
		end(&m);
	}
	assert_true(held >= 186);
}

static void p_values_of_nothing_are_spread_evenly(void **state)
{
	int below = 0;

	seed = 2;
	for (int sim = 0; sim < 400; sim++) {
		struct made m;

		begin(&m, 2);
		for (int i = 0; i < 20; i++)
			pair(&m, exp(0.1 * normal()), exp(0.1 * normal()));
		tell(&m);
		below += m.result.set.comparisons.v[0].p < 0.25;
		end(&m);
	}
	assert_in_range(below, 70, 130);
}

static void notes_say_what_runs_look_like(void **state)
{
	struct made m;
	const struct as_bench *b;

	seed = 3;
	begin(&m, 1);
	for (int i = 0; i < 30; i++)
		run(&m, 0, i == 0 ? 0.6 : 0.03 * exp(0.02 * normal()));
	tell(&m);
	b = &m.result.set.benches.v[0];
	assert_non_null(strstr(note(&b->notes, "first-run"), "the first run took 600 ms"));
	assert_null(note(&b->notes, "bimodal"));
	end(&m);

	begin(&m, 1);
	for (int i = 0; i < 30; i++)
		run(&m, 0, (i % 2 ? 0.011 : 0.765) * exp(0.02 * normal()));
	tell(&m);
	b = &m.result.set.benches.v[0];
	assert_non_null(strstr(note(&b->notes, "bimodal"), "two kinds of run"));
	assert_null(note(&b->notes, "first-run"));
	end(&m);

	begin(&m, 1);
	for (int i = 0; i < 20; i++)
		run(&m, 0, (i == 12 ? 1.0 : 0.01) * exp(0.02 * normal()));
	tell(&m);
	b = &m.result.set.benches.v[0];
	assert_non_null(strstr(note(&b->notes, "apart"), "run 13 took "));
	assert_true(fabs(b->time.value - 0.01) < 0.0005);
	assert_true(b->mean > 0.05);
	end(&m);

	begin(&m, 1);
	for (int i = 0; i < 200; i++)
		run(&m, 0, 0.01 * exp(0.02 * normal()));
	tell(&m);
	assert_int_equal(m.result.set.benches.v[0].notes.n, 0); /* a quiet one has no notes */
	end(&m);
}

static void three_runs_define_no_exception(void **state)
{
	struct made m;

	begin(&m, 1);
	run(&m, 0, 1);
	run(&m, 0, 0.01);
	run(&m, 0, 0.011);
	tell(&m);
	assert_int_equal(m.result.set.benches.v[0].notes.n, 0);
	end(&m);
}

static void what_is_taken_off_is_taken_off_run_by_run(void **state)
{
	struct as_command shell = {.name = (char *)(uintptr_t) "sh"};
	const struct as_bench *b;
	struct made m;

	seed = 5;
	begin(&m, 2);
	m.q.n = 1;
	m.q.overhead = &shell;
	for (int i = 0; i < 40; i++) {
		double drift = exp(0.3 * sin(i / 4.0));

		run(&m, 0, 0.2 * drift + 0.001 * normal());
		run(&m, 1, 0.1 * drift + 0.001 * normal());
	}
	tell(&m);
	b = &m.result.set.benches.v[0];
	assert_int_equal(b->samples.n, 40);
	assert_true(fabs(b->samples.v[0] - (m.arms[0].runs.v.v[0].v[AS_M_WALL] -
					    m.arms[1].runs.v.v[0].v[AS_M_WALL])) < 1e-12);
	assert_true(b->time.low < 0.1 && b->time.high > 0.1 && b->time.low > 0.05);
	assert_null(note(&b->notes, "below-overhead"));
	end(&m);

	begin(&m, 2);
	m.q.n = 1;
	m.q.overhead = &shell;
	for (int i = 0; i < 40; i++) {
		run(&m, 0, 0.001 * exp(0.1 * normal()));
		run(&m, 1, 0.001 * exp(0.1 * normal()));
	}
	tell(&m);
	b = &m.result.set.benches.v[0];
	assert_true(b->time.low < 0 && b->time.high > 0);
	assert_true(b->min < 0); /* nothing is clamped */
	assert_non_null(note(&b->notes, "below-overhead"));
	end(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_interval_of_a_ratio_holds_it),
		cmocka_unit_test(p_values_of_nothing_are_spread_evenly),
		cmocka_unit_test(notes_say_what_runs_look_like),
		cmocka_unit_test(three_runs_define_no_exception),
		cmocka_unit_test(what_is_taken_off_is_taken_off_run_by_run),
	};

	return cmocka_run_group_tests_name("bench_command", tests, NULL, NULL);
}

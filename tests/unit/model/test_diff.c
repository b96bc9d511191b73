/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * model/diff and stats/spread on simulated runs, whose truth is known: how often equal programs are
 * called different, how often intervals hold the truth, and that a change is found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "hand_model.h"
#include "model/diff/diff.h"
#include "stats/spread.h"

enum { FUNCTIONS = 30, RUNS_MAX = 3 };

static const char *const names[FUNCTIONS] = {
	"f00", "f01", "f02", "f03", "f04", "f05", "f06", "f07", "f08", "f09",
	"f10", "f11", "f12", "f13", "f14", "f15", "f16", "f17", "f18", "f19",
	"f20", "f21", "f22", "f23", "f24", "f25", "f26", "f27", "f28", "f29"};

static uint64_t seed = 1;

static double uniform(void)
{
	seed += 0x9e3779b97f4a7c15ull;
	return ((double)(as_mix64(seed) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* A program: work of its functions, and how much that differs from run to run. */
struct program {
	double work[FUNCTIONS], variation[FUNCTIONS];
	unsigned samples;
};

static struct program usual(unsigned samples, double variation)
{
	struct program p = {.samples = samples};

	for (int i = 0; i < FUNCTIONS; i++) {
		p.work[i] = pow(0.87, i);
		p.variation[i] = variation;
	}
	return p;
}

static double share_of(const struct program *p, int function)
{
	double sum = 0;

	for (int i = 0; i < FUNCTIONS; i++)
		sum += p->work[i];
	return p->work[function] / sum;
}

static void run_once(const struct program *p, struct as_model *m)
{
	double end[FUNCTIONS], sum = 0;
	uint32_t main_frame, root, stack[FUNCTIONS];

	hm_init(m);
	main_frame = hm_frame(m, HM_APP, (uint32_t[]){hm_function(m, "main", HM_APP)}, 1);
	root = hm_stack(m, AS_NONE, main_frame);
	for (int i = 0; i < FUNCTIONS; i++) {
		uint32_t f = hm_function(m, names[i], HM_APP);

		stack[i] = hm_stack(m, root, hm_frame(m, HM_APP, &f, 1));
		sum += p->work[i] * exp(p->variation[i] * normal());
		end[i] = sum;
	}
	for (unsigned n = 0; n < p->samples; n++) {
		double at = uniform() * sum;
		int i = 0;

		while (end[i] < at)
			i++;
		hm_samples(m, 0, stack[i], AS_END_ROOT, 1);
		m->samples.v[n].time_ns = HM_START_NS + n * 1000000ull;
	}
}

struct tally {
	unsigned times, any, rows, false_rows, covered, found;
	double widened;
};

/* Compares runs of a and of b; what is known of f00 is `truth`, of all others that nothing is false. */
static void compare(const struct program *a, const struct program *b, size_t runs, bool total,
		    struct tally *t)
{
	struct as_model m[2 * RUNS_MAX];
	const struct as_model *p[2 * RUNS_MAX];
	struct as_diff_request q = {
		.a = p, .b = p + runs, .na = runs, .nb = runs, .total = total};
	struct as_diff *d;
	unsigned wrong = 0;

	for (size_t i = 0; i < 2 * runs; i++) {
		run_once(i < runs ? a : b, &m[i]);
		p[i] = &m[i];
	}
	assert_int_equal(as_diff_make(&q, &d, NULL), AS_OK);
	as_vec_foreach (r, &d->rows) {
		int i;

		if (strcmp(r->name, "main") == 0)
			continue;
		i = (r->name[1] - '0') * 10 + r->name[2] - '0';
		double truth = share_of(b, i) - share_of(a, i);
		bool changed = a->work[i] != b->work[i];

		t->rows++;
		t->covered += r->low <= truth && truth <= r->high;
		t->found += changed && r->change == AS_CHANGE_UP && !r->share_only;
		wrong += !changed && r->change >= AS_CHANGE_UP && !r->share_only;
	}
	t->times++;
	t->any += wrong > 0;
	t->false_rows += wrong;
	t->widened += d->widened;
	as_diff_free(d);
	for (size_t i = 0; i < 2 * runs; i++)
		hm_clear(&m[i]);
}

static struct tally repeat(const struct program *a, const struct program *b, size_t runs,
			   unsigned times)
{
	struct tally t = {0};

	for (unsigned i = 0; i < times; i++)
		compare(a, b, runs, i % 4 == 3, &t);
	t.widened /= times;
	print_message("%u comparisons: %u with a false row, %.1f %% covered, widened x%.2f, "
		      "found %u\n",
		      times, t.any, 100.0 * t.covered / t.rows, t.widened, t.found);
	return t;
}

/* 5 % and three standard errors */
static unsigned at_most(unsigned times)
{
	return (unsigned)(0.05 * times + 3 * sqrt(0.05 * 0.95 * times));
}

static void runs_that_differ_by_samples_alone(void **state)
{
	struct program p = usual(1500, 0);
	struct tally one = repeat(&p, &p, 1, 150), three = repeat(&p, &p, 3, 60);

	assert_true(one.any <= at_most(150));
	assert_true(three.any <= at_most(60));
	assert_true(one.covered >= 0.945 * one.rows);
	assert_true(three.covered >= 0.945 * three.rows);
	assert_true(one.widened < 1.15 && three.widened < 1.15);
}

static void runs_that_differ_by_more(void **state)
{
	struct program p = usual(4000, 0.2);
	struct tally one = repeat(&p, &p, 1, 100), three = repeat(&p, &p, 3, 60);

	/* one run a side sees it in the rows, where they all differ alike */
	assert_true(one.widened > 1.3);
	assert_true(one.any <= at_most(100));
	assert_true(one.covered >= 0.935 * one.rows);
	assert_true(three.widened > 1.3);
	assert_true(three.any <= at_most(60));
	assert_true(three.covered >= 0.935 * three.rows);
}

/* Few functions differ, by much: what the kernel does, or memory. Their own spread says so. */
static void a_few_functions_that_differ_from_run_to_run(void **state)
{
	struct program p = usual(4000, 0);
	struct tally three;

	for (int i = 1; i < FUNCTIONS; i += 6)
		p.variation[i] = 0.4;
	three = repeat(&p, &p, 3, 80);
	assert_true(three.any <= at_most(80));
	assert_true(three.covered >= 0.935 * three.rows);
}

static void a_change_is_found_and_only_that(void **state)
{
	struct program a = usual(6000, 0.03), b = a;
	struct tally one, three;

	b.work[0] *= 1.35;
	three = repeat(&a, &b, 3, 40);
	b.work[0] *= 1.2; /* one run a side shows less */
	one = repeat(&a, &b, 1, 40);
	assert_true(one.found >= 36);
	assert_true(three.found >= 36);
	assert_true(one.any <= at_most(40) && three.any <= at_most(40));
}

static void spreads_are_drawn_towards_that_of_all(void **state)
{
	enum { N = 4000, DF = 4 };
	static double ratio[N];
	struct as_spread s;

	/* all alike: chi-square over its degrees of freedom, times 3 */
	for (int i = 0; i < N; i++) {
		ratio[i] = 0;
		for (int k = 0; k < DF; k++)
			ratio[i] += 3 * pow(normal(), 2) / DF;
	}
	as_spread_find(ratio, N, DF, &s);
	assert_true(fabs(s.all - 3) < 0.15 && s.df > 50);
	assert_true(fabs(as_spread_draw(&s, 30, DF) - 3) < 2);
	/* drawn from an inverse chi-square with 5: a row says more of itself */
	for (int i = 0; i < N; i++) {
		double sum = 0, scale = 0;

		for (int k = 0; k < 5; k++)
			scale += pow(normal(), 2) / 5;
		for (int k = 0; k < DF; k++)
			sum += pow(normal(), 2) / DF;
		ratio[i] = 2 * sum / scale;
	}
	as_spread_find(ratio, N, DF, &s);
	assert_true(fabs(s.all - 2) < 0.2 && fabs(s.df - 5) < 1);
	assert_true(as_spread_draw(&s, 30, DF) > 10);
	assert_true(as_spread_draw(&s, 0, DF) >= 1);
	/* too few to tell */
	as_spread_find(ratio, 0, DF, &s);
	assert_true(s.all == 1);
	as_spread_find((double[]){9, 9}, 2, DF, &s);
	assert_true(s.all == 9);
	for (int i = 0; i < 30; i++)
		ratio[i] = 0; /* no spread at all has no logarithm */
	as_spread_find(ratio, 30, DF, &s);
	assert_true(isfinite(s.all) && as_spread_draw(&s, 0, DF) == 1);
	assert_true(fabs(as_digamma(1) + 0.57721566490153) < 1e-9);
	assert_true(fabs(as_trigamma(1) - M_PI * M_PI / 6) < 1e-9);
}

static const struct as_diff_row *find(const struct as_diff *d, const char *name)
{
	as_vec_foreach (r, &d->rows) {
		if (strcmp(r->name, name) == 0)
			return r;
	}
	return NULL;
}

/* Three runs in one session are three runs. */
static void trials_of_a_session_are_runs(void **state)
{
	enum { SAMPLES = 3000, TRIALS = 3 };
	struct program p = usual(SAMPLES, 0);
	struct as_model m[2];
	const struct as_model *v[2] = {&m[0], &m[1]};
	struct as_diff_request q = {.a = v, .b = v + 1, .na = 1, .nb = 1};
	struct as_diff *d;

	for (int k = 0; k < 2; k++) {
		run_once(&p, &m[k]);
		for (uint64_t t = 0; t < TRIALS; t++) {
			uint64_t of = SAMPLES / TRIALS * 1000000ull;

			as_vec_push(&m[k].trials,
				    (struct as_m_trial){HM_START_NS + t * of,
							HM_START_NS + (t + 1) * of - 1, of, 0});
		}
	}
	assert_int_equal(as_diff_make(&q, &d, NULL), AS_OK);
	assert_int_equal(d->runs[0], TRIALS);
	assert_int_equal(d->runs[1], TRIALS);
	assert_int_equal(find(d, "f00")->a.sessions, TRIALS);
	assert_true(fabs(d->cpu_a_s - 1) < 1e-6); /* of one run */
	as_diff_free(d);
	q.tree = true;
	assert_int_equal(as_diff_make(&q, &d, NULL), AS_OK);
	assert_true(fabs(find(d, "main")->a.share.value - 1) < 1e-9);
	assert_int_equal(find(d, "main")->a.share.samples, SAMPLES);
	as_diff_free(d);
	q.query.from_ns = 1;
	q.query.to_ns = 1000000000;
	assert_int_equal(as_diff_make(&q, &d, NULL), AS_OK);
	assert_int_equal(d->runs[0], 1); /* a stretch of time is one thing */
	as_diff_free(d);
	for (int k = 0; k < 2; k++) {
		as_vec_clear(&m[k].trials);
		hm_clear(&m[k]);
	}
}

/* ---- inlining ---- */

/* g calls f, or has it inlined; rest stands beside them. */
static void make_inlining(struct as_model *m, bool inlined, unsigned f, unsigned g,
			  unsigned rest)
{
	uint32_t fn[3], stack;

	hm_init(m);
	fn[0] = hm_function(m, "f", HM_APP);
	fn[1] = hm_function(m, "g", HM_APP);
	fn[2] = hm_function(m, "rest", HM_APP);
	stack = hm_stack(m, AS_NONE, hm_frame(m, HM_APP, &fn[1], 1));
	hm_samples(m, 0, stack, AS_END_ROOT, g);
	if (inlined)
		stack = hm_stack(m, AS_NONE, hm_frame(m, HM_APP, fn, 2));
	else
		stack = hm_stack(m, stack, hm_frame(m, HM_APP, &fn[0], 1));
	hm_samples(m, 0, stack, AS_END_ROOT, f);
	hm_samples(m, 0, hm_stack(m, AS_NONE, hm_frame(m, HM_APP, &fn[2], 1)), AS_END_ROOT,
		   rest);
}

static void what_one_side_inlines_counts_for_what_it_is_in(void **state)
{
	struct as_model m[2];
	const struct as_model *p[2] = {&m[0], &m[1]};

	for (int now = 0; now < 2; now++) {
		struct as_diff_request q = {.a = p, .b = p + 1, .na = 1, .nb = 1};
		struct as_diff *d;

		make_inlining(&m[0], !now, 300, 100, 600);
		make_inlining(&m[1], now, 100, 300,
			      600); /* the optimiser drew the line elsewhere */
		for (int tree = 0; tree < 2; tree++) {
			q.tree = tree;
			assert_int_equal(as_diff_make(&q, &d, NULL), AS_OK);
			assert_null(find(d, "f"));
			assert_true(fabs(find(d, "g")->a.share.value - 0.4) < 1e-9);
			assert_true(fabs(find(d, "g")->delta) < 1e-9);
			assert_int_equal(d->inlinings.n, 1);
			assert_string_equal(d->inlinings.v[0].name, "f");
			assert_string_equal(d->inlinings.v[0].into, "g");
			assert_int_equal(d->inlinings.v[0].now, now);
			as_diff_free(d);
		}
		/* as frames they are what they are: of functions that are only called */
		q.tree = false;
		q.query.no_inline = true;
		assert_int_equal(as_diff_make(&q, &d, NULL), AS_OK);
		assert_int_equal(d->inlinings.n, 0);
		assert_true((find(d, "f")->a.sessions == 0) == !now);
		as_diff_free(d);
		hm_clear(&m[0]);
		hm_clear(&m[1]);
	}
}

/* Inlined on both sides, or called on both: rows as ever. */
static void inlining_of_both_sides_is_no_news(void **state)
{
	struct as_model m[2];
	const struct as_model *p[2] = {&m[0], &m[1]};

	for (int inlined = 0; inlined < 2; inlined++) {
		struct as_diff_request q = {.a = p, .b = p + 1, .na = 1, .nb = 1};
		struct as_diff *d;

		make_inlining(&m[0], inlined, 300, 100, 600);
		make_inlining(&m[1], inlined, 100, 300, 600);
		assert_int_equal(as_diff_make(&q, &d, NULL), AS_OK);
		assert_int_equal(d->inlinings.n, 0);
		assert_true(find(d, "f")->change == AS_CHANGE_DOWN);
		assert_true(find(d, "g")->change == AS_CHANGE_UP);
		as_diff_free(d);
		hm_clear(&m[0]);
		hm_clear(&m[1]);
	}
}

/* lines: of the program's own functions, and so what is inlined into them. std comes with its own. */
static void make_stripped(struct as_model *m, bool lines, unsigned of_std)
{
	uint32_t fn[2], frame, places;

	make_inlining(m, true, 300, 100, 600);
	as_vec_push(&m->info, (struct as_m_info){"program", "/bin/app"});
	places = (uint32_t)m->places.n;
	fn[0] = hm_function(m, "std::inner", HM_APP);
	fn[1] = hm_function(m, "std::outer", HM_APP);
	m->functions.v[fn[0]].crate = m->functions.v[fn[1]].crate = "std";
	frame = hm_frame(m, HM_APP, fn, 2);
	hm_samples(m, 0, hm_stack(m, AS_NONE, frame), AS_END_ROOT, of_std);
	if (lines)
		return;
	for (uint32_t i = 0; i < places; i++)
		m->places.v[i].line = 0;
	as_vec_foreach (f, &m->frames) {
		if (f->chain < places) {
			f->chain += f->nchain - 1;
			f->nchain = 1;
		}
	}
}

/* However much of the time is in libraries with debug information: the program's own decides. */
static void lines_of_a_library_are_not_the_programs(void **state)
{
	struct as_model m[2];
	const struct as_model *p[2] = {&m[0], &m[1]};
	static const unsigned of_std[] = {0, 1, 30, 3000};

	for (size_t i = 0; i < 4 * AS_ARRAY_LEN(of_std); i++) {
		struct as_diff_request q = {.a = p, .b = p + 1, .na = 1, .nb = 1};
		bool a = i & 1, b = i & 2;
		struct as_diff *d;

		make_stripped(&m[0], a, of_std[i / 4]);
		make_stripped(&m[1], b, of_std[i / 4]);
		assert_int_equal(as_diff_make(&q, &d, NULL), AS_OK);
		assert_int_equal(d->lacks_inlines, a == b ? 0 : a ? 2 : 1);
		as_diff_free(d);
		hm_clear(&m[0]);
		hm_clear(&m[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_that_differ_by_samples_alone),
		cmocka_unit_test(runs_that_differ_by_more),
		cmocka_unit_test(a_few_functions_that_differ_from_run_to_run),
		cmocka_unit_test(a_change_is_found_and_only_that),
		cmocka_unit_test(spreads_are_drawn_towards_that_of_all),
		cmocka_unit_test(trials_of_a_session_are_runs),
		cmocka_unit_test(what_one_side_inlines_counts_for_what_it_is_in),
		cmocka_unit_test(inlining_of_both_sides_is_no_news),
		cmocka_unit_test(lines_of_a_library_are_not_the_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

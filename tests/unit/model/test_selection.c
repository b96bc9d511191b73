/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A selection adds up to the rows of a profile of the same query, whatever session and query. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hand_model.h"
#include "model/profile/selection.h"

static uint64_t seed = 88172645463325252ull;

static unsigned below(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)((seed >> 33) % n);
}

static void make_random(struct as_model *m)
{
	static const char *const names[] = {"a", "ab", "b", "bc", "c", "ca", "d", "e"};
	uint32_t functions[8];

	hm_init(m);
	for (unsigned i = 0; i < 8; i++)
		functions[i] = hm_function(m, names[i], i % 3);
	for (unsigned i = 0; i < 40; i++) {
		uint32_t chain[4], n = 1 + below(4), module = below(3);

		for (unsigned k = 0; k < n; k++)
			chain[k] = functions[below(8)];
		(void)hm_frame(m, module, chain, n);
	}
	for (unsigned i = 0; i < 200; i++)
		(void)hm_stack(m, i == 0 || below(8) == 0 ? AS_NONE : below(i), below(40));
	for (unsigned i = 0; i < 1000; i++)
		hm_samples(m, below(2), below(50) ? below(200) : AS_NONE,
			   below(3) ? AS_END_ROOT : below(AS_END_COUNT_), 1);
}

static struct as_query random_query(void)
{
	static const char *const patterns[] = {NULL, "a", "b|c", "^a$", "nothing"};
	static const char *const modules[] = {NULL, NULL, "app", "libc"};
	struct as_query q = {.shape = AS_SHAPE_FLAT};

	q.focus = below(3) ? NULL : patterns[below(5)];
	q.ignore = below(3) ? NULL : patterns[below(5)];
	q.hide = below(2) ? NULL : patterns[below(5)];
	q.module = modules[below(4)];
	q.thread = below(3) ? NULL : "worker";
	q.no_inline = below(3) == 0;
	q.no_kernel = below(3) == 0;
	if (below(3) == 0) {
		q.from_ns = below(500) * 1000;
		q.to_ns = q.from_ns + 1 + below(500) * 1000;
	}
	return q;
}

struct sums {
	uint64_t self[64], total[64];
};

/* As an exporter walks it. */
static void add_group(const struct as_selection *s, const struct as_group *g, struct sums *to)
{
	const struct as_model *m = s->model;
	uint32_t leaf = AS_NONE;
	bool seen[64] = {false};

	for (uint32_t at = g->stack; at != AS_NONE; at = m->stacks.v[at].parent) {
		const struct as_m_place *const *p;
		uint32_t n = as_selection_places(s, m->stacks.v[at].frame, &p);

		assert_true(s->stack_id[at] < s->n_stacks);
		assert_true(s->frame_id[m->stacks.v[at].frame] < s->n_frames);
		for (uint32_t i = 0; i < n; i++) {
			leaf = leaf == AS_NONE ? p[i]->function : leaf;
			seen[p[i]->function] = true;
			assert_true(s->function_id[p[i]->function] < s->n_functions);
		}
	}
	if (g->marker != AS_NONE) {
		leaf = leaf == AS_NONE ? g->marker : leaf;
		seen[g->marker] = true;
	}
	if (leaf != AS_NONE)
		to->self[leaf] += g->samples;
	for (unsigned i = 0; i < 64; i++)
		to->total[i] += seen[i] ? g->samples : 0;
}

static void a_selection_adds_up_to_the_rows_of_a_profile(void **state)
{
	for (int round = 0; round < 300; round++) {
		struct as_model m;
		struct as_query q = random_query();
		struct as_selection *s;
		struct as_profile *p;
		struct sums sums = {{0}, {0}};
		uint64_t weight = 0;

		make_random(&m);
		assert_int_equal(as_selection_make(&m, &q, &s, NULL), 0);
		assert_int_equal(as_profile_make(&m, &q, &p, NULL), 0);
		assert_int_equal(s->samples, p->kept_samples);
		as_vec_foreach (g, &s->groups) {
			add_group(s, g, &sums);
			weight += g->weight;
		}
		assert_int_equal(weight, s->weight);
		as_vec_foreach (r, &p->rows) {
			assert_int_equal(sums.self[r->key], r->self.samples);
			assert_int_equal(sums.total[r->key], r->total.samples);
			sums.total[r->key] = 0;
		}
		for (unsigned i = 0; i < m.functions.n; i++) /* markers alone are no rows */
			assert_true(!sums.total[i] ||
				    (m.functions.v[i].flags & AS_FUNCTION_MARKER));
		as_profile_free(p);
		as_selection_free(s);
		hm_clear(&m);
	}
}

static void every_sample_is_in_the_group_it_belongs_to(void **state)
{
	struct as_model m;
	struct as_selection *s;
	uint64_t count[2048] = {0};

	make_random(&m);
	assert_int_equal(as_selection_make(&m, NULL, &s, NULL), 0);
	assert_true(as_selection_is_all(s));
	assert_true(s->groups.n < 2048);
	for (size_t i = s->lo; i < s->hi; i++) {
		const struct as_group *g = &s->groups.v[s->group[i - s->lo]];

		assert_int_equal(g->thread, m.samples.v[i].thread);
		assert_int_equal(g->stack, m.samples.v[i].stack);
		count[s->group[i - s->lo]]++;
	}
	for (size_t i = 0; i < s->groups.n; i++) {
		assert_int_equal(count[i], s->groups.v[i].samples);
		for (size_t k = 0; k < i; k++)
			assert_false(s->groups.v[i].thread == s->groups.v[k].thread &&
				     s->groups.v[i].stack == s->groups.v[k].stack &&
				     s->groups.v[i].marker == s->groups.v[k].marker);
	}
	as_selection_free(s);
	hm_clear(&m);
}

static void only_what_is_needed_is_numbered(void **state)
{
	struct as_model m;
	struct as_query q = {.focus = "^needed$"};
	struct as_selection *s;
	uint32_t needed, other, leaf;

	hm_init(&m);
	other = hm_function(&m, "other", HM_LIBC);
	needed = hm_function(&m, "needed", HM_APP);
	leaf = hm_stack(&m, AS_NONE, hm_frame(&m, HM_LIBC, &other, 1));
	hm_samples(&m, 0, leaf, AS_END_ROOT, 5);
	leaf = hm_stack(&m, AS_NONE, hm_frame(&m, HM_APP, &needed, 1));
	hm_samples(&m, 1, leaf, AS_END_ROOT, 3);
	assert_int_equal(as_selection_make(&m, &q, &s, NULL), 0);
	assert_false(as_selection_is_all(s));
	assert_int_equal(s->n_functions, 1);
	assert_int_equal(s->n_stacks, 1);
	assert_int_equal(s->n_modules, 1);
	assert_int_equal(s->n_threads, 1);
	assert_int_equal(s->function_id[needed], 0);
	assert_int_equal(s->function_id[other], AS_NONE);
	assert_int_equal(s->thread_id[1], 0);
	assert_int_equal(s->thread_id[0], AS_NONE);
	as_selection_free(s);
	q.focus = "(";
	assert_int_equal(as_selection_make(&m, &q, &s, NULL), AS_E_USAGE);
	hm_clear(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_selection_adds_up_to_the_rows_of_a_profile),
		cmocka_unit_test(every_sample_is_in_the_group_it_belongs_to),
		cmocka_unit_test(only_what_is_needed_is_numbered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

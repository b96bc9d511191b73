/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Budgets of memory: what is one, what it comes to, what is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hand_model.h"
#include "model/memory/budget.h"

struct expected {
	const char *text;
	uint64_t amount;
	bool broken;
};

/*
 * main -> app::parse -> malloc	10 allocations, 4,000 bytes, 1,000 live, peak 2,000	thread main
 * main -> app::sparse -> malloc	3, 900, 0, 900					thread main
 * main -> app::parse::inner	5, 50, 50, 50					thread worker
 * a mapping of 1 MiB in app::parse
 */
static void make(struct as_model *m)
{
	uint32_t main, parse, sparse, inner, root, s[3];

	hm_init(m);
	main = hm_function(m, "main", HM_APP);
	parse = hm_function(m, "app::parse", HM_APP);
	sparse = hm_function(m, "app::sparse", HM_APP);
	inner = hm_function(m, "app::parse::inner", HM_APP);
	root = hm_stack(m, AS_NONE, hm_frame(m, HM_APP, &main, 1));
	s[0] = hm_stack(m, root, hm_frame(m, HM_APP, &parse, 1));
	s[1] = hm_stack(m, root, hm_frame(m, HM_APP, &sparse, 1));
	s[2] = hm_stack(m, root, hm_frame(m, HM_LIBC, (uint32_t[]){inner, parse}, 2));
	m->heap.is = true;
	for (uint32_t i = 0; i < 3; i++) {
		static const struct as_rec_heap_stack figures[] = {
			{.allocs = 10,
			 .bytes = 4000,
			 .live_bytes = 1000,
			 .peak_bytes = 2000,
			 .reallocs = 4,
			 .copied_bytes = 512,
			 .growth_bytes = -3},
			{.allocs = 3, .bytes = 900, .peak_bytes = 900, .churn_blocks = 3},
			{.allocs = 5,
			 .bytes = 50,
			 .live_bytes = 50,
			 .peak_bytes = 50,
			 .thread = 1},
		};

		as_vec_push(
			&m->heap.rows,
			(struct as_m_heap_row){.r = figures[i], .stack = s[i], .folded = s[i]});
	}
	as_vec_push(
		&m->heap.rows,
		(struct as_m_heap_row){.r = {.domain = 1, .allocs = 1, .peak_bytes = 1 << 20},
				       .stack = s[0],
				       .folded = s[0]});
}

static void clear(struct as_model *m)
{
	as_vec_clear(&m->heap.rows);
	hm_clear(m);
}

static struct as_heap_spent spend(const struct as_model *m, const char *text)
{
	struct as_heap_budgets b;
	struct as_heap_spent spent;
	struct as_error err = {0};

	if (as_heap_budgets_parse(&text, 1, &b, &err) < 0)
		fail_msg("%s: %s", text, err.msg);
	assert_int_equal(as_heap_budget_spend(b.v, m, &spent, &err), AS_OK);
	as_heap_budgets_clear(&b);
	return spent;
}

static void figures_are_those_of_the_rows_in_scope(void **state)
{
	static const struct expected all[] = {
		{"peak > 50MiB", 2950, false},
		{"peak>2949", 2950, true},
		{"peak >= 2950", 2950, true},
		{"live == 1050", 1050, true},
		{"live != 1050", 1050, false},
		{"allocs < 18", 18, false},
		{"allocs <= 18", 18, true},
		{"allocs > 1k", 18, false},
		{"bytes > 4.8KiB", 4950, true},
		{"churn > 0", 3, true},
		{"reallocs > 3", 4, true},
		{"copied > 512 B", 512, false},
		{"growth > 0", 0, false},
		{"mapped > 1MiB", 1 << 20, false},
		{"mapped >= 1024K", 1 << 20, true},
		{"allocs(in=app::parse) > 0", 15, true},
		{"allocs(in = parse, thread=worker) > 4", 5, true},
		{"allocs(in=sparse) > 2", 3, true},
		{"allocs(in=inner) == 5", 5, true},
		{"allocs(in='app::parse::inner')>5", 5, false},
		{"allocs(thread=101) > 0", 5, true},
		{"allocs(process=app)>17", 18, true},
		{"allocs(process=100)>17", 18, true},
		{"allocs(module=libc) > 4", 5, true},
		{"peak(in=main) > 2.8 KiB", 2950, true},
	};
	struct as_model m;

	make(&m);
	for (size_t i = 0; i < AS_ARRAY_LEN(all); i++) {
		struct as_heap_spent got = spend(&m, all[i].text);

		if (got.amount != all[i].amount || got.broken != all[i].broken || !got.seen)
			fail_msg("%s: %llu, %d", all[i].text, (unsigned long long)got.amount,
				 got.broken);
	}
	clear(&m);
}

/* "parse" is a part of app::parse and of app::parse::inner, not of app::sparse. */
static void a_part_of_a_path_is_meant_whole(void **state)
{
	struct as_model m;
	uint32_t f;

	make(&m);
	assert_int_equal(spend(&m, "allocs(in=parse) > 0").amount, 15);
	/* A function that is called just so is the only one meant. */
	f = hm_function(&m, "parse", HM_APP);
	assert_int_equal(spend(&m, "allocs(in=parse) > 0").amount, 0);
	m.places.v[m.frames.v[m.stacks.v[m.heap.rows.v[1].stack].frame].chain].function = f;
	assert_int_equal(spend(&m, "allocs(in=parse) > 0").amount, 3);
	clear(&m);
}

static void names_hold_brackets_commas_and_arrows(void **state)
{
	struct as_model m;
	uint32_t f, s;

	make(&m);
	f = hm_function(&m, "<app::Map<K, V> as Into<fn(A, B) -> C>>::into", HM_APP);
	s = hm_stack(&m, AS_NONE, hm_frame(&m, HM_APP, &f, 1));
	m.heap.rows.v[1].stack = s;
	assert_int_equal(
		spend(&m,
		      "allocs(in=<app::Map<K, V> as Into<fn(A, B) -> C>>::into, thread=main) "
		      "> 0")
			.amount,
		3);
	assert_int_equal(spend(&m,
			       "allocs(in=\"<app::Map<K, V> as Into<fn(A, B) -> C>>::into\")"
			       " > 0")
				 .amount,
			 3);
	clear(&m);
}

static void mistakes_are_shown_where_they_are(void **state)
{
	static const struct {
		const char *text, *caret, *why;
	} all[] = {
		{"peek > 5", "\n  ^\n", "'peek' is no figure: allocs, frees"},
		{"peak 5", "\n       ^\n", "comparison is missing"},
		{"peak > 5 mice", "\n         ^\n", "no amount of bytes"},
		{"allocs > 1.5", "\n           ^\n", "no count"},
		{"allocs > -1", "\n           ^\n", "no count"},
		{"allocs >", "\n          ^\n", "bound is missing"},
		{"allocs(at=x) > 0", "\n         ^\n", "'at' is no scope: in, thread"},
		{"allocs(in=) > 0", "\n            ^\n", "name is missing"},
		{"allocs(in=x > 0", "\n                 ^\n", "')' is missing"},
		{"allocs(in=x, in=y) > 0", "\n               ^\n", "said twice"},
		{"allocs(in='x) > 0", "\n            ^\n", "quote has no end"},
		{"", "\n  ^\n", "figure is missing"},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(all); i++) {
		struct as_heap_budgets b;
		struct as_error err = {0};

		assert_int_equal(as_heap_budgets_parse(&all[i].text, 1, &b, &err), AS_E_USAGE);
		if (!strstr(err.msg, all[i].caret) || !strstr(err.msg, all[i].why))
			fail_msg("'%s' gave: %s", all[i].text, err.msg);
		assert_null(b.v);
	}
}

static void what_is_said_has_the_figure_and_the_bound(void **state)
{
	static const char *const texts[] = {"peak > 2KiB", "allocs(in=parse) > 0",
					    "allocs(in=nowhere) > 0", "live > 1GiB"};
	struct as_heap_budgets b;
	struct as_buf out = {0};
	struct as_model m;
	bool broken = false;

	make(&m);
	assert_int_equal(as_heap_budgets_parse(texts, 4, &b, NULL), AS_OK);
	assert_int_equal(as_heap_budgets_check(&b, &m, &out, &broken, NULL), AS_OK);
	assert_true(broken);
	assert_string_equal(
		out.p, "peak is 2.88 KiB, more than 2.00 KiB (2,950 > 2,048 bytes)\n"
		       "allocs in parse is 15, more than 0\n"
		       "allocs in nowhere is 0: no allocation was seen there, maybe its name "
		       "is another\n");
	as_buf_clear(&out);
	as_heap_budgets_clear(&b);
	clear(&m);
}

static void a_session_of_time_has_no_budget(void **state)
{
	const char *text = "peak > 1";
	struct as_heap_budgets b;
	struct as_heap_spent spent;
	struct as_error err = {0};
	struct as_model m;

	hm_init(&m);
	assert_int_equal(as_heap_budgets_parse(&text, 1, &b, &err), AS_OK);
	assert_int_equal(as_heap_budget_spend(b.v, &m, &spent, &err), AS_E_USAGE);
	assert_non_null(strstr(err.msg, "of time"));
	m.heap.is = true;
	b.v[0].what = AS_BUDGET_LEAKED;
	assert_int_equal(as_heap_budget_spend(b.v, &m, &spent, &err), AS_E_USAGE);
	assert_non_null(strstr(err.msg, "leaks were not looked for"));
	as_heap_budgets_clear(&b);
	clear(&m);
}

/* Each process has its peak at its own time: they are not added. */
static void the_peak_is_of_the_largest_process(void **state)
{
	struct as_model m;

	make(&m);
	as_vec_push(&m.processes, (struct as_m_process){200, 0, "child", 0, 0});
	as_vec_push(&m.threads, (struct as_m_thread){200, 1, "child", 0, 0});
	m.heap.rows.v[2].r.process = 1;
	m.heap.rows.v[2].r.thread = 2;
	m.heap.rows.v[2].r.peak_bytes = 2901;
	assert_int_equal(spend(&m, "peak > 1").amount, 2901);
	assert_int_equal(spend(&m, "peak(process=app) > 1").amount, 2900);
	assert_int_equal(spend(&m, "live > 1").amount, 1050);
	clear(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_are_those_of_the_rows_in_scope),
		cmocka_unit_test(a_part_of_a_path_is_meant_whole),
		cmocka_unit_test(names_hold_brackets_commas_and_arrows),
		cmocka_unit_test(mistakes_are_shown_where_they_are),
		cmocka_unit_test(what_is_said_has_the_figure_and_the_bound),
		cmocka_unit_test(a_session_of_time_has_no_budget),
		cmocka_unit_test(the_peak_is_of_the_largest_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

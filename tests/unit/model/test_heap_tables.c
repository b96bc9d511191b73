/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Types by the names of functions; bins, types and chains of a selection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hand_model.h"
#include "model/memory/tables.h"
#include "model/model_priv.h"

static void names_tell_the_container(void **state)
{
	static const char *const all[][2] = {
		{"<alloc::vec::Vec<u8>>::push", "Vec<u8>"},
		{"alloc::vec::Vec<T,A>::push", "Vec<T>"},
		{"<alloc::vec::Vec<alloc::string::String, alloc::alloc::Global>>::reserve",
		 "Vec<String>"},
		{"<alloc::vec::Vec<alloc::vec::Vec<app::Token>> as core::clone::Clone>::clone",
		 "Vec<Vec<app::Token>>"},
		{"<alloc::raw_vec::RawVec<(u32, fn(A) -> B)>>::grow_one",
		 "Vec<(u32, fn(A) -> B)>"},
		{"<alloc::string::String as core::fmt::Write>::write_str", "String"},
		{"<hashbrown::raw::RawTable<(u32, app::Node)>>::reserve_rehash",
		 "HashMap<(u32, app::Node)>"},
		{"<std::collections::hash::map::HashMap<u32, alloc::string::String, "
		 "std::hash::RandomState>>::insert",
		 "HashMap<u32, String>"},
		{"std::vector<int, std::allocator<int> >::_M_realloc_insert<int const&>(int)",
		 "std::vector<int>"},
		{"std::__cxx11::basic_string<char, std::char_traits<char>, "
		 "std::allocator<char> "
		 ">::_M_mutate(unsigned long)",
		 "std::string"},
		{"alloc::boxed::Box<T>::new", "Box<T>"},
		/* no container's own code */
		{"app::load", ""},
		{"app::takes<alloc::vec::Vec<u8>>", ""},
		{"alloc::vector::thing", ""},
		{"alloc::string::StringLike::x", ""},
		{"alloc::alloc::alloc", ""},
		{"", ""},
		{"<", ""},
		{"<alloc::vec::Vec<", "Vec<>"},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(all); i++) {
		struct as_buf b = {0};
		bool is = as_heap_type_of_name(all[i][0], &b);

		if (is != (all[i][1][0] != 0) || strcmp(as_buf_str(&b), all[i][1]) != 0)
			fail_msg("'%s' gave '%s'", all[i][0], as_buf_str(&b));
		as_buf_clear(&b);
	}
}

static uint64_t sizes_a[] = {1 << 5 | 1 << 7, 90, 10}; /* 16-31, 64-127 */
static uint64_t sizes_b[] = {1 << 7, 100};
static uint64_t last_a[] = {1 << 10, 5};

/* main -> load [RawVec::grow_one, Vec::push inlined] and main -> parse -> String's code -> malloc */
static void make(struct as_model *m)
{
	uint32_t f[6], root, load, parse, text;

	hm_init(m);
	f[0] = hm_function(m, "main", HM_APP);
	f[1] = hm_function(m, "<alloc::raw_vec::RawVec<u64>>::grow_one", HM_APP);
	f[2] = hm_function(m, "<alloc::vec::Vec<u64>>::push", HM_APP);
	f[3] = hm_function(m, "app::load", HM_APP);
	f[4] = hm_function(m, "app::parse", HM_APP);
	f[5] = hm_function(m, "<alloc::string::String>::from", HM_APP);
	root = hm_stack(m, AS_NONE, hm_frame(m, HM_APP, &f[0], 1));
	load = hm_stack(m, root, hm_frame(m, HM_APP, (uint32_t[]){f[1], f[2], f[3]}, 3));
	parse = hm_stack(m, root, hm_frame(m, HM_APP, &f[4], 1));
	text = hm_stack(m, parse, hm_frame(m, HM_APP, &f[5], 1));
	m->heap.is = true;
	as_vec_push(&m->heap.rows, (struct as_m_heap_row){.r = {.allocs = 100,
								.bytes = 5000,
								.peak_bytes = 3000,
								.reallocs = 20,
								.in_place = 5,
								.copied_bytes = 4096,
								.chains = 5,
								.first_bytes = 160,
								.ended = 5,
								.last_bytes = 3000,
								.last_max_bytes = 640,
								.sizes = {sizes_a, 3},
								.last = {last_a, 2}},
							  .stack = load,
							  .folded = load});
	as_vec_push(&m->heap.rows, (struct as_m_heap_row){.r = {.allocs = 100,
								.bytes = 9000,
								.peak_bytes = 1000,
								.sizes = {sizes_b, 2}},
							  .stack = text,
							  .folded = text});
	as_heap_complete(m);
}

static void clear(struct as_model *m)
{
	as_heap_clear(m);
	hm_clear(m);
}

static void parameters_are_debug_informations_where_names_hide_them(void **state)
{
	static const struct {
		const char *full, *generic, *shown;
	} names[] = {
		{"alloc::vec::Vec<T,A>::push", "push<u8, alloc::alloc::Global>",
		 "alloc::vec::Vec<u8, alloc::alloc::Global>::push"},
		{"<alloc::vec::Vec<T,A> as core::iter::Extend<T>>::extend",
		 "extend<(u8, app::Token), alloc::alloc::Global, I>",
		 "<alloc::vec::Vec<(u8, app::Token), alloc::alloc::Global> as "
		 "core::iter::Extend<T>>::extend"},
		{"hashbrown::map::HashMap<K,V,S,A>::insert",
		 "insert<u32, alloc::vec::Vec<u8, A>, S, A>",
		 "hashbrown::map::HashMap<u32, alloc::vec::Vec<u8, A>, S, A>::insert"},
		/* what does not fit stays */
		{"alloc::vec::Vec<T,A>::push", "push<u8>", "alloc::vec::Vec<T,A>::push"},
		{"alloc::vec::Vec<T,A>::push", "push<", "alloc::vec::Vec<T,A>::push"},
		{"alloc::vec::Vec<T,A>::push", "", "alloc::vec::Vec<T,A>::push"},
		{"alloc::vec::Vec<T,A>::push", NULL, "alloc::vec::Vec<T,A>::push"},
		{"alloc::vec::Vec<T,A", "push<u8, u8>", "alloc::vec::Vec<T,A"},
		{"alloc::vec::Vec<u64>::push", "push<u8>", "alloc::vec::Vec<u64>::push"},
		{"app::parse", "parse<u8>", "app::parse"},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
		AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

		as_heap_with_parameters(names[i].full, names[i].generic, &b);
		assert_string_equal(as_buf_str(&b), names[i].shown);
	}
}

static void types_are_of_the_plumbing_alone(void **state)
{
	struct as_model m;
	struct as_selection *s;
	struct as_heap_types t;

	make(&m);
	assert_int_equal(as_selection_make(&m, NULL, &s, NULL), AS_OK);
	as_heap_types_make(s, &t);
	assert_int_equal(t.v.n, 2);
	assert_string_equal(t.v.v[0].name, "Vec<u64>");
	assert_int_equal(t.v.v[0].weight, 3000);
	assert_int_equal(t.v.v[0].values[AS_HEAP_ALLOCS], 100);
	assert_string_equal(t.v.v[1].name, "String");
	assert_int_equal(t.v.v[1].values[AS_HEAP_BYTES], 9000);
	as_heap_types_clear(&t);
	as_selection_free(s);
	clear(&m);
}

static void bins_add_up_and_have_quantiles(void **state)
{
	struct as_model m;
	struct as_selection *s;
	struct as_heap_bins b;

	make(&m);
	assert_int_equal(as_selection_make(&m, NULL, &s, NULL), AS_OK);
	as_heap_bins_make(s, AS_HEAP_SIZES, &b);
	assert_int_equal(b.total, 200);
	assert_int_equal(b.count[5], 90);
	assert_int_equal(b.count[7], 110);
	assert_int_equal(as_heap_bins_quantile(&b, 0.4), 31);
	assert_int_equal(as_heap_bins_quantile(&b, 0.5), 127);
	as_heap_bins_make(s, AS_HEAP_LIFETIMES, &b);
	assert_int_equal(b.total, 0);
	assert_int_equal(as_heap_bins_quantile(&b, 0.5), 0);
	assert_int_equal(as_heap_bin_first(0), 0);
	assert_int_equal(as_heap_bin_last(0), 0);
	assert_int_equal(as_heap_bin_first(1), 1);
	assert_int_equal(as_heap_bin_last(63), (1ull << 63) - 1);
	as_selection_free(s);
	clear(&m);
}

static void chains_stand_at_the_programs_line_with_a_capacity(void **state)
{
	struct as_model m;
	struct as_selection *s;
	struct as_heap_chains c;

	make(&m);
	assert_int_equal(as_selection_make(&m, NULL, &s, NULL), AS_OK);
	as_heap_chains_make(s, &c);
	assert_int_equal(c.v.n, 1);
	assert_string_equal(m.functions.v[c.v.v[0].place->function].full, "app::load");
	assert_string_equal(c.v.v[0].type, "Vec<u64>");
	assert_int_equal(c.v.v[0].copied_bytes, 4096);
	/* all ended at 512 to 1023 bytes, none above 640 */
	assert_int_equal(as_heap_chain_capacity(&c.v.v[0]), 640);
	as_heap_chains_clear(&c);
	as_selection_free(s);
	clear(&m);
}

static void groups_have_the_figures_of_their_rows(void **state)
{
	struct as_model m;
	struct as_selection *s;
	uint64_t *v;

	make(&m);
	assert_int_equal(as_selection_make(&m, NULL, &s, NULL), AS_OK);
	v = as_heap_group_values(s);
	assert_int_equal(s->groups.n, 2);
	assert_int_equal(v[AS_HEAP_PEAK_BYTES], 3000);
	assert_int_equal(v[AS_HEAP_VALUES + AS_HEAP_PEAK_BYTES], 1000);
	free(v);
	as_selection_free(s);
	clear(&m);
}

static void marks_choose_what_was_live_then(void **state)
{
	static uint64_t at[][6] = {{0, 2, 700, 1, 1, 30}, {0, 9, 900}, {1, 1, 55, 99, 1, 1}};
	struct as_error err = {0};
	struct as_model m;

	make(&m);
	as_vec_push(&m.heap.marks,
		    (struct as_m_heap_mark){"load", {.time_ns = 10, .stacks = {at[0], 6}}});
	as_vec_push(&m.heap.marks,
		    (struct as_m_heap_mark){"load", {.time_ns = 20, .stacks = {at[1], 3}}});
	/* the same mark, continued; row 99 is none */
	as_vec_push(&m.heap.marks,
		    (struct as_m_heap_mark){"load", {.time_ns = 20, .stacks = {at[2], 6}}});
	assert_int_equal(as_model_measure_at(&m, "load", true, &err), AS_OK);
	assert_int_equal(m.measure, AS_MEASURE_LIVE);
	assert_int_equal(as_model_weight(&m, 0), 700);
	assert_int_equal(as_model_weight(&m, 1), 30);
	assert_int_equal(m.heap.at_ns, 10);
	assert_int_equal(as_model_measure_at(&m, "load#2", true, &err), AS_OK);
	assert_int_equal(as_model_weight(&m, 0), 900);
	assert_int_equal(as_model_weight(&m, 1), 55);
	assert_int_equal(as_model_measure_at(&m, "", true, &err), AS_OK);
	assert_int_equal(as_model_weight(&m, 0), 0);
	assert_int_equal(as_model_measure_at(&m, "load#3", true, &err), AS_E_NOTFOUND);
	assert_int_equal(as_model_measure_at(&m, "lod", true, &err), AS_E_NOTFOUND);
	assert_non_null(strstr(err.msg, "there are load"));
	assert_int_equal(as_model_measure(&m, AS_MEASURE_PEAK, true, &err), AS_OK);
	assert_null(m.heap.at);
	clear(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_tell_the_container),
		cmocka_unit_test(parameters_are_debug_informations_where_names_hide_them),
		cmocka_unit_test(types_are_of_the_plumbing_alone),
		cmocka_unit_test(bins_add_up_and_have_quantiles),
		cmocka_unit_test(chains_stand_at_the_programs_line_with_a_capacity),
		cmocka_unit_test(groups_have_the_figures_of_their_rows),
		cmocka_unit_test(marks_choose_what_was_live_then),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

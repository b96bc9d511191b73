/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* CPU time that memory costs: which functions are allocators', which samples are below them and on whom
 * they count, what is assay's own, and what stands beside it of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "hand_model.h"
#include "model/memory/alloc_time.h"
#include "model/model_priv.h"

enum { HM_OWN = 3 };

struct session {
	struct as_model m;
	uint32_t main, parse, push, drop, realloc_, malloc_, free_, memset_, inner, own, fault,
		clear, filemap;
};

static uint32_t frame_of(struct as_model *m, uint32_t module, const char *name,
			 const char *crate)
{
	uint32_t f = hm_function(m, name, module);

	m->functions.v[f].crate = crate;
	return hm_frame(m, module, &f, 1);
}

static int setup(void **state)
{
	struct session *s = as_xcalloc(1, sizeof *s);
	struct as_model *m = &s->m;
	uint32_t places[2];

	hm_init(m);
	as_vec_push(&m->modules, (struct as_m_module){.path = "[assay]",
						      .name = "[assay]",
						      .debug_path = "",
						      .kind = AS_MODULE_JIT,
						      .own = true});
	m->heap.is = true;
	s->main = frame_of(m, HM_APP, "main", "app");
	/* what grows is inlined into what the program calls */
	places[0] = hm_function(m, "alloc::vec::Vec<T,A>::push", HM_APP);
	m->functions.v[places[0]].crate = "alloc";
	places[1] = hm_function(m, "app::parse", HM_APP);
	s->parse = hm_frame(m, HM_APP, places, 2);
	s->push = frame_of(m, HM_APP, "alloc::raw_vec::RawVec<T,A>::grow_one", "alloc");
	s->drop = frame_of(m, HM_APP, "core::ptr::drop_in_place<app::Tree>", "core");
	s->realloc_ = frame_of(m, HM_LIBC, "realloc", "");
	s->malloc_ = frame_of(m, HM_LIBC, "malloc", "");
	s->free_ = frame_of(m, HM_LIBC, "free", "");
	s->memset_ = frame_of(m, HM_LIBC, "__memset_avx2_unaligned_erms", "");
	s->inner = frame_of(m, HM_LIBC, "unlink_chunk", "");
	s->own = frame_of(m, HM_OWN, "[jit]", "");
	s->fault = frame_of(m, HM_KERNEL, "asm_exc_page_fault", "");
	s->clear = frame_of(m, HM_KERNEL, "clear_page_erms", "");
	s->filemap = frame_of(m, HM_KERNEL, "filemap_map_pages", "");
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct session *s = *state;

	as_heap_clear(&s->m);
	as_time_clear(&s->m);
	hm_clear(&s->m);
	free(s);
	return 0;
}

/* n samples on main and these frames, outermost first; AS_NONE ends them. */
static uint32_t samples_on(struct session *s, unsigned n, const uint32_t *frames)
{
	uint32_t at = hm_stack(&s->m, AS_NONE, s->main);

	for (; *frames != AS_NONE; frames++)
		at = hm_stack(&s->m, at, *frames);
	hm_samples(&s->m, 0, at, AS_END_ROOT, n);
	return at;
}
#define ON(s, n, ...) samples_on(s, n, (const uint32_t[]){__VA_ARGS__, AS_NONE})

static const struct as_row *row_of(const struct as_profile *p, const char *name)
{
	as_vec_foreach (r, &p->rows) {
		if (strcmp(r->name, name) == 0)
			return r;
	}
	fail_msg("no row '%s'", name);
	return NULL;
}

static double self_of(struct as_model *m, const char *name)
{
	struct as_query q = {.by = AS_BY_FUNCTION};
	struct as_profile *p;
	double share;

	assert_int_equal(as_profile_make(m, &q, &p, NULL), 0);
	share = row_of(p, name)->self.value;
	as_profile_free(p);
	return share;
}

static void allocators_are_known_by_name_and_methods_of_programs_are_not(void **state)
{
	static const struct {
		const char *full;
		enum as_alloc_kind kind;
	} names[] = {
		{"malloc", AS_ALLOC_NEW},
		{"__libc_malloc", AS_ALLOC_NEW},
		{"_rjem_je_sdallocx", AS_ALLOC_FREE},
		{"_rjem_realloc", AS_ALLOC_REALLOC},
		{"mi_free", AS_ALLOC_FREE},
		{"mi_new", AS_ALLOC_NEW},
		{"tc_delete", AS_ALLOC_FREE},
		{"operator new[](unsigned long)", AS_ALLOC_NEW},
		{"operator delete(void*, unsigned long)", AS_ALLOC_FREE},
		{"__rustc::__rust_realloc", AS_ALLOC_REALLOC},
		{"__rust_dealloc", AS_ALLOC_FREE},
		{"std::alloc::__rdl_alloc", AS_ALLOC_NEW},
		{"PyObject_Free", AS_ALLOC_FREE},
		{"new", AS_ALLOC_NONE},
		{"app::Pool::free", AS_ALLOC_NONE},
		{"mi_parse", AS_ALLOC_NONE},
		{"free_list", AS_ALLOC_NONE},
		{"", AS_ALLOC_NONE},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(names); i++)
		if (as_alloc_kind_of_name(names[i].full, names[i].full) != names[i].kind)
			fail_msg("'%s' is of another kind", names[i].full);
}

static void samples_below_an_allocator_count_for_who_asked(void **state)
{
	struct session *s = *state;
	struct as_query q = {.by = AS_BY_FUNCTION};
	struct as_profile *p;
	const struct as_row *row;

	ON(s, 10, s->parse, s->push, s->own, s->realloc_, s->malloc_, s->inner);
	ON(s, 5, s->parse, s->drop, s->own, s->free_);
	ON(s, 25, s->parse);
	as_time_complete(&s->m);
	assert_int_equal(as_model_measure(&s->m, AS_MEASURE_ALLOC_TIME, true, NULL), 0);
	assert_int_equal(as_profile_make(&s->m, &q, &p, NULL), 0);
	assert_int_equal(p->samples, 40);
	assert_int_equal(p->kept_samples, 15);
	row = row_of(p, "app::parse");
	assert_true(row->self.value > 0.3749 && row->self.value < 0.3751); /* of all time */
	assert_true(row->self.low < row->self.value && row->self.high > row->self.value);
	assert_int_equal(row->self_values[AS_HEAP_REALLOC_NS], 10 * HM_WEIGHT_NS);
	assert_int_equal(row->self_values[AS_HEAP_FREE_NS], 5 * HM_WEIGHT_NS);
	assert_int_equal(row->self_values[AS_HEAP_NEW_NS], 0);
	assert_int_equal(row_of(p, "main")->total_values[AS_HEAP_REALLOC_NS],
			 10 * HM_WEIGHT_NS);
	as_profile_free(p);
}

static void page_faults_count_but_not_those_of_files(void **state)
{
	struct session *s = *state;
	struct as_query q = {.by = AS_BY_FUNCTION};
	struct as_profile *p;

	ON(s, 3, s->parse, s->memset_, s->fault, s->clear);
	ON(s, 4, s->parse, s->malloc_, s->inner, s->fault, s->clear);
	ON(s, 5, s->parse, s->fault, s->filemap);
	as_time_complete(&s->m);
	assert_int_equal(as_model_measure(&s->m, AS_MEASURE_ALLOC_TIME, true, NULL), 0);
	assert_int_equal(as_profile_make(&s->m, &q, &p, NULL), 0);
	assert_int_equal(p->kept_samples, 7);
	assert_int_equal(row_of(p, "app::parse")->self_values[AS_HEAP_FAULT_NS],
			 7 * HM_WEIGHT_NS);
	as_profile_free(p);
}

static void assays_own_code_is_in_no_profile_and_counted(void **state)
{
	struct session *s = *state;
	uint32_t below = ON(s, 10, s->parse, s->own, s->malloc_);
	struct as_trust t;

	ON(s, 6, s->parse, s->own);
	ON(s, 2, s->parse, s->own, s->fault); /* what the kernel did for it */
	as_time_complete(&s->m);
	assert_int_equal(s->m.samples.n, 10);
	assert_int_equal(s->m.time.own_samples, 8);
	as_model_trust(&s->m, &t);
	assert_int_equal(t.own, 8);
	/* and calls are as without it */
	assert_int_equal(s->m.stacks.v[s->m.stacks.v[below].parent].frame, s->parse);
}

static void measures_come_and_go_and_samples_stay(void **state)
{
	struct session *s = *state;

	ON(s, 10, s->parse, s->malloc_);
	ON(s, 30, s->parse);
	as_time_complete(&s->m);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(as_model_measure(&s->m, AS_MEASURE_ALLOC_TIME, true, NULL), 0);
		assert_true(self_of(&s->m, "app::parse") > 0.24 &&
			    self_of(&s->m, "app::parse") < 0.26);
		assert_int_equal(as_model_measure(&s->m, AS_MEASURE_ALLOCS, true, NULL), 0);
		assert_true(as_model_is_counted(&s->m));
		assert_int_equal(as_model_measure(&s->m, AS_MEASURE_TIME, true, NULL), 0);
		assert_int_equal(s->m.samples.n, 40);
		assert_true(self_of(&s->m, "malloc") > 0.24 && self_of(&s->m, "malloc") < 0.26);
	}
	/* unfolded: the allocator's own functions */
	assert_int_equal(as_model_measure(&s->m, AS_MEASURE_ALLOC_TIME, false, NULL), 0);
	assert_true(self_of(&s->m, "malloc") > 0.24 && self_of(&s->m, "malloc") < 0.26);
}

static void lines_tell_what_they_allocate_and_how_it_grows(void **state)
{
	struct session *s = *state;
	uint32_t at = ON(s, 10, s->parse, s->push, s->realloc_);
	struct as_alloc_time t;
	uint64_t last[2] = {1ull << 11, 4}; /* four of 1,024 to 2,047 bytes */

	ON(s, 10, s->memset_);
	as_vec_push(&s->m.heap.rows,
		    (struct as_m_heap_row){.r = {.allocs = 40,
						 .bytes = 5000,
						 .reallocs = 36,
						 .copied_bytes = 4000,
						 .chains = 4,
						 .ended = 4,
						 .last_bytes = 6000,
						 .last_max_bytes = 1500,
						 .last = {last, 2}},
					   .stack = s->m.stacks.v[at].parent,
					   .folded = s->m.stacks.v[at].parent});
	as_heap_fold(&s->m);
	s->m.heap.look.leaked = as_xcalloc(2, sizeof *s->m.heap.look.leaked);
	as_time_complete(&s->m);
	assert_int_equal(as_alloc_time_make(&s->m, &t, NULL), 0);
	assert_true(t.share.value > 0.49 && t.share.value < 0.51);
	assert_true(t.share.low < 0.5 && t.share.high > 0.5);
	assert_true(t.kind[AS_ALLOC_REALLOC] > 0.49);
	assert_int_equal(t.v.n, 1);
	assert_string_equal(t.v.v[0].name, "app::parse");
	assert_int_equal(t.v.v[0].line, 11);
	assert_int_equal(t.v.v[0].values[AS_HEAP_ALLOCS], 40);
	assert_non_null(t.v.v[0].growth);
	assert_string_equal(t.v.v[0].growth->type, "Vec<T>");
	assert_int_equal(as_heap_chain_capacity(t.v.v[0].growth), 1500);
	assert_int_equal(s->m.measure, AS_MEASURE_TIME);
	as_alloc_time_clear(&t);
}

static void sessions_without_samples_or_memory_say_so(void **state)
{
	struct session *s = *state;
	struct as_alloc_time t;
	struct as_error err = {0};

	s->m.heap.is = false;
	s->m.time.is = true;
	assert_int_equal(as_alloc_time_make(&s->m, &t, &err), AS_E_USAGE);
	assert_int_equal(as_model_measure(&s->m, AS_MEASURE_PEAK, true, &err), AS_E_USAGE);
	assert_non_null(strstr(err.msg, "assay record --heap"));
	s->m.heap.is = true;
	s->m.time.is = false;
	assert_int_equal(as_model_measure(&s->m, AS_MEASURE_ALLOC_TIME, true, &err),
			 AS_E_USAGE);
	assert_int_equal(as_model_measure(&s->m, AS_MEASURE_TIME, true, &err), AS_E_USAGE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(allocators_are_known_by_name_and_methods_of_programs_are_not),
		TEST(samples_below_an_allocator_count_for_who_asked),
		TEST(page_faults_count_but_not_those_of_files),
		TEST(assays_own_code_is_in_no_profile_and_counted),
		TEST(measures_come_and_go_and_samples_stay),
		TEST(lines_tell_what_they_allocate_and_how_it_grows),
		TEST(sessions_without_samples_or_memory_say_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

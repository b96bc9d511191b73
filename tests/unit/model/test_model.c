/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The model, asked questions whose answers are known, of sessions made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/mem.h"
#include "base/sys.h"
#include "model/model.h"

#define MS 1000000ull
#ifdef __SANITIZE_THREAD__
#define DEEP_MAX 120000 /* a hundred times a plain build's */
#else
#define DEEP_MAX 30000
#endif
#define NONE UINT64_MAX

/* ---- making sessions ---- */

static char folder[64], file[96];
static struct as_session_writer *w;
static uint64_t nframes, nstacks, nfunctions, nsamples;
static struct as_model *model;

static int begin(void **state)
{
	snprintf(folder, sizeof folder, "/tmp/assay-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof file, "%s/m.assay", folder);
	nframes = nstacks = nfunctions = nsamples = 0;
	model = NULL;
	assert_int_equal(as_session_writer_open(file, &w, NULL), 0);
	as_write_recording(w,
			   &(struct as_rec_recording){.start_ns = 1000 * MS, .rate_hz = 1000});
	as_write_process(w, &(struct as_rec_process){.id = 0,
						     .pid = 100,
						     .name = as_session_string(w, "app", 3)});
	as_write_thread(w, &(struct as_rec_thread){.id = 0,
						   .tid = 100,
						   .name = as_session_string(w, "main", 4)});
	as_write_thread(w, &(struct as_rec_thread){.id = 1,
						   .tid = 101,
						   .name = as_session_string(w, "worker", 6)});
	as_write_module(w, &(struct as_rec_module){
				   .id = 0, .path = as_session_string(w, "/bin/app", 8)});
	as_write_module(
		w, &(struct as_rec_module){.id = 1,
					   .path = as_session_string(w, "/lib/libc.so.6", 14)});
	as_write_module(w, &(struct as_rec_module){.id = 2, .kind = AS_MODULE_KERNEL});
	as_write_module(w, &(struct as_rec_module){.id = 3, .kind = AS_MODULE_JIT});
	return 0;
}

static int end(void **state)
{
	as_model_free(model);
	as_session_writer_close(w);
	w = NULL;
	unlink(file);
	return rmdir(folder);
}

static uint64_t text(const char *s)
{
	return as_session_string(w, s, strlen(s));
}

static uint64_t function_in(const char *name, const char *file_name, const char *crate)
{
	as_write_function(w, &(struct as_rec_function){.id = nfunctions,
						       .module = 1,
						       .linkage = text(name),
						       .full = text(name),
						       .brief = text(name),
						       .crate = text(crate),
						       .file = text(file_name),
						       .line = 1});
	return nfunctions++;
}

static uint64_t function(const char *name)
{
	return function_in(name, "src/main.rs", "app");
}

/* A frame of `module` (id; NONE: unknown memory) without a name. */
static uint64_t bare_frame(uint64_t module, uint64_t addr, uint64_t flags)
{
	as_write_frame(
		w, &(struct as_rec_frame){
			   .id = nframes, .module = module + 1, .addr = addr, .flags = flags});
	return nframes++;
}

/* A frame of one function at a line. */
static uint64_t frame_at(uint64_t fn, uint64_t line)
{
	uint64_t f = bare_frame(0, 0x1000 + nframes, 0);
	uint64_t chain[4] = {fn, text("src/main.rs"), line, 1};

	as_write_symbol(w, &(struct as_rec_symbol){.frame = f, .chain = {chain, 4}});
	return f;
}

static uint64_t frame(const char *name)
{
	return frame_at(function(name), 10);
}

/* Stack of frames, outermost first; parent: id of a stack or NONE. Returns the leaf's id. */
static uint64_t on(uint64_t parent, uint64_t f)
{
	as_write_stack(w,
		       &(struct as_rec_stack){.id = nstacks, .parent = parent + 1, .frame = f});
	return nstacks++;
}

static void sample_full(uint64_t stack, unsigned n, uint64_t thread, uint64_t end_reason)
{
	for (unsigned i = 0; i < n; i++)
		as_write_sample(w, &(struct as_rec_sample){.time_rel = (1000 + nsamples++) * MS,
							   .thread = thread,
							   .stack = stack + 1,
							   .weight = MS,
							   .end = end_reason});
}

static void sample(uint64_t stack, unsigned n)
{
	sample_full(stack, n, 0, AS_END_ROOT);
}

static struct as_model *loaded(void)
{
	struct as_error err = {0};

	assert_int_equal(as_session_writer_finish(w, NULL), 0);
	if (as_model_load(file, &model, &err) < 0)
		fail_msg("%s", err.msg);
	return model;
}

/* ---- asking ---- */

static struct as_profile *ask(const struct as_query *q)
{
	struct as_profile *p = NULL;
	struct as_error err = {0};

	if (as_profile_make(model ? model : loaded(), q, &p, &err) < 0)
		fail_msg("%s", err.msg);
	return p;
}

static const struct as_row *row(const struct as_profile *p, const char *name)
{
	as_vec_foreach (r, &p->rows) {
		if (strcmp(r->name, name) == 0)
			return r;
	}
	return NULL;
}

static void expect(const struct as_profile *p, const char *name, double self, double total)
{
	const struct as_row *r = row(p, name);

	if (!r)
		fail_msg("no row '%s'", name);
	if (fabs(r->self.value - self) > 1e-9 || fabs(r->total.value - total) > 1e-9)
		fail_msg("%s: self %g total %g, expected %g %g", name, r->self.value,
			 r->total.value, self, total);
	assert_true(r->self.low <= self && self <= r->self.high);
	assert_true(r->total.low <= total && total <= r->total.high);
	assert_true(r->total.samples >= r->self.samples);
}

/* The tree as text: "all 10(main 10/2(leaf 8/8))": samples in total and self. */
static void print_node(const struct as_profile *p, uint32_t i, struct as_buf *out)
{
	const struct as_node *n = &p->nodes.v[i];
	struct as_row r;

	as_profile_name(p, n->key, &r);
	as_buf_addf(out, "%s %llu", r.name, (unsigned long long)n->total_samples);
	if (n->self_samples)
		as_buf_addf(out, "/%llu", (unsigned long long)n->self_samples);
	if (n->first_child == AS_NONE)
		return;
	as_buf_addc(out, '(');
	for (uint32_t c = n->first_child; c != AS_NONE; c = p->nodes.v[c].next_sibling) {
		assert_int_equal(p->nodes.v[c].parent, i);
		if (c != n->first_child)
			as_buf_addc(out, ' ');
		print_node(p, c, out);
	}
	as_buf_addc(out, ')');
}

static void expect_tree(const struct as_profile *p, const char *want)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	print_node(p, 0, &b);
	assert_string_equal(b.p, want);
}

/* ---- tests ---- */

static void self_and_total_are_what_was_sampled(void **state)
{
	uint64_t m = on(NONE, frame("main")), a = on(m, frame("hot")), b = on(m, frame("cold"));
	struct as_profile *p;

	sample(a, 70);
	sample(b, 20);
	sample(m, 10);
	p = ask(&(struct as_query){0});
	assert_int_equal(p->samples, 100);
	expect(p, "main", 0.1, 1.0);
	expect(p, "hot", 0.7, 0.7);
	expect(p, "cold", 0.2, 0.2);
	assert_string_equal(p->rows.v[0].name, "hot");
	assert_false(p->rows.v[0].tied_with_next);
	assert_int_equal(row(p, "hot")->self.samples, 70);
	assert_string_equal(row(p, "hot")->module, "app");
	as_profile_free(p);
}

static void rows_that_chance_could_swap_are_marked(void **state)
{
	uint64_t m = on(NONE, frame("main")), a = on(m, frame("a")), b = on(m, frame("b"));
	struct as_profile *p;

	for (int i = 0; i < 50; i++) {
		sample(a, 1);
		sample(b, i == 7 ? 2 : 1);
		sample(m, 20);
	}
	p = ask(&(struct as_query){0});
	assert_string_equal(p->rows.v[0].name, "main");
	assert_false(p->rows.v[0].tied_with_next);
	assert_true(p->rows.v[1].tied_with_next);
	as_profile_free(p);
}

static void recursion_counts_once_in_totals(void **state)
{
	uint64_t f = function("fact"), s = on(NONE, frame("main"));
	struct as_profile *p;

	for (int i = 0; i < 5; i++)
		s = on(s, frame_at(f, 10 + i));
	sample(s, 6);
	s = on(on(s, frame("mul")), frame_at(f, 99)); /* indirect */
	sample(s, 4);
	p = ask(&(struct as_query){0});
	expect(p, "fact", 1.0, 1.0);
	expect(p, "mul", 0.0, 0.4);
	as_profile_free(p);
	p = ask(&(struct as_query){.shape = AS_SHAPE_CALLERS, .of = "fact"});
	expect_tree(p, "all 10(fact 10(main 10/10))");
	as_profile_free(p);
	p = ask(&(struct as_query){.shape = AS_SHAPE_CALLEES, .of = "fact"});
	assert_int_equal(p->nodes.v[0].total_samples, 10);
	expect(p, "fact", 0, 1.0);
	as_profile_free(p);
}

static uint64_t inlined_stack(void)
{
	uint64_t outer = function("outer"), mid = function("mid"), leaf = function("leaf");
	uint64_t file_id = text("src/lib.rs"), f = bare_frame(0, 0x5000, AS_FRAME_EXACT);
	uint64_t chain[12] = {leaf, file_id,        3,     7 | 1ull << 32, mid, file_id,
			      20,   1 | 1ull << 32, outer, file_id,        30,  5};

	as_write_symbol(w, &(struct as_rec_symbol){.frame = f, .chain = {chain, 12}});
	return on(on(NONE, frame("main")), f);
}

static void inlined_functions_are_frames_of_their_own(void **state)
{
	struct as_profile *p;
	const struct as_m_place *place;

	sample(inlined_stack(), 10);
	p = ask(&(struct as_query){.shape = AS_SHAPE_TREE});
	expect_tree(p, "all 10(main 10(outer 10(mid 10(leaf 10/10))))");
	as_profile_free(p);
	p = ask(&(struct as_query){.shape = AS_SHAPE_TREE, .no_inline = true});
	expect_tree(p, "all 10(main 10(outer 10/10))");
	as_profile_free(p);
	p = ask(&(struct as_query){.shape = AS_SHAPE_INVERTED});
	expect_tree(p, "all 10(leaf 10(mid 10(outer 10(main 10/10))))");
	as_profile_free(p);
	place = &model->places.v[model->frames.v[0].chain];
	assert_true(place->inlined);
	assert_int_equal(place->column, 7);
	p = ask(&(struct as_query){.by = AS_BY_LINE});
	assert_string_equal(p->rows.v[0].file, "src/lib.rs");
	assert_int_equal(p->rows.v[0].line, 3);
	as_profile_free(p);
}

static void callers_and_callees_go_both_ways_from_a_function(void **state)
{
	uint64_t m = on(NONE, frame("main")), alloc = frame("alloc"), grow = frame("grow");
	uint64_t a = on(m, frame("parse")), b = on(m, frame("print"));
	uint64_t in_a = on(a, alloc), in_b = on(b, alloc), deep = on(in_b, grow);
	struct as_profile *p;

	sample(in_a, 30);
	sample(deep, 50);
	sample(in_b, 10);
	sample(a, 10);
	p = ask(&(struct as_query){.shape = AS_SHAPE_CALLERS, .of = "alloc"});
	expect_tree(p, "all 90(alloc 90(print 60(main 60/60) parse 30(main 30/30)))");
	expect(p, "print", 0, 0.6);
	expect(p, "parse", 0, 0.3);
	assert_int_equal(p->rows.n, 2);
	assert_true(p->nodes.v[0].low > 0.8 && p->nodes.v[0].high < 0.97);
	as_profile_free(p);
	p = ask(&(struct as_query){.shape = AS_SHAPE_CALLEES, .of = "print"});
	expect_tree(p, "all 60(print 60(alloc 60/10(grow 50/50)))");
	as_profile_free(p);
	p = ask(&(struct as_query){.shape = AS_SHAPE_INVERTED});
	expect_tree(p, "all 100(grow 50(alloc 50(print 50(main 50/50))) "
		       "alloc 40(parse 30(main 30/30) print 10(main 10/10)) "
		       "parse 10(main 10/10))");
	as_profile_free(p);
}

static void an_unknown_function_is_answered_with_near_ones(void **state)
{
	struct as_profile *p = NULL;
	struct as_error err;

	sample(on(on(NONE, frame("main")), frame("app::parser::next_token")), 3);
	loaded();
	assert_int_equal(as_profile_make(model,
					 &(struct as_query){.shape = AS_SHAPE_CALLERS,
							    .of = "nxt_token"},
					 &p, &err),
			 AS_E_NOTFOUND);
	assert_non_null(strstr(err.msg, "near: 'app::parser::next_token'"));
	p = ask(&(struct as_query){.shape = AS_SHAPE_CALLERS, .of = "next_tok"});
	assert_int_equal(p->nodes.v[0].total_samples, 3);
	as_profile_free(p);
}

static void filters_keep_and_drop_whole_samples_and_hide_frames(void **state)
{
	uint64_t m = on(NONE, frame("main")), a = on(m, frame("io::read")),
		 b = on(m, frame("work"));
	uint64_t c = on(b, frame("io::write"));
	struct as_profile *p;
	struct as_error err;

	sample(a, 20);
	sample(b, 50);
	sample(c, 30);
	p = ask(&(struct as_query){.focus = "^io::"});
	assert_int_equal(p->kept_samples, 50);
	expect(p, "main", 0, 0.5);
	expect(p, "io::read", 0.2, 0.2);
	as_profile_free(p);
	p = ask(&(struct as_query){.ignore = "write|read"});
	expect(p, "work", 0.5, 0.5);
	assert_null(row(p, "io::read"));
	as_profile_free(p);
	p = ask(&(struct as_query){.hide = "^io::", .shape = AS_SHAPE_TREE});
	expect_tree(p, "all 100(main 100/20(work 80/80))");
	as_profile_free(p);
	assert_int_equal(as_profile_make(model, &(struct as_query){.focus = "(("}, &p, &err),
			 AS_E_USAGE);
	assert_non_null(strstr(err.msg, "(("));
}

static void threads_and_time_choose_the_denominator(void **state)
{
	uint64_t m = on(NONE, frame("main")), a = on(m, frame("a"));
	struct as_profile *p;
	struct as_error err;

	sample_full(a, 40, 0, AS_END_ROOT); /* 0 … 40 ms */
	sample_full(m, 60, 1, AS_END_ROOT); /* 40 … 100 ms */
	p = ask(&(struct as_query){.thread = "work"});
	assert_int_equal(p->samples, 60);
	expect(p, "main", 1.0, 1.0);
	as_profile_free(p);
	p = ask(&(struct as_query){.thread = "100"}); /* tid of one, pid of both */
	assert_int_equal(p->samples, 100);
	as_profile_free(p);
	p = ask(&(struct as_query){.from_ns = 30 * MS, .to_ns = 50 * MS});
	assert_int_equal(p->samples, 20);
	expect(p, "a", 0.5, 0.5);
	as_profile_free(p);
	p = ask(&(struct as_query){.by = AS_BY_THREAD});
	expect(p, "worker", 0.6, 0.6);
	assert_int_equal(p->rows.v[0].key, 1);
	as_profile_free(p);
	p = ask(&(struct as_query){.by = AS_BY_PROCESS});
	expect(p, "app", 1.0, 1.0);
	as_profile_free(p);
	p = ask(&(struct as_query){.by = AS_BY_THREAD, .shape = AS_SHAPE_TREE});
	expect_tree(p, "all 100(worker 60(main 60/60) main 40(main 40(a 40/40)))");
	assert_int_equal(p->rows.n, 2);
	as_profile_free(p);
	p = ask(&(struct as_query){.by = AS_BY_THREAD, .shape = AS_SHAPE_INVERTED});
	expect_tree(p, "all 100(worker 60(main 60/60) main 40(a 40(main 40/40)))");
	as_profile_free(p);
	assert_int_equal(
		as_profile_make(model, &(struct as_query){.thread = "nobody"}, &p, &err),
		AS_E_NOTFOUND);
}

static void rows_can_be_files_crates_and_modules(void **state)
{
	uint64_t m = on(NONE, frame_at(function_in("main", "src/main.rs", "app"), 5));
	uint64_t c = on(m, bare_frame(1, 0x77, 0));
	struct as_profile *p;

	sample(m, 25);
	sample(c, 75);
	p = ask(&(struct as_query){.by = AS_BY_MODULE});
	expect(p, "app", 0.25, 1.0);
	expect(p, "libc.so.6", 0.75, 0.75);
	as_profile_free(p);
	p = ask(&(struct as_query){.by = AS_BY_CRATE});
	expect(p, "app", 0.25, 1.0);
	expect(p, "[libc.so.6]", 0.75, 0.75);
	as_profile_free(p);
	p = ask(&(struct as_query){.by = AS_BY_FILE});
	expect(p, "src/main.rs", 0.25, 1.0);
	assert_string_equal(row(p, "src/main.rs")->file, "src/main.rs");
	as_profile_free(p);
	p = ask(&(struct as_query){.module = "libc"});
	assert_int_equal(p->kept_samples, 75);
	expect(p, "main", 0, 0.75);
	as_profile_free(p);
}

static void frames_without_names_get_stable_ones(void **state)
{
	struct as_profile *p;
	uint64_t k = bare_frame(2, 0xffff800000001234, AS_FRAME_KERNEL);

	sample(on(NONE, bare_frame(1, 0x1234, 0)), 1);
	sample(on(NONE, bare_frame(1, 0x1234, AS_FRAME_EXACT)), 1);
	sample(on(NONE, bare_frame(NONE, 0x7fff0010, 0)), 2);
	sample(on(NONE, bare_frame(3, 0x7f0000000000, 0)), 2);
	sample(on(NONE, bare_frame(3, 0x7f0000000010, 0)), 2);
	sample(on(NONE, k), 2);
	p = ask(&(struct as_query){0});
	expect(p, "libc.so.6+0x1234", 0.2, 0.2);
	expect(p, "[unknown 0x7fff0010]", 0.2, 0.2);
	expect(p, "[jit]", 0.4, 0.4);
	expect(p, "[kernel 0xffff800000001234]", 0.2, 0.2);
	assert_true(row(p, "[jit]")->unsymbolized);
	as_profile_free(p);
	p = ask(&(struct as_query){.no_kernel = true});
	assert_null(row(p, "[kernel 0xffff800000001234]"));
	as_profile_free(p);
}

static void truncated_stacks_never_stand_beside_whole_ones(void **state)
{
	uint64_t whole = on(on(NONE, frame("_start")), frame("main"));
	uint64_t part = on(NONE, frame("main"));
	struct as_profile *p;
	struct as_trust t;

	sample(whole, 6);
	sample_full(part, 2, 0, AS_END_FAULT);
	sample_full(part, 1, 0, AS_END_DEPTH | AS_SAMPLE_REPAIRED);
	sample_full(NONE, 1, 0, AS_END_NOSTACK);
	p = ask(&(struct as_query){.shape = AS_SHAPE_TREE});
	expect_tree(p, "all 10(_start 6(main 6/6) [truncated: unreadable-stack] 2(main 2/2) "
		       "[truncated: too-deep] 1(main 1/1) [no user stack] 1/1)");
	as_profile_free(p);
	p = ask(&(struct as_query){0});
	expect(p, "main", 0.9, 0.9);
	expect(p, "[no user stack]", 0.1, 0.1);
	assert_null(row(p, "[truncated: too-deep]"));
	as_profile_free(p);
	as_model_trust(model, &t);
	assert_int_equal(t.samples, 10);
	assert_int_equal(t.complete, 6);
	assert_int_equal(t.truncated, 4);
	assert_int_equal(t.by_reason[AS_END_FAULT], 2);
	assert_int_equal(t.by_reason[AS_END_NOSTACK], 1);
	assert_true(t.interrupted);
	assert_true(isnan(t.cpu_s));
}

static void the_trust_block_explains_the_cpu_time(void **state)
{
	uint64_t m = on(NONE, frame("main"));
	struct as_trust t;

	as_write_info(w, &(struct as_rec_info){AS_STR("engine"), AS_STR("kernel")});
	sample(m, 95);
	sample_full(m, 5, 0, AS_SAMPLE_REPAIRED | AS_SAMPLE_KERNEL);
	as_write_lost(w, &(struct as_rec_lost){.count = 3, .source = AS_LOSS_QUEUE});
	as_write_tick(w, &(struct as_rec_tick){.taken = 104,
					       .delivered = 100,
					       .lost_kernel = 1,
					       .lost_queue = 3,
					       .throttled = 2});
	as_write_summary(w, &(struct as_rec_summary){.wall_ns = 200 * MS,
						     .user_ns = 90 * MS,
						     .sys_ns = 20 * MS,
						     .samples = 100});
	as_model_trust(loaded(), &t);
	assert_string_equal(t.engine, "kernel");
	assert_int_equal(t.repaired, 5);
	assert_int_equal(t.complete, 95);
	assert_int_equal(t.lost, 4);
	assert_int_equal(t.throttled, 2);
	assert_true(fabs(t.explained_cpu - 100.0 / 110) < 1e-9);
	assert_true(fabs(t.effective_rate_hz - 100 / 0.11) < 1e-6);
	assert_false(t.interrupted);
}

static void losses_stand_where_they_were_lost(void **state)
{
	static const struct {
		uint64_t from_ms, to_ms, count;
		uint32_t cpu;
	} want[] = {
		{0, 400, 5, 1},     /* the first tick, from the recording's start */
		{2000, 3000, 4, 0}, /* what the records of CPU 0 do not tell */
		{2400, 2400, 5, 0}, /* heard of before its tick */
		{2700, 2700, 1, 0}, {5000, 5000, 9, 0}, /* no tick came any more */
	};
	const struct as_model *m;
	uint64_t t0 = 1000000000;

	as_write_recording(w, &(struct as_rec_recording){.start_ns = t0, .rate_hz = 997});
	as_write_tick(w, &(struct as_rec_tick){.time_rel = t0 + 2000 * MS, .taken = 9});
	as_write_lost(w, &(struct as_rec_lost){t0 + 2400 * MS, 0, AS_LOSS_QUEUE, 5});
	as_write_lost(w, &(struct as_rec_lost){t0 + 2700 * MS, 0, AS_LOSS_KERNEL, 1});
	as_write_lost(w, &(struct as_rec_lost){t0 + 2600 * MS, 0, AS_LOSS_SIDE, 77});
	as_write_tick(w, &(struct as_rec_tick){.time_rel = t0 + 3000 * MS, .lost_kernel = 10});
	as_write_tick(
		w, &(struct as_rec_tick){.time_rel = t0 + 400 * MS, .cpu = 1, .lost_queue = 5});
	as_write_lost(w, &(struct as_rec_lost){t0 + 400 * MS, 1, AS_LOSS_QUEUE, 5});
	as_write_lost(w, &(struct as_rec_lost){t0 + 5000 * MS, 0, AS_LOSS_QUEUE, 9});
	m = loaded();
	assert_int_equal(m->losses.n, AS_ARRAY_LEN(want));
	for (size_t i = 0; i < m->losses.n; i++) {
		const struct as_m_loss *l = &m->losses.v[i];

		assert_int_equal((l->from_ns - t0) / MS, want[i].from_ms);
		assert_int_equal((l->to_ns - t0) / MS, want[i].to_ms);
		assert_int_equal(l->count, want[i].count);
		assert_int_equal(l->cpu, want[i].cpu);
	}
}

static void the_cold_part_of_a_function_is_the_function(void **state)
{
	uint64_t hot = function("f"), cold;
	struct as_profile *p;

	as_write_function(w, &(struct as_rec_function){.id = nfunctions,
						       .module = 1,
						       .linkage = text("f.cold"),
						       .full = text("f"),
						       .brief = text("f"),
						       .crate = text("app"),
						       .file = text("src/main.rs"),
						       .line = 1,
						       .flags = AS_FUNCTION_COLD});
	cold = nfunctions++;
	sample(on(NONE, frame_at(hot, 1)), 7);
	sample(on(NONE, frame_at(cold, 2)), 3);
	p = ask(&(struct as_query){0});
	assert_int_equal(p->rows.n, 1);
	expect(p, "f", 1.0, 1.0);
	as_profile_free(p);
}

static void light_branches_are_left_out_of_trees(void **state)
{
	uint64_t m = on(NONE, frame("main")), a = on(m, frame("a")), b = on(m, frame("b"));
	struct as_profile *p;

	sample(on(a, frame("aa")), 98);
	sample(on(b, frame("bb")), 2);
	p = ask(&(struct as_query){.shape = AS_SHAPE_TREE, .min_share = 0.05});
	expect_tree(p, "all 100(main 100(a 98(aa 98/98)))");
	as_profile_free(p);
	p = ask(&(struct as_query){.shape = AS_SHAPE_INVERTED, .min_share = 0.05});
	assert_int_equal(p->nodes.v[0].total_samples, 100);
	assert_int_equal(p->nodes.n, 4); /* all, aa, a, main */
	as_profile_free(p);
}

static void samples_out_of_order_are_sorted_by_time(void **state)
{
	uint64_t m = on(NONE, frame("main")), x = 1;

	for (int i = 0; i < 5000; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		as_write_sample(w, &(struct as_rec_sample){.time_rel = 1000 * MS + (x >> 28),
							   .stack = m + 1,
							   .weight = 1});
	}
	loaded();
	for (size_t i = 1; i < model->samples.n; i++)
		assert_true(model->samples.v[i - 1].time_ns <= model->samples.v[i].time_ns);
	assert_int_equal(model->samples.n, 5000);
}

static void twenty_thousand_frames_are_no_burden(void **state)
{
	enum { DEPTH = 20000 };
	static const enum as_shape shapes[] = {AS_SHAPE_FLAT, AS_SHAPE_TREE, AS_SHAPE_INVERTED,
					       AS_SHAPE_CALLERS, AS_SHAPE_CALLEES};
	uint64_t f = function("down"), g = function("across"), s = on(NONE, frame("main"));
	uint64_t at_f = frame_at(f, 1), at_g = frame_at(g, 2), start;

	for (int i = 0; i < DEPTH; i++) {
		s = on(s, i % 2 ? at_g : at_f);
		if (i % 100 == 0)
			sample(s, 1);
	}
	loaded();
	start = as_self_cpu_ns();
	for (size_t i = 0; i < AS_ARRAY_LEN(shapes); i++) {
		struct as_profile *p =
			ask(&(struct as_query){.shape = shapes[i], .of = "down"});

		assert_int_equal(p->kept_samples, DEPTH / 100);
		as_profile_free(p);
	}
	assert_true(as_self_cpu_ns() - start < 4000 * MS);
}

/* ---- sessions that lie ---- */

static void a_stack_as_deep_as_the_file_is_long_ends_in_time(void **state)
{
	uint64_t f = frame("down"), s = NONE, start;

	for (int i = 0; i < 150000; i++) {
		s = on(s, f);
		sample(s, 1);
	}
	loaded();
	start = as_self_cpu_ns();
	for (int shape = 0; shape <= AS_SHAPE_CALLEES; shape++) {
		struct as_profile *p =
			ask(&(struct as_query){.shape = (enum as_shape)shape, .of = "down"});

		assert_int_equal(p->kept_samples, 150000);
		if (p->nodes.n)
			assert_int_equal(p->nodes.v[0].total_samples, 150000);
		as_profile_free(p);
	}
	assert_true(as_self_cpu_ns() - start < DEEP_MAX * MS);
}

static void ids_that_refer_to_nothing_are_left_out_and_told(void **state)
{
	uint64_t m = on(NONE, frame("main")), big = 1ull << 40;
	struct as_profile *p;

	sample(m, 5);
	as_write_sample(w, &(struct as_rec_sample){.thread = 77, .stack = m + 1});
	as_write_sample(w, &(struct as_rec_sample){.stack = big});
	as_write_stack(w, &(struct as_rec_stack){.id = big, .frame = 0});
	as_write_stack(
		w, &(struct as_rec_stack){.id = nstacks, .parent = nstacks + 2, .frame = 0});
	as_write_stack(w, &(struct as_rec_stack){.id = nstacks, .frame = big});
	as_write_frame(w, &(struct as_rec_frame){.id = big});
	as_write_frame(w, &(struct as_rec_frame){.id = nframes, .module = 99});
	as_write_symbol(w, &(struct as_rec_symbol){.frame = big});
	as_write_string(w, &(struct as_rec_string){.id = big, .text = AS_STR("x")});
	as_write_thread(w, &(struct as_rec_thread){.id = 2, .process = 9});
	as_write_process(w, &(struct as_rec_process){.id = UINT64_MAX});
	p = ask(&(struct as_query){0});
	assert_int_equal(p->samples, 5);
	assert_int_equal(model->damaged, 11);
	assert_int_equal(model->notes.n, 1);
	assert_non_null(strstr(model->notes.v[0].text, "11 records"));
	as_profile_free(p);
}

static void trial(uint64_t number, uint64_t from_ms, uint64_t to_ms, uint64_t status)
{
	as_write_trial(w, &(struct as_rec_trial){.trial = number,
						 .start_ns = (1000 + from_ms) * MS,
						 .end_ns = (1000 + to_ms) * MS,
						 .exit = status});
}

/* Each of four runs has its own share of "busy", and one does something the others do not. */
static void rows_know_in_how_many_runs_they_are(void **state)
{
	uint64_t m = on(NONE, frame("main")), busy = on(m, frame("busy")),
		 odd = on(m, frame("odd"));
	struct as_profile *p;

	for (unsigned run = 0; run < 4; run++) {
		for (unsigned i = 0; i < 100; i++)
			sample(i % 10 < 3 + run ? busy : run == 2 && i % 10 > 7 ? odd : m, 1);
		trial(run, run * 100, run * 100 + 99, run == 1 ? 256 : 0);
	}
	as_write_summary(w, &(struct as_rec_summary){.wall_ns = 400 * MS});
	p = ask(&(struct as_query){0});
	assert_int_equal(model->damaged, 0);
	assert_int_equal(model->trials.n, 4);
	assert_int_equal(model->trials.v[1].exit, 256);
	expect(p, "busy", 0.45, 0.45);
	assert_int_equal(row(p, "busy")->total.runs, 4);
	assert_false(row(p, "busy")->one_run);
	assert_int_equal(row(p, "odd")->total.runs, 1);
	assert_true(row(p, "odd")->one_run);
	/* 0.3 0.4 0.5 0.6: a deviation of 0.129, of the mean 0.0645, with t of 3 degrees: 0.205 */
	assert_true(fabs(row(p, "busy")->self.high - row(p, "busy")->self.low - 0.41) < 0.03);
	as_profile_free(p);
	p = ask(&(struct as_query){.from_ns = 100 * MS, .to_ns = 200 * MS});
	expect(p, "busy", 0.4, 0.4);
	assert_int_equal(row(p, "busy")->total.runs, 0); /* within one run */
	as_profile_free(p);
}

static void the_run_in_which_the_recorder_died_is_a_run(void **state)
{
	uint64_t m = on(NONE, frame("main"));

	sample(m, 250);
	trial(0, 0, 99, 0);
	trial(1, 100, 199, 0);
	loaded();
	assert_int_equal(model->trials.n, 3);
	assert_int_equal(model->trials.v[2].exit, UINT64_MAX);
	assert_int_equal(model->trials.v[2].start_ns, 1199 * MS + 1);
	assert_int_equal(model->trials.v[2].end_ns, 1249 * MS);
}

static void trials_that_cannot_be_are_left_out_and_told(void **state)
{
	sample(on(NONE, frame("main")), 300);
	trial(1, 0, 10, 0); /* the first is 0 */
	trial(0, 0, 99, 0);
	trial(0, 100, 199, 0); /* twice */
	trial(1, 50, 199, 0);  /* begins in the one before */
	trial(1, 199, 100, 0); /* ends before it begins */
	trial(1, 100, 199, 0);
	trial(3, 200, 299, 0); /* 2 is missing */
	as_write_trial(w, &(struct as_rec_trial){UINT64_MAX, 0, UINT64_MAX, 0, 0});
	as_write_summary(w, &(struct as_rec_summary){.wall_ns = 400 * MS});
	loaded();
	assert_int_equal(model->trials.n, 2);
	assert_int_equal(model->damaged, 6);
}

static void an_empty_session_gives_empty_answers(void **state)
{
	for (int shape = 0; shape <= AS_SHAPE_INVERTED; shape++) {
		struct as_profile *p = ask(&(struct as_query){.shape = (enum as_shape)shape});

		assert_int_equal(p->samples, 0);
		assert_int_equal(p->rows.n, 0);
		as_profile_free(p);
	}
}

static void a_session_that_unpacks_without_bound_is_refused(void **state)
{
	static char blanks[1 << 18];
	struct as_error err;
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	memset(blanks, ' ', sizeof blanks);
	for (int i = 0; i < 2000; i++)
		as_write_arg(w, &(struct as_rec_arg){{blanks, sizeof blanks}});
	assert_int_equal(as_session_writer_finish(w, NULL), 0);
	assert_int_equal(as_model_load(file, &model, &err), AS_E_LIMIT);
	assert_non_null(strstr(err.msg, "unpacks"));
	model = NULL;
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(self_and_total_are_what_was_sampled),
		T(rows_that_chance_could_swap_are_marked),
		T(recursion_counts_once_in_totals),
		T(inlined_functions_are_frames_of_their_own),
		T(callers_and_callees_go_both_ways_from_a_function),
		T(an_unknown_function_is_answered_with_near_ones),
		T(filters_keep_and_drop_whole_samples_and_hide_frames),
		T(threads_and_time_choose_the_denominator),
		T(rows_can_be_files_crates_and_modules),
		T(frames_without_names_get_stable_ones),
		T(truncated_stacks_never_stand_beside_whole_ones),
		T(the_trust_block_explains_the_cpu_time),
		T(losses_stand_where_they_were_lost),
		T(the_cold_part_of_a_function_is_the_function),
		T(light_branches_are_left_out_of_trees),
		T(samples_out_of_order_are_sorted_by_time),
		T(twenty_thousand_frames_are_no_burden),
		T(a_stack_as_deep_as_the_file_is_long_ends_in_time),
		T(ids_that_refer_to_nothing_are_left_out_and_told),
		T(rows_know_in_how_many_runs_they_are),
		T(the_run_in_which_the_recorder_died_is_a_run),
		T(trials_that_cannot_be_are_left_out_and_told),
		T(an_empty_session_gives_empty_answers),
		T(a_session_that_unpacks_without_bound_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

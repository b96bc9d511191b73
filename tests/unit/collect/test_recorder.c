/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Raw samples in, session out, read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "collect/collect.h"

#define MAX 512u

/* What a session says, as far as these tests ask. */
struct seen {
	struct as_rec_frame frames[MAX];
	struct as_rec_stack stacks[MAX];
	struct as_rec_sample samples[MAX];
	struct as_rec_process processes[MAX];
	struct as_rec_thread threads[MAX];
	struct as_rec_exit exits[MAX];
	struct as_rec_tick ticks[MAX];
	struct as_rec_lost lost[MAX];
	struct as_rec_module modules[MAX];
	size_t nframes, nstacks, nsamples, nprocesses, nthreads, nexits, nticks, nlost,
		nmodules, nnotes, nnames, nexecs;
	char strings[MAX][64];
};

#define KEEP(rec, list, count)                                                                 \
	static int keep_##rec(void *ctx, const struct as_rec_##rec *r)                         \
	{                                                                                      \
		struct seen *s = ctx;                                                          \
                                                                                               \
		assert_true(s->count < MAX);                                                   \
		s->list[s->count++] = *r;                                                      \
		return 0;                                                                      \
	}
KEEP(frame, frames, nframes)
KEEP(stack, stacks, nstacks)
KEEP(sample, samples, nsamples)
KEEP(process, processes, nprocesses)
KEEP(thread, threads, nthreads)
KEEP(exit, exits, nexits)
KEEP(tick, ticks, nticks)
KEEP(lost, lost, nlost)
KEEP(module, modules, nmodules)

#define COUNT(rec, count)                                                                      \
	static int keep_##rec(void *ctx, const struct as_rec_##rec *r)                         \
	{                                                                                      \
		((struct seen *)ctx)->count++;                                                 \
		return 0;                                                                      \
	}
COUNT(note, nnotes)
COUNT(name, nnames)
COUNT(exec, nexecs)

static int on_string(void *ctx, const struct as_rec_string *r)
{
	struct seen *s = ctx;

	if (r->id < MAX)
		snprintf(s->strings[r->id], 64, "%.*s", (int)AS_MIN(r->text.n, (size_t)63),
			 r->text.p);
	return 0;
}

struct fixture {
	char path[64];
	struct as_session_writer *w;
	struct as_image *im;
	struct as_recorder *r;
	struct seen *seen;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct as_error err = {0};

	snprintf(f->path, sizeof f->path, "/tmp/assay-recorder-%d.assay", (int)getpid());
	assert_int_equal(as_session_writer_open(f->path, &f->w, &err), 0);
	f->im = as_image_new(NULL);
	f->r = as_recorder_new(f->w, f->im);
	f->seen = calloc(1, sizeof *f->seen);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	as_recorder_free(f->r);
	as_image_free(f->im);
	as_session_writer_close(f->w);
	unlink(f->path);
	free(f->seen);
	free(f);
	return 0;
}

static struct seen *read_back(struct fixture *f)
{
	struct as_record_sink sink = {
		.ctx = f->seen,
		.frame = keep_frame,
		.stack = keep_stack,
		.sample = keep_sample,
		.process = keep_process,
		.thread = keep_thread,
		.exit = keep_exit,
		.tick = keep_tick,
		.lost = keep_lost,
		.module = keep_module,
		.note = keep_note,
		.name = keep_name,
		.exec = keep_exec,
		.string = on_string,
	};
	struct as_session_health h = {0};
	struct as_error err = {0};

	assert_int_equal(as_session_writer_finish(f->w, &err), 0);
	assert_int_equal(as_session_read(f->path, &sink, &h, &err), 0);
	assert_true(h.complete);
	return f->seen;
}

static struct as_raw_sample sample(const struct as_raw_frame *frames, size_t n, uint64_t t)
{
	return (struct as_raw_sample){
		.time_ns = t,
		.pid = 1000000,
		.tid = 1000000,
		.cpu = 1,
		.weight = 1000,
		.frames = frames,
		.nframes = n,
	};
}

static void equal_stacks_become_one_node_chain_with_the_root_first(void **state)
{
	struct fixture *f = *state;
	const struct as_raw_frame leaf_first[] = {{0x10, AS_NO_MODULE, AS_FRAME_EXACT},
						  {0x20, AS_NO_MODULE, 0},
						  {0x30, AS_NO_MODULE, 0}};
	struct as_raw_sample s = sample(leaf_first, 3, 5000);
	struct seen *v;

	for (int i = 0; i < 10; i++, s.time_ns++)
		as_recorder_sample(f->r, &s);
	s.frames = leaf_first + 1; /* the caller itself, seen as a leaf */
	s.nframes = 2;
	as_recorder_sample(f->r, &s);
	assert_int_equal(as_recorder_samples(f->r), 11);
	v = read_back(f);
	assert_int_equal(v->nframes, 3);
	assert_int_equal(v->nstacks, 3);
	assert_int_equal(v->nsamples, 11);
	assert_int_equal(v->frames[v->stacks[0].frame].addr, 0x30);
	assert_int_equal(v->stacks[0].parent, 0);
	assert_int_equal(v->stacks[v->samples[0].stack - 1].parent, v->samples[10].stack);
	assert_int_equal(v->samples[0].time_rel, 5000);
	assert_int_equal(v->samples[0].weight, 1000);
}

static void a_pc_and_a_return_address_at_the_same_place_are_two_frames(void **state)
{
	struct fixture *f = *state;
	const struct as_raw_frame frames[] = {{0x10, AS_NO_MODULE, AS_FRAME_EXACT},
					      {0x10, AS_NO_MODULE, 0}};
	struct as_raw_sample s = sample(frames, 2, 1);

	as_recorder_sample(f->r, &s);
	assert_int_equal(read_back(f)->nframes, 2);
}

static void how_a_stack_ended_and_where_it_was_is_kept(void **state)
{
	struct fixture *f = *state;
	struct as_raw_sample s = sample(NULL, 0, 1);
	struct seen *v;

	s.end = AS_END_SHORT;
	s.repaired = true;
	as_recorder_sample(f->r, &s);
	s.end = AS_END_ROOT;
	s.repaired = false;
	s.kernel = true;
	as_recorder_sample(f->r, &s);
	v = read_back(f);
	assert_int_equal(v->samples[0].end, AS_END_SHORT | AS_SAMPLE_REPAIRED);
	assert_int_equal(v->samples[0].stack, 0);
	assert_int_equal(v->samples[1].end, AS_END_ROOT | AS_SAMPLE_KERNEL);
}

static void kernel_frames_belong_to_a_kernel_module(void **state)
{
	struct fixture *f = *state;
	const struct as_raw_frame frames[] = {
		{0xffffffff81000010ull, AS_KERNEL_FRAME, AS_FRAME_EXACT | AS_FRAME_KERNEL},
		{0x20, AS_NO_MODULE, 0}};
	struct as_raw_sample s = sample(frames, 2, 1);
	struct seen *v;

	as_recorder_sample(f->r, &s);
	v = read_back(f);
	assert_true(v->nmodules >= 1);
	assert_int_equal(v->frames[1].addr, 0xffffffff81000010ull);
	assert_int_not_equal(v->frames[1].module, 0);
	assert_int_equal(v->modules[v->frames[1].module - 1].kind, AS_MODULE_KERNEL);
	assert_int_equal(v->frames[0].module, 0);
}

static void a_reused_number_is_a_new_thread_and_a_new_process(void **state)
{
	struct fixture *f = *state;
	struct as_raw_sample s = sample(NULL, 0, 20);
	struct seen *v;

	s.pid = s.tid = 1000001;
	as_recorder_fork(f->r, 10, 1000000, 1000001, 1000001);
	as_recorder_sample(f->r, &s);
	as_recorder_exit(f->r, 30, 1000001, 1000001);
	as_recorder_fork(f->r, 40, 1000000, 1000001, 1000001);
	s.time_ns = 50;
	as_recorder_sample(f->r, &s);
	as_recorder_exit(f->r, 60, 1000001, 1000001);
	s.time_ns = 10ull * 1000000000; /* its fork was lost */
	as_recorder_sample(f->r, &s);
	v = read_back(f);
	assert_int_equal(v->nprocesses, 3);
	assert_int_equal(v->nthreads, 3);
	assert_int_not_equal(v->samples[0].thread, v->samples[1].thread);
	assert_int_not_equal(v->samples[1].thread, v->samples[2].thread);
	assert_int_equal(v->nexits, 2);
	assert_true(v->exits[0].process_too);
}

static void a_process_ends_with_its_last_thread_not_its_first(void **state)
{
	struct fixture *f = *state;
	struct seen *v;

	as_recorder_fork(f->r, 10, 1, 1000001, 1000001);
	as_recorder_fork(f->r, 11, 1000001, 1000001, 1000002);
	as_recorder_exit(f->r, 12, 1000001, 1000001);
	as_recorder_exit(f->r, 13, 1000001, 1000002);
	v = read_back(f);
	assert_int_equal(v->nprocesses, 1);
	assert_int_equal(v->nthreads, 2);
	assert_false(v->exits[0].process_too);
	assert_true(v->exits[1].process_too);
}

static void names_change_and_are_inherited(void **state)
{
	struct fixture *f = *state;
	struct seen *v;

	as_recorder_fork(f->r, 10, 1, 1000001, 1000001);
	as_recorder_name(f->r, 11, 1000001, 1000001, "my worker; (io)", true);
	as_recorder_name(f->r, 12, 1000001, 1000001, "my worker; (io)", false);
	as_recorder_fork(f->r, 13, 1000001, 1000001, 1000002);
	v = read_back(f);
	assert_int_equal(v->nexecs, 1);
	assert_int_equal(v->nnames, 1);
	assert_string_equal(v->strings[v->threads[1].name], "my worker; (io)");
}

static void ticks_are_written_once_a_second_and_add_up(void **state)
{
	struct fixture *f = *state;
	struct as_resolve_options o = {0};
	struct as_error err = {0};
	uint64_t delivered = 0, lost = 0;
	struct seen *v;

	for (uint64_t i = 0; i < 250; i++) {
		struct as_rec_tick t = {.time_rel = 1000000000 + i * 10000000,
					.cpu = i % 2,
					.taken = 11,
					.delivered = 10,
					.lost_queue = 1};

		as_recorder_tick(f->r, &t);
	}
	assert_int_equal(as_recorder_resolve(f->r, &o, &err), 0);
	v = read_back(f);
	assert_in_range(v->nticks, 4, 8);
	for (size_t i = 0; i < v->nticks; i++) {
		delivered += v->ticks[i].delivered;
		lost += v->ticks[i].lost_queue;
		assert_int_equal(v->ticks[i].taken,
				 v->ticks[i].delivered + v->ticks[i].lost_queue);
	}
	assert_int_equal(delivered, 2500);
	assert_int_equal(lost, 250);
}

static void loss_is_recorded_and_a_note_is_said_once(void **state)
{
	struct fixture *f = *state;
	struct seen *v;

	as_recorder_lost(f->r, 77, 3, AS_LOSS_QUEUE, 42);
	for (int i = 0; i < 3; i++)
		as_recorder_note(f->r, 1, "lib.so", "", "no line tables in %s", "lib.so");
	v = read_back(f);
	assert_int_equal(v->nlost, 1);
	assert_int_equal(v->lost[0].count, 42);
	assert_int_equal(v->lost[0].cpu, 3);
	assert_int_equal(v->nnotes, 1);
}

static void a_known_stack_costs_about_a_microsecond(void **state)
{
	struct fixture *f = *state;
	struct as_raw_frame frames[20];
	struct as_raw_sample s;
	enum { N = 200000 };
	uint64_t t;

	for (size_t i = 0; i < 20; i++)
		frames[i] = (struct as_raw_frame){0x1000 + i * 16, AS_NO_MODULE, 0};
	s = sample(frames, 20, 1);
	t = as_self_cpu_ns();
	for (int i = 0; i < N; i++, s.time_ns += 1000)
		as_recorder_sample(f->r, &s);
	t = (as_self_cpu_ns() - t) / N;
	print_message("%d ns per sample\n", (int)t);
	assert_true(t < 10000); /* sanitizers and a loaded machine included */
}

static void own_code_gets_its_names(void **state)
{
	struct fixture *f = *state;
	struct as_resolve_options o = {0};
	struct as_image_listener l;
	struct as_raw_frame frame;
	const struct as_mapping *m;
	struct as_error err = {0};
	bool found = false;
	struct seen *v;

	as_recorder_listener(f->r, &l);
	as_image_add_listener(f->im, &l);
	assert_int_equal(as_image_read_maps(f->im, getpid(), 1, &err), 0);
	m = as_image_find(as_image_process(f->im, getpid()),
			  (uint64_t)(uintptr_t)own_code_gets_its_names);
	assert_non_null(m);
	frame = (struct as_raw_frame){(uint64_t)(uintptr_t)own_code_gets_its_names - m->bias,
				      m->module, AS_FRAME_EXACT};
	struct as_raw_sample s = sample(&frame, 1, 2);

	as_recorder_sample(f->r, &s);
	assert_int_equal(as_recorder_resolve(f->r, &o, &err), 0);
	v = read_back(f);
	for (size_t i = 0; i < MAX; i++)
		found |= !strcmp(v->strings[i], "own_code_gets_its_names");
	assert_true(found);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(equal_stacks_become_one_node_chain_with_the_root_first),
		T(a_pc_and_a_return_address_at_the_same_place_are_two_frames),
		T(how_a_stack_ended_and_where_it_was_is_kept),
		T(kernel_frames_belong_to_a_kernel_module),
		T(a_reused_number_is_a_new_thread_and_a_new_process),
		T(a_process_ends_with_its_last_thread_not_its_first),
		T(names_change_and_are_inherited),
		T(ticks_are_written_once_a_second_and_add_up),
		T(loss_is_recorded_and_a_note_is_said_once),
		T(a_known_stack_costs_about_a_microsecond),
		T(own_code_gets_its_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

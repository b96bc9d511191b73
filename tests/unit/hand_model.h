/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Models made by hand, without a session file. Include after cmocka.h.
 *
 *	struct as_model m;
 *	hm_init(&m);			a process 100 with threads 100 "main" and 101 "worker",
 *					modules /bin/app, /lib/libc.so.6, [kernel]
 *	f = hm_frame(&m, HM_APP, (uint32_t[]){inner, outer}, 2);
 *	s = hm_stack(&m, AS_NONE, f);
 *	hm_samples(&m, thread, s, AS_END_ROOT, 10);
 *	hm_clear(&m);
 */
#ifndef AS_TESTS_HAND_MODEL_H
#define AS_TESTS_HAND_MODEL_H

#include <stdlib.h>
#include <string.h>
#include "model/model.h"

enum { HM_APP, HM_LIBC, HM_KERNEL };
#define HM_START_NS  1000000000ull
#define HM_WEIGHT_NS 1000000u

static inline uint32_t hm_function(struct as_model *m, const char *name, uint32_t module)
{
	as_vec_push(&m->functions,
		    (struct as_m_function){.module = module,
					   .linkage = name,
					   .full = name,
					   .brief = name,
					   .crate = "",
					   .file = module == HM_APP ? "app.rs" : "",
					   .line = 1});
	return (uint32_t)m->functions.n - 1;
}

static inline void hm_init(struct as_model *m)
{
	static const char *const paths[] = {"/bin/app", "/lib/libc.so.6", "[kernel]"};

	*m = (struct as_model){.path = "hand", .has_summary = true};
	m->recording = (struct as_rec_recording){.start_ns = HM_START_NS,
						 .start_realtime_ns = 1700000000000000000,
						 .rate_hz = 1000};
	m->health.complete = true;
	as_vec_push(&m->processes, (struct as_m_process){100, AS_NONE, "app", 0, 0});
	as_vec_push(&m->threads, (struct as_m_thread){100, 0, "main", 0, 0});
	as_vec_push(&m->threads, (struct as_m_thread){101, 0, "worker", 0, 0});
	for (unsigned i = 0; i < 3; i++) {
		struct as_m_module module = {.path = paths[i],
					     .name = i == HM_KERNEL ? paths[i] : paths[i] + 5,
					     .debug_path = ""};

		if (i == HM_KERNEL)
			module.kind = AS_MODULE_KERNEL;
		as_vec_push(&m->modules, module);
	}
	for (unsigned e = 0; e < AS_END_COUNT_; e++) {
		m->end_function[e] = AS_NONE;
		if (e == AS_END_ROOT)
			continue;
		m->end_function[e] = hm_function(
			m, e == AS_END_NOSTACK ? "[no user stack]" : "[truncated: x]", AS_NONE);
		m->functions.v[m->end_function[e]].flags =
			AS_FUNCTION_SYNTHETIC | AS_FUNCTION_MARKER;
	}
	as_vec_push(&m->args, "/bin/app");
}

/* functions: innermost first, all but the last inlined. The frame's address: 0x1010 for the first, then
 * 0x2010, … */
static inline uint32_t hm_frame(struct as_model *m, uint32_t module, const uint32_t *functions,
				uint32_t n)
{
	struct as_m_frame f = {.module = module,
			       .flags = module == HM_KERNEL ? AS_FRAME_KERNEL : 0,
			       .addr = 0x1000 * (m->frames.n + 1) + 0x10,
			       .chain = (uint32_t)m->places.n,
			       .nchain = n};

	for (uint32_t i = 0; i < n; i++)
		as_vec_push(&m->places,
			    (struct as_m_place){.function = functions[i],
						.line = 10 + i,
						.column = 3,
						.file = module == HM_APP ? "app.rs" : "",
						.inlined = i + 1 < n});
	as_vec_push(&m->frames, f);
	return (uint32_t)m->frames.n - 1;
}

static inline uint32_t hm_stack(struct as_model *m, uint32_t parent, uint32_t frame)
{
	as_vec_push(&m->stacks, (struct as_m_stack){parent, frame});
	return (uint32_t)m->stacks.n - 1;
}

static inline void hm_samples(struct as_model *m, uint32_t thread, uint32_t stack, unsigned end,
			      unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		as_vec_push(&m->samples,
			    (struct as_m_sample){.time_ns = HM_START_NS + m->samples.n * 1000,
						 .thread = thread,
						 .stack = stack,
						 .weight = HM_WEIGHT_NS,
						 .end = (uint16_t)end});
}

static inline void hm_clear(struct as_model *m)
{
	as_vec_clear(&m->modules);
	as_vec_clear(&m->processes);
	as_vec_clear(&m->threads);
	as_vec_clear(&m->maps);
	as_vec_clear(&m->functions);
	as_vec_clear(&m->places);
	as_vec_clear(&m->frames);
	as_vec_clear(&m->stacks);
	as_vec_clear(&m->samples);
	as_vec_clear(&m->notes);
	as_vec_clear(&m->args);
	as_vec_clear(&m->info);
	as_arena_clear(&m->arena);
}

#endif

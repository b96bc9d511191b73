/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sessions made by hand for the tests of annotations: frames at given addresses that stand for
 * given lines. Include after cmocka.h; a test's setup is begin, its teardown end.
 */
#ifndef AS_TESTS_ANNOTATE_SESSION_H
#define AS_TESTS_ANNOTATE_SESSION_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/mem.h"
#include "model/model.h"

#define MS   1000000ull
#define NONE UINT64_MAX

/* ---- making sessions ---- */

static char folder[64], file[96];
static struct as_session_writer *w;
static uint64_t nframes, nstacks, nfunctions, nsamples;
static struct as_model *model;

static inline int begin(void **state)
{
	snprintf(folder, sizeof folder, "/tmp/assay-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof file, "%s/a.assay", folder);
	nframes = nstacks = nfunctions = nsamples = 0;
	model = NULL;
	assert_int_equal(as_session_writer_open(file, &w, NULL), 0);
	as_write_recording(w,
			   &(struct as_rec_recording){.start_ns = 1000 * MS, .rate_hz = 1000});
	as_write_process(w, &(struct as_rec_process){.id = 0, .pid = 100});
	as_write_thread(w, &(struct as_rec_thread){.id = 0, .tid = 100});
	as_write_thread(w, &(struct as_rec_thread){.id = 1, .tid = 101});
	as_write_module(w, &(struct as_rec_module){
				   .id = 0, .path = as_session_string(w, "/bin/app", 8)});
	return 0;
}

static inline int end(void **state)
{
	as_model_free(model);
	as_session_writer_close(w);
	w = NULL;
	unlink(file);
	return rmdir(folder);
}

static inline uint64_t text(const char *s)
{
	return as_session_string(w, s, strlen(s));
}

static inline uint64_t named(const char *brief, const char *full)
{
	as_write_function(w, &(struct as_rec_function){.id = nfunctions,
						       .module = 1,
						       .linkage = text(full),
						       .full = text(full),
						       .brief = text(brief),
						       .file = text("src/main.rs"),
						       .line = 1});
	return nfunctions++;
}

static inline uint64_t function(const char *name)
{
	return named(name, name);
}

/* A place: function and line. Frames take up to three, innermost first; line 0 ends them. */
struct at {
	uint64_t function, line;
};

static inline uint64_t frame(uint64_t addr, unsigned flags, struct at a, struct at b,
			     struct at c)
{
	struct at at[3] = {a, b, c};
	uint64_t chain[12], n = 0, file_id = text("src/main.rs");

	as_write_frame(w, &(struct as_rec_frame){
				  .id = nframes, .module = 1, .addr = addr, .flags = flags});
	for (int i = 0; i < 3 && at[i].line; i++) {
		chain[n++] = at[i].function;
		chain[n++] = file_id;
		chain[n++] = at[i].line;
		chain[n++] = i + 1 < 3 && at[i + 1].line ? 1ull << 32 : 0;
	}
	as_write_symbol(w, &(struct as_rec_symbol){.frame = nframes, .chain = {chain, n}});
	return nframes++;
}

static inline uint64_t leaf(uint64_t addr, struct at a)
{
	return frame(addr, AS_FRAME_EXACT, a, (struct at){0}, (struct at){0});
}

/* A caller: its address is a return address. */
static inline uint64_t caller(uint64_t addr, struct at a)
{
	return frame(addr, 0, a, (struct at){0}, (struct at){0});
}

static inline uint64_t on(uint64_t parent, uint64_t f)
{
	as_write_stack(w,
		       &(struct as_rec_stack){.id = nstacks, .parent = parent + 1, .frame = f});
	return nstacks++;
}

static inline void sample(uint64_t stack, unsigned n, uint64_t thread)
{
	for (unsigned i = 0; i < n; i++)
		as_write_sample(w, &(struct as_rec_sample){.time_rel = (1000 + nsamples++) * MS,
							   .thread = thread,
							   .stack = stack + 1,
							   .weight = MS});
}

static inline struct as_model *loaded(void)
{
	struct as_error err = {0};

	if (model)
		return model;
	assert_int_equal(as_session_writer_finish(w, NULL), 0);
	if (as_model_load(file, &model, &err) < 0)
		fail_msg("%s", err.msg);
	return model;
}

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A session of memory that ends anywhere: each record in a chunk of its own, cut at every byte. What
 * stands before the cut is there, in every measure, and nothing else is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fixture.h"
#include "base/sys.h"
#include "model/model.h"

enum { ROWS = 3, CHUNKS_MAX = 64 };

static struct as_session_writer *w;
static uint64_t edge[CHUNKS_MAX]; /* ends of chunks */
static size_t nedges;

static void close_chunk(void)
{
	as_session_writer_flush(w);
	assert_true(nedges < CHUNKS_MAX);
	edge[nedges++] = as_session_writer_bytes(w);
}

static uint64_t text(const char *s)
{
	return as_session_string(w, s, strlen(s));
}

static void write_names(void)
{
	as_write_recording(w, &(struct as_rec_recording){.start_ns = 1000});
	as_write_heap(w, &(struct as_rec_heap){.flags = 1, .start_ns = 1000});
	close_chunk();
	as_write_module(w, &(struct as_rec_module){.path = text("/home/u/app")});
	as_write_process(w, &(struct as_rec_process){.pid = 7, .name = text("app")});
	close_chunk();
	as_write_thread(w, &(struct as_rec_thread){.tid = 7, .name = text("app")});
	close_chunk();
	for (uint64_t i = 0; i < ROWS; i++) {
		uint64_t name = text(i ? "f" : "main"), chain[4] = {i, 0, 1 + i, 0};

		as_write_frame(w, &(struct as_rec_frame){.id = i, .addr = 16 * i});
		as_write_function(w, &(struct as_rec_function){.id = i,
							       .module = 1,
							       .linkage = name,
							       .full = name,
							       .brief = name});
		as_write_symbol(w, &(struct as_rec_symbol){.frame = i, .chain = {chain, 4}});
		as_write_stack(w, &(struct as_rec_stack){.id = i, .parent = i, .frame = i});
		close_chunk();
	}
}

static void write_rows(void)
{
	static const uint64_t sizes[] = {1 << 5, 10}, stacks[] = {0, 1, 100, 1, 2, 200};

	for (uint64_t i = 0; i < ROWS; i++) {
		as_write_heap_stack(w, &(struct as_rec_heap_stack){.id = i,
								   .stack_rel = i + 1,
								   .allocs = 10,
								   .bytes = 1000,
								   .frees = 8,
								   .freed_bytes = 800,
								   .live_blocks = 2,
								   .live_bytes = 200,
								   .peak_blocks = 4,
								   .peak_bytes = 400,
								   .growth_bytes = 100,
								   .growth_steps = 8,
								   .growth_rises = 8,
								   .reallocs = 3,
								   .chains = 1,
								   .copied_bytes = 90,
								   .sizes = {sizes, 2}});
		close_chunk();
	}
	as_write_heap_process(w, &(struct as_rec_heap_process){.events = 54,
							       .allocs = 30,
							       .frees = 24,
							       .live_blocks = 6,
							       .live_bytes = 600,
							       .peak_bytes = 1200});
	close_chunk();
	as_write_heap_layer(w, &(struct as_rec_heap_layer){.layer = AS_STR("entry"),
							   .module = 1,
							   .function = AS_STR("malloc"),
							   .events = 30});
	close_chunk();
	for (uint64_t i = 0; i < 4; i++)
		as_write_heap_time(w, &(struct as_rec_heap_time){.time_ns = 1000 + 100 * i,
								 .live_bytes = 200 * i});
	close_chunk();
	as_write_heap_flow(w, &(struct as_rec_heap_flow){.blocks = 3, .bytes = 30});
	as_write_heap_mark(w, &(struct as_rec_heap_mark){.time_ns = 1100,
							 .name = text("half"),
							 .stacks = {stacks, 6}});
	close_chunk();
}

static void write_look(void)
{
	static const uint64_t sums[] = {1, 100, 1, 100, 0, 0, 4, 400}, inside[] = {6};

	as_write_heap_leaks(w, &(struct as_rec_heap_leaks){.time_ns = 1300,
							   .sums = {sums, 8},
							   .inside = {inside, 1}});
	close_chunk();
	as_write_heap_leak(w, &(struct as_rec_heap_leak){.row = 1,
							 .lost_blocks = 1,
							 .lost_bytes = 100,
							 .owned_blocks = 1,
							 .owned_bytes = 100});
	close_chunk();
	as_write_heap_rss(w, &(struct as_rec_heap_rss){.rss_bytes = 8192});
	as_write_heap_rss_part(w, &(struct as_rec_heap_rss_part){.kind = 2,
								 .name = text("main arena"),
								 .bytes = 8192});
	as_write_heap_pin(w, &(struct as_rec_heap_pin){.row = 2, .pages = 1, .bytes = 4000});
	close_chunk();
	as_write_summary(w, &(struct as_rec_summary){.end_ns = 1400, .wall_ns = 400});
}

static void write_session(struct as_buf *ret)
{
	nedges = 0;
	assert_int_equal(as_session_writer_open(fx_path("cut.assay"), &w, NULL), 0);
	write_names();
	write_rows();
	write_look();
	assert_int_equal(as_session_writer_finish(w, NULL), 0);
	as_session_writer_close(w);
	assert_int_equal(as_read_file(fx_path("cut.assay"), 1 << 20, ret, NULL), 0);
}

/* Rows stand behind the names, one a chunk: how many of them are whole. */
static uint64_t whole_rows(size_t cut)
{
	uint64_t n = 0;

	for (size_t i = 3 + ROWS; i < 3 + 2 * ROWS; i++)
		n += edge[i] <= cut;
	return n;
}

static void ask(struct as_model *m, uint64_t rows)
{
	for (int k = AS_MEASURE_ALLOCS; k < AS_MEASURE_COUNT_; k++) {
		struct as_query q = {.by = AS_BY_FUNCTION};
		struct as_profile *p;

		if (as_model_measure(m, (enum as_measure)k, true, NULL) < 0)
			continue; /* leaks stand further down */
		assert_int_equal(as_profile_make(m, &q, &p, NULL), 0);
		if (k == AS_MEASURE_ALLOCS)
			assert_int_equal(p->weight, 10 * rows);
		if (k == AS_MEASURE_LIVE)
			assert_int_equal(p->weight, 200 * rows);
		as_profile_free(p);
	}
}

static void load(const struct as_buf *b, size_t cut)
{
	/* to the byte, so that a sanitizer sees what is read beyond */
	AS_CLEANUP(as_free_autop) void *exact = as_xmalloc(cut ? cut : 1);
	struct as_model *m;

	memcpy(exact, b->p, cut);
	if (as_model_load_mem(exact, cut, &m, NULL) < 0) {
		assert_true(cut < edge[0]);
		return;
	}
	assert_true(m->health.complete == (cut == b->len));
	assert_int_equal(m->heap.is, edge[0] <= cut);
	assert_int_equal(m->heap.rows.n, whole_rows(cut));
	assert_int_equal(m->heap.look.leaks.n, edge[nedges - 3] <= cut);
	assert_int_equal(m->heap.look.rows.n, edge[nedges - 2] <= cut);
	assert_int_equal(m->heap.look.pins.n, edge[nedges - 1] <= cut);
	if (m->heap.is)
		ask(m, whole_rows(cut));
	as_model_free(m);
}

static void what_stands_before_the_cut_is_there_in_every_measure(void **state)
{
	struct as_buf b = {0};

	(void)state;
	write_session(&b);
	assert_true(b.len > edge[nedges - 1]);
	for (size_t cut = 0; cut <= b.len; cut++)
		load(&b, cut);
	as_buf_clear(&b);
}

/* A chunk that is damaged is left out, and rows that are numbered behind it. */
static void a_damaged_chunk_costs_itself_and_rows_behind_it(void **state)
{
	struct as_buf b = {0};

	(void)state;
	write_session(&b);
	for (size_t i = 3 + ROWS; i + 1 < nedges; i++) {
		uint8_t *last = (uint8_t *)b.p + edge[i] - 1;
		struct as_model *m;

		*last ^= 0x55;
		assert_int_equal(as_model_load_mem(b.p, b.len, &m, NULL), 0);
		assert_int_equal(m->health.bad_chunks, 1);
		assert_int_equal(m->heap.rows.n, whole_rows((size_t)edge[i] - 1));
		ask(m, m->heap.rows.n);
		as_model_free(m);
		*last ^= 0x55;
	}
	as_buf_clear(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_stands_before_the_cut_is_there_in_every_measure),
		cmocka_unit_test(a_damaged_chunk_costs_itself_and_rows_behind_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows of a session: which there are, in which order, and what is written anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "heap/write.h"

static char path[] = "/tmp/test_heap_write.XXXXXX";
static struct as_heap_stacks stacks;
static struct as_heap *heap;
static uint32_t thread;

/* A stack of one frame. */
static uint32_t tally_at(uint64_t addr)
{
	const struct as_heap_frame f = {.module = AS_HEAP_NONE, .addr = addr};
	const struct as_heap_stack s = {.parent = AS_HEAP_NONE,
					.frame = as_heap_frame_of(&stacks, &f),
					.end = AS_END_ROOT};

	return as_heap_tally(heap,
			     &(struct as_heap_key){.thread = thread,
						   .stack = as_heap_stack_of(&stacks, &s)});
}

struct seen {
	AS_VEC(struct as_rec_heap_stack) rows; /* without lists */
};

static int on_row(void *ctx, const struct as_rec_heap_stack *r)
{
	struct seen *s = ctx;

	as_vec_push(&s->rows, *r);
	return 0;
}

static struct as_session_writer *begin(void)
{
	struct as_session_writer *w;

	assert_int_equal(as_session_writer_open(path, &w, NULL), 0);
	return w;
}

static void end(struct as_session_writer *w, struct seen *seen)
{
	struct as_record_sink sink = {.ctx = seen, .heap_stack = on_row};
	struct as_session_health h;

	assert_int_equal(as_session_writer_finish(w, NULL), 0);
	as_session_writer_close(w);
	*seen = (struct seen){0};
	assert_int_equal(as_session_read(path, &sink, &h, NULL), 0);
	assert_int_equal(h.bad_records + h.unknown_records, 0);
}

static int set_up(void **state)
{
	stacks = (struct as_heap_stacks){0};
	heap = as_heap_new(0);
	thread = as_heap_thread(heap, 0);
	return 0;
}

static int tear_down(void **state)
{
	as_heap_free_all(heap);
	as_heap_stacks_clear(&stacks);
	return 0;
}

static void rows_are_in_the_order_of_stacks_and_origins_come_first(void **state)
{
	struct as_session_writer *w = begin();
	struct as_heap_drained d = {.heap = heap};
	struct as_heap_writer o;
	struct seen seen;
	uint32_t t[4];

	for (uint32_t i = 0; i < 4; i++)
		(void)tally_at(100 + i); /* stacks 0 to 3, whatever is used first */
	t[0] = tally_at(103), t[1] = tally_at(100), t[2] = tally_at(102);
	as_heap_alloc(heap, t[0], 0x1000, 10);
	as_heap_alloc(heap, t[1], 0x2000, 20);
	/* of the block of stack 3: has a row of its own, and stack 2 none */
	as_heap_realloc(heap, t[2], &(struct as_heap_change){0x1000, 0x3000, 30, false});
	as_heap_finish(heap);
	as_heap_writer_init(&o, w, &stacks);
	as_heap_write_stacks(&o);
	as_heap_write(&o, 0, &d);
	as_heap_writer_clear(&o);
	end(w, &seen);

	assert_int_equal(seen.rows.n, 3);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(seen.rows.v[i].id, i);
	assert_int_equal(seen.rows.v[0].stack_rel, 1);
	assert_int_equal(seen.rows.v[0].allocs, 1);
	assert_int_equal(seen.rows.v[1].stack_rel, 4);
	assert_int_equal(seen.rows.v[1].frees, 1);
	assert_int_equal(seen.rows.v[2].stack_rel, 3);
	assert_int_equal(seen.rows.v[2].reallocs, 1);
	assert_int_equal(seen.rows.v[2].origin, 2); /* row 1 */
	as_vec_clear(&seen.rows);
}

static void what_has_changed_is_written_anew_and_what_is_new_behind_it(void **state)
{
	struct as_session_writer *w = begin();
	struct as_heap_drained d = {.heap = heap};
	struct as_heap_written so_far = {0};
	struct as_heap_writer o;
	struct seen seen;
	uint32_t late = tally_at(10), early = tally_at(20), same = tally_at(30);

	as_heap_alloc(heap, early, 0x1000, 10);
	as_heap_alloc(heap, same, 0x2000, 10);
	as_heap_writer_init(&o, w, &stacks);
	as_heap_write_stacks(&o);
	as_heap_settle(heap);
	as_heap_write_so_far(&o, 0, &d, &so_far, false);
	as_heap_alloc(heap, early, 0x3000, 10);
	as_heap_alloc(heap, late, 0x4000, 10);
	as_heap_settle(heap);
	as_heap_write_so_far(&o, 0, &d, &so_far, false);
	as_heap_written_clear(&so_far);
	as_heap_writer_clear(&o);
	end(w, &seen);

	static const struct {
		uint64_t id, stack, allocs;
	} want[] = {{0, 2, 1}, {1, 3, 1}, {0, 2, 2}, {2, 1, 1}};
	assert_int_equal(seen.rows.n, AS_ARRAY_LEN(want));
	for (size_t i = 0; i < seen.rows.n; i++) {
		assert_int_equal(seen.rows.v[i].id, want[i].id);
		assert_int_equal(seen.rows.v[i].stack_rel, want[i].stack);
		assert_int_equal(seen.rows.v[i].allocs, want[i].allocs);
	}
	as_vec_clear(&seen.rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			rows_are_in_the_order_of_stacks_and_origins_come_first, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			what_has_changed_is_written_anew_and_what_is_new_behind_it, set_up,
			tear_down),
	};
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	close(fd);
	unlink(path);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return r;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sampling, from the runtime's calls to the heap's estimates, against what was really called: right on
 * average, with intervals that hold what they promise, and nothing told of the rest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "../rt/rt_host.h"
#include "heap/drain.h"

typedef void *fn_size(size_t);
typedef void *fn_two(size_t, size_t);
typedef void *fn_realloc(void *, size_t);
typedef void fn_free(void *);
typedef void fn_mark(const char *, unsigned long);

#define SAMPLE 4096
#define ROUNDS 60
#define BLOCKS 4000

enum sum { ALLOCS, BYTES, LIVE_BLOCKS, LIVE_BYTES, SUMS };

static struct rt_host host;
static struct as_heap_stacks stacks;
static struct as_heap_drain *drain;
static struct as_heap *heap;
static uint64_t state = 88172645463325252ull;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static struct as_heap *on_process(void *ctx, uint32_t pid, uint64_t time_ns)
{
	(void)ctx, (void)pid;
	return heap = as_heap_new(time_ns);
}

static uint32_t on_thread(void *ctx, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	(void)ctx, (void)pid, (void)time_ns;
	return tid;
}

static bool on_locate(void *ctx, uint32_t pid, uint64_t avma, struct as_heap_frame *ret)
{
	(void)ctx, (void)pid;
	ret->module = AS_HEAP_NONE;
	ret->addr = avma;
	return true;
}

static void open_all(uint64_t sample_bytes, uint64_t clock_ns)
{
	const struct as_heap_host to = {
		.process = on_process, .thread = on_thread, .locate = on_locate};

	rt_host_open(&host, &(struct rt_host_options){.ring_bytes = 4 << 20,
						      .sample_bytes = sample_bytes});
	host.control->clock_ns = clock_ns; /* seeds the choice, too */
	const struct as_heap_area area = {host.control, host.rings, host.ring_bytes,
					  host.context_max};
	memset(&stacks, 0, sizeof stacks);
	drain = as_heap_drain_new(&area, &to, &stacks);
	heap = NULL;
}

static void close_all(void)
{
	as_heap_drain_free(drain);
	as_heap_free_all(heap);
	as_heap_stacks_clear(&stacks);
	rt_host_close(&host);
}

#define HOOK(type, kind, original)                                                             \
	((type *)rt_host_hook(&host, AS_RT_##kind, (const void *)(original)))

/* ---- a program, and what it really did ---- */

struct calls {
	fn_size *alloc;
	fn_two *calloc;
	fn_realloc *realloc;
	fn_free *free;
	double truth[SUMS];
	struct {
		void *p;
		size_t size;
	} block[BLOCKS];
};

static void note(struct calls *c, size_t old, size_t new)
{
	c->truth[ALLOCS]++;
	c->truth[BYTES] += new > old ? (double)(new - old) : 0;
	c->truth[LIVE_BYTES] += (double)new - (double)old;
}

static size_t some_size(void)
{
	/* each chosen often enough for an interval to hold what it says */
	static const size_t size[] = {0, 40, 90, 200, 700, 3000, 20000};

	return size[next() % (sizeof size / sizeof *size)];
}

static void some_calls(struct calls *c)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		size_t n = some_size();

		c->block[i].p = i % 3 ? c->alloc(n) : c->calloc(2, n);
		c->block[i].size = i % 3 ? n : 2 * n;
		c->truth[LIVE_BLOCKS]++;
		note(c, 0, c->block[i].size);
	}
	for (size_t i = 0; i < BLOCKS; i += 2) {
		size_t n = some_size() + 1; /* of 0 it would be a free */

		c->block[i].p = c->realloc(c->block[i].p, n);
		note(c, c->block[i].size, n);
		c->block[i].size = n;
	}
	for (size_t i = 0; i < BLOCKS; i++) {
		if (i % 4 == 3)
			continue;
		c->free(c->block[i].p);
		c->block[i].p = NULL;
		c->truth[LIVE_BLOCKS]--;
		c->truth[LIVE_BYTES] -= (double)c->block[i].size;
	}
}

static void estimates(double ret[SUMS], double ret_variance[SUMS])
{
	const struct as_heap_amount *live = &heap->sum[AS_HEAP_BLOCKS].live;

	ret[ALLOCS] = (double)heap->allocs;
	ret_variance[ALLOCS] = heap->allocs_variance;
	ret[BYTES] = ret_variance[BYTES] = 0;
	as_vec_foreach (t, &heap->tallies) {
		ret[BYTES] += (double)t->bytes;
		ret_variance[BYTES] += as_heap_rare_of(heap, t)->bytes_variance;
	}
	ret[LIVE_BLOCKS] = (double)live->blocks;
	ret_variance[LIVE_BLOCKS] = live->blocks_variance;
	ret[LIVE_BYTES] = (double)live->bytes;
	ret_variance[LIVE_BYTES] = live->bytes_variance;
}

static void estimates_are_right_on_average_and_say_how_sure_they_are(void **state_)
{
	(void)state_;
	static const char *const name[SUMS] = {"allocs", "bytes", "live blocks", "live bytes"};
	double truth[SUMS] = {0}, sum[SUMS] = {0}, variance[SUMS] = {0};
	int inside[SUMS] = {0};
	static struct calls c;

	for (int round = 0; round < ROUNDS; round++) {
		double got[SUMS], var[SUMS];

		open_all(SAMPLE, (uint64_t)round * 1000003 + 1);
		memset(&c, 0, sizeof c);
		c.alloc = HOOK(fn_size, SIZE, malloc);
		c.calloc = HOOK(fn_two, COUNT, calloc);
		c.realloc = HOOK(fn_realloc, REALLOC, realloc);
		c.free = HOOK(fn_free, FREE, free);
		some_calls(&c);
		as_heap_drain_finish(drain);
		assert_non_null(heap);
		as_heap_finish(heap);
		assert_int_equal(heap->allocs - heap->frees,
				 heap->sum[AS_HEAP_BLOCKS].live.blocks);
		assert_int_equal(heap->unmatched_allocs, 0);
		estimates(got, var);
		for (int k = 0; k < SUMS; k++) {
			truth[k] += c.truth[k];
			sum[k] += got[k];
			variance[k] += var[k];
			inside[k] += fabs(got[k] - c.truth[k]) <= as_heap_half_width(var[k]);
		}
		for (size_t i = 0; i < BLOCKS; i++)
			free(c.block[i].p);
		close_all();
	}
	for (int k = 0; k < SUMS; k++) {
		double z = (sum[k] - truth[k]) / sqrt(variance[k]);

		print_message("%s: %.4g of %.4g, z %.2f, %d of %d intervals\n", name[k], sum[k],
			      truth[k], z, inside[k], ROUNDS);
		assert_true(fabs(z) < 5);
		/* of 95 %; a little less where few blocks stand for many */
		assert_true(inside[k] >= ROUNDS * 65 / 100);
	}
}

static void large_blocks_are_all_told_and_counted_as_one(void **state_)
{
	(void)state_;
	open_all(64, 1);
	fn_size *alloc = HOOK(fn_size, SIZE, malloc);
	fn_free *fr = HOOK(fn_free, FREE, free);
	void *p[100];

	for (int i = 0; i < 100; i++)
		p[i] = alloc(100000);
	for (int i = 0; i < 50; i++)
		fr(p[i]);
	as_heap_drain_finish(drain);
	as_heap_finish(heap);
	assert_int_equal(heap->allocs, 100);
	assert_int_equal(heap->frees, 50);
	assert_int_equal(heap->sum[AS_HEAP_BLOCKS].live.bytes, 5000000);
	assert_int_equal(heap->sum[AS_HEAP_BLOCKS].peak.bytes, 10000000);
	for (int i = 50; i < 100; i++)
		free(p[i]);
	close_all();
}

/* What is told of a block is forgotten with it: a free of the next one there is not told. */
static void the_table_is_empty_when_all_that_was_told_is_freed(void **state_)
{
	(void)state_;
	open_all(512, 3);
	fn_size *alloc = HOOK(fn_size, SIZE, malloc);
	fn_realloc *re = HOOK(fn_realloc, REALLOC, realloc);
	fn_free *fr = HOOK(fn_free, FREE, free);
	uint64_t told, marked = 0;

	for (int i = 0; i < 3000; i++) {
		void *p = alloc(1 + next() % 900);

		p = re(p, 1 + next() % 2000);
		assert_null(re(p, SIZE_MAX / 2)); /* fails: the block stays */
		fr(p);
	}
	as_heap_drain_finish(drain);
	as_heap_finish(heap);
	assert_true(heap->allocs > 4000 && heap->allocs < 8000);
	assert_int_equal(heap->failed, 3000);
	assert_int_equal(heap->sum[AS_HEAP_BLOCKS].live.blocks, 0);
	assert_int_equal(heap->sum[AS_HEAP_BLOCKS].live.bytes, 0);
	for (uint32_t i = 0; i < 2 * AS_RT_SAMPLED_BUCKETS; i++)
		marked += ((const uint32_t *)(uintptr_t)host.home->sampled)[i] != 0;
	assert_int_equal(marked, 0);
	told = rt_host_ring(&host, 1)->pos;
	host.control->sample_bytes = 1ull << 40; /* the next draws are far away */
	for (int i = 0; i < 10; i++)
		fr(alloc(2000));
	told = rt_host_ring(&host, 1)->pos;
	for (int i = 0; i < 1000; i++)
		fr(alloc(32));
	assert_int_equal(rt_host_ring(&host, 1)->pos, told);
	close_all();
}

static void a_mark_of_the_program_is_told_with_its_name(void **state_)
{
	(void)state_;
	open_all(0, 5);
	fn_mark *volatile nothing = HOOK(fn_mark, MARK, free);
	fn_size *alloc = HOOK(fn_size, SIZE, malloc);
	void *p = alloc(77);

	/* the original is called, too: free of nothing */
	nothing(NULL, 0);
	as_heap_drain_finish(drain);
	assert_int_equal(heap->marks.n, 1);
	assert_int_equal(heap->marks.v[0].live.bytes, 77);
	host.control->mark_bytes = 5;
	memcpy(host.control->mark_name, "later", 5);
	host.control->mark_asked = 9;
	assert_true(as_heap_drain_asked(drain, 10));
	assert_false(as_heap_drain_asked(drain, 11));
	assert_int_equal(host.control->mark_made, 9);
	assert_int_equal(heap->marks.n, 2);
	assert_string_equal(heap->marks.v[1].name, "later");
	for (int i = 0; i < 2000; i++)
		nothing(NULL, 0);
	as_heap_drain_finish(drain);
	assert_int_equal(heap->marks.n, AS_HEAP_MARKS);
	free(p);
	close_all();
}

int main(void)
{
#ifdef __SANITIZE_THREAD__
	puts("1..0 # SKIP the thread sanitizer does not see into the image");
	return 77;
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(estimates_are_right_on_average_and_say_how_sure_they_are),
		cmocka_unit_test(large_blocks_are_all_told_and_counted_as_one),
		cmocka_unit_test(the_table_is_empty_when_all_that_was_told_is_freed),
		cmocka_unit_test(a_mark_of_the_program_is_told_with_its_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sums per stack against an oracle that looks at everything after each event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "heap/heap.h"

enum { THREADS = 3, STACKS = 7, TALLIES = THREADS * STACKS, SLOTS = 300 };

static uint64_t state;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

struct block {
	uint64_t ptr, size, born_allocs;
	uint32_t tally, owner, made; /* made: the tally that first had it */
	bool grown;
};

/* The slow way: nothing is lazy. */
struct oracle {
	struct block block[SLOTS];
	struct as_heap_amount live[TALLIES], peak[TALLIES], made[TALLIES], made_peak[TALLIES];
	uint64_t allocs[TALLIES], bytes[TALLIES], frees[TALLIES], ages[TALLIES][64];
	uint64_t sizes[TALLIES][64], reallocs[TALLIES], chains[TALLIES], ended[TALLIES];
	uint64_t thread_allocs[THREADS], flow[THREADS][THREADS];
	uint64_t live_bytes, peak_bytes, next_ptr;
};

static void look(struct oracle *o)
{
	o->live_bytes = 0;
	memset(o->live, 0, sizeof o->live);
	memset(o->made, 0, sizeof o->made);
	for (int i = 0; i < SLOTS; i++) {
		struct block *b = &o->block[i];

		if (!b->ptr)
			continue;
		o->live_bytes += b->size;
		o->live[b->tally].bytes += b->size;
		o->live[b->tally].blocks++;
		o->made[b->made].bytes += b->size;
		o->made[b->made].blocks++;
	}
	if (o->live_bytes > o->peak_bytes) {
		o->peak_bytes = o->live_bytes;
		memcpy(o->peak, o->live, sizeof o->peak);
		memcpy(o->made_peak, o->made, sizeof o->made_peak);
	}
}

static uint32_t log2_of(uint64_t v)
{
	uint32_t k = 0;

	for (; v; v >>= 1)
		k++;
	return k;
}

static uint64_t some_size(void)
{
	uint64_t r = next();

	return r % 50 == 0 ? (r >> 8) % 300000 : (r >> 8) % 500;
}

static void allocate(struct oracle *o, struct as_heap *h, struct block *b, uint32_t tally)
{
	uint32_t thread = tally / STACKS;

	*b = (struct block){.ptr = o->next_ptr += 16,
			    .size = some_size(),
			    .tally = tally,
			    .made = tally,
			    .owner = thread,
			    .born_allocs = ++o->thread_allocs[thread]};
	o->allocs[tally]++;
	o->bytes[tally] += b->size;
	o->sizes[tally][log2_of(b->size)]++;
	as_heap_alloc(h, tally, b->ptr, b->size);
}

static void release(struct oracle *o, struct as_heap *h, struct block *b, uint32_t thread)
{
	o->frees[b->tally]++;
	o->ages[b->tally][log2_of(o->thread_allocs[b->owner] - b->born_allocs)]++;
	o->ended[b->tally] += b->grown;
	if (thread != b->owner)
		o->flow[b->owner][thread]++;
	assert_true(as_heap_free(h, thread, b->ptr));
	b->ptr = 0;
}

static void change(struct oracle *o, struct as_heap *h, struct block *b, uint32_t tally)
{
	uint32_t thread = tally / STACKS;
	uint64_t age = o->thread_allocs[b->owner] - b->born_allocs;
	bool moves = next() % 2, fails = next() % 16 == 0;
	struct as_heap_change c = {b->ptr, moves ? o->next_ptr += 16 : b->ptr, some_size() + 1};

	if (fails)
		c.new_ptr = 0;
	assert_true(as_heap_realloc_begin(h, thread, b->ptr));
	as_heap_realloc(h, tally, &c);
	if (fails)
		return;
	o->frees[b->tally]++;
	o->allocs[tally]++;
	o->reallocs[tally]++;
	o->chains[tally] += !b->grown;
	o->bytes[tally] += c.size_bytes > b->size ? c.size_bytes - b->size : 0;
	*b = (struct block){.ptr = c.new_ptr,
			    .size = c.size_bytes,
			    .tally = tally,
			    .made = b->made,
			    .owner = thread,
			    .born_allocs = o->thread_allocs[thread] - age,
			    .grown = true};
	o->thread_allocs[thread]++;
}

static void step(struct oracle *o, struct as_heap *h, uint64_t want)
{
	struct block *b = &o->block[next() % want];
	uint32_t tally = next() % TALLIES;

	if (!b->ptr)
		allocate(o, h, b, tally);
	else if (next() % 3 == 0)
		change(o, h, b, tally);
	else
		release(o, h, b, next() % THREADS);
	look(o);
}

/* Of a stack: its own tally, and those of blocks that others made and it changed. */
struct sums {
	struct as_heap_blocks live, peak, made, made_peak;
	uint64_t allocs, bytes, frees, reallocs, chains, ages[64], sizes[64];
};

static void add_amount(struct as_heap_blocks *to, const struct as_heap_blocks *a)
{
	to->blocks += a->blocks;
	to->bytes += a->bytes;
}

static void add_tally(struct sums *s, const struct as_heap *h, const struct as_heap_tally *t)
{
	const struct as_heap_growth *g = as_heap_growth_of(h, t);

	add_amount(&s->live, &t->live);
	add_amount(&s->peak, &t->peak);
	s->allocs += t->allocs;
	s->bytes += t->bytes;
	s->frees += t->frees;
	s->reallocs += g ? g->reallocs : 0;
	s->chains += g ? g->chains : 0;
	for (uint32_t k = 0; k < 64; k++) {
		s->ages[k] += as_histogram_get(&t->ages, k);
		s->sizes[k] += as_histogram_get(&t->sizes, k);
	}
}

static struct sums sums_of(const struct as_heap *h, uint32_t i)
{
	struct sums s = {0};

	for (uint32_t k = 0; k < h->tallies.n; k++) {
		const struct as_heap_tally *t = &h->tallies.v[k];

		if (t->key.thread * STACKS + t->key.stack == i)
			add_tally(&s, h, t);
		if ((t->origin ? t->origin - 1 : k) != i)
			continue;
		add_amount(&s.made, &t->live);
		add_amount(&s.made_peak, &t->peak);
	}
	return s;
}

static void compare(const struct oracle *o, const struct as_heap *h)
{
	uint64_t peak = 0;

	assert_int_equal(h->sum[AS_HEAP_BLOCKS].live.bytes, o->live_bytes);
	assert_int_equal(h->sum[AS_HEAP_BLOCKS].peak.bytes, o->peak_bytes);
	for (uint32_t i = 0; i < TALLIES; i++) {
		struct sums t = sums_of(h, i);

		assert_int_equal(t.allocs, o->allocs[i]);
		assert_int_equal(t.bytes, o->bytes[i]);
		assert_int_equal(t.frees, o->frees[i]);
		assert_int_equal(t.live.bytes, o->live[i].bytes);
		assert_int_equal(t.live.blocks, o->live[i].blocks);
		assert_int_equal(t.peak.bytes, o->peak[i].bytes);
		assert_int_equal(t.peak.blocks, o->peak[i].blocks);
		assert_int_equal(t.made.bytes, o->made[i].bytes);
		assert_int_equal(t.made.blocks, o->made[i].blocks);
		assert_int_equal(t.made_peak.bytes, o->made_peak[i].bytes);
		assert_int_equal(t.reallocs, o->reallocs[i]);
		assert_int_equal(t.chains, o->chains[i]);
		assert_memory_equal(t.ages, o->ages[i], sizeof t.ages);
		assert_memory_equal(t.sizes, o->sizes[i], sizeof t.sizes);
		peak += t.peak.bytes;
	}
	assert_int_equal(peak, o->peak_bytes);
	as_vec_foreach (f, &h->flows)
		assert_int_equal(f->freed.blocks, o->flow[f->from][f->to]);
}

static void all_sums_are_those_of_an_oracle(void **unused)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct oracle *o = as_xcalloc(1, sizeof *o);
		struct as_heap *h = as_heap_new(0);

		state = seed * 0x9e3779b97f4a7c15ull;
		o->next_ptr = 0x555555550000;
		for (uint32_t t = 0; t < THREADS; t++)
			(void)as_heap_thread(h, t);
		for (uint32_t i = 0; i < TALLIES; i++)
			assert_int_equal(
				as_heap_tally(h, &(struct as_heap_key){i / STACKS, i % STACKS,
								       AS_HEAP_BLOCKS}),
				i);
		/* grows, shrinks, grows higher, … : many maxima */
		for (uint64_t i = 0; i < 30000; i++)
			step(o, h, 20 + (i / 1000 * 37 + i / 50) % (SLOTS - 20));
		as_heap_settle(h);
		compare(o, h);
		as_heap_finish(h);
		compare(o, h);
		as_heap_free_all(h);
		free(o);
	}
}

static struct as_heap *one_stack(uint32_t *ret_tally)
{
	struct as_heap *h = as_heap_new(1000);
	uint32_t thread = as_heap_thread(h, 5);

	*ret_tally = as_heap_tally(h, &(struct as_heap_key){thread, 0, AS_HEAP_BLOCKS});
	return h;
}

/* Vec::push 10,000 times: 4, 8, 16 … elements of 8 bytes. */
static void a_growing_vector_is_one_chain(void **unused)
{
	uint32_t t;
	struct as_heap *h = one_stack(&t);
	const struct as_heap_growth *g;
	uint64_t ptr = 0x1000, n = 0, copied = 0;

	as_heap_alloc(h, t, ptr, 32);
	for (uint64_t size = 64; size <= 131072; size *= 2, n++) {
		bool moves = size < 4096;
		struct as_heap_change c = {ptr, moves ? ptr + 0x100000 : ptr, size};

		assert_true(as_heap_realloc_begin(h, 0, ptr));
		as_heap_realloc(h, t, &c);
		ptr = c.new_ptr;
		copied += moves ? size / 2 : 0;
	}
	assert_true(as_heap_free(h, 0, ptr));
	as_heap_finish(h);
	g = as_heap_growth_of(h, &h->tallies.v[t]);
	assert_int_equal(g->reallocs, n);
	assert_int_equal(g->chains, 1);
	assert_int_equal(g->first_bytes, 32);
	assert_int_equal(g->ended, 1);
	assert_int_equal(g->last_bytes, 131072);
	assert_int_equal(g->copied_bytes, copied);
	assert_int_equal(g->in_place, 6);
	assert_int_equal(h->tallies.v[t].bytes, 131072);
	assert_int_equal(h->sum[AS_HEAP_BLOCKS].peak.bytes, 131072);
	assert_int_equal(h->sum[AS_HEAP_BLOCKS].live.blocks, 0);
	as_heap_free_all(h);
}

static void bursts_live_as_long_as_their_allocations(void **unused)
{
	uint32_t t;
	struct as_heap *h = one_stack(&t);

	for (int round = 0; round < 50; round++) {
		for (uint64_t i = 0; i < 100; i++)
			as_heap_alloc(h, t, 0x1000 + i * 16, 8);
		for (uint64_t i = 0; i < 100; i++)
			assert_true(as_heap_free(h, 0, 0x1000 + i * 16));
	}
	/* ages 0 … 99, each 50 times */
	assert_int_equal(as_histogram_get(&h->tallies.v[t].ages, 0), 50);
	assert_int_equal(as_histogram_get(&h->tallies.v[t].ages, 1), 50);
	assert_int_equal(as_histogram_get(&h->tallies.v[t].ages, 6), 32 * 50);
	assert_int_equal(as_histogram_get(&h->tallies.v[t].ages, 7), 36 * 50);
	as_heap_free_all(h);
}

static void lifetimes_in_time_follow_the_clock(void **unused)
{
	uint32_t t;
	struct as_heap *h = one_stack(&t);
	const struct as_histogram *times = &h->tallies.v[t].times;

	/* one block of each tick, and each tenth freed after 50 ms; the clock is thinned meanwhile */
	for (uint64_t i = 0; i < 20000; i++) {
		as_heap_time(h, 0, 1000 + i * 100000);
		as_heap_alloc(h, t, 0x100000 + i * 16, 16);
		if (i >= 500 && i % 10 == 0)
			assert_true(as_heap_free(h, 0, 0x100000 + (i - 500) * 16));
	}
	assert_true(h->threads.v[0].clock.n < 512);
	times = &h->tallies.v[t].times;
	/* 50 ms are 50,000 us: bucket 16 (32,768 to 65,535) */
	assert_int_equal(as_histogram_get(times, 16), 1950);
	assert_int_equal(times->used, 1u << 16);
	as_heap_free_all(h);
}

static void a_leak_grows_and_a_cache_does_not(void **unused)
{
	uint32_t leak, cache;
	struct as_heap *h = one_stack(&leak);
	struct as_heap_slope s;

	cache = as_heap_tally(h, &(struct as_heap_key){0, 1, AS_HEAP_BLOCKS});
	for (uint64_t ms = 1; ms <= 5000; ms++) {
		as_heap_time(h, 0, 1000 + ms * 1000000);
		as_heap_alloc(h, leak, 0x10000000 + ms * 1024, 1000);
		if (ms <= 300)
			as_heap_alloc(h, cache, 0x90000000 + ms * 1024, 1000);
	}
	as_heap_finish(h);
	as_heap_slope(h, &h->tallies.v[leak], &s);
	assert_true(s.steps >= 3 && s.rises == s.steps);
	/* the line is over the moments: their distance times 1000 bytes a ms */
	assert_true(s.bytes > 0.95 * (double)s.steps * (double)h->moment_ns / 1000);
	assert_true(s.bytes < 1.05 * (double)s.steps * (double)h->moment_ns / 1000);
	as_heap_slope(h, &h->tallies.v[cache], &s);
	assert_int_equal(s.rises, 0);
	assert_true(s.bytes == 0);
	assert_true(h->timeline.n <= AS_HEAP_TIMELINE && h->timeline.n >= 256);
	assert_int_equal(h->timeline.v[h->timeline.n - 1].live.bytes, 5300000);
	as_heap_free_all(h);
}

static void what_is_freed_at_exit_is_told_apart(void **unused)
{
	uint32_t t;
	struct as_heap *h = one_stack(&t);

	as_heap_alloc(h, t, 0x1000, 10);
	as_heap_alloc(h, t, 0x2000, 20);
	as_heap_alloc(h, t, 0x3000, 0);
	as_heap_alloc(h, t, 0, 1ull << 60);
	as_heap_mark(h, "loaded", 6);
	assert_true(as_heap_free(h, 0, 0x1000));
	as_heap_exit_begins(h);
	assert_true(as_heap_free(h, 0, 0x2000));
	assert_false(as_heap_free(h, 0, 0x4000));
	as_heap_finish(h);
	assert_int_equal(as_heap_rare_of(h, &h->tallies.v[t])->at_exit.blocks, 1);
	assert_int_equal(as_heap_rare_of(h, &h->tallies.v[t])->at_exit.bytes, 20);
	assert_int_equal(as_heap_rare_of(h, &h->tallies.v[t])->zero, 1);
	assert_int_equal(as_heap_rare_of(h, &h->tallies.v[t])->failed, 1);
	assert_int_equal(h->tallies.v[t].allocs, 3);
	assert_int_equal(h->tallies.v[t].live.blocks, 1);
	assert_int_equal(h->marks.v[0].live.bytes, 30);
	assert_int_equal(h->marks.v[0].tallies.v[0].live.blocks, 3);
	as_heap_free_all(h);
}

/* The clock of a program goes on by 0.1 ms or so: the reader joins records of one name and time. */
static void marks_of_one_moment_have_times_of_their_own(void **unused)
{
	uint32_t t;
	struct as_heap *h = one_stack(&t);

	as_heap_alloc(h, t, 0x1000, 10);
	as_heap_mark(h, "round", 5);
	as_heap_alloc(h, t, 0x2000, 20);
	as_heap_mark(h, "round", 5);
	as_heap_mark(h, "round", 5);
	assert_int_equal(h->marks.n, 3);
	assert_true(h->marks.v[0].time_ns < h->marks.v[1].time_ns);
	assert_true(h->marks.v[1].time_ns < h->marks.v[2].time_ns);
	assert_int_equal(h->marks.v[0].live.bytes, 10);
	assert_int_equal(h->marks.v[1].live.bytes, 30);
	as_heap_free_all(h);
}

static void mappings_may_be_cut_and_taken_back(void **unused)
{
	struct as_heap *h = as_heap_new(0);
	const struct as_heap_amount *live = &h->sum[AS_HEAP_MAPPINGS].live;
	uint32_t a, b;

	(void)as_heap_thread(h, 0);
	a = as_heap_tally(h, &(struct as_heap_key){0, 1, AS_HEAP_MAPPINGS});
	b = as_heap_tally(h, &(struct as_heap_key){0, 2, AS_HEAP_MAPPINGS});
	as_heap_map(h, a, 0x10000, 0x10000);
	as_heap_unmap(h, 0x14000, 0x1000); /* a hole */
	assert_int_equal(live->bytes, 0xf000);
	assert_int_equal(live->blocks, 2);
	as_heap_unmap_failed(h, 0x14000, 0x1000); /* it was none */
	assert_int_equal(live->bytes, 0x10000);
	as_heap_map(h, b, 0x18000, 0x10000); /* over the end of it */
	assert_int_equal(h->tallies.v[a].live.bytes, 0x8000);
	assert_int_equal(h->tallies.v[b].live.bytes, 0x10000);
	as_heap_unmap(h, 0, UINT64_MAX);
	assert_int_equal(live->bytes, 0);
	assert_int_equal(live->blocks, 0);
	as_heap_finish(h);
	assert_int_equal(h->sum[AS_HEAP_MAPPINGS].peak.bytes, 0x18000);
	assert_int_equal(h->tallies.v[a].peak.bytes + h->tallies.v[b].peak.bytes, 0x18000);
	assert_int_equal(h->sum[AS_HEAP_BLOCKS].peak.bytes, 0);
	as_heap_free_all(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_sums_are_those_of_an_oracle),
		cmocka_unit_test(a_growing_vector_is_one_chain),
		cmocka_unit_test(bursts_live_as_long_as_their_allocations),
		cmocka_unit_test(lifetimes_in_time_follow_the_clock),
		cmocka_unit_test(a_leak_grows_and_a_cache_does_not),
		cmocka_unit_test(what_is_freed_at_exit_is_told_apart),
		cmocka_unit_test(marks_of_one_moment_have_times_of_their_own),
		cmocka_unit_test(mappings_may_be_cut_and_taken_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

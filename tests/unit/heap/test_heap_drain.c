/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The drain against simulated programs: threads that are interrupted at every point where a real one
 * can be (between what the allocator does and what the runtime writes of it), drained at any time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "heap_rings.h"

enum { THREADS = 5, ADDRESSES = 4000, FUNCTIONS = 6, PID = 77 };

static uint64_t state;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* ---- a host ---- */

struct host {
	struct as_heap *heap;
	uint64_t code_moved; /* what the mappings of now have lower than at first */
	uint32_t module;
	uint64_t ticks;
};

static struct as_heap *on_process(void *ctx, uint32_t pid, uint64_t time_ns)
{
	struct host *h = ctx;

	if (pid != PID)
		return NULL;
	return h->heap = as_heap_new(time_ns);
}

static uint32_t on_thread(void *ctx, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	return tid;
}

static bool on_locate(void *ctx, uint32_t pid, uint64_t avma, struct as_heap_frame *ret)
{
	struct host *h = ctx;

	if (avma < 0x400000)
		return false;
	ret->module = h->module;
	ret->addr = avma + h->code_moved - 0x400000;
	return true;
}

static void on_tick(void *ctx)
{
	((struct host *)ctx)->ticks++;
}

/* ---- a program ---- */

struct thread {
	int step; /* 0: between calls */
	int kind;
	uint64_t ptr, new_ptr, size;
	uint32_t stack, node_of[FUNCTIONS * FUNCTIONS];
};

struct owned {
	bool live;
	uint64_t size;
	uint32_t tally;
};

struct program {
	struct rings r;
	struct thread thread[THREADS];
	bool taken[ADDRESSES]; /* as the allocator sees it */
	bool mine[ADDRESSES];  /* a thread is about to free it */
	struct owned truth[ADDRESSES];
	uint64_t live_bytes, peak_bytes, allocs, frees, reallocs, events;
	uint64_t live[THREADS * FUNCTIONS * FUNCTIONS], peak[THREADS * FUNCTIONS * FUNCTIONS];
	uint64_t clock_every;
};

static uint64_t address(uint64_t i)
{
	return 0x7f0000001000 + i * 48;
}

static int64_t index_of(uint64_t ptr)
{
	return ((int64_t)ptr - 0x7f0000001000) / 48;
}

static int some_free_address(const struct program *p)
{
	for (int tries = 0; tries < 200; tries++) {
		int i = (int)(next() % ADDRESSES);

		if (!p->taken[i])
			return i;
	}
	return -1;
}

static int some_block(const struct program *p)
{
	for (int tries = 0; tries < 200; tries++) {
		int i = (int)(next() % ADDRESSES);

		if (p->truth[i].live && !p->mine[i])
			return i;
	}
	return -1;
}

/* Two frames: main's call number a, and b in what it calls. */
static uint32_t node(struct program *p, uint32_t t, uint32_t stack)
{
	struct thread *th = &p->thread[t];
	uint64_t outer = 0x400001 + stack / FUNCTIONS * 16,
		 inner = 0x410001 + stack % FUNCTIONS;

	if (!th->node_of[stack]) {
		uint32_t up = rings_node(&p->r, t, 0, outer, AS_END_ROOT);

		th->node_of[stack] = rings_node(&p->r, t, up, inner, 0);
	}
	return th->node_of[stack];
}

static void begin_event(struct program *p, uint32_t t)
{
	if (p->clock_every && p->events++ % p->clock_every == 0)
		p->r.area.control->clock_ns += 1000;
	if (rings_time(&p->r, t) || next() % 500 == 0) {
		struct as_rt_rec_reset reset = {RINGS_HEAD(RESET)};

		memset(p->thread[t].node_of, 0, sizeof p->thread[t].node_of);
		if (rings_write(&p->r, t, &reset, sizeof reset))
			p->r.next_node[t] = 1;
	}
}

static void set_truth(struct program *p, uint64_t ptr, uint64_t size, uint32_t tally)
{
	p->truth[index_of(ptr)] = (struct owned){true, size, tally};
	p->live_bytes += size;
	p->live[tally] += size;
}

static void clear_truth(struct program *p, uint64_t ptr)
{
	struct owned *o = &p->truth[index_of(ptr)];

	o->live = false;
	p->live_bytes -= o->size;
	p->live[o->tally] -= o->size;
}

static void note_peak(struct program *p)
{
	if (p->live_bytes <= p->peak_bytes)
		return;
	p->peak_bytes = p->live_bytes;
	memcpy(p->peak, p->live, sizeof p->peak);
}

static void start_call(struct program *p, struct thread *th)
{
	int i;

	th->kind = (int)(next() % 3);
	th->stack = next() % (FUNCTIONS * FUNCTIONS);
	th->size = next() % 1000;
	if (th->kind == 0)
		i = some_free_address(p);
	else
		i = some_block(p);
	if (i < 0)
		return;
	th->ptr = address((uint64_t)i);
	if (th->kind == 0)
		p->taken[i] = true; /* the allocator has given it; nobody else knows */
	else
		p->mine[i] = true; /* only one thread may free a block */
	th->step = 1;
}

static void step_alloc(struct program *p, struct thread *th, uint32_t t)
{
	uint32_t n;

	begin_event(p, t);
	n = node(p, t, th->stack);
	if (rings_alloc(&p->r, t, th->ptr, th->size, n))
		p->allocs++;
	set_truth(p, th->ptr, th->size, t * FUNCTIONS * FUNCTIONS + th->stack);
	note_peak(p);
	th->step = 0;
}

static void step_free(struct program *p, struct thread *th, uint32_t t)
{
	int64_t i = index_of(th->ptr);

	if (th->step++ == 1) {
		begin_event(p, t);
		if (rings_free(&p->r, t, th->ptr))
			p->frees++;
		clear_truth(p, th->ptr);
		return;
	}
	p->taken[i] = p->mine[i] = false;
	th->step = 0;
}

static void step_realloc(struct program *p, struct thread *th, uint32_t t)
{
	int64_t i = index_of(th->ptr);
	int to;

	switch (th->step++) {
	case 1:
		begin_event(p, t);
		(void)rings_begin(&p->r, t, th->ptr);
		return;
	case 2: /* the allocator moves it, and may give the old address to others at once */
		to = next() % 2 ? some_free_address(p) : (int)i;
		if (to < 0)
			to = (int)i;
		if (to != i) {
			p->taken[i] = p->mine[i] = false;
			p->taken[to] = p->mine[to] = true;
		}
		th->new_ptr = address((uint64_t)to);
		/* from now on the truth knows it by the new address */
		if (to != i) {
			p->truth[to] = p->truth[i];
			p->truth[i].live = false;
		}
		return;
	default:
		break;
	}
	begin_event(p, t);
	uint32_t n = node(p, t, th->stack);

	if (rings_realloc(&p->r, t,
			  &(struct as_heap_change){th->ptr, th->new_ptr, th->size + 1}, n))
		p->reallocs++;
	clear_truth(p, th->new_ptr);
	set_truth(p, th->new_ptr, th->size + 1, t * FUNCTIONS * FUNCTIONS + th->stack);
	p->mine[index_of(th->new_ptr)] = false;
	note_peak(p);
	th->step = 0;
}

static void step_thread(struct program *p, uint32_t t)
{
	struct thread *th = &p->thread[t];

	if (!th->step)
		start_call(p, th);
	else if (th->kind == 0)
		step_alloc(p, th, t);
	else if (th->kind == 1)
		step_free(p, th, t);
	else
		step_realloc(p, th, t);
}

struct result {
	struct host host;
	struct as_heap_stacks stacks;
	struct as_heap_drain *d;
	const struct as_heap_drained *of;
};

static void run_program(struct program *p, struct result *res, uint64_t steps,
			uint64_t drain_every)
{
	struct as_heap_host host = {&res->host, on_process, on_thread, on_locate, NULL};
	size_t n;

	p->r.area.control->clock_ns = 1000000;
	res->d = as_heap_drain_new(&p->r.area, &host, &res->stacks);
	for (uint32_t t = 0; t < THREADS; t++)
		rings_thread(&p->r, t, PID, 100 + t);
	for (uint64_t i = 0; i < steps; i++) {
		step_thread(p, next() % THREADS);
		if (next() % drain_every == 0)
			(void)as_heap_drain_round(res->d, p->r.area.control->clock_ns);
	}
	for (uint32_t t = 0; t < THREADS; t++) {
		while (p->thread[t].step)
			step_thread(p, t);
	}
	as_heap_drain_finish(res->d);
	as_heap_finish(res->host.heap);
	res->of = as_heap_drain_processes(res->d, &n);
	assert_int_equal(n, 1);
}

static void clear_result(struct program *p, struct result *res)
{
	as_heap_drain_free(res->d);
	as_heap_stacks_clear(&res->stacks);
	as_heap_free_all(res->host.heap);
	rings_clear(&p->r);
}

static uint32_t tally_of(const struct as_heap_tally *t, const struct as_heap *h,
			 const struct as_heap_stacks *s)
{
	const struct as_heap_stack *inner = &s->stacks.v[t->key.stack];
	const struct as_heap_stack *outer = &s->stacks.v[inner->parent];

	assert_int_equal(outer->parent, AS_HEAP_NONE);
	assert_int_equal(s->frames.v[inner->frame].module, 0);
	return (h->threads.v[t->key.thread].number - 100) * FUNCTIONS * FUNCTIONS +
	       (uint32_t)((s->frames.v[outer->frame].addr - 1) / 16 * FUNCTIONS +
			  s->frames.v[inner->frame].addr - 0x10001);
}

/* Whatever the clock. */
static void compare_counts(const struct program *p, const struct result *res)
{
	const struct as_heap *h = res->host.heap;

	assert_int_equal(h->allocs, p->allocs + p->reallocs);
	assert_int_equal(h->reallocs, p->reallocs);
	assert_int_equal(res->of->dropped, 0);
	assert_int_equal(res->of->holes + res->of->bad, 0);
	assert_int_equal(res->of->hook_events.v[1], p->allocs + p->frees + p->reallocs);
	/* one number per stack, whatever the threads call its nodes */
	assert_true(res->stacks.stacks.n <= FUNCTIONS + FUNCTIONS * FUNCTIONS);
}

static void compare_live(const struct program *p, const struct result *res)
{
	const struct as_heap *h = res->host.heap;
	uint64_t live[THREADS * FUNCTIONS * FUNCTIONS] = {0};

	compare_counts(p, res);
	assert_int_equal(h->unmatched_frees, 0);
	assert_int_equal(h->unmatched_allocs, 0);
	assert_int_equal(h->unmatched_reallocs, 0);
	assert_int_equal(h->frees, p->frees + p->reallocs);
	assert_int_equal(h->sum[AS_HEAP_BLOCKS].live.bytes, p->live_bytes);
	as_vec_foreach (t, &h->tallies)
		live[tally_of(t, h, &res->stacks)] += t->live.bytes;
	for (size_t i = 0; i < AS_ARRAY_LEN(live); i++)
		assert_int_equal(live[i], p->live[i]);
}

static void blocks_that_go_through_threads_are_exact_whatever_the_clock(void **unused)
{
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct program *p = as_xcalloc(1, sizeof *p);
		struct result res = {0};
		uint64_t peak[THREADS * FUNCTIONS * FUNCTIONS] = {0};

		state = seed * 0xbf58476d1ce4e5b9ull;
		rings_init(&p->r, THREADS, 1 << 20);
		p->clock_every = (seed - 1) * (seed - 1) * (seed - 1); /* 0: it stands */
		run_program(p, &res, 40000, 1 + 100 * seed);
		compare_live(p, &res);
		assert_int_equal(res.host.heap->sum[AS_HEAP_BLOCKS].peak.bytes, p->peak_bytes);
		as_vec_foreach (t, &res.host.heap->tallies)
			peak[tally_of(t, res.host.heap, &res.stacks)] += t->peak.bytes;
		for (size_t i = 0; i < AS_ARRAY_LEN(peak); i++)
			assert_int_equal(peak[i], p->peak[i]);
		clear_result(p, &res);
		free(p);
	}
}

/* Rings of 64 KiB that are drained too rarely. */
static void what_is_lost_is_counted_exactly(void **unused)
{
	struct program *p = as_xcalloc(1, sizeof *p);
	struct result res = {0};
	const struct as_heap *h;
	uint64_t sum = 0;

	state = 42;
	rings_init(&p->r, THREADS, 64 << 10);
	p->clock_every = 50;
	run_program(p, &res, 200000, 9000);
	h = res.host.heap;
	assert_true(res.of->dropped > 1000);
	/* nothing of what was written is missing */
	assert_int_equal(res.of->hook_events.v[1], p->allocs + p->frees + p->reallocs);
	assert_int_equal(h->allocs - h->frees, h->sum[AS_HEAP_BLOCKS].live.blocks);
	as_vec_foreach (t, &h->tallies)
		sum += t->peak.bytes;
	assert_int_equal(sum, h->sum[AS_HEAP_BLOCKS].peak.bytes);
	clear_result(p, &res);
	free(p);
}

/* ---- single cases ---- */

struct bench {
	struct rings r;
	struct result res;
};

static void bench_init_of(struct bench *b, uint32_t rings, uint32_t threads)
{
	struct as_heap_host host = {&b->res.host, on_process, on_thread,
				    on_locate,    NULL,       on_tick};

	memset(b, 0, sizeof *b);
	rings_init(&b->r, rings, 64 << 10);
	b->r.area.control->clock_ns = 1000;
	b->res.d = as_heap_drain_new(&b->r.area, &host, &b->res.stacks);
	for (uint32_t t = 0; t < threads; t++)
		rings_thread(&b->r, t, PID, 100 + t);
}

static void bench_init(struct bench *b, uint32_t threads)
{
	bench_init_of(b, 4, threads);
}

static void bench_clear(struct bench *b)
{
	as_heap_drain_free(b->res.d);
	as_heap_stacks_clear(&b->res.stacks);
	as_heap_free_all(b->res.host.heap);
	rings_clear(&b->r);
}

static const struct as_heap_drained *drained(struct bench *b)
{
	size_t n;
	const struct as_heap_drained *p = as_heap_drain_processes(b->res.d, &n);

	assert_int_equal(n, 1);
	return p;
}

static void frees_of_blocks_from_before_are_counted_and_ignored(void **unused)
{
	struct bench b;

	bench_init(&b, 2);
	(void)rings_free(&b.r, 0, 0x1000);
	(void)rings_begin(&b.r, 0, 0x2000);
	(void)rings_realloc(&b.r, 0, &(struct as_heap_change){0x2000, 0x3000, 50}, 0);
	(void)rings_alloc(&b.r, 1, 0x4000, 10, 0);
	assert_true(as_heap_drain_round(b.res.d, 2000) > 0);
	assert_int_equal(b.res.host.heap->unmatched_frees, 1);
	assert_int_equal(b.res.host.heap->unmatched_reallocs, 1);
	assert_int_equal(b.res.host.heap->sum[AS_HEAP_BLOCKS].live.bytes, 60);
	bench_clear(&b);
}

static void a_process_that_has_ended_is_taken_when_its_rings_are_empty(void **unused)
{
	struct as_heap_drained d = {0};
	struct bench b;
	size_t n;

	bench_init(&b, 2);
	(void)rings_alloc(&b.r, 0, 0x1000, 10, 0);
	(void)rings_alloc(&b.r, 1, 0x2000, 20, 0);
	(void)as_heap_drain_round(b.res.d, 2000);
	assert_false(as_heap_drain_take(b.res.d, PID, &d));
	as_heap_drain_gone(b.res.d, 0);
	(void)as_heap_drain_round(b.res.d, 3000);
	assert_false(as_heap_drain_take(b.res.d, PID, &d));
	(void)rings_free(&b.r, 1, 0x1000);
	as_heap_drain_gone(b.res.d, 1);
	assert_false(as_heap_drain_take(b.res.d, PID, &d)); /* the free is not read yet */
	(void)as_heap_drain_round(b.res.d, 4000);
	assert_true(as_heap_drain_take(b.res.d, PID, &d));
	assert_ptr_equal(d.heap, b.res.host.heap);
	assert_int_equal(d.heap->frees, 1);
	assert_int_equal(d.heap->sum[AS_HEAP_BLOCKS].live.bytes, 20);
	assert_false(as_heap_drain_take(b.res.d, PID, &d));
	(void)as_heap_drain_processes(b.res.d, &n);
	assert_int_equal(n, 0);
	as_vec_clear(&d.hook_events);
	bench_clear(&b);
}

/* The second thread has reserved a record that it does not write yet. */
static void a_record_being_written_is_waited_for(void **unused)
{
	struct bench b;
	struct as_rt_rec_alloc rec;
	uint64_t at;

	bench_init(&b, 2);
	rec = rings_alloc_record(&b.r, 1, 0x1000, 10, 0);
	at = rings_reserve(&b.r, 1, AS_RT_REC_ALLOC, sizeof rec);
	(void)rings_alloc(&b.r, 1, 0x9000, 1, 0);
	(void)rings_free(&b.r, 0, 0x1000);
	(void)as_heap_drain_round(b.res.d, 2000);
	(void)as_heap_drain_round(b.res.d, 3000);
	assert_int_equal(b.res.host.heap->unmatched_frees, 0);
	rings_publish(&b.r, 1, at, &rec, sizeof rec);
	(void)as_heap_drain_round(b.res.d, 4000);
	assert_int_equal(b.res.host.heap->unmatched_frees, 0);
	assert_int_equal(b.res.host.heap->frees, 1);
	assert_int_equal(b.res.host.heap->allocs, 2);
	bench_clear(&b);
}

/* The same, and meanwhile the block is changed, moved and freed by others. */
static void what_happens_to_a_block_before_its_record_is_there_is_its_own(void **unused)
{
	const struct as_heap_change grow = {0x1000, 0x5000, 30};
	struct as_rt_rec_alloc rec;
	const struct as_heap *h;
	const struct as_heap_tally *t;
	struct bench b;
	uint64_t at, remote = 0;

	bench_init(&b, 2);
	rec = rings_alloc_record(&b.r, 1, 0x1000, 10, 0);
	at = rings_reserve(&b.r, 1, AS_RT_REC_ALLOC, sizeof rec);
	(void)rings_begin(&b.r, 0, 0x1000);
	(void)rings_realloc(&b.r, 0, &grow, 0);
	(void)as_heap_drain_round(b.res.d, 2000);
	/* the next block there is another one */
	(void)rings_alloc(&b.r, 0, 0x1000, 7, 0);
	(void)as_heap_drain_round(b.res.d, 3000);
	rings_publish(&b.r, 1, at, &rec, sizeof rec);
	(void)rings_free(&b.r, 1, 0x5000);
	(void)as_heap_drain_round(b.res.d, 4000);
	h = b.res.host.heap;
	assert_int_equal(h->unmatched_frees + h->unmatched_allocs + h->unmatched_reallocs, 0);
	assert_int_equal(h->allocs, 3);
	assert_int_equal(h->frees, 2);
	assert_int_equal(h->reallocs, 1);
	assert_int_equal(h->sum[AS_HEAP_BLOCKS].live.bytes, 7);
	t = &h->tallies.v[0];
	assert_int_equal(t->key.thread, 0);
	assert_int_equal(t->bytes, 27); /* the realloc adds 20 */
	assert_int_equal(as_heap_growth_of(h, t)->first_bytes, 10);
	assert_int_equal(as_heap_growth_of(h, t)->copied_bytes, 10);
	assert_int_equal(as_heap_growth_of(h, t)->chains, 1);
	as_vec_foreach (one, &h->tallies)
		remote += as_heap_rare_of(h, one)->remote_frees;
	assert_int_equal(remote, 1); /* of the tally that knows who made the block */
	bench_clear(&b);
}

static void threads_are_told_when_all_rings_are_of_living_threads(void **unused)
{
	struct bench b;
	const uint32_t *full;

	bench_init(&b, 2); /* of three: number 0 is nobody's in a target */
	full = &b.r.area.control->rings_full;
	(void)rings_alloc(&b.r, 1, 0x1000, 10, 0);
	(void)as_heap_drain_round(b.res.d, 2000);
	as_heap_drain_tell_full(b.res.d);
	assert_int_equal(*full, 0);
	rings_thread(&b.r, 2, PID, 102);
	as_heap_drain_tell_full(b.res.d);
	assert_int_equal(*full, 1);
	as_heap_drain_gone(b.res.d, 1);
	as_heap_drain_tell_full(b.res.d); /* one is about to be free */
	assert_int_equal(*full, 0);
	b.r.area.control->rings_full = 1;
	(void)as_heap_drain_round(b.res.d, 3000);
	assert_int_equal(*full, 0);
	assert_int_equal(b.r.area.control->owner[1], 0);
	assert_true(b.r.area.control->owner[2]);
	bench_clear(&b);
}

/* What a thread left is read at its end, which takes a while: a thousand ends keep nobody waiting. */
static void many_ends_are_taken_by_and_by_and_the_heart_beats(void **unused)
{
	enum { MANY = 700, A_ROUND = 256 };
	struct bench b;

	bench_init_of(&b, MANY, MANY);
	for (uint32_t i = 0; i < MANY; i++)
		(void)rings_alloc(&b.r, i, address(i), 10, 0);
	assert_true(as_heap_drain_round(b.res.d, 2000) >= MANY);
	for (uint32_t i = 0; i < MANY; i++)
		as_heap_drain_gone(b.res.d, i);
	for (uint32_t left = MANY, n; left; left -= n) {
		uint32_t owned = 0;

		n = left < A_ROUND ? left : A_ROUND;
		b.res.host.ticks = 0;
		assert_int_equal(as_heap_drain_round(b.res.d, 3000), n);
		assert_true(b.res.host.ticks >= n);
		for (uint32_t i = 0; i < MANY; i++)
			owned += b.r.area.control->owner[i] != 0;
		assert_int_equal(owned, left - n);
	}
	assert_int_equal(as_heap_drain_round(b.res.d, 4000), 0);
	assert_int_equal(b.res.host.heap->allocs, MANY);
	bench_clear(&b);
}

static void a_process_is_read_whatever_others_have_told(void **unused)
{
	struct bench b;

	bench_init(&b, 2);
	(void)as_heap_drain_round(b.res.d, 2000);
	assert_true(as_heap_drain_is_read(b.res.d, PID));
	rings_thread(&b.r, 2, PID + 1, 500);
	(void)rings_alloc(&b.r, 2, 0x1000, 10, 0);
	(void)rings_reserve(&b.r, 2, AS_RT_REC_FREE, 32);
	assert_true(as_heap_drain_is_read(b.res.d, PID));
	(void)as_heap_drain_round(b.res.d, 3000);
	assert_true(as_heap_drain_is_read(b.res.d, PID));
	assert_false(as_heap_drain_is_read(b.res.d, PID + 1));
	(void)rings_alloc(&b.r, 1, 0x1000, 10, 0);
	assert_false(as_heap_drain_is_read(b.res.d, PID));
	(void)as_heap_drain_round(b.res.d, 4000);
	assert_true(as_heap_drain_is_read(b.res.d, PID));
	bench_clear(&b);
}

static void a_record_that_never_comes_is_one_hole(void **unused)
{
	struct bench b;

	bench_init(&b, 1);
	(void)rings_alloc(&b.r, 0, 0x1000, 10, 0);
	(void)rings_reserve(&b.r, 0, AS_RT_REC_REALLOC, 64);
	(void)rings_alloc(&b.r, 0, 0x2000, 20, 0);
	(void)as_heap_drain_round(b.res.d, 2000);
	assert_int_equal(b.res.host.heap->allocs, 1);
	as_heap_drain_gone(b.res.d, 0);
	(void)as_heap_drain_round(b.res.d, 3000);
	assert_int_equal(b.res.host.heap->allocs, 2);
	assert_int_equal(drained(&b)->holes, 1);
	assert_int_equal(b.r.area.control->owner[0], 0);
	/* the next owner goes on where this one ended */
	rings_thread(&b.r, 0, PID, 300);
	(void)rings_free(&b.r, 0, 0x2000);
	(void)as_heap_drain_round(b.res.d, 4000);
	assert_int_equal(b.res.host.heap->frees, 1);
	assert_int_equal(b.res.host.heap->threads.v[1].number, 300);
	bench_clear(&b);
}

static void a_library_in_the_place_of_another_has_stacks_of_its_own(void **unused)
{
	struct bench b;
	uint32_t n;
	const struct as_heap *h;

	bench_init(&b, 1);
	n = rings_node(&b.r, 0, rings_node(&b.r, 0, 0, 0x500000, AS_END_ROOT), 0x600000, 0);
	(void)rings_alloc(&b.r, 0, 0x1000, 10, n);
	(void)as_heap_drain_round(b.res.d, 2000);
	b.res.host.module = 3;
	as_heap_drain_remapped(b.res.d, PID);
	(void)rings_alloc(&b.r, 0, 0x2000, 10, n);
	(void)as_heap_drain_round(b.res.d, 3000);
	/* and back, elsewhere: the same code has the same stack again */
	b.res.host.module = 0;
	b.res.host.code_moved = 0xf0000;
	as_heap_drain_remapped(b.res.d, PID);
	n = rings_node(&b.r, 0, rings_node(&b.r, 0, 0, 0x410000, AS_END_ROOT), 0x510000, 0);
	(void)rings_alloc(&b.r, 0, 0x3000, 10, n);
	(void)as_heap_drain_round(b.res.d, 4000);
	h = b.res.host.heap;
	assert_int_equal(h->tallies.n, 2);
	assert_int_equal(h->tallies.v[0].allocs, 2);
	assert_int_equal(h->tallies.v[1].allocs, 1);
	bench_clear(&b);
}

/* The call is the last instruction of its module. */
static bool ends_before(void *ctx, uint32_t pid, uint64_t avma, struct as_heap_frame *ret)
{
	if (avma >= 0x500000)
		return false;
	*ret = (struct as_heap_frame){.module = 9, .addr = avma - 0x400000};
	return true;
}

static void a_return_address_is_looked_up_by_its_call(void **unused)
{
	struct bench b;
	struct as_heap_host host = {&b.res.host, on_process, on_thread, ends_before, NULL};

	bench_init(&b, 0);
	as_heap_drain_free(b.res.d);
	b.res.d = as_heap_drain_new(&b.r.area, &host, &b.res.stacks);
	rings_thread(&b.r, 0, PID, 100);
	(void)rings_alloc(&b.r, 0, 0x1000, 10, rings_node(&b.r, 0, 0, 0x500000, AS_END_NOCFI));
	(void)as_heap_drain_round(b.res.d, 2000);
	assert_int_equal(b.res.stacks.frames.v[0].module, 9);
	assert_int_equal(b.res.stacks.frames.v[0].addr, 0x100000);
	assert_int_equal(b.res.stacks.stacks.v[0].end, AS_END_NOCFI);
	assert_int_equal(drained(&b)->cut, 1);
	bench_clear(&b);
}

static void other_processes_are_left_alone(void **unused)
{
	struct bench b;

	bench_init(&b, 1);
	rings_thread(&b.r, 1, PID + 1, 500);
	(void)rings_alloc(&b.r, 1, 0x1000, 10, 0);
	(void)rings_alloc(&b.r, 0, 0x1000, 20, 0);
	(void)as_heap_drain_round(b.res.d, 2000);
	assert_int_equal(b.res.host.heap->allocs, 1);
	bench_clear(&b);
}

/* Whatever a target writes into the shared memory: no crash, no endless loop. */
static void nonsense_in_the_rings_is_skipped(void **unused)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct bench b;
		uint8_t *data;

		state = seed * 77777;
		bench_init(&b, 2);
		data = (uint8_t *)rings_ring(&b.r, 0) + AS_RT_RING_HEAD_BYTES;
		for (uint64_t at = 48; at < 60000; at += 16) {
			struct as_rt_head h = {.kind = (uint8_t)(next() % 20),
					       .units = (uint8_t)(next() % 7),
					       .tag = (uint32_t)(next() % 9 ? at >> 4 : 1)};

			memcpy(data + at, &h, sizeof h);
			for (size_t k = 8; k < 16; k++)
				data[at + k] = (uint8_t)(next() % 3 ? next() % 4 : next());
		}
		rings_ring(&b.r, 0)->pos = seed % 3 ? 60000 : next();
		rings_ring(&b.r, 1)->pos = next();
		(void)as_heap_drain_round(b.res.d, 2000);
		as_heap_drain_finish(b.res.d);
		if (b.res.host.heap)
			as_heap_finish(b.res.host.heap);
		bench_clear(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_that_go_through_threads_are_exact_whatever_the_clock),
		cmocka_unit_test(what_is_lost_is_counted_exactly),
		cmocka_unit_test(frees_of_blocks_from_before_are_counted_and_ignored),
		cmocka_unit_test(a_process_that_has_ended_is_taken_when_its_rings_are_empty),
		cmocka_unit_test(a_record_being_written_is_waited_for),
		cmocka_unit_test(what_happens_to_a_block_before_its_record_is_there_is_its_own),
		cmocka_unit_test(threads_are_told_when_all_rings_are_of_living_threads),
		cmocka_unit_test(many_ends_are_taken_by_and_by_and_the_heart_beats),
		cmocka_unit_test(a_process_is_read_whatever_others_have_told),
		cmocka_unit_test(a_record_that_never_comes_is_one_hole),
		cmocka_unit_test(a_library_in_the_place_of_another_has_stacks_of_its_own),
		cmocka_unit_test(a_return_address_is_looked_up_by_its_call),
		cmocka_unit_test(other_processes_are_left_alone),
		cmocka_unit_test(nonsense_in_the_rings_is_skipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

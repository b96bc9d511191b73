/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Pairs that the runtime sums up itself, from its calls to the heap, against what was really called:
 * counts, sizes, ages, live blocks and the peak are those of a program whose every call is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include "../rt/rt_host.h"
#include "heap/drain.h"

typedef void *fn_size(size_t);
typedef void *fn_realloc(void *, size_t);
typedef void fn_free(void *);
typedef void fn_mark(const char *, unsigned long);

enum { PROCESSES = 4, SLOTS = 3000 };

static struct rt_host host;
static struct as_heap_stacks stacks;
static struct as_heap_drain *drain;
static struct as_heap *heap, *heaps[PROCESSES];
static uint32_t module_there = AS_HEAP_NONE;
static size_t nheaps;
static fn_size *m;
static fn_realloc *re;
static fn_free *f;

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

static struct as_heap *on_process(void *ctx, uint32_t pid, uint64_t time_ns)
{
	struct as_heap *h = as_heap_new(time_ns);

	(void)ctx;
	if (nheaps < PROCESSES)
		heaps[nheaps++] = h;
	if (pid == (uint32_t)getpid())
		heap = h;
	return h;
}

static uint32_t on_thread(void *ctx, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	(void)ctx, (void)pid, (void)time_ns;
	return tid;
}

static bool on_locate(void *ctx, uint32_t pid, uint64_t avma, struct as_heap_frame *ret)
{
	(void)ctx, (void)pid;
	ret->module = module_there;
	ret->addr = avma;
	return true;
}

static void on_tick(void *ctx)
{
	(void)ctx;
	host.control->clock_ns += 1000;
	host.control->heartbeat++;
}

static void open_all(uint32_t flags)
{
	const struct as_heap_host to = {.process = on_process,
					.thread = on_thread,
					.locate = on_locate,
					.tick = on_tick};

	rt_host_open(&host, &(struct rt_host_options){.ring_bytes = 4 << 20,
						      .flags = AS_RT_WAIT_FULL | flags,
						      .full_wait_us = 10000000});
	host.control->clock_ns = 1000000;
	const struct as_heap_area area = {.control = host.control,
					  .rings = host.rings,
					  .ring_bytes = host.ring_bytes,
					  .context_max = host.context_max,
					  .fd = host.fd};
	memset(&stacks, 0, sizeof stacks);
	drain = as_heap_drain_new(&area, &to, &stacks);
	heap = NULL;
	nheaps = 0;
	m = (fn_size *)rt_host_hook(&host, AS_RT_SIZE, (const void *)malloc);
	f = (fn_free *)rt_host_hook(&host, AS_RT_FREE, (const void *)free);
	re = (fn_realloc *)rt_host_hook(&host, AS_RT_REALLOC, (const void *)realloc);
}

static void close_all(void)
{
	as_heap_drain_free(drain);
	for (size_t i = 0; i < nheaps; i++)
		as_heap_free_all(heaps[i]);
	as_heap_stacks_clear(&stacks);
	rt_host_close(&host);
}

static void round_now(void)
{
	on_tick(NULL);
	(void)as_heap_drain_round(drain, 1);
}

static void finish(void)
{
	as_heap_drain_finish(drain);
	for (size_t i = 0; i < nheaps; i++)
		as_heap_finish(heaps[i]);
}

static uint64_t odd(const struct as_heap *h)
{
	return h->unmatched_frees + h->unmatched_allocs + h->unmatched_reallocs;
}

/* ---- one thread: all of it is the same ---- */

struct owned {
	void *p;
	size_t size;
};

static struct {
	struct owned slot[SLOTS];
	uint64_t allocs, frees, reallocs, live, peak;
} truth;

static void grow_to(uint64_t live)
{
	truth.live = live;
	truth.peak = AS_MAX(truth.peak, live);
}

static size_t some_size(uint64_t *seed)
{
	return next(seed) % 40 ? next(seed) % 600 : next(seed) % 100000;
}

static void give(struct owned *o, size_t n)
{
	*o = (struct owned){m(n), n};
	truth.allocs++;
	grow_to(truth.live + n);
}

static void take(struct owned *o)
{
	f(o->p);
	truth.frees++;
	truth.live -= o->size;
	o->p = NULL;
}

static void change(struct owned *o, size_t n)
{
	o->p = re(o->p, n);
	truth.reallocs++;
	truth.live -= o->size;
	grow_to(truth.live + n);
	o->size = n;
}

/* A heap that grows and shrinks, with short-lived blocks all the time. */
static void live_through(uint64_t seed, int steps)
{
	memset(&truth, 0, sizeof truth);
	for (int i = 0; i < steps; i++) {
		size_t room = (size_t)(100 + i / 7 % SLOTS) % SLOTS + 1;
		struct owned *o = &truth.slot[next(&seed) % room], temporary;

		if (!o->p)
			give(o, some_size(&seed));
		else if (next(&seed) % 9 == 0)
			change(o, 1 + some_size(&seed));
		else
			take(o);
		give(&temporary, some_size(&seed));
		if (i % 3)
			take(&temporary);
		else
			f(temporary.p), truth.frees++, truth.live -= temporary.size;
		if (i % 997 == 0)
			round_now();
	}
}

static uint64_t sum_of(const struct as_heap *h, uint64_t peaks[2])
{
	uint64_t bytes = 0;

	peaks[0] = peaks[1] = 0;
	as_vec_foreach (t, &h->tallies) {
		bytes += t->bytes;
		peaks[0] += t->peak.bytes;
		peaks[1] += t->peak.blocks;
	}
	return bytes;
}

static void same_histogram(const struct as_heap *a, const struct as_heap *b, size_t off)
{
	for (uint32_t k = 0; k < AS_HISTOGRAM_BUCKETS; k++) {
		uint64_t n[2] = {0, 0};

		as_vec_foreach (t, &a->tallies)
			n[0] += as_histogram_get(
				(const struct as_histogram *)((const char *)t + off), k);
		as_vec_foreach (t, &b->tallies)
			n[1] += as_histogram_get(
				(const struct as_histogram *)((const char *)t + off), k);
		assert_int_equal(n[0], n[1]);
	}
}

static void clear_slots(void)
{
	for (size_t i = 0; i < SLOTS; i++)
		free(truth.slot[i].p);
}

static void one_thread_has_the_numbers_it_has_when_all_is_told(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 5; seed++) {
		uint64_t told[2], peaks[2], bytes;
		struct as_heap *whole;

		open_all(0);
		live_through(seed * 77777, 60000);
		finish();
		whole = heap;
		nheaps = 0; /* it is ours */
		told[0] = rt_host_ring(&host, 1)->pos;
		bytes = sum_of(whole, peaks);
		assert_int_equal(peaks[0], truth.peak);
		clear_slots();
		close_all();

		open_all(AS_RT_SUM_PAIRS);
		live_through(seed * 77777, 60000);
		finish();
		told[1] = rt_host_ring(&host, 1)->pos;
		print_message("%lu bytes told, %lu when pairs are summed up\n",
			      (unsigned long)told[0], (unsigned long)told[1]);
		assert_true(told[1] < told[0] * 2 / 3);
		assert_int_equal(odd(heap), 0);
		assert_int_equal(heap->allocs, truth.allocs + truth.reallocs);
		assert_int_equal(heap->frees, truth.frees + truth.reallocs);
		assert_int_equal(heap->events, whole->events);
		assert_int_equal(heap->zero, whole->zero);
		assert_int_equal(heap->sum[AS_HEAP_BLOCKS].live.bytes, truth.live);
		assert_int_equal(heap->sum[AS_HEAP_BLOCKS].peak.bytes, truth.peak);
		assert_int_equal(sum_of(heap, peaks), bytes);
		assert_int_equal(peaks[0], truth.peak);
		assert_int_equal(peaks[1], heap->sum[AS_HEAP_BLOCKS].peak.blocks);
		same_histogram(heap, whole, offsetof(struct as_heap_tally, sizes));
		same_histogram(heap, whole, offsetof(struct as_heap_tally, ages));
		clear_slots();
		close_all();
		as_heap_free_all(whole);
	}
}

/* One call of 128 is timed, allocations and frees alike; what it took is told for the process. */
static void calls_are_timed_and_what_they_took_is_told(void **state)
{
	enum { PAIRS = 64000 };
	const struct as_heap_drained *d;
	size_t n;

	(void)state;
	open_all(0);
	for (int i = 0; i < PAIRS; i++) {
		f(m(16 + (size_t)i % 64));
		if (i % 1000 == 0)
			round_now();
	}
	round_now();
	d = as_heap_drain_processes(drain, &n);
	assert_int_equal(n, 1);
	print_message("%lu of %d calls timed, %lu ns\n", (unsigned long)d->timed_calls,
		      2 * PAIRS, (unsigned long)d->timed_ns);
	assert_in_range(d->timed_calls, 2 * PAIRS / 128 * 3 / 4, 2 * PAIRS / 128 * 5 / 4);
	assert_true(d->timed_ns > 0);
	/* within what was spent: a call takes no millisecond */
	assert_true(d->timed_ns < d->timed_calls * 1000000);
	/* without the right to read the counter none is */
	uint64_t before = d->timed_calls;

	__atomic_or_fetch(&host.control->flags, AS_RT_NO_SYSCALLS, __ATOMIC_SEQ_CST);
	for (int i = 0; i < PAIRS; i++)
		f(m(16));
	d = as_heap_drain_processes(drain, &n);
	assert_int_equal(d->timed_calls, before);
	finish();
	close_all();
}

/* ---- while it goes on ---- */

static void what_is_pending_is_there_for_who_looks_and_not_twice(void **state)
{
	(void)state;
	const struct as_heap_amount *live;
	void *p[50];

	open_all(AS_RT_SUM_PAIRS);
	f(m(30000)); /* the maximum */
	for (int i = 0; i < 100; i++)
		f(m(64));
	for (int i = 0; i < 50; i++)
		p[i] = m(10);
	for (int times = 0; times < 3; times++) {
		round_now();
		live = &heap->sum[AS_HEAP_BLOCKS].live;
		assert_true(live->blocks < 50);
		as_heap_drain_settle(drain, 1);
		assert_int_equal(live->blocks, 50);
		assert_int_equal(live->bytes, 500);
		assert_int_equal(heap->allocs, 151);
		assert_int_equal(heap->frees, 101);
		assert_int_equal(heap->events, 252);
		as_heap_drain_hide(drain);
		assert_int_equal(heap->allocs, 101 + live->blocks);
	}
	as_heap_drain_show(drain);
	assert_int_equal(live->blocks, 50);
	as_heap_drain_hide(drain);
	host.control->mark_bytes = 1;
	host.control->mark_asked = 3;
	assert_true(as_heap_drain_asked(drain, 10));
	assert_int_equal(heap->marks.v[0].live.blocks, 50);
	for (int i = 0; i < 25; i++)
		f(p[i]);
	finish();
	assert_int_equal(heap->allocs, 151);
	assert_int_equal(heap->frees, 126);
	assert_int_equal(live->blocks, 25);
	assert_int_equal(heap->sum[AS_HEAP_BLOCKS].peak.bytes, 30000);
	assert_int_equal(odd(heap), 0);
	for (int i = 25; i < 50; i++)
		free(p[i]);
	close_all();
}

static void a_mark_of_the_program_has_what_is_pending(void **state)
{
	(void)state;
	open_all(AS_RT_SUM_PAIRS);
	fn_mark *volatile mark = (fn_mark *)rt_host_hook(&host, AS_RT_MARK, (const void *)free);
	f(m(9000));
	round_now();
	void *p = m(77);
	mark(NULL, 0);
	f(p);
	mark(NULL, 0);
	finish();
	assert_int_equal(heap->marks.n, 2);
	assert_int_equal(heap->marks.v[0].live.bytes, 77);
	assert_int_equal(heap->marks.v[1].live.bytes, 0);
	close_all();
}

/* ---- several threads ---- */

static void *volatile box[64];
static volatile bool stop;
static uint64_t calls[4][3]; /* allocations, frees, reallocs of each */

/* Takes what another has left, and frees it or leaves it changed; or leaves a block of its own. */
static void *pass_on(void *arg)
{
	uint64_t *n = calls[(uintptr_t)arg], seed = 99 + (uintptr_t)arg * 31337;

	for (int i = 0; i < 60000; i++) {
		void *mine = NULL, *other;

		f(m(next(&seed) % 300));
		n[0]++, n[1]++;
		if (next(&seed) % 3)
			mine = m(next(&seed) % 300), n[0]++;
		other = __atomic_exchange_n(&box[next(&seed) % 64], mine, __ATOMIC_ACQ_REL);
		if (other && next(&seed) % 4 == 0)
			other = re(other, 1 + next(&seed) % 500), n[2]++;
		if (other)
			f(other), n[1]++;
	}
	return NULL;
}

static void blocks_that_go_from_thread_to_thread_are_counted_exactly(void **state)
{
	pthread_t t[4];
	uint64_t n[3] = {0}, left = 0;
	size_t running = 4;

	(void)state;
	open_all(AS_RT_SUM_PAIRS);
	memset(calls, 0, sizeof calls);
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, pass_on, (void *)i);
	for (int look = 1; running; look++) {
		round_now();
		if (look % 50 == 0 && heap) {
			as_heap_drain_settle(drain, 1);
			as_heap_drain_hide(drain);
		}
		for (size_t i = 0; i < 4; i++) {
			if (t[i] && !pthread_tryjoin_np(t[i], NULL))
				t[i] = 0, running--;
		}
		usleep(100);
	}
	finish();
	for (int i = 0; i < 4; i++) {
		for (int k = 0; k < 3; k++)
			n[k] += calls[i][k];
	}
	for (int i = 0; i < 64; i++) {
		left += box[i] != NULL;
		free(box[i]);
		box[i] = NULL;
	}
	assert_int_equal(odd(heap), 0);
	assert_int_equal(heap->allocs, n[0] + n[2]);
	assert_int_equal(heap->frees, n[1] + n[2]);
	assert_int_equal(heap->reallocs, n[2]);
	assert_int_equal(heap->sum[AS_HEAP_BLOCKS].live.blocks, left);
	close_all();
}

/* The thread that has blocks pending is gone, and so is what it did. */
static void *leave_some(void *arg)
{
	f(m(20000));
	for (int i = 0; i < 100; i++)
		f(m(100));
	((void **)arg)[0] = m(50);
	((void **)arg)[1] = m(60);
	return NULL;
}

static void a_thread_that_ends_leaves_what_it_had(void **state)
{
	void *left[2] = {NULL, NULL};
	pthread_t t;

	(void)state;
	open_all(AS_RT_SUM_PAIRS);
	f(m(1));
	for (int i = 0; i < 3; i++) {
		pthread_create(&t, NULL, leave_some, left);
		pthread_join(t, NULL);
		round_now();
		f(left[0]); /* before its block is told */
		round_now();
		as_heap_drain_gone(drain, 2);
		round_now();
		assert_int_equal(host.control->owner[2], 0);
		assert_int_equal(heap->sum[AS_HEAP_BLOCKS].live.bytes, 60);
		f(left[1]);
	}
	finish();
	assert_int_equal(heap->allocs, 1 + 3 * 103);
	assert_int_equal(heap->frees, heap->allocs);
	assert_int_equal(odd(heap), 0);
	close_all();
}

static void *make_one_pair(void *arg)
{
	f(m(100));
	return arg;
}

/* A thread's first call is dear, and most that some threads do: it is timed as often as any other. */
static void first_calls_are_timed_as_rarely_as_others(void **state)
{
	enum { THREADS = 1000 };
	const struct as_heap_drained *d;
	pthread_t t;
	size_t n;

	(void)state;
	for (unsigned mode = 0; mode < 2; mode++) {
		open_all(mode ? AS_RT_SUM_PAIRS : 0);
		f(m(1));
		for (int i = 0; i < THREADS; i++) {
			pthread_create(&t, NULL, make_one_pair, NULL);
			pthread_join(t, NULL);
			round_now();
			as_heap_drain_gone(drain, 2);
			round_now();
			assert_int_equal(host.control->owner[2], 0);
		}
		d = as_heap_drain_processes(drain, &n);
		print_message("%lu of %d calls timed\n", (unsigned long)d->timed_calls,
			      2 * THREADS + 2);
		assert_in_range(d->timed_calls, 1, 2 * THREADS / 128 * 4);
		finish();
		close_all();
	}
}

/* ---- processes and signals ---- */

static void a_fork_has_its_own_and_what_is_killed_loses_nothing(void **state)
{
	void *p[20];
	pid_t pid;

	(void)state;
	open_all(AS_RT_SUM_PAIRS);
	f(m(20000));
	for (int i = 0; i < 20; i++)
		p[i] = m(100);
	pid = fork();
	if (!pid) {
		f(m(30000));
		for (int i = 0; i < 1000; i++)
			f(m(8));
		for (int i = 0; i < 7; i++)
			(void)!m(16);
		(void)raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (int i = 0; i < 10; i++)
		f(p[i]);
	finish();
	assert_int_equal(nheaps, 2);
	for (size_t i = 0; i < 2; i++) {
		bool child = heaps[i] != heap;

		assert_int_equal(heaps[i]->allocs, child ? 1008 : 21);
		assert_int_equal(heaps[i]->frees, child ? 1001 : 11);
		assert_int_equal(heaps[i]->sum[AS_HEAP_BLOCKS].live.bytes, child ? 112 : 1000);
		assert_int_equal(odd(heaps[i]), 0);
	}
	for (int i = 10; i < 20; i++)
		free(p[i]);
	close_all();
}

static char arena[1 << 16];
static size_t arena_at;
static fn_size *signal_alloc;
static fn_free *signal_free;
static volatile uint64_t handled;

static void *arena_alloc(size_t n)
{
	arena_at = (arena_at + n) & (sizeof arena - 1);
	return arena + arena_at;
}

static void arena_free(void *p)
{
	(void)p;
}

static void on_alarm(int sig)
{
	(void)sig;
	signal_free(signal_alloc(32));
	handled++;
}

static void handlers_within_a_change_of_the_tables_are_counted(void **state)
{
	struct itimerval on = {{0, 100}, {0, 100}}, off = {0};
	uint64_t pairs = 0, seed = 5;
	time_t start = time(NULL);

	(void)state;
	open_all(AS_RT_SUM_PAIRS);
	signal_alloc = (fn_size *)rt_host_hook(&host, AS_RT_SIZE, (const void *)arena_alloc);
	signal_free = (fn_free *)rt_host_hook(&host, AS_RT_FREE, (const void *)arena_free);
	handled = 0;
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &on, NULL);
	while (handled < 3000 && time(NULL) - start < 4) {
		for (int i = 0; i < 200; i++, pairs++)
			f(m(next(&seed) % 100));
		round_now();
	}
	setitimer(ITIMER_REAL, &off, NULL);
	signal(SIGALRM, SIG_DFL);
	finish();
	assert_true(handled > 50);
	assert_int_equal(odd(heap), 0);
	assert_int_equal(heap->allocs, pairs + handled);
	assert_int_equal(heap->frees, heap->allocs);
	close_all();
}

/* ---- modules that go ---- */

static uint64_t allocs_of(uint32_t module)
{
	uint64_t n = 0;

	as_vec_foreach (t, &heap->tallies) {
		const struct as_heap_stack *s = &stacks.stacks.v[t->key.stack];

		if (stacks.frames.v[s->frame].module == module)
			n += t->allocs;
	}
	return n;
}

/* As a notice does it: the host's map is read anew behind this. */
static void replace_module(uint32_t by)
{
	(void)as_heap_drain_round(drain, 1);
	as_heap_drain_remapped(drain, (uint32_t)getpid());
	module_there = by;
}

static void what_a_module_did_is_its_own_when_it_has_gone(void **unused)
{
	void *kept;

	(void)unused;
	module_there = 5;
	open_all(AS_RT_SUM_PAIRS);
	for (int i = 0; i < 1000; i++)
		f(m(100));
	kept = m(200); /* pending */
	replace_module(AS_HEAP_NONE);
	f(kept);
	replace_module(6);
	for (int i = 0; i < 30; i++)
		f(m(300));
	finish();
	module_there = AS_HEAP_NONE;
	assert_int_equal(heap->allocs, 1031);
	assert_int_equal(allocs_of(5), 1001);
	assert_int_equal(allocs_of(6), 30);
	close_all();
}

int main(void)
{
#ifdef __SANITIZE_THREAD__
	puts("1..0 # SKIP the thread sanitizer does not see into the image");
	return 77;
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread_has_the_numbers_it_has_when_all_is_told),
		cmocka_unit_test(calls_are_timed_and_what_they_took_is_told),
		cmocka_unit_test(what_is_pending_is_there_for_who_looks_and_not_twice),
		cmocka_unit_test(a_mark_of_the_program_has_what_is_pending),
		cmocka_unit_test(blocks_that_go_from_thread_to_thread_are_counted_exactly),
		cmocka_unit_test(a_thread_that_ends_leaves_what_it_had),
		cmocka_unit_test(first_calls_are_timed_as_rarely_as_others),
		cmocka_unit_test(a_fork_has_its_own_and_what_is_killed_loses_nothing),
		cmocka_unit_test(what_a_module_did_is_its_own_when_it_has_gone),
		cmocka_unit_test(handlers_within_a_change_of_the_tables_are_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

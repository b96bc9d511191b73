/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The in-target runtime and what programs do: threads, full rings, signals at 5 kHz, fork and
 * vfork, longjmp out of a call, calls within calls, coroutines on small stacks. Counts are exact.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include "../rt/frames.h"
#include "../rt/rt_view.h"

typedef void *fn_size(size_t);
typedef void fn_free(void *);

static struct rt_host host;
static struct view view;
static fn_size *m;
static fn_free *f;

static void open_host(const struct rt_host_options *o)
{
	rt_host_open(&host, o);
	view_open(&view, &host);
	m = (fn_size *)rt_host_hook(&host, AS_RT_SIZE, (const void *)malloc);
	f = (fn_free *)rt_host_hook(&host, AS_RT_FREE, (const void *)free);
}

static void close_host(void)
{
	rt_host_close(&host);
	view_close(&view);
}

static uint64_t lost(uint32_t ring, enum as_rt_record_kind kind)
{
	return rt_host_ring(&host, ring)->lost[kind];
}

/* ---- threads ---- */

#define PATHS 24

struct worker {
	pthread_t thread;
	bool joined;
	struct frames frames;
	long pairs;
	uint64_t seed, bytes;
	/* the unwinder's stack of each path, from this thread's first time there */
	struct {
		size_t n;
		uint64_t avma[64];
	} truth[PATHS];
	unsigned path;
};

static void by_thread(struct frames *fr, void *ptr)
{
	struct worker *w = (void *)((char *)fr - offsetof(struct worker, frames));
	if (!w->truth[w->path].n) {
		struct as_uframe frame[64];
		enum as_stack_end end;
		size_t n = truth_here(&host, frame, 64, &end);
		for (size_t i = 0; i < n; i++)
			w->truth[w->path].avma[i] = frame[i].avma;
		w->truth[w->path].n = n;
	}
	f(ptr);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	w->frames = (struct frames){.alloc = m, .then = by_thread};
	for (long i = 0; i < w->pairs; i++) {
		w->seed = w->seed * 6364136223846793005ull + 1442695040888963407ull;
		w->path = (unsigned)(w->seed >> 33) % PATHS;
		w->frames.size = 1000 + w->path;
		w->bytes += w->frames.size;
		frames_run(&w->frames, 3 + (int)w->path / 2,
			   w->path * 0x9e3779b97f4a7c15ull >> 11);
	}
	return NULL;
}

static struct worker workers[8];
static size_t nworkers, stacks_checked;

static void check_stack(struct view *v, uint32_t ring, const struct rt_record *r)
{
	static struct view_stack s;
	struct view_ring *g = v->ring[ring];
	if (r->u.head.kind != AS_RT_REC_ALLOC || g->count[AS_RT_REC_ALLOC] % 16)
		return;
	for (size_t i = 0; i < nworkers; i++) {
		if ((uint64_t)workers[i].thread != g->thread.fs)
			continue;
		unsigned path = (unsigned)(r->u.alloc.size_bytes - 1000);
		size_t n = workers[i].truth[path].n;
		if (!n) /* its first time: the worker has not looked yet */
			return;
		assert_true(view_stack(g, r->u.alloc.node, &s));
		assert_int_equal(s.n, n);
		for (size_t k = 1; k < n; k++)
			assert_int_equal(s.avma[k], workers[i].truth[path].avma[k]);
		stacks_checked++;
	}
}

static void exact_with(size_t threads, long pairs)
{
	open_host(&(struct rt_host_options){
		.ring_bytes = 1 << 18, .flags = AS_RT_WAIT_FULL, .full_wait_us = 20000000});
	view.each = check_stack;
	stacks_checked = 0;
	nworkers = threads;
	for (size_t i = 0; i < threads; i++) {
		workers[i] = (struct worker){.pairs = pairs, .seed = i};
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]),
				 0);
	}
	for (size_t gone = 0; gone < threads;) {
		view_drain(&view);
		gone = 0;
		for (size_t i = 0; i < threads; i++) {
			struct worker *w = &workers[i];
			w->joined = w->joined || !pthread_tryjoin_np(w->thread, NULL);
			gone += w->joined;
		}
		usleep(200);
	}
	view_drain(&view);
	uint64_t allocs = 0, frees = 0, bytes = 0, expected = 0, rings = 0;
	for (size_t i = 0; i < nworkers; i++)
		expected += workers[i].bytes;
	for (uint32_t i = 1; i < VIEW_RINGS; i++) {
		allocs += view.ring[i]->count[AS_RT_REC_ALLOC];
		frees += view.ring[i]->count[AS_RT_REC_FREE];
		bytes += view.ring[i]->bytes;
		rings += view.ring[i]->count[AS_RT_REC_THREAD];
		assert_int_equal(view.ring[i]->unknown_nodes, 0);
		assert_int_equal(view.ring[i]->count[AS_RT_REC_ALLOC] % (uint64_t)pairs, 0);
		assert_int_equal(lost(i, AS_RT_REC_ALLOC) + lost(i, AS_RT_REC_FREE), 0);
	}
	assert_int_equal(rings, nworkers);
	assert_int_equal(allocs, nworkers * (uint64_t)pairs);
	assert_int_equal(frees, allocs);
	assert_int_equal(bytes, expected);
	assert_true(stacks_checked > allocs / 20);
	close_host();
}

static void one_two_and_eight_threads_are_counted_exactly(void **state)
{
	(void)state;
	exact_with(1, 20000);
	exact_with(2, 20000);
	exact_with(8, 5000);
}

static void *one_pair(void *arg)
{
	(void)arg;
	f(m(5));
	return NULL;
}

static void contexts_are_given_back_and_without_one_events_are_counted(void **state)
{
	(void)state;
	pthread_t t;
	open_host(&(struct rt_host_options){.context_max = 3});
	f(m(1));
	for (int i = 0; i < 20; i++) {
		pthread_create(&t, NULL, one_pair, NULL);
		pthread_join(t, NULL);
		view_drain(&view);
		host.control->owner[2] = 0; /* the thread is gone, its ring is read */
	}
	assert_int_equal(view.ring[2]->count[AS_RT_REC_THREAD], 20);
	assert_int_equal(view.ring[2]->count[AS_RT_REC_ALLOC], 20);
	assert_int_equal(host.control->lost_no_context, 0);
	host.control->owner[2] = 1;
	for (int i = 0; i < 10; i++) {
		pthread_create(&t, NULL, one_pair, NULL);
		pthread_join(t, NULL);
	}
	assert_int_equal(host.control->lost_no_context, 20);
	f(m(1));
	view_drain(&view);
	assert_int_equal(view.ring[1]->count[AS_RT_REC_ALLOC], 2);
	close_host();
}

/* ---- threads that find no ring ---- */

#define RING_WAIT_US 200000

static void *gives_ring_2_back_when_wanted(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++) {
		while (__atomic_load_n(&host.control->ring_wants, __ATOMIC_ACQUIRE) <=
		       (uint32_t)i)
			usleep(100);
		host.control->heartbeat++;
		view_drain(&view);
		__atomic_store_n(&host.control->owner[2], 0, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void a_thread_without_a_ring_waits_for_one(void **state)
{
	(void)state;
	pthread_t t, back;
	open_host(&(struct rt_host_options){
		.context_max = 3, .flags = AS_RT_WAIT_FULL, .full_wait_us = 20 * 1000 * 1000});
	f(m(1));
	host.control->owner[2] = 1;
	pthread_create(&back, NULL, gives_ring_2_back_when_wanted, NULL);
	for (int i = 0; i < 20; i++) {
		pthread_create(&t, NULL, one_pair, NULL);
		pthread_join(t, NULL);
	}
	pthread_join(back, NULL);
	view_drain(&view);
	assert_int_equal(host.control->ring_wants, 20);
	assert_int_equal(host.control->rings_top, 3);
	assert_int_equal(host.control->lost_no_context, 0);
	assert_int_equal(view.ring[2]->count[AS_RT_REC_ALLOC], 20);
	assert_int_equal(view.ring[2]->count[AS_RT_REC_FREE], 20);
	close_host();
}

static uint64_t pairs_ns(unsigned n)
{
	struct timespec a, b;
	pthread_t t;

	clock_gettime(CLOCK_MONOTONIC, &a);
	while (n--) {
		pthread_create(&t, NULL, one_pair, NULL);
		pthread_join(t, NULL);
	}
	clock_gettime(CLOCK_MONOTONIC, &b);
	return (uint64_t)(b.tv_sec - a.tv_sec) * 1000000000u + (uint64_t)b.tv_nsec -
	       (uint64_t)a.tv_nsec;
}

static void no_ring_is_waited_for_where_none_will_come(void **state)
{
	(void)state;
	open_host(&(struct rt_host_options){
		.context_max = 3, .flags = AS_RT_WAIT_FULL, .full_wait_us = RING_WAIT_US});
	f(m(1));
	host.control->owner[2] = 1;
	/* the recorder says so */
	host.control->rings_full = 1;
	(void)pairs_ns(10);
	assert_int_equal(host.control->ring_wants, 0);
	assert_int_equal(host.control->lost_no_context, 20);
	/* the recorder is gone: one waits for it, and no other */
	host.control->rings_full = 0;
	assert_true(pairs_ns(1) >= RING_WAIT_US * 1000ull);
	(void)pairs_ns(10);
	assert_int_equal(host.control->ring_wants, 1);
	assert_int_equal(host.control->lost_no_context, 42);
	/* it is there again */
	host.control->heartbeat++;
	host.control->owner[2] = 0;
	(void)pairs_ns(1);
	assert_int_equal(host.control->lost_no_context, 42);
	close_host();
}

/* ---- full rings ---- */

static void what_a_full_ring_does_not_hold_is_counted_exactly(void **state)
{
	(void)state;
	static struct view_stack s;
	open_host(&(struct rt_host_options){.ring_bytes = 1 << 16});
	struct worker w = {.pairs = 10000, .seed = 5};
	struct view_ring *g = view.ring[1];
	for (int round = 1; round <= 3; round++) {
		work(&w);
		view_drain(&view);
		uint64_t told = g->count[AS_RT_REC_ALLOC], gone = lost(1, AS_RT_REC_ALLOC);
		assert_true(told > 100 && gone > 1000);
		assert_int_equal(told + gone, round * 10000);
		assert_int_equal(g->count[AS_RT_REC_FREE] + lost(1, AS_RT_REC_FREE),
				 round * 10000);
		assert_int_equal(g->bytes + rt_host_ring(&host, 1)->lost_bytes, w.bytes);
	}
	/* what comes after a loss has whole stacks again */
	w.frames.then = by_thread;
	w.path = 3;
	frames_run(&w.frames, 4, 0);
	view_drain(&view);
	assert_true(view_stack(
		g, g->last.u.head.kind == AS_RT_REC_ALLOC ? g->last.u.alloc.node : 1, &s));
	assert_int_equal(g->unknown_nodes, 0);
	close_host();
}

static void a_reader_that_stopped_is_not_waited_for_again(void **state)
{
	(void)state;
	open_host(&(struct rt_host_options){
		.ring_bytes = 1 << 16, .flags = AS_RT_WAIT_FULL, .full_wait_us = 20000});
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < 20000; i++)
		f(m(1));
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_int_equal(host.control->full_waits, 1);
	assert_true(lost(1, AS_RT_REC_ALLOC) > 1000);
	assert_true(b.tv_sec - a.tv_sec < 20); /* not 20 ms for each record */
	close_host();
}

/* ---- signals ---- */

/* An allocator a handler may call at any time. */
static char arena[1 << 16];
static size_t arena_at;

static void *arena_alloc(size_t n)
{
	arena_at = (arena_at + n) & (sizeof arena - 1);
	return arena + arena_at;
}

static void arena_free(void *p)
{
	(void)p;
}

static fn_size *signal_alloc;
static fn_free *signal_free;
static volatile unsigned long handled;

static void on_alarm(int sig)
{
	int before = errno;
	(void)sig;
	errno = 99;
	signal_free(signal_alloc(32));
	handled += errno == 99;
	errno = before;
}

static struct {
	size_t stacks, exact, complete, unknown, shared;
} of_signals;

static void look_at_handlers_stack(struct view *v, uint32_t ring, const struct rt_record *r)
{
	static struct view_stack s;
	struct view_ring *g = v->ring[ring];
	if (r->u.head.kind != AS_RT_REC_ALLOC || r->u.head.hook != 3)
		return;
	of_signals.stacks++;
	if (!view_stack(g, r->u.alloc.node, &s)) {
		of_signals.unknown++;
		return;
	}
	bool exact = false;
	for (size_t i = 0; i < s.n; i++)
		exact |= (s.flags[i] & AS_RT_NODE_EXACT) != 0;
	of_signals.exact += exact;
	of_signals.complete += s.end == AS_END_ROOT;
}

static void signals_for(bool other_stack)
{
	static char alternate[65536];
	stack_t ss = {.ss_sp = alternate, .ss_size = sizeof alternate}, old;
	struct sigaction sa = {.sa_handler = on_alarm,
			       .sa_flags = SA_RESTART | (other_stack ? SA_ONSTACK : 0)};
	struct itimerval on = {{0, 200}, {0, 200}}, off = {0};
	open_host(
		&(struct rt_host_options){.flags = AS_RT_WAIT_FULL, .full_wait_us = 10000000});
	signal_alloc = (fn_size *)rt_host_hook(&host, AS_RT_SIZE, (const void *)arena_alloc);
	signal_free = (fn_free *)rt_host_hook(&host, AS_RT_FREE, (const void *)arena_free);
	view.each = look_at_handlers_stack;
	memset(&of_signals, 0, sizeof of_signals);
	handled = 0;
	sigaltstack(&ss, &old);
	sigaction(SIGALRM, &sa, NULL);
	struct worker w = {.pairs = 50, .seed = 11};
	uint64_t pairs = 0;
	time_t start = time(NULL);
	setitimer(ITIMER_REAL, &on, NULL);
	while (handled < 1500 && time(NULL) - start < 4) {
		work(&w);
		pairs += 50;
		view_drain(&view);
	}
	setitimer(ITIMER_REAL, &off, NULL);
	signal(SIGALRM, SIG_DFL);
	sigaltstack(&old, NULL);
	view_drain(&view);
	/* a handler within the thread's first event has a ring of its own */
	uint64_t calls[5] = {0}, unknown = of_signals.unknown;
	for (uint32_t i = 1; i < VIEW_RINGS; i++) {
		for (unsigned hook = 1; hook < 5; hook++)
			calls[hook] += view.ring[i]->by_hook[AS_RT_REC_ALLOC][hook] +
				       view.ring[i]->by_hook[AS_RT_REC_FREE][hook];
		unknown += view.ring[i]->unknown_nodes;
	}
	print_message("%lu signals, %lu pairs: %zu with a signal frame, %zu complete\n",
		      handled, (unsigned long)pairs, of_signals.exact, of_signals.complete);
	assert_true(handled > 50);
	assert_int_equal(calls[1], pairs);
	assert_int_equal(calls[2], pairs);
	assert_int_equal(calls[3], handled);
	assert_int_equal(calls[4], handled);
	assert_int_equal(unknown, 0);
#ifndef __SANITIZE_THREAD__ /* which calls handlers later, from its own code */
	assert_int_equal(of_signals.exact, of_signals.stacks);
	/* interrupted in a thunk or by lazy binding: no table says how to go on */
	assert_true(of_signals.complete * 10 >= of_signals.stacks * 9);
#endif
	close_host();
}

static void handlers_that_allocate_are_counted_at_5_khz(void **state)
{
	(void)state;
	signals_for(true);
	signals_for(false);
}

/* ---- calls that do not return, calls within calls ---- */

static jmp_buf away;
static bool leave_by_jump;

static void *jumping(size_t n)
{
	if (leave_by_jump)
		longjmp(away, 1);
	return malloc(n);
}

static __attribute__((noinline)) void deep_call(fn_size *alloc, int depth)
{
	volatile char room[200];
	room[0] = (char)depth;
	if (depth)
		deep_call(alloc, depth - 1);
	else
		free(alloc(7));
	room[1] = room[0];
}

static void calls_left_by_longjmp_do_not_hide_later_ones(void **state)
{
	(void)state;
	open_host(&(struct rt_host_options){0});
	fn_size *j = (fn_size *)rt_host_hook(&host, AS_RT_SIZE, (const void *)jumping);
	for (int depth = 0; depth < 12; depth += 3) {
		leave_by_jump = true;
		if (!setjmp(away))
			deep_call(j, 5);
		leave_by_jump = false;
		/* above, at, and below the place it was left from */
		deep_call(j, depth);
	}
	view_drain(&view);
	assert_int_equal(view.ring[1]->count[AS_RT_REC_ALLOC], 4);
	close_host();
}

static __attribute__((noinline)) void *calls_another(size_t n)
{
	f(m(3));
	void *p = m(n);
	__asm__ volatile("" ::: "memory");
	return p;
}

static void calls_within_a_call_are_part_of_it(void **state)
{
	(void)state;
	open_host(&(struct rt_host_options){0});
	fn_size *outer =
		(fn_size *)rt_host_hook(&host, AS_RT_SIZE, (const void *)calls_another);
	for (int i = 0; i < 100; i++)
		f(outer(100));
	f(m(1));
	view_drain(&view);
	assert_int_equal(view.ring[1]->by_hook[AS_RT_REC_ALLOC][3], 100);
	assert_int_equal(view.ring[1]->by_hook[AS_RT_REC_ALLOC][1], 1);
	assert_int_equal(view.ring[1]->count[AS_RT_REC_FREE], 101);
	close_host();
}

/* ---- processes ---- */

static void a_forked_child_has_its_own_ring(void **state)
{
	(void)state;
	open_host(&(struct rt_host_options){0});
	for (int i = 0; i < 10; i++)
		f(m(1));
	pid_t pid = fork();
	if (!pid) {
		for (int i = 0; i < 33; i++)
			f(m(2));
		_exit(0);
	}
	for (int i = 0; i < 10; i++)
		f(m(1));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	view_drain(&view);
	assert_int_equal(view.ring[1]->count[AS_RT_REC_ALLOC], 20);
	assert_int_equal(view.ring[1]->thread.pid, getpid());
	assert_int_equal(view.ring[2]->count[AS_RT_REC_ALLOC], 33);
	assert_int_equal(view.ring[2]->thread.pid, pid);
	assert_int_equal(view.ring[2]->unknown_nodes, 0);
	host.control->flags |= AS_RT_NO_CHILDREN;
	pid = fork();
	if (!pid) {
		for (int i = 0; i < 1000; i++)
			f(m(2));
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(view_drain(&view), 0);
	assert_int_equal(host.control->lost_no_context, 0);
	close_host();
}

static void a_vfork_child_writes_as_its_parent(void **state)
{
	(void)state;
	open_host(&(struct rt_host_options){0});
	f(m(1));
	pid_t pid = vfork();
	if (!pid) {
		f(m(2));
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	f(m(1));
	view_drain(&view);
	assert_int_equal(view.ring[1]->count[AS_RT_REC_ALLOC], 3);
	assert_int_equal(view.ring[2]->count[AS_RT_REC_ALLOC], 0);
	close_host();
}

/* ---- stacks of other makes ---- */

static ucontext_t here, there;

/* No more stack than its own frame. */
static void *constant(size_t n)
{
	(void)n;
	return arena;
}

static fn_size *co_alloc;

static void coroutine(void)
{
	for (int i = 0; i < 3; i++)
		__asm__ volatile("" : : "r"(co_alloc(9)) : "memory");
}

/* Bytes of a 16 KiB stack that a coroutine which calls `alloc` uses. */
static size_t stack_used(fn_size *alloc, size_t bytes)
{
	static _Alignas(4096) uint8_t stack[65536];
	memset(stack, 0xa5, sizeof stack);
	co_alloc = alloc;
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = bytes;
	there.uc_link = &here;
	makecontext(&there, coroutine, 0);
	swapcontext(&here, &there);
	size_t untouched = 0;
	while (untouched < bytes && stack[untouched] == 0xa5)
		untouched++;
	return bytes - untouched;
}

static void a_call_takes_less_than_1500_bytes_of_stack(void **state)
{
	(void)state;
	open_host(&(struct rt_host_options){0});
	fn_size *alloc = (fn_size *)rt_host_hook(&host, AS_RT_SIZE, (const void *)constant);
	size_t plain = stack_used(constant, 16384);
	host.control->modules_seq++; /* nothing known: the longest way */
	host.control->module_set[1] = host.control->module_set[0];
	rt_host_publish(&host);
	size_t with = stack_used(alloc, 16384);
	f(m(1));
	size_t warm = stack_used(alloc, 16384);
	print_message("stack: %zu bytes, %zu with the runtime, %zu warm\n", plain, with, warm);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(with - plain <= 1500 && warm - plain <= 1500);
#endif
	close_host();
}

static void coroutines_have_whole_stacks(void **state)
{
	(void)state;
	static struct view_stack s;
	open_host(&(struct rt_host_options){0});
	fn_size *alloc = (fn_size *)rt_host_hook(&host, AS_RT_SIZE, (const void *)constant);
	for (int i = 0; i < 10; i++) {
		(void)stack_used(alloc, 8192);
		f(m(1));
		(void)stack_used(alloc, 65536);
		view_drain(&view);
		assert_int_equal(view.ring[1]->last.u.head.kind, AS_RT_REC_ALLOC);
		assert_true(view_stack(view.ring[1], view.ring[1]->last.u.alloc.node, &s));
		assert_int_equal(s.end, AS_END_ROOT); /* __start_context */
		assert_in_range(s.n, 2, 4);
	}
	assert_int_equal(view.ring[1]->count[AS_RT_REC_ALLOC], 70);
	close_host();
}

/* A stack that ends where memory ends, with a frame chain that points beyond. */
static void stacks_that_end_at_unmapped_memory_are_cut_not_read(void **state)
{
	(void)state;
	static struct view_stack s;
	size_t bytes = 16384;
	open_host(&(struct rt_host_options){0});
	fn_size *alloc = (fn_size *)rt_host_hook(&host, AS_RT_SIZE, (const void *)constant);
	char *p = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(munmap(p + bytes, bytes), 0);
	co_alloc = alloc;
	getcontext(&there);
	there.uc_stack.ss_sp = p;
	there.uc_stack.ss_size = bytes;
	there.uc_link = &here;
	makecontext(&there, coroutine, 0);
	/* libc's code has no table now: by what is in rbp, which points to the last word */
	for (size_t i = 0; i < host.nmodules - 1; i++)
		host.module[i].has_table = false;
	rt_host_publish(&host);
	there.uc_mcontext.gregs[REG_RBP] = (greg_t)(uintptr_t)(p + bytes - 8);
	swapcontext(&here, &there);
	view_drain(&view);
	assert_int_equal(view.ring[1]->count[AS_RT_REC_ALLOC], 3);
	assert_true(view_stack(view.ring[1], view.ring[1]->last.u.alloc.node, &s));
	assert_int_not_equal(s.end, AS_END_ROOT);
	munmap(p, bytes);
	close_host();
}

/* ---- told and waited for ---- */

static volatile bool answering;

static void *answer(void *arg)
{
	(void)arg;
	while (answering) {
		uint32_t serial = __atomic_load_n(&host.control->sync_serial, __ATOMIC_ACQUIRE);
		__atomic_store_n(&host.control->modules_done, serial, __ATOMIC_RELEASE);
		syscall(SYS_futex, &host.control->modules_done, 1 /* FUTEX_WAKE */, 8, NULL,
			NULL, 0);
		usleep(500);
	}
	return NULL;
}

static int linked;

static void r_brk(void)
{
	linked++;
}

static void changed_modules_are_told_and_waited_for_but_not_for_ever(void **state)
{
	(void)state;
	struct timespec a, b;
	pthread_t t;
	open_host(&(struct rt_host_options){0});
	void (*brk_hook)(void) =
		(void (*)(void))rt_host_hook(&host, AS_RT_MODULES, (const void *)r_brk);
	linked = 0;
	answering = true;
	pthread_create(&t, NULL, answer, NULL);
	for (int i = 0; i < 20; i++)
		brk_hook();
	answering = false;
	pthread_join(t, NULL);
	assert_int_equal(linked, 20);
	view_drain(&view);
	const struct rt_record *r = &view.ring[1]->last;
	assert_int_equal(view.ring[1]->count[AS_RT_REC_SYNC], 20);
	assert_int_equal(r->u.sync.kind, AS_RT_MODULES);
	assert_int_equal(r->u.sync.serial, 20);
	assert_int_equal(r->u.sync.pid, getpid());
	assert_int_equal(host.control->sync_timeouts, 0);
	clock_gettime(CLOCK_MONOTONIC, &a);
	brk_hook();
	clock_gettime(CLOCK_MONOTONIC, &b);
	double s = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
	assert_true(s >= 0.19 && s < 10);
	assert_int_equal(host.control->sync_timeouts, 1);
	assert_int_equal(linked, 21);
	close_host();
}

int main(void)
{
#ifdef __SANITIZE_THREAD__
	/* the orders that make reading a ring safe are in the image, which is not instrumented */
	puts("1..0 # SKIP the thread sanitizer does not see into the image");
	return 77;
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_two_and_eight_threads_are_counted_exactly),
		cmocka_unit_test(contexts_are_given_back_and_without_one_events_are_counted),
		cmocka_unit_test(a_thread_without_a_ring_waits_for_one),
		cmocka_unit_test(no_ring_is_waited_for_where_none_will_come),
		cmocka_unit_test(what_a_full_ring_does_not_hold_is_counted_exactly),
		cmocka_unit_test(a_reader_that_stopped_is_not_waited_for_again),
		cmocka_unit_test(handlers_that_allocate_are_counted_at_5_khz),
		cmocka_unit_test(calls_left_by_longjmp_do_not_hide_later_ones),
		cmocka_unit_test(calls_within_a_call_are_part_of_it),
		cmocka_unit_test(a_forked_child_has_its_own_ring),
		cmocka_unit_test(a_vfork_child_writes_as_its_parent),
		cmocka_unit_test(a_call_takes_less_than_1500_bytes_of_stack),
		cmocka_unit_test(coroutines_have_whole_stacks),
		cmocka_unit_test(stacks_that_end_at_unmapped_memory_are_cut_not_read),
		cmocka_unit_test(changed_modules_are_told_and_waited_for_but_not_for_ever),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

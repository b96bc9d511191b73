/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A look at real children that stand still: blocks are told by the child through shared memory, so that
 * classes, pauses and parts are those of real memory without anything put into it.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/sys.h"
#include "heap/leak.h"
#include "heap/resident.h"
#include "snapshot/snapshot.h"

/* The sanitizer's allocator keeps what is freed and puts much around each block. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

enum { TALLIES = 8, BLOCKS = SANITIZED ? 1 << 15 : 1 << 20, PAGE = 4096 };

/* What the child tells of its blocks; addresses are turned, so that these are no pointers. */
struct told {
	uint64_t n, beats;
	volatile uint32_t ready;
	struct {
		uint64_t turned, bytes;
		uint32_t tally;
	} block[BLOCKS];
};
static struct told *told;

static void tell(void *p, uint64_t bytes, uint32_t tally)
{
	told->block[told->n].turned = ~(uint64_t)(uintptr_t)p;
	told->block[told->n].bytes = bytes;
	told->block[told->n++].tally = tally;
}

/* What was in registers and below the stack pointer is no longer there. */
static __attribute__((noinline)) void wipe_stack(void)
{
	volatile char below[16384];

	memset((char *)below, 0, sizeof below);
	__asm__ volatile("" ::"r"(below) : "memory", "rbx", "r12", "r13", "r14", "r15");
}

static void wait_for_the_end(void)
{
	told->ready = 1;
	for (;;) {
		told->beats++;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

static pid_t child;

static void start(void (*body)(void))
{
	told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		    0);
	assert_ptr_not_equal(told, MAP_FAILED);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		body();
		wipe_stack();
		wait_for_the_end();
	}
	while (!told->ready) {
		assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

static struct as_heap *heap;

static void read_told(void *ctx)
{
	uint32_t thread = as_heap_thread(heap, 0), tally[TALLIES];

	(void)ctx;
	for (uint32_t i = 0; i < TALLIES; i++)
		tally[i] = as_heap_tally(heap,
					 &(struct as_heap_key){.thread = thread, .stack = i});
	for (uint64_t i = 0; i < told->n; i++)
		as_heap_alloc(heap, tally[told->block[i].tally], ~told->block[i].turned,
			      told->block[i].bytes);
}

static bool look_at(struct as_snapshot_spec *spec)
{
	struct as_error err = {0};

	if (as_snapshot_look(spec, &err) < 0) {
		print_message("%s\n", err.msg);
		return false;
	}
	assert_non_null(heap->leaks);
	assert_non_null(heap->resident);
	return true;
}

static bool look(bool stay)
{
	struct as_snapshot_spec spec = {.pid = child, .drain = read_told, .stay = stay};

	heap = spec.heap = as_heap_new(0);
	return look_at(&spec);
}

/* As in a recording: nearly all of the blocks are in the heap before the process is stopped. */
static bool look_at_what_is_known(void)
{
	struct as_snapshot_spec spec = {.pid = child};

	heap = spec.heap = as_heap_new(0);
	read_told(NULL);
	return look_at(&spec);
}

static void stop_child(void)
{
	as_heap_free_all(heap);
	heap = NULL;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	munmap(told, sizeof *told);
}

static const struct as_leak_row *row(uint32_t tally)
{
	as_vec_foreach (r, &heap->leaks->rows) {
		if (r->tally == tally)
			return r;
	}
	fail_msg("no row %u", tally);
	return NULL;
}

static uint64_t part(enum as_resident_kind kind)
{
	uint64_t sum = 0;

	as_vec_foreach (p, &heap->resident->parts)
		sum += p->kind == kind ? p->bytes : 0;
	return sum;
}

/* ---- classes ---- */

static char told_nobody[1];
/* volatile: what is only written is not left out */
static void *volatile kept_in_data = told_nobody;
static void *volatile kept_in_bss[100];
static _Thread_local void *volatile kept_in_tls;
struct list {
	struct list *next;
	char rest[40];
};

static void *tell_malloc(uint64_t bytes, uint32_t tally)
{
	void *p = calloc(1, bytes);

	tell(p, bytes, tally);
	/* what is written to it is not left out */
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

static __attribute__((noinline)) void classes(void)
{
	struct list *head = NULL;

	kept_in_data = tell_malloc(100, 0);
	kept_in_bss[50] = tell_malloc(100, 0);
	kept_in_tls = tell_malloc(100, 0);
	/* reachable through another; a large one with a mapping of its own */
	*(void **)kept_in_data = tell_malloc(1 << 20, 0);
	/* a lost tree of 1 + 1000 */
	for (int i = 0; i < 1000; i++) {
		struct list *l = tell_malloc(sizeof *l, 2);

		l->next = head;
		head = l;
	}
	*(void **)tell_malloc(64, 1) = head;
	/* inside only */
	kept_in_bss[51] = (char *)tell_malloc(300, 3) + 100;
	/* lost and alone, one of them large */
	(void)tell_malloc(2000, 4);
	(void)tell_malloc(1 << 20, 4);
	__asm__ volatile("" ::: "memory");
}

static void check_classes(void)
{
	assert_int_equal(row(0)->amount[AS_LEAK_REACHABLE].blocks, 4);
	assert_int_equal(row(1)->amount[AS_LEAK_LOST].blocks, 1);
	assert_int_equal(row(1)->owned.blocks, 1000);
	assert_int_equal(row(1)->owned.bytes, 1000 * sizeof(struct list));
	assert_int_equal(row(2)->amount[AS_LEAK_INDIRECT].blocks, 1000);
	assert_int_equal(row(3)->amount[AS_LEAK_POSSIBLE].blocks, 1);
	assert_int_equal(row(4)->amount[AS_LEAK_LOST].blocks, 2);
	assert_int_equal(heap->leaks->unread_bytes, 0);
}

static void blocks_of_a_child_get_their_classes(void **state)
{
	(void)state;
	if (SANITIZED)
		skip(); /* its large frames keep stale pointers */
	start(classes);
	for (int stay = 0; stay < 2; stay++) {
		if (!look(stay)) {
			stop_child();
			skip(); /* ptrace is not allowed */
		}
		check_classes();
		as_heap_free_all(heap);
	}
	heap = NULL;
	stop_child();
}

/* ---- what a look leaves behind ---- */

static void the_child_goes_on_and_has_no_child_it_does_not_know(void **state)
{
	uint64_t before;
	char path[64];
	AS_CLEANUP(as_buf_clear) struct as_buf children = {0};

	(void)state;
	start(classes);
	if (!look(false)) {
		stop_child();
		skip();
	}
	before = told->beats;
	for (int i = 0; i < 2000 && told->beats < before + 10; i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_true(told->beats >= before + 10);
	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)child, (int)child);
	if (as_read_file(path, 4096, &children, NULL) >= 0)
		assert_string_equal(as_buf_str(&children), "");
	stop_child();
}

/* ---- threads ---- */

static pthread_barrier_t barrier;

static void *keeps_on_its_stack(void *arg)
{
	void *volatile p = tell_malloc(200, 0);

	kept_in_tls = tell_malloc(200, 0);
	(void)arg;
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
	return p;
}

static void *loses_on_its_stack(void *arg)
{
	void *volatile p[64];

	(void)arg;
	for (int i = 0; i < 64; i++)
		p[i] = tell_malloc(48, 1);
	(void)p;
	return NULL;
}

static void threads(void)
{
	pthread_t t;

	pthread_barrier_init(&barrier, NULL, 2);
	/* its stack is kept by the C library, with what was on it */
	pthread_create(&t, NULL, loses_on_its_stack, NULL);
	pthread_join(t, NULL);
	pthread_create(&t, NULL, loses_on_its_stack, NULL);
	pthread_detach(t);
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	for (int i = 0; i < 3; i++) {
		pthread_create(&t, NULL, keeps_on_its_stack, NULL);
		pthread_barrier_wait(&barrier);
	}
	/* a larger one, that nobody takes over */
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 16 << 20);
	pthread_create(&t, &a, loses_on_its_stack, NULL);
	pthread_join(t, NULL);
}

static void stacks_in_use_are_roots_and_those_of_ended_threads_are_not(void **state)
{
	(void)state;
	if (SANITIZED)
		skip(); /* it remembers threads, and what was on their stacks */
	start(threads);
	if (!look(false)) {
		stop_child();
		skip();
	}
	assert_int_equal(heap->leaks->threads, 4);
	assert_int_equal(row(0)->amount[AS_LEAK_REACHABLE].blocks, 6);
	assert_int_equal(row(1)->amount[AS_LEAK_LOST].blocks, 3 * 64);
	stop_child();
}

/* ---- resident memory ---- */

static void fragments(void)
{
	void **p = malloc(100000 * sizeof *p);

	for (int i = 0; i < 100000; i++)
		p[i] = memset(malloc(200), 1, 200);
	for (int i = 0; i < 100000; i++) {
		if (i % 1000)
			free(p[i]);
		else
			tell(p[i], 200, 0);
	}
	free(p);
	/* asked for, of which a quarter is touched */
	tell(memset(malloc(8 << 20), 1, 2 << 20), 8 << 20, 1);
}

static void parts_sum_up_to_what_is_resident(void **state)
{
	uint64_t sum = 0;

	(void)state;
	if (SANITIZED)
		skip();
	start(fragments);
	if (!look(false)) {
		stop_child();
		skip();
	}
	for (unsigned k = 0; k < AS_RESIDENT_KINDS; k++)
		sum += part(k);
	assert_in_range(sum, heap->resident->rss_bytes - heap->resident->rss_bytes / 100,
			heap->resident->rss_bytes + heap->resident->rss_bytes / 100);
	assert_in_range(part(AS_RESIDENT_LIVE), (2 << 20) + 100 * 200,
			(2 << 20) + 100 * 200 + 2 * PAGE);
	assert_in_range(heap->resident->untouched_bytes, (6 << 20) - 2 * PAGE, 6 << 20);
	assert_true(part(AS_RESIDENT_HELD) > 15 << 20);
	/* 100 blocks of 200 bytes, each in one page or two */
	assert_in_range(heap->resident->pinned_pages, 90, 220);
	assert_int_equal(heap->resident->pins.n, 1);
	assert_in_range(heap->resident->pins.v[0].bytes, 90 * 3800, 220 * 4096);
	assert_true(heap->resident->free_bytes > 14 << 20);
	stop_child();
}

/* ---- much ---- */

static void a_million(void)
{
	void **before = (void **)&kept_in_data;

	for (int i = 0; i < BLOCKS - 1; i++) {
		void **p = malloc(960);

		memset(p, 0, 960);
		tell(p, 960, (uint32_t)i % TALLIES);
		*before = p;
		before = p + 3;
	}
}

static void a_million_blocks_of_a_kib_are_looked_at(void **state)
{
	uint64_t cpu;

	(void)state;
	start(a_million);
	if (!look_at_what_is_known()) {
		stop_child();
		skip();
	}
	cpu = heap->leaks->cpu_ns;
	assert_int_equal(heap->leaks->sum[AS_LEAK_REACHABLE].blocks, BLOCKS - 1);
	assert_int_equal(heap->leaks->sum[AS_LEAK_LOST].blocks, 0);
	print_message("%.2f GiB in %.2f s of CPU time, stood still for %.0f ms\n",
		      (double)heap->leaks->scanned_bytes / (1 << 30), (double)cpu / 1e9,
		      (double)heap->leaks->pause_ns / 1e6);
	stop_child();
}

/* ---- a process that ends, and one that is nobody's ---- */

static void what_has_ended_is_said(void **state)
{
	struct as_snapshot_spec spec = {.heap = as_heap_new(0)};
	struct as_error err = {0};

	(void)state;
	spec.pid = fork();
	if (!spec.pid)
		_exit(0);
	waitpid(spec.pid, NULL, 0);
	assert_int_equal(as_snapshot_look(&spec, &err), AS_E_NOTFOUND);
	assert_null(spec.heap->leaks);
	as_heap_free_all(spec.heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_of_a_child_get_their_classes),
		cmocka_unit_test(the_child_goes_on_and_has_no_child_it_does_not_know),
		cmocka_unit_test(stacks_in_use_are_roots_and_those_of_ended_threads_are_not),
		cmocka_unit_test(parts_sum_up_to_what_is_resident),
		cmocka_unit_test(a_million_blocks_of_a_kib_are_looked_at),
		cmocka_unit_test(what_has_ended_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

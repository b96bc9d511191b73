/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * recipes WHAT: small programs whose memory is known to the byte, each a case that a recorder of memory
 * has told wrong. tests/live/heap_right.bats says for each what is right.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))
#define BARRIER  __asm__ volatile("" ::: "memory")

/* volatile: no pair of them is left out */
static void *(*volatile do_malloc)(size_t) = malloc;
static void *(*volatile do_realloc)(void *, size_t) = realloc;
static void (*volatile do_free)(void *) = free;

/* ---- life ---- */

/* 100 blocks, then none of them: no pair lies side by side, and none is of use for longer than 200
 * calls. */
static NOINLINE void burst(void)
{
	void *p[100];

	for (int i = 0; i < 100; i++)
		p[i] = do_malloc(64);
	for (int i = 0; i < 100; i++)
		do_free(p[i]);
	BARRIER;
}

static void *bursts(void *arg)
{
	for (int i = 0; i < 51; i++)
		burst();
	return arg;
}

static void spike(void)
{
	bursts(NULL);
}

static void two_spikes(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, bursts, NULL))
		abort();
	bursts(NULL);
	pthread_join(t, NULL);
}

/* One block that grows 1,000 times by 16 bytes. */
static NOINLINE void grow(void)
{
	void *p = do_malloc(16);

	for (size_t i = 2; i <= 1001; i++)
		p = do_realloc(p, 16 * i);
	do_free(p);
	BARRIER;
}

/* ---- the peak ---- */

static pthread_barrier_t step;

/* Blocks of 10,000 bytes: those of one thread come while those of the other go. */
static NOINLINE void ramp_a(void **p)
{
	for (int i = 0; i < 40; i++)
		p[i] = do_malloc(10000);
	pthread_barrier_wait(&step); /* 40 and 0 */
	pthread_barrier_wait(&step); /* 40 and 60: the peak */
	for (int i = 0; i < 40; i++)
		do_free(p[i]);
	pthread_barrier_wait(&step); /* 0 and 60 */
	for (int i = 0; i < 35; i++)
		p[i] = do_malloc(10000);
	pthread_barrier_wait(&step); /* 35 and 60 */
	for (int i = 0; i < 35; i++)
		do_free(p[i]);
}

static NOINLINE void ramp_b(void **p)
{
	pthread_barrier_wait(&step);
	for (int i = 0; i < 60; i++)
		p[i] = do_malloc(10000);
	pthread_barrier_wait(&step);
	pthread_barrier_wait(&step);
	pthread_barrier_wait(&step);
	for (int i = 0; i < 60; i++)
		do_free(p[i]);
}

static void *thread_b(void *arg)
{
	static void *p[60];

	ramp_b(p);
	return arg;
}

static void phases(void)
{
	static void *p[40];
	pthread_t t;

	pthread_barrier_init(&step, NULL, 2);
	if (pthread_create(&t, NULL, thread_b, NULL))
		abort();
	ramp_a(p);
	pthread_join(t, NULL);
}

/* ---- stacks ---- */

static NOINLINE void left(unsigned turns, int depth);
static NOINLINE void right(unsigned turns, int depth);

static NOINLINE void leaf(unsigned turns)
{
	do_free(do_malloc(turns % 100 + 1));
	BARRIER;
}

static void turn(unsigned turns, int depth)
{
	if (!depth)
		leaf(turns);
	else if (turns & 1)
		left(turns >> 1, depth - 1);
	else
		right(turns >> 1, depth - 1);
	BARRIER;
}

static NOINLINE void left(unsigned turns, int depth)
{
	turn(turns, depth);
	BARRIER;
}

/* Not a copy of the other, or both would become one. */
static NOINLINE void right(unsigned turns, int depth)
{
	turn(turns, depth);
	__asm__ volatile("nop" ::: "memory");
}

/* 65,536 stacks, each once, and each once more. */
static void many_stacks(void)
{
	for (int twice = 0; twice < 2; twice++) {
		for (unsigned i = 0; i < 1 << 16; i++)
			turn(i, 16);
	}
}

static NOINLINE void deeper(int n)
{
	if (n)
		deeper(n - 1);
	else
		do_free(do_malloc(500));
	BARRIER;
}

static void deep(void)
{
	deeper(100);
	deeper(1000);
	BARRIER;
}

/* The call is the last instruction: what stands behind it is another function. */
static NOINLINE __attribute__((noreturn)) void allocate_and_end(void)
{
	void *volatile p = do_malloc(777);

	(void)p;
	exit(0);
}

static NOINLINE __attribute__((noreturn)) void ends_with_a_call(void)
{
	allocate_and_end();
}

static NOINLINE void stands_behind_it(void)
{
	puts("never");
}

static inline __attribute__((always_inline)) void *inlined(size_t n)
{
	return do_malloc(n);
}

static NOINLINE void holds_inlined(void)
{
	do_free(inlined(4000));
	BARRIER;
}

/* ---- threads ---- */

enum { PASSED = 3000 };
static _Atomic(void *) passed[PASSED];

static NOINLINE void consume(void)
{
	for (int i = 0; i < PASSED; i++) {
		void *p;

		while (!(p = atomic_exchange(&passed[i], NULL)))
			;
		do_free(p);
	}
}

static void *consumer(void *arg)
{
	consume();
	return arg;
}

static NOINLINE void produce(void)
{
	for (int i = 0; i < PASSED; i++)
		atomic_store(&passed[i], do_malloc(40));
	BARRIER;
}

static void cross(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, consumer, NULL))
		abort();
	produce();
	pthread_join(t, NULL);
}

/* Addresses go from one thread to the next at once: the order of events is that of the blocks. */
static void *vectors(void *arg)
{
	for (int i = 0; i < 300; i++) {
		void *p = do_malloc(8);

		for (size_t n = 16; n <= 8192; n *= 2)
			p = do_realloc(p, n);
		do_free(p);
	}
	return arg;
}

static void eight_vectors(void)
{
	pthread_t t[8];

	for (int i = 0; i < 8; i++) {
		if (pthread_create(&t[i], NULL, vectors, NULL))
			abort();
	}
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
}

/* ---- what a block takes ---- */

static void *kept[1000], *volatile untouched;

/* glibc rounds 129 bytes up to 136, behind 8 of its own. */
static NOINLINE void odd_sizes(void)
{
	for (int i = 0; i < 1000; i++)
		kept[i] = memset(do_malloc(129), 1, 129);
	BARRIER;
}

static void usable(void)
{
	odd_sizes();
	untouched = do_malloc(512 << 10);
}

enum { WORKERS = 32, EACH = 4000 };
static void *fragments[WORKERS][EACH];
static atomic_int waiting;

static NOINLINE void *scatter(void *arg)
{
	void **mine = arg;

	for (int i = 0; i < EACH; i++)
		mine[i] = memset(do_malloc(200), 1, 200);
	/* all at a time: each has an arena of its own, as far as there are some */
	waiting++;
	while (waiting < WORKERS)
		;
	return NULL;
}

static void pinned(void)
{
	pthread_t t[WORKERS];

	for (int i = 0; i < WORKERS; i++) {
		if (pthread_create(&t[i], NULL, scatter, fragments[i]))
			abort();
	}
	for (int i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < WORKERS; i++) {
		for (int k = 0; k < EACH; k++) {
			if (k % 1000)
				do_free(fragments[i][k]);
		}
	}
}

/* ---- sampling ---- */

static NOINLINE void many_small(void)
{
	for (int i = 0; i < 1000000; i++)
		do_free(do_malloc(8));
	BARRIER;
}

static NOINLINE void one_large(void)
{
	do_free(do_malloc(8000000));
	BARRIER;
}

static void sampled(void)
{
	many_small();
	one_large();
}

static void odd_calls(void)
{
	do_free(do_malloc(0));
	do_free(NULL);
	do_free(do_realloc(NULL, 30));
	if (do_malloc(SIZE_MAX / 2))
		abort();
	do_free(do_realloc(do_malloc(10), 20));
}

static void none(void)
{
}

static const struct {
	const char *name;
	void (*run)(void);
} all[] = {
	{"none", none},
	{"spike", spike},
	{"two-spikes", two_spikes},
	{"grow", grow},
	{"phases", phases},
	{"stacks", many_stacks},
	{"deep", deep},
	{"last-call", ends_with_a_call},
	{"behind", stands_behind_it},
	{"inlined", holds_inlined},
	{"cross", cross},
	{"vectors", eight_vectors},
	{"usable", usable},
	{"pinned", pinned},
	{"sampled", sampled},
	{"odd-calls", odd_calls},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof all / sizeof *all; i++) {
		if (strcmp(argv[1], all[i].name) == 0) {
			all[i].run();
			return 0;
		}
	}
	return 2;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * recipes WHAT: small programs whose memory is known to the byte, each a case that a recorder of memory
 * has told wrong. tests/live/heap_right.bats and heap_recipes.bats say for each what is right.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* ---- mappings ---- */

#define MIB        (1ull << 20)
#define READ_WRITE (PROT_READ | PROT_WRITE)

/* A quarter of it is used. */
static NOINLINE void map_memory(void)
{
	memset(mmap(NULL, 100 * MIB, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1,
	       25 * MIB);
	BARRIER;
}

static NOINLINE void map_for_a_while(void)
{
	char *p = mmap(NULL, 40 * MIB, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(memset(p, 1, 40 * MIB), 40 * MIB);
	BARRIER;
}

static void *volatile block;

/* The C library maps memory for a block of this size: that is its affair. */
static NOINLINE void large_block(void)
{
	block = do_malloc(2 * MIB);
}

static void mapped(void)
{
	map_for_a_while();
	map_memory();
	large_block();
}

/* 10 GiB of addresses, 16 KiB that may be used, and a page that is. */
static NOINLINE void reserve(void)
{
	char *p = mmap(NULL, 10240 * MIB, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mprotect(p + MIB, 16384, READ_WRITE))
		abort();
	p[MIB + 4096] = 1;
}

/* 3 MiB of a file, and a page of it that is written to. */
static NOINLINE void map_file(void)
{
	int fd = open("mapped-file", O_RDWR | O_CREAT, 0600);
	char *p;

	if (fd < 0 || ftruncate(fd, 3 * MIB))
		abort();
	p = mmap(NULL, 3 * MIB, READ_WRITE, MAP_PRIVATE, fd, 0);
	p[8192] = 1;
	close(fd);
}

static void reserved(void)
{
	reserve();
	map_file();
}

/* ---- ends ---- */

static NOINLINE void before_the_end(void)
{
	for (int i = 0; i < 2000; i++) {
		char *p = do_malloc(500);

		if (i % 4 == 0)
			do_free(p);
	}
	BARRIER;
}

static void ends_by_abort(void)
{
	before_the_end();
	abort();
}

static volatile int *volatile nowhere;

static void ends_by_fault(void)
{
	before_the_end();
	*nowhere = 1;
}

/* Into a file: how often it came so far. One that is killed has no other way to say it. */
static void until_killed(void)
{
	int fd = open("so-far", O_RDWR | O_CREAT, 0600);
	volatile uint64_t *so_far;

	if (fd < 0 || ftruncate(fd, 4096))
		abort();
	so_far = mmap(NULL, 4096, READ_WRITE, MAP_SHARED, fd, 0);
	for (;;) {
		memset(do_malloc(1000), 1, 1000);
		++*so_far;
	}
}

/* ---- signals and threads ---- */

static int count_tasks(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;

	for (struct dirent *e; d && (e = readdir(d));)
		n += *e->d_name != '.';
	if (d)
		closedir(d);
	return n;
}

static void *allocating(void *arg)
{
	atomic_int *stop = arg;

	while (!*stop) {
		do_free(do_malloc(100));
		usleep(100);
	}
	return NULL;
}

/* Blocked everywhere, waited for in one place: in a thread of somebody else's it would end the process. */
static void waits_for_signals(void)
{
	static atomic_int stop;
	pthread_t t[3];
	sigset_t set;
	int got;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	printf("%d task\n", count_tasks());
	for (int i = 0; i < 3; i++) {
		if (pthread_create(&t[i], NULL, allocating, &stop))
			abort();
	}
	printf("%d tasks\n", count_tasks());
	for (int i = 0; i < 50; i++) {
		int want = i % 2 ? SIGTERM : SIGUSR1, status;
		pid_t child;

		fflush(stdout);
		child = fork();
		if (child == 0) {
			kill(getppid(), want);
			_exit(0);
		}
		if (sigwait(&set, &got) || got != want || waitpid(child, &status, 0) != child ||
		    status) {
			printf("%d came for %d\n", got, want);
			return;
		}
	}
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	puts("50 signals");
}

enum { HELD = 500 };

/* Blocks are held for a while, and have to be what they were then. */
static void *holding(void *arg)
{
	atomic_int *stop = arg;
	unsigned char *held[HELD] = {0};

	for (unsigned i = 0; !*stop; i++) {
		unsigned at = i * 7 % HELD, size = i % 900 + 1;

		if (held[at] && *held[at] != (unsigned char)at)
			abort();
		held[at] = do_realloc(i % 3 ? held[at] : (do_free(held[at]), NULL), size);
		*held[at] = (unsigned char)at;
		if (i % 32 == 0)
			usleep(200);
	}
	for (int i = 0; i < HELD; i++)
		do_free(held[i]);
	return NULL;
}

static void holds(void)
{
	static atomic_int stop;
	pthread_t t[4];
	sigset_t set;
	int got;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < 4; i++) {
		if (pthread_create(&t[i], NULL, holding, &stop))
			abort();
	}
	sigwait(&set, &got);
	stop = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	puts("held");
}

/* ---- leaks ---- */

static void *sleeping(void *arg)
{
	pause();
	return arg;
}

/* Its stack is the C library's mapping, what describes it the C library's block. */
static NOINLINE void leave_a_thread(void)
{
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&a, 3 * MIB);
	if (pthread_create(&t, &a, sleeping, NULL))
		abort();
	pthread_attr_destroy(&a);
}

static pthread_key_t key;

static void *with_a_value(void *arg)
{
	pthread_setspecific(key, do_malloc(7000));
	return arg;
}

/* A value without a destructor: when its thread has ended nobody has it. */
static void detached(void)
{
	pthread_t t;

	leave_a_thread();
	pthread_key_create(&key, NULL);
	if (pthread_create(&t, NULL, with_a_value, NULL))
		abort();
	pthread_join(t, NULL);
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
	{"mapped", mapped},
	{"reserved", reserved},
	{"abort", ends_by_abort},
	{"fault", ends_by_fault},
	{"until-killed", until_killed},
	{"waits", waits_for_signals},
	{"holds", holds},
	{"detached", detached},
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

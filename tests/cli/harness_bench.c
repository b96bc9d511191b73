/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Benchmarks for tests/cli/harness.bats: good ones, and one for each way to be bad. */
#include <assay/bench.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void spin_ns(uint64_t ns)
{
	uint64_t until = now_ns() + ns;

	while (now_ns() < until)
		;
}

/* A line in the file that $COUNT_FILE names, so that a test sees how often something ran. */
static void count(const char *word)
{
	const char *path = getenv("COUNT_FILE");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;

	if (fd < 0)
		return;
	if (write(fd, word, strlen(word)) < 0 || write(fd, "\n", 1) < 0)
		abort();
	close(fd);
}

static unsigned char page[4096];

ASSAY_BENCH(crc_4k)
{
	assay_throughput_bytes(b, sizeof page);
	ASSAY_ITER(b)
	assay_black_box(crc32(0, page, sizeof page));
}

ASSAY_BENCH_ARGS(sum, 10, 100, 1000)
{
	static int v[1000];
	int64_t n = assay_arg(b);

	ASSAY_ITER(b)
	{
		int s = 0;

		assay_black_box(v);
		for (int64_t i = 0; i < n; i++)
			s += v[i];
		assay_black_box(s);
	}
}

/* ---- allocations ---- */

ASSAY_BENCH(alloc_three)
{
	ASSAY_ITER(b)
	{
		void *p = malloc(100), *q = calloc(2, 36), *r = malloc(10);

		assay_black_box(p);
		assay_black_box(q);
		r = realloc(r, 38);
		assay_black_box(r);
		free(p);
		free(q);
		free(r);
	}
}

/* Three lists of known length, of which the middle one is given back before the last is made; the
 * strings are the C library's own calls. */
ASSAY_BENCH(alloc_in_libc)
{
	ASSAY_ITER(b)
	{
		char *s = strdup("sixteen bytes !");

		assay_black_box(s);
		free(s);
		s = strdup("8 bytes");
		assay_black_box(s);
		free(s);
	}
}

/* What is made ready is not counted. */
struct box {
	void *p;
};
ASSAY_BENCH(alloc_outside)
{
	ASSAY_ITER_INPUTS(b, struct box, x, ASSAY_SMALL_INPUT, x->p = malloc(64), free(x->p))
	assay_black_box(x->p);
}

/* ---- loops and inputs ---- */

ASSAY_BENCH(empty)
{
	ASSAY_ITER(b);
}

/* One code for all three: where it stands would make more of a difference than they do. */
__attribute__((noinline)) static void flip(unsigned char *p)
{
	for (int i = 0; i < 1500; i++)
		p[i] ^= 0x5a;
	assay_black_box(p);
}

struct packet {
	unsigned char d[1500];
};
ASSAY_BENCH(flip_small)
{
	ASSAY_ITER_INPUTS(b, struct packet, x, ASSAY_SMALL_INPUT, memset(x, 3, sizeof *x), )
	flip(x->d);
}
ASSAY_BENCH(flip_large)
{
	ASSAY_ITER_INPUTS(b, struct packet, x, ASSAY_LARGE_INPUT, memset(x, 3, sizeof *x), )
	flip(x->d);
}
ASSAY_BENCH(flip_each)
{
	ASSAY_ITER_INPUTS(b, struct packet, x, ASSAY_PER_ITERATION, memset(x, 3, sizeof *x), )
	flip(x->d);
}

ASSAY_BENCH(slow_inputs)
{
	ASSAY_ITER_INPUTS(b, uint64_t, x, ASSAY_SMALL_INPUT, (spin_ns(1000000), *x = 3), )
	assay_black_box(*x * 5);
}

/* ---- measurements of one's own ---- */

ASSAY_BENCH(own_counted)
{
	for (uint64_t i = assay_iterations(b); i; i--)
		count("iteration");
	assay_measured(b, 1234.0 * (double)assay_iterations(b), "instructions");
}

ASSAY_BENCH(own_zero)
{
	assay_measured(b, 0, "misses");
}

ASSAY_BENCH(own_constant)
{
	assay_measured(b, 5000, NULL);
}

ASSAY_BENCH(own_growing)
{
	static double items;
	double t = 0;

	for (uint64_t i = assay_iterations(b); i; i--)
		t += 1e3 * ++items;
	items = 0;
	assay_measured(b, t, NULL);
}

/* ---- long and changing ones ---- */

ASSAY_BENCH(takes_200ms)
{
	count("process");
	ASSAY_ITER(b)
	usleep(200000);
}

ASSAY_BENCH(slow_later)
{
	static unsigned calls;

	ASSAY_ITER(b)
	{
		calls++;
		spin_ns(calls > 1000 ? 1000000 : 1000);
	}
}

/* One of two speeds, by where the stack is. */
ASSAY_BENCH(two_speeds)
{
	int here;
	uint64_t ns = (uintptr_t)&here >> 12 & 1 ? 20000 : 30000;

	ASSAY_ITER(b)
	spin_ns(ns);
}

static void table_first(void)
{
	static int is_there;

	if (!is_there)
		spin_ns(60000000);
	is_there = 1;
}

ASSAY_BENCH(cold_table)
{
	ASSAY_ITER(b)
	{
		table_first();
		spin_ns(1000);
	}
}

/* The first call starts a thread that all calls wait for, as runtimes of asynchronous code do. */
static pthread_mutex_t asked_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked_changed = PTHREAD_COND_INITIALIZER;
static int asked; /* under the lock */

static void *serve_calls(void *ctx)
{
	pthread_mutex_lock(&asked_lock);
	for (;;) {
		while (!asked)
			pthread_cond_wait(&asked_changed, &asked_lock);
		asked = 0;
		pthread_cond_broadcast(&asked_changed);
	}
	return ctx;
}

static void call_thread(void)
{
	static int has_started;
	pthread_t t;

	if (!has_started) {
		spin_ns(60000000);
		if (pthread_create(&t, NULL, serve_calls, NULL))
			abort();
		has_started = 1;
	}
	pthread_mutex_lock(&asked_lock);
	asked = 1;
	pthread_cond_broadcast(&asked_changed);
	while (asked)
		pthread_cond_wait(&asked_changed, &asked_lock);
	pthread_mutex_unlock(&asked_lock);
}

ASSAY_BENCH(cold_thread)
{
	ASSAY_ITER(b)
	call_thread();
}

/* ---- threads ---- */

static unsigned long shared;

ASSAY_BENCH_THREADS(contend, 1, 2, 4)
{
	ASSAY_ITER(b)
	__atomic_fetch_add(&shared, 1, __ATOMIC_RELAXED);
}

/* ---- bad ones ---- */

ASSAY_BENCH(bad_crash)
{
	ASSAY_ITER(b)
	raise(SIGSEGV);
}

ASSAY_BENCH(bad_exit)
{
	ASSAY_ITER(b)
	exit(0);
}

ASSAY_BENCH(bad_hang)
{
	ASSAY_ITER(b)
	pause();
}

ASSAY_BENCH(bad_assert)
{
	ASSAY_ITER(b)
	{
		fprintf(stderr, "bench: assertion 'x > 0' failed\n");
		abort();
	}
}

/* Prints without end; what it prints is thrown away. */
ASSAY_BENCH(loud)
{
	static char text[1 << 16];

	memset(text, 'x', sizeof text);
	ASSAY_ITER(b)
	{
		if (write(1, text, sizeof text) < 0 || write(2, text, sizeof text) < 0)
			abort();
	}
}

/* The child comes back from the benchmark as well. */
ASSAY_BENCH(bad_fork)
{
	ASSAY_ITER(b)
	{
		if (fork() < 0)
			abort();
		usleep(200000);
	}
}

/* Goes away and leaves a child with the answer's descriptor. */
ASSAY_BENCH(bad_fork_away)
{
	ASSAY_ITER(b)
	{
		if (fork() > 0)
			_exit(0);
		sleep(30);
	}
}

ASSAY_BENCH(bad_no_loop)
{
	(void)b;
}

ASSAY_BENCH(bad_break)
{
	ASSAY_ITER(b)
	break;
}

ASSAY_BENCH(bad_file)
{
	assay_bench_fail(b, "the file 'corpus' is missing");
}

/* ---- main ---- */

static double run_named(void *ctx, uint64_t iters)
{
	uint64_t from = assay_bench_begin();

	(void)ctx;
	for (uint64_t i = iters; i; i--)
		assay_black_box(i);
	return (double)(assay_bench_end() - from);
}

/* Its own CPU time without that of its workers: $COUNT_FILE. */
static void tell_cpu(void)
{
	struct rusage u;
	char line[64];

	getrusage(RUSAGE_SELF, &u);
	snprintf(line, sizeof line, "cpu_us %ld",
		 (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000L + u.ru_utime.tv_usec +
			 u.ru_stime.tv_usec);
	count(line);
}

int main(int argc, char **argv)
{
	const char *slow = getenv("SLOW_START"), *changing = getenv("CHANGING");

	if (slow)
		usleep((useconds_t)(strtod(slow, NULL) * 1e6));
	if (changing) {
		/* the name has the process in it: no other process has this benchmark */
		struct assay_bench *run = assay_bench_open(argc, argv, NULL);
		struct assay_bench_spec spec = {.size = sizeof spec};
		char name[64];

		snprintf(name, sizeof name, "changing_%d", (int)getpid());
		spec.group = name;
		(void)assay_bench_one(run, &spec, run_named, NULL);
		return assay_bench_close(run);
	}

	int status = assay_bench_main(argc, argv);

	if (getenv("TELL_CPU"))
		tell_cpu();
	return status;
}

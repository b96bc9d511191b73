/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Pairing as tango does it, written from its description: two processes in lock-step by a shared page.
 * Each sample is a slice of 10 ms in both, begun when both have ended the one before; both run the same
 * number of iterations, the lesser of what each estimates for a slice. z = mean / (sd / sqrt(n)) of the
 * differences; a change is |z| >= 2.6 and more than 1 %.
 *
 * usage: tango-side serve			(one of the two; started by the other form)
 *        tango-side SECONDS BEFORE NOW		prints: slower|faster|equal PERCENT Z SAMPLES
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

uint64_t bench_work(void);

#define SLICE_NS 10e6
#define SPINS    1000

struct page {
	atomic_uint wanted[2], done[2]; /* counts of slices; acquire and release */
	atomic_bool ended;
	uint64_t iterations; /* written by the driver before `wanted` */
	double ns[2];        /* written by a side before `done` */
};

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double run(uint64_t n)
{
	double from = now_ns();

	for (uint64_t i = 0; i < n; i++) {
		uint64_t h = bench_work();

		__asm__ volatile("" : : "r"(h) : "memory");
	}
	return now_ns() - from;
}

/* What the next slice waits for; both sides and the driver spin, then yield. */
static void wait_for(const atomic_uint *at, unsigned value, const atomic_bool *ended)
{
	for (unsigned i = 0; atomic_load_explicit(at, memory_order_acquire) < value; i++) {
		if (atomic_load_explicit(ended, memory_order_relaxed))
			return;
		if (i > SPINS)
			sched_yield();
	}
}

static int serve(struct page *p, int side)
{
	for (unsigned slice = 1;; slice++) {
		wait_for(&p->wanted[side], slice, &p->ended);
		if (atomic_load_explicit(&p->ended, memory_order_relaxed))
			return 0;
		p->ns[side] = run(p->iterations);
		atomic_store_explicit(&p->done[side], slice, memory_order_release);
	}
}

static pid_t start(const char *program, int fd, int side)
{
	char fd_text[16], side_text[4];
	pid_t pid = fork();

	if (pid)
		return pid;
	snprintf(fd_text, sizeof fd_text, "%d", fd);
	snprintf(side_text, sizeof side_text, "%d", side);
	execl(program, program, "serve", fd_text, side_text, (char *)NULL);
	_exit(127);
}

static void slice(struct page *p, unsigned k)
{
	for (int s = 0; s < 2; s++)
		atomic_store_explicit(&p->wanted[s], k, memory_order_release);
	for (int s = 0; s < 2; s++)
		wait_for(&p->done[s], k, &p->ended);
}

static void judge(const double *d, size_t n, double before)
{
	double mean = 0, squares = 0, z, percent;

	for (size_t i = 0; i < n; i++)
		mean += d[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (d[i] - mean) * (d[i] - mean);
	z = mean / (sqrt(squares / (double)(n - 1)) / sqrt((double)n));
	percent = 100 * mean / before;
	printf("%s %.3f %.2f %zu\n",
	       fabs(z) >= 2.6 && fabs(percent) > 1 ? (percent > 0 ? "slower" : "faster")
						   : "equal",
	       percent, z, n);
}

static int compare(double seconds, const char *before, const char *now)
{
	int fd = memfd_create("page", 0);
	static double d[100000];
	size_t n = 0;
	double sum = 0, end;

	if (fd < 0 || ftruncate(fd, 4096) < 0)
		return 1;

	struct page *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	pid_t pids[2] = {start(before, fd, 0), start(now, fd, 1)};

	p->iterations = 16;
	slice(p, 1);
	slice(p, 2);
	p->iterations = (uint64_t)fmax(1, SLICE_NS / fmax(p->ns[0], p->ns[1]) * 16);
	end = now_ns() + seconds * 1e9;
	for (unsigned k = 3; now_ns() < end && n < sizeof d / sizeof *d; k++) {
		slice(p, k);
		d[n] = p->ns[1] - p->ns[0];
		sum += p->ns[0];
		n++;
	}
	atomic_store_explicit(&p->ended, true, memory_order_relaxed);
	for (int s = 0; s < 2; s++)
		waitpid(pids[s], NULL, 0);
	judge(d, n, sum / (double)n);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "serve") == 0) {
		void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
			       (int)strtol(argv[2], NULL, 10), 0);

		return p == MAP_FAILED ? 1 : serve(p, (int)strtol(argv[3], NULL, 10));
	}
	return argc == 4 ? compare(strtod(argv[1], NULL), argv[2], argv[3]) : 2;
}

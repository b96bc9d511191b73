/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the in-target runtime adds to a malloc and a free, on this machine: heap-hook [PAIRS].
 *
 * Each row runs the same loop three times: bare; with every call recorded, without stacks; with
 * stacks. A reader thread empties the ring, as the recorder does. The best of several rounds of
 * each, taken in turn, so that what else the machine does falls on all of them.
 *
 *	tight	one call site, 20 frames above it
 *	paths	256 different stacks of 20 frames, by random turns (as tests/workloads' storms)
 *	sampled	as tight, every call made, but blocks told one in 512 KiB (no second column)
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "../tests/rt/rt_host.h"

#define NOINLINE __attribute__((noinline, noclone))
#define LIVE     1024

typedef void *alloc_fn(size_t);
typedef void free_fn(void *);

static alloc_fn *volatile use_alloc;
static free_fn *volatile use_free;
static struct rt_host host;
static volatile bool stop;
static uint64_t received[AS_RT_REC_KINDS];

static void on_record(void *ctx, uint32_t ring, const struct rt_record *r)
{
	(void)ctx, (void)ring;
	received[r->u.head.kind & (AS_RT_REC_KINDS - 1)]++;
}

static void *reader(void *arg)
{
	(void)arg;
	/* the reader's own context would be another ring: it calls nothing that is recorded */
	while (!stop) {
		for (uint32_t i = 1; i < 4; i++)
			(void)rt_host_drain(&host, i, on_record, NULL);
		host.control->heartbeat++;
		const struct timespec t = {0, 20000};
		nanosleep(&t, NULL);
	}
	return NULL;
}

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *live[LIVE];
static unsigned at;

static NOINLINE void leaf(size_t size)
{
	unsigned i = at++ & (LIVE - 1);
	use_free(live[i]);
	live[i] = use_alloc(size);
}

static NOINLINE void left(int depth, unsigned path, size_t size);

static NOINLINE void right(int depth, unsigned path, size_t size)
{
	if (!depth)
		leaf(size);
	else if (path & 1)
		left(depth - 1, path >> 1, size);
	else
		right(depth - 1, path >> 1, size);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void left(int depth, unsigned path, size_t size)
{
	if (!depth)
		leaf(size);
	else if (path & 1)
		right(depth - 1, path >> 1, size);
	else
		left(depth - 1, path >> 1, size);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void loop_at_depth(int depth, long pairs)
{
	if (depth) {
		loop_at_depth(depth - 1, pairs);
		__asm__ volatile("" ::: "memory");
		return;
	}
	for (long i = 0; i < pairs; i++)
		use_free(use_alloc(64));
}

static void tight(long pairs)
{
	loop_at_depth(15, pairs);
}

static void paths(long pairs)
{
	uint64_t seed = 1;
	for (long i = 0; i < pairs; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		unsigned r = (unsigned)(seed >> 33);
		left(16, r & 255, 16 + (r >> 8 & 15) * 16);
	}
}

static double run(void (*f)(long), long pairs, alloc_fn *a, free_fn *fr)
{
	use_alloc = a;
	use_free = fr;
	double t = now_ns();
	f(pairs);
	t = (now_ns() - t) / (double)pairs;
	for (unsigned i = 0; i < LIVE; i++) {
		fr(live[i]);
		live[i] = NULL;
	}
	return t;
}

static void row(const char *name, void (*f)(long), long pairs, alloc_fn *a, free_fn *fr)
{
	double best[3] = {1e18, 1e18, 1e18};
	for (int round = 0; round < 7; round++) {
		for (int i = 0; i < 3; i++) {
			if (i == 1)
				host.control->flags |= AS_RT_NO_STACKS;
			else
				host.control->flags &= ~(uint32_t)AS_RT_NO_STACKS;
			double t = run(f, pairs, i ? a : malloc, i ? fr : free);
			if (t < best[i])
				best[i] = t;
		}
	}
	printf("%-8s %8.1f %12.1f %12.1f %10.1f\n", name, best[0], best[1] - best[0],
	       best[2] - best[0], best[2] / best[0]);
}

static void print_ring(void)
{
	for (uint32_t i = 1; i < 4; i++)
		(void)rt_host_drain(&host, i, on_record, NULL);
	const struct as_rt_ring *r = rt_host_ring(&host, 1);
	printf("allocs %lu, frees %lu, nodes %lu, resets %lu; lost %lu; waits %lu\n",
	       (unsigned long)received[AS_RT_REC_ALLOC],
	       (unsigned long)received[AS_RT_REC_FREE], (unsigned long)received[AS_RT_REC_NODE],
	       (unsigned long)received[AS_RT_REC_RESET],
	       (unsigned long)(r->lost[AS_RT_REC_ALLOC] + r->lost[AS_RT_REC_FREE]),
	       (unsigned long)host.control->full_waits);
}

/* Every call is made, blocks are told one in so many bytes. No reader: what is told fits the ring. */
static void sampled(long pairs)
{
	static const uint64_t every[] = {512 << 10, 64 << 10};
	for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
		struct rt_host_options o = {.sample_bytes = every[i]};
		char name[32];
		rt_host_open(&host, &o);
		alloc_fn *a = (alloc_fn *)rt_host_hook(&host, AS_RT_SIZE, (const void *)malloc);
		free_fn *fr = (free_fn *)rt_host_hook(&host, AS_RT_FREE, (const void *)free);
		snprintf(name, sizeof name, "1/%luk", (unsigned long)(every[i] >> 10));
		row(name, tight, pairs, a, fr);
		rt_host_close(&host);
	}
}

int main(int argc, char **argv)
{
	long pairs = argc > 1 ? strtol(argv[1], NULL, 10) : 300000;
	pthread_t t;
	struct rt_host_options o = {.flags = AS_RT_WAIT_FULL, .full_wait_us = 1000000};
	if (!as_rt_blob_bytes) {
		puts("the runtime is x86-64 only");
		return 0;
	}
	rt_host_open(&host, &o);
	alloc_fn *a = (alloc_fn *)rt_host_hook(&host, AS_RT_SIZE, (const void *)malloc);
	free_fn *fr = (free_fn *)rt_host_hook(&host, AS_RT_FREE, (const void *)free);
	pthread_create(&t, NULL, reader, NULL);
	printf("%-8s %8s %12s %12s %10s   (ns of CPU per malloc + free)\n", "", "bare",
	       "+ records", "+ stacks", "ratio");
	row("tight", tight, pairs, a, fr);
	row("paths", paths, pairs, a, fr);
	stop = true;
	pthread_join(t, NULL);
	print_ring();
	rt_host_close(&host);
	sampled(pairs);
	return 0;
}

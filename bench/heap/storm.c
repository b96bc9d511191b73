/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * storm PAIRS THREADS: nothing but malloc and free, as many of each, below 256 different stacks of 21
 * frames; up to 1,024 blocks of 16 to 256 bytes are live in each thread.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noclone))
#define HELD     1024
#define DEPTH    17

struct worker {
	pthread_t thread;
	long pairs;
	uint64_t seed;
	unsigned next;
	void *held[HELD];
};

static NOINLINE void replace(struct worker *w, size_t size)
{
	void **at = &w->held[w->next++ % HELD];

	free(*at);
	*at = malloc(size);
	if (!*at)
		abort();
	*(volatile char *)*at = 1;
}

static NOINLINE void odd(struct worker *w, int left, unsigned turns, size_t size);

static NOINLINE void even(struct worker *w, volatile int left, unsigned turns, size_t size)
{
	if (!left)
		replace(w, size);
	else if (turns % 2)
		odd(w, left - 1, turns / 2, size);
	else
		even(w, left - 1, turns / 2, size);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void odd(struct worker *w, volatile int left, unsigned turns, size_t size)
{
	if (!left)
		replace(w, size);
	else if (turns % 2)
		even(w, left - 1, turns / 2, size);
	else
		odd(w, left - 1, turns / 2, size);
	__asm__ volatile("" ::: "memory");
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (long i = 0; i < w->pairs; i++) {
		w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
		even(w, DEPTH, w->seed >> 40 & 255, 16 + 16 * (w->seed >> 56 & 15));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long pairs = argc > 1 ? strtol(argv[1], NULL, 0) : 2000000;
	int n = argc > 2 ? (int)strtol(argv[2], NULL, 0) : 1;
	struct worker *w = calloc((size_t)n, sizeof *w);

	for (int i = 0; i < n; i++) {
		w[i].pairs = pairs / n;
		w[i].seed = (uint64_t)i + 1;
		if (pthread_create(&w[i].thread, NULL, work, &w[i]))
			return 1;
	}
	for (int i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
	printf("%ld pairs\n", pairs);
	return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * holds MEBIBYTES SECONDS [THREADS]: a list of blocks of 1,008 bytes, written to, so many MiB in all,
 * then work on it for so long. Prints the longest time in microseconds that a thread found itself
 * standing still.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct block {
	struct block *next;
	uint64_t word[125];
};
static struct block *list;
static uint64_t end_ns;
static _Atomic uint64_t longest_ns;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void *work(void *arg)
{
	uint64_t last = now_ns(), most = 0, sum = 0, old;

	for (struct block *b = list; last < end_ns; b = b->next ? b->next : list) {
		uint64_t now = now_ns();

		most = now - last > most ? now - last : most;
		last = now;
		sum += b->word[0];
	}
	old = atomic_load(&longest_ns);
	while (most > old && !atomic_compare_exchange_weak(&longest_ns, &old, most))
		;
	return sum ? arg : NULL;
}

int main(int argc, char **argv)
{
	long blocks = (argc > 1 ? strtol(argv[1], NULL, 0) : 64) * 1024;
	double seconds = argc > 2 ? strtod(argv[2], NULL) : 2;
	int n = argc > 3 ? (int)strtol(argv[3], NULL, 0) : 1;
	pthread_t t[64];

	for (long i = 0; i < blocks; i++) {
		struct block *b = malloc(sizeof *b);

		memset(b, 1, sizeof *b);
		b->next = list;
		list = b;
	}
	end_ns = now_ns() + (uint64_t)(seconds * 1e9);
	for (int i = 1; i < n && i < 64; i++)
		pthread_create(&t[i], NULL, work, NULL);
	work(NULL);
	for (int i = 1; i < n && i < 64; i++)
		pthread_join(t[i], NULL);
	printf("%lu\n", (unsigned long)(longest_ns / 1000));
	return 0;
}

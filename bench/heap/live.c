/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* live BLOCKS [THREADS]: so many blocks of 24 bytes at a time, freed in an order that is none. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static long each;

static void *work(void *arg)
{
	void **block = malloc((size_t)each * sizeof *block);

	for (long i = 0; i < each; i++)
		block[i] = malloc(24);
	/* 1,000,003 is a prime: each index comes once */
	for (long i = 0, at = 0; i < each; i++, at = (at + 1000003) % each) {
		free(block[at]);
		block[at] = NULL;
	}
	free(block);
	return arg;
}

int main(int argc, char **argv)
{
	long blocks = argc > 1 ? strtol(argv[1], NULL, 0) : 2000000;
	int n = argc > 2 ? (int)strtol(argv[2], NULL, 0) : 1;
	pthread_t t[256];

	if (n < 1 || n > 256)
		return 2;
	each = blocks / n;
	for (int i = 1; i < n; i++) {
		if (pthread_create(&t[i], NULL, work, NULL))
			return 1;
	}
	work(NULL);
	for (int i = 1; i < n; i++)
		pthread_join(t[i], NULL);
	return 0;
}

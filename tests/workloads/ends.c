/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Threads that end with blocks in their allocator's cache: 6,400 pairs of 100 threads. */
#include <pthread.h>
#include <stdlib.h>
static void *(*volatile get)(size_t) = malloc;
static void (*volatile give)(void *) = free;
static void *work(void *arg)
{
	void *p[64];
	for (int i = 0; i < 64; i++)
		p[i] = get((size_t)i * 16 + 8);
	for (int i = 0; i < 64; i++)
		give(p[i]);
	return arg;
}
int main(void)
{
	for (int i = 0; i < 100; i++) {
		pthread_t t;
		if (pthread_create(&t, NULL, work, NULL) || pthread_join(t, NULL))
			return 1;
	}
	return 0;
}

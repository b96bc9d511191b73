/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads by the thousand.
 *
 *	crowd short N AT_A_TIME		N threads, so many alive at a time
 *	crowd alive N			N threads, all of them alive until the last one has allocated
 *	crowd both N M			N that stay until M short ones, 8 at a time, have ended
 *
 * Each allocates eight blocks in one_of_crowd and frees six of them: two are left. Says how many were
 * allocated there.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *(*volatile get)(size_t) = malloc;
static void (*volatile give)(void *) = free;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned long allocated, waiting;
static int over;

__attribute__((noinline)) static void one_of_crowd(void)
{
	void *block[8];

	for (int i = 0; i < 8; i++)
		block[i] = get(24 + 16 * (size_t)i);
	for (int i = 0; i < 6; i++)
		give(block[i]);
	__atomic_add_fetch(&allocated, 8, __ATOMIC_RELAXED);
}

static void *brief(void *arg)
{
	one_of_crowd();
	return arg;
}

static void *stays(void *arg)
{
	one_of_crowd();
	pthread_mutex_lock(&lock);
	waiting++;
	pthread_cond_broadcast(&changed);
	while (!over)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return arg;
}

static pthread_t start(void *(*run)(void *))
{
	pthread_attr_t small;
	pthread_t t;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	if (pthread_create(&t, &small, run, NULL)) {
		perror("pthread_create");
		exit(1);
	}
	pthread_attr_destroy(&small);
	return t;
}

static void run_short(unsigned long n, unsigned long at_a_time)
{
	pthread_t *t = calloc(at_a_time, sizeof *t);

	for (unsigned long i = 0; i < n + at_a_time; i++) {
		if (i >= at_a_time && i - at_a_time < n)
			pthread_join(t[i % at_a_time], NULL);
		if (i < n)
			t[i % at_a_time] = start(brief);
	}
	free(t);
}

static void run_alive(unsigned long n, unsigned long meanwhile)
{
	pthread_t *t = calloc(n, sizeof *t);

	for (unsigned long i = 0; i < n; i++)
		t[i] = start(stays);
	pthread_mutex_lock(&lock);
	while (waiting < n)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	run_short(meanwhile, 8);
	pthread_mutex_lock(&lock);
	over = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	for (unsigned long i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	free(t);
}

int main(int argc, char **argv)
{
	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	unsigned long m = argc > 3 ? strtoul(argv[3], NULL, 10) : 8;

	if (!n)
		return 2;
	if (strcmp(argv[1], "short") == 0)
		run_short(n, m);
	else
		run_alive(n, strcmp(argv[1], "both") == 0 ? m : 0);
	printf("%lu\n", allocated);
	return 0;
}

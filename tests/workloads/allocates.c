/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * allocates ROUNDS [SECONDS]: ROUNDS of a fixed number of calls of the C allocator, the same in each,
 * whose results are checked. With SECONDS the rounds go on until then, and how many there were is
 * printed. What one round calls: malloc 3, calloc 1, realloc 2, reallocarray 0, memalign 1,
 * posix_memalign 1, free 6.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <malloc.h>

static void fail(const char *what)
{
	fprintf(stderr, "allocates: %s\n", what);
	exit(1);
}

static int all(const unsigned char *p, size_t n, int c)
{
	while (n--)
		if (*p++ != c)
			return 0;
	return 1;
}

/* Through pointers, so that no compiler pairs and removes them. */
static void *(*volatile do_malloc)(size_t) = malloc;
static void *(*volatile do_calloc)(size_t, size_t) = calloc;
static void *(*volatile do_realloc)(void *, size_t) = realloc;
static void *(*volatile do_memalign)(size_t, size_t) = memalign;
static int (*volatile do_posix_memalign)(void **, size_t, size_t) = posix_memalign;
static void (*volatile do_free)(void *) = free;

static void one_round(unsigned i)
{
	size_t n = 16 + i * 37 % 5000;
	unsigned char *a = do_malloc(n), *b = do_malloc(n / 2 + 1), *c = do_calloc(n, 3);
	unsigned char *d = do_memalign(256, n), *e = do_malloc(1);
	void *f = NULL;

	if (!a || !b || !c || !d || !e || do_posix_memalign(&f, 4096, n))
		fail("no memory");
	if ((uintptr_t)d % 256 || (uintptr_t)f % 4096 || !all(c, n * 3, 0))
		fail("an aligned or a cleared block is not");
	memset(a, 0x5a, n);
	a = do_realloc(a, n * 4);
	a = a ? do_realloc(a, n / 2) : NULL;
	if (!a || !all(a, n / 2, 0x5a))
		fail("realloc lost bytes");
	do_free(a);
	do_free(b);
	do_free(c);
	do_free(d);
	do_free(e);
	do_free(f);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 0, i = 0;
	double until = argc > 2 ? seconds() + strtod(argv[2], NULL) : 0;

	for (; i < rounds || (until > 0 && seconds() < until); i++)
		one_round(i);
	printf("%u rounds\n", i);
	return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * forms [-p] ROUNDS: in each round a block by each of the C library's forms, and all given back. With glibc
 * a round is 11 allocations (one of them a realloc of a block) and 10 frees by free, with musl 8 and 7;
 * strdup, strndup and reallocarray are one each, whatever they call. -p: no pvalloc, which other allocators
 * leave to glibc, and then cannot free. Prints the rounds.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Through pointers, so that no compiler pairs and removes them. */
static void *(*volatile do_malloc)(size_t) = malloc;
static void *(*volatile do_calloc)(size_t, size_t) = calloc;
static void *(*volatile do_realloc)(void *, size_t) = realloc;
static void *(*volatile do_memalign)(size_t, size_t) = memalign;
static void *(*volatile do_aligned_alloc)(size_t, size_t) = aligned_alloc;
static int (*volatile do_posix_memalign)(void **, size_t, size_t) = posix_memalign;
static char *(*volatile do_strdup)(const char *) = strdup;
static char *(*volatile do_strndup)(const char *, size_t) = strndup;
static void (*volatile do_free)(void *) = free;
#ifdef __GLIBC__
static void *(*volatile do_reallocarray)(void *, size_t, size_t) = reallocarray;
static void *(*volatile do_valloc)(size_t) = valloc;
static void *(*volatile do_pvalloc)(size_t) = pvalloc;
#endif

static void one_round(int with_pvalloc)
{
	void *p[10] = {NULL};
	int n = 0;

	p[n++] = do_realloc(do_malloc(10), 1000);
	p[n++] = do_calloc(7, 11);
	p[n++] = do_memalign(128, 100);
	p[n++] = do_aligned_alloc(64, 128);
	if (do_posix_memalign(&p[n++], 256, 70))
		exit(1);
	p[n++] = do_strdup("as long as it is");
	p[n++] = do_strndup("cut short", 3);
#ifdef __GLIBC__
	p[n++] = do_reallocarray(NULL, 5, 9);
	p[n++] = do_valloc(30);
	if (with_pvalloc)
		p[n++] = do_pvalloc(50);
#endif
	for (int i = 0; i < n; i++) {
		if (!p[i])
			exit(1);
		do_free(p[i]);
	}
	do_free(NULL);
}

int main(int argc, char **argv)
{
	int with_pvalloc = argc < 2 || strcmp(argv[1], "-p") != 0;
	long rounds = argc > 1 ? strtol(argv[argc - 1], NULL, 0) : 0;

	for (long i = 0; i < rounds; i++)
		one_round(with_pvalloc);
	printf("%ld rounds\n", rounds);
	return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The nine cases of memcheck's manual (section "Memory leak detection"), each with sizes of its own, so
 * that a class is known by its bytes: a block A of case n has 100 n bytes, B 100 n + 10.
 */
#include <stdlib.h>
#include <string.h>

static void *root[10]; /* RRR of case n */

/* A pointer to B is kept at the beginning of A. */
static void point(void *a, void *b)
{
	memcpy(a, &b, sizeof b);
}

/* Not left out by a compiler that sees nobody use it. */
static __attribute__((noinline)) void *block(size_t n)
{
	void *p = calloc(1, n);

	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

static __attribute__((noinline)) void make(void)
{
	char *a, *b;

	root[1] = block(110);
	root[2] = a = block(200), point(a, block(210));
	(void)block(310);
	a = block(400), point(a, block(410));
	b = block(510), root[5] = b + 1;
	root[6] = a = block(600), b = block(610), point(a, b + 1);
	a = block(700), point(a, block(710)), root[7] = a + 1;
	a = block(800), b = block(810), point(a, b + 1), root[8] = a + 1;
	a = block(900), b = block(910), point(a, b + 1);
}

/* What is left in registers and below is no pointer of the program. */
static __attribute__((noinline)) void wipe(void)
{
	volatile char below[4096];

	memset((char *)below, 0, sizeof below);
	__asm__ volatile("" ::"r"(below) : "memory", "rbx", "r12", "r13", "r14", "r15");
}

int main(void)
{
	make();
	wipe();
	return root[1] == NULL;
}

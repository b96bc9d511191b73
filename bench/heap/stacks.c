/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stacks STACKS [TIMES]: one malloc and one free below each of so many different stacks of 20 calls, TIMES
 * over. Every tenth block stays.
 */
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noclone))

static NOINLINE void left(unsigned turns, int depth);
static NOINLINE void right(unsigned turns, int depth);

static inline void turn(unsigned turns, int depth)
{
	if (!depth) {
		void *volatile p = malloc(turns % 64 + 16);

		if (turns % 10)
			free(p);
	} else if (turns >> depth & 1) {
		left(turns, depth - 1);
	} else {
		right(turns, depth - 1);
	}
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void left(unsigned turns, int depth)
{
	turn(turns, depth);
}

/* Not a copy of the other, or both would become one. */
static NOINLINE void right(unsigned turns, int depth)
{
	turn(turns, depth);
	__asm__ volatile("nop" ::: "memory");
}

int main(int argc, char **argv)
{
	unsigned stacks = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 1 << 20;
	unsigned times = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 1;

	for (unsigned i = 0; i < times * stacks; i++)
		turn(i % stacks, 20);
	printf("%u stacks\n", stacks);
	return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * shapes SECONDS: short calls around and around three functions whose frames differ (callee-saved
 * registers, alloca, hardly any), so that samples fall on every instruction of prologues and
 * epilogues. Stacks are main, round, then shape_regs, shape_alloca, shape_plain in turn, LEVELS
 * of them, then leaf: a skipped or invented frame breaks the turn.
 */
#include "workload.h"

#define LEVELS 9

static NOINLINE unsigned long shape_regs(int n, unsigned long x);

static NOINLINE unsigned long leaf(unsigned long x)
{
	sink += x;
	return x * 2654435761u + 1;
}

static NOINLINE unsigned long shape_plain(int n, unsigned long x)
{
	unsigned long r = n ? shape_regs(n - 1, x ^ 3) : leaf(x);

	return r + 1;
}

static NOINLINE unsigned long shape_alloca(int n, unsigned long x)
{
	volatile unsigned char *p = __builtin_alloca(16 + (x & 7) * 8);
	unsigned long r;

	p[0] = (unsigned char)x;
	r = n ? shape_plain(n - 1, x + 1) : leaf(x);
	return r + p[0];
}

static NOINLINE unsigned long shape_regs(int n, unsigned long x)
{
	unsigned long a = x * 3, b = x ^ 5, c = x + 7, d = x * 11, e = x >> 3;
	unsigned long r = n ? shape_alloca(n - 1, x) : leaf(x);

	r += leaf(r ^ a);
	return r + a * b + c * d + e;
}

static NOINLINE void round_trip(double seconds)
{
	double until = cpu_s() + seconds;
	unsigned long x = 1;

	do {
		for (int i = 0; i < 20000; i++)
			x = shape_regs(LEVELS - 1, x);
	} while (cpu_s() < until);
	sink += x;
}

int main(int argc, char **argv)
{
	round_trip(arg(argc, argv, 1, 0.3));
	sink++;
	return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* counted SECONDS A B [C]: one loop in the functions spin_a, spin_b, spin_c, with iterations in
 * the ratio A : B : C and no clock inside, so that self shares are known. A round of all of them
 * takes about 1 ms. Every 16th round is timed with the thread's clock, and what it says of the
 * shares is printed: a machine that treats equal loops unequally is caught. */
#include <stdio.h>

#include "workload.h"

/* Aligned, so that the copies are equal to the processor too. */
#define SPIN(name)                                                                             \
	static NOINLINE __attribute__((aligned(128))) void name(unsigned long n)               \
	{                                                                                      \
		work(n);                                                                       \
	}
SPIN(spin_a)
SPIN(spin_b)
SPIN(spin_c)

static void (*const spin[3])(unsigned long) = {spin_a, spin_b, spin_c};

/* A round with the clock read after each function. */
static double timed_round(const unsigned long *n, double *spent)
{
	double before = cpu_s(), now = before;

	for (int i = 0; i < 3; i++) {
		if (!n[i])
			continue;
		spin[i](n[i]);
		now = cpu_s();
		spent[i] += now - before;
		before = now;
	}
	return now;
}

int main(int argc, char **argv)
{
	double seconds = arg(argc, argv, 1, 1), spent[3] = {0}, sum = 0,
	       end = cpu_s() + seconds;
	unsigned long n[3];

	for (int i = 0; i < 3; i++)
		sum += arg(argc, argv, 2 + i, (double[]){70, 30, 0}[i]);
	for (int i = 0; i < 3; i++)
		n[i] = (unsigned long)(arg(argc, argv, 2 + i, (double[]){70, 30, 0}[i]) *
				       600000 / sum);
	while (timed_round(n, spent) < end) {
		for (int k = 0; k < 15; k++) {
			spin_a(n[0]);
			spin_b(n[1]);
			spin_c(n[2]);
		}
	}
	sum = spent[0] + spent[1] + spent[2];
	for (int i = 0; i < 3; i++)
		printf("spin_%c %.5f\n", 'a' + i, spent[i] / sum);
	return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mixed WORK [SLOWER]: 24 functions below four callers, a fixed amount of work: WORK rounds of about
 * 0.2 ms. Function f00 has 30 % of it, f01 20 %, f02 10 %, the others 6 % down to 0.2 %. f01 does SLOWER
 * per cent more than that, so its time grows by that and nothing else's does.
 */
#include "workload.h"

#define FUNCTIONS(X)                                                                           \
	X(00, 300)                                                                             \
	X(01, 200)                                                                             \
	X(02, 100)                                                                             \
	X(03, 60)                                                                              \
	X(04, 50)                                                                              \
	X(05, 45)                                                                              \
	X(06, 40)                                                                              \
	X(07, 35)                                                                              \
	X(08, 30)                                                                              \
	X(09, 25)                                                                              \
	X(10, 20)                                                                              \
	X(11, 18)                                                                              \
	X(12, 15)                                                                              \
	X(13, 12)                                                                              \
	X(14, 10)                                                                              \
	X(15, 8) X(16, 7) X(17, 6) X(18, 5) X(19, 4) X(20, 3) X(21, 3) X(22, 2) X(23, 2)

#define DEFINE(n, share)                                                                       \
	static NOINLINE __attribute__((aligned(128))) void f##n(unsigned long count)           \
	{                                                                                      \
		for (unsigned long i = 0; i < count; i++)                                      \
			sink += i;                                                             \
	}
FUNCTIONS(DEFINE)

#define ROW(n, share) {f##n, share},
static const struct {
	void (*f)(unsigned long);
	unsigned long share; /* of 1000 */
} all[] = {FUNCTIONS(ROW)};

enum { N = sizeof all / sizeof *all, UNIT = 600 };

static unsigned long times[N];

#define CALLER(k)                                                                              \
	static NOINLINE void caller##k(void)                                                   \
	{                                                                                      \
		for (int i = k; i < N; i += 4)                                                 \
			all[i].f(times[i]);                                                    \
		sink++;                                                                        \
	}
CALLER(0)
CALLER(1)
CALLER(2)
CALLER(3)

int main(int argc, char **argv)
{
	double rounds = arg(argc, argv, 1, 1000), slower = arg(argc, argv, 2, 0);

	for (int i = 0; i < N; i++)
		times[i] = all[i].share * UNIT;
	times[1] = (unsigned long)((double)times[1] * (1 + slower / 100));
	for (double r = 0; r < rounds; r++) {
		caller0();
		caller1();
		caller2();
		caller3();
	}
	return 0;
}

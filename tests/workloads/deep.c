/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* deep DEPTH FRAME_BYTES SECONDS: DEPTH calls with FRAME_BYTES of locals each, then work at the
 * leaf. */
#include "workload.h"

static NOINLINE void spin(double seconds)
{
	double until = cpu_s() + seconds;

	do
		work(20000);
	while (cpu_s() < until);
}

static NOINLINE void deep(int depth, size_t frame, double seconds)
{
	volatile char *locals = __builtin_alloca(frame);

	locals[0] = (char)depth;
	if (depth)
		deep(depth - 1, frame, seconds);
	else
		spin(seconds);
	sink += (unsigned long)locals[0];
}

int main(int argc, char **argv)
{
	deep((int)arg(argc, argv, 1, 3), (size_t)arg(argc, argv, 2, 3000),
	     arg(argc, argv, 3, 0.3));
	return 0;
}

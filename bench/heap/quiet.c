/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* quiet ROUNDS: arithmetic, and no allocation. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? strtol(argv[1], NULL, 0) : 300000000;
	uint64_t x = 1;

	for (long i = 0; i < rounds; i++)
		x = x * 6364136223846793005u + (uint64_t)i;
	return write(1, x & 1 ? "odd\n" : "even\n", 4) != 4;
}

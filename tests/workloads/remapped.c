/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* remapped SECONDS [fixed]: moves its own text onto anonymous memory, as programs do to get huge
 * pages, then works there. fixed: only some pages of it, by a new mapping in their place instead
 * of mremap. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "workload.h"

static NOINLINE void moved_work(double seconds)
{
	double until = cpu_s() + seconds;

	do
		work(20000);
	while (cpu_s() < until);
}

#define HOT __attribute__((noinline, noclone, no_reorder, section(".text.moved")))

HOT __attribute__((aligned(4096))) static void fixed_work(double seconds)
{
	double until = cpu_s() + seconds;

	do
		work(20000);
	while (cpu_s() < until);
}

HOT static void fixed_caller(double seconds)
{
	fixed_work(seconds);
	sink++;
}

HOT __attribute__((aligned(4096))) static void fixed_end(void)
{
	sink++;
}

static NOINLINE int in_place(double seconds)
{
	static char copy[65536];
	char *start = (char *)(uintptr_t)fixed_work;
	size_t n = (uintptr_t)fixed_end - (uintptr_t)fixed_work;

	if (n > sizeof copy || (uintptr_t)start % 4096 || n % 4096)
		return 1;
	memcpy(copy, start, n);
	if (mmap(start, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) != start)
		return 1;
	memcpy(start, copy, n);
	mprotect(start, n, PROT_READ | PROT_EXEC);
	fixed_caller(seconds);
	fixed_end();
	return 0;
}

/* The mapping that holds this function. */
static int own_text(uintptr_t *ret_start, uintptr_t *ret_end)
{
	uintptr_t here = (uintptr_t)moved_work;
	FILE *f = fopen("/proc/self/maps", "re");
	char line[4096];
	int found = 0;

	while (f && !found && fgets(line, sizeof line, f)) {
		unsigned long start, end;

		found = sscanf(line, "%lx-%lx", &start, &end) == 2 && here >= start &&
			here < end;
		if (found) {
			*ret_start = start;
			*ret_end = end;
		}
	}
	if (f)
		fclose(f);
	return found;
}

int main(int argc, char **argv)
{
	uintptr_t start, end;
	size_t n;
	void *copy;

	if (argc > 2) {
		int r = in_place(arg(argc, argv, 1, 0.3));

		sink++;
		return r;
	}
	if (!own_text(&start, &end))
		return 1;
	n = end - start;
	copy = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return 1;
	memcpy(copy, (void *)start, n);
	mprotect(copy, n, PROT_READ | PROT_EXEC);
	if (mremap(copy, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start) == MAP_FAILED)
		return 1;
	moved_work(arg(argc, argv, 1, 0.3));
	return 0;
}

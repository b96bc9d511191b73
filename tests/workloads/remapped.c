/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* remapped SECONDS: moves its own text onto anonymous memory, as programs do to get huge pages,
 * then works there. */
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

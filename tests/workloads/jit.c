/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* jit SECONDS: loops in code without a file or unwind information that keeps a frame pointer. */
#include <string.h>
#include <sys/mman.h>
#include "workload.h"

/* push rbp; mov rbp, rsp; 1: dec rdi; jnz 1b; pop rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff,
				     0xcf, 0x75, 0xfb, 0x5d, 0xc3};

static NOINLINE void call_it(void (*f)(long), double seconds)
{
	double until = cpu_s() + seconds;

	do
		f(100000);
	while (cpu_s() < until);
}

int main(int argc, char **argv)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*f)(long);

	if (p == MAP_FAILED)
		return 1;
	memcpy(p, code, sizeof(code));
	mprotect(p, 4096, PROT_READ | PROT_EXEC);
	memcpy(&f, &p, sizeof(f));
	call_it(f, arg(argc, argv, 1, 0.5));
	return 0;
}

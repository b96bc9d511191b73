/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * generated framed|frameless map|nomap SECONDS: code written at run time that calls back into C. framed
 * keeps a frame pointer, frameless nothing an unwinder could know of. map: named generated_code in
 * /tmp/perf-PID.map; its path is printed, since whoever reads it has to remove it.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "workload.h"

static double seconds;

static NOINLINE void called_back(void)
{
	double until = cpu_s() + seconds;

	do
		work(20000);
	while (cpu_s() < until);
}

/* push rbp; mov rbp,rsp; sub rsp,32; call rdi; leave; ret */
static const uint8_t framed[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83,
				 0xec, 0x20, 0xff, 0xd7, 0xc9, 0xc3};
/* sub rsp,40; call rdi; add rsp,40; ret */
static const uint8_t frameless[] = {0x48, 0x83, 0xec, 0x28, 0xff, 0xd7,
				    0x48, 0x83, 0xc4, 0x28, 0xc3};

static NOINLINE void into_generated(void (*code)(void (*)(void)))
{
	code(called_back);
	sink++;
}

int main(int argc, char **argv)
{
	int with_frame = argc < 2 || !strcmp(argv[1], "framed");
	int with_map = argc > 2 && !strcmp(argv[2], "map");
	size_t n = with_frame ? sizeof framed : sizeof frameless;
	uint8_t *p =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	union {
		void *p;
		void (*f)(void (*)(void));
	} u = {.p = p + 64};
	char path[64];

	seconds = arg(argc, argv, 3, 0.3);
	if (p == MAP_FAILED)
		return 1;
	memcpy(p + 64, with_frame ? framed : frameless, n);
	if (mprotect(p, 8192, PROT_READ | PROT_EXEC) < 0)
		return 1;
	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
	if (with_map) {
		FILE *f = fopen(path, "we");

		if (!f)
			return 1;
		fprintf(f, "%lx %zx generated_code\n", (unsigned long)(uintptr_t)(p + 64), n);
		fclose(f);
		puts(path);
	}
	into_generated(u.f);
	return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * marked [SECONDS]: two blocks of 1,000 bytes, a mark, three more, a mark, all given back, a mark. With
 * SECONDS it then waits that long, so that marks can be asked for from outside, with 10 blocks of 100
 * bytes in its hands.
 */
#include <assay/heap.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void *(*volatile do_malloc)(size_t) = malloc;
static void (*volatile do_free)(void *) = free;

int main(int argc, char **argv)
{
	struct timespec left = {argc > 1 ? strtol(argv[1], NULL, 0) : 0, 0};
	void *p[10];

	assay_heap_mark("begin");
	for (int i = 0; i < 2; i++)
		p[i] = do_malloc(1000);
	assay_heap_mark("two");
	for (int i = 2; i < 5; i++)
		p[i] = do_malloc(1000);
	assay_heap_mark("five");
	for (int i = 0; i < 5; i++)
		do_free(p[i]);
	assay_heap_mark("none, and a name that is longer than anybody would want to read");
	if (!left.tv_sec)
		return 0;
	for (int i = 0; i < 10; i++)
		p[i] = do_malloc(100);
	(void)!write(1, "ready\n", 6); /* to nobody is fine */
	nanosleep(&left, NULL);
	for (int i = 0; i < 10; i++)
		do_free(p[i]);
	return 0;
}

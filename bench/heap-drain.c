/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What src/heap costs: CPU time per record from the ring to the sums, memory per live block, and the
 * size of the session.
 *
 *	ninja -C build bench/heap-drain && build/bench/heap-drain [BLOCKS [STACKS [SPACING]]]
 *
 * One ring of 1 MiB is filled and drained in turns; only the draining is timed. Blocks: 2,000,000 of
 * 24 bytes, side by side every 32 bytes unless SPACING is given; stacks: 4,096 of 21 frames.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../tests/unit/heap_rings.h"
#include "base/sys.h"
#include "heap/write.h"

enum { PID = 1, DEPTH = 21, STACKS_MAX = 7000 };

static struct rings rings;
static struct as_heap *heap;
static struct as_heap_drain *d;
static uint64_t seed = 88172645463325252ull, drained_ns, records;
static uint32_t node[STACKS_MAX];

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t resident(void)
{
	unsigned long all = 0, rss = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%lu %lu", &all, &rss) != 2)
		rss = 0;
	if (f)
		fclose(f);
	return rss * 4096ull;
}

static struct as_heap *on_process(void *ctx, uint32_t pid, uint64_t time_ns)
{
	return heap = as_heap_new(time_ns);
}

static uint32_t on_thread(void *ctx, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	return 0;
}

static bool on_locate(void *ctx, uint32_t pid, uint64_t avma, struct as_heap_frame *ret)
{
	*ret = (struct as_heap_frame){.module = 0, .addr = avma};
	return true;
}

static void drain(void)
{
	uint64_t start = cpu_ns();

	rings.area.control->clock_ns += 1000;
	records += as_heap_drain_round(d, UINT64_MAX);
	drained_ns += cpu_ns() - start;
}

static void make_room(void)
{
	const struct as_rt_ring *r = rings_ring(&rings, 0);

	if (r->pos - r->consumed > rings.area.ring_bytes / 2)
		drain();
}

static void report(const char *what)
{
	drain();
	printf("%-28s %9llu records  %6.1f ns each\n", what, (unsigned long long)records,
	       (double)drained_ns / (double)records);
	records = drained_ns = 0;
}

/* A tree: stacks share their outer frames. */
static void make_stacks(uint32_t n)
{
	uint32_t path[DEPTH] = {0};

	for (uint32_t s = 0; s < n; s++) {
		uint32_t from = s ? DEPTH - 2 : 0;

		for (uint32_t i = from; i < DEPTH; i++) {
			path[i] = rings_node(&rings, 0, i ? path[i - 1] : 0,
					     0x400000 + (i << 16) + (i >= from ? s * 16 : 0),
					     AS_END_ROOT);
			make_room();
		}
		node[s] = path[DEPTH - 1];
	}
}

static void allocate(uint64_t ptr, uint32_t stacks)
{
	(void)rings_alloc(&rings, 0, ptr, 24, node[next_random() % stacks]);
	make_room();
}

static void release(uint64_t ptr)
{
	(void)rings_free(&rings, 0, ptr);
	make_room();
}

static void write_session(const struct as_heap_stacks *stacks)
{
	char path[] = "/tmp/heap-drain-XXXXXX";
	int fd = mkstemp(path);
	struct as_session_writer *w;
	struct as_heap_writer o;
	struct stat st;
	size_t n;

	if (fd < 0 || as_session_writer_open(path, &w, NULL) < 0)
		exit(1);
	as_heap_writer_init(&o, w, stacks);
	as_heap_write_stacks(&o);
	as_heap_write(&o, 0, as_heap_drain_processes(d, &n));
	as_heap_writer_clear(&o);
	if (as_session_writer_finish(w, NULL) < 0 || stat(path, &st) < 0)
		exit(1);
	as_session_writer_close(w);
	printf("session of %zu stacks, without names: %lld bytes\n", stacks->stacks.n,
	       (long long)st.st_size);
	unlink(path);
	close(fd);
}

int main(int argc, char **argv)
{
	struct as_heap_host host = {NULL, on_process, on_thread, on_locate, NULL};
	struct as_heap_stacks stacks = {0};
	uint64_t blocks = 2000000, n = 4096, spacing = 32, before;

	if ((argc > 1 && !as_parse_u64(argv[1], &blocks)) ||
	    (argc > 2 && (!as_parse_u64(argv[2], &n) || n < 1 || n > STACKS_MAX / 2)) ||
	    (argc > 3 && !as_parse_u64(argv[3], &spacing)))
		return 2;
	rings_init(&rings, 1, 1 << 20);
	d = as_heap_drain_new(&rings.area, &host, &stacks);
	rings_thread(&rings, 0, PID, PID);
	make_stacks((uint32_t)n);
	report("nodes");
	for (uint32_t s = 0; s < n; s++) { /* what a stack takes is not a block's */
		(void)rings_alloc(&rings, 0, 0x10000, 24, node[s]);
		release(0x10000);
	}
	drain();
	before = resident();
	for (uint64_t i = 0; i < blocks; i++)
		allocate(0x555555554000 + i * spacing, (uint32_t)n);
	report("allocate, side by side");
	printf("%.2f bytes a live block (resident), %.2f (own count)\n",
	       (double)(resident() - before) / (double)blocks,
	       (double)as_live_memory(&heap->live) / (double)blocks);
	for (uint64_t i = 0; i < blocks; i++) {
		uint64_t ptr = 0x555555554000 + next_random() % blocks * spacing;

		release(ptr);
		allocate(ptr, (uint32_t)n);
	}
	report("free and allocate, anywhere");
	for (uint64_t i = 0; i < 2 * blocks; i++) {
		allocate(0x7f0000000000 + i % 1024 * 64, (uint32_t)n);
		if (i >= 100)
			release(0x7f0000000000 + (i - 100) % 1024 * 64);
	}
	report("short-lived");
	as_heap_drain_finish(d);
	as_heap_finish(heap);
	write_session(&stacks);
	as_heap_drain_free(d);
	as_heap_stacks_clear(&stacks);
	as_heap_free_all(heap);
	rings_clear(&rings);
	return 0;
}

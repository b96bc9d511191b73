/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "frames.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))
/* No call before it becomes a jump. */
#define STAY()   __asm__ volatile("" ::: "memory")

typedef void frame_fn(struct frames *f, int depth, unsigned long path);
static frame_fn call;

static NOINLINE void leaf(struct frames *f)
{
	void *p = f->alloc(f->size);
	f->then(f, p);
	STAY();
}

static NOINLINE void small(struct frames *f, int depth, unsigned long path)
{
	call(f, depth, path);
	STAY();
}

static NOINLINE void large(struct frames *f, int depth, unsigned long path)
{
	volatile char big[9000];
	big[0] = (char)depth;
	call(f, depth, path);
	f->sink += (unsigned long)big[0];
}

/* A frame pointer, because the size is not known. */
static NOINLINE void varying(struct frames *f, int depth, unsigned long path)
{
	size_t n = 16 + (path & 3) * 32;
	char *p = __builtin_alloca(n);
	memset(p, depth, n);
	__asm__ volatile("" : : "r"(p) : "memory");
	call(f, depth, path);
	f->sink += (unsigned long)p[n - 1];
}

/* Realigned: the caller's frame is found through the frame. */
static NOINLINE void aligned(struct frames *f, int depth, unsigned long path)
{
	_Alignas(128) volatile char a[128];
	char *p = __builtin_alloca(32 + (path & 1) * 64);
	a[0] = 1;
	__asm__ volatile("" : : "r"(p) : "memory");
	call(f, depth, path);
	f->sink += (unsigned long)a[0];
}

/* All callee-saved registers in use, rbp as any other. */
static NOINLINE void busy(struct frames *f, int depth, unsigned long path)
{
	unsigned long a = path * 3, b = path * 5, c = path * 7, d = path * 11, e = path ^ a;
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
	call(f, depth, path);
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
	f->sink += a + b + c + d + e;
}

static __thread struct {
	struct frames *f;
	int depth;
	unsigned long path;
	int done;
} sorted;

static int compare(const void *a, const void *b)
{
	if (!sorted.done) {
		sorted.done = 1;
		struct frames *f = sorted.f;
		call(f, sorted.depth, sorted.path);
	}
	return *(const int *)a - *(const int *)b;
}

/* Through code of libc. */
static NOINLINE void sorting(struct frames *f, int depth, unsigned long path)
{
	int v[6] = {5, 1, 4, 2, 3, 0};
	sorted.f = f;
	sorted.depth = depth;
	sorted.path = path;
	sorted.done = 0;
	qsort(v, 6, sizeof v[0], compare);
	f->sink += (unsigned long)v[0];
}

static void call(struct frames *f, int depth, unsigned long path)
{
	static frame_fn *const kind[8] = {small,   small, busy,    varying,
					  aligned, busy,  sorting, large};
	if (depth)
		kind[path & 7](f, depth - 1, path >> 3);
	else
		leaf(f);
	STAY();
}

void frames_run(struct frames *f, int depth, unsigned long path)
{
	call(f, depth, path);
	STAY();
}

NOINLINE void frames_recurse(struct frames *f, int depth)
{
	if (depth)
		frames_recurse(f, depth - 1);
	else
		leaf(f);
	STAY();
}

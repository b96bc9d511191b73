// SPDX-License-Identifier: MIT OR Apache-2.0
// Pointers inside of blocks that memcheck takes for ones to the beginning (--leak-check-heuristics): all
// blocks here are reachable, but for one that is possibly lost and one that is lost.
#include <cstdlib>
#include <cstring>

struct Element {
	~Element() { *(volatile int *)&v = 0; }
	int v;
};
struct First {
	virtual ~First() {}
	virtual int one() { return 1; }
	long a;
};
struct Second {
	virtual ~Second() {}
	virtual int two() { return 2; }
	long b;
};
struct Both : First, Second {
	int one() override { return 3; }
	int two() override { return 4; }
};

static Element *array;
static Second *second;
static char *text, *sized, *inside;

// Not left out by a compiler that sees nobody use it.
static __attribute__((noinline)) void lose(char *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
}

static char *old_string(size_t length, size_t capacity)
{
	size_t *p = (size_t *)calloc(1, 3 * sizeof(size_t) + capacity + 1);

	p[0] = length;
	p[1] = capacity;
	return (char *)(p + 3);
}

static __attribute__((noinline)) void make()
{
	array = new Element[7];
	second = new Both;
	text = old_string(5, 40);
	size_t *n = (size_t *)calloc(1, 8 + 77);
	n[0] = 77;
	sized = (char *)(n + 1);
	inside = (char *)calloc(1, 333) + 100;
	lose(new char[555]);
}

static __attribute__((noinline)) void wipe()
{
	volatile char below[4096];

	memset((char *)below, 0, sizeof below);
	__asm__ volatile("" ::"r"(below) : "memory", "rbx", "r12", "r13", "r14", "r15");
}

int main()
{
	make();
	wipe();
	return array == nullptr;
}

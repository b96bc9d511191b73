// SPDX-License-Identifier: MIT OR Apache-2.0
//
// operators [-n] ROUNDS: each form of operator new and delete once a round (8 allocations, 8 frees), and one
// new that cannot be met: the new handler is asked once, then std::bad_alloc is caught. Prints what
// was seen. -n: without that one, for allocators that end the program instead.
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <new>
#include <string_view>

static long handled, caught, wrong;

static void on_no_memory()
{
	handled++;
	std::set_new_handler(nullptr);
}

// Out of sight, so that pairs of new and delete are not left out.
static void *volatile keep;
template <class T> static T *seen(T *p)
{
	keep = p;
	return static_cast<T *>(keep);
}

static void check_align(const void *p, std::size_t align)
{
	wrong += !p || reinterpret_cast<std::uintptr_t>(p) % align;
}

static __attribute__((noinline)) void too_much(std::size_t n)
{
	std::set_new_handler(on_no_memory);
	try {
		::operator delete(seen(::operator new(n)));
		wrong++;
	} catch (const std::bad_alloc &) {
		caught++;
	}
}

static void one_round(volatile std::size_t *huge)
{
	const std::align_val_t align{128};
	void *a = seen(::operator new(40)), *b = seen(::operator new[](50));
	void *c = seen(::operator new(60, std::nothrow));
	void *d = seen(::operator new[](70, std::nothrow));
	void *e = seen(::operator new(80, align)), *f = seen(::operator new[](90, align));
	void *g = seen(::operator new(100, align, std::nothrow));
	void *h = seen(::operator new[](110, align, std::nothrow));

	for (const void *p : {e, f, g, h})
		check_align(p, 128);
	for (const void *p : {a, b, c, d})
		check_align(p, 8);
	::operator delete(a, std::size_t{40});
	::operator delete[](b);
	::operator delete(c, std::nothrow);
	::operator delete[](d, std::nothrow);
	::operator delete(e, std::size_t{80}, align);
	::operator delete[](f, align);
	::operator delete(g, align, std::nothrow);
	::operator delete[](h, align, std::nothrow);
	if (huge)
		too_much(*huge);
}

int main(int argc, char **argv)
{
	bool all = argc < 2 || std::string_view(argv[1]) != "-n";
	long rounds = argc > 1 ? std::strtol(argv[argc - 1], nullptr, 0) : 0;
	volatile std::size_t huge = SIZE_MAX / 4;

	for (long i = 0; i < rounds; i++)
		one_round(all ? &huge : nullptr);
	std::printf("%ld rounds, handler %ld, caught %ld, wrong %ld\n", rounds, handled, caught, wrong);
	return wrong != 0;
}

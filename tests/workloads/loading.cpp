// SPDX-License-Identifier: MIT OR Apache-2.0
//
// loading PLUGIN SECONDS: two threads load and unload a library, two throw and catch, two allocate, all
// at a time; what takes the loader's lock, or an unwinder's, in an allocation hangs here. Prints what was
// done to stderr, and "fine".
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <time.h>
#include <vector>

static std::atomic<bool> stop;
static std::atomic<long> loads, throws, blocks, wrong;

static void load(const char *path, int flags)
{
	while (!stop) {
		void *h = dlopen(path, flags);
		auto work = h ? reinterpret_cast<char *(*)()>(dlsym(h, "plugin_work")) : nullptr;
		char *s = work ? work() : nullptr;

		wrong += !s || std::string(s) != "worked";
		std::free(s);
		if (h)
			dlclose(h);
		loads++;
	}
}

static __attribute__((noinline)) void deep(int n)
{
	std::string s(static_cast<std::size_t>(n) + 40, 'x');

	if (!n)
		throw std::runtime_error(s);
	deep(n - 1);
	__asm__ volatile("" : : "r"(s.data()) : "memory");
}

static void throw_often()
{
	for (int i = 0; !stop; i++) {
		try {
			deep(i % 30);
			wrong++;
		} catch (const std::exception &e) {
			wrong += std::string(e.what()).size() != 40;
		}
		throws++;
	}
}

static void allocate()
{
	while (!stop) {
		std::vector<std::string> v;

		for (int i = 0; i < 100; i++)
			v.push_back(std::string(static_cast<std::size_t>(i) + 20, 'y'));
		blocks += 100;
	}
}

int main(int argc, char **argv)
{
	const char *plugin = argc > 1 ? argv[1] : "./plugin.so";
	struct timespec left = {argc > 2 ? std::strtol(argv[2], nullptr, 0) : 1, 0};
	std::vector<std::thread> t;

	t.emplace_back(load, plugin, RTLD_NOW);
	t.emplace_back(load, plugin, RTLD_LAZY | RTLD_DEEPBIND);
	t.emplace_back(throw_often);
	t.emplace_back(throw_often);
	t.emplace_back(allocate);
	t.emplace_back(allocate);
	nanosleep(&left, nullptr);
	stop = true;
	for (auto &one : t)
		one.join();
	std::fprintf(stderr, "%ld loads, %ld throws, %ld blocks\n", loads.load(), throws.load(),
		     blocks.load());
	std::puts(wrong ? "wrong" : "fine");
	return wrong != 0;
}

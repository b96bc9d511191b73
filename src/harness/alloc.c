/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Allocations counted: see alloc_priv.h. */
#include "harness/alloc_priv.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "base/map.h"

/* Absent in a static program of an older C library: then nothing is seen. */
extern void *dlsym(void *handle, const char *name) __attribute__((weak));
extern int dladdr1(const void *address, Dl_info *info, void **extra, int flags)
	__attribute__((weak));

/* Our hooks would be called in threads that the thread sanitizer does not know yet. */
#ifdef __SANITIZE_THREAD__
#define CANNOT_HOOK true
#else
#define CANNOT_HOOK false
#endif

#define TABLE_FIRST ((size_t)1 << 12)

/* Live blocks that were allocated while counting, by address. In memory of its own: the hooks may not
 * allocate. Written under `lock`. */
struct block {
	uintptr_t p;
	size_t bytes;
};
static struct {
	atomic_flag lock;
	struct block *slot;
	size_t n, cap; /* cap: 0 or a power of two, load below a half */
	struct as_alloc_counts all, stretches;
	uint64_t live, at_on; /* at_on: alive when the stretch began */
	bool failed;          /* no memory for the table: peaks are too high from here on */
} book = {.lock = ATOMIC_FLAG_INIT};
/* Written by the one who counts, read by the hooks; relaxed: the threads that are counted are started,
 * or let go at a barrier, after it. */
static atomic_bool counting, in_stretch, had_stretch;

static void book_lock(void)
{
	for (unsigned i = 0;
	     atomic_flag_test_and_set_explicit(&book.lock, memory_order_acquire); i++) {
		if (i > 100)
			(void)sched_yield();
	}
}

static void book_unlock(void)
{
	atomic_flag_clear_explicit(&book.lock, memory_order_release);
}

/* ---- the table of live blocks ---- */

static size_t slot_of(uintptr_t p)
{
	size_t i = (size_t)as_mix64(p) & (book.cap - 1);

	while (book.slot[i].p && book.slot[i].p != p)
		i = (i + 1) & (book.cap - 1);
	return i;
}

static bool grow(void)
{
	struct block *old = book.slot;
	size_t cap = book.cap, to = cap ? cap * 2 : TABLE_FIRST;
	void *p = mmap(NULL, to * sizeof *old, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	book.slot = p;
	book.cap = to;
	for (size_t i = 0; i < cap; i++) {
		if (old[i].p)
			book.slot[slot_of(old[i].p)] = old[i];
	}
	if (old)
		(void)munmap(old, cap * sizeof *old); /* it was mapped above */
	return true;
}

static void book_put(void *p, size_t bytes)
{
	size_t i;

	if (2 * (book.n + 1) > book.cap && !grow()) {
		book.failed = true;
		return;
	}
	i = slot_of((uintptr_t)p);
	book.n += !book.slot[i].p;
	book.slot[i] = (struct block){(uintptr_t)p, bytes};
	book.live += bytes;
	if (book.live > book.all.peak)
		book.all.peak = book.live;
}

/* What the block had, 0 when it is not one of ours; it is none any more. */
static size_t drop(const void *p)
{
	size_t i, hole, bytes;

	if (!book.cap)
		return 0;
	i = slot_of((uintptr_t)p);
	if (!book.slot[i].p)
		return 0;
	bytes = book.slot[i].bytes;
	book.live -= bytes;
	book.n--;
	/* those after it move up, so that no search stops short */
	for (hole = i, i = (i + 1) & (book.cap - 1); book.slot[i].p;
	     i = (i + 1) & (book.cap - 1)) {
		size_t home = (size_t)as_mix64(book.slot[i].p) & (book.cap - 1);

		if (((i - home) & (book.cap - 1)) < ((i - hole) & (book.cap - 1)))
			continue;
		book.slot[hole] = book.slot[i];
		hole = i;
	}
	book.slot[hole] = (struct block){0, 0};
	return bytes;
}

/* ---- events ---- */

static bool is_counting(void)
{
	return atomic_load_explicit(&counting, memory_order_relaxed);
}

static void count(uint64_t bytes)
{
	book.all.calls++;
	book.all.bytes += bytes;
	if (atomic_load_explicit(&in_stretch, memory_order_relaxed)) {
		book.stretches.calls++;
		book.stretches.bytes += bytes;
		if (book.live > book.at_on + book.stretches.peak)
			book.stretches.peak = book.live - book.at_on;
	}
}

static void *got(void *p, size_t bytes)
{
	if (p && is_counting()) {
		book_lock();
		book_put(p, bytes);
		count(bytes);
		book_unlock();
	}
	return p;
}

static void gone(const void *p)
{
	if (p && is_counting()) {
		book_lock();
		(void)drop(p);
		book_unlock();
	}
}

#define REAL(name, type) ((type)as_alloc_hooks[AS_ALLOC_##name].real)

static void *our_malloc(size_t n)
{
	return got(REAL(malloc, void *(*)(size_t))(n), n);
}

static void *our_calloc(size_t n, size_t size)
{
	return got(REAL(calloc, void *(*)(size_t, size_t))(n, size), n * size);
}

static void moved(const void *from, void *to, size_t bytes)
{
	book_lock();

	size_t before = drop(from);

	book_put(to, bytes);
	count(bytes > before ? bytes - before : 0);
	book_unlock();
}

static void *our_realloc(void *p, size_t n)
{
	void *to = REAL(realloc, void *(*)(void *, size_t))(p, n);

	if (!is_counting())
		return to;
	if (to)
		moved(p, to, n);
	else if (!n)
		gone(p);
	return to;
}

static void *our_reallocarray(void *p, size_t n, size_t size)
{
	void *to = REAL(reallocarray, void *(*)(void *, size_t, size_t))(p, n, size);

	if (to && is_counting())
		moved(p, to, n * size);
	return to;
}

static void our_free(void *p)
{
	gone(p);
	REAL(free, void (*)(void *))(p);
}

static int our_posix_memalign(void **ret, size_t align, size_t n)
{
	int r = REAL(posix_memalign, int (*)(void **, size_t, size_t))(ret, align, n);

	if (r == 0)
		(void)got(*ret, n);
	return r;
}

static void *our_aligned_alloc(size_t align, size_t n)
{
	return got(REAL(aligned_alloc, void *(*)(size_t, size_t))(align, n), n);
}

static void *our_memalign(size_t align, size_t n)
{
	return got(REAL(memalign, void *(*)(size_t, size_t))(align, n), n);
}

static void *our_valloc(size_t n)
{
	return got(REAL(valloc, void *(*)(size_t))(n), n);
}

struct as_alloc_hook as_alloc_hooks[AS_ALLOC_NAMES_] = {
#define F(name) [AS_ALLOC_##name] = {#name, (void *)our_##name, NULL},
	AS_ALLOC_NAMES(F)
#undef F
};

/* ---- on and off ---- */

/* The program has an allocator of its own (and calls it without a table): what it gave must not be
 * freed by the C library's. Unlike a stub of that name, of a program that is not position independent. */
static bool has_own_allocator(void)
{
	void *used = dlsym(RTLD_DEFAULT, "malloc");
	void *symbol = NULL;
	Dl_info info;

	if (used == dlsym(RTLD_NEXT, "malloc"))
		return false;
	return !dladdr1(used, &info, &symbol, RTLD_DL_SYMENT) || !symbol ||
	       ((const ElfW(Sym) *)symbol)->st_shndx != SHN_UNDEF;
}

bool as_alloc_patch(void)
{
	if (CANNOT_HOOK || !dlsym || !dladdr1 || has_own_allocator())
		return false;
	/* the next object's: this one may have a stub of that name, which goes through what we change */
	for (int i = 0; i < AS_ALLOC_NAMES_; i++)
		as_alloc_hooks[i].real = dlsym(RTLD_NEXT, as_alloc_hooks[i].name);
	if (!as_alloc_hooks[AS_ALLOC_malloc].real || !as_alloc_hooks[AS_ALLOC_free].real)
		return false;
	return as_alloc_patch_tables() > 0;
}

void as_alloc_begin(void)
{
	book_lock();
	book.all = book.stretches = (struct as_alloc_counts){0};
	book.live = 0;
	book.n = 0;
	if (book.cap)
		memset(book.slot, 0, book.cap * sizeof *book.slot);
	book_unlock();
	atomic_store_explicit(&in_stretch, false, memory_order_relaxed);
	atomic_store_explicit(&had_stretch, false, memory_order_relaxed);
	atomic_store_explicit(&counting, true, memory_order_relaxed);
}

void as_alloc_end(struct as_alloc_counts *ret)
{
	atomic_store_explicit(&counting, false, memory_order_relaxed);
	book_lock();
	*ret = atomic_load_explicit(&had_stretch, memory_order_relaxed) ? book.stretches
									: book.all;
	book_unlock();
}

void as_alloc_on(void)
{
	if (!is_counting())
		return;
	book_lock();
	book.at_on = book.live;
	book_unlock();
	atomic_store_explicit(&had_stretch, true, memory_order_relaxed);
	atomic_store_explicit(&in_stretch, true, memory_order_relaxed);
}

void as_alloc_off(void)
{
	if (is_counting())
		atomic_store_explicit(&in_stretch, false, memory_order_relaxed);
}

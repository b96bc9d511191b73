/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The in-target runtime in this process: thunks call it as patched functions would, with libc's
 * functions as the originals. What it wrote is held against what was called, and its stacks
 * against the user-space unwinder.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include "../rt/frames.h"
#include "../rt/rt_view.h"

typedef void *fn_size(size_t);
typedef void *fn_two(size_t, size_t);
typedef void *fn_realloc(void *, size_t);
typedef void *fn_three(void *, size_t, size_t);
typedef int fn_pointer(void **, size_t, size_t);
typedef void fn_free(void *);
typedef void *fn_mmap(void *, size_t, int, int, int, off_t);
typedef int fn_munmap(void *, size_t);
typedef void *fn_mremap(void *, size_t, size_t, int, ...);

static struct rt_host host;
static struct view view;

static void open_host(const struct rt_host_options *o)
{
	rt_host_open(&host, o);
	view_open(&view, &host);
}

static void close_host(void)
{
	rt_host_close(&host);
	view_close(&view);
}

#define HOOK(type, kind, original)                                                             \
	((type *)rt_host_hook(&host, AS_RT_##kind, (const void *)(original)))

/* ---- the image ---- */

static void the_image_says_what_the_header_says(void **state)
{
	(void)state;
	const struct as_rt_image *i = (const void *)as_rt_blob;
	assert_int_equal(i->magic, AS_RT_MAGIC);
	assert_int_equal(i->version, AS_RT_VERSION);
	assert_int_equal(i->bytes, as_rt_blob_bytes);
	assert_int_equal(i->kinds, AS_RT_KINDS);
	assert_int_equal(i->context_bytes, AS_RT_CONTEXT_BYTES);
	assert_true(i->text_off >= sizeof *i);
	assert_true(i->text_off + i->text_bytes <= i->eh_frame_off);
	assert_true(i->eh_frame_off + i->eh_frame_bytes <= i->bytes);
	for (int k = 0; k < AS_RT_KINDS; k++) {
		assert_in_range(i->entry[k], i->text_off, i->text_off + i->text_bytes - 1);
		assert_in_range(i->sampled[k], i->text_off, i->text_off + i->text_bytes - 1);
		for (int l = 0; l < k; l++) {
			assert_int_not_equal(i->entry[k], i->entry[l]);
			assert_int_not_equal(i->sampled[k], i->sampled[l]);
		}
	}
}

/* ---- one record for each call ---- */

static const struct rt_record *last(void)
{
	view_drain(&view);
	return &view.ring[1]->last;
}

static void assert_alloc(void *ptr, size_t size)
{
	const struct rt_record *r = last();
	assert_int_equal(r->u.head.kind, AS_RT_REC_ALLOC);
	assert_int_equal(r->u.alloc.ptr, (uintptr_t)ptr);
	assert_int_equal(r->u.alloc.size_bytes, size);
	assert_int_not_equal(r->u.alloc.node, 0);
	errno = 77;
}

static void assert_realloc(void *old, void *new_ptr, size_t size)
{
	const struct rt_record *r = last();
	assert_int_equal(r->u.head.kind, AS_RT_REC_REALLOC);
	assert_int_equal(r->u.realloc.old, (uintptr_t)old);
	assert_int_equal(r->u.realloc.new_ptr, (uintptr_t)new_ptr);
	assert_int_equal(r->u.realloc.size_bytes, size);
	errno = 77;
}

/* As libc refuses; sanitizers end the program instead. */
static int refuse_alignment(void **p, size_t align, size_t size)
{
	(void)p, (void)align, (void)size;
	return EINVAL;
}

static void *refuse(void)
{
	errno = ENOMEM;
	return NULL;
}

static void every_allocation_is_told_with_its_size_and_pointer(void **state)
{
	(void)state;
	open_host(&(struct rt_host_options){0});
	fn_size *m = HOOK(fn_size, SIZE, malloc);
	fn_two *c = HOOK(fn_two, COUNT, calloc), *al = HOOK(fn_two, ALIGN, aligned_alloc);
	fn_pointer *pm = HOOK(fn_pointer, POINTER, posix_memalign);
	fn_free *f = HOOK(fn_free, FREE, free);
	errno = 77;
	void *p = m(100), *q = NULL;
	assert_alloc(p, 100);
	f(p);
	assert_int_equal(last()->u.head.kind, AS_RT_REC_FREE);
	assert_int_equal(last()->u.free.ptr, (uintptr_t)p);
	p = c(3, 50);
	assert_int_equal(((char *)p)[149], 0);
	assert_alloc(p, 150);
	f(p);
	p = al(256, 512);
	assert_int_equal((uintptr_t)p % 256, 0);
	assert_alloc(p, 512);
	f(p);
	assert_int_equal(pm(&q, 64, 10), 0);
	assert_alloc(q, 10);
	f(q);
	f(NULL);
	pm = HOOK(fn_pointer, POINTER, refuse_alignment);
	assert_int_equal(pm(&q, 3, 10), EINVAL);
	assert_alloc(NULL, 10);
	assert_int_equal(errno, 77); /* nothing failed that sets it */
	c = HOOK(fn_two, COUNT, refuse);
	assert_null(c(SIZE_MAX / 2, 3));
	assert_int_equal(errno, ENOMEM); /* the original's */
	assert_alloc(NULL, SIZE_MAX);
	assert_int_equal(view.ring[1]->count[AS_RT_REC_FREE], 4);
	assert_int_equal(view.ring[1]->count[AS_RT_REC_THREAD], 1);
	assert_int_equal(view.ring[1]->thread.pid, getpid());
	close_host();
}

static void reallocations_are_told_before_and_after(void **state)
{
	(void)state;
	open_host(&(struct rt_host_options){0});
	fn_realloc *re = HOOK(fn_realloc, REALLOC, realloc);
	fn_three *ra = HOOK(fn_three, REALLOC_COUNT, reallocarray);
	void *p = re(NULL, 10), *old;
	errno = 77;
	assert_realloc(NULL, p, 10);
	assert_int_equal(view.ring[1]->count[AS_RT_REC_REALLOC_BEGIN], 0);
	p = re(old = p, 100000);
	assert_realloc(old, p, 100000);
	assert_int_equal(view.ring[1]->count[AS_RT_REC_REALLOC_BEGIN], 1);
	p = ra(old = p, 7, 11);
	assert_realloc(old, p, 77);
	assert_int_equal(errno, 77);
	ra = HOOK(fn_three, REALLOC_COUNT, refuse);
	assert_null(ra(p, SIZE_MAX, 2));
	assert_realloc(p, NULL, SIZE_MAX);
	assert_null(re(p, 0));
	assert_realloc(p, NULL, 0);
	close_host();
}

/* As xallocx: never beyond 64 bytes. */
static size_t resize(void *p, size_t size, size_t extra, int flags)
{
	(void)p, (void)extra, (void)flags;
	return size <= 64 ? size : 64;
}

static void *rust_realloc(void *p, size_t old_size, size_t align, size_t size)
{
	(void)old_size, (void)align;
	return realloc(p, size);
}

static void *heap_alloc(void *heap, size_t size)
{
	(void)heap;
	return malloc(size);
}

static void the_other_allocators_calls_are_told_as_well(void **state)
{
	(void)state;
	open_host(&(struct rt_host_options){0});
	size_t (*x)(void *, size_t, size_t, int) =
		(void *)HOOK(fn_size, RESIZE, resize); /* the fourth argument arrives */
	void *(*rust)(void *, size_t, size_t, size_t) =
		(void *)HOOK(fn_size, REALLOC_RUST, rust_realloc);
	void *(*heap)(void *, size_t) = (void *)HOOK(fn_size, HEAP, heap_alloc);
	char block[64];
	assert_int_equal(x(block, 60, 0, 1), 60);
	assert_realloc(block, block, 60);
	assert_int_equal(x(block, 65, 0, 1), 64);
	assert_int_equal(view.ring[1]->count[AS_RT_REC_REALLOC], 1);
	void *p = heap(block, 33);
	assert_alloc(p, 33);
	void *q = rust(p, 33, 8, 4000);
	assert_realloc(p, q, 4000);
	free(q);
	close_host();
}

static int asked;

/* As operator new: the original of one that throws. */
static void *throwing(size_t n, size_t align)
{
	asked++;
	return n == 13 && align == 8 ? &asked : NULL;
}

static void *instead_of_it(size_t n, size_t align)
{
	(void)align;
	return n == 13 ? NULL : malloc(n);
}

static void *nested_new(size_t n, size_t align);
static fn_two *the_new;

static void what_may_throw_is_jumped_to_when_its_stand_in_gives_nothing(void **state)
{
	(void)state;
	open_host(&(struct rt_host_options){0});
	the_new = HOOK(fn_two, NEW, throwing);
	host.hook[0].instead = (uintptr_t)instead_of_it;
	asked = 0;
	void *p = the_new(40, 8);
	assert_int_equal(asked, 0);
	assert_alloc(p, 40);
	free(p);
	/* with the arguments as they came; it is its own matter what it returns */
	uint64_t n = view.ring[1]->count[AS_RT_REC_ALLOC];
	assert_ptr_equal(the_new(13, 8), &asked);
	assert_int_equal(asked, 1);
	view_drain(&view);
	assert_int_equal(view.ring[1]->count[AS_RT_REC_ALLOC], n);
	/* a stand-in that calls the patched function again reaches the original */
	host.hook[0].instead = (uintptr_t)nested_new;
	assert_ptr_equal(the_new(12, 8), &asked);
	assert_int_equal(asked, 2);
	assert_alloc(&asked, 12);
	close_host();
}

static void *nested_new(size_t n, size_t align)
{
	return the_new(n + 1, align);
}

static int nothing(int a, int b)
{
	return a + b;
}

static void a_filter_that_comes_ends_system_calls(void **state)
{
	(void)state;
	static const struct {
		enum as_rt_kind kind;
		int a, b;
		bool ends;
	} t[] = {
		{AS_RT_PRCTL, 22, 2, true},     {AS_RT_PRCTL, 38, 1, false},
		{AS_RT_PRCTL, 26, 2, true},     {AS_RT_SYSCALL, 157, 26, true},
		{AS_RT_SYSCALL, 317, 1, true},  {AS_RT_SYSCALL, 157, 22, true},
		{AS_RT_SYSCALL, 157, 4, false}, {AS_RT_SYSCALL, 39, 22, false},
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		open_host(&(struct rt_host_options){0});
		int (*f)(int, int) = (int (*)(int, int))rt_host_hook(&host, t[i].kind,
								     (const void *)nothing);
		assert_int_equal(f(t[i].a, t[i].b), t[i].a + t[i].b);
		assert_int_equal((host.control->flags & AS_RT_NO_SYSCALLS) != 0, t[i].ends);
		close_host();
	}
}

static void mappings_are_told_with_all_their_arguments(void **state)
{
	(void)state;
	open_host(&(struct rt_host_options){0});
	fn_mmap *map = HOOK(fn_mmap, MMAP, mmap);
	fn_munmap *unmap = HOOK(fn_munmap, MUNMAP, munmap);
	fn_mremap *remap = HOOK(fn_mremap, MREMAP, mremap);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *p = map(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 4096);
	assert_ptr_not_equal(p, MAP_FAILED);
	const struct as_rt_rec_mmap *m = &last()->u.mmap;
	assert_int_equal(m->head.kind, AS_RT_REC_MMAP);
	assert_int_equal(m->addr, (uintptr_t)p);
	assert_int_equal(m->length_bytes, 8192);
	assert_int_equal(m->prot, PROT_READ);
	assert_int_equal(m->flags, MAP_PRIVATE);
	assert_int_equal(m->fd, fd);
	assert_int_equal(m->off, 4096);
	assert_int_not_equal(m->node, 0);
	assert_int_equal(unmap(p, 8192), 0);
	assert_int_equal(last()->u.munmap.addr, (uintptr_t)p);
	assert_int_equal(last()->u.munmap.failed, 0);
	assert_int_equal(unmap((void *)1, 8192), -1);
	assert_int_equal(last()->u.munmap.failed, 1);
	p = map(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(last()->u.mmap.fd, -1);
	void *q = remap(p, 4096, 65536, MREMAP_MAYMOVE);
	assert_ptr_not_equal(q, MAP_FAILED);
	assert_int_equal(last()->u.mremap.old, (uintptr_t)p);
	assert_int_equal(last()->u.mremap.old_bytes, 4096);
	assert_int_equal(last()->u.mremap.new_addr, (uintptr_t)q);
	assert_int_equal(last()->u.mremap.new_bytes, 65536);
	uint64_t n = view.ring[1]->count[AS_RT_REC_MMAP];
	assert_ptr_equal(map(NULL, 0, PROT_READ, MAP_PRIVATE, fd, 0), MAP_FAILED);
	view_drain(&view);
	assert_int_equal(view.ring[1]->count[AS_RT_REC_MMAP], n);
	munmap(q, 65536);
	close(fd);
	close_host();
}

static void flags_pause_and_leave_out_stacks_at_any_time(void **state)
{
	(void)state;
	open_host(&(struct rt_host_options){.flags = AS_RT_PAUSED});
	fn_size *m = HOOK(fn_size, SIZE, malloc);
	fn_free *f = HOOK(fn_free, FREE, free);
	f(m(1));
	assert_int_equal(view_drain(&view), 0);
	host.control->flags &= ~(uint32_t)AS_RT_PAUSED;
	host.control->flags |= AS_RT_NO_STACKS;
	f(m(1));
	view_drain(&view);
	assert_int_equal(view.ring[1]->count[AS_RT_REC_NODE], 0);
	assert_int_equal(view.ring[1]->count[AS_RT_REC_ALLOC], 1);
	host.control->flags =
		(host.control->flags & ~(uint32_t)AS_RT_NO_STACKS) | AS_RT_FREE_STACKS;
	f(m(1));
	assert_int_equal(last()->u.head.units, 2);
	assert_int_not_equal(last()->u.free.node, 0);
	host.control->clock_ns = 123456;
	f(m(1));
	view_drain(&view);
	assert_int_equal(view.ring[1]->last_time_ns, 123456);
	assert_int_equal(view.ring[1]->count[AS_RT_REC_TIME], 1);
	close_host();
}

/* ---- stacks ---- */

static struct {
	size_t checked, complete, frames;
} tally;
static unsigned stacks_ring = 1;

/* The record's stack, from the innermost function's caller on, is the unwinder's. */
static void same_as_the_unwinder(struct frames *f, void *ptr)
{
	static struct as_uframe frame[VIEW_DEPTH];
	static struct view_stack s;
	enum as_stack_end end;
	size_t n = truth_here(&host, frame, VIEW_DEPTH, &end);
	view_drain(&view);
	const struct rt_record *r = &view.ring[stacks_ring]->last;
	free(ptr);
	assert_int_equal(r->u.head.kind, AS_RT_REC_ALLOC);
	assert_int_equal(r->u.alloc.ptr, (uintptr_t)ptr);
	assert_int_equal(r->u.alloc.size_bytes, f->size);
	assert_true(view_stack(view.ring[stacks_ring], r->u.alloc.node, &s));
	/* both were called by the same function, at different places of it */
	assert_true(n > 0 && s.n == n);
	assert_true(s.avma[0] - frame[0].avma + 256 < 512);
	for (size_t i = 1; i < n; i++)
		assert_int_equal(s.avma[i], frame[i].avma);
	assert_int_equal(s.end, end);
	tally.checked++;
	tally.frames += n;
	tally.complete += end == AS_END_ROOT;
}

#define STACKS 60000 /* whose nodes are more than a thread's table holds */

static void stacks_without_frame_pointers_are_the_unwinders(void **state)
{
	(void)state;
	open_host(&(struct rt_host_options){0});
	struct frames f = {.alloc = HOOK(fn_size, SIZE, malloc), .then = same_as_the_unwinder};
	uint64_t seed = 7;
	memset(&tally, 0, sizeof tally);
	for (unsigned i = 0; i < STACKS; i++) {
		/* few paths at first, which come again; then ever new ones */
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		uint64_t path = i < 3000 ? seed >> 33 & 7 : seed >> 20;
		f.size = 1 + (seed >> 40) % 300;
		frames_run(&f, 4 + (int)(path % 9), path * 0x9e3779b97f4a7c15ull >> 7);
	}
	print_message("%zu stacks, %zu frames, %zu complete, %lu nodes, %lu resets\n",
		      tally.checked, tally.frames, tally.complete,
		      (unsigned long)view.ring[1]->count[AS_RT_REC_NODE],
		      (unsigned long)view.ring[1]->count[AS_RT_REC_RESET]);
	assert_int_equal(tally.checked, STACKS);
	assert_int_equal(tally.complete, tally.checked);
	assert_true(view.ring[1]->count[AS_RT_REC_RESET] > 0); /* the table was full */
	assert_int_equal(view.ring[1]->unknown_nodes, 0);
	close_host();
}

/* The same small and busy frames in other orders: the innermost one is in the same place. n others before,
 * so that all nodes have other numbers. */
static void *some_stacks(void *n)
{
	struct frames f = {
		.alloc = HOOK(fn_size, SIZE, malloc), .then = same_as_the_unwinder, .size = 8};
	for (int i = 0; i < (int)(uintptr_t)n; i++)
		frames_recurse(&f, 3 + i);
	for (unsigned i = 0; i < 24; i++) {
		unsigned long path = 000200220222, shift = 3 * (i / 2);
		frames_run(&f, 12, (path >> shift | path << (36 - shift)) & 0777777777777);
	}
	return NULL;
}

/* The second has the stack, the context and the ring of the first; its nodes are other ones. */
static void a_thread_on_the_stack_of_another_has_stacks_of_its_own(void **state)
{
	static _Alignas(4096) char stack[1 << 18];
	(void)state;
	open_host(&(struct rt_host_options){0});
	free((HOOK(fn_size, SIZE, malloc))(1)); /* this thread's is the first ring */
	stacks_ring = 2;
	memset(&tally, 0, sizeof tally);
	for (uintptr_t i = 0; i < 3; i++) {
		pthread_attr_t attr;
		pthread_t t;
		pthread_attr_init(&attr);
		pthread_attr_setstack(&attr, stack, sizeof stack);
		assert_int_equal(pthread_create(&t, &attr, some_stacks, (void *)i), 0);
		pthread_join(t, NULL);
		pthread_attr_destroy(&attr);
		assert_int_not_equal(host.control->owner[2], 0);
		host.control->owner[2] = 0; /* it is gone, its ring is read */
	}
	stacks_ring = 1;
	assert_int_equal(tally.checked, 3 * 24 + 0 + 1 + 2);
	assert_int_equal(view.ring[2]->unknown_nodes, 0);
	close_host();
}

static void a_change_of_modules_starts_the_nodes_anew(void **state)
{
	(void)state;
	open_host(&(struct rt_host_options){0});
	struct frames f = {.alloc = HOOK(fn_size, SIZE, malloc), .then = same_as_the_unwinder};
	for (uint64_t i = 0; i < 5; i++) {
		frames_run(&f, 8, 0123456701);
		assert_int_equal(view.ring[1]->count[AS_RT_REC_RESET], i);
		rt_host_publish(&host);
	}
	close_host();
}

static void keep(struct frames *f, void *ptr)
{
	(void)f;
	free(ptr);
}

static void too_deep_stacks_are_marked_and_keep_their_root(void **state)
{
	(void)state;
	static struct view_stack s, top;
	open_host(&(struct rt_host_options){0});
	struct frames f = {.alloc = HOOK(fn_size, SIZE, malloc), .then = keep};
	frames_recurse(&f, 10);
	assert_true(view_stack(view.ring[1], last()->u.alloc.node, &top));
	assert_false(top.truncated);
	frames_recurse(&f, 5000);
	assert_true(view_stack(view.ring[1], last()->u.alloc.node, &s));
	assert_true(s.truncated);
	assert_true(s.n >= 1024 && s.n <= 1032);
	assert_int_equal(s.avma[0], top.avma[0]);
	assert_int_equal(s.avma[1000], s.avma[2]);
	for (size_t i = 1; i <= 4; i++) /* _start, libc's, main */
		assert_int_equal(s.avma[s.n - i], top.avma[top.n - i]);
	frames_recurse(&f, 1000);
	assert_true(view_stack(view.ring[1], last()->u.alloc.node, &s));
	assert_false(s.truncated);
	assert_int_equal(s.n, top.n + 990);
	close_host();
}

static void code_without_tables_never_faults(void **state)
{
	(void)state;
	static struct view_stack s;
	open_host(&(struct rt_host_options){0});
	struct frames f = {.alloc = HOOK(fn_size, SIZE, malloc), .then = keep};
	for (size_t i = 0; i + 1 < host.nmodules; i++)
		host.module[i].has_table = false;
	rt_host_publish(&host);
	uint64_t seed = 3;
	for (int i = 0; i < 2000; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		frames_run(&f, 6, seed >> 20);
		assert_true(view_stack(view.ring[1], last()->u.alloc.node, &s));
		assert_int_not_equal(s.end, AS_END_ROOT);
	}
	host.control->module_set[0].count = host.control->module_set[1].count = 0;
	host.control->modules_seq++;
	frames_run(&f, 6, 0);
	assert_true(view_stack(view.ring[1], last()->u.alloc.node, &s));
	assert_int_equal(s.n, 1);
	assert_int_equal(s.end, AS_END_NOMAP);
	close_host();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_image_says_what_the_header_says),
		cmocka_unit_test(every_allocation_is_told_with_its_size_and_pointer),
		cmocka_unit_test(reallocations_are_told_before_and_after),
		cmocka_unit_test(the_other_allocators_calls_are_told_as_well),
		cmocka_unit_test(what_may_throw_is_jumped_to_when_its_stand_in_gives_nothing),
		cmocka_unit_test(a_filter_that_comes_ends_system_calls),
		cmocka_unit_test(mappings_are_told_with_all_their_arguments),
		cmocka_unit_test(flags_pause_and_leave_out_stacks_at_any_time),
		cmocka_unit_test(stacks_without_frame_pointers_are_the_unwinders),
		cmocka_unit_test(a_thread_on_the_stack_of_another_has_stacks_of_its_own),
		cmocka_unit_test(a_change_of_modules_starts_the_nodes_anew),
		cmocka_unit_test(too_deep_stacks_are_marked_and_keep_their_root),
		cmocka_unit_test(code_without_tables_never_faults),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

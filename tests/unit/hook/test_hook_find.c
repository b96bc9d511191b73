/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which functions of a module are an allocator's, and where in a process there is room for code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "fixture.h"
#include "hook/allocators.h"
#include "hook/maps.h"

static struct as_elf *open_elf(const char *path)
{
	struct as_error err;
	struct as_elf *e;

	if (as_elf_open(path, &e, &err) < 0)
		fail_msg("%s", err.msg);
	return e;
}

static const struct as_allocator *find(const struct as_allocators *a, const char *name)
{
	as_vec_foreach (it, a) {
		if (!strcmp(it->name, name))
			return it;
	}
	return NULL;
}

static void check_kind(const struct as_allocators *a, const char *name, enum as_rt_kind kind,
		       enum as_allocator_family family)
{
	const struct as_allocator *it = find(a, name);

	if (!it)
		fail_msg("%s is not found", name);
	if (it->kind != kind || it->family != family)
		fail_msg("%s: kind %u of %s", name, it->kind,
			 as_allocator_name((enum as_allocator_family)it->family));
}

static void the_c_library_has_its_family_once(void **state)
{
	const char *path = "/lib/x86_64-linux-gnu/libc.so.6";
	struct as_allocators a;
	struct as_elf *e;

	if (access(path, R_OK))
		fx_skip("no %s", path);
	e = open_elf(path);
	as_allocators_find(e, AS_HOOKS_HEAP, &a);
	check_kind(&a, "malloc", AS_RT_SIZE, AS_ALLOCATOR_GLIBC);
	check_kind(&a, "calloc", AS_RT_COUNT, AS_ALLOCATOR_GLIBC);
	check_kind(&a, "realloc", AS_RT_REALLOC, AS_ALLOCATOR_GLIBC);
	check_kind(&a, "reallocarray", AS_RT_REALLOC_COUNT, AS_ALLOCATOR_GLIBC);
	check_kind(&a, "posix_memalign", AS_RT_POINTER, AS_ALLOCATOR_GLIBC);
	check_kind(&a, "free", AS_RT_FREE, AS_ALLOCATOR_GLIBC);
	assert_null(find(&a, "mmap"));
	assert_null(find(&a, "malloc_usable_size"));
	for (size_t i = 1; i < a.n; i++)
		assert_true(a.v[i - 1].svma < a.v[i].svma);
	as_allocators_clear(&a);
	as_allocators_find(e, AS_HOOKS_MAPPINGS | AS_HOOKS_EXEC, &a);
	check_kind(&a, "mmap", AS_RT_MMAP, AS_ALLOCATOR_NONE);
	check_kind(&a, "munmap", AS_RT_MUNMAP, AS_ALLOCATOR_NONE);
	check_kind(&a, "execve", AS_RT_EXEC, AS_ALLOCATOR_NONE);
	assert_null(find(&a, "malloc"));
	as_allocators_clear(&a);
	as_elf_close(e);
}

static void prefixes_tell_the_allocator(void **state)
{
	struct as_allocators a;
	struct as_elf *e;

	fx_need("gcc");
	fx_write(
		"p.c",
		"#define F(n) void *n(void *p) { return (char *)p + __LINE__ * __COUNTER__; }\n"
		"F(_rjem_malloc) F(_rjem_sdallocx) F(je_xallocx) F(tc_memalign)\n"
		"F(mi_heap_malloc) F(mi_free_size) F(mi_recalloc) F(rje_malloc) F(mallocate)\n"
		"F(_ZnwmRKSt9nothrow_t) F(_Znwm) F(_ZdlPvm)\n");
	assert_int_equal(fx_sh("gcc -O1 -shared -fPIC -o p.so p.c"), 0);
	e = open_elf(fx_path("p.so"));
	as_allocators_find(e, AS_HOOKS_HEAP, &a);
	check_kind(&a, "_rjem_malloc", AS_RT_SIZE, AS_ALLOCATOR_JEMALLOC);
	check_kind(&a, "_rjem_sdallocx", AS_RT_FREE, AS_ALLOCATOR_JEMALLOC);
	check_kind(&a, "je_xallocx", AS_RT_RESIZE, AS_ALLOCATOR_JEMALLOC);
	check_kind(&a, "tc_memalign", AS_RT_ALIGN, AS_ALLOCATOR_TCMALLOC);
	check_kind(&a, "mi_heap_malloc", AS_RT_HEAP, AS_ALLOCATOR_MIMALLOC);
	check_kind(&a, "mi_free_size", AS_RT_FREE, AS_ALLOCATOR_MIMALLOC);
	check_kind(&a, "mi_recalloc", AS_RT_REALLOC_COUNT, AS_ALLOCATOR_MIMALLOC);
	check_kind(&a, "_ZnwmRKSt9nothrow_t", AS_RT_SIZE, AS_ALLOCATOR_C);
	check_kind(&a, "_ZdlPvm", AS_RT_FREE, AS_ALLOCATOR_C);
	/* may throw, and is known to call malloc or to be of no known allocator */
	assert_null(find(&a, "_Znwm"));
	assert_null(find(&a, "rje_malloc"));
	assert_null(find(&a, "mallocate"));
	as_allocators_clear(&a);
	as_elf_close(e);
}

static void a_throwing_operator_is_told_with_what_returns_null(void **state)
{
	struct as_allocators a;
	struct as_elf *e;

	fx_need("gcc");
	fx_write(
		"n.c",
		"#define F(n) void *n(void *p) { return (char *)p + __LINE__ * __COUNTER__; }\n"
		"F(malloc) F(mallctl) F(_Znwm) F(_ZnwmRKSt9nothrow_t) F(_Znam)\n"
		"F(tc_new) F(tc_new_nothrow) F(mi_new_n) F(mi_mallocn)\n");
	assert_int_equal(fx_sh("gcc -O1 -fno-builtin -shared -fPIC -o n.so n.c"), 0);
	e = open_elf(fx_path("n.so"));
	as_allocators_find(e, AS_HOOKS_HEAP, &a);
	check_kind(&a, "_Znwm", AS_RT_NEW, AS_ALLOCATOR_JEMALLOC);
	assert_int_equal(find(&a, "_Znwm")->instead_svma,
			 find(&a, "_ZnwmRKSt9nothrow_t")->svma);
	assert_false(find(&a, "_Znwm")->counted);
	assert_null(find(&a, "_Znam")); /* has none here */
	check_kind(&a, "tc_new", AS_RT_NEW, AS_ALLOCATOR_TCMALLOC);
	check_kind(&a, "mi_new_n", AS_RT_NEW, AS_ALLOCATOR_MIMALLOC);
	assert_true(find(&a, "mi_new_n")->counted);
	as_allocators_clear(&a);
	as_elf_close(e);
}

static void marks_are_found_by_name_and_by_note(void **state)
{
	const char *root = getenv("SOURCE_ROOT");

	if (!root)
		fx_skip("SOURCE_ROOT is not set");
	fx_need("gcc");
	fx_write("m.c",
		 "#include <assay/heap.h>\nint main(void) { assay_heap_mark(\"a\"); }\n");
	assert_int_equal(fx_sh("gcc -O1 -I%s/include -o m m.c && strip -o ms m", root), 0);
	for (int i = 0; i < 2; i++) {
		struct as_allocators a;
		struct as_elf *e = open_elf(fx_path(i ? "ms" : "m"));
		const uint8_t *code;

		as_allocators_find(e, AS_HOOKS_MARKS, &a);
		assert_int_equal(a.n, 1);
		assert_int_equal(a.v[0].kind, AS_RT_MARK);
		assert_string_equal(a.v[0].name, "assay_heap_mark_site");
		code = as_elf_at(e, a.v[0].svma, 10);
		assert_non_null(code);
		assert_int_equal(code[9], 0xc3); /* endbr64, a nop of 5, ret */
		as_allocators_clear(&a);
		as_elf_close(e);
	}
}

static void local_names_count_as_a_set_only(void **state)
{
	static const struct {
		const char *body;
		size_t want;
	} c[] = {
		{"S(malloc) S(calloc) S(realloc) S(free)", 4},
		{"S(malloc) S(free)", 0},
		{"S(malloc) S(calloc) S(realloc) F(free)", 4},
		{"S(free) F(malloc)", 1},
		{"F(_ZdlPv) F(_ZdaPv)", 0},
	};

	fx_need("gcc");
	for (size_t i = 0; i < AS_ARRAY_LEN(c); i++) {
		struct as_allocators a;
		struct as_elf *e;
		char text[600];

		snprintf(text, sizeof text,
			 "#define F(n) void *n(void *p) { return (char *)p + __COUNTER__ * 99; "
			 "}\n"
			 "#define S(n) __attribute__((used, noinline)) static F(n)\n%s\n",
			 c[i].body);
		fx_write("l.c", text);
		assert_int_equal(fx_sh("gcc -O1 -shared -fPIC -fno-builtin -o l.so l.c"), 0);
		e = open_elf(fx_path("l.so"));
		as_allocators_find(e, AS_HOOKS_HEAP, &a);
		if (a.n != c[i].want)
			fail_msg("%s: %zu", c[i].body, a.n);
		as_allocators_clear(&a);
		as_elf_close(e);
	}
}

/* ---- room ---- */

static void add(struct as_maps *m, uint64_t start, uint64_t end, enum as_map_kind kind)
{
	as_vec_push(&m->map, (struct as_map){start, end, (uint8_t)kind, true, false, false});
}

/* What is given is free, near, and on no growing thing's way. */
static void check_place(const struct as_maps *m, uint64_t lo, uint64_t hi, uint64_t bytes)
{
	uint64_t at = 0;

	assert_true(as_maps_place(m, lo, hi, bytes, &at));
	assert_int_equal(at % 4096, 0);
	assert_true((at < lo ? hi - at : at + bytes - lo) <= AS_HOOK_REACH);
	as_vec_foreach (it, &m->map) {
		assert_true(at >= it->end || at + bytes <= it->start);
		if (it->kind == AS_MAP_HEAP)
			assert_true(at < it->start || at - it->end >= 1ull << 30);
		/* a stack grows to the next thing below it at most */
		if (it->kind == AS_MAP_STACK && it > m->map.v && at >= it[-1].end)
			assert_true(at > it->end || it->start - (at + bytes) >= 256ull << 20);
	}
}

/* Data lies in user space, and near nothing. */
static void check_far(const struct as_maps *m, uint64_t bytes)
{
	uint64_t at = as_maps_place_far(m, bytes);

	assert_true(at && at % 4096 == 0 && at + bytes < 0x7ffffffff000);
	as_vec_foreach (it, &m->map)
		assert_true(at + bytes + (8ull << 30) < it->start ||
			    at > it->end + (8ull << 30));
}

static void room_is_near_and_in_nobodys_way(void **state)
{
	struct as_maps pie = {0}, fixed = {0};

	add(&pie, 0x555555554000, 0x555555560000, AS_MAP_FILE);
	add(&pie, 0x555555561000, 0x555555582000, AS_MAP_HEAP);
	add(&pie, 0x7ffff7c00000, 0x7ffff7e20000, AS_MAP_FILE);
	add(&pie, 0x7ffff7fc0000, 0x7ffff7ffe000, AS_MAP_FILE);
	add(&pie, 0x7ffffffde000, 0x7ffffffff000, AS_MAP_STACK);
	add(&pie, 0xffffffffff600000, 0xffffffffff601000, AS_MAP_OTHER);
	check_far(&pie, 5ull << 30);
	/* where the kernel's choice lies, with room for more of it */
	assert_true(as_maps_place_far(&pie, 5ull << 30) > 0x7e8000000000);
	assert_true(as_maps_place_far(&pie, 5ull << 30) + (69ull << 30) <= 0x7ffff7c00000);
	check_place(&pie, 0x555555554000, 0x555555560000, 0x30000);
	check_place(&pie, 0x7ffff7c00000, 0x7ffff7e20000, 0x30000);
	as_maps_clear(&pie);
	/* little room below, a heap above */
	add(&fixed, 0x400000, 0x500000, AS_MAP_FILE);
	add(&fixed, 0x1400000, 0x1500000, AS_MAP_HEAP);
	add(&fixed, 0x7ffff7fc0000, 0x7ffff7ffe000, AS_MAP_FILE);
	add(&fixed, 0x7ffffffde000, 0x7ffffffff000, AS_MAP_STACK);
	check_place(&fixed, 0x400000, 0x500000, 0x30000);
	check_place(&fixed, 0x400000, 0x500000, 0x1000000);
	as_maps_clear(&fixed);
}

static void where_nothing_is_free_there_is_no_room(void **state)
{
	struct as_maps m = {0};
	uint64_t at;

	add(&m, 0x10000, 0x7ffffffff000, AS_MAP_OTHER);
	assert_false(as_maps_place(&m, 0x400000000000, 0x400000100000, 0x30000, &at));
	assert_true(as_maps_place_far(&m, 1 << 20) == 0);
	as_maps_clear(&m);
	add(&m, 0x300000000000, 0x400000000000, AS_MAP_OTHER);
	add(&m, 0x400000000000, 0x400000100000, AS_MAP_FILE);
	add(&m, 0x400000100000, 0x500000000000, AS_MAP_OTHER);
	assert_false(as_maps_place(&m, 0x400000000000, 0x400000100000, 0x30000, &at));
	as_maps_clear(&m);
}

static void our_own_map_has_our_code_and_stack(void **state)
{
	const struct as_map *code, *stack;
	struct as_maps m;
	int here = 0;

	assert_int_equal(as_maps_read(getpid(), &m, NULL), 0);
	code = as_maps_find(&m, (uintptr_t)our_own_map_has_our_code_and_stack);
	stack = as_maps_find(&m, (uintptr_t)&here);
	assert_true(code && code->exec && code->kind == AS_MAP_FILE);
	assert_true(stack && stack->write && !stack->exec);
	assert_null(as_maps_find(&m, 1));
	as_maps_clear(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_c_library_has_its_family_once),
		cmocka_unit_test(prefixes_tell_the_allocator),
		cmocka_unit_test(a_throwing_operator_is_told_with_what_returns_null),
		cmocka_unit_test(marks_are_found_by_name_and_by_note),
		cmocka_unit_test(local_names_count_as_a_set_only),
		cmocka_unit_test(room_is_near_and_in_nobodys_way),
		cmocka_unit_test(where_nothing_is_free_there_is_no_room),
		cmocka_unit_test(our_own_map_has_our_code_and_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

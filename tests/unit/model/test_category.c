/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Categories of functions: names as they really stand in recordings of Rust, C++ and C programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "model/category.h"

enum { EXE, LIBC, DRIVER, STDCXX, KERNEL, KMOD, JIT, VDSO, JEMALLOC, NOT_SO, NMODULES };

static struct as_m_module modules[NMODULES] = {
	[EXE] = {.path = "/home/u/app", .name = "app"},
	[LIBC] = {.path = "/usr/lib/x86_64-linux-gnu/libc.so.6", .name = "libc.so.6"},
	[DRIVER] = {.path = "/home/u/.rustup/lib/librustc_driver-1.so",
		    .name = "librustc_driver-1.so"},
	[STDCXX] = {.path = "/usr/lib/libstdc++.so.6.0.30", .name = "libstdc++.so.6.0.30"},
	[KERNEL] = {.path = "", .name = "[kernel]", .kind = AS_MODULE_KERNEL},
	[KMOD] = {.path = "", .name = "ext4", .kind = AS_MODULE_KMOD},
	[JIT] = {.path = "", .name = "[jit]", .kind = AS_MODULE_JIT},
	[VDSO] = {.path = "", .name = "[vdso]", .kind = AS_MODULE_VDSO},
	[JEMALLOC] = {.path = "/usr/lib/libjemalloc.so.2", .name = "libjemalloc.so.2"},
	[NOT_SO] = {.path = "/opt/also.sorted", .name = "also.sorted"},
};

static enum as_category category_of(uint32_t module, const char *name, const char *crate,
				    const char *file, unsigned flags)
{
	struct as_m_function f = {.module = module,
				  .linkage = name,
				  .full = name,
				  .brief = name,
				  .crate = crate,
				  .file = file,
				  .flags = (uint8_t)flags};
	struct as_model m = {.modules = {modules, NMODULES, NMODULES}, .functions = {&f, 1, 1}};

	return as_function_category(&m, 0);
}

#define check(want, module, name, crate, file)                                                 \
	assert_string_equal(as_category_info(want)->key,                                       \
			    as_category_info(category_of(module, name, crate, file, 0))->key)

#define STD_FILE "/rustc/abc/library/std/src/x.rs"
#define REGISTRY "/home/u/.cargo/registry/src/index.crates.io-6f17d22bba15001f/"

static void own_code_is_the_executables_and_its_crates(void **state)
{
	check(AS_CATEGORY_USER, EXE, "main", "", "");
	check(AS_CATEGORY_USER, EXE, "indexer::tokenize", "indexer", "/home/u/src/tokenize.rs");
	check(AS_CATEGORY_USER, EXE, "indexer::tokenize", "indexer", "src/tokenize.rs");
	check(AS_CATEGORY_USER, DRIVER, "rustc_middle::ty::fold", "rustc_middle",
	      "/rustc/abc/compiler/rustc_middle/src/ty.rs");
	check(AS_CATEGORY_USER, NOT_SO, "quicksort", "", "");
	check(AS_CATEGORY_USER, EXE, "freeze", "", "");
	check(AS_CATEGORY_USER, EXE, "stdlib::sort", "stdlib", "");
}

static void the_languages_library_is_std(void **state)
{
	check(AS_CATEGORY_STD, EXE, "core::str::from_utf8", "core", STD_FILE);
	check(AS_CATEGORY_STD, EXE, "alloc::raw_vec::RawVec<T>::grow_one", "alloc", STD_FILE);
	check(AS_CATEGORY_STD, EXE, "hashbrown::raw::RawTable<T>::reserve", "hashbrown",
	      REGISTRY "hashbrown-0.14.0/src/raw/mod.rs");
	check(AS_CATEGORY_STD, EXE, "std::panicking::try", "std", STD_FILE);
	check(AS_CATEGORY_STD, EXE, "std::panicking::catch_unwind::do_call", "std", STD_FILE);
	check(AS_CATEGORY_STD, EXE, "std::vector<int>::push_back", "", "");
	check(AS_CATEGORY_STD, STDCXX, "_M_insert", "", "");
	check(AS_CATEGORY_STD, EXE, "memchr::memchr", "memchr",
	      "/rust/deps/memchr-2.7/src/m.rs");
}

static void runtimes_are_told_by_crate(void **state)
{
	check(AS_CATEGORY_RUNTIME, EXE, "tokio::runtime::task::harness::poll", "tokio", "");
	check(AS_CATEGORY_RUNTIME, EXE, "<futures_util::stream::Map as x>::poll_next",
	      "futures_util", REGISTRY "futures-util-0.3/src/lib.rs");
	check(AS_CATEGORY_RUNTIME, EXE, "rayon_core::registry::WorkerThread::wait_until",
	      "rayon_core", "");
	check(AS_CATEGORY_USER, EXE, "miopic::run", "miopic", "");
}

static void panics_are_raising_not_catching(void **state)
{
	check(AS_CATEGORY_PANIC, EXE, "core::panicking::panic_fmt", "core", STD_FILE);
	check(AS_CATEGORY_PANIC, EXE, "std::panicking::rust_panic_with_hook", "std", STD_FILE);
	check(AS_CATEGORY_PANIC, EXE, "core::slice::index::slice_end_index_len_fail", "core",
	      "");
	check(AS_CATEGORY_PANIC, EXE, "alloc::alloc::handle_alloc_error", "alloc", "");
	check(AS_CATEGORY_PANIC, STDCXX, "__cxa_throw", "", "");
	check(AS_CATEGORY_PANIC, LIBC, "_Unwind_RaiseException", "", "");
	check(AS_CATEGORY_STD, EXE, "core::slice::index::range", "core", STD_FILE);
}

static void allocators_are_what_gets_and_returns_memory(void **state)
{
	check(AS_CATEGORY_ALLOCATOR, LIBC, "malloc", "", "");
	check(AS_CATEGORY_ALLOCATOR, LIBC, "_int_free_merge_chunk", "", "");
	check(AS_CATEGORY_ALLOCATOR, LIBC, "tcache_get_n", "", "");
	check(AS_CATEGORY_ALLOCATOR, EXE, "__rust_dealloc", "", "");
	check(AS_CATEGORY_ALLOCATOR, EXE, "alloc::alloc::exchange_malloc", "alloc", STD_FILE);
	check(AS_CATEGORY_ALLOCATOR, EXE,
	      "<alloc::alloc::Global as core::alloc::Allocator>::allocate", "alloc", STD_FILE);
	check(AS_CATEGORY_ALLOCATOR, JEMALLOC, "arena_run_reg_alloc", "", "");
	check(AS_CATEGORY_ALLOCATOR, EXE, "_rjem_je_tcache_bin_flush", "", "");
	check(AS_CATEGORY_ALLOCATOR, EXE, "operator new(unsigned long)", "", "");
}

static void shared_objects_and_registry_crates_are_libraries(void **state)
{
	check(AS_CATEGORY_LIBRARY, LIBC, "__memmove_avx_unaligned_erms", "", "");
	check(AS_CATEGORY_LIBRARY, LIBC, "libc.so.6+0x1234", "", "");
	check(AS_CATEGORY_LIBRARY, VDSO, "__vdso_clock_gettime", "", "");
	check(AS_CATEGORY_LIBRARY, EXE, "memchr::memmem::find", "memchr",
	      REGISTRY "memchr-2.7.1/src/memmem/mod.rs");
	check(AS_CATEGORY_LIBRARY, EXE, "regex::Regex::find", "regex",
	      "/usr/share/cargo/registry/regex-1.7.1/src/re.rs");
}

static void the_rest_is_told_by_the_module(void **state)
{
	check(AS_CATEGORY_KERNEL, KERNEL, "do_syscall_64", "", "");
	check(AS_CATEGORY_KERNEL, KMOD, "ext4_readdir", "", "");
	check(AS_CATEGORY_KERNEL, KERNEL, "free", "", "");
	check(AS_CATEGORY_JIT, JIT, "[jit]", "", "");
	assert_int_equal(category_of(AS_NONE, "[truncated: x]", "", "",
				     AS_FUNCTION_MARKER | AS_FUNCTION_SYNTHETIC),
			 AS_CATEGORY_MARKER);
	assert_int_equal(category_of(AS_NONE, "[unknown 0x12]", "", "", AS_FUNCTION_SYNTHETIC),
			 AS_CATEGORY_UNKNOWN);
	assert_int_equal(category_of(AS_NONE, "[kernel 0xff12]", "", "", AS_FUNCTION_SYNTHETIC),
			 AS_CATEGORY_KERNEL);
}

static void every_number_has_words(void **state)
{
	struct as_model none = {0};

	for (unsigned c = 0; c < AS_CATEGORY_COUNT_; c++) {
		const struct as_category_info *i = as_category_info((enum as_category)c);

		assert_true(i->key[0] && i->label[0] && i->meaning[0]);
		for (unsigned d = 0; d < c; d++)
			assert_string_not_equal(i->key,
						as_category_info((enum as_category)d)->key);
	}
	assert_int_equal(as_function_category(&none, 0), AS_CATEGORY_UNKNOWN);
	assert_int_equal(as_function_category(&none, AS_NONE), AS_CATEGORY_UNKNOWN);
	assert_string_equal(as_category_info((enum as_category)99)->key, "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_code_is_the_executables_and_its_crates),
		cmocka_unit_test(the_languages_library_is_std),
		cmocka_unit_test(runtimes_are_told_by_crate),
		cmocka_unit_test(panics_are_raising_not_catching),
		cmocka_unit_test(allocators_are_what_gets_and_returns_memory),
		cmocka_unit_test(shared_objects_and_registry_crates_are_libraries),
		cmocka_unit_test(the_rest_is_told_by_the_module),
		cmocka_unit_test(every_number_has_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

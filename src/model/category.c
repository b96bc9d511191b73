/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Categories of functions: tables of names, and the order in which they are asked. */
#include "model/category.h"

#include <string.h>

static const struct as_category_info categories[AS_CATEGORY_COUNT_] = {
#define X(NAME, key, label, meaning) {key, label, meaning},
	AS_CATEGORIES(X)
#undef X
};

const struct as_category_info *as_category_info(enum as_category c)
{
	return &categories[(unsigned)c < AS_CATEGORY_COUNT_ ? c : AS_CATEGORY_UNKNOWN];
}

/* ---- matching ---- */

/* In a list "x" is the whole name, "x*" what begins so. Ends with NULL. */
static bool listed(const char *name, const char *const *list)
{
	for (; *list; list++) {
		size_t n = strlen(*list);

		if ((*list)[n - 1] == '*' ? strncmp(name, *list, n - 1) == 0
					  : strcmp(name, *list) == 0)
			return true;
	}
	return false;
}

/* "libc.so.6" and "libm-2.31.so", but not "also.sorted". */
static bool is_shared_object(const char *name)
{
	for (const char *p = name; (p = strstr(p, ".so")) != NULL; p += 3) {
		if (p[3] == 0 || p[3] == '.')
			return true;
	}
	return false;
}

static bool is_of_system(const char *path)
{
	static const char *const folders[] = {"/lib/*", "/lib64/*", "/usr/lib/*",
					      "/usr/lib64/*", NULL};

	return listed(path, folders);
}

static bool came_from_registry(const char *file)
{
	return strstr(file, "/registry/src/") || strstr(file, "/cargo/registry/") ||
	       strstr(file, "/git/checkouts/");
}

/* ---- what it does ---- */

static bool is_allocator(const struct as_m_function *f, const char *module)
{
	static const char *const names[] = {"malloc",
					    "calloc",
					    "realloc",
					    "free",
					    "cfree",
					    "memalign",
					    "aligned_alloc",
					    "posix_memalign",
					    "valloc",
					    "pvalloc",
					    "reallocarray",
					    "malloc_usable_size",
					    "malloc_trim",
					    "__libc_malloc*",
					    "__libc_free*",
					    "__libc_calloc*",
					    "__libc_realloc*",
					    "__libc_memalign*",
					    "_int_malloc",
					    "_int_free*",
					    "_int_realloc",
					    "_int_memalign",
					    "malloc_consolidate*",
					    "unlink_chunk*",
					    "sysmalloc*",
					    "systrim*",
					    "tcache_*",
					    "arena_get2*",
					    "alloc_perturb",
					    "free_perturb",
					    "heap_trim",
					    "grow_heap",
					    "new_heap",
					    "ptmalloc_init*",
					    "operator new*",
					    "operator delete*",
					    "_Znwm*",
					    "_Znam*",
					    "_ZdlPv*",
					    "_ZdaPv*",
					    "_rjem_*",
					    "je_*",
					    "jemalloc*",
					    "mi_*",
					    "_mi_*",
					    "tc_*",
					    "__rust_alloc*",
					    "__rust_dealloc",
					    "__rust_realloc",
					    "__rdl_*",
					    "__rg_*",
					    "alloc::alloc::*",
					    "tcmalloc::*",
					    NULL};
	static const char *const crates[] = {"jemallocator",
					     "tikv_jemallocator",
					     "jemalloc_sys",
					     "tikv_jemalloc_sys",
					     "mimalloc",
					     "libmimalloc_sys",
					     "snmalloc_rs",
					     "tcmalloc",
					     "dlmalloc",
					     "talc",
					     NULL};
	static const char *const modules[] = {"libjemalloc*", "libmimalloc*", "libtcmalloc*",
					      "libsnmalloc*", NULL};

	return listed(f->linkage, names) || listed(f->full, names) ||
	       listed(f->crate, crates) || listed(module, modules) ||
	       strncmp(f->full, "<alloc::alloc::Global as", 24) == 0;
}

/* Catching is on every thread's stack and costs nothing: it is no panic path. */
static bool is_panic(const struct as_m_function *f)
{
	static const char *const names[] = {"rust_begin_unwind",
					    "rust_panic*",
					    "__rust_start_panic",
					    "__rust_panic_cleanup",
					    "rust_eh_personality",
					    "_Unwind_*",
					    "__gxx_personality*",
					    "__gcc_personality*",
					    "__cxa_throw",
					    "__cxa_rethrow",
					    "__cxa_allocate_exception",
					    "__cxa_begin_catch",
					    "std::terminate",
					    "core::panicking::*",
					    "core::result::unwrap_failed*",
					    "core::option::unwrap_failed*",
					    "core::option::expect_failed*",
					    "core::slice::index::slice_*",
					    "core::str::slice_error_fail*",
					    "alloc::raw_vec::capacity_overflow*",
					    "alloc::raw_vec::handle_error*",
					    "alloc::alloc::handle_alloc_error*",
					    "std::backtrace*",
					    "std::sys::backtrace::_print*",
					    "std::sys_common::backtrace::_print*",
					    NULL};
	static const char *const catching[] = {"std::panicking::try*",
					       "std::panicking::catch_unwind*", NULL};
	static const char *const crates[] = {"panic_unwind", "panic_abort", "unwind", NULL};

	if (strncmp(f->full, "std::panicking::", 16) == 0)
		return !listed(f->full, catching);
	return listed(f->linkage, names) || listed(f->full, names) || listed(f->crate, crates);
}

/* ---- whose it is ---- */

static bool is_std(const struct as_m_function *f, const char *module)
{
	static const char *const crates[] = {"std",        "core",       "alloc",
					     "hashbrown",  "proc_macro", "compiler_builtins",
					     "std_detect", NULL};
	static const char *const names[] = {"std::*",  "__gnu_cxx::*", "__cxxabiv1::*",
					    "__cxa_*", "void std::*",  "bool std::*",
					    NULL};
	static const char *const modules[] = {"libstdc++.so*", "libc++.so*", "libc++abi.so*",
					      "libstd-*", NULL};

	return listed(f->crate, crates) || (!f->crate[0] && listed(f->full, names)) ||
	       listed(module, modules) || strncmp(f->file, "/rust/deps/", 11) == 0 ||
	       (strncmp(f->file, "/rustc/", 7) == 0 && strstr(f->file, "/library/"));
}

static bool is_runtime(const struct as_m_function *f, const char *module)
{
	static const char *const crates[] = {"tokio",
					     "tokio_*",
					     "async_std",
					     "async_executor",
					     "async_global_executor",
					     "async_io",
					     "async_task",
					     "async_lock",
					     "async_channel",
					     "blocking",
					     "polling",
					     "smol",
					     "futures",
					     "futures_*",
					     "rayon",
					     "rayon_core",
					     "mio",
					     "mio_*",
					     "crossbeam",
					     "crossbeam_*",
					     "embassy_executor",
					     "glommio",
					     "monoio",
					     "compio",
					     "compio_*",
					     "actix_rt",
					     "parking",
					     "parking_lot",
					     "parking_lot_core",
					     "event_listener",
					     "pollster",
					     "threadpool",
					     NULL};
	static const char *const names[] = {"tbb::*", "GOMP_*",         "gomp_*",
					    "__kmp*", "boost::asio::*", NULL};
	static const char *const modules[] = {
		"libgomp.so*", "libtbb.so*", "libomp.so*", "libiomp5.so*",
		"libuv.so*",   "libevent*",  NULL};

	return listed(f->crate, crates) || listed(f->full, names) || listed(module, modules);
}

static bool is_library(const struct as_m_function *f, const struct as_m_module *module)
{
	if (f->crate[0] && came_from_registry(f->file))
		return true;
	if (!module || !(is_shared_object(module->name) || module->kind == AS_MODULE_VDSO))
		return false;
	return !f->crate[0] || is_of_system(module->path);
}

static enum as_category by_module(const struct as_m_function *f,
				  const struct as_m_module *module)
{
	if (f->flags & AS_FUNCTION_MARKER)
		return AS_CATEGORY_MARKER;
	if (!module) {
		if (strncmp(f->full, "[kernel 0x", 10) == 0)
			return AS_CATEGORY_KERNEL;
		if (f->flags & AS_FUNCTION_SYNTHETIC)
			return AS_CATEGORY_UNKNOWN;
		return AS_CATEGORY_COUNT_;
	}
	if (module->kind == AS_MODULE_KERNEL || module->kind == AS_MODULE_KMOD)
		return AS_CATEGORY_KERNEL;
	return module->kind == AS_MODULE_JIT ? AS_CATEGORY_JIT : AS_CATEGORY_COUNT_;
}

enum as_category as_function_category(const struct as_model *m, uint32_t function)
{
	const struct as_m_function *f;
	const struct as_m_module *module = NULL;
	const char *module_name = "";
	enum as_category c;

	if (function >= m->functions.n)
		return AS_CATEGORY_UNKNOWN;
	f = &m->functions.v[function];
	if (f->module < m->modules.n) {
		module = &m->modules.v[f->module];
		module_name = module->name;
	}
	c = by_module(f, module);
	if (c != AS_CATEGORY_COUNT_)
		return c;
	if (is_panic(f)) /* before allocators: handle_alloc_error is no allocation */
		return AS_CATEGORY_PANIC;
	if (is_allocator(f, module_name))
		return AS_CATEGORY_ALLOCATOR;
	if (is_runtime(f, module_name))
		return AS_CATEGORY_RUNTIME;
	if (is_std(f, module_name))
		return AS_CATEGORY_STD;
	return is_library(f, module) ? AS_CATEGORY_LIBRARY : AS_CATEGORY_USER;
}

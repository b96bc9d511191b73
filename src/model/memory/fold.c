/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What stands between a program and its allocator is taken off the inner end of stacks. */
#include <stdlib.h>
#include <string.h>
#include "model/model_priv.h"

static bool starts_with_any(const char *s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strncmp(s, list[i], strlen(list[i])) == 0)
			return true;
	}
	return false;
}

static bool is_any(const char *s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(s, list[i]) == 0)
			return true;
	}
	return false;
}

/* "void std::vector<int>::push" is std::vector<int>::push: names of C++ templates begin with what they
 * return. */
static const char *behind_return_type(const char *name)
{
	size_t n = strcspn(name, "<(");

	while (n && name[n - 1] != ' ')
		n--;
	return name[0] == '<' || strncmp(name, "operator ", 9) == 0 ? name : name + n;
}

static bool is_plumbing_name(const char *name)
{
	static const char *const start[] = {
		"alloc::",
		"<alloc::",
		"core::",
		"<core::",
		"__rustc::",
		"__rust_",
		"__rdl_",
		"__rg_",
		"std::alloc::",
		"<std::alloc::",
		"hashbrown::",
		"<hashbrown::",
		"operator new",
		"je_",
		"_rjem_",
		"mi_",
		"tc_",
		"__libc_malloc",
		"__libc_calloc",
		"__libc_realloc",
		"__libc_memalign",
		"__GI___libc_",
		"PyMem_",
		"_PyMem_",
		"PyObject_Malloc",
		"_PyObject_Malloc",
		"PyObject_Calloc",
		"PyObject_Realloc",
		"_PyObject_Realloc",
	};
	static const char *const exact[] = {
		"malloc",        "calloc",         "realloc",   "reallocarray", "memalign",
		"aligned_alloc", "posix_memalign", "valloc",    "pvalloc",      "_mid_memalign",
		"strdup",        "strndup",        "__strdup",  "__strndup",    "wcsdup",
		"xmalloc",       "xcalloc",        "xrealloc",  "xstrdup",      "xstrndup",
		"xzalloc",       "xmallocz",       "xmemdupz",  "g_malloc",     "g_malloc0",
		"g_malloc_n",    "g_malloc0_n",    "g_realloc", "g_realloc_n",  "g_strdup",
		"g_strndup",     "g_memdup2",
	};

	return is_any(name, exact, AS_ARRAY_LEN(exact)) ||
	       starts_with_any(name, start, AS_ARRAY_LEN(start));
}

/* The standard library's own code, but for what starts threads and main: a thread's stack and its
 * name are the runtime's. */
static bool is_std(const struct as_m_function *f)
{
	static const char *const rust_start[] = {
		"std::rt::",         "std::thread::",    "std::sys::",
		"std::sys_common::", "std::panicking::", "<std::thread::"};
	static const char *const cxx_std[] = {"std::", "__gnu_cxx::", "__cxxabiv1::"};

	if (strcmp(f->crate, "std") == 0)
		return !starts_with_any(f->full, rust_start, AS_ARRAY_LEN(rust_start));
	return !f->crate[0] &&
	       starts_with_any(behind_return_type(f->full), cxx_std, AS_ARRAY_LEN(cxx_std));
}

bool as_heap_is_plumbing(const struct as_m_function *f)
{
	if (f->flags & (AS_FUNCTION_SYNTHETIC | AS_FUNCTION_MARKER))
		return false;
	/* Vec<T>::push as <T as …>: the crate is where the code is. */
	return strcmp(f->crate, "alloc") == 0 || strcmp(f->crate, "core") == 0 ||
	       strcmp(f->crate, "hashbrown") == 0 || is_std(f) || is_plumbing_name(f->full) ||
	       is_plumbing_name(f->brief);
}

struct folder {
	struct as_model *m;
	uint8_t *plumbing; /* per function */
	uint32_t *cut;     /* per frame that was there: the frame without plumbing, + 1 */
	uint32_t *stack;   /* per stack that was there: folded */
	size_t nframes, nstacks;
};

/* Places of the frame that are plumbing, from the innermost on. */
static uint32_t count_plumbing(const struct folder *f, const struct as_m_frame *frame)
{
	uint32_t n = 0;

	while (n < frame->nchain && f->plumbing[f->m->places.v[frame->chain + n].function])
		n++;
	return n;
}

static uint32_t cut_frame(struct folder *f, uint32_t frame, uint32_t n)
{
	struct as_m_frame c = f->m->frames.v[frame];

	if (f->cut[frame])
		return f->cut[frame] - 1;
	c.chain += n;
	c.nchain -= n;
	as_vec_push(&f->m->frames, c);
	f->cut[frame] = (uint32_t)f->m->frames.n;
	return f->cut[frame] - 1;
}

/* AS_NONE: nothing but plumbing up to here. A stack's parent comes before it. */
static uint32_t fold_stack(struct folder *f, uint32_t stack)
{
	const struct as_m_stack s = f->m->stacks.v[stack];
	const struct as_m_frame *frame = &f->m->frames.v[s.frame];
	uint32_t n = count_plumbing(f, frame);

	if (n == 0)
		return stack;
	if (n == frame->nchain)
		return s.parent == AS_NONE ? AS_NONE : f->stack[s.parent];
	n = cut_frame(f, s.frame, n);
	as_vec_push(&f->m->stacks, (struct as_m_stack){s.parent, n});
	return (uint32_t)f->m->stacks.n - 1;
}

void as_heap_fold(struct as_model *m)
{
	struct folder f = {.m = m, .nframes = m->frames.n, .nstacks = m->stacks.n};

	f.plumbing = as_xcalloc(m->functions.n + 1, 1);
	f.cut = as_xcalloc(f.nframes + 1, sizeof *f.cut);
	f.stack = as_xreallocarray(NULL, f.nstacks + 1, sizeof *f.stack);
	for (size_t i = 0; i < m->functions.n; i++)
		f.plumbing[i] = as_heap_is_plumbing(&m->functions.v[i]);
	for (uint32_t i = 0; i < f.nstacks; i++)
		f.stack[i] = fold_stack(&f, i);
	as_vec_foreach (row, &m->heap.rows) {
		if (row->stack != AS_NONE && f.stack[row->stack] != AS_NONE)
			row->folded = f.stack[row->stack];
	}
	free(f.plumbing);
	free(f.cut);
	free(f.stack);
}

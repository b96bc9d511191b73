/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which functions are entries of allocators, by name, and which stacks of samples are below one. */
#include "model/memory/alloc_time.h"

#include <stdlib.h>
#include <string.h>

#include "model/model_priv.h"

/* ---- names ---- */

const char *as_alloc_kind_name(enum as_alloc_kind kind)
{
	static const char *const names[AS_ALLOC_KINDS] = {"", "allocating", "growing",
							  "freeing", "page faults"};

	return names[kind];
}

struct name {
	const char *name;
	uint8_t kind;
};

static enum as_alloc_kind find(const struct name *v, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(v[i].name, name) == 0)
			return (enum as_alloc_kind)v[i].kind;
	}
	return AS_ALLOC_NONE;
}

/* Rust's, without what stands before them: "__rustc::", "std::alloc::". */
static enum as_alloc_kind kind_of_rust(const char *full)
{
	static const struct name names[] = {
		{"__rust_alloc", AS_ALLOC_NEW},       {"__rust_alloc_zeroed", AS_ALLOC_NEW},
		{"__rust_realloc", AS_ALLOC_REALLOC}, {"__rust_dealloc", AS_ALLOC_FREE},
		{"__rdl_alloc", AS_ALLOC_NEW},        {"__rdl_alloc_zeroed", AS_ALLOC_NEW},
		{"__rdl_realloc", AS_ALLOC_REALLOC},  {"__rdl_dealloc", AS_ALLOC_FREE},
		{"__rg_alloc", AS_ALLOC_NEW},         {"__rg_alloc_zeroed", AS_ALLOC_NEW},
		{"__rg_realloc", AS_ALLOC_REALLOC},   {"__rg_dealloc", AS_ALLOC_FREE},
	};
	const char *last = full;

	for (const char *p = strstr(full, "::"); p; p = strstr(p + 2, "::"))
		last = p + 2;
	return find(names, AS_ARRAY_LEN(names), last);
}

/* malloc and its kin, and what only allocators call so: parts of glibc's that are reached by jumps. */
static enum as_alloc_kind kind_of_c(const char *name)
{
	static const struct name names[] = {
		{"malloc", AS_ALLOC_NEW},
		{"calloc", AS_ALLOC_NEW},
		{"memalign", AS_ALLOC_NEW},
		{"aligned_alloc", AS_ALLOC_NEW},
		{"posix_memalign", AS_ALLOC_NEW},
		{"valloc", AS_ALLOC_NEW},
		{"pvalloc", AS_ALLOC_NEW},
		{"mallocx", AS_ALLOC_NEW},
		{"zalloc", AS_ALLOC_NEW},
		{"mallocn", AS_ALLOC_NEW},
		{"malloc_small", AS_ALLOC_NEW},
		{"malloc_aligned", AS_ALLOC_NEW},
		{"zalloc_aligned", AS_ALLOC_NEW},
		{"calloc_aligned", AS_ALLOC_NEW},
		{"heap_malloc", AS_ALLOC_NEW},
		{"heap_zalloc", AS_ALLOC_NEW},
		{"new", AS_ALLOC_NEW},
		{"malloc_default", AS_ALLOC_NEW},
		{"_int_malloc", AS_ALLOC_NEW},
		{"_int_memalign", AS_ALLOC_NEW},
		{"_mid_memalign", AS_ALLOC_NEW},
		{"sysmalloc", AS_ALLOC_NEW},
		{"realloc", AS_ALLOC_REALLOC},
		{"reallocarray", AS_ALLOC_REALLOC},
		{"rallocx", AS_ALLOC_REALLOC},
		{"xallocx", AS_ALLOC_REALLOC},
		{"recalloc", AS_ALLOC_REALLOC},
		{"realloc_aligned", AS_ALLOC_REALLOC},
		{"_int_realloc", AS_ALLOC_REALLOC},
		{"free", AS_ALLOC_FREE},
		{"cfree", AS_ALLOC_FREE},
		{"free_sized", AS_ALLOC_FREE},
		{"free_aligned_sized", AS_ALLOC_FREE},
		{"free_size", AS_ALLOC_FREE},
		{"free_aligned", AS_ALLOC_FREE},
		{"dallocx", AS_ALLOC_FREE},
		{"sdallocx", AS_ALLOC_FREE},
		{"delete", AS_ALLOC_FREE},
		{"free_default", AS_ALLOC_FREE},
		{"_int_free", AS_ALLOC_FREE},
		{"malloc_consolidate", AS_ALLOC_FREE},
		{"systrim", AS_ALLOC_FREE},
	};
	static const char *const prefixes[] = {"je_",          "_rjem_je_", "_rjem_",
					       "mi_",          "tc_",       "__libc_",
					       "__GI___libc_", "__GI_",     "__"};
	enum as_alloc_kind kind = find(names, AS_ARRAY_LEN(names), name);

	/* "new" and "delete" are an allocator's with a prefix only */
	if (kind != AS_ALLOC_NONE)
		return strcmp(name, "new") != 0 && strcmp(name, "delete") != 0 ? kind
									       : AS_ALLOC_NONE;
	for (size_t i = 0; i < AS_ARRAY_LEN(prefixes); i++) {
		size_t n = strlen(prefixes[i]);

		if (strncmp(name, prefixes[i], n) == 0 &&
		    (kind = find(names, AS_ARRAY_LEN(names), name + n)) != AS_ALLOC_NONE)
			return kind;
	}
	return AS_ALLOC_NONE;
}

/* What programs put before malloc, and Python's, which asks malloc for large pieces only. */
static enum as_alloc_kind kind_of_wrapper(const char *name)
{
	static const struct name names[] = {
		{"xmalloc", AS_ALLOC_NEW},
		{"xcalloc", AS_ALLOC_NEW},
		{"xzalloc", AS_ALLOC_NEW},
		{"xrealloc", AS_ALLOC_REALLOC},
		{"xfree", AS_ALLOC_FREE},
		{"g_malloc", AS_ALLOC_NEW},
		{"g_malloc0", AS_ALLOC_NEW},
		{"g_malloc_n", AS_ALLOC_NEW},
		{"g_malloc0_n", AS_ALLOC_NEW},
		{"g_realloc", AS_ALLOC_REALLOC},
		{"g_realloc_n", AS_ALLOC_REALLOC},
		{"g_free", AS_ALLOC_FREE},
		{"PyMem_Malloc", AS_ALLOC_NEW},
		{"PyMem_Calloc", AS_ALLOC_NEW},
		{"PyMem_Realloc", AS_ALLOC_REALLOC},
		{"PyMem_Free", AS_ALLOC_FREE},
		{"PyObject_Malloc", AS_ALLOC_NEW},
		{"_PyObject_Malloc", AS_ALLOC_NEW},
		{"PyObject_Calloc", AS_ALLOC_NEW},
		{"_PyObject_Calloc", AS_ALLOC_NEW},
		{"PyObject_Realloc", AS_ALLOC_REALLOC},
		{"_PyObject_Realloc", AS_ALLOC_REALLOC},
		{"PyObject_Free", AS_ALLOC_FREE},
		{"_PyObject_Free", AS_ALLOC_FREE},
	};

	return find(names, AS_ARRAY_LEN(names), name);
}

enum as_alloc_kind as_alloc_kind_of_name(const char *full, const char *linkage)
{
	enum as_alloc_kind kind;

	if (strncmp(full, "operator new", 12) == 0)
		return AS_ALLOC_NEW;
	if (strncmp(full, "operator delete", 15) == 0)
		return AS_ALLOC_FREE;
	kind = kind_of_rust(full);
	/* a method that is called free is the program's own */
	if (kind != AS_ALLOC_NONE || strstr(full, "::"))
		return kind;
	kind = kind_of_c(*linkage ? linkage : full);
	return kind != AS_ALLOC_NONE ? kind : kind_of_wrapper(full);
}

/* ---- functions ---- */

enum {
	KIND = 7,       /* enum as_alloc_kind */
	PLUMBING = 8,   /* between the program and its allocator */
	FAULT = 16,     /* the kernel's way into a page fault */
	FILE_FAULT = 32 /* of a file: code that is read, a mapped file */
};

static bool is_any(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(name, list[i]) == 0)
			return true;
	}
	return false;
}

static uint8_t traits_of(const struct as_m_function *f)
{
	static const char *const faults[] = {"asm_exc_page_fault", "exc_page_fault",
					     "do_user_addr_fault", "__do_page_fault",
					     "do_page_fault",      "handle_mm_fault"};
	static const char *const files[] = {
		"filemap_map_pages", "filemap_fault",   "do_fault",   "do_read_fault",
		"do_cow_fault",      "do_shared_fault", "shmem_fault"};
	static const char *const copies[] = {"memcpy", "memmove", "memset", "bzero", "memcmp"};
	uint8_t t = (uint8_t)as_alloc_kind_of_name(f->full, f->linkage);

	if (f->flags & (AS_FUNCTION_SYNTHETIC | AS_FUNCTION_MARKER))
		return 0;
	if (is_any(f->full, faults, AS_ARRAY_LEN(faults)))
		t |= FAULT;
	if (is_any(f->full, files, AS_ARRAY_LEN(files)))
		t |= FILE_FAULT;
	/* who asked libc to touch the memory is the one */
	if (as_heap_is_plumbing(f) || is_any(f->full, copies, AS_ARRAY_LEN(copies)) ||
	    strncmp(f->full, "__mem", 5) == 0)
		t |= PLUMBING;
	return t;
}

/* ---- stacks ---- */

/* What a stack comes to, from its outermost frame on. */
struct state {
	uint8_t kind;
	uint32_t at;   /* the innermost frame of the program above the allocator: a stack */
	uint32_t drop; /* places of it that are not the program's */
};
struct finder {
	struct as_model *m;
	uint8_t *traits; /* per function */
	struct state *state;
	struct as_map64 made;   /* (at, drop, kind) -> stack */
	struct as_map64 frames; /* (frame, drop) -> frame */
};

static struct state below_user_frame(const struct finder *f, uint32_t stack, struct state s)
{
	const struct as_m_frame *frame = &f->m->frames.v[f->m->stacks.v[stack].frame];

	if (frame->flags & AS_FRAME_SIGNAL)
		return (struct state){.at = stack};
	for (uint32_t i = frame->nchain; s.kind == AS_ALLOC_NONE && i-- > 0;) {
		uint8_t t = f->traits[f->m->places.v[frame->chain + i].function];

		s.kind = t & KIND;
		if (s.kind == AS_ALLOC_NONE && !(t & PLUMBING)) {
			s.at = stack;
			s.drop = i;
		}
	}
	return s;
}

static struct state below_kernel_frame(const struct finder *f, uint32_t stack, struct state s)
{
	const struct as_m_frame *frame = &f->m->frames.v[f->m->stacks.v[stack].frame];

	for (uint32_t i = frame->nchain; i-- > 0;) {
		uint8_t t = f->traits[f->m->places.v[frame->chain + i].function];

		if (t & FAULT)
			s.kind = AS_ALLOC_FAULT;
		if (t & FILE_FAULT && s.kind == AS_ALLOC_FAULT)
			s.kind = AS_ALLOC_NONE;
	}
	return s;
}

static uint32_t frame_without(struct finder *f, uint32_t frame, uint32_t drop)
{
	struct as_m_frame c = f->m->frames.v[frame];
	bool fresh;
	uint64_t *slot;

	if (!drop)
		return frame;
	slot = as_map64_put(&f->frames, (uint64_t)frame << 24 | AS_MIN(drop, 0xffffffu),
			    &fresh);
	if (fresh) {
		c.chain += drop;
		c.nchain -= drop;
		*slot = f->m->frames.n;
		as_vec_push(&f->m->frames, c);
	}
	return (uint32_t)*slot;
}

/* A stack for samples of that kind alone, so that a stack tells the kind. */
static uint32_t fold(struct finder *f, struct state s)
{
	const struct as_m_stack at = f->m->stacks.v[s.at];
	bool fresh;
	uint64_t *slot = as_map64_put(&f->made,
				      (uint64_t)s.at << 28 |
					      (uint64_t)AS_MIN(s.drop, 0xffffffu) << 4 | s.kind,
				      &fresh);

	if (fresh) {
		struct as_m_stack made = {at.parent, frame_without(f, at.frame, s.drop)};

		*slot = f->m->stacks.n;
		as_vec_push(&f->m->stacks, made);
	}
	return (uint32_t)*slot;
}

static void find_states(struct finder *f, size_t n)
{
	const struct as_model *m = f->m;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t up = m->stacks.v[i].parent;
		struct state s = up == AS_NONE ? (struct state){.at = AS_NONE} : f->state[up];

		if (m->frames.v[m->stacks.v[i].frame].flags & AS_FRAME_KERNEL)
			s = below_kernel_frame(f, i, s);
		else
			s = below_user_frame(f, i, s);
		/* nothing of the program is above it: it stays as it is */
		if (s.kind != AS_ALLOC_NONE && s.at == AS_NONE)
			s.at = i;
		f->state[i] = s;
	}
}

/* Which stacks samples stand on: only these are folded. */
static uint8_t *used_stacks(const struct as_model *m)
{
	uint8_t *used = as_xcalloc(m->stacks.n + 1, 1);

	as_vec_foreach (s, &m->time.samples) {
		if (s->stack != AS_NONE)
			used[s->stack] = 1;
	}
	return used;
}

void as_alloc_find(struct as_model *m)
{
	struct finder f = {.m = m};
	AS_CLEANUP(as_free_autop) uint8_t *used = NULL;
	size_t n = m->stacks.n;

	if (m->time.folded)
		return;
	used = used_stacks(m);
	f.traits = as_xcalloc(m->functions.n + 1, 1);
	f.state = as_xreallocarray(NULL, n + 1, sizeof *f.state);
	for (size_t i = 0; i < m->functions.n; i++)
		f.traits[i] = traits_of(&m->functions.v[i]);
	find_states(&f, n);
	m->time.folded = as_xreallocarray(NULL, n + 1, sizeof *m->time.folded);
	m->time.kind = as_xcalloc(n + 1, 1);
	for (uint32_t i = 0; i < n; i++) {
		m->time.folded[i] = i;
		m->time.kind[i] = f.state[i].kind;
		if (used[i] && f.state[i].kind != AS_ALLOC_NONE)
			m->time.folded[i] = fold(&f, f.state[i]);
	}
	m->time.kind = as_xreallocarray(m->time.kind, m->stacks.n + 1, 1);
	memset(m->time.kind + n, 0, m->stacks.n - n);
	for (uint32_t i = 0; i < n; i++) {
		if (m->time.folded[i] >= n)
			m->time.kind[m->time.folded[i]] = m->time.kind[i];
	}
	m->time.nkinds = m->stacks.n;
	free(f.traits);
	free(f.state);
	as_map64_clear(&f.made);
	as_map64_clear(&f.frames);
}

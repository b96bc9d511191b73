/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "hook/allocators.h"

#include <stdlib.h>
#include <string.h>

struct known {
	const char *name;
	uint8_t kind, group;
};

/* The C allocator and what jemalloc adds to it; both also stand behind a prefix. */
static const struct known plain[] = {
	{"malloc", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"valloc", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"pvalloc", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"calloc", AS_RT_COUNT, AS_HOOKS_HEAP},
	{"memalign", AS_RT_ALIGN, AS_HOOKS_HEAP},
	{"aligned_alloc", AS_RT_ALIGN, AS_HOOKS_HEAP},
	{"posix_memalign", AS_RT_POINTER, AS_HOOKS_HEAP},
	{"realloc", AS_RT_REALLOC, AS_HOOKS_HEAP},
	{"reallocarray", AS_RT_REALLOC_COUNT, AS_HOOKS_HEAP},
	{"free", AS_RT_FREE, AS_HOOKS_HEAP},
	{"cfree", AS_RT_FREE, AS_HOOKS_HEAP},
	{"free_sized", AS_RT_FREE, AS_HOOKS_HEAP},
	{"free_aligned_sized", AS_RT_FREE, AS_HOOKS_HEAP},
	{"mallocx", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"rallocx", AS_RT_REALLOC, AS_HOOKS_HEAP},
	{"xallocx", AS_RT_RESIZE, AS_HOOKS_HEAP},
	{"dallocx", AS_RT_FREE, AS_HOOKS_HEAP},
	{"sdallocx", AS_RT_FREE, AS_HOOKS_HEAP},
};
#define N_C_ONLY 13 /* of plain, those that any C library has */

static const struct known mimalloc[] = {
	{"mi_malloc", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"mi_zalloc", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"mi_malloc_small", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"mi_zalloc_small", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"mi_malloc_aligned", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"mi_malloc_aligned_at", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"mi_zalloc_aligned", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"mi_zalloc_aligned_at", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"mi_valloc", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"mi_pvalloc", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"mi_new_nothrow", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"mi_new_aligned_nothrow", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"mi_calloc", AS_RT_COUNT, AS_HOOKS_HEAP},
	{"mi_mallocn", AS_RT_COUNT, AS_HOOKS_HEAP},
	{"mi_calloc_aligned", AS_RT_COUNT, AS_HOOKS_HEAP},
	{"mi_calloc_aligned_at", AS_RT_COUNT, AS_HOOKS_HEAP},
	{"mi_memalign", AS_RT_ALIGN, AS_HOOKS_HEAP},
	{"mi_aligned_alloc", AS_RT_ALIGN, AS_HOOKS_HEAP},
	{"mi_posix_memalign", AS_RT_POINTER, AS_HOOKS_HEAP},
	{"mi_heap_malloc", AS_RT_HEAP, AS_HOOKS_HEAP},
	{"mi_heap_zalloc", AS_RT_HEAP, AS_HOOKS_HEAP},
	{"mi_heap_malloc_small", AS_RT_HEAP, AS_HOOKS_HEAP},
	{"mi_heap_malloc_aligned", AS_RT_HEAP, AS_HOOKS_HEAP},
	{"mi_heap_zalloc_aligned", AS_RT_HEAP, AS_HOOKS_HEAP},
	{"mi_realloc", AS_RT_REALLOC, AS_HOOKS_HEAP},
	{"mi_reallocf", AS_RT_REALLOC, AS_HOOKS_HEAP},
	{"mi_rezalloc", AS_RT_REALLOC, AS_HOOKS_HEAP},
	{"mi_realloc_aligned", AS_RT_REALLOC, AS_HOOKS_HEAP},
	{"mi_rezalloc_aligned", AS_RT_REALLOC, AS_HOOKS_HEAP},
	{"mi_reallocn", AS_RT_REALLOC_COUNT, AS_HOOKS_HEAP},
	{"mi_recalloc", AS_RT_REALLOC_COUNT, AS_HOOKS_HEAP},
	{"mi_reallocarray", AS_RT_REALLOC_COUNT, AS_HOOKS_HEAP},
	{"mi_expand", AS_RT_REALLOC, AS_HOOKS_HEAP},
	{"mi_free", AS_RT_FREE, AS_HOOKS_HEAP},
	{"mi_cfree", AS_RT_FREE, AS_HOOKS_HEAP},
	{"mi_free_size", AS_RT_FREE, AS_HOOKS_HEAP},
	{"mi_free_size_aligned", AS_RT_FREE, AS_HOOKS_HEAP},
	{"mi_free_aligned", AS_RT_FREE, AS_HOOKS_HEAP},
};

/* operator new that returns null instead of throwing, and all of operator delete. Only in modules that
 * are an allocator: those of the C++ libraries call malloc and free, where they are seen. */
static const struct known operators[] = {
	{"_ZnwmRKSt9nothrow_t", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"_ZnamRKSt9nothrow_t", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"_ZnwmSt11align_val_tRKSt9nothrow_t", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"_ZnamSt11align_val_tRKSt9nothrow_t", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"_ZdlPv", AS_RT_FREE, AS_HOOKS_HEAP},
	{"_ZdaPv", AS_RT_FREE, AS_HOOKS_HEAP},
	{"_ZdlPvm", AS_RT_FREE, AS_HOOKS_HEAP},
	{"_ZdaPvm", AS_RT_FREE, AS_HOOKS_HEAP},
	{"_ZdlPvRKSt9nothrow_t", AS_RT_FREE, AS_HOOKS_HEAP},
	{"_ZdaPvRKSt9nothrow_t", AS_RT_FREE, AS_HOOKS_HEAP},
	{"_ZdlPvSt11align_val_t", AS_RT_FREE, AS_HOOKS_HEAP},
	{"_ZdaPvSt11align_val_t", AS_RT_FREE, AS_HOOKS_HEAP},
	{"_ZdlPvmSt11align_val_t", AS_RT_FREE, AS_HOOKS_HEAP},
	{"_ZdaPvmSt11align_val_t", AS_RT_FREE, AS_HOOKS_HEAP},
	{"_ZdlPvSt11align_val_tRKSt9nothrow_t", AS_RT_FREE, AS_HOOKS_HEAP},
	{"_ZdaPvSt11align_val_tRKSt9nothrow_t", AS_RT_FREE, AS_HOOKS_HEAP},
};

static const struct known others[] = {
	{"mmap", AS_RT_MMAP, AS_HOOKS_MAPPINGS},
	{"mmap64", AS_RT_MMAP, AS_HOOKS_MAPPINGS},
	{"munmap", AS_RT_MUNMAP, AS_HOOKS_MAPPINGS},
	{"mremap", AS_RT_MREMAP, AS_HOOKS_MAPPINGS},
	{"_dl_debug_state", AS_RT_MODULES, AS_HOOKS_LOADER},
	{"execve", AS_RT_EXEC, AS_HOOKS_EXEC},
	{"fexecve", AS_RT_EXEC, AS_HOOKS_EXEC},
	{"execveat", AS_RT_EXEC, AS_HOOKS_EXEC},
};

/* Prefixes behind which the names of `plain` stand. glibc's own are aliases of its plain names, but
 * the ones that a static program has. */
static const struct prefix {
	const char *text;
	enum as_allocator_family family;
} prefixes[] = {
	{"_rjem_je_", AS_ALLOCATOR_JEMALLOC}, {"_rjem_", AS_ALLOCATOR_JEMALLOC},
	{"je_", AS_ALLOCATOR_JEMALLOC},       {"tc_", AS_ALLOCATOR_TCMALLOC},
	{"__libc_", AS_ALLOCATOR_GLIBC},
};

/* A symbol that tells which allocator the plain names are of. */
static const struct prefix marks[] = {
	{"mallctl", AS_ALLOCATOR_JEMALLOC},     {"mi_version", AS_ALLOCATOR_MIMALLOC},
	{"tc_version", AS_ALLOCATOR_TCMALLOC},  {"mallinfo", AS_ALLOCATOR_GLIBC},
	{"__malloc_atfork", AS_ALLOCATOR_MUSL}, {"__malloc_donate", AS_ALLOCATOR_MUSL},
};

const char *as_allocator_name(enum as_allocator_family f)
{
	static const char *const name[] = {
		[AS_ALLOCATOR_NONE] = "",
		[AS_ALLOCATOR_C] = "malloc",
		[AS_ALLOCATOR_GLIBC] = "glibc malloc",
		[AS_ALLOCATOR_MUSL] = "musl malloc",
		[AS_ALLOCATOR_JEMALLOC] = "jemalloc",
		[AS_ALLOCATOR_MIMALLOC] = "mimalloc",
		[AS_ALLOCATOR_TCMALLOC] = "tcmalloc",
	};

	return f < AS_ARRAY_LEN(name) ? name[f] : "";
}

static const struct known *find_known(const struct known *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(list[i].name, name))
			return &list[i];
	}
	return NULL;
}

struct search {
	unsigned groups;
	struct as_allocators *ret;
	enum as_allocator_family mark;
	unsigned seen; /* which ones of `plain` are there, by bit */
};

/* The row of a name, and the family its prefix tells. */
static const struct known *look_up(const char *name, enum as_allocator_family *ret_family)
{
	const struct known *k = find_known(plain, AS_ARRAY_LEN(plain), name);

	*ret_family = AS_ALLOCATOR_C;
	for (size_t i = 0; !k && i < AS_ARRAY_LEN(prefixes); i++) {
		size_t n = strlen(prefixes[i].text);

		if (strncmp(name, prefixes[i].text, n))
			continue;
		k = find_known(plain, AS_ARRAY_LEN(plain), name + n);
		*ret_family = prefixes[i].family;
	}
	if (k)
		return k;
	*ret_family = AS_ALLOCATOR_MIMALLOC;
	k = find_known(mimalloc, AS_ARRAY_LEN(mimalloc), name);
	if (k)
		return k;
	*ret_family = AS_ALLOCATOR_C;
	k = find_known(operators, AS_ARRAY_LEN(operators), name);
	if (k)
		return k;
	*ret_family = AS_ALLOCATOR_NONE;
	return find_known(others, AS_ARRAY_LEN(others), name);
}

static void on_symbol(void *ctx, const struct as_elf_symbol *s)
{
	struct search *q = ctx;
	enum as_allocator_family family;
	const struct known *k;

	if (!s->func || s->ifunc)
		return;
	for (size_t i = 0; i < AS_ARRAY_LEN(marks); i++) {
		if (!q->mark && !strcmp(s->name, marks[i].text))
			q->mark = marks[i].family;
	}
	k = look_up(s->name, &family);
	if (!k || !(k->group & q->groups))
		return;
	as_vec_push(q->ret, (struct as_allocator){
				    .svma = s->svma,
				    .name = s->name,
				    .kind = k->kind,
				    .group = k->group,
				    .family = (uint8_t)family,
				    .local = !s->global && !s->weak,
			    });
	if (family == AS_ALLOCATOR_C && k >= plain && k < plain + AS_ARRAY_LEN(plain))
		q->seen |= 1u << (k - plain);
}

/* By address; of aliases the one without a prefix first, a global one, then the shortest. */
static int by_svma(const void *a, const void *b)
{
	const struct as_allocator *x = a, *y = b;
	size_t nx = strlen(x->name), ny = strlen(y->name);

	if (x->svma != y->svma)
		return x->svma < y->svma ? -1 : 1;
	if ((x->family == AS_ALLOCATOR_C) != (y->family == AS_ALLOCATOR_C))
		return x->family == AS_ALLOCATOR_C ? -1 : 1;
	if (x->local != y->local)
		return x->local - y->local;
	if (nx != ny)
		return nx < ny ? -1 : 1;
	return strcmp(x->name, y->name);
}

static bool is_operator(const struct as_allocator *a)
{
	return find_known(operators, AS_ARRAY_LEN(operators), a->name) != NULL;
}

/* Plain names that are local: only as a whole set. Operators: only beside an allocator. */
static bool keep(const struct search *q, const struct as_allocator *a, bool allocates)
{
	unsigned set = 0;

	if (is_operator(a))
		return allocates;
	if (!a->local || a->family != AS_ALLOCATOR_C)
		return true;
	for (size_t i = 0; i < N_C_ONLY; i++) {
		const char *name = plain[i].name;

		if (!strcmp(name, "malloc") || !strcmp(name, "calloc") ||
		    !strcmp(name, "realloc") || !strcmp(name, "free"))
			set |= 1u << i;
	}
	return (q->seen & set) == set;
}

void as_allocators_find(struct as_elf *elf, unsigned groups, struct as_allocators *ret)
{
	struct search q = {.groups = groups, .ret = ret};
	bool allocates = false;
	size_t n = 0;

	memset(ret, 0, sizeof *ret);
	/* a damaged table costs the symbols in it; what the others told is there */
	(void)as_elf_each_symbol(elf, on_symbol, &q, NULL);
	if (!ret->n)
		return;
	as_vec_foreach (a, ret)
		allocates |= a->group == AS_HOOKS_HEAP && !is_operator(a);
	qsort(ret->v, ret->n, sizeof *ret->v, by_svma);
	for (size_t i = 0; i < ret->n; i++) {
		struct as_allocator a = ret->v[i];

		if ((n && ret->v[n - 1].svma == a.svma) || !keep(&q, &a, allocates))
			continue;
		if (a.family == AS_ALLOCATOR_C && q.mark)
			a.family = (uint8_t)q.mark;
		ret->v[n++] = a;
	}
	ret->n = n;
}

void as_allocators_clear(struct as_allocators *a)
{
	as_vec_clear(a);
}

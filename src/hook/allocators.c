/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "hook/allocators.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* assay/heap.h: the function's name, and the note that says where it is in a stripped program. */
#define MARK_SITE  "assay_heap_mark_site"
#define MARK_NOTES ".note.assay"
#define MARK_OWNER "assay"
enum { MARK_NOTE = 1, MARK_NOTE_BYTES = 12 + 8 + 8 };

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

/* gperftools' names for the C++ operators. */
static const struct known tcmalloc[] = {
	{"tc_new_nothrow", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"tc_newarray_nothrow", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"tc_new_aligned_nothrow", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"tc_newarray_aligned_nothrow", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"tc_malloc_skip_new_handler", AS_RT_SIZE, AS_HOOKS_HEAP},
	{"tc_delete", AS_RT_FREE, AS_HOOKS_HEAP},
	{"tc_deletearray", AS_RT_FREE, AS_HOOKS_HEAP},
	{"tc_delete_sized", AS_RT_FREE, AS_HOOKS_HEAP},
	{"tc_deletearray_sized", AS_RT_FREE, AS_HOOKS_HEAP},
	{"tc_delete_nothrow", AS_RT_FREE, AS_HOOKS_HEAP},
	{"tc_deletearray_nothrow", AS_RT_FREE, AS_HOOKS_HEAP},
	{"tc_delete_aligned", AS_RT_FREE, AS_HOOKS_HEAP},
	{"tc_deletearray_aligned", AS_RT_FREE, AS_HOOKS_HEAP},
	{"tc_delete_sized_aligned", AS_RT_FREE, AS_HOOKS_HEAP},
	{"tc_deletearray_sized_aligned", AS_RT_FREE, AS_HOOKS_HEAP},
	{"tc_delete_aligned_nothrow", AS_RT_FREE, AS_HOOKS_HEAP},
	{"tc_deletearray_aligned_nothrow", AS_RT_FREE, AS_HOOKS_HEAP},
};

/* What may throw, and what returns null instead, with the same arguments. */
static const struct throwing {
	const char *name, *instead;
	bool counted;
} throwing[] = {
	{"_Znwm", "_ZnwmRKSt9nothrow_t"},
	{"_Znam", "_ZnamRKSt9nothrow_t"},
	{"_ZnwmSt11align_val_t", "_ZnwmSt11align_val_tRKSt9nothrow_t"},
	{"_ZnamSt11align_val_t", "_ZnamSt11align_val_tRKSt9nothrow_t"},
	{"tc_new", "tc_new_nothrow"},
	{"tc_newarray", "tc_newarray_nothrow"},
	{"tc_new_aligned", "tc_new_aligned_nothrow"},
	{"tc_newarray_aligned", "tc_newarray_aligned_nothrow"},
	{"mi_new", "mi_new_nothrow"},
	{"mi_new_aligned", "mi_new_aligned_nothrow"},
	{"mi_new_n", "mi_mallocn", true},
};

/* operator new and delete. Only in modules that are an allocator: those of the C++ libraries call
 * malloc and free, where they are seen. */
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
	{MARK_SITE, AS_RT_MARK, AS_HOOKS_MARKS},
	{"prctl", AS_RT_PRCTL, AS_HOOKS_SECCOMP},
	{"syscall", AS_RT_SYSCALL, AS_HOOKS_SECCOMP},
	{"mlockall", AS_RT_MLOCKALL, AS_HOOKS_SECCOMP},
	{"exit", AS_RT_EXIT_BEGINS, AS_HOOKS_EXIT},
	{"_exit", AS_RT_EXIT, AS_HOOKS_EXIT},
	{"_Exit", AS_RT_EXIT, AS_HOOKS_EXIT},
};
static const struct known a_new = {"", AS_RT_NEW, AS_HOOKS_HEAP};

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
	{"mallctl", AS_ALLOCATOR_JEMALLOC},
	{"mi_version", AS_ALLOCATOR_MIMALLOC},
	{"tc_version", AS_ALLOCATOR_TCMALLOC},
	{"mallinfo", AS_ALLOCATOR_GLIBC},
	{"__malloc_atfork", AS_ALLOCATOR_MUSL},
	{"__malloc_donate", AS_ALLOCATOR_MUSL},
	{"TCMallocInternalMalloc", AS_ALLOCATOR_TCMALLOC},
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

static const struct throwing *find_throwing(const char *name)
{
	for (size_t i = 0; i < AS_ARRAY_LEN(throwing); i++) {
		if (!strcmp(throwing[i].name, name))
			return &throwing[i];
	}
	return NULL;
}

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
	*ret_family = AS_ALLOCATOR_TCMALLOC;
	k = find_known(tcmalloc, AS_ARRAY_LEN(tcmalloc), name);
	if (k)
		return k;
	*ret_family = AS_ALLOCATOR_C;
	k = find_known(operators, AS_ARRAY_LEN(operators), name);
	if (k)
		return k;
	if (find_throwing(name)) {
		if (!strncmp(name, "mi_", 3))
			*ret_family = AS_ALLOCATOR_MIMALLOC;
		else if (!strncmp(name, "tc_", 3))
			*ret_family = AS_ALLOCATOR_TCMALLOC;
		return &a_new;
	}
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
	return a->family == AS_ALLOCATOR_C &&
	       (a->kind == AS_RT_NEW ||
		find_known(operators, AS_ARRAY_LEN(operators), a->name) != NULL);
}

/* Allocators whose operator new does not call malloc. */
static bool has_own_new(const struct search *q)
{
	return q->mark == AS_ALLOCATOR_JEMALLOC || q->mark == AS_ALLOCATOR_MIMALLOC ||
	       q->mark == AS_ALLOCATOR_TCMALLOC;
}

/* What each of the throwing ones is told by; those without are left out. */
static void find_instead(const struct search *q, struct as_allocators *list)
{
	as_vec_foreach (a, list) {
		const struct throwing *t = a->kind == AS_RT_NEW ? find_throwing(a->name) : NULL;

		if (!t || (is_operator(a) && !has_own_new(q)))
			continue;
		a->counted = t->counted;
		as_vec_foreach (b, list) {
			if (!strcmp(b->name, t->instead))
				a->instead_svma = b->svma;
		}
	}
}

/* Plain names that are local: only as a whole set. Operators: only beside an allocator. */
static bool keep(const struct search *q, const struct as_allocator *a, bool allocates)
{
	unsigned set = 0;

	if (a->kind == AS_RT_NEW && !a->instead_svma)
		return false;
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

/* Notes outlive the symbols. An entry: sizes of name and content, type, name, and how far from itself
 * the function is. */
static void find_mark_notes(struct as_elf *elf, struct as_allocators *ret)
{
	const struct as_elf_section *s = as_elf_find_section(elf, MARK_NOTES);
	const uint8_t *p;
	size_t n;

	if (!s || as_elf_section_data(elf, MARK_NOTES, &p, &n, NULL) < 0)
		return;
	for (size_t at = 0; at + MARK_NOTE_BYTES <= n; at += MARK_NOTE_BYTES) {
		if (as_get_le32(p + at) != sizeof MARK_OWNER || as_get_le32(p + at + 4) != 8 ||
		    as_get_le32(p + at + 8) != MARK_NOTE ||
		    memcmp(p + at + 12, MARK_OWNER, sizeof MARK_OWNER) != 0)
			return;
		as_vec_push(ret, (struct as_allocator){
					 .svma = s->svma + at + 20 + as_get_le64(p + at + 20),
					 .name = MARK_SITE,
					 .kind = AS_RT_MARK,
					 .group = AS_HOOKS_MARKS,
				 });
	}
}

void as_allocators_find(struct as_elf *elf, unsigned groups, struct as_allocators *ret)
{
	struct search q = {.groups = groups, .ret = ret};
	bool allocates = false;
	size_t n = 0;

	memset(ret, 0, sizeof *ret);
	/* a damaged table costs the symbols in it; what the others told is there */
	(void)as_elf_each_symbol(elf, on_symbol, &q, NULL);
	if (groups & AS_HOOKS_MARKS)
		find_mark_notes(elf, ret);
	if (!ret->n)
		return;
	find_instead(&q, ret);
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

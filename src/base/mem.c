/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory by lifetime: see mem.h. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void as_oom(void)
{
	static const char msg[] = "assay: out of memory\n";
	ssize_t ignored = write(STDERR_FILENO, msg, sizeof msg - 1);

	(void)ignored; /* nobody left to tell */
	_exit(1);
}

void *as_xmalloc(size_t n)
{
	void *p = malloc(n ? n : 1);

	if (!p)
		as_oom();
	return p;
}

void *as_xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		as_oom();
	return p;
}

void *as_xrealloc(void *p, size_t n)
{
	void *q = realloc(p, n ? n : 1);

	if (!q)
		as_oom();
	return q;
}

void *as_xreallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		as_oom();
	return as_xrealloc(p, bytes);
}

static void *large_array(size_t bytes)
{
	size_t whole = (bytes + AS_LARGE_BYTES - 1) & ~(AS_LARGE_BYTES - 1);
	void *p = whole < bytes ? NULL : aligned_alloc(AS_LARGE_BYTES, whole);

	if (!p)
		as_oom();
	(void)madvise(p, whole, MADV_HUGEPAGE); /* only a wish */
	return p;
}

void *as_xarray(size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		as_oom();
	return bytes >= AS_LARGE_BYTES ? large_array(bytes) : as_xmalloc(bytes);
}

char *as_xstrdup(const char *s)
{
	size_t n = strlen(s) + 1;

	return memcpy(as_xmalloc(n), s, n);
}

char *as_xstrndup(const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *p = as_xmalloc(len + 1);

	memcpy(p, s, len);
	p[len] = '\0';
	return p;
}

char *as_xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	int n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		as_oom();
	return s;
}

void as_free_autop(void *pp)
{
	void *p;

	memcpy(&p, pp, sizeof p); /* pp points to a pointer of any type */
	free(p);
}

void as_close_autop(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* read side or an error path: nothing to save */
}

/* One block: header, then cap bytes. Blocks form a list, newest first, for as_arena_clear. */
struct as_arena_block {
	struct as_arena_block *next;
	size_t used, cap;
	_Alignas(8) unsigned char data[];
};

#define ARENA_BLOCK_MIN ((size_t)4 << 10)
#define ARENA_BLOCK_MAX ((size_t)1 << 20)

static struct as_arena_block *arena_block_new(size_t cap)
{
	size_t bytes;

	if (__builtin_add_overflow(cap, sizeof(struct as_arena_block), &bytes))
		as_oom();

	struct as_arena_block *b = as_xcalloc(1, bytes);

	b->cap = cap;
	return b;
}

void *as_arena_alloc(struct as_arena *a, size_t n)
{
	if (n > SIZE_MAX - 7)
		as_oom();
	n = n ? (n + 7) & ~(size_t)7 : 8;
	a->used_bytes += n;

	struct as_arena_block *b = a->head;

	if (b && b->cap - b->used >= n) {
		void *p = b->data + b->used;

		b->used += n;
		return p;
	}

	size_t want = b ? AS_MIN(b->cap * 2, ARENA_BLOCK_MAX) : ARENA_BLOCK_MIN;

	want = AS_MAX(want, ARENA_BLOCK_MIN);
	if (n > want / 4) {
		/* A large piece gets its own block behind the head, which keeps its free tail. */
		struct as_arena_block *own = arena_block_new(n);

		own->used = n;
		if (b) {
			own->next = b->next;
			b->next = own;
		} else {
			a->head = own;
		}
		return own->data;
	}

	struct as_arena_block *fresh = arena_block_new(want);

	fresh->next = b;
	fresh->used = n;
	a->head = fresh;
	return fresh->data;
}

char *as_arena_strndup(struct as_arena *a, const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *p = as_arena_alloc(a, len + 1);

	memcpy(p, s, len);
	return p;
}

char *as_arena_strdup(struct as_arena *a, const char *s)
{
	return as_arena_strndup(a, s, strlen(s));
}

void as_arena_clear(struct as_arena *a)
{
	struct as_arena_block *b = a->head;

	while (b) {
		struct as_arena_block *next = b->next;

		free(b);
		b = next;
	}
	a->head = NULL;
	a->used_bytes = 0;
}

void *as_vec_grow_(void *v, size_t *cap, size_t need, size_t size)
{
	size_t fresh = *cap < 8 ? 8 : *cap + *cap / 2;

	if (fresh < need)
		fresh = need;
	if (fresh >= AS_LARGE_BYTES / size) {
		/* copied, as realloc would not keep it where large pages begin; hence seldom */
		if (fresh < 2 * *cap)
			fresh = 2 * *cap;
		void *more = as_xarray(fresh, size);

		if (*cap)
			memcpy(more, v, *cap * size);
		free(v);
		v = more;
	} else {
		v = as_xreallocarray(v, fresh, size);
	}
	*cap = fresh;
	return v;
}

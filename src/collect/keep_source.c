/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Snippets of source files into the session: the files with the most samples first, up to a budget. */
#include "collect/keep_priv.h"

#include <stdlib.h>
#include <string.h>

#include "code/source.h"

#define MAX_TEXT  (512u << 10)
#define MAX_FILES 400
#define NEAR      8 /* lines between two snippets that are kept rather than cut out */

struct span {
	uint32_t lo, hi;
};

struct file {
	uint64_t heat;
	const char *root;
	uint64_t newest_ns;
	uint32_t id; /* in names */
	AS_VEC(struct span) spans;
};

struct as_keep_sources {
	const char *const *dirs;
	const char *root;
	uint64_t newest_ns;
	struct as_intern names;
	AS_VEC(struct file) files; /* by id until they are sorted */
	size_t written;
	char *cwd;
};

struct as_keep_sources *as_keep_sources_new(const char *const *source_dirs)
{
	struct as_keep_sources *s = as_xcalloc(1, sizeof *s);

	s->dirs = source_dirs;
	s->cwd = realpath(".", NULL); /* NULL: a folder that is gone */
	return s;
}

void as_keep_sources_free(struct as_keep_sources *s)
{
	if (!s)
		return;
	as_vec_foreach (f, &s->files)
		as_vec_clear(&f->spans);
	as_vec_clear(&s->files);
	as_intern_clear(&s->names);
	free(s->cwd);
	free(s);
}

void as_keep_sources_module(struct as_keep_sources *s, const char *root, uint64_t newest_ns)
{
	s->root = root;
	s->newest_ns = newest_ns;
}

void as_keep_sources_want(struct as_keep_sources *s, const char *file, uint32_t lo, uint32_t hi,
			  uint32_t context, uint64_t heat)
{
	uint32_t id = as_intern_str(&s->names, file);
	struct span span = {lo > context ? lo - context : 1,
			    hi < UINT32_MAX - context ? hi + context : hi};
	struct span *last;
	struct file *f;

	if (id == s->files.n)
		as_vec_push(
			&s->files,
			(struct file){.root = s->root, .newest_ns = s->newest_ns, .id = id});
	f = &s->files.v[id];
	f->heat += heat;
	last = f->spans.n ? &f->spans.v[f->spans.n - 1] : NULL;
	if (last && span.lo >= last->lo && span.hi <= last->hi)
		return; /* a loop: the same lines again and again */
	as_vec_push(&f->spans, span);
}

static int by_heat(const void *x, const void *y)
{
	const struct file *a = x, *b = y;

	if (a->heat != b->heat)
		return a->heat > b->heat ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

static int by_lo(const void *x, const void *y)
{
	const struct span *a = x, *b = y;

	return a->lo < b->lo ? -1 : a->lo > b->lo;
}

static void merge_spans(struct file *f)
{
	size_t n = 0;

	qsort(f->spans.v, f->spans.n, sizeof *f->spans.v, by_lo);
	as_vec_foreach (s, &f->spans) {
		if (n && s->lo <= f->spans.v[n - 1].hi + NEAR)
			f->spans.v[n - 1].hi = AS_MAX(f->spans.v[n - 1].hi, s->hi);
		else
			f->spans.v[n++] = *s;
	}
	f->spans.n = n;
}

static void write_span(struct as_resolver *v, struct as_keep_sources *s, const char *file,
		       const struct as_source *src, struct span span)
{
	uint32_t total = as_source_lines(src);
	size_t first, n;
	const char *from, *to;

	if (span.lo > total)
		return;
	from = as_source_line(src, span.lo, &first);
	to = as_source_line(src, AS_MIN(span.hi, total), &n);
	n = (size_t)(to - from) + n;
	if (s->written + n > MAX_TEXT)
		return;
	s->written += n;
	as_write_source(v->r->w,
			&(struct as_rec_source){.file = as_resolver_string(v, file),
						.found = as_resolver_string(v, src->found),
						.first = span.lo,
						.total = total,
						.text = {from, n}});
}

static void write_file(struct as_resolver *v, struct as_keep_sources *s, struct file *f)
{
	const char *name = as_intern_get(&s->names, f->id);
	struct as_source_query q = {
		.file = name,
		.cwd = s->cwd,
		.root = f->root,
		.source_dirs = s->dirs,
		.newest_ns = f->newest_ns,
	};
	struct as_source *src = as_source_load(&q);

	merge_spans(f);
	for (size_t i = 0; src->found && i < f->spans.n; i++)
		write_span(v, s, name, src, f->spans.v[i]);
	as_source_free(src);
}

void as_keep_sources_write(struct as_resolver *v, struct as_keep_sources *s)
{
	if (s->files.n)
		qsort(s->files.v, s->files.n, sizeof *s->files.v, by_heat);
	for (size_t i = 0; i < s->files.n && i < MAX_FILES && s->written < MAX_TEXT; i++)
		write_file(v, s, &s->files.v[i]);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads the first fitting file of the places in source_where.c, or says why none fits. */
#include "code/source_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/map.h"
#include "base/sys.h"
#include "elf/debugfile.h"

#define MAX_LINES    (4u << 20)
#define MAX_TOLD     4   /* places named in the sentence */
#define MAX_ATTEMPTS 256 /* places looked at */

struct search {
	const struct as_source_query *q;
	struct as_source *s;
	struct as_buf refused, tried;
	struct as_intern seen; /* places not there */
	unsigned attempts;
};

static bool has_include_folder(const char *path)
{
	return strstr(path, "/include/") != NULL;
}

/* By its name: paths come from sessions, and what is read ends up in reports. */
static bool is_source_name(const char *path)
{
	static const char *const ends[] = {
		"rs",  "c",     "h",    "cc",   "cpp",   "cxx", "c++", "hh",  "hpp", "hxx",
		"h++", "i",     "ii",   "inl",  "ipp",   "tcc", "inc", "def", "tbl", "s",
		"asm", "go",    "zig",  "d",    "f",     "f90", "f95", "for", "py",  "pyx",
		"js",  "ts",    "java", "kt",   "swift", "m",   "mm",  "cu",  "cuh", "y",
		"l",   "re",    "ml",   "hs",   "nim",   "v",   "cr",  "lua", "adb", "ads",
		"pas", "scala", "x",    "tmpl", "cl",
	};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');

	if (!dot)
		return has_include_folder(path); /* <vector> */
	for (size_t i = 0; i < AS_ARRAY_LEN(ends); i++) {
		if (strcasecmp(dot + 1, ends[i]) == 0)
			return true;
	}
	return false;
}

static void add_quoted(struct as_buf *b, const char *path)
{
	as_buf_addc(b, '\'');
	as_fmt_quoted(b, path, strlen(path));
	as_buf_addc(b, '\'');
}

static void refuse(struct search *s, const char *path, const char *why)
{
	if (s->refused.len)
		as_buf_adds(&s->refused, "; ");
	add_quoted(&s->refused, path);
	as_buf_addf(&s->refused, " %s", why);
}

static void index_lines(struct as_source *s)
{
	const char *p = s->text.p, *end = p + s->text.len;

	while (p < end && s->at.n < MAX_LINES) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		as_vec_push(&s->at, (uint32_t)(p - s->text.p));
		p = nl ? nl + 1 : end;
	}
}

static bool fits(struct search *s, const char *path, const struct stat *st, bool fixed)
{
	uint64_t changed_ns = (uint64_t)AS_MAX(st->st_mtim.tv_sec, 0) * 1000000000u +
			      (uint64_t)st->st_mtim.tv_nsec;

	if (!S_ISREG(st->st_mode)) {
		refuse(s, path, "is no file");
		return false;
	}
	if (st->st_size > AS_SOURCE_MAX) {
		refuse(s, path, "is larger than 16 MiB");
		return false;
	}
	if (!fixed && s->q->newest_ns && changed_ns > s->q->newest_ns) {
		refuse(s, path, "is newer than the program: its lines may have moved");
		return false;
	}
	return true;
}

static bool read_text(struct search *s, int fd, const char *path)
{
	struct as_error err = {0};

	as_buf_reset(&s->s->text);
	if (as_read_fd(fd, AS_SOURCE_MAX, &s->s->text, &err) < 0) {
		refuse(s, path, "cannot be read");
		return false;
	}
	if (s->s->text.len && memchr(s->s->text.p, 0, s->s->text.len)) {
		refuse(s, path, "is no text");
		return false;
	}
	return true;
}

/* Different rules lead to the same place; it is told once. */
static void tell_tried(struct search *s, const char *path)
{
	size_t known = s->seen.str.n;

	if (as_intern_str(&s->seen, path) < known)
		return;
	s->attempts++;
	if (s->attempts > MAX_TOLD)
		return;
	if (s->attempts > 1)
		as_buf_adds(&s->tried, ", ");
	add_quoted(&s->tried, path);
}

static bool try_place(void *ctx, const char *root, const char *path, bool fixed)
{
	struct search *s = ctx;
	AS_CLEANUP(as_close_autop) int fd = -1;
	struct stat st;

	if (s->attempts >= MAX_ATTEMPTS)
		return false;
	fd = as_open_in_root(root, path);
	if (fd == -ENOENT || fd == -ENOTDIR) {
		tell_tried(s, path);
		return false;
	}
	if (fd < 0 || fstat(fd, &st) < 0) {
		refuse(s, path, fd < 0 ? strerror(-fd) : strerror(errno));
		return false;
	}
	if (!fits(s, path, &st, fixed) || !read_text(s, fd, path))
		return false;
	s->s->found = as_xstrdup(path);
	return true;
}

static void explain(struct search *s)
{
	const char *remedy = as_source_remedy(s->q);
	struct as_buf b = {0};

	if (remedy)
		as_buf_addf(&b, "%s; ", remedy);
	if (s->refused.len)
		as_buf_adds(&b, s->refused.p);
	if (s->tried.len) {
		as_buf_addf(&b, "%snot found; looked at %s", s->refused.len ? "; else " : "",
			    s->tried.p);
		if (s->attempts > MAX_TOLD)
			as_buf_addf(&b, " and %u more place%s", s->attempts - MAX_TOLD,
				    s->attempts - MAX_TOLD == 1 ? "" : "s");
	}
	if (!b.len)
		as_buf_adds(&b, "not found");
	s->s->why = as_buf_detach(&b);
}

struct as_source *as_source_load(const struct as_source_query *q)
{
	struct as_source *src = as_xcalloc(1, sizeof *src);
	struct search s = {.q = q, .s = src};

	if (!q->file || !q->file[0])
		src->why = as_xstrdup("the debug information names no file");
	else if (!is_source_name(q->file))
		src->why = as_xstrdup("not read: its name is not that of a source file");
	else if (as_source_places(q, try_place, &s, &s.refused))
		index_lines(src);
	else
		explain(&s);
	if (!src->found)
		as_buf_clear(&src->text);
	as_buf_clear(&s.refused);
	as_buf_clear(&s.tried);
	as_intern_clear(&s.seen);
	return src;
}

void as_source_free(struct as_source *s)
{
	if (!s)
		return;
	free(s->found);
	free(s->why);
	as_buf_clear(&s->text);
	as_vec_clear(&s->at);
	free(s);
}

const char *as_source_line(const struct as_source *s, uint32_t line, size_t *ret_n)
{
	const char *p;
	size_t end;

	if (line == 0 || line > s->at.n)
		return NULL;
	p = s->text.p + s->at.v[line - 1];
	end = line < s->at.n ? s->at.v[line] : s->text.len;
	*ret_n = end - s->at.v[line - 1];
	if (*ret_n && p[*ret_n - 1] == '\n')
		--*ret_n;
	if (*ret_n && p[*ret_n - 1] == '\r')
		--*ret_n;
	return p;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The search for debug files. Every candidate is opened, identified, and named in `tried`. */
#include "elf/debugfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>
#include "base/mem.h"
#include "elf/elf_priv.h"

#define MAX_CRC_BYTES (16ull << 30) /* a sparse file can claim any size */

static const char *const default_dirs[] = {"/usr/lib/debug", NULL};

struct search {
	const struct as_debug_search *s;
	struct as_buf *tried;
	const struct as_build_id *id; /* what a candidate must have, if both have one */
	bool id_required;
	const uint32_t *crc; /* what a candidate must have; NULL: not checked */
	bool any_contents;   /* else it must hold .debug_info or .symtab */
};

int as_open_in_root(const char *root, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int dir, fd, saved;

	if (!root || !*root) {
		fd = open(path, (int)how.flags);
		return fd < 0 ? -errno : fd;
	}
	dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
	saved = errno;
	close(dir);
	return fd < 0 ? -saved : fd;
}

__attribute__((format(printf, 3, 4))) static void note(struct search *q, const char *path,
						       const char *fmt, ...)
{
	va_list ap;

	if (!q->tried)
		return;
	as_buf_addf(q->tried, "%s: ", path);
	va_start(ap, fmt);
	as_buf_vaddf(q->tried, fmt, ap);
	va_end(ap);
	as_buf_addc(q->tried, '\n');
}

static bool has_contents(const struct as_elf *e, const char *section)
{
	const struct as_elf_section *s = as_elf_find_section(e, section);

	return s && !s->nobits && s->size_bytes;
}

static bool same_id(const struct as_build_id *a, const struct as_build_id *b)
{
	return a->len == b->len && memcmp(a->id, b->id, a->len) == 0;
}

static uint32_t file_crc(const struct as_elf *e)
{
	return (uint32_t)crc32_z(crc32_z(0, NULL, 0), e->img.p, e->img.n);
}

/* NULL when e is what is looked for, else why not. */
static const char *mismatch(const struct search *q, const struct as_elf *e)
{
	const struct as_build_id *id = as_elf_build_id(e);

	if (q->crc && e->img.n > MAX_CRC_BYTES)
		return "refused: it is too large for its CRC to be checked";
	if (q->id_required && !id->len)
		return "refused: it has no build-id";
	if (q->id && q->id->len && id->len && !same_id(q->id, id))
		return "refused: its build-id is another one";
	if (q->crc && file_crc(e) != *q->crc)
		return "refused: its CRC is not the one the object names";
	if (!q->any_contents && !has_contents(e, ".debug_info") && !has_contents(e, ".symtab"))
		return "refused: it holds no debug information";
	return NULL;
}

/* The path behind symbolic links, for relative references from this file. */
static char *resolved_name(int fd, const char *root, const char *path)
{
	char link[64], buf[PATH_MAX];
	ssize_t n;

	if (root)
		return as_xstrdup(path);
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, buf, sizeof buf);
	return n > 0 && n < (ssize_t)sizeof buf && buf[0] == '/' ? as_xstrndup(buf, (size_t)n)
								 : as_xstrdup(path);
}

static struct as_elf *try_in(struct search *q, const char *root, const char *path)
{
	struct as_error err = {0};
	struct as_elf *e = NULL;
	const char *why;
	int fd = as_open_in_root(root, path);
	AS_CLEANUP(as_free_autop) char *shown = as_xasprintf("%s%s", root ? root : "", path);

	if (fd < 0) {
		note(q, shown, "%s", fd == -ENOENT ? "not there" : strerror(-fd));
		return NULL;
	}
	AS_CLEANUP(as_free_autop) char *name = resolved_name(fd, root, path);

	if (as_elf_open_fd(fd, name, &e, &err) < 0) {
		note(q, shown, "refused: %s", err.msg);
		return NULL;
	}
	why = mismatch(q, e);
	note(q, shown, "%s", why ? why : "used");
	if (why) {
		as_elf_close(e);
		return NULL;
	}
	return e;
}

static struct as_elf *try_path(struct search *q, const char *path)
{
	struct as_elf *e = q->s->root ? try_in(q, q->s->root, path) : NULL;

	return e ? e : try_in(q, NULL, path);
}

static const char *const *dirs_of(const struct as_debug_search *s)
{
	return s->debug_dirs ? s->debug_dirs : default_dirs;
}

static struct as_elf *by_build_id(struct search *q, const struct as_build_id *id)
{
	struct as_elf *e = NULL;

	if (id->len < 2)
		return NULL;
	for (const char *const *d = dirs_of(q->s); *d && !e; d++) {
		struct as_buf path = {0};

		as_buf_addf(&path, "%s/.build-id/%02x/", *d, id->id[0]);
		for (size_t i = 1; i < id->len; i++)
			as_buf_addf(&path, "%02x", id->id[i]);
		as_buf_adds(&path, ".debug");
		e = try_path(q, path.p);
		as_buf_clear(&path);
	}
	return e;
}

/* Directory of path with its slash; "" when it has none. Caller frees. */
static char *dir_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return as_xstrndup(path, slash ? (size_t)(slash - path) + 1 : 0);
}

static struct as_elf *try_joined(struct search *q, const char *a, const char *b, const char *c)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s%s%s", a, b, c);

	return try_path(q, path);
}

static struct as_elf *by_debuglink(struct search *q, struct as_elf *obj,
				   const char *object_path)
{
	AS_CLEANUP(as_free_autop) char *dir = dir_of(object_path);
	struct as_elf *e;
	const uint8_t *p;
	const char *name;
	uint32_t crc;
	struct as_rd r;
	size_t n;

	if (as_elf_section_data(obj, ".gnu_debuglink", &p, &n, NULL) < 0)
		return NULL;
	r = AS_RD(p, n);
	name = as_rd_cstr(&r);
	as_rd_skip(&r, -(uint64_t)(r.p - p) & 3);
	crc = as_rd_u32(&r);
	if (r.bad || !*name || strchr(name, '/')) {
		note(q, ".gnu_debuglink", "damaged");
		return NULL;
	}
	q->crc = &crc;
	e = try_joined(q, dir, name, "");
	if (!e)
		e = try_joined(q, dir, ".debug/", name);
	for (const char *const *d = dirs_of(q->s); *d && !e; d++) {
		AS_CLEANUP(as_free_autop) char *sub = as_xasprintf("%s/%s", *d, dir);

		e = try_joined(q, sub, name, "");
	}
	q->crc = NULL;
	return e;
}

int as_debugfile_find(struct as_elf *obj, const struct as_debug_search *s, struct as_elf **ret,
		      struct as_buf *tried, struct as_error *err)
{
	struct search q = {.s = s, .tried = tried, .id = as_elf_build_id(obj)};
	const char *path = s->object_path ? s->object_path : as_elf_name(obj);
	struct as_elf *e = NULL;

	(void)err; /* an unreadable place is noted, not a failure */
	if (has_contents(obj, ".debug_info")) {
		note(&q, path, "has its own debug information");
	} else {
		e = by_build_id(&q, q.id);
		if (!e)
			e = by_debuglink(&q, obj, path);
		if (!e && has_contents(obj, ".gnu_debugdata"))
			note(&q, path, "has mini debug information: function names only");
	}
	*ret = e;
	return AS_OK;
}

int as_debugfile_alt(struct as_elf *dbg, const struct as_debug_search *s, struct as_elf **ret,
		     struct as_buf *tried, struct as_error *err)
{
	struct as_build_id id = {0};
	struct search q = {
		.s = s, .tried = tried, .id = &id, .id_required = true, .any_contents = true};
	AS_CLEANUP(as_free_autop) char *dir = dir_of(as_elf_name(dbg));
	struct as_elf *e = NULL;
	const char *name, *base;
	const uint8_t *p;
	struct as_rd r;
	size_t n;

	*ret = NULL;
	if (as_elf_section_data(dbg, ".gnu_debugaltlink", &p, &n, NULL) < 0)
		return AS_OK;
	r = AS_RD(p, n);
	name = as_rd_cstr(&r);
	id.len = (uint8_t)AS_MIN(as_rd_left(&r), sizeof id.id);
	if (r.bad || !*name || !id.len)
		return as_fail(err, AS_E_FORMAT, 0,
			       "'%s' names its common debug file in a damaged way",
			       as_elf_name(dbg));
	memcpy(id.id, r.p, id.len);
	e = try_joined(&q, name[0] == '/' ? "" : dir, name, "");
	if (!e)
		e = by_build_id(&q, &id);
	base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	for (const char *const *d = dirs_of(s); *d && !e; d++)
		e = try_joined(&q, *d, "/.dwz/", base);
	*ret = e;
	return AS_OK;
}

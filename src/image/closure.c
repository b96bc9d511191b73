/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which files a program will map: itself, its interpreter and the closure of DT_NEEDED, found
 * as ld.so(8) would (RPATH/RUNPATH with $ORIGIN, LD_LIBRARY_PATH, ld.so.cache, default
 * folders). Used to compile tables before the program runs; what is missed here is found when
 * it is mapped.
 */
#include "image/image_priv.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/sys.h"

#define MAX_MODULES 512
#define CACHE_MAX   (16u << 20)

struct closure {
	struct as_image *im;
	uint32_t *ids;
	size_t max, *n;
	struct as_buf ldcache;
	bool ldcache_tried;
	enum as_arch arch;
};

static bool take(struct closure *c, const struct as_module *m)
{
	for (size_t i = 0; i < *c->n; i++)
		if (c->ids[i] == m->id)
			return false;
	if (*c->n >= c->max)
		return false;
	c->ids[(*c->n)++] = m->id;
	return true;
}

/* Looks a soname up in /etc/ld.so.cache (glibc's new format). NULL when not there. */
static const char *from_ld_cache(struct closure *c, const char *soname)
{
	static const char magic[] = "glibc-ld.so.cache1.1";
	enum {
		HEAD = 48,
		ENTRY = 24,
		ELF_FLAG_MASK = 0xff00,
		X86_64 = 0x0300,
		AARCH64 = 0x0a00
	};
	if (!c->ldcache_tried) {
		c->ldcache_tried = true;
		(void)as_read_file("/etc/ld.so.cache", CACHE_MAX, &c->ldcache, NULL);
	}
	const char *base = c->ldcache.p;
	size_t n = c->ldcache.len;
	if (!base || n < HEAD || memcmp(base, magic, sizeof magic - 1))
		return NULL;
	uint32_t count = as_get_le32(base + 20);
	uint32_t want = c->arch == AS_ARCH_AARCH64 ? AARCH64 : X86_64;
	for (uint32_t i = 0; i < count && HEAD + (size_t)(i + 1) * ENTRY <= n; i++) {
		const char *e = base + HEAD + (size_t)i * ENTRY;
		uint32_t key = as_get_le32(e + 4), val = as_get_le32(e + 8);
		if ((as_get_le32(e) & ELF_FLAG_MASK) != want || key >= n || val >= n)
			continue;
		if (!strcmp(base + key, soname)) /* the buffer ends in a NUL */
			return base + val;
	}
	return NULL;
}

static bool exists_in(const char *folder, size_t len, const char *soname, char **ret)
{
	char *path = as_xasprintf("%.*s/%s", (int)len, folder, soname);
	if (access(path, R_OK) == 0) {
		*ret = path;
		return true;
	}
	free(path);
	return false;
}

/* One element of a search list, with $ORIGIN replaced. */
static bool try_element(const char *el, size_t len, const char *origin, const char *soname,
			char **ret)
{
	static const char *const forms[] = {"$ORIGIN", "${ORIGIN}"};
	for (size_t i = 0; i < AS_ARRAY_LEN(forms); i++) {
		size_t f = strlen(forms[i]);
		if (len >= f && !strncmp(el, forms[i], f)) {
			AS_CLEANUP(as_free_autop)
			char *dir = as_xasprintf("%s%.*s", origin, (int)(len - f), el + f);
			return exists_in(dir, strlen(dir), soname, ret);
		}
	}
	return len && exists_in(el, len, soname, ret);
}

static bool try_list(const char *list, const char *origin, const char *soname, char **ret)
{
	while (list && *list) {
		size_t len = strcspn(list, ":;");
		if (try_element(list, len, origin, soname, ret))
			return true;
		list += len + (list[len] != '\0');
	}
	return false;
}

static char *find_library(struct closure *c, const char *soname, const char *rpath,
			  const char *origin)
{
	static const char *const defaults[] = {"/lib64", "/usr/lib64", "/lib", "/usr/lib"};
	char *path = NULL;
	if (strchr(soname, '/'))
		return as_xstrdup(soname);
	if (try_list(rpath, origin, soname, &path) ||
	    try_list(getenv("LD_LIBRARY_PATH"), origin, soname, &path))
		return path;
	const char *cached = from_ld_cache(c, soname);
	if (cached)
		return as_xstrdup(cached);
	for (size_t i = 0; i < AS_ARRAY_LEN(defaults); i++)
		if (exists_in(defaults[i], strlen(defaults[i]), soname, &path))
			return path;
	return NULL;
}

static const char *dynstr(const uint8_t *str, size_t n, uint64_t off)
{
	if (off >= n || !memchr(str + off, 0, n - off))
		return NULL;
	return (const char *)str + off;
}

/* Appends what m needs to the closure; the caller walks ids, so nothing here recurses. */
static void add_needed(struct closure *c, struct as_module *m)
{
	const uint8_t *dyn, *str;
	size_t ndyn, nstr;
	struct as_elf *elf = NULL;
	int fd = m->fd >= 0 ? fcntl(m->fd, F_DUPFD_CLOEXEC, 3) : -1;
	if (fd < 0 || as_elf_open_fd(fd, m->path, &elf, NULL) < 0)
		return;
	c->arch = as_elf_arch(elf);
	const uint8_t *interp;
	size_t ninterp;
	if (as_elf_section_data(elf, ".interp", &interp, &ninterp, NULL) == AS_OK && ninterp &&
	    interp[ninterp - 1] == '\0') {
		struct as_module *i = as_image_add_file(c->im, (const char *)interp, NULL);
		if (i)
			take(c, i);
	}
	if (as_elf_section_data(elf, ".dynamic", &dyn, &ndyn, NULL) < 0 ||
	    as_elf_section_data(elf, ".dynstr", &str, &nstr, NULL) < 0) {
		as_elf_close(elf);
		return;
	}
	const char *rpath = NULL;
	for (size_t i = 0; i + 16 <= ndyn; i += 16) {
		uint64_t tag = as_get_le64(dyn + i);
		if (tag == DT_RUNPATH || (tag == DT_RPATH && !rpath))
			rpath = dynstr(str, nstr, as_get_le64(dyn + i + 8));
	}
	AS_CLEANUP(as_free_autop) char *origin = as_xstrdup(m->path);
	char *slash = strrchr(origin, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i + 16 <= ndyn && *c->n < c->max; i += 16) {
		if (as_get_le64(dyn + i) != DT_NEEDED)
			continue;
		const char *so = dynstr(str, nstr, as_get_le64(dyn + i + 8));
		AS_CLEANUP(as_free_autop)
		char *path = so ? find_library(c, so, rpath, origin) : NULL;
		struct as_module *lib = path ? as_image_add_file(c->im, path, NULL) : NULL;
		if (lib)
			take(c, lib);
	}
	as_elf_close(elf);
}

/* "#!interpreter": the file that will really be executed; at most four hops as in the kernel. */
static char *real_program(const char *path)
{
	char *cur = as_xstrdup(path);
	for (int hop = 0; hop < 4; hop++) {
		char head[256];
		AS_CLEANUP(as_close_autop)
		int fd = open(cur, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof head - 1, 0);
		if (n < 3 || head[0] != '#' || head[1] != '!')
			break;
		head[n] = '\0';
		char *p = head + 2 + strspn(head + 2, " \t");
		p[strcspn(p, " \t\n")] = '\0';
		free(cur);
		cur = as_xstrdup(p);
	}
	return cur;
}

void as_image_add_closure(struct as_image *im, const char *program_path, uint32_t *ids,
			  size_t max, size_t *n)
{
	struct closure c = {
		.im = im, .ids = ids, .max = AS_MIN(max, (size_t)MAX_MODULES), .n = n};
	AS_CLEANUP(as_free_autop) char *program = real_program(program_path);
	struct as_module *m = as_image_add_file(im, program, NULL);
	if (!m)
		return;
	size_t i = *n;
	take(&c, m);
	for (; i < *n; i++)
		add_needed(&c, as_image_module(im, ids[i]));
	as_buf_clear(&c.ldcache);
}

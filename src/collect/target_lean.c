/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A child that is small before its exec: see target_priv.h. */
#include "collect/target_priv.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"

#define MAPS_MAX (4u << 20)

/* Sanitizers, and what is preloaded, run in the midst of our calls and need all of their memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

/* One line of /proc/self/maps that is of a file. */
struct line {
	uintptr_t start, end;
	bool executable;
	const char *path; /* up to the end of the line */
	size_t path_len;
};

static const char *hex(const char *p, uintptr_t *ret)
{
	for (*ret = 0;; p++) {
		int digit = *p >= '0' && *p <= '9'   ? *p - '0'
			    : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10
						     : -1;

		if (digit < 0)
			return p;
		*ret = *ret << 4 | (uintptr_t)digit;
	}
}

/* Moves *text to the next line that is of a file; false at the end. No sscanf: it looks for the end of
 * the whole text each time. */
static bool next_line(const char **text, struct line *ret)
{
	while (**text) {
		const char *p = *text, *end = strchr(p, '\n'), *path, *perms;

		*text = end ? end + 1 : p + strlen(p);
		path = memchr(p, '/', (size_t)(*text - p));
		p = hex(p, &ret->start);
		if (!path || !end || *p != '-')
			continue;
		perms = hex(p + 1, &ret->end);
		if (end - perms < 5 || perms[4] != 'p') /* shared memory is for talking to us */
			continue;
		ret->executable = perms[3] == 'x';
		ret->path = path;
		ret->path_len = (size_t)(end - path);
		return true;
	}
	return false;
}

/* Files that the child needs: ours, the C library's, the loader's. */
static bool is_needed(const struct line *l)
{
	const uintptr_t used[] = {(uintptr_t)&as_lean_become, (uintptr_t)&execve,
				  (uintptr_t)getauxval(AT_BASE)};

	for (size_t i = 0; i < AS_ARRAY_LEN(used); i++) {
		if (used[i] >= l->start && used[i] < l->end)
			return true;
	}
	return false;
}

/*
 * With lazy binding the first call of a function searches all libraries, also those whose data the
 * child has given back: so each is called here once, with arguments that do nothing.
 */
static void bind_calls(void)
{
	struct rusage u;
	char none[1] = "", *words[1] = {NULL};
	ssize_t n = read(-1, none, 0);

	n += write(-1, none, 0);
	n += open(none, O_RDONLY | O_CLOEXEC); /* no file has an empty name */
	n += close(-1);
	n += chdir(none);
	n += getrusage(RUSAGE_SELF, &u);
	n += madvise(NULL, 0, MADV_DONTNEED);
	n += munmap(NULL, 0);
	n += execve(none, words, words);
	(void)n; /* nothing comes of any */
}

void as_lean_plan(struct as_lean *ret)
{
	AS_CLEANUP(as_buf_clear) struct as_buf maps = {0};
	struct line lines[AS_LEAN_MAX];
	const char *text;
	size_t n = 0;

	ret->n = 0;
	if (SANITIZED || getenv("LD_PRELOAD"))
		return;
	if (as_read_file("/proc/self/maps", MAPS_MAX, &maps, NULL) < 0)
		return;
	bind_calls();
	for (text = as_buf_str(&maps); n < AS_LEAN_MAX && next_line(&text, &lines[n]);)
		n++;
	for (size_t i = 0; i < n; i++) {
		bool needed = false;

		for (size_t k = 0; !needed && k < n; k++)
			needed = is_needed(&lines[k]) &&
				 lines[k].path_len == lines[i].path_len &&
				 memcmp(lines[k].path, lines[i].path, lines[i].path_len) == 0;
		if (!needed || lines[i].executable)
			ret->v[ret->n++] = (struct as_lean_range){
				(void *)lines[i].start, lines[i].end - lines[i].start, needed};
	}
}

/* Of our heap, what nothing is in: it is a copy, ours keeps its pages. */
static void give_free_memory_back(void)
{
#ifdef __GLIBC__
	if (!SANITIZED)
		(void)malloc_trim(0);
#endif
}

void as_lean_become(const struct as_lean *l)
{
	int fd;

	give_free_memory_back();
	for (size_t i = 0; i < l->n; i++) {
		/* A larger child is no fault. Code comes back from its file when it is run. */
		if (l->v[i].is_code)
			(void)madvise(l->v[i].at, l->v[i].bytes, MADV_DONTNEED);
		else
			(void)munmap(l->v[i].at, l->v[i].bytes);
	}
	fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t n = write(fd, "5", 1); /* proc(5): resets the peak resident set size */

	(void)n; /* as above */
	(void)close(fd);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cache folder: see cache.h. Use is recorded as the file's modification time, because access
 * times are often off. */
#include "base/cache.h"
#include "base/mem.h"
#include "base/sys.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PRUNE_EVERY 64 /* puts, on average; the budget may be passed by as many small files */

struct entry {
	char *path;
	uint64_t mtime_s, bytes;
};

static int by_age(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	return x->mtime_s < y->mtime_s ? -1 : x->mtime_s > y->mtime_s;
}

static void prune(const char *folder, uint64_t max_bytes)
{
	AS_VEC(struct entry) list = {0};
	uint64_t sum = 0;
	DIR *d = opendir(folder);
	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));) {
		struct stat st;
		char *path = as_xasprintf("%s/%s", folder, e->d_name);
		if (e->d_name[0] == '.' || stat(path, &st) < 0 || !S_ISREG(st.st_mode)) {
			free(path);
			continue;
		}
		as_vec_push(&list,
			    (struct entry){path, (uint64_t)st.st_mtime, (uint64_t)st.st_size});
		sum += (uint64_t)st.st_size;
	}
	closedir(d);
	if (list.n)
		qsort(list.v, list.n, sizeof *list.v, by_age);
	for (size_t i = 0; i < list.n; i++) {
		if (sum > max_bytes && unlink(list.v[i].path) == 0)
			sum -= list.v[i].bytes;
		free(list.v[i].path);
	}
	as_vec_clear(&list);
}

/* By temporary name and rename. Not fsynced: what a power cut tears is found by its reader's CRC. */
static bool write_renamed(const char *path, const void *p, size_t n)
{
	AS_CLEANUP(as_free_autop) char *tmp = as_xasprintf("%s.tmp.%d", path, (int)getpid());
	AS_CLEANUP(as_close_autop)
	int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	if (as_write_all(fd, p, n, NULL) == AS_OK && rename(tmp, path) == 0)
		return true;
	(void)unlink(tmp); /* half a file is of no use */
	return false;
}

bool as_cache_put(const char *dir, const char *kind, const char *name, const void *p, size_t n,
		  uint64_t max_bytes)
{
	if (!dir || n > max_bytes)
		return false;
	AS_CLEANUP(as_free_autop) char *folder = as_xasprintf("%s/%s", dir, kind);
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s", folder, name);
	if (as_mkdir_parents(folder, NULL) < 0)
		return false;
	/* Reading the folder costs by its files: now and then, or when much is added. */
	if (n > max_bytes / PRUNE_EVERY || as_hash64(name, strlen(name)) % PRUNE_EVERY == 0)
		prune(folder, max_bytes - n);
	return write_renamed(path, p, n);
}

void *as_cache_map(const char *dir, const char *kind, const char *name, size_t *ret_n)
{
	if (!dir)
		return NULL;
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s/%s", dir, kind, name);
	AS_CLEANUP(as_close_autop) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return NULL;
	/* Only files of our own: another user's could change under the mapping. */
	if (st.st_uid != geteuid())
		return NULL;
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return NULL;
	(void)futimens(fd, NULL); /* only the order of eviction depends on it */
	*ret_n = (size_t)st.st_size;
	return p;
}

void as_cache_unmap(void *p, size_t n)
{
	if (p)
		munmap(p, n);
}

void as_cache_remove(const char *dir, const char *kind, const char *name)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s/%s", dir, kind, name);
	(void)unlink(path); /* gone is what we want */
}

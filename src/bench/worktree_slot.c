/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Folders of the cache that one run at a time holds: see worktree.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/mem.h"
#include "base/sys.h"
#include "bench/worktree_priv.h"

#define SLOTS_PER_REPOSITORY 8
#define FULL_BYTES           (16u << 20)

void as_worktree_say_full(const char *folder, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *cache = folder ? NULL : as_cache_dir();
	const char *at = folder ? folder : cache;
	struct statvfs fs;
	size_t n = strlen(err->msg);

	if (!at || statvfs(at, &fs) < 0 || (uint64_t)fs.f_bavail * fs.f_frsize >= FULL_BYTES)
		return;
	(void)snprintf(err->msg + n, sizeof err->msg - n,
		       "\n  the disk is full: %" PRIu64 " MiB left where '%s' is",
		       (uint64_t)fs.f_bavail * fs.f_frsize >> 20, at);
}

/* -1: somebody else holds it, or it cannot be made. */
static int lock_slot(const char *slot)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/lock", slot);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	as_close_autop(&fd);
	return -1;
}

struct slot {
	char *path;
	time_t used;
};

static int by_use(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->used < y->used ? 1 : x->used > y->used ? -1 : 0;
}

/* The oldest beyond AS_WORKTREES_KEPT and those unused for AS_WORKTREES_DAYS. */
static void let_go(const char *folder, const char *mine)
{
	AS_VEC(struct slot) all = {0};
	DIR *d = opendir(folder);

	for (struct dirent *e; d && (e = readdir(d));) {
		AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s", folder, e->d_name);
		AS_CLEANUP(as_free_autop) char *lock = as_xasprintf("%s/lock", path);
		struct stat st;

		if (e->d_name[0] != '.' && stat(lock, &st) == 0 && strcmp(path, mine) != 0)
			as_vec_push(&all, (struct slot){AS_STEAL(path), st.st_mtime});
	}
	if (d)
		closedir(d);
	if (all.n)
		qsort(all.v, all.n, sizeof *all.v, by_use);
	for (size_t i = 0; i < all.n; i++) {
		bool old = time(NULL) - all.v[i].used > AS_WORKTREES_DAYS * 86400;
		int fd = i + 1 >= AS_WORKTREES_KEPT || old ? lock_slot(all.v[i].path) : -1;

		if (fd >= 0)
			as_folder_remove(all.v[i].path);
		as_close_autop(&fd);
		free(all.v[i].path);
	}
	as_vec_clear(&all);
}

static int take(struct as_worktrees *w, const char *folder, struct as_error *err)
{
	uint64_t key = as_hash64(w->top, strlen(w->top));
	int r = AS_OK;

	for (int n = 0; n < SLOTS_PER_REPOSITORY && w->lock < 0; n++) {
		free(w->slot);
		w->slot = as_xasprintf("%s/%016" PRIx64 "-%d", folder, key, n);
		r = as_mkdir_parents(w->slot, err);
		if (r < 0)
			return r;
		w->lock = lock_slot(w->slot);
	}
	if (w->lock < 0)
		return as_fail(
			err, AS_E_LIMIT, 0,
			"%d runs of --against hold the folders of this repository already, or "
			"'%s' cannot be written to",
			SLOTS_PER_REPOSITORY, folder);
	(void)futimens(w->lock, NULL); /* used now; else it may go a little early */
	return AS_OK;
}

int as_worktree_slot(struct as_worktrees *w, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *cache = as_cache_dir();
	AS_CLEANUP(as_free_autop) char *folder = NULL, *about = NULL;
	int r;

	if (!cache)
		return as_fail(
			err, AS_E_ACCESS, 0,
			"there is no cache folder to build in: set XDG_CACHE_HOME to one");
	folder = as_xasprintf("%s/bench", cache);
	r = take(w, folder, err);
	if (r < 0)
		return r;
	about = as_xasprintf("%s/repository", w->slot);
	w->tmp = as_xasprintf("%s/tmp", w->slot);
	as_folder_remove(w->tmp);
	r = as_mkdir_parents(w->tmp, err);
	if (r == AS_OK)
		r = as_write_file_atomic(about, w->top, strlen(w->top), err);
	let_go(folder, w->slot);
	return r;
}

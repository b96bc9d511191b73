/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The programs that baselines were measured with. A later run measures itself in pairs with the old
 * program, which is the only comparison that a machine's moods do not decide; so it must be kept.
 *
 * home/.assay/programs/SIZE-HASH, one file for each content, by rename: two runs that keep the same
 * program at once both leave it whole.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "harness/criterion/criterion_priv.h"

#define STORE          ".assay/programs"
#define PROGRAMS_MAX   128 /* of all bench targets of a workspace */
#define STORE_BYTES    (2ull << 30)
#define NAME_BYTES_MAX 64

struct kept {
	char *path;
	uint64_t bytes;
	struct timespec used;
};

/* "SIZE-HASH" of a file; NULL with errno. */
static char *content_name(int fd)
{
	struct stat st;
	void *map;

	if (fstat(fd, &st) < 0)
		return NULL;
	if (st.st_size <= 0 || (uint64_t)st.st_size > STORE_BYTES) {
		errno = EFBIG;
		return NULL;
	}
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return NULL;

	char *name = as_xasprintf("%llx-%016llx", (unsigned long long)st.st_size,
				  (unsigned long long)as_hash64(map, (size_t)st.st_size));

	(void)munmap(map, (size_t)st.st_size); /* cannot fail for a mapping of ours */
	return name;
}

static int copy_bytes(int from, int to)
{
	char room[65536];
	ssize_t n;

	while ((n = read(from, room, sizeof room)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || as_write_all(to, room, (size_t)n, NULL) < 0)
			return -1;
	}
	return 0;
}

static int copy_to(int from, const char *path, struct as_error *err)
{
	AS_CLEANUP(as_free_autop)
	char *temporary = as_xasprintf("%s.%d.tmp", path, (int)getpid());
	int to = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	if (to < 0)
		return as_fail(err, AS_E_IO, errno, "cannot write '%s': %s", temporary,
			       strerror(errno));
	if (lseek(from, 0, SEEK_SET) < 0 || copy_bytes(from, to) < 0 || close(to) < 0 ||
	    rename(temporary, path) < 0) {
		int e = errno;

		(void)unlink(temporary); /* what is left of it helps nobody */
		return as_fail(err, AS_E_IO, e, "cannot copy the program to '%s': %s", path,
			       strerror(e));
	}
	return AS_OK;
}

static int by_use(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? 1 : -1;
	return (x->used.tv_nsec < y->used.tv_nsec) - (x->used.tv_nsec > y->used.tv_nsec);
}

/* The most recently used stay, within the bounds. `own` is not asked. */
static void make_room(const char *store, const char *own)
{
	AS_VEC(struct kept) all = {0};
	DIR *d = opendir(store);
	uint64_t bytes = 0;
	size_t files = 0;

	for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
		struct kept k = {.path = as_xasprintf("%s/%s", store, e->d_name)};
		struct stat st;

		if (e->d_name[0] == '.' || stat(k.path, &st) < 0) {
			free(k.path);
			continue;
		}
		k.bytes = (uint64_t)st.st_size;
		k.used = st.st_mtim;
		if (strcmp(e->d_name, own) == 0)
			k.used.tv_sec += 1 << 20; /* before all others */
		as_vec_push(&all, k);
	}
	if (d)
		(void)closedir(d); /* only read */
	if (all.n)
		qsort(all.v, all.n, sizeof *all.v, by_use);
	as_vec_foreach (k, &all) {
		bytes += k->bytes;
		if (files++ && (files > PROGRAMS_MAX || bytes > STORE_BYTES)) {
			(void)unlink(k->path); /* another run may have done it */
			bytes -= k->bytes;
		}
		free(k->path);
	}
	as_vec_clear(&all);
}

char *as_criterion_keep(const char *home, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *store = as_xasprintf("%s/" STORE, home);
	AS_CLEANUP(as_close_autop) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	AS_CLEANUP(as_free_autop) char *name = fd < 0 ? NULL : content_name(fd);
	AS_CLEANUP(as_free_autop) char *path = NULL;

	if (!name) {
		(void)as_fail(err, AS_E_IO, errno, "cannot read the program: %s",
			      strerror(errno));
		return NULL;
	}
	path = as_xasprintf("%s/%s", store, name);
	if (as_criterion_make_folders(store, err) < 0)
		return NULL;
	/* Touched when it is there: this run uses it. */
	if (utimensat(AT_FDCWD, path, NULL, 0) < 0 && copy_to(fd, path, err) < 0)
		return NULL;
	make_room(store, name);
	return AS_STEAL(name);
}

char *as_criterion_kept(const char *home, const char *name)
{
	size_t n = strspn(name, "0123456789abcdef-");

	if (n == 0 || n > NAME_BYTES_MAX || name[n])
		return NULL; /* a file told it: it may be anything */

	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/" STORE "/%s", home, name);
	AS_CLEANUP(as_close_autop) int fd = open(path, O_RDONLY | O_CLOEXEC);
	AS_CLEANUP(as_free_autop) char *content = fd < 0 ? NULL : content_name(fd);

	if (!content || strcmp(content, name) != 0)
		return NULL;
	(void)utimensat(AT_FDCWD, path, NULL,
			0); /* a store that cannot be written still serves */
	return AS_STEAL(path);
}

char *as_criterion_machine(void)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	const char *model = NULL;
	size_t n = 0;

	if (as_read_file("/proc/cpuinfo", 16u << 20, &text, NULL) == AS_OK) {
		const char *line = strstr(as_buf_str(&text), "model name");

		if (!line)
			line = strstr(as_buf_str(&text), "CPU part");
		model = line ? strchr(line, ':') : NULL;
	}
	if (model) {
		model += strspn(model, ": \t");
		n = strcspn(model, "\n");
	}
	return as_xasprintf("%.*s, %ld CPUs", (int)n, model ? model : "",
			    sysconf(_SC_NPROCESSORS_CONF));
}

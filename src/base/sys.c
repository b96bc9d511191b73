/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Files, directories and clocks: see sys.h. */
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts = {0};

	(void)clock_gettime(id, &ts); /* cannot fail for the clocks used here */
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t as_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t as_realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

uint64_t as_self_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t as_self_rss_bytes(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) ? 0 : (uint64_t)usage.ru_maxrss * 1024;
}

int as_write_all(int fd, const void *p, size_t n, struct as_error *err)
{
	const char *at = p;

	while (n) {
		ssize_t w = write(fd, at, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0) {
			int e = w < 0 ? errno : ENOSPC;

			return as_fail(err, AS_E_IO, e, "cannot write: %s", strerror(e));
		}
		at += w;
		n -= (size_t)w;
	}
	return AS_OK;
}

int as_pread_all(int fd, void *p, size_t n, uint64_t off)
{
	char *at = p;

	while (n) {
		ssize_t r = pread(fd, at, n, (off_t)off);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			return -ENODATA;
		at += r;
		n -= (size_t)r;
		off += (uint64_t)r;
	}
	return 0;
}

int as_read_fd(int fd, size_t max, struct as_buf *out, struct as_error *err)
{
	size_t start = out->len;

	for (;;) {
		/* One byte more than allowed tells "too large" from "just fits". */
		size_t have = out->len - start;
		size_t step = AS_MIN(AS_MAX(have, (size_t)16 << 10), (size_t)4 << 20);
		size_t want = max - have < step ? max - have + 1 : step;

		as_buf_reserve(out, want);

		ssize_t r = read(fd, out->p + out->len, want);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0) {
			int e = errno;

			out->p[out->len] = '\0';
			return as_fail(err, AS_E_IO, e, "cannot read: %s", strerror(e));
		}
		out->len += (size_t)r;
		out->p[out->len] = '\0';
		if (r == 0)
			return AS_OK;
		if (out->len - start > max) {
			out->len = start + max;
			out->p[out->len] = '\0';
			return as_fail(err, AS_E_LIMIT, 0, "larger than %zu bytes", max);
		}
	}
}

int as_read_file(const char *path, size_t max, struct as_buf *out, struct as_error *err)
{
	AS_CLEANUP(as_close_autop) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0) {
		int e = errno;
		enum as_status st = e == ENOENT                 ? AS_E_NOTFOUND
				    : e == EACCES || e == EPERM ? AS_E_ACCESS
								: AS_E_IO;

		return as_fail(err, st, e, "cannot open '%s': %s", path, strerror(e));
	}

	struct as_error cause;
	int r = as_read_fd(fd, max, out, &cause);

	if (r < 0)
		return as_fail(err, r, cause.sys_errno, "'%s': %s", path, cause.msg);
	return AS_OK;
}

/* Writes, syncs and closes the temporary file; the caller unlinks it on failure. */
static int write_temp(const char *tmp, const void *p, size_t n, struct as_error *err)
{
	int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);

	if (fd < 0) {
		int e = errno;

		return as_fail(err, e == EACCES || e == EROFS ? AS_E_ACCESS : AS_E_IO, e,
			       "cannot create '%s': %s", tmp, strerror(e));
	}

	int r = as_write_all(fd, p, n, err);

	if (r == AS_OK && fsync(fd) < 0 && errno != EINVAL && errno != ENOTSUP)
		r = as_fail(err, AS_E_IO, errno, "cannot write '%s': %s", tmp, strerror(errno));
	if (close(fd) < 0 && r == AS_OK)
		r = as_fail(err, AS_E_IO, errno, "cannot write '%s': %s", tmp, strerror(errno));
	return r;
}

int as_write_file_atomic(const char *path, const void *p, size_t n, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *tmp = as_xasprintf("%s.tmp.%d", path, (int)getpid());
	int r = write_temp(tmp, p, n, err);

	if (r == AS_OK && rename(tmp, path) < 0)
		r = as_fail(err, AS_E_IO, errno, "cannot rename '%s' to '%s': %s", tmp, path,
			    strerror(errno));
	if (r < 0)
		(void)unlink(tmp); /* may not exist */
	return r;
}

int as_mkdir_parents(const char *path, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *copy = as_xstrdup(path);

	if (!*copy)
		return as_fail(err, AS_E_USAGE, 0, "empty folder name");
	for (char *p = copy + 1;; p++) {
		if (*p && *p != '/')
			continue;

		char saved = *p;

		*p = '\0';
		if (mkdir(copy, 0700) < 0 && errno != EEXIST) {
			/* A read-only parent may answer EROFS or EACCES for a folder that exists. */
			int e = errno;
			struct stat st;

			if (stat(copy, &st) < 0 || !S_ISDIR(st.st_mode))
				return as_fail(err, e == EACCES ? AS_E_ACCESS : AS_E_IO, e,
					       "cannot create folder '%s': %s", copy,
					       strerror(e));
		}
		if (!saved)
			break;
		*p = saved;
	}

	struct stat st;

	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return as_fail(err, AS_E_IO, ENOTDIR, "'%s' is not a folder", path);
	return AS_OK;
}

char *as_cache_dir(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *dir;

	/* The XDG base directory rules: a relative path is to be ignored. */
	if (xdg && xdg[0] == '/')
		dir = as_xasprintf("%s/assay", xdg);
	else if (home && home[0] == '/')
		dir = as_xasprintf("%s/.cache/assay", home);
	else
		return NULL;
	if (as_mkdir_parents(dir, NULL) < 0 || access(dir, W_OK | X_OK) < 0) {
		free(dir);
		return NULL;
	}
	return dir;
}

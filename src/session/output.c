/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The output file: names, locking, writes that survive a full disk and a closed pipe. */
#include "session/output_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/sys.h"

#define OPEN_ATTEMPTS 8

/* ---- writing without signals ---- */

struct quiet {
	sigset_t set, old, pending;
};

static void quiet_begin(struct quiet *q)
{
	sigemptyset(&q->set);
	sigaddset(&q->set, SIGPIPE);
	sigaddset(&q->set, SIGXFSZ);
	sigpending(&q->pending);
	pthread_sigmask(SIG_BLOCK, &q->set, &q->old);
}

/* Takes back the signal a failed write has raised, unless it was pending before. */
static void quiet_end(struct quiet *q, bool failed)
{
	static const int sigs[] = {SIGPIPE, SIGXFSZ};
	const struct timespec zero = {0, 0};
	sigset_t one;

	for (size_t i = 0; failed && i < AS_ARRAY_LEN(sigs); i++) {
		if (sigismember(&q->pending, sigs[i]))
			continue;
		sigemptyset(&one);
		sigaddset(&one, sigs[i]);
		while (sigtimedwait(&one, NULL, &zero) < 0 && errno == EINTR)
			;
	}
	pthread_sigmask(SIG_SETMASK, &q->old, NULL);
}

static int write_fully(int fd, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t k = write(fd, p, n);

		if (k > 0) {
			p += k;
			n -= (size_t)k;
		} else if (k == 0) {
			return ENOSPC;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			struct pollfd pfd = {.fd = fd, .events = POLLOUT};

			(void)poll(&pfd, 1, 1000);
		} else if (errno != EINTR) {
			return errno;
		}
	}
	return 0;
}

static int write_failed(const struct as_output *o, int e, struct as_error *err)
{
	const char *why = strerror(e);

	if (!o->partial)
		return as_fail(err, AS_E_IO, e, "cannot write the session to %s: %s", o->name,
			       why);
	if (e == ENOSPC || e == EDQUOT || e == EFBIG)
		return as_fail(
			err, AS_E_IO, e,
			"cannot write '%s': %s; what was recorded before is kept"
			"\n  see it: assay report %s"
			"\n  %s, or write elsewhere: assay record -o /other/disk/name.assay …",
			o->partial, why, o->partial,
			e == EFBIG ? "raise the limit: ulimit -f unlimited"
				   : "free space there");
	return as_fail(err, AS_E_IO, e,
		       "cannot write '%s': %s; what was recorded before is kept"
		       "\n  see it: assay report %s",
		       o->partial, why, o->partial);
}

int as_output_write(struct as_output *o, const void *p, size_t n, struct as_error *err)
{
	struct quiet q;
	int e;

	quiet_begin(&q);
	e = write_fully(o->fd, p, n);
	quiet_end(&q, e != 0);
	if (e == 0) {
		o->good_bytes += n;
		return AS_OK;
	}
	if (o->partial) {
		/* A reader copes with half a chunk; when cutting fails it stays. */
		if (ftruncate(o->fd, (off_t)o->good_bytes) == 0)
			(void)lseek(o->fd, (off_t)o->good_bytes, SEEK_SET);
	}
	return write_failed(o, e, err);
}

/* ---- opening ---- */

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return as_xstrdup(".");
	return as_xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
}

static int open_failed(const char *path, int e, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *folder = folder_of(path);
	const char *where = strcmp(folder, ".") ? folder : "the current folder";
	struct stat st;

	if (e == ENOENT)
		return as_fail(err, AS_E_IO, e,
			       "cannot create '%s': there is no folder '%s'"
			       "\n  mkdir -p '%s'",
			       path, folder, folder);
	if (e == EROFS)
		return as_fail(err, AS_E_ACCESS, e,
			       "cannot create '%s': %s is on a read-only file system"
			       "\n  name a file elsewhere: -o FILE",
			       path, where);
	if ((e == EACCES || e == EPERM) && lstat(path, &st) == 0)
		return as_fail(err, AS_E_ACCESS, e,
			       "cannot write '%s': it is another user's (%u)"
			       "\n  choose another name: -o FILE"
			       "\n  or remove it:      sudo rm '%s'",
			       path, (unsigned)st.st_uid, path);
	if (e == EACCES || e == EPERM)
		return as_fail(err, AS_E_ACCESS, e,
			       "cannot create '%s': you may not write to %s%s%s"
			       "\n  name a file in a folder of yours: -o FILE",
			       path, where == folder ? "'" : "", where,
			       where == folder ? "'" : "");
	return as_fail(err, AS_E_IO, e, "cannot create '%s': %s", path, strerror(e));
}

/* Of `sudo assay record …` the user who typed it keeps the session. Only a file that nobody else
 * can have put there. */
static void give_to_sudo_user(int fd)
{
	const char *names[] = {"SUDO_UID", "SUDO_GID"};
	uint64_t id[2];
	struct stat st;

	if (geteuid() != 0 || fstat(fd, &st) < 0 || st.st_uid != 0 || st.st_nlink != 1)
		return;
	for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
		const char *text = getenv(names[i]);

		if (!text || !as_parse_u64(text, &id[i]) || id[i] >= UINT32_MAX)
			return;
	}
	if (fchown(fd, (uid_t)id[0], (gid_t)id[1]) < 0)
		return; /* stays root's, who can read it */
}

static int open_stream(struct as_output *o, const char *path, struct as_error *err)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return open_failed(path, errno, err);
	o->fd = fd;
	o->owns_fd = true;
	o->path = as_xstrdup(path);
	o->name = o->path;
	return AS_OK;
}

/* Is what stands at path ours to replace? */
static int check_replaceable(const char *path, struct as_error *err)
{
	char magic[AS_SESSION_MAGIC_LEN];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return errno == ENOENT
			       ? AS_OK
			       : as_fail(err, AS_E_USAGE, errno,
					 "'%s' exists and cannot be read: it is not replaced"
					 "\n  choose another name with -o",
					 path);
	n = read(fd, magic, sizeof magic);
	close(fd);
	if (n == 0 || (n == sizeof magic && memcmp(magic, AS_SESSION_MAGIC, sizeof magic) == 0))
		return AS_OK;
	return as_fail(err, AS_E_USAGE, 0,
		       "'%s' exists and is no assay session: it is not replaced"
		       "\n  choose another name with -o, or remove it first: rm '%s'",
		       path, path);
}

/* One attempt; *ret_fd stays -1 when the name changed under us and it should be tried again. */
static int try_partial(const char *partial, int *ret_fd, struct as_error *err)
{
	struct stat by_fd, by_name;
	AS_CLEANUP(as_close_autop)
	int fd = open(partial, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

	if (fd < 0)
		return open_failed(partial, errno, err);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return as_fail(err, AS_E_USAGE, EWOULDBLOCK,
			       "another recording is being written to '%s'"
			       "\n  choose another name with -o",
			       partial);
	if (fstat(fd, &by_fd) < 0 || stat(partial, &by_name) < 0 ||
	    by_fd.st_ino != by_name.st_ino || by_fd.st_dev != by_name.st_dev)
		return AS_OK;
	if (!S_ISREG(by_fd.st_mode))
		return as_fail(err, AS_E_USAGE, 0, "'%s' is not a regular file", partial);
	if (by_fd.st_size > 0) {
		AS_CLEANUP(as_free_autop) char *old = as_xasprintf("%s.old", partial);

		if (rename(partial, old) < 0)
			return open_failed(partial, errno, err);
		return AS_OK;
	}
	give_to_sudo_user(fd);
	*ret_fd = fd;
	fd = -1; /* given away */
	return AS_OK;
}

static int open_partial(struct as_output *o, const char *path, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *partial = as_xasprintf("%s.partial", path);

	for (int i = 0; i < OPEN_ATTEMPTS; i++) {
		int fd = -1;
		int r = try_partial(partial, &fd, err);

		if (r < 0)
			return r;
		if (fd >= 0) {
			o->fd = fd;
			o->owns_fd = true;
			o->path = as_xstrdup(path);
			o->partial = AS_STEAL(partial);
			o->name = o->partial;
			return AS_OK;
		}
	}
	return as_fail(err, AS_E_USAGE, EBUSY,
		       "'%s' is being replaced by someone else all the time", partial);
}

int as_output_open(const char *path, struct as_output *ret, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *real = NULL;
	struct stat st;
	int r;

	*ret = (struct as_output){.fd = -1};
	if (strcmp(path, "-") == 0) {
		ret->fd = STDOUT_FILENO;
		ret->name = "standard output";
		return AS_OK;
	}
	if (path[0] == 0)
		return as_fail(err, AS_E_USAGE, 0, "the output file has no name");
	if (stat(path, &st) < 0)
		return open_partial(ret, path, err);
	if (S_ISDIR(st.st_mode))
		return as_fail(err, AS_E_USAGE, EISDIR,
			       "'%s' is a folder: name a file in it"
			       "\n  assay record -o '%s%sNAME.assay' …",
			       path, path, path[strlen(path) - 1] == '/' ? "" : "/");
	if (!S_ISREG(st.st_mode))
		return open_stream(ret, path, err);
	r = check_replaceable(path, err);
	if (r < 0)
		return r;
	real = realpath(path, NULL); /* the rename replaces the file, not a link to it */
	return open_partial(ret, real ? real : path, err);
}

/* ---- the end ---- */

static int sync_folder(const char *path)
{
	AS_CLEANUP(as_free_autop) char *dir = folder_of(path);
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0)
		return 0; /* a folder one may write but not read: nothing more can be done */
	r = fsync(fd) < 0 && errno != EINVAL ? errno : 0;
	close(fd);
	return r;
}

int as_output_commit(struct as_output *o, struct as_error *err)
{
	int e;

	if (!o->partial)
		return AS_OK;
	if (fsync(o->fd) < 0 && errno != EINVAL && errno != EROFS)
		return write_failed(o, errno, err);
	if (rename(o->partial, o->path) < 0)
		return as_fail(err, AS_E_IO, errno,
			       "cannot rename '%s' to '%s': %s"
			       "\n  it is complete as it is: assay report '%s'",
			       o->partial, o->path, strerror(errno), o->partial);
	free(o->partial);
	o->partial = NULL;
	o->name = o->path;
	e = sync_folder(o->path);
	if (e)
		return as_fail(err, AS_E_IO, e, "cannot sync the folder of '%s': %s", o->path,
			       strerror(e));
	return AS_OK;
}

int as_output_divert(struct as_output *o, struct as_error *err)
{
	uint8_t chunk[65536];
	off_t at = 0;
	ssize_t n;
	int fd;

	if (!o->partial)
		return as_fail(err, AS_E_UNSUPPORTED, 0,
			       "a stream cannot be read while it is written");
	fd = memfd_create("assay", MFD_CLOEXEC);
	if (fd < 0)
		return as_fail(err, AS_E_IO, errno, "cannot copy '%s': %s", o->partial,
			       strerror(errno));
	while ((n = pread(o->fd, chunk, sizeof chunk, at)) > 0) {
		if (write_fully(fd, chunk, (size_t)n))
			break;
		at += n;
	}
	if (n) {
		close(fd);
		return as_fail(err, AS_E_IO, errno, "cannot copy '%s'", o->partial);
	}
	o->fd = fd; /* the other one, and the names, go with the process */
	o->path = o->partial = NULL;
	return AS_OK;
}

void as_output_close(struct as_output *o)
{
	if (o->owns_fd && o->fd >= 0)
		close(o->fd);
	free(o->path);
	free(o->partial);
	*o = (struct as_output){.fd = -1};
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Programs that lose something when they are traced. The kernel gives a program that is setuid, setgid or
 * has capabilities in its file none of them when its tracer lacks CAP_SYS_PTRACE (execve(2)): it would
 * run, and not do what it is there for.
 */
#include "hook/hooked_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/sys.h"

#define CAP_SYS_PTRACE_BIT 19

static bool may_trace_all(void)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	unsigned long caps;
	const char *line;

	if (as_read_file("/proc/self/status", 1 << 16, &b, NULL) < 0 || !b.p)
		return false;
	line = strstr(b.p, "CapEff:");
	return line && sscanf(line, "CapEff: %lx", &caps) == 1 &&
	       caps >> CAP_SYS_PTRACE_BIT & 1;
}

/* How the file gets more than who starts it has; NULL: it does not. */
static const char *gains(const char *path)
{
	struct statvfs fs;
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (statvfs(path, &fs) == 0 && fs.f_flag & ST_NOSUID))
		return NULL;
	if (st.st_mode & S_ISUID && st.st_uid != geteuid())
		return "is setuid";
	if (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != getegid())
		return "is setgid";
	if (getxattr(path, "security.capability", NULL, 0) > 0)
		return "has capabilities";
	return NULL;
}

static int check(const char *path, const char *shown, struct as_error *err)
{
	const char *how = gains(path);

	if (!how || may_trace_all())
		return 0;
	return as_fail(err, AS_E_ACCESS, 0,
		       "'%s' %s: traced by you it would run without these rights\n"
		       "  record it as root: sudo assay heap -- ...",
		       shown, how);
}

/* As execvp looks for it. */
static bool find_in_path(const char *name, char *ret, size_t n)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		int len = (int)strcspn(path, ":");

		snprintf(ret, n, "%.*s/%s", len ? len : 1, len ? path : ".", name);
		if (access(ret, X_OK) == 0)
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

int as_hook_check_program(const char *path, struct as_error *err)
{
	char found[PATH_MAX];

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return 0;
	if (!strchr(path, '/')) {
		if (!find_in_path(path, found, sizeof found))
			return 0;
		return check(found, path, err);
	}
	return check(path, path, err);
}

/* ---- a thread that is about to exec ---- */

/* A string of its memory; false: it is not there, and its exec will fail. */
static bool read_string(pid_t tid, uint64_t at, char *ret, size_t n)
{
	size_t have = 0;

	while (have < n) {
		uint64_t from = at + have;
		size_t k = AS_MIN(n - have, 4096 - from % 4096);
		struct iovec here = {ret + have, k}, there = {(void *)(uintptr_t)from, k};

		if (process_vm_readv(tid, &here, 1, &there, 1, 0) != (ssize_t)k)
			return false;
		if (memchr(ret + have, 0, k))
			return true;
		have += k;
	}
	return false;
}

static const char *name_of(const struct as_hooked *h, uint16_t id)
{
	as_vec_foreach (f, &h->fn) {
		if (f->id == id)
			return f->what.name;
	}
	return "";
}

/* The file that the notice's function was asked to run, as we can open it. */
static bool program_of(const struct as_hooked *h, const struct as_rt_rec_sync *n, char *ret,
		       size_t room)
{
	const char *function = name_of(h, n->head.hook);
	char name[PATH_MAX];
	pid_t tid = (pid_t)n->tid;
	int dir = AT_FDCWD;

	if (!strcmp(function, "fexecve")) {
		snprintf(ret, room, "/proc/%d/fd/%d", (int)tid, (int)n->arg[0]);
		return true;
	}
	if (!strcmp(function, "execveat"))
		dir = (int)n->arg[0];
	if (!read_string(tid, n->arg[dir == AT_FDCWD ? 0 : 1], name, sizeof name))
		return false;
	if (name[0] == '/')
		snprintf(ret, room, "/proc/%d/root%s", (int)tid, name);
	else if (dir == AT_FDCWD)
		snprintf(ret, room, "/proc/%d/cwd/%s", (int)tid, name);
	else
		snprintf(ret, room, "/proc/%d/fd/%d/%s", (int)tid, dir, name);
	return true;
}

static bool has_no_new_privs(pid_t tid)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/status", (int)tid);
	return as_read_file(path, 1 << 16, &b, NULL) == 0 && b.p &&
	       strstr(b.p, "NoNewPrivs:\t1");
}

int as_hook_check_notice(const struct as_hooked *h, const struct as_rt_rec_sync *notice,
			 struct as_error *err)
{
	char path[PATH_MAX + 64];

	if (has_no_new_privs((pid_t)notice->tid) || !program_of(h, notice, path, sizeof path))
		return 0;
	/* as the program calls it: behind /proc/N/root */
	return check(path, path + strcspn(path + strlen("/proc/"), "/") + strlen("/proc/"),
		     err);
}

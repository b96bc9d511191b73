/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Both programs copied the same way: see driver.h. The linker writes a file differently from cp, and the
 * pages of the two are not found in memory alike: 2 of 28 minor faults and 1 % of a short run.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/sys.h"
#include "harness/driver.h"

#define PART (1u << 20)

/* Loaded from beside the program: a copy would not find it. Put together here, as every bench program
 * has this very code and would be found to have the word. */
static void make_origin(char origin[8])
{
	static const volatile char dollar = '$';

	origin[0] = dollar;
	memcpy(origin + 1, "ORIGIN", 7);
}

struct copied {
	bool has_origin;
	uint32_t crc;
	uint64_t bytes;
};

static int copy(const char *from, const char *to, struct copied *ret, struct as_error *err)
{
	AS_CLEANUP(as_close_autop) int in = open(from, O_RDONLY | O_CLOEXEC);
	AS_CLEANUP(as_free_autop) char *part = as_xmalloc(PART);
	AS_CLEANUP(as_close_autop) int out = -1;
	char origin[8];
	size_t kept = 0;
	ssize_t n;
	int r;

	make_origin(origin);
	if (in < 0)
		return as_fail(err, AS_E_IO, errno, "cannot open '%s': %s", from,
			       strerror(errno));
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	if (out < 0)
		return as_fail(err, AS_E_IO, errno, "cannot create '%s': %s", to,
			       strerror(errno));
	while ((n = read(in, part + kept, PART - kept)) > 0) {
		size_t have = kept + (size_t)n;

		ret->has_origin |= memmem(part, have, origin, strlen(origin)) != NULL;
		ret->crc = as_crc32c(ret->crc, part + kept, (size_t)n);
		ret->bytes += (size_t)n;
		r = as_write_all(out, part + kept, (size_t)n, err);
		if (r < 0)
			return r;
		kept = AS_MIN(have, strlen(origin) - 1);
		memmove(part, part + have - kept, kept);
	}
	if (n < 0)
		return as_fail(err, AS_E_IO, errno, "cannot read '%s': %s", from,
			       strerror(errno));
	return AS_OK;
}

/* Where programs may be run from; NULL: nowhere known. */
static const char *copies_place(void)
{
	const char *places[] = {getenv("TMPDIR"), "/tmp", "/var/tmp"};
	struct statvfs fs;

	for (size_t i = 0; i < AS_ARRAY_LEN(places); i++) {
		if (places[i] && places[i][0] == '/' && statvfs(places[i], &fs) == 0 &&
		    !(fs.f_flag & ST_NOEXEC) && access(places[i], W_OK) == 0)
			return places[i];
	}
	return NULL;
}

int as_fn_copy(const struct as_fn_side side[2], uint64_t seed, struct as_fn_copies *ret,
	       struct as_error *err)
{
	const char *where = copies_place();
	struct copied file[2] = {{0}, {0}};
	bool needs_place;
	int first = (int)(seed & 1), r = AS_OK;

	*ret = (struct as_fn_copies){0};
	if (!where) {
		(void)snprintf(ret->why, sizeof ret->why,
			       "there is no folder to run copies from (TMPDIR)");
		return AS_OK;
	}
	ret->folder = as_xasprintf("%s/assay-bench-XXXXXX", where);
	if (!mkdtemp(ret->folder)) {
		r = as_fail(err, AS_E_IO, errno, "cannot create '%s': %s", ret->folder,
			    strerror(errno));
		free(ret->folder);
		ret->folder = NULL;
		return r;
	}
	for (int i = 0; i < 2; i++)
		ret->path[i] = as_xasprintf("%s/%c", ret->folder, "ab"[i]);
	for (int i = 0; i < 2 && r == AS_OK; i++)
		r = copy(side[i ^ first].exe, ret->path[i ^ first], &file[i ^ first], err);
	needs_place = file[0].has_origin || file[1].has_origin;
	ret->same = file[0].crc == file[1].crc && file[0].bytes == file[1].bytes;
	ret->copied = r == AS_OK && !needs_place;
	if (needs_place)
		(void)snprintf(ret->why, sizeof ret->why,
			       "they load libraries from their own folder");
	if (r < 0)
		as_fn_copies_clear(ret);
	return r;
}

void as_fn_copies_clear(struct as_fn_copies *c)
{
	for (int i = 0; i < 2; i++) {
		if (c->path[i])
			(void)unlink(c->path[i]); /* may not have come into being */
		free(c->path[i]);
		c->path[i] = NULL;
	}
	if (c->folder)
		(void)rmdir(c->folder); /* nobody else writes there */
	free(c->folder);
	c->folder = NULL;
	c->copied = false;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Copies of programs: see copies.h. */
#include "bench/copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/map.h"
#include "base/sys.h"
#include "history/history.h"

static bool is_installed(const char *path)
{
	static const char *const folders[] = {"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/",
					      "/opt/", "/nix/", "/gnu/",  "/snap/"};

	for (size_t i = 0; i < AS_ARRAY_LEN(folders); i++) {
		if (strncmp(path, folders[i], strlen(folders[i])) == 0)
			return true;
	}
	return strstr(path, "/.cargo/bin/") || strstr(path, "/.rustup/");
}

static bool changes_rights(const char *path)
{
	struct stat st;
	char value[64];

	return stat(path, &st) < 0 || (st.st_mode & (S_ISUID | S_ISGID)) ||
	       getxattr(path, "security.capability", value, sizeof value) > 0;
}

/* NULL: it can be copied. */
static const char *obstacle(const char *path, const struct as_buf *bytes)
{
	if (bytes->len < 4 || memcmp(bytes->p, "\177ELF", 4) != 0)
		return "it is no ELF program";
	if (changes_rights(path))
		return "it changes its rights when it is run";
	if (memmem(bytes->p, bytes->len, "$ORIGIN", 7) ||
	    memmem(bytes->p, bytes->len, "${ORIGIN}", 9))
		return "it finds libraries beside itself ($ORIGIN)";
	return NULL;
}

size_t as_copies_add(struct as_copies *c, const char *name)
{
	AS_CLEANUP(as_buf_clear) struct as_buf bytes = {0};
	struct as_copy copy = {.from = as_history_which(name)};
	const char *why = NULL;

	if (!copy.from)
		why = "it is not there";
	else if (is_installed(copy.from))
		why = "it is installed";
	else if (as_read_file(copy.from, AS_COPY_MAX, &bytes, NULL) < 0)
		why = "it cannot be read, or is too large";
	else
		why = obstacle(copy.from, &bytes);
	copy.why_not = why ? as_xstrdup(why) : NULL;
	if (!why) { /* under the name it was called by: some programs go by it */
		const char *slash = strrchr(name, '/');

		copy.to = as_xstrdup(slash ? slash + 1 : name);
	}
	as_vec_push(c, copy);
	return c->n - 1;
}

bool as_copies_differ(const struct as_copies *c)
{
	for (size_t i = 1; i < c->n; i++) {
		const struct as_copy *a = &c->v[0], *b = &c->v[i];

		if (a->from && b->from && strcmp(a->from, b->from) != 0 && !a->why_not &&
		    !b->why_not)
			return true;
	}
	return false;
}

static int make_folder(struct as_copies *c, struct as_error *err)
{
	const char *tmp = getenv("TMPDIR");
	AS_CLEANUP(as_free_autop)
	char *name = as_xasprintf("%s/assay-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");

	if (c->folder)
		return AS_OK;
	if (!mkdtemp(name))
		return as_fail(err, AS_E_IO, errno, "cannot make a folder in '%s': %s",
			       tmp && *tmp ? tmp : "/tmp", strerror(errno));
	c->folder = AS_STEAL(name);
	return AS_OK;
}

/* The longest name has a folder of the shortest name, so that all paths are equally long. */
static char *place(const struct as_copies *c, size_t i)
{
	size_t longest = 0, own = strlen(c->v[i].to);
	struct as_buf out = {0};

	as_vec_foreach (copy, c) {
		if (!copy->why_not && !strchr(copy->to, '/'))
			longest = AS_MAX(longest, strlen(copy->to));
	}
	longest = AS_MAX(longest, own);
	as_buf_addf(&out, "%s/%04zu", c->folder, i);
	as_buf_fill(&out, '_', longest - own);
	as_buf_addf(&out, "/%s", c->v[i].to);
	return as_buf_detach(&out);
}

static int copy_one(struct as_copies *c, size_t i, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf bytes = {0};
	AS_CLEANUP(as_free_autop) char *path = NULL;
	struct as_copy *copy = &c->v[i];
	char *slash;
	int r;

	if (copy->why_not || strchr(copy->to, '/'))
		return AS_OK; /* no, or it is there */
	path = place(c, i);
	slash = strrchr(path, '/');
	*slash = 0;
	if (mkdir(path, 0700) < 0)
		return as_fail(err, AS_E_IO, errno, "cannot make '%s': %s", path,
			       strerror(errno));
	*slash = '/';
	r = as_read_file(copy->from, AS_COPY_MAX, &bytes, err);
	if (r == AS_OK)
		r = as_write_file_atomic(path, bytes.p, bytes.len, err);
	if (r == AS_OK && chmod(path, 0700) < 0)
		r = as_fail(err, AS_E_IO, errno, "cannot make '%s' executable: %s", path,
			    strerror(errno));
	free(copy->to);
	copy->to = AS_STEAL(path);
	return r;
}

/* Where the folder is mounted so that nothing in it may be run, all run as they are. */
static void check_runnable(struct as_copies *c)
{
	bool none = false;

	as_vec_foreach (copy, c)
		none |= !copy->why_not && strchr(copy->to, '/') && access(copy->to, X_OK) < 0;
	as_vec_foreach (copy, c) {
		if (none && !copy->why_not)
			copy->why_not = as_xstrdup("no program may be run in $TMPDIR");
	}
}

int as_copies_make(struct as_copies *c, size_t i, uint64_t seed, struct as_error *err)
{
	int r = make_folder(c, err);

	if (r == AS_OK && i != SIZE_MAX)
		r = copy_one(c, i, err);
	for (size_t k = 0; k < c->n && r == AS_OK && i == SIZE_MAX; k++) {
		bool back = as_mix64(seed) & 1; /* the one written last lies better or worse */

		r = copy_one(c, back ? c->n - 1 - k : k, err);
	}
	check_runnable(c);
	return r;
}

void as_copies_clear(struct as_copies *c)
{
	as_vec_foreach (copy, c) {
		if (c->folder && copy->to && strchr(copy->to, '/')) {
			(void)unlink(copy->to); /* gone already: fine */
			*strrchr(copy->to, '/') = 0;
			(void)rmdir(copy->to);
		}
		free(copy->from);
		free(copy->to);
		free(copy->why_not);
	}
	if (c->folder)
		(void)rmdir(c->folder); /* not empty: something else was put there */
	free(c->folder);
	as_vec_clear(c);
	*c = (struct as_copies){0};
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Two versions side by side: see worktree.h. The slots they live in: worktree_slot.c. */
#include "bench/worktree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/git.h"
#include "base/nearest.h"
#include "base/sys.h"
#include "bench/worktree_priv.h"

static const char *const side_names[AS_SIDES] = {"base", "head"}; /* equally long */

struct user {
	const struct as_worktrees_request *q;
	struct as_git git;
	struct as_buf objects, index, shallow,
		settings; /* shallow: "" where history is whole */
	struct as_buf commit[AS_SIDES];
};

static void clear_user(struct user *u)
{
	as_buf_clear(&u->objects);
	as_buf_clear(&u->index);
	as_buf_clear(&u->shallow);
	as_buf_clear(&u->settings);
	as_buf_clear(&u->commit[0]);
	as_buf_clear(&u->commit[1]);
}

/* ---- the caller's repository ---- */

static int find_repository(struct user *u, struct as_worktrees *w, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf top = {0}, prefix = {0};
	struct as_error why = {0};
	int r = AS_GIT(&u->git, &top, &why, "rev-parse", "--show-toplevel");

	if (r == AS_E_NOTFOUND || r == AS_E_CANCELLED)
		return as_fail(err, r, 0, "%s", why.msg);
	if (r < 0 && strstr(why.msg, "not a git repository"))
		return as_fail(err, AS_E_NOTFOUND, 0,
			       "--against compares with a git revision, and '%s' is in no git "
			       "repository",
			       u->git.folder);
	if (r < 0)
		return as_fail(err, r, 0, "%s", why.msg);
	r = AS_GIT(&u->git, &prefix, err, "rev-parse", "--show-prefix");
	while (prefix.len && prefix.p[prefix.len - 1] == '/')
		prefix.p[--prefix.len] = 0;
	w->top = as_buf_detach(&top);
	w->prefix = as_buf_detach(&prefix);
	u->git.folder = w->top;
	return r;
}

static int look_at_repository(struct user *u, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf shallow = {0};
	int r = AS_GIT(&u->git, &u->objects, err, "rev-parse", "--path-format=absolute",
		       "--git-path", "objects");

	if (r == AS_OK)
		r = AS_GIT(&u->git, &u->index, err, "rev-parse", "--path-format=absolute",
			   "--git-path", "index");
	if (r == AS_OK)
		r = AS_GIT(&u->git, &shallow, err, "rev-parse", "--path-format=absolute",
			   "--git-path", "shallow");
	if (r == AS_OK && access(as_buf_str(&shallow), R_OK) == 0)
		as_buf_adds(&u->shallow, as_buf_str(&shallow));
	/* What decides how files of the repository become files on disk; none is no error. */
	(void)AS_GIT(&u->git, &u->settings, NULL, "config", "--local", "--get-regexp",
		     "^(core\\.(autocrlf|eol|safecrlf|filemode|symlinks|ignorecase)|filter\\.|"
		     "lfs\\.)");
	return r;
}

static int unknown_revision(struct user *u, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf refs = {0};
	AS_VEC(const char *) names = {0};
	const char *near = NULL;
	char *at;

	(void)AS_GIT(&u->git, &refs, NULL, "for-each-ref", "--format=%(refname:short)",
		     "refs/heads", "refs/tags", "refs/remotes"); /* no refs: no suggestion */
	as_buf_addc(&refs, '\n');
	for (at = refs.p; *at;) {
		size_t n = strcspn(at, "\n");

		at[n] = 0;
		if (n)
			as_vec_push(&names, at);
		at += n + 1;
	}
	near = as_nearest(u->q->rev, names.v, names.n);
	as_vec_clear(&names);
	if (u->shallow.len)
		return as_fail(
			err, AS_E_NOTFOUND, 0,
			"no revision '%s' here: this clone holds only a part of the "
			"history\n  git fetch --depth=1 origin %s && assay bench --against "
			"FETCH_HEAD\n  in a workflow: actions/checkout with fetch-depth: 0",
			u->q->rev, u->q->rev);
	return as_fail(err, AS_E_NOTFOUND, 0, "no revision '%s' in this repository%s%s%s",
		       u->q->rev, near ? "; did you mean '" : "", near ? near : "",
		       near ? "'?" : "");
}

static int find_commits(struct user *u, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *spec = as_xasprintf("%s^{commit}", u->q->rev);
	int r;

	r = AS_GIT(&u->git, &u->commit[0], NULL, "rev-parse", "--verify", "--quiet",
		   "--end-of-options", spec);
	if (r < 0)
		return u->q->interrupted && *u->q->interrupted
			       ? as_fail(err, AS_E_CANCELLED, 0, "interrupted")
			       : unknown_revision(u, err);
	return AS_GIT(&u->git, &u->commit[1], err, "rev-parse", "--verify", "HEAD^{commit}");
}

/* ---- a side ---- */

static int write_text(const char *path, const char *text, struct as_error *err)
{
	return as_write_file_atomic(path, text, strlen(text), err);
}

/* "key value" lines of git config. */
static int copy_settings(const struct user *u, const struct as_git *g, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *text = as_xstrdup(as_buf_str(&u->settings));
	int r = AS_OK;

	for (char *at = text; *at && r == AS_OK;) {
		size_t n = strcspn(at, "\n"), key = strcspn(at, " \n");
		char *next = at + n + (at[n] == '\n');

		at[n] = 0;
		if (at[key] == ' ') {
			at[key] = 0;
			r = AS_GIT(g, NULL, err, "config", at, at + key + 1);
		}
		at = next;
	}
	return r;
}

/* A repository without objects of its own. Idempotent: what a killed run left is made good. */
static int make_repository(struct user *u, const char *folder, const struct as_git *g,
			   struct as_error *err)
{
	AS_CLEANUP(as_free_autop)
	char *alternates = as_xasprintf("%s/.git/objects/info/alternates", folder);
	AS_CLEANUP(as_free_autop) char *text = as_xasprintf("%s\n", as_buf_str(&u->objects));
	AS_CLEANUP(as_free_autop) char *shallow = as_xasprintf("%s/.git/shallow", folder);
	AS_CLEANUP(as_free_autop) char *lock = as_xasprintf("%s/.git/index.lock", folder);
	AS_CLEANUP(as_buf_clear) struct as_buf cut = {0};
	int r = as_mkdir_parents(folder, err);

	if (r == AS_OK)
		r = AS_GIT(g, NULL, err, "init", "--quiet", "--template=", ".");
	if (r == AS_OK) {
		AS_CLEANUP(as_free_autop)
		char *info = as_xasprintf("%s/.git/objects/info", folder);

		r = as_mkdir_parents(info, err);
	}
	if (r == AS_OK)
		r = write_text(alternates, text, err);
	(void)unlink(lock); /* of a run that was killed: the slot is ours alone */
	(void)unlink(shallow);
	if (r == AS_OK && u->shallow.len) {
		r = as_read_file(as_buf_str(&u->shallow), 16 << 20, &cut, err);
		if (r == AS_OK)
			r = write_text(shallow, as_buf_str(&cut), err);
	}
	return r == AS_OK ? copy_settings(u, g, err) : r;
}

/* The caller's files as a tree, in the object folder of our `head`. */
static int record_checkout(struct user *u, const struct as_worktrees *w,
			   struct as_buf *ret_tree, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *index = as_xasprintf("%s/tmp/index", w->slot);
	char *env[] = {
		as_xasprintf("GIT_INDEX_FILE=%s", index),
		as_xasprintf("GIT_OBJECT_DIRECTORY=%s/head/.git/objects", w->slot),
		as_xasprintf("GIT_ALTERNATE_OBJECT_DIRECTORIES=%s", as_buf_str(&u->objects)),
		NULL};
	struct as_git g = {.folder = w->top,
			   .environment = (const char *const *)env,
			   .interrupted = u->q->interrupted};
	AS_CLEANUP(as_buf_clear) struct as_buf known = {0};
	int r = AS_OK;

	/* A copy of the index: files that did not change need not be read. */
	if (as_read_file(as_buf_str(&u->index), (size_t)1 << 30, &known, NULL) == AS_OK)
		r = as_write_file_atomic(index, known.p, known.len, err);
	if (r == AS_OK)
		r = AS_GIT(&g, NULL, err, "add", "--all", "--", ":/");
	if (r == AS_OK)
		r = AS_GIT(&g, ret_tree, err, "write-tree");
	for (size_t i = 0; env[i]; i++)
		free(env[i]);
	return r;
}

static int check_out(const struct as_git *g, const char *tree, const char *commit,
		     struct as_error *err)
{
	int r = AS_GIT(g, NULL, err, "read-tree", "--reset", "-u", tree);

	if (r == AS_OK)
		r = AS_GIT(g, NULL, err, "update-ref", "--no-deref", "HEAD", commit);
	if (r ==
	    AS_OK) /* what was not ignored and is of no version: left by another revision */
		r = AS_GIT(g, NULL, err, "clean", "-ffdq");
	return r;
}

/* ---- submodules ---- */

#define MODULES_DEPTH 8

/* Those of `folder`, taken from `from`, the caller's checkout of the same place. */
static int check_out_modules(const struct as_git *g, const char *from, int depth,
			     struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *list = as_xasprintf("%s/.gitmodules", g->folder);
	AS_CLEANUP(as_buf_clear) struct as_buf paths = {0};
	int r = AS_OK;

	if (access(list, R_OK) < 0 || depth > MODULES_DEPTH)
		return AS_OK;
	if (AS_GIT(g, &paths, NULL, "config", "-f", ".gitmodules", "--get-regexp",
		   "^submodule\\..*\\.path$") < 0)
		return AS_OK; /* a .gitmodules that names none */
	as_buf_addc(&paths, '\n');
	for (char *at = paths.p; *at && r == AS_OK;) {
		size_t n = strcspn(at, "\n"), key = strcspn(at, " \n");
		char *next = at + n + 1, *path = at + key + 1;

		at[n] = 0;
		if (key < n && key > strlen("submodule..path")) {
			AS_CLEANUP(as_free_autop)
			char *name = as_xstrndup(at, key - strlen(".path"));
			AS_CLEANUP(as_free_autop) char *url = as_xasprintf("%s.url", name);
			AS_CLEANUP(as_free_autop)
			char *theirs = as_xasprintf("%s/%s", from, path);
			AS_CLEANUP(as_free_autop)
			char *inner = as_xasprintf("%s/%s", g->folder, path);
			AS_CLEANUP(as_free_autop) char *git = as_xasprintf("%s/.git", theirs);
			struct as_git sub = *g;

			if (access(git, F_OK) == 0)
				r = AS_GIT(g, NULL, err, "config", url, theirs);
			if (r == AS_OK)
				r = AS_GIT(g, NULL, err, "-c", "protocol.file.allow=always",
					   "submodule", "update", "--init", "--force", "--",
					   path);
			sub.folder = inner;
			if (r == AS_OK)
				r = check_out_modules(&sub, theirs, depth + 1, err);
		}
		at = next;
	}
	return r;
}

/* ---- both ---- */

static int make_side(struct user *u, struct as_worktrees *w, int k, struct as_error *err)
{
	struct as_worktree *s = &w->side[k];
	const char *commit = as_buf_str(&u->commit[k]);
	AS_CLEANUP(as_buf_clear) struct as_buf tree = {0}, brief = {0};
	struct as_git g = {.interrupted = u->q->interrupted};
	int r;

	s->folder = as_xasprintf("%s/%s", w->slot, side_names[k]);
	s->build = as_xasprintf("%s/%s.out", w->slot, side_names[k]);
	g.folder = s->folder;
	r = as_mkdir_parents(s->build, err);
	if (r == AS_OK)
		r = make_repository(u, s->folder, &g, err);
	if (r == AS_OK && k == AS_HEAD_SIDE) {
		r = record_checkout(u, w, &tree, err);
	} else if (r == AS_OK) {
		AS_CLEANUP(as_free_autop) char *spec = as_xasprintf("%s^{tree}", commit);

		r = AS_GIT(&g, &tree, err, "rev-parse", "--verify", spec);
	}
	if (r == AS_OK)
		r = check_out(&g, as_buf_str(&tree), commit, err);
	if (r == AS_OK)
		r = check_out_modules(&g, w->top, 0, err);
	if (r == AS_OK)
		r = AS_GIT(&u->git, &brief, err, "rev-parse", "--short", commit);
	s->tree = as_buf_detach(&tree);
	s->commit = as_buf_detach(&brief);
	return r;
}

static int count_changes(struct as_worktrees *w, struct as_error *err)
{
	struct as_git g = {.folder = w->side[AS_HEAD_SIDE].folder};
	AS_CLEANUP(as_buf_clear) struct as_buf names = {0};
	int r = AS_GIT(&g, &names, err, "diff", "--cached", "--name-only", "--no-renames",
		       "HEAD");

	w->changed = names.len > 0;
	for (size_t i = 0; i < names.len; i++)
		w->changed += names.p[i] == '\n';
	return r;
}

static void say_what(const struct user *u, struct as_worktrees *w)
{
	struct as_worktree *base = &w->side[AS_BASE_SIDE], *head = &w->side[AS_HEAD_SIDE];
	bool is_commit = strncmp(u->q->rev, base->commit, strlen(base->commit)) == 0;

	base->label = is_commit ? as_xstrdup(base->commit)
				: as_xasprintf("%s (%s)", u->q->rev, base->commit);
	head->label =
		w->changed ? as_xasprintf("checkout (%s and %zu changed file%s)", head->commit,
					  w->changed, w->changed == 1 ? "" : "s")
			   : as_xasprintf("checkout (%s)", head->commit);
	w->same = strcmp(base->tree, head->tree) == 0;
}

int as_worktrees_open(const struct as_worktrees_request *q, struct as_worktrees *ret,
		      struct as_error *err)
{
	struct user u = {
		.q = q,
		.git = {.folder = q->folder ? q->folder : ".", .interrupted = q->interrupted}};
	int r;

	*ret = (struct as_worktrees){.lock = -1};
	r = find_repository(&u, ret, err);
	if (r == AS_OK)
		r = look_at_repository(&u, err);
	if (r == AS_OK)
		r = find_commits(&u, err);
	if (r == AS_OK)
		r = as_worktree_slot(ret, err);
	for (int k = 0; k < AS_SIDES && r == AS_OK; k++)
		r = make_side(&u, ret, k, err);
	if (r == AS_OK)
		r = count_changes(ret, err);
	if (r == AS_OK)
		say_what(&u, ret);
	if (r < 0)
		as_worktree_say_full(ret->slot, err);
	clear_user(&u);
	return r;
}

void as_worktrees_close(struct as_worktrees *w)
{
	if (w->tmp)
		as_folder_remove(w->tmp);
	as_close_autop(&w->lock);
	free(w->top);
	free(w->prefix);
	free(w->slot);
	free(w->tmp);
	for (int k = 0; k < AS_SIDES; k++) {
		free(w->side[k].folder);
		free(w->side[k].build);
		free(w->side[k].commit);
		free(w->side[k].label);
		free(w->side[k].tree);
	}
	*w = (struct as_worktrees){.lock = -1};
}

/* ---- files that are lent ---- */

static int lend_one(const struct as_worktrees *w, const char *name, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *from = as_xasprintf("%s/%s", w->top, name);
	AS_CLEANUP(as_buf_clear) struct as_buf bytes = {0};
	int r = as_read_file(from, 16 << 20, &bytes, NULL);

	if (r < 0)
		return AS_OK; /* there is none to lend */
	for (int k = 0; k < AS_SIDES && r == AS_OK; k++) {
		AS_CLEANUP(as_free_autop)
		char *to = as_xasprintf("%s/%s", w->side[k].folder, name);
		AS_CLEANUP(as_free_autop)
		char *folder = as_xstrndup(to, (size_t)(strrchr(to, '/') - to));

		if (access(to, F_OK) == 0)
			continue;
		r = as_mkdir_parents(folder, err);
		if (r == AS_OK)
			r = as_write_file_atomic(to, bytes.p, bytes.len, err);
	}
	return r;
}

int as_worktrees_lend(const struct as_worktrees *w, const char *const *names,
		      struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *inner = as_xstrdup(w->prefix);
	int r = AS_OK;

	for (;;) {
		char *slash = strrchr(inner, '/');

		for (const char *const *n = names; *n && r == AS_OK; n++) {
			AS_CLEANUP(as_free_autop)
			char *name = as_xasprintf("%s%s%s", inner, *inner ? "/" : "", *n);

			r = lend_one(w, name, err);
		}
		if (!*inner || r < 0)
			return r;
		*(slash ? slash : inner) = 0;
	}
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Two versions of a git repository side by side, to be built and run: `base`, a revision, and `head`,
 * the checkout of the caller as it is, uncommitted and untracked files with it.
 *
 *	r = as_worktrees_open(&(struct as_worktrees_request){.rev = "main"}, &w, err);
 *	…	w.side[0].folder, w.side[1].folder: build there, into w.side[k].build
 *	as_worktrees_close(&w);
 *
 * Both are repositories of their own in the cache, which borrow the objects of the caller's
 * (objects/info/alternates). Nothing is written into the caller's repository: no entry in `git
 * worktree list`, no stash, no branch, no change of its index; a run that is killed leaves nothing
 * there to be pruned. `head` is what `git add --all` would take, recorded with an index and an object
 * folder of our own. Paths of both sides are equally long.
 *
 *	CACHE/bench/<repository>-<n>/	lock, repository (its path)
 *		base, head		the two; kept, so that the next run builds only what changed
 *		base.out, head.out	for what is built
 *		tmp			emptied at each open
 *
 * n: the first that no other run holds, nor a build that goes on after its run was killed. Folders of
 * repositories go when they were not used for AS_WORKTREES_DAYS, and the oldest where there are more than
 * AS_WORKTREES_KEPT.
 *
 * Submodules are checked out from those of the caller's checkout where it has them. Thread rule: none.
 */
#ifndef AS_BENCH_WORKTREE_H
#define AS_BENCH_WORKTREE_H

#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"

#define AS_WORKTREES_DAYS 30
#define AS_WORKTREES_KEPT 8

enum { AS_BASE_SIDE, AS_HEAD_SIDE, AS_SIDES };

struct as_worktrees_request {
	const char *folder; /* somewhere in the caller's checkout; NULL: the current folder */
	const char *rev;    /* what git takes as a commit */
	const volatile int *interrupted; /* may be NULL */
};

struct as_worktree {
	char *folder; /* the top of this side's checkout */
	char *build;  /* for what is built; exists */
	char *commit; /* abbreviated */
	char *label;  /* "main (1a2b3c4)", "checkout (1a2b3c4 and 3 changed files)" */
	char *tree;   /* id of the files as a whole */
};

struct as_worktrees {
	char *top;    /* of the caller's checkout */
	char *prefix; /* from top to the folder asked for: "" or "a/b" */
	char *slot;
	char *tmp; /* inside slot, empty */
	int lock;  /* file descriptor; -1: none */
	struct as_worktree side[AS_SIDES];
	size_t changed; /* files of head that its commit does not hold */
	bool same;      /* both sides are the same files */
};

/* AS_E_NOTFOUND: no git, no repository, no such revision (with the nearest one there is). */
int as_worktrees_open(const struct as_worktrees_request *q, struct as_worktrees *ret,
		      struct as_error *err);
void as_worktrees_close(struct as_worktrees *w);
/*
 * Files that are not under version control but decide what is built (Cargo.lock, .cargo/config.toml,
 * rust-toolchain…) are copied from the caller's checkout to the sides that have none. names: relative
 * to top and to every folder between it and prefix; NULL-terminated.
 */
int as_worktrees_lend(const struct as_worktrees *w, const char *const *names,
		      struct as_error *err);

#endif

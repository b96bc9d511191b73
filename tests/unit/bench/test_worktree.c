/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Two versions of a repository side by side, and that the caller's is left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/child.h"
#include "base/mem.h"
#include "base/sys.h"
#include "bench/worktree.h"

static char root[] = "/tmp/test-worktree-XXXXXX";

static void sh(const char *script)
{
	const char *argv[] = {"/bin/sh", "-ec", script, NULL};
	struct as_error err = {0};
	struct as_child c;

	assert_int_equal(as_child_run(&(struct as_child_request){.argv = argv, .folder = root},
				      &c, &err),
			 AS_OK);
	if (c.wait_status)
		fail_msg("%s: %s", script, as_buf_str(&c.errors));
	as_child_clear(&c);
}

static char *output_of(const char *script)
{
	const char *argv[] = {"/bin/sh", "-ec", script, NULL};
	struct as_child c;
	char *text;

	assert_int_equal(as_child_run(&(struct as_child_request){.argv = argv, .folder = root},
				      &c, NULL),
			 AS_OK);
	text = as_buf_detach(&c.out);
	as_child_clear(&c);
	return text;
}

static char *content(const char *folder, const char *name)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s", folder, name);
	struct as_buf b = {0};

	if (as_read_file(path, 1 << 20, &b, NULL) < 0)
		return NULL;
	return as_buf_detach(&b);
}

static int setup(void **state)
{
	const char *argv[] = {"git", "--version", NULL};
	struct as_child c = {0};
	int r = as_child_run(&(struct as_child_request){.argv = argv}, &c, NULL);

	as_child_clear(&c);
	if (r < 0) {
		print_message("git is not installed\n");
		exit(77);
	}
	assert_non_null(mkdtemp(root));
	setenv("XDG_CACHE_HOME", root, 1);
	setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	setenv("GIT_AUTHOR_NAME", "a", 1);
	setenv("GIT_AUTHOR_EMAIL", "a@example.org", 1);
	setenv("GIT_COMMITTER_NAME", "a", 1);
	setenv("GIT_COMMITTER_EMAIL", "a@example.org", 1);
	sh("git init -q -b main r && cd r && echo 1 >a && echo same >b && mkdir sub && echo x "
	   ">sub/c"
	   " && echo '*.o' >.gitignore && git add . && git commit -qm one && git tag v1"
	   " && echo 2 >a && git commit -qam two");
	return 0;
}

static int teardown(void **state)
{
	const char *argv[] = {"rm", "-rf", root, NULL};
	struct as_child c = {0};

	(void)as_child_run(&(struct as_child_request){.argv = argv}, &c, NULL);
	as_child_clear(&c);
	return 0;
}

static int open_at(const char *folder, const char *rev, struct as_worktrees *w,
		   struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s", root, folder);

	return as_worktrees_open(&(struct as_worktrees_request){.folder = path, .rev = rev}, w,
				 err);
}

static const char look[] =
	"cd r && git status --porcelain=v2 --branch --ignored && git stash list && "
	"git worktree list && git for-each-ref && find .git -name '*.lock' && "
	"sha1sum .git/index && ls -A .git && find .git/objects -type f | sort | "
	"sha1sum";

static void the_base_is_the_revision_and_the_head_the_checkout_as_it_is(void **state)
{
	struct as_error err = {0};
	struct as_worktrees w;

	sh("cd r && git status >/dev/null && echo 3 >a && echo new >untracked && echo no "
	   ">built.o && "
	   "echo staged >b && git add b && rm sub/c");
	AS_CLEANUP(as_free_autop) char *before = output_of(look);
	if (open_at("r/sub", "v1", &w, &err) < 0)
		fail_msg("%s", err.msg);
	AS_CLEANUP(as_free_autop) char *after = output_of(look);
	AS_CLEANUP(as_free_autop) char *base_a = content(w.side[0].folder, "a");
	AS_CLEANUP(as_free_autop) char *base_b = content(w.side[0].folder, "b");
	AS_CLEANUP(as_free_autop) char *head_a = content(w.side[1].folder, "a");
	AS_CLEANUP(as_free_autop) char *head_b = content(w.side[1].folder, "b");
	AS_CLEANUP(as_free_autop) char *head_new = content(w.side[1].folder, "untracked");

	assert_string_equal(after, before);
	assert_string_equal(base_a, "1\n");
	assert_string_equal(base_b, "same\n");
	assert_string_equal(head_a, "3\n");
	assert_string_equal(head_b, "staged\n");
	assert_string_equal(head_new, "new\n");
	assert_null(content(w.side[1].folder, "built.o"));
	assert_null(content(w.side[1].folder, "sub/c"));
	assert_null(content(w.side[0].folder, "untracked"));
	assert_int_equal(w.changed, 4);
	assert_non_null(strstr(w.side[1].label, "4 changed files"));
	assert_non_null(strstr(w.side[0].label, "v1 ("));
	assert_string_equal(w.prefix, "sub");
	assert_int_equal(strlen(w.side[0].folder), strlen(w.side[1].folder));
	assert_false(w.same);
	as_worktrees_close(&w);
}

static void a_second_run_keeps_what_did_not_change_and_takes_what_did(void **state)
{
	struct as_error err = {0};
	struct as_worktrees w;
	struct stat first, second;

	assert_int_equal(open_at("r", "v1", &w, &err), AS_OK);
	AS_CLEANUP(as_free_autop) char *b = as_xasprintf("%s/.gitignore", w.side[0].folder);
	AS_CLEANUP(as_free_autop) char *slot = as_xstrdup(w.slot);
	AS_CLEANUP(as_free_autop) char *left = as_xasprintf("%s/left", w.side[0].folder);
	AS_CLEANUP(as_free_autop)
	char *lock = as_xasprintf("%s/.git/index.lock", w.side[0].folder);

	assert_int_equal(stat(b, &first), 0);
	as_worktrees_close(&w);
	/* as if killed in the middle of it */
	assert_int_equal(as_write_file_atomic(left, "x", 1, &err), AS_OK);
	assert_int_equal(as_write_file_atomic(lock, "", 0, &err), AS_OK);
	sh("cd r && git checkout -qf main && git clean -fdq");
	if (open_at("r", "main", &w, &err) < 0)
		fail_msg("%s", err.msg);
	AS_CLEANUP(as_free_autop) char *a = content(w.side[0].folder, "a");

	assert_string_equal(w.slot, slot);
	assert_int_equal(stat(b, &second), 0);
	assert_int_equal(first.st_mtim.tv_nsec, second.st_mtim.tv_nsec);
	assert_string_equal(a, "2\n");
	assert_int_not_equal(access(left, F_OK), 0);
	assert_true(w.same);
	assert_int_equal(w.changed, 0);

	/* while it is held another run takes folders of its own */
	struct as_worktrees other;

	assert_int_equal(open_at("r", "v1", &other, &err), AS_OK);
	assert_string_not_equal(other.slot, w.slot);
	as_worktrees_close(&other);
	as_worktrees_close(&w);
}

static void what_is_missing_is_said(void **state)
{
	struct as_error err = {0};
	struct as_worktrees w;

	assert_int_equal(open_at("r", "mian", &w, &err), AS_E_NOTFOUND);
	assert_non_null(strstr(err.msg, "did you mean 'main'?"));
	as_worktrees_close(&w);
	assert_int_equal(open_at("r", "--help", &w, &err), AS_E_NOTFOUND);
	as_worktrees_close(&w);
	sh("mkdir -p none");
	assert_int_equal(open_at("none", "main", &w, &err), AS_E_NOTFOUND);
	assert_non_null(strstr(err.msg, "no git repository"));
	as_worktrees_close(&w);
	sh("git clone -q --depth 1 file://$PWD/r shallow");
	assert_int_equal(open_at("shallow", "v1", &w, &err), AS_E_NOTFOUND);
	assert_non_null(strstr(err.msg, "fetch-depth: 0"));
	as_worktrees_close(&w);
	if (open_at("shallow", "HEAD", &w, &err) < 0)
		fail_msg("%s", err.msg);
	as_worktrees_close(&w);
}

static void submodules_come_from_the_checkout(void **state)
{
	struct as_error err = {0};
	struct as_worktrees w;

	sh("git init -q -b main lib && cd lib && echo l1 >l && git add . && git commit -qm l");
	sh("git init -q -b main deep && cd deep && echo d1 >d && git add . && git commit -qm "
	   "d");
	sh("cd lib && git -c protocol.file.allow=always submodule --quiet add ../deep inner && "
	   "git commit -qm inner");
	sh("git init -q -b main app && cd app && git -c protocol.file.allow=always submodule "
	   "--quiet "
	   "add ../lib vendor/lib && git commit -qm app && "
	   "git -c protocol.file.allow=always submodule --quiet update --init --recursive");
	sh("mv lib lib.gone; mv deep deep.gone"); /* no network here either */
	if (open_at("app", "main", &w, &err) < 0)
		fail_msg("%s", err.msg);
	for (int k = 0; k < AS_SIDES; k++) {
		AS_CLEANUP(as_free_autop) char *l = content(w.side[k].folder, "vendor/lib/l");
		AS_CLEANUP(as_free_autop)
		char *d = content(w.side[k].folder, "vendor/lib/inner/d");

		assert_non_null(l);
		assert_string_equal(l, "l1\n");
		assert_non_null(d);
		assert_string_equal(d, "d1\n");
	}
	as_worktrees_close(&w);
}

static void a_lock_file_that_is_ignored_is_lent_to_both(void **state)
{
	static const char *const names[] = {"Cargo.lock", NULL};
	struct as_error err = {0};
	struct as_worktrees w;

	sh("cd r && echo Cargo.lock >.git/info/exclude && echo L >Cargo.lock && echo M "
	   ">sub/Cargo.lock");
	assert_int_equal(open_at("r/sub", "v1", &w, &err), AS_OK);
	assert_int_equal(as_worktrees_lend(&w, names, &err), AS_OK);
	for (int k = 0; k < AS_SIDES; k++) {
		AS_CLEANUP(as_free_autop) char *top = content(w.side[k].folder, "Cargo.lock");
		AS_CLEANUP(as_free_autop)
		char *sub = content(w.side[k].folder, "sub/Cargo.lock");

		assert_string_equal(top, "L\n");
		assert_string_equal(sub, "M\n");
	}
	as_worktrees_close(&w);
}

static void inside_a_hook_the_callers_repository_stays_the_callers(void **state)
{
	AS_CLEANUP(as_free_autop) char *before = output_of(look);
	AS_CLEANUP(as_free_autop) char *dir = as_xasprintf("%s/r/.git", root);
	struct as_error err = {0};
	struct as_worktrees w;

	setenv("GIT_DIR", dir, 1);
	setenv("GIT_INDEX_FILE", "index", 1);
	if (open_at("r", "v1", &w, &err) < 0)
		fail_msg("%s", err.msg);
	unsetenv("GIT_DIR");
	unsetenv("GIT_INDEX_FILE");
	as_worktrees_close(&w);
	AS_CLEANUP(as_free_autop) char *after = output_of(look);

	assert_string_equal(after, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_base_is_the_revision_and_the_head_the_checkout_as_it_is),
		cmocka_unit_test(a_second_run_keeps_what_did_not_change_and_takes_what_did),
		cmocka_unit_test(what_is_missing_is_said),
		cmocka_unit_test(submodules_come_from_the_checkout),
		cmocka_unit_test(a_lock_file_that_is_ignored_is_lent_to_both),
		cmocka_unit_test(inside_a_hook_the_callers_repository_stays_the_callers),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

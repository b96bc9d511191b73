/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A project's bench programs, built: see project.h. */
#include "bench/project.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/folder.h"
#include "base/sys.h"
#include "bench/worktree_priv.h"
#include "history/history.h"

extern char **environ;

static const char *keep(struct as_project *p, char *text)
{
	as_vec_push(&p->texts, text);
	return text;
}

static void say(const struct as_project_request *q, char *text)
{
	if (q->say)
		q->say(q->say_ctx, text);
	free(text);
}

/* ---- environments ---- */

static bool sets_same(const char *a, const char *b)
{
	size_t n = strcspn(b, "=");

	return strncmp(a, b, n) == 0 && (a[n] == '=' || !a[n]);
}

/* Ours with `more` in place of what it sets, without the variable `without`. Kept by p. */
static char **environment_with(struct as_project *p, char *const *more, size_t n,
			       const char *without)
{
	AS_VEC(char *) env = {0};

	for (char **e = environ; *e; e++) {
		bool out = without && sets_same(*e, without);

		for (size_t i = 0; i < n && !out; i++)
			out = sets_same(*e, more[i]);
		if (!out)
			as_vec_push(&env, *e);
	}
	for (size_t i = 0; i < n; i++)
		as_vec_push(&env, more[i]);
	as_vec_push(&env, NULL);
	as_vec_push(&p->environments, env.v);
	return env.v;
}

/* ---- cargo ---- */

static bool same_target(const struct as_cargo_bench *a, const struct as_cargo_bench *b)
{
	return a->kind == b->kind && strcmp(a->package, b->package) == 0 &&
	       strcmp(a->target, b->target) == 0;
}

static const char *name_of(struct as_project *p, const struct as_cargo_bench *b, bool packages)
{
	const char *kind = b->kind == AS_CARGO_LIB       ? "library"
			   : b->kind == AS_CARGO_BIN     ? "program"
			   : b->kind == AS_CARGO_EXAMPLE ? "example"
							 : "bench";

	if (packages)
		return keep(p, as_xasprintf("%s, %s '%s'", b->package, kind, b->target));
	return keep(p, as_xasprintf("%s '%s'", kind, b->target));
}

static void set_program(struct as_project *p, struct as_cargo_bench *b, int side,
			struct as_suite_target *t)
{
	t->side[side] = (struct as_suite_program){
		.exe = b->built.executable,
		.folder = b->built.folder,
		.environment = environment_with(p, b->built.environment.v,
						b->built.environment.n, NULL),
		.watch = p->watch[side].folder ? &p->watch[side] : NULL};
}

static void pair_programs(struct as_project *p)
{
	bool packages = false;

	for (int k = 0; k < (int)p->sides; k++) {
		as_vec_foreach (b, &p->built[k].v)
			packages |= strcmp(b->package, p->built[k].v.v[0].package) != 0;
	}
	for (int k = (int)p->sides - 1; k >= 0; k--) {
		as_vec_foreach (b, &p->built[k].v) {
			struct as_suite_target *t = NULL;

			for (size_t i = 0; k == 0 && p->sides > 1 && i < p->built[1].v.n; i++) {
				if (same_target(b, &p->built[1].v.v[i]))
					t = &p->targets.v[i];
			}
			if (!t) {
				as_vec_push(&p->targets,
					    (struct as_suite_target){
						    .name = name_of(p, b, packages),
						    .is_bench = b->kind == AS_CARGO_BENCH});
				t = &p->targets.v[p->targets.n - 1];
			}
			set_program(p, b, k, t);
		}
	}
}

static int build_by_cargo(const struct as_project_request *q, struct as_project *p, int side,
			  int *ret_status, struct as_error *err)
{
	static const char *const line_tables[] = {"CARGO_PROFILE_BENCH_DEBUG=1",
						  "CARGO_PROFILE_BENCH_STRIP=none"};
	struct as_cargo_benches_request cargo = q->cargo;
	AS_VEC(const char *) env = {0};
	AS_CLEANUP(as_free_autop) char *folder = NULL;
	int r;

	cargo.interrupted = q->interrupted;
	if (p->has_trees) {
		const struct as_worktree *tree = &p->trees.side[side];

		folder = as_xasprintf("%s/%s", tree->folder, p->trees.prefix);
		cargo.folder = folder;
		cargo.target_dir = tree->build;
		cargo.held = &p->trees.lock;
		for (size_t i = 0; i < AS_ARRAY_LEN(line_tables); i++)
			as_vec_push(&env, line_tables[i]);
		for (char **e = p->watch[side].environment.v; *e; e++) {
			/* one stand-in is enough, and rustc has one of its own */
			if (strncmp(*e, "COMPILER_PATH=", 14) != 0)
				as_vec_push(&env, *e);
		}
		as_vec_push(&env, NULL);
		cargo.environment = env.v;
	}
	r = as_cargo_build_benches(&cargo, &p->built[side], ret_status, err);
	as_vec_clear(&env);
	return r;
}

/* ---- any other build ---- */

static int build_by_command(const struct as_project_request *q, struct as_project *p, int side,
			    struct as_error *err)
{
	const struct as_worktree *tree = &p->trees.side[side];
	AS_CLEANUP(as_free_autop)
	char *folder = as_xasprintf("%s/%s", tree->folder, p->trees.prefix);
	const char *argv[] = {"/bin/sh", "-c", q->build, NULL};
	struct as_child c = {0};
	/* A common CARGO_TARGET_DIR would make the sides overwrite each other. */
	char **env = environment_with(p, p->watch[side].environment.v,
				      p->watch[side].environment.n - 1, "CARGO_TARGET_DIR");
	int r = as_child_run(&(struct as_child_request){.argv = argv,
							.folder = folder,
							.environment = env,
							.output_to_errors = true,
							.pass_errors = true,
							.held = &p->trees.lock,
							.interrupted = q->interrupted},
			     &c, err);

	if (r == AS_OK && c.stopped)
		r = as_fail(err, AS_E_CANCELLED, 0, "interrupted");
	if (r == AS_OK && c.wait_status) {
		AS_CLEANUP(as_buf_clear) struct as_buf how = {0};

		as_child_ended(&c, &how);
		r = as_fail(err, AS_E_IO, 0, "'%s' ended with %s", q->build, as_buf_str(&how));
	}
	as_child_clear(&c);
	return r;
}

/* The program of a side, which its build made. */
static int take_program(const struct as_project_request *q, struct as_project *p, int side,
			struct as_error *err)
{
	const struct as_worktree *tree = &p->trees.side[side];
	const char *name = q->programs[0];
	char *path;

	if (name[0] == '/')
		return as_fail(
			err, AS_E_USAGE, 0,
			"'%s' is the same program on both sides: name it from the current "
			"folder on, as --build makes it",
			name);
	path = as_xasprintf("%s/%s%s%s", tree->folder, p->trees.prefix,
			    p->trees.prefix[0] ? "/" : "", name);
	keep(p, path);
	if (access(path, X_OK) < 0)
		return as_fail(err, AS_E_NOTFOUND, errno, "its build made no '%s': %s", name,
			       strerror(errno));
	if (!p->targets.n)
		as_vec_push(&p->targets, (struct as_suite_target){.name = name});
	p->targets.v[0].side[side] =
		(struct as_suite_program){.exe = path, .watch = &p->watch[side]};
	return AS_OK;
}

/* ---- two revisions ---- */

static int open_trees(const struct as_project_request *q, struct as_project *p,
		      struct as_error *err)
{
	static const char *const lent[] = {"Cargo.lock",     ".cargo/config.toml",
					   ".cargo/config",  "rust-toolchain.toml",
					   "rust-toolchain", NULL};
	int r;

	say(q, as_xasprintf("taking %s and the checkout apart", q->against));
	r = as_worktrees_open(&(struct as_worktrees_request){.rev = q->against,
							     .interrupted = q->interrupted},
			      &p->trees, err);
	p->has_trees = true;
	if (r == AS_OK)
		r = as_worktrees_lend(&p->trees, lent, err);
	for (int k = 0; k < AS_SIDES && r == AS_OK; k++) {
		AS_CLEANUP(as_free_autop)
		char *links = as_xasprintf("%s.links", p->trees.side[k].build);

		r = as_layout_watch(links, &p->watch[k], err);
	}
	p->sides = 2;
	for (int k = 0; k < AS_SIDES; k++)
		p->labels[k] = p->trees.side[k].label;
	p->tmp = r == AS_OK ? as_xstrdup(p->trees.tmp) : NULL;
	return r;
}

/* Where cargo failed: a path that leads out of the repository leads elsewhere in a copy of it. */
static void say_outside(const struct as_project_request *q, const struct as_project *p,
			struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *top = realpath(p->trees.top, NULL);
	AS_CLEANUP(as_buf_clear) struct as_buf which = {0};
	struct as_cargo_benches_request cargo = q->cargo;
	size_t n = strlen(err->msg);

	cargo.interrupted = q->interrupted;
	if (!top || !as_cargo_outside(&cargo, top, &which))
		return;
	(void)snprintf(
		err->msg + n, sizeof err->msg - n,
		"\n  it takes '%s', outside of the repository: --against builds copies of "
		"the repository, and relative paths out of it lead nowhere there. Make it a "
		"git submodule, or name it by its whole path",
		as_buf_str(&which));
}

static int build_side(const struct as_project_request *q, struct as_project *p, int side,
		      int *ret_status, struct as_error *err)
{
	int r;

	say(q, as_xasprintf("building %s", p->labels[side]));
	r = q->use_cargo ? build_by_cargo(q, p, side, ret_status, err)
			 : build_by_command(q, p, side, err);
	if (r == AS_OK && !q->use_cargo)
		r = take_program(q, p, side, err);
	if (r < 0 && r != AS_E_CANCELLED) {
		as_wrap(err, "cannot build %s", p->labels[side]);
		if (q->use_cargo)
			say_outside(q, p, err);
		as_worktree_say_full(p->trees.slot, err);
	}
	return r;
}

static int open_two(const struct as_project_request *q, struct as_project *p, int *ret_status,
		    struct as_error *err)
{
	int r = open_trees(q, p, err);

	for (int k = 0; k < AS_SIDES && r == AS_OK; k++)
		r = build_side(q, p, k, ret_status, err);
	if (r == AS_OK && q->use_cargo)
		pair_programs(p);
	return r;
}

/* ---- one, or programs as they are ---- */

static int make_tmp(struct as_project *p, struct as_error *err)
{
	const char *tmp = getenv("TMPDIR");
	char *path = as_xasprintf("%s/assay-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");

	if (mkdtemp(path)) {
		p->tmp = path;
		return AS_OK;
	}
	free(path);
	return as_fail(err, AS_E_IO, errno, "cannot make a folder in '%s': %s",
		       tmp && *tmp ? tmp : "/tmp", strerror(errno));
}

static int take_programs(const struct as_project_request *q, struct as_project *p,
			 struct as_error *err)
{
	if (q->nprograms > 2)
		return as_fail(err, AS_E_USAGE, 0, "--program is given once or twice");
	p->sides = q->nprograms > 1 ? 2 : 1;
	as_vec_push(&p->targets, (struct as_suite_target){.name = q->programs[0]});
	for (size_t i = 0; i < q->nprograms; i++) {
		char *path = as_history_which(q->programs[i]);

		if (!path)
			return as_fail(err, AS_E_NOTFOUND, 0, "there is no program '%s'",
				       q->programs[i]);
		p->targets.v[0].side[i].exe = keep(p, path);
		p->labels[i] = q->programs[i];
	}
	return AS_OK;
}

int as_project_open(const struct as_project_request *q, struct as_project *ret, int *ret_status,
		    struct as_error *err)
{
	int r;

	*ret = (struct as_project){.sides = 1, .trees.lock = -1};
	*ret_status = 0;
	if (q->against)
		return open_two(q, ret, ret_status, err);
	r = make_tmp(ret, err);
	if (r == AS_OK && q->use_cargo) {
		r = build_by_cargo(q, ret, 0, ret_status, err);
		if (r == AS_OK)
			pair_programs(ret);
	} else if (r == AS_OK) {
		r = take_programs(q, ret, err);
	}
	return r;
}

void as_project_close(struct as_project *p)
{
	if (p->tmp)
		as_folder_remove(p->tmp);
	free(p->tmp);
	for (int k = 0; k < 2; k++) {
		as_cargo_benches_clear(&p->built[k]);
		as_layout_watch_clear(&p->watch[k]);
	}
	if (p->has_trees)
		as_worktrees_close(&p->trees);
	for (size_t i = 0; i < p->environments.n; i++)
		free(p->environments.v[i]);
	as_vec_clear(&p->environments);
	for (size_t i = 0; i < p->texts.n; i++)
		free(p->texts.v[i]);
	as_vec_clear(&p->texts);
	as_vec_clear(&p->targets);
}

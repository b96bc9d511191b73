/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The bench programs of a project, built: as the checkout is, or of a git revision and the checkout next
 * to each other. What suite.h needs is in targets.
 *
 *	as_project_open(&(struct as_project_request){.against = "main", .use_cargo = true, …}, &p, err);
 *	…	p.targets.v, p.sides, p.labels, p.tmp
 *	as_project_close(&p);
 *
 * With `against` both sides are built in the same way, each in its own checkout (worktree.h), their links
 * noted (layout.h); cargo gets line tables for both, for a profile of a regression. Without it cargo
 * builds where and how `cargo bench` would.
 *
 * Thread rule: one at a time.
 */
#ifndef AS_BENCH_PROJECT_H
#define AS_BENCH_PROJECT_H

#include "bench/suite.h"
#include "bench/worktree.h"
#include "cargo/cargo.h"

struct as_project_request {
	bool use_cargo;
	struct as_cargo_benches_request cargo; /* what and how; folder, target_dir: not yet */
	const char *against;                   /* revision; NULL: one side */
	const char *build;                     /* shell command; with against, without cargo */
	/* bench programs: one or two of one side, compared as they are; with build one, relative to the
	 * current folder, that each side has after its build */
	const char *const *programs;
	size_t nprograms;
	const volatile int *interrupted;
	void (*say)(void *ctx, const char *text); /* what happens now; may be NULL */
	void *say_ctx;
};

struct as_project {
	unsigned sides;
	const char *labels[2]; /* borrowed from below */
	AS_VEC(struct as_suite_target) targets;
	char *tmp; /* private, removed at the end */

	/* owned, used by targets */
	struct as_worktrees trees;
	bool has_trees;
	struct as_cargo_benches built[2];
	struct as_layout_watch watch[2];
	AS_VEC(char **) environments;
	AS_VEC(char *) texts;
};

/* ret_status: of cargo, when that failed: it has said why. */
int as_project_open(const struct as_project_request *q, struct as_project *ret, int *ret_status,
		    struct as_error *err);
void as_project_close(struct as_project *p);

#endif

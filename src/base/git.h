/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * git called, its words read, its complaints handed on. Our git variables (GIT_DIR of a hook) are not
 * handed on: it works in the folder that was named.
 *
 *	AS_GIT((&(struct as_git){.folder = "."}), &out, err, "rev-parse", "HEAD");
 *
 * Thread rule: any thread, as base/child.h. Cost: a process.
 */
#ifndef AS_BASE_GIT_H
#define AS_BASE_GIT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

struct as_git {
	const char *folder; /* git -C */
	/* NAME=VALUE beside ours, without git's own variables; NULL-terminated, may be NULL */
	const char *const *environment;
	const volatile int *interrupted;
};

/* git words… ; out: what it printed without the last newline, may be NULL. words NULL-terminated. AS_E_IO
 * with git's own words when it fails. */
int as_git(const struct as_git *g, const char *const *words, struct as_buf *out,
	   struct as_error *err);
#define AS_GIT(g, out, err, ...) as_git(g, (const char *const[]){__VA_ARGS__, NULL}, out, err)

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The source file that debug information names, on this machine.
 *
 *	struct as_source_query q = {.file = frame.file, .cwd = cwd, .newest_ns = module_mtime};
 *	struct as_source *s = as_source_load(&q);
 *	if (s->found)
 *		text = as_source_line(s, 42, &n);
 *	else
 *		puts(s->why);	// "not found: looked at …", "'…' is newer than the program …"
 *	as_source_free(s);
 *
 * Looked at, in this order, the first that exists is taken:
 *	1. the path as it is (inside the target's root first), or below the recorded folder when
 *	   it is relative
 *	2. Rust's library: /rustc/<hash>/library/… below rustup's toolchains whose manifest names
 *	   that hash, /usr/lib/rustlib/src/rust, /usr/src/rustc-*
 *	3. crates: …/registry/src/<index>/crate-1.2.3/… and …/git/checkouts/… below $CARGO_HOME,
 *	   ~/.cargo and that of the user behind sudo; vendor/crate/… below the recorded folder
 *	4. distribution sources: /usr/src/debug/<path>, /build/<x>/<package>/… below /usr/src
 *	5. the folders of --source-dir, then the recorded folder: the path's tails, longest first;
 *	   a bare file name only where its folder has the name of the root's
 *
 * A file that changed after newest_ns does not fit the program and is refused, except where files
 * never change (crate registry, Rust library of the right hash). Only regular files whose name is
 * that of a source file are read, since paths come from other people's sessions: no key or
 * password file gets into a report that way. At most AS_SOURCE_MAX bytes.
 *
 * Reads nothing but files; never runs rustc. Thread rule: none shared.
 */
#ifndef AS_CODE_SOURCE_H
#define AS_CODE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/mem.h"

#define AS_SOURCE_MAX (16u << 20)

struct as_source_query {
	const char *file;               /* as the debug information has it */
	const char *cwd;                /* folder of the recorded command; NULL unknown */
	const char *root;               /* /proc/PID/root, or NULL */
	const char *const *source_dirs; /* NULL ends; may be NULL */
	uint64_t
		newest_ns; /* CLOCK_REALTIME: when the module was made; 0 unknown: not checked */
};

struct as_source {
	char *found; /* path of what was read; NULL: nothing */
	char *why;   /* when nothing was: a sentence */
	struct as_buf text;
	AS_VEC(uint32_t) at; /* where line i + 1 begins in text */
};

struct as_source *as_source_load(const struct as_source_query *q); /* never NULL */
void as_source_free(struct as_source *s);
static inline uint32_t as_source_lines(const struct as_source *s)
{
	return (uint32_t)s->at.n;
}
/* Line `line` (from 1) without its end, not NUL-terminated; NULL when there is none. */
const char *as_source_line(const struct as_source *s, uint32_t line, size_t *ret_n);

#endif

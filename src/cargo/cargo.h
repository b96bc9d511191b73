/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A target of a Cargo project: chosen, built with line tables, ready to be run as cargo would.
 *
 *	metadata.c	`cargo metadata` -> packages and their targets
 *	choose.c	the request and the packages -> one target, or what the reader can choose from
 *	words.c		options that go on to cargo as they are
 *	build.c		`cargo build|test|bench --message-format=json-render-diagnostics` -> the
 *			executable and the environment cargo gives it
 *	benches.c	`cargo bench --no-run` -> every program it would run
 *
 * The project is not edited: CARGO_PROFILE_<NAME>_DEBUG and _STRIP come through the environment,
 * unless the caller has set them. Cargo's messages go to standard error as they are; where cargo
 * fails its exit status is handed on.
 *
 * Sources: The Cargo Book, "External tools" (JSON messages), "Configuration" (profiles from the
 * environment), "Environment variables" (what cargo sets for programs it runs).
 */
#ifndef AS_CARGO_CARGO_H
#define AS_CARGO_CARGO_H

#include <stdbool.h>
#include <stddef.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

enum as_cargo_kind {
	AS_CARGO_BIN,
	AS_CARGO_EXAMPLE,
	AS_CARGO_TEST,
	AS_CARGO_BENCH,
	AS_CARGO_LIB, /* the unit tests of a library */
	AS_CARGO_KINDS_
};

struct as_cargo_request {
	enum as_cargo_kind kind;
	const char *name;    /* of the target; NULL: the only one (BIN: the default one) */
	const char *package; /* -p; NULL: the one of the current folder */
	const char *profile; /* NULL: release; bench for BENCH */
	const char *manifest_path; /* NULL: found from the current folder upwards */
	/* further words for cargo (--features x, --offline …); NULL-terminated, may be NULL */
	const char *const *words;
};

/* ---- words for cargo ---- */

/* Cargo's own options, as the reader gave them; NULL, false: not given. */
struct as_cargo_options {
	const char *features, *target, *target_dir, *jobs;
	bool all_features, no_default_features, offline, locked, frozen;
};
#define AS_CARGO_WORDS 16
struct as_cargo_words {
	const char *v[AS_CARGO_WORDS]; /* NULL-terminated */
};
/* Fills ret with the words for `words` of the requests; the texts are borrowed from o. */
void as_cargo_words(const struct as_cargo_options *o, struct as_cargo_words *ret);

/* ---- what there is ---- */

struct as_cargo_target {
	enum as_cargo_kind kind;
	const char *name;
};
struct as_cargo_path { /* a dependency taken from a folder */
	const char *name, *folder;
};
struct as_cargo_package {
	const char *name, *version, *id, *manifest_path,
		*default_run; /* default_run: NULL none */
	const char *authors, *description, *homepage, *repository,
		*license; /* "" when absent */
	bool is_default;  /* cargo builds it when no -p is given at the workspace's root */
	AS_VEC(struct as_cargo_target) targets;
	AS_VEC(struct as_cargo_path) paths;
};
struct as_cargo_metadata {
	struct as_arena arena;
	const char *target_directory;
	AS_VEC(struct as_cargo_package) packages; /* members of the workspace */
};
/* text: what `cargo metadata --no-deps --format-version 1` prints. AS_E_FORMAT otherwise. */
int as_cargo_metadata_parse(const char *text, size_t n, struct as_cargo_metadata *ret,
			    struct as_error *err);
void as_cargo_metadata_clear(struct as_cargo_metadata *m);

/* The one package and target that q asks for; manifest: of the folder that cargo is called in, as
 * realpath, or NULL. AS_E_NOTFOUND, AS_E_USAGE with the words that would choose. */
int as_cargo_choose(const struct as_cargo_metadata *m, const struct as_cargo_request *q,
		    const char *manifest, const struct as_cargo_package **ret_package,
		    const struct as_cargo_target **ret_target, struct as_error *err);

/* ---- building ---- */

struct as_cargo_built {
	char *executable, *name;
	char *folder; /* where cargo runs tests and benches; NULL: the current one */
	AS_VEC(char *) environment; /* NAME=VALUE */
	bool wants_bench_flag;      /* benches are run with --bench */
};
/* Adds what one line of cargo's JSON says about `target` to ret; other lines are nothing. */
struct as_cargo_wanted {
	const struct as_cargo_package *package;
	const struct as_cargo_target *target;
};
void as_cargo_message(const char *line, size_t n, const struct as_cargo_wanted *w,
		      struct as_cargo_built *ret);

/*
 * Chooses and builds. ret_status: cargo's exit status when cargo itself failed (the return value is
 * then AS_E_SYS and there is nothing to add to what cargo said), else 0.
 */
int as_cargo_build(const struct as_cargo_request *q, struct as_cargo_built *ret,
		   int *ret_status, struct as_error *err);
void as_cargo_built_clear(struct as_cargo_built *b);

/* ---- all benchmarks of a project ---- */

struct as_cargo_benches_request {
	const char *folder; /* where cargo is called; NULL: here */
	const char *package, *bench, *profile, *manifest_path; /* as above; bench: --bench */
	bool workspace;                                        /* all packages */
	const char *target_dir;                                /* NULL: the project's */
	const char *const *words;
	/* NAME=VALUE for cargo beside ours; NULL-terminated, may be NULL */
	const char *const *environment;
	const int *held;                 /* see base/child.h; may be NULL */
	const volatile int *interrupted; /* may be NULL */
};
struct as_cargo_bench {
	struct as_cargo_built built;
	char *package, *target; /* names */
	enum as_cargo_kind kind;
};
struct as_cargo_benches {
	AS_VEC(struct as_cargo_bench) v;
};
/* Builds all that `cargo bench` would run. ret_status as as_cargo_build. */
int as_cargo_build_benches(const struct as_cargo_benches_request *q,
			   struct as_cargo_benches *ret, int *ret_status, struct as_error *err);
void as_cargo_benches_clear(struct as_cargo_benches *b);
/* The first dependency of a package of the workspace that is taken from a folder outside of `top` (as
 * realpath), as "NAME' from 'FOLDER", for messages; false: there is none, or cargo does not tell. */
bool as_cargo_outside(const struct as_cargo_benches_request *q, const char *top,
		      struct as_buf *out);

#endif

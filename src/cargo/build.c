/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cargo called, its messages read, the program made ready: see cargo.h. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "cargo/cargo_priv.h"

extern char **environ;

#define OUTPUT_MAX (256u << 20)

struct words {
	AS_VEC(const char *) v;
};

static void add(struct words *w, const char *word)
{
	as_vec_push(&w->v, word);
}

static void add_pair(struct words *w, const char *option, const char *value)
{
	if (!value)
		return;
	add(w, option);
	add(w, value);
}

/* ---- calling ---- */

static int start(const struct words *w, int *ret_fd, pid_t *ret_pid, struct as_error *err)
{
	posix_spawn_file_actions_t actions;
	int fds[2], e;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return as_fail(err, AS_E_IO, errno, "cannot make a pipe: %s", strerror(errno));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	e = posix_spawnp(ret_pid, w->v.v[0], &actions, NULL, (char *const *)w->v.v, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	if (e) {
		close(fds[0]);
		return as_fail(err, AS_E_NOTFOUND, e,
			       "cannot run '%s': %s\n  it comes with Rust: "
			       "apt install cargo, or https://rustup.rs",
			       w->v.v[0], strerror(e));
	}
	*ret_fd = fds[0];
	return AS_OK;
}

/* What the words print, whole. ret_status: 0, or as a shell would say it. */
static int output_of(struct words *w, struct as_buf *out, int *ret_status, struct as_error *err)
{
	int fd = -1, status = 0, r;
	pid_t pid;

	as_vec_push(&w->v, NULL);
	r = start(w, &fd, &pid, err);
	if (r < 0)
		return r;
	r = as_read_fd(fd, OUTPUT_MAX, out, err);
	close(fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	*ret_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	if (r == 0 && *ret_status)
		r = as_fail(err, AS_E_IO, 0, "cargo ended with status %d", *ret_status);
	return r;
}

const char *as_cargo_program(void)
{
	const char *cargo = getenv("CARGO"); /* cargo tells its subcommands which cargo it is */

	return cargo && *cargo ? cargo : "cargo";
}

/* ---- the environment of the build ---- */

/* CARGO_PROFILE_<NAME>_<KEY>=value, unless somebody has already decided. */
static void set_profile(const char *profile, const char *key, const char *value)
{
	AS_CLEANUP(as_free_autop)
	char *name = as_xasprintf("CARGO_PROFILE_%s_%s",
				  strcmp(profile, "test") == 0 ? "dev" : profile, key);

	for (char *p = name; *p; p++) {
		if (*p >= 'a' && *p <= 'z')
			*p = (char)(*p - 'a' + 'A');
		else if (*p == '-')
			*p = '_';
	}
	(void)setenv(name, value, 0); /* out of memory: built as the project says */
}

/*
 * Lines and the full names of inlined functions. "line-tables-only" builds no faster and leaves out
 * what they are part of: u64::rem of core is "rem" then, and every closure "{closure#0}".
 */
static const char lines_and_names[] = "1";

/* ---- messages ---- */

static void set(struct as_cargo_built *b, const char *name, const char *value)
{
	as_vec_push(&b->environment, as_xasprintf("%s=%s", name, value));
}

static void on_artifact(const json_t *m, const struct as_cargo_wanted *w,
			struct as_cargo_built *ret)
{
	const char *id = json_string_value(json_object_get(m, "package_id"));
	const char *executable = json_string_value(json_object_get(m, "executable"));
	const json_t *target = json_object_get(m, "target");
	const char *name = json_string_value(json_object_get(target, "name"));
	bool test = json_is_true(json_object_get(json_object_get(m, "profile"), "test"));
	enum as_cargo_kind kind;

	if (!id || !executable || !name || strcmp(id, w->package->id) != 0 ||
	    strcmp(name, w->target->name) != 0 || !as_cargo_kind_of(target, &kind) ||
	    kind != w->target->kind)
		return;
	/* `cargo test` builds programs for its tests too, beside their own unit tests */
	if (test != (kind == AS_CARGO_TEST || kind == AS_CARGO_LIB || kind == AS_CARGO_BENCH))
		return;
	free(ret->executable);
	ret->executable = as_xstrdup(executable);
}

/* What the package's build script asked for at compile time, cargo run gives at run time too. */
void as_cargo_on_build_script(const json_t *m, const struct as_cargo_package *p,
			      struct as_cargo_built *ret)
{
	const char *id = json_string_value(json_object_get(m, "package_id"));
	const char *out_dir = json_string_value(json_object_get(m, "out_dir"));
	const json_t *pair;
	size_t at;

	if (!id || strcmp(id, p->id) != 0)
		return;
	if (out_dir)
		set(ret, "OUT_DIR", out_dir);
	json_array_foreach(json_object_get(m, "env"), at, pair)
	{
		const char *name = json_string_value(json_array_get(pair, 0));
		const char *value = json_string_value(json_array_get(pair, 1));

		if (name && value)
			set(ret, name, value);
	}
}

void as_cargo_message(const char *line, size_t n, const struct as_cargo_wanted *w,
		      struct as_cargo_built *ret)
{
	json_t *m = json_loadb(line, n, 0, NULL);
	const char *reason = json_string_value(json_object_get(m, "reason"));

	if (reason && strcmp(reason, "compiler-artifact") == 0)
		on_artifact(m, w, ret);
	else if (reason && strcmp(reason, "build-script-executed") == 0)
		as_cargo_on_build_script(m, w->package, ret);
	json_decref(m);
}

/* ---- the environment of the program ---- */

char *as_cargo_folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash > path ? as_xstrndup(path, (size_t)(slash - path))
				     : as_xstrdup("/");
}

void as_cargo_set_package(struct as_cargo_built *b, const struct as_cargo_package *p)
{
	AS_CLEANUP(as_free_autop) char *folder = as_cargo_folder_of(p->manifest_path);
	static const char *const parts[] = {"MAJOR", "MINOR", "PATCH"};
	const char *at = p->version;

	set(b, "CARGO", as_cargo_program());
	set(b, "CARGO_MANIFEST_DIR", folder);
	set(b, "CARGO_MANIFEST_PATH", p->manifest_path);
	set(b, "CARGO_PKG_NAME", p->name);
	set(b, "CARGO_PKG_VERSION", p->version);
	set(b, "CARGO_PKG_AUTHORS", p->authors);
	set(b, "CARGO_PKG_DESCRIPTION", p->description);
	set(b, "CARGO_PKG_HOMEPAGE", p->homepage);
	set(b, "CARGO_PKG_REPOSITORY", p->repository);
	set(b, "CARGO_PKG_LICENSE", p->license);
	for (size_t i = 0; i < AS_ARRAY_LEN(parts); i++) {
		size_t n = strspn(at, "0123456789");
		AS_CLEANUP(as_free_autop)
		char *name = as_xasprintf("CARGO_PKG_VERSION_%s", parts[i]);
		AS_CLEANUP(as_free_autop) char *digits = as_xstrndup(at, n);

		set(b, name, digits);
		at += n + (at[n] == '.');
	}
	const char *pre = strchr(p->version, '-');
	AS_CLEANUP(as_free_autop)
	char *only = pre ? as_xstrndup(pre + 1, strcspn(pre + 1, "+")) : as_xstrdup("");

	set(b, "CARGO_PKG_VERSION_PRE", only);
}

/* Shared objects of the build and of Rust itself, for programs that link them. */
void as_cargo_set_library_path(struct as_cargo_built *b)
{
	AS_CLEANUP(as_free_autop) char *folder = as_cargo_folder_of(b->executable);
	AS_CLEANUP(as_buf_clear) struct as_buf path = {0}, out = {0};
	const char *rustc = getenv("RUSTC"), *before = getenv("LD_LIBRARY_PATH");
	struct words w = {0};
	int status;

	as_buf_addf(&path, "%s:%s/deps", folder, folder);
	add(&w, rustc && *rustc ? rustc : "rustc");
	add(&w, "--print");
	add(&w, "sysroot");
	if (output_of(&w, &out, &status, NULL) == 0)
		as_buf_addf(&path, ":%.*s/lib", (int)strcspn(as_buf_str(&out), "\n"),
			    as_buf_str(&out));
	as_vec_clear(&w.v);
	if (before && *before)
		as_buf_addf(&path, ":%s", before);
	set(b, "LD_LIBRARY_PATH", as_buf_str(&path));
}

/* ---- the build ---- */

/* The manifest cargo would take: the one given, else the nearest from the current folder upwards. */
static char *manifest_here(const struct as_cargo_request *q)
{
	char folder[PATH_MAX];

	if (q->manifest_path)
		return realpath(q->manifest_path, NULL);
	if (!getcwd(folder, sizeof folder))
		return NULL;
	for (;;) {
		AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/Cargo.toml", folder);
		char *slash = strrchr(folder, '/');

		if (access(path, R_OK) == 0)
			return realpath(path, NULL);
		if (!slash || !folder[0])
			return NULL;
		*slash = 0;
	}
}

/* Words of q that say how dependencies are found; `cargo metadata` takes those and no others. */
static void add_offline_words(struct words *w, const struct as_cargo_request *q)
{
	static const char *const known[] = {"--offline", "--locked", "--frozen"};

	for (const char *const *p = q->words; p && *p; p++) {
		for (size_t i = 0; i < AS_ARRAY_LEN(known); i++) {
			if (strcmp(*p, known[i]) == 0)
				add(w, *p);
		}
	}
}

static int read_metadata(const struct as_cargo_request *q, struct as_cargo_metadata *ret,
			 int *ret_status, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	struct words w = {0};
	int r;

	add(&w, as_cargo_program());
	add(&w, "metadata");
	add(&w, "--no-deps");
	add_pair(&w, "--format-version", "1");
	add_pair(&w, "--manifest-path", q->manifest_path);
	add_offline_words(&w, q);
	r = output_of(&w, &out, ret_status, err);
	as_vec_clear(&w.v);
	return r < 0 ? r : as_cargo_metadata_parse(as_buf_str(&out), out.len, ret, err);
}

static void build_words(struct words *w, const struct as_cargo_request *q,
			const struct as_cargo_wanted *wanted, const char *package_spec)
{
	static const char *const verbs[AS_CARGO_KINDS_] = {"build", "build", "test", "bench",
							   "test"};
	static const char *const options[AS_CARGO_KINDS_] = {"--bin", "--example", "--test",
							     "--bench", "--lib"};
	enum as_cargo_kind kind = wanted->target->kind;

	add(w, as_cargo_program());
	add(w, verbs[kind]);
	if (kind >= AS_CARGO_TEST)
		add(w, "--no-run");
	add(w, options[kind]);
	if (kind != AS_CARGO_LIB)
		add(w, wanted->target->name);
	add_pair(w, "-p", package_spec);
	if (q->profile || kind != AS_CARGO_BENCH)
		add_pair(w, "--profile", q->profile ? q->profile : "release");
	add_pair(w, "--manifest-path", q->manifest_path);
	add(w, "--message-format=json-render-diagnostics");
	for (const char *const *p = q->words; p && *p; p++)
		add(w, *p);
}

static void read_messages(const struct as_buf *out, const struct as_cargo_wanted *w,
			  struct as_cargo_built *ret)
{
	const char *at = as_buf_str(out), *end = at + out->len;

	while (at < end) {
		size_t n = strcspn(at, "\n");

		as_cargo_message(at, n, w, ret);
		at += n + 1;
	}
}

static int build(const struct as_cargo_request *q, const struct as_cargo_wanted *wanted,
		 struct as_cargo_built *ret, int *ret_status, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	enum as_cargo_kind kind = wanted->target->kind;
	const char *profile = q->profile               ? q->profile
			      : kind == AS_CARGO_BENCH ? "bench"
						       : "release";
	/* all versions of cargo read this form */
	AS_CLEANUP(as_free_autop)
	char *spec = as_xasprintf("%s:%s", wanted->package->name, wanted->package->version);
	struct words w = {0};
	int r;

	set_profile(profile, "DEBUG", lines_and_names);
	set_profile(profile, "STRIP", "none");
	build_words(&w, q, wanted, spec);
	r = output_of(&w, &out, ret_status, err);
	as_vec_clear(&w.v);
	if (r < 0)
		return r;
	read_messages(&out, wanted, ret);
	if (!ret->executable)
		return as_fail(err, AS_E_NOTFOUND, 0,
			       "cargo built %s '%s' of %s but names no program for it",
			       as_cargo_kind_words[kind], wanted->target->name,
			       wanted->package->name);
	ret->name = as_xstrdup(wanted->target->name);
	ret->wants_bench_flag = kind == AS_CARGO_BENCH;
	if (kind >= AS_CARGO_TEST)
		ret->folder = as_cargo_folder_of(wanted->package->manifest_path);
	as_cargo_set_package(ret, wanted->package);
	as_cargo_set_library_path(ret);
	return AS_OK;
}

int as_cargo_build(const struct as_cargo_request *q, struct as_cargo_built *ret,
		   int *ret_status, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *manifest = manifest_here(q);
	struct as_cargo_metadata m = {0};
	struct as_cargo_wanted w;
	int r;

	*ret = (struct as_cargo_built){0};
	*ret_status = 0;
	r = read_metadata(q, &m, ret_status, err);
	if (r == AS_OK)
		r = as_cargo_choose(&m, q, manifest, &w.package, &w.target, err);
	if (r == AS_OK)
		r = build(q, &w, ret, ret_status, err);
	as_cargo_metadata_clear(&m);
	return r;
}

void as_cargo_built_clear(struct as_cargo_built *b)
{
	free(b->executable);
	free(b->name);
	free(b->folder);
	for (size_t i = 0; i < b->environment.n; i++)
		free(b->environment.v[i]);
	as_vec_clear(&b->environment);
}

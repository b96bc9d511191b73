/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The places a source file may be at: source.h has the order and the reasons. */
#include "code/source_priv.h"

#include <dirent.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/sys.h"

#define MAX_FOLDERS  128 /* entries of a folder that are tried */
#define MANIFEST_MAX (8u << 20)

struct where {
	const struct as_source_query *q;
	as_source_try_fn fn;
	void *ctx;
	struct as_buf *notes;
	char path[PATH_MAX];
	AS_VEC(char *) homes;
};

/* Joined without "/./" and "//"; false: too long. */
static bool join(char out[PATH_MAX], const char *a, const char *b)
{
	size_t n = 0;

	for (int part = 0; part < 2; part++) {
		const char *s = part ? b : a;

		if (part && n && out[n - 1] != '/')
			out[n++] = '/';
		for (; *s; s++) {
			if (n + 2 >= PATH_MAX)
				return false;
			if (*s == '/' && n && out[n - 1] == '/')
				continue;
			if (*s == '.' && n && out[n - 1] == '/' && s[1] == '/') {
				s++;
				continue;
			}
			out[n++] = *s;
		}
	}
	out[n] = 0;
	return n > 0;
}

static bool attempt(struct where *w, const char *root, const char *folder, const char *rest,
		    bool fixed)
{
	return join(w->path, folder, rest) && w->fn(w->ctx, root, w->path, fixed);
}

/* Crates and toolchains are unpacked once and never edited. */
static bool is_fixed(const char *path)
{
	return strstr(path, "/registry/src/") || strstr(path, "/rustlib/src/rust/") ||
	       strncmp(path, "/nix/store/", 11) == 0;
}

static bool as_it_is(struct where *w)
{
	const char *file = w->q->file, *folder = "";
	bool fixed = is_fixed(file);

	if (file[0] != '/') {
		if (!w->q->cwd || w->q->cwd[0] != '/')
			return false;
		folder = w->q->cwd;
	}
	if (w->q->root && attempt(w, w->q->root, folder, file, fixed))
		return true;
	return attempt(w, NULL, folder, file, fixed);
}

/* ---- homes ---- */

static void add_home(struct where *w, const char *home)
{
	if (!home || home[0] != '/')
		return;
	as_vec_foreach (h, &w->homes) {
		if (strcmp(*h, home) == 0)
			return;
	}
	as_vec_push(&w->homes, as_xstrdup(home));
}

/* $HOME, and that of the user behind sudo. */
static void find_homes(struct where *w)
{
	const char *user = getenv("SUDO_USER");
	struct passwd pw, *found = NULL;
	char text[4096];

	add_home(w, getenv("HOME"));
	if (user && getpwnam_r(user, &pw, text, sizeof text, &found) == 0 && found)
		add_home(w, found->pw_dir);
}

/* Calls attempt for dir/ENTRY/rest with each entry of dir whose name begins with prefix. */
static bool each_entry(struct where *w, const char *dir, const char *prefix, const char *rest,
		       bool fixed)
{
	DIR *d = opendir(dir);
	bool found = false;

	if (!d)
		return false;
	for (int i = 0; i < MAX_FOLDERS && !found; i++) {
		const struct dirent *e = readdir(d);
		char folder[PATH_MAX];

		if (!e)
			break;
		if (e->d_name[0] != '.' && strncmp(e->d_name, prefix, strlen(prefix)) == 0 &&
		    join(folder, dir, e->d_name))
			found = attempt(w, NULL, folder, rest, fixed);
	}
	closedir(d);
	return found;
}

/* ---- Rust's library ---- */

/* What follows "/library/" or "/src/" in a path of the Rust library, and the compiler's hash when
 * the path has it. NULL: it is none. */
static const char *rust_rest(const char *file, const char **ret_hash, size_t *ret_nhash)
{
	static const char prefix[] = "/rustc/", inside[] = "/rustlib/src/rust/";
	const char *p = strstr(file, inside);

	*ret_hash = NULL;
	*ret_nhash = 0;
	if (p)
		return p + sizeof inside - 1;
	if (strncmp(file, prefix, sizeof prefix - 1) != 0)
		return NULL;
	*ret_hash = file + sizeof prefix - 1;
	*ret_nhash = strcspn(*ret_hash, "/");
	p = *ret_hash + *ret_nhash;
	return *p ? p + 1 : NULL;
}

/* Whether a rustup toolchain is of that commit: its manifest names it. Unknown counts as yes, the
 * file is then checked by its age. */
static bool toolchain_has(const char *dir, const char *hash, size_t n, bool *ret_sure)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	char path[PATH_MAX];

	*ret_sure = false;
	if (n != 40 || !join(path, dir, "lib/rustlib/multirust-channel-manifest.toml") ||
	    as_read_file(path, MANIFEST_MAX, &text, NULL) < 0)
		return true;
	*ret_sure = true;
	return memmem(text.p, text.len, hash, n) != NULL;
}

static bool in_toolchain(struct where *w, const char *dir, const char *rest, const char *hash,
			 size_t nhash)
{
	char folder[PATH_MAX];
	bool sure;

	if (!join(folder, dir, "lib/rustlib/src/rust") || access(folder, F_OK) != 0) {
		/* an attempt, so that the place is told */
		return attempt(w, NULL, folder, rest, false);
	}
	if (hash && !toolchain_has(dir, hash, nhash, &sure)) {
		as_buf_addf(w->notes, "%s'%s' is another version of Rust",
			    w->notes->len ? "; " : "", dir);
		return false;
	}
	return attempt(w, NULL, folder, rest, hash ? sure : true);
}

static bool in_toolchains(struct where *w, const char *rustup, const char *rest,
			  const char *hash, size_t nhash)
{
	char dir[PATH_MAX], one[PATH_MAX];
	bool found = false;
	DIR *d;

	if (!join(dir, rustup, "toolchains"))
		return false;
	d = opendir(dir);
	for (int i = 0; d && i < MAX_FOLDERS && !found; i++) {
		const struct dirent *e = readdir(d);

		if (!e)
			break;
		if (e->d_name[0] != '.' && join(one, dir, e->d_name))
			found = in_toolchain(w, one, rest, hash, nhash);
	}
	if (d)
		closedir(d);
	return found;
}

const char *as_source_remedy(const struct as_source_query *q)
{
	const char *hash;
	size_t n;

	if (!rust_rest(q->file, &hash, &n))
		return NULL;
	return "the source of this version of Rust's library is not installed (rustup "
	       "component add rust-src)";
}

static bool rust_library(struct where *w)
{
	const char *hash, *rest, *rustup = getenv("RUSTUP_HOME");
	size_t nhash;
	char home[PATH_MAX];

	rest = rust_rest(w->q->file, &hash, &nhash);
	if (!rest)
		return false;
	if (rustup && rustup[0] == '/' && in_toolchains(w, rustup, rest, hash, nhash))
		return true;
	as_vec_foreach (h, &w->homes) {
		if (join(home, *h, ".rustup") && in_toolchains(w, home, rest, hash, nhash))
			return true;
	}
	return attempt(w, NULL, "/usr/lib/rustlib/src/rust", rest, false) ||
	       attempt(w, NULL, "/usr/local/lib/rustlib/src/rust", rest, false) ||
	       each_entry(w, "/usr/src", "rustc-", rest, false);
}

/* ---- crates ---- */

/* "crate-1.2.3/src/lib.rs" -> "crate/src/lib.rs" below the vendor folder. */
static bool vendored(struct where *w, const char *rest)
{
	size_t n = strcspn(rest, "/"), dash = n;
	char tail[PATH_MAX], folder[PATH_MAX];

	if (!w->q->cwd || !rest[n] || n + strlen(rest + n) >= sizeof tail ||
	    !join(folder, w->q->cwd, "vendor"))
		return false;
	if (attempt(w, NULL, folder, rest, false))
		return true;
	for (size_t i = 0; i + 1 < n; i++) {
		if (rest[i] == '-' && rest[i + 1] >= '0' && rest[i + 1] <= '9') {
			dash = i;
			break;
		}
	}
	memcpy(tail, rest, dash);
	memcpy(tail + dash, rest + n, strlen(rest + n) + 1);
	return attempt(w, NULL, folder, tail, false);
}

static bool in_cargo_home(struct where *w, const char *home, const char *rest, bool git)
{
	char dir[PATH_MAX];

	if (!join(dir, home, git ? "git/checkouts" : "registry/src"))
		return false;
	return git ? attempt(w, NULL, dir, rest, true) : each_entry(w, dir, "", rest, true);
}

static bool crates(struct where *w)
{
	static const char registry[] = "registry/src/", checkouts[] = "git/checkouts/";
	const char *file = w->q->file, *cargo = getenv("CARGO_HOME");
	const char *rest = strstr(file, registry);
	bool git = !rest;
	char home[PATH_MAX];

	if (rest) {
		rest = strchr(rest + sizeof registry - 1, '/'); /* behind the index's name */
		rest = rest ? rest + 1 : NULL;
	} else if ((rest = strstr(file, checkouts)) != NULL) {
		rest += sizeof checkouts - 1;
	}
	if (!rest || !*rest)
		return false;
	if (cargo && cargo[0] == '/' && in_cargo_home(w, cargo, rest, git))
		return true;
	as_vec_foreach (h, &w->homes) {
		if (join(home, *h, ".cargo") && in_cargo_home(w, home, rest, git))
			return true;
	}
	return !git && vendored(w, rest);
}

/* ---- distributions, roots ---- */

/* Behind the folder that a distribution's builder made: /build/glibc-a1B2/glibc-2.36/x.c ->
 * glibc-2.36/x.c. */
static const char *package_rest(const char *file)
{
	const char *p;

	if (strncmp(file, "/build/", 7) != 0)
		return NULL;
	p = strchr(file + 7, '/');
	return p && p[1] ? p + 1 : NULL;
}

static bool distribution(struct where *w)
{
	const char *rest = package_rest(w->q->file);

	if (w->q->file[0] == '/' && access("/usr/src/debug", F_OK) == 0 &&
	    attempt(w, NULL, "/usr/src/debug", w->q->file, false))
		return true;
	return rest && attempt(w, NULL, "/usr/src", rest, false);
}

static bool same_last(const char *root, const char *folder, size_t n)
{
	size_t end = strlen(root), at;

	while (end > 1 && root[end - 1] == '/')
		end--;
	for (at = end; at && root[at - 1] != '/'; at--)
		;
	return end - at == n && memcmp(root + at, folder, n) == 0;
}

/* The tails of the path below root, longest first. */
static bool below(struct where *w, const char *root)
{
	const char *p = w->q->file, *folder = NULL;

	while (*p == '/')
		p++;
	for (;;) {
		const char *slash = strchr(p, '/');
		bool bare = !slash;

		if ((!bare || (folder && same_last(root, folder, (size_t)(p - 1 - folder))) ||
		     !folder) &&
		    attempt(w, NULL, root, p, false))
			return true;
		if (bare)
			return false;
		folder = p;
		p = slash + 1;
	}
}

static bool roots(struct where *w)
{
	const char *const *dir = w->q->source_dirs;

	for (; dir && *dir; dir++) {
		if (below(w, *dir))
			return true;
	}
	/* Rust's library is in nobody's project */
	return !as_source_remedy(w->q) && w->q->cwd && w->q->cwd[0] == '/' &&
	       below(w, w->q->cwd);
}

bool as_source_places(const struct as_source_query *q, as_source_try_fn fn, void *ctx,
		      struct as_buf *notes)
{
	struct where w = {.q = q, .fn = fn, .ctx = ctx, .notes = notes};
	bool found;

	find_homes(&w);
	found = as_it_is(&w) || rust_library(&w) || crates(&w) || distribution(&w) || roots(&w);
	as_vec_foreach (h, &w.homes)
		free(*h);
	as_vec_clear(&w.homes);
	return found;
}

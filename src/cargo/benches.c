/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Everything `cargo bench` would run, built: see cargo.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/child.h"
#include "cargo/cargo_priv.h"

extern char **environ;

#define OUTPUT_MAX ((size_t)256 << 20)

struct argv {
	AS_VEC(const char *) v;
};

static void add(struct argv *a, const char *option, const char *value)
{
	if (!value)
		return;
	as_vec_push(&a->v, option);
	as_vec_push(&a->v, value);
}

static int call(const struct as_cargo_benches_request *q, struct argv *a, struct as_buf *out,
		int *ret_status, struct as_error *err)
{
	AS_VEC(char *) env = {0};
	struct as_child c = {0};
	int r;

	for (char **e = environ; *e; e++)
		as_vec_push(&env, *e);
	for (const char *const *e = q->environment; e && *e; e++)
		as_vec_push(&env, (char *)*e);
	as_vec_push(&env, NULL);
	as_vec_push(&a->v, NULL);
	r = as_child_run(&(struct as_child_request){.argv = a->v.v,
						    .folder = q->folder,
						    .environment = env.v,
						    .output_max = OUTPUT_MAX,
						    .pass_errors = true,
						    .held = q->held,
						    .interrupted = q->interrupted},
			 &c, err);
	as_vec_clear(&env);
	if (r == AS_E_NOTFOUND)
		r = as_fail(err, AS_E_NOTFOUND, 0,
			    "cannot run '%s'\n  it comes with Rust: apt install cargo, or "
			    "https://rustup.rs",
			    a->v.v[0]);
	if (r == AS_OK && c.stopped)
		r = as_fail(err, AS_E_CANCELLED, 0, "interrupted");
	if (r == AS_OK && c.wait_status) {
		*ret_status = WIFSIGNALED(c.wait_status) ? 128 + WTERMSIG(c.wait_status)
							 : WEXITSTATUS(c.wait_status);
		r = as_fail(err, AS_E_IO, 0, "cargo %s ended with status %d", a->v.v[1],
			    *ret_status);
	}
	if (r == AS_OK)
		as_buf_add(out, c.out.p, c.out.len);
	as_child_clear(&c);
	return r;
}

static int read_metadata(const struct as_cargo_benches_request *q,
			 struct as_cargo_metadata *ret, int *ret_status, struct as_error *err)
{
	static const char *const known[] = {"--offline", "--locked", "--frozen"};
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	struct argv a = {0};
	int r;

	as_vec_push(&a.v, as_cargo_program());
	as_vec_push(&a.v, "metadata");
	as_vec_push(&a.v, "--no-deps");
	add(&a, "--format-version", "1");
	add(&a, "--manifest-path", q->manifest_path);
	for (const char *const *w = q->words; w && *w; w++) {
		for (size_t i = 0; i < AS_ARRAY_LEN(known); i++) {
			if (strcmp(*w, known[i]) == 0)
				as_vec_push(&a.v, *w);
		}
	}
	r = call(q, &a, &out, ret_status, err);
	as_vec_clear(&a.v);
	return r < 0 ? r : as_cargo_metadata_parse(as_buf_str(&out), out.len, ret, err);
}

static int build(const struct as_cargo_benches_request *q, struct as_buf *out, int *ret_status,
		 struct as_error *err)
{
	struct argv a = {0};
	int r;

	as_vec_push(&a.v, as_cargo_program());
	as_vec_push(&a.v, "bench");
	as_vec_push(&a.v, "--no-run");
	as_vec_push(&a.v, "--message-format=json-render-diagnostics");
	if (q->workspace)
		as_vec_push(&a.v, "--workspace");
	add(&a, "-p", q->package);
	add(&a, "--bench", q->bench);
	add(&a, "--profile", q->profile);
	add(&a, "--manifest-path", q->manifest_path);
	add(&a, "--target-dir", q->target_dir);
	for (const char *const *w = q->words; w && *w; w++)
		as_vec_push(&a.v, *w);
	r = call(q, &a, out, ret_status, err);
	as_vec_clear(&a.v);
	return r;
}

/* ---- messages ---- */

static const struct as_cargo_package *package_of(const struct as_cargo_metadata *m,
						 const char *id)
{
	for (size_t i = 0; id && i < m->packages.n; i++) {
		if (strcmp(m->packages.v[i].id, id) == 0)
			return &m->packages.v[i];
	}
	return NULL;
}

static void on_artifact(const struct as_cargo_metadata *meta, const json_t *m,
			struct as_cargo_benches *ret)
{
	const struct as_cargo_package *p =
		package_of(meta, json_string_value(json_object_get(m, "package_id")));
	const char *executable = json_string_value(json_object_get(m, "executable"));
	const json_t *target = json_object_get(m, "target");
	const char *name = json_string_value(json_object_get(target, "name"));
	struct as_cargo_bench b = {0};

	/* Programs of the package that benches may start are built too; those are not run. */
	if (!p || !executable || !name ||
	    !json_is_true(json_object_get(json_object_get(m, "profile"), "test")) ||
	    !as_cargo_kind_of(target, &b.kind))
		return;
	b.package = as_xstrdup(p->name);
	b.target = as_xstrdup(name);
	b.built.executable = as_xstrdup(executable);
	b.built.name = as_xstrdup(name);
	b.built.folder = as_cargo_folder_of(p->manifest_path);
	b.built.wants_bench_flag = true;
	as_cargo_set_package(&b.built, p);
	as_cargo_set_library_path(&b.built);
	as_vec_push(&ret->v, b);
}

static void on_build_script(const struct as_cargo_metadata *meta, const json_t *m,
			    struct as_cargo_benches *ret)
{
	const struct as_cargo_package *p =
		package_of(meta, json_string_value(json_object_get(m, "package_id")));

	for (size_t i = 0; p && i < ret->v.n; i++) {
		if (strcmp(ret->v.v[i].package, p->name) == 0)
			as_cargo_on_build_script(m, p, &ret->v.v[i].built);
	}
}

static void read_messages(const struct as_cargo_metadata *meta, const struct as_buf *out,
			  struct as_cargo_benches *ret)
{
	static const char *const reasons[] = {"compiler-artifact", "build-script-executed"};
	const char *start = as_buf_str(out), *end = start + out->len;

	/* First the programs, then what build scripts say of them. */
	for (int pass = 0; pass < 2; pass++) {
		for (const char *at = start; at < end;) {
			size_t n = strcspn(at, "\n");
			json_t *m = json_loadb(at, n, 0, NULL);
			const char *reason = json_string_value(json_object_get(m, "reason"));

			if (reason && strcmp(reason, reasons[pass]) == 0)
				(pass ? on_build_script : on_artifact)(meta, m, ret);
			json_decref(m);
			at += n + 1;
		}
	}
}

/* The order of the files' names: cargo reports in the order the compilers end. */
static int by_name(const void *a, const void *b)
{
	const struct as_cargo_bench *x = a, *y = b;
	int d = strcmp(x->package, y->package);

	if (d == 0)
		d = (x->kind != AS_CARGO_LIB) - (y->kind != AS_CARGO_LIB);
	return d ? d : strcmp(x->target, y->target);
}

int as_cargo_build_benches(const struct as_cargo_benches_request *q,
			   struct as_cargo_benches *ret, int *ret_status, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf out = {0};
	struct as_cargo_metadata meta = {0};
	int r;

	*ret = (struct as_cargo_benches){0};
	*ret_status = 0;
	r = read_metadata(q, &meta, ret_status, err);
	if (r == AS_OK)
		r = build(q, &out, ret_status, err);
	if (r == AS_OK)
		read_messages(&meta, &out, ret);
	if (ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof *ret->v.v, by_name);
	as_cargo_metadata_clear(&meta);
	return r;
}

static bool is_within(const char *folder, const char *top)
{
	size_t n = strlen(top);

	return strncmp(folder, top, n) == 0 && (folder[n] == '/' || !folder[n]);
}

bool as_cargo_outside(const struct as_cargo_benches_request *q, const char *top,
		      struct as_buf *out)
{
	struct as_cargo_metadata meta = {0};
	bool found = false;
	int status = 0;

	if (read_metadata(q, &meta, &status, NULL) == AS_OK) {
		as_vec_foreach (package, &meta.packages) {
			as_vec_foreach (path, &package->paths) {
				AS_CLEANUP(as_free_autop)
				char *real = realpath(path->folder, NULL);

				if (found || is_within(real ? real : path->folder, top))
					continue;
				as_buf_addf(out, "%s' from '%s", path->name, path->folder);
				found = true;
			}
		}
	}
	as_cargo_metadata_clear(&meta);
	return found;
}

void as_cargo_benches_clear(struct as_cargo_benches *b)
{
	for (size_t i = 0; i < b->v.n; i++) {
		as_cargo_built_clear(&b->v.v[i].built);
		free(b->v.v[i].package);
		free(b->v.v[i].target);
	}
	as_vec_clear(&b->v);
}

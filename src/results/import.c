/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Whose results a file holds, and folders: see import.h. */
#include "results/import.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "results/import_priv.h"
#include "results/result_priv.h"

#define ENTRIES_MAX 100000 /* of a folder */

/* ---- pieces ---- */

double as_import_number(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

char *as_import_string(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? as_xstrdup(s) : NULL;
}

double as_import_unit(const char *s, size_t n)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"\302\265s", 1e-6}, {"\316\274s", 1e-6},
		     {"ms", 1e-3}, {"s", 1},     {"ps", 1e-12}};

	for (size_t i = 0; i < AS_ARRAY_LEN(units); i++) {
		if (strlen(units[i].name) == n && memcmp(units[i].name, s, n) == 0)
			return units[i].seconds;
	}
	return 0;
}

void as_import_one_process(struct as_bench_set *s, const char *tool)
{
	as_bench_note(
		&s->notes, "one-process",
		"%s measures in one process: how processes differ is not in these intervals",
		tool);
}

/* ---- folders ---- */

struct entry {
	char *name;
	bool is_folder;
};

static int by_name(const void *pa, const void *pb)
{
	return strcmp(((const struct entry *)pa)->name, ((const struct entry *)pb)->name);
}

/* Links are not followed: a folder may hold a link to itself. */
static bool is_folder(const char *path, const char *name)
{
	AS_CLEANUP(as_free_autop) char *full = as_xasprintf("%s/%s", path, name);
	struct stat st;

	return lstat(full, &st) == 0 && S_ISDIR(st.st_mode);
}

int as_import_folder(const char *path, int (*each)(const char *name, bool is_folder, void *ctx),
		     void *ctx, struct as_error *err)
{
	AS_VEC(struct entry) all = {0};
	DIR *d = opendir(path);
	int r = AS_OK;

	if (!d)
		return as_fail(err, AS_E_IO, errno, "cannot read the folder '%s': %s", path,
			       strerror(errno));
	for (struct dirent *e = readdir(d); e && all.n < ENTRIES_MAX; e = readdir(d)) {
		if (e->d_name[0] != '.')
			as_vec_push(&all, (struct entry){as_xstrdup(e->d_name),
							 is_folder(path, e->d_name)});
	}
	closedir(d);
	if (all.n)
		qsort(all.v, all.n, sizeof *all.v, by_name);
	as_vec_foreach (e, &all) {
		if (r == AS_OK)
			r = each(e->name, e->is_folder, ctx);
		free(e->name);
	}
	as_vec_clear(&all);
	return r;
}

struct summaries {
	const char *path;
	struct as_bench_set *set;
	int depth;
	size_t found;
	struct as_error *err;
};

static int find_summaries(const char *name, bool folder, void *ctx)
{
	struct summaries *w = ctx;
	AS_CLEANUP(as_free_autop) char *full = as_xasprintf("%s/%s", w->path, name);
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	struct as_error why = {0};
	json_t *root;
	int r;

	if (folder && w->depth < AS_IMPORT_DEPTH) {
		struct summaries below = *w;

		below.path = full;
		below.depth++;
		r = as_import_folder(full, find_summaries, &below, w->err);
		w->found = below.found;
		return r;
	}
	if (folder || strcmp(name, "summary.json") != 0)
		return AS_OK;
	r = as_read_file(full, AS_BENCH_FILE_MAX, &text, &why);
	root = r == AS_OK ? json_loadb(text.p, text.len, AS_IMPORT_JSON, NULL) : NULL;
	if (r == AS_OK && !root)
		r = as_fail(&why, AS_E_FORMAT, 0, "'%s' is no JSON", full);
	if (r == AS_OK)
		r = as_import_gungraun(full, root, w->set, &why);
	json_decref(root);
	if (r < 0)
		as_bench_note(&w->set->notes, "skipped", "left out: %s", why.msg);
	w->found++;
	return AS_OK;
}

static int import_folder(const char *path, const char *baseline, struct as_bench_set *ret,
			 struct as_error *err)
{
	struct summaries w = {.path = path, .set = ret, .err = err};
	bool found = false;
	int r = as_import_criterion_home(path, baseline, ret, &found, err);

	if (r < 0 || found)
		return r;
	r = as_import_folder(path, find_summaries, &w, err);
	if (r == AS_OK && !w.found)
		r = as_fail(err, AS_E_NOTFOUND, 0,
			    "the folder '%s' holds no results: neither criterion's "
			    "(…/new/estimates.json) nor gungraun's (summary.json)",
			    path);
	return r;
}

/* ---- files ---- */

static int import_json(const char *what, const json_t *root, struct as_bench_set *ret,
		       struct as_error *err)
{
	if (json_object_get(root, "results"))
		return as_import_hyperfine(what, root, ret, err);
	if (json_object_get(root, "context") && json_object_get(root, "benchmarks"))
		return as_import_google(what, root, ret, err);
	if (json_object_get(root, "module_path"))
		return as_import_gungraun(what, root, ret, err);
	return as_fail(err, AS_E_FORMAT, 0,
		       "'%s' is JSON of no kind known here: assay bench --json, hyperfine "
		       "--export-json, Google Benchmark --benchmark_out, gungraun's summary",
		       what);
}

/* Several documents one after the other, as gungraun prints them. */
static int import_documents(const char *what, const char *p, size_t n, struct as_bench_set *ret,
			    struct as_error *err)
{
	json_error_t why;
	int r = AS_OK;

	for (size_t at = 0; r == AS_OK && at < n;) {
		json_t *root = json_loadb(p + at, n - at,
					  AS_IMPORT_JSON | JSON_DISABLE_EOF_CHECK, &why);

		if (!root)
			return as_fail(err, AS_E_FORMAT, 0, "'%s' is no JSON: line %d: %s",
				       what, why.line, why.text);
		r = import_json(what, root, ret, err);
		json_decref(root);
		at += (size_t)AS_MAX(why.position, 1);
		while (at < n && strchr(" \t\r\n", p[at]) && p[at])
			at++;
		if (ret->benches.n > AS_BENCH_BENCHES_MAX)
			r = as_fail(err, AS_E_LIMIT, 0, "'%s' holds more than %u benchmarks",
				    what, AS_BENCH_BENCHES_MAX);
	}
	return r;
}

static bool says_ours(const char *p, size_t n)
{
	return memmem(p, AS_MIN(n, (size_t)4096), "\"" AS_BENCH_SCHEMA_STEM,
		      strlen("\"" AS_BENCH_SCHEMA_STEM)) != NULL;
}

int as_bench_import_text(const char *what, const char *p, size_t n, struct as_bench_set *ret,
			 struct as_error *err)
{
	size_t at = 0;
	int r;

	*ret = (struct as_bench_set){0};
	while (at < n && p[at] && strchr(" \t\r\n", p[at]))
		at++;
	if (at == n)
		return as_fail(err, AS_E_FORMAT, 0, "'%s' is empty", what);
	if (p[at] == '{' && says_ours(p, n))
		return as_bench_read(what, p, n, ret, err);
	r = p[at] == '{' || p[at] == '[' ? import_documents(what, p, n, ret, err)
					 : as_import_lines(what, p, n, ret, err);
	if (r < 0)
		as_bench_set_clear(ret);
	return r;
}

int as_bench_import(const char *path, const char *baseline, struct as_bench_set *ret,
		    struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	struct stat st;
	int r;

	*ret = (struct as_bench_set){0};
	if (stat(path, &st) < 0)
		return as_fail(err, errno == ENOENT ? AS_E_NOTFOUND : AS_E_IO, errno,
			       "cannot open '%s': %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode)) {
		r = import_folder(path, baseline, ret, err);
		if (r < 0)
			as_bench_set_clear(ret);
		return r;
	}
	if (baseline)
		return as_fail(
			err, AS_E_USAGE, 0,
			"'%s' is a file: only criterion's folders have baselines such as "
			"'%s'",
			path, baseline);
	r = as_read_file(path, AS_BENCH_FILE_MAX, &text, err);
	if (r == AS_OK)
		r = as_bench_import_text(path, as_buf_str(&text), text.len, ret, err);
	if (r == AS_OK && !ret->time_s)
		ret->time_s = (uint64_t)AS_MAX(st.st_mtime, 0);
	return r;
}

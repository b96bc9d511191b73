/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Folders of results as criterion writes them: docs/formats/criterion-files.md. A folder is written
 * under a temporary name and then exchanged with the old one, so that a reader sees one run or the
 * other; the benchmark's folder is locked meanwhile, so that `new` and a baseline are of one run.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/sys.h"
#include "harness/criterion/criterion_priv.h"

#define FILE_DIGITS 15

struct file {
	const char *name;
	struct as_buf text;
};
enum { BENCHMARK, ESTIMATES, SAMPLE, TUKEY, OWN, RAW, FILES };

int as_criterion_make_folders(const char *path, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *copy = as_xstrdup(path);

	for (char *p = copy + 1;; p++) {
		if (*p && *p != '/')
			continue;

		char saved = *p;

		*p = '\0';
		if (mkdir(copy, 0777) < 0 && errno != EEXIST) {
			int e = errno;

			if (access(copy, X_OK) < 0)
				return as_fail(err, AS_E_IO, e, "cannot create folder '%s': %s",
					       copy, strerror(e));
		}
		if (!saved)
			return AS_OK;
		*p = saved;
	}
}

static void remove_folder(const char *path)
{
	DIR *d = opendir(path);

	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d)) != NULL;)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			(void)unlinkat(dirfd(d), e->d_name, 0); /* rmdir tells */
	(void)closedir(d);                                      /* only read */
	(void)rmdir(path);
}

/* ---- texts ---- */

static void add_estimate(struct as_json *j, const char *key,
			 const struct as_criterion_estimate *e, double confidence)
{
	if (isnan(e->value)) {
		as_json_null(j, key);
		return;
	}
	as_json_obj(j, key);
	as_json_obj(j, "confidence_interval");
	as_json_num(j, "confidence_level", confidence, FILE_DIGITS);
	as_json_num(j, "lower_bound", e->low, FILE_DIGITS);
	as_json_num(j, "upper_bound", e->high, FILE_DIGITS);
	as_json_end(j);
	as_json_num(j, "point_estimate", e->value, FILE_DIGITS);
	as_json_num(j, "standard_error", e->se, FILE_DIGITS);
	as_json_end(j);
}

static void add_text(struct as_json *j, const char *key, const char *s)
{
	if (s)
		as_json_str(j, key, s);
	else
		as_json_null(j, key);
}

static void benchmark_text(struct as_buf *out, const struct as_criterion_record *r)
{
	static const char *const kinds[] = {NULL, "Bytes", "Elements", "BytesDecimal", "Bits"};
	struct as_json j = {.out = out};

	as_json_obj(&j, NULL);
	as_json_str(&j, "group_id", r->group);
	add_text(&j, "function_id", r->function);
	add_text(&j, "value_str", r->value);
	if (r->throughput == ASSAY_THROUGHPUT_ELEMENTS_AND_BYTES) {
		as_json_obj(&j, "throughput");
		as_json_obj(&j, "ElementsAndBytes");
		as_json_u64(&j, "elements", r->n);
		as_json_u64(&j, "bytes", r->n2);
		as_json_end(&j);
		as_json_end(&j);
	} else if (r->throughput > 0 && r->throughput < (int)AS_ARRAY_LEN(kinds)) {
		as_json_obj(&j, "throughput");
		as_json_u64(&j, kinds[r->throughput], r->n);
		as_json_end(&j);
	} else {
		as_json_null(&j, "throughput");
	}
	as_json_str(&j, "full_id", r->id->full);
	as_json_str(&j, "directory_name", r->id->folder);
	as_json_str(&j, "title", r->id->title);
	as_json_end(&j);
}

static void estimates_text(struct as_buf *out, const struct as_criterion_record *r)
{
	const struct as_criterion_estimates *e = &r->est;
	struct as_json j = {.out = out};

	as_json_obj(&j, NULL);
	add_estimate(&j, "mean", &e->mean, e->confidence);
	add_estimate(&j, "median", &e->median, e->confidence);
	add_estimate(&j, "median_abs_dev", &e->mad, e->confidence);
	add_estimate(&j, "slope", &e->slope, e->confidence);
	add_estimate(&j, "std_dev", &e->sd, e->confidence);
	add_estimate(&j, "low_quartile", &e->low_quartile, e->confidence);
	as_json_end(&j);
}

static void sample_text(struct as_buf *out, const struct as_criterion_record *r)
{
	struct as_json j = {.out = out};

	as_json_obj(&j, NULL);
	as_json_str(&j, "sampling_mode", "Flat");
	as_json_arr(&j, "iters");
	for (size_t i = 0; i < r->n_batches; i++)
		as_json_num(&j, NULL, r->iters, FILE_DIGITS);
	as_json_end(&j);
	as_json_arr(&j, "times");
	for (size_t i = 0; i < r->n_batches; i++)
		as_json_num(&j, NULL, r->batches[i] * r->iters, FILE_DIGITS);
	as_json_end(&j);
	as_json_end(&j);
}

static void tukey_text(struct as_buf *out, const struct as_criterion_record *r)
{
	struct as_json j = {.out = out};

	as_json_arr(&j, NULL);
	for (int i = 0; i < 4; i++)
		as_json_num(&j, NULL, r->est.fences[i], FILE_DIGITS);
	as_json_end(&j);
}

static uint64_t checksum(const struct as_buf *estimates, const struct as_buf *sample)
{
	uint64_t both[] = {as_hash64(as_buf_str(estimates), estimates->len),
			   as_hash64(as_buf_str(sample), sample->len)};

	return as_hash64(both, sizeof both);
}

static void own_text(struct as_buf *out, const struct as_criterion_record *r, uint64_t sum)
{
	struct as_json j = {.out = out};
	char hex[17];

	(void)snprintf(hex, sizeof hex, "%016llx", (unsigned long long)sum);
	as_json_obj(&j, NULL);
	as_json_str(&j, "schema", "assay.criterion/1");
	as_json_str(&j, "unit", r->unit);
	add_text(&j, "program", r->program);
	add_text(&j, "machine", r->machine);
	as_json_str(&j, "checksum", hex);
	as_json_end(&j);
}

static void csv_field(struct as_buf *out, const char *s)
{
	bool quote = s && strpbrk(s, ",\"\n\r") != NULL;

	if (quote)
		as_buf_addc(out, '"');
	for (; s && *s; s++) {
		if (*s == '"')
			as_buf_addc(out, '"');
		as_buf_addc(out, *s);
	}
	as_buf_adds(out, quote ? "\"," : ",");
}

static void raw_text(struct as_buf *out, const struct as_criterion_record *r)
{
	static const char *const kinds[] = {"",      "bytes", "elements",
					    "bytes", "bits",  "elements"};

	as_buf_adds(out,
		    "group,function,value,throughput_num,throughput_type,sample_measured_value,"
		    "unit,iteration_count\n");
	for (size_t i = 0; i < r->n_batches; i++) {
		csv_field(out, r->group);
		csv_field(out, r->function);
		csv_field(out, r->value);
		if (r->throughput)
			as_buf_addf(out, "%llu", (unsigned long long)r->n);
		as_buf_addf(out, ",%s,%.15g,%s,%.0f\n",
			    kinds[(size_t)r->throughput % AS_ARRAY_LEN(kinds)],
			    r->batches[i] * r->iters, r->unit, r->iters);
	}
}

/* ---- writing ---- */

static int write_one(int folder, const char *name, const struct as_buf *text,
		     struct as_error *err)
{
	AS_CLEANUP(as_close_autop)
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0)
		return as_fail(err, AS_E_IO, errno, "cannot write '%s': %s", name,
			       strerror(errno));
	return as_write_all(fd, as_buf_str(text), text->len, err);
}

static int into_place(const char *temporary, const char *path, struct as_error *err)
{
	if (rename(temporary, path) == 0)
		return AS_OK;
	if (errno == ENOTEMPTY || errno == EEXIST) {
		if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_EXCHANGE) == 0) {
			remove_folder(temporary); /* the old one by now */
			return AS_OK;
		}
		/* A file system without exchange: for a moment there is none. */
		remove_folder(path);
		if (rename(temporary, path) == 0)
			return AS_OK;
	}
	return as_fail(err, AS_E_IO, errno, "cannot replace '%s': %s", path, strerror(errno));
}

static int write_folder(const char *path, const struct file *files, size_t n,
			struct as_error *err)
{
	AS_CLEANUP(as_free_autop)
	char *temporary = as_xasprintf("%s.%d.tmp", path, (int)getpid());
	AS_CLEANUP(as_close_autop) int fd = -1;
	int r = AS_OK;

	remove_folder(temporary); /* of a run that was ended and had our number */
	if (mkdir(temporary, 0777) < 0 ||
	    (fd = open(temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return as_fail(err, AS_E_IO, errno, "cannot create '%s': %s", temporary,
			       strerror(errno));
	for (size_t i = 0; i < n && r == AS_OK; i++)
		if (files[i].text.len)
			r = write_one(fd, files[i].name, &files[i].text, err);
	if (r == AS_OK)
		r = into_place(temporary, path, err);
	if (r < 0)
		remove_folder(temporary);
	return r;
}

/* The benchmark's folder, made and locked; -1. */
static int lock_folder(const char *path, struct as_error *err)
{
	int fd;

	if (as_criterion_make_folders(path, err) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		(void)as_fail(err, AS_E_IO, errno, "cannot open '%s': %s", path,
			      strerror(errno));
		return -1;
	}
	while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
		;
	return fd; /* without locks (some network file systems) the exchange alone must do */
}

int as_criterion_write(const char *home, const struct as_criterion_record *r,
		       const char *const *names, size_t n_names, struct as_error *err)
{
	struct file files[FILES] = {{.name = "benchmark.json"}, {.name = "estimates.json"},
				    {.name = "sample.json"},    {.name = "tukey.json"},
				    {.name = "assay.json"},     {.name = "raw.csv"}};
	AS_CLEANUP(as_free_autop) char *folder = as_xasprintf("%s/%s", home, r->id->folder);
	AS_CLEANUP(as_close_autop) int fd = lock_folder(folder, err);
	int status = fd < 0 ? AS_E_IO : AS_OK;

	benchmark_text(&files[BENCHMARK].text, r);
	estimates_text(&files[ESTIMATES].text, r);
	sample_text(&files[SAMPLE].text, r);
	tukey_text(&files[TUKEY].text, r);
	own_text(&files[OWN].text, r, checksum(&files[ESTIMATES].text, &files[SAMPLE].text));
	if (r->csv)
		raw_text(&files[RAW].text, r);
	for (size_t i = 0; i < n_names && status == AS_OK; i++) {
		AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s", folder, names[i]);

		status = write_folder(path, files, FILES, err);
	}
	for (size_t i = 0; i < FILES; i++)
		as_buf_clear(&files[i].text);
	return status;
}

int as_criterion_write_change(const char *home, const struct as_criterion_id *id,
			      const struct as_criterion_change *c, struct as_error *err)
{
	struct file file = {.name = "estimates.json"};
	AS_CLEANUP(as_free_autop) char *folder = as_xasprintf("%s/%s", home, id->folder);
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/change", folder);
	AS_CLEANUP(as_close_autop) int fd = lock_folder(folder, err);
	struct as_json j = {.out = &file.text};
	int r = AS_E_IO;

	as_json_obj(&j, NULL);
	add_estimate(&j, "mean", &c->mean, c->confidence);
	add_estimate(&j, "median", &c->median, c->confidence);
	add_estimate(&j, "low_quartile", &c->low_quartile, c->confidence);
	as_json_str(&j, "verdict", as_verdict_name(c->verdict));
	as_json_str(&j, "baseline", c->baseline);
	as_json_u64(&j, "pairs", c->pairs);
	as_json_end(&j);
	if (fd >= 0)
		r = write_folder(path, &file, 1, err);
	as_buf_clear(&file.text);
	return r;
}

void as_criterion_remove_change(const char *home, const struct as_criterion_id *id)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s/change", home, id->folder);

	remove_folder(path);
}

/* ---- reading ---- */

#define FILE_BYTES_MAX (64u << 20)

static bool read_part(const char *folder, const char *name, struct as_buf *out,
		      uint64_t *ret_time)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s", folder, name);
	struct stat st;

	if (as_read_file(path, FILE_BYTES_MAX, out, NULL) < 0)
		return false;
	if (ret_time && stat(path, &st) == 0)
		*ret_time = (uint64_t)st.st_mtim.tv_sec;
	return true;
}

static double figure(const struct as_buf *t, const char *path, const char *old)
{
	double v;

	if (as_criterion_json_number(as_buf_str(t), t->len, path, &v) ||
	    (old && as_criterion_json_number(as_buf_str(t), t->len, old, &v)))
		return v;
	return NAN;
}

static char *text_at(const struct as_buf *t, const char *path)
{
	struct as_buf s = {0};

	if (as_criterion_json_text(as_buf_str(t), t->len, path, &s))
		return as_buf_detach(&s);
	as_buf_clear(&s);
	return NULL;
}

static bool read_samples(const struct as_buf *t, struct as_criterion_stored *ret)
{
	const char *s = as_buf_str(t);
	bool old = as_criterion_json_numbers(s, t->len, "[0]", &ret->iters) &&
		   as_criterion_json_numbers(s, t->len, "[1]", &ret->times);

	if (old)
		return ret->iters.n == ret->times.n;
	ret->iters.n = ret->times.n = 0;
	return as_criterion_json_numbers(s, t->len, "iters", &ret->iters) &&
	       as_criterion_json_numbers(s, t->len, "times", &ret->times) &&
	       ret->iters.n == ret->times.n;
}

static void read_work(const struct as_buf *id, struct as_criterion_stored *ret)
{
	static const struct {
		const char *path;
		int kind;
	} kinds[] = {{"throughput.Bytes", ASSAY_THROUGHPUT_BYTES},
		     {"throughput.Elements", ASSAY_THROUGHPUT_ELEMENTS},
		     {"throughput.BytesDecimal", ASSAY_THROUGHPUT_BYTES_DECIMAL},
		     {"throughput.Bits", ASSAY_THROUGHPUT_BITS}};

	for (size_t i = 0; i < AS_ARRAY_LEN(kinds); i++)
		if (as_criterion_json_number(as_buf_str(id), id->len, kinds[i].path,
					     &ret->work))
			ret->throughput = kinds[i].kind;
}

static void read_own(const struct as_buf *own, uint64_t sum, struct as_criterion_stored *ret)
{
	AS_CLEANUP(as_free_autop) char *said = text_at(own, "checksum");
	char hex[17];

	(void)snprintf(hex, sizeof hex, "%016llx", (unsigned long long)sum);
	ret->program = text_at(own, "program");
	ret->machine = text_at(own, "machine");
	ret->own = said != NULL && !isnan(ret->low_quartile);
	ret->edited = said && strcmp(said, hex) != 0;
}

int as_criterion_load(const char *home, const char *folder, const char *name, bool samples,
		      struct as_criterion_stored *ret, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s/%s", home, folder, name);
	AS_CLEANUP(as_buf_clear)
	struct as_buf estimates = {0}, sample = {0}, own = {0}, id = {0};

	*ret = (struct as_criterion_stored){.mean = NAN, .low_quartile = NAN, .sd = NAN};
	if (read_part(path, "benchmark.json", &id, NULL)) {
		ret->full_id = text_at(&id, "full_id");
		read_work(&id, ret);
	}
	if (!read_part(path, "estimates.json", &estimates, &ret->time_s))
		return AS_OK;
	ret->mean = figure(&estimates, "mean.point_estimate", "Mean.point_estimate");
	ret->sd = figure(&estimates, "std_dev.point_estimate", "StdDev.point_estimate");
	ret->low_quartile = figure(&estimates, "low_quartile.point_estimate", NULL);
	if (isnan(ret->mean))
		return as_fail(
			err, AS_E_FORMAT, 0,
			"'%s/estimates.json' is damaged: it has no mean; remove that folder "
			"or save the baseline again",
			path);
	(void)read_part(path, "sample.json", &sample, NULL); /* its absence is told below */
	if (read_part(path, "assay.json", &own, NULL))
		read_own(&own, checksum(&estimates, &sample), ret);
	if (samples && (!read_samples(&sample, ret) || ret->iters.n == 0))
		return as_fail(
			err, AS_E_FORMAT, 0,
			"'%s/sample.json' is damaged: it has no lists of iterations and times "
			"of equal length; save the baseline again",
			path);
	ret->found = true;
	return AS_OK;
}

void as_criterion_stored_clear(struct as_criterion_stored *s)
{
	free(s->program);
	free(s->machine);
	free(s->full_id);
	as_vec_clear(&s->iters);
	as_vec_clear(&s->times);
	*s = (struct as_criterion_stored){0};
}

struct search {
	const char *name;
	struct as_buf *others;
	bool found;
};

static bool is_listed(const struct as_buf *others, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = as_buf_str(others); (p = strstr(p, name)) != NULL; p += n)
		if ((p == others->p || p[-1] == ' ') && (p[n] == '\0' || p[n] == ','))
			return true;
	return false;
}

static void search_folder(struct search *s, const char *path, int depth)
{
	static const char *const not [] = {"new", "change", "report"};
	const char *name = strrchr(path, '/') + 1;
	AS_CLEANUP(as_free_autop) char *estimates = as_xasprintf("%s/estimates.json", path);
	bool baseline = access(estimates, F_OK) == 0;
	DIR *d;

	for (size_t i = 0; i < AS_ARRAY_LEN(not ); i++)
		if (strcmp(name, not [i]) == 0)
			return;
	if (baseline) {
		s->found |= strcmp(name, s->name) == 0;
		if (!is_listed(s->others, name))
			as_buf_addf(s->others, "%s%s", s->others->len ? ", " : "", name);
		return;
	}
	d = depth > AS_CRITERION_DEPTH_MAX ? NULL : opendir(path);
	for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
		AS_CLEANUP(as_free_autop) char *below = as_xasprintf("%s/%s", path, e->d_name);

		if (e->d_name[0] != '.' && (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN))
			search_folder(s, below, depth + 1);
	}
	if (d)
		(void)closedir(d); /* only read */
}

bool as_criterion_baseline_exists(const char *home, const char *name, struct as_buf *others)
{
	struct search s = {.name = name, .others = others};
	AS_CLEANUP(as_free_autop)
	char *path = as_xasprintf("%s%s", strchr(home, '/') ? "" : "./", home);

	search_folder(&s, path, 0);
	return s.found;
}

/* ---- where ---- */

static bool has_file(const char *folder, const char *name)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s", folder, name);

	return access(path, F_OK) == 0;
}

/* Cut to the folder above; false at the root. */
static bool up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return false;
	*slash = '\0';
	return true;
}

/* cargo marks its target folder, and the one of a --target triple within it, with CACHEDIR.TAG. */
static char *target_folder(void)
{
	char exe[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

	if (n <= 0)
		return NULL;
	exe[n] = '\0';
	for (int level = 0; level < AS_CRITERION_DEPTH_MAX && up(exe); level++) {
		if (!has_file(exe, "CACHEDIR.TAG"))
			continue;

		char *inner = as_xstrdup(exe);

		if (up(exe) && has_file(exe, "CACHEDIR.TAG")) {
			free(inner);
			return as_xstrdup(exe);
		}
		return inner;
	}
	return NULL;
}

char *as_criterion_home(void)
{
	const char *home = getenv("CRITERION_HOME"), *target = getenv("CARGO_TARGET_DIR");
	AS_CLEANUP(as_free_autop) char *found = NULL;

	if (home && *home)
		return as_xstrdup(home);
	/* A relative one was meant from where cargo was called; this program runs elsewhere. */
	if (target && target[0] == '/')
		return as_xasprintf("%s/criterion", target);
	found = target_folder();
	return as_xasprintf("%s/criterion", found               ? found
					    : target && *target ? target
								: "./target");
}

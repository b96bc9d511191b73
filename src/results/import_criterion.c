/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * criterion's folders: <home>/<group>[/<function>][/<value>]/<baseline>/{benchmark,estimates,sample}.json.
 * Until 0.3.3 the estimates' keys were capitalised and sample.json was a list of two lists. report and
 * change are no baselines. The estimate is criterion's own: the slope where there is one, else the
 * mean.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "results/import_priv.h"

#define NS          1e-9
#define BASELINES   64
#define SAMPLES_MAX 1000000

/* ---- one benchmark ---- */

/* The new key, else the old one. */
static const json_t *either(const json_t *o, const char *now, const char *once)
{
	const json_t *v = json_object_get(o, now);

	return v ? v : json_object_get(o, once);
}

static bool read_estimate(const json_t *o, struct as_bench_estimate *ret)
{
	const json_t *interval = json_object_get(o, "confidence_interval");
	double v = as_import_number(o, "point_estimate");

	if (isnan(v))
		return false;
	*ret = (struct as_bench_estimate){v * NS,
					  as_import_number(interval, "lower_bound") * NS,
					  as_import_number(interval, "upper_bound") * NS};
	return true;
}

static void read_samples(const json_t *root, struct as_bench *b)
{
	const json_t *iters = json_object_get(root, "iters"),
		     *times = json_object_get(root, "times");
	size_t n;

	if (json_is_array(root)) {
		iters = json_array_get(root, 0);
		times = json_array_get(root, 1);
	}
	n = AS_MIN(json_array_size(iters), json_array_size(times));
	for (size_t i = 0; i < n && i < SAMPLES_MAX; i++) {
		double k = json_number_value(json_array_get(iters, i));
		double t = json_number_value(json_array_get(times, i));

		if (!(k > 0))
			continue;
		as_vec_push(&b->batch_times, t * NS / k);
		b->min = fmin(isnan(b->min) ? INFINITY : b->min, t * NS / k);
		b->max = fmax(isnan(b->max) ? -INFINITY : b->max, t * NS / k);
	}
	b->batches = b->batch_times.n;
}

static uint64_t whole(const json_t *v)
{
	double x = json_is_number(v) ? json_number_value(v) : 0;

	return x > 0 && x < 1.8e19 ? (uint64_t)x : 0;
}

static void read_throughput(const json_t *o, struct as_bench *b)
{
	static const struct {
		const char *key;
		enum as_bench_throughput kind;
	} kinds[] = {{"Bytes", AS_THRPT_BYTES},
		     {"Elements", AS_THRPT_ELEMENTS},
		     {"BytesDecimal", AS_THRPT_BYTES_DECIMAL},
		     {"Bits", AS_THRPT_BITS}};
	const json_t *both = json_object_get(o, "ElementsAndBytes");

	for (size_t i = 0; i < AS_ARRAY_LEN(kinds); i++) {
		const json_t *v = json_object_get(o, kinds[i].key);

		if (!v)
			continue;
		b->throughput = kinds[i].kind;
		b->throughput_n = whole(v);
	}
	if (!both)
		return;
	b->throughput = AS_THRPT_ELEMENTS_AND_BYTES;
	b->throughput_n = whole(json_object_get(both, "elements"));
	b->throughput_n2 = whole(json_object_get(both, "bytes"));
}

static void read_names(const char *id, const json_t *o, struct as_bench *b)
{
	b->name = as_import_string(o, "full_id");
	b->group = as_import_string(o, "group_id");
	b->function = as_import_string(o, "function_id");
	b->value = as_import_string(o, "value_str");
	if (!b->name)
		b->name = as_xstrdup(id);
	read_throughput(json_object_get(o, "throughput"), b);
}

static json_t *load(const struct as_buf *text)
{
	return text->len ? json_loadb(text->p, text->len, AS_IMPORT_JSON, NULL) : NULL;
}

static int read_estimates(const char *id, const json_t *o, struct as_bench *b,
			  struct as_error *err)
{
	struct as_bench_estimate mean = {NAN, NAN, NAN}, slope, other;

	if (!read_estimate(either(o, "mean", "Mean"), &mean))
		return as_fail(err, AS_E_FORMAT, 0, "estimates.json of '%s' has no mean", id);
	b->mean = mean.value;
	b->time = read_estimate(either(o, "slope", "Slope"), &slope) ? slope : mean;
	if (read_estimate(either(o, "median", "Median"), &other))
		b->median = other.value;
	if (read_estimate(either(o, "std_dev", "StdDev"), &other))
		b->sd = other.value;
	return AS_OK;
}

int as_import_criterion(const char *id, const struct as_criterion_files *files,
			struct as_bench *ret, struct as_error *err)
{
	json_t *benchmark = load(&files->benchmark), *sample = load(&files->sample);
	json_t *estimates = load(&files->estimates);
	int r;

	as_bench_init(ret);
	ret->kind = AS_BENCH_FUNCTION;
	ret->unit = as_xstrdup("s");
	ret->metric = as_xstrdup("time");
	ret->processes = 1;
	if (files->benchmark.len && !json_is_object(benchmark))
		r = as_fail(err, AS_E_FORMAT, 0, "benchmark.json of '%s' is damaged", id);
	else if (!json_is_object(estimates))
		r = as_fail(err, AS_E_FORMAT, 0, "estimates.json of '%s' is damaged", id);
	else
		r = read_estimates(id, estimates, ret, err);
	if (r == AS_OK) {
		read_names(id, benchmark, ret);
		read_samples(sample, ret);
	}
	json_decref(benchmark);
	json_decref(sample);
	json_decref(estimates);
	if (r < 0)
		as_bench_clear(ret);
	return r;
}

/* ---- all of a home ---- */

struct walk {
	const char *home, *path; /* of the folder looked at */
	const char *baseline;
	int depth;
	struct as_bench_set *set;
	char *seen[BASELINES]; /* names of the baselines there are */
	size_t seen_n;
	struct as_error *err;
};

static void see(struct walk *w, const char *name)
{
	for (size_t i = 0; i < w->seen_n; i++) {
		if (strcmp(w->seen[i], name) == 0)
			return;
	}
	if (w->seen_n < BASELINES)
		w->seen[w->seen_n++] = as_xstrdup(name);
}

static int read_one(const char *folder, const char *name, struct as_buf *ret,
		    struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s", folder, name);

	return as_read_file(path, AS_BENCH_FILE_MAX, ret, err);
}

static void add_folder(struct walk *w, const char *folder)
{
	struct as_criterion_files files = {0};
	struct as_error why = {0};
	const char *id = w->path + strlen(w->home);
	struct as_bench b;
	int r = read_one(folder, "estimates.json", &files.estimates, &why);

	id += strspn(id, "/");
	/* without the other two it is still a result */
	(void)read_one(folder, "benchmark.json", &files.benchmark, NULL);
	(void)read_one(folder, "sample.json", &files.sample, NULL);
	if (r == AS_OK)
		r = as_import_criterion(id, &files, &b, &why);
	if (r < 0)
		as_bench_note(&w->set->notes, "skipped", "left out: %s", why.msg);
	else
		as_vec_push(&w->set->benches, b);
	as_buf_clear(&files.benchmark);
	as_buf_clear(&files.estimates);
	as_buf_clear(&files.sample);
}

static int visit(const char *name, bool is_folder, void *ctx)
{
	struct walk *w = ctx;
	AS_CLEANUP(as_free_autop) char *full = as_xasprintf("%s/%s", w->path, name);
	AS_CLEANUP(as_free_autop) char *estimates = as_xasprintf("%s/estimates.json", full);
	const char *path = w->path;
	int r;

	if (!is_folder || strcmp(name, "report") == 0 || strcmp(name, "change") == 0)
		return AS_OK;
	if (access(estimates, F_OK) == 0) {
		see(w, name);
		if (w->set->benches.n < AS_BENCH_BENCHES_MAX && w->baseline &&
		    strcmp(name, w->baseline) == 0)
			add_folder(w, full);
		return AS_OK;
	}
	if (w->depth >= AS_IMPORT_DEPTH)
		return AS_OK;
	w->path = full;
	w->depth++;
	r = as_import_folder(full, visit, w, w->err);
	w->depth--;
	w->path = path;
	return r;
}

static bool has(const struct walk *w, const char *name)
{
	for (size_t i = 0; i < w->seen_n; i++) {
		if (strcmp(w->seen[i], name) == 0)
			return true;
	}
	return false;
}

static int no_such_baseline(const struct walk *w, const char *name, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf names = {0};

	for (size_t i = 0; i < w->seen_n && i < 10; i++) {
		as_buf_adds(&names, i ? ", '" : "'");
		as_fmt_quoted(&names, w->seen[i], strnlen(w->seen[i], 60));
		as_buf_addc(&names, '\'');
	}
	return as_fail(err, AS_E_NOTFOUND, 0, "'%s' has no baseline '%s'; there are %s",
		       w->home, name, as_buf_str(&names));
}

int as_import_criterion_home(const char *home, const char *baseline, struct as_bench_set *ret,
			     bool *ret_found, struct as_error *err)
{
	struct walk w = {.home = home,
			 .path = home,
			 .baseline = baseline ? baseline : "new",
			 .set = ret,
			 .err = err};
	int r = as_import_folder(home, visit, &w, err);
	AS_CLEANUP(as_free_autop) char *only = w.seen_n == 1 ? as_xstrdup(w.seen[0]) : NULL;

	if (r == AS_OK && !baseline && only && !has(&w, "new")) {
		w.baseline = only;
		r = as_import_folder(home, visit, &w, err);
	}
	*ret_found = w.seen_n > 0;
	if (r == AS_OK && w.seen_n && !has(&w, w.baseline))
		r = no_such_baseline(&w, w.baseline, err);
	if (r == AS_OK && w.seen_n) {
		ret->tool = as_xstrdup("criterion");
		as_import_one_process(ret, "criterion");
	}
	for (size_t i = 0; i < w.seen_n; i++)
		free(w.seen[i]);
	return r;
}

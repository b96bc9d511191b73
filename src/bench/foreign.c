/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Other harnesses asked in their own words: see foreign.h. */
#include "bench/foreign.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <jansson.h>

#include "base/child.h"
#include "base/folder.h"
#include "base/sys.h"

extern char **environ;

#define LIST_TIMEOUT_S 60
#define TIMEOUT_S      120
#define FILE_MAX       (16u << 20)
#define DEPTH_MAX      8

const char *const as_foreign_names[AS_FOREIGN_KINDS_] = {"unknown", "libtest", "criterion"};

/* ---- calling ---- */

struct call {
	AS_VEC(const char *) words;
	AS_VEC(char *) made; /* texts that words holds */
};

static void word(struct call *c, const char *text)
{
	as_vec_push(&c->words, text);
}

static void pair(struct call *c, const char *option, double value, bool whole)
{
	char *text = whole ? as_xasprintf("%.0f", AS_MAX(1, ceil(value)))
			   : as_xasprintf("%.3f", value);

	as_vec_push(&c->made, text);
	word(c, option);
	word(c, text);
}

static void clear_call(struct call *c)
{
	for (size_t i = 0; i < c->made.n; i++)
		free(c->made.v[i]);
	as_vec_clear(&c->made);
	as_vec_clear(&c->words);
}

static int run(const struct as_foreign *f, struct call *c, double timeout_s,
	       struct as_child *ret, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *home = as_xasprintf("CRITERION_HOME=%s", f->home);
	static char plain[] = "NO_COLOR=1", no_port[] = "CARGO_CRITERION_PORT";
	AS_VEC(char *) env = {0};
	int r;

	for (char *const *e = f->environment ? f->environment : environ; *e; e++) {
		if (strncmp(*e, no_port, sizeof no_port - 1) != 0 &&
		    strncmp(*e, "CRITERION_HOME=", 15) != 0)
			as_vec_push(&env, *e);
	}
	as_vec_push(&env, home);
	as_vec_push(&env, plain);
	as_vec_push(&env, NULL);
	word(c, NULL);
	r = as_child_run(&(struct as_child_request){.argv = c->words.v,
						    .folder = f->folder,
						    .environment = env.v,
						    .timeout_s = timeout_s,
						    .interrupted = f->interrupted},
			 ret, err);
	as_vec_clear(&env);
	if (r == AS_OK && ret->stopped)
		r = as_fail(err, AS_E_CANCELLED, 0, "interrupted");
	return r;
}

static int failed(const struct as_child *c, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf said = {0};

	as_child_ended(c, &said);
	as_child_last_words(c->errors.len ? &c->errors : &c->out, 4, &said);
	return as_fail(err, AS_E_IO, 0, "it ended with %s", as_buf_str(&said));
}

/* ---- what there is ---- */

static bool ends_with(const char *line, size_t n, const char *end)
{
	size_t m = strlen(end);

	return n >= m && memcmp(line + n - m, end, m) == 0;
}

/* "3 tests, 2 benchmarks": what only libtest ends with. */
static bool is_libtest_tally(const char *line, size_t n)
{
	size_t d = strspn(line, "0123456789");

	return d && d < n &&
	       (strncmp(line + d, " test, ", 7) == 0 ||
		strncmp(line + d, " tests, ", 8) == 0) &&
	       (ends_with(line, n, " benchmarks") || ends_with(line, n, " benchmark"));
}

struct listing {
	struct as_foreign_ids *ids;
	bool tally;
};

static void list_line(struct listing *l, const char *line, size_t n)
{
	static const char *const ends[] = {": benchmark", ": bench"};
	if (is_libtest_tally(line, n))
		l->tally = true;

	for (size_t i = 0; i < AS_ARRAY_LEN(ends); i++) {
		if (ends_with(line, n, ends[i])) {
			as_vec_push(&l->ids->v, as_xstrndup(line, n - strlen(ends[i])));
			return;
		}
	}
}

static enum as_foreign_kind read_list(const struct as_buf *out, struct as_foreign_ids *ret)
{
	struct listing l = {.ids = ret};

	for (const char *at = as_buf_str(out); *at;) {
		size_t n = strcspn(at, "\n");

		list_line(&l, at, n);
		at += n + (at[n] == '\n');
	}
	return l.tally    ? AS_FOREIGN_LIBTEST
	       : ret->v.n ? AS_FOREIGN_CRITERION
			  : AS_FOREIGN_UNKNOWN;
}

int as_foreign_list(struct as_foreign *f, struct as_foreign_ids *ret, struct as_error *err)
{
	struct call c = {0};
	struct as_child child = {0};
	int r;

	*ret = (struct as_foreign_ids){0};
	word(&c, f->exe);
	word(&c, "--bench");
	word(&c, "--list");
	r = run(f, &c, LIST_TIMEOUT_S, &child, err);
	if (r == AS_OK && (child.wait_status || child.timed_out))
		r = failed(&child, err);
	if (r == AS_OK)
		f->kind = read_list(&child.out, ret);
	if (r == AS_OK && f->kind == AS_FOREIGN_UNKNOWN && child.out.len)
		r = as_fail(
			err, AS_E_FORMAT, 0,
			"it answers '--bench --list' in no way that is known here (libtest, "
			"criterion, assay)");
	clear_call(&c);
	as_child_clear(&child);
	return r;
}

void as_foreign_ids_clear(struct as_foreign_ids *ids)
{
	for (size_t i = 0; i < ids->v.n; i++)
		free(ids->v.v[i]);
	as_vec_clear(&ids->v);
}

/* ---- texts ---- */

/* "1,234.5" */
static bool number(const char *text, size_t n, double *ret, size_t *ret_used)
{
	AS_CLEANUP(as_buf_clear) struct as_buf digits = {0};
	size_t i;

	for (i = 0;
	     i < n && ((text[i] >= '0' && text[i] <= '9') || text[i] == '.' || text[i] == ',');
	     i++) {
		if (text[i] != ',')
			as_buf_addc(&digits, text[i]);
	}
	*ret_used = i;
	return digits.len && as_parse_double(as_buf_str(&digits), ret);
}

bool as_foreign_bencher_line(const char *line, size_t n, const char *id, double *ret_ns)
{
	static const char begin[] = "test ", mark[] = "bench:", unit[] = " ns/iter";
	AS_CLEANUP(as_free_autop) char *text = as_xstrndup(line, n);
	size_t m = strlen(id), used;
	char *at;

	if (strncmp(text, begin, sizeof begin - 1) != 0 ||
	    strncmp(text + sizeof begin - 1, id, m) != 0 || text[sizeof begin - 1 + m] != ' ')
		return false;
	at = strstr(text + sizeof begin - 1 + m, mark);
	if (!at)
		return false;
	at += sizeof mark - 1;
	at += strspn(at, " ");
	return number(at, strlen(at), ret_ns, &used) &&
	       strncmp(at + used, unit, sizeof unit - 1) == 0;
}

/* ---- criterion ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double quantile(const double *sorted, size_t n, double q)
{
	double at = q * (double)(n - 1);
	size_t i = (size_t)at;

	return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i])
			 : sorted[n - 1];
}

static bool from_batches(struct as_foreign_sample *s)
{
	AS_CLEANUP(as_free_autop) double *sorted = NULL;
	size_t n = s->batches.n;

	if (!n)
		return false;
	sorted = as_xreallocarray(NULL, n, sizeof *sorted);
	memcpy(sorted, s->batches.v, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, by_value);
	s->value = quantile(sorted, n, 0.25);
	s->median = quantile(sorted, n, 0.5);
	s->min = sorted[0];
	s->max = sorted[n - 1];
	return s->value > 0;
}

/* {"iters":[…],"times":[…]}; before 0.3.3 [[iters],[times]]. */
static bool read_samples(const json_t *root, struct as_foreign_sample *ret)
{
	const json_t *iters =
		json_is_array(root) ? json_array_get(root, 0) : json_object_get(root, "iters");
	const json_t *times =
		json_is_array(root) ? json_array_get(root, 1) : json_object_get(root, "times");
	size_t n = json_array_size(times);

	for (size_t i = 0; i < n && i < json_array_size(iters); i++) {
		double k = json_number_value(json_array_get(iters, i));
		double t = json_number_value(json_array_get(times, i));

		if (k > 0 && t >= 0)
			as_vec_push(&ret->batches, t / k);
	}
	return from_batches(ret);
}

static void read_throughput(const json_t *about, struct as_foreign_sample *ret)
{
	static const char *const keys[AS_THRPT_COUNT_] = {
		NULL, "Bytes", "Elements", "BytesDecimal", "Bits", "ElementsAndBytes"};
	const json_t *t = json_object_get(about, "throughput");

	for (int k = 1; k < AS_THRPT_COUNT_; k++) {
		const json_t *v = json_object_get(t, keys[k]);

		if (!v)
			continue;
		ret->throughput = (enum as_bench_throughput)k;
		ret->throughput_n = json_number_value(
			json_is_object(v) ? json_object_get(v, "elements") : v);
		ret->throughput_n2 = json_number_value(json_object_get(v, "bytes"));
	}
}

static bool read_benchmark(const char *folder, const char *id, struct as_foreign_sample *ret)
{
	AS_CLEANUP(as_free_autop) char *about_path = as_xasprintf("%s/benchmark.json", folder);
	AS_CLEANUP(as_free_autop) char *sample_path = as_xasprintf("%s/sample.json", folder);
	json_t *about = json_load_file(about_path, 0, NULL);
	json_t *sample = json_load_file(sample_path, 0, NULL);
	const char *full = json_string_value(json_object_get(about, "full_id"));
	bool found = full && strcmp(full, id) == 0 && sample && read_samples(sample, ret);

	if (found)
		read_throughput(about, ret);
	json_decref(about);
	json_decref(sample);
	return found;
}

/* …/new/ of the benchmark, somewhere below folder. */
static bool find_benchmark(const char *folder, const char *id, int depth,
			   struct as_foreign_sample *ret)
{
	DIR *d = depth < DEPTH_MAX ? opendir(folder) : NULL;
	bool found = false;

	for (struct dirent *e; d && !found && (e = readdir(d));) {
		AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s", folder, e->d_name);
		struct stat st;

		if (e->d_name[0] == '.' || lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		found = (strcmp(e->d_name, "new") == 0 && read_benchmark(path, id, ret)) ||
			find_benchmark(path, id, depth + 1, ret);
	}
	if (d)
		closedir(d);
	return found;
}

/* ^id$ as a regular expression */
static char *exactly(const char *id)
{
	struct as_buf b = {0};

	as_buf_addc(&b, '^');
	for (const char *p = id; *p; p++) {
		if (strchr("\\.+*?()|[]{}^$#&-~", *p))
			as_buf_addc(&b, '\\');
		as_buf_addc(&b, *p);
	}
	as_buf_addc(&b, '$');
	return as_buf_detach(&b);
}

static void criterion_words(const struct as_foreign *f, struct call *c, const char *id,
			    double measure_s)
{
	char *filter = exactly(id);

	as_vec_push(&c->made, filter);
	word(c, f->exe);
	word(c, "--bench");
	word(c, "--noplot");
	pair(c, "--warm-up-time", measure_s / 2, f->whole_seconds);
	pair(c, "--measurement-time", measure_s, f->whole_seconds);
	word(c, "--sample-size");
	word(c, "10"); /* the least it takes */
	word(c, "--nresamples");
	word(c, "1001"); /* its analysis is not used; fewer make it warn */
	word(c, filter);
}

static int sample_criterion(struct as_foreign *f, const char *id, double measure_s,
			    struct as_foreign_sample *ret, struct as_error *err)
{
	int r = AS_OK;

	for (int tries = 0; tries < 2; tries++) {
		struct call c = {0};
		struct as_child child = {0};
		bool again;

		criterion_words(f, &c, id, measure_s);
		as_folder_remove(f->home);
		r = run(f, &c, f->timeout_s > 0 ? f->timeout_s : TIMEOUT_S, &child, err);
		ret->seconds += child.seconds;
		/* Whole seconds only, until 0.4: it refuses at once, before it measures. */
		again = r == AS_OK && child.wait_status && !child.timed_out &&
			!f->whole_seconds;
		if (r == AS_OK && (child.wait_status || child.timed_out))
			r = failed(&child, err);
		else if (r == AS_OK && !find_benchmark(f->home, id, 0, ret))
			r = as_fail(err, AS_E_FORMAT, 0,
				    "it was run, but wrote no samples of this benchmark to "
				    "CRITERION_HOME");
		as_child_clear(&child);
		clear_call(&c);
		if (!again)
			break;
		f->whole_seconds = true;
	}
	return r;
}

/* ---- libtest ---- */

static int sample_libtest(struct as_foreign *f, const char *id, struct as_foreign_sample *ret,
			  struct as_error *err)
{
	struct call c = {0};
	struct as_child child = {0};
	bool found = false;
	int r;

	word(&c, f->exe);
	word(&c, "--bench");
	word(&c, "--exact");
	word(&c, id);
	r = run(f, &c, f->timeout_s > 0 ? f->timeout_s : TIMEOUT_S, &child, err);
	if (r == AS_OK && (child.wait_status || child.timed_out))
		r = failed(&child, err);
	for (const char *at = as_buf_str(&child.out); r == AS_OK && *at && !found;) {
		size_t n = strcspn(at, "\n");

		found = as_foreign_bencher_line(at, n, id, &ret->value);
		at += n + (at[n] == '\n');
	}
	if (r == AS_OK && !found)
		r = as_fail(err, AS_E_FORMAT, 0, "it was run, but printed no time of it");
	ret->median = ret->min = ret->max = ret->value;
	ret->seconds = child.seconds;
	as_child_clear(&child);
	clear_call(&c);
	return r;
}

int as_foreign_sample(struct as_foreign *f, const char *id, double measure_s,
		      struct as_foreign_sample *ret, struct as_error *err)
{
	*ret = (struct as_foreign_sample){0};
	switch (f->kind) {
	case AS_FOREIGN_CRITERION:
		return sample_criterion(f, id, measure_s, ret, err);
	case AS_FOREIGN_LIBTEST:
		return sample_libtest(f, id, ret, err);
	default:
		return as_fail(err, AS_E_FORMAT, 0, "it is of no known harness");
	}
}

void as_foreign_sample_clear(struct as_foreign_sample *s)
{
	as_vec_clear(&s->batches);
}

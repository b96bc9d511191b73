/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results in shapes of others: see export.h. */
#include "results/export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/sys.h"

#define NS       1e9
#define PART_MAX 64 /* bytes of a folder's name, as criterion has it */

/* A name that is unique where a bench has sides. */
static char *full_name(const struct as_bench *b)
{
	return b->side ? as_xasprintf("%s (%s)", b->name ? b->name : "", b->side)
		       : as_xstrdup(b->name ? b->name : "");
}

void as_bench_github(const struct as_bench_set *s, struct as_buf *out)
{
	struct as_json j = {.out = out, .indent = true};

	as_json_arr(&j, NULL);
	as_vec_foreach (b, &s->benches) {
		AS_CLEANUP(as_free_autop) char *name = full_name(b);
		bool time = b->unit && strcmp(b->unit, "s") == 0;
		double half = (b->time.high - b->time.low) / 2 * (time ? NS : 1);

		if (!isfinite(b->time.value))
			continue;
		as_json_obj(&j, NULL);
		as_json_str(&j, "name", name);
		as_json_str(&j, "unit", time ? "ns/iter" : b->unit ? b->unit : "");
		as_json_num(&j, "value", b->time.value * (time ? NS : 1), 9);
		if (isfinite(half)) {
			AS_CLEANUP(as_free_autop) char *range = as_xasprintf("± %.6g", half);

			as_json_str(&j, "range", range);
		}
		as_json_end(&j);
	}
	as_json_end(&j);
	as_buf_addc(out, '\n');
}

/* ---- OpenMetrics ---- */

static void label(struct as_buf *out, const char *name, const char *value)
{
	AS_CLEANUP(as_buf_clear) struct as_buf clean = {0};

	if (!value)
		return;
	as_fmt_utf8(&clean, value, strlen(value));
	as_buf_addf(out, "%s%s=\"", out->p[out->len - 1] == '{' ? "" : ",", name);
	for (const char *p = as_buf_str(&clean); *p; p++) {
		if (*p == '\n')
			as_buf_adds(out, "\\n");
		else if (*p == '"' || *p == '\\')
			as_buf_addf(out, "\\%c", *p);
		else
			as_buf_addc(out, *p);
	}
	as_buf_addc(out, '"');
}

static void gauge(struct as_buf *out, const char *metric, const struct as_bench *b,
		  const char *bound, double v)
{
	if (!isfinite(v))
		return;
	as_buf_addf(out, "%s{", metric);
	label(out, "name", b->name);
	label(out, "side", b->side);
	label(out, "metric", b->metric);
	label(out, "unit", strcmp(metric, "assay_bench_value") == 0 ? b->unit : NULL);
	label(out, "bound", bound);
	as_buf_addf(out, "} %.9g\n", v);
}

static void gauges(const struct as_bench_set *s, bool times, struct as_buf *out)
{
	const char *metric = times ? "assay_bench_seconds" : "assay_bench_value";
	bool begun = false;

	as_vec_foreach (b, &s->benches) {
		if ((b->unit && strcmp(b->unit, "s") == 0) != times)
			continue;
		if (!begun && times)
			as_buf_addf(out, "# TYPE %s gauge\n# UNIT %s seconds\n", metric,
				    metric);
		else if (!begun)
			as_buf_addf(out, "# TYPE %s gauge\n", metric);
		begun = true;
		gauge(out, metric, b, "estimate", b->time.value);
		gauge(out, metric, b, "low", b->time.low);
		gauge(out, metric, b, "high", b->time.high);
	}
}

void as_bench_openmetrics(const struct as_bench_set *s, struct as_buf *out)
{
	gauges(s, true, out);
	gauges(s, false, out);
	as_buf_adds(out, "# EOF\n");
}

/* ---- criterion's folders ---- */

static void estimate(struct as_json *j, const char *key, double v, double low, double high)
{
	double l = isfinite(low) ? low : v, h = isfinite(high) ? high : v;

	as_json_obj(j, key);
	as_json_obj(j, "confidence_interval");
	as_json_num(j, "confidence_level", 0.95, 3);
	as_json_num(j, "lower_bound", l * NS, 12);
	as_json_num(j, "upper_bound", h * NS, 12);
	as_json_end(j);
	as_json_num(j, "point_estimate", v * NS, 12);
	as_json_num(j, "standard_error", (h - l) / 2 / 1.96 * NS, 12);
	as_json_end(j);
}

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

static double median_of(double *v, size_t n)
{
	if (!n)
		return NAN;
	qsort(v, n, sizeof *v, by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static double deviation(const struct as_bench *b)
{
	AS_CLEANUP(as_free_autop)
	double *d = as_xreallocarray(NULL, b->samples.n + 1, sizeof *d);

	for (size_t i = 0; i < b->samples.n; i++)
		d[i] = fabs(b->samples.v[i] - b->median);
	return b->samples.n ? 1.4826 * median_of(d, b->samples.n) : 0;
}

static void estimates_json(const struct as_bench *b, struct as_buf *out)
{
	struct as_json j = {.out = out};
	double median = isnan(b->median) ? b->time.value : b->median;
	double sd = isnan(b->sd) ? 0 : b->sd, mad = deviation(b);

	as_json_obj(&j, NULL);
	estimate(&j, "mean", b->time.value, b->time.low, b->time.high);
	estimate(&j, "median", median, median, median);
	estimate(&j, "median_abs_dev", mad, mad, mad);
	as_json_null(&j, "slope");
	estimate(&j, "std_dev", sd, sd, sd);
	as_json_end(&j);
}

static void sample_json(const struct as_bench *b, struct as_buf *out)
{
	struct as_json j = {.out = out};
	double n = b->iterations ? (double)b->iterations : 1;

	as_json_obj(&j, NULL);
	as_json_str(&j, "sampling_mode", "Flat");
	as_json_arr(&j, "iters");
	as_vec_foreach (v, &b->samples)
		as_json_num(&j, NULL, n, 17);
	as_json_end(&j);
	as_json_arr(&j, "times");
	as_vec_foreach (v, &b->samples)
		as_json_num(&j, NULL, *v * n * NS, 12);
	as_json_end(&j);
	as_json_end(&j);
}

/* Quartiles less and plus 1.5 and 3 times their distance, as criterion interpolates them. */
static void tukey_json(const struct as_bench *b, struct as_buf *out)
{
	static const double fences[] = {-3, -1.5, 1.5, 3};
	AS_CLEANUP(as_free_autop)
	double *v = as_xreallocarray(NULL, b->samples.n + 1, sizeof *v);
	struct as_json j = {.out = out};
	double q[2] = {b->time.value, b->time.value};
	size_t n = b->samples.n;

	for (size_t i = 0; i < n; i++)
		v[i] = b->samples.v[i];
	if (n)
		qsort(v, n, sizeof *v, by_value);
	for (int i = 0; n && i < 2; i++) {
		double at = (i ? 0.75 : 0.25) * (double)(n - 1);
		size_t low = (size_t)at;

		q[i] = v[low] + (at - (double)low) * (v[AS_MIN(low + 1, n - 1)] - v[low]);
	}
	as_json_arr(&j, NULL);
	for (size_t i = 0; i < AS_ARRAY_LEN(fences); i++)
		as_json_num(&j, NULL, (q[i / 2] + fences[i] * (q[1] - q[0])) * NS, 12);
	as_json_end(&j);
}

static void text_or_null(struct as_json *j, const char *key, const char *s)
{
	if (s)
		as_json_str(j, key, s);
	else
		as_json_null(j, key);
}

static void throughput_json(struct as_json *j, const struct as_bench *b)
{
	static const char *const keys[AS_THRPT_COUNT_] = {
		NULL, "Bytes", "Elements", "BytesDecimal", "Bits", "ElementsAndBytes"};

	if (b->throughput == AS_THRPT_NONE) {
		as_json_null(j, "throughput");
		return;
	}
	as_json_obj(j, "throughput");
	if (b->throughput == AS_THRPT_ELEMENTS_AND_BYTES) {
		as_json_obj(j, keys[b->throughput]);
		as_json_u64(j, "elements", b->throughput_n);
		as_json_u64(j, "bytes", b->throughput_n2);
		as_json_end(j);
	} else {
		as_json_u64(j, keys[b->throughput], b->throughput_n);
	}
	as_json_end(j);
}

static void benchmark_json(const struct as_bench *b, const char *name, const char *folder,
			   struct as_buf *out)
{
	struct as_json j = {.out = out};

	as_json_obj(&j, NULL);
	as_json_str(&j, "group_id", b->group ? b->group : name);
	text_or_null(&j, "function_id", b->function);
	text_or_null(&j, "value_str", b->value);
	throughput_json(&j, b);
	as_json_str(&j, "full_id", name);
	as_json_str(&j, "directory_name", folder);
	as_json_str(&j, "title", name);
	as_json_end(&j);
}

/* One part of a path: no separators, nothing a file system refuses, not "." or "..", at most 64 bytes
 * cut between characters. */
static void add_part(struct as_buf *out, const char *text)
{
	size_t n = strlen(text), at = out->len;

	if (n > PART_MAX) {
		for (n = PART_MAX; n && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
			;
	}
	for (size_t i = 0; i < n; i++)
		as_buf_addc(out, strchr("?\"/\\*<>:|^", text[i]) || (unsigned char)text[i] < 32
					 ? '_'
					 : text[i]);
	if (out->len == at || strcmp(out->p + at, ".") == 0 || strcmp(out->p + at, "..") == 0)
		as_buf_addc(out, '_');
}

static char *folder_of(const struct as_bench *b, const char *name)
{
	struct as_buf out = {0};

	if (!b->group || b->side) {
		add_part(&out, name);
		return as_buf_detach(&out);
	}
	add_part(&out, b->group);
	if (b->function) {
		as_buf_addc(&out, '/');
		add_part(&out, b->function);
	}
	if (b->value) {
		as_buf_addc(&out, '/');
		add_part(&out, b->value);
	}
	return as_buf_detach(&out);
}

static int write_one(const char *folder, const char *file, const struct as_buf *text,
		     struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *path = as_xasprintf("%s/%s", folder, file);

	return as_write_file_atomic(path, as_buf_str(text), text->len, err);
}

static int export_bench(const struct as_bench *b, const char *home, const char *baseline,
			struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *name = full_name(b);
	AS_CLEANUP(as_free_autop) char *below = folder_of(b, name);
	AS_CLEANUP(as_free_autop)
	char *folder = as_xasprintf("%s/%s/%s", home, below, baseline);
	AS_CLEANUP(as_buf_clear)
	struct as_buf benchmark = {0}, estimates = {0}, sample = {0}, tukey = {0};
	int r = as_mkdir_parents(folder, err);

	benchmark_json(b, name, below, &benchmark);
	estimates_json(b, &estimates);
	sample_json(b, &sample);
	if (r == AS_OK)
		r = write_one(folder, "benchmark.json", &benchmark, err);
	if (r == AS_OK)
		r = write_one(folder, "sample.json", &sample, err);
	tukey_json(b, &tukey);
	if (r == AS_OK)
		r = write_one(folder, "tukey.json", &tukey, err);
	return r == AS_OK ? write_one(folder, "estimates.json", &estimates, err) : r;
}

int as_bench_export_criterion(const struct as_bench_set *s, const char *home,
			      const char *baseline, struct as_error *err)
{
	size_t n = 0;
	int r = AS_OK;

	if (!*baseline || strchr(baseline, '/') || *baseline == '.' ||
	    strcmp(baseline, "change") == 0 || strcmp(baseline, "report") == 0)
		return as_fail(err, AS_E_USAGE, 0, "'%s' cannot be the name of a baseline",
			       baseline);
	as_vec_foreach (b, &s->benches) {
		if (r < 0 || !b->unit || strcmp(b->unit, "s") != 0 || !(b->time.value > 0))
			continue;
		r = export_bench(b, home, baseline, err);
		n++;
	}
	if (r == AS_OK && !n)
		r = as_fail(err, AS_E_NOTFOUND, 0,
			    "nothing to write below '%s': no benchmark has a time", home);
	return r;
}

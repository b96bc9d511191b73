/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Google Benchmark --benchmark_format=json, 1.4 to 1.9. Repetitions of one name are its samples; where
 * only aggregates were written, those are taken. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/map.h"
#include "results/import_priv.h"

struct reading {
	const char *what;
	struct as_bench_set *set;
	struct as_intern names; /* id: of the bench, counted from `first` */
	size_t first;
	struct as_error *err;
};

static struct as_bench *bench_of(struct reading *r, const char *name)
{
	size_t at = r->first + as_intern_str(&r->names, name);
	struct as_bench b;

	if (at < r->set->benches.n)
		return &r->set->benches.v[at];
	as_bench_init(&b);
	b.kind = AS_BENCH_FUNCTION;
	b.name = as_xstrdup(name);
	b.unit = as_xstrdup("s");
	b.metric = as_xstrdup("time");
	as_vec_push(&r->set->benches, b);
	return &r->set->benches.v[at];
}

static double unit_of(const json_t *row)
{
	const char *unit = json_string_value(json_object_get(row, "time_unit"));

	return unit ? as_import_unit(unit, strlen(unit)) : 1e-9;
}

/* Rates are of CPU time there; per iteration they are counts. */
static void add_rates(const json_t *row, double cpu_s, struct as_bench *b)
{
	double bytes = as_import_number(row, "bytes_per_second") * cpu_s;
	double items = as_import_number(row, "items_per_second") * cpu_s;

	if (b->throughput != AS_THRPT_NONE || !(bytes < 1e18 || items < 1e18))
		return;
	if (bytes >= 0.5 && items >= 0.5) {
		b->throughput = AS_THRPT_ELEMENTS_AND_BYTES;
		b->throughput_n = (uint64_t)llround(items);
		b->throughput_n2 = (uint64_t)llround(bytes);
	} else if (bytes >= 0.5 || items >= 0.5) {
		b->throughput = bytes >= 0.5 ? AS_THRPT_BYTES : AS_THRPT_ELEMENTS;
		b->throughput_n = (uint64_t)llround(bytes >= 0.5 ? bytes : items);
	}
}

static int add_iteration(struct reading *r, const json_t *row, const char *name)
{
	struct as_bench *b = bench_of(r, name);
	double by = unit_of(row), real = as_import_number(row, "real_time") * by;
	double cpu = as_import_number(row, "cpu_time") * by;
	double iterations = as_import_number(row, "iterations");
	const char *why = json_string_value(json_object_get(row, "error_message"));

	if (json_is_true(json_object_get(row, "error_occurred"))) {
		if (!b->notes.n)
			as_bench_note(&b->notes, "failed", "it failed: %s", why ? why : "");
		return AS_OK;
	}
	if (isnan(real) || !(by > 0))
		return as_fail(r->err, AS_E_FORMAT, 0,
			       "'%s': benchmark '%.80s' has no 'real_time' in a known unit",
			       r->what, name);
	as_vec_push(&b->samples, real);
	as_vec_push(&b->walls, real);
	as_vec_push(&b->cpus, cpu);
	b->batches = b->samples.n;
	b->iterations = iterations > 0 && iterations < 1e18 ? (uint64_t)iterations : 0;
	b->processes = 1;
	add_rates(row, cpu, b);
	return AS_OK;
}

/* Only for benches of which no single repetition was written. */
static void add_aggregate(struct reading *r, const json_t *row, const char *name)
{
	const char *kind = json_string_value(json_object_get(row, "aggregate_name"));
	double value = as_import_number(row, "real_time") * unit_of(row);
	struct as_bench *b;

	if (!kind || strcmp(kind, "BigO") == 0 || strcmp(kind, "RMS") == 0)
		return;
	b = bench_of(r, name);
	if (b->samples.n)
		return;
	if (strcmp(kind, "mean") == 0)
		b->mean = value;
	else if (strcmp(kind, "median") == 0)
		b->median = value;
	else if (strcmp(kind, "stddev") == 0)
		b->sd = value;
	if (isnan(b->time.value))
		b->time.value = b->mean;
}

static int read_row(struct reading *r, const json_t *row)
{
	const char *type = json_string_value(json_object_get(row, "run_type"));
	const char *run = json_string_value(json_object_get(row, "run_name"));
	const char *name = json_string_value(json_object_get(row, "name"));

	if (!name)
		return as_fail(r->err, AS_E_FORMAT, 0, "'%s' has a benchmark without 'name'",
			       r->what);
	if (type && strcmp(type, "aggregate") == 0) {
		add_aggregate(r, row, run ? run : name);
		return AS_OK;
	}
	return add_iteration(r, row, run ? run : name);
}

/* timegm overwrites the offset that was read. */
static int64_t utc(struct tm tm)
{
	int64_t offset = tm.tm_gmtoff;

	return (int64_t)timegm(&tm) - offset;
}

static void read_context(const json_t *context, struct as_bench_set *ret)
{
	const char *host = json_string_value(json_object_get(context, "host_name"));
	const char *version = json_string_value(json_object_get(context, "library_version"));
	const char *date = json_string_value(json_object_get(context, "date"));
	const char *build = json_string_value(json_object_get(context, "library_build_type"));
	double cpus = as_import_number(context, "num_cpus");
	struct tm tm = {0};

	if (ret->tool)
		return; /* of a document before */
	ret->tool = as_xasprintf("Google Benchmark%s%s", version ? " " : "",
				 version ? version : "");
	if (host || cpus > 0)
		ret->machine =
			as_xasprintf("%s, %.0f CPUs", host ? host : "?", cpus > 0 ? cpus : 0);
	if (date && strptime(date, "%Y-%m-%dT%H:%M:%S%z", &tm))
		ret->time_s = (uint64_t)AS_MAX(utc(tm), 0);
	if (build && strcmp(build, "debug") == 0)
		as_bench_note(&ret->notes, "debug-build",
			      "the benchmark library was built for debugging");
}

static void summarise(struct as_bench *b)
{
	double cpu = 0;

	const char *slash = strrchr(b->name, '/');

	/* sort/4096: the argument is the last part */
	if (slash && slash[1] && !slash[1 + strspn(slash + 1, "0123456789")]) {
		b->group = as_xstrndup(b->name, (size_t)(slash - b->name));
		b->value = as_xstrdup(slash + 1);
	}
	as_bench_summarise(b);
	as_vec_foreach (v, &b->cpus)
		cpu += *v / (double)b->cpus.n;
	b->cpu.value = b->cpus.n ? cpu : NAN;
	b->wall = b->time;
}

int as_import_google(const char *what, const json_t *root, struct as_bench_set *ret,
		     struct as_error *err)
{
	struct reading r = {.what = what, .set = ret, .first = ret->benches.n, .err = err};
	const json_t *rows = json_object_get(root, "benchmarks"), *row;
	size_t at;
	int status = AS_OK;

	if (!json_is_array(rows))
		return as_fail(err, AS_E_FORMAT, 0, "'%s' has no list 'benchmarks'", what);
	if (json_array_size(rows) > AS_BENCH_BENCHES_MAX)
		return as_fail(err, AS_E_LIMIT, 0, "'%s' holds more than %u benchmarks", what,
			       AS_BENCH_BENCHES_MAX);
	read_context(json_object_get(root, "context"), ret);
	json_array_foreach(rows, at, row)
	{
		if (status == AS_OK)
			status = read_row(&r, row);
	}
	for (size_t i = r.first; i < ret->benches.n; i++)
		summarise(&ret->benches.v[i]);
	as_import_one_process(ret, "Google Benchmark");
	as_intern_clear(&r.names);
	return status;
}

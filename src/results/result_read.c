/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results from JSON: docs/formats/bench-json.md. Fields of other kinds than the page says count as
 * absent, so that a newer writer's files can be read. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/result.h"
#include "results/result_priv.h"

static double number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static uint64_t whole(const json_t *o, const char *key)
{
	double v = number(o, key);

	return v >= 0 && v < 1.8e19 ? (uint64_t)v : 0;
}

static char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? as_xstrdup(s) : NULL;
}

static char *text_or_empty(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return as_xstrdup(s ? s : "");
}

#define READ_NUMBERS(vec, array)                                                               \
	do {                                                                                   \
		const json_t *list_ = (array), *one_;                                          \
		size_t at_;                                                                    \
		json_array_foreach(list_, at_, one_) as_vec_push(                              \
			vec, json_is_number(one_) ? json_number_value(one_) : NAN);            \
	} while (0)

static struct as_bench_estimate estimate(const json_t *o, const char *main)
{
	return (struct as_bench_estimate){number(o, main), number(o, "low"), number(o, "high")};
}

static void notes(const json_t *o, struct as_bench_notes *ret)
{
	const json_t *list = json_object_get(o, "notes"), *one;
	size_t at;

	json_array_foreach(list, at, one)
	{
		const char *kind = json_string_value(json_object_get(one, "kind"));
		const char *line = json_string_value(json_object_get(one, "text"));

		if (kind && line)
			as_bench_note(ret, kind, "%s", line);
	}
}

static void throughput(const json_t *o, struct as_bench *b)
{
	const json_t *t = json_object_get(o, "throughput");
	const char *kind = json_string_value(json_object_get(t, "kind"));

	for (int k = 1; kind && k < AS_THRPT_COUNT_; k++) {
		if (strcmp(kind, as_bench_throughput_words[k]) == 0)
			b->throughput = (enum as_bench_throughput)k;
	}
	b->throughput_n = whole(t, "n");
	b->throughput_n2 = whole(t, "bytes");
}

static void params(json_t *o, struct as_bench *b)
{
	json_t *list = json_object_get(o, "parameters"), *value;
	const char *key;

	json_object_foreach(list, key, value)
	{
		const char *s = json_string_value(value);

		as_vec_push(&b->params,
			    (struct as_bench_param){as_xstrdup(key), as_xstrdup(s ? s : "")});
	}
}

static void series(const json_t *o, struct as_bench *b)
{
	const json_t *codes = json_object_get(o, "exit_codes"), *one;
	size_t at;

	READ_NUMBERS(&b->samples, json_object_get(o, "samples"));
	READ_NUMBERS(&b->walls, json_object_get(o, "walls"));
	READ_NUMBERS(&b->cpus, json_object_get(o, "cpus"));
	READ_NUMBERS(&b->batch_times, json_object_get(o, "batch_times"));
	json_array_foreach(codes, at, one)
		as_vec_push(&b->exit_codes, (int)json_integer_value(one));
}

static void bench(json_t *o, struct as_bench *b)
{
	const char *kind = json_string_value(json_object_get(o, "kind"));
	const json_t *plain = json_object_get(o, "plain");
	const json_t *memory = json_object_get(o, "allocations");

	as_bench_init(b);
	b->kind = kind && strcmp(kind, "command") == 0 ? AS_BENCH_COMMAND : AS_BENCH_FUNCTION;
	b->name = text_or_empty(o, "name");
	b->group = text(o, "group");
	b->function = text(o, "function");
	b->value = text(o, "value");
	b->side = text(o, "side");
	b->unit = text(o, "unit");
	b->metric = text(o, "metric");
	if (!b->unit)
		b->unit = as_xstrdup("s");
	b->time = estimate(o, "mean");
	b->wall = estimate(json_object_get(o, "wall"), "mean");
	b->cpu = estimate(json_object_get(o, "cpu"), "mean");
	b->user = estimate(json_object_get(o, "user"), "mean");
	b->system = estimate(json_object_get(o, "system"), "mean");
	b->mean = number(plain, "mean");
	b->median = number(plain, "median");
	b->min = number(plain, "min");
	b->max = number(plain, "max");
	b->sd = number(plain, "sd");
	b->processes = whole(o, "processes");
	b->batches = whole(o, "batches");
	b->iterations = whole(o, "iterations");
	b->allocs = number(memory, "count");
	b->alloc_bytes = number(memory, "bytes");
	b->peak_bytes = number(memory, "peak_bytes");
	b->peak_rss = number(o, "peak_rss");
	throughput(o, b);
	params(o, b);
	series(o, b);
	notes(o, &b->notes);
}

static void comparison(const json_t *o, struct as_bench_comparison *c)
{
	const char *word = json_string_value(json_object_get(o, "verdict"));
	const json_t *dropped = json_object_get(o, "dropped");
	double seconds = number(o, "seconds");

	as_bench_comparison_init(c);
	c->name = text_or_empty(o, "name");
	c->a = text_or_empty(o, "a");
	c->b = text_or_empty(o, "b");
	c->metric = text(o, "metric");
	c->ratio = estimate(o, "ratio");
	c->by_wall = estimate(json_object_get(o, "by_wall"), "ratio");
	c->by_cpu = estimate(json_object_get(o, "by_cpu"), "ratio");
	c->by_median = estimate(json_object_get(o, "by_median"), "ratio");
	for (int v = 0; word && v < AS_BENCH_VERDICTS_; v++) {
		if (strcmp(word, as_bench_verdict_name((enum as_bench_verdict)v)) == 0)
			c->verdict = (enum as_bench_verdict)v;
	}
	c->stored = json_is_true(json_object_get(o, "stored"));
	c->delta = number(o, "delta");
	c->p = number(o, "p");
	c->processes = whole(o, "processes");
	c->seconds = isnan(seconds) ? 0 : seconds;
	c->seconds_needed = number(o, "seconds_needed");
	c->dropped_failed = whole(dropped, "failed");
	c->dropped_timeout = whole(dropped, "timeout");
	READ_NUMBERS(&c->d, json_object_get(o, "pairs"));
	notes(o, &c->notes);
}

static void complexity(const json_t *o, struct as_bench_complexity *c)
{
	*c = (struct as_bench_complexity){0};
	c->name = text_or_empty(o, "name");
	c->param = text(o, "parameter");
	c->best = text(o, "best");
	c->coefficient = number(o, "coefficient");
	c->intercept = number(o, "intercept");
	c->exponent = number(o, "exponent");
	c->exponent_low = number(o, "low");
	c->exponent_high = number(o, "high");
	c->knee = number(o, "knee");
	READ_NUMBERS(&c->n, json_object_get(o, "n"));
	READ_NUMBERS(&c->t, json_object_get(o, "time"));
}

static void lists(const json_t *root, struct as_bench_set *s)
{
	json_t *one;
	size_t at;

	json_array_foreach(json_object_get(root, "benchmarks"), at, one)
	{
		struct as_bench b;

		bench(one, &b);
		as_vec_push(&s->benches, b);
	}
	json_array_foreach(json_object_get(root, "comparisons"), at, one)
	{
		struct as_bench_comparison c;

		comparison(one, &c);
		as_vec_push(&s->comparisons, c);
	}
	json_array_foreach(json_object_get(root, "complexities"), at, one)
	{
		struct as_bench_complexity c;

		complexity(one, &c);
		as_vec_push(&s->complexities, c);
	}
}

static int check(const char *what, const json_t *root, struct as_error *err)
{
	const char *schema = json_string_value(json_object_get(root, "schema"));

	if (!schema || strncmp(schema, AS_BENCH_SCHEMA_STEM, strlen(AS_BENCH_SCHEMA_STEM)) != 0)
		return as_fail(err, AS_E_FORMAT, 0,
			       "'%s' is no result of assay bench: it does not say schema '%s'",
			       what, AS_BENCH_SCHEMA);
	if (strcmp(schema, AS_BENCH_SCHEMA) != 0)
		return as_fail(err, AS_E_UNSUPPORTED, 0,
			       "'%s' is of schema '%.40s', this assay reads '%s'", what, schema,
			       AS_BENCH_SCHEMA);
	if (!json_is_array(json_object_get(root, "benchmarks")))
		return as_fail(err, AS_E_FORMAT, 0, "'%s' has no list 'benchmarks'", what);
	if (json_array_size(json_object_get(root, "benchmarks")) > AS_BENCH_BENCHES_MAX ||
	    json_array_size(json_object_get(root, "comparisons")) > AS_BENCH_BENCHES_MAX)
		return as_fail(err, AS_E_LIMIT, 0, "'%s' holds more than %u benchmarks", what,
			       AS_BENCH_BENCHES_MAX);
	return AS_OK;
}

/* The checksum is of all that stands before it. It finds figures that were changed by hand, or by a
 * program that lays JSON out anew; who means to deceive can make it fit. */
static void check_sum(const char *p, size_t n, const json_t *root, struct as_bench_set *s)
{
	static const char key[] = "\"checksum\"";
	const char *said = json_string_value(json_object_get(root, "checksum")), *found = NULL;
	char sum[20];
	size_t end;

	for (const char *at = p;
	     said && (at = memmem(at, n - (size_t)(at - p), key, strlen(key))); at++)
		found = at;
	if (!found)
		return;
	end = (size_t)(found - p);
	while (end && strchr(" \t\r\n,", p[end - 1]) && p[end - 1])
		end--;
	snprintf(sum, sizeof sum, "%016" PRIx64, as_hash64(p, end));
	if (strcmp(sum, said) != 0)
		as_bench_note(&s->notes, "edited",
			      "its checksum does not fit: it was changed after it was written");
}

int as_bench_read(const char *what, const char *p, size_t n, struct as_bench_set *ret,
		  struct as_error *err)
{
	json_error_t why;
	json_t *root = json_loadb(p, n, JSON_REJECT_DUPLICATES, &why);
	double seconds;
	int r;

	if (!root)
		return as_fail(err, AS_E_FORMAT, 0, "'%s' is no JSON: line %d: %s", what,
			       why.line, why.text);
	r = check(what, root, err);
	if (r == AS_OK) {
		*ret = (struct as_bench_set){
			.title = text(root, "title"),
			.tool = text(root, "tool"),
			.machine = text(root, "machine"),
			.toolchain = text(root, "toolchain"),
			.revision = text(root, "revision"),
			.time_s = whole(root, "time"),
		};
		seconds = number(root, "seconds");
		ret->seconds = isnan(seconds) ? 0 : seconds;
		lists(root, ret);
		notes(root, &ret->notes);
		check_sum(p, n, root, ret);
	}
	json_decref(root);
	return r;
}

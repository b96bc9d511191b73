/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* hyperfine --export-json, 1.10 to 1.20: times in seconds, of separate processes. */
#include <math.h>
#include <string.h>

#include "results/import_priv.h"

static void add_params(json_t *result, struct as_bench *b)
{
	json_t *value;
	const char *key;

	json_object_foreach(json_object_get(result, "parameters"), key, value)
	{
		const char *s = json_string_value(value);

		as_vec_push(&b->params,
			    (struct as_bench_param){as_xstrdup(key), as_xstrdup(s ? s : "")});
	}
}

static void add_series(const json_t *result, struct as_bench *b)
{
	const json_t *one;
	size_t at;

	json_array_foreach(json_object_get(result, "times"), at, one)
	{
		if (!json_is_number(one))
			continue;
		as_vec_push(&b->samples, json_number_value(one));
		as_vec_push(&b->walls, json_number_value(one));
	}
	json_array_foreach(json_object_get(result, "exit_codes"), at, one) as_vec_push(
		&b->exit_codes, json_is_number(one) ? (int)json_number_value(one) : -1);
	json_array_foreach(json_object_get(result, "memory_usage_byte"), at, one)
	{
		if (json_is_number(one))
			b->peak_rss = fmax(isnan(b->peak_rss) ? 0 : b->peak_rss,
					   json_number_value(one));
	}
}

static int read_result(const char *what, json_t *result, struct as_bench *b,
		       struct as_error *err)
{
	double mean = as_import_number(result, "mean");
	double user = as_import_number(result, "user"),
	       sys = as_import_number(result, "system");

	b->kind = AS_BENCH_COMMAND;
	b->name = as_import_string(result, "command");
	if (!b->name || isnan(mean))
		return as_fail(err, AS_E_FORMAT, 0,
			       "'%s' has a result without 'command' and 'mean'", what);
	b->unit = as_xstrdup("s");
	b->metric = as_xstrdup("wall");
	b->user.value = user;
	b->system.value = sys;
	b->cpu.value = user + sys;
	add_params(result, b);
	add_series(result, b);
	as_bench_summarise(b);
	b->mean = mean;
	if (isnan(b->time.value))
		b->time.value = mean;
	if (!b->samples.n) {
		b->sd = as_import_number(result, "stddev");
		b->median = as_import_number(result, "median");
		b->min = as_import_number(result, "min");
		b->max = as_import_number(result, "max");
	}
	b->wall = b->time;
	b->processes = b->samples.n;
	return AS_OK;
}

int as_import_hyperfine(const char *what, const json_t *root, struct as_bench_set *ret,
			struct as_error *err)
{
	const json_t *results = json_object_get(root, "results");
	json_t *one;
	size_t at;

	if (!json_is_array(results))
		return as_fail(err, AS_E_FORMAT, 0, "'%s' has no list 'results'", what);
	if (!ret->tool)
		ret->tool = as_xstrdup("hyperfine");
	json_array_foreach(results, at, one)
	{
		struct as_bench b;
		int r;

		as_bench_init(&b);
		r = read_result(what, one, &b, err);
		as_vec_push(&ret->benches, b);
		if (r < 0)
			return r;
	}
	return AS_OK;
}

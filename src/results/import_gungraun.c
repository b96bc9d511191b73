/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * summary.json of iai-callgrind and gungraun. What callgrind counted stands in
 *	1, 2	callgrind_summary.callgrind_run.total.events or .summaries[].events: Ir: {new, old}
 *	3 – 5	tool_summaries[] | profiles[]: summaries.total.summary.Callgrind.Ir.metrics: {Left | Both}
 *	6	profiles[]: the same, values as {Int | Float}
 *	7	profiles[].data.total.metrics.Ir.values: {new, old}
 * so a tool's object is searched for the name of the event, the nearest first, and the value for whatever
 * says "new" there.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/import_priv.h"

#define DEPTH_MAX 12

static double value_of(const json_t *v, int depth)
{
	static const char *const ways[] = {"values", "metrics", "new",  "Left",
					   "Both",   "Int",     "Float"};

	if (json_is_number(v))
		return json_number_value(v);
	if (depth > DEPTH_MAX)
		return NAN;
	if (json_is_array(v)) /* Both: new and old */
		return value_of(json_array_get(v, 0), depth + 1);
	for (size_t i = 0; i < AS_ARRAY_LEN(ways); i++) {
		const json_t *below = json_object_get(v, ways[i]);

		if (below)
			return value_of(below, depth + 1);
	}
	return NAN;
}

/* The total before the parts: both have the same names. */
static const json_t *find(json_t *v, const char *name, int depth)
{
	const json_t *found = json_object_get(v, name);
	json_t *below = json_object_get(v, "total");
	const char *key;
	size_t at;

	if (found || depth > DEPTH_MAX)
		return found;
	if (below)
		found = find(below, name, depth + 1);
	if (json_is_array(v)) {
		json_array_foreach(v, at, below)
		{
			if (!found)
				found = find(below, name, depth + 1);
		}
		return found;
	}
	json_object_foreach(v, key, below)
	{
		if (!found && (json_is_object(below) || json_is_array(below)))
			found = find(below, name, depth + 1);
	}
	return found;
}

static json_t *tool_of(const json_t *root, const char *name)
{
	static const char *const lists[] = {"profiles", "tool_summaries"};

	for (size_t i = 0; i < AS_ARRAY_LEN(lists); i++) {
		const json_t *list = json_object_get(root, lists[i]);
		json_t *one;
		size_t at;

		json_array_foreach(list, at, one)
		{
			const char *tool = json_string_value(json_object_get(one, "tool"));

			if (tool && strcasecmp(tool, name) == 0)
				return one;
		}
	}
	return NULL;
}

static double event(json_t *tool, const char *name)
{
	const json_t *found = tool ? find(tool, name, 0) : NULL;

	return found ? value_of(found, 0) : NAN;
}

int as_import_gungraun(const char *what, const json_t *root, struct as_bench_set *ret,
		       struct as_error *err)
{
	const char *module = json_string_value(json_object_get(root, "module_path"));
	const char *id = json_string_value(json_object_get(root, "id"));
	json_t *tool = tool_of(root, "Callgrind"), *dhat = tool_of(root, "DHAT");
	struct as_bench b;
	double count;

	if (!tool)
		tool = tool_of(root, "Cachegrind");
	if (!tool)
		tool = json_object_get(root, "callgrind_summary");
	count = event(tool, "Ir");
	if (!module || isnan(count))
		return as_fail(
			err, AS_E_FORMAT, 0,
			"'%s' has no count of instructions (Ir): only what callgrind and "
			"cachegrind measured can be compared",
			what);
	as_bench_init(&b);
	b.kind = AS_BENCH_FUNCTION;
	b.name = as_xasprintf("%s%s%s", module, id ? " " : "", id ? id : "");
	b.unit = as_xstrdup("instructions");
	b.metric = as_xstrdup("instructions");
	b.time = (struct as_bench_estimate){count, count, count};
	b.mean = b.median = b.min = b.max = count;
	b.processes = 1;
	b.allocs = event(dhat, "TotalBlocks");
	b.alloc_bytes = event(dhat, "TotalBytes");
	b.peak_bytes = event(dhat, "AtTGmaxBytes");
	as_vec_push(&ret->benches, b);
	if (!ret->tool)
		ret->tool = as_xstrdup("gungraun");
	return AS_OK;
}

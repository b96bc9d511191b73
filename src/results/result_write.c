/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results as JSON: docs/formats/bench-json.md. What is not known is left out. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "results/result.h"
#include "results/result_priv.h"

#define DIGITS 12 /* of a figure: a tenth of a nanosecond in 100 s */

const char *const as_bench_throughput_words[AS_THRPT_COUNT_] = {
	"none", "bytes", "elements", "bytes-decimal", "bits", "elements-and-bytes"};

static void known(struct as_json *j, const char *key, double v)
{
	if (!isnan(v))
		as_json_num(j, key, v, DIGITS);
}

static void text(struct as_json *j, const char *key, const char *s)
{
	if (s)
		as_json_str(j, key, s);
}

static void numbers(struct as_json *j, const char *key, const double *v, size_t n)
{
	if (!n)
		return;
	as_json_arr(j, key);
	for (size_t i = 0; i < n; i++)
		as_json_num(j, NULL, v[i], DIGITS);
	as_json_end(j);
}

/* main: the name of its value, "mean" or "ratio" */
static void estimate(struct as_json *j, const char *main, const struct as_bench_estimate *e)
{
	as_json_num(j, main, e->value, DIGITS);
	as_json_num(j, "low", e->low, DIGITS);
	as_json_num(j, "high", e->high, DIGITS);
}

static void named_estimate(struct as_json *j, const char *key, const char *main,
			   const struct as_bench_estimate *e)
{
	if (isnan(e->value))
		return;
	as_json_obj(j, key);
	estimate(j, main, e);
	as_json_end(j);
}

static void notes(struct as_json *j, const struct as_bench_notes *v)
{
	as_json_arr(j, "notes");
	as_vec_foreach (n, v) {
		as_json_obj(j, NULL);
		as_json_str(j, "kind", n->kind);
		as_json_str(j, "text", n->text);
		as_json_end(j);
	}
	as_json_end(j);
}

/* Rates are figures of their own, so that nobody has to find them in a text. */
static void throughput(struct as_json *j, const struct as_bench *b)
{
	bool rate = b->unit && strcmp(b->unit, "s") == 0 && b->time.value > 0;

	if (b->throughput == AS_THRPT_NONE)
		return;
	as_json_obj(j, "throughput");
	as_json_str(j, "kind", as_bench_throughput_words[b->throughput]);
	as_json_u64(j, "n", b->throughput_n);
	if (b->throughput == AS_THRPT_ELEMENTS_AND_BYTES)
		as_json_u64(j, "bytes", b->throughput_n2);
	if (rate) {
		double n = (double)b->throughput_n;

		as_json_num(j, "per_second", n / b->time.value, DIGITS);
		as_json_num(j, "low", n / b->time.high, DIGITS);
		as_json_num(j, "high", n / b->time.low, DIGITS);
		if (b->throughput == AS_THRPT_ELEMENTS_AND_BYTES)
			as_json_num(j, "bytes_per_second",
				    (double)b->throughput_n2 / b->time.value, DIGITS);
	}
	as_json_end(j);
}

static void samples(struct as_json *j, const struct as_bench *b)
{
	numbers(j, "samples", b->samples.v, b->samples.n);
	numbers(j, "walls", b->walls.v, b->walls.n);
	numbers(j, "cpus", b->cpus.v, b->cpus.n);
	numbers(j, "batch_times", b->batch_times.v, b->batch_times.n);
	if (!b->exit_codes.n)
		return;
	as_json_arr(j, "exit_codes");
	as_vec_foreach (c, &b->exit_codes)
		as_json_i64(j, NULL, *c);
	as_json_end(j);
}

static void memory(struct as_json *j, const struct as_bench *b)
{
	if (!isnan(b->allocs) || !isnan(b->alloc_bytes) || !isnan(b->peak_bytes)) {
		as_json_obj(j, "allocations");
		known(j, "count", b->allocs);
		known(j, "bytes", b->alloc_bytes);
		known(j, "peak_bytes", b->peak_bytes);
		as_json_end(j);
	}
	known(j, "peak_rss", b->peak_rss);
}

static void plain(struct as_json *j, const struct as_bench *b)
{
	as_json_obj(j, "plain");
	known(j, "mean", b->mean);
	known(j, "median", b->median);
	known(j, "min", b->min);
	known(j, "max", b->max);
	known(j, "sd", b->sd);
	as_json_end(j);
}

static void bench(struct as_json *j, const struct as_bench *b)
{
	as_json_obj(j, NULL);
	as_json_str(j, "name", b->name ? b->name : "");
	as_json_str(j, "kind", b->kind == AS_BENCH_COMMAND ? "command" : "function");
	text(j, "group", b->group);
	text(j, "function", b->function);
	text(j, "value", b->value);
	text(j, "side", b->side);
	as_json_str(j, "unit", b->unit ? b->unit : "s");
	text(j, "metric", b->metric);
	estimate(j, "mean", &b->time);
	named_estimate(j, "wall", "mean", &b->wall);
	named_estimate(j, "cpu", "mean", &b->cpu);
	named_estimate(j, "user", "mean", &b->user);
	named_estimate(j, "system", "mean", &b->system);
	plain(j, b);
	as_json_u64(j, "processes", b->processes);
	as_json_u64(j, "batches", b->batches);
	as_json_u64(j, "iterations", b->iterations);
	throughput(j, b);
	memory(j, b);
	if (b->params.n) {
		as_json_obj(j, "parameters");
		as_vec_foreach (p, &b->params)
			as_json_str(j, p->name, p->value);
		as_json_end(j);
	}
	samples(j, b);
	notes(j, &b->notes);
	as_json_end(j);
}

static void comparison(struct as_json *j, const struct as_bench_comparison *c)
{
	as_json_obj(j, NULL);
	as_json_str(j, "name", c->name ? c->name : "");
	as_json_str(j, "a", c->a ? c->a : "");
	as_json_str(j, "b", c->b ? c->b : "");
	text(j, "metric", c->metric);
	estimate(j, "ratio", &c->ratio);
	as_json_str(j, "verdict", as_bench_verdict_name(c->verdict));
	as_json_bool(j, "stored", c->stored);
	known(j, "delta", c->delta);
	known(j, "p", c->p);
	as_json_u64(j, "processes", c->processes);
	as_json_num(j, "seconds", c->seconds, 6);
	as_json_num(j, "seconds_needed", c->seconds_needed, 6);
	as_json_obj(j, "dropped");
	as_json_u64(j, "failed", c->dropped_failed);
	as_json_u64(j, "timeout", c->dropped_timeout);
	as_json_end(j);
	named_estimate(j, "by_wall", "ratio", &c->by_wall);
	named_estimate(j, "by_cpu", "ratio", &c->by_cpu);
	named_estimate(j, "by_median", "ratio", &c->by_median);
	numbers(j, "pairs", c->d.v, c->d.n);
	notes(j, &c->notes);
	as_json_end(j);
}

static void complexity(struct as_json *j, const struct as_bench_complexity *c)
{
	as_json_obj(j, NULL);
	as_json_str(j, "name", c->name ? c->name : "");
	text(j, "parameter", c->param);
	text(j, "best", c->best);
	known(j, "coefficient", c->coefficient);
	known(j, "intercept", c->intercept);
	known(j, "exponent", c->exponent);
	known(j, "low", c->exponent_low);
	known(j, "high", c->exponent_high);
	known(j, "knee", c->knee);
	numbers(j, "n", c->n.v, c->n.n);
	numbers(j, "time", c->t.v, c->t.n);
	as_json_end(j);
}

void as_bench_json(const struct as_bench_set *s, struct as_buf *out)
{
	struct as_json j = {.out = out, .indent = true};
	size_t start = out->len;
	char sum[20];

	as_json_obj(&j, NULL);
	as_json_str(&j, "schema", AS_BENCH_SCHEMA);
	text(&j, "title", s->title);
	text(&j, "tool", s->tool);
	text(&j, "machine", s->machine);
	text(&j, "toolchain", s->toolchain);
	text(&j, "revision", s->revision);
	as_json_u64(&j, "time", s->time_s);
	as_json_num(&j, "seconds", s->seconds, 6);
	as_json_arr(&j, "benchmarks");
	as_vec_foreach (b, &s->benches)
		bench(&j, b);
	as_json_end(&j);
	as_json_arr(&j, "comparisons");
	as_vec_foreach (c, &s->comparisons)
		comparison(&j, c);
	as_json_end(&j);
	if (s->complexities.n) {
		as_json_arr(&j, "complexities");
		as_vec_foreach (c, &s->complexities)
			complexity(&j, c);
		as_json_end(&j);
	}
	notes(&j, &s->notes);
	snprintf(sum, sizeof sum, "%016" PRIx64, as_hash64(out->p + start, out->len - start));
	as_json_str(&j, "checksum", sum);
	as_json_end(&j);
	as_buf_addc(out, '\n');
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results of the library's own front as assay.bench/1: docs/formats/bench-json.md. */
#include <math.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/sys.h"
#include "harness/plain_priv.h"
#include "harness/version_priv.h"

#define DIGITS 9

/* Of the unit as the schema has it: times in seconds. */
static double scale_of(const struct as_fn_result *r)
{
	return strcmp(r->what.unit, "ns") == 0 ? 1e-9 : 1;
}

static void add_interval(struct as_json *j, const char *key, const struct as_fn_estimate *e,
			 double scale)
{
	if (key)
		as_json_obj(j, key);
	as_json_num(j, "mean", e->value * scale, DIGITS);
	as_json_num(j, "low", e->low * scale, DIGITS);
	as_json_num(j, "high", e->high * scale, DIGITS);
	if (key)
		as_json_end(j);
}

static void text(struct as_json *j, const char *key, const char *s)
{
	if (s)
		as_json_str(j, key, s);
}

static void notes(struct as_json *j, const struct as_fn_result *r)
{
	as_json_arr(j, "notes");
	if (r->failed) {
		as_json_obj(j, NULL);
		as_json_str(j, "kind", r->out_of_time ? "out-of-time" : "failed");
		as_json_str(j, "text", r->failed);
		as_json_end(j);
	}
	as_vec_foreach (note, &r->notes) {
		as_json_obj(j, NULL);
		as_json_str(j, "kind", note->kind);
		as_json_str(j, "text", note->text);
		as_json_end(j);
	}
	as_json_end(j);
}

static void samples(struct as_json *j, const struct as_fn_result *r,
		    const struct as_fn_side_result *s)
{
	double scale = scale_of(r);

	as_json_arr(j, "samples");
	as_vec_foreach (p, &s->processes)
		as_json_num(j, NULL, p->q25 * scale, DIGITS);
	as_json_end(j);
	as_json_arr(j, "batch_times");
	as_vec_foreach (v, &s->batches)
		as_json_num(j, NULL, *v * scale, DIGITS);
	as_json_end(j);
}

static void plain(struct as_json *j, const struct as_fn_result *r,
		  const struct as_fn_side_result *s)
{
	double scale = scale_of(r), sum = 0;

	as_vec_foreach (p, &s->processes)
		sum += p->q25 / (double)s->processes.n;
	as_json_obj(j, "plain");
	as_json_num(j, "mean", sum * scale, DIGITS);
	as_json_num(j, "median", s->runs.median * scale, DIGITS);
	as_json_num(j, "min", s->runs.min * scale, DIGITS);
	as_json_num(j, "max", s->runs.max * scale, DIGITS);
	as_json_num(j, "sd", s->runs.sd * scale, DIGITS);
	as_json_end(j);
}

static void throughput(struct as_json *j, const struct as_fn_result *r,
		       const struct as_fn_side_result *s)
{
	double n = (double)r->what.throughput_n;

	if (r->what.throughput == AS_FN_NONE || strcmp(r->what.unit, "ns") != 0)
		return;
	as_json_obj(j, "throughput");
	as_json_str(j, "kind", as_fn_throughput_name(r->what.throughput));
	as_json_u64(j, "n", r->what.throughput_n);
	if (r->what.throughput == AS_FN_ELEMENTS_AND_BYTES)
		as_json_u64(j, "bytes", r->what.throughput_n2);
	as_json_num(j, "per_second", n * 1e9 / s->time.value, DIGITS);
	as_json_num(j, "low", n * 1e9 / s->time.high, DIGITS);
	as_json_num(j, "high", n * 1e9 / s->time.low, DIGITS);
	if (r->what.throughput == AS_FN_ELEMENTS_AND_BYTES)
		as_json_num(j, "bytes_per_second",
			    (double)r->what.throughput_n2 * 1e9 / s->time.value, DIGITS);
	as_json_end(j);
}

static void add_allocations(struct as_json *j, const struct as_fn_side_result *s)
{
	if (isnan(s->allocs))
		return;
	as_json_obj(j, "allocations");
	as_json_num(j, "count", s->allocs, DIGITS);
	as_json_num(j, "bytes", s->alloc_bytes, DIGITS);
	as_json_num(j, "peak_bytes", s->peak_bytes, DIGITS);
	as_json_end(j);
}

/* What the processes did besides, as means; and of threads. */
static void causes(struct as_json *j, const struct as_fn_side_result *s)
{
	static const struct {
		const char *name;
		size_t at;
	} figures[] = {
		{"voluntary_switches", offsetof(struct as_fn_process, voluntary)},
		{"involuntary_switches", offsetof(struct as_fn_process, involuntary)},
		{"migrations", offsetof(struct as_fn_process, migrations)},
		{"minor_faults", offsetof(struct as_fn_process, minor_faults)},
		{"major_faults", offsetof(struct as_fn_process, major_faults)},
		{"run_delay", offsetof(struct as_fn_process, run_delay_s)},
		{"steal", offsetof(struct as_fn_process, steal_s)},
		{"startup", offsetof(struct as_fn_process, startup_s)},
		{"rate_together", offsetof(struct as_fn_process, rate)},
		{"overlap", offsetof(struct as_fn_process, overlap)},
	};

	as_json_obj(j, "per_process");
	for (size_t i = 0; i < AS_ARRAY_LEN(figures); i++) {
		double sum = 0;

		as_vec_foreach (p, &s->processes) {
			double v;

			memcpy(&v, (const char *)p + figures[i].at, sizeof v);
			sum += v / (double)s->processes.n;
		}
		if (!isnan(sum))
			as_json_num(j, figures[i].name, sum, 6);
	}
	as_json_end(j);
}

static void benchmark(struct as_json *j, const struct as_fn_result *r, unsigned side)
{
	const struct as_fn_side_result *s = &r->side[side];
	bool is_time = strcmp(r->what.unit, "ns") == 0;

	as_json_obj(j, NULL);
	as_json_str(j, "name", r->what.id);
	as_json_str(j, "kind", "function");
	text(j, "group", r->what.group);
	text(j, "function", r->what.function);
	text(j, "value", r->what.value);
	if (r->sides > 1)
		as_json_str(j, "side", side ? "now" : "before");
	as_json_str(j, "unit", is_time ? "s" : r->what.unit);
	as_json_str(j, "metric", is_time ? "time" : r->what.unit);
	if (r->failed || !s->processes.n) {
		as_json_null(j, "mean");
		as_json_null(j, "low");
		as_json_null(j, "high");
	} else {
		add_interval(j, NULL, &s->time, scale_of(r));
		plain(j, r, s);
		if (is_time)
			add_interval(j, "wall", &s->time, 1e-9);
		add_interval(j, "cpu", &s->cpu, 1e-9);
		as_json_u64(j, "processes", s->processes.n);
		as_json_u64(j, "batches", r->batches);
		as_json_u64(j, "iterations", r->iterations);
		as_json_u64(j, "threads", r->what.threads);
		samples(j, r, s);
		throughput(j, r, s);
		add_allocations(j, s);
		causes(j, s);
		as_json_obj(j, "harness");
		as_json_num(j, "loop", r->loop_ns / 1e9, DIGITS);
		as_json_num(j, "clock", r->clock_ns / 1e9, DIGITS);
		as_json_num(j, "setup_share", r->setup_share, DIGITS);
		as_json_end(j);
	}
	notes(j, r);
	as_json_end(j);
}

static void ratio(struct as_json *j, const char *key, const struct as_trimmed *t)
{
	if (key)
		as_json_obj(j, key);
	as_json_num(j, "ratio", exp(t->value), DIGITS);
	as_json_num(j, "low", exp(t->lo), DIGITS);
	as_json_num(j, "high", exp(t->hi), DIGITS);
	if (key)
		as_json_end(j);
}

static void comparison(struct as_json *j, const struct as_fn_result *r)
{
	as_json_obj(j, NULL);
	as_json_str(j, "name", r->what.id);
	as_json_str(j, "a", "before");
	as_json_str(j, "b", "now");
	as_json_str(j, "metric", strcmp(r->what.unit, "ns") == 0 ? "time" : r->what.unit);
	ratio(j, NULL, &r->by_q25);
	as_json_str(j, "verdict", as_verdict_name(r->look.verdict));
	as_json_num(j, "delta", r->delta, DIGITS);
	as_json_num(j, "p", r->p, DIGITS);
	as_json_u64(j, "processes", r->d.n);
	as_json_num(j, "seconds", r->seconds, 6);
	as_json_num(j, "seconds_needed", r->seconds_needed, 3);
	as_json_obj(j, "dropped");
	as_json_u64(j, "failed", r->dropped_failed);
	as_json_u64(j, "timeout", r->dropped_timeout);
	as_json_end(j);
	ratio(j, "by_median", &r->by_median);
	ratio(j, "by_cpu", &r->by_cpu);
	as_json_arr(j, "pairs");
	as_vec_foreach (d, &r->d)
		as_json_num(j, NULL, *d, DIGITS);
	as_json_end(j);
	notes(j, r);
	as_json_end(j);
}

static void begin_list(struct as_json *j, struct as_buf *out)
{
	if (out->len)
		as_buf_addc(out, ',');
	*j = (struct as_json){.out = out};
}

void as_plain_json_add(struct as_plain_json *j, const struct as_fn_result *r)
{
	struct as_json w;

	for (unsigned side = 0; side < AS_MAX(r->sides, 1u); side++) {
		begin_list(&w, &j->benchmarks);
		benchmark(&w, r, side);
	}
	if (r->sides < 2 || r->failed || !r->d.n)
		return;
	begin_list(&w, &j->comparisons);
	comparison(&w, r);
}

void as_plain_json_end(struct as_plain_json *j, const char *title, double seconds,
		       struct as_buf *out)
{
	struct as_json w = {.out = out, .indent = true};
	AS_CLEANUP(as_buf_clear) struct as_buf both = {0};
	struct utsname u;

	as_json_obj(&w, NULL);
	as_json_str(&w, "schema", "assay.bench/1");
	as_json_str(&w, "title", title);
	as_json_str(&w, "tool", "assay " ASSAY_VERSION);
	if (uname(&u) == 0)
		as_json_str(&w, "machine", u.machine);
	as_json_u64(&w, "time", as_realtime_ns() / 1000000000);
	as_json_num(&w, "seconds", seconds, 6);
	as_buf_addf(&both, "[%s]", as_buf_str(&j->benchmarks));
	as_json_raw(&w, "benchmarks", as_buf_str(&both), both.len);
	as_buf_reset(&both);
	as_buf_addf(&both, "[%s]", as_buf_str(&j->comparisons));
	as_json_raw(&w, "comparisons", as_buf_str(&both), both.len);
	as_json_end(&w);
	as_buf_addc(out, '\n');
}

void as_plain_json_clear(struct as_plain_json *j)
{
	as_buf_clear(&j->benchmarks);
	as_buf_clear(&j->comparisons);
}

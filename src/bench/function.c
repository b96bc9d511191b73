/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Function benchmarks as results: see function.h. */
#include "bench/function.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NS 1e-9

static char *copy(const char *s)
{
	return s ? as_xstrdup(s) : NULL;
}

static bool is_time(const struct as_fn_result *r)
{
	return !r->what.unit || strcmp(r->what.unit, "ns") == 0;
}

static struct as_bench_estimate scaled(const struct as_fn_estimate *e, double by)
{
	return (struct as_bench_estimate){e->value * by, e->low * by, e->high * by};
}

static struct as_bench_estimate ratio_of(const struct as_trimmed *t)
{
	if (!t->n)
		return (struct as_bench_estimate){NAN, NAN, NAN};
	return (struct as_bench_estimate){exp(t->value), exp(t->lo), exp(t->hi)};
}

/* Notes of a pair speak of both sides: they stand at the comparison. */
static void copy_notes(const struct as_fn_result *r, struct as_bench_notes *ret)
{
	for (size_t i = 0; i < r->notes.n; i++)
		as_bench_note(ret, r->notes.v[i].kind, "%s", r->notes.v[i].text);
}

void as_bench_from_function(const struct as_fn_result *r, int side, const char *label,
			    struct as_bench *ret)
{
	const struct as_fn_side_result *s = &r->side[side];
	double by = is_time(r) ? NS : 1;

	as_bench_init(ret);
	ret->kind = AS_BENCH_FUNCTION;
	ret->name = as_xstrdup(r->what.id ? r->what.id : "");
	ret->group = copy(r->what.group);
	ret->function = copy(r->what.function);
	ret->value = copy(r->what.value);
	ret->side = copy(label);
	ret->unit = as_xstrdup(is_time(r) ? "s" : r->what.unit);
	ret->metric = as_xstrdup(is_time(r) ? "time" : r->what.unit);
	ret->throughput = (enum as_bench_throughput)r->what.throughput;
	ret->throughput_n = r->what.throughput_n;
	ret->throughput_n2 = r->what.throughput_n2;
	ret->allocs = s->allocs;
	ret->alloc_bytes = s->alloc_bytes;
	ret->peak_bytes = s->peak_bytes;
	ret->processes = s->processes.n;
	ret->batches = r->batches;
	ret->iterations = r->iterations;
	for (size_t i = 0; i < s->processes.n; i++) {
		as_vec_push(&ret->samples, s->processes.v[i].q25 * by);
		as_vec_push(&ret->cpus, s->processes.v[i].cpu * NS);
	}
	for (size_t i = 0; i < s->batches.n; i++)
		as_vec_push(&ret->batch_times, s->batches.v[i] * by);
	if (s->processes.n)
		ret->time = scaled(&s->time, by);
	if (s->processes.n && is_time(r)) {
		ret->wall = ret->time;
		ret->cpu = scaled(&s->cpu, NS);
	}
	as_bench_summarise(ret);
	if (r->failed)
		as_bench_note(&ret->notes, "failed", "%s", r->failed);
	if (r->sides < 2)
		copy_notes(r, &ret->notes);
}

static enum as_bench_verdict verdict_of(enum as_verdict v)
{
	static const enum as_bench_verdict of[AS_VERDICT_COUNT_] = {
		[AS_VERDICT_UNDECIDED] = AS_BENCH_UNDECIDED,
		[AS_VERDICT_EQUAL] = AS_BENCH_EQUAL,
		[AS_VERDICT_SLOWER] = AS_BENCH_SLOWER,
		[AS_VERDICT_FASTER] = AS_BENCH_FASTER,
	};

	return of[v];
}

void as_bench_compare_functions(const struct as_fn_result *r, const char *const labels[2],
				struct as_bench_comparison *ret)
{
	as_bench_comparison_init(ret);
	ret->name = as_xstrdup(r->what.id ? r->what.id : "");
	ret->a = as_xstrdup(labels[0]);
	ret->b = as_xstrdup(labels[1]);
	ret->metric = as_xstrdup(is_time(r) ? "time" : r->what.unit);
	ret->ratio = ratio_of(&r->by_q25);
	ret->by_median = ratio_of(&r->by_median);
	if (is_time(r)) {
		ret->by_wall = ret->ratio;
		ret->by_cpu = ratio_of(&r->by_cpu);
	}
	ret->verdict = r->failed ? AS_BENCH_UNDECIDED : verdict_of(r->look.verdict);
	ret->delta = r->delta;
	ret->p = r->p;
	ret->processes = r->d.n;
	ret->seconds = r->seconds;
	ret->seconds_needed = r->seconds_needed;
	ret->dropped_failed = r->dropped_failed;
	ret->dropped_timeout = r->dropped_timeout;
	for (size_t i = 0; i < r->d.n; i++)
		as_vec_push(&ret->d, r->d.v[i]);
	if (r->failed)
		as_bench_note(&ret->notes, "failed", "%s", r->failed);
	copy_notes(r, &ret->notes);
}

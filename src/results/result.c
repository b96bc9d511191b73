/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Life of results: see result.h. */
#include "results/result.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "stats/runs.h"

static const struct as_bench_estimate unknown = {NAN, NAN, NAN};

const char *as_bench_verdict_name(enum as_bench_verdict v)
{
	static const char *const names[AS_BENCH_VERDICTS_] = {"undecided", "equal", "slower",
							      "faster", "moved"};

	return names[v];
}

void as_bench_note(struct as_bench_notes *notes, const char *kind, const char *fmt, ...)
{
	struct as_buf text = {0};
	va_list ap;

	va_start(ap, fmt);
	as_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	as_vec_push(notes, (struct as_bench_note){as_xstrdup(kind), as_buf_detach(&text)});
}

static void clear_notes(struct as_bench_notes *notes)
{
	as_vec_foreach (n, notes) {
		free(n->kind);
		free(n->text);
	}
	as_vec_clear(notes);
}

void as_bench_init(struct as_bench *b)
{
	*b = (struct as_bench){
		.time = unknown,
		.wall = unknown,
		.cpu = unknown,
		.user = unknown,
		.system = unknown,
		.mean = NAN,
		.median = NAN,
		.min = NAN,
		.max = NAN,
		.sd = NAN,
		.allocs = NAN,
		.alloc_bytes = NAN,
		.peak_bytes = NAN,
		.peak_rss = NAN,
	};
}

void as_bench_clear(struct as_bench *b)
{
	char *texts[] = {b->name, b->group, b->function, b->value, b->side, b->unit, b->metric};

	for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++)
		free(texts[i]);
	as_vec_clear(&b->samples);
	as_vec_clear(&b->walls);
	as_vec_clear(&b->cpus);
	as_vec_clear(&b->batch_times);
	as_vec_clear(&b->exit_codes);
	as_vec_foreach (p, &b->params) {
		free(p->name);
		free(p->value);
	}
	as_vec_clear(&b->params);
	clear_notes(&b->notes);
	as_bench_init(b);
}

void as_bench_summarise(struct as_bench *b)
{
	struct as_runs_summary s;

	as_runs_summarise(b->samples.v, b->samples.n, &s);
	if (!s.n)
		return;
	b->median = s.median;
	b->min = s.min;
	b->max = s.max;
	b->sd = s.n > 1 ? s.sd : NAN;
	b->mean = 0;
	as_vec_foreach (v, &b->samples)
		b->mean += isnan(*v) ? 0 : *v / (double)s.n;
	if (!isnan(b->time.value))
		return;
	b->time = (struct as_bench_estimate){s.mean, NAN, NAN};
	if (isfinite(s.low) && isfinite(s.high)) {
		b->time.low = s.low;
		b->time.high = s.high;
	}
}

void as_bench_comparison_init(struct as_bench_comparison *c)
{
	*c = (struct as_bench_comparison){
		.ratio = unknown,
		.by_wall = unknown,
		.by_cpu = unknown,
		.by_median = unknown,
		.delta = NAN,
		.p = NAN,
		.seconds_needed = NAN,
	};
}

void as_bench_comparison_clear(struct as_bench_comparison *c)
{
	free(c->name);
	free(c->a);
	free(c->b);
	free(c->metric);
	as_vec_clear(&c->d);
	clear_notes(&c->notes);
	as_bench_comparison_init(c);
}

void as_bench_complexity_clear(struct as_bench_complexity *c)
{
	free(c->name);
	free(c->param);
	free(c->best);
	as_vec_clear(&c->n);
	as_vec_clear(&c->t);
	*c = (struct as_bench_complexity){.coefficient = NAN,
					  .intercept = NAN,
					  .exponent = NAN,
					  .exponent_low = NAN,
					  .exponent_high = NAN,
					  .knee = NAN};
}

void as_bench_set_clear(struct as_bench_set *s)
{
	free(s->title);
	free(s->machine);
	free(s->toolchain);
	free(s->revision);
	free(s->tool);
	as_vec_foreach (b, &s->benches)
		as_bench_clear(b);
	as_vec_clear(&s->benches);
	as_vec_foreach (c, &s->comparisons)
		as_bench_comparison_clear(c);
	as_vec_clear(&s->comparisons);
	as_vec_foreach (c, &s->complexities)
		as_bench_complexity_clear(c);
	as_vec_clear(&s->complexities);
	clear_notes(&s->notes);
	*s = (struct as_bench_set){0};
}

const struct as_bench *as_bench_find(const struct as_bench_set *s, const char *name,
				     const char *side)
{
	as_vec_foreach (b, &s->benches) {
		if (b->name && strcmp(b->name, name) == 0 &&
		    (!side || (b->side && strcmp(b->side, side) == 0)))
			return b;
	}
	return NULL;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How a session was sampled: see sampling.h. */
#include "model/profile/sampling.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/profile/profile_priv.h"
#include "stats/blocks.h"
#include "stats/interval.h"
#include "stats/lockstep.h"

static const double LEAST = 0.005, MOST = 0.3, BEAT_SHARE = 0.05;
enum { ROWS_MAX = 64, BEAT_ROWS = 8 };

struct row {
	uint32_t function;
	double weight;
	struct as_share_row share;
};
struct work {
	const struct as_model *m;
	double *weight;   /* per function */
	uint32_t *row_of; /* per function: index into rows, AS_NONE */
	AS_VEC(struct row) rows;
	double sum;
};

/* The function whose code it was, inlined or not; AS_NONE: no stack. */
static uint32_t function_of(const struct as_model *m, const struct as_m_sample *s)
{
	const struct as_m_frame *f;

	if (s->stack == AS_NONE)
		return AS_NONE;
	f = &m->frames.v[m->stacks.v[s->stack].frame];
	return m->places.v[f->chain + f->nchain - 1].function;
}

static int by_weight(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return (x->weight < y->weight) - (x->weight > y->weight);
}

static void choose_rows(struct work *w)
{
	as_vec_foreach (s, &w->m->samples) {
		uint32_t f = function_of(w->m, s);

		w->sum += s->weight;
		if (f != AS_NONE)
			w->weight[f] += s->weight;
	}
	for (uint32_t f = 0; f < w->m->functions.n; f++) {
		w->row_of[f] = AS_NONE;
		if (w->weight[f] >= LEAST * w->sum && w->sum > 0)
			as_vec_push(&w->rows,
				    (struct row){.function = f, .weight = w->weight[f]});
	}
	if (w->rows.n)
		qsort(w->rows.v, w->rows.n, sizeof *w->rows.v, by_weight);
	w->rows.n = AS_MIN(w->rows.n, (size_t)ROWS_MAX);
	for (size_t i = 0; i < w->rows.n; i++)
		w->row_of[w->rows.v[i].function] = (uint32_t)i;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double usual_deff(struct work *w)
{
	const struct as_m_sample *v = w->m->samples.v;
	struct as_run_span scope = {v[0].time_ns, v[w->m->samples.n - 1].time_ns};
	double deff[ROWS_MAX];
	struct as_blocks b;
	size_t n = 0;

	as_blocks_of_model(&b, w->m, &scope, w->m->samples.n);
	as_vec_foreach (s, &w->m->samples)
		as_blocks_add(&b, as_blocks_index(&b, s->time_ns), s->weight);
	as_blocks_finish(&b);
	as_vec_foreach (s, &w->m->samples) {
		uint32_t f = function_of(w->m, s), row = f == AS_NONE ? AS_NONE : w->row_of[f];

		if (row != AS_NONE)
			as_share_add(&w->rows.v[row].share, &b, as_blocks_index(&b, s->time_ns),
				     s->weight);
	}
	as_vec_foreach (r, &w->rows) {
		struct as_share_estimate e;

		if (r->weight > MOST * w->sum)
			continue;
		as_share_interval(&r->share, &b, &e);
		deff[n++] = e.deff;
	}
	as_blocks_clear(&b);
	if (!n)
		return 1;
	qsort(deff, n, sizeof *deff, by_value);
	return deff[n / 2];
}

static uint32_t busiest_thread(const struct as_model *m)
{
	AS_CLEANUP(as_free_autop) uint64_t *n = as_xcalloc(m->threads.n + 1, sizeof *n);
	uint32_t best = 0;

	as_vec_foreach (s, &m->samples)
		n[s->thread]++;
	for (uint32_t i = 1; i < m->threads.n; i++)
		best = n[i] > n[best] ? i : best;
	return best;
}

/* Looks at one thread: of several, each has a timer or a CPU of its own. */
static void find_beat(struct work *w, struct as_sampling *ret)
{
	AS_CLEANUP(as_free_autop)
	double *interval = as_xcalloc(AS_BEAT_SAMPLES, sizeof *interval);
	AS_CLEANUP(as_free_autop)
	uint32_t *function = as_xcalloc(AS_BEAT_SAMPLES, sizeof *function);
	AS_CLEANUP(as_free_autop) uint8_t *present = as_xcalloc(AS_BEAT_SAMPLES, 1);
	uint32_t thread = busiest_thread(w->m);
	size_t n = 0;

	as_vec_foreach (s, &w->m->samples) {
		if (s->thread != thread || n == AS_BEAT_SAMPLES)
			continue;
		interval[n] = s->weight;
		function[n++] = function_of(w->m, s);
	}
	if (w->m->recording.weight_unit ||
	    !(as_intervals_likeness(interval, n) > AS_INTERVALS_LIKE))
		return;
	for (size_t i = 0; i < AS_MIN(w->rows.n, (size_t)BEAT_ROWS) && !ret->beat; i++) {
		if (w->rows.v[i].weight < BEAT_SHARE * w->sum)
			break;
		for (size_t k = 0; k < n; k++)
			present[k] = function[k] == w->rows.v[i].function;
		ret->beat = as_beat(present, n);
		ret->beat_function = w->rows.v[i].function;
	}
}

void as_model_sampling(const struct as_model *m, struct as_sampling *ret)
{
	struct work w = {.m = m};
	double z = as_normal_quantile(0.5 + AS_CONFIDENCE / 2) / AS_ADVICE_HALF;

	*ret = (struct as_sampling){.deff = 1};
	if (m->samples.n) {
		w.weight = as_xcalloc(m->functions.n + 1, sizeof *w.weight);
		w.row_of = as_xcalloc(m->functions.n + 1, sizeof *w.row_of);
		choose_rows(&w);
		ret->deff = usual_deff(&w);
		find_beat(&w, ret);
		free(w.weight);
		free(w.row_of);
		as_vec_clear(&w.rows);
	}
	ret->need_samples = z * z * AS_ADVICE_SHARE * (1 - AS_ADVICE_SHARE) * ret->deff;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Estimates and ratios from what the processes told: see driver.h. */
#include <math.h>
#include <stdlib.h>

#include "harness/driver_priv.h"
#include "stats/interval.h"

typedef double (*figure_of)(const struct as_fn_process *p);

static double q25_of(const struct as_fn_process *p)
{
	return p->q25;
}

static double median_of(const struct as_fn_process *p)
{
	return p->median;
}

static double mean_of(const struct as_fn_process *p)
{
	return p->mean;
}

static double cpu_of(const struct as_fn_process *p)
{
	return p->cpu;
}

/* Of two values Student's t with one degree of freedom: wide, and true. */
static void pair_interval(const double *v, double alpha, struct as_fn_estimate *e)
{
	double half = as_student_quantile(1 - alpha / 2, 1) * fabs(v[0] - v[1]) / 2;

	e->low = e->value - half;
	e->high = e->value + half;
}

static struct as_fn_estimate estimate_of(const struct as_measuring *m,
					 const struct as_fn_side_result *s, figure_of figure,
					 struct as_runs_summary *ret_runs)
{
	AS_CLEANUP(as_free_autop) double *v = as_xcalloc(s->processes.n + 1, sizeof *v);
	double alpha = 1 - (m->q->confidence > 0 ? m->q->confidence : AS_CONFIDENCE);
	struct as_runs_summary runs;
	struct as_fn_estimate e;
	size_t n = 0;

	as_vec_foreach (p, &s->processes) {
		double x = figure(p);

		if (!isnan(x))
			v[n++] = x;
	}
	as_runs_summarise_at(v, n, alpha, &runs);
	e = (struct as_fn_estimate){runs.mean, NAN, NAN};
	if (n >= 3) {
		e.low = runs.low;
		e.high = runs.high;
	} else if (n == 2) {
		pair_interval(v, alpha, &e);
	}
	if (ret_runs)
		as_runs_summarise(v, n, ret_runs);
	return e;
}

/* Two-sided, that the trimmed mean of pairs is zero. */
static double p_of(const struct as_trimmed *t)
{
	size_t g = (size_t)(AS_PAIRED_TRIM * (double)t->n);
	double df = (double)(t->n - 2 * g) - 1, x;

	if (t->n < 3 || !isfinite(t->se))
		return NAN;
	if (!(t->se > 0))
		return t->value == 0 ? 1 : 0;
	x = t->value / t->se;
	return as_beta_cdf(df / (df + x * x), df / 2, 0.5);
}

/* A benchmark with two speeds, one to a process: which of them a process gets is no property of the
 * side. A difference smaller than they are apart is no verdict. */
static void doubt_bimodal(struct as_fn_result *r)
{
	double size = fabs(r->look.interval.value);

	for (unsigned s = 0; s < 2; s++) {
		const struct as_runs_summary *runs = &r->side[s].runs;

		if (runs->mixture && runs->groups[0] > 0 &&
		    size < log(runs->groups[1] / runs->groups[0]) &&
		    (r->look.verdict == AS_VERDICT_SLOWER ||
		     r->look.verdict == AS_VERDICT_FASTER))
			r->look.verdict = AS_VERDICT_UNDECIDED;
	}
}

/* The low quartile does not see what happens to fewer than three batches of four. */
static void doubt_equal(struct as_fn_result *r)
{
	const struct as_trimmed *m = &r->by_median;

	if (r->look.verdict == AS_VERDICT_EQUAL &&
	    (m->lo > r->delta / 2 || m->hi < -r->delta / 2))
		r->look.verdict = AS_VERDICT_UNDECIDED;
}

void as_measuring_summarise(struct as_measuring *m)
{
	struct as_fn_result *r = m->r;
	double alpha = m->q->alpha > 0 ? m->q->alpha : 1 - AS_CONFIDENCE;

	for (unsigned side = 0; side < m->sides; side++) {
		struct as_fn_side_result *s = &r->side[side];

		s->time = estimate_of(m, s, q25_of, &s->runs);
		s->median = estimate_of(m, s, median_of, NULL);
		s->mean = estimate_of(m, s, mean_of, NULL);
		s->cpu = estimate_of(m, s, cpu_of, NULL);
		if (r->exact)
			s->time.low = s->time.high = s->time.value;
	}
	r->setup_share = m->setup_ns > 0 ? 1 - m->timed_ns / m->setup_ns : NAN;
	if (m->sides < 2)
		return;
	as_trimmed_interval(r->d.v, r->d.n, AS_PAIRED_TRIM, alpha, &r->by_q25);
	as_trimmed_interval(m->d[0].v, m->d[0].n, AS_PAIRED_TRIM, alpha, &r->by_median);
	as_trimmed_interval(m->d[1].v, m->d[1].n, AS_PAIRED_TRIM, alpha, &r->by_cpu);
	r->p = p_of(&r->by_q25);
	if (r->exact)
		return;
	doubt_bimodal(r);
	doubt_equal(r);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What may be wrong with a benchmark, or with the machine, said: notes of as_fn_result. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/driver_priv.h"
#include "stats/interval.h"

#define COLD           1.5  /* first batch over the process's low quartile */
#define DRIFT          0.5  /* correlation of neighbours */
#define WARM_LEAST     0.02 /* ln, first half against second */
#define WARM_LEVEL     0.01
#define WARM_PROCESSES 10
#define TIMER_MANY     20
#define TIMER_SHARE    0.02
#define SETUP_SHARE    0.5
#define OVERLAP        0.9
#define EMPTY_LOOPS    1.3  /* empty loops */
#define LAYOUT         0.05 /* identical code moved by padding: measured 4 to 13 % */
#define FEW            8
#define CHANGED        10 /* calibration against the processes; a busy machine makes less of it */

static bool is_time(const struct as_fn_result *r)
{
	return strcmp(r->what.unit, "ns") == 0;
}

static double per_iteration(const struct as_fn_result *r)
{
	return r->side[r->sides - 1].time.value;
}

/* Middle of a figure over the processes of the newest side. */
static double middle(const struct as_fn_result *r,
		     double (*figure)(const struct as_fn_process *))
{
	const struct as_fn_side_result *s = &r->side[r->sides - 1];
	AS_CLEANUP(as_free_autop) double *v = as_xcalloc(s->processes.n + 1, sizeof *v);
	size_t n = 0;

	as_vec_foreach (p, &s->processes) {
		double x = figure(p);

		if (!isnan(x))
			v[n++] = x;
	}
	qsort(v, n, sizeof *v, as_by_value);
	return n ? as_quantile(v, n, 0.5) : NAN;
}

/* ---- the benchmark ---- */

static void lint_body(const struct as_measuring *m)
{
	struct as_fn_result *r = m->r;
	double t = per_iteration(r);

	if (!is_time(r) || !(t < EMPTY_LOOPS * r->loop_ns) || r->what.threads > 1)
		return;
	as_fn_add_note(
		r, "optimised-away",
		"an iteration takes %.2g ns, an empty loop %.2g ns: the compiler may have left "
		"nothing of it; hide its arguments and use its result (black box)",
		t, r->loop_ns);
}

static void lint_proportion(const struct as_measuring *m)
{
	const struct as_calibration *c = &m->calibration[m->sides - 1];
	struct as_fn_result *r = m->r;
	double t = per_iteration(r), calibrated = c->value / (double)r->iterations;

	if (is_time(r) && c->value < TIMER_MANY * r->clock_ns)
		return; /* the clock's own, at most */
	if (c->proportion < AS_PROPORTION_LO)
		as_fn_add_note(
			r, "not-proportional",
			"twice the iterations took %.2g times as long, not twice: does the "
			"benchmark run as many as it is asked for?",
			2 * c->proportion);
	else if (c->proportion > AS_PROPORTION_HI)
		as_fn_add_note(
			r, "not-proportional",
			"twice the iterations took %.2g times as long, not twice: iterations "
			"become slower, as when each adds to what the next works on",
			2 * c->proportion);
	else if (c->iterations == r->iterations && !r->exact && is_time(r) &&
		 r->what.threads < 2 && (calibrated > CHANGED * t || t > CHANGED * calibrated))
		as_fn_add_note(
			r, "not-proportional",
			"an iteration took %.3g ns while the number of iterations was found "
			"out and %.3g ns afterwards: it depends on how many were run before",
			calibrated, t);
}

static void lint_setup(const struct as_measuring *m)
{
	struct as_fn_result *r = m->r;
	double batch = per_iteration(r) * (double)r->iterations;

	if (!is_time(r))
		return;
	if (r->setup_share > SETUP_SHARE)
		as_fn_add_note(
			r, "setup-dominates",
			"%.4g %% of a batch is set-up that is not timed: of each batch only "
			"%.3g us is the benchmark's",
			100 * r->setup_share, batch / 1e3);
	if (batch * TIMER_SHARE < r->clock_ns)
		as_fn_add_note(r, "timer",
			       "a batch of %" PRIu64
			       " iterations takes %.3g ns, reading the clock %.3g "
			       "ns: the last digits are the clock's",
			       r->iterations, batch, r->clock_ns);
}

/* ---- within a process ---- */

static double first_of(const struct as_fn_process *p)
{
	return p->first / p->q25;
}

static double overlap_of(const struct as_fn_process *p)
{
	return p->overlap;
}

static double mean_ln(const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i] > 0 ? log(v[i]) : NAN;
	return sum / (double)n;
}

/* First against second half of each process's batches, over the processes. */
static void lint_warm_up(const struct as_measuring *m)
{
	struct as_fn_result *r = m->r;
	const struct as_fn_side_result *s = &r->side[r->sides - 1];
	AS_CLEANUP(as_free_autop) double *d = as_xcalloc(s->processes.n + 1, sizeof *d);
	const double *v = s->batches.v;
	struct as_trimmed t;
	size_t n = 0;

	as_vec_foreach (p, &s->processes) {
		size_t half = p->batches / 2;

		if (half)
			d[n] = mean_ln(v, half) - mean_ln(v + p->batches - half, half);
		n += half && isfinite(d[n]);
		v += p->batches;
	}
	if (n < WARM_PROCESSES)
		return;
	as_trimmed_interval(d, n, AS_PAIRED_TRIM, WARM_LEVEL, &t);
	if (t.lo > WARM_LEAST)
		as_fn_add_note(
			r, "warm-up",
			"the first half of a process's batches is %.1f %% slower than the "
			"second: it was still warming up",
			100 * expm1(t.value));
	else if (t.hi < -WARM_LEAST)
		as_fn_add_note(
			r, "warm-up",
			"the second half of a process's batches is %.1f %% slower than the "
			"first: it slows down as it runs",
			100 * expm1(-t.value));
}

static void lint_first(const struct as_measuring *m)
{
	double first = middle(m->r, first_of);

	if (m->r->warmups && first > COLD)
		as_fn_add_note(
			m->r, "cold",
			"a process's first batch takes %.2g times as long as the others; it is "
			"not counted",
			first);
}

/* ---- between processes ---- */

static void lint_spread(const struct as_measuring *m)
{
	struct as_fn_result *r = m->r;
	static const char *const whose[2][2] = {{"", ""}, {" (before)", " (now)"}};

	for (unsigned s = 0; s < m->sides; s++) {
		const struct as_runs_summary *runs = &r->side[s].runs;
		const char *side = whose[m->sides - 1][s];

		if (runs->mixture)
			as_fn_add_note(r, "bimodal",
				       "bimodal between processes%s: about %.4g or %.4g %s, "
				       "one of them "
				       "in each process; the mean describes neither",
				       side, runs->groups[0], runs->groups[1], r->what.unit);
		if (runs->drift > DRIFT)
			as_fn_add_note(r, "drift",
				       "the machine's speed drifts%s: neighbouring processes "
				       "correlate "
				       "by %.2g, and the interval was widened for it",
				       side, runs->drift);
	}
}

static void lint_pairs(const struct as_measuring *m)
{
	struct as_fn_result *r = m->r;

	if (m->sides < 2 || r->exact)
		return;
	if (r->look.mixture)
		as_fn_add_note(
			r, "mixture",
			"the pairs are no one population: their middle and their trimmed mean "
			"exclude each other");
	if (r->by_median.lo > r->by_q25.hi || r->by_median.hi < r->by_q25.lo)
		as_fn_add_note(
			r, "disagree",
			"the low quartile of the batches says %+.2f %%, their median %+.2f %%: "
			"not all batches are affected alike",
			100 * expm1(r->by_q25.value), 100 * expm1(r->by_median.value));
	if (m->q->as_they_are)
		return;
	if (!m->copies.same && is_time(r) && r->look.verdict >= AS_VERDICT_SLOWER &&
	    fabs(r->look.interval.value) < LAYOUT)
		as_fn_add_note(
			r, "layout",
			"one build of each cannot tell this from where code happens to lie in "
			"memory, which alone makes up to about 5 %%; build both with "
			"-falign-functions=64 -falign-loops=32 to be sure");
	if (m->copies.copied)
		return;
	as_fn_add_note(r, "not-copied", "the programs were run from where they are: %s",
		       m->copies.why);
}

static void lint_processes(const struct as_measuring *m)
{
	struct as_fn_result *r = m->r;
	size_t n = r->side[m->sides - 1].processes.n;
	const struct as_calibration *c = &m->calibration[0];

	if (m->source == AS_SERVED)
		as_fn_add_note(
			r, "forked",
			"the program takes %.3g s to reach it, so samples are forks of one "
			"process: what differs between processes is not in the interval",
			c->startup_s + c->first_wall_ns / 1e9);
	else if (m->source == AS_HERE)
		as_fn_add_note(r, "in-process",
			       "a new process does not reach it under this name, so it was "
			       "measured in "
			       "%s: what differs between processes is not in the interval",
			       m->forked ? "forks of this one" : "this one");
	else if (n == 1 && !r->exact)
		as_fn_add_note(r, "one-process", "one process only: there is no interval");
	else if (n < FEW && !r->exact && (!m->q->processes || n < m->q->processes))
		as_fn_add_note(r, "few-processes",
			       "%zu processes in the time there was (one takes %.3g s, %.3g s "
			       "of it until "
			       "the benchmark is reached): the interval is wide",
			       n, m->process_s, c->startup_s);
	if (m->unoptimised)
		as_fn_add_note(r, "debug-build", "built without optimisation");
	if (r->dropped_timeout)
		as_fn_add_note(r, "dropped",
			       "one process was ended unfinished: the time was over");
	if (as_measuring_is_interrupted(m))
		as_fn_add_note(r, "interrupted",
			       "interrupted: what was measured before is shown");
}

static void lint_threads(const struct as_measuring *m)
{
	double overlap = middle(m->r, overlap_of);

	if (m->r->what.threads > 1 && overlap < OVERLAP)
		as_fn_add_note(
			m->r, "overlap",
			"the %u threads ran at the same time for %.0f %% of the time only",
			m->r->what.threads, 100 * overlap);
}

void as_measuring_lint(struct as_measuring *m)
{
	if (!m->r->what.unit || m->r->failed)
		return;
	lint_body(m);
	lint_proportion(m);
	lint_setup(m);
	lint_warm_up(m);
	lint_first(m);
	lint_threads(m);
	lint_spread(m);
	lint_pairs(m);
	lint_processes(m);
}

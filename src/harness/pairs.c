/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Two programs in pairs, looked at as they come: see driver.h and stats/paired.h. */
#include <math.h>

#include "base/sys.h"
#include "harness/driver_priv.h"
#include "stats/interval.h"

#define PAIRS_LEAST 3 /* pairs of an interval */

static const struct as_fn_process *last(const struct as_measuring *m, unsigned side)
{
	return &m->r->side[side].processes.v[m->r->side[side].processes.n - 1];
}

/* Both zero is no difference; zero against something is as much of one as there can be. */
static double ln_ratio(double a, double b)
{
	if (a == b)
		return 0;
	return a > 0 && b > 0 ? log(b / a) : b > a ? 10 : -10;
}

static int run_pair(struct as_measuring *m, struct as_error *err)
{
	unsigned first = (unsigned)(as_measuring_random(m) >> 63);
	int r = as_measuring_sample(m, first, err);

	if (r == 1)
		r = as_measuring_sample(m, !first, err);
	if (m->r->side[0].processes.n != m->r->side[1].processes.n)
		return r; /* the second is missing */
	as_vec_push(&m->r->d, ln_ratio(last(m, 0)->q25, last(m, 1)->q25));
	as_vec_push(&m->d[0], ln_ratio(last(m, 0)->median, last(m, 1)->median));
	as_vec_push(&m->d[1], ln_ratio(last(m, 0)->cpu, last(m, 1)->cpu));
	return r;
}

static void look(struct as_measuring *m, struct as_sequence *s, double fraction)
{
	m->r->look = as_sequence_look(s, m->r->d.v, m->r->d.n, fraction);
}

static bool is_last(const struct as_measuring *m, double begun_s)
{
	double at = as_measuring_elapsed(m), pair = (at - begun_s) / (double)m->r->d.n;

	if (m->q->processes && m->r->d.n >= m->q->processes)
		return true;
	return m->r->d.n >= PAIRS_LEAST && at + pair / 2 > m->budget_s;
}

/* Values that always agree need no pairs; what they differ by is no chance. */
void as_measuring_judge_exact(struct as_measuring *m)
{
	double d = ln_ratio(m->r->side[0].processes.v[0].q25, m->r->side[1].processes.v[0].q25);
	struct as_trimmed all = {.n = 1, .value = d, .lo = d, .hi = d, .se = 0};

	as_vec_push(&m->r->d, d);
	as_vec_push(&m->d[0], d);
	as_vec_push(&m->d[1], 0);
	m->r->look = (struct as_look){.interval = all,
				      .plain = all,
				      .level = 1,
				      .verdict = fabs(d) < m->r->delta ? AS_VERDICT_EQUAL
						 : d > 0               ? AS_VERDICT_SLOWER
								       : AS_VERDICT_FASTER};
}

int as_measuring_pairs(struct as_measuring *m, struct as_error *err)
{
	struct as_sequence_rule rule = {.alpha = m->q->alpha, .delta = m->r->delta};
	struct as_sequence sequence;
	double begun = as_measuring_elapsed(m);
	bool end = false;
	int r = 1;

	as_sequence_init(&sequence, &rule);
	while (r == 1 && !end) {
		r = run_pair(m, err);
		end = r != 1 || is_last(m, begun) || as_measuring_is_interrupted(m);
		if (m->r->d.n >= PAIRS_LEAST &&
		    (end || (!m->q->fixed && as_sequence_due(&sequence, m->r->d.n)))) {
			double spent = m->q->processes
					       ? (double)m->r->d.n / (double)m->q->processes
					       : 0;

			look(m, &sequence,
			     end ? 1 : fmax(as_measuring_elapsed(m) / m->budget_s, spent));
			end |= m->r->look.verdict != AS_VERDICT_UNDECIDED;
		}
		if (r == 1 && m->q->progress)
			m->q->progress(m->q->progress_ctx, m->r);
	}
	if (m->r->look.pairs_needed > m->r->d.n && m->r->d.n)
		m->r->seconds_needed = (double)(m->r->look.pairs_needed - m->r->d.n) *
				       (as_measuring_elapsed(m) - begun) / (double)m->r->d.n;
	else if (m->r->look.verdict == AS_VERDICT_UNDECIDED)
		m->r->seconds_needed = NAN;
	if (r == 0 && !m->r->failed && m->r->side[1].processes.n)
		return 1;
	return r;
}

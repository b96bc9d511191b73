/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * When samples were lost. The same samples stand in a TICK, which counts its CPU's last second, and
 * may stand in LOST records, which know when. A LOST at its tick's own time knows nothing more.
 */
#include "model/model_priv.h"

#include <stdlib.h>

#define TICK_NS 1000000000ull
#define SAME_NS 1000000ull

static int by_cpu(const void *pa, const void *pb)
{
	const struct as_m_loss *a = pa, *b = pb;

	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? -1 : 1;
	return a->to_ns < b->to_ns ? -1 : a->to_ns > b->to_ns;
}

static int by_time(const void *pa, const void *pb)
{
	const struct as_m_loss *a = pa, *b = pb;

	if (a->from_ns != b->from_ns)
		return a->from_ns < b->from_ns ? -1 : 1;
	return by_cpu(pa, pb);
}

/* What the heard losses of a tick's time do not account for becomes one of the whole time; those
 * that only repeat the tick get the count 0. Returns the first loss behind the tick. */
static size_t join(struct as_model *m, const struct as_m_loss *tick, size_t at, size_t heard)
{
	struct as_m_loss *v = m->losses.v;
	uint64_t rest = tick->count, repeated = tick->to_ns - AS_MIN(SAME_NS, tick->to_ns);
	size_t end = at;

	while (end < heard && v[end].cpu == tick->cpu && v[end].to_ns <= tick->to_ns)
		end++;
	for (size_t i = at; i < end; i++) {
		if (v[i].to_ns < repeated)
			rest -= AS_MIN(rest, v[i].count);
	}
	for (size_t i = at; rest && i < end; i++) {
		if (v[i].to_ns >= repeated)
			v[i].count = 0;
	}
	if (rest)
		as_vec_push(&m->losses,
			    (struct as_m_loss){tick->from_ns, tick->to_ns, rest, tick->cpu});
	return end;
}

void as_model_order_losses(struct as_model *m)
{
	AS_VEC(struct as_m_loss) ticks = {0};
	size_t heard = m->losses.n, at = 0, n = 0;
	const struct as_m_loss *last = NULL;

	as_vec_foreach (t, &m->ticks)
		as_vec_push(&ticks, (struct as_m_loss){0, t->time_ns,
						       t->lost_kernel + t->lost_queue, t->cpu});
	if (ticks.n)
		qsort(ticks.v, ticks.n, sizeof *ticks.v, by_cpu);
	if (heard)
		qsort(m->losses.v, heard, sizeof *m->losses.v, by_cpu);
	as_vec_foreach (t, &ticks) {
		uint64_t start = m->recording.start_ns;

		t->from_ns = t->to_ns - AS_MIN(t->to_ns, TICK_NS);
		if (last && last->cpu == t->cpu)
			start = last->to_ns;
		t->from_ns = AS_MIN(AS_MAX(t->from_ns, start), t->to_ns);
		while (at < heard &&
		       (m->losses.v[at].cpu < t->cpu ||
			(m->losses.v[at].cpu == t->cpu && last && last->cpu == t->cpu &&
			 m->losses.v[at].to_ns <= last->to_ns)))
			at++;
		at = join(m, t, at, heard);
		last = t;
	}
	as_vec_foreach (l, &m->losses) {
		if (l->count)
			m->losses.v[n++] = *l;
	}
	m->losses.n = n;
	if (n)
		qsort(m->losses.v, n, sizeof *m->losses.v, by_time);
	as_vec_clear(&ticks);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A batch run by several threads at once: see subject_priv.h. The threads are started anew for each
 * batch; what that takes is before the barrier, where their timed stretches begin together.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/sys.h"
#include "harness/subject_priv.h"

#define SPINS 2000

struct member {
	struct as_team *team;
	pthread_t thread;
	unsigned index;
	double value, cpu_ns; /* written by the member, read after it was joined */
	uint64_t from, to;
};
struct as_team {
	const struct as_subject *subject;
	uint64_t iters;
	unsigned n;
	atomic_uint arrived; /* acquire by those who wait, release by those who arrive */
	struct member *members;
};

static __thread struct as_team *own_team;
static __thread unsigned own_index;
static __thread bool has_arrived;

unsigned as_team_index(void)
{
	return own_index;
}

void as_team_join(struct as_team *t, unsigned index)
{
	own_team = t;
	own_index = index;
	has_arrived = false;
}

void as_team_arrive(void)
{
	if (!own_team || has_arrived)
		return;
	has_arrived = true;
	atomic_fetch_add_explicit(&own_team->arrived, 1, memory_order_release);
	for (unsigned i = 0;
	     atomic_load_explicit(&own_team->arrived, memory_order_acquire) < own_team->n;
	     i++) {
		if (i > SPINS)
			(void)sched_yield();
	}
}

/* Of a member that never timed anything: the others shall not wait for it. */
static void leave_team(void)
{
	if (!has_arrived)
		atomic_fetch_add_explicit(&own_team->arrived, 1, memory_order_release);
	own_team = NULL;
	own_index = 0;
}

static void *run_member(void *ctx)
{
	struct member *m = ctx;
	uint64_t cpu, from;
	struct as_stretch stretch;

	as_team_join(m->team, m->index);
	as_stretch_reset();
	cpu = as_thread_cpu_ns();
	from = as_now_ns();
	m->value = m->team->subject->fn(m->team->subject->ctx, m->team->iters);
	m->to = as_now_ns();
	m->cpu_ns = (double)(as_thread_cpu_ns() - cpu);
	leave_team();
	stretch = as_stretch_get();
	m->from = stretch.first_begin ? stretch.first_begin : from;
	if (stretch.last_end)
		m->to = stretch.last_end;
	return NULL;
}

static void sum_up(const struct as_team *t, struct as_answer_batch *ret)
{
	uint64_t first = UINT64_MAX, last = 0, all_began = 0, one_ended = UINT64_MAX;
	double value = 0, cpu = 0;

	for (unsigned i = 0; i < t->n; i++) {
		const struct member *m = &t->members[i];

		value += m->value / t->n;
		cpu += m->cpu_ns / t->n;
		first = AS_MIN(first, m->from);
		all_began = AS_MAX(all_began, m->from);
		last = AS_MAX(last, m->to);
		one_ended = AS_MIN(one_ended, m->to);
	}
	ret->value = value;
	ret->cpu_ns = cpu;
	ret->rate = last > first
			    ? (double)t->n * (double)t->iters / (double)(last - first) * 1e9
			    : NAN;
	ret->overlap = last > first && one_ended > all_began
			       ? (double)(one_ended - all_began) / (double)(last - first)
			       : 0;
}

int as_team_run(const struct as_subject *s, uint64_t iters, struct as_answer_batch *ret,
		struct as_error *err)
{
	struct as_team team = {.subject = s, .iters = iters, .n = s->spec->threads};
	AS_CLEANUP(as_free_autop) struct member *members = as_xcalloc(team.n, sizeof *members);
	uint64_t wall = as_now_ns();
	unsigned started = 1;
	int e = 0;

	team.members = members;
	for (unsigned i = 0; i < team.n; i++)
		members[i] = (struct member){.team = &team, .index = i};
	while (started < team.n && e == 0) {
		e = pthread_create(&members[started].thread, NULL, run_member,
				   &members[started]);
		started += e == 0;
	}
	/* those that could not be started are not waited for */
	atomic_fetch_add_explicit(&team.arrived, team.n - started, memory_order_release);
	run_member(&members[0]);
	for (unsigned i = 1; i < started; i++)
		(void)pthread_join(members[i].thread, NULL); /* it was started above */
	if (e)
		return as_fail(err, AS_E_IO, e, "cannot start thread %u of %u: %s", started + 1,
			       team.n, strerror(e));
	sum_up(&team, ret);
	ret->wall_ns = (double)(as_now_ns() - wall);
	return AS_OK;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Commands in rounds: see rounds.h. */
#include "measure/rounds.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/map.h"
#include "base/sys.h"
#include "measure/shell.h"
#include "measure/strays.h"
#include "stats/runs.h"

#define EXPLAINED    0.9 /* CPU time over wall time without waiting, from which CPU time decides */
#define UNTIL_LEAST  5    /* runs before an interval is believed */
#define UNTIL_GROWTH 1.05 /* of the runs between two looks at it */
#define RUNS_FIRST   64
#define CPU_LEAST_S  1e-6 /* the clock's step: a ratio needs something to divide by */
#define ENDING_S     0.6  /* SIGTERM to SIGKILL, kept free before a hard end */

enum step { STEP_ON, STEP_END }; /* negative: an error */

struct arm {
	struct as_sequence sequence;
	bool active, decided, known;
	size_t next_known;
};

struct state {
	const struct as_rounds_request *q;
	struct as_rounds *r;
	struct arm *arms;
	size_t *order; /* of this round */
	uint64_t random;
	uint32_t round;
	uint64_t warm_up;               /* which of the rounds that do not count */
	uint64_t began_ns, deadline_ns; /* 0: no hard end */
	struct as_strays strays;
};

static uint64_t next_random(struct state *s)
{
	s->random += 0x9e3779b97f4a7c15ull;
	return as_mix64(s->random);
}

static bool is_interrupted(const struct state *s)
{
	return s->q->interrupted && *s->q->interrupted;
}

/* ---- runs ---- */

void as_runs_push(struct as_runs *runs, const struct as_run *run)
{
	size_t cap = runs->v.cap ? runs->v.cap * 2 : RUNS_FIRST;

	if (runs->v.n == runs->v.cap) {
		void *p = mmap(NULL, cap * sizeof *run, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			as_oom();
		(void)madvise(p, cap * sizeof *run, MADV_DONTFORK); /* copied: no fault */
		if (runs->v.n)
			memcpy(p, runs->v.v, runs->v.n * sizeof *run);
		if (runs->v.cap)
			(void)munmap(runs->v.v, runs->v.cap * sizeof *run);
		runs->v.v = p;
		runs->v.cap = cap;
	}
	runs->v.v[runs->v.n++] = *run;
}

void as_runs_clear(struct as_runs *runs)
{
	if (runs->v.cap)
		(void)munmap(runs->v.v, runs->v.cap * sizeof *runs->v.v);
	*runs = (struct as_runs){0};
}

bool as_runs_explained(const struct as_runs *runs)
{
	double cpu = 0, wall = 0;

	as_vec_foreach (run, &runs->v) {
		double wait = run->v[AS_M_RUN_WAIT];

		cpu += run->v[AS_M_CPU];
		wall += run->v[AS_M_WALL] - (isnan(wait) ? 0 : AS_MIN(wait, run->v[AS_M_WALL]));
	}
	return cpu >= EXPLAINED * wall;
}

/* ---- time ---- */

static double elapsed(const struct state *s)
{
	if (s->q->budget_of_runs)
		return s->r->seconds;
	return (double)(as_now_ns() - s->began_ns) / 1e9;
}

static bool budget_used(const struct state *s)
{
	return s->q->budget_s > 0 && elapsed(s) > s->q->budget_s;
}

/* The nearer of the end of this run and the end of all. */
static uint64_t run_deadline(const struct state *s)
{
	uint64_t own =
		s->q->timeout_s > 0 ? as_now_ns() + (uint64_t)(s->q->timeout_s * 1e9) : 0;

	if (!own || !s->deadline_ns)
		return own ? own : s->deadline_ns;
	return AS_MIN(own, s->deadline_ns);
}

/* A run that would be ended at the hard end tells nothing. The first ones are tried. */
static bool fits(const struct state *s, size_t a)
{
	const struct as_arm_result *r = &s->r->v[a];

	if (!s->deadline_ns || !r->runs.v.n)
		return true;
	return (double)as_now_ns() + r->seconds / (double)r->runs.v.n * 1e9 <
	       (double)s->deadline_ns;
}

/* ---- one run ---- */

static int around(struct state *s, const char *command, const char *what, struct as_error *err)
{
	struct as_shell_request q = {.shell = s->q->shell,
				     .command = command,
				     .what = what,
				     .silent = s->q->silent,
				     .deadline_ns = run_deadline(s),
				     .interrupted = s->q->interrupted};
	int r = as_shell_run(&q, err);

	if (r < 0 && is_interrupted(s))
		return STEP_END;
	if (r == AS_E_LIMIT && s->deadline_ns && as_now_ns() >= s->deadline_ns) {
		s->r->out_of_budget = true;
		return STEP_END;
	}
	return r < 0 ? r : STEP_ON;
}

static bool is_failure(const struct as_rounds_request *q, int status)
{
	return WIFSIGNALED(status) ||
	       (WEXITSTATUS(status) != 0 && !(q->ignored && q->ignored[WEXITSTATUS(status)]));
}

static void end_strays(struct state *s, struct as_arm_result *a)
{
	char name[AS_STRAY_NAME];
	size_t n = s->q->keep_strays ? 0 : as_strays_end(&s->strays, name);

	if (n && !a->left)
		memcpy(a->left_name, name, sizeof a->left_name);
	a->left += n;
}

/* What became of a run that ended: kept, or the arm is out. */
static void take(struct state *s, size_t at, const struct as_run *run, bool keep)
{
	struct as_arm_result *a = &s->r->v[at];

	if (run->timed_out && s->deadline_ns && as_now_ns() >= s->deadline_ns) {
		s->r->out_of_budget = true; /* not its fault */
		return;
	}
	if (run->timed_out) {
		if (!a->timeouts++)
			a->timeout_run = a->runs.v.n + 1;
		a->out |= !s->q->ignore_failure;
		return;
	}
	if (keep) {
		as_runs_push(&a->runs, run);
		as_vec_push(&a->rounds, s->round);
	}
	a->seconds += run->v[AS_M_WALL];
	s->r->seconds += run->v[AS_M_WALL];
	if (!is_failure(s->q, run->wait_status))
		return;
	a->failures++;
	if (!a->failed_run) {
		a->failed_run = a->runs.v.n + !keep;
		a->failed_status = run->wait_status;
	}
	a->out |= !s->q->ignore_failure;
}

static int run_arm(struct state *s, size_t at, bool keep, struct as_error *err)
{
	const struct as_arm *arm = &s->q->arms[at];
	struct as_run_request q = arm->run;
	char number[32];
	struct as_run run;
	int e;

	if (!s->q->keep_strays)
		as_strays_mark(&s->strays);
	e = around(s, arm->prepare, "prepare", err);
	if (e != STEP_ON)
		return e;
	if (!s->q->keep_strays && arm->prepare)
		as_strays_mark(&s->strays); /* a server that it started may stay */
	q.env_pad_bytes = (unsigned)(next_random(s) % AS_ENV_PAD_MAX);
	snprintf(number, sizeof number, keep ? "%" PRIu64 : "warmup-%" PRIu64,
		 keep ? (uint64_t)s->r->v[at].runs.v.n : s->warm_up);
	q.number = number;
	q.interrupted = s->q->interrupted;
	q.impatient = !s->q->failure_ends;
	q.deadline_ns = run_deadline(s);
	e = as_run_once(&q, &run, err);
	if (e < 0)
		return e;
	end_strays(s, &s->r->v[at]);
	if (is_interrupted(s))
		return STEP_END;
	take(s, at, &run, keep);
	if (s->r->out_of_budget)
		return STEP_END;
	e = around(s, arm->conclude, "conclude", err);
	if (e == STEP_ON && s->q->progress && keep)
		s->q->progress(s->q->progress_ctx, at, s->r->v[at].runs.v.n,
			       at ? &s->r->v[at].look : NULL);
	return e;
}

/* ---- what is known ---- */

static bool is_exact(const struct as_rounds_request *q)
{
	return q->max_runs && q->min_runs == q->max_runs;
}

static bool is_full(const struct state *s, size_t at)
{
	return s->q->max_runs && s->r->v[at].runs.v.n >= s->q->max_runs;
}

static bool precise(struct state *s, size_t at)
{
	const struct as_runs *runs = &s->r->v[at].runs;
	struct arm *arm = &s->arms[at];
	AS_CLEANUP(as_free_autop) double *wall = NULL;
	struct as_runs_summary sum;

	if (!(s->q->until > 0) || arm->known)
		return true;
	if (runs->v.n < UNTIL_LEAST || runs->v.n < arm->next_known)
		return false;
	arm->next_known = (size_t)((double)runs->v.n * UNTIL_GROWTH) + 1;
	wall = as_xreallocarray(NULL, runs->v.n, sizeof *wall);
	for (size_t i = 0; i < runs->v.n; i++)
		wall[i] = runs->v.v[i].v[AS_M_WALL];
	as_runs_summarise(wall, runs->v.n, &sum);
	arm->known = (sum.high - sum.low) / 2 <= s->q->until * sum.mean;
	return arm->known;
}

/* Of one command by itself. */
static bool known_enough(struct state *s, size_t at)
{
	const struct as_arm_result *a = &s->r->v[at];

	if (a->out || s->q->arms[at].aside || is_full(s, at))
		return true;
	if (a->runs.v.n < s->q->min_runs || is_exact(s->q))
		return false;
	if (s->q->n == 1 && !(s->q->until > 0) && a->seconds < s->q->enough_s)
		return false;
	return precise(s, at);
}

static void both_ratios(struct as_arm_result *a)
{
	for (int k = 0; k < 2; k++)
		as_trimmed_interval(a->d[k].v, a->d[k].n, AS_PAIRED_TRIM, 0.05, &a->by[k]);
	a->disagree = a->by[0].lo > a->by[1].hi || a->by[1].lo > a->by[0].hi;
}

static void look(struct state *s, size_t at, bool last)
{
	struct as_arm_result *a = &s->r->v[at];
	struct arm *arm = &s->arms[at];
	size_t n = a->d[0].n;
	double t = 0;

	if (s->q->budget_s > 0)
		t = elapsed(s) / s->q->budget_s;
	if (s->q->max_runs)
		t = AS_MAX(t, (double)n / (double)s->q->max_runs);
	if (last || !(t > 0))
		t = AS_MAX(t, 1);
	/* Chosen once, at the first look: to choose by the outcome would be to test twice. */
	if (arm->sequence.looks == 0)
		a->decides = as_runs_explained(&s->r->v[0].runs) && as_runs_explained(&a->runs)
				     ? AS_M_CPU
				     : AS_M_WALL;
	a->look = as_sequence_look(&arm->sequence, a->d[a->decides == AS_M_CPU].v, n, t);
	arm->decided = a->look.verdict != AS_VERDICT_UNDECIDED;
}

static double last_of(const struct as_arm_result *a, enum as_metric m)
{
	return a->runs.v.v[a->runs.v.n - 1].v[m];
}

static bool ran_in(const struct as_arm_result *a, uint32_t round)
{
	return a->rounds.n && a->rounds.v[a->rounds.n - 1] == round;
}

static void pair_up(struct state *s, size_t at)
{
	struct as_arm_result *a = &s->r->v[at], *first = &s->r->v[0];
	double cpu[2];

	if (!ran_in(a, s->round) || !ran_in(first, s->round))
		return; /* one of the two runs is missing */
	cpu[0] = AS_MAX(last_of(first, AS_M_CPU), CPU_LEAST_S);
	cpu[1] = AS_MAX(last_of(a, AS_M_CPU), CPU_LEAST_S);
	as_vec_push(&a->d[0], log(last_of(a, AS_M_WALL) / last_of(first, AS_M_WALL)));
	as_vec_push(&a->d[1], log(cpu[1] / cpu[0]));
}

static bool is_compared(const struct state *s, size_t at)
{
	return at && !s->q->arms[at].aside;
}

static void judge(struct state *s, size_t at)
{
	const struct as_arm_result *a = &s->r->v[at];
	size_t n = a->d[0].n;
	bool full = is_full(s, at);

	if (!is_compared(s, at) || s->arms[at].decided)
		return;
	pair_up(s, at);
	n = a->d[0].n;
	if (n < 3 || (!full && (a->runs.v.n < s->q->min_runs || is_exact(s->q))))
		return;
	if (full || as_sequence_due(&s->arms[at].sequence, n))
		look(s, at, full);
}

/* ---- rounds ---- */

static bool is_finished(struct state *s, size_t at)
{
	if (!known_enough(s, at))
		return false;
	return !is_compared(s, at) || s->r->v[at].out || s->arms[at].decided || is_full(s, at);
}

/* Those that take part in the next round; false: none, that is the end. */
static bool choose(struct state *s)
{
	bool any = false, compared = false;

	for (size_t i = 0; i < s->q->n; i++) {
		s->arms[i].active = !s->r->v[i].out && !is_finished(s, i);
		any |= s->arms[i].active;
		compared |= s->arms[i].active && is_compared(s, i) && !s->arms[i].decided;
	}
	for (size_t i = 0; i < s->q->n; i++)
		any &= !(s->q->arms[i].aside && s->r->v[i].out); /* nothing to take off */
	if (!any || s->r->v[0].out)
		return false;
	s->arms[0].active |= compared;
	for (size_t i = 0; i < s->q->n; i++)
		s->arms[i].active |= s->q->arms[i].aside && !s->r->v[i].out;
	return true;
}

/* The order of a round: Fisher and Yates. */
static size_t draw_order(struct state *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->q->n; i++) {
		if (s->arms[i].active)
			s->order[n++] = i;
	}
	for (size_t i = n; i > 1; i--) {
		size_t k = next_random(s) % i, was = s->order[i - 1];

		s->order[i - 1] = s->order[k];
		s->order[k] = was;
	}
	return n;
}

static bool over(struct state *s)
{
	bool least = true;

	if (!budget_used(s))
		return false;
	for (size_t i = 0; i < s->q->n; i++)
		least &= s->r->v[i].out || s->q->arms[i].aside ||
			 s->r->v[i].runs.v.n >= s->q->min_runs;
	s->r->out_of_budget = s->q->budget_hard || least;
	return s->r->out_of_budget;
}

static int run_round(struct state *s, bool keep, struct as_error *err)
{
	size_t n = draw_order(s);
	int e = STEP_ON;

	for (size_t k = 0; k < n && e == STEP_ON; k++) {
		size_t at = s->order[k];

		if (!fits(s, at)) {
			s->r->out_of_budget = true;
			return STEP_END;
		}
		e = run_arm(s, at, keep, err);
		if (e == STEP_ON && (s->r->v[0].out || (s->q->failure_ends && s->r->v[at].out)))
			return STEP_END;
		if (e == STEP_ON && s->q->budget_of_runs && over(s))
			e = STEP_END;
	}
	return e;
}

static int warm_up(struct state *s, struct as_error *err)
{
	int e = STEP_ON;

	for (; s->warm_up < s->q->warmup && e == STEP_ON; s->warm_up++) {
		for (size_t a = 0; a < s->q->n; a++)
			s->arms[a].active = !s->r->v[a].out;
		e = run_round(s, false, err);
	}
	s->r->seconds = 0;
	for (size_t a = 0; a < s->q->n; a++)
		s->r->v[a].seconds = 0;
	return e;
}

static int all_rounds(struct state *s, struct as_error *err)
{
	int e = STEP_ON;

	while (e == STEP_ON && choose(s)) {
		e = run_round(s, true, err);
		for (size_t i = 0; i < s->q->n; i++)
			judge(s, i);
		s->round++;
		if (e == STEP_ON && over(s))
			e = STEP_END;
	}
	return e;
}

/* What more would cost: pairs at the present pace, of those that are still undecided. */
static void estimate_needed(struct state *s, size_t at)
{
	struct as_arm_result *a = &s->r->v[at];
	double pace = NAN;

	if (a->d[0].n) /* with what is done around the runs */
		pace = (s->r->v[0].seconds / (double)s->r->v[0].runs.v.n +
			a->seconds / (double)a->runs.v.n) *
		       AS_MAX(s->r->wall_seconds / s->r->seconds, 1);
	a->seconds_needed = NAN;
	if (s->arms[at].decided)
		a->seconds_needed = 0;
	else if (a->look.pairs_needed > a->d[0].n)
		a->seconds_needed = (double)(a->look.pairs_needed - a->d[0].n) * pace;
}

static void finish(struct state *s)
{
	struct as_rounds *r = s->r;

	r->interrupted = is_interrupted(s);
	r->wall_seconds = (double)(as_now_ns() - s->began_ns) / 1e9;
	for (size_t i = 1; i < s->q->n; i++) {
		if (!is_compared(s, i))
			continue;
		/* at t = 1 all of the error is spent: one more look could not say anything */
		if (!s->arms[i].decided && r->v[i].d[0].n >= 3 && s->arms[i].sequence.t < 1)
			look(s, i, true);
		both_ratios(&r->v[i]);
		estimate_needed(s, i);
	}
}

static void init(struct state *s, struct as_rounds *ret)
{
	const struct as_rounds_request *q = s->q;
	size_t compared = 0;

	*ret = (struct as_rounds){.v = as_xcalloc(q->n, sizeof *ret->v), .n = q->n};
	s->r = ret;
	s->arms = as_xcalloc(q->n, sizeof *s->arms);
	s->order = as_xcalloc(q->n, sizeof *s->order);
	s->random = q->seed ? q->seed : as_now_ns();
	s->began_ns = q->began_ns ? q->began_ns : as_now_ns();
	if (q->budget_hard && q->budget_s > 0)
		s->deadline_ns =
			s->began_ns +
			(uint64_t)(AS_MAX(q->budget_s - ENDING_S, q->budget_s / 2) * 1e9);
	for (size_t i = 0; i < q->n; i++)
		compared += is_compared(s, i);
	for (size_t i = 0; i < q->n; i++) {
		struct as_sequence_rule rule = {.delta = q->delta};

		if (compared > 1)
			rule.alpha = 0.05 / (double)compared;
		as_sequence_init(&s->arms[i].sequence, &rule);
		ret->v[i].decides = AS_M_WALL;
		ret->v[i].look = (struct as_look){.verdict = AS_VERDICT_UNDECIDED};
	}
}

int as_rounds(const struct as_rounds_request *q, struct as_rounds *ret, struct as_error *err)
{
	struct state s = {.q = q};
	int e;

	init(&s, ret);
	if (!q->keep_strays)
		as_strays_begin(&s.strays);
	e = warm_up(&s, err);
	if (e == STEP_ON)
		e = all_rounds(&s, err);
	finish(&s);
	if (!q->keep_strays)
		as_strays_finish(&s.strays);
	free(s.arms);
	free(s.order);
	return e < 0 ? e : AS_OK;
}

void as_rounds_clear(struct as_rounds *r)
{
	for (size_t i = 0; i < r->n; i++) {
		as_runs_clear(&r->v[i].runs);
		as_vec_clear(&r->v[i].rounds);
		as_vec_clear(&r->v[i].d[0]);
		as_vec_clear(&r->v[i].d[1]);
	}
	free(r->v);
	*r = (struct as_rounds){0};
}

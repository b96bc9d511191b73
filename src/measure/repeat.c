/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs in a row and in pairs: see repeat.h. */
#include "measure/repeat.h"

#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/map.h"
#include "base/sys.h"
#include "stats/runs.h"

extern char **environ;

#define EXPLAINED   0.9 /* CPU time over wall time without waiting, from which CPU time decides */
#define UNTIL_LEAST 5   /* runs before an interval is believed */
#define SIDES       2
#define RUNS_FIRST  64

struct state {
	const struct as_repeat_request *q;
	struct as_repeat *r;
	uint64_t random;
	struct as_sequence sequence;
	AS_VEC(double) d[2]; /* ln ratios per pair: wall, CPU */
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

/* ---- shell commands around the runs ---- */

static int shell(const char *command, const char *what, struct as_error *err)
{
	char sh[] = "/bin/sh", c[] = "-c";
	AS_CLEANUP(as_free_autop) char *text = command ? as_xstrdup(command) : NULL;
	char *argv[] = {sh, c, text, NULL};
	int status = 0, e;
	pid_t pid;

	if (!command)
		return AS_OK;
	e = posix_spawn(&pid, sh, NULL, NULL, argv, environ);
	if (e)
		return as_fail(err, AS_E_IO, e, "cannot run --%s: %s", what, strerror(e));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status == 0)
		return AS_OK;
	return as_fail(err, AS_E_IO, 0, "--%s '%s' failed (%s %d)", what, command,
		       WIFSIGNALED(status) ? "signal" : "status",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* ---- single runs ---- */

/* 1: go on; 0: enough, it failed or was interrupted; negative: could not be run. */
static int run_side(struct state *s, int side, bool keep, struct as_error *err)
{
	struct as_run_request q = side ? s->q->other : s->q->run;
	struct as_repeat *r = s->r;
	struct as_run run;
	int e = shell(s->q->prepare, "prepare", err);

	if (e < 0)
		return e;
	q.env_pad_bytes = (unsigned)(next_random(s) % AS_ENV_PAD_MAX);
	q.interrupted = s->q->interrupted;
	e = as_run_once(&q, &run, err);
	if (e < 0)
		return e;
	if (is_interrupted(s)) {
		r->stopped = true;
		return 0;
	}
	if (keep)
		as_runs_push(&r->side[side], &run);
	r->seconds += run.v[AS_M_WALL];
	if (run.wait_status && !r->failed_run) {
		r->failed_run = r->side[side].v.n + !keep;
		r->failed_side = side;
		r->failed_status = run.wait_status;
		if (!s->q->ignore_failure)
			return 0;
	}
	if (s->q->budget_s > 0 && r->seconds > s->q->budget_s) {
		r->stopped = true;
		return 0;
	}
	return 1;
}

static int warm_up(struct state *s, struct as_error *err)
{
	int sides = s->q->other.argv ? SIDES : 1, r = 1;

	for (uint64_t i = 0; i < s->q->warmup && r > 0; i++) {
		for (int side = 0; side < sides && r > 0; side++)
			r = run_side(s, side, false, err);
	}
	s->r->seconds = 0;
	return r;
}

static void values_of(const struct as_runs *runs, enum as_metric m, double *ret)
{
	for (size_t i = 0; i < runs->v.n; i++)
		ret[i] = runs->v.v[i].v[m];
}

static bool known_enough(const struct state *s)
{
	const struct as_runs *runs = &s->r->side[0];
	AS_CLEANUP(as_free_autop)
	double *wall = as_xreallocarray(NULL, runs->v.n + 1, sizeof *wall);
	struct as_runs_summary sum;

	if (s->q->runs && runs->v.n >= s->q->runs)
		return true;
	if (!(s->q->until > 0) || runs->v.n < UNTIL_LEAST)
		return false;
	values_of(runs, AS_M_WALL, wall);
	as_runs_summarise(wall, runs->v.n, &sum);
	return (sum.high - sum.low) / 2 <= s->q->until * sum.mean;
}

static int repeat_one(struct state *s, struct as_error *err)
{
	int r = 1;

	while (r > 0 && !known_enough(s)) {
		r = run_side(s, 0, true, err);
		if (r >= 0 && s->q->progress)
			s->q->progress(s->q->progress_ctx, 0, s->r->side[0].v.n, NULL);
	}
	return r;
}

/* ---- pairs ---- */

static double last(const struct as_runs *runs, enum as_metric m)
{
	return runs->v.v[runs->v.n - 1].v[m];
}

/* Whether CPU time, with the waiting for a CPU, makes up the wall time of side `side`. */
static bool explained(const struct as_repeat *r, int side)
{
	double cpu = 0, wall = 0;

	as_vec_foreach (run, &r->side[side].v) {
		double wait = run->v[AS_M_RUN_WAIT];

		cpu += run->v[AS_M_CPU];
		wall += run->v[AS_M_WALL] - (isnan(wait) ? 0 : AS_MIN(wait, run->v[AS_M_WALL]));
	}
	return cpu >= EXPLAINED * wall;
}

static void look(struct state *s, bool last_look)
{
	struct as_repeat *r = s->r;
	size_t n = s->d[0].n;
	double t = s->q->budget_s > 0 ? r->seconds / s->q->budget_s
		   : s->q->runs       ? (double)n / (double)s->q->runs
				      : 1;

	/* Chosen once, at the first look: to choose by the outcome would be to test twice. */
	if (s->sequence.looks == 0)
		r->decides = explained(r, 0) && explained(r, 1) ? AS_M_CPU : AS_M_WALL;
	r->look = as_sequence_look(&s->sequence, s->d[r->decides == AS_M_CPU].v, n,
				   last_look ? AS_MAX(t, 1) : t);
}

static void both_ratios(struct state *s)
{
	struct as_repeat *r = s->r;

	for (int k = 0; k < 2; k++)
		as_trimmed_interval(s->d[k].v, s->d[k].n, AS_PAIRED_TRIM, 0.05, &r->by[k]);
	r->disagree = r->by[0].lo > r->by[1].hi || r->by[1].lo > r->by[0].hi;
}

/* One run of each, in an order a coin decides. */
static int run_pair(struct state *s, struct as_error *err)
{
	int first = next_random(s) & 1, r = 1;

	for (int k = 0; k < SIDES && r > 0; k++)
		r = run_side(s, k ? !first : first, true, err);
	if (s->r->side[0].v.n != s->r->side[1].v.n)
		return r; /* the second run is missing */
	as_vec_push(&s->d[0],
		    log(last(&s->r->side[1], AS_M_WALL) / last(&s->r->side[0], AS_M_WALL)));
	as_vec_push(&s->d[1],
		    log(last(&s->r->side[1], AS_M_CPU) / last(&s->r->side[0], AS_M_CPU)));
	return r;
}

static int repeat_pairs(struct state *s, struct as_error *err)
{
	struct as_sequence_rule rule = {.delta = s->q->delta};
	int r = 1;

	as_sequence_init(&s->sequence, &rule);
	s->r->look = (struct as_look){.verdict = AS_VERDICT_UNDECIDED};
	s->r->decides = AS_M_WALL;
	while (r > 0) {
		bool full;

		r = run_pair(s, err);
		full = s->q->runs && s->d[0].n >= s->q->runs;
		if (r >= 0 && s->d[0].n >= 3 &&
		    (full || r == 0 || as_sequence_due(&s->sequence, s->d[0].n)))
			look(s, full || r == 0);
		if (r >= 0 && s->q->progress)
			s->q->progress(s->q->progress_ctx, 1, s->d[0].n, &s->r->look);
		if (full || s->r->look.verdict != AS_VERDICT_UNDECIDED)
			break;
	}
	both_ratios(s);
	return r;
}

int as_repeat(const struct as_repeat_request *q, struct as_repeat *ret, struct as_error *err)
{
	struct state s = {.q = q, .r = ret, .random = q->seed ? q->seed : as_now_ns()};
	int r;

	*ret = (struct as_repeat){0};
	r = shell(q->setup, "setup", err);
	if (r == AS_OK)
		r = warm_up(&s, err);
	if (r > 0)
		r = q->other.argv ? repeat_pairs(&s, err) : repeat_one(&s, err);
	as_vec_clear(&s.d[0]);
	as_vec_clear(&s.d[1]);
	return r < 0 ? r : AS_OK;
}

void as_repeat_clear(struct as_repeat *r)
{
	as_runs_clear(&r->side[0]);
	as_runs_clear(&r->side[1]);
}

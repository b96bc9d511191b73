/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One benchmark, measured: see driver.h. */
#include "harness/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "harness/driver_priv.h"

#define BUDGET_ONE_S   1
#define BUDGET_PAIRS_S 2
#define CAP_S          60
#define CAP_BUDGETS    3
#define LIST_S         30
#define BATCHES        10
#define WARMUPS        2
#define BATCH_S        2e-3 /* batches up to this long come in full number */
#define SHARE          12   /* else a process gets this part of the budget */
#define LEAST          2    /* processes of one program, pairs of two */
#define SETTLED        5    /* processes that say the same of a custom unit */
#define SERVE_BELOW    8    /* processes that fit the budget */
#define DEAR_S         0.25 /* a batch so long is worth keeping from the calibration */
#define SPAWN_S        1e-3

/* ---- notes and memory ---- */

void as_fn_add_note(struct as_fn_result *r, const char *kind, const char *fmt, ...)
{
	struct as_buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	as_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	as_vec_push(&r->notes, (struct as_fn_note){kind, as_buf_detach(&b)});
}

void as_fn_result_clear(struct as_fn_result *r)
{
	as_fn_entry_clear(&r->what);
	for (unsigned s = 0; s < 2; s++) {
		as_vec_clear(&r->side[s].processes);
		as_vec_clear(&r->side[s].batches);
	}
	as_vec_clear(&r->d);
	as_vec_foreach (note, &r->notes)
		free(note->text);
	as_vec_clear(&r->notes);
	free(r->failed);
	r->failed = NULL;
}

/* ---- list ---- */

bool as_fn_is_program(const char *exe)
{
	static const char mark[] = AS_BENCH_ENV;
	AS_CLEANUP(as_close_autop) int fd = open(exe, O_RDONLY | O_CLOEXEC);
	char part[1 << 16];
	size_t kept = 0;
	ssize_t n;

	if (fd < 0)
		return false;
	while ((n = read(fd, part + kept, sizeof part - kept)) > 0) {
		size_t have = kept + (size_t)n;

		if (memmem(part, have, mark, sizeof mark - 1))
			return true;
		kept = AS_MIN(have, sizeof mark - 2);
		memmove(part, part + have - kept, kept);
	}
	return false;
}

static int listen_to_list(struct as_worker *w, double timeout_s, struct as_answer *a,
			  const char *exe, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf how = {0};
	double s = timeout_s > 0 ? timeout_s : LIST_S;
	struct as_error cause = {0};
	int r = as_worker_listen(w, a, as_now_ns() + (uint64_t)(s * 1e9), NULL, &cause);

	as_worker_end(w);
	as_worker_describe(w, &how);
	if (r == AS_E_LIMIT)
		return as_fail(err, r, 0, "'%s' did not tell its benchmarks within %.3g s", exe,
			       s);
	if (r == AS_E_IO && !a->library[0])
		return as_fail(
			err, AS_E_UNSUPPORTED, 0,
			"'%s' is no bench program of assay: asked for its benchmarks it %s",
			exe, as_buf_str(&how));
	if (r == AS_E_IO)
		return as_fail(err, r, 0, "'%s' %s before it had told its benchmarks", exe,
			       as_buf_str(&how));
	if (r < 0)
		return as_fail(err, r, 0, "'%s': %s", exe, cause.msg);
	if (a->error)
		return as_fail(err, AS_E_UNSUPPORTED, 0, "'%s': %s", exe, a->error);
	return AS_OK;
}

int as_fn_list(const struct as_fn_side *s, double timeout_s, struct as_fn_list *ret,
	       struct as_error *err)
{
	struct as_question q = {.ask = AS_ASK_LIST, .ctl = -1};
	struct as_worker w;
	struct as_answer a;
	int r = as_worker_start(s, "", &q, 0, &w, err);

	if (r < 0)
		return r;
	as_answer_init(&a);
	r = listen_to_list(&w, timeout_s, &a, s->exe, err);
	if (r == AS_OK) {
		*ret = (struct as_fn_list){0};
		ret->v.v = a.benches.v;
		ret->v.n = a.benches.n;
		ret->v.cap = a.benches.cap;
		memset(&a.benches, 0, sizeof a.benches);
	}
	as_answer_clear(&a);
	return r;
}

/* ---- calibration and plan ---- */

void as_measuring_take_what(struct as_measuring *m, struct as_answer *a)
{
	if (!a->benches.n)
		return;
	as_fn_entry_clear(&m->r->what);
	m->r->what = a->benches.v[0];
	a->benches.v[0] = (struct as_fn_entry){0};
}

static int calibrate_side(struct as_measuring *m, unsigned side, bool full,
			  struct as_error *err)
{
	struct as_question q = {
		.ask = AS_ASK_CALIBRATE, .ctl = -1, .nth = m->q->nth, .full = full};
	struct as_calibration *c = &m->calibration[side];
	struct as_answer a;
	struct as_worker w = {0};
	int r;

	as_answer_init(&a);
	r = as_measuring_ask(m, side, &q, &a, &w, err);
	if (r == 1 && (!a.calibrated || !a.benches.n))
		r = as_measuring_fail(m, "a damaged answer: not calibrated");
	if (r == 1) {
		*c = (struct as_calibration){
			.iterations = a.iterations,
			.value = a.value,
			.wall_ns = a.wall_ns,
			.first_value = a.first_value,
			.first_wall_ns = a.first_wall_ns,
			.proportion = a.proportion,
			.startup_s = a.reached_ns > w.start_ns
					     ? (double)(a.reached_ns - w.start_ns) / 1e9
					     : 0,
			.process_s = w.wall_s,
		};
		m->r->clock_ns = a.clock_ns;
		m->r->loop_ns = a.loop_ns;
		as_measuring_take_what(m, &a);
	}
	as_answer_clear(&a);
	return r;
}

/*
 * A custom unit of which one iteration gave v: does another process say 2 v of two? Then it is counted
 * and not sampled, and the value is known. (Zero twice proves nothing.)
 */
static int try_exact(struct as_measuring *m, struct as_error *err)
{
	struct as_fn_result *r = m->r;
	double v = m->calibration[0].value;
	int e = 1;

	m->question = (struct as_question){.ask = AS_ASK_MEASURE,
					   .ctl = -1,
					   .nth = m->q->nth,
					   .iterations = 2,
					   .batches = 1};
	for (unsigned side = 0; side < m->sides && e == 1; side++)
		e = as_measuring_sample(m, side, err);
	if (e != 1)
		return e;
	r->exact = v != 0;
	for (unsigned side = 0; side < m->sides; side++)
		r->exact &= r->side[side].processes.v[0].q25 == m->calibration[side].value;
	if (r->exact) {
		r->iterations = 2;
		r->batches = 1;
		return 1;
	}
	for (unsigned side = 0; side < m->sides; side++)
		r->side[side].processes.n = r->side[side].batches.n = 0;
	return 1;
}

int as_measuring_calibrate(struct as_measuring *m, struct as_error *err)
{
	bool counted = true;
	int r = 1;

	if (m->q->iterations) {
		/* as somebody found out before: a batch is taken for as long as it should be */
		for (unsigned side = 0; side < m->sides; side++)
			m->calibration[side] =
				(struct as_calibration){.iterations = m->q->iterations,
							.value = NAN,
							.wall_ns = BATCH_S / 2 * 1e9,
							.first_value = NAN,
							.first_wall_ns = 0,
							.proportion = NAN};
		m->r->loop_ns = m->r->clock_ns = NAN;
		return 1;
	}
	for (unsigned side = 0; side < m->sides && r == 1; side++) {
		r = calibrate_side(m, side, false, err);
		counted &= r == 1 && !m->calibration[side].iterations;
	}
	if (r == 1 && counted) {
		r = try_exact(m, err);
		if (r != 1 || m->r->exact)
			return r;
		for (unsigned side = 0; side < m->sides && r == 1; side++)
			r = calibrate_side(m, side, true, err);
	}
	return r;
}

/* The slower side's count for both, batches and warm-ups as the budget allows. */
static void plan(struct as_measuring *m)
{
	const struct as_calibration *c = &m->calibration[0];
	double batch_s, start_s, allowance, batches = BATCHES, warmups = WARMUPS;
	uint64_t iterations;

	if (m->sides > 1 && m->calibration[1].iterations < c->iterations)
		c = &m->calibration[1];
	iterations = c->iterations ? c->iterations : 1;
	batch_s = c->wall_ns / 1e9;
	if (batch_s > BATCH_S) {
		allowance =
			AS_MAX(m->budget_s / m->sides / SHARE, (BATCHES + WARMUPS) * BATCH_S);
		batches = floor(allowance / batch_s);
		warmups = batches >= 6 ? 2 : batches >= 2 ? 1 : 0;
		batches = fmin(fmax(batches - warmups, 1), BATCHES);
	}
	start_s = SPAWN_S + c->startup_s;
	/* what comes once in each process, such as a table that the first call builds */
	if (c->first_wall_ns > c->wall_ns)
		start_s += c->first_wall_ns / 1e9;
	m->question = (struct as_question){
		.ask = AS_ASK_MEASURE,
		.ctl = -1,
		.nth = m->q->nth,
		.iterations = iterations,
		.warmups = (uint64_t)warmups,
		.batches = (uint64_t)batches,
		.limit_ms = (uint64_t)(1e3 * fmax(20 * (batches + warmups) * batch_s, 0.5)),
	};
	m->process_s = start_s + (batches + warmups) * batch_s;
	m->r->iterations = iterations;
	m->r->batches = (unsigned)batches;
	m->r->warmups = (unsigned)warmups;
}

/* The calibration's own last batch, where a batch is so long that it would be a pity. (Of two programs
 * it is no pair: their order was not drawn.) */
static void keep_dear(struct as_measuring *m)
{
	const struct as_calibration *c = &m->calibration[0];
	double per = c->value / (double)m->question.iterations;
	struct as_fn_process p = {
		.q25 = per,
		.median = per,
		.min = per,
		.max = per,
		.mean = per,
		.cpu = NAN,
		.first = NAN,
		.rate = NAN,
		.overlap = NAN,
		.startup_s = c->startup_s,
		.wall_s = c->process_s,
		.voluntary = NAN,
		.involuntary = NAN,
		.migrations = NAN,
		.minor_faults = NAN,
		.major_faults = NAN,
		.run_delay_s = NAN,
		.steal_s = NAN,
		.batches = 1,
	};

	if (m->sides > 1 || c->wall_ns < DEAR_S * 1e9 ||
	    c->iterations != m->question.iterations)
		return;
	as_vec_push(&m->r->side[0].processes, p);
	as_vec_push(&m->r->side[0].batches, per);
}

/* ---- allocations ---- */

int as_measuring_allocations(struct as_measuring *m, struct as_error *err)
{
	struct as_question q = {.ask = AS_ASK_ALLOCATIONS, .ctl = -1, .nth = m->q->nth};
	int r = 1;

	for (unsigned side = 0; side < m->sides; side++) {
		struct as_fn_side_result *s = &m->r->side[side];

		s->allocs = s->alloc_bytes = s->peak_bytes = NAN;
	}
	/* a fifth of the budget is too much for what is a side dish */
	if (m->q->no_allocs || m->source != AS_FRESH ||
	    m->calibration[0].startup_s + 3 * m->calibration[0].first_wall_ns / 1e9 >
		    m->budget_s / 5)
		return 1;
	for (unsigned side = 0; side < m->sides && r == 1; side++) {
		struct as_fn_side_result *s = &m->r->side[side];
		struct as_answer a;
		struct as_worker w = {0};

		as_answer_init(&a);
		r = as_measuring_ask(m, side, &q, &a, &w, err);
		s->allocs = a.allocs;
		s->alloc_bytes = a.alloc_bytes;
		s->peak_bytes = a.peak_bytes;
		as_answer_clear(&a);
	}
	return r;
}

/* ---- one program ---- */

/* A value of its own that never differs: more of them say nothing. */
static bool is_settled(struct as_measuring *m)
{
	const struct as_fn_side_result *s = &m->r->side[0];

	if (s->processes.n < SETTLED || strcmp(m->r->what.unit, "ns") == 0)
		return false;
	as_vec_foreach (p, &s->processes) {
		if (p->min != s->processes.v[0].min || p->max != s->processes.v[0].min)
			return false;
	}
	m->r->exact = true;
	return true;
}

static bool has_time_for(struct as_measuring *m, size_t n)
{
	double at = as_measuring_elapsed(m), per = m->process_s;

	if ((m->q->processes && n >= m->q->processes) || is_settled(m))
		return false;
	if (n < LEAST)
		return true; /* the cap ends it, if it must be */
	return at + per / 2 <= m->budget_s;
}

static void choose_source(struct as_measuring *m)
{
	double left = m->budget_s - as_measuring_elapsed(m);
	double start = SPAWN_S + m->calibration[0].startup_s +
		       (m->calibration[0].first_wall_ns > m->calibration[0].wall_ns
				? m->calibration[0].first_wall_ns / 1e9
				: 0);

	if (m->sides > 1 || m->source != AS_FRESH || start < m->process_s / 2 ||
	    left / m->process_s >= SERVE_BELOW)
		return;
	m->source = AS_SERVED; /* to be tried */
}

static int measure_one(struct as_measuring *m, struct as_error *err)
{
	int r = 1;

	choose_source(m);
	if (m->source == AS_SERVED) {
		double full = m->process_s;

		m->source = AS_FRESH;
		r = as_measuring_serve(m, err);
		if (r == 1)
			m->process_s =
				SPAWN_S + (double)(m->question.batches + m->question.warmups) *
						  m->calibration[0].wall_ns / 1e9;
		else if (r == 0 && !m->r->failed)
			m->process_s = full, r = 1;
	}
	while (r == 1 && has_time_for(m, m->r->side[0].processes.n) &&
	       !as_measuring_is_interrupted(m)) {
		r = as_measuring_sample(m, 0, err);
		if (r == 1 && m->q->progress)
			m->q->progress(m->q->progress_ctx, m->r);
	}
	as_measuring_end_server(m);
	return r;
}

/* ---- all of it ---- */

static int prepare(struct as_measuring *m, struct as_error *err)
{
	const struct as_fn_request *q = m->q;

	m->sides = q->sides > 1 ? 2 : 1;
	m->side[0] = q->side[0];
	m->side[1] = q->side[1];
	m->random = q->seed ? q->seed : as_now_ns() ^ (uint64_t)getpid() << 40;
	m->start_ns = as_now_ns();
	m->budget_s =
		q->budget_s > 0 ? q->budget_s : (m->sides > 1 ? BUDGET_PAIRS_S : BUDGET_ONE_S);
	m->cap_ns = m->start_ns +
		    (uint64_t)(1e9 * (q->cap_s > 0 ? q->cap_s
						   : fmax(CAP_S, CAP_BUDGETS * m->budget_s)));
	m->source = q->here && q->here_only ? AS_HERE : AS_FRESH;
	m->r->sides = m->sides;
	m->r->delta = q->delta > 0 ? q->delta : 0.01;
	m->r->p = m->r->setup_share = NAN;
	if (!q->id || !m->side[0].exe || (m->sides > 1 && !m->side[1].exe))
		return as_fail(err, AS_E_USAGE, 0, "no benchmark or no program to measure");
	if (m->sides > 1 && !q->as_they_are) {
		int r = as_fn_copy(m->side, as_measuring_random(m), &m->copies, err);

		if (r < 0)
			return r;
		for (int s = 0; s < 2 && m->copies.copied; s++)
			m->side[s].exe = m->copies.path[s];
	}
	return AS_OK;
}

static int measure(struct as_measuring *m, struct as_error *err)
{
	int r = as_measuring_calibrate(m, err);

	if (r == 1 && m->r->exact) {
		if (m->sides > 1)
			as_measuring_judge_exact(m);
		return as_measuring_allocations(m, err);
	}
	if (r == 1) {
		plan(m);
		keep_dear(m);
		r = as_measuring_allocations(m, err);
	}
	if (r == 1)
		r = m->sides > 1 ? as_measuring_pairs(m, err) : measure_one(m, err);
	return r;
}

int as_fn_measure(const struct as_fn_request *q, struct as_fn_result *ret, struct as_error *err)
{
	struct as_measuring m = {.q = q, .r = ret};
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	int r;

	*ret = (struct as_fn_result){0};
	(void)sigaction(SIGPIPE, &ignore, &before); /* a server may be gone when it is asked */
	r = prepare(&m, err);
	if (r == AS_OK)
		r = measure(&m, err);
	ret->seconds = as_measuring_elapsed(&m);
	if (r == 0 && !ret->failed && !ret->side[m.sides - 1].processes.n)
		r = as_fail(err, AS_E_CANCELLED, 0, "interrupted");
	if (r >= 0 && ret->side[m.sides - 1].processes.n) {
		as_measuring_summarise(&m);
		as_measuring_lint(&m);
	}
	as_fn_copies_clear(&m.copies);
	as_vec_clear(&m.d[0]);
	as_vec_clear(&m.d[1]);
	(void)sigaction(SIGPIPE, &before, NULL);
	return r < 0 ? r : AS_OK;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One run of a target:
 *
 *	engine opened, started -> target released -> loop (drain, tick) -> engine stopped, closed
 */
#include "collect/record_priv.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "collect/collectors_priv.h"
#include "collect/recorder_priv.h"

#define MAX_CLOSURE 512
#define ENOUGH_FDS  65536
#define PROGRESS_NS 200000000ull
#define TICK_NS     200000000ull

void as_recording_progress(struct as_recording *r, uint64_t now, const char *what)
{
	if (!r->q->progress || now < r->progress_ns + PROGRESS_NS)
		return;
	r->progress_ns = now;
	r->q->progress(r->q->progress_ctx, now - r->first_ns, as_recorder_samples(r->rec),
		       what);
}

/* ---- CPU time of a target that is not (yet) reaped ---- */

static void follow_cpu_time(struct as_recording *r, uint64_t now)
{
	uint64_t user, sys;

	if (now < r->cpu_read_ns + 250000000ull || !as_process_cpu(r->target.pid, &user, &sys))
		return;
	r->cpu_read_ns = now;
	r->user_ns = user - r->user0_ns;
	r->sys_ns = sys - r->sys0_ns;
	r->target.own_cpu_ns = r->user_ns + r->sys_ns;
}

/* ---- engines ---- */

static int open_engine(struct as_recording *r, struct as_error *err)
{
	struct as_engine_env env = {&r->target, r->im, r->rec, &r->q->options};
	struct as_engine engine;
	int status = as_engine_open(r->q->engine, &env, &engine, err);

	if (status < 0)
		return status;
	r->engine = engine.collector;
	r->ctx = engine.ctx;
	r->facts = engine.facts;
	r->out->engine = r->engine->name;
	return 0;
}

/* ---- the loop ---- */

/* The end of the target is when its descriptor says so, not when its samples have been read. */
static void wait_for_events(struct as_recording *r, int wait_ms)
{
	struct pollfd p[2] = {
		{.fd = r->target.pidfd, .events = POLLIN},
		{.fd = r->engine ? r->engine->poll_fd(r->ctx) : -1, .events = POLLIN},
	};

	if (wait_ms < 1)
		wait_ms = 1;
	if (poll(p, 2, wait_ms) < 0 && errno != EINTR)
		usleep((useconds_t)wait_ms * 1000);
	if (p[0].revents && !r->ended_ns)
		r->ended_ns = as_now_ns();
}

static bool target_ended(struct as_recording *r)
{
	if (!as_target_poll(&r->target))
		return false;
	if (r->ended_ns)
		r->target.end_ns = r->ended_ns;
	return true;
}

static int record_loop(struct as_recording *r, struct as_error *err)
{
	bool one = !as_recording_has_runs(r);
	int wait_ms = 5;

	for (;;) {
		uint64_t now;
		int status;

		wait_for_events(r, wait_ms);
		status = r->engine->drain(r->ctx, &wait_ms, err);
		if (status < 0)
			return status;
		now = as_now_ns();
		if (now > r->tick_ns + TICK_NS) {
			r->tick_ns = now;
			as_session_writer_tick(r->w, now);
			status = as_session_writer_status(r->w, err);
			if (status < 0)
				return status;
		}
		follow_cpu_time(r, now);
		as_recording_progress(r, now, "recording");
		if (target_ended(r) || as_target_interrupt(&r->target, &r->interrupt, now))
			return 0;
		if (one && as_recording_look(r, now, false))
			return 0;
		if (r->q->duration_ns && now - r->first_ns >= r->q->duration_ns)
			return 0;
	}
}

/* ---- beginning ---- */

int as_recording_open_target(struct as_recording *r, struct as_error *err)
{
	const struct as_recording_request *q = r->q;

	if ((q->argv != NULL) == (q->pid != 0))
		return as_fail(err, AS_E_USAGE, 0, "either a program or a process is recorded");
	r->ended_ns = r->end_ns = 0;
	r->user0_ns = r->sys0_ns = r->user_ns = r->sys_ns = r->cpu_read_ns = 0;
	if (r->stdin_at >= 0 && r->out->runs)
		(void)lseek(STDIN_FILENO, r->stdin_at, SEEK_SET); /* it was a file */
	if (q->argv)
		return as_target_prepare(q->argv, q->folder, &r->target, err);
	return as_target_attach(q->pid, &r->target, err);
}

/* An event per thread and CPU, a file per module, and BPF programs. The target has got the limits
 * assay was started with at its fork. */
void as_raise_fd_limit(void)
{
	struct rlimit rl, more;

	if (getrlimit(RLIMIT_NOFILE, &rl))
		return;
	more.rlim_cur = more.rlim_max = AS_MAX(rl.rlim_max, (rlim_t)ENOUGH_FDS);
	if (!setrlimit(RLIMIT_NOFILE, &more))
		return; /* root may */
	rl.rlim_cur = rl.rlim_max;
	setrlimit(RLIMIT_NOFILE, &rl);
}

/* Tables of what the program will load are made while it is held. */
static void prepare_closure(struct as_recording *r)
{
	uint32_t *ids = as_xreallocarray(NULL, MAX_CLOSURE, sizeof *ids);
	size_t n = 0;

	as_image_add_closure(r->im, r->target.program_path, ids, MAX_CLOSURE, &n);
	for (size_t i = 0; i < n; i++)
		as_image_module_table(r->im, as_image_module(r->im, ids[i]));
	free(ids);
}

static int start(struct as_recording *r, struct as_error *err)
{
	int status;

	as_raise_fd_limit();
	if (!r->target.attached)
		prepare_closure(r);
	status = open_engine(r, err);
	if (status < 0)
		return status;
	/* 60 ms that would stall the drains, or delay the end, are spent while the target is held */
	if (r->facts.kernel_stacks)
		as_recorder_load_kernel(r->rec);
	r->start_ns = r->tick_ns = as_now_ns();
	if (!r->first_ns) {
		r->first_ns = r->start_ns;
		as_recording_facts(r);
	}
	if (r->target.attached)
		as_process_cpu(r->target.pid, &r->user0_ns, &r->sys0_ns);
	r->target.cpu_before_ns = r->user0_ns + r->sys0_ns;
	r->cpu_before_ns = as_self_cpu_ns(); /* what runs beside the target counts */
	status = r->engine->start(r->ctx, err);
	if (status < 0)
		return status;
	return as_target_release(&r->target, err);
}

/* ---- end ---- */

static uint64_t timeval_ns(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_usec * 1000ull;
}

/* Its figures into the session's. */
static void add_figures(struct as_recording *r)
{
	const struct as_target *t = &r->target;
	struct as_rec_summary *s = &r->sum;
	bool known = !t->attached && t->exited;

	s->end_ns = r->end_ns;
	s->wall_ns += r->end_ns - r->start_ns;
	s->user_ns += known ? timeval_ns(t->usage.ru_utime) : r->user_ns;
	s->sys_ns += known ? timeval_ns(t->usage.ru_stime) : r->sys_ns;
	if (known)
		s->max_rss_bytes =
			AS_MAX(s->max_rss_bytes, (uint64_t)t->usage.ru_maxrss * 1024);
	s->recorder_cpu_ns += as_self_cpu_ns() - r->cpu_before_ns;
	s->kernel_cost_ns += r->facts.kernel_cost_ns;
	s->cpu_ns += r->facts.cpu_ns;
	s->samples = as_recorder_samples(r->rec);
	if (!r->has_failed)
		s->exit = known ? (uint64_t)(unsigned)t->wait_status : UINT64_MAX;
}

/* One of several runs that has come to its end. */
static void add_trial(struct as_recording *r)
{
	const struct as_target *t = &r->target;

	as_write_trial(r->w, &(struct as_rec_trial){
				     .trial = r->out->runs++,
				     .start_ns = r->start_ns,
				     .end_ns = as_now_ns(), /* what was sampled is before */
				     .cpu_ns = timeval_ns(t->usage.ru_utime) +
					       timeval_ns(t->usage.ru_stime),
				     .exit = (uint64_t)(unsigned)t->wait_status});
	if (t->wait_status && !r->has_failed) {
		r->has_failed = true;
		r->failed_status = t->wait_status;
		r->out->failed_run = r->out->runs;
	}
}

static void stop(struct as_recording *r, struct as_error *err)
{
	bool ended = r->target.exited && !as_recording_interrupted(r);

	r->end_ns = r->target.exited ? r->target.end_ns : as_now_ns();
	r->cpu_read_ns = 0; /* the last reading may be a quarter of a second old */
	follow_cpu_time(r, r->end_ns);
	if (r->engine->stop(r->ctx, err) < 0)
		as_recorder_note(r->rec, 2, "", "", "the engine did not stop cleanly: %s",
				 err ? err->msg : "");
	as_collector_facts(r->engine, r->ctx, &r->facts);
	r->engine->close(r->ctx);
	r->ctx = NULL;
	if (!as_recording_has_runs(r) || ended || !r->out->runs)
		add_figures(r);
	if (as_recording_has_runs(r) && ended)
		add_trial(r);
	as_session_writer_flush(r->w);
}

int as_recording_run(struct as_recording *r, bool *ret_started, struct as_error *err)
{
	struct as_error loop_err = {0};
	int status = start(r, err), loop_status;

	*ret_started = status >= 0;
	if (status < 0)
		return status;
	r->out->launched = !r->target.attached;
	loop_status = record_loop(r, &loop_err);
	if (loop_status < 0)
		as_recorder_note(r->rec, 2, "", "", "the recording ended early: %s",
				 loop_err.msg);
	stop(r, err);
	if (loop_status < 0 && err)
		*err = loop_err;
	return loop_status;
}

/* ---- a run without recording ---- */

double as_recording_time_taken(const struct as_target *t)
{
	double wall = (double)(t->end_ns - t->start_ns);

	return wall - AS_MIN((double)t->run_wait_ns, wall * 0.9);
}

int as_recording_run_plain(struct as_recording *r, struct as_error *err)
{
	int status = as_recording_open_target(r, err);

	r->plain_ns = 0;
	if (status >= 0)
		status = as_target_release(&r->target, err);
	if (status < 0)
		return status;
	r->out->launched = true;
	r->engine = NULL;
	do
		wait_for_events(r, r->target.pidfd >= 0 ? 1000 : 2);
	while (!target_ended(r) &&
	       !as_target_interrupt(&r->target, &r->interrupt, as_now_ns()));
	if (r->target.exited && !as_recording_interrupted(r))
		r->plain_ns = as_recording_time_taken(&r->target);
	else
		as_recording_wait_for_target(r);
	return 0;
}

void as_recording_wait_for_target(struct as_recording *r)
{
	if (!r->target.released || r->target.attached)
		return;
	/* a program that takes its time over the first interrupt is waited for; the second
	 * leaves it */
	while (!as_target_poll(&r->target) && as_recording_interrupted(r) < 2) {
		struct pollfd p = {.fd = r->target.pidfd, .events = POLLIN};

		as_target_interrupt(&r->target, &r->interrupt, as_now_ns());
		poll(&p, 1, r->target.pidfd >= 0 ? 1000 : 20);
	}
}

int as_recording_target_status(const struct as_recording *r)
{
	if (r->target.exited || r->target.attached)
		return r->target.wait_status;
	return r->q->interrupt_signal && *r->q->interrupt_signal ? abs(*r->q->interrupt_signal)
								 : SIGINT;
}

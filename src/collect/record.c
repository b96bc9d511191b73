/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One whole recording:
 *
 *	choose engine -> target held or attached -> session, image, recorder -> engine open, start
 *	-> release -> loop (drain, tick) -> stop -> SUMMARY -> names -> END
 *
 * Nothing here harms the target: when something fails after its start it goes on, and what was
 * recorded stays readable.
 */
#include "collect/collect.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "collect/collectors_priv.h"
#include "collect/recorder_priv.h"

#define MAX_CLOSURE        512
#define ENOUGH_FDS         65536
#define PROGRESS_NS        200000000ull
#define TICK_NS            200000000ull
#define INTERRUPT_GRACE_NS 1500000000ull

struct recording {
	const struct as_recording_request *q;
	struct as_recording_outcome *out;
	struct as_target target;
	struct as_session_writer *w;
	struct as_image *im;
	struct as_recorder *rec;
	const struct as_collector *engine;
	void *ctx;
	struct as_engine_facts facts;
	uint64_t cpu_before_ns, start_ns, end_ns;
	uint64_t user0_ns, sys0_ns, user_ns, sys_ns,
		max_rss_bytes; /* of an attached or still running target */
	uint64_t cpu_read_ns;
	uint64_t progress_ns, tick_ns, interrupted_ns;
};

static int interrupted(const struct recording *r)
{
	return r->q->interrupted ? *r->q->interrupted : 0;
}

static void progress(struct recording *r, uint64_t now, const char *what)
{
	if (!r->q->progress || now < r->progress_ns + PROGRESS_NS)
		return;
	r->progress_ns = now;
	r->q->progress(r->q->progress_ctx, now - r->start_ns, as_recorder_samples(r->rec),
		       what);
}

/* ---- facts about the recording ---- */

static void info(struct recording *r, const char *key, const char *value)
{
	as_write_info(r->w, &(struct as_rec_info){AS_STR(key), AS_STR(value)});
}

static void write_cpu_model(struct recording *r)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char *p, *end;

	if (as_read_file("/proc/cpuinfo", 4 << 20, &b, NULL) < 0 || !b.p)
		return;
	p = strstr(b.p, "model name");
	p = p ? strchr(p, ':') : NULL;
	if (!p)
		return;
	p += strspn(p, ": \t");
	end = p + strcspn(p, "\n");
	*end = 0;
	info(r, "cpu", p);
}

static void write_facts(struct recording *r)
{
	char cwd[PATH_MAX], text[64];
	struct utsname u;

	info(r, "version", ASSAY_VERSION);
	info(r, "engine", r->engine->name);
	info(r, "event", r->facts.event ? r->facts.event : "");
	if (r->q->folder ? realpath(r->q->folder, cwd) != NULL
			 : getcwd(cwd, sizeof cwd) != NULL)
		info(r, "cwd", cwd);
	if (!uname(&u)) {
		info(r, "host", u.nodename);
		info(r, "kernel", u.release);
		info(r, "arch", u.machine);
	}
	write_cpu_model(r);
	if (r->target.program_path)
		info(r, "program", r->target.program_path);
	if (r->target.attached) {
		snprintf(text, sizeof text, "%d", (int)r->target.pid);
		info(r, "pid", text);
	}
	for (size_t i = 0; r->q->argv && r->q->argv[i]; i++)
		as_write_arg(r->w, &(struct as_rec_arg){AS_STR(r->q->argv[i])});
	as_write_recording(r->w, &(struct as_rec_recording){
					 .start_ns = r->start_ns,
					 .start_realtime_ns =
						 as_realtime_ns() - (as_now_ns() - r->start_ns),
					 .rate_hz = (uint64_t)(r->q->options.rate_hz + 0.5),
					 .ncpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN),
					 .weight_unit = r->facts.weight_unit,
					 .flags = (r->target.attached ? 1 : 0) |
						  (r->facts.kernel_stacks ? 2 : 0)});
}

/* ---- CPU time of a target that is not (yet) reaped ---- */

static void follow_cpu_time(struct recording *r, uint64_t now)
{
	uint64_t user, sys;

	if (now < r->cpu_read_ns + 250000000ull || !as_process_cpu(r->target.pid, &user, &sys))
		return;
	r->cpu_read_ns = now;
	r->user_ns = user - r->user0_ns;
	r->sys_ns = sys - r->sys0_ns;
	r->target.own_cpu_ns = r->user_ns + r->sys_ns;
}

static uint64_t timeval_ns(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_usec * 1000ull;
}

static void write_summary(struct recording *r)
{
	const struct as_target *t = &r->target;
	struct as_rec_summary s = {
		.end_ns = r->end_ns,
		.wall_ns = r->end_ns - r->start_ns,
		.user_ns = r->user_ns,
		.sys_ns = r->sys_ns,
		.exit = UINT64_MAX,
		.recorder_cpu_ns = as_self_cpu_ns() - r->cpu_before_ns,
		.samples = as_recorder_samples(r->rec),
		.kernel_cost_ns = r->facts.kernel_cost_ns,
		.cpu_ns = r->facts.cpu_ns,
	};

	if (!t->attached && t->exited) {
		s.user_ns = timeval_ns(t->usage.ru_utime);
		s.sys_ns = timeval_ns(t->usage.ru_stime);
		s.max_rss_bytes = (uint64_t)t->usage.ru_maxrss * 1024;
		s.exit = (uint64_t)(unsigned)t->wait_status;
	}
	as_write_summary(r->w, &s);
}

/* ---- engines ---- */

static int no_engine(const struct as_recording_request *q, const struct as_probe_result *p,
		     struct as_error *err)
{
	if (q->engine && !p->why[0])
		return as_fail(err, AS_E_USAGE, 0, "there is no engine '%s'", q->engine);
	return as_fail(err, AS_E_ACCESS, 0, "cannot record: %s%s%s", p->why,
		       p->remedy[0] ? "\n" : "", p->remedy);
}

/* The first engine from `from` on that can work here, and that the request allows. */
static const struct as_collector *pick_engine(const struct as_recording_request *q,
					      size_t *from, struct as_probe_result *last)
{
	for (; as_collectors[*from]; (*from)++) {
		const struct as_collector *c = as_collectors[*from];

		if (q->engine && strcmp(q->engine, c->name))
			continue;
		if (c->probe(last) < 0 || last->can == AS_PROBE_NO)
			continue;
		return c;
	}
	return NULL;
}

/* An engine that fails for want of something is a note with its remedy; the next one is tried. */
static void passed_over(struct recording *r, const struct as_error *err)
{
	const char *msg = err ? err->msg : "", *remedy = strchr(msg, '\n');

	as_recorder_note(r->rec, 1, "", remedy ? remedy + 1 : "",
			 "engine '%s' could not start: %.*s", r->engine->name,
			 (int)strcspn(msg, "\n"), msg);
}

static int open_engine(struct recording *r, struct as_error *err)
{
	struct as_engine_env env = {&r->target, r->im, r->rec, &r->q->options};
	struct as_probe_result probe = {0};
	int status = 0;

	for (size_t i = 0; (r->engine = pick_engine(r->q, &i, &probe)); i++) {
		status = r->engine->open(&env, &r->ctx, err);
		if (status >= 0)
			break;
		passed_over(r, err);
	}
	if (!r->engine)
		return status < 0 ? status : no_engine(r->q, &probe, err);
	if (probe.can == AS_PROBE_PARTLY && probe.why[0])
		as_recorder_note(r->rec, 1, "", probe.remedy, "%s", probe.why);
	as_collector_facts(r->engine, r->ctx, &r->facts);
	r->out->engine = r->engine->name;
	return 0;
}

/* ---- the loop ---- */

/* True when the terminal sends its signals to the target as well. */
static bool terminal_signals_target(void)
{
	AS_CLEANUP(as_close_autop) int tty = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return tty >= 0 && tcgetpgrp(tty) == getpgrp();
}

/* What the target has to be sent for the interrupt; 0: it has it already. */
static int signal_to_pass_on(const struct recording *r)
{
	if (r->q->interrupt_signal)
		return AS_MAX(*r->q->interrupt_signal, 0);
	return terminal_signals_target() ? 0 : SIGINT;
}

/* True when the measurement shall end. The first interrupt reaches the target too: it gets a
 * moment to end by itself, still recorded. */
static bool handle_interrupt(struct recording *r, uint64_t now)
{
	int level = interrupted(r), sig;

	if (!level)
		return false;
	if (level > 1 || r->target.attached)
		return true;
	if (!r->interrupted_ns) {
		r->interrupted_ns = now;
		sig = signal_to_pass_on(r);
		if (sig)
			kill(r->target.pid, sig);
	}
	return now > r->interrupted_ns + INTERRUPT_GRACE_NS;
}

static void wait_for_events(struct recording *r, int wait_ms)
{
	struct pollfd p[2] = {
		{.fd = r->engine->poll_fd(r->ctx), .events = POLLIN},
		{.fd = r->target.pidfd, .events = POLLIN},
	};

	if (wait_ms < 1)
		wait_ms = 1;
	if (poll(p, 2, wait_ms) < 0 && errno != EINTR)
		usleep((useconds_t)wait_ms * 1000);
}

static int record_loop(struct recording *r, struct as_error *err)
{
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
		progress(r, now, "recording");
		if (as_target_poll(&r->target) || handle_interrupt(r, now))
			return 0;
		if (r->q->duration_ns && now - r->start_ns >= r->q->duration_ns)
			return 0;
	}
}

/* ---- beginning and end ---- */

static int open_target(struct recording *r, struct as_error *err)
{
	const struct as_recording_request *q = r->q;

	if ((q->argv != NULL) == (q->pid != 0))
		return as_fail(err, AS_E_USAGE, 0, "either a program or a process is recorded");
	if (q->argv)
		return as_target_prepare(q->argv, q->folder, &r->target, err);
	return as_target_attach(q->pid, &r->target, err);
}

static int open_session(struct recording *r, struct as_error *err)
{
	struct as_image_listener listener;
	int status = as_session_writer_open(r->q->output, &r->w, err);

	if (status < 0)
		return status;
	r->im = as_image_new(r->q->resolve.cache_dir);
	r->rec = as_recorder_new(r->w, r->im);
	as_recorder_listener(r->rec, &listener);
	as_image_add_listener(r->im, &listener);
	for (size_t i = 0; i < r->q->nnotes; i++) {
		const struct as_recording_note *n = &r->q->notes[i];

		as_recorder_note(r->rec, n->level, n->about, n->remedy, "%s", n->text);
	}
	return 0;
}

/* An event per thread and CPU, a file per module, and BPF programs. The target has got the limits
 * assay was started with at its fork. */
static void raise_fd_limit(void)
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
static void prepare_closure(struct recording *r)
{
	uint32_t *ids = as_xreallocarray(NULL, MAX_CLOSURE, sizeof *ids);
	size_t n = 0;

	as_image_add_closure(r->im, r->target.program_path, ids, MAX_CLOSURE, &n);
	for (size_t i = 0; i < n; i++)
		as_image_module_table(r->im, as_image_module(r->im, ids[i]));
	free(ids);
}

static int start(struct recording *r, struct as_error *err)
{
	int status;

	raise_fd_limit();
	if (!r->target.attached)
		prepare_closure(r);
	status = open_engine(r, err);
	if (status < 0)
		return status;
	/* 60 ms that would stall the drains, or delay the end, are spent while the target is held */
	if (r->facts.kernel_stacks)
		as_rec_load_kallsyms(r->rec);
	r->start_ns = r->tick_ns = as_now_ns();
	write_facts(r);
	if (r->target.attached)
		as_process_cpu(r->target.pid, &r->user0_ns, &r->sys0_ns);
	r->target.cpu_before_ns = r->user0_ns + r->sys0_ns;
	r->cpu_before_ns = as_self_cpu_ns(); /* what runs beside the target counts */
	status = r->engine->start(r->ctx, err);
	if (status < 0)
		return status;
	return as_target_release(&r->target, err);
}

static int finish(struct recording *r, struct as_error *err)
{
	int status;

	r->end_ns = r->target.exited ? r->target.end_ns : as_now_ns();
	r->cpu_read_ns = 0; /* the last reading may be a quarter of a second old */
	follow_cpu_time(r, r->end_ns);
	if (r->engine->stop(r->ctx, err) < 0)
		as_recorder_note(r->rec, 2, "", "", "the engine did not stop cleanly: %s",
				 err ? err->msg : "");
	as_collector_facts(r->engine, r->ctx, &r->facts);
	r->engine->close(r->ctx);
	r->ctx = NULL;
	write_summary(r);
	r->out->samples = as_recorder_samples(r->rec);
	r->out->wall_ns = r->end_ns - r->start_ns;
	as_session_writer_flush(r->w);
	if (interrupted(r) > 1)
		return as_fail(err, AS_E_CANCELLED, 0,
			       "given up; '%s.partial' holds what was recorded, without names",
			       r->q->output);
	r->progress_ns = 0;
	progress(r, as_now_ns(), "resolving names");
	status = as_recorder_resolve(r->rec, &r->q->resolve, err);
	if (status < 0)
		return status;
	status = as_session_writer_finish(r->w, err);
	r->out->session_bytes = as_session_writer_bytes(r->w);
	return status;
}

/* The launched program goes on after the recording: its exit status is still ours to give back.
 * A program that takes its time over the first interrupt is waited for; the second leaves it. */
static void wait_for_target(struct recording *r)
{
	if (!r->target.released || r->target.attached)
		return;
	while (!as_target_poll(&r->target) && interrupted(r) < 2) {
		struct pollfd p = {.fd = r->target.pidfd, .events = POLLIN};

		handle_interrupt(r, as_now_ns());
		poll(&p, 1, r->target.pidfd >= 0 ? 1000 : 20);
	}
}

/* As wait(2) would tell it. Interrupted and left running: as if the signal had ended it. */
static int status_of_target(const struct recording *r)
{
	if (r->target.exited || r->target.attached)
		return r->target.wait_status;
	return r->q->interrupt_signal && *r->q->interrupt_signal ? abs(*r->q->interrupt_signal)
								 : SIGINT;
}

static void discard_session(struct recording *r)
{
	AS_CLEANUP(as_free_autop) char *partial = NULL;

	if (!r->w || !strcmp(r->q->output, "-"))
		return;
	partial = as_xasprintf("%s.partial", r->q->output);
	unlink(partial);
}

static void clear(struct recording *r)
{
	if (r->ctx)
		r->engine->close(r->ctx);
	as_recorder_free(r->rec);
	as_image_free(r->im);
	as_session_writer_close(r->w);
	as_target_clear(&r->target);
}

static int run(struct recording *r, struct as_error *err)
{
	struct as_error loop_err = {0};
	int status = open_target(r, err), loop_status;

	if (status == AS_E_NOTFOUND || status == AS_E_ACCESS)
		r->out->exec_errno = err->sys_errno;
	if (status < 0)
		return status;
	status = open_session(r, err);
	if (status < 0)
		return status;
	status = start(r, err);
	if (status < 0) {
		if (r->target.exited)
			r->out->exec_errno = err->sys_errno;
		discard_session(r);
		return status;
	}
	r->out->launched = !r->target.attached;
	loop_status = record_loop(r, &loop_err);
	if (loop_status < 0)
		as_recorder_note(r->rec, 2, "", "", "the recording ended early: %s",
				 loop_err.msg);
	status = finish(r, err);
	wait_for_target(r);
	r->out->wait_status = status_of_target(r);
	if (loop_status < 0 && status >= 0 && err)
		*err = loop_err;
	return status < 0 ? status : loop_status;
}

int as_record(const struct as_recording_request *q, struct as_recording_outcome *ret,
	      struct as_error *err)
{
	struct recording r = {.q = q, .out = ret};
	struct as_error own = {0};
	int status;

	memset(ret, 0, sizeof *ret);
	r.target.hold_fd = r.target.exec_err_fd = r.target.pidfd = -1;
	status = run(&r, err ? err : &own);
	clear(&r);
	if (status >= 0 && err)
		*err = (struct as_error){0}; /* of an engine or a thread that was passed over */
	return status;
}

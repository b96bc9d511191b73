/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A whole recording of memory:
 *
 *	target held or attached -> session, drainer -> runtime put in -> loop -> taken out -> rings read
 *	to their end -> SUMMARY -> names -> END
 */
#include "track/track_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "rt/rt.h"

#define WAIT_NS       20000000ull
#define TICK_NS       200000000ull
#define COLLECT_NS    100000000ull
#define RESIDENT_NS   20000000ull
#define SAVE_FIRST_NS 1000000000ull
#define SAVE_SHARE    50 /* saving costs one in so many of the time, at most */
#define SAVE_ROW_NS   2000
#define FEW_CONTEXTS  64
#define SMALL_RING    (1u << 18)
#define SPACE_SHARE   16 /* rings take one in so many bytes of a limited address space, at most */

/* ---- beginning ---- */

/* What an address space limit leaves room for; the target has the same. */
static void choose_size(struct as_hook_spec *spec)
{
	const uint64_t each = AS_RT_CONTEXT_BYTES + AS_RT_RING_HEAD_BYTES + SMALL_RING;
	struct rlimit rl;

	spec->ring_bytes = AS_TRACK_RING_BYTES;
	if (getrlimit(RLIMIT_AS, &rl) || rl.rlim_cur == RLIM_INFINITY)
		return;
	spec->context_max =
		(uint32_t)AS_MIN(rl.rlim_cur / SPACE_SHARE / each, (uint64_t)AS_RT_CONTEXTS);
	spec->context_max = AS_MAX(spec->context_max, FEW_CONTEXTS);
	spec->ring_bytes = SMALL_RING;
}

static int open_target(struct as_track *k, struct as_error *err)
{
	const struct as_track_request *q = k->q;
	struct stat st;
	int r;

	if (!as_rt_blob_bytes)
		return as_fail(err, AS_E_UNSUPPORTED, 0,
			       "memory can be recorded on x86-64 only");
	if ((q->argv != NULL) == (q->pid != 0))
		return as_fail(err, AS_E_USAGE, 0, "either a program or a process is recorded");
	if (q->pid)
		return as_target_attach(q->pid, &k->target, err);
	r = as_target_prepare(q->argv, q->folder, &k->target, err);
	if (r < 0)
		k->out->exec_errno = err ? err->sys_errno : 0;
	else if (geteuid() && stat(k->target.program_path, &st) == 0 &&
		 st.st_mode & (S_ISUID | S_ISGID))
		r = as_fail(err, AS_E_ACCESS, 0,
			    "'%s' runs with another user's rights (setuid): only root can look "
			    "into it\n  sudo assay heap -- %s",
			    k->target.program_path, q->argv[0]);
	return r;
}

static int open_session(struct as_track *k, struct as_error *err)
{
	int r = as_session_writer_open(k->q->output, &k->w, err);

	if (r < 0)
		return r;
	k->im = as_image_new(k->q->resolve.cache_dir);
	k->rec = as_recorder_new(k->w, k->im);
	as_heap_writer_init(&k->writer, k->w, NULL);
	for (size_t i = 0; i < k->q->nnotes; i++) {
		const struct as_recording_note *n = &k->q->notes[i];

		as_recorder_note(k->rec, n->level, n->about, n->remedy, "%s", n->text);
	}
	k->spec = (struct as_hook_spec){
		.image = as_rt_blob,
		.image_bytes = as_rt_blob_bytes,
		.groups = AS_HOOKS_OF_HEAP | AS_HOOKS_MAPPINGS | AS_HOOKS_EXIT,
		.sample_bytes = k->q->sample_bytes,
		.flags = AS_RT_WAIT_FULL |
			 (k->q->sample_bytes || k->q->events ? 0 : AS_RT_SUM_PAIRS),
		.full_wait_us = AS_TRACK_FULL_WAIT_US,
		.cache_dir = k->q->resolve.cache_dir,
		.modules = k->im,
		.known = as_hook_known_new(),
	};
	choose_size(&k->spec);
	return 0;
}

static void discard_session(struct as_track *k)
{
	AS_CLEANUP(as_free_autop) char *partial = NULL;

	if (!k->w || !strcmp(k->q->output, "-"))
		return;
	partial = as_xasprintf("%s.partial", k->q->output);
	unlink(partial);
}

static void write_facts(struct as_track *k)
{
	const struct as_engine *e = &k->engine;

	k->start_ns = k->tick_ns = as_now_ns();
	k->save_ns = k->start_ns + SAVE_FIRST_NS;
	if (!k->q->events) /* which would take twice the time */
		as_session_writer_pack_well(k->w);
	k->state_ns = k->start_ns + k->q->state_every_ns;
	k->cpu_before_ns = as_self_cpu_ns();
	as_write_recording_facts(
		k->w,
		&(struct as_recording_facts){
			.engine = e->collector ? e->collector->name : "detours",
			.event = e->collector ? e->facts.event : "allocations",
			.rate_hz = e->collector ? (uint64_t)(k->q->cpu->rate_hz + 0.5) : 0,
			.weight_unit = e->facts.weight_unit,
			.kernel_stacks = e->facts.kernel_stacks,
			.folder = k->q->folder,
			.argv = k->q->argv,
			.target = &k->target,
			.start_ns = k->start_ns,
		});
	as_write_heap(k->w,
		      &(struct as_rec_heap){.flags = (k->q->no_leaks ? 0 : AS_HEAP_LOOKED) |
						     (k->q->events ? AS_HEAP_EVENTS : 0),
					    .start_ns = k->start_ns,
					    .sample_bytes = k->q->sample_bytes});
}

/* A program that cannot be patched runs, and is waited for. */
static void not_seen(struct as_track *k, const struct as_error *err)
{
	as_recorder_note(k->rec, 2, k->target.program_path, "",
			 "the memory of '%s' was not seen: %s", k->target.program_path,
			 err->msg);
}

static int launch(struct as_track *k, struct as_error *err)
{
	struct as_error own = {0};
	struct as_hooked *h = NULL;
	int status = -1;
	int r = as_hook_check_program(k->target.program_path, err);

	if (r == 0)
		r = as_hook_watch_exec(k->target.pid, err);
	if (r < 0)
		return r;
	r = as_target_release(&k->target, err);
	if (r < 0) {
		k->out->exec_errno = err ? err->sys_errno : 0;
		return r;
	}
	k->out->launched = true;
	r = as_hook_launch(k->target.pid, &k->spec, &h, &status, &own);
	if (r == 0)
		(void)as_track_area_add(k, h, AS_RECORDER_NONE);
	else
		not_seen(k, &own);
	if (status != -1) {
		k->target.exited = true;
		k->target.wait_status = status;
		k->target.end_ns = as_now_ns();
	}
	return 0;
}

static int attach(struct as_track *k, struct as_error *err)
{
	struct as_hooked *h;
	int r = as_hook_attach(k->target.pid, &k->spec, &h, err);

	if (r == 0)
		(void)as_track_area_add(k, h, AS_RECORDER_NONE);
	return r;
}

/* ---- the loop ---- */

static void on_child(int sig)
{
}

/* Stops and ends of those we trace interrupt the wait, and nothing else: the signal is blocked while we
 * look at them. */
static void block_child_signal(sigset_t *ret_wait)
{
	struct sigaction sa = {.sa_handler = on_child, .sa_flags = SA_RESTART};
	sigset_t child;

	sigaction(SIGCHLD, &sa, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, ret_wait);
	sigdelset(ret_wait, SIGCHLD);
}

static void wait_for_something(struct as_track *k, const sigset_t *mask)
{
	const struct as_engine *e = &k->engine;
	uint64_t engine_ns = (uint64_t)AS_MAX(k->engine_wait_ms, 1) * 1000000;
	struct timespec rest = {.tv_nsec =
					(long)(e->ctx ? AS_MIN(WAIT_NS, engine_ns) : WAIT_NS)};
	struct pollfd p[3] = {
		{.fd = k->wake_fd, .events = POLLIN},
		{.fd = k->target.pidfd, .events = POLLIN},
		{.fd = e->ctx ? e->collector->poll_fd(e->ctx) : -1, .events = POLLIN},
	};
	uint64_t n;

	(void)ppoll(p, 3, &rest, mask); /* whatever it says, we look at all there is */
	if (p[0].revents)
		(void)!read(k->wake_fd, &n, sizeof n); /* its number says nothing */
}

/* One that is traced is waited for by as_track_watches_poll. */
static bool target_ended(struct as_track *k)
{
	if (k->target.exited)
		return true;
	return !as_track_is_watched(k, k->target.pid) && as_target_poll(&k->target);
}

static void tell_state(struct as_track *k, uint64_t now)
{
	struct as_track_state s;

	if (!k->q->state)
		return;
	k->state_ns = now + k->q->state_every_ns;
	as_track_areas_state(k, &s);
	s.elapsed_ns = now - k->start_ns;
	k->q->state(k->q->state_ctx, &s);
}

/* The first time costs what the rows are likely to; later it is known. */
static bool is_worth_saving(struct as_track *k, uint64_t now)
{
	return k->saved || (now - k->start_ns) / SAVE_SHARE >= as_track_rows(k) * SAVE_ROW_NS;
}

static void save(struct as_track *k, uint64_t now)
{
	uint64_t cost;

	k->saved = true;
	as_track_save_all(k);
	cost = as_now_ns() - now;
	k->save_ns = now + AS_MAX(now - k->start_ns, cost * SAVE_SHARE);
}

/* What is done from time to time. */
static int tick(struct as_track *k, uint64_t now, struct as_error *err)
{
	if (now >= k->resident_ns) {
		k->resident_ns = now + RESIDENT_NS;
		as_track_areas_resident(k);
	}
	if (now >= k->collect_ns) {
		k->collect_ns = now + COLLECT_NS;
		as_track_areas_collect(k, now);
	}
	as_track_events_save_all(k);
	if (now >= k->save_ns && is_worth_saving(k, now))
		save(k, now);
	if (now >= k->state_ns)
		tell_state(k, now);
	if (now < k->tick_ns + TICK_NS)
		return 0;
	k->tick_ns = now;
	as_session_writer_tick(k->w, now);
	return as_session_writer_status(k->w, err);
}

static int loop(struct as_track *k, struct as_error *err)
{
	sigset_t mask;

	block_child_signal(&mask);
	k->until_ns = k->q->duration_ns ? as_now_ns() + k->q->duration_ns : UINT64_MAX;
	for (;;) {
		uint64_t now;
		int r;

		as_track_syncs(k);
		as_track_watches_poll(k);
		now = as_now_ns();
		if (target_ended(k) || as_target_interrupt(&k->target, &k->interrupt, now) ||
		    now >= k->until_ns)
			return 0;
		r = as_track_cpu_drain(k, err);
		if (r == 0)
			r = tick(k, now, err);
		if (r < 0)
			return r;
		wait_for_something(k, &mask);
	}
}

/* ---- the end ---- */

static uint64_t timeval_ns(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_usec * 1000ull;
}

static void add_figures(struct as_track *k)
{
	const struct as_target *t = &k->target;
	struct rusage usage;

	k->sum.end_ns = k->end_ns;
	k->sum.wall_ns = k->end_ns - k->start_ns;
	k->sum.exit = UINT64_MAX;
	if (t->attached || !t->exited)
		return;
	k->sum.exit = (uint64_t)(unsigned)t->wait_status;
	if (getrusage(RUSAGE_CHILDREN, &usage)) /* it is our only child */
		return;
	k->sum.user_ns = timeval_ns(usage.ru_utime);
	k->sum.sys_ns = timeval_ns(usage.ru_stime);
	k->sum.max_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
}

/* Everything is taken out of what runs on, and read to its end. */
static void stop(struct as_track *k)
{
	k->end_ns = k->target.exited ? k->target.end_ns : as_now_ns();
	as_track_events_save_all(k); /* room for what comes while main is busy */
	as_track_cpu_stop(k);
	as_track_watches_end(k);
	as_track_areas_detach(k);
	as_track_drainer_stop(k);
	as_session_writer_pack_well(k->w);
	as_vec_foreach (a, &k->areas)
		as_track_area_close(k, *a);
	tell_state(k, as_now_ns());
	add_figures(k);
}

static int finish(struct as_track *k, struct as_error *err)
{
	int r;

	k->sum.recorder_cpu_ns = as_self_cpu_ns() - k->cpu_before_ns;
	k->sum.recorder_rss_bytes = as_self_rss_bytes();
	as_write_summary(k->w, &k->sum);
	k->out->samples = k->ended.events;
	k->out->wall_ns = k->sum.wall_ns;
	as_session_writer_flush(k->w);
	if (k->q->interrupted && *k->q->interrupted > 1)
		return as_fail(err, AS_E_CANCELLED, 0,
			       "given up; '%s.partial' holds what was recorded, without names",
			       k->q->output);
	r = as_recorder_resolve(k->rec, &k->q->resolve, err);
	if (r < 0)
		return r;
	r = as_session_writer_finish(k->w, err);
	k->out->session_bytes = as_session_writer_bytes(k->w);
	return r;
}

/* The launched program goes on after the recording: its exit status is still ours to give back. */
static void wait_for_target(struct as_track *k)
{
	while (!k->target.attached && !as_target_poll(&k->target) &&
	       !(k->interrupt.count && *k->interrupt.count > 1)) {
		struct pollfd p = {.fd = k->target.pidfd, .events = POLLIN};

		(void)as_target_interrupt(&k->target, &k->interrupt, as_now_ns());
		(void)poll(&p, 1, k->target.pidfd >= 0 ? 1000 : 20); /* we look again anyway */
	}
	if (k->target.exited || k->target.attached)
		k->out->wait_status = k->target.wait_status;
	else /* left running: as if the signal had ended it */
		k->out->wait_status = k->q->interrupt_signal && *k->q->interrupt_signal
					      ? abs(*k->q->interrupt_signal)
					      : SIGINT;
}

static int run(struct as_track *k, struct as_error *err)
{
	struct as_error end_err = {0};
	int r = open_target(k, err), end;

	if (r < 0)
		return r;
	r = open_session(k, err);
	if (r < 0)
		return r;
	as_raise_fd_limit();
	r = as_track_cpu_open(k, err);
	if (r < 0) {
		discard_session(k);
		return r;
	}
	write_facts(k);
	r = as_track_drainer_start(k, err);
	if (r == 0)
		r = as_track_cpu_start(k, err);
	if (r == 0)
		r = k->target.attached ? attach(k, err) : launch(k, err);
	if (r < 0) {
		discard_session(k);
		return r;
	}
	r = loop(k, err);
	stop(k);
	end = finish(k, &end_err);
	if (r >= 0 && end < 0) {
		r = end;
		if (err)
			*err = end_err;
	}
	wait_for_target(k);
	return r;
}

static void clear(struct as_track *k)
{
	as_track_watches_end(k);
	as_track_drainer_stop(k);
	as_vec_foreach (a, &k->areas)
		as_track_area_free(*a);
	as_vec_foreach (a, &k->closed)
		as_track_area_free(*a);
	as_vec_clear(&k->areas);
	as_vec_clear(&k->closed);
	as_vec_clear(&k->round);
	as_vec_clear(&k->syncs);
	as_heap_writer_clear(&k->writer);
	as_vec_clear(&k->events);
	as_log_clear(&k->events_out);
	as_track_cpu_close(k);
	as_recorder_free(k->rec);
	as_hook_known_free(k->spec.known);
	as_image_free(k->im);
	as_session_writer_close(k->w);
	as_target_clear(&k->target);
	as_close_autop(&k->wake_fd);
	pthread_mutex_destroy(&k->list_lock);
}

int as_track(const struct as_track_request *q, struct as_recording_outcome *ret,
	     struct as_error *err)
{
	struct as_track k = {
		.q = q,
		.out = ret,
		.interrupt = {q->interrupted, q->interrupt_signal, 0},
		.target = {.hold_fd = -1, .exec_err_fd = -1, .pidfd = -1},
		.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
	};
	struct as_error own = {0};
	int r;

	memset(ret, 0, sizeof *ret);
	pthread_mutex_init(&k.list_lock, NULL);
	r = run(&k, err ? err : &own);
	clear(&k);
	return r;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The ring engine: perf_event samples with user registers and a copy of the stack, unwound here
 * as they are drained; the bytes are thrown away. Needs no rights beyond perf_event_paranoid
 * <= 2.
 *
 * Records of all CPUs are handled in the order of time: each drain takes the heads of all
 * rings, then merges what is older than a moment before that, so that nothing still on its way
 * can come out of order. What is younger waits for the next drain.
 */
#include "collect/engine_ring_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/sys.h"

#define SETTLE_NS 1000000ull

static int ring_probe(struct as_probe_result *ret)
{
	struct as_perf_event_choice c;
	struct as_error err = {0};
	char *remedy;

	memset(ret, 0, sizeof *ret);
	if (as_perf_choose_event(true, &c, &err) < 0) {
		remedy = strchr(err.msg, '\n');
		if (remedy) {
			*remedy = 0;
			snprintf(ret->remedy, sizeof ret->remedy, "%.*s",
				 (int)sizeof ret->remedy - 1, remedy + 1);
		}
		snprintf(ret->why, sizeof ret->why, "%.*s", (int)sizeof ret->why - 1, err.msg);
		ret->can = AS_PROBE_NO;
		return 0;
	}
	ret->can = AS_PROBE_YES;
	if (!c.callchain) {
		ret->can = AS_PROBE_PARTLY;
		snprintf(ret->why, sizeof ret->why,
			 "user mode only: time inside the kernel is not sampled");
		snprintf(ret->remedy, sizeof ret->remedy,
			 "sudo sysctl kernel.perf_event_paranoid=1");
	}
	return 0;
}

/* ---- threads and processes ---- */

struct as_ring_proc *as_ring_proc(struct as_ring *e, pid_t pid)
{
	bool fresh;
	uint64_t *slot = as_map64_put(&e->proc_by_pid, (uint32_t)pid, &fresh);

	if (fresh) {
		if (e->free_procs.n) {
			*slot = e->free_procs.v[--e->free_procs.n];
		} else {
			*slot = e->procs.n;
			as_vec_push(&e->procs, (struct as_ring_proc){0});
		}
		e->procs.v[*slot] = (struct as_ring_proc){.pid = pid};
	}
	return &e->procs.v[*slot];
}

struct as_ring_thread *as_ring_thread(struct as_ring *e, pid_t pid, pid_t tid)
{
	bool fresh;
	uint64_t *slot = as_map64_put(&e->thread_by_tid, (uint32_t)tid, &fresh);

	if (fresh) {
		if (e->free_threads.n) {
			*slot = e->free_threads.v[--e->free_threads.n];
		} else {
			*slot = e->threads.n;
			as_vec_push(&e->threads, (struct as_ring_thread){0});
		}
		e->threads.v[*slot] = (struct as_ring_thread){.pid = pid, .tid = tid};
	}
	return &e->threads.v[*slot];
}

static void forget_thread(struct as_ring *e, pid_t tid)
{
	uint64_t *slot = as_map64_get(&e->thread_by_tid, (uint32_t)tid);
	uint32_t i;

	if (!slot)
		return;
	i = (uint32_t)*slot;
	free(e->threads.v[i].memo.frames);
	free(e->threads.v[i].memo.callers);
	e->threads.v[i] = (struct as_ring_thread){0};
	as_vec_push(&e->free_threads, i);
	as_map64_del(&e->thread_by_tid, (uint32_t)tid);
}

static void forget_proc(struct as_ring *e, pid_t pid)
{
	uint64_t *slot = as_map64_get(&e->proc_by_pid, (uint32_t)pid);

	if (!slot)
		return;
	e->procs.v[*slot] = (struct as_ring_proc){0};
	as_vec_push(&e->free_procs, (uint32_t)*slot);
	as_map64_del(&e->proc_by_pid, (uint32_t)pid);
}

/* ---- records ---- */

static void on_fork(struct as_ring *e, const struct as_perf_rec *rec)
{
	const uint64_t *creator = as_map64_get(&e->thread_by_tid, (uint32_t)rec->ptid);
	uint32_t copy = creator ? e->threads.v[*creator].copy_bytes : 0;

	if (rec->pid != rec->ppid) {
		as_image_fork(e->env.image, rec->ppid, rec->pid, rec->time_ns);
		as_ring_proc(e, rec->pid)->no_memory_access =
			as_ring_proc(e, rec->ppid)->no_memory_access;
	}
	as_recorder_fork(e->env.recorder, rec->time_ns, rec->ppid, rec->pid, rec->tid);
	as_ring_proc(e, rec->pid)->live_threads++;
	forget_thread(e, rec->tid); /* the number's last holder, if its exit was lost */
	as_ring_thread(e, rec->pid, rec->tid)->copy_bytes = copy;
	e->forked = true;
}

static void on_exit_record(struct as_ring *e, const struct as_perf_rec *rec)
{
	struct as_ring_proc *p = as_ring_proc(e, rec->pid);

	as_recorder_exit(e->env.recorder, rec->time_ns, rec->pid, rec->tid);
	forget_thread(e, rec->tid);
	if (p->live_threads)
		p->live_threads--;
	if (p->live_threads)
		return;
	as_image_exit(e->env.image, rec->pid, rec->time_ns);
	forget_proc(e, rec->pid);
}

static void on_comm(struct as_ring *e, const struct as_perf_rec *rec)
{
	if (rec->exec) {
		as_image_exec(e->env.image, rec->pid, rec->time_ns);
		as_ring_proc(e, rec->pid)->exec_ns = rec->time_ns;
	}
	as_recorder_name(e->env.recorder, rec->time_ns, rec->pid, rec->tid, rec->text,
			 rec->exec);
}

static void on_mmap(struct as_ring *e, const struct as_perf_rec *rec)
{
	struct as_mmap_event m = {
		.pid = rec->pid,
		.time_ns = rec->time_ns,
		.start = rec->start,
		.len = rec->len,
		.off = rec->off,
		.maj = rec->maj,
		.min = rec->min,
		.ino = rec->ino,
		.path = rec->text,
	};

	if (rec->prot & 4) /* PROT_EXEC */
		as_image_mmap(e->env.image, &m);
}

static bool handle(struct as_ring *e, struct as_ring_cpu *c, const void *p, size_t n)
{
	struct as_perf_rec rec;

	if (as_perf_parse(p, n, e->event.callchain, &rec) < 0) {
		e->damaged++;
		return false;
	}
	switch (rec.kind) {
	case AS_PERF_SAMPLE: {
		struct as_ring_thread *t = as_ring_thread(e, rec.pid, rec.tid);

		as_ring_sample(e, t, &rec, as_ring_weight(e, t, &rec));
		e->last_sample_ns = rec.time_ns;
		c->tick.delivered++;
		return true;
	}
	case AS_PERF_MMAP:
		on_mmap(e, &rec);
		break;
	case AS_PERF_COMM:
		on_comm(e, &rec);
		break;
	case AS_PERF_FORK:
		on_fork(e, &rec);
		break;
	case AS_PERF_EXIT:
		on_exit_record(e, &rec);
		break;
	case AS_PERF_LOST:
		as_recorder_lost(e->env.recorder, rec.time_ns, (uint32_t)c->cpu, AS_LOSS_QUEUE,
				 rec.count);
		c->tick.lost_queue += rec.count;
		e->lost += rec.count;
		e->lost_total += rec.count;
		break;
	case AS_PERF_LOST_SAMPLES:
		as_recorder_lost(e->env.recorder, rec.time_ns, (uint32_t)c->cpu, AS_LOSS_KERNEL,
				 rec.count);
		c->tick.lost_kernel += rec.count;
		break;
	case AS_PERF_THROTTLE:
		c->tick.throttled++;
		break;
	case AS_PERF_OTHER:
		break;
	}
	return false;
}

/* The CPU whose next record is the oldest and not younger than limit; NULL: none. */
static struct as_ring_cpu *oldest(struct as_ring *e, uint64_t limit_ns)
{
	struct as_ring_cpu *best = NULL;
	uint64_t best_ns = limit_ns;

	for (size_t i = 0; i < e->ncpus; i++) {
		struct as_ring_cpu *c = &e->cpus[i];
		size_t n;
		const void *p = c->ring.page ? as_perf_ring_peek(&c->ring, &n) : NULL;
		uint64_t t = p ? as_perf_record_time(p, n) : UINT64_MAX;

		if (p && t <= best_ns) {
			best = c;
			best_ns = t;
		}
	}
	return best;
}

static void write_ticks(struct as_ring *e, uint64_t now_ns)
{
	for (size_t i = 0; i < e->ncpus; i++) {
		struct as_ring_cpu *c = &e->cpus[i];

		c->tick.lost_queue += c->ring.damaged;
		c->ring.damaged = 0;
		if (!(c->tick.delivered | c->tick.lost_kernel | c->tick.lost_queue |
		      c->tick.throttled))
			continue;
		c->tick.time_rel = now_ns;
		c->tick.cpu = (uint64_t)c->cpu;
		c->tick.taken = c->tick.delivered + c->tick.lost_kernel + c->tick.lost_queue;
		as_recorder_tick(e->env.recorder, &c->tick);
		memset(&c->tick, 0, sizeof c->tick);
	}
}

static int drain_until(struct as_ring *e, uint64_t limit_ns)
{
	struct as_ring_cpu *c;
	int samples = 0;

	for (size_t i = 0; i < e->ncpus; i++) {
		if (e->cpus[i].ring.page)
			as_perf_ring_begin(&e->cpus[i].ring);
	}
	while ((c = oldest(e, limit_ns))) {
		size_t n;
		const void *p = as_perf_ring_peek(&c->ring, &n);

		samples += handle(e, c, p, n);
		as_perf_ring_pop(&c->ring);
	}
	write_ticks(e, as_now_ns());
	return samples;
}

/* ---- life ---- */

static void ring_close(void *p)
{
	struct as_ring *e = p;

	if (!e)
		return;
	as_ring_close_events(e);
	as_vec_foreach (t, &e->threads) {
		free(t->memo.frames);
		free(t->memo.callers);
	}
	as_vec_clear(&e->threads);
	as_vec_clear(&e->free_threads);
	as_vec_clear(&e->procs);
	as_vec_clear(&e->free_procs);
	as_map64_clear(&e->thread_by_tid);
	as_map64_clear(&e->proc_by_pid);
	as_map64_clear(&e->cfi_loaded);
	as_unwinder_free(e->unwinder);
	free(e->uframes);
	free(e->raw);
	free(e->window);
	free(e);
}

static void close_ring_autop(struct as_ring **e)
{
	ring_close(*e);
}

static double allowed_rate(struct as_ring *e, double hz)
{
	struct as_perf_limits l;

	as_perf_limits_read(&l);
	if (hz < 1)
		hz = 1;
	if (l.max_sample_rate <= 0 || hz <= (double)l.max_sample_rate)
		return hz;
	as_recorder_note(e->env.recorder, 2, "",
			 "sudo sysctl kernel.perf_event_max_sample_rate=100000",
			 "%.0f samples per second asked for, the kernel allows %ld", hz,
			 l.max_sample_rate);
	return (double)l.max_sample_rate;
}

/* Where we may: a drain that comes late loses samples, and takes 1 to 2 % of a CPU only. */
static void be_prompt(struct as_ring *e)
{
	e->old_nice = getpriority(PRIO_PROCESS, 0);
	/* refused to ordinary users */
	(void)setpriority(PRIO_PROCESS, 0, AS_MIN(e->old_nice, -10));
}

static struct as_ring *ring_new(const struct as_engine_env *env)
{
	struct as_ring *e = as_xcalloc(1, sizeof *e);
	double hz;

	e->env = *env;
	e->epfd = -1;
	e->rng = as_now_ns() ^ (uint64_t)getpid() << 40;
	hz = allowed_rate(e, env->options->rate_hz > 0 ? env->options->rate_hz : 997);
	e->rate_hz = (uint64_t)(hz + 0.5);
	e->period_ns = (uint64_t)(1e9 / hz);
	e->copy_fixed = env->options->dump_size != 0;
	e->copy_bytes = e->copy_fixed ? AS_MIN(env->options->dump_size, AS_RING_COPY_MAX)
				      : AS_RING_COPY_START;
	e->max_frames = env->options->max_depth ? env->options->max_depth : 65536;
	e->unwinder = as_unwinder_new();
	e->uframes = as_xreallocarray(NULL, e->max_frames, sizeof *e->uframes);
	e->raw = as_xreallocarray(NULL, e->max_frames + 1024, sizeof *e->raw);
	e->window = as_xmalloc(16384);
	return e;
}

static int ring_open(const struct as_engine_env *env, void **ret, struct as_error *err)
{
	AS_CLEANUP(close_ring_autop) struct as_ring *e = NULL;
	pid_t pid = env->target->pid;
	int r;

	e = ring_new(env);
	r = as_perf_choose_event(env->options->kernel_stacks, &e->event, err);
	if (r < 0)
		return r;
	r = as_ring_open_cpus(e, err);
	if (r < 0)
		return r;
	if (env->target->attached) {
		r = as_ring_open_attached(e, pid, err);
		if (r >= 0 && as_image_read_maps(env->image, pid, as_now_ns(), err) < 0)
			r = as_wrap(err, "cannot read the mappings of process %d", (int)pid);
	} else {
		r = as_ring_open_launched(e, pid, err);
		as_ring_thread(e, pid, pid);
		as_ring_proc(e, pid)->live_threads = 1;
	}
	if (r < 0)
		return r;
	*ret = AS_STEAL(e);
	return 0;
}

static int ring_start(void *p, struct as_error *err)
{
	struct as_ring *e = p;
	int r = 0;

	if (e->env.target->attached)
		r = as_ring_enable(e);
	e->started = true;
	be_prompt(e);
	e->sweep_after_ns = as_now_ns() + 60000000ull;
	return r < 0 ? as_perf_fail(err, -r, "start sampling") : 0;
}

static int ring_drain(void *p, int *ret_wait_ms, struct as_error *err)
{
	struct as_ring *e = p;
	struct epoll_event ev[16];
	uint64_t now = as_now_ns();
	int n, samples;

	n = epoll_wait(e->epfd, ev, AS_ARRAY_LEN(ev), 0);
	for (int i = 0; i < n; i++) {
		/* all it could tell has been told: without this, poll would return at once for ever */
		if (ev[i].events & (EPOLLHUP | EPOLLERR))
			epoll_ctl(e->epfd, EPOLL_CTL_DEL, ev[i].data.fd, NULL);
	}
	samples = drain_until(e, now - SETTLE_NS);
	as_ring_jitter(e, now);
	as_ring_resize(e, now);
	/* irregular, so that no program runs in step with what happens here */
	*ret_wait_ms = 10 + (int)(as_ring_random(e) % 21);
	/* the sooner a short copy is continued, the likelier its stack still stands */
	if (e->shorts * 16 > (uint32_t)samples)
		*ret_wait_ms = 2 + (int)(as_ring_random(e) % 4);
	e->shorts = 0;
	if (now > e->last_sample_ns + 500000000ull)
		*ret_wait_ms = 50;
	return samples;
}

static int ring_poll_fd(void *p)
{
	return ((struct as_ring *)p)->epfd;
}

static int ring_stop(void *p, struct as_error *err)
{
	struct as_ring *e = p;
	uint64_t untold;

	as_ring_disable(e);
	drain_until(e, UINT64_MAX - 1);
	untold = as_ring_untold_loss(e);
	if (untold) {
		as_recorder_lost(e->env.recorder, as_now_ns(), 0, AS_LOSS_QUEUE, untold);
		e->cpus[0].tick.lost_queue += untold;
		write_ticks(e, as_now_ns());
	}
	(void)setpriority(PRIO_PROCESS, 0, e->old_nice);
	if (e->damaged)
		as_recorder_note(e->env.recorder, 2, "", "",
				 "%llu damaged records from the kernel were skipped",
				 (unsigned long long)e->damaged);
	return 0;
}

void as_engine_ring_facts(void *c, struct as_engine_facts *ret)
{
	const struct as_ring *e = c;

	*ret = (struct as_engine_facts){
		.event = e->event.name,
		.weight_unit = e->event.weight_is_cycles,
		.kernel_stacks = e->event.callchain,
	};
}

const struct as_collector as_engine_ring = {
	.name = "ring",
	.summary = "stack copies, unwound while recording (perf_event)",
	.probe = ring_probe,
	.open = ring_open,
	.start = ring_start,
	.drain = ring_drain,
	.poll_fd = ring_poll_fd,
	.stop = ring_stop,
	.close = ring_close,
};

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel engine's life. One drain:
 *
 *	side events, in time order -> image, recorder; then publish changed mappings
 *	ring buffer                -> samples -> recorder (healing marks processes as changed)
 *	publish again, exits, counts once a second, new periods
 *
 * Exits are told last, so that a process's last samples find it alive.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "base/sys.h"
#include "collect/engine_kernel_priv.h"

#define TICK_NS     1000000000ull
#define MAX_CLOSURE 4096

/* ---- the image's listener ---- */

static void on_changed(void *ctx, struct as_process *p)
{
	struct as_kernel *k = ctx;
	struct as_kproc *kp = as_kmaps_find(&k->maps, p->pid);

	if (kp && p->pid != k->forking)
		as_kmaps_touch(&k->maps, kp);
}

/* ---- events of processes ---- */

static void on_fork(struct as_kernel *k, const struct as_kevent *e)
{
	struct as_kproc *parent = as_kmaps_find(&k->maps, e->ppid);
	struct as_kproc *before = as_kmaps_find(&k->maps, e->pid);

	if (parent && parent->replaced)
		parent = NULL;
	if (!parent && before && e->pid != e->ppid)
		before->replaced = true;
	if (!parent || (e->pid != e->ppid && k->options.no_inherit))
		return;
	as_recorder_fork(k->env.recorder, e->time_ns, e->ppid, e->pid, e->tid);
	if (e->pid == e->ppid)
		return;
	bool behind = parent->dirty;
	struct as_kproc *child = as_kmaps_forked(&k->maps, e->ppid, e->pid);
	k->forking = e->pid;
	as_image_fork(k->env.image, e->ppid, e->pid, e->time_ns);
	k->forking = 0;
	child->dirty = behind;
	child->since_ns = e->time_ns;
}

static void on_exec(struct as_kernel *k, const struct as_kevent *e)
{
	struct as_kproc *p = as_kmaps_find(&k->maps, e->pid);

	/* ours before it execs what we are to record */
	as_image_exec(k->env.image, e->pid, e->time_ns);
	as_recorder_name(k->env.recorder, e->time_ns, e->pid, e->tid, e->text, true);
	as_kmaps_touch(&k->maps, p);
}

static void on_mmap(struct as_kernel *k, const struct as_kevent *e)
{
	struct as_mmap_event m = {.pid = e->pid,
				  .time_ns = e->time_ns,
				  .start = e->start_avma,
				  .len = e->size_bytes,
				  .off = e->off,
				  .maj = e->maj,
				  .min = e->min,
				  .ino = e->ino,
				  .path = e->text};

	as_image_mmap(k->env.image, &m);
}

static void on_event(struct as_kernel *k, const struct as_kevent *e)
{
	if (e->type == AS_KEVENT_FORK) {
		on_fork(k, e);
		return;
	}
	const struct as_kproc *p = as_kmaps_find(&k->maps, e->pid);

	if (!p || p->replaced)
		return;
	switch (e->type) {
	case AS_KEVENT_MMAP:
		on_mmap(k, e);
		break;
	case AS_KEVENT_COMM:
		as_recorder_name(k->env.recorder, e->time_ns, e->pid, e->tid, e->text, false);
		break;
	case AS_KEVENT_EXEC:
		on_exec(k, e);
		break;
	default:
		as_vec_push(&k->exits, (struct as_kexit){e->time_ns, e->pid, e->tid});
	}
}

static void reread_all(struct as_kernel *k)
{
	AS_VEC(pid_t) pids = {0};

	for (size_t i = 0; i < k->maps.procs.cap; i++)
		if (k->maps.procs.slot[i].key != UINT64_MAX)
			as_vec_push(&pids, (pid_t)k->maps.procs.slot[i].key);
	as_vec_foreach (pid, &pids)
		/* some have ended */
		(void)as_image_read_maps(k->env.image, *pid, k->now_ns, NULL);
	as_vec_clear(&pids);
}

static void take_events(struct as_kernel *k)
{
	as_kside_drain(&k->side);
	as_vec_foreach (e, &k->side.event)
		on_event(k, e);
	if (k->side.lost) {
		as_recorder_lost(k->env.recorder, k->now_ns, 0, AS_LOSS_SIDE, k->side.lost);
		reread_all(k);
	}
	as_kmaps_publish(&k->maps, k->now_ns);
}

static void forget(struct as_kernel *k, pid_t pid, uint64_t time_ns)
{
	as_image_exit(k->env.image, pid, time_ns);
	as_kmaps_forget(&k->maps, pid);
}

/* A sample of pid is told with the next side events. */
static bool waits(const struct as_kernel *k, pid_t pid)
{
	for (size_t i = 0; i < k->later.n; i++)
		if ((pid_t)k->later.v[i]->pid == pid)
			return true;
	return false;
}

/* A process ends with its last thread; a leader that has gone before is looked at once a second. */
static void tell_exits(struct as_kernel *k)
{
	size_t kept = 0;

	as_vec_foreach (x, &k->exits) {
		struct as_kproc *p = as_kmaps_find(&k->maps, x->pid);

		if (waits(k, x->pid)) {
			k->exits.v[kept++] = *x;
			continue;
		}
		as_recorder_exit(k->env.recorder, x->time_ns, x->pid, x->tid);
		as_krepair_thread_gone(&k->repair, x->tid);
		if (!p || x->tid != x->pid || x->time_ns < p->since_ns)
			continue;
		p->leader_gone = true;
		if (p->replaced || (kill(x->pid, 0) && errno == ESRCH))
			forget(k, x->pid, x->time_ns);
	}
	k->exits.n = kept;
}

static void look_after_gone(struct as_kernel *k)
{
	AS_VEC(pid_t) gone = {0};

	for (size_t i = 0; i < k->maps.procs.cap; i++) {
		const struct as_map64_slot *s = &k->maps.procs.slot[i];
		const struct as_kproc *p = (const void *)(uintptr_t)s->val;

		if (s->key != UINT64_MAX &&
		    (p->replaced || (p->leader_gone && kill(p->pid, 0) && errno == ESRCH)))
			as_vec_push(&gone, p->pid);
	}
	as_vec_foreach (pid, &gone)
		forget(k, *pid, k->now_ns);
	as_vec_clear(&gone);
}

/* ---- counts ---- */

/* Samples on their way count in the tick after. */
static void tick(struct as_kernel *k, bool last)
{
	for (int cpu = 0; cpu < k->bpf.ncpus; cpu++) {
		const volatile struct as_bpf_counts *c = &k->bpf.counts[cpu];
		struct as_ktick *t = &k->tick[cpu], now = {c->sent, c->lost, c->filtered,
							   k->delivered[cpu], k->rejected[cpu]};
		struct as_rec_tick r = {.time_rel = k->now_ns, .cpu = (uint64_t)cpu};

		if (last) /* sent and never seen */
			now.queue = now.sent - now.delivered;
		r.delivered = now.delivered - t->delivered;
		r.lost_kernel = now.lost - t->lost;
		r.lost_queue = now.queue - t->queue;
		r.filtered = now.filtered - t->filtered;
		r.taken = r.delivered + r.lost_kernel + r.lost_queue + r.filtered;
		if (r.taken)
			as_recorder_tick(k->env.recorder, &r);
		if (r.lost_kernel)
			as_recorder_lost(k->env.recorder, k->now_ns, (uint32_t)cpu,
					 AS_LOSS_KERNEL, r.lost_kernel);
		*t = now;
	}
	k->tick_ns = k->now_ns;
	if (k->maps.full)
		as_recorder_note(k->env.recorder, 1, "", "",
				 "the kernel took no more unwind tables or mappings: stacks of "
				 "what was loaded last are continued by the recorder");
}

/* ---- opening ---- */

static int load_closure(struct as_kernel *k)
{
	AS_CLEANUP(as_free_autop) uint32_t *ids = as_xcalloc(MAX_CLOSURE, sizeof(*ids));
	size_t n = 0;

	if (!k->env.target->program_path)
		return 0;
	as_image_add_closure(k->env.image, k->env.target->program_path, ids, MAX_CLOSURE, &n);
	for (size_t i = 0; i < n; i++)
		as_kmaps_load_module(&k->maps, ids[i]);
	return (int)n;
}

static int open_parts(struct as_kernel *k, struct as_error *err)
{
	const struct as_record_options *o = &k->options;

	k->timers.cycles = as_ktimers_have_cycles();
	struct as_kbpf_options b = {.kernel_stacks = o->kernel_stacks,
				    .follow = !o->no_inherit,
				    .weight_by_count = k->timers.cycles,
				    .max_frames = o->max_depth,
				    .leader = k->env.target->pid};
	int r = as_kbpf_open(&k->bpf, &b, err);
	if (r < 0)
		return r;
	as_kmaps_init(&k->maps, &k->bpf, k->env.image);
	as_krepair_init(&k->repair, &k->env);
	k->tick = as_xcalloc((size_t)k->bpf.ncpus, sizeof(*k->tick));
	k->delivered = as_xcalloc((size_t)k->bpf.ncpus, sizeof(*k->delivered));
	k->rejected = as_xcalloc((size_t)k->bpf.ncpus, sizeof(*k->rejected));
	k->bpf.ring = ring_buffer__new(
		bpf_map__fd(bpf_object__find_map_by_name(k->bpf.obj, "samples")),
		as_kernel_sample, k, NULL);
	if (!k->bpf.ring)
		return as_fail(err, AS_E_IO, errno, "cannot map the samples' ring buffer: %s",
			       strerror(errno));
	r = as_kside_open(&k->side, err);
	if (r == AS_OK)
		r = as_ktimers_open(&k->timers, &k->bpf, o->rate_hz, !o->no_jitter, err);
	return r;
}

static void close_engine(void *c)
{
	struct as_kernel *k = c;

	if (!k)
		return;
	as_image_remove_listener(k->env.image, k);
	as_ktimers_close(&k->timers);
	as_kside_close(&k->side);
	as_kmaps_clear(&k->maps);
	as_kbpf_close(&k->bpf);
	as_krepair_clear(&k->repair);
	as_vec_clear(&k->exits);
	as_vec_clear(&k->frames);
	as_vec_clear(&k->user);
	as_vec_foreach (s, &k->later)
		free(*s);
	as_vec_clear(&k->later);
	free(k->tick);
	free(k->delivered);
	free(k->rejected);
	free(k);
}

static int open_engine(const struct as_engine_env *env, void **ret, struct as_error *err)
{
	struct as_kernel *k = as_xcalloc(1, sizeof(*k));

	k->env = *env;
	k->options = *env->options;
	k->env.options = &k->options;
	if (!k->options.max_depth)
		k->options.max_depth = 65536;
	k->side.epoll_fd = -1;
	k->now_ns = k->tick_ns = as_now_ns();
	int r = open_parts(k, err);
	if (r < 0) {
		close_engine(k);
		return r;
	}
	struct as_image_listener l = {.ctx = k, .changed = on_changed};
	as_image_add_listener(env->image, &l);
	if (!env->target->attached)
		(void)load_closure(k); /* none: tables are made when mappings appear */
	*ret = k;
	return AS_OK;
}

static int start(void *c, struct as_error *err)
{
	struct as_kernel *k = c;
	const struct as_target *t = k->env.target;

	/* events first: what happens while maps are read arrives later and is applied on top */
	int r = as_kside_enable(&k->side, err);
	if (r == AS_OK)
		r = as_kbpf_attach(&k->bpf, err);
	if (r == AS_OK)
		r = as_kmaps_follow(&k->maps, t->pid, t->attached ? 0 : AS_BPF_PROCESS_HELD,
				    err);
	if (r == AS_OK && t->attached) {
		r = as_image_read_maps(k->env.image, t->pid, as_now_ns(), err);
		struct as_kproc *p = as_kmaps_find(&k->maps, t->pid);
		as_kmaps_touch(&k->maps, p);
		as_kmaps_publish(&k->maps, as_now_ns());
	}
	k->maps.running = true;
	return r == AS_OK ? as_ktimers_start(&k->timers, &k->bpf, err) : r;
}

static int drain(void *c, int *ret_wait_ms, struct as_error *err)
{
	struct as_kernel *k = c;
	uint64_t before = k->samples;

	k->now_ns = as_now_ns();
	take_events(k);
	as_kernel_deliver_later(k);
	int r = ring_buffer__consume(k->bpf.ring);
	if (r < 0)
		return as_fail(err, AS_E_IO, -r, "cannot read the samples: %s", strerror(-r));
	as_kmaps_publish(&k->maps, k->now_ns);
	tell_exits(k);
	if (!k->stopped)
		as_ktimers_redraw(&k->timers, k->now_ns);
	if (k->now_ns - k->tick_ns >= TICK_NS) {
		look_after_gone(k);
		tick(k, false);
	}
	uint64_t wait_ns =
		k->timers.redraw_ns > k->now_ns ? k->timers.redraw_ns - k->now_ns : 0;
	if (ret_wait_ms)
		*ret_wait_ms = (int)(wait_ns / 1000000) + 1;
	return (int)(k->samples - before);
}

static int poll_fd(void *c)
{
	const struct as_kernel *k = c;

	return k->side.epoll_fd;
}

/* Of everything followed: the leader's own, threads that are gone, and processes that go on. */
static uint64_t followed_cpu_ns(const struct as_kernel *k)
{
	const struct as_target *t = k->env.target;
	uint64_t sum = 0, user, sys;

	if (t->exited)
		sum = t->own_cpu_ns;
	else if (as_process_cpu(t->pid, &user, &sys) && user + sys > t->cpu_before_ns)
		sum = user + sys - t->cpu_before_ns;
	for (int i = 0; i < k->bpf.ncpus; i++)
		sum += k->bpf.counts[i].ended_ns;
	for (size_t i = 0; i < k->maps.procs.cap; i++) {
		const struct as_map64_slot *s = &k->maps.procs.slot[i];

		if (s->val && (pid_t)s->key != t->pid &&
		    as_process_cpu((pid_t)s->key, &user, &sys))
			sum += user + sys;
	}
	return sum;
}

static int stop(void *c, struct as_error *err)
{
	struct as_kernel *k = c;

	k->stopped = true;
	as_ktimers_stop(&k->timers);
	int r = drain(k, NULL, err);
	as_kernel_deliver_later(k); /* none of them is newer than that drain */
	tell_exits(k);
	tick(k, true);
	k->cpu_ns = followed_cpu_ns(k);
	return r < 0 ? r : AS_OK;
}

void as_engine_kernel_facts(void *c, struct as_engine_facts *ret)
{
	const struct as_kernel *k = c;

	*ret = (struct as_engine_facts){.event = k->timers.cycles ? "cycles" : "cpu-clock",
					.kernel_cost_ns = as_kbpf_run_time_ns(&k->bpf),
					.kernel_stacks = k->options.kernel_stacks,
					.cpu_ns = k->cpu_ns,
					.weight_unit = k->timers.cycles};
}

const struct as_collector as_engine_kernel = {
	.name = "kernel",
	.summary = "stacks unwound in the kernel (eBPF)",
	.probe = as_kernel_probe,
	.open = open_engine,
	.start = start,
	.drain = drain,
	.poll_fd = poll_fd,
	.stop = stop,
	.close = close_engine,
};

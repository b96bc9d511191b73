/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The second thread: reads the rings of all areas, sets their clocks, and gives back rings of threads that
 * have ended. It never waits for main while that works: an area that main holds is passed over, with its
 * clock set and its heart beating.
 */
#include "track/track_priv.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"

#define REST_MIN_NS 50000
#define REST_MAX_NS 1000000
#define BUSY        256          /* records in a round: the next one is soon */
#define NAME_NS     500000000ull /* so long after its begin a thread may get its name */
#define MANY_ENDED  16           /* threads, since the last look: the next one is soon */
#define LOOK_SHARE  4            /* long looks cost one in so many of the time, or so */

/* ---- what drains ask and tell ---- */

static struct as_track_process *find_process(const struct as_track_area *a, uint32_t pid)
{
	as_vec_foreach (p, &a->processes) {
		if ((*p)->pid == pid)
			return *p;
	}
	return NULL;
}

static struct as_heap *on_process(void *ctx, uint32_t pid, uint64_t time_ns)
{
	struct as_track_area *a = ctx;
	struct as_track_process *p = as_xcalloc(1, sizeof *p);

	p->pid = pid;
	p->start_ns = time_ns;
	p->id = AS_RECORDER_NONE;
	p->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (!as_track_name((pid_t)pid, (pid_t)pid, p->name))
		memcpy(p->name, a->name, sizeof p->name);
	p->heap = as_heap_new(time_ns);
	p->heap->forked = (pid_t)pid != a->pid;
	as_vec_push(&a->processes, p);
	return p->heap;
}

/* The number is the place in the list until the session gives another. */
static uint32_t on_thread(void *ctx, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	struct as_track_process *p = find_process(ctx, pid);
	struct as_track_thread t = {.tid = tid, .start_ns = time_ns};

	if (!p)
		return 0;
	p->ended = false;
	t.over = !as_track_name((pid_t)pid, (pid_t)tid, t.name);
	as_vec_push(&p->threads, t);
	return (uint32_t)p->threads.n - 1;
}

static void on_sync(void *ctx, const struct as_rt_rec_sync *r)
{
	struct as_track_area *a = ctx;
	struct as_track *k = a->k;
	const struct as_track_process *p = find_process(a, r->pid);
	uint64_t one = 1;

	if (r->kind == AS_RT_EXIT_BEGINS && p)
		as_heap_exit_begins(p->heap);
	/* before the map is read anew, which is before the thread goes on: what is looked up from now
	 * on is not what was known before */
	if (r->kind == AS_RT_MODULES)
		as_heap_drain_remapped(a->drain, r->pid);
	pthread_mutex_lock(&k->list_lock);
	as_vec_push(&k->syncs, (struct as_track_sync){a, *r});
	pthread_mutex_unlock(&k->list_lock);
	(void)!write(k->wake_fd, &one, sizeof one); /* main looks from time to time anyway */
}

static void set_clocks(struct as_track *k)
{
	uint64_t now = as_now_ns();

	pthread_mutex_lock(&k->list_lock); /* main drains, too, where a process stands still */
	as_vec_foreach (a, &k->areas) {
		struct as_rt_control *c = (*a)->shared.control;

		__atomic_store_n(&c->clock_ns, now, __ATOMIC_RELAXED);
		__atomic_store_n(&c->heartbeat, c->heartbeat + 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&k->list_lock);
}

static void on_tick(void *ctx)
{
	struct as_track_area *a = ctx;

	set_clocks(a->k);
}

void as_track_host(struct as_track_area *a, struct as_heap_host *ret)
{
	*ret = (struct as_heap_host){
		.ctx = a,
		.process = on_process,
		.thread = on_thread,
		.locate = as_track_locate,
		.sync = on_sync,
		.tick = on_tick,
	};
	as_track_events_ask(a->k, ret);
}

/* ---- ends ---- */

static void look_at_process(struct as_track_process *p)
{
	struct pollfd f = {.fd = p->pidfd, .events = POLLIN};

	if (p->pidfd >= 0)
		p->ended = poll(&f, 1, 0) == 1;
	else
		p->ended = kill((pid_t)p->pid, 0) < 0 && errno == ESRCH;
	if (!p->ended)
		return;
	as_close_autop(&p->pidfd);
	p->pidfd = -1;
}

/* Programs name their threads when those run already. */
static void refresh_names(struct as_track_process *p, uint64_t now)
{
	while (p->named < p->threads.n && now - p->threads.v[p->named].start_ns >= NAME_NS)
		p->named++;
	for (size_t i = p->named; i < p->threads.n; i++) {
		struct as_track_thread *t = &p->threads.v[i];
		char before[AS_TRACK_NAME];

		memcpy(before, t->name, sizeof before);
		if (!t->over)
			t->over = !as_track_name((pid_t)p->pid, (pid_t)t->tid, t->name);
		t->renamed |= i < p->threads_written && strcmp(before, t->name) != 0;
	}
}

static void take_execs(struct as_track_area *a)
{
	pthread_mutex_lock(&a->map_lock);
	as_vec_foreach (pid, &a->execs) {
		struct as_track_process *p = find_process(a, *pid);

		if (p)
			p->ended = true;
	}
	a->execs.n = 0;
	pthread_mutex_unlock(&a->map_lock);
}

/* No signal is sent. Where we may not ask, it is there. */
static bool is_gone(uint32_t pid, uint32_t tid)
{
	return syscall(SYS_tgkill, pid, tid, 0) < 0 && errno == ESRCH;
}

/* Rings whose threads are gone. Returns how many. */
static uint32_t mark_gone(struct as_track_area *a)
{
	size_t ring_bytes = AS_RT_RING_HEAD_BYTES + (size_t)a->shared.ring_bytes;
	const struct as_track_process *p = NULL;
	uint32_t top = as_heap_area_top(&a->shared), found = 0;

	for (uint32_t i = 1; i < top; i++) {
		const struct as_rt_ring *ring =
			(void *)((char *)a->shared.rings + i * ring_bytes);
		uint32_t tid = __atomic_load_n(&a->shared.control->owner[i], __ATOMIC_ACQUIRE);
		uint32_t pid = ring->pid;

		if (!tid || !pid || ring->tid != tid)
			continue;
		if (!p || p->pid != pid)
			p = find_process(a, pid);
		if (!(p && p->ended) && !is_gone(pid, tid))
			continue;
		as_heap_drain_gone(a->drain, i);
		found++;
	}
	return found;
}

/* Returns how many threads have ended. */
static uint32_t look_for_ends(struct as_track_area *a, uint64_t now)
{
	uint32_t found;

	take_execs(a);
	as_vec_foreach (p, &a->processes) {
		if (!(*p)->ended)
			look_at_process(*p);
		if (!(*p)->ended)
			refresh_names(*p, now);
	}
	found = mark_gone(a);
	as_heap_drain_tell_full(a->drain);
	return found;
}

/*
 * Threads that have ended are looked for from time to time; soon again where many had; and at once when one
 * waits for a ring. Returns how many records were read.
 */
static uint64_t look(struct as_track_area *a, uint64_t now)
{
	uint32_t wants = __atomic_load_n(&a->shared.control->ring_wants, __ATOMIC_ACQUIRE);
	bool wanted = wants != a->wants;
	uint64_t n = 0, cost;
	uint32_t found;

	if (!wanted && now < a->look_ns)
		return 0;
	a->wants = wants;
	found = look_for_ends(a, now);
	if (found) /* gives them back */
		n = as_heap_drain_round(a->drain, now);
	cost = as_now_ns() - now;
	a->look_ns = now + (found > MANY_ENDED ? AS_TRACK_ENDS_NS / 50 : AS_TRACK_ENDS_NS) +
		     AS_MIN(cost * LOOK_SHARE, AS_TRACK_ENDS_NS);
	return n;
}

/* ---- the thread ---- */

static void take_areas(struct as_track *k)
{
	pthread_mutex_lock(&k->list_lock);
	k->rounds++;
	k->round.n = 0;
	as_vec_foreach (a, &k->areas)
		as_vec_push(&k->round, *a);
	pthread_mutex_unlock(&k->list_lock);
}

/* Asked for by another process, or by a signal. */
static void make_marks(const struct as_track *k, struct as_track_area *a, uint64_t now)
{
	char name[32];

	(void)as_heap_drain_asked(a->drain, now);
	while (k->q->marks && a->marks < *k->q->marks) {
		int n = snprintf(name, sizeof name, "signal %d", ++a->marks);

		as_heap_drain_mark(a->drain, 0, name, (size_t)n, now);
	}
}

static uint64_t round_all(struct as_track *k)
{
	uint64_t n = 0;

	take_areas(k);
	set_clocks(k);
	as_vec_foreach (at, &k->round) {
		struct as_track_area *a = *at;
		uint64_t now = as_now_ns();

		if (pthread_mutex_trylock(&a->lock))
			continue;
		if (!a->closed && !as_track_events_full(a)) {
			n += as_heap_drain_round(a->drain, now);
			make_marks(k, a, now);
			n += look(a, now);
		}
		pthread_mutex_unlock(&a->lock);
	}
	return n;
}

static void *drain(void *ctx)
{
	struct as_track *k = ctx;
	long rest_ns = REST_MIN_NS;

	while (!__atomic_load_n(&k->stop, __ATOMIC_ACQUIRE)) {
		if (round_all(k) > BUSY)
			rest_ns = REST_MIN_NS;
		else
			rest_ns = AS_MIN(rest_ns * 2, REST_MAX_NS);
		nanosleep(&(struct timespec){.tv_nsec = rest_ns}, NULL);
	}
	return NULL;
}

int as_track_drainer_start(struct as_track *k, struct as_error *err)
{
	sigset_t all, old;
	int e;

	/* signals are main's */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	e = pthread_create(&k->drainer, NULL, drain, k);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (e)
		return as_fail(err, AS_E_IO, e, "cannot start a thread: %s", strerror(e));
	k->draining = true;
	return 0;
}

void as_track_drainer_stop(struct as_track *k)
{
	if (!k->draining)
		return;
	__atomic_store_n(&k->stop, true, __ATOMIC_RELEASE);
	pthread_join(k->drainer, NULL);
	k->draining = false;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Programs with the runtime in them, from their begin to their end. */
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

#define GRACE_NS    2000000000ull /* a fork without events may be left in an area */
#define CROWD       64            /* areas: with more of them grace is CROWD_NS */
#define CROWD_NS    100000000ull
#define STATM_BYTES 128
#define MISSES      10

bool as_track_name(pid_t pid, pid_t tid, char ret[AS_TRACK_NAME])
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char path[80];

	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	if (as_read_file(path, 256, &b, NULL) < 0 || !b.len)
		return false;
	snprintf(ret, AS_TRACK_NAME, "%.*s", (int)strcspn(b.p, "\n"), b.p);
	return true;
}

/* ---- begin ---- */

/* A program that is executed ends what the process was before, here or as another one's fork. */
void as_track_end_earlier(struct as_track *k, pid_t pid)
{
	as_vec_foreach (at, &k->areas) {
		struct as_track_area *a = *at;

		a->replaced |= a->pid == pid;
		pthread_mutex_lock(&a->map_lock);
		as_vec_push(&a->execs, (uint32_t)pid);
		pthread_mutex_unlock(&a->map_lock);
	}
}

/* The program's own allocator, where it has no names any more. */
static void note_unseen(struct as_track_area *a)
{
	for (size_t i = 0; i < as_hook_unseen_count(a->h); i++) {
		const char *why = as_hook_unseen_why(a->h, i), *path, *what;

		as_hook_unseen(a->h, i, &path, &what);
		as_recorder_note(
			a->k->rec, 2, path, "keep the symbol table",
			"what '%s' allocates by its own %s was not seen: it is stripped%s%s",
			path, what, why ? ", and " : "", why ? why : "");
	}
}

void as_track_claim(struct as_track_area *a)
{
	struct as_hook_range range[AS_HOOK_RANGES];
	size_t n = as_hook_memory(a->h, range, AS_HOOK_RANGES);

	for (size_t i = 0; i < n; i++)
		as_image_claim(a->k->im, range[i].low, range[i].high);
	(void)as_image_read_maps(a->k->im, a->pid, as_now_ns(), NULL);
}

struct as_track_area *as_track_area_add(struct as_track *k, struct as_hooked *h,
					uint32_t parent)
{
	struct as_track_area *a = as_xcalloc(1, sizeof *a);
	const struct as_rt_home *home = as_hook_home(h);
	struct as_heap_host host;
	size_t bytes;

	a->k = k;
	a->h = h;
	a->pid = as_hook_pid(h);
	a->start_ns = as_now_ns();
	a->pidfd = (int)syscall(SYS_pidfd_open, a->pid, 0);
	(void)as_track_name(a->pid, a->pid, a->name); /* it stands still */
	a->id = as_recorder_add_process(k->rec, a->start_ns, a->pid, parent, a->name);
	as_track_claim(a);
	a->shared.control = as_hook_shared(h, &bytes);
	a->shared.rings = (char *)a->shared.control + AS_RT_CONTROL_BYTES;
	a->shared.ring_bytes = home->ring_bytes;
	a->shared.context_max = home->context_max;
	a->shared.fd = as_hook_shared_fd(h);
	pthread_mutex_init(&a->lock, NULL);
	pthread_mutex_init(&a->map_lock, NULL);
	as_track_host(a, &host);
	a->drain = as_heap_drain_new(&a->shared, &host, &a->stacks);
	a->marks = k->q->marks ? *k->q->marks : 0;
	note_unseen(a);
	as_track_map_publish(a, a->pid);
	pthread_mutex_lock(&k->list_lock);
	as_vec_push(&k->areas, a);
	pthread_mutex_unlock(&k->list_lock);
	return a;
}

/* ---- end ---- */

static void free_process(struct as_track_process *p)
{
	as_close_autop(&p->pidfd);
	as_heap_free_all(p->heap);
	as_vec_clear(&p->threads);
	as_vec_clear(&p->ids);
	as_heap_written_clear(&p->written);
	free(p);
}

void as_track_area_free(struct as_track_area *a)
{
	as_vec_foreach (p, &a->processes)
		free_process(*p);
	as_vec_clear(&a->processes);
	as_heap_drain_free(a->drain);
	as_heap_stacks_clear(&a->stacks);
	as_hook_free(a->h);
	as_close_autop(&a->pidfd);
	as_vec_foreach (m, &a->maps)
		free(m->v);
	as_vec_clear(&a->maps);
	as_vec_clear(&a->node_of);
	as_vec_clear(&a->events);
	as_vec_clear(&a->maps_written);
	as_vec_clear(&a->handled);
	as_vec_clear(&a->execs);
	pthread_mutex_destroy(&a->lock);
	pthread_mutex_destroy(&a->map_lock);
	free(a);
}

static void add_to(struct as_track_state *s, const struct as_track_process *p)
{
	const struct as_heap *h = p->heap;
	const struct as_heap_domain_sum *blocks = &h->sum[AS_HEAP_BLOCKS];

	s->live_bytes += blocks->live.bytes;
	s->live_blocks += blocks->live.blocks / h->unit;
	s->peak_bytes += blocks->peak.bytes;
	s->allocs += h->allocs / h->unit;
	s->frees += h->frees / h->unit;
	s->events += h->events;
	s->resident_bytes += p->ended ? 0 : h->resident_bytes;
	s->processes += !p->ended;
}

/* The process is over, as far as it can be told. */
static void close_process(struct as_track_area *a, struct as_track_process *p,
			  const struct as_heap_drained *d)
{
	as_heap_finish(p->heap);
	p->ended = true;
	as_track_save(a, p, d, true);
	add_to(&a->k->ended, p);
	a->k->ended.dropped += d->dropped;
}

/* Processes that have ended and whose rings are empty; under the area's lock. */
static void collect_processes(struct as_track_area *a)
{
	for (size_t i = 0; i < a->processes.n;) {
		struct as_track_process *p = a->processes.v[i];
		struct as_heap_drained d;

		if (!p->ended || !as_heap_drain_take(a->drain, p->pid, &d)) {
			i++;
			continue;
		}
		close_process(a, p, &d);
		as_vec_clear(&d.hook_events);
		free_process(p);
		a->processes.v[i] = a->processes.v[--a->processes.n];
	}
}

static bool has_owners(const struct as_track_area *a)
{
	uint32_t top = as_heap_area_top(&a->shared);

	for (uint32_t i = 1; i < top; i++) {
		if (__atomic_load_n(&a->shared.control->owner[i], __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

static bool leader_is_gone(const struct as_track_area *a)
{
	struct pollfd f = {.fd = a->pidfd, .events = POLLIN};

	if (a->replaced)
		return true;
	if (a->pidfd >= 0)
		return poll(&f, 1, 0) == 1;
	return kill(a->pid, 0) < 0 && errno == ESRCH;
}

void as_track_area_close(struct as_track *k, struct as_track_area *a)
{
	const struct as_heap_drained *d;
	uint64_t lost = __atomic_load_n(&a->shared.control->lost_no_context, __ATOMIC_RELAXED);
	size_t n;

	as_heap_drain_finish(a->drain);
	d = as_heap_drain_processes(a->drain, &n);
	for (size_t i = 0; i < n; i++) {
		struct as_heap_drained one = d[i];

		one.dropped += i ? 0 : lost;
		as_vec_foreach (p, &a->processes) {
			if ((*p)->heap == one.heap)
				close_process(a, *p, &one);
		}
	}
	k->ended.dropped += n ? 0 : lost;
	as_track_save_unseen(a);
}

/* What main has closed may be in the drainer's hands until it begins its next round. */
static void free_closed(struct as_track *k)
{
	uint64_t round;

	pthread_mutex_lock(&k->list_lock);
	round = k->rounds;
	pthread_mutex_unlock(&k->list_lock);
	for (size_t i = 0; i < k->closed.n;) {
		struct as_track_area *a = k->closed.v[i];

		if (a->closed_round >= round) {
			i++;
			continue;
		}
		k->closed.v[i] = k->closed.v[--k->closed.n];
		as_track_area_free(a);
	}
}

static void take_out(struct as_track *k, size_t i)
{
	struct as_track_area *a = k->areas.v[i];

	pthread_mutex_lock(&k->list_lock);
	k->areas.v[i] = k->areas.v[--k->areas.n];
	a->closed_round = k->rounds;
	for (size_t s = 0; s < k->syncs.n;) {
		if (k->syncs.v[s].area == a)
			k->syncs.v[s] = k->syncs.v[--k->syncs.n];
		else
			s++;
	}
	pthread_mutex_unlock(&k->list_lock);
	pthread_mutex_lock(&a->lock);
	a->closed = true;
	pthread_mutex_unlock(&a->lock);
	as_track_area_close(k, a);
	as_vec_push(&k->closed, a);
}

void as_track_areas_collect(struct as_track *k, uint64_t now_ns)
{
	uint64_t grace = k->areas.n > CROWD ? CROWD_NS : GRACE_NS;

	free_closed(k);
	for (size_t i = 0; i < k->areas.n;) {
		struct as_track_area *a = k->areas.v[i];
		bool empty;

		/* the drainer may be at it for long; targets wait for us, too */
		if (pthread_mutex_trylock(&a->lock) && ++a->missed < MISSES) {
			i++;
			continue;
		}
		if (a->missed == MISSES)
			pthread_mutex_lock(&a->lock);
		a->missed = 0;
		collect_processes(a);
		empty = !a->processes.n && !has_owners(a) && leader_is_gone(a);
		pthread_mutex_unlock(&a->lock);
		if (!empty)
			a->empty_ns = 0;
		else if (!a->empty_ns)
			a->empty_ns = now_ns;
		if (empty && now_ns - a->empty_ns >= grace)
			take_out(k, i);
		else
			i++;
	}
}

static void detach_forks(struct as_track_area *a)
{
	pthread_mutex_lock(&a->lock);
	as_vec_foreach (p, &a->processes) {
		if (!(*p)->ended && (pid_t)(*p)->pid != a->pid)
			(void)as_hook_detach_child(a->h, (pid_t)(*p)->pid,
						   NULL); /* it may have ended */
	}
	pthread_mutex_unlock(&a->lock);
}

void as_track_areas_detach(struct as_track *k)
{
	as_vec_foreach (at, &k->areas) {
		struct as_track_area *a = *at;
		struct as_rt_control *c = a->shared.control;
		struct as_error err = {0};

		as_track_look_at_all(a);
		if (!leader_is_gone(a) && as_hook_detach(a->h, &err) < 0 &&
		    err.status != AS_E_NOTFOUND)
			as_recorder_note(k->rec, 2, a->name, "",
					 "'%s' could not be left as it was: %s", a->name,
					 err.msg);
		detach_forks(a);
		/* for forks we do not know of, and those that wait */
		__atomic_fetch_or(&c->flags, AS_RT_PAUSED, __ATOMIC_RELAXED);
		as_hook_answer(a->h, __atomic_load_n(&c->sync_serial, __ATOMIC_RELAXED));
	}
}

/* ---- how it stands ---- */

static uint64_t resident_bytes(pid_t pid)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	unsigned long long pages;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
	if (as_read_file(path, STATM_BYTES, &b, NULL) < 0 ||
	    sscanf(as_buf_str(&b), "%*u %llu", &pages) != 1)
		return 0;
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void as_track_areas_resident(struct as_track *k)
{
	as_vec_foreach (at, &k->areas) {
		struct as_track_area *a = *at;

		if (pthread_mutex_trylock(&a->lock))
			continue; /* next time */
		as_vec_foreach (p, &a->processes) {
			if (!(*p)->ended)
				as_heap_resident((*p)->heap, resident_bytes((pid_t)(*p)->pid));
		}
		pthread_mutex_unlock(&a->lock);
	}
}

void as_track_areas_state(struct as_track *k, struct as_track_state *ret)
{
	*ret = k->ended;
	as_vec_foreach (at, &k->areas) {
		struct as_track_area *a = *at;
		const struct as_heap_drained *d;
		size_t n;

		pthread_mutex_lock(&a->lock);
		as_heap_drain_settle(a->drain, as_now_ns());
		as_vec_foreach (p, &a->processes)
			add_to(ret, *p);
		as_heap_drain_hide(a->drain);
		d = as_heap_drain_processes(a->drain, &n);
		for (size_t i = 0; i < n; i++)
			ret->dropped += d[i].dropped;
		pthread_mutex_unlock(&a->lock);
	}
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What targets tell and wait for: modules that come and go, and programs that take the place of others. */
#include "track/track_priv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"

#define GAP_NS                                                                                 \
	5000000ull /* a notice that is missing (its ring was full) is waited for so long */

/* ---- where code is ---- */

static struct as_track_map *find_map(struct as_track_area *a, uint32_t pid)
{
	as_vec_foreach (m, &a->maps) {
		if (m->pid == pid)
			return m;
	}
	return NULL;
}

void as_track_map_publish(struct as_track_area *a, pid_t pid)
{
	const struct as_process *p = as_image_process(a->k->im, pid);
	struct as_mapping *copy, *old;
	struct as_track_map *m;

	if (!p)
		return;
	copy = as_xreallocarray(NULL, p->nmap + 1, sizeof *copy);
	memcpy(copy, p->map, p->nmap * sizeof *copy);
	pthread_mutex_lock(&a->map_lock);
	m = find_map(a, (uint32_t)pid);
	if (!m) {
		as_vec_push(&a->maps, (struct as_track_map){.pid = (uint32_t)pid});
		m = &a->maps.v[a->maps.n - 1];
	}
	old = m->v;
	m->v = copy;
	m->n = p->nmap;
	pthread_mutex_unlock(&a->map_lock);
	free(old);
	as_track_save_maps(a->k, a);
}

static const struct as_mapping *find_mapping(const struct as_track_map *m, uint64_t avma)
{
	size_t lo = 0, hi = m->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (avma < m->v[mid].start)
			hi = mid;
		else if (avma >= m->v[mid].end)
			lo = mid + 1;
		else
			return &m->v[mid];
	}
	return NULL;
}

/* A fork has the map of the program until it tells of its own modules. */
bool as_track_locate(void *area, uint32_t pid, uint64_t avma, struct as_heap_frame *ret)
{
	struct as_track_area *a = area;
	const struct as_track_map *map;
	const struct as_mapping *m = NULL;

	pthread_mutex_lock(&a->map_lock);
	map = find_map(a, pid);
	if (!map)
		map = find_map(a, (uint32_t)a->pid);
	if (map)
		m = find_mapping(map, avma);
	if (m) {
		ret->module = m->module;
		ret->addr = avma - m->bias;
	}
	pthread_mutex_unlock(&a->map_lock);
	return m;
}

/* ---- exec ---- */

int as_track_watch(struct as_track *k, pid_t tid, pid_t pid, uint32_t parent,
		   struct as_error *err)
{
	int r;

	as_vec_foreach (w, &k->watches) {
		if (w->tid == tid)
			return 0;
	}
	r = as_hook_watch_exec(tid, err);
	if (r == 0)
		as_vec_push(&k->watches, (struct as_track_watch){tid, pid, parent});
	return r;
}

bool as_track_is_watched(const struct as_track *k, pid_t pid)
{
	as_vec_foreach (w, &k->watches) {
		if (w->pid == pid)
			return true;
	}
	return false;
}

static void main_ended(struct as_track *k, int status)
{
	k->target.exited = true;
	k->target.wait_status = status;
	k->target.end_ns = as_now_ns();
}

/* The new program, which stands behind its exec. */
static void begin(struct as_track *k, const struct as_track_watch *w)
{
	struct as_error err = {0};
	struct as_hooked *h = NULL;
	char name[AS_TRACK_NAME] = "";
	int status = -1;
	int r;

	/* samples so far are of the program that was there; an engine that fails tells it in the loop */
	(void)as_track_cpu_drain(k, NULL);
	(void)as_track_name(w->pid, w->pid, name); /* it stands still, or was killed */
	as_track_end_earlier(k, w->pid);
	as_image_exec(k->im, w->pid, as_now_ns());
	r = as_hook_begin(w->pid, &k->spec, &h, &status, &err);
	if (r == 0)
		(void)as_track_area_add(k, h, w->parent);
	else if (r != AS_E_NOTFOUND || status == -1)
		as_recorder_note(k->rec, 2, name, "", "the memory of '%s' was not seen: %s",
				 name, err.msg);
	if (status != -1 && w->pid == k->target.pid)
		main_ended(k, status);
}

void as_track_watches_poll(struct as_track *k)
{
	for (size_t i = 0; i < k->watches.n;) {
		struct as_track_watch w = k->watches.v[i];
		int status = -1;
		enum as_hook_watched got = as_hook_watch_poll(w.tid, w.pid, &status);

		if (got == AS_HOOK_WATCH_NOTHING) {
			i++;
			continue;
		}
		k->watches.v[i] = k->watches.v[--k->watches.n];
		if (got == AS_HOOK_WATCH_EXEC)
			begin(k, &w);
		else if (status != -1 && w.pid == k->target.pid)
			main_ended(k, status);
	}
}

void as_track_watches_end(struct as_track *k)
{
	as_vec_foreach (w, &k->watches)
		as_hook_unwatch(w->tid);
	as_vec_clear(&k->watches);
}

/* ---- notices ---- */

/* The number may be another process's: of another namespace, or used again. */
static bool is_one_of(const struct as_track_area *a, pid_t pid)
{
	struct as_rt_control head;
	const size_t n = offsetof(struct as_rt_control, full_wait_us);
	struct iovec here = {&head, n};
	struct iovec there = {(void *)(uintptr_t)as_hook_home(a->h)->control, n};

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)n &&
	       head.magic == AS_RT_MAGIC && head.pid == (uint32_t)a->pid;
}

static void act(struct as_track *k, const struct as_track_sync *s)
{
	struct as_track_area *a = s->area;
	pid_t pid = (pid_t)s->r.pid, tid = (pid_t)s->r.tid;
	struct as_error err = {0};

	if (a->closed || !is_one_of(a, pid))
		return;
	if (s->r.kind == AS_RT_EXEC) {
		if (as_hook_check_notice(a->h, &s->r, &err) < 0 ||
		    as_track_watch(k, tid, pid, a->id, &err) < 0)
			as_recorder_note(k->rec, 2, a->name, "",
					 "a program that '%s' executes was not seen: %s",
					 a->name, err.msg);
		return;
	}
	if (s->r.kind == AS_RT_EXIT)
		as_track_look(a, pid, &s->r);
	if (s->r.kind != AS_RT_MODULES)
		return;
	if (pid != a->pid) { /* new modules of a fork: their names only */
		if (as_image_read_maps(k->im, pid, as_now_ns(), NULL) == 0)
			as_track_map_publish(a, pid);
		return;
	}
	if (as_hook_update(a->h, &err) < 0)
		as_recorder_note(k->rec, 1, a->name, "", "modules of '%s' were not seen: %s",
				 a->name, err.msg);
	as_track_claim(a);
	as_track_map_publish(a, pid);
}

/* An answer is for all notices up to its serial: none may be before one that was not acted upon. */
static void answer(struct as_track_area *a, uint64_t now)
{
	uint32_t highest = a->answered;
	bool found;

	do {
		found = false;
		for (size_t i = 0; i < a->handled.n; i++) {
			if (a->handled.v[i] != highest + 1)
				continue;
			highest++;
			a->handled.v[i] = a->handled.v[--a->handled.n];
			found = true;
		}
	} while (found);
	if (a->handled.n && highest == a->answered && now - a->handled_ns > GAP_NS) {
		as_vec_foreach (s, &a->handled)
			highest = (int32_t)(*s - highest) > 0 ? *s : highest;
		a->handled.n = 0;
	}
	if (highest == a->answered)
		return;
	a->answered = highest;
	a->handled_ns = now;
	as_hook_answer(a->h, highest);
}

void as_track_syncs(struct as_track *k)
{
	AS_VEC(struct as_track_sync) list = {0};
	uint64_t now;

	pthread_mutex_lock(&k->list_lock);
	as_vec_foreach (s, &k->syncs)
		as_vec_push(&list, *s);
	k->syncs.n = 0;
	pthread_mutex_unlock(&k->list_lock);
	as_vec_foreach (s, &list) {
		act(k, s);
		now = as_now_ns();
		if (s->area->closed)
			continue;
		if (!s->area->handled.n)
			s->area->handled_ns = now;
		as_vec_push(&s->area->handled, s->r.serial);
		answer(s->area, now);
	}
	now = as_now_ns();
	as_vec_foreach (a, &k->areas) {
		if ((*a)->handled.n)
			answer(*a, now);
	}
	as_vec_clear(&list);
}

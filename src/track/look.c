/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A process at its end, or where the recording leaves it: what leaks, what its memory consists of. */
#include "track/track_priv.h"

#include <stdlib.h>

#include "snapshot/snapshot.h"

#define ROUNDS 256 /* at the most: a record that is never finished is waited for no longer */

struct standing { /* a process that stands still; others in the same area go on */
	struct as_track_area *area;
	pid_t pid;
};

static void read_rings(void *ctx)
{
	const struct standing *s = ctx;
	struct as_heap_drain *d = s->area->drain;

	for (int i = 0; i < ROUNDS && as_heap_drain_round(d, UINT64_MAX); i++) {
		if (as_heap_drain_is_read(d, (uint32_t)s->pid))
			break;
	}
	as_heap_drain_show(d);
}

static struct as_heap *heap_of(const struct as_track_area *a, pid_t pid)
{
	as_vec_foreach (p, &a->processes) {
		if ((*p)->pid == (uint32_t)pid && !(*p)->ended)
			return (*p)->heap;
	}
	return NULL;
}

void as_track_look(struct as_track_area *a, pid_t pid, const struct as_rt_rec_sync *at_exit)
{
	struct standing standing = {a, pid};
	struct as_snapshot_spec look = {
		.pid = pid, .hooked = a->h, .drain = read_rings, .ctx = &standing};
	const struct as_track_request *q = a->k->q;
	struct as_error err = {0};
	int r = 0;

	if (q->no_leaks)
		return;
	/* blocks from before an attach, and those that were not chosen, are not known */
	look.partial = q->pid || q->sample_bytes;
	if (at_exit) {
		look.stay = true;
		look.exit_tid = (pid_t)at_exit->tid;
		look.exit_sp = at_exit->arg[1];
	}
	pthread_mutex_lock(&a->lock);
	look.heap = heap_of(a, pid);
	if (look.heap)
		r = as_snapshot_look(&look, &err);
	as_heap_drain_hide(a->drain);
	pthread_mutex_unlock(&a->lock);
	if (r < 0 && r != AS_E_NOTFOUND)
		as_recorder_note(a->k->rec, 1, a->name, "",
				 "leaks of '%s' were not looked for: %s", a->name, err.msg);
}

void as_track_look_at_all(struct as_track_area *a)
{
	AS_VEC(uint32_t) pids = {0};

	if (a->k->q->no_leaks)
		return;
	pthread_mutex_lock(&a->lock);
	as_vec_foreach (p, &a->processes) {
		if (!(*p)->ended)
			as_vec_push(&pids, (*p)->pid);
	}
	pthread_mutex_unlock(&a->lock);
	as_vec_foreach (pid, &pids)
		as_track_look(a, (pid_t)*pid, NULL);
	as_vec_clear(&pids);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The event log (--events). Whoever reads rings puts events into their area's queue, main writes them: it
 * alone knows the session and what threads and stacks are called there. The drainer leaves an area alone
 * whose queue is full; its program then waits for room in its rings, as it does for a slow drainer.
 */
#include "track/track_priv.h"

#include <stdlib.h>
#include <unistd.h>

#define WAKE_EVENTS                                                                            \
	(1u << 14) /* main is woken for these; else it looks when it looks for all */
#define FULL_EVENTS (1u << 17)

static struct as_track_process *process_of(const struct as_track_area *a,
					   const struct as_heap *h)
{
	as_vec_foreach (p, &a->processes) {
		if ((*p)->heap == h)
			return *p;
	}
	return NULL;
}

static bool is_drainer(const struct as_track *k)
{
	return k->draining && pthread_equal(pthread_self(), k->drainer);
}

static void on_event(void *ctx, const struct as_heap *h, const struct as_log_event *e)
{
	struct as_track_area *a = ctx;
	uint64_t one = 1;

	as_vec_push(&a->events, (struct as_track_event){*e, process_of(a, h)});
	if (!is_drainer(a->k)) {
		if (a->events.n >= FULL_EVENTS)
			as_track_events_save(a);
	} else if (a->events.n == WAKE_EVENTS) {
		(void)!write(a->k->wake_fd, &one, sizeof one); /* main looks anyway */
	}
}

void as_track_events_ask(const struct as_track *k, struct as_heap_host *host)
{
	if (k->q->events)
		host->event = on_event;
}

bool as_track_events_full(const struct as_track_area *a)
{
	return a->events.n >= FULL_EVENTS;
}

/* Under the lock: what events name is in the session, and they are main's. */
static void take(struct as_track_area *a)
{
	as_track_events empty = a->k->events;

	a->k->events = a->events;
	a->events = empty;
	a->events.n = 0;
	as_vec_foreach (p, &a->processes)
		as_track_name_threads(a, *p);
	as_track_push_stacks(a);
}

/* Without it: main alone changes node_of and ids. */
static void write_taken(struct as_track_area *a)
{
	struct as_track *k = a->k;

	as_vec_foreach (t, &k->events) {
		struct as_log_event e = t->e;

		if (!t->process || e.thread >= t->process->ids.n)
			continue;
		e.thread = t->process->ids.v[e.thread];
		if (e.stack)
			e.stack = a->node_of.v[e.stack - 1];
		as_log_put(&k->events_out, k->w, &e);
	}
	as_log_flush(&k->events_out, k->w);
	k->events.n = 0;
}

void as_track_events_save(struct as_track_area *a)
{
	if (!a->events.n)
		return;
	take(a);
	write_taken(a);
}

void as_track_events_save_all(struct as_track *k)
{
	if (!k->q->events)
		return;
	as_vec_foreach (at, &k->areas) {
		struct as_track_area *a = *at;
		bool any;

		pthread_mutex_lock(&a->lock);
		any = a->events.n > 0;
		if (any)
			take(a);
		pthread_mutex_unlock(&a->lock);
		if (any)
			write_taken(a);
	}
}

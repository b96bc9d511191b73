/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A process looked at in intervals: see watch.h. */
#include "measure/watch.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "collect/collect.h"
#include "collect/perf_event.h"

#define LOOK_NS                                                                                \
	200000000 /* without rows: so that children and threads that end are seen before */

double as_stolen_s(void)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	unsigned long long v[8];

	if (as_read_file("/proc/stat", 1 << 20, &text, NULL) < 0 ||
	    sscanf(as_buf_str(&text), "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0],
		   &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) != 8)
		return NAN;
	return (double)v[7] / (double)sysconf(_SC_CLK_TCK);
}

/* What follows from others, of a span of time. */
static void complete(const struct as_plan *plan, double seconds, double *v, float *counted)
{
	double ticks = v[AS_M_USER] + v[AS_M_SYSTEM];

	v[AS_M_WALL] = seconds;
	/* user and system are told in steps of 10 ms, their sum exactly */
	if (ticks > 0 && v[AS_M_CPU] > 0) {
		v[AS_M_USER] *= v[AS_M_CPU] / ticks;
		v[AS_M_SYSTEM] *= v[AS_M_CPU] / ticks;
	} else {
		v[AS_M_USER] = v[AS_M_CPU];
		v[AS_M_SYSTEM] = 0;
	}
	v[AS_M_UTILISATION] = v[AS_M_CPU] / seconds;
	as_plan_derive(plan, v, counted);
}

static void look(struct as_watch *w, const struct as_counters *c, double *v,
		 struct as_reading *r, double *rss)
{
	double now[AS_M_COUNT_];

	if (as_tree_read(&w->tree, now, rss))
		memcpy(v, now, sizeof now); /* once it is gone, what was seen last stays */
	as_counters_read(c, w->plan, r);
}

/* From v0, r0 to v, r. */
static void span(const struct as_plan *plan, const double *v0, const double *v, double *ret)
{
	(void)plan;
	for (int m = 0; m < AS_M_COUNT_; m++)
		ret[m] = v[m] - v0[m];
	for (int m = AS_M_COUNT_; m < AS_ROWS_MAX; m++)
		ret[m] = NAN;
	ret[AS_M_RSS] = v[AS_M_RSS]; /* a level, no sum */
	for (int m = AS_M_USER; m <= AS_M_SYSTEM; m++)
		ret[m] = AS_MAX(ret[m], 0);
	ret[AS_M_CPU] = AS_MAX(ret[AS_M_CPU], 0);
}

void as_watch_begin(struct as_watch *w, const struct as_plan *plan,
		    const struct as_watch_rows *rows, pid_t pid, const struct as_counters *c)
{
	double rss;

	*w = (struct as_watch){.plan = plan, .rows = rows, .tree = {.root = pid}};
	for (int m = 0; m < AS_M_COUNT_; m++)
		w->v[m] = NAN;
	look(w, c, w->v, w->r, &rss);
	w->steal_s = w->steal0_s = as_stolen_s();
	memcpy(w->v0, w->v, sizeof w->v);
	memcpy(w->r0, w->r, sizeof w->r);
	w->start_ns = w->last_ns = as_now_ns();
	w->due_ns = w->start_ns +
		    (rows->interval_s > 0 ? (uint64_t)(rows->interval_s * 1e9) : LOOK_NS);
}

static void give_row(struct as_watch *w, const struct as_counters *c, uint64_t now_ns)
{
	struct as_watch_row row = {.at_s = (double)(now_ns - w->start_ns) / 1e9,
				   .seconds = (double)(now_ns - w->last_ns) / 1e9};
	struct as_reading r[AS_EVENTS_MAX] = {0};
	double v[AS_M_COUNT_], steal = as_stolen_s();

	memcpy(v, w->v, sizeof v);
	look(w, c, v, r, &row.rss_bytes);
	span(w->plan, w->v, v, row.v);
	as_counters_values(w->plan, r, w->r, row.v, row.counted, row.error);
	row.v[AS_M_STEAL] = steal - w->steal_s;
	row.v[AS_M_RSS] = row.rss_bytes > 0 ? row.rss_bytes : NAN;
	complete(w->plan, row.seconds, row.v, row.counted);
	memcpy(w->v, v, sizeof v);
	memcpy(w->r, r, sizeof r);
	w->steal_s = steal;
	w->last_ns = now_ns;
	if (w->rows->interval_s > 0)
		w->rows->row(w->rows->ctx, &row);
}

uint64_t as_watch_tick(struct as_watch *w, const struct as_counters *c, bool last)
{
	uint64_t step =
		w->rows->interval_s > 0 ? (uint64_t)(w->rows->interval_s * 1e9) : LOOK_NS;
	uint64_t now = as_now_ns();

	/* The rest of an interval is a row when there is anything in it. */
	if (now >= w->due_ns || (last && now - w->last_ns > step / 100))
		give_row(w, c, now);
	/* Rows that could not be given in time are not made up for. */
	while (w->due_ns <= now)
		w->due_ns += step;
	return w->due_ns - now;
}

void as_watch_end(struct as_watch *w)
{
	as_tree_clear(&w->tree);
}

/* ---- attached ---- */

/* All threads there are; those that are started meanwhile are found by looking again. */
static int add_all(struct as_counters *c, const struct as_plan *plan, struct as_tree *tree,
		   struct as_error *err)
{
	struct as_map64 done = {0};
	bool more = true, any = !plan->events.v.n;
	int error = EACCES;

	for (int round = 0; more && round < 8; round++) {
		as_tids tids = {0};

		more = false;
		as_tree_tids(tree, &tids);
		as_vec_foreach (tid, &tids) {
			bool is_new;
			size_t at = c->fd.n;

			(void)as_map64_put(&done, (uint64_t)*tid, &is_new);
			if (!is_new)
				continue;
			more = true;
			as_counters_add(c, plan, *tid, false);
			for (; at < c->fd.n; at++) {
				any |= c->fd.v[at] >= 0;
				error = c->fd.v[at] < 0 ? -c->fd.v[at] : error;
			}
		}
		as_vec_clear(&tids);
	}
	as_map64_clear(&done);
	return any ? AS_OK : as_perf_fail(err, error, "count its events");
}

static void wait_for(const struct as_attach_request *q, struct as_watch *w,
		     const struct as_counters *c, struct as_target *t)
{
	uint64_t end =
		q->duration_s > 0 ? w->start_ns + (uint64_t)(q->duration_s * 1e9) : UINT64_MAX;

	while (!as_target_poll(t) && !(q->interrupted && *q->interrupted)) {
		uint64_t now = as_now_ns(), next;
		struct pollfd p = {.fd = t->pidfd, .events = POLLIN};

		if (now >= end)
			return;
		next = AS_MIN(as_watch_tick(w, c, false), end - now);
		(void)ppoll(&p, 1,
			    &(struct timespec){(time_t)(next / 1000000000),
					       (long)(next % 1000000000)},
			    NULL); /* a signal ends it, too */
	}
}

int as_watch_attach(const struct as_attach_request *q, struct as_run *ret, bool *ret_ended,
		    struct as_error *err)
{
	struct as_counters c = {0};
	struct as_target target;
	struct as_watch w;
	struct as_tree tree = {.root = q->pid};
	bool has_events = false;
	int r = as_target_attach(q->pid, &target, err);

	*ret = (struct as_run){0};
	if (r < 0)
		return r;
	for (size_t i = 0; i < q->plan->events.v.n; i++)
		has_events |= !q->plan->of[i].optional;
	r = add_all(&c, q->plan, &tree, has_events ? err : NULL);
	if (r < 0 && !has_events)
		r = AS_OK;
	if (r == AS_OK) {
		as_watch_begin(&w, q->plan, &q->rows, q->pid, &c);
		wait_for(q, &w, &c, &target);
		(void)as_watch_tick(&w, &c, true);
		if (w.rows->interval_s <= 0)
			give_row(&w, &c, as_now_ns());
		span(q->plan, w.v0, w.v, ret->v);
		as_counters_values(q->plan, w.r, w.r0, ret->v, ret->counted, ret->error);
		ret->v[AS_M_STEAL] = w.steal_s - w.steal0_s;
		complete(q->plan, (double)(w.last_ns - w.start_ns) / 1e9, ret->v, ret->counted);
		as_watch_end(&w);
	}
	*ret_ended = target.exited;
	as_tree_clear(&tree);
	as_counters_close(&c);
	as_target_clear(&target);
	return r;
}

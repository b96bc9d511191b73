/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Perf events of a process tree: see counters.h. */
#include "measure/counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "collect/perf_event.h"
#include "measure/plan_priv.h"

#define LEAST_TURNS 2
#define LEAST_SHARE 0.01
#define TURN_S      0.004

/* ---- opening ---- */

struct opening {
	pid_t tid;
	int leader; /* of the event's group; -1: none, or it is the leader */
	bool at_exec, disabled;
};

static void attr_of(const struct as_event *e, const struct opening *o,
		    struct perf_event_attr *ret)
{
	bool leads = o->leader < 0;

	*ret = (struct perf_event_attr){
		.type = e->type,
		.size = sizeof *ret,
		.config = e->config[0],
		.config1 = e->config[1],
		.config2 = e->config[2],
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.inherit = 1,
		.disabled = leads && (o->at_exec || o->disabled),
		.enable_on_exec = leads && o->at_exec,
		.exclude_user = !e->user,
		.exclude_kernel = !e->kernel || e->user_only,
	};
}

/* A descriptor, or -errno. */
static int open_event(const struct as_event *e, const struct opening *o)
{
	struct perf_event_attr a;
	int fd;

	attr_of(e, o, &a);
	fd = (int)syscall(SYS_perf_event_open, &a, o->tid, -1, o->leader, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Leader so far of the event's group; -1: none. fds: one per event before it. */
static int leader_of(const struct as_plan *p, size_t event, const int *fds)
{
	int group = p->events.v.v[event].group;

	for (size_t i = 0; group && i < event; i++) {
		if (p->events.v.v[i].group == group)
			return fds[i] < 0 ? -1 : fds[i];
	}
	return -1;
}

void as_counters_add(struct as_counters *c, const struct as_plan *plan, pid_t tid, bool at_exec)
{
	size_t n = plan->events.v.n, at = c->fd.n;

	for (size_t i = 0; i < n; i++) {
		struct opening o = {.tid = tid, .at_exec = at_exec};
		int fd;

		o.leader = leader_of(plan, i, c->fd.v + at);
		fd = open_event(&plan->events.v.v[i], &o);
		as_vec_push(&c->fd, fd);
	}
}

void as_counters_close(struct as_counters *c)
{
	as_vec_foreach (fd, &c->fd) {
		if (*fd >= 0)
			close(*fd);
	}
	as_vec_clear(&c->fd);
}

void as_counters_read(const struct as_counters *c, const struct as_plan *plan,
		      struct as_reading *ret)
{
	size_t n = plan->events.v.n;

	memset(ret, 0, n * sizeof *ret);
	for (size_t i = 0; i < c->fd.n; i++) {
		struct as_reading got;

		if (c->fd.v[i] < 0 || read(c->fd.v[i], &got, sizeof got) != sizeof got)
			continue;
		ret[i % n].value += got.value;
		ret[i % n].enabled_ns += got.enabled_ns;
		ret[i % n].running_ns += got.running_ns;
	}
}

/* ---- what can be had ---- */

static bool is_of_processor(const struct as_event *e)
{
	return e->type != PERF_TYPE_SOFTWARE && e->type != PERF_TYPE_TRACEPOINT;
}

static int fail_event(const struct as_event *e, int error, struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *what = as_xasprintf("count '%s'", e->name);

	if ((error == EACCES || error == EPERM) && geteuid() != 0 && e->in_kernel)
		return as_fail(err, AS_E_ACCESS, error,
			       "cannot %s: it happens in the kernel, which this user may not "
			       "look into\n"
			       "  now, once:  sudo sysctl kernel.perf_event_paranoid=1%s\n"
			       "  as root:    sudo assay stat …",
			       what,
			       e->type == PERF_TYPE_TRACEPOINT
				       ? "; sudo chmod a+rx /sys/kernel/tracing"
				       : "");
	if (is_of_processor(e) &&
	    (error == ENOENT || error == ENODEV || error == EOPNOTSUPP || error == ENXIO))
		return as_fail(
			err, AS_E_UNSUPPORTED, error,
			"cannot %s: no PMU here has this event (most virtual machines have "
			"none at all); software events and tracepoints can be counted",
			what);
	if (error == EINVAL)
		return as_fail(
			err, AS_E_UNSUPPORTED, error,
			"cannot %s: this processor does not know the event, or not in this "
			"group",
			what);
	return as_perf_fail(err, error, what);
}

/* Some virtual machines let events be opened and never count. */
static bool counts(int fd)
{
	struct as_reading r = {0};

	(void)ioctl(fd, PERF_EVENT_IOC_ENABLE, 0); /* what it read tells */
	for (volatile int i = 0; i < 10000; i++)
		;
	return read(fd, &r, sizeof r) == sizeof r && r.value > 0;
}

/* 0, or the errno for which the event cannot be had. */
static int probe(struct as_plan *p, size_t i, int *fds)
{
	struct as_event *e = &p->events.v.v[i];
	struct opening o = {.disabled = true, .leader = leader_of(p, i, fds)};
	int fd = open_event(e, &o);

	/* Without the kernel, where that leaves something and the user has not asked for it. */
	if ((fd == -EACCES || fd == -EPERM) && e->user && e->kernel && !e->in_kernel) {
		e->user_only = true;
		fd = open_event(e, &o);
		p->user_only |= fd >= 0 && !e->any_mode;
	}
	if (fd >= 0 && p->of[i].optional && strcmp(e->base, "cycles") == 0 && o.leader < 0 &&
	    !counts(fd)) {
		close(fd);
		fd = -ENODEV;
	}
	fds[i] = fd;
	return fd < 0 ? -fd : 0;
}

static void leave_out(struct as_plan *p, size_t i)
{
	struct as_event *e = &p->events.v.v[i];

	p->no_pmu |= is_of_processor(e);
	free(e->name);
	free(e->base);
	memmove(e, e + 1, (p->events.v.n - i - 1) * sizeof *e);
	memmove(&p->of[i], &p->of[i + 1], (p->events.v.n - i - 1) * sizeof p->of[0]);
	p->events.v.n--;
}

int as_plan_probe(struct as_plan *p, struct as_error *err)
{
	int fds[AS_EVENTS_MAX], e, r = AS_OK, last = 0;
	size_t i = 0, had = p->events.v.n;

	while (i < p->events.v.n && r == AS_OK) {
		e = probe(p, i, fds);
		if (!e) {
			i++;
		} else if (p->of[i].optional) {
			last = e;
			if (p->events.v.n > 1 || p->of[i].figure >= 0 || !p->of[i].is_word) {
				leave_out(p, i);
			} else {
				r = fail_event(&p->events.v.v[i], last, err);
			}
		} else {
			r = fail_event(&p->events.v.v[i], e, err);
		}
	}
	while (i > 0)
		close(fds[--i]);
	if (p->events.v.n != had)
		as_plan_add_derived(p);
	return r;
}

/* ---- values ---- */

/* The longest that any event of this PMU was seen. */
static uint64_t longest(const struct as_plan *p, const char *pmu, const struct as_reading *r)
{
	uint64_t most = 0;

	for (size_t i = 0; i < p->events.v.n; i++) {
		if (strcmp(p->events.v.v[i].pmu, pmu) == 0)
			most = AS_MAX(most, r[i].running_ns);
	}
	return most;
}

static void estimate(const struct as_event *e, const struct as_reading *r, uint64_t time_ns,
		     double *v, float *counted, float *error)
{
	double seen = time_ns ? (double)r->running_ns / (double)time_ns : 0;
	double turn = e->mux_seconds > 0 ? e->mux_seconds : TURN_S;
	double turns = (double)r->running_ns / 1e9 / turn;

	seen = AS_MIN(seen, 1);
	*counted = (float)seen;
	*error = 0;
	*v = NAN;
	if (!r->running_ns || (seen < 1 && (seen < LEAST_SHARE || turns < LEAST_TURNS)))
		return;
	*v = (double)r->value * e->scale / seen;
	if (seen < 0.999)
		*error = (float)(1.96 * sqrt((1 - seen) / turns));
}

void as_counters_values(const struct as_plan *plan, const struct as_reading *now,
			const struct as_reading *before, double *v, float *counted,
			float *error)
{
	size_t n = plan->events.v.n;
	struct as_reading r[AS_EVENTS_MAX];

	for (size_t i = 0; i < n; i++) {
		r[i] = now[i];
		if (!before)
			continue;
		r[i].value -= before[i].value;
		r[i].enabled_ns -= before[i].enabled_ns;
		r[i].running_ns -= before[i].running_ns;
	}
	for (size_t i = 0; i < n; i++) {
		const struct as_event *e = &plan->events.v.v[i];
		int row = AS_M_COUNT_ + (int)i;
		/* A kind of core that was never used: nothing happened there. */
		bool elsewhere = *e->pmu && r[i].enabled_ns && !longest(plan, e->pmu, r);

		if (plan->of[i].figure >= 0)
			row = plan->of[i].figure;
		if (!r[i].enabled_ns) { /* it never ran: of software events that is 0 */
			v[row] = is_of_processor(e) ? NAN : 0;
			counted[row] = is_of_processor(e) ? 0 : 1;
			continue;
		}
		if (elsewhere) {
			v[row] = 0;
			counted[row] = 1;
			continue;
		}
		estimate(e, &r[i], *e->pmu ? longest(plan, e->pmu, r) : r[i].enabled_ns,
			 &v[row], &counted[row], &error[row]);
	}
}

void as_counters_placed(const struct as_plan *plan, const struct as_reading *r,
			struct as_buf *out)
{
	uint64_t all = 0;

	for (size_t i = 0; i < plan->events.v.n; i++)
		all = AS_MAX(all, r[i].enabled_ns);
	if (plan->pmus.cores < 2 || !all)
		return;
	as_vec_foreach (pmu, &plan->pmus.v) {
		if (!pmu->core)
			continue;
		as_buf_addf(out, "%s%s %.0f %%", out->len ? ", " : "", pmu->name,
			    100 * (double)longest(plan, pmu->name, r) / (double)all);
	}
}

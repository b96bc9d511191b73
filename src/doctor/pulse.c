/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Two looks at the machine's counters and what lies between them: see vitals.h. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "doctor/doctor_priv.h"

enum {
	PROCS_MAX = 65536,
	STAT_FIELDS = 10,
	PROC_UTIME = 11, /* fields of /proc/PID/stat after the name, from 0 */
	PROC_STIME = 12,
	PROC_START = 19,
	PROC_FIELDS = 20,
};

/* ---- one look ---- */

/* Numbers separated by blanks; returns how many there were. */
static size_t numbers(const char *p, uint64_t *ret, size_t max)
{
	size_t n = 0;

	while (n < max) {
		char word[24];
		size_t len;

		p += strspn(p, " ");
		len = strcspn(p, " \n");
		if (!len || len >= sizeof word)
			break;
		memcpy(word, p, len);
		word[len] = 0;
		if (!as_parse_u64(word, &ret[n])) /* negative: none that is asked for */
			ret[n] = 0;
		n++;
		p += len;
	}
	return n;
}

static void read_cpus(const struct as_doctor *d, struct as_snapshot *s)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	if (!as_doctor_file(&b, d->proc, "stat"))
		return;
	for (const char *line = b.p; line && strncmp(line, "cpu", 3) == 0;
	     line = strchr(line, '\n'), line += line != NULL) {
		uint64_t v[STAT_FIELDS] = {0};
		struct as_cpu_ticks c = {0};

		if (line[3] == ' ') /* the sum of all */
			continue;
		numbers(line + 3, v, STAT_FIELDS);
		/* number user nice system idle iowait irq softirq steal; guest is in user */
		c.cpu = (uint32_t)v[0];
		c.busy = v[1] + v[2] + v[3] + v[6] + v[7];
		c.steal = v[8];
		c.total = c.busy + v[4] + v[5] + v[8];
		as_vec_push(&s->cpus, c);
	}
}

static bool read_proc(const struct as_doctor *d, pid_t pid, struct as_proc_ticks *ret)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	uint64_t v[PROC_FIELDS] = {0};
	const char *open, *close;
	size_t n;

	if (!as_doctor_file(&b, d->proc, "%d/stat", pid))
		return false;
	open = strchr(b.p, '(');
	close = strrchr(b.p, ')');
	if (!open || !close || close < open || !close[1] || !close[2] || !close[3])
		return false;
	/* after the state letter */
	if (numbers(close + 3, v + 1, PROC_FIELDS - 1) < PROC_FIELDS - 1)
		return false;
	*ret = (struct as_proc_ticks){
		.pid = pid, .start = v[PROC_START], .ticks = v[PROC_UTIME] + v[PROC_STIME]};
	n = AS_MIN((size_t)(close - open - 1), sizeof ret->name - 1);
	memcpy(ret->name, open + 1, n);
	return true;
}

static int by_pid(const void *a, const void *b)
{
	const struct as_proc_ticks *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static void read_procs(const struct as_doctor *d, struct as_snapshot *s)
{
	DIR *dir = opendir(d->proc);
	struct dirent *e;

	while (dir && s->procs.n < PROCS_MAX && (e = readdir(dir))) {
		struct as_proc_ticks p;
		uint64_t pid;

		if (as_parse_u64(e->d_name, &pid) && pid && pid <= INT32_MAX &&
		    read_proc(d, (pid_t)pid, &p))
			as_vec_push(&s->procs, p);
	}
	if (dir)
		closedir(dir);
	if (s->procs.n)
		qsort(s->procs.v, s->procs.n, sizeof *s->procs.v, by_pid);
}

/* Of the x86 counters: each core's and each package's once would do; growth is all that is asked. */
static uint64_t thermal_events(const struct as_doctor *d)
{
	static const char *const files[] = {"core_throttle_count", "package_throttle_count"};
	struct as_cpus cpus = {0};
	uint64_t sum = 0;

	as_cpus_online(d, &cpus);
	as_vec_foreach (cpu, &cpus.v) {
		for (size_t i = 0; i < AS_ARRAY_LEN(files); i++) {
			int64_t v;

			if (as_doctor_number(&v, d->sys,
					     "devices/system/cpu/cpu%u/thermal_throttle/%s",
					     *cpu, files[i]) &&
			    v > 0)
				sum += (uint64_t)v;
		}
	}
	as_cpus_clear(&cpus);
	return sum;
}

static void read_throttling(const struct as_doctor *d, struct as_snapshot *s)
{
	struct as_cgroups groups;

	as_cgroups_find(d, &groups);
	as_vec_foreach (dir, &groups.dirs) {
		AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
		uint64_t v;

		if (!as_doctor_file(&b, *dir, "cpu.stat"))
			continue;
		if (as_doctor_field(b.p, "nr_throttled ", &v))
			s->throttled_count += v;
		if (as_doctor_field(b.p, "throttled_usec ", &v)) /* v2 */
			s->throttled_ns += v * 1000;
		if (as_doctor_field(b.p, "throttled_time ", &v)) /* v1 */
			s->throttled_ns += v;
	}
	as_cgroups_clear(&groups);
}

void as_snapshot_take(const struct as_doctor *d, struct as_snapshot *ret)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};

	*ret = (struct as_snapshot){0};
	read_procs(d, ret);
	read_cpus(d, ret);
	ret->time_ns = d->now_ns();
	ret->thermal_events = thermal_events(d);
	read_throttling(d, ret);
	if (as_doctor_file(&b, d->proc, "vmstat")) {
		(void)as_doctor_field(b.p, "pswpin ", &ret->swap_in_pages); /* else 0 */
		(void)as_doctor_field(b.p, "pswpout ", &ret->swap_out_pages);
	}
}

void as_snapshot_clear(struct as_snapshot *s)
{
	as_vec_clear(&s->cpus);
	as_vec_clear(&s->procs);
}

/* ---- between two ---- */

static uint64_t grown(uint64_t a, uint64_t b)
{
	return b > a ? b - a : 0;
}

static const struct as_cpu_ticks *find_cpu(const struct as_snapshot *s, uint32_t cpu)
{
	as_vec_foreach (it, &s->cpus) {
		if (it->cpu == cpu)
			return it;
	}
	return NULL;
}

static double cpu_busy(const struct as_snapshot *a, const struct as_snapshot *b, uint32_t cpu)
{
	const struct as_cpu_ticks *x = find_cpu(a, cpu), *y = find_cpu(b, cpu);

	if (!x || !y || y->total <= x->total)
		return 0;
	return (double)grown(x->busy, y->busy) / (double)(y->total - x->total);
}

static double siblings(const struct as_doctor *d, const struct as_snapshot *a,
		       const struct as_snapshot *b, int cpu)
{
	struct as_cpus c = {0};
	double most = -1;
	char list[256];

	if (cpu < 0 ||
	    !as_doctor_line(list, sizeof list, d->sys,
			    "devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
		return -1;
	as_cpus_parse(list, &c);
	as_vec_foreach (it, &c.v) {
		if (*it != (uint32_t)cpu)
			most = AS_MAX(most, cpu_busy(a, b, *it));
	}
	as_cpus_clear(&c);
	return most;
}

/* CPU time of each name; used up by those that appear twice. */
struct users {
	AS_VEC(struct as_cpu_user) v;
};

static void add_user(struct users *u, const char *name, double cpus)
{
	struct as_cpu_user new = {.cpus = cpus};

	as_vec_foreach (it, &u->v) {
		if (strcmp(it->name, name) == 0) {
			it->cpus += cpus;
			return;
		}
	}
	memcpy(new.name, name, sizeof new.name);
	as_vec_push(&u->v, new);
}

static int by_use(const void *a, const void *b)
{
	const struct as_cpu_user *x = a, *y = b;

	return (x->cpus < y->cpus) - (x->cpus > y->cpus);
}

/* Fills top; returns the ticks of our own process. */
static uint64_t who(const struct as_doctor *d, const struct as_snapshot *a,
		    const struct as_snapshot *b, double ticks, struct as_pulse *ret)
{
	enum { NAMES_MAX = 1000 };
	struct users u = {0};
	uint64_t own = 0;

	as_vec_foreach (p, &b->procs) {
		const struct as_proc_ticks *before =
			a->procs.n ? bsearch(p, a->procs.v, a->procs.n, sizeof *p, by_pid)
				   : NULL;
		uint64_t used = before && before->start == p->start
					? grown(before->ticks, p->ticks)
					: p->ticks;

		if (p->pid == d->self)
			own += used;
		else if (used && u.v.n < NAMES_MAX)
			add_user(&u, p->name, (double)used / ticks);
	}
	if (u.v.n)
		qsort(u.v.v, u.v.n, sizeof *u.v.v, by_use);
	for (size_t i = 0; i < AS_MIN(u.v.n, AS_PULSE_TOP); i++)
		ret->top[i] = u.v.v[i];
	as_vec_foreach (it, &u.v)
		ret->unseen_cpus -= it->cpus;
	as_vec_clear(&u.v);
	return own;
}

void as_pulse_between(const struct as_doctor *d, const struct as_snapshot *a,
		      const struct as_snapshot *b, int cpu, struct as_pulse *ret)
{
	double interval_s = (double)grown(a->time_ns, b->time_ns) / 1e9, own, busy_ticks = 0;
	uint64_t steal = 0, total = 0;
	int64_t khz;

	*ret = (struct as_pulse){
		.interval_ns = grown(a->time_ns, b->time_ns),
		.thermal_events = grown(a->thermal_events, b->thermal_events),
		.swap_in_pages = grown(a->swap_in_pages, b->swap_in_pages),
		.swap_out_pages = grown(a->swap_out_pages, b->swap_out_pages),
		.throttled_ns = grown(a->throttled_ns, b->throttled_ns),
		.throttled_count = grown(a->throttled_count, b->throttled_count),
		.sibling_busy = siblings(d, a, b, cpu),
		.cpus_online = (double)b->cpus.n,
	};
	as_vec_foreach (y, &b->cpus) {
		const struct as_cpu_ticks *x = find_cpu(a, y->cpu);

		if (!x)
			continue;
		busy_ticks += (double)grown(x->busy, y->busy);
		steal += grown(x->steal, y->steal);
		total += grown(x->total, y->total);
	}
	if (interval_s <= 0)
		return;
	own = (double)who(d, a, b, interval_s * (double)d->ticks_hz, ret);
	ret->others_cpus = AS_MAX(0.0, (busy_ticks - own) / (interval_s * (double)d->ticks_hz));
	ret->unseen_cpus = AS_MAX(0.0, ret->unseen_cpus + ret->others_cpus);
	ret->steal = total ? (double)steal / (double)total : 0;
	if (cpu >= 0 &&
	    as_doctor_number(&khz, d->sys, "devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq",
			     cpu))
		ret->khz = (uint64_t)AS_MAX(khz, 0);
}

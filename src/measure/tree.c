/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A process and its descendants: see tree.h. */
#include "measure/tree.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"

#define FILE_MAX (64u << 10)

static bool read_text(struct as_buf *out, const char *format, pid_t pid, const char *rest)
{
	AS_CLEANUP(as_free_autop)
	char *path = as_xasprintf("/proc/%d/%s%s", (int)pid, format, rest);

	out->len = 0;
	return as_read_file(path, FILE_MAX, out, NULL) == AS_OK;
}

/* The number after "name"; false where it is not there. */
static bool field(const char *text, const char *name, double *ret)
{
	const char *p = strstr(text, name);
	double v = 0;

	if (!p)
		return false;
	for (p += strlen(name); *p == ' ' || *p == '\t'; p++)
		;
	for (; *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (*p - '0');
	*ret = v;
	return true;
}

/* ---- which processes ---- */

static void add_numbers(const char *text, as_tids *ret)
{
	for (const char *p = text; *p;) {
		pid_t v = 0;

		for (; *p >= '0' && *p <= '9'; p++)
			v = v * 10 + (*p - '0');
		if (v > 0)
			as_vec_push(ret, v);
		p += *p != 0;
	}
}

static void list_tasks(pid_t pid, as_tids *ret)
{
	char path[64];
	DIR *d;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	d = opendir(path);
	if (!d)
		return;
	for (const struct dirent *e; (e = readdir(d));)
		add_numbers(e->d_name, ret);
	closedir(d);
}

static void find_pids(struct as_tree *t)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};

	t->pids.n = 0;
	as_vec_push(&t->pids, t->root);
	for (size_t i = 0; i < t->pids.n && t->pids.n < AS_TREE_MAX; i++) {
		as_tids tasks = {0}, children = {0};

		list_tasks(t->pids.v[i], &tasks);
		as_vec_foreach (tid, &tasks) {
			AS_CLEANUP(as_free_autop)
			char *rest = as_xasprintf("%d/children", (int)*tid);

			if (read_text(&text, "task/", t->pids.v[i], rest))
				add_numbers(as_buf_str(&text), &children);
		}
		as_vec_foreach (child, &children) {
			if (*child != getpid()) /* we watch who started us */
				as_vec_push(&t->pids, *child);
		}
		as_vec_clear(&tasks);
		as_vec_clear(&children);
	}
}

void as_tree_tids(struct as_tree *t, as_tids *ret)
{
	find_pids(t);
	as_vec_foreach (pid, &t->pids)
		list_tasks(*pid, ret);
}

/* ---- what they used ---- */

static double cpu_clock(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return NAN;
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool add_stat(pid_t pid, double *v, double *rss)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	double tick = 1 / (double)sysconf(_SC_CLK_TCK), own, ticks;
	unsigned long long minor, cminor, major, cmajor, user, sys, cuser, csys;
	long long pages;
	const char *p;

	if (!read_text(&text, "stat", pid, ""))
		return false;
	p = strrchr(as_buf_str(&text), ')');
	if (!p ||
	    sscanf(p + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %llu %llu %llu %llu %llu %llu %llu %llu "
		   "%*d %*d %*d %*d %*u %*u %lld",
		   &minor, &cminor, &major, &cmajor, &user, &sys, &cuser, &csys, &pages) != 9)
		return false;
	own = cpu_clock(pid);
	ticks = (double)(user + sys) * tick;
	v[AS_M_USER] += (double)(user + cuser) * tick;
	v[AS_M_SYSTEM] += (double)(sys + csys) * tick;
	v[AS_M_CPU] += (isnan(own) ? ticks : own) + (double)(cuser + csys) * tick;
	v[AS_M_MINOR_FAULTS] += (double)(minor + cminor);
	v[AS_M_MAJOR_FAULTS] += (double)(major + cmajor);
	*rss += (double)pages * (double)sysconf(_SC_PAGESIZE);
	return true;
}

static void add_io(pid_t pid, double *v)
{
	static const struct {
		const char *name;
		enum as_metric metric;
	} fields[] = {{"rchar:", AS_M_READ},
		      {"wchar:", AS_M_WRITTEN},
		      {"\nread_bytes:", AS_M_DISK_READ},
		      {"\nwrite_bytes:", AS_M_DISK_WRITTEN}};
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};

	if (!read_text(&text, "io", pid, ""))
		return; /* another user's */
	for (size_t i = 0; i < AS_ARRAY_LEN(fields); i++) {
		double x;

		if (field(as_buf_str(&text), fields[i].name, &x))
			v[fields[i].metric] =
				isnan(v[fields[i].metric]) ? x : v[fields[i].metric] + x;
	}
}

static void see_thread(struct as_tree *t, pid_t pid, pid_t tid)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	AS_CLEANUP(as_free_autop) char *sched = as_xasprintf("%d/schedstat", (int)tid);
	AS_CLEANUP(as_free_autop) char *status = as_xasprintf("%d/status", (int)tid);
	struct as_tree_thread now = {0};
	uint64_t ran, waited, *place;
	bool is_new;

	if (read_text(&text, "task/", pid, sched) &&
	    sscanf(as_buf_str(&text), "%" SCNu64 " %" SCNu64, &ran, &waited) == 2)
		now.waited_s = (double)waited / 1e9;
	if (!read_text(&text, "task/", pid, status) ||
	    !field(as_buf_str(&text), "\nvoluntary_ctxt_switches:", &now.voluntary) ||
	    !field(as_buf_str(&text), "\nnonvoluntary_ctxt_switches:", &now.involuntary))
		return; /* it has ended */
	place = as_map64_put(&t->known, (uint64_t)tid, &is_new);
	/* fewer than before: the number was used again */
	if (is_new || now.voluntary < t->threads.v[*place].voluntary) {
		*place = t->threads.n;
		as_vec_push(&t->threads, now);
	}
	t->threads.v[*place] = now;
}

static void see_peak(struct as_tree *t, pid_t pid)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	double kib;

	if (read_text(&text, "status", pid, "") && field(as_buf_str(&text), "\nVmHWM:", &kib))
		t->peak_bytes = AS_MAX(t->peak_bytes, kib * 1024);
}

bool as_tree_read(struct as_tree *t, double *v, double *ret_rss)
{
	static const enum as_metric sums[] = {
		AS_M_USER,         AS_M_SYSTEM,    AS_M_CPU,         AS_M_MINOR_FAULTS,
		AS_M_MAJOR_FAULTS, AS_M_VOLUNTARY, AS_M_INVOLUNTARY, AS_M_RUN_WAIT};
	bool alive = false;

	for (int m = 0; m < AS_M_COUNT_; m++)
		v[m] = NAN;
	for (size_t i = 0; i < AS_ARRAY_LEN(sums); i++)
		v[sums[i]] = 0;
	*ret_rss = 0;
	find_pids(t);
	as_vec_foreach (pid, &t->pids) {
		as_tids tids = {0};

		if (!add_stat(*pid, v, ret_rss))
			continue;
		alive |= *pid == t->root;
		add_io(*pid, v);
		see_peak(t, *pid);
		list_tasks(*pid, &tids);
		as_vec_foreach (tid, &tids)
			see_thread(t, *pid, *tid);
		as_vec_clear(&tids);
	}
	as_vec_foreach (thread, &t->threads) {
		v[AS_M_RUN_WAIT] += thread->waited_s;
		v[AS_M_VOLUNTARY] += thread->voluntary;
		v[AS_M_INVOLUNTARY] += thread->involuntary;
	}
	v[AS_M_RSS] = t->peak_bytes > 0 ? t->peak_bytes : NAN;
	return alive;
}

void as_tree_clear(struct as_tree *t)
{
	as_vec_clear(&t->pids);
	as_vec_clear(&t->threads);
	as_map64_clear(&t->known);
}

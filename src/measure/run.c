/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One run, measured: see run.h. */
#include "measure/run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "collect/collect.h"
#include "measure/counters.h"
#include "measure/exits.h"
#include "measure/wait.h"
#include "measure/watch.h"

#define PAD_VARIABLE    "ASSAY_PAD"
#define NUMBER_VARIABLE "HYPERFINE_ITERATION"
#define NUMBER_MAX      32
#define HELD_TRIES      500
#define HELD_PAUSE_NS   100000

const struct as_metric_info as_metrics[AS_M_COUNT_] = {
#define AS_M(id, name, unit, text) {name, unit, text, false},
	AS_METRICS(AS_M)
#undef AS_M
};

enum as_metric as_metric_find(const char *name, size_t n)
{
	int m = 0;

	while (m < AS_M_COUNT_ &&
	       (strlen(as_metrics[m].name) != n || memcmp(as_metrics[m].name, name, n) != 0))
		m++;
	return (enum as_metric)m;
}

/* ---- what the child inherits ---- */

struct redirection {
	int saved[3]; /* our own descriptors while the child is made; -1: not touched */
	cpu_set_t cpus;
	bool pinned;
	int pipe_fd; /* where its output is read; -1: none */
	bool numbered;
	const char *number; /* what the environment had before, NAME=…; NULL: nothing */
};

#define PIPE_BYTES (256 << 10)

/* Takes file, which becomes fd. */
static int redirect_to(struct redirection *r, int fd, int file, const char *path,
		       struct as_error *err)
{
	int e = AS_OK;

	r->saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (r->saved[fd] < 0 || dup2(file, fd) < 0)
		e = as_fail(err, AS_E_IO, errno, "cannot redirect to '%s': %s", path,
			    strerror(errno));
	close(file);
	return e;
}

static int redirect_to_pipe(struct redirection *r, struct as_error *err)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC))
		return as_fail(err, AS_E_IO, errno, "cannot make a pipe: %s", strerror(errno));
	r->pipe_fd = p[0];
	(void)fcntl(p[0], F_SETPIPE_SZ, PIPE_BYTES); /* refused: more switches */
	(void)fcntl(p[0], F_SETFL, O_NONBLOCK);      /* a new description, so only ours */
	return redirect_to(r, STDOUT_FILENO, p[1], "a pipe", err);
}

static int redirect(struct redirection *r, int fd, const char *path, int flags,
		    struct as_error *err)
{
	int file = open(path, flags | O_CLOEXEC, 0666);

	if (file < 0)
		return as_fail(err, AS_E_IO, errno, "cannot open '%s': %s", path,
			       strerror(errno));
	return redirect_to(r, fd, file, path, err);
}

static void restore(struct redirection *r)
{
	for (int fd = 0; fd < 3; fd++) {
		if (r->saved[fd] < 0)
			continue;
		(void)dup2(r->saved[fd], fd); /* it was open a moment ago */
		close(r->saved[fd]);
	}
	if (r->pinned)
		(void)sched_setaffinity(0, sizeof r->cpus, &r->cpus); /* as it was before */
	(void)unsetenv(PAD_VARIABLE);
	if (r->numbered && r->number)
		(void)putenv((char *)(uintptr_t)r->number); /* its own text again */
	else if (r->numbered)
		(void)unsetenv(NUMBER_VARIABLE);
}

/* As above; the variable that was there before is back when the child is made. */
static void number_child(const struct as_run_request *q, struct redirection *r)
{
	static char number[sizeof NUMBER_VARIABLE + NUMBER_MAX];
	const char *before = getenv(NUMBER_VARIABLE);

	if (!q->number)
		return;
	r->number = before ? before - sizeof NUMBER_VARIABLE : NULL;
	r->numbered = true;
	snprintf(number, sizeof number, NUMBER_VARIABLE "=%s", q->number);
	(void)putenv(number); /* out of memory: without */
}

static int prepare_child(const struct as_run_request *q, struct redirection *r,
			 struct as_error *err)
{
	int flags = O_WRONLY | O_CREAT | O_APPEND | (q->output_anew ? O_TRUNC : 0);
	const char *errors = q->output_pipe ? "/dev/null" : q->output;
	int e = AS_OK;

	if (q->env_pad_bytes) {
		/* not setenv: it keeps every value there ever was, and the child begins with them */
		static char pad[sizeof PAD_VARIABLE + 1 + AS_ENV_PAD_MAX];
		size_t name = sizeof PAD_VARIABLE - 1,
		       n = AS_MIN(q->env_pad_bytes, (unsigned)AS_ENV_PAD_MAX);

		memcpy(pad, PAD_VARIABLE "=", name + 1);
		memset(pad + name + 1, 'x', n);
		pad[name + 1 + n] = 0;
		(void)putenv(pad); /* out of memory: not moved */
	}
	number_child(q, r);
	if (q->cpus) {
		(void)sched_getaffinity(0, sizeof r->cpus, &r->cpus);
		if (sched_setaffinity(0, sizeof *q->cpus, q->cpus) < 0)
			return as_fail(err, AS_E_USAGE, errno, "cannot run on these CPUs: %s",
				       strerror(errno));
		r->pinned = true;
	}
	if (q->input)
		e = redirect(r, STDIN_FILENO, q->input, O_RDONLY, err);
	if (e == AS_OK && q->output_pipe)
		e = redirect_to_pipe(r, err);
	else if (e == AS_OK && q->output)
		e = redirect(r, STDOUT_FILENO, q->output, flags, err);
	if (e == AS_OK && errors)
		e = redirect(r, STDERR_FILENO, errors, flags, err);
	return e;
}

/* ---- what /proc tells of a process that has ended and was not reaped ---- */

static bool field_of(const char *text, const char *name, double *ret)
{
	const char *p = strstr(text, name);
	uint64_t v = 0;

	if (!p)
		return false;
	for (p += strlen(name); *p == ' '; p++)
		;
	for (; *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	*ret = (double)v;
	return true;
}

static void read_io(int fd, struct as_run *run)
{
	static const struct {
		const char *name;
		enum as_metric metric;
	} fields[] = {{"rchar:", AS_M_READ},
		      {"wchar:", AS_M_WRITTEN},
		      {"\nread_bytes:", AS_M_DISK_READ},
		      {"\nwrite_bytes:", AS_M_DISK_WRITTEN}};
	char text[1024];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);

	if (n <= 0)
		return; /* NaN they stay */
	text[n] = 0;
	for (size_t i = 0; i < AS_ARRAY_LEN(fields); i++)
		(void)field_of(text, fields[i].name, &run->v[fields[i].metric]);
}

/* What the main thread did so far, in seconds; false where it is not told. */
static bool read_sched(pid_t pid, double *ret_ran, double *ret_waited)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	uint64_t ran, waited;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
	if (as_read_file(path, 256, &text, NULL) < 0 ||
	    sscanf(as_buf_str(&text), "%" SCNu64 " %" SCNu64, &ran, &waited) != 2)
		return false;
	*ret_ran = (double)ran / 1e9;
	*ret_waited = (double)waited / 1e9;
	return true;
}

/* Of the main thread: where the event is not to be had. */
static void read_migrations(pid_t pid, struct as_run *run)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	const char *p;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/sched", (int)pid);
	if (as_read_file(path, 64 << 10, &text, NULL) < 0)
		return; /* NaN it stays */
	p = strstr(as_buf_str(&text), "se.nr_migrations");
	p = p ? strchr(p, ':') : NULL;
	if (p)
		(void)field_of(p, ":", &run->v[AS_M_MIGRATIONS]); /* as above */
}

/* Told in steps of a clock tick, and where kernel.task_delayacct is 1. Field 42 of /proc/PID/stat. */
static double disk_wait(pid_t pid)
{
	AS_CLEANUP(as_buf_clear) struct as_buf on = {0};
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	unsigned long long ticks = 0;
	const char *p;
	char path[64];

	if (as_read_file("/proc/sys/kernel/task_delayacct", 16, &on, NULL) < 0 ||
	    as_buf_str(&on)[0] != '1')
		return NAN;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (as_read_file(path, 8192, &text, NULL) < 0)
		return NAN;
	p = strrchr(as_buf_str(&text), ')');
	for (int field = 2; p && field < 42; field++)
		p = strchr(p + 1, ' ');
	if (!p || sscanf(p, "%llu", &ticks) != 1)
		return NAN;
	return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

/* The child that is held: what it has used so far is not the program's. */
struct held {
	struct as_run io;
	double ran, waited, steal;
	/* /proc/PID/io. Opened now: once the process has ended the file is root's. */
	int io_fd;
};

/* Until it sleeps: what it waits for a CPU before would be told afterwards, as the program's. */
static void wait_until_held(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	for (int i = 0; i < HELD_TRIES; i++) {
		AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
		const char *p = NULL;

		if (as_read_file(path, 8192, &text, NULL) == AS_OK)
			p = strrchr(as_buf_str(&text), ')');
		if (!p || strncmp(p, ") S", 3) == 0)
			return;
		(void)nanosleep(&(struct timespec){0, HELD_PAUSE_NS}, NULL); /* or shorter */
	}
}

static void read_held(pid_t pid, struct held *ret)
{
	char path[64];

	wait_until_held(pid);
	ret->ran = ret->waited = NAN;
	(void)read_sched(pid, &ret->ran, &ret->waited); /* NaN goes on */
	for (int m = 0; m < AS_M_COUNT_; m++)
		ret->io.v[m] = NAN;
	snprintf(path, sizeof path, "/proc/%d/io", (int)pid);
	ret->io_fd = open(path, O_RDONLY | O_CLOEXEC);
	read_io(ret->io_fd, &ret->io);
}

static void read_ended(pid_t pid, const struct held *held, struct as_run *run)
{
	double ran = NAN, waited = NAN;

	read_io(held->io_fd, run);
	for (int m = AS_M_READ; m <= AS_M_DISK_WRITTEN; m++)
		run->v[m] -= held->io.v[m];
	run->v[AS_M_READ] -= 1; /* the byte that released it */
	run->v[AS_M_DISK_WAIT] = disk_wait(pid);
	(void)read_sched(pid, &ran, &waited);
	run->v[AS_M_RUN_WAIT] = waited - held->waited;
	ran -= held->ran;
	run->v[AS_M_BLOCKED] = AS_MAX(run->v[AS_M_WALL] - ran - run->v[AS_M_RUN_WAIT], 0);
	if (isnan(ran))
		run->v[AS_M_BLOCKED] = NAN;
}

static double timeval_s(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

/*
 * Of the program: what the child had used before it became the program is taken off. The kernel
 * counts CPU time exactly and tells user and system apart by samples, so both are made less in
 * proportion.
 */
static void read_usage(const struct as_target *t, struct as_run *run)
{
	const struct rusage *u = &t->usage, *b = &t->before;
	double user = timeval_s(&u->ru_utime), all = user + timeval_s(&u->ru_stime);
	double before = timeval_s(&b->ru_utime) + timeval_s(&b->ru_stime);

	run->v[AS_M_CPU] = AS_MAX(all - before, 0);
	run->v[AS_M_USER] = all > 0 ? run->v[AS_M_CPU] * (user / all) : 0;
	run->v[AS_M_SYSTEM] = run->v[AS_M_CPU] - run->v[AS_M_USER];
	run->v[AS_M_RSS] = (double)u->ru_maxrss * 1024;
	run->v[AS_M_MINOR_FAULTS] = (double)(u->ru_minflt - b->ru_minflt);
	run->v[AS_M_MAJOR_FAULTS] = (double)(u->ru_majflt - b->ru_majflt);
	run->v[AS_M_VOLUNTARY] = (double)(u->ru_nvcsw - b->ru_nvcsw);
	run->v[AS_M_INVOLUNTARY] = (double)(u->ru_nivcsw - b->ru_nivcsw);
}

/* ---- the run ---- */

/*
 * While we wait we go first, where we may: on a busy machine the end would otherwise be noticed only
 * when others have had their turn, and that wait would look like the program's. We do nothing
 * meanwhile, so nobody loses by it.
 */
static bool go_first(bool first)
{
	struct sched_param high = {.sched_priority = 1}, plain = {0};

	return first ? sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &high) == 0
		     : sched_setscheduler(0, SCHED_OTHER, &plain) == 0;
}

/* Waits for the end without reaping, with a row now and then. */
static void wait_with_rows(const struct as_run_request *q, const struct as_target *t,
			   struct as_watch *w, const struct as_counters *c)
{
	struct pollfd p = {.fd = t->pidfd, .events = POLLIN};
	uint64_t next = as_watch_tick(w, c, false);

	while (p.fd >= 0 &&
	       ppoll(&p, 1,
		     &(struct timespec){(time_t)(next / 1000000000), (long)(next % 1000000000)},
		     NULL) <= 0) {
		if (errno == EINTR && q->interrupted && *q->interrupted)
			(void)kill(t->pid, *q->interrupted > 1 ? SIGKILL : SIGINT);
		errno = 0;
		next = as_watch_tick(w, c, false);
	}
	as_wait_for_end(&(struct as_wait){.pid = t->pid, .interrupted = q->interrupted});
}

static void read_counters(const struct as_counters *c, const struct as_plan *plan,
			  struct as_run *ret)
{
	struct as_reading r[AS_EVENTS_MAX];
	AS_CLEANUP(as_buf_clear) struct as_buf placed = {0};

	as_counters_read(c, plan, r);
	as_counters_values(plan, r, NULL, ret->v, ret->counted, ret->error);
	as_counters_placed(plan, r, &placed);
	snprintf(ret->placed, sizeof ret->placed, "%s", as_buf_str(&placed));
}

static void read_peaks(struct as_exits *x, pid_t pid, struct as_run *run)
{
	double own, children;

	as_exits_peaks(x, pid, &own, &children);
	if (isnan(children)) /* then it is all its own */
		return;
	run->v[AS_M_RSS_OWN] = own;
	run->v[AS_M_RSS_CHILDREN] = children;
}

static int release_and_wait(const struct as_run_request *q, struct as_target *t, int pipe_fd,
			    struct as_run *ret, struct as_error *err)
{
	struct as_wait wait = {.pid = t->pid,
			       .pidfd = t->pidfd,
			       .drain = pipe_fd >= 0,
			       .pipe_fd = pipe_fd,
			       .deadline_ns = q->deadline_ns,
			       .interrupted = q->interrupted,
			       .impatient = q->impatient};
	struct as_counters counters = {0};
	struct as_exits exits;
	struct as_watch watch;
	struct held held = {.steal = as_stolen_s()};
	uint64_t start, end;
	int r;

	if (q->plan)
		as_counters_add(&counters, q->plan, t->pid, true);
	read_held(t->pid, &held);
	(void)as_exits_open(&exits); /* without: not told apart */
	if (q->rows)
		as_watch_begin(&watch, q->plan, q->rows, t->pid, &counters);
	start = as_now_ns();
	r = as_target_release(t, err);
	if (r == AS_OK) {
		/* with rows or a pipe we do something meanwhile */
		bool first = !q->rows && !wait.drain && sched_getscheduler(0) == SCHED_OTHER &&
			     go_first(true);

		if (q->rows)
			wait_with_rows(q, t, &watch, &counters);
		else
			as_wait_for_end(&wait);
		end = as_now_ns();
		if (q->rows)
			(void)as_watch_tick(&watch, &counters, true);
		if (first)
			(void)go_first(false); /* what was possible before is so again */
		if (q->plan)
			read_counters(&counters, q->plan, ret);
		if (isnan(ret->v[AS_M_MIGRATIONS]))
			read_migrations(t->pid, ret);
		ret->v[AS_M_WALL] = (double)(end - start) / 1e9;
		read_ended(t->pid, &held, ret);
		while (!as_target_poll(t))
			;
		read_usage(t, ret);
		ret->wait_status = t->wait_status;
		ret->timed_out = wait.timed_out;
		if (exits.fd >= 0)
			read_peaks(&exits, t->pid, ret);
		ret->v[AS_M_STEAL] = as_stolen_s() - held.steal;
		ret->v[AS_M_UTILISATION] = ret->v[AS_M_CPU] / ret->v[AS_M_WALL];
		if (q->plan)
			as_plan_derive(q->plan, ret->v, ret->counted);
	} else {
		ret->exec_errno = err && err->sys_errno ? err->sys_errno : ENOENT;
	}
	if (q->rows)
		as_watch_end(&watch);
	as_exits_close(&exits);
	as_counters_close(&counters);
	as_close_autop(&held.io_fd);
	return r;
}

int as_run_once(const struct as_run_request *q, struct as_run *ret, struct as_error *err)
{
	struct redirection redirection = {.saved = {-1, -1, -1}, .pipe_fd = -1};
	struct as_target target;
	struct as_error own = {0};
	int r;

	*ret = (struct as_run){0};
	for (int m = 0; m < AS_ROWS_MAX; m++)
		ret->v[m] = NAN;
	r = prepare_child(q, &redirection, &own);
	if (r == AS_OK) {
		r = as_target_prepare(q->argv, q->folder, &target, &own);
		if (r < 0)
			ret->exec_errno = own.sys_errno ? own.sys_errno : ENOENT;
	}
	restore(&redirection);
	if (r == AS_OK) {
		r = release_and_wait(q, &target, redirection.pipe_fd, ret, &own);
		as_target_clear(&target);
	}
	as_close_autop(&redirection.pipe_fd);
	if (r < 0 && err)
		*err = own;
	return r;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Is what has been recorded enough? A forked process gives names to its copy of the recording and
 * has it judged; the recording goes on meanwhile. Looks are few and ever further apart: each one
 * is another chance to stop by luck.
 */
#include "collect/record_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "stats/until.h"

#define FIRST_NS (AS_UNTIL_FIRST_S * 1000000000ull)

/* In the forked process: the judgement goes into the pipe. */
static void __attribute__((noreturn)) judge(struct as_recording *r, int pipe_fd)
{
	struct as_resolve_options o = r->q->resolve;
	struct as_judgement j = {.factor = INFINITY};
	char path[64];
	int fd;

	(void)setpriority(PRIO_PROCESS, 0, 10); /* it would only take longer */
	o.names_only = true;
	fd = as_session_writer_divert(r->w, NULL);
	if (fd < 0 || as_recorder_resolve(r->rec, &o, NULL) < 0)
		_exit(1);
	as_session_writer_flush(r->w);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (r->q->judge(r->q->judge_ctx, path, &j) < 0)
		_exit(1);
	_exit(as_write_all(pipe_fd, (const char *)&j, sizeof j, NULL) < 0);
}

static void begin(struct as_recording *r)
{
	int p[2];
	pid_t pid;

	if (pipe2(p, O_CLOEXEC))
		return;
	as_session_writer_flush(r->w);
	pid = fork();
	if (pid == 0)
		judge(r, p[1]);
	close(p[1]);
	if (pid < 0) {
		close(p[0]);
		return;
	}
	r->look = (struct as_look_child){pid, p[0]};
}

/* False: none yet. */
static bool take(struct as_recording *r, bool wait, struct as_judgement *ret)
{
	pid_t pid;
	ssize_t n;
	int status;

	do
		pid = waitpid(r->look.pid, &status, wait ? 0 : WNOHANG);
	while (pid < 0 && errno == EINTR);
	if (pid == 0)
		return false;
	n = read(r->look.fd, ret, sizeof *ret);
	if (n != sizeof *ret)
		*ret = (struct as_judgement){.factor = INFINITY};
	ret->row[sizeof ret->row - 1] = 0;
	close(r->look.fd);
	r->look.pid = 0;
	return true;
}

static bool is_due(const struct as_recording *r, uint64_t now)
{
	if (as_recording_has_runs(r))
		return r->out->runs >= AS_MAX(r->look_runs, (uint64_t)AS_UNTIL_RUNS);
	return now - r->first_ns >= AS_MAX(r->look_ns, FIRST_NS);
}

bool as_recording_look(struct as_recording *r, uint64_t now, bool wait)
{
	struct as_judgement j = {0};
	double more;

	if (!r->q->judge)
		return false;
	if (!r->look.pid && is_due(r, now))
		begin(r);
	if (!r->look.pid || !take(r, wait, &j))
		return false;
	more = as_until_growth(j.factor);
	r->look_ns = (uint64_t)((double)(now - r->first_ns) * more);
	r->look_runs = (uint64_t)ceil((double)r->out->runs * more);
	if (r->q->judged)
		r->q->judged(r->q->judge_ctx, &j, now - r->first_ns, r->out->runs);
	r->out->enough = j.enough;
	return j.enough;
}

void as_recording_end_look(struct as_recording *r)
{
	struct as_judgement j;

	if (r->look.pid)
		(void)take(r, true, &j); /* it ends soon by itself */
}

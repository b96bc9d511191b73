/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Children with an end: see child.h. */
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"

extern char **environ;

#define OUTPUT_MAX ((size_t)64 << 20)
#define LOOK_MS    20           /* between looks for its end: not every kernel has pidfds */
#define LINGER_NS  200000000ull /* output still on its way after the end */

struct streams {
	int fd[2]; /* -1: not kept, or at its end */
	struct as_buf *to[2];
	size_t max;
};

static int open_pipe(int fds[2], struct as_error *err)
{
	if (pipe2(fds, O_CLOEXEC) == 0)
		return AS_OK;
	return as_fail(err, AS_E_IO, errno, "cannot make a pipe: %s", strerror(errno));
}

static void route(posix_spawn_file_actions_t *a, int to, int fd)
{
	if (fd >= 0)
		(void)posix_spawn_file_actions_adddup2(a, fd,
						       to); /* EBADF shows in the spawn */
}

static int spawn(const struct as_child_request *q, const int write_end[2], pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, usual;
	int e;

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	sigemptyset(&none);
	sigemptyset(&usual);
	sigaddset(&usual, SIGINT);
	sigaddset(&usual, SIGTERM);
	sigaddset(&usual, SIGPIPE);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
						POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &usual);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO,
					 q->input ? q->input : "/dev/null", O_RDONLY, 0);
	route(&actions, STDOUT_FILENO, q->output_to_errors ? STDERR_FILENO : write_end[0]);
	route(&actions, STDERR_FILENO, write_end[1]);
	if (q->held && *q->held >= 0) /* onto itself: it is not closed */
		(void)posix_spawn_file_actions_adddup2(&actions, *q->held, *q->held);
	if (q->folder)
		posix_spawn_file_actions_addchdir_np(&actions, q->folder);
	e = posix_spawnp(ret_pid, q->argv[0], &actions, &attr, (char *const *)q->argv,
			 q->environment ? q->environment : environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return e;
}

static void take(struct streams *s, int k)
{
	char room[1 << 16];
	ssize_t n = read(s->fd[k], room, sizeof room);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		close(s->fd[k]);
		s->fd[k] = -1;
		return;
	}
	if (s->to[k]->len < s->max)
		as_buf_add(s->to[k], room, AS_MIN((size_t)n, s->max - s->to[k]->len));
}

static void read_some(struct streams *s)
{
	struct pollfd p[2] = {{.fd = s->fd[0], .events = POLLIN},
			      {.fd = s->fd[1], .events = POLLIN}};

	if (poll(p, 2, LOOK_MS) <= 0)
		return;
	for (int k = 0; k < 2; k++) {
		if (s->fd[k] >= 0 && p[k].revents)
			take(s, k);
	}
}

/* Until the child's end and that of its output; kills it when it is time. */
static void attend(const struct as_child_request *q, pid_t pid, struct streams *s,
		   struct as_child *ret)
{
	uint64_t start = as_now_ns(), ended = 0;

	for (;;) {
		uint64_t now = as_now_ns();

		if (!ended && waitpid(pid, &ret->wait_status, WNOHANG) == pid) {
			ended = now;
			ret->seconds = (double)(now - start) / 1e9;
		}
		if (ended && (now - ended > LINGER_NS || (s->fd[0] < 0 && s->fd[1] < 0)))
			break;
		if (!ended && q->interrupted && *q->interrupted)
			ret->stopped = true;
		if (!ended && q->timeout_s > 0 && (double)(now - start) / 1e9 > q->timeout_s)
			ret->timed_out = true;
		if (!ended && (ret->stopped || ret->timed_out))
			(void)kill(-pid, SIGKILL); /* gone already: waitpid tells */
		read_some(s);
	}
	(void)kill(-pid, SIGKILL); /* what it left behind */
}

int as_child_run(const struct as_child_request *q, struct as_child *ret, struct as_error *err)
{
	struct streams s = {.fd = {-1, -1},
			    .to = {&ret->out, &ret->errors},
			    .max = q->output_max ? q->output_max : OUTPUT_MAX};
	const bool kept[2] = {!q->pass_output && !q->output_to_errors, !q->pass_errors};
	int write_end[2] = {-1, -1}, r = AS_OK, e;
	pid_t pid;

	*ret = (struct as_child){0};
	for (int k = 0; k < 2 && r == AS_OK; k++) {
		int fds[2];

		r = kept[k] ? open_pipe(fds, err) : AS_OK;
		if (r == AS_OK && kept[k]) {
			s.fd[k] = fds[0];
			write_end[k] = fds[1];
		}
	}
	e = r == AS_OK ? spawn(q, write_end, &pid) : 0;
	for (int k = 0; k < 2; k++)
		as_close_autop(&write_end[k]);
	if (r == AS_OK && e)
		r = as_fail(err,
			    e == ENOENT   ? AS_E_NOTFOUND
			    : e == EACCES ? AS_E_ACCESS
					  : AS_E_IO,
			    e, "cannot run '%s': %s", q->argv[0], strerror(e));
	if (r == AS_OK)
		attend(q, pid, &s, ret);
	for (int k = 0; k < 2; k++)
		as_close_autop(&s.fd[k]);
	return r;
}

void as_child_clear(struct as_child *c)
{
	as_buf_clear(&c->out);
	as_buf_clear(&c->errors);
}

void as_child_ended(const struct as_child *c, struct as_buf *out)
{
	if (c->timed_out)
		as_buf_addf(out, "no end after %.3g s", c->seconds);
	else if (WIFSIGNALED(c->wait_status))
		as_buf_addf(out, "signal %d (%s)", WTERMSIG(c->wait_status),
			    strsignal(WTERMSIG(c->wait_status)));
	else
		as_buf_addf(out, "status %d", WEXITSTATUS(c->wait_status));
}

void as_child_last_words(const struct as_buf *said, unsigned lines, struct as_buf *out)
{
	enum { BYTES = 600 };
	const char *text = as_buf_str(said);
	size_t end = said->len, start;

	while (end && (text[end - 1] == '\n' || text[end - 1] == ' '))
		end--;
	for (start = end; start && end - start < BYTES; start--) {
		if (text[start - 1] == '\n' && --lines == 0)
			break;
	}
	while (start < end) {
		size_t n = strcspn(text + start, "\n");

		as_buf_adds(out, "\n  ");
		as_fmt_text(out, text + start, AS_MIN(n, end - start));
		start += n + 1;
	}
}

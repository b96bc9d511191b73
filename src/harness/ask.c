/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Workers, from the outside: see ask_priv.h. */
#include "harness/ask_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"

extern char **environ;

#define FD_OUT   198 /* above what make and shells hand on */
#define FD_CTL   199
#define POLL_MS  5    /* without a pidfd */
#define END_MS   2000 /* a worker that said done ends at once; a debugger may make it slower */
#define PAD_NAME "ASSAY_PAD="
#define OUR_NAME "ASSAY_BENCH_" /* of variables that are not handed on */

/* ---- start ---- */

struct environment {
	AS_VEC(char *) v;
	char *own[3]; /* to be freed */
};

static void make_environment(const struct as_fn_side *side, const char *id,
			     const struct as_question *q, unsigned pad, struct environment *ret)
{
	char *const *env = side->env ? side->env : environ;
	struct as_buf question = {0}, padding = {0};

	*ret = (struct environment){0};
	for (; *env; env++) {
		if (strncmp(*env, OUR_NAME, sizeof OUR_NAME - 1) != 0 &&
		    strncmp(*env, PAD_NAME, sizeof PAD_NAME - 1) != 0)
			as_vec_push(&ret->v, *env);
	}
	as_buf_adds(&question, AS_BENCH_ENV "=");
	as_question_text(q, &question);
	as_buf_adds(&padding, PAD_NAME);
	as_buf_fill(&padding, 'x', pad % AS_WORKER_PAD_MAX);
	ret->own[0] = as_buf_detach(&question);
	ret->own[1] = as_xasprintf("%s=%s", AS_BENCH_ENV_ID, id ? id : "");
	ret->own[2] = as_buf_detach(&padding);
	for (size_t i = 0; i < AS_ARRAY_LEN(ret->own); i++)
		as_vec_push(&ret->v, ret->own[i]);
	as_vec_push(&ret->v, NULL);
}

static void clear_environment(struct environment *e)
{
	for (size_t i = 0; i < AS_ARRAY_LEN(e->own); i++)
		free(e->own[i]);
	as_vec_clear(&e->v);
}

/* pipes: out, err, ctl; each read end, write end. */
static int open_pipes(int pipes[3][2], bool has_ctl, struct as_error *err)
{
	for (int i = 0; i < 3; i++)
		pipes[i][0] = pipes[i][1] = -1;
	for (int i = 0; i < (has_ctl ? 3 : 2); i++) {
		if (pipe2(pipes[i], O_CLOEXEC) < 0)
			return as_fail(err, AS_E_IO, errno, "cannot open a pipe: %s",
				       strerror(errno));
	}
	return AS_OK;
}

static void close_pipes(int pipes[3][2])
{
	for (int i = 0; i < 3; i++) {
		as_close_autop(&pipes[i][0]);
		as_close_autop(&pipes[i][1]);
	}
}

static int spawn(const struct as_fn_side *side, char *const *env, int pipes[3][2], pid_t *ret)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, plain;
	int e;

	(void)posix_spawn_file_actions_init(
		&files); /* fail only for lack of memory, then so does spawn */
	(void)posix_spawnattr_init(&attr);
	(void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&files, pipes[1][1], 2);
	(void)posix_spawn_file_actions_adddup2(&files, pipes[0][1], FD_OUT);
	if (pipes[2][0] >= 0)
		(void)posix_spawn_file_actions_adddup2(&files, pipes[2][0], FD_CTL);
	if (side->folder)
		(void)posix_spawn_file_actions_addchdir_np(&files, side->folder);
	(void)sigemptyset(&none);
	(void)sigemptyset(&plain);
	(void)sigaddset(&plain, SIGINT);
	(void)sigaddset(&plain, SIGTERM);
	(void)sigaddset(&plain, SIGPIPE);
	(void)posix_spawnattr_setsigmask(&attr, &none);
	(void)posix_spawnattr_setsigdefault(&attr, &plain);
	(void)posix_spawnattr_setpgroup(&attr, 0);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
						      POSIX_SPAWN_SETSIGDEF);
	e = posix_spawn(ret, side->exe, &files, &attr, side->argv, env);
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&files);
	return e;
}

/* Takes the read ends of out and err and the write end of ctl. */
static void adopt(struct as_worker *w, pid_t pid, int pipes[3][2])
{
	w->pid = pid;
	w->out = pipes[0][0];
	w->err = pipes[1][0];
	w->ctl = pipes[2][1];
	pipes[0][0] = pipes[1][0] = pipes[2][1] = -1;
	(void)fcntl(w->out, F_SETFL, O_NONBLOCK); /* without: read where poll says so */
	if (w->err >= 0)
		(void)fcntl(w->err, F_SETFL, O_NONBLOCK);
	w->pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

static void init(struct as_worker *w)
{
	*w = (struct as_worker){.out = -1, .err = -1, .ctl = -1, .pidfd = -1};
	w->start_ns = as_now_ns();
}

int as_worker_start(const struct as_fn_side *side, const char *id, const struct as_question *q,
		    unsigned pad, struct as_worker *ret, struct as_error *err)
{
	struct as_question asked = *q;
	struct environment env;
	int pipes[3][2];
	pid_t pid = 0;
	int e, r;

	init(ret);
	asked.fd = FD_OUT;
	asked.ctl = q->ask == AS_ASK_SERVE ? FD_CTL : -1;
	r = open_pipes(pipes, q->ask == AS_ASK_SERVE, err);
	if (r < 0) {
		close_pipes(pipes);
		return r;
	}
	make_environment(side, id, &asked, pad, &env);
	ret->start_ns = as_now_ns();
	e = spawn(side, env.v.v, pipes, &pid);
	if (e == 0)
		adopt(ret, pid, pipes);
	else
		r = as_fail(err, AS_E_IO, e, "cannot run '%s': %s", side->exe, strerror(e));
	close_pipes(pipes);
	clear_environment(&env);
	return r;
}

static bool has_threads(void)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	const char *p;

	if (as_read_file("/proc/self/status", 64 << 10, &text, NULL) < 0)
		return true;
	p = strstr(as_buf_str(&text), "\nThreads:");
	return !p || strncmp(p, "\nThreads:\t1\n", strlen("\nThreads:\t1\n")) != 0;
}

int as_worker_here(const struct as_fn_request *q, const struct as_question *question,
		   struct as_worker *ret, bool *ret_forked, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf text = {0};
	int pipes[3][2];
	pid_t pid = 0;
	int r;

	init(ret);
	as_question_text(question, &text);
	r = open_pipes(pipes, false, err);
	*ret_forked = !has_threads();
	if (r == AS_OK && *ret_forked)
		pid = fork();
	if (r == AS_OK && *ret_forked && pid == 0) {
		(void)setpgid(0, 0); /* the parent does it as well: whoever is first */
		(void)dup2(pipes[1][1], 2);
		_exit(q->here(q->here_ctx, as_buf_str(&text), pipes[0][1]) < 0 ? 2 : 0);
	}
	if (pid < 0)
		r = as_fail(err, AS_E_IO, errno, "cannot fork: %s", strerror(errno));
	if (r == AS_OK && pid > 0)
		(void)setpgid(pid, pid);
	/* an answer fits the pipe: it is read only afterwards */
	if (r == AS_OK && !*ret_forked)
		(void)q->here(q->here_ctx, as_buf_str(&text), pipes[0][1]); /* said as error */
	if (r == AS_OK)
		adopt(ret, pid, pipes);
	close_pipes(pipes);
	return r;
}

/* ---- listen ---- */

/* false: it is at its end. */
static bool drain_errors(struct as_worker *w)
{
	char part[4096];
	ssize_t n;

	while ((n = read(w->err, part, sizeof part)) > 0) {
		size_t keep = AS_MIN((size_t)n, sizeof w->tail);

		if (w->tail_n + keep > sizeof w->tail) {
			size_t cut = w->tail_n + keep - sizeof w->tail;

			memmove(w->tail, w->tail + cut, w->tail_n - cut);
			w->tail_n -= cut;
		}
		memcpy(w->tail + w->tail_n, part + (size_t)n - keep, keep);
		w->tail_n += keep;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static int take_lines(struct as_worker *w, struct as_answer *a, struct as_error *err)
{
	char *at = w->text.p, *end = at + w->text.len, *line_end;
	int r = AS_OK;

	while (r == AS_OK && at < end && !a->done && !a->error && !a->missing &&
	       (line_end = memchr(at, '\n', (size_t)(end - at)))) {
		r = as_answer_line(a, at, (size_t)(line_end - at), err);
		at = line_end + 1;
	}
	if (w->text.p) {
		w->text.len = (size_t)(end - at);
		memmove(w->text.p, at, w->text.len);
		w->text.p[w->text.len] = 0;
	}
	return r;
}

/* 1: more may come; 0: its end; < 0: damaged. */
static int drain_answer(struct as_worker *w, struct as_answer *a, struct as_error *err)
{
	char part[16384];
	ssize_t n;

	while ((n = read(w->out, part, sizeof part)) > 0) {
		int r;

		w->total += (size_t)n;
		if (w->total > AS_ANSWER_BYTES)
			return as_fail(err, AS_E_LIMIT, 0, "an answer of more than %u MiB",
				       AS_ANSWER_BYTES >> 20);
		as_buf_add(&w->text, part, (size_t)n);
		r = take_lines(w, a, err);
		if (r < 0)
			return r;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void reap(struct as_worker *w, bool wait)
{
	pid_t r;

	if (w->ended || w->pid <= 0)
		return;
	do
		r = waitpid(w->pid, &w->status, wait ? 0 : WNOHANG);
	while (r < 0 && errno == EINTR);
	if (r != 0) {
		w->ended = true;
		w->wall_s = (double)(as_now_ns() - w->start_ns) / 1e9;
	}
}

static bool is_complete(const struct as_answer *a)
{
	return a->done || a->error || a->missing;
}

/* Waits for something to happen; ms of poll. */
static void wait_for_news(struct as_worker *w, uint64_t until_ns)
{
	uint64_t now = as_now_ns();
	uint64_t left = until_ns > now ? (until_ns - now) / 1000000 + 1 : 0;
	int most = w->pid > 0 && w->pidfd < 0 ? POLL_MS : 1000;
	struct pollfd p[3] = {{.fd = w->out, .events = POLLIN},
			      {.fd = w->err, .events = POLLIN},
			      {.fd = w->ended ? -1 : w->pidfd, .events = POLLIN}};

	(void)poll(p, 3,
		   left < (uint64_t)most ? (int)left : most); /* or a signal: looked at anew */
}

int as_worker_listen(struct as_worker *w, struct as_answer *a, uint64_t until_ns,
		     const volatile int *interrupted, struct as_error *err)
{
	while (!is_complete(a)) {
		bool was_ended;
		int r = 1;

		if (interrupted && *interrupted)
			return as_fail(err, AS_E_CANCELLED, 0, "interrupted");
		if (as_now_ns() >= until_ns)
			return as_fail(err, AS_E_LIMIT, 0, "too late");
		wait_for_news(w, until_ns);
		/* what it wrote before its end is in the pipe by now */
		reap(w, false);
		was_ended = w->ended || w->pid <= 0;
		if (w->err >= 0 && !drain_errors(w))
			as_close_autop(&w->err), w->err = -1;
		if (w->out >= 0)
			r = drain_answer(w, a, err);
		if (r < 0)
			return r;
		if (r == 0)
			as_close_autop(&w->out), w->out = -1;
		if (was_ended && !is_complete(a))
			return as_fail(err, AS_E_IO, 0, "it ended");
	}
	return AS_OK;
}

/* ---- end ---- */

void as_worker_end(struct as_worker *w)
{
	uint64_t until = as_now_ns() + END_MS * 1000000ull;

	as_close_autop(&w->ctl);
	while (w->pid > 0 && !w->ended && as_now_ns() < until) {
		struct pollfd p = {.fd = w->pidfd, .events = POLLIN};

		(void)poll(&p, 1, w->pidfd >= 0 ? 100 : 1);
		reap(w, false);
		if (w->err >= 0)
			(void)drain_errors(w); /* else it could wait for us */
	}
	if (w->pid > 0) {
		/* the group outlives its first process as long as somebody is in it */
		w->left = kill(-w->pid, SIGKILL) == 0 && w->ended;
		reap(w, true);
	}
	if (w->err >= 0)
		(void)drain_errors(w);
	as_close_autop(&w->out);
	as_close_autop(&w->err);
	as_close_autop(&w->pidfd);
	w->out = w->err = w->ctl = w->pidfd = -1;
	as_buf_clear(&w->text);
	w->pid = 0;
}

/* A line that says why: a Rust panic's or a sanitizer's, else the last one. */
static void add_reason(const struct as_worker *w, struct as_buf *out)
{
	static const char *const marks[] = {"panicked at", "ERROR: ", "runtime error: "};
	AS_CLEANUP(as_free_autop) char *text = as_xstrndup(w->tail, w->tail_n);
	size_t n = strlen(text);
	const char *line = NULL;

	while (n && strchr("\n ", text[n - 1]))
		text[--n] = 0;
	if (!n)
		return;
	for (size_t i = 0; i < AS_ARRAY_LEN(marks) && !line; i++)
		line = strstr(text, marks[i]);
	if (!line)
		line = text + n;
	while (line > text && line[-1] != '\n')
		line--;
	/* since Rust 1.73 a panic's message is on the line after its place */
	for (char *p = text + (line - text); *p; p++) {
		if (*p == '\n' && p[1] && p > line && p[-1] == ':')
			*p = ' ';
	}
	as_buf_adds(out, ": ");
	as_fmt_quoted(out, line, strcspn(line, "\n"));
}

void as_worker_describe(const struct as_worker *w, struct as_buf *out)
{
	if (!w->ended && w->pid > 0)
		as_buf_adds(out, "was ended");
	else if (WIFSIGNALED(w->status))
		as_buf_addf(out, "was killed by signal %d (%s)", WTERMSIG(w->status),
			    strsignal(WTERMSIG(w->status)));
	else
		as_buf_addf(out, "ended with status %d in the middle", WEXITSTATUS(w->status));
	add_reason(w, out);
}

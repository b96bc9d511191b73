/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The program that is recorded: launched and held before exec, or attached to. Nothing of the
 * target is changed: no ptrace, no death signal, its descriptors, mask and dispositions are those
 * assay itself was started with, it stays in the same process group on the same terminal.
 *
 *	fork ── child: restore signals, shrink, "ready", read(hold) ──byte──> execve
 *	                                                    └─ end of file: _exit
 *	execve ──ok──> the exec_err pipe closes
 *	       └─ fails: errno into the exec_err pipe
 */
#include "collect/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "collect/target_priv.h"

#define STEAL_FD(fd)                                                                           \
	({                                                                                     \
		int steal_ = (fd);                                                             \
		(fd) = -1;                                                                     \
		steal_;                                                                        \
	})

extern char **environ;

/* Signal state at program start, written once before main and read-only after. */
static struct {
	sigset_t mask, ignored;
} start_state;

__attribute__((constructor)) static void remember_start_state(void)
{
	sigprocmask(SIG_SETMASK, NULL, &start_state.mask);
	sigemptyset(&start_state.ignored);
	for (int s = 1; s < NSIG; s++) {
		struct sigaction sa;

		if (!sigaction(s, NULL, &sa) && sa.sa_handler == SIG_IGN)
			sigaddset(&start_state.ignored, s);
	}
}

static void restore_start_state(void)
{
	for (int s = 1; s < NSIG; s++) {
		struct sigaction sa;
		bool ignored = sigismember(&start_state.ignored, s) == 1;

		if (sigaction(s, NULL, &sa) || (sa.sa_handler == SIG_IGN) == ignored)
			continue;
		memset(&sa, 0, sizeof sa);
		sa.sa_handler = ignored ? SIG_IGN : SIG_DFL;
		sigaction(s, &sa, NULL);
	}
	/* Handlers of ours would run in the held child; exec resets them only later. */
	for (int s = 1; s < NSIG; s++) {
		struct sigaction sa;

		if (!sigaction(s, NULL, &sa) && sa.sa_handler != SIG_IGN &&
		    sa.sa_handler != SIG_DFL)
			signal(s, SIG_DFL);
	}
	sigprocmask(SIG_SETMASK, &start_state.mask, NULL);
}

/* 0 when path can be executed, else the errno execve would give. */
static int executable(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return errno;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) ? errno : 0;
}

static char *search_path(const char *name, int *ret_errno)
{
	const char *path = getenv("PATH");
	int worst = ENOENT;

	if (!path)
		path = "/bin:/usr/bin";
	for (;;) {
		size_t n = strcspn(path, ":");
		AS_CLEANUP(as_free_autop)
		char *full = n ? as_xasprintf("%.*s/%s", (int)n, path, name) : as_xstrdup(name);
		int e = executable(full);

		if (!e)
			return AS_STEAL(full);
		if (e == EACCES)
			worst = EACCES;
		if (!path[n])
			break;
		path += n + 1;
	}
	*ret_errno = worst;
	return NULL;
}

/* What a script names behind #!; NULL: it is none. */
static char *interpreter_of(const char *path)
{
	AS_CLEANUP(as_close_autop) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char line[256];
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
	const char *p;

	if (n < 3 || line[0] != '#' || line[1] != '!')
		return NULL;
	line[n] = 0;
	p = line + 2 + strspn(line + 2, " \t");
	return as_xstrndup(p, strcspn(p, " \t\r\n"));
}

/* execve says "no such file" or "permission denied" for what a program needs to be run, too. */
static int fail_needed(struct as_error *err, int e, const char *path)
{
	AS_CLEANUP(as_free_autop) char *interpreter = interpreter_of(path);
	enum as_status status = e == ENOENT ? AS_E_NOTFOUND : AS_E_ACCESS;

	if (interpreter)
		return as_fail(err, status, e,
			       "cannot run '%s': its interpreter '%s' (first line): %s", path,
			       interpreter, strerror(e));
	return as_fail(err, status, e,
		       "cannot run '%s': the loader it asks for: %s"
		       "\n  which one: readelf -l '%s' | grep interpreter",
		       path, strerror(e), path);
}

static int fail_exec(struct as_error *err, int e, const char *name)
{
	const char *why = strerror(e);
	struct stat st;

	if (e == EACCES && stat(name, &st) == 0 && S_ISDIR(st.st_mode))
		return as_fail(err, AS_E_ACCESS, e, "cannot run '%s': it is a folder", name);
	if (e == EACCES && stat(name, &st) == 0 && S_ISREG(st.st_mode) && !(st.st_mode & 0111))
		return as_fail(err, AS_E_ACCESS, e,
			       "cannot run '%s': it is not executable\n  chmod +x '%s'", name,
			       name);
	if (e == ENOENT && !strchr(name, '/') && executable(name) == 0)
		return as_fail(err, AS_E_NOTFOUND, e,
			       "cannot run '%s': it is not in PATH, but here:"
			       "\n  assay record -- './%s' …",
			       name, name);
	if (e == ENOENT && !strchr(name, '/'))
		return as_fail(err, AS_E_NOTFOUND, e, "cannot run '%s': it is not in PATH",
			       name);
	return as_fail(err, e == ENOENT || e == ENOTDIR ? AS_E_NOTFOUND : AS_E_ACCESS, e,
		       "cannot run '%s': %s", name, why);
}

static int resolve_program(const char *name, char **ret, struct as_error *err)
{
	int e = ENOENT;

	if (!*name)
		return fail_exec(err, ENOENT, name);
	if (!strchr(name, '/')) {
		*ret = search_path(name, &e);
		return *ret ? 0 : fail_exec(err, e, name);
	}
	e = executable(name);
	if (e)
		return fail_exec(err, e, name);
	*ret = as_xstrdup(name);
	return 0;
}

struct child_plan {
	const char *path, *folder; /* folder NULL: the current one */
	char *const *argv,
		**sh_argv; /* sh_argv: for text files without #!, as execvp runs them */
	int hold, exec_err;
	struct rusage *before; /* shared memory; NULL: there was none */
	struct as_lean lean;
};

static void __attribute__((noreturn)) run_child(const struct child_plan *p)
{
	char go;
	ssize_t n;
	int e;

	restore_start_state();
	as_lean_become(&p->lean);
	n = write(p->exec_err, &(char){0}, 1); /* ready; where assay has gone, read tells */
	do
		n = read(p->hold, &go, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(125); /* assay died or gave up before the start */
	if (p->before)
		(void)getrusage(RUSAGE_SELF, p->before); /* it knows us */
	if (!p->folder || chdir(p->folder) == 0)
		execve(p->path, p->argv, environ);
	if (errno == ENOEXEC)
		execve("/bin/sh", p->sh_argv, environ);
	e = errno;
	n = write(p->exec_err, &e, sizeof e);
	(void)n; /* nobody left to tell */
	_exit(127);
}

static char **shell_argv(const char *path, char *const argv[])
{
	size_t n = 0;
	char **v;

	while (argv[n])
		n++;
	v = as_xcalloc(n + 3, sizeof *v);
	v[0] = (char *)(uintptr_t) "/bin/sh";
	v[1] = (char *)(uintptr_t)path;
	for (size_t i = 1; i <= n; i++)
		v[i + 1] = argv[i];
	return v;
}

static int open_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static void target_init(struct as_target *t)
{
	memset(t, 0, sizeof *t);
	t->hold_fd = t->exec_err_fd = t->pidfd = -1;
}

static struct rusage *share_usage(void)
{
	void *p = mmap(NULL, sizeof(struct rusage), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int as_target_prepare(char *const argv[], const char *folder, struct as_target *ret,
		      struct as_error *err)
{
	AS_CLEANUP(as_free_autop) char *path = NULL;
	AS_CLEANUP(as_free_autop) char **sh_argv = NULL;
	AS_CLEANUP(as_close_autop) int hold_rd = -1;
	AS_CLEANUP(as_close_autop) int hold_wr = -1;
	AS_CLEANUP(as_close_autop) int err_rd = -1;
	AS_CLEANUP(as_close_autop) int err_wr = -1;
	struct child_plan plan = {.folder = folder, .argv = argv};
	int p[2], r = resolve_program(argv[0], &path, err);
	struct as_target t;
	char ready;

	if (r < 0)
		return r;
	if (pipe2(p, O_CLOEXEC))
		return as_fail(err, AS_E_IO, errno, "cannot make a pipe: %s", strerror(errno));
	hold_rd = p[0];
	hold_wr = p[1];
	if (pipe2(p, O_CLOEXEC))
		return as_fail(err, AS_E_IO, errno, "cannot make a pipe: %s", strerror(errno));
	err_rd = p[0];
	err_wr = p[1];
	sh_argv = shell_argv(path, argv);

	target_init(&t);
	plan.path = path;
	plan.sh_argv = sh_argv;
	plan.hold = hold_rd;
	plan.exec_err = err_wr;
	plan.before = t.shared = share_usage();
	as_lean_plan(&plan.lean);
	signal(SIGCHLD, SIG_DFL); /* ignored, the kernel would reap without an exit status */
	t.pid = fork();
	if (t.pid < 0)
		return as_fail(err, AS_E_IO, errno, "cannot fork: %s", strerror(errno));
	if (t.pid == 0) {
		close(hold_wr); /* else the child would keep itself waiting when assay dies */
		run_child(&plan);
	}
	t.hold_fd = STEAL_FD(hold_wr);
	close(err_wr); /* else no end of file when the child has died */
	err_wr = -1;
	do
		p[0] = (int)read(err_rd, &ready, 1);
	while (p[0] < 0 && errno == EINTR);
	t.exec_err_fd = STEAL_FD(err_rd);
	t.pidfd = open_pidfd(t.pid);
	t.program_path = AS_STEAL(path);
	t.start_ns = as_now_ns();
	*ret = t;
	return 0;
}

/* The child wrote it before its exec, which is over. */
static void take_before(struct as_target *t)
{
	if (!t->shared)
		return;
	t->before = *t->shared;
	(void)munmap(t->shared, sizeof *t->shared); /* it was mapped */
	t->shared = NULL;
}

int as_target_release(struct as_target *t, struct as_error *err)
{
	char go = 1;
	int e = 0;
	ssize_t n;

	if (t->attached || t->released) {
		t->released = true;
		return 0;
	}
	t->start_ns = as_now_ns();
	if (as_write_all(t->hold_fd, &go, 1, NULL) < 0)
		return as_fail(err, AS_E_IO, EPIPE, "the program ended before it was started");
	close(t->hold_fd);
	t->hold_fd = -1;
	t->released = true;
	do
		n = read(t->exec_err_fd, &e, sizeof e);
	while (n < 0 && errno == EINTR);
	take_before(t);
	close(t->exec_err_fd);
	t->exec_err_fd = -1;
	if (n != sizeof e)
		return 0;
	while (wait4(t->pid, &t->wait_status, 0, &t->usage) < 0 && errno == EINTR)
		;
	t->exited = true;
	t->end_ns = as_now_ns();
	if ((e == ENOENT || e == EACCES) && executable(t->program_path) == 0)
		return fail_needed(err, e, t->program_path);
	return fail_exec(err, e, t->program_path);
}

static long leading_number(const char *p)
{
	long v = 0;

	for (; *p >= '0' && *p <= '9' && v < 100000000; p++)
		v = v * 10 + (*p - '0');
	return v;
}

/* Value of a "Name:\tN" line of /proc/PID/status; -1 when absent. */
static long status_field(pid_t pid, const char *name, char *ret_state)
{
	char path[64];
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	const char *p;

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	if (as_read_file(path, 1 << 20, &b, NULL) < 0)
		return -1;
	p = strstr(as_buf_str(&b), "\nState:\t");
	if (p && ret_state)
		*ret_state = p[8];
	p = strstr(as_buf_str(&b), name);
	return p ? leading_number(p + strlen(name)) : -1;
}

int as_target_attach(pid_t pid, struct as_target *ret, struct as_error *err)
{
	char link[64], exe[4096], state = '?';
	struct as_target t;
	long tgid, threads;
	ssize_t n;

	if (pid <= 0)
		return as_fail(err, AS_E_USAGE, 0, "%d is not a process id", (int)pid);
	if (kill(pid, 0) && errno == ESRCH)
		return as_fail(err, AS_E_NOTFOUND, ESRCH, "there is no process %d", (int)pid);
	tgid = status_field(pid, "\nTgid:\t", &state);
	threads = status_field(pid, "\nThreads:\t", NULL);
	if (tgid > 0 && tgid != pid)
		return as_fail(err, AS_E_USAGE, 0, "%d is a thread of process %ld; use -p %ld",
			       (int)pid, tgid, tgid);
	if ((state == 'Z' || state == 'X') && threads <= 1)
		return as_fail(err, AS_E_NOTFOUND, ESRCH, "process %d has already ended",
			       (int)pid);

	target_init(&t);
	t.pid = pid;
	t.attached = t.released = true;
	t.pidfd = open_pidfd(pid);
	snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
	n = readlink(link, exe, sizeof exe - 1);
	if (n > 0)
		t.program_path = as_xstrndup(exe, (size_t)n);
	t.start_ns = as_now_ns();
	*ret = t;
	return 0;
}

/* Fields 14 and 15 of /proc/PID/stat, after the name that may hold anything. */
bool as_process_cpu(pid_t pid, uint64_t *ret_user_ns, uint64_t *ret_sys_ns)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	uint64_t tick = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK);
	unsigned long long user, sys;
	const char *p;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (as_read_file(path, 8192, &b, NULL) < 0)
		return false;
	p = strrchr(as_buf_str(&b), ')');
	if (!p || sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
			 &sys) != 2)
		return false;
	*ret_user_ns = user * tick;
	*ret_sys_ns = sys * tick;
	return true;
}

/* Second field of /proc/PID/schedstat; 0 where the kernel does not count. */
static uint64_t run_wait(pid_t pid)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	unsigned long long wait;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
	if (as_read_file(path, 256, &b, NULL) < 0 ||
	    sscanf(as_buf_str(&b), "%*u %llu", &wait) != 1)
		return 0;
	return wait;
}

/* A child that has ended still has its account until it is waited for. */
static void read_own_account(struct as_target *t)
{
	siginfo_t info = {0};
	uint64_t user, sys;

	if (!waitid(P_PID, (id_t)t->pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid &&
	    as_process_cpu(t->pid, &user, &sys)) {
		t->own_cpu_ns = user + sys;
		t->run_wait_ns = run_wait(t->pid);
	}
}

bool as_target_poll(struct as_target *t)
{
	if (t->exited)
		return true;
	if (t->attached) {
		struct pollfd p = {.fd = t->pidfd, .events = POLLIN};

		if (t->pidfd >= 0)
			t->exited = poll(&p, 1, 0) == 1;
		else
			t->exited = kill(t->pid, 0) && errno == ESRCH;
	} else {
		read_own_account(t);
		pid_t r = wait4(t->pid, &t->wait_status, WNOHANG, &t->usage);

		/* ECHILD: reaped by somebody else in this process; nothing more to learn */
		t->exited = r == t->pid || (r < 0 && errno == ECHILD);
	}
	if (t->exited)
		t->end_ns = as_now_ns();
	return t->exited;
}

void as_target_clear(struct as_target *t)
{
	if (!t)
		return;
	/* a child that still waits sees the end of file and leaves */
	as_close_autop(&t->hold_fd);
	as_close_autop(&t->exec_err_fd);
	as_close_autop(&t->pidfd);
	take_before(t);
	if (!t->attached && !t->released && !t->exited && t->pid > 0)
		while (waitpid(t->pid, &t->wait_status, 0) < 0 && errno == EINTR)
			;
	free(t->program_path);
	target_init(t);
}

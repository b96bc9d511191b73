/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "hook/stop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/sys.h"
#include "hook/maps.h"

#define CS_64        0x33
#define MAX_STEPS    16 /* stops of other kinds while one instruction is stepped */
#define VDSO_SEARCH  (1u << 20)
#define SPIN_NS      200000 /* a stop usually comes within */
#define NAP_NS       50000
#define REAP_WAIT_NS 1000000000ull

#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif

/* ---- what /proc says of a thread ---- */

struct task_facts {
	char state;
	int tracer, parent;
	uint64_t pending, shared_pending, blocked, caught;
	int seccomp;
};

static bool task_facts(pid_t pid, pid_t tid, struct task_facts *ret)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char path[64], *line, *rest = NULL;

	memset(ret, 0, sizeof *ret);
	snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)pid, (int)tid);
	if (as_read_file(path, 1 << 16, &b, NULL) < 0 || !b.p)
		return false;
	for (line = strtok_r(b.p, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		unsigned long v;

		if (sscanf(line, "State: %c", &ret->state) == 1 ||
		    sscanf(line, "TracerPid: %d", &ret->tracer) == 1 ||
		    sscanf(line, "PPid: %d", &ret->parent) == 1 ||
		    sscanf(line, "Seccomp: %d", &ret->seccomp) == 1)
			continue;
		if (sscanf(line, "SigPnd: %lx", &v) == 1)
			ret->pending = v;
		else if (sscanf(line, "ShdPnd: %lx", &v) == 1)
			ret->shared_pending = v;
		else if (sscanf(line, "SigBlk: %lx", &v) == 1)
			ret->blocked = v;
		else if (sscanf(line, "SigCgt: %lx", &v) == 1)
			ret->caught = v;
	}
	return ret->state != 0;
}

/* ---- stopping ---- */

static struct as_stopped *find_thread(struct as_stop *s, pid_t tid)
{
	as_vec_foreach (t, &s->thread) {
		if (t->tid == tid)
			return t;
	}
	return NULL;
}

static void forget_thread(struct as_stop *s, size_t i)
{
	s->thread.v[i] = s->thread.v[--s->thread.n];
}

static int fail_seize(struct as_stop *s, pid_t tid, int e, struct as_error *err)
{
	struct task_facts f;

	if (task_facts(s->pid, tid, &f) && f.tracer && f.tracer != getpid())
		return as_fail(err, AS_E_ACCESS, e,
			       "process %d is being traced by process %d: end that first",
			       (int)s->pid, f.tracer);
	return as_fail(
		err, AS_E_ACCESS, e,
		"not allowed to trace process %d: %s\n"
		"  it must be yours and not setuid, and kernel.yama.ptrace_scope 0; or use "
		"root",
		(int)s->pid, strerror(e));
}

static int seize(struct as_stop *s, pid_t tid, struct as_error *err)
{
	long options = s->suspend_seccomp ? PTRACE_O_SUSPEND_SECCOMP : 0;
	struct task_facts f;

	if (ptrace(PTRACE_SEIZE, tid, NULL, options) < 0) {
		int e = errno;

		if (e == ESRCH || !task_facts(s->pid, tid, &f) || f.state == 'Z' ||
		    f.state == 'X')
			return 0; /* it has ended */
		return fail_seize(s, tid, e, err);
	}
	as_vec_push(&s->thread, (struct as_stopped){.tid = tid});
	(void)ptrace(PTRACE_INTERRUPT, tid, NULL,
		     NULL); /* fails when it has ended: seen below */
	return 0;
}

/* Asks every thread that is not known yet to stop; *ret_new: how many there were. */
static int seize_new(struct as_stop *s, size_t *ret_new, struct as_error *err)
{
	size_t before = s->thread.n;
	struct dirent *e;
	char path[64];
	int r = 0;
	DIR *d;

	snprintf(path, sizeof path, "/proc/%d/task", (int)s->pid);
	d = opendir(path);
	if (!d)
		return as_fail(err, AS_E_NOTFOUND, errno, "no process %d", (int)s->pid);
	while (r >= 0 && (e = readdir(d))) {
		uint64_t tid;

		if (as_parse_u64(e->d_name, &tid) && !find_thread(s, (pid_t)tid))
			r = seize(s, (pid_t)tid, err);
	}
	closedir(d);
	*ret_new = s->thread.n - before;
	return r;
}

/* Takes note of a stop: one that is there to deliver a signal keeps it. */
static void take_stop(struct as_stopped *t, int status)
{
	t->stopped = true;
	if (status >> 16)
		return;
	t->signal = WSTOPSIG(status);
	if (ptrace(PTRACE_GETSIGINFO, t->tid, NULL, &t->info) < 0)
		memset(&t->info, 0, sizeof t->info);
}

/* The end of a process that we have started is told by a wait that is not ours. */
static bool is_others(const struct as_stop *s, pid_t tid)
{
	struct task_facts f;

	return tid == s->pid && (!task_facts(tid, tid, &f) || f.parent == getpid());
}

/* A stop of the thread: 1; 0: not yet; -1: it has ended. What has ended while it was traced is there, and
 * keeps its process from ending, until its tracer has waited for it. */
static int poll_thread(const struct as_stop *s, pid_t tid, int *ret_status)
{
	siginfo_t info = {0};
	pid_t got;

	if (waitid(P_PID, (id_t)tid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL) <
	    0)
		return errno == EINTR ? 0 : -1;
	if (!info.si_pid)
		return 0;
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED && is_others(s, tid))
		return -1;
	got = waitpid(tid, ret_status, __WALL | WNOHANG);
	if (got <= 0)
		return got < 0 && errno != EINTR ? -1 : 0;
	return WIFSTOPPED(*ret_status) ? 1 : -1;
}

/* Threads that could not be let go because they end; the first one last, which ends last. */
static void reap(const struct as_stop *s, bool first)
{
	uint64_t begin = as_now_ns();

	as_vec_foreach (t, &s->thread) {
		int status;

		if (!t->ended || (t->tid == s->pid) != first || (first && is_others(s, t->tid)))
			continue;
		while (poll_thread(s, t->tid, &status) >= 0 &&
		       as_now_ns() - begin < REAP_WAIT_NS)
			nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
	}
}

/* Waits for all that have not stopped yet; one after the other, but all of them were asked before. */
static int wait_all(struct as_stop *s, struct as_error *err)
{
	uint64_t begin = as_now_ns();

	for (size_t i = 0; i < s->thread.n;) {
		struct as_stopped *t = &s->thread.v[i];
		int status;
		int got = t->stopped ? 1 : poll_thread(s, t->tid, &status);
		uint64_t waited = as_now_ns() - begin;

		if (t->stopped) {
			i++;
		} else if (got < 0) {
			forget_thread(s, i);
		} else if (got > 0) {
			take_stop(t, status);
		} else if (waited > AS_STOP_WAIT_NS) {
			return as_fail(err, AS_E_LIMIT, 0,
				       "thread %d of process %d does not stop: it waits in the "
				       "kernel (a file system that is gone, a vfork)",
				       (int)t->tid, (int)s->pid);
		} else if (waited > SPIN_NS) {
			nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
		}
	}
	return 0;
}

/* ---- system calls that were interrupted ---- */

/* Those that end with EINTR where others are begun again by the kernel (signal(7)): waits, and
 * sockets with a timeout. Of these, none has done anything yet when it says EINTR. */
static bool ends_with_eintr(long nr)
{
	static const int list[] = {
		SYS_epoll_wait,
		SYS_epoll_pwait,
		SYS_rt_sigtimedwait,
		SYS_semop,
		SYS_semtimedop,
		SYS_recvfrom,
		SYS_recvmsg,
		SYS_recvmmsg,
		SYS_sendto,
		SYS_sendmsg,
		SYS_sendmmsg,
		SYS_accept,
		SYS_accept4,
		SYS_read,
		SYS_readv,
		SYS_write,
		SYS_writev,
		SYS_io_getevents,
		333 /* io_pgetevents */,
		426 /* io_uring_enter */,
		441 /* epoll_pwait2 */,
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(list); i++)
		if (list[i] == nr)
			return true;
	return false;
}

/* Whether the program has a handler for a signal that has come or waits: that must end the call, as it
 * would have. One that is ignored must not; only threads that are traced are woken by such. */
static bool has_reason(const struct as_stop *s, const struct as_stopped *t)
{
	struct task_facts f;

	if (!task_facts(s->pid, t->tid, &f))
		return true;
	if (t->signal > 0 && t->signal <= 64 && f.caught >> (t->signal - 1) & 1)
		return true;
	return (f.pending | f.shared_pending) & ~f.blocked & f.caught;
}

static void begin_again(struct as_stop *s, struct as_stopped *t)
{
	if ((int64_t)t->regs.rax != -EINTR || (int64_t)t->regs.orig_rax < 0 ||
	    !ends_with_eintr((long)t->regs.orig_rax) || has_reason(s, t))
		return;
	t->regs.rip -= 2;
	t->regs.rax = t->regs.orig_rax;
	t->regs.orig_rax = (unsigned long long)-1;
	t->changed = true;
	s->restarted++;
}

static int read_registers(struct as_stop *s, struct as_error *err)
{
	for (size_t i = 0; i < s->thread.n;) {
		struct as_stopped *t = &s->thread.v[i];

		if (ptrace(PTRACE_GETREGS, t->tid, NULL, &t->regs) < 0) {
			forget_thread(s, i); /* killed */
			continue;
		}
		if (t->regs.cs != CS_64)
			return as_fail(
				err, AS_E_UNSUPPORTED, 0,
				"process %d runs 32-bit code: only x86-64 can be patched",
				(int)s->pid);
		begin_again(s, t);
		i++;
	}
	if (!s->thread.n)
		return as_fail(err, AS_E_NOTFOUND, 0, "process %d has ended", (int)s->pid);
	return 0;
}

static int stop_all(struct as_stop *s, struct as_error *err)
{
	size_t n = 0;
	int r;

	do {
		r = seize_new(s, &n, err);
		if (r < 0)
			return r;
		r = wait_all(s, err);
		if (r < 0)
			return r;
	} while (n);
	return read_registers(s, err);
}

int as_stop_all(pid_t pid, struct as_stop *ret, struct as_error *err)
{
	struct as_stop s = {.pid = pid, .begin_ns = as_now_ns()};
	struct task_facts f;
	int r;

	memset(ret, 0, sizeof *ret);
	if (!task_facts(pid, pid, &f) || f.state == 'Z' || f.state == 'X')
		return as_fail(err, AS_E_NOTFOUND, 0, "no process %d", (int)pid);
	if (pid == getpid())
		return as_fail(err, AS_E_USAGE, 0, "a process cannot stop itself");
	/* a filter may kill for a call of ours; without the right to suspend it SEIZE says so */
	s.suspend_seccomp = f.seccomp != 0;
	r = stop_all(&s, err);
	if (r < 0) {
		as_stop_resume(&s);
		return s.suspend_seccomp && r == AS_E_ACCESS
			       ? as_wrap(err,
					 "it has a seccomp filter, which only root can suspend")
			       : r;
	}
	*ret = s;
	return 0;
}

int as_stop_adopt(pid_t pid, struct as_stop *ret, struct as_error *err)
{
	struct as_stop s = {.pid = pid, .begin_ns = as_now_ns()};
	int r;

	memset(ret, 0, sizeof *ret);
	as_vec_push(&s.thread, (struct as_stopped){.tid = pid, .stopped = true});
	r = read_registers(&s, err);
	if (r < 0) {
		as_vec_clear(&s.thread);
		return r;
	}
	*ret = s;
	return 0;
}

void as_stop_resume(struct as_stop *s)
{
	as_vec_foreach (t, &s->thread) {
		/* each of these fails only when the thread has been killed meanwhile */
		if (t->changed)
			(void)ptrace(PTRACE_SETREGS, t->tid, NULL, &t->regs);
		if (t->signal && t->info.si_signo == t->signal)
			(void)ptrace(PTRACE_SETSIGINFO, t->tid, NULL, &t->info);
		t->ended = ptrace(PTRACE_DETACH, t->tid, NULL, (void *)(intptr_t)t->signal) < 0;
	}
	reap(s, false);
	reap(s, true);
	as_vec_clear(&s->thread);
	memset(s, 0, sizeof *s);
}

/* ---- calls ---- */

static bool find_in(pid_t pid, const struct as_map *m, uint64_t *ret)
{
	static const uint8_t syscall_insn[2] = {0x0f, 0x05};
	size_t n = AS_MIN(m->end - m->start, VDSO_SEARCH);
	char path[64];
	int fd;
	AS_CLEANUP(as_free_autop) uint8_t *p = as_xmalloc(n);
	const uint8_t *at;

	snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	at = as_pread_all(fd, p, n, m->start) < 0 ? NULL : memmem(p, n, syscall_insn, 2);
	close(fd);
	if (at)
		*ret = m->start + (uint64_t)(at - p);
	return at != NULL;
}

/* In the vdso, which every process has; where it was turned off, in any code. */
static bool find_syscall(struct as_stop *s, struct as_error *err)
{
	struct as_maps maps;

	if (s->syscall_avma)
		return true;
	if (as_maps_read(s->pid, &maps, err) < 0)
		return false;
	for (int vdso = 1; vdso >= 0 && !s->syscall_avma; vdso--) {
		as_vec_foreach (m, &maps.map) {
			if (m->exec && m->read && (m->kind == AS_MAP_VDSO) == vdso &&
			    find_in(s->pid, m, &s->syscall_avma))
				break;
		}
	}
	as_maps_clear(&maps);
	if (!s->syscall_avma)
		(void)as_fail(err, AS_E_NOTFOUND, 0,
			      "process %d has no code that makes a system call", (int)s->pid);
	return s->syscall_avma != 0;
}

/* Steps until the instruction behind the syscall; other stops that were pending come before. */
static int step_over(struct as_stop *s, struct as_stopped *t, struct user_regs_struct *regs,
		     struct as_error *err)
{
	for (int i = 0; i < MAX_STEPS; i++) {
		int status;

		if (ptrace(PTRACE_SINGLESTEP, t->tid, NULL, NULL) < 0 ||
		    waitpid(t->tid, &status, __WALL) < 0 || !WIFSTOPPED(status) ||
		    ptrace(PTRACE_GETREGS, t->tid, NULL, regs) < 0)
			return as_fail(err, AS_E_NOTFOUND, 0, "process %d ended meanwhile",
				       (int)s->pid);
		if (regs->rip == s->syscall_avma + 2)
			return 0;
	}
	return as_fail(err, AS_E_IO, 0, "a system call in process %d did not return",
		       (int)s->pid);
}

/* One without a signal to be delivered, if there is one. */
static struct as_stopped *caller(struct as_stop *s)
{
	as_vec_foreach (t, &s->thread) {
		if (!t->signal)
			return t;
	}
	return s->thread.v;
}

int as_stop_call(struct as_stop *s, long nr, const uint64_t arg[6], int64_t *ret,
		 struct as_error *err)
{
	const uint64_t all = UINT64_MAX;
	struct as_stopped *t = caller(s);
	struct user_regs_struct regs;
	uint64_t mask;
	int r;

	if (!find_syscall(s, err))
		return err ? err->status : AS_E_NOTFOUND;
	regs = t->regs;
	regs.rip = s->syscall_avma;
	regs.rax = (unsigned long long)nr;
	regs.orig_rax = (unsigned long long)-1; /* nothing is begun again for this one */
	regs.rdi = arg[0];
	regs.rsi = arg[1];
	regs.rdx = arg[2];
	regs.r10 = arg[3];
	regs.r8 = arg[4];
	regs.r9 = arg[5];
	if (ptrace(PTRACE_GETSIGMASK, t->tid, sizeof mask, &mask) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, t->tid, sizeof all, &all) < 0 ||
	    ptrace(PTRACE_SETREGS, t->tid, NULL, &regs) < 0)
		return as_fail(err, AS_E_NOTFOUND, errno, "process %d ended meanwhile",
			       (int)s->pid);
	t->changed = true;
	r = step_over(s, t, &regs, err);
	(void)ptrace(PTRACE_SETSIGMASK, t->tid, sizeof mask, &mask);
	(void)ptrace(PTRACE_SETREGS, t->tid, NULL, &t->regs);
	if (r < 0)
		return r;
	*ret = (int64_t)regs.rax;
	return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "hook/fork.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MAX_STOPS 16

#ifndef PTRACE_O_SUSPEND_SECCOMP
#define PTRACE_O_SUSPEND_SECCOMP (1 << 21)
#endif

static long options_of(const struct as_stop *s)
{
	return s->suspend_seccomp ? PTRACE_O_SUSPEND_SECCOMP : 0;
}

static int fail_gone(const struct as_stop *s, struct as_error *err)
{
	return as_fail(err, AS_E_NOTFOUND, errno, "process %d ended meanwhile", (int)s->pid);
}

/* Steps the thread until its clone has returned; on the way it tells the copy's id. */
static int step_clone(const struct as_stop *s, pid_t tid, struct user_regs_struct *regs,
		      pid_t *ret_copy, struct as_error *err)
{
	bool told = false;

	for (int i = 0; i < MAX_STOPS; i++) {
		unsigned long copy;
		int status;

		if (ptrace(PTRACE_SINGLESTEP, tid, NULL, NULL) < 0 ||
		    waitpid(tid, &status, __WALL) < 0 || !WIFSTOPPED(status))
			return fail_gone(s, err);
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_CLONE << 8)) {
			if (ptrace(PTRACE_GETEVENTMSG, tid, NULL, &copy) < 0)
				return fail_gone(s, err);
			*ret_copy = (pid_t)copy;
			told = true;
			continue;
		}
		if (ptrace(PTRACE_GETREGS, tid, NULL, regs) < 0)
			return fail_gone(s, err);
		if (regs->rip != s->syscall_avma + 2)
			continue;
		if (!told)
			return as_fail(err, AS_E_LIMIT, -(int)regs->rax,
				       "process %d cannot be copied", (int)s->pid);
		return 0;
	}
	return as_fail(err, AS_E_IO, 0, "a system call in process %d did not return",
		       (int)s->pid);
}

/* From now on it cannot outlive us. */
static int hold_copy(pid_t copy, struct as_error *err)
{
	int status;

	if (waitpid(copy, &status, __WALL) != copy || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, copy, NULL, (void *)(intptr_t)PTRACE_O_EXITKILL) < 0)
		return as_fail(err, AS_E_IO, errno, "copy %d of a process does not stop",
			       (int)copy);
	return 0;
}

int as_stop_fork(struct as_stop *s, pid_t *ret_copy, struct as_error *err)
{
	static const uint64_t none[6] = {0};
	const uint64_t all = UINT64_MAX;
	struct as_stopped *t = s->thread.v;
	struct user_regs_struct regs;
	uint64_t mask;
	int64_t pid;
	pid_t copy = 0;
	/* finds a place for system calls, and shows that they can be made */
	int r = as_stop_call(s, SYS_getpid, none, &pid, err);

	if (r < 0)
		return r;
	regs = t->regs;
	regs.rip = s->syscall_avma;
	regs.rax = SYS_clone;
	regs.orig_rax = (unsigned long long)-1;
	regs.rdi = regs.rsi = regs.rdx = regs.r10 = regs.r8 = 0;
	regs.rsp = 0;
	t->changed = true;
	if (ptrace(PTRACE_SETOPTIONS, t->tid, NULL,
		   (void *)(intptr_t)(options_of(s) | PTRACE_O_TRACECLONE)) < 0 ||
	    ptrace(PTRACE_GETSIGMASK, t->tid, sizeof mask, &mask) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, t->tid, sizeof all, &all) < 0 ||
	    ptrace(PTRACE_SETREGS, t->tid, NULL, &regs) < 0)
		return fail_gone(s, err);
	r = step_clone(s, t->tid, &regs, &copy, err);
	(void)ptrace(PTRACE_SETSIGMASK, t->tid, sizeof mask, &mask);
	(void)ptrace(PTRACE_SETOPTIONS, t->tid, NULL, (void *)(intptr_t)options_of(s));
	if (r == 0)
		r = hold_copy(copy, err);
	if (r == 0)
		*ret_copy = copy;
	else if (copy)
		as_stop_end_fork(0, copy);
	return r;
}

void as_stop_end_fork(pid_t pid, pid_t copy)
{
	const uint64_t arg[6] = {(uint64_t)copy, 0, __WALL | WNOHANG};
	struct as_stop s;
	int64_t got;

	/* each of these fails only where the copy, or its parent, is gone: then nothing is left */
	(void)kill(copy, SIGKILL);
	(void)waitpid(copy, NULL, __WALL);
	if (!pid || as_stop_all(pid, &s, NULL) < 0)
		return;
	(void)as_stop_call(&s, SYS_wait4, arg, &got, NULL);
	as_stop_resume(&s);
}

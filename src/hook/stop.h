/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A process held still: every thread stopped by ptrace, its registers at hand, system calls made in
 * its place, and then everything as if nothing had been.
 *
 *	as_stop_all(pid, &stop, err);
 *	as_stop_call(&stop, SYS_mmap, arg, &at, err);
 *	as_stop_resume(&stop);			// lets go of the process
 *
 * What a stop must not change, and how it is kept:
 *	threads that begin meanwhile	the list is read until it has nothing new
 *	pending signals			a stop that delivers one keeps it, and its sender's data
 *	signals during a call of ours	blocked for that thread while it lasts
 *	blocked system calls		those the kernel ends with EINTR are begun again, unless a
 *					signal is there to end them (a timeout then starts anew)
 *	job control			a stopped program stays stopped
 * All calls for one process must come from one thread (the kernel's rule). x86-64 only.
 *
 * Cost: about 0.1 ms and some us a thread; threads that run share the processors with us.
 */
#ifndef AS_HOOK_STOP_H
#define AS_HOOK_STOP_H

#include <stdbool.h>
#include <stdint.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/user.h>
#include "base/err.h"
#include "base/mem.h"

#define AS_STOP_WAIT_NS 5000000000ull /* for a thread to stop */

struct as_stopped {
	pid_t tid;
	bool stopped;
	bool ended;                   /* could not be let go */
	int signal;                   /* taken in the stop, delivered afterwards; 0: none */
	siginfo_t info;               /* of signal */
	struct user_regs_struct regs; /* as they will be when it goes on */
	bool changed;                 /* regs are to be written back */
};

struct as_stop {
	pid_t pid;
	AS_VEC(struct as_stopped) thread;
	uint64_t syscall_avma; /* a `syscall` instruction; 0: not yet looked for */
	uint64_t begin_ns;     /* CLOCK_MONOTONIC when the first thread was asked to stop */
	size_t restarted;      /* system calls begun again */
	bool suspend_seccomp;  /* its filters are suspended while it is held (needs root) */
};

/* ret is zeroed first. AS_E_ACCESS names what is missing; a process that is traced already, has 32-bit
 * code, or does not stop within AS_STOP_WAIT_NS is let go again. */
int as_stop_all(pid_t pid, struct as_stop *ret, struct as_error *err);
/* A process of one thread that this thread traces and has seen stopped. */
int as_stop_adopt(pid_t pid, struct as_stop *ret, struct as_error *err);
/* Detaches from all threads; the registers of changed ones are written. Zeroes stop. */
void as_stop_resume(struct as_stop *s);

/* A system call in one of the threads. *ret: what it returned, a negative errno for a failed one;
 * the status is that of the attempt. */
int as_stop_call(struct as_stop *s, long nr, const uint64_t arg[6], int64_t *ret,
		 struct as_error *err);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A copy of a program in which functions can be tried: what they do with arguments we choose, and to
 * what memory, without any effect outside.
 *
 *	as_trial_open(&spec, &trial, err);		// started, and held where its main begins
 *	as_trial_begin(&trial, false, &run);		// a fork of it, for one experiment
 *	as_trial_call(&run, avma, (uint64_t[4]){24}, &p);	// false: it is no such function
 *	as_trial_end(&run);
 *	as_trial_close(&trial);
 *
 * The copy never has an effect that anybody sees: every system call is looked at before it is made.
 * Until main it may read files and set up its memory, all else is answered with an error. In an
 * experiment it may take and give back memory; whatever else a function asks for makes the call
 * fail, as do a signal, a wait, 60 ms of processor time, and registers that are not restored. It
 * has no input, and its output goes nowhere. It is killed with the caller.
 *
 * Where main is: spec.main_svma are guesses; one is right when it is called with the argc, argv and
 * envp that the kernel made. At main the C library is ready, and no other thread runs.
 *
 * Addresses are avma of the copy: svma + trial.bias. x86-64 only. Cost: that of starting the program,
 * then about 0.2 ms an experiment. Thread rule: all calls from one thread (ptrace's rule).
 */
#ifndef AS_HOOK_TRIAL_H
#define AS_HOOK_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>
#include "base/err.h"

#define AS_TRIAL_WATCHES 64u
#define AS_TRIAL_SCRATCH 256u
#define AS_TRIAL_REPEATS 1024u
/* After which no more experiments begin: processor time of the copies, and time on a machine that has
 * none. */
#define AS_TRIAL_CPU_NS  15000000000ull
#define AS_TRIAL_NS      300000000000ull

struct as_trial_spec {
	int exe_fd; /* stays the caller's */
	const char *name;
	uint64_t entry_svma;
	const uint64_t *main_svma; /* guesses */
	size_t nmain;
};

struct as_trial {
	pid_t pid;
	uint64_t bias, main_avma, stack_avma;
	uint64_t page_avma;    /* code of ours, and what calls are made with */
	uint64_t scratch_avma; /* AS_TRIAL_SCRATCH bytes for arguments */
	struct user_regs_struct regs;
	uint64_t until_ns,
		until_cpu_ns; /* of as_now_ns, and of the thread with its ended children */
	size_t runs;
	bool broken; /* an experiment could not be begun */
};

/* AS_E_UNSUPPORTED: its main was not reached. */
int as_trial_open(const struct as_trial_spec *spec, struct as_trial *ret, struct as_error *err);
void as_trial_close(struct as_trial *t); /* zeroed is fine */
/* Whether its time is over: no experiment begins. */
bool as_trial_is_over(const struct as_trial *t);

struct as_trial_run {
	struct as_trial *t;
	pid_t pid;   /* 0: it has ended */
	bool failed; /* one of the calls did: all that follow do */
	size_t nwatch;
	uint64_t watch_avma[AS_TRIAL_WATCHES];
	uint8_t watch_old[AS_TRIAL_WATCHES];
	uint64_t planted;              /* bit i: watch i has its breakpoint */
	uint64_t entered;              /* bit i: the last call came to watch i */
	bool changes_r10, changes_r11; /* in one of the calls so far */
	size_t syscalls;               /* in all of them */
	bool aborted; /* the one that failed: by abort(), as a throw ends that nobody catches */
};

/* quick: a few calls, which get 8 ms of processor time together. */
bool as_trial_begin(struct as_trial *t, bool quick, struct as_trial_run *ret);
void as_trial_end(struct as_trial_run *r);
/* Further calls may be made after one that failed, in what that has left of the program's memory. False: it
 * has ended. */
bool as_trial_mend(struct as_trial_run *r);
/* Functions whose being entered is told in r->entered; false: too many, or not code. */
bool as_trial_watch(struct as_trial_run *r, uint64_t avma);
/* The first four arguments; the others, r10 and r11 hold what no function can use. */
bool as_trial_call(struct as_trial_run *r, uint64_t avma, const uint64_t arg[4], uint64_t *ret);
/*
 * n <= AS_TRIAL_REPEATS calls with the same two arguments, the second as third, too, in one go.
 * before: a function that is called once before them, 0: none, with before_arg; *ret_came_back: it has
 * returned, when what follows failed. Watches are not heeded, and registers not looked at.
 */
struct as_trial_repeat {
	uint64_t avma, arg[2];
	size_t n;
	uint64_t before, before_arg[4];
};
bool as_trial_repeat(struct as_trial_run *r, const struct as_trial_repeat *q, uint64_t *ret,
		     bool *ret_came_back);
bool as_trial_read(const struct as_trial_run *r, uint64_t avma, void *p, size_t n);
/* Only where the program could write. */
bool as_trial_write(const struct as_trial_run *r, uint64_t avma, const void *p, size_t n);

#endif

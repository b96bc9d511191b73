/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * sealed HOW ROUNDS [SECONDS [FORKS]]: a program that installs a filter of system calls and goes on with
 * memory, in its own thread, in one that begins afterwards, and in children, one after the other. The
 * filter ends it for what it never does itself: getpid, gettid, arch_prctl, sleeping, a signal mask
 * changed in no known way. HOW: prctl, syscall (how it is installed) or strict. A round is two
 * allocations and two frees. Prints "fine".
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *(*volatile do_malloc)(size_t) = malloc;
static void (*volatile do_free)(void *) = free;
static long rounds;
static double seconds;

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define KILL_IF(nr)                                                                            \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),                                         \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static void install(const char *how)
{
	struct sock_filter code[] = {
		LOAD(nr),
		KILL_IF(SYS_getpid),
		KILL_IF(SYS_gettid),
		KILL_IF(SYS_arch_prctl),
		KILL_IF(SYS_nanosleep),
		KILL_IF(SYS_sched_yield),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 0, 3),
		LOAD(args[0]),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof code / sizeof *code, code};
	long r;

	if (!strcmp(how, "strict"))
		r = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	else if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		r = -1;
	else if (!strcmp(how, "prctl"))
		r = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
	else
		r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
	if (r) {
		perror("sealed");
		exit(77);
	}
}

/* Deeper than what was looked at before. */
static __attribute__((noinline)) int deep(int n)
{
	volatile char room[600];
	char *p = do_malloc(30);

	room[n % 600] = 1;
	do_free(p);
	p = do_malloc(20);
	do_free(p);
	return (n ? deep(n - 1) : 0) + room[n % 600];
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *work(void *arg)
{
	double until = seconds > 0 ? now() + seconds : 0;

	for (long i = 0; i < rounds || (until > 0 && now() < until); i += 20)
		deep(19);
	return arg;
}

/* 2,000 allocations, in the first thread of the child and in another one. */
static __attribute__((noinline)) int fork_and_allocate(void)
{
	pid_t pid = fork();
	pthread_t t;
	int status;

	if (pid) {
		return pid < 0 || waitpid(pid, &status, 0) < 0 || status;
	}
	rounds = 500;
	seconds = 0;
	work(NULL);
	if (pthread_create(&t, NULL, work, NULL) || pthread_join(t, NULL))
		_exit(1);
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "prctl";
	pthread_t t;

	rounds = argc > 2 ? strtol(argv[2], NULL, 0) : 0;
	seconds = argc > 3 ? strtod(argv[3], NULL) : 0;
	deep(0);
	install(how);
	work(NULL);
	if (!strcmp(how, "strict")) {
		if (write(1, "fine\n", 5) != 5)
			syscall(SYS_exit, 1);
		syscall(SYS_exit, 0);
	}
	if (pthread_create(&t, NULL, work, NULL) || pthread_join(t, NULL))
		return 1;
	for (long forks = argc > 4 ? strtol(argv[4], NULL, 0) : 0; forks > 0; forks--) {
		if (fork_and_allocate())
			return 1;
	}
	puts("fine");
	return 0;
}

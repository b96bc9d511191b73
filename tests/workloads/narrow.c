/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * narrow ROUNDS: allocations where there is little room, or an unusual stack: threads with the smallest
 * stack there is, coroutines with 8 KiB, a signal handler on a stack of its own, and code that is left by
 * longjmp; and children that share memory: vfork, posix_spawn, clone with CLONE_VM. A round is 5
 * allocations. Prints "fine".
 */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static void *(*volatile do_malloc)(size_t) = malloc;
static void (*volatile do_free)(void *) = free;
static volatile int done;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void pair(size_t n)
{
	char *p = do_malloc(n);

	if (!p)
		fail("malloc");
	memset(p, 1, n);
	do_free(p);
}

static void *small_thread(void *arg)
{
	pair(48);
	return arg;
}

static void in_a_small_thread(void)
{
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	if (pthread_attr_setstacksize(&a, (size_t)sysconf(_SC_THREAD_STACK_MIN)) ||
	    pthread_create(&t, &a, small_thread, NULL) || pthread_join(t, NULL))
		fail("pthread_create");
	pthread_attr_destroy(&a);
}

static ucontext_t home, routine;
static char routine_stack[8192];

static void coroutine(void)
{
	pair(64);
}

static void in_a_coroutine(void)
{
	getcontext(&routine);
	routine.uc_stack.ss_sp = routine_stack;
	routine.uc_stack.ss_size = sizeof routine_stack;
	routine.uc_link = &home;
	makecontext(&routine, coroutine, 0);
	if (swapcontext(&home, &routine))
		fail("swapcontext");
}

static void on_signal(int sig)
{
	(void)sig;
	pair(80);
}

static jmp_buf back;
static __attribute__((noinline)) void jump(void)
{
	pair(96);
	longjmp(back, 1);
}

static int in_shared_memory(void *arg)
{
	(void)arg;
	done++;
	return 0;
}

static void reap(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, __WALL) != pid || status)
		fail("child");
}

static void with_children(void)
{
	static char stack[65536];
	char *const argv[] = {(char *)"true", NULL}, *const env[] = {NULL};
	int was = done;
	pid_t pid = vfork();

	if (!pid)
		_exit(0);
	reap(pid);
	if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, env))
		fail("posix_spawn");
	reap(pid);
	reap(clone(in_shared_memory, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL));
	if (done != was + 1)
		fail("clone");
}

int main(int argc, char **argv)
{
	static char other_stack[16384];
	long rounds = argc > 1 ? strtol(argv[1], NULL, 0) : 0;
	stack_t alt = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

	if (sigaltstack(&alt, NULL) || sigaction(SIGUSR1, &sa, NULL))
		fail("sigaltstack");
	for (long i = 0; i < rounds; i++) {
		in_a_small_thread();
		in_a_coroutine();
		raise(SIGUSR1);
		if (!setjmp(back))
			jump();
		pair(32);
		if (i % 10 == 0)
			with_children();
	}
	puts("fine");
	return 0;
}

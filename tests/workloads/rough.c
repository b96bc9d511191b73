/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * rough SECONDS (0: until SIGTERM): what makes it hard to stop a program and to change its code, all at a
 * time: threads that come and go, children by fork that allocate and by vfork that exec, a signal 5,000
 * times a second whose handler runs on a stack of its own, coroutines, and threads that wait in system
 * calls which the kernel does not begin again by itself. All check their results. Prints what was done,
 * and ends with 0 only when nothing went wrong.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static atomic_int stop, wrong;
static atomic_long threads, forks, vforks, signals, switches, waits;

static void check(int ok, const char *what)
{
	if (ok)
		return;
	atomic_fetch_add(&wrong, 1);
	dprintf(2, "rough: %s (%s)\n", what, strerror(errno));
}

static void allocate(int n)
{
	char *p[16];

	for (int i = 0; i < 16; i++) {
		p[i] = malloc((size_t)(n + i * 40 + 8));
		check(p[i] != NULL, "malloc");
		memset(p[i], i, (size_t)(n + i * 40 + 8));
	}
	for (int i = 0; i < 16; i++) {
		p[i] = realloc(p[i], (size_t)(n + i * 80 + 100));
		check(p[i] && p[i][n / 2] == i, "realloc");
		free(p[i]);
	}
}

static void *short_thread(void *arg)
{
	allocate((int)(long)arg);
	if ((long)arg % 3 == 0)
		pthread_exit(NULL);
	return NULL;
}

static void *thread_churn(void *arg)
{
	(void)arg;
	for (long i = 0; !stop; i++) {
		pthread_t t[3];

		for (int k = 0; k < 3; k++)
			check(!pthread_create(&t[k], NULL, short_thread, (void *)(i + k)),
			      "thread");
		for (int k = 0; k < 3; k++)
			check(!pthread_join(t[k], NULL), "join");
		threads += 3;
	}
	return NULL;
}

static void reap(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child did not end well");
}

static void *process_churn(void *arg)
{
	(void)arg;
	while (!stop) {
		pid_t pid = fork();

		if (!pid) {
			int before = wrong;

			for (int i = 0; i < 20; i++)
				allocate(i);
			_exit(wrong != before);
		}
		check(pid > 0, "fork");
		reap(pid);
		forks++;
		pid = vfork();
		if (!pid) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		check(pid > 0, "vfork");
		reap(pid);
		vforks++;
	}
	return NULL;
}

static ucontext_t home, routine;
static void coroutine(void)
{
	for (;;) {
		allocate(33);
		swapcontext(&routine, &home);
	}
}

static void *coroutines(void *arg)
{
	static char stack[65536];

	(void)arg;
	check(!getcontext(&routine), "getcontext");
	routine.uc_stack.ss_sp = stack;
	routine.uc_stack.ss_size = sizeof stack;
	makecontext(&routine, coroutine, 0);
	while (!stop) {
		allocate(7);
		check(!swapcontext(&home, &routine), "swapcontext");
		switches++;
	}
	return NULL;
}

/* No signal is for this thread: none of these may end early. */
static void *waiting(void *arg)
{
	int pair[2], ep = epoll_create1(0), sem = semget(IPC_PRIVATE, 1, 0600);
	struct timeval limit = {.tv_usec = 20000};
	struct timespec nap = {.tv_nsec = 20000000};
	struct sembuf down = {.sem_op = -1};
	struct epoll_event event;
	sigset_t usr2;
	char byte;

	(void)arg;
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	check(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair) && ep >= 0 && sem >= 0, "waiting");
	check(!setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), "timeout");
	while (!stop) {
		check(epoll_wait(ep, &event, 1, 20) == 0, "epoll_wait");
		check(recv(pair[0], &byte, 1, 0) < 0 && errno == EAGAIN, "recv");
		check(sigtimedwait(&usr2, NULL, &nap) < 0 && errno == EAGAIN, "sigtimedwait");
		check(semtimedop(sem, &down, 1, &nap) < 0 && errno == EAGAIN, "semtimedop");
		check(!nanosleep(&nap, NULL), "nanosleep");
		waits += 5;
	}
	semctl(sem, 0, IPC_RMID);
	return NULL;
}

static volatile sig_atomic_t depth;
static void on_alarm(int sig)
{
	char text[512];

	(void)sig;
	depth++;
	memset(text, depth, sizeof text);
	signals++;
	depth--;
}

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static void *busy(void *arg)
{
	stack_t alt = {.ss_sp = malloc(65536), .ss_size = 65536};
	sigset_t set;

	(void)arg;
	check(!sigaltstack(&alt, NULL), "sigaltstack");
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	for (int i = 0; !stop; i++)
		allocate(i % 100);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	alt.ss_flags = SS_DISABLE;
	sigaltstack(&alt, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	void *(*const job[])(void *) = {thread_churn, process_churn, coroutines, waiting, busy};
	struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK | SA_RESTART};
	struct sigaction term = {.sa_handler = on_term};
	struct itimerval every = {{0, 200}, {0, 200}};
	bool until_term = argc > 1 && strcmp(argv[1], "0") == 0;
	struct timespec left = {argc > 1 ? strtol(argv[1], NULL, 0) : 3, 0};
	pthread_t t[5];
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGALRM, &sa, NULL);
	sigaction(SIGTERM, &term, NULL);
	for (int i = 0; i < 5; i++)
		check(!pthread_create(&t[i], NULL, job[i], NULL), "thread");
	setitimer(ITIMER_REAL, &every, NULL);
	/* threads have it blocked: it comes here */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	while (until_term && !stop)
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	while (!stop && nanosleep(&left, &left) < 0 && errno == EINTR)
		continue;
	stop = 1;
	for (int i = 0; i < 5; i++)
		check(!pthread_join(t[i], NULL), "join");
	fprintf(stderr,
		"%ld threads, %ld forks, %ld vforks, %ld signals, %ld switches, %ld waits\n",
		threads, forks, vforks, signals, switches, waits);
	puts(wrong ? "wrong" : "fine");
	return wrong != 0;
}

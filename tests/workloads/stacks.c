/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* stacks altstack|plainsignal|timer|coroutine|coroutines|vdso|vfork SECONDS: work where stacks are
 * not the thread's plain one. timer: signals that interrupt any instruction; coroutines: two that
 * switch to each other all the time. */
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "workload.h"

static double seconds;

static NOINLINE void spin(void)
{
	double until = cpu_s() + seconds;

	do
		work(20000);
	while (cpu_s() < until);
}

static void handler(int sig)
{
	spin();
	sink += (unsigned long)sig;
}

static NOINLINE void victim(void)
{
	raise(SIGUSR1);
	sink++;
}

static void in_handler(int flags)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = flags};
	stack_t st = {.ss_sp = malloc(65536), .ss_size = 65536};

	sigaltstack(&st, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	victim();
}

static NOINLINE unsigned long timer_leaf(unsigned long x)
{
	sink += x;
	return x + 1;
}

static NOINLINE unsigned long timer_victim(unsigned long x)
{
	return timer_leaf(x ^ 1) + 1;
}

static void on_timer(int sig)
{
	work(200000);
	sink += (unsigned long)sig;
}

static NOINLINE void in_timer(void)
{
	struct sigaction sa = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
	struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	double until = cpu_s() + seconds;

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	do {
		for (unsigned long i = 0; i < 20000; i++)
			sink += timer_victim(i);
	} while (cpu_s() < until);
	setitimer(ITIMER_REAL, &never, NULL);
	sink++;
}

static ucontext_t back, there;

static void coroutine(void)
{
	spin();
	sink++;
}

static NOINLINE void in_coroutine(void)
{
	getcontext(&there);
	there.uc_stack.ss_sp = malloc(65536);
	there.uc_stack.ss_size = 65536;
	there.uc_link = &back;
	makecontext(&there, coroutine, 0);
	swapcontext(&back, &there);
	sink++;
}

static ucontext_t pair[2];

static NOINLINE void take_turns(int me)
{
	double until = cpu_s() + seconds;

	do {
		work(2000);
		swapcontext(&pair[me], &pair[!me]);
	} while (cpu_s() < until);
}

static void first_of_two(void)
{
	take_turns(0);
	sink++;
}

static void second_of_two(void)
{
	take_turns(1);
	sink++;
}

static NOINLINE void in_coroutines(void)
{
	void (*const start[2])(void) = {first_of_two, second_of_two};

	for (int i = 0; i < 2; i++) {
		getcontext(&pair[i]);
		pair[i].uc_stack.ss_sp = malloc(65536);
		pair[i].uc_stack.ss_size = 65536;
		pair[i].uc_link = &back;
		makecontext(&pair[i], start[i], 0);
	}
	swapcontext(&back, &pair[0]);
	sink++;
}

static NOINLINE void in_vdso(void)
{
	double until = cpu_s() + seconds;

	do {
		for (int i = 0; i < 20000; i++)
			sink += clock_s(CLOCK_MONOTONIC) > 0;
	} while (cpu_s() < until);
}

static NOINLINE void in_vfork(void)
{
	/* about 0.2 ms each */
	for (volatile int i = 0; i < (int)(seconds * 5000); i++) {
		pid_t pid;

		work(50000);
		pid = vfork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "altstack";

	seconds = arg(argc, argv, 2, 0.3);
	if (!strcmp(what, "altstack"))
		in_handler(SA_ONSTACK);
	else if (!strcmp(what, "plainsignal"))
		in_handler(0);
	else if (!strcmp(what, "coroutine"))
		in_coroutine();
	else if (!strcmp(what, "coroutines"))
		in_coroutines();
	else if (!strcmp(what, "timer"))
		in_timer();
	else if (!strcmp(what, "vdso"))
		in_vdso();
	else if (!strcmp(what, "vfork"))
		in_vfork();
	else
		return 2;
	return 0;
}

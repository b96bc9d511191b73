/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* stacks altstack|coroutine|vdso|vfork|plainsignal SECONDS: work where stacks are not the
 * thread's plain one. */
#include <signal.h>
#include <string.h>
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

static ucontext_t back, there;

static void coroutine(void)
{
	spin();
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

static NOINLINE void in_vdso(void)
{
	double until = clock_s(CLOCK_MONOTONIC) + seconds;

	while (clock_s(CLOCK_MONOTONIC) < until)
		sink++;
}

static NOINLINE void in_vfork(void)
{
	double until = clock_s(CLOCK_MONOTONIC) + seconds;

	while (clock_s(CLOCK_MONOTONIC) < until) {
		pid_t pid = vfork();

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
	else if (!strcmp(what, "vdso"))
		in_vdso();
	else if (!strcmp(what, "vfork"))
		in_vfork();
	else
		return 2;
	return 0;
}

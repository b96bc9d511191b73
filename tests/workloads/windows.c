/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * windows SECONDS (0: until SIGTERM): an allocator of its own whose second instruction takes long (cpuid,
 * which stops the processor's pipeline and, on a virtual machine, leaves it): a thread is nearly always
 * inside of what a detour would replace, and a signal handler that sleeps has nearly always interrupted
 * it there. malloc must be called as often as its own count says, with its argument whole.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static char arena[1 << 20];
static unsigned long used, count;

void *take(size_t n);
__attribute__((used)) void *take(size_t n)
{
	count++;
	n = (n + 15) & ~(size_t)15;
	if (used + n > sizeof arena)
		used = 0;
	used += n;
	return arena + used - n;
}

__asm__(".text\n.globl malloc\n.type malloc, @function\n.balign 16\n"
	"malloc:	push %rbx\n"
	"	cpuid\n"
	"	pop %rbx\n"
	"	jmp take\n"
	".size malloc, . - malloc\n");

void *calloc(size_t n, size_t size)
{
	return memset(take(n * size), 0, n * size);
}

void *realloc(void *p, size_t n)
{
	void *q = take(n);

	return p ? memmove(q, p, n) : q;
}

void free(void *p)
{
	(void)p;
}

static volatile sig_atomic_t ended;
static void on_term(int sig)
{
	(void)sig;
	ended = 1;
}

static void on_alarm(int sig)
{
	struct timespec t = {.tv_nsec = 3000000};

	(void)sig;
	nanosleep(&t, NULL);
}

int main(int argc, char **argv)
{
	void *(*volatile call)(size_t) = malloc;
	struct itimerval every = {{0, 5000}, {0, 5000}};
	struct sigaction sa = {.sa_handler = on_alarm}, term = {.sa_handler = on_term};
	time_t seconds = argc > 1 ? strtol(argv[1], NULL, 0) : 1, until = time(NULL) + seconds;
	unsigned long calls = 0, before;

	sigaction(SIGALRM, &sa, NULL);
	sigaction(SIGTERM, &term, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	before = count;
	while (!ended && (!seconds || time(NULL) < until)) {
		char *p = call(100 + calls % 100);

		if (p < arena || p + 100 > arena + sizeof arena)
			return 1;
		calls++;
	}
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	if (count - before != calls)
		return 2;
	printf("fine\n");
	return 0;
}

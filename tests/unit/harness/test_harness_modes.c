/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * harness: the loops around inputs cost next to nothing, whatever the size of their portions. Not by the
 * clock: a child that runs them is stepped, and its instructions between the two readings of the clock are
 * counted.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "assay/bench.h"
#include "base/mem.h"
#include "harness/subject_priv.h"

#define INPUT 1500
#define PART  100  /* bytes of it that are worked on: stepping is slow */
#define MANY  2000 /* iterations of which a thousandth is more than one */
#define FEW   2

struct input {
	unsigned char bytes[INPUT];
};

/* A part of the work of which 5 % are allowed; a step depends on the one before: no vectors. */
static void xor_all(unsigned char *p)
{
	unsigned char key = 1;

	for (size_t i = 0; i < PART; i++) {
		p[i] ^= key;
		key = (unsigned char)(key * 5 + p[i]);
	}
}

ASSAY_BENCH(work)
{
	static struct input in;

	ASSAY_ITER(b)
	{
		xor_all(in.bytes);
		assay_black_box(in.bytes);
	}
}

ASSAY_BENCH(only_the_loop)
{
	static struct input in;

	ASSAY_ITER(b)
	assay_black_box(in.bytes);
}

#define MODE(name, size)                                                                       \
	ASSAY_BENCH(name)                                                                      \
	{                                                                                      \
		ASSAY_ITER_INPUTS(b, struct input, in, size, in->bytes[0] = 1,                 \
				  assay_black_box(in->bytes))                                  \
		assay_black_box(in->bytes);                                                    \
	}
MODE(small, ASSAY_SMALL_INPUT)
MODE(large, ASSAY_LARGE_INPUT)
MODE(single, ASSAY_PER_ITERATION)

#ifdef __x86_64__

/* The first byte of assay_bench_begin becomes a breakpoint, or what it was. */
static void set_break(pid_t pid, bool on)
{
	static long was;
	void *at = (void *)assay_bench_begin;
	long word;

	if (!was)
		memcpy(&was, at, sizeof was);
	word = on ? (was & ~0xffL) | 0xcc : was;
	assert_int_equal(ptrace(PTRACE_POKETEXT, pid, at, (void *)word), 0);
}

/*
 * One instruction after the other from assay_bench_begin to assay_bench_end; between them the child runs
 * freely: preparing inputs is not timed. Instructions so counted, and how many such stretches there were.
 */
static uint64_t count_steps(pid_t pid, uint64_t *ret_stretches)
{
	const uint64_t begin = (uint64_t)(uintptr_t)assay_bench_begin,
		       end = (uint64_t)(uintptr_t)assay_bench_end;
	uint64_t steps = 0;
	bool timed = false;
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	set_break(pid, true);
	assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		struct user_regs_struct regs;

		assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, &regs), 0);
		if (!timed && regs.rip == begin + 1) {
			regs.rip = begin;
			assert_int_equal(ptrace(PTRACE_SETREGS, pid, NULL, &regs), 0);
			set_break(pid, false);
			timed = true;
			++*ret_stretches;
		} else if (timed && regs.rip == end) {
			set_break(pid, true);
			timed = false;
		}
		steps += timed;
		assert_int_equal(
			ptrace(timed ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, NULL, NULL), 0);
	}
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	return steps;
}

/* As a worker does it that is asked for one batch (docs/formats/bench-protocol.md). */
static void run_one(const char *name, uint64_t iters)
{
	static char program[] = "modes";
	char *argv[] = {program, NULL}, question[128];
	int fd = open("/dev/null", O_WRONLY);

	snprintf(question, sizeof question,
		 "1 fd=%d do=measure nth=1 iterations=%" PRIu64 " warmups=0 batches=1", fd,
		 iters);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 ||
	    setenv(AS_BENCH_ENV, question, 1) < 0 || setenv(AS_BENCH_ENV_ID, name, 1) < 0)
		_exit(1);
	(void)raise(SIGSTOP);
	_exit(assay_bench_main(1, argv));
}

/* Between two iteration counts, so that what comes once is not in it. */
static double per_iteration(const char *name, uint64_t more, uint64_t *ret_stretches)
{
	uint64_t steps[2], stretches[2] = {0, 0};

	for (int k = 0; k < 2; k++) {
		pid_t pid = fork();

		if (pid == 0)
			run_one(name, k ? 2 * more : more);
		steps[k] = count_steps(pid, &stretches[k]);
	}
	*ret_stretches = stretches[1];
	return (double)(steps[1] - steps[0]) / (double)more;
}

/* Some places do not let one process trace another. */
static bool may_trace(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 ? 1 : 0);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void loops_around_inputs_cost_a_twentieth_of_1500_bytes_at_most(void **state)
{
	static const struct {
		const char *name;
		uint64_t iters, most_stretches; /* of twice the iterations */
	} modes[] = {
		{"small", 200, 2 * 200 / 8}, {"large", MANY, 2 * MANY / 2}, {"single", 30, 60}};
	uint64_t stretches;
	double body, loop;

	if (!may_trace())
		skip();
	body = per_iteration("work", FEW, &stretches) * INPUT / PART;
	loop = per_iteration("only_the_loop", 200, &stretches);
	assert_true(body > 2 * INPUT);
	assert_true(loop < body / 100);
	for (size_t i = 0; i < AS_ARRAY_LEN(modes); i++) {
		double cost = per_iteration(modes[i].name, modes[i].iters, &stretches);

		print_message("%s: %.1f instructions an iteration of %.0f, %d stretches\n",
			      modes[i].name, cost, body, (int)stretches);
		assert_true(cost - loop <= body / 20);
		assert_true(stretches > 0 && stretches <= modes[i].most_stretches);
	}
}

#else

static void loops_around_inputs_cost_a_twentieth_of_1500_bytes_at_most(void **state)
{
	skip(); /* where the program counter is, is only known for x86-64 here */
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_around_inputs_cost_a_twentieth_of_1500_bytes_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The in-kernel and the in-target walker, compiled for the host, against the user-space unwinder:
 * a child is stepped through real code instruction by instruction, and at each stop all must see
 * the same frames.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "image/image.h"
#include "../replay/host_walk.h"
#include "../replay/host_rt_walk.h"

/* ---- what the child runs ---- */

static volatile unsigned long sink;
static int values[40];

static __attribute__((noinline)) int compare(const void *a, const void *b)
{
	sink += *(const int *)a;
	return *(const int *)a - *(const int *)b;
}

static __attribute__((noinline)) void sort_some(unsigned seed)
{
	for (size_t i = 0; i < AS_ARRAY_LEN(values); i++)
		values[i] = (int)(seed = seed * 1664525 + 1013904223) >> 16;
	qsort(values, AS_ARRAY_LEN(values), sizeof(values[0]), compare);
}

static __attribute__((noinline)) void descend(int depth, size_t room)
{
	char *p = __builtin_alloca(room);
	p[0] = (char)depth;
	if (depth)
		descend(depth - 1, room + 16);
	else
		sort_some((unsigned)room);
	sink += (unsigned long)p[0];
}

static void on_signal(int sig)
{
	char text[64];
	sink += (unsigned long)snprintf(text, sizeof(text), "signal %d of %.3f", sig,
					(double)sink);
}

static void child(void)
{
	static char other[65536];
	stack_t ss = {.ss_sp = other, .ss_size = sizeof(other)};
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

	sigaltstack(&ss, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	descend(30, 40);
	raise(SIGUSR1);
	on_signal(7);
	descend(3, 30000);
	_exit(0);
}

/* ---- both walks at one stop ---- */

struct stop {
	pid_t pid;
	struct as_image *im;
	struct as_process *p;
	struct host_walk *host;
	struct host_rt_walk target;
};

static int read_memory(void *ctx, uint64_t avma, void *out, size_t n)
{
	const struct stop *s = ctx;
	struct iovec to = {out, n}, from = {(void *)(uintptr_t)avma, n};
	return process_vm_readv(s->pid, &to, 1, &from, 1, 0) == (ssize_t)n ? 0 : AS_E_IO;
}

static bool find_module(void *ctx, uint64_t avma, struct as_unwind_module *ret)
{
	const struct stop *s = ctx;
	return as_image_unwind_find(s->im, s->p, avma, ret);
}

static struct as_uregs registers(pid_t pid)
{
	struct user_regs_struct u;
	assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, &u), 0);
	return (struct as_uregs){.r = {u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp,
				       u.r8, u.r9, u.r10, u.r11, u.r12, u.r13, u.r14, u.r15,
				       u.rip},
				 .valid = 0x1ffff};
}

struct tally {
	size_t stops, rooted, frames;
	size_t need_all; /* registers: lazy binding in ld.so, left to the recorder */
};

/* What the in-target walker finds is what the unwinder found. */
static void compare_target_walk(struct stop *s, const struct as_uregs *regs,
				const struct as_uframe *frame,
				const struct as_unwind_result *res)
{
	host_rt_run(&s->target, regs);
	assert_int_equal(s->target.end, res->end);
	assert_int_equal(s->target.n, res->nframes);
	for (uint32_t i = 0; i < s->target.n; i++) {
		assert_int_equal(s->target.avma[i], frame[i].avma);
		assert_int_equal(s->target.exact[i], frame[i].exact);
	}
}

static void compare_walks(struct stop *s, struct tally *t)
{
	struct as_unwind_env env = {
		.arch = AS_ARCH_X86_64, .ctx = s, .find = find_module, .read = read_memory};
	static struct as_uframe frame[1024];
	struct as_unwind_result res;
	struct as_uregs regs = registers(s->pid);

	as_unwind(&env, &regs, frame, AS_ARRAY_LEN(frame), &res);
	compare_target_walk(s, &regs, frame, &res);
	host_walk_run(s->host, &regs, AS_BPF_MAX_USER);
	const struct as_walk *w = &s->host->w;
	t->stops++;
	t->rooted += w->end == AS_END_ROOT;
	t->need_all += w->end == AS_END_EXPR;
	t->frames += w->n;
	assert_int_equal(w->end, res.end);
	assert_int_equal(w->n, res.nframes);
	for (uint32_t i = 0; i < w->n; i++) {
		uint64_t f = w->rec.word[i];
		if (!(f >> AS_BPF_FRAME_MODULE_SHIFT))
			continue; /* by avma: where the walk ended */
		assert_int_equal((f >> AS_BPF_FRAME_MODULE_SHIFT) - 1, frame[i].module);
		assert_int_equal(f & AS_BPF_FRAME_ADDR_MASK, frame[i].svma);
		assert_int_equal(!!(f & AS_BPF_FRAME_EXACT), frame[i].exact);
	}
}

static void map_process(struct stop *s)
{
	struct as_rt_module_set *set = &s->target.control->module_set[0];
	for (size_t i = 0; i < s->p->nmap; i++) {
		const struct as_mapping *m = &s->p->map[i];
		struct as_module *mod = as_image_module(s->im, m->module);
		const struct as_utable *t = as_image_module_table(s->im, mod);
		host_walk_map(s->host, t, m->start, m->end, m->bias, m->module);
		set->module[set->count++] =
			(struct as_rt_module){.start_avma = m->start,
					      .end_avma = m->end,
					      .bias = m->bias,
					      .table = t ? (uintptr_t)t->blob : 0,
					      .segments = t ? t->nsegs : 0};
	}
}

static void the_walkers_see_what_the_unwinder_sees_at_every_instruction(void **state)
{
	(void)state;
	pid_t pid = fork();
	if (!pid)
		child();
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSTOPPED(status)) {
		print_message("ptrace is not allowed here\n");
		skip();
	}
	struct stop s = {.pid = pid, .im = as_image_new(NULL)};
	struct as_error err = {0};
	assert_int_equal(as_image_read_maps(s.im, pid, 1, &err), 0);
	s.p = as_image_process(s.im, pid);
	assert_non_null(s.p);
	s.host = host_walk_new(read_memory, &s);
	s.target = (struct host_rt_walk){
		.control = as_xcalloc(1, AS_RT_CONTROL_BYTES), .read = read_memory, .ctx = &s};
	map_process(&s);
	struct tally t = {0};
	int sig = 0;
	for (size_t step = 0; step < 400000; step++) {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, (void *)(intptr_t)sig),
				 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFSTOPPED(status))
			break;
		sig = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		if (step < 3000 || step % 7 == 0 || sig)
			compare_walks(&s, &t);
	}
	print_message("%zu stops, %zu frames, %zu complete\n", t.stops, t.frames, t.rooted);
	assert_true(t.stops > 3000);
	assert_true((t.rooted + t.need_all) * 1000 >= t.stops * 999);
	assert_true(t.rooted * 10 >= t.stops * 8);
	if (WIFSTOPPED(status)) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	host_walk_free(s.host);
	free(s.target.control);
	as_image_free(s.im);
}

/* ---- single properties ---- */

static int no_memory(void *ctx, uint64_t avma, void *out, size_t n)
{
	(void)ctx, (void)avma, (void)out, (void)n;
	return -1;
}

static void an_unknown_process_yields_its_leaf_and_registers(void **state)
{
	(void)state;
	struct host_walk *h = host_walk_new(no_memory, NULL);
	struct as_uregs regs = {.r = {[16] = 0x401234, [7] = 0x7ffe0000, [3] = 77}};
	host_walk_run(h, &regs, AS_BPF_MAX_USER);
	assert_int_equal(h->w.end, AS_END_NOPROC);
	assert_int_equal(h->w.rec.head.nuser, 1);
	assert_int_equal(h->w.rec.word[0], 0x401234 | AS_BPF_FRAME_EXACT);
	assert_true(h->w.rec.head.flags & AS_BPF_SAMPLE_STATE);
	assert_int_equal(h->w.rec.head.words, 1 + AS_BPF_STATE_WORDS);
	assert_int_equal(h->w.rec.word[1 + 3], 77);
	assert_int_equal(h->w.rec.word[1 + AS_BPF_NREGS], 0x401234);
	host_walk_free(h);
}

static void code_without_a_table_ends_as_no_unwind_information(void **state)
{
	(void)state;
	struct host_walk *h = host_walk_new(no_memory, NULL);
	host_walk_map(h, NULL, 0x400000, 0x500000, 0, 4);
	struct as_uregs regs = {.r = {[16] = 0x401234, [7] = 0x7ffe0000}};
	host_walk_run(h, &regs, AS_BPF_MAX_USER);
	assert_int_equal(h->w.end, AS_END_NOCFI);
	assert_int_equal(h->w.rec.word[0],
			 5ull << AS_BPF_FRAME_MODULE_SHIFT | AS_BPF_FRAME_EXACT | 0x401234);
	host_walk_free(h);
}

/* A frame pointer chain at 0x1000, three frames, as a JIT builds it. */
static int chain(void *ctx, uint64_t avma, void *out, size_t n)
{
	static const uint64_t word[6] = {0x1010, 0x400100, 0x1020, 0x400200, 0, 0};
	(void)ctx;
	if (avma < 0x1000 || avma + n > 0x1000 + sizeof(word))
		return -1;
	memcpy(out, (const char *)word + (avma - 0x1000), n);
	return 0;
}

static void code_without_a_table_is_left_by_its_frame_pointer_and_marked(void **state)
{
	(void)state;
	struct host_walk *h = host_walk_new(chain, NULL);
	host_walk_map(h, NULL, 0x400000, 0x500000, 0, 4);
	struct as_uregs regs = {.r = {[16] = 0x400300, [7] = 0xff0, [6] = 0x1000}};
	host_walk_run(h, &regs, AS_BPF_MAX_USER);
	assert_int_equal(h->w.end, AS_END_NOCFI);
	assert_int_equal(h->w.n, 3);
	assert_int_equal(h->w.rec.word[1] & AS_BPF_FRAME_ADDR_MASK, 0x400100);
	assert_int_equal(h->w.rec.word[2] & AS_BPF_FRAME_ADDR_MASK, 0x400200);
	assert_int_equal(h->w.rec.head.by_fp, 6);
	regs.r[6] = 0x1004; /* not aligned: no frame pointer */
	host_walk_run(h, &regs, AS_BPF_MAX_USER);
	assert_int_equal(h->w.n, 1);
	host_walk_free(h);
}

static void mappings_are_found_among_two_thousand(void **state)
{
	(void)state;
	struct host_walk *h = host_walk_new(no_memory, NULL);
	for (uint32_t i = 0; i < 2000; i++)
		host_walk_map(h, NULL, 0x10000ull * (i + 1), 0x10000ull * (i + 1) + 0x8000, 0,
			      i);
	for (uint32_t i = 0; i < 2000; i++) {
		struct as_uregs regs = {.r = {[16] = 0x10000ull * (i + 1) + 0x7fff}};
		host_walk_run(h, &regs, 10);
		assert_int_equal(h->w.rec.word[0] >> AS_BPF_FRAME_MODULE_SHIFT, i + 1);
		regs.r[16]++;
		host_walk_run(h, &regs, 10);
		assert_int_equal(h->w.end, AS_END_NOMAP);
	}
	host_walk_free(h);
}

/* Rules of code that pushes a frame per call, for ever: the depth limit must hold. */
static int endless(void *ctx, uint64_t avma, void *out, size_t n)
{
	(void)ctx;
	for (size_t i = 0; i < n; i += 8) {
		uint64_t v = (avma + i) % 16 == 8 ? 0x400010 : 0;
		memcpy((char *)out + i, &v, 8);
	}
	return 0;
}

static void a_stack_deeper_than_the_limit_says_so_and_can_be_continued(void **state)
{
	(void)state;
	/* one page, one row, one rule: CFA = sp + 16 */
	static _Alignas(8) uint32_t seg[16] = {AS_UT_SEG_MAGIC,
					       0x400000 >> 10,
					       1,
					       12,
					       1,
					       1,
					       14,
					       0,
					       11,
					       12,
					       0,
					       0,
					       AS_UT_CFA_SP,
					       16};
	struct host_walk *h = host_walk_new(endless, NULL);
	h->chunk[0] = as_xcalloc(1, sizeof(*h->chunk[0]));
	memcpy(h->chunk[0]->w, seg, sizeof(seg));
	host_add(h, &(struct as_bpf_mapping){
			    .start_avma = 0x400000, .size_bytes = 1024, .module = 1});
	struct as_uregs regs = {.r = {[16] = 0x400020, [7] = 0x7000}};
	host_walk_run(h, &regs, AS_BPF_MAX_USER);
	assert_int_equal(h->w.end, AS_END_DEPTH);
	assert_int_equal(h->w.rec.head.nuser, AS_BPF_MAX_USER + 1);
	const uint64_t *stop = &h->w.rec.word[h->w.rec.head.nuser + AS_BPF_NREGS];
	assert_int_equal(stop[0], 0x400010);
	assert_int_equal(stop[1], 0x7000 + 16 * AS_BPF_MAX_USER);
	host_walk_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unknown_process_yields_its_leaf_and_registers),
		cmocka_unit_test(code_without_a_table_ends_as_no_unwind_information),
		cmocka_unit_test(code_without_a_table_is_left_by_its_frame_pointer_and_marked),
		cmocka_unit_test(mappings_are_found_among_two_thousand),
		cmocka_unit_test(a_stack_deeper_than_the_limit_says_so_and_can_be_continued),
		cmocka_unit_test(the_walkers_see_what_the_unwinder_sees_at_every_instruction),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

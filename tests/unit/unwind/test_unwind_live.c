/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The unwinder on this very process: known call chains through several frames, signal handlers
 * on the alternate stack, makecontext, large frames; compared with what was called and with
 * glibc's backtrace(). Tables are compiled from the files the process is made of.
 */
#include <execinfo.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <ucontext.h>
#include <cmocka.h>
#include "cfi_file.h"
#include "unwind/unwind.h"
#include "base/err.h"

#define MAX_MODULES 32
#define MAX_FRAMES  512

struct module {
	uint64_t bias, start, end;
	struct cfi_file file;
	struct as_buf blob;
	struct as_utable table;
	bool has_table;
};
static struct module modules[MAX_MODULES];
static size_t nmodules;
static bool with_cfi = true, with_table = true, with_code = true;

static int add_module(struct dl_phdr_info *info, size_t size, void *ctx)
{
	const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
	struct module *m = &modules[nmodules];
	struct as_error err;
	if (nmodules == MAX_MODULES)
		return 1;
	m->bias = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		m->start = m->bias + p->p_vaddr;
		m->end = m->start + p->p_memsz;
	}
	if (cfi_file_open(path, &m->file) &&
	    !as_utable_compile(&m->file.in, &m->blob, NULL, &err))
		m->has_table = !as_utable_open(m->blob.p, m->blob.len, &m->table, &err);
	nmodules++;
	return 0;
}

static bool find(void *ctx, uint64_t avma, struct as_unwind_module *ret)
{
	for (size_t i = 0; i < nmodules; i++) {
		struct module *m = &modules[i];
		if (avma < m->start || avma >= m->end)
			continue;
		*ret = (struct as_unwind_module){
			.table = m->has_table && with_table ? &m->table : NULL,
			.cfi = with_cfi && m->file.map ? &m->file.in : NULL,
			.bias = m->bias,
			.start_avma = m->start,
			.end_avma = m->end,
			.id = (uint32_t)i,
		};
		return true;
	}
	return false;
}

/* Reads of anything unmapped come back as errors, as another process' memory would. */
static int read_self(void *ctx, uint64_t avma, void *out, size_t n)
{
	static int fd = -1;
	if (fd < 0)
		fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	return pread(fd, out, n, (off_t)avma) == (ssize_t)n ? 0 : AS_E_IO;
}

static int code_of_self(void *ctx, uint64_t avma, void *out, size_t n)
{
	return read_self(ctx, avma - n, out, n);
}

static struct as_unwind_env env(void)
{
	return (struct as_unwind_env){
		.arch = AS_ARCH_X86_64,
		.find = find,
		.read = read_self,
		.read_code = with_code ? code_of_self : NULL,
	};
}

#if defined(__x86_64__)
static void regs_of(const ucontext_t *u, struct as_uregs *ret)
{
	static const int greg[17] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				     REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
				     REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
	*ret = (struct as_uregs){.valid = 0x1ffff};
	for (int i = 0; i < 17; i++)
		ret->r[i] = (uint64_t)u->uc_mcontext.gregs[greg[i]];
}
#endif

struct capture {
	struct as_uframe frames[MAX_FRAMES];
	struct as_unwind_result res;
	void *truth[MAX_FRAMES];
	int ntruth;
};
static struct capture got;

/* The sanitizers put a function of theirs in front of backtrace(), which then is a frame too. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define INTERCEPTORS 1
#else
#define INTERCEPTORS 0
#endif

/* Unwinds from its own registers; backtrace() is asked in the same frame. */
__attribute__((noinline)) static void capture_here(void)
{
	ucontext_t u;
	struct as_uregs regs;
	getcontext(&u);
	regs_of(&u, &regs);
	struct as_unwind_env e = env();
	as_unwind(&e, &regs, got.frames, MAX_FRAMES, &got.res);
	got.ntruth = backtrace(got.truth, MAX_FRAMES) - INTERCEPTORS;
	memmove(got.truth, got.truth + INTERCEPTORS, sizeof got.truth[0] * (size_t)got.ntruth);
}

/* Same return addresses as backtrace(), from the caller of capture_here on, down to the root. */
static void assert_same_as_backtrace(void)
{
	assert_int_equal(got.res.end, AS_END_ROOT);
	assert_int_equal(got.res.nframes, got.ntruth);
	for (int i = 1; i < got.ntruth; i++)
		assert_int_equal(got.frames[i].avma, (uint64_t)got.truth[i]);
}

#define FRAME(name, next, size)                                                                \
	__attribute__((noinline)) static void name(int n)                                      \
	{                                                                                      \
		volatile char big[size];                                                       \
		big[0] = (char)n;                                                              \
		next;                                                                          \
		big[size - 1] = big[0];                                                        \
	}
FRAME(chain_c, capture_here(), 16)
FRAME(chain_b, chain_c(n + 1), 100000)
FRAME(chain_a, chain_b(n + 1), 24)

/* Keeps a call from becoming a jump. */
#define NOT_LAST() __asm__ volatile("" ::: "memory")

__attribute__((noinline)) static void recursion(int n)
{
	if (n)
		recursion(n - 1);
	else
		capture_here();
	NOT_LAST();
}

/* A frame whose size only its frame pointer knows. */
__attribute__((noinline)) static void variable_frame(int n)
{
	volatile char *p = __builtin_alloca((size_t)n);
	p[0] = 1;
	chain_a(n);
	p[n - 1] = 2;
}

/* rsp aligned to 64: CFA through r10 and *(rbp - 8). */
__attribute__((noinline)) static void aligned_frame(int n)
{
	volatile char a[256] __attribute__((aligned(64)));
	volatile char *p = __builtin_alloca((size_t)n);
	a[0] = p[0] = 1;
	chain_a(n);
	a[1] = p[n - 1] = a[0];
}

static int compare(const void *a, const void *b)
{
	if (got.res.nframes == 0)
		chain_a(0);
	return *(const int *)a - *(const int *)b;
}

static void own_frames_equal_backtrace_through_plain_and_large_frames(void **state)
{
	chain_a(1);
	assert_same_as_backtrace();
	assert_false(got.res.used_full_cfi);
	assert_false(got.res.used_frame_pointer);
}

static void frames_of_variable_size_and_alignment_are_passed(void **state)
{
	variable_frame(1000);
	assert_same_as_backtrace();
	aligned_frame(1000);
	assert_same_as_backtrace();
}

static void deep_recursion_is_followed_frame_by_frame(void **state)
{
	recursion(300);
	assert_same_as_backtrace();
	assert_true(got.res.nframes > 300);
}

static void frames_of_the_c_library_are_passed(void **state)
{
	int v[] = {3, 1, 2};
	got.res.nframes = 0;
	qsort(v, 3, sizeof *v, compare);
	assert_same_as_backtrace();
}

static void full_cfi_gives_the_same_frames_as_the_table(void **state)
{
	with_table = false;
	variable_frame(1000);
	with_table = true;
	/* without the table nothing knows that _start is a root without asking its CFI */
	assert_same_as_backtrace();
}

static void the_depth_limit_is_told_and_continued_from(void **state)
{
	struct as_uframe all[MAX_FRAMES];
	struct as_unwind_result r;
	ucontext_t u;
	struct as_uregs regs;
	getcontext(&u);
	regs_of(&u, &regs);
	struct as_unwind_env e = env();
	as_unwind(&e, &regs, got.frames, MAX_FRAMES, &got.res);
	as_unwind(&e, &regs, all, 3, &r);
	assert_int_equal(r.end, AS_END_DEPTH);
	assert_int_equal(r.nframes, 3);
	as_unwind_continue(&e, all, MAX_FRAMES, &r);
	assert_int_equal(r.end, AS_END_ROOT);
	assert_int_equal(r.nframes, got.res.nframes);
	for (size_t i = 0; i < r.nframes; i++)
		assert_int_equal(all[i].avma, got.frames[i].avma);
}

static uint64_t interrupted_pc;

static void on_signal(int sig, siginfo_t *info, void *ctx)
{
	const ucontext_t *u = ctx;
	interrupted_pc = (uint64_t)u->uc_mcontext.gregs[REG_RIP];
	capture_here();
	(void)sig;
	(void)info;
}

static size_t signal_frame_index(void)
{
	for (size_t i = 0; i < got.res.nframes; i++)
		if (got.frames[i].signal)
			return i;
	return SIZE_MAX;
}

static void a_handler_on_the_alternate_stack_leads_to_the_interrupted_code(void **state)
{
	static char stack[256 << 10];
	stack_t ss = {.ss_sp = stack, .ss_size = sizeof stack}, old;
	struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK},
			 prev;
	assert_int_equal(sigaltstack(&ss, &old), 0);
	assert_int_equal(sigaction(SIGUSR1, &sa, &prev), 0);
	raise(SIGUSR1);
	sigaction(SIGUSR1, &prev, NULL);
	old.ss_flags |= old.ss_sp ? 0 : SS_DISABLE;
	sigaltstack(&old, NULL);
	size_t i = signal_frame_index();
	assert_int_not_equal(i, SIZE_MAX);
	assert_true(got.frames[i + 1].exact);
	assert_int_equal(got.frames[i + 1].avma, interrupted_pc);
	assert_same_as_backtrace();
}

static ucontext_t main_context, coroutine;

static void coroutine_body(void)
{
	chain_a(1);
	NOT_LAST();
}

static void a_coroutine_ends_complete_at_its_start(void **state)
{
	static char stack[512 << 10];
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = sizeof stack;
	coroutine.uc_link = &main_context;
	makecontext(&coroutine, coroutine_body, 0);
	swapcontext(&main_context, &coroutine);
	assert_int_equal(got.res.end, AS_END_ROOT);
	size_t n = got.res.nframes;
	/* capture, c, b, a, body, __start_context */
	assert_int_equal(n, 6);
}

static void without_any_table_the_stack_ends_without_invented_frames(void **state)
{
	with_table = with_cfi = false;
	chain_a(1);
	with_table = with_cfi = true;
	assert_int_equal(got.res.end, AS_END_NOCFI);
	for (size_t i = 1; i < got.res.nframes; i++) {
		bool real = false;
		for (int k = 0; k < got.ntruth; k++)
			real |= (uint64_t)got.truth[k] == got.frames[i].avma;
		assert_true(real);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_frames_equal_backtrace_through_plain_and_large_frames),
		cmocka_unit_test(frames_of_variable_size_and_alignment_are_passed),
		cmocka_unit_test(deep_recursion_is_followed_frame_by_frame),
		cmocka_unit_test(frames_of_the_c_library_are_passed),
		cmocka_unit_test(full_cfi_gives_the_same_frames_as_the_table),
		cmocka_unit_test(the_depth_limit_is_told_and_continued_from),
		cmocka_unit_test(
			a_handler_on_the_alternate_stack_leads_to_the_interrupted_code),
		cmocka_unit_test(a_coroutine_ends_complete_at_its_start),
		cmocka_unit_test(without_any_table_the_stack_ends_without_invented_frames),
	};
	dl_iterate_phdr(add_module, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

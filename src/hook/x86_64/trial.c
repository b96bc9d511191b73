/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "hook/trial.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sys.h"

#define INT3          0xcc
#define MAX_MAIN      16u
#define INIT_SYSCALLS 20000 /* before main */
#define CALL_SYSCALLS 2000  /* of one call */
#define CALL_USEC     60000 /* of processor time, of one experiment */
#define QUICK_USEC    8000
#define CPU_SECONDS   20    /* of any process of a trial */
#define GAP           1024u /* between what main's caller has on the stack and ours */
#define POISON        0x5a5a5a5a5a5a5a5aull
#define KEPT          0x1122334455667700ull /* in the registers that a function restores */
#define SYSCALL_STOP  (SIGTRAP | 0x80)
#define SLOT          0x40 /* offsets in our page, see code[] */
#define MARK          0x48

#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif

/*
 * A page of ours in the copy. At its beginning `syscall; int3`: calls return to the int3. Then, from
 * ONCE, one call of what stands in SLOT, told in MARK when it has returned; and a loop: calls rbx with
 * r14, r15, r15, r12 times, and stores what comes back at r13.
 */
static const uint8_t code[] = {
	0x0f, 0x05,                        /* syscall */
	INT3,                              /* GATE_INT3 */
	0xff, 0x15, SLOT - 9,  0,    0, 0, /* ONCE: call *SLOT */
	0xfe, 0x05, MARK - 15, 0,    0, 0, /* incb MARK */
	0x4c, 0x89, 0xf7,                  /* LOOP: mov %r14, %rdi */
	0x4c, 0x89, 0xfe,                  /* mov %r15, %rsi */
	0x4c, 0x89, 0xfa,                  /* mov %r15, %rdx */
	0xff, 0xd3,                        /* call *%rbx */
	0x49, 0x89, 0x45,      0x00,       /* mov %rax, (%r13) */
	0x49, 0x83, 0xc5,      0x08,       /* add $8, %r13 */
	0x49, 0xff, 0xcc,                  /* dec %r12 */
	0x75, 0xe8,                        /* jnz LOOP */
	INT3,
};
#define GATE_INT3 2u
#define GATE_END  3u
#define ONCE      3u
#define LOOP      15u
#define LOOP_END  sizeof code
_Static_assert(sizeof code == 40, "as SLOT, MARK and LOOP have it");
#define PAGE_BYTES   0x4000u
#define PAGE_SCRATCH 0x800u
#define PAGE_RESULTS 0x1000u
_Static_assert(PAGE_RESULTS + 8 * AS_TRIAL_REPEATS <= PAGE_BYTES, "room for results");

/* ---- which system calls are made ---- */

enum verdict { MADE, REFUSED, FOUL };

static bool is_query(long nr)
{
	static const long list[] = {
		SYS_getpid,         SYS_gettid,       SYS_getppid,      SYS_getuid,
		SYS_geteuid,        SYS_getgid,       SYS_getegid,      SYS_uname,
		SYS_clock_gettime,  SYS_clock_getres, SYS_gettimeofday, SYS_time,
		SYS_getcpu,         SYS_sysinfo,      SYS_sched_yield,  SYS_sched_getaffinity,
		SYS_getrandom,      SYS_getrlimit,    SYS_brk,          SYS_munmap,
		SYS_mprotect,       SYS_mremap,       SYS_madvise,      SYS_mincore,
		SYS_rt_sigprocmask,
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(list); i++)
		if (list[i] == nr)
			return true;
	return false;
}

/* What looks at files; harmless where the file is read only, which open is held to. */
static bool is_file_query(long nr)
{
	static const long list[] = {
		SYS_read,       SYS_pread64,  SYS_close,
		SYS_fstat,      SYS_stat,     SYS_lstat,
		SYS_newfstatat, SYS_statx,    SYS_lseek,
		SYS_access,     SYS_readlink, SYS_faccessat,
		SYS_readlinkat, SYS_getcwd,   SYS_getdents64,
		SYS_open,       SYS_openat,   439 /* faccessat2 */,
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(list); i++)
		if (list[i] == nr)
			return true;
	return false;
}

/* What a C library sets up for a thread of its own. */
static bool is_set_up(long nr)
{
	return nr == SYS_arch_prctl || nr == SYS_set_tid_address || nr == SYS_set_robust_list ||
	       nr == SYS_rt_sigaction || nr == SYS_sigaltstack || nr == 334 /* rseq */;
}

static bool opens_for_reading(struct user_regs_struct *r)
{
	unsigned long long *flags = (long)r->orig_rax == SYS_open ? &r->rsi : &r->rdx;

	if ((*flags & (O_ACCMODE | O_CREAT | O_TRUNC)) != O_RDONLY)
		return false;
	*flags |= O_NONBLOCK; /* never waits for a pipe */
	return true;
}

/* Nobody waits for memory of the copy: it wakes none. A C library ends what is refused that. */
static bool is_wake(const struct user_regs_struct *r)
{
	return (long)r->orig_rax == SYS_futex && (r->rsi & FUTEX_CMD_MASK) == FUTEX_WAKE;
}

static enum verdict judge_init(struct user_regs_struct *r)
{
	long nr = (long)r->orig_rax;

	if (nr == SYS_open || nr == SYS_openat)
		return opens_for_reading(r) ? MADE : REFUSED;
	if (nr == SYS_mmap) /* a shared mapping of a file could be written to */
		return (r->r10 & MAP_TYPE) == MAP_PRIVATE || r->r10 & MAP_ANONYMOUS ? MADE
										    : REFUSED;
	if (nr == SYS_prlimit64)
		return r->rdx ? REFUSED : MADE;
	if (nr == SYS_exit_group || nr == SYS_exit)
		return FOUL;
	return is_query(nr) || is_file_query(nr) || is_set_up(nr) || is_wake(r) ? MADE
										: REFUSED;
}

static enum verdict judge_call(struct user_regs_struct *r)
{
	long nr = (long)r->orig_rax;

	if (nr == SYS_mmap)
		return r->r10 & MAP_ANONYMOUS ? MADE : FOUL;
	if (nr == SYS_prlimit64)
		return r->rdx ? FOUL : MADE;
	if (nr == SYS_futex)
		return is_wake(r) ? MADE : FOUL;
	if (nr == SYS_write && r->rdi == STDERR_FILENO)
		return REFUSED; /* allocators warn of what is too large */
	/* whose signals are blocked cannot be stopped by its timer */
	if (nr == SYS_prctl || nr == SYS_rt_sigprocmask || is_file_query(nr))
		return REFUSED;
	return is_query(nr) ? MADE : FOUL;
}

/* ---- stops ---- */

static bool wait_stop(pid_t pid, int *ret_status)
{
	while (waitpid(pid, ret_status, __WALL) < 0) {
		if (errno != EINTR)
			return false;
	}
	return WIFSTOPPED(*ret_status);
}

static void end_process(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	while (wait_stop(pid, &status))
		(void)ptrace(PTRACE_CONT, pid, NULL, NULL);
}

/* At the entry of a system call: makes it or answers in its place. False: that was foul, or the end. */
static bool pass_syscall(pid_t pid, bool init)
{
	struct user_regs_struct r;
	enum verdict v;
	int status;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &r) < 0)
		return false;
	v = init ? judge_init(&r) : judge_call(&r);
	if (v != MADE)
		r.orig_rax = (unsigned long long)-1;
	if (ptrace(PTRACE_SETREGS, pid, NULL, &r) < 0 ||
	    ptrace(PTRACE_SYSCALL, pid, NULL, NULL) < 0 || !wait_stop(pid, &status) ||
	    WSTOPSIG(status) != SYSCALL_STOP || status >> 16)
		return false;
	if (v != REFUSED)
		return v == MADE;
	r.rax = (unsigned long long)-ENOENT;
	return ptrace(PTRACE_SETREGS, pid, NULL, &r) == 0;
}

static bool poke(pid_t pid, uint64_t avma, const void *p, size_t n)
{
	uint8_t word[8];
	long old;

	errno = 0;
	old = ptrace(PTRACE_PEEKTEXT, pid, (void *)(uintptr_t)avma, NULL);
	if (errno)
		return false;
	memcpy(word, &old, 8);
	memcpy(word, p, n);
	memcpy(&old, word, 8);
	return ptrace(PTRACE_POKETEXT, pid, (void *)(uintptr_t)avma, (void *)old) == 0;
}

static bool peek_byte(pid_t pid, uint64_t avma, uint8_t *ret)
{
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, pid, (void *)(uintptr_t)avma, NULL);
	*ret = (uint8_t)word;
	return errno == 0;
}

/* ---- up to main ---- */

/* In the child, which shares nothing with us but what fork left: no allocation. */
static void become(const struct as_trial_spec *spec, char **env)
{
	const struct rlimit none = {0, 0}, cpu = {CPU_SECONDS, CPU_SECONDS};
	char name[256], *argv[] = {name, NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	size_t n = strnlen(spec->name, sizeof name - 1);

	memcpy(name, spec->name, n);
	name[n] = 0;
	(void)prctl(PR_SET_PDEATHSIG,
		    SIGKILL); /* beside EXITKILL, which comes a moment later */
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)setrlimit(RLIMIT_CPU, &cpu);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
		_exit(126);
	raise(SIGSTOP);
	(void)syscall(SYS_execveat, spec->exe_fd, "", argv, env, AT_EMPTY_PATH);
	_exit(127);
}

static int fail_trial(struct as_trial *t, const char *why, struct as_error *err)
{
	as_trial_close(t);
	return as_fail(err, AS_E_UNSUPPORTED, 0, "%s", why);
}

/* Held at its exec. */
static int start(const struct as_trial_spec *spec, struct as_trial *t, struct as_error *err)
{
	const long options = PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD |
			     PTRACE_O_TRACEFORK | PTRACE_O_TRACECLONE;
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return as_fail(err, AS_E_IO, errno, "cannot fork: %s", strerror(errno));
	if (!pid)
		become(spec, environ);
	t->pid = pid;
	while (waitpid(pid, &status, WUNTRACED | __WALL) < 0) {
		if (errno != EINTR)
			return fail_trial(t, "no copy of the program can be started", err);
	}
	if (!WIFSTOPPED(status)) {
		t->pid = 0;
		return fail_trial(t, "no copy of the program can be started", err);
	}
	if (ptrace(PTRACE_SEIZE, pid, NULL, options) < 0)
		return fail_trial(t, "no right to trace a copy of the program", err);
	kill(pid, SIGCONT);
	for (;;) {
		if (!wait_stop(pid, &status)) {
			t->pid = 0;
			return fail_trial(t, "no copy of the program can be started", err);
		}
		if (status >> 16 == PTRACE_EVENT_EXEC)
			return 0;
		(void)ptrace(PTRACE_CONT, pid, NULL, NULL); /* the stop before, SIGCONT */
	}
}

static bool read_entry(pid_t pid, uint64_t *ret)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/auxv", (int)pid);
	if (as_read_file(path, 1 << 16, &b, NULL) < 0)
		return false;
	for (size_t i = 0; i + 16 <= b.len; i += 16) {
		if (as_get_le64(b.p + i) == AT_ENTRY) {
			*ret = as_get_le64(b.p + i + 8);
			return true;
		}
	}
	return false;
}

/* One argument and argv[1] == NULL: what follows is the environment. */
static bool is_main_call(const struct user_regs_struct *r, uint64_t start_sp)
{
	return (uint32_t)r->rdi == 1 && r->rsi == start_sp + 8 && r->rdx == start_sp + 24;
}

struct guesses {
	size_t n;
	uint64_t avma[MAX_MAIN];
	uint8_t old[MAX_MAIN];
};

static bool plant(struct as_trial *t, const struct as_trial_spec *spec, struct guesses *g)
{
	const uint8_t int3 = INT3;

	for (size_t i = 0; i < spec->nmain && g->n < MAX_MAIN; i++) {
		uint64_t at = spec->main_svma[i] + t->bias;

		if (!peek_byte(t->pid, at, &g->old[g->n]) || !poke(t->pid, at, &int3, 1))
			continue;
		g->avma[g->n++] = at;
	}
	return g->n != 0;
}

/* A breakpoint: 1: it is main; 0: it was not, goes on; -1: none of ours. */
static int at_guess(struct as_trial *t, const struct guesses *g, uint64_t start_sp)
{
	struct user_regs_struct r;

	if (ptrace(PTRACE_GETREGS, t->pid, NULL, &r) < 0)
		return -1;
	for (size_t i = 0; i < g->n; i++) {
		if (r.rip != g->avma[i] + 1)
			continue;
		r.rip--;
		if (!poke(t->pid, r.rip, &g->old[i], 1) ||
		    ptrace(PTRACE_SETREGS, t->pid, NULL, &r) < 0)
			return -1;
		t->regs = r;
		t->main_avma = r.rip;
		return is_main_call(&r, start_sp);
	}
	return -1;
}

static bool run_to_main(struct as_trial *t, const struct guesses *g, uint64_t start_sp)
{
	bool inside = true; /* of the exec */

	for (int n = 0; n < INIT_SYSCALLS; n++) {
		int status, got;

		if (ptrace(PTRACE_SYSCALL, t->pid, NULL, NULL) < 0 ||
		    !wait_stop(t->pid, &status))
			return false;
		if (WSTOPSIG(status) == SYSCALL_STOP && !(status >> 16)) {
			if (!inside && !pass_syscall(t->pid, true))
				return false;
			inside = false;
			continue;
		}
		if (status >> 16 || WSTOPSIG(status) != SIGTRAP)
			return false; /* a thread, a fork, a signal */
		got = at_guess(t, g, start_sp);
		if (got)
			return got > 0;
	}
	return false;
}

/* A system call in a process that stands at `at`, where the gate is. */
static bool through_gate(pid_t pid, const struct as_trial *t, uint64_t at,
			 const uint64_t call[7])
{
	struct user_regs_struct r = t->regs;

	r.rip = at;
	r.orig_rax = (unsigned long long)-1;
	r.rax = call[0];
	r.rdi = call[1];
	r.rsi = call[2];
	r.rdx = call[3];
	r.r10 = call[4];
	r.r8 = call[5];
	r.r9 = call[6];
	return ptrace(PTRACE_SETREGS, pid, NULL, &r) == 0 &&
	       ptrace(PTRACE_CONT, pid, NULL, NULL) == 0;
}

static bool stopped_at(pid_t pid, uint64_t avma, uint64_t *ret_rax)
{
	struct user_regs_struct r;
	int status;

	if (!wait_stop(pid, &status) || status >> 16 || WSTOPSIG(status) != SIGTRAP ||
	    ptrace(PTRACE_GETREGS, pid, NULL, &r) < 0 || r.rip != avma)
		return false;
	*ret_rax = r.rax;
	return true;
}

static bool poke_all(pid_t pid, uint64_t avma, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!poke(pid, avma + i, p + i, 1))
			return false;
	}
	return true;
}

/* Maps the page, by a gate that stands at main for that moment. */
static bool furnish(struct as_trial *t)
{
	const uint64_t map[7] = {SYS_mmap,
				 0,
				 PAGE_BYTES,
				 PROT_READ | PROT_WRITE | PROT_EXEC,
				 MAP_PRIVATE | MAP_ANONYMOUS,
				 (uint64_t)-1,
				 0};
	const struct itimerval limit[2] = {{.it_value = {0, CALL_USEC}},
					   {.it_value = {0, QUICK_USEC}}};
	uint8_t old[GATE_END];

	for (size_t i = 0; i < GATE_END; i++) {
		if (!peek_byte(t->pid, t->main_avma + i, &old[i]))
			return false;
	}
	if (!poke_all(t->pid, t->main_avma, code, GATE_END) ||
	    !through_gate(t->pid, t, t->main_avma, map) ||
	    !stopped_at(t->pid, t->main_avma + GATE_END, &t->page_avma) ||
	    t->page_avma >= (uint64_t)-4095 || !poke_all(t->pid, t->main_avma, old, GATE_END) ||
	    !poke_all(t->pid, t->page_avma, code, sizeof code))
		return false;
	t->scratch_avma = t->page_avma + PAGE_SCRATCH;
	t->stack_avma = (t->regs.rsp - GAP) & ~15ull;
	return poke_all(t->pid, t->scratch_avma, (const uint8_t *)limit, sizeof limit);
}

static uint64_t cpu_ns_of(int who)
{
	struct rusage u;

	if (getrusage(who, &u) < 0)
		return 0;
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

static uint64_t cpu_ns(void)
{
	return cpu_ns_of(RUSAGE_THREAD) + cpu_ns_of(RUSAGE_CHILDREN);
}

bool as_trial_is_over(const struct as_trial *t)
{
	return as_now_ns() > t->until_ns || cpu_ns() > t->until_cpu_ns;
}

int as_trial_open(const struct as_trial_spec *spec, struct as_trial *ret, struct as_error *err)
{
	struct as_trial t = {0};
	struct user_regs_struct r;
	struct guesses g = {0};
	uint64_t entry;
	int status = start(spec, &t, err);

	if (status < 0)
		return status;
	if (!read_entry(t.pid, &entry) || ptrace(PTRACE_GETREGS, t.pid, NULL, &r) < 0)
		return fail_trial(&t, "the copy of the program ended", err);
	t.bias = entry - spec->entry_svma;
	if (!plant(&t, spec, &g))
		return fail_trial(&t, "where its main begins is not known", err);
	if (!run_to_main(&t, &g, r.rsp))
		return fail_trial(&t, "a copy of the program did not come to its main", err);
	t.until_ns = as_now_ns() + AS_TRIAL_NS;
	t.until_cpu_ns = cpu_ns() + AS_TRIAL_CPU_NS;
	if (!furnish(&t))
		return fail_trial(&t, "a copy of the program cannot be written to", err);
	*ret = t;
	return 0;
}

void as_trial_close(struct as_trial *t)
{
	if (t->pid)
		end_process(t->pid);
	memset(t, 0, sizeof *t);
}

/* ---- experiments ---- */

bool as_trial_begin(struct as_trial *t, bool quick, struct as_trial_run *ret)
{
	/* ours to wait for, not the copy's, which would never do it */
	const uint64_t make[7] = {SYS_clone, CLONE_PARENT | SIGCHLD};
	const uint64_t limit[7] = {SYS_setitimer, ITIMER_PROF,
				   t->scratch_avma + (quick ? sizeof(struct itimerval) : 0)};
	const uint64_t end = t->page_avma + GATE_END;
	unsigned long child = 0;
	uint64_t rax;
	int status;

	memset(ret, 0, sizeof *ret);
	ret->t = t;
	t->runs++;
	if (!t->pid || as_trial_is_over(t))
		return false;
	t->broken = true;
	if (!through_gate(t->pid, t, t->page_avma, make) || !wait_stop(t->pid, &status) ||
	    !(status >> 16) || ptrace(PTRACE_GETEVENTMSG, t->pid, NULL, &child) < 0)
		return false;
	if (ptrace(PTRACE_CONT, t->pid, NULL, NULL) < 0 || !stopped_at(t->pid, end, &rax) ||
	    !wait_stop((pid_t)child, &status))
		return false;
	ret->pid = (pid_t)child;
	if (through_gate(ret->pid, t, t->page_avma, limit) && stopped_at(ret->pid, end, &rax)) {
		t->broken = false;
		return true;
	}
	as_trial_end(ret);
	return false;
}

void as_trial_end(struct as_trial_run *r)
{
	if (r->pid)
		end_process(r->pid);
	r->pid = 0;
}

bool as_trial_mend(struct as_trial_run *r)
{
	r->failed = r->aborted = false;
	return r->pid != 0;
}

bool as_trial_read(const struct as_trial_run *r, uint64_t avma, void *p, size_t n)
{
	struct iovec here = {p, n}, there = {(void *)(uintptr_t)avma, n};

	return r->pid && !r->failed &&
	       process_vm_readv(r->pid, &here, 1, &there, 1, 0) == (ssize_t)n;
}

bool as_trial_write(const struct as_trial_run *r, uint64_t avma, const void *p, size_t n)
{
	struct iovec here = {(void *)(uintptr_t)p, n}, there = {(void *)(uintptr_t)avma, n};

	return r->pid && !r->failed &&
	       process_vm_writev(r->pid, &here, 1, &there, 1, 0) == (ssize_t)n;
}

bool as_trial_watch(struct as_trial_run *r, uint64_t avma)
{
	if (!r->pid || r->nwatch == AS_TRIAL_WATCHES ||
	    !peek_byte(r->pid, avma, &r->watch_old[r->nwatch]))
		return false;
	r->watch_avma[r->nwatch++] = avma;
	return true;
}

static bool plant_watches(struct as_trial_run *r)
{
	const uint8_t int3 = INT3;

	for (size_t i = 0; i < r->nwatch; i++) {
		if (r->planted >> i & 1)
			continue;
		if (!poke(r->pid, r->watch_avma[i], &int3, 1))
			return false;
		r->planted |= 1ull << i;
	}
	return true;
}

/* A breakpoint of a watch: told once a call, then out of the way. */
static bool take_watch(struct as_trial_run *r, struct user_regs_struct *regs)
{
	for (size_t i = 0; i < r->nwatch; i++) {
		if (regs->rip != r->watch_avma[i] + 1 || !(r->planted >> i & 1))
			continue;
		r->entered |= 1ull << i;
		r->planted &= ~(1ull << i);
		regs->rip--;
		return poke(r->pid, regs->rip, &r->watch_old[i], 1) &&
		       ptrace(PTRACE_SETREGS, r->pid, NULL, regs) == 0;
	}
	return false;
}

static bool set_up_call(struct as_trial_run *r, uint64_t avma, const uint64_t arg[4])
{
	const uint64_t back = r->t->page_avma + GATE_INT3;
	struct user_regs_struct g = r->t->regs;

	g.rip = avma;
	g.rsp = r->t->stack_avma - 8;
	g.orig_rax = (unsigned long long)-1;
	g.rax = 0;
	g.rdi = arg[0];
	g.rsi = arg[1];
	g.rdx = arg[2];
	g.rcx = arg[3];
	g.r8 = g.r9 = g.r10 = g.r11 = POISON;
	g.rbx = KEPT;
	g.rbp = KEPT + 1;
	g.r12 = KEPT + 2;
	g.r13 = KEPT + 3;
	g.r14 = KEPT + 4;
	g.r15 = KEPT + 5;
	return as_trial_write(r, g.rsp, &back, sizeof back) &&
	       ptrace(PTRACE_SETREGS, r->pid, NULL, &g) == 0;
}

/* Back where it was called from, as a function comes back. */
static bool has_returned(const struct as_trial_run *r, const struct user_regs_struct *g)
{
	return g->rip == r->t->page_avma + GATE_END && g->rsp == r->t->stack_avma &&
	       g->rbx == KEPT && g->rbp == KEPT + 1 && g->r12 == KEPT + 2 &&
	       g->r13 == KEPT + 3 && g->r14 == KEPT + 4 && g->r15 == KEPT + 5;
}

/* Stopped behind a foul system call, which was not made: its arguments are still there. */
static bool has_aborted(pid_t pid)
{
	struct user_regs_struct g;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &g) < 0)
		return false;
	return g.rdi == SIGABRT || g.rsi == SIGABRT || g.rdx == SIGABRT;
}

/* 1: it has returned, to `end` or as has_returned says; 0: goes on; -1: no such function. */
static int step_call(struct as_trial_run *r, uint64_t end, struct user_regs_struct *g)
{
	int status;

	if (ptrace(PTRACE_SYSCALL, r->pid, NULL, NULL) < 0)
		return -1;
	if (!wait_stop(r->pid, &status)) {
		r->pid = 0; /* it has ended, and is gone */
		return -1;
	}
	if (status >> 16) {
		as_trial_end(r);
		return -1;
	}
	if (WSTOPSIG(status) == SYSCALL_STOP) {
		r->syscalls++;
		if (pass_syscall(r->pid, false))
			return 0;
		r->aborted = has_aborted(r->pid);
		return -1;
	}
	/* its time is over, and its timer used up */
	if (WSTOPSIG(status) == SIGPROF)
		as_trial_end(r);
	if (WSTOPSIG(status) != SIGTRAP || ptrace(PTRACE_GETREGS, r->pid, NULL, g) < 0)
		return -1;
	if (g->rip == end || (!end && has_returned(r, g)))
		return 1;
	return take_watch(r, g) ? 0 : -1;
}

bool as_trial_call(struct as_trial_run *r, uint64_t avma, const uint64_t arg[4], uint64_t *ret)
{
	struct user_regs_struct g;

	r->entered = 0;
	if (!r->pid || r->failed || !plant_watches(r) || !set_up_call(r, avma, arg)) {
		r->failed = true;
		return false;
	}
	for (int n = 0; n < CALL_SYSCALLS; n++) {
		int got = step_call(r, 0, &g);

		if (got > 0) {
			r->changes_r10 |= g.r10 != POISON;
			r->changes_r11 |= g.r11 != POISON;
			*ret = g.rax;
			return true;
		}
		if (got < 0)
			break;
	}
	r->failed = true;
	return false;
}

static bool set_up_repeat(struct as_trial_run *r, const struct as_trial_repeat *q)
{
	const uint64_t slot[2] = {q->before, 0};
	struct user_regs_struct g = r->t->regs;

	g.rip = r->t->page_avma + (q->before ? ONCE : LOOP);
	g.rsp = r->t->stack_avma;
	g.orig_rax = (unsigned long long)-1;
	g.rax = 0;
	g.rdi = q->before_arg[0];
	g.rsi = q->before_arg[1];
	g.rdx = q->before_arg[2];
	g.rcx = q->before_arg[3];
	g.r8 = g.r9 = g.r10 = g.r11 = POISON;
	g.rbp = KEPT;
	g.rbx = q->avma;
	g.r12 = q->n;
	g.r13 = r->t->page_avma + PAGE_RESULTS;
	g.r14 = q->arg[0];
	g.r15 = q->arg[1];
	return as_trial_write(r, r->t->page_avma + SLOT, slot, sizeof slot) &&
	       ptrace(PTRACE_SETREGS, r->pid, NULL, &g) == 0;
}

bool as_trial_repeat(struct as_trial_run *r, const struct as_trial_repeat *q, uint64_t *ret,
		     bool *ret_came_back)
{
	struct user_regs_struct g;
	uint8_t mark = 0;
	int got = -1;

	*ret_came_back = false;
	if (r->pid && !r->failed && q->n && q->n <= AS_TRIAL_REPEATS && set_up_repeat(r, q)) {
		got = 0;
		for (size_t i = 0; got == 0 && i < CALL_SYSCALLS; i++)
			got = step_call(r, r->t->page_avma + LOOP_END, &g);
		*ret_came_back = as_trial_read(r, r->t->page_avma + MARK, &mark, 1) && mark;
	}
	if (got > 0 && g.rsp == r->t->stack_avma &&
	    as_trial_read(r, r->t->page_avma + PAGE_RESULTS, ret, 8 * q->n))
		return true;
	r->failed = true;
	return false;
}

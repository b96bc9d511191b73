/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * From exec to where a program has everything loaded and has run nothing of its own yet:
 *
 *	dynamic	the linker calls an empty function when its list of modules changes, so that debuggers
 *		may break there. The first call that says "consistent" comes when all is loaded and
 *		relocated, before constructors (glibc; musl calls it only then).
 *	static	at once: everything is mapped by the kernel. Thread-local storage is not set up yet, but
 *		nothing allocates before it is.
 */
#include "hook/hooked_priv.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"

#define INT3            0xcc
#define R_STATE         24 /* offset of r_debug.r_state (System V ABI, link.h) */
#define RT_IS_COMPLETE  0
#define LINKER_HITS_MAX 1000

#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif

struct launch {
	pid_t pid;
	int mem_fd;
	int status;                         /* of the end, -1 */
	uint64_t until_ns;                  /* 0: no limit */
	uint64_t base_avma, entry_avma;     /* AT_BASE (0: static), AT_ENTRY */
	uint64_t notice_avma, r_debug_avma; /* _dl_debug_state, _r_debug; 0: not known */
};

/* ---- waiting ---- */

enum halt { HALT_NONE, HALT_TRAP, HALT_EXEC, HALT_STOP, HALT_END };

/* What a status means to us; what is the program's own business it gets: HALT_NONE. */
static enum halt take_status(struct launch *l, int status)
{
	int signal = WSTOPSIG(status), event = status >> 16;

	if (!WIFSTOPPED(status)) {
		l->status = status;
		return HALT_END;
	}
	if (event == PTRACE_EVENT_EXEC)
		return HALT_EXEC;
	if (event == PTRACE_EVENT_STOP && signal == SIGTRAP)
		return HALT_STOP;
	if (!event && signal == SIGTRAP)
		return HALT_TRAP;
	/* a program that job control has stopped stays so until it is continued */
	if (event == PTRACE_EVENT_STOP)
		(void)ptrace(PTRACE_LISTEN, l->pid, NULL, NULL);
	else
		(void)ptrace(PTRACE_CONT, l->pid, NULL, (void *)(intptr_t)(event ? 0 : signal));
	return HALT_NONE;
}

static enum halt wait_for_halt(struct launch *l)
{
	for (;;) {
		int status;
		enum halt halt;

		if (waitpid(l->pid, &status, __WALL) < 0) {
			if (errno == EINTR)
				continue;
			return HALT_END;
		}
		halt = take_status(l, status);
		if (halt != HALT_NONE)
			return halt;
	}
}

static int fail_end(const struct launch *l, struct as_error *err)
{
	return as_fail(err, AS_E_NOTFOUND, 0, "process %d ended before it ran", (int)l->pid);
}

int as_hook_watch_exec(pid_t tid, struct as_error *err)
{
	if (ptrace(PTRACE_SEIZE, tid, NULL, PTRACE_O_TRACEEXEC) == 0)
		return 0;
	return as_fail(err, errno == ESRCH ? AS_E_NOTFOUND : AS_E_ACCESS, errno,
		       "cannot trace process %d: %s", (int)tid, strerror(errno));
}

enum as_hook_watched as_hook_watch_poll(pid_t tid, pid_t pid, int *ret_status)
{
	struct launch l = {.pid = tid, .status = -1};
	enum as_hook_watched r = AS_HOOK_WATCH_NOTHING;

	while (r == AS_HOOK_WATCH_NOTHING) {
		int status;
		pid_t got = waitpid(l.pid, &status, __WALL | WNOHANG);
		enum halt halt = HALT_NONE;

		if (!got || (got < 0 && errno == EINTR))
			break;
		if (got > 0)
			halt = take_status(&l, status);
		/* a thread that execs takes the name of its process */
		if (got < 0 && l.pid != pid)
			l.pid = pid;
		else if (got < 0 || halt == HALT_END)
			r = AS_HOOK_WATCH_END;
		else if (halt == HALT_EXEC)
			r = AS_HOOK_WATCH_EXEC;
		else if (halt != HALT_NONE)
			(void)ptrace(PTRACE_CONT, l.pid, NULL, NULL);
	}
	if (ret_status)
		*ret_status = l.status;
	return r;
}

/* Signals that come meanwhile are the program's; the last stop is ours. */
void as_hook_unwatch(pid_t tid)
{
	struct launch l = {.pid = tid, .status = -1};

	if (ptrace(PTRACE_DETACH, tid, NULL, NULL) == 0)
		return; /* it stood still */
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 && wait_for_halt(&l) != HALT_END)
		(void)ptrace(PTRACE_DETACH, tid, NULL, NULL);
}

/* Out of the system call: until then the kernel writes its result into rax. */
static int leave_exec(struct launch *l, struct as_error *err)
{
	if (ptrace(PTRACE_INTERRUPT, l->pid, NULL, NULL) < 0 ||
	    ptrace(PTRACE_CONT, l->pid, NULL, NULL) < 0 || wait_for_halt(l) != HALT_STOP)
		return fail_end(l, err);
	return 0;
}

/* ---- the dynamic linker ---- */

static int read_auxv(struct launch *l, struct as_error *err)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char path[64];
	int r;

	snprintf(path, sizeof path, "/proc/%d/auxv", (int)l->pid);
	r = as_read_file(path, 1 << 16, &b, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i + 16 <= b.len; i += 16) {
		uint64_t tag = as_get_le64(b.p + i), value = as_get_le64(b.p + i + 8);

		if (tag == AT_BASE)
			l->base_avma = value;
		else if (tag == AT_ENTRY)
			l->entry_avma = value;
	}
	return 0;
}

static void on_linker_symbol(void *ctx, const struct as_elf_symbol *s)
{
	struct launch *l = ctx;

	if (!strcmp(s->name, "_dl_debug_state") && s->func)
		l->notice_avma = s->svma;
	else if (!strcmp(s->name, "_r_debug"))
		l->r_debug_avma = s->svma;
}

static bool is_linker(const struct as_module *m)
{
	const char *name = m->path ? strrchr(m->path, '/') : NULL;

	return name && (!strncmp(name, "/ld-", 4) || !strncmp(name, "/ld.so", 6));
}

/* The module at AT_BASE; or the program itself when it is a linker that was run by its name. */
static void find_linker(struct launch *l)
{
	struct as_image *im = as_image_new(NULL);
	uint64_t at = l->base_avma ? l->base_avma : l->entry_avma;
	struct as_process *p;

	if (as_image_read_maps(im, l->pid, as_now_ns(), NULL) < 0 ||
	    !(p = as_image_process(im, l->pid))) {
		as_image_free(im);
		return;
	}
	for (size_t i = 0; i < p->nmap; i++) {
		struct as_module *m = as_image_module(im, p->map[i].module);
		struct as_elf *elf;
		int fd;

		/* code is behind the headers, where AT_BASE points */
		if (p->map[i].end <= at || p->map[i].start - at > 1 << 26 ||
		    m->kind != AS_MODULE_FILE || (!l->base_avma && !is_linker(m)))
			continue;
		fd = m->fd >= 0 ? fcntl(m->fd, F_DUPFD_CLOEXEC, 0) : -1;
		if (fd < 0 || as_elf_open_fd(fd, m->path, &elf, NULL) < 0)
			break;
		(void)as_elf_each_symbol(elf, on_linker_symbol, l, NULL);
		as_elf_close(elf);
		l->notice_avma += l->notice_avma ? p->map[i].bias : 0;
		l->r_debug_avma += l->r_debug_avma ? p->map[i].bias : 0;
		break;
	}
	as_image_free(im);
}

static bool is_consistent(const struct launch *l)
{
	uint32_t state;

	return !l->r_debug_avma ||
	       pread(l->mem_fd, &state, 4, (off_t)(l->r_debug_avma + R_STATE)) != 4 ||
	       state == RT_IS_COMPLETE;
}

/* Runs until `at`: a breakpoint that is gone again when this returns. */
static int run_until(struct launch *l, uint64_t at, struct as_error *err)
{
	const uint8_t int3 = INT3;
	struct user_regs_struct regs;
	enum halt halt = HALT_END;
	uint8_t old;

	if (pread(l->mem_fd, &old, 1, (off_t)at) != 1 ||
	    pwrite(l->mem_fd, &int3, 1, (off_t)at) != 1)
		return as_fail(err, AS_E_ACCESS, errno, "cannot write code of process %d: %s",
			       (int)l->pid, strerror(errno));
	do {
		if (ptrace(PTRACE_CONT, l->pid, NULL, NULL) < 0)
			return fail_end(l, err);
		halt = wait_for_halt(l);
	} while (halt == HALT_STOP);
	if (halt != HALT_TRAP || ptrace(PTRACE_GETREGS, l->pid, NULL, &regs) < 0)
		return fail_end(l, err);
	(void)pwrite(l->mem_fd, &old, 1, (off_t)at); /* it was writable a moment ago */
	if (regs.rip != at + 1)
		return as_fail(err, AS_E_IO, 0, "process %d stopped at 0x%llx by itself",
			       (int)l->pid, regs.rip);
	regs.rip = at;
	if (ptrace(PTRACE_SETREGS, l->pid, NULL, &regs) < 0)
		return fail_end(l, err);
	return 0;
}

static int step(struct launch *l, struct as_error *err)
{
	if (ptrace(PTRACE_SINGLESTEP, l->pid, NULL, NULL) < 0 || wait_for_halt(l) != HALT_TRAP)
		return fail_end(l, err);
	return 0;
}

static int run_until_loaded(struct launch *l, struct as_error *err)
{
	find_linker(l);
	/* an unknown linker: where it hands over to the program */
	if (!l->notice_avma)
		return l->base_avma ? run_until(l, l->entry_avma, err) : 0;
	for (int i = 0; i < LINKER_HITS_MAX; i++) {
		int r = run_until(l, l->notice_avma, err);

		if (r < 0 || is_consistent(l))
			return r;
		r = step(l, err);
		if (r < 0)
			return r;
	}
	return as_fail(err, AS_E_LIMIT, 0, "the dynamic linker of process %d does not finish",
		       (int)l->pid);
}

/* ---- putting it in ---- */

/* The thread stands at the linker's notice, which is patched by now: this one is answered. */
static void pass_notice(const struct as_hooked *h, struct as_stop *s)
{
	struct as_stopped *t = s->thread.v;

	as_vec_foreach (f, &h->fn) {
		if (f->state == AS_HOOK_ACTIVE && t->regs.rip == as_hooked_avma(h, f)) {
			t->regs.rip = f->copy_avma;
			t->changed = true;
		}
	}
}

static int put_in(struct launch *l, const struct as_hook_spec *spec, struct as_hooked **ret,
		  struct as_error *err)
{
	struct as_hooked *h = NULL;
	struct as_stop s;
	size_t from;
	int r = as_stop_adopt(l->pid, &s, err);

	if (r < 0)
		return r;
	h = as_hooked_new(l->pid, spec, err);
	r = h ? as_hooked_scan(h, &from, err) : err ? err->status : AS_E_IO;
	if (r == 0 && !as_hooked_any_wanted(h))
		r = as_hooked_fail_nothing(h, err);
	if (r == 0)
		r = as_hooked_check_gs(h, &s, err);
	if (r == 0)
		as_hooked_find_tid_off(h, &s);
	if (r == 0)
		r = as_hooked_map(h, &s, err);
	if (r == 0)
		r = as_hooked_write(h, 0, err);
	if (r == 0) {
		as_hooked_publish(h);
		as_hooked_set_gs(h, &s);
		r = as_hooked_patch(h, 0, &s, err);
	}
	if (r == 0) {
		pass_notice(h, &s);
		h->cost.patch_ns = as_now_ns() - s.begin_ns;
		h->cost.threads = s.thread.n;
	}
	as_stop_resume(&s);
	if (r < 0)
		as_hook_free(h);
	else
		*ret = h;
	return r;
}

static int begin(struct launch *l, const struct as_hook_spec *spec, struct as_hooked **ret,
		 struct as_error *err)
{
	char path[64];
	int r = leave_exec(l, err);

	if (r < 0)
		return r;
	/* only now: this is the memory of the new program */
	snprintf(path, sizeof path, "/proc/%d/mem", (int)l->pid);
	l->mem_fd = open(path, O_RDWR | O_CLOEXEC);
	if (l->mem_fd < 0)
		r = as_fail(err, AS_E_ACCESS, errno,
			    "cannot write the memory of process %d: %s", (int)l->pid,
			    strerror(errno));
	if (r == 0)
		r = read_auxv(l, err);
	if (r == 0)
		r = run_until_loaded(l, err);
	if (r == 0)
		return put_in(l, spec, ret, err);
	if (l->status == -1)
		(void)ptrace(PTRACE_DETACH, l->pid, NULL, NULL);
	return r;
}

int as_hook_begin(pid_t pid, const struct as_hook_spec *spec, struct as_hooked **ret,
		  int *ret_status, struct as_error *err)
{
	struct launch l = {.pid = pid, .mem_fd = -1, .status = -1};
	int r = begin(&l, spec, ret, err);

	if (l.mem_fd >= 0)
		close(l.mem_fd);
	if (ret_status)
		*ret_status = l.status;
	return r;
}

int as_hook_launch(pid_t pid, const struct as_hook_spec *spec, struct as_hooked **ret,
		   int *ret_status, struct as_error *err)
{
	struct launch l = {.pid = pid, .mem_fd = -1, .status = -1};
	enum halt halt = wait_for_halt(&l);

	while (halt == HALT_TRAP || halt == HALT_STOP) {
		(void)ptrace(PTRACE_CONT, pid, NULL, NULL);
		halt = wait_for_halt(&l);
	}
	if (halt == HALT_EXEC)
		return as_hook_begin(pid, spec, ret, ret_status, err);
	if (ret_status)
		*ret_status = l.status;
	return fail_end(&l, err);
}

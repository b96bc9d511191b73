/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The order of things when a process is patched, and when that is taken back. */
#include "hook/hooked_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/sys.h"

#define SCAN_BYTES                                                                             \
	0x10000u /* of a stack: a signal frame is within, its handler's frames before it */
#define SCAN_BYTES_MANY 0x2000u /* with more than SCAN_THREADS threads */
#define SCAN_THREADS    64
#define CS_64           0x33
#define TCB_BYTES       1024 /* of a thread's descriptor, from its thread pointer */

/* ---- threads ---- */

static bool is_ours(const struct as_hooked *h, uint64_t gs)
{
	return h->contexts_avma && gs - h->contexts_avma < h->contexts_bytes;
}

/* Code that begins like an image of ours, and a note behind it. */
void as_hooked_find_earlier(struct as_hooked *h)
{
	struct as_maps maps;

	if (as_maps_read(h->pid, &maps, NULL) < 0)
		return;
	as_vec_foreach (m, &maps.map) {
		struct as_rt_image im;
		struct as_island_note note;

		if (m->kind != AS_MAP_OTHER || !m->exec || m->write ||
		    pread(h->mem_fd, &im, sizeof im, (off_t)m->start) != sizeof im ||
		    im.magic != AS_RT_MAGIC ||
		    pread(h->mem_fd, &note, sizeof note,
			  (off_t)(m->start + as_hooked_image_bytes(&im))) != sizeof note ||
		    note.magic != AS_RT_MAGIC)
			continue;
		as_vec_push(&h->earlier, note);
	}
	as_maps_clear(&maps);
}

static bool was_ours(const struct as_hooked *h, uint64_t gs)
{
	as_vec_foreach (e, &h->earlier) {
		if (gs - e->contexts_avma < e->contexts_bytes)
			return true;
	}
	return false;
}

/* The gs base finds a thread's context. Nothing on Linux uses it but a few emulators. */
int as_hooked_check_gs(struct as_hooked *h, struct as_stop *s, struct as_error *err)
{
	as_vec_foreach (t, &s->thread) {
		if (t->regs.gs_base && !is_ours(h, t->regs.gs_base) &&
		    !was_ours(h, t->regs.gs_base))
			return as_fail(err, AS_E_UNSUPPORTED, 0,
				       "thread %d of process %d uses the gs register itself "
				       "(Wine?): it cannot be patched",
				       (int)t->tid, (int)h->pid);
	}
	return 0;
}

void as_hooked_set_gs(struct as_hooked *h, struct as_stop *s)
{
	as_vec_foreach (t, &s->thread) {
		if (is_ours(h, t->regs.gs_base))
			continue;
		t->regs.gs_base = h->contexts_avma;
		t->changed = true;
	}
}

/* Code of ours reads fs:0, which is there in every thread that a C library has made. */
static int check_fs(struct as_hooked *h, struct as_stop *s, struct as_error *err)
{
	as_vec_foreach (t, &s->thread) {
		if (!t->regs.fs_base)
			return as_fail(
				err, AS_E_UNSUPPORTED, 0,
				"thread %d of process %d has no thread-local storage: it "
				"cannot be patched while such a thread runs",
				(int)t->tid, (int)h->pid);
	}
	return 0;
}

/* Where thread libraries keep a thread's id: the one place where all threads have theirs. */
void as_hooked_find_tid_off(struct as_hooked *h, const struct as_stop *s)
{
	uint32_t head[TCB_BYTES / 4];
	bool fits[TCB_BYTES / 4];

	memset(fits, true, sizeof fits);
	as_vec_foreach (t, &s->thread) {
		if (pread(h->mem_fd, head, sizeof head, (off_t)t->regs.fs_base) != sizeof head)
			return;
		for (size_t i = 0; i < AS_ARRAY_LEN(head); i++)
			fits[i] = fits[i] && head[i] == (uint32_t)t->tid;
	}
	for (size_t i = 1; i < AS_ARRAY_LEN(fits) && !h->tid_off; i++)
		h->tid_off = fits[i] ? (uint32_t)i * 4 : 0;
}

/* ---- places in the first bytes ---- */

/* Where pc goes on once the functions are patched; pc itself when it is nowhere inside. */
static uint64_t moved_pc(const struct as_hooked *h, size_t from, uint64_t pc)
{
	for (size_t k = from; k < h->fn.n; k++) {
		const struct as_hooked_function *f = &h->fn.v[k];
		uint64_t bias = h->module.v[f->module].bias;

		if (f->thunk_avma && pc - (f->detour.svma + bias) < f->detour.window)
			return as_detour_moved_pc(&f->detour, bias, f->copy_avma, pc);
	}
	return pc;
}

static void move_thread(struct as_hooked *h, size_t from, struct as_stopped *t)
{
	uint64_t to = moved_pc(h, from, t->regs.rip);

	if (to == t->regs.rip)
		return;
	t->regs.rip = to;
	t->changed = true;
	h->cost.moved++;
}

/*
 * A signal handler that runs has the interrupted pc in its frame: a word inside a window, followed by
 * eflags (bit 1 is always set) and the code segment (Linux, struct sigcontext).
 */
static void move_in_stack(struct as_hooked *h, size_t from, const struct as_stopped *t,
			  size_t bytes)
{
	AS_CLEANUP(as_free_autop) uint64_t *p = as_xmalloc(bytes);
	uint64_t sp = t->regs.rsp & ~7ull;
	struct iovec here = {p, bytes}, there = {(void *)(uintptr_t)sp, bytes};
	ssize_t got = process_vm_readv(h->pid, &here, 1, &there, 1, 0);
	size_t n;

	if (got < 0) { /* the stack ends before: up to where it does */
		there.iov_len = bytes = 4096 - sp % 4096;
		got = process_vm_readv(h->pid, &here, 1, &there, 1, 0);
	}
	n = got > 0 ? (size_t)got / 8 : 0;
	for (size_t i = 0; i + 2 < n; i++) {
		uint64_t to;

		if ((p[i + 2] & 0xffff) != CS_64 || !(p[i + 1] & 2) || p[i + 1] >> 32)
			continue;
		to = moved_pc(h, from, p[i]);
		if (to != p[i] && pwrite(h->mem_fd, &to, 8, (off_t)(sp + 8 * i)) == 8)
			h->cost.moved++;
	}
}

static void move_all(struct as_hooked *h, size_t from, struct as_stop *s)
{
	size_t bytes = s->thread.n > SCAN_THREADS ? SCAN_BYTES_MANY : SCAN_BYTES;

	as_vec_foreach (t, &s->thread) {
		move_thread(h, from, t);
		move_in_stack(h, from, t, bytes);
	}
}

/* ---- patching ---- */

/* Copies of the pages are made before the process stands still. A byte that is written as it is. */
static void touch_pages(struct as_hooked *h, size_t from)
{
	uint64_t last = 0;

	for (size_t k = from; k < h->fn.n; k++) {
		const struct as_hooked_function *f = &h->fn.v[k];
		uint64_t page = as_hooked_avma(h, f) & ~4095ull;
		uint8_t byte;

		if (!f->thunk_avma || page == last)
			continue;
		last = page;
		if (pread(h->mem_fd, &byte, 1, (off_t)page) == 1 &&
		    pwrite(h->mem_fd, &byte, 1, (off_t)page) != 1)
			return; /* only while it is held, then (kernels that ask for ptrace) */
	}
}

static int patch_one(struct as_hooked *h, struct as_hooked_function *f, struct as_error *err)
{
	uint64_t at = as_hooked_avma(h, f);
	size_t n = f->detour.window;
	uint8_t now[AS_DETOUR_WINDOW];

	if (pread(h->mem_fd, now, n, (off_t)at) != (ssize_t)n) {
		f->state = AS_HOOK_GONE;
		return 0;
	}
	if (!memcmp(now, f->patch, n)) {
		f->state = AS_HOOK_ACTIVE;
		return 0;
	}
	if (memcmp(now, f->detour.old, n)) {
		f->state = AS_HOOK_CHANGED;
		return 0;
	}
	if (pwrite(h->mem_fd, f->patch, n, (off_t)at) != (ssize_t)n)
		return as_fail(err, AS_E_ACCESS, errno, "cannot write code of process %d: %s",
			       (int)h->pid, strerror(errno));
	f->state = AS_HOOK_ACTIVE;
	return 0;
}

int as_hooked_patch(struct as_hooked *h, size_t from, struct as_stop *s, struct as_error *err)
{
	int r = 0;

	if (s)
		move_all(h, from, s);
	for (size_t k = from; r == 0 && k < h->fn.n; k++) {
		struct as_hooked_function *f = &h->fn.v[k];

		if (f->thunk_avma && h->module.v[f->module].present)
			r = patch_one(h, f, err);
	}
	return r;
}

bool as_hooked_any_wanted(const struct as_hooked *h)
{
	const unsigned of_memory = AS_HOOKS_HEAP | AS_HOOKS_MAPPINGS;
	const unsigned wanted = h->spec.groups & of_memory ? of_memory : h->spec.groups;

	as_vec_foreach (f, &h->fn) {
		if (f->verdict == AS_DETOUR_OK && f->what.group & wanted)
			return true;
	}
	return false;
}

int as_hooked_fail_nothing(const struct as_hooked *h, struct as_error *err)
{
	as_vec_foreach (m, &h->module) {
		if (m->unseen)
			return as_fail(
				err, AS_E_NOTFOUND, 0,
				"'%s' has %s, but no symbols: what it allocates cannot be "
				"seen%s%s\n  keep the symbol table (strip = \"debuginfo\", or "
				"no "
				"strip -s), or link the allocator dynamically",
				m->path, m->unseen, m->why ? ", and " : "",
				m->why ? m->why : "");
	}
	return as_fail(
		err, AS_E_NOTFOUND, 0,
		"process %d has no function of an allocator that can be patched\n  a static "
		"program needs its symbol table: strip = \"debuginfo\", or no strip -s",
		(int)h->pid);
}

/* The first stop: memory, and a gs base for every thread that is or will be. */
static int stop_and_map(struct as_hooked *h, struct as_error *err)
{
	struct as_stop s;
	int r = as_stop_all(h->pid, &s, err);

	if (r < 0)
		return r;
	r = as_hooked_check_gs(h, &s, err);
	if (r == 0)
		r = check_fs(h, &s, err);
	as_hooked_find_tid_off(h, &s);
	if (r == 0)
		r = as_hooked_map(h, &s, err);
	if (r == 0)
		as_hooked_set_gs(h, &s);
	h->cost.threads = s.thread.n;
	h->cost.restarted += s.restarted;
	h->cost.map_ns = as_now_ns() - s.begin_ns;
	as_stop_resume(&s);
	return r;
}

static int stop_and_patch(struct as_hooked *h, struct as_error *err)
{
	struct as_stop s;
	int r = as_stop_all(h->pid, &s, err);

	if (r < 0)
		return r;
	as_hooked_set_gs(h, &s);
	r = as_hooked_patch(h, 0, &s, err);
	h->cost.threads = s.thread.n;
	h->cost.restarted += s.restarted;
	h->cost.patch_ns = as_now_ns() - s.begin_ns;
	as_stop_resume(&s);
	return r;
}

int as_hook_attach(pid_t pid, const struct as_hook_spec *spec, struct as_hooked **ret,
		   struct as_error *err)
{
	struct as_hooked *h = as_hooked_new(pid, spec, err);
	size_t from;
	int r;

	if (!h)
		return err ? err->status : AS_E_IO;
	as_hooked_find_earlier(h);
	r = as_hooked_scan(h, &from, err);
	if (r == 0 && !as_hooked_any_wanted(h))
		r = as_hooked_fail_nothing(h, err);
	if (r == 0)
		r = stop_and_map(h, err);
	if (r == 0)
		r = as_hooked_write(h, 0, err);
	if (r == 0) {
		as_hooked_publish(h);
		touch_pages(h, 0);
		r = stop_and_patch(h, err);
	}
	if (r < 0) {
		as_hook_free(h);
		return r;
	}
	*ret = h;
	return 0;
}

static int stop_and_map_more(struct as_hooked *h, struct as_error *err)
{
	struct as_stop s;
	int r = as_stop_all(h->pid, &s, err);

	if (r < 0)
		return r;
	r = as_hooked_map(h, &s, err);
	h->cost.restarted += s.restarted;
	as_stop_resume(&s);
	return r;
}

int as_hook_update(struct as_hooked *h, struct as_error *err)
{
	size_t from;
	int r = as_hooked_scan(h, &from, err);

	if (r == 0 && as_hooked_needs_island(h))
		r = stop_and_map_more(h, err);
	if (r == 0)
		r = as_hooked_write(h, from, err);
	if (r == 0)
		as_hooked_publish(h);
	return r < 0 ? r : as_hooked_patch(h, 0, NULL, err);
}

/* ---- back ---- */

/* Bytes that are neither ours nor the old ones are somebody else's by now, and stay. */
static int restore_one(struct as_hooked *h, int mem_fd, const struct as_hooked_function *f)
{
	uint64_t at = as_hooked_avma(h, f);
	ssize_t n = f->detour.window;
	uint8_t now[AS_DETOUR_WINDOW];

	if (pread(mem_fd, now, (size_t)n, (off_t)at) != n || memcmp(now, f->patch, (size_t)n))
		return 0;
	if (pwrite(mem_fd, f->detour.old, (size_t)n, (off_t)at) != n ||
	    pread(mem_fd, now, (size_t)n, (off_t)at) != n ||
	    memcmp(now, f->detour.old, (size_t)n))
		return -1;
	return 0;
}

static int restore(struct as_hooked *h, pid_t pid, int mem_fd, struct as_error *err)
{
	struct as_stop s;
	int r = as_stop_all(pid, &s, err);
	size_t failed = 0;

	if (r < 0)
		return r;
	as_vec_foreach (f, &h->fn) {
		if (f->thunk_avma && restore_one(h, mem_fd, f) < 0)
			failed++;
	}
	h->cost.threads = s.thread.n;
	h->cost.restarted += s.restarted;
	h->cost.detach_ns = as_now_ns() - s.begin_ns;
	as_stop_resume(&s);
	if (failed)
		return as_fail(err, AS_E_IO, 0, "%zu functions of process %d stay patched",
			       failed, (int)pid);
	return 0;
}

int as_hook_detach(struct as_hooked *h, struct as_error *err)
{
	int r = restore(h, h->pid, h->mem_fd, err);

	if (r < 0)
		return r;
	as_vec_foreach (f, &h->fn) {
		if (f->state == AS_HOOK_ACTIVE)
			f->state = AS_HOOK_GONE;
	}
	return 0;
}

int as_hook_detach_child(struct as_hooked *h, pid_t child, struct as_error *err)
{
	char path[64];
	int fd, r;

	snprintf(path, sizeof path, "/proc/%d/mem", (int)child);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return as_fail(err, errno == ENOENT ? AS_E_NOTFOUND : AS_E_ACCESS, errno,
			       "cannot write the memory of process %d: %s", (int)child,
			       strerror(errno));
	r = restore(h, child, fd, err);
	close(fd);
	return r;
}

/* ---- what is known ---- */

pid_t as_hook_pid(const struct as_hooked *h)
{
	return h->pid;
}

void *as_hook_shared(const struct as_hooked *h, size_t *ret_bytes)
{
	*ret_bytes = h->shared_bytes;
	return h->shared;
}

int as_hook_shared_fd(const struct as_hooked *h)
{
	return h->shared_fd;
}

const struct as_rt_home *as_hook_home(const struct as_hooked *h)
{
	return &h->home;
}

size_t as_hook_count(const struct as_hooked *h)
{
	return h->fn.n;
}

void as_hook_get(const struct as_hooked *h, size_t i, struct as_hook_function_info *ret)
{
	const struct as_hooked_function *f = &h->fn.v[i];

	*ret = (struct as_hook_function_info){
		.name = f->what.name,
		.module = h->module.v[f->module].path,
		.svma = f->what.svma,
		.avma = f->what.svma + h->module.v[f->module].bias,
		.id = f->id,
		.kind = f->what.kind,
		.group = f->what.group,
		.family = f->what.family,
		.state = f->state,
		.verdict = f->verdict,
		.local = f->what.local,
		.layer = f->what.by_signature ? "signature" : "entry",
	};
}

void as_hook_costs(const struct as_hooked *h, struct as_hook_cost *ret)
{
	*ret = h->cost;
}

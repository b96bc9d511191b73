/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "snapshot/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "base/sys.h"
#include "hook/fork.h"
#include "hook/stop.h"
#include "snapshot/snapshot_priv.h"

#define RED_ZONE    128u /* below the stack pointer: in use (psABI) */
#define SAVED_WORDS 5u   /* registers that a function may have to save, but rbp */

/* ---- the process's memory ---- */

struct target {
	struct as_snapshot *s;
	pid_t pid; /* its own, or the copy's */
};

static size_t read_memory(void *ctx, const struct as_leak_range *v, size_t n, void *buf)
{
	const struct target *t = ctx;
	struct iovec remote[AS_LEAK_BATCH], local = {.iov_base = buf};
	ssize_t got;

	for (size_t i = 0; i < n; i++) {
		remote[i].iov_base = (void *)(uintptr_t)v[i].low;
		remote[i].iov_len = v[i].high - v[i].low;
		local.iov_len += remote[i].iov_len;
	}
	got = process_vm_readv(t->pid, &local, 1, remote, n, 0);
	return got < 0 ? 0 : (size_t)got;
}

static bool next_memory(void *ctx, uint64_t low, uint64_t high, struct as_leak_range *ret)
{
	const struct as_smaps *maps = &((const struct target *)ctx)->s->maps;
	size_t lo = 0, hi = maps->map.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (maps->map.v[mid].high <= low)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < maps->map.n && maps->map.v[lo].low < high; lo++) {
		if (as_smap_next(&maps->map.v[lo], low, high, ret))
			return true;
	}
	return false;
}

static enum as_leak_memory_kind memory_kind(void *ctx, uint64_t avma)
{
	const struct as_smap *m = as_smaps_find(&((const struct target *)ctx)->s->maps, avma);

	if (!m || m->kind != AS_SMAP_FILE || !m->read)
		return AS_LEAK_OTHER;
	return m->exec ? AS_LEAK_CODE : AS_LEAK_DATA;
}

/* ---- what is noted while it stands still ---- */

static void note_word(struct as_snapshot_thread *k, uint64_t word)
{
	if (k->nwords < AS_SNAPSHOT_WORDS)
		k->word[k->nwords++] = word;
}

/*
 * The thread that calls exit stands in the in-target runtime: what lies below exit_sp is no data of the
 * program, but that registers of its caller may have been saved there. The runtime keeps frame pointers,
 * and saves them next to where these point; the rest of its frames is stale.
 */
static void note_exiting(const struct as_snapshot *s, const struct user_regs_struct *r,
			 uint64_t exit_sp, struct as_snapshot_thread *k)
{
	const uint64_t saved[] = {r->rbx, r->rbp, r->r12, r->r13, r->r14, r->r15};
	uint64_t frame = r->rbp, below = r->rsp;

	for (size_t i = 0; i < AS_ARRAY_LEN(saved); i++)
		note_word(k, saved[i]);
	for (int depth = 0; depth < 12 && frame > below && frame < exit_sp; depth++) {
		for (uint64_t i = 1; i <= SAVED_WORDS; i++) {
			uint64_t word;

			if (as_snapshot_word(s, frame - 8 * i, &word))
				note_word(k, word);
		}
		below = frame;
		if (!as_snapshot_word(s, frame, &frame))
			break;
	}
	k->sp = exit_sp;
}

static void note_thread(struct as_snapshot *s, const struct as_stopped *t,
			const struct as_snapshot_spec *spec)
{
	const struct user_regs_struct *r = &t->regs;
	const uint64_t word[] = {r->rax, r->rbx, r->rcx, r->rdx, r->rsi, r->rdi, r->rbp, r->r8,
				 r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};
	struct as_snapshot_thread k = {.sp = r->rsp - RED_ZONE, .fs = r->fs_base};

	if (t->tid == spec->exit_tid && spec->exit_sp > r->rsp) {
		note_exiting(s, r, spec->exit_sp, &k);
	} else {
		for (size_t i = 0; i < AS_ARRAY_LEN(word); i++)
			note_word(&k, word[i]);
	}
	as_vec_push(&s->threads, k);
}

/* Rounding is known for allocators whose rules are: by their families. */
static void note_hooks(struct as_snapshot *s, const struct as_hooked *h)
{
	struct as_hook_range range[AS_HOOK_RANGES];
	size_t n;

	if (!h)
		return;
	n = as_hook_memory(h, range, AS_HOOK_RANGES);
	for (size_t i = 0; i < n; i++)
		as_vec_push(&s->ours, (struct as_leak_range){range[i].low, range[i].high});
	n = as_hook_count(h);
	for (size_t i = 0; i < n; i++) {
		struct as_hook_function_info f;

		as_hook_get(h, i, &f);
		if (f.state != AS_HOOK_ACTIVE)
			continue;
		s->is_glibc |= f.family == AS_ALLOCATOR_GLIBC;
		s->is_geometric |=
			f.family == AS_ALLOCATOR_JEMALLOC || f.family == AS_ALLOCATOR_MIMALLOC;
	}
}

/* What only the process itself knows, and only as long as it stands still. */
static int note(struct as_snapshot *s, const struct as_snapshot_spec *spec,
		const struct as_stop *stop, struct as_error *err)
{
	int r = as_smaps_read(spec->pid, &s->maps, err);

	if (r < 0)
		return r;
	as_smaps_pages(&s->maps, spec->pid, AS_SMAPS_NOT_FORKED);
	as_vec_foreach (t, &stop->thread)
		note_thread(s, t, spec);
	note_hooks(s, spec->hooked);
	return 0;
}

/* What its copy knows as well, and our own lists: nobody changes the heap before the look is over. */
static void note_rest(struct as_snapshot *s, const struct as_snapshot_spec *spec, pid_t pid)
{
	as_smaps_pages(&s->maps, pid, AS_SMAPS_FORKED);
	as_leaks_add_live(&s->leaks, spec->heap);
	as_vec_foreach (range, &spec->heap->ranges)
		as_vec_push(&s->ranges, *range);
}

static void clear(struct as_snapshot *s)
{
	as_smaps_clear(&s->maps);
	free(s->area);
	as_vec_clear(&s->threads);
	as_vec_clear(&s->ours);
	as_vec_clear(&s->ranges);
	as_vec_clear(&s->arenas);
	as_leaks_clear(&s->leaks);
}

/* ---- looking ---- */

static uint64_t thread_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* pid: the copy's, or its own where it stands still. */
static void look(struct as_snapshot *s, const struct as_snapshot_spec *spec, pid_t pid,
		 struct as_heap_leaks *leaks, struct as_heap_resident *resident)
{
	note_rest(s, spec, pid);
	as_leaks_seal(&s->leaks);
	as_snapshot_areas(s);
	as_snapshot_roots(s);
	as_leaks_finish(&s->leaks);
	as_heap_leaks_sum(&s->leaks, leaks);
	leaks->threads = (uint32_t)s->threads.n;
	as_snapshot_parts(s, resident);
}

/* All in one go: the process goes on as soon as it can. ret_copy: 0 when it stays stopped. */
static int stop_and_note(struct as_snapshot *s, const struct as_snapshot_spec *spec,
			 struct as_stop *stop, pid_t *ret_copy, struct as_error *err)
{
	int r = as_stop_all(spec->pid, stop, err);

	*ret_copy = 0;
	if (r < 0)
		return r;
	if (spec->drain)
		spec->drain(spec->ctx);
	r = note(s, spec, stop, err);
	/* where it can have no more children it is read as it stands */
	if (r == 0 && !spec->stay && as_stop_fork(stop, ret_copy, NULL) < 0)
		*ret_copy = 0;
	return r;
}

int as_snapshot_look(const struct as_snapshot_spec *spec, struct as_error *err)
{
	struct as_snapshot s = {.partial = spec->partial};
	struct target t = {&s, spec->pid};
	struct as_heap_leaks *leaks = as_xcalloc(1, sizeof *leaks);
	struct as_heap_resident *resident = as_xcalloc(1, sizeof *resident);
	uint64_t cpu = thread_cpu_ns();
	struct as_stop stop;
	pid_t copy;
	int r;

	s.memory = (struct as_leak_memory){&t, read_memory, next_memory, memory_kind};
	as_leaks_init(&s.leaks, &s.memory);
	r = stop_and_note(&s, spec, &stop, &copy, err);
	leaks->time_ns = resident->time_ns = stop.begin_ns;
	leaks->at_exit = spec->exit_tid != 0;
	if (r == 0 && copy) {
		leaks->pause_ns = as_now_ns() - stop.begin_ns;
		as_stop_resume(&stop);
		t.pid = copy;
		look(&s, spec, copy, leaks, resident);
		as_stop_end_fork(spec->pid, copy);
	} else {
		if (r == 0)
			look(&s, spec, spec->pid, leaks, resident);
		leaks->pause_ns = as_now_ns() - stop.begin_ns;
		as_stop_resume(&stop);
	}
	leaks->cpu_ns = thread_cpu_ns() - cpu;
	clear(&s);
	if (r < 0) {
		as_heap_leaks_free(leaks);
		as_heap_resident_free(resident);
		return r;
	}
	as_heap_leaks_free(spec->heap->leaks);
	as_heap_resident_free(spec->heap->resident);
	spec->heap->leaks = leaks;
	spec->heap->resident = resident;
	return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * From a sample's registers and stack copy to frames. A copy that was too short is continued at
 * once from the live memory of the thread, when that can be shown to be the same stack still:
 *
 *	1. what the unwinding used last within the copy is equal in live memory,
 *	2. every frame found there is entered by a call (its return address follows one),
 *	3. it leads down to the thread's first frame.
 *
 * Otherwise the sample keeps only what the copy gave, marked AS_END_SHORT.
 */
#include "collect/engine_ring_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/sys.h"
#include "collect/perf_regs_priv.h"

#define WINDOW_BYTES 16384u
#define PROBES       16u
#define BATCH_FRAMES 48u
#define MEMO_FRAMES  64u /* chains below that are read anew */
#define MEMO_FAR     256u
#define MEMO_REST_NS 30000000u

struct walk {
	struct as_ring *e;
	struct as_process *p;
	const struct as_perf_rec *rec;
	uint64_t sp;      /* of the copy's first byte */
	uint32_t callers; /* of the last frame, from the memo */
	bool live;        /* may read beyond the copy */
	int live_errno;
	uint64_t window_avma;
	size_t window_len;
};

static ssize_t read_live(pid_t tid, uint64_t avma, void *out, size_t n)
{
	struct iovec local = {out, n}, remote = {(void *)(uintptr_t)avma, n};

	return process_vm_readv(tid, &local, 1, &remote, 1, 0);
}

/* n <= PROBES words of live memory. */
static bool read_words(struct walk *w, const uint64_t *at, uint64_t *ret, size_t n)
{
	struct iovec local = {ret, 8 * n}, remote[PROBES];
	ssize_t got;

	for (size_t i = 0; i < n; i++)
		remote[i] = (struct iovec){(void *)(uintptr_t)at[i], 8};
	got = process_vm_readv(w->rec->tid, &local, 1, remote, n, 0);
	if (got < 0)
		w->live_errno = errno;
	return got == (ssize_t)(8 * n);
}

static int read_window(struct walk *w, uint64_t avma, void *out, size_t n)
{
	ssize_t got;

	if (avma < w->window_avma || avma + n > w->window_avma + w->window_len) {
		w->window_avma = avma;
		got = read_live(w->rec->tid, avma, w->e->window, WINDOW_BYTES);
		w->window_len = got > 0 ? (size_t)got : 0;
		if (got < 0)
			w->live_errno = errno;
	}
	if (avma < w->window_avma || avma - w->window_avma + n > w->window_len)
		return AS_E_IO;
	memcpy(out, w->e->window + (avma - w->window_avma), n);
	return 0;
}

static int read_stack(void *ctx, uint64_t avma, void *out, size_t n)
{
	struct walk *w = ctx;

	if (avma >= w->sp && avma - w->sp <= w->rec->nstack &&
	    n <= w->rec->nstack - (avma - w->sp)) {
		memcpy(out, w->rec->stack + (avma - w->sp), n);
		return 0;
	}
	return w->live ? read_window(w, avma, out, n) : AS_E_LIMIT;
}

static bool find_module(void *ctx, uint64_t avma, struct as_unwind_module *ret)
{
	struct walk *w = ctx;

	return as_image_unwind_find(w->e->env.image, w->p, avma, ret);
}

/* n code bytes that end at avma */
static int read_code(void *ctx, uint64_t avma, void *out, size_t n)
{
	struct walk *w = ctx;
	uint64_t start = avma - n;

	if (as_image_read_code(w->e->env.image, w->p, start, out, n) == 0)
		return 0;
	return read_live(w->rec->tid, start, out, n) == (ssize_t)n ? 0 : AS_E_IO;
}

static struct as_unwind_env unwind_env(struct walk *w)
{
	return (struct as_unwind_env){
		.arch = AS_PERF_ARCH,
		.ctx = w,
		.find = find_module,
		.read = read_stack,
		.read_code = read_code,
		.unwinder = w->e->unwinder,
	};
}

/* ---- continuing a copy that was too short ---- */

/*
 * Condition 1: the outermost frame within the copy still waits for the same call to return: its return
 * address stands (x86-64). What it called may have gone on, and locals may change at any time.
 */
static bool still_there(struct walk *w, const struct as_unwind_result *res)
{
	uint64_t end = w->sp + w->rec->nstack;
	uint64_t at[PROBES], now[PROBES];
	size_t k = 0;
	bool leaf_only;

	for (size_t i = res->nframes; AS_PERF_RA_BELOW_CFA && !k && i-- > 1;) {
		const struct as_uframe *f = &w->e->uframes[i];

		if (!f->exact && f->sp >= w->sp + 8 && f->sp <= end)
			at[k++] = f->sp - 8;
	}
	leaf_only = !k;
	/* no frame was left within the copy: its last bytes stand for the leaf's frame */
	for (uint64_t p = end; leaf_only && w->rec->nstack >= 64 && p > end - 64; p -= 8)
		at[k++] = (p - 8) & ~7ull;
	if (!k || !read_words(w, at, now, k))
		return false;
	for (size_t i = 0; i < k; i++) {
		if (memcmp(&now[i], w->rec->stack + (at[i] - w->sp), 8))
			return false;
	}
	return true;
}

/* Condition 2, with a small memory of addresses that passed. */
static bool after_call(struct walk *w, uint64_t avma)
{
	uint64_t key = as_mix64(
		avma ^ as_mix64((uint64_t)(uint32_t)w->p->pid << 32 | w->p->generation));
	uint64_t *known = &w->e->code_ok[key % AS_ARRAY_LEN(w->e->code_ok)];
	uint8_t code[8];

	if (*known == key)
		return true;
	if (read_code(w, avma, code, sizeof code) < 0 ||
	    !as_is_after_call(AS_PERF_ARCH, code, sizeof code))
		return false;
	*known = key;
	return true;
}

static bool calls_are_real(struct walk *w, const struct as_uframe *f, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		/* below a signal frame stands a pc; a stack's first frame may be entered by no
		 * call */
		if (!f[i].exact && !f[i].signal && i + 1 < to && !after_call(w, f[i].avma))
			return false;
	}
	return true;
}

/* Sixteen return addresses spread over the chain stand where they stood. */
static bool memo_stands(struct walk *w, const struct as_uframe *f, size_t n)
{
	uint64_t at[PROBES], want[PROBES], now[PROBES];
	size_t k = 0;

	for (size_t i = 0; AS_PERF_RA_BELOW_CFA && i < PROBES; i++) {
		size_t j = 1 + (n - 2) * i / (PROBES - 1);

		if (f[j].exact || f[j].signal)
			continue;
		at[k] = f[j].sp - 8;
		want[k++] = f[j].avma;
	}
	return k && read_words(w, at, now, k) && !memcmp(now, want, k * sizeof *now);
}

/* Index of the frame with this sp and pc in the memo; its n when there is none. */
static size_t memo_find(const struct as_ring_memo *m, const struct as_uframe *f)
{
	size_t lo = 0, hi = m->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->frames[mid].sp < f->sp)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < m->n && m->frames[lo].sp == f->sp && m->frames[lo].avma == f->avma ? lo
										       : m->n;
}

/* The last frame and what called it stand as they were read before: the recorder knows the rest. */
static bool append_memo(struct walk *w, struct as_ring_memo *m, struct as_unwind_result *res)
{
	struct as_uframe *last = &w->e->uframes[res->nframes - 1];
	size_t at = memo_find(m, last);

	if (m->n - at < MEMO_FRAMES || !memo_stands(w, m->frames + at, m->n - at))
		return false;
	w->callers = m->callers[at + 1];
	res->end = m->end;
	return true;
}

static struct as_raw_frame raw_frame(const struct as_uframe *f)
{
	return (struct as_raw_frame){
		.addr = f->module == AS_NO_MODULE ? f->avma : f->svma,
		.module = f->module,
		.flags = (f->exact ? AS_FRAME_EXACT : 0u) | (f->signal ? AS_FRAME_SIGNAL : 0u),
	};
}

static void keep_memo(struct walk *w, struct as_ring_memo *m, const struct as_uframe *f,
		      size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (f[i].sp <= f[i - 1].sp)
			return; /* changes stacks on the way: not searchable */
	}
	m->frames = as_xreallocarray(m->frames, n, sizeof *m->frames);
	m->callers = as_xreallocarray(m->callers, n, sizeof *m->callers);
	memcpy(m->frames, f, n * sizeof *f);
	for (size_t i = 0; i < n; i++)
		w->e->raw[i] = raw_frame(&f[i]);
	as_recorder_callers(w->e->env.recorder, w->e->raw, n, m->callers);
	m->n = n;
}

static void walk_on(struct walk *w, struct as_ring_memo *m, struct as_unwind_result *res)
{
	struct as_unwind_env env = unwind_env(w);
	size_t from = res->nframes;

	for (;;) {
		size_t max = AS_MIN(res->nframes + BATCH_FRAMES, w->e->max_frames);

		as_unwind_continue(&env, w->e->uframes, max, res);
		if (res->end != AS_END_DEPTH || res->nframes < max || max == w->e->max_frames)
			break;
		if (!m->n || !append_memo(w, m, res))
			continue;
		/* made while the stack was shallower: the next sample makes it anew */
		if (res->nframes - from > MEMO_FAR &&
		    w->rec->time_ns > m->kept_ns + MEMO_REST_NS)
			m->n = 0;
		return;
	}
	if (res->end != AS_END_ROOT || res->nframes - from < 2 * MEMO_FRAMES)
		return;
	keep_memo(w, m, w->e->uframes + from, res->nframes - from);
	m->end = res->end;
	m->kept_ns = w->rec->time_ns;
}

static bool continue_live(struct walk *w, struct as_ring_thread *t,
			  struct as_unwind_result *res)
{
	struct as_ring_proc *proc = as_ring_proc(w->e, w->rec->pid);
	struct as_unwind_result more = *res;

	if (proc->no_memory_access || !res->nframes || !still_there(w, res)) {
		if (w->live_errno == EPERM && !proc->no_memory_access) {
			proc->no_memory_access = true;
			as_recorder_note(w->e->env.recorder, 1, "", "sudo assay record …",
					 "the memory of process %d cannot be read: stacks "
					 "larger than the copy stay truncated",
					 (int)w->rec->pid);
		}
		return false;
	}
	w->live = true;
	walk_on(w, &t->memo, &more);
	w->live = false;
	/* zero_root: the thread has ended and given its stack back, which reads as zeros */
	if ((more.end != AS_END_ROOT && more.end != AS_END_DEPTH) || more.zero_root ||
	    !calls_are_real(w, w->e->uframes, res->nframes,
			    AS_MIN(more.nframes, res->nframes + 4096))) {
		w->callers = 0;
		t->memo.n = 0;
		return false;
	}
	*res = more;
	return true;
}

/* ---- one sample ---- */

static size_t add_kernel_frames(struct as_ring *e, const struct as_perf_rec *rec)
{
	size_t n = 0;

	for (size_t i = 0; i < rec->nips && n < 1024; i++) {
		uint64_t ip = as_get_le64(rec->ips + 8 * i);

		if (ip >= (uint64_t)-4095) /* PERF_CONTEXT_… markers */
			continue;
		if (!(ip >> 63))
			break; /* user part: not ours */
		e->raw[n] = (struct as_raw_frame){ip, AS_KERNEL_FRAME,
						  AS_FRAME_KERNEL | (n ? 0 : AS_FRAME_EXACT)};
		n++;
	}
	if (!n && rec->kernel_mode && rec->ip >> 63)
		e->raw[n++] = (struct as_raw_frame){rec->ip, AS_KERNEL_FRAME,
						    AS_FRAME_KERNEL | AS_FRAME_EXACT};
	return n;
}

static size_t add_user_frames(struct as_ring *e, size_t n, size_t nuser)
{
	for (size_t i = 0; i < nuser && n < e->max_frames + 1024; i++) {
		const struct as_uframe *f = &e->uframes[i];

		e->raw[n++] = raw_frame(f);
	}
	return n;
}

/* A pc in no known mapping: look again, at most every 50 ms per process. True when that changed
 * the map. */
static bool heal(struct as_ring *e, struct walk *w)
{
	struct as_ring_proc *proc = as_ring_proc(e, w->rec->pid);
	uint64_t now = as_now_ns();
	uint32_t before = w->p ? w->p->generation : 0;
	bool known = w->p;

	if (now < proc->reread_ns + 50000000ull)
		return false;
	proc->reread_ns = now;
	if (as_image_read_maps(e->env.image, w->rec->pid, w->rec->time_ns, NULL) < 0)
		return false;
	w->p = as_image_process(e->env.image, w->rec->pid);
	return w->p && (!known || w->p->generation != before);
}

/* So that a window of any length follows what the thread does now. */
static void halve_old(struct as_ring_thread *t)
{
	if (t->n < 2048)
		return;
	t->n = t->holes /= 2;
	for (size_t i = 0; i < AS_RING_COPY_SIZES; i++)
		t->n += t->by_size[i] /= 2;
}

/* Which copy would have served this sample. */
static void note_need(struct as_ring_thread *t, const struct walk *w,
		      const struct as_unwind_result *res, bool was_short, bool repaired)
{
	uint64_t need = res->highest_addr > w->sp ? res->highest_addr - w->sp : 0;
	bool elsewhere =
		was_short && repaired && need < w->rec->nstack; /* left an alternate stack */
	size_t i = 0;

	halve_old(t);
	t->n++;
	if (elsewhere || (was_short && w->rec->nstack < w->rec->stack_asked)) {
		t->holes++;
		return;
	}
	if (was_short && !repaired) /* not found out: more than this */
		need = w->rec->nstack + 1;
	while (i + 1 < AS_RING_COPY_SIZES && as_ring_copy_sizes[i] < need)
		i++;
	t->by_size[i]++;
}

/* A rule that needs more than three registers: load the full CFI of every module on the way, so
 * that the unwinder can start anew with all of them. True when that gave it something new. */
static bool load_full_cfi(struct as_ring *e, const struct as_unwind_result *res)
{
	bool fresh = false;

	for (size_t i = 0; i < res->nframes; i++) {
		uint32_t id = e->uframes[i].module;
		bool is_new;

		if (id == AS_NO_MODULE || (i && id == e->uframes[i - 1].module))
			continue;
		as_map64_put(&e->cfi_loaded, id, &is_new);
		if (is_new)
			fresh |= as_image_module_cfi(e->env.image,
						     as_image_module(e->env.image, id)) != NULL;
	}
	return fresh;
}

/* In the middle of an exec: the registers are those of the program that was, its memory is gone. */
static bool is_between_images(struct as_ring *e, const struct walk *w,
			      const struct as_unwind_result *res)
{
	const struct as_ring_proc *proc = as_ring_proc(e, w->rec->pid);

	return w->rec->kernel_mode && res->end != AS_END_ROOT &&
	       (!res->nframes || e->uframes[0].module == AS_NO_MODULE) &&
	       w->rec->time_ns < proc->exec_ns + 100000000ull;
}

static bool unwind_user(struct as_ring *e, struct as_ring_thread *t, struct walk *w,
			struct as_unwind_result *res)
{
	struct as_unwind_env env = unwind_env(w);
	bool repaired = false, was_short;

	if (!w->p && !heal(e, w)) {
		res->end = AS_END_NOPROC;
		return false;
	}
	as_unwind(&env, &w->rec->regs, e->uframes, e->max_frames, res);
	if (res->end == AS_END_NOMAP && heal(e, w))
		as_unwind(&env, &w->rec->regs, e->uframes, e->max_frames, res);
	if (res->end == AS_END_EXPR && load_full_cfi(e, res))
		as_unwind(&env, &w->rec->regs, e->uframes, e->max_frames, res);
	if (is_between_images(e, w, res)) {
		res->nframes = 0;
		res->end = AS_END_ROOT;
		return false;
	}
	was_short = res->end == AS_END_SHORT;
	e->shorts += was_short;
	if (was_short)
		repaired = continue_live(w, t, res);
	note_need(t, w, res, was_short, repaired);
	return repaired;
}

void as_ring_sample(struct as_ring *e, struct as_ring_thread *t, const struct as_perf_rec *rec,
		    uint64_t weight)
{
	struct as_unwind_result res = {.end = AS_END_NOSTACK};
	struct walk w = {
		.e = e,
		.p = as_image_process(e->env.image, rec->pid),
		.rec = rec,
		.sp = rec->regs.r[AS_PERF_DWARF_SP],
	};
	struct as_raw_sample s = {
		.time_ns = rec->time_ns,
		.pid = rec->pid,
		.tid = rec->tid,
		.cpu = rec->cpu,
		.weight = weight,
		.kernel = rec->kernel_mode,
		.frames = e->raw,
	};

	if (rec->has_regs)
		s.repaired = unwind_user(e, t, &w, &res);
	s.end = res.end;
	s.callers = w.callers;
	s.nframes = add_kernel_frames(e, rec);
	s.nframes = add_user_frames(e, s.nframes, res.nframes);
	e->sampled++;
	e->repaired += s.repaired;
	as_recorder_sample(e->env.recorder, &s);
}

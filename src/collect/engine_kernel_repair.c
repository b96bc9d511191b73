/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stacks the kernel walk could not finish (too deep, unknown mapping, no CFI, rules that need
 * all registers) are continued in the target's memory as it is when the sample is read, some
 * 20 ms later. What has been popped and pushed since must not be believed. A continuation counts
 * only when the first return addresses found stand behind calls, and
 *
 *	- the slot the last known return address came from still holds it, before and after the
 *	  walk, or
 *	- where that slot is not known (all registers needed, so the walk starts at the leaf
 *	  again), the frames the kernel did see come out again, and there was more than the leaf.
 *
 * Samples that bring a copy of their stack are walked in that, from the leaf with all registers:
 * what is found that way is of the moment itself and needs no checks.
 *
 * Deep stacks barely change near their root. Per thread the last long continuation is kept:
 * when the stopping point is one of its frames and some of its slots, spread over the rest,
 * still hold their return addresses, the rest is taken from there. So 20,000 frames cost one
 * walk and then a few reads.
 *
 * Of a process that has ended since, a memo is believed that held RECENT_NS before.
 *
 * CPU time spent is limited to BUDGET_PERMILLE of the time passed, with BURST_NS at hand.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include "base/sys.h"
#include "collect/engine_kernel_priv.h"

#define BUDGET_PERMILLE 20
#define BURST_NS        100000000ull
#define BLOCK_BYTES     65536u
#define MEMO_MIN        32  /* frames worth keeping */
#define MEMO_MAX_COUNT  256 /* threads */
#define MEMO_AGE_NS     10000000000ull
#define BATCH           512 /* frames walked before looking for a joint with the memo */
#define SPOT_CHECKS     16
#define LEAF_BYTES      65536 /* a function is not longer */
#define RECENT_NS       100000000ull
#define CALL_CHECKS     8

struct as_kmemo {
	struct as_uframe *frame; /* leaf first, sp strictly rising */
	uint32_t *callers;       /* as_recorder_callers' for each of them */
	size_t n;
	enum as_stack_end end;
	uint64_t walked_ns;
	uint64_t checked_ns; /* the drain that found it to hold, from checked_from on */
	size_t checked_from;
};

struct walk {
	struct as_krepair *r;
	struct as_process *p;
	struct as_unwind_env env;
	struct as_unwind_result res;
	const struct as_kmemo *joined; /* the rest is in here, from joint on */
	size_t joint;
	bool kept; /* joined is the memo made of this walk */
	bool gone; /* the process has ended: nothing can be read any more */
	const struct as_kstack *copied;
};

/* ---- target memory ---- */

static size_t read_target(pid_t pid, uint64_t avma, void *out, size_t n)
{
	struct iovec to = {out, n}, from = {(void *)(uintptr_t)avma, n};
	ssize_t r = process_vm_readv(pid, &to, 1, &from, 1, 0);

	return r < 0 ? 0 : (size_t)r;
}

/* One block of the stack at a time; a block that cannot be read whole is read page by page. */
static int read_stack(void *ctx, uint64_t avma, void *out, size_t n)
{
	struct walk *w = ctx;
	struct as_krepair *r = w->r;

	if (r->block_pid != w->p->pid || avma < r->block_avma ||
	    avma + n > r->block_avma + BLOCK_BYTES) {
		r->block_avma = avma & ~4095ull;
		r->block_pid = w->p->pid;
		if (read_target(w->p->pid, r->block_avma, r->block, BLOCK_BYTES) != BLOCK_BYTES)
			r->block_pid = 0;
	}
	if (r->block_pid == w->p->pid) {
		memcpy(out, r->block + (avma - r->block_avma), n);
		return 0;
	}
	return read_target(w->p->pid, avma, out, n) == n ? 0 : AS_E_IO;
}

/* n code bytes that end at avma */
static int read_code(void *ctx, uint64_t avma, void *out, size_t n)
{
	struct walk *w = ctx;
	uint64_t start = avma - n;

	if (as_image_read_code(w->r->im, w->p, start, out, n) == 0)
		return 0;
	return read_target(w->p->pid, start, out, n) == n ? 0 : AS_E_IO;
}

static bool find_module(void *ctx, uint64_t avma, struct as_unwind_module *ret)
{
	struct walk *w = ctx;

	return as_image_unwind_find(w->r->im, w->p, avma, ret);
}

static bool slot_holds(struct walk *w, uint64_t sp, uint64_t ra)
{
	uint64_t v;

	errno = 0;
	if (read_target(w->p->pid, sp - 8, &v, 8) == 8)
		return v == ra;
	w->gone = errno == ESRCH;
	return false;
}

static bool calls_are_plausible(struct walk *w, const struct as_uframe *f, size_t n)
{
	for (size_t i = 0; i < AS_MIN(n, (size_t)CALL_CHECKS); i++) {
		uint8_t code[8];

		if (f[i].exact)
			continue;
		if (read_code(w, f[i].avma, code, sizeof(code)) ||
		    !as_is_after_call(w->env.arch, code, sizeof(code)))
			return false;
	}
	return true;
}

/* avma of a frame given by module and svma. */
static bool frame_avma(const struct as_process *p, const struct as_raw_frame *f, uint64_t *ret)
{
	if (f->module == AS_NO_MODULE) {
		*ret = f->addr;
		return true;
	}
	for (size_t i = 0; i < p->nmap; i++) {
		*ret = f->addr + p->map[i].bias;
		if (p->map[i].module == f->module &&
		    *ret - 1 - p->map[i].start < p->map[i].end - p->map[i].start)
			return true;
	}
	return false;
}

static bool is_call_site(struct walk *w, uint64_t avma)
{
	uint64_t key = avma ^ (uint64_t)w->p->pid << 47;
	size_t at = as_mix64(key) % AS_ARRAY_LEN(w->r->call);
	uint8_t code[8];

	if (w->r->call[at].key == key)
		return w->r->call[at].after_call;
	bool ok = !read_code(w, avma, code, sizeof(code)) &&
		  as_is_after_call(AS_ARCH_X86_64, code, sizeof(code));
	w->r->call[at].key = key;
	w->r->call[at].after_call = ok;
	return ok;
}

/* The rule at a frame by the table as it is now; of kind NONE: there is none. */
static struct as_rule rule_at(const struct as_krepair *r, const struct as_raw_frame *f)
{
	const struct as_module *m = as_image_module(r->im, f->module);
	struct as_rule rule = {0};

	if (f->module != AS_NO_MODULE && m && m->table)
		(void)as_utable_find(m->table, f->addr - !(f->flags & AS_FRAME_EXACT), &rule);
	return rule;
}

bool as_krepair_is_root(const struct as_krepair *r, const struct as_raw_frame *f)
{
	return (rule_at(r, f).w0 & 0xff) == AS_UT_CFA_END;
}

/* Does the table, made since perhaps, keep the frame pointer there? No rule: nothing is known. */
static bool keeps_frame(const struct as_krepair *r, const struct as_raw_frame *f)
{
	struct as_rule rule = rule_at(r, f);

	return (rule.w0 & 0xff) == AS_UT_CFA_NONE ||
	       ((rule.w0 & 0xff) == AS_UT_CFA_FP && rule.w1 == 16);
}

size_t as_krepair_check(struct as_krepair *r, pid_t pid, const struct as_raw_frame *frame,
			size_t n, uint64_t by_fp)
{
	struct as_process *p = as_image_process(r->im, pid);
	struct walk w = {.r = r, .p = p};

	for (size_t i = 1; i < AS_MIN(n, (size_t)64); i++) {
		uint64_t avma;

		if (by_fp >> i & 1 &&
		    (!p || !keeps_frame(r, &frame[i - 1]) || !frame_avma(p, &frame[i], &avma) ||
		     !is_call_site(&w, avma)))
			return i;
	}
	return n;
}

/* ---- the memo ---- */

static struct as_kmemo *memo_get(const struct as_krepair *r, pid_t tid)
{
	const uint64_t *v = as_map64_get(&r->memo, (uint64_t)tid);

	return v ? (struct as_kmemo *)(uintptr_t)*v : NULL;
}

static void memo_free(struct as_kmemo *m)
{
	free(m->frame);
	free(m->callers);
	free(m);
}

/* The index of the frame with this sp; m->n: none. */
static size_t memo_find(const struct as_kmemo *m, uint64_t sp, uint64_t avma)
{
	size_t lo = 0, hi = m->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (m->frame[mid].sp < sp)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < m->n && m->frame[lo].sp == sp && m->frame[lo].avma == avma ? lo : m->n;
}

/* One system call for all the slots. */
static bool memo_still_holds(struct walk *w, struct as_kmemo *m, size_t from, uint64_t now_ns)
{
	uint64_t value[SPOT_CHECKS + 1], want[SPOT_CHECKS + 1];
	struct iovec to = {value, 0}, slot[SPOT_CHECKS + 1];
	size_t step = AS_MAX((m->n - from) / SPOT_CHECKS, (size_t)1), n = 0;

	if (m->checked_from <= from && m->checked_ns + (w->gone ? RECENT_NS : 0) >= now_ns)
		return true;
	if (w->gone)
		return false;
	for (size_t i = from; i < m->n && n < AS_ARRAY_LEN(slot); i += step) {
		if (m->frame[i].exact)
			continue;
		want[n] = m->frame[i].avma;
		slot[n++] = (struct iovec){(void *)(uintptr_t)(m->frame[i].sp - 8), 8};
	}
	to.iov_len = n * 8;
	if (process_vm_readv(w->p->pid, &to, 1, slot, n, 0) != (ssize_t)to.iov_len ||
	    memcmp(value, want, to.iov_len))
		return false;
	m->checked_ns = now_ns;
	m->checked_from = from;
	return true;
}

void as_krepair_thread_gone(struct as_krepair *r, pid_t tid)
{
	struct as_kmemo *m = memo_get(r, tid);

	if (m) {
		as_map64_del(&r->memo, (uint64_t)tid);
		memo_free(m);
	}
}

static struct as_raw_frame raw_frame(const struct as_uframe *f)
{
	return (struct as_raw_frame){.addr = f->svma,
				     .module = f->module,
				     .flags = (f->exact ? AS_FRAME_EXACT : 0) |
					      (f->signal ? AS_FRAME_SIGNAL : 0)};
}

/* Room for n frames to hand out. */
static struct as_raw_frame *out_room(struct as_krepair *r, size_t n)
{
	if (r->out_cap < n) {
		r->out_cap = n + n / 2;
		r->out = as_xreallocarray(r->out, r->out_cap, sizeof(*r->out));
	}
	return r->out;
}

/* The frames just walked, and what they were joined to, become the thread's memo. */
static void memo_keep(struct walk *w, const struct as_kstack *s, uint64_t now_ns)
{
	struct as_krepair *r = w->r;
	struct as_kmemo *old = memo_get(r, s->tid), *m;
	size_t rest = w->joined ? w->joined->n - w->joint : 0, n = w->res.nframes + rest;

	if (n < MEMO_MIN || (!old && r->memo.n >= MEMO_MAX_COUNT))
		return;
	for (size_t i = 1; i < w->res.nframes; i++)
		if (r->frame[i].sp <= r->frame[i - 1].sp)
			return;
	m = as_xcalloc(1, sizeof(*m));
	m->frame = as_xcalloc(n, sizeof(*m->frame));
	m->callers = as_xcalloc(n, sizeof(*m->callers));
	memcpy(m->frame, r->frame, w->res.nframes * sizeof(*m->frame));
	if (rest)
		memcpy(m->frame + w->res.nframes, w->joined->frame + w->joint,
		       rest * sizeof(*m->frame));
	struct as_raw_frame *raw = out_room(r, n);
	for (size_t i = 0; i < n; i++)
		raw[i] = raw_frame(&m->frame[i]);
	as_recorder_callers(r->recorder, raw, n, m->callers);
	m->n = n;
	m->end = w->res.end;
	m->walked_ns = w->joined ? w->joined->walked_ns : now_ns;
	as_krepair_thread_gone(r, s->tid);
	*as_map64_put(&r->memo, (uint64_t)s->tid, NULL) = (uint64_t)(uintptr_t)m;
	w->joined = m;
	w->kept = true;
}

/* ---- walks ---- */

/* From the stopping point on, joining the memo where it is met. r->frame[0] is the last known
 * frame. */
static void walk_on(struct walk *w, const struct as_kstack *s, uint64_t now_ns)
{
	struct as_krepair *r = w->r;
	struct as_kmemo *m = memo_get(r, s->tid);

	if (m && now_ns - m->walked_ns > MEMO_AGE_NS)
		m = NULL;
	for (;;) {
		const struct as_uframe *last = &r->frame[w->res.nframes - 1];
		size_t at = m ? memo_find(m, last->sp, last->avma) : 0;

		if (m && at < m->n && memo_still_holds(w, m, at, now_ns)) {
			w->joined = m;
			w->joint = at + 1;
			w->res.end = m->end;
			break;
		}
		if (w->gone)
			break;
		size_t max = m ? AS_MIN(w->res.nframes + BATCH, r->max) : r->max;
		as_unwind_continue(&w->env, r->frame, max, &w->res);
		if (w->res.end != AS_END_DEPTH || w->res.nframes >= r->max)
			break;
	}
}

static bool from_stop(struct walk *w, struct as_kstack *s, uint64_t now_ns)
{
	struct as_krepair *r = w->r;
	uint64_t pc = s->reg[AS_BPF_NREGS], sp = s->reg[AS_BPF_NREGS + 1],
		 fp = s->reg[AS_BPF_NREGS + 2];
	const struct as_raw_frame *last = &s->frame[s->n - 1];

	if (s->cut || s->n < 2 || last->flags & AS_FRAME_EXACT)
		return false;
	if (!slot_holds(w, sp, pc) && !w->gone)
		return false;
	r->frame[0] = (struct as_uframe){
		.avma = pc, .svma = last->addr, .sp = sp, .module = last->module};
	w->res = (struct as_unwind_result){
		.nframes = 1, .end = s->end, .lowest_sp = sp, .highest_addr = sp};
	w->res.last.r[16] = pc;
	w->res.last.r[7] = sp;
	w->res.last.r[6] = fp;
	w->res.last.valid = 1u << 16 | 1u << 7 | (fp ? 1u << 6 : 0);
	walk_on(w, s, now_ns);
	if (w->res.nframes == 1)
		return w->joined != NULL;
	/* a thread that has ended gave its stack back: it reads as zeros */
	if (w->res.zero_root || !slot_holds(w, sp, pc) ||
	    !calls_are_plausible(w, r->frame + 1, w->res.nframes - 1))
		return false;
	if (w->res.end == AS_END_ROOT)
		memo_keep(w, s, now_ns);
	return true;
}

/* With nothing but the leaf to go by, its caller's call must at least lead there: a direct one to
 * somewhere else is of another moment. */
static bool may_call(struct walk *w, const struct as_uframe *caller, uint64_t pc)
{
	uint8_t code[5];

	if (caller->exact || read_code(w, caller->avma, code, sizeof(code)))
		return false;
	uint64_t to = caller->avma + (uint64_t)(int64_t)(int32_t)as_get_le32(code + 1);
	return code[0] != 0xe8 || pc - to < LEAF_BYTES;
}

/* From the leaf with all registers; the frames the kernel saw must come out again. */
static bool from_leaf(struct walk *w, struct as_kstack *s)
{
	struct as_krepair *r = w->r;
	struct as_uregs regs = {.valid = (1u << AS_BPF_NREGS) - 1};

	memcpy(regs.r, s->reg, AS_BPF_NREGS * 8);
	if (s->end == AS_END_EXPR && s->frame[s->n - 1].module < as_image_nmodules(r->im))
		/* without it the walk ends where it did */
		(void)as_image_module_cfi(r->im,
					  as_image_module(r->im, s->frame[s->n - 1].module));
	as_unwind(&w->env, &regs, r->frame, r->max, &w->res);
	if (w->res.zero_root || w->res.nframes <= s->n ||
	    (s->n == 1 && !may_call(w, &r->frame[1], s->reg[16])))
		return false;
	for (size_t i = 0; i < s->n; i++)
		if (r->frame[i].svma != s->frame[i].addr ||
		    r->frame[i].module != s->frame[i].module)
			return false;
	return calls_are_plausible(w, r->frame + s->n, w->res.nframes - s->n);
}

static int read_copy(void *ctx, uint64_t avma, void *out, size_t n)
{
	const struct walk *w = ctx;
	uint64_t off = avma - w->copied->reg[7], size = w->copied->ncopy * 8;

	if (off >= size || n > size - off)
		return AS_E_LIMIT;
	memcpy(out, (const uint8_t *)w->copied->copy + off, n);
	return 0;
}

/* In the stack's copy: from the leaf, as if nothing were known of the frames. */
static void in_copy(struct walk *w, struct as_kstack *s)
{
	struct as_krepair *r = w->r;
	struct as_uregs regs = {.valid = (1u << AS_BPF_NREGS) - 1};
	uint32_t cfi_of = AS_NO_MODULE;

	memcpy(regs.r, s->reg, AS_BPF_NREGS * 8);
	w->copied = s;
	w->env.read = read_copy;
	for (;;) {
		as_unwind(&w->env, &regs, r->frame, r->max, &w->res);
		uint32_t last = w->res.nframes ? r->frame[w->res.nframes - 1].module : cfi_of;
		if (w->res.end != AS_END_EXPR || last == cfi_of ||
		    last >= as_image_nmodules(r->im))
			break;
		cfi_of = last; /* without its CFI the walk ends where it did */
		(void)as_image_module_cfi(r->im, as_image_module(r->im, last));
	}
	w->env.read = read_stack;
	w->copied = NULL;
}

static bool may_spend(struct as_krepair *r, uint64_t now_ns)
{
	if (!r->refilled_ns)
		r->budget_ns = BURST_NS;
	else
		r->budget_ns += (now_ns - r->refilled_ns) * BUDGET_PERMILLE / 1000;
	r->refilled_ns = now_ns;
	r->budget_ns = AS_MIN(r->budget_ns, BURST_NS);
	return r->budget_ns > 0;
}

static void take_copied(struct as_krepair *r, struct as_kstack *s, const struct walk *w)
{
	struct as_raw_frame *out = out_room(r, w->res.nframes);

	for (size_t i = 0; i < w->res.nframes; i++)
		out[i] = raw_frame(&r->frame[i]);
	s->frame = out;
	s->n = w->res.nframes;
	s->end = w->res.end;
}

/* The known frames (the kernel's, [0, s->n)) and those walked from `from` on become the result. */
static void take(struct as_krepair *r, struct as_kstack *s, const struct walk *w, size_t from)
{
	size_t walked = w->res.nframes - from;

	if (w->kept) { /* all of it is in there */
		s->callers = w->joined->callers[from];
		walked = 0;
	} else if (w->joined && w->joint < w->joined->n) {
		s->callers = w->joined->callers[w->joint];
	}
	struct as_raw_frame *out = out_room(r, s->n + walked);
	memcpy(out, s->frame, s->n * sizeof(*out));
	for (size_t i = 0; i < walked; i++)
		out[s->n + i] = raw_frame(&r->frame[from + i]);
	s->frame = out;
	s->n += walked;
	s->end = w->res.end;
	s->repaired = true;
}

/* A copy that holds the whole stack is best, one that holds more than was seen better than
 * nothing. */
static bool continue_stack(struct walk *w, struct as_kstack *s, uint64_t now_ns)
{
	struct as_krepair *r = w->r;

	if (s->ncopy)
		in_copy(w, s);
	bool longer = s->ncopy && w->res.nframes > s->n;
	if (s->ncopy && w->res.end == AS_END_ROOT) {
		take_copied(r, s, w);
		return true;
	}
	if (s->end != AS_END_EXPR && from_stop(w, s, now_ns)) {
		take(r, s, w, 1);
		return true;
	}
	if (s->end != AS_END_DEPTH && from_leaf(w, s)) {
		take(r, s, w, s->n);
		return true;
	}
	if (longer) {
		in_copy(w, s);
		take_copied(r, s, w);
	}
	return longer;
}

bool as_krepair_try(struct as_krepair *r, struct as_kstack *s, uint64_t now_ns)
{
	struct as_process *p = as_image_process(r->im, s->pid);

	if (!p || !s->n || s->n >= r->max)
		return false;
	if (!may_spend(r, now_ns)) {
		r->skipped++;
		return false;
	}
	uint64_t begun = as_self_cpu_ns();
	struct walk w = {.r = r, .p = p};
	w.env = (struct as_unwind_env){.arch = AS_ARCH_X86_64,
				       .ctx = &w,
				       .find = find_module,
				       .read = read_stack,
				       .read_code = read_code,
				       .unwinder = r->unwinder};
	r->block_pid = 0;
	r->tried++;
	bool ok = continue_stack(&w, s, now_ns);
	r->done += ok;
	uint64_t spent = as_self_cpu_ns() - begun;
	r->budget_ns -= AS_MIN(spent, r->budget_ns);
	return ok;
}

void as_krepair_init(struct as_krepair *r, const struct as_engine_env *env)
{
	memset(r, 0, sizeof(*r));
	r->im = env->image;
	r->recorder = env->recorder;
	r->max = env->options->max_depth;
	r->unwinder = as_unwinder_new();
	r->frame = as_xcalloc(r->max, sizeof(*r->frame));
	r->block = as_xmalloc(BLOCK_BYTES);
}

void as_krepair_clear(struct as_krepair *r)
{
	for (size_t i = 0; i < r->memo.cap; i++)
		if (r->memo.slot[i].key != UINT64_MAX)
			memo_free((struct as_kmemo *)(uintptr_t)r->memo.slot[i].val);
	as_map64_clear(&r->memo);
	as_unwinder_free(r->unwinder);
	free(r->frame);
	free(r->out);
	free(r->block);
	memset(r, 0, sizeof(*r));
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A thread's first event, calls within calls, and full rings. */
#include "rt/rt_priv.h"
#include "rt/walk.h"

/* The thread pointer's own word; 0: this thread has no TLS. Where that cannot be found out, a process whose
 * threads keep their ids behind it has some. */
static uint64_t thread_pointer(const struct as_rt_control *control)
{
	uint64_t base = 0, fs;
	if (control->flags & AS_RT_FSGSBASE)
		__asm__ volatile("rdfsbase %0" : "=r"(base));
	else if (rt_has_syscalls(control))
		(void)rt_syscall(RT_SYS_ARCH_PRCTL, RT_ARCH_GET_FS, (uintptr_t)&base, 0, 0);
	else
		base = control->tid_off;
	if (!base)
		return 0;
	__asm__ volatile("movq %%fs:0, %0" : "=r"(fs));
	return fs;
}

static bool can_set_gs(const struct as_rt_control *control)
{
	return control->flags & AS_RT_FSGSBASE || rt_has_syscalls(control);
}

static void set_gs(const struct as_rt_control *control, const struct rt_context *c)
{
	if (control->flags & AS_RT_FSGSBASE)
		__asm__ volatile("wrgsbase %0" : : "r"(c) : "memory");
	else if (rt_has_syscalls(control))
		(void)rt_syscall(RT_SYS_ARCH_PRCTL, RT_ARCH_SET_GS, (uintptr_t)c, 0, 0);
}

/* For those who look through all that were ever claimed. */
static void raise_top(struct as_rt_control *control, uint32_t top)
{
	uint32_t was = __atomic_load_n(&control->rings_top, __ATOMIC_RELAXED);
	while (was < top && !__atomic_compare_exchange_n(&control->rings_top, &was, top, false,
							 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
}

/* A free context's index, now tid's; 0: all are taken. */
static uint32_t take_index(const struct as_rt_home *home, struct as_rt_control *control,
			   uint32_t tid)
{
	for (uint32_t i = 1; i < home->context_max && i < AS_RT_CONTEXTS; i++) {
		uint32_t none = 0;
		if (!*(volatile uint32_t *)&control->owner[i] &&
		    __atomic_compare_exchange_n(&control->owner[i], &none, tid, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			raise_top(control, i + 1);
			return i;
		}
	}
	return 0;
}

/* About 75 us: a sleep of 20 us takes that long. */
static void pause_a_while(const struct as_rt_control *control)
{
	const int64_t pause[2] = {0, 20000};
	if (rt_has_syscalls(control)) {
		(void)rt_syscall(RT_SYS_NANOSLEEP, (uintptr_t)pause, 0, 0, 0);
		return;
	}
	for (unsigned i = 0; i < 2000; i++)
		rt_relax();
}

static bool are_rings_full(const struct as_rt_control *control)
{
	return __atomic_load_n(&control->rings_full, __ATOMIC_ACQUIRE) != 0;
}

static uint32_t heartbeat_of(const struct as_rt_control *control)
{
	return *(const volatile uint32_t *)&control->heartbeat;
}

/*
 * As take_index, but rings of threads that have ended are waited for: the recorder sees that they are
 * wanted and looks which these are. It says when there are none, since a thread may hold what all the
 * others need to end.
 */
static uint32_t wait_index(const struct as_rt_home *home, struct as_rt_control *control,
			   uint32_t tid)
{
	uint32_t index = are_rings_full(control) ? 0 : take_index(home, control, tid);
	uint32_t beat = heartbeat_of(control);
	if (index || !(control->flags & AS_RT_WAIT_FULL) || are_rings_full(control) ||
	    beat == *(const volatile uint32_t *)&control->wants_heartbeat)
		return index;
	__atomic_add_fetch(&control->ring_wants, 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < 10; i++) {
		for (uint32_t us = 0; us < control->full_wait_us; us += 75) {
			pause_a_while(control);
			index = take_index(home, control, tid);
			if (index || are_rings_full(control))
				return index;
		}
		if (heartbeat_of(control) == beat)
			break;
		beat = heartbeat_of(control);
	}
	*(volatile uint32_t *)&control->wants_heartbeat = beat;
	return 0;
}

static void clear_bytes(void *at, uint64_t n)
{
	__asm__ volatile("rep stosb" : "+D"(at), "+c"(n) : "a"(0) : "memory");
}

/*
 * Context 0 of this process made into one that only drops, for threads there is no context for
 * and processes that are not to be recorded. Several threads may pass it to and fro; nothing in
 * it but fs is ever written afterwards.
 */
static struct rt_context *dropping(const struct as_rt_home *home, uint64_t fs)
{
	struct rt_context *c = (struct rt_context *)(uintptr_t)home->contexts;
	c->self = c;
	c->control = (const struct as_rt_control *)(uintptr_t)home->control;
	c->home = home;
	c->busy_sp = UINT64_MAX;
	__atomic_store_n(&c->fs, fs, __ATOMIC_RELEASE);
	return c;
}

/* All of a context but its gs base: what an earlier owner left is gone. */
static void set_up(struct rt_context *c, const struct as_rt_home *home, uint32_t index,
		   uint64_t fs)
{
	bool used = c->self != 0;
	clear_bytes(c, offsetof(struct rt_context, nodes_number));
	if (used)
		clear_bytes(c->rule, sizeof c->rule);
	as_rt_forget_nodes(c);
	c->control = (const struct as_rt_control *)(uintptr_t)home->control;
	c->home = home;
	c->ring = (struct as_rt_ring *)(uintptr_t)(home->rings +
						   (uint64_t)index * (AS_RT_RING_HEAD_BYTES +
								      home->ring_bytes));
	c->data = (char *)c->ring + AS_RT_RING_HEAD_BYTES;
	c->mask = home->ring_bytes - 1;
	c->room = home->ring_bytes - AS_RT_RING_SLACK;
	c->limit = rt_load(&c->ring->consumed) + c->room;
	c->own_lo = c->other_lo = 1;
	c->modules_seq = *(const volatile uint32_t *)&c->control->modules_seq;
	c->clock_ns = rt_load(&c->control->clock_ns);
	c->sampled = (uint32_t(*)[2])(uintptr_t)home->sampled;
	if (c->sampled) {
		c->random = fs * 0x9e3779b97f4a7c15ull ^ c->clock_ns << 20 ^ index;
		c->sample_left = as_rt_draw(c);
	}
	if (c->control->flags & AS_RT_SUM_PAIRS) {
		c->tables =
			(struct as_rt_tables *)(uintptr_t)((char *)c->ring + AS_RT_TABLES_OFF);
		c->tables->now_us = c->clock_ns / 1000;
		c->tables->flush_done = c->ring->flush_asked;
	}
	c->self = c;
	c->fs = fs;
}

static void tell_thread(struct rt_context *c, uint32_t tid, uint32_t pid)
{
	union {
		struct as_rt_rec_thread r;
		uint64_t w[6];
	} rec = {.r = {.stamp = rt_stamp(c),
		       .tid = tid,
		       .pid = pid,
		       .fs = c->fs,
		       .clock_ns = c->clock_ns}};
	c->ring->tid = tid;
	c->ring->pid = pid;
	c->ring->fs = c->fs;
	(void)rt_emit(c, AS_RT_REC_THREAD, 0, rec.w, 3);
}

/* A fork's child has no number yet, and learns it from its first thread's id, which is the same. A fork
 * that the C library does not know of leaves the parent's id there: that is a thread's of the parent. */
static uint64_t first_of_fork(const struct as_rt_home *home,
			      const struct as_rt_control *control, uint32_t tid)
{
	uint32_t top = *(const volatile uint32_t *)&control->rings_top;
	for (uint32_t i = 1; i < home->context_max && i < top; i++) {
		if (*(const volatile uint32_t *)&control->owner[i] == tid)
			return 0;
	}
	return tid;
}

/* Who is running; false: that cannot be found out. */
static bool ask_names(const struct as_rt_home *home, const struct as_rt_control *control,
		      uint64_t fs, uint32_t *ret_tid, uint32_t *ret_pid)
{
	struct rt_context *zero = (struct rt_context *)(uintptr_t)home->contexts;
	if (rt_has_syscalls(control)) {
		*ret_tid = (uint32_t)rt_syscall(RT_SYS_GETTID, 0, 0, 0, 0);
		*ret_pid = (uint32_t)rt_syscall(RT_SYS_GETPID, 0, 0, 0, 0);
		return true;
	}
	*ret_tid = control->tid_off ? *(const uint32_t *)(uintptr_t)(fs + control->tid_off) : 0;
	if (!zero->process && *ret_tid)
		zero->process = first_of_fork(home, control, *ret_tid);
	*ret_pid = (uint32_t)zero->process;
	return *ret_pid && *ret_tid;
}

/* The thread's context, where its gs base could not be made to lead there; NULL: it has none yet. */
static struct rt_context *find_own(const struct as_rt_home *home,
				   const struct as_rt_control *control, uint64_t fs,
				   uint32_t tid)
{
	uint32_t top = *(const volatile uint32_t *)&control->rings_top;
	for (uint32_t i = 1; i < top && i < home->context_max; i++) {
		struct rt_context *c =
			(struct rt_context *)(uintptr_t)(home->contexts +
							 (uint64_t)i * AS_RT_CONTEXT_BYTES);
		if (*(const volatile uint32_t *)&control->owner[i] == tid && c->self == c &&
		    c->fs == fs)
			return c;
	}
	return 0;
}

struct rt_context *as_rt_claim(const struct as_rt_hook *hook)
{
	const struct as_rt_home *home = (const struct as_rt_home *)(uintptr_t)hook->home;
	struct as_rt_control *control = (struct as_rt_control *)(uintptr_t)home->control;
	if (control->flags & AS_RT_PAUSED)
		return 0;
	uint64_t fs = thread_pointer(control);
	if (!fs) {
		__atomic_add_fetch(&control->lost_no_context, 1, __ATOMIC_RELAXED);
		return 0;
	}
	uint32_t tid, pid, index = 0;
	if (!ask_names(home, control, fs, &tid, &pid)) {
		__atomic_add_fetch(&control->lost_no_context, 1, __ATOMIC_RELAXED);
		return 0;
	}
	if (RT_UNLIKELY(!can_set_gs(control))) {
		struct rt_context *own = find_own(home, control, fs, tid);
		if (own)
			return own;
	}
	if (!(control->flags & AS_RT_NO_CHILDREN) || pid == control->pid)
		index = wait_index(home, control, tid);
	struct rt_context *now = rt_current();
	if (now && now->busy_sp != UINT64_MAX) {
		/* a signal handler was faster; this one is still as it was */
		if (index)
			__atomic_store_n(&control->owner[index], 0, __ATOMIC_RELEASE);
		return now;
	}
	if (!index) {
		struct rt_context *c = dropping(home, fs);
		set_gs(control, c);
		return c;
	}
	struct rt_context *c =
		(struct rt_context *)(uintptr_t)(home->contexts +
						 (uint64_t)index * AS_RT_CONTEXT_BYTES);
	set_up(c, home, index, fs);
	/* first: a handler that comes in between has nodes of its own, which THREAD would void */
	tell_thread(c, tid, pid);
	set_gs(control, c);
	return c;
}

/* An event of a thread without a ring. Now and then it is tried again. */
static bool dropped(struct rt_context *c)
{
	struct as_rt_control *control = (struct as_rt_control *)(uintptr_t)c->home->control;
	if (!(control->flags & AS_RT_NO_CHILDREN))
		__atomic_add_fetch(&control->lost_no_context, 1, __ATOMIC_RELAXED);
	if ((++c->lost_here & 255) == 0)
		c->fs = 0; /* the next event claims anew */
	return false;
}

/*
 * Three ways to come here while a call is in progress: the original called another patched
 * function (nested: part of the call); a signal handler allocates (its own call); the call was
 * left by longjmp or an exception (it is over). The stack between tells: the runtime's own frame,
 * a signal frame, or neither before the call's place is passed.
 */
bool as_rt_is_own_call(struct rt_context *c, const struct rt_frame *frame)
{
	if (c->busy_sp == UINT64_MAX)
		return dropped(c);
	uint64_t sp = (uintptr_t)frame, gap = c->busy_sp - sp;
	if (frame->ra == c->nested_ra && gap == c->nested_gap)
		return false;
	struct as_rt_walk w = {.pc = frame->ra,
			       .sp = sp + sizeof *frame,
			       .fp = frame->fp,
			       .slot = sp + offsetof(struct rt_frame, ra)};
	for (unsigned i = 0; i < 64; i++) {
		struct as_rt_rule r = as_rt_find_rule(
			c->control, *(const volatile uint32_t *)&c->control->modules_seq,
			w.pc - 1, false);
		if (r.self) {
			c->nested_ra = frame->ra;
			c->nested_gap = gap;
			return false;
		}
		if (w.sp > c->busy_sp && gap < INT64_MAX)
			break;
		switch (as_rt_step(c, &w, &r)) {
		case AS_RT_STEP_SIGNAL:
			return true;
		case AS_RT_STEP_END:
			/* not to be told by the stack: near below it, it is most likely nested */
			if (w.end != AS_END_ROOT && gap < 65536)
				return false;
			c->busy_sp = 0;
			return true;
		case AS_RT_STEP_CALLER:
			break;
		}
	}
	c->busy_sp = 0;
	return true;
}

static bool look_for_room(struct rt_context *c, uint64_t bytes)
{
	c->limit = rt_load(&c->ring->consumed) + c->room;
	return rt_load(&c->ring->pos) + bytes <= c->limit;
}

bool as_rt_wait_room(struct rt_context *c, uint64_t bytes)
{
	const struct as_rt_control *control = c->control;
	uint32_t beat = *(const volatile uint32_t *)&control->heartbeat;
	if (look_for_room(c, bytes))
		return true;
	if (!(control->flags & AS_RT_WAIT_FULL) || beat == c->lost_heartbeat)
		return false;
	struct as_rt_control *counts = (struct as_rt_control *)(uintptr_t)c->home->control;
	__atomic_add_fetch(&counts->full_waits, 1, __ATOMIC_RELAXED);
	c->waited = true;
	for (uint32_t us = 0; us < control->full_wait_us; us += 75) {
		pause_a_while(control);
		if (look_for_room(c, bytes))
			return true;
	}
	/* the recorder is gone, or far too slow: no more waiting until it moves */
	c->lost_heartbeat = *(const volatile uint32_t *)&control->heartbeat;
	return false;
}

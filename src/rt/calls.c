/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What runs in the place of patched functions. The caller sees what it would have seen. */
#include "rt/pairs.h"
#include "rt/rt_priv.h"

#define RT_FRAME() ((const struct rt_frame *)__builtin_frame_address(0))

typedef uint64_t call4(uint64_t a, uint64_t b, uint64_t c, uint64_t d);
typedef uint64_t call6(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);

#define ORIGINAL(hook)  ((call4 *)(uintptr_t)(hook)->original)
#define ORIGINAL6(hook) ((call6 *)(uintptr_t)(hook)->original)

/* A call that is recorded. */
struct call {
	struct rt_context *c; /* NULL: it is not */
	uint64_t outer;       /* busy_sp of the call this one interrupted */
	const struct rt_frame *frame;
	const struct as_rt_hook *hook;
};

static inline __attribute__((always_inline)) struct call enter(const struct as_rt_hook *hook,
							       const struct rt_frame *frame)
{
	struct call k = {.frame = frame, .hook = hook};
	struct rt_context *c = rt_current();
	if (RT_UNLIKELY(!c)) {
		c = as_rt_claim(hook);
		if (!c)
			return k;
	}
	if (RT_UNLIKELY(*(const volatile uint32_t *)&c->control->flags & AS_RT_PAUSED))
		return k;
	if (RT_UNLIKELY(c->busy_sp) && !as_rt_is_own_call(c, frame))
		return k;
	k.outer = c->busy_sp;
	k.c = c;
	c->busy_sp = (uintptr_t)frame;
	RT_BARRIER();
	return k;
}

static inline __attribute__((always_inline)) void leave(const struct call *k)
{
	RT_BARRIER();
	k->c->busy_sp = k->outer;
}

/* ---- what it takes ---- */

/*
 * One call of 128, by chance: the time after a change of the clock, say, is no time like any other, as
 * the recorder has just run. salt: so that the frees between two allocations are not taken with the
 * second of them. 0: not timed. The way into here and out is not in it.
 */
static inline uint64_t timed_begins(struct rt_context *c, uint32_t salt)
{
	/* each owner of a ring begins it elsewhere: no call is always its thread's that is timed, least of
	 * all the first, which is dear */
	uint32_t ring = (uint32_t)(c->limit >> 4) * 0x85ebca6bu;
	if (RT_LIKELY(((uint32_t)c->serial * 0x9e3779b1u + (ring ^ ring >> 15) + salt) >> 25))
		return 0;
	c->waited = false;
	return rt_has_syscalls(c->control) ? rt_ticks()
					   : 0; /* else the counter may not be read */
}

static inline void timed_ends(struct rt_context *c, uint64_t began)
{
	if (RT_LIKELY(!began))
		return;
	uint64_t ticks = rt_ticks() - began;
	if (c->waited || ticks > AS_RT_TIMED_MAX)
		return;
	(void)rt_add_own(&c->ring->timed_ticks, ticks);
	(void)rt_add_own(&c->ring->timed_calls, 1);
}

static __attribute__((noinline, cold)) void tell_time(struct rt_context *c, uint64_t now)
{
	const struct as_rt_tables *t = c->tables;
	uint64_t w[6] = {0, rt_stamp(c), now, (uint32_t)c->serial};
	c->clock_ns = now;
	if (t) {
		w[3] |= (uint64_t)t->pending_blocks << 32;
		w[4] = (uint64_t)t->grown - t->pending_bytes;
		w[5] = t->pending_bytes;
	}
	(void)rt_emit(c, AS_RT_REC_TIME, 0, w, 3);
	if (t)
		as_rt_look_at_recorder(c);
}

static inline void follow_clock(struct rt_context *c)
{
	uint64_t now = rt_load(&c->control->clock_ns);
	if (RT_UNLIKELY(now != c->clock_ns))
		tell_time(c, now);
}

/* The stack's node; the capture is to be ended after the record that names it. */
static inline uint32_t node_of(struct rt_capture *cap, const struct call *k)
{
	as_rt_capture_begin(cap, k->c, k->frame);
	if (k->c->control->flags & AS_RT_NO_STACKS)
		return 0;
	return as_rt_capture(cap, k->frame);
}

/* The number of the thread's newest allocation, made by the call or before it. */
static inline uint32_t serial_of(struct rt_context *c, uint64_t ptr)
{
	return (uint32_t)(ptr ? rt_add_own(&c->serial, 1) + 1 : rt_load(&c->serial));
}

static inline bool may_pend(const struct rt_birth *b)
{
	return b->size < AS_RT_PAIR_BYTES && !(b->node & AS_RT_NODE_ONCE) &&
	       b->hook < AS_RT_PAIR_HOOKS;
}

/* False: it was told and there was no room for it. */
static __attribute__((noinline)) bool tell_alloc(const struct call *k, uint64_t ptr,
						 uint64_t size)
{
	struct rt_context *c = k->c;
	struct rt_capture cap;
	bool ok = true;
	uint64_t began = timed_begins(c, 0);
	follow_clock(c);
	struct rt_birth b = {.ptr = ptr, .size = size, .hook = k->hook->id};
	b.node = node_of(&cap, k);
	b.serial = serial_of(c, ptr);
	const struct as_rt_tables *t = ptr ? rt_tables(c, k->frame) : 0;
	if (RT_LIKELY(t && may_pend(&b)))
		as_rt_pend(c, &b);
	else if (t)
		as_rt_tell_birth(c, &b);
	else
		ok = rt_emit_birth(c, &b, rt_stamp(c), 0);
	rt_capture_end(&cap);
	timed_ends(c, began);
	return ok;
}

struct change {
	uint64_t old, new_ptr, size;
	uint32_t flags; /* enum as_rt_realloc_flags */
	uint64_t known; /* the old block's size; 0: it is not known */
};

/* What a change does to the thread's sizes: before it is told. */
static void note_change(const struct call *k, const struct change *r,
			const struct rt_birth *now)
{
	if (!rt_tables(k->c, k->frame))
		return;
	if (r->new_ptr)
		as_rt_know(k->c, now);
	else if (r->size) /* it failed */
		as_rt_grow(k->c, (int64_t)r->known);
}

static __attribute__((noinline)) bool tell_realloc(const struct call *k, const struct change *r)
{
	struct rt_context *c = k->c;
	struct rt_capture cap;
	uint64_t began = timed_begins(c, 0);
	follow_clock(c);
	struct rt_birth b = {.ptr = r->new_ptr, .size = r->size, .hook = k->hook->id};
	b.node = node_of(&cap, k);
	b.serial = serial_of(c, r->new_ptr);
	note_change(k, r, &b);
	const uint64_t w[8] = {0,        rt_stamp(c),
			       r->old,   r->new_ptr,
			       r->size,  b.node | (uint64_t)b.serial << 32,
			       r->flags, 0};
	bool ok = rt_emit(c, AS_RT_REC_REALLOC, k->hook->id, w, 4);
	if (!ok)
		(void)rt_add_own(&c->ring->lost_bytes, r->size);
	rt_capture_end(&cap);
	timed_ends(c, began);
	return ok;
}

/* The end of a block of which its thread may know nothing: what is given out there from now on comes
 * after. */
static inline void note_end(const struct rt_context *c, uint64_t ptr, uint64_t stamp)
{
	struct as_rt_control *control = (struct as_rt_control *)(uintptr_t)c->home->control;
	if (c->tables)
		*(volatile uint64_t *)&control->freed[as_rt_freed_place(ptr)] = stamp;
}

/* Returns the block's size, 0: it is not known. */
static uint64_t tell_realloc_begin(const struct call *k, uint64_t ptr)
{
	uint64_t known = 0, began = timed_begins(k->c, 1u << 31);
	follow_clock(k->c);
	if (rt_tables(k->c, k->frame))
		known = as_rt_take_block(k->c, ptr);
	const uint64_t w[4] = {0, rt_stamp(k->c), ptr, 0};
	note_end(k->c, ptr, w[1]);
	(void)rt_emit(k->c, AS_RT_REC_REALLOC_BEGIN, k->hook->id, w, 2);
	timed_ends(k->c, began);
	return known;
}

static inline void emit_free(const struct call *k, uint64_t ptr, uint32_t node, bool own)
{
	const uint64_t w[4] = {0, rt_stamp(k->c), ptr, node | k->c->serial << 32};
	if (!own)
		note_end(k->c, ptr, w[1]);
	(void)rt_emit(k->c, AS_RT_REC_FREE, k->hook->id, w, 2);
}

static __attribute__((noinline)) void tell_free_with_stack(const struct call *k, uint64_t ptr)
{
	struct rt_capture cap;
	if (rt_tables(k->c, k->frame))
		(void)as_rt_take_block(k->c, ptr);
	emit_free(k, ptr, node_of(&cap, k), false);
	rt_capture_end(&cap);
}

static inline void tell_free(const struct call *k, uint64_t ptr)
{
	enum rt_end end = RT_END_UNKNOWN;
	uint64_t began = timed_begins(k->c, 1u << 30);
	follow_clock(k->c);
	if (RT_UNLIKELY(k->c->control->flags & AS_RT_FREE_STACKS)) {
		tell_free_with_stack(k, ptr);
		return;
	}
	if (RT_LIKELY(rt_tables(k->c, k->frame) && k->hook->id < AS_RT_PAIR_HOOKS))
		end = as_rt_end_block(k->c, ptr, k->hook->id);
	if (end != RT_END_SUMMED)
		emit_free(k, ptr, 0, end == RT_END_OWN);
	timed_ends(k->c, began);
}

static inline uint64_t product(uint64_t a, uint64_t b)
{
	uint64_t n;
	return __builtin_mul_overflow(a, b, &n) ? UINT64_MAX : n;
}

/* ---- entries ---- */

#define ENTRY4(name)                                                                           \
	uint64_t as_rt_##name(uint64_t a, uint64_t b, uint64_t c, uint64_t d,                  \
			      const struct as_rt_hook *hook);                                  \
	uint64_t as_rt_##name(uint64_t a, uint64_t b, uint64_t c, uint64_t d,                  \
			      const struct as_rt_hook *hook)

/* An allocation of `size` bytes. */
#define ALLOCATES(name, size)                                                                  \
	ENTRY4(name)                                                                           \
	{                                                                                      \
		struct call k = enter(hook, RT_FRAME());                                       \
		uint64_t ptr = ORIGINAL(hook)(a, b, c, d);                                     \
		if (RT_LIKELY(k.c != 0)) {                                                     \
			(void)tell_alloc(&k, ptr, size);                                       \
			leave(&k);                                                             \
		}                                                                              \
		return ptr;                                                                    \
	}

ALLOCATES(size, a)
ALLOCATES(count, product(a, b))
ALLOCATES(align, b)
ALLOCATES(heap, b)

ENTRY4(pointer)
{
	struct call k = enter(hook, RT_FRAME());
	uint64_t ret = ORIGINAL(hook)(a, b, c, d);
	if (k.c) {
		(void)tell_alloc(&k, (int)ret == 0 ? rt_word(a) : 0, c);
		leave(&k);
	}
	return ret;
}

static inline __attribute__((always_inline)) uint64_t reallocate(struct call *k,
								 const uint64_t arg[4],
								 uint64_t size)
{
	struct change r = {.old = arg[0], .size = size};
	if (k->c && arg[0])
		r.known = tell_realloc_begin(k, arg[0]);
	r.new_ptr = ORIGINAL(k->hook)(arg[0], arg[1], arg[2], arg[3]);
	if (k->c) {
		if (!arg[0] && k->c->tables)
			(void)tell_alloc(k, r.new_ptr, size);
		else
			(void)tell_realloc(k, &r);
		leave(k);
	}
	return r.new_ptr;
}

#define REALLOCATES(name, size)                                                                \
	ENTRY4(name)                                                                           \
	{                                                                                      \
		struct call k = enter(hook, RT_FRAME());                                       \
		const uint64_t arg[4] = {a, b, c, d};                                          \
		return reallocate(&k, arg, size);                                              \
	}

REALLOCATES(realloc, b)
REALLOCATES(realloc_count, product(b, c))
REALLOCATES(realloc_rust, d)

/* In place or not at all: yields the size the block has then. */
ENTRY4(resize)
{
	struct call k = enter(hook, RT_FRAME());
	uint64_t ret = ORIGINAL(hook)(a, b, c, d);
	if (k.c) {
		struct change r = {.old = a, .new_ptr = a, .size = b};
		if (ret >= b && rt_tables(k.c, k.frame))
			r.known = as_rt_take_block(k.c, a);
		if (ret >= b)
			(void)tell_realloc(&k, &r);
		leave(&k);
	}
	return ret;
}

/* Of a block that was freed before, by the allocator itself. */
static inline bool is_internal(const struct as_rt_hook *hook, const struct rt_frame *frame)
{
	const struct as_rt_home *home = (const struct as_rt_home *)(uintptr_t)hook->home;
	if (RT_LIKELY(frame->ra - home->internal_lo > home->internal_span))
		return false;
	for (uint32_t i = 0; i < AS_RT_INTERNAL; i++)
		if (home->internal[i] == frame->ra)
			return true;
	return false;
}

ENTRY4(free)
{
	if (RT_UNLIKELY(is_internal(hook, RT_FRAME())))
		return ORIGINAL(hook)(a, b, c, d);
	struct call k = enter(hook, RT_FRAME());
	if (RT_LIKELY(k.c && a))
		tell_free(&k, a);
	uint64_t ret = ORIGINAL(hook)(a, b, c, d);
	if (RT_LIKELY(k.c != 0))
		leave(&k);
	return ret;
}

/* ---- entries, with sampling ---- */

/* A block that is told: known to be so before anybody can free it. */
static __attribute__((noinline)) void tell_sampled(const struct call *k, uint64_t ptr,
						   uint64_t size)
{
	if (ptr)
		as_rt_sample_mark(k->c, ptr);
	if (!tell_alloc(k, ptr, size) && ptr)
		as_rt_sample_unmark(k->c, ptr);
}

#define SAMPLES(name, size)                                                                    \
	ENTRY4(sampled_##name)                                                                 \
	{                                                                                      \
		struct call k = enter(hook, RT_FRAME());                                       \
		uint64_t ptr = ORIGINAL(hook)(a, b, c, d);                                     \
		if (RT_LIKELY(k.c != 0)) {                                                     \
			/* failures are rare, and all of them are told */                      \
			if (RT_UNLIKELY(!ptr) || RT_UNLIKELY(rt_sample(k.c, size)))            \
				tell_sampled(&k, ptr, size);                                   \
			leave(&k);                                                             \
		}                                                                              \
		return ptr;                                                                    \
	}

SAMPLES(size, a)
SAMPLES(count, product(a, b))
SAMPLES(align, b)
SAMPLES(heap, b)

ENTRY4(sampled_pointer)
{
	struct call k = enter(hook, RT_FRAME());
	uint64_t ret = ORIGINAL(hook)(a, b, c, d);
	if (k.c) {
		uint64_t ptr = (int)ret == 0 ? rt_word(a) : 0;
		if (!ptr || rt_sample(k.c, c))
			tell_sampled(&k, ptr, c);
		leave(&k);
	}
	return ret;
}

/* After the original: old_told, its block may be one that was told. */
static void tell_sampled_change(const struct call *k, struct change *r, bool old_told)
{
	bool told = r->new_ptr && rt_sample(k->c, r->size);
	if (!told && !old_told && (r->new_ptr || !r->size))
		return;
	if (told)
		as_rt_sample_mark(k->c, r->new_ptr);
	else
		r->flags = AS_RT_REALLOC_UNSAMPLED;
	/* the old block stays when it failed, and was not told where the table had no room */
	if (old_told && !r->new_ptr && r->size)
		as_rt_sample_mark(k->c, r->old);
	if (!tell_realloc(k, r) && told)
		as_rt_sample_unmark(k->c, r->new_ptr);
}

static inline __attribute__((always_inline)) uint64_t reallocate_sampled(struct call *k,
									 const uint64_t arg[4],
									 uint64_t size)
{
	bool told = k->c && arg[0] && rt_may_be_sampled(k->c, arg[0]);
	if (RT_UNLIKELY(told)) {
		as_rt_sample_unmark(k->c, arg[0]);
		(void)tell_realloc_begin(k, arg[0]);
	}
	uint64_t ptr = ORIGINAL(k->hook)(arg[0], arg[1], arg[2], arg[3]);
	if (k->c) {
		struct change r = {.old = arg[0], .new_ptr = ptr, .size = size};
		tell_sampled_change(k, &r, told);
		leave(k);
	}
	return ptr;
}

#define SAMPLES_CHANGE(name, size)                                                             \
	ENTRY4(sampled_##name)                                                                 \
	{                                                                                      \
		struct call k = enter(hook, RT_FRAME());                                       \
		const uint64_t arg[4] = {a, b, c, d};                                          \
		return reallocate_sampled(&k, arg, size);                                      \
	}

SAMPLES_CHANGE(realloc, b)
SAMPLES_CHANGE(realloc_count, product(b, c))
SAMPLES_CHANGE(realloc_rust, d)

ENTRY4(sampled_resize)
{
	struct call k = enter(hook, RT_FRAME());
	uint64_t ret = ORIGINAL(hook)(a, b, c, d);
	if (k.c) {
		struct change r = {.old = a, .new_ptr = a, .size = b};
		bool told = ret >= b && rt_may_be_sampled(k.c, a);
		if (told)
			as_rt_sample_unmark(k.c, a);
		if (ret >= b)
			tell_sampled_change(&k, &r, told);
		leave(&k);
	}
	return ret;
}

/* A block that was told, most likely; others do not come here. */
ENTRY4(sampled_free)
{
	struct call k = enter(hook, RT_FRAME());
	if (RT_LIKELY(k.c && a)) {
		as_rt_sample_unmark(k.c, a);
		tell_free(&k, a);
	}
	uint64_t ret = ORIGINAL(hook)(a, b, c, d);
	if (RT_LIKELY(k.c != 0))
		leave(&k);
	return ret;
}

/* ---- operator new ---- */

/*
 * 0: the original is to be called, from its caller. What is called here does not throw, and takes the
 * same arguments (and one behind them that nobody reads). A call that is part of another goes to the
 * original at once: this one's stand-in may call it.
 */
#define NEWS(name, told)                                                                       \
	uint64_t as_rt_##name(uint64_t a, uint64_t b, const struct as_rt_hook *hook,           \
			      const struct rt_frame *frame);                                   \
	uint64_t as_rt_##name(uint64_t a, uint64_t b, const struct as_rt_hook *hook,           \
			      const struct rt_frame *frame)                                    \
	{                                                                                      \
		struct call k = enter(hook, frame);                                            \
		if (!k.c)                                                                      \
			return 0;                                                              \
		uint64_t ptr = ((call4 *)(uintptr_t)hook->instead)(a, b, 0, 0);                \
		uint64_t size = hook->flags & AS_RT_HOOK_COUNT ? product(a, b) : a;            \
		if (ptr && told(&k, size))                                                     \
			tell_##name(&k, ptr, size);                                            \
		leave(&k);                                                                     \
		return ptr;                                                                    \
	}

static inline bool is_told(const struct call *k, uint64_t size)
{
	return true;
}

static inline bool is_sampled(const struct call *k, uint64_t size)
{
	return rt_sample(k->c, size);
}

static void tell_new(const struct call *k, uint64_t ptr, uint64_t size)
{
	(void)tell_alloc(k, ptr, size);
}

static void tell_sampled_new(const struct call *k, uint64_t ptr, uint64_t size)
{
	tell_sampled(k, ptr, size);
}

NEWS(new, is_told)
NEWS(sampled_new, is_sampled)

/* ---- marks of the program ---- */

ENTRY4(mark)
{
	struct call k = enter(hook, RT_FRAME());
	if (k.c) {
		uint64_t w[4 + AS_RT_MARK_BYTES / 8] = {0};
		uint64_t n = b < AS_RT_MARK_BYTES ? b : AS_RT_MARK_BYTES;
		follow_clock(k.c);
		if (rt_tables(k.c, k.frame))
			as_rt_flush(k.c);
		w[1] = rt_stamp(k.c);
		w[2] = n;
		for (uint64_t i = 0; i < n; i++)
			((char *)(w + 3))[i] = ((const char *)(uintptr_t)a)[i];
		(void)rt_emit(k.c, AS_RT_REC_MARK, hook->id, w, 5);
		leave(&k);
	}
	return ORIGINAL(hook)(a, b, c, d);
}

/* ---- mappings ---- */

static bool is_error(uint64_t ret)
{
	return ret >= (uint64_t)-4095;
}

uint64_t as_rt_mmap(const uint64_t arg[6], const struct as_rt_hook *hook,
		    const struct rt_frame *frame);
uint64_t as_rt_mmap(const uint64_t arg[6], const struct as_rt_hook *hook,
		    const struct rt_frame *frame)
{
	struct call k = enter(hook, frame);
	uint64_t ret = ORIGINAL6(hook)(arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	if (!k.c)
		return ret;
	if (!is_error(ret)) {
		struct rt_capture cap;
		follow_clock(k.c);
		uint32_t node = node_of(&cap, &k);
		const uint64_t w[8] = {0,
				       rt_stamp(k.c),
				       ret,
				       arg[1],
				       node | arg[2] << 32,
				       (uint32_t)arg[3] | arg[4] << 32,
				       arg[5],
				       0};
		(void)rt_emit(k.c, AS_RT_REC_MMAP, hook->id, w, 4);
		rt_capture_end(&cap);
	}
	leave(&k);
	return ret;
}

static void tell_munmap(const struct call *k, uint64_t addr, uint64_t length, bool failed)
{
	struct rt_capture cap;
	follow_clock(k->c);
	uint32_t node = node_of(&cap, k);
	const uint64_t w[6] = {0, rt_stamp(k->c), addr, length, node | (uint64_t)failed << 32,
			       0};
	(void)rt_emit(k->c, AS_RT_REC_MUNMAP, k->hook->id, w, 3);
	rt_capture_end(&cap);
}

ENTRY4(munmap)
{
	struct call k = enter(hook, RT_FRAME());
	if (k.c)
		tell_munmap(&k, a, b, false);
	uint64_t ret = ORIGINAL(hook)(a, b, c, d);
	if (k.c) {
		if ((int)ret != 0)
			tell_munmap(&k, a, b, true);
		leave(&k);
	}
	return ret;
}

#define ENTRY5(name)                                                                           \
	uint64_t as_rt_##name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,      \
			      const struct as_rt_hook *hook);                                  \
	uint64_t as_rt_##name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,      \
			      const struct as_rt_hook *hook)

ENTRY5(mremap)
{
	struct call k = enter(hook, RT_FRAME());
	uint64_t ret = ORIGINAL6(hook)(a, b, c, d, e, 0);
	if (!k.c)
		return ret;
	if (!is_error(ret)) {
		struct rt_capture cap;
		follow_clock(k.c);
		uint32_t node = node_of(&cap, &k);
		const uint64_t w[8] = {0, rt_stamp(k.c), a, b, ret, c, node | d << 32, 0};
		(void)rt_emit(k.c, AS_RT_REC_MREMAP, hook->id, w, 4);
		rt_capture_end(&cap);
	}
	leave(&k);
	return ret;
}

/* ---- told and waited for ---- */

#define SYNC_WAIT_NS 200000000
#define STILL_MAX    20000000u /* looks at a clock that stands: 0.1 to 1 s */
#define FUTEX_WAIT   0
#define FUTEX_WAKE   1

static int64_t now_ns(void)
{
	int64_t t[2] = {0, 0};
	(void)rt_syscall(RT_SYS_CLOCK_GETTIME, 1, (uintptr_t)t, 0, 0);
	return t[0] * 1000000000 + t[1];
}

/* Without a system call, the recorder's clock tells the time; a recorder whose clock stands is gone. */
static bool await_in_loop(const struct as_rt_control *control, uint32_t serial)
{
	uint64_t now = rt_load(&control->clock_ns), end = now + SYNC_WAIT_NS, last = now;
	for (uint32_t still = 0; still < STILL_MAX && now < end; still++) {
		uint32_t done = __atomic_load_n(&control->modules_done, __ATOMIC_ACQUIRE);
		if ((int32_t)(done - serial) >= 0)
			return true;
		rt_relax();
		now = rt_load(&control->clock_ns);
		if (now != last)
			still = 0;
		last = now;
	}
	return false;
}

static void note_timeout(struct as_rt_control *control)
{
	__atomic_add_fetch(&control->sync_timeouts, 1, __ATOMIC_RELAXED);
}

/* Until the recorder has acted upon everything up to serial, or 200 ms have passed. */
static void await(struct as_rt_control *control, uint32_t serial)
{
	if (!rt_has_syscalls(control)) {
		if (!await_in_loop(control, serial))
			note_timeout(control);
		return;
	}
	int64_t end = now_ns() + SYNC_WAIT_NS, left = SYNC_WAIT_NS;
	while (left > 0) {
		uint32_t done = __atomic_load_n(&control->modules_done, __ATOMIC_ACQUIRE);
		if ((int32_t)(done - serial) >= 0)
			return;
		const int64_t wait[2] = {0, left};
		(void)rt_syscall(RT_SYS_FUTEX, (uintptr_t)&control->modules_done, FUTEX_WAIT,
				 done, (uintptr_t)wait);
		left = end - now_ns();
	}
	note_timeout(control);
}

struct notice {
	uint32_t kind;
	uint64_t arg[2];
};

static __attribute__((noinline)) void sync(const struct as_rt_hook *hook,
					   const struct rt_frame *frame, const struct notice *n)
{
	struct as_rt_home *home = (struct as_rt_home *)(uintptr_t)hook->home;
	struct as_rt_control *control = (struct as_rt_control *)(uintptr_t)home->control;
	if (control->flags & AS_RT_PAUSED)
		return;
	struct call k = enter(hook, frame);
	uint32_t serial = __atomic_add_fetch(&control->sync_serial, 1, __ATOMIC_ACQ_REL);
	if (k.c) {
		uint32_t tid = k.c->ring->tid;
		uint64_t pid = k.c->ring->pid;
		if (rt_has_syscalls(
			    control)) { /* the ring's owner may wait for a vfork child */
			tid = (uint32_t)rt_syscall(RT_SYS_GETTID, 0, 0, 0, 0);
			pid = (uint64_t)rt_syscall(RT_SYS_GETPID, 0, 0, 0, 0);
		}
		const uint64_t w[8] = {0,
				       rt_stamp(k.c),
				       n->kind | (uint64_t)serial << 32,
				       tid | pid << 32,
				       rt_load(&control->clock_ns),
				       n->arg[0],
				       n->arg[1],
				       0};
		(void)rt_emit(k.c, AS_RT_REC_SYNC, hook->id, w, 4);
		leave(&k);
	}
	if (rt_has_syscalls(control))
		(void)rt_syscall(RT_SYS_FUTEX, (uintptr_t)&control->sync_serial, FUTEX_WAKE, 1,
				 0);
	await(control, serial);
}

ENTRY4(modules)
{
	const struct notice n = {AS_RT_MODULES, {0, 0}};
	sync(hook, RT_FRAME(), &n);
	return ORIGINAL(hook)(a, b, c, d);
}

ENTRY5(exec)
{
	const struct notice n = {AS_RT_EXEC, {a, b}};
	sync(hook, RT_FRAME(), &n);
	return ORIGINAL6(hook)(a, b, c, d, e, 0);
}

/* What lies below RT_FRAME is the runtime's. */
ENTRY4(exit_begins)
{
	((struct as_rt_home *)(uintptr_t)hook->home)->ends = 1;
	const struct notice n = {AS_RT_EXIT_BEGINS, {a, (uintptr_t)RT_FRAME()}};
	sync(hook, RT_FRAME(), &n);
	return ORIGINAL(hook)(a, b, c, d);
}

ENTRY4(exit)
{
	const struct notice n = {AS_RT_EXIT, {a, (uintptr_t)RT_FRAME()}};
	sync(hook, RT_FRAME(), &n);
	return ORIGINAL(hook)(a, b, c, d);
}

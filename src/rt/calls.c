/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What runs in the place of patched functions. The caller sees what it would have seen. */
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

static __attribute__((noinline, cold)) void tell_time(struct rt_context *c, uint64_t now)
{
	const uint64_t w[2] = {0, now};
	c->clock_ns = now;
	(void)rt_emit(c, AS_RT_REC_TIME, 0, w, 1);
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

static void lost_bytes(struct rt_context *c, uint64_t size)
{
	(void)rt_add_own(&c->ring->lost_bytes, size);
}

static __attribute__((noinline)) void tell_alloc(const struct call *k, uint64_t ptr,
						 uint64_t size, uint64_t align)
{
	struct rt_capture cap;
	follow_clock(k->c);
	uint32_t node = node_of(&cap, k);
	const uint64_t w[4] = {0, ptr, size, node | align << 32};
	if (!rt_emit(k->c, AS_RT_REC_ALLOC, k->hook->id, w, 2))
		lost_bytes(k->c, size);
	rt_capture_end(&cap);
}

static __attribute__((noinline)) void tell_realloc(const struct call *k, uint64_t old,
						   uint64_t new_ptr, uint64_t size)
{
	struct rt_capture cap;
	follow_clock(k->c);
	uint32_t node = node_of(&cap, k);
	const uint64_t w[6] = {0, old, new_ptr, size, node, 0};
	if (!rt_emit(k->c, AS_RT_REC_REALLOC, k->hook->id, w, 3))
		lost_bytes(k->c, size);
	rt_capture_end(&cap);
}

static __attribute__((noinline)) void tell_free_with_stack(const struct call *k, uint64_t ptr)
{
	struct rt_capture cap;
	uint32_t node = node_of(&cap, k);
	const uint64_t w[4] = {0, ptr, node, 0};
	(void)rt_emit(k->c, AS_RT_REC_FREE, k->hook->id, w, 2);
	rt_capture_end(&cap);
}

static inline void tell_free(const struct call *k, uint64_t ptr)
{
	const uint64_t w[2] = {0, ptr};
	follow_clock(k->c);
	if (RT_UNLIKELY(k->c->control->flags & AS_RT_FREE_STACKS))
		tell_free_with_stack(k, ptr);
	else
		(void)rt_emit(k->c, AS_RT_REC_FREE, k->hook->id, w, 1);
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

/* An allocation of `size` bytes, aligned to `align` (0: not asked for). */
#define ALLOCATES(name, size, align)                                                           \
	ENTRY4(name)                                                                           \
	{                                                                                      \
		struct call k = enter(hook, RT_FRAME());                                       \
		uint64_t ptr = ORIGINAL(hook)(a, b, c, d);                                     \
		if (RT_LIKELY(k.c != 0)) {                                                     \
			tell_alloc(&k, ptr, size, align);                                      \
			leave(&k);                                                             \
		}                                                                              \
		return ptr;                                                                    \
	}

ALLOCATES(size, a, 0)
ALLOCATES(count, product(a, b), 0)
ALLOCATES(align, b, a)
ALLOCATES(heap, b, 0)

ENTRY4(pointer)
{
	struct call k = enter(hook, RT_FRAME());
	uint64_t ret = ORIGINAL(hook)(a, b, c, d);
	if (k.c) {
		bool ok = (int)ret == 0;
		tell_alloc(&k, ok ? rt_word(a) : 0, c, b);
		leave(&k);
	}
	return ret;
}

static inline __attribute__((always_inline)) uint64_t reallocate(struct call *k,
								 const uint64_t arg[4],
								 uint64_t size)
{
	if (k->c && arg[0]) {
		const uint64_t w[2] = {0, arg[0]};
		follow_clock(k->c);
		(void)rt_emit(k->c, AS_RT_REC_REALLOC_BEGIN, k->hook->id, w, 1);
	}
	uint64_t ptr = ORIGINAL(k->hook)(arg[0], arg[1], arg[2], arg[3]);
	if (k->c) {
		tell_realloc(k, arg[0], ptr, size);
		leave(k);
	}
	return ptr;
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
		if (ret >= b)
			tell_realloc(&k, a, a, b);
		leave(&k);
	}
	return ret;
}

ENTRY4(free)
{
	struct call k = enter(hook, RT_FRAME());
	if (RT_LIKELY(k.c && a))
		tell_free(&k, a);
	uint64_t ret = ORIGINAL(hook)(a, b, c, d);
	if (RT_LIKELY(k.c != 0))
		leave(&k);
	return ret;
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
		const uint64_t w[6] = {0,
				       ret,
				       arg[1],
				       node | arg[2] << 32,
				       (uint32_t)arg[3] | arg[4] << 32,
				       arg[5]};
		(void)rt_emit(k.c, AS_RT_REC_MMAP, hook->id, w, 3);
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
	const uint64_t w[4] = {0, addr, length, node | (uint64_t)failed << 32};
	(void)rt_emit(k->c, AS_RT_REC_MUNMAP, k->hook->id, w, 2);
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
		const uint64_t w[6] = {0, a, b, ret, c, node | d << 32};
		(void)rt_emit(k.c, AS_RT_REC_MREMAP, hook->id, w, 3);
		rt_capture_end(&cap);
	}
	leave(&k);
	return ret;
}

/* ---- told and waited for ---- */

#define SYNC_WAIT_NS 200000000
#define FUTEX_WAIT   0
#define FUTEX_WAKE   1

static int64_t now_ns(void)
{
	int64_t t[2] = {0, 0};
	(void)rt_syscall(RT_SYS_CLOCK_GETTIME, 1, (uintptr_t)t, 0, 0);
	return t[0] * 1000000000 + t[1];
}

/* Until the recorder has acted upon everything up to serial, or 200 ms have passed. */
static void await(struct as_rt_control *control, uint32_t serial)
{
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
	__atomic_add_fetch(&control->sync_timeouts, 1, __ATOMIC_RELAXED);
}

static __attribute__((noinline)) void sync(const struct as_rt_hook *hook,
					   const struct rt_frame *frame, uint32_t kind)
{
	struct as_rt_home *home = (struct as_rt_home *)(uintptr_t)hook->home;
	struct as_rt_control *control = (struct as_rt_control *)(uintptr_t)home->control;
	if (control->flags & AS_RT_PAUSED)
		return;
	struct call k = enter(hook, frame);
	uint32_t serial = __atomic_add_fetch(&control->sync_serial, 1, __ATOMIC_ACQ_REL);
	if (k.c) {
		uint32_t tid = (uint32_t)rt_syscall(RT_SYS_GETTID, 0, 0, 0, 0);
		uint64_t pid = (uint64_t)rt_syscall(RT_SYS_GETPID, 0, 0, 0, 0);
		const uint64_t w[4] = {0, kind | (uint64_t)serial << 32, tid | pid << 32,
				       rt_load(&control->clock_ns)};
		(void)rt_emit(k.c, AS_RT_REC_SYNC, hook->id, w, 2);
		leave(&k);
	}
	(void)rt_syscall(RT_SYS_FUTEX, (uintptr_t)&control->sync_serial, FUTEX_WAKE, 1, 0);
	await(control, serial);
}

ENTRY4(modules)
{
	sync(hook, RT_FRAME(), AS_RT_MODULES);
	return ORIGINAL(hook)(a, b, c, d);
}

ENTRY5(exec)
{
	sync(hook, RT_FRAME(), AS_RT_EXEC);
	return ORIGINAL6(hook)(a, b, c, d, e, 0);
}

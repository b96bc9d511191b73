/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The runtime's own: what a thread's context holds, and the primitives everything is made of.
 * Freestanding code that runs inside other people's programs: no libc, no TLS, no writable data,
 * general registers only, no more than AS_RT_STACK_MAX bytes of stack.
 *
 * Concurrency: a context belongs to one thread. The thread's own signal handlers may come in at
 * any instruction; what they share with the code they interrupt is either changed by one
 * instruction (ring->pos, once_id) or guarded by capture_sp (all that nodes are made of).
 */
#ifndef AS_RT_RT_PRIV_H
#define AS_RT_RT_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/rt.h"
#include "abi/stack_end.h"
#include "abi/unwind_table.h"

#define RT_LIKELY(x)   __builtin_expect(!!(x), 1)
#define RT_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define RT_BARRIER()   __asm__ volatile("" ::: "memory")
#define RT_PAGE        4096u

/* What the compiler's prologue leaves at rbp: every function here keeps a frame pointer. */
struct rt_frame {
	uint64_t fp; /* the caller's rbp */
	uint64_t ra; /* where the patched function returns to */
};

/* A rule of the unwind table in force at a pc; the key is pc - (return address ? 1 : 0). */
struct rt_rule {
	uint64_t avma;
	uint32_t w0;
	int32_t w1;
};

enum rt_node_flags {
	RT_NODE_NEEDS_FP = 1, /* fp decides where the chain goes from here: it is compared */
	RT_NODE_LOADS_FP =
		2,           /* the parent needs fp and it was saved by this frame, at fp_off */
	RT_NODE_ZERO_FP = 4, /* this frame's rule leaves fp undefined: 0 above it */
	RT_NODE_STEP = 8,    /* memory besides slot and fp decides: step again to verify */
	RT_NODE_USES_FP = 16,  /* this frame's own rule reads fp */
	RT_NODE_SAVES_FP = 32, /* fp was saved at fp_off, whether the parent needs it or not */
	/* kept for the record: */
	RT_NODE_BY_FP = 64,
	RT_NODE_CUT = 128, /* frames are missing between this one and its parent */
};

/*
 * One frame in a thread's table. The chain of a node is exact as long as each slot holds its
 * return address: where the next slot is follows from slot, ra and, with NEEDS_FP, fp.
 */
struct rt_node {
	uint64_t slot; /* address of the return address */
	uint64_t ra;
	uint64_t fp;     /* with NEEDS_FP: rbp in the frame returned to */
	uint32_t parent; /* index, 0: none */
	int16_t fp_off;  /* from the frame's CFA */
	uint16_t flags;
};

/* A frame that was walked over, innermost first. */
struct rt_seen {
	uint64_t slot, ra, fp;
	int16_t fp_off;
	uint16_t flags; /* enum rt_node_flags */
	uint8_t exact;  /* ra is a pc */
	uint8_t end;    /* enum as_stack_end, where the walk ended here */
	uint16_t reserved;
};

/* A word of memory the chain of a stack depends on. */
struct rt_pair {
	uint64_t avma, value;
};

/* A whole stack that was captured before, flat: it is the same when all its words are. */
struct rt_stack {
	uint64_t slot, ra;  /* the innermost frame's */
	uint64_t fp;        /* with needs_fp: rbp there */
	uint64_t last_avma; /* the highest of its words */
	uint32_t node;
	uint32_t pairs; /* position of the first, as ever counted */
	uint32_t number;
	uint16_t npairs;
	bool needs_fp;
};

/* By innermost frame: the stacks it had last, and first. The first one's places are hashed. */
struct rt_leaf {
	uint32_t last, shape; /* number of a stack; 0: none */
	bool varied;          /* it was another than `last` the last time */
	bool walked; /* some have their words in other places than the first, and are found by way 3 */
	bool far; /* the last time that was so, and its last node was not the one */
};

/*
 * What the words in the places of an innermost frame's first stack hash to, and whose they are.
 * With node: of a stack with its words in just these places, so that an equal hash (64 bits) is
 * the stack; it is of the nodes of that number. Else stack `number` is the one to compare.
 */
struct rt_path {
	uint64_t hash;
	uint32_t number, node;
};

#define RT_DEPTH_MAX        1024u
#define RT_STACKS           1024u
#define RT_PAIRS            16384u
#define RT_PAIRS_MAX        512u /* of one stack: deeper ones are verified by their nodes */
#define RT_LEAVES           2048u
#define RT_PATH_SETS        65536u
#define RT_PATH_SETS_LEAST  1024u
#define RT_PATH_WAYS        4u
#define RT_RULES            1024u
#define RT_CHILD_WAYS       8u
#define RT_CHILD_SETS       65536u
#define RT_CHILD_SETS_LEAST 2048u
#define RT_NODES_LEAST      8192u
#define RT_PROBES           16384u
#define RT_ROOT_DEPTH       4u

/* The tables of nodes of a thread with many stacks: mapped when they are needed, and used as far as
 * that is so; no page is touched before. */
struct rt_nodes {
	struct rt_node node[AS_RT_NODES];
	uint32_t child[RT_CHILD_SETS][RT_CHILD_WAYS];
	struct rt_path path[RT_PATH_SETS][RT_PATH_WAYS];
};

struct rt_context {
	/* fs:[0] == gs:[0] is the fast path's test; self is at gs:[8]. */
	uint64_t fs;
	struct rt_context *self;
	struct as_rt_ring *ring;
	const struct as_rt_control *control;
	char *data;    /* the ring's */
	uint64_t mask; /* ring_bytes - 1 */
	uint64_t room; /* bytes of the ring that may be in use */
	/* Frame of the outermost call in progress; 0: none. All ones: this context only drops. */
	uint64_t busy_sp;
	/* Of context 0: AS_RT_CONTEXT_PID. */
	uint64_t process;

	uint64_t limit;      /* pos may come to here: consumed, as last read, + room */
	uint64_t clock_ns;   /* last told */
	uint64_t capture_sp; /* frame of the event that is using nodes and seen; 0: none */
	uint64_t serial;     /* allocations so far. Changed by one instruction. */
	struct as_rt_tables *tables; /* NULL: no pairs are summed up */
	uint64_t change_sp;          /* frame of what changes or last changed them */
	uint32_t modules_seq;
	uint32_t nnodes; /* node[0] is none */
	uint32_t once_id;
	uint32_t lost_heartbeat; /* heartbeat when the last wait for room was in vain */
	bool need_reset;         /* the reader lacks nodes: RESET before the next */
	bool waited;             /* for room in the ring, since a call began to be timed */
	uint16_t nroot;
	/* Where the last call that was found to be nested came from. */
	uint64_t nested_ra, nested_gap;

	/* Sampling: bytes to the next mark, at most 0: it was reached. Changed by one instruction. */
	int64_t sample_left;
	uint64_t random; /* of sampling; a handler that comes in between may draw the same */
	uint32_t (*sampled)[2]; /* the process's table */

	/*
	 * First and last address at which 8 bytes are known to be readable: of the thread's own
	 * stack, which stays; and of another stack, during one capture. lo > last: none.
	 */
	uint64_t own_lo, own_last;
	uint64_t other_lo, other_last;
	uint32_t own_tries; /* that failed */

	const struct as_rt_home *home;
	uint64_t lost_here; /* events this dropping context has seen */

	/* The outermost frames of this thread, for stacks too deep to be followed to there. */
	struct rt_seen root[RT_ROOT_DEPTH];

	/* What comes from here on outlives the owner: nodes that are in use are those of `nodes_number`. */
	_Alignas(4096) uint32_t nodes_number; /* how often they were forgotten */
	uint32_t child_sets, path_sets;       /* that are in use: 0, or a power of two */
	uint32_t max_nodes;                   /* a power of two */
	bool no_more;                         /* memory for `many` was refused */
	struct rt_node *node;                 /* node[0] is none */
	uint32_t (*child)[RT_CHILD_WAYS];     /* index | tag, by parent, slot, ra */
	struct rt_path (*path)[RT_PATH_WAYS]; /* by hash */
	uint32_t npaths;                      /* written since `path` had its size */
	uint32_t stack_count; /* stacks kept so far; those up to stack_base are void */
	uint32_t stack_base;
	uint32_t pair_count;

	struct rt_rule rule[RT_RULES];
	struct rt_seen seen[RT_DEPTH_MAX];
	struct rt_leaf leaf[RT_LEAVES];
	uint32_t probe[RT_PROBES]; /* index, by slot and ra: the last one */
	struct rt_stack stack[RT_STACKS];
	struct rt_pair pair[RT_PAIRS];
	/* What a thread has when node0 and its tables are full; NULL: not yet, or it cannot be had. */
	struct rt_nodes *many;
	_Alignas(4096) struct rt_node node0[RT_NODES_LEAST];
	_Alignas(64) uint32_t child0[RT_CHILD_SETS_LEAST][RT_CHILD_WAYS];
	_Alignas(64) struct rt_path path0[RT_PATH_SETS_LEAST][RT_PATH_WAYS];
};
_Static_assert(sizeof(struct rt_context) <= AS_RT_CONTEXT_BYTES, "context");
_Static_assert(sizeof(struct rt_node) == 32, "two to a line");
_Static_assert(offsetof(struct rt_context, process) == AS_RT_CONTEXT_PID, "the tool writes it");

/* ---- system calls ---- */

#define RT_SYS_MMAP          9
#define RT_SYS_MUNMAP        11
#define RT_SYS_SIGPROCMASK   14
#define RT_SYS_MADVISE       28
#define RT_SYS_NANOSLEEP     35
#define RT_SYS_GETPID        39
#define RT_SYS_ARCH_PRCTL    158
#define RT_SYS_GETTID        186
#define RT_SYS_FUTEX         202
#define RT_SYS_CLOCK_GETTIME 228
#define RT_ARCH_SET_GS       0x1001
#define RT_ARCH_GET_FS       0x1003
#define RT_EFAULT            14

static inline int64_t rt_syscall(int64_t n, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	register uint64_t r10 __asm__("r10") = d;
	int64_t ret;
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline int64_t rt_syscall6(int64_t n, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
				  uint64_t e, uint64_t f)
{
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = e;
	register uint64_t r9 __asm__("r9") = f;
	int64_t ret;
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline uint64_t rt_load(const void *at)
{
	return *(const volatile uint64_t *)at;
}

static inline uint64_t rt_word(uint64_t avma)
{
	return *(const uint64_t *)(uintptr_t)avma;
}

/* Adds to *at by one instruction: whole against the thread's own signal handlers. */
static inline uint64_t rt_add_own(uint64_t *at, uint64_t n)
{
	__asm__ volatile("xaddq %0, %1" : "+r"(n), "+m"(*at) : : "memory", "cc");
	return n;
}

static inline uint64_t rt_page(uint64_t avma)
{
	return avma & ~(uint64_t)(RT_PAGE - 1);
}

/* ---- the thread's context ---- */

/* That of the running thread, or NULL: it has none yet. Never reads fs:[0] of a thread without. */
static inline struct rt_context *rt_current(void)
{
	uint64_t own, fs;
	struct rt_context *c;
	__asm__ volatile("movq %%gs:0, %0" : "=r"(own));
	if (RT_UNLIKELY(!own))
		return 0;
	__asm__ volatile("movq %%fs:0, %0" : "=r"(fs));
	if (RT_UNLIKELY(own != fs))
		return 0;
	__asm__ volatile("movq %%gs:8, %0" : "=r"(c));
	return c;
}

struct rt_context *as_rt_claim(const struct as_rt_hook *hook);

/* entry.S finds them by these */
_Static_assert(offsetof(struct as_rt_control, flags) == 72, "entry.S");
_Static_assert(offsetof(struct as_rt_home, sampled) == 40, "entry.S");
_Static_assert(offsetof(struct as_rt_home, control) == 8, "entry.S");
_Static_assert(offsetof(struct as_rt_hook, home) == 8, "entry.S");
_Static_assert(offsetof(struct as_rt_control, stamps) == 48, "entry.S");
_Static_assert(AS_RT_NO_SYSCALLS == 128 && AS_RT_SAMPLED_BUCKETS == 0x10000, "entry.S");

/* Whether the runtime may make system calls. */
static inline bool rt_has_syscalls(const struct as_rt_control *control)
{
	return !(*(const volatile uint32_t *)&control->flags & AS_RT_NO_SYSCALLS);
}

static inline void rt_relax(void)
{
	__asm__ volatile("pause" ::: "memory");
}

/* ---- stamps ---- */

static inline uint64_t rt_count_stamp(const struct as_rt_home *home)
{
	struct as_rt_control *control = (struct as_rt_control *)(uintptr_t)home->control;
	return __atomic_add_fetch(&control->stamps, 1, __ATOMIC_RELAXED);
}

static inline uint64_t rt_ticks(void)
{
	uint32_t lo, hi;
	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi) : : "memory");
	return lo | (uint64_t)hi << 32;
}

/* Not before all that led to it has been read: the block that is given out, or the word of another thread
 * that said where the block is which is given up. What follows is seen by others later, as stores are in
 * order. */
static inline uint64_t rt_stamp(const struct rt_context *c)
{
	uint32_t lo, hi;
	if (RT_UNLIKELY(!rt_has_syscalls(c->control)))
		return rt_count_stamp(c->home);
	__asm__ volatile("lfence\n\trdtsc" : "=a"(lo), "=d"(hi) : : "memory");
	return lo | (uint64_t)hi << 32;
}

/* ---- sampling ---- */

/* Bytes from one mark to the next. */
int64_t as_rt_draw(struct rt_context *c);
/* A block at ptr is told; is told no more. */
void as_rt_sample_mark(struct rt_context *c, uint64_t ptr);
void as_rt_sample_unmark(struct rt_context *c, uint64_t ptr);

/* As entry_sampled_free does. */
static inline uint32_t *rt_sampled_bucket(const struct rt_context *c, uint64_t ptr)
{
	return c->sampled[(ptr >> 4 ^ ptr >> 20) & (AS_RT_SAMPLED_BUCKETS - 1)];
}

static inline uint32_t rt_sampled_key(uint64_t ptr)
{
	return (uint32_t)(ptr >> 4 ^ ptr >> 36);
}

/* Whether there is a mark on the next `size` bytes. */
static inline bool rt_sample(struct rt_context *c, uint64_t size)
{
	bool reached;
	int64_t n = size > INT64_MAX ? INT64_MAX : (int64_t)size;
	n = n < (int64_t)AS_RT_SAMPLE_LEAST ? (int64_t)AS_RT_SAMPLE_LEAST : n;
	__asm__ volatile("subq %2, %0"
			 : "+m"(c->sample_left), "=@ccle"(reached)
			 : "r"(n)
			 : "memory");
	if (RT_LIKELY(!reached))
		return false;
	*(volatile int64_t *)&c->sample_left = as_rt_draw(c);
	return true;
}

/* Whether a block that was told may be at ptr. */
static inline bool rt_may_be_sampled(const struct rt_context *c, uint64_t ptr)
{
	const volatile uint32_t *b = rt_sampled_bucket(c, ptr);
	uint32_t key = rt_sampled_key(ptr);
	return b[0] == key || b[1] == key || b[1] == AS_RT_SAMPLED_ALL;
}
/* The call at frame while another is in progress: false when it is part of that one. */
bool as_rt_is_own_call(struct rt_context *c, const struct rt_frame *frame);

/* ---- records ---- */

/* Looks how far the reader is, and waits for room where that is wanted; false: there is none. */
bool as_rt_wait_room(struct rt_context *c, uint64_t bytes);

/* What the reader has written is looked at only when the last look does not do: its line would have
 * to come from the reader's processor each time. */
static inline bool rt_has_room(struct rt_context *c, uint64_t bytes)
{
	return RT_LIKELY(rt_load(&c->ring->pos) + bytes <= c->limit) ||
	       as_rt_wait_room(c, bytes);
}

#define RT_AHEAD 1024u /* bytes, that the line comes from the reader's processor in time */
static inline void rt_prefetch(const struct rt_context *c, uint64_t at)
{
	__asm__ volatile("prefetchw %0" : : "m"(c->data[(at + RT_AHEAD) & c->mask]));
}

/*
 * Writes a record of `units` (a constant) 16-byte units; w[0] is left for the head. False: it did
 * not fit and was counted.
 */
static inline __attribute__((always_inline)) bool rt_emit(struct rt_context *c, uint32_t kind,
							  uint32_t hook, const uint64_t *w,
							  unsigned units)
{
	struct as_rt_ring *r = c->ring;
	if (!rt_has_room(c, 16 * units)) {
		(void)rt_add_own(&r->lost[kind], 1);
		return false;
	}
	uint64_t at = rt_add_own(&r->pos, 16 * units);
	rt_prefetch(c, at);
	for (unsigned k = 1; k < units; k++) {
		uint64_t *to = (uint64_t *)(void *)(c->data + ((at + 16 * k) & c->mask));
		to[0] = w[2 * k];
		to[1] = w[2 * k + 1];
	}
	uint64_t *to = (uint64_t *)(void *)(c->data + (at & c->mask));
	to[1] = w[1];
	/* the head makes it valid: x86 keeps the order of stores, the compiler shall, too */
	__atomic_store_n(to, kind | units << 8 | hook << 16 | at >> 4 << 32, __ATOMIC_RELEASE);
	return true;
}

/* ---- stacks ---- */

bool as_rt_readable(struct rt_context *c, uint64_t avma);

/* No node is known any more, and no stack. */
void as_rt_forget_nodes(struct rt_context *c);

/* 8 bytes of the running thread's stack; false where they cannot be read. Never faults. */
static inline bool rt_readable(struct rt_context *c, uint64_t avma)
{
	return RT_LIKELY(avma >= c->own_lo && avma <= c->own_last) || as_rt_readable(c, avma);
}

static inline bool rt_read(void *env, uint64_t avma, uint64_t *ret)
{
	struct rt_context *c = (struct rt_context *)env;
	if (RT_UNLIKELY(!rt_readable(c, avma)))
		return false;
	*ret = rt_word(avma);
	return true;
}

#define AS_RT_READ(env, avma, ret) rt_read(env, avma, ret)

/* One event's use of the thread's nodes. */
struct rt_capture {
	struct rt_context *c;
	bool shared; /* a handler came in while nodes were in use: without the table */
};
void as_rt_capture_begin(struct rt_capture *k, struct rt_context *c,
			 const struct rt_frame *frame);
/* The node of the stack whose innermost frame is what the function at frame returns to. 0: none. */
uint32_t as_rt_capture(struct rt_capture *k, const struct rt_frame *frame);
static inline void rt_capture_end(struct rt_capture *k)
{
	RT_BARRIER();
	if (!k->shared)
		k->c->capture_sp = 0;
}

#endif

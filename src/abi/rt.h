/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The in-target runtime (src/rt): what the tool, the code it puts into a running program, and the
 * reader of what that code writes agree on. x86-64, little-endian. Plain layouts, no functions.
 *
 * The pieces of memory in the target:
 *
 *	image		r-x. as_rt_image and code; position independent, no relocations, no data of
 *			its own. May lie there more than once (near each patched module).
 *	home		rw-, private, survives fork. struct as_rt_home, then struct as_rt_hook for
 *			each patched function.
 *	sampled		with sampling: rw-, private, MAP_NORESERVE, survives fork. AS_RT_SAMPLED_BYTES,
 *			zeroed.
 *	contexts	rw-, private, MAP_NORESERVE, MADV_WIPEONFORK (and DONTDUMP). context_max times
 *			AS_RT_CONTEXT_BYTES, zeroed. What is in them is the runtime's alone. Number 0
 *			is never claimed: every thread's gs base points at it until the thread's first
 *			event. The tool writes the process's id to AS_RT_CONTEXT_PID in it, so that
 *			a fork's child, where it is wiped, is told from its parent without asking.
 *	shared		one memfd: struct as_rt_control in the first AS_RT_CONTROL_BYTES, then
 *			context_max rings of AS_RT_RING_HEAD_BYTES + ring_bytes each. Sparse: what no
 *			thread uses is never touched. Everything zero is a valid start but for the
 *			fields said to be set before the first call.
 *
 * A patched function jumps to its thunk, which does no more than
 *
 *	movabs $hook, %r11
 *	jmp    image + as_rt_image.entry[hook->kind]
 *
 * with all other registers and the stack as its caller left them; flags and r10 are free.
 * hook->original is the address that behaves as the function did before (a trampoline).
 *
 * gs base: `fs:[0]` of a thread with TLS is its own address (psABI); a context belongs to the
 * running thread when it holds the same value. New threads inherit their creator's gs base, a
 * fork's child finds its contexts wiped: both differ, and claim a context of their own.
 *
 * Order. Records of all rings are in the order of their stamps: the processor's time stamp counter,
 * read before the original is called by what leaves (FREE, REALLOC_BEGIN, MUNMAP), after it by what
 * comes (ALLOC, REALLOC, MMAP), and the record is written in just these places, too. A block that
 * passes from thread to thread is therefore given up with a smaller stamp than it is given out
 * with. When rings are read up to a stamp that was taken before their `pos` were, nothing of what
 * led to what is there is missing: its thread has not gone on before it was written. Order within
 * a ring is the thread's order; a signal handler's records may stand between those of the call
 * it interrupted.
 */
#ifndef AS_ABI_RT_H
#define AS_ABI_RT_H

#include <stdint.h>

#define AS_RT_MAGIC   0x3154524153534153ull /* "SASSART1" */
#define AS_RT_VERSION 7

/*
 * Kinds of entry, by what the arguments mean. All up to the fourth integer argument reach the
 * original unchanged, whether named here or not (mmap, mremap, exec: six).
 *
 *	SIZE		size first: malloc, valloc, pvalloc, mallocx, operator new (plain, nothrow,
 *			aligned), mi_malloc, mi_zalloc, mi_malloc_aligned, __rust_alloc
 *	COUNT		count, size: calloc, mi_mallocn, mi_calloc_aligned
 *	ALIGN		alignment, size: memalign, aligned_alloc
 *	HEAP		something, size: mi_heap_malloc
 *	POINTER		&pointer, alignment, size; 0 is success: posix_memalign
 *	REALLOC		pointer, size: realloc, rallocx, mi_realloc_aligned
 *	REALLOC_COUNT	pointer, count, size: reallocarray, mi_recalloc
 *	REALLOC_RUST	pointer, old size, alignment, size: __rust_realloc
 *	RESIZE		pointer, size; in place; yields the size it has then: xallocx
 *	FREE		pointer first: free, cfree, free_sized, free_aligned_sized, dallocx, sdallocx,
 *			operator delete (all forms), mi_free and kin, __rust_dealloc
 *	MMAP MUNMAP MREMAP	as the functions of libc
 *	MODULES		the dynamic linker's r_brk: tells that mappings changed, waits (SYNC)
 *	EXEC		execve, fexecve, execveat: tells, waits (SYNC)
 *	EXIT_BEGINS	exit, before handlers and destructors: tells, waits (SYNC)
 *	EXIT		_exit: the process is about to end: tells, waits (SYNC)
 *	NEW		operator new that throws: hook->instead, which returns null where this one
 *			throws, is called in its place; when it does, the original is jumped to,
 *			with nothing of the runtime on the stack, and throws (or not)
 *	MARK		name, its length: assay_heap_mark of the program (assay/heap.h)
 *	PRCTL SYSCALL	prctl and syscall of libc: where they install a filter of system calls,
 *			AS_RT_NO_SYSCALLS is set before
 *	MLOCKALL	mlockall (and by syscall): with MCL_ONFAULT, so that only what is used of the
 *			runtime's memory is locked, too
 *
 * Any other function that may throw through its caller is not to be given to the runtime: no
 * unwinder of the target knows the runtime's frames. Functions that only look (malloc_usable_size)
 * stay as they are: pointers are never changed.
 */
enum as_rt_kind {
	AS_RT_SIZE = 0,
	AS_RT_COUNT = 1,
	AS_RT_ALIGN = 2,
	AS_RT_HEAP = 3,
	AS_RT_POINTER = 4,
	AS_RT_REALLOC = 5,
	AS_RT_REALLOC_COUNT = 6,
	AS_RT_REALLOC_RUST = 7,
	AS_RT_RESIZE = 8,
	AS_RT_FREE = 9,
	AS_RT_MMAP = 10,
	AS_RT_MUNMAP = 11,
	AS_RT_MREMAP = 12,
	AS_RT_MODULES = 13,
	AS_RT_EXEC = 14,
	AS_RT_NEW = 15,
	AS_RT_MARK = 16,
	AS_RT_PRCTL = 17,
	AS_RT_SYSCALL = 18,
	AS_RT_EXIT_BEGINS = 19,
	AS_RT_EXIT = 20,
	AS_RT_MLOCKALL = 21,
	AS_RT_KINDS = 22,
};

/* At the image's first byte. Offsets are from there. */
struct as_rt_image {
	uint64_t magic;
	uint32_t version;
	uint32_t bytes; /* all of the image, to be mapped r-x */
	uint32_t text_off, text_bytes;
	uint32_t eh_frame_off, eh_frame_bytes; /* CFI of the text, svma = offset, pc-relative */
	uint32_t kinds;                        /* AS_RT_KINDS */
	uint32_t context_bytes;                /* AS_RT_CONTEXT_BYTES */
	uint32_t entry[AS_RT_KINDS];
	/* The same for targets with control.sample_bytes; where they do not differ, that of entry. */
	uint32_t sampled[AS_RT_KINDS];
};
_Static_assert(sizeof(struct as_rt_image) == 216, "layout is shared with the image");

/* One per patched function, in the home. 32 bytes. Written by the tool, read by the runtime. */
struct as_rt_hook {
	uint64_t original;
	uint64_t home;    /* address of struct as_rt_home */
	uint16_t id;      /* told in each record */
	uint16_t kind;    /* enum as_rt_kind; for the reader: the thunk chose the entry */
	uint32_t flags;   /* enum as_rt_hook_flags */
	uint64_t instead; /* of NEW */
};

enum as_rt_hook_flags {
	AS_RT_HOOK_COUNT = 1, /* NEW: count and size come first, instead of the size */
};

#define AS_RT_INTERNAL 4u

/* Written by the tool before the first call. Addresses are the target's. */
struct as_rt_home {
	uint64_t magic;
	uint64_t control;
	uint64_t rings;
	uint64_t contexts;
	uint32_t context_max; /* 2 … AS_RT_CONTEXTS */
	uint32_t ring_bytes;  /* power of two, 64 KiB … 1 GiB */
	uint64_t sampled;     /* address of the table of blocks that are told; 0: all are */
	/* Calls of FREE that return to one of these places are the allocator's own: of blocks that were
	 * freed before. Not told. All lie in [internal_lo, internal_lo + internal_span]; 0: none. */
	uint64_t internal_lo, internal_span;
	uint64_t internal[AS_RT_INTERNAL];
	/* By the runtime: the process is about to end, and no pairs are summed up any more. */
	uint32_t ends, reserved;
};

#define AS_RT_CONTEXTS      8192
#define AS_RT_CONTEXT_BYTES 0xe0000u
#define AS_RT_CONTEXT_PID   64u
/* Nodes of a thread between two RESETs. */
#define AS_RT_NODE_BITS     18
#define AS_RT_NODES         (1u << AS_RT_NODE_BITS)

/* ---- control ---- */

enum as_rt_flags {
	AS_RT_PAUSED = 1,      /* nothing is recorded */
	AS_RT_NO_STACKS = 2,   /* node is 0 everywhere */
	AS_RT_FREE_STACKS = 4, /* FREE records have a node: two units long */
	AS_RT_FSGSBASE =
		8, /* the CPU and kernel let programs write the gs base (AT_HWCAP2 & 2) */
	AS_RT_NO_CHILDREN = 16, /* processes other than control.pid record nothing */
	/* A thread whose ring is full waits for room, up to full_wait_us per record, as long as
	 * heartbeat changes; without the flag the record is dropped at once. A thread that finds no ring
	 * waits for one, too, as long as heartbeat changes in full_wait_us and rings_full is 0, ten times
	 * that at most. */
	AS_RT_WAIT_FULL = 32,
	/*
	 * rt_sigprocmask is not to be called to find out whether a page can be read (strict seccomp,
	 * or a filter known to refuse it): stacks end where the first thread's stack is left.
	 */
	AS_RT_NO_PROBE = 64,
	/*
	 * The runtime makes no system call at all: a filter would answer it, or end the program. What
	 * it would wait for in the kernel it waits for in a loop, and a thread that has no context yet
	 * gets one only where control.tid_off says where its id is; that of a fork's first thread is
	 * taken for its process's. Implies NO_PROBE. Set by the tool,
	 * or by the target when it installs a filter (PRCTL, SYSCALL); stays. With it the time stamp
	 * counter is not read either (strict seccomp, PR_SET_TSC): stamps are counted in control.stamps.
	 */
	AS_RT_NO_SYSCALLS = 128,
	/* Pairs are summed up in the target (see "Pairs"). Set before the first call. */
	AS_RT_SUM_PAIRS = 256,
};

/* Executable mapping, or part of one. Sorted by start_avma, not overlapping. */
struct as_rt_module {
	uint64_t start_avma, end_avma;
	uint64_t bias; /* avma - svma */
	uint64_t
		table; /* where the target has the table's blob mapped (unwind/table.h); 0: none */
	uint32_t segments; /* of the table */
	uint32_t flags;    /* enum as_rt_module_flags */
};

enum as_rt_module_flags {
	AS_RT_MODULE_SELF = 1, /* a copy of the runtime's image */
};

#define AS_RT_MODULES_MAX   3072
#define AS_RT_CONTROL_BYTES 0x49000u

/*
 * Sampling. Blocks are chosen as if marks lay on the bytes of all allocations, at random, one in
 * about sample_bytes: a block is told when there is a mark on it, which is so with the probability
 * 1 - exp(-size / sample_bytes), where a block of less than AS_RT_SAMPLE_LEAST bytes counts as that many:
 * it takes them in most allocators, and tiny ones would be too rare to be counted. A realloc is the
 * end of one block and the beginning of another, which is chosen anew.
 *
 * Live blocks that are told are in a table of the target's, by their address: AS_RT_SAMPLED_BUCKETS times
 * two keys of 32 bits, 0: empty. A free of a block that is not there is not told. Where a bucket has
 * no room its second key becomes AS_RT_SAMPLED_ALL for good: every free in it is told from then on,
 * and the recorder knows which ones are of blocks it was told of. The table is private memory that
 * survives fork: a child's blocks are its own.
 */
#define AS_RT_SAMPLED_BUCKETS 0x10000u
#define AS_RT_SAMPLED_BYTES   (AS_RT_SAMPLED_BUCKETS * 8u)
#define AS_RT_SAMPLED_ALL     0xffffffffu
#define AS_RT_SAMPLE_LEAST    32u

/*
 * Pairs. With AS_RT_SUM_PAIRS an allocation and the free of its block by the same thread mostly become no
 * records. Each ring has tables: blocks that are *pending* (given out, not told), and *sums* of pairs.
 *
 *	An allocation of less than AS_RT_PAIR_BYTES is kept pending in a set of four by its address, or,
 *	where that is full, in a second one. A pending block that another needs the place of, or that
 *	is given to realloc, is told *late*: as an ALLOC with its own serial, and `after`. A free by the
 *	same thread that finds its block pending adds to a sum, by what a key holds (below), and is no
 *	record. A sum that another needs the place of is told as SUM. What a signal handler does while
 *	its thread changes the tables is told at once, as ever.
 *
 *	A free by another thread is told at once, and may be read before its block is told. Which of
 *	several blocks at the address it ends is known by `after`, a stamp that was in control.freed when
 *	the block was given out: it came before all ends with a greater stamp, and behind all others.
 *	Where another stamp is there when its own thread frees it, that may be the free of another block
 *	at the same address: then both are told.
 *
 *	Peaks. `grown` is how much the thread's blocks, as far as it knows, have grown since its first; a
 *	told block stays in its place as long as nobody needs it, so that its size is known when it is
 *	freed. Before grown exceeds `ceiling` all pending blocks are told, so that a new maximum is seen
 *	as it is; ceiling is the most it was then, or what the recorder grants. So with one thread peaks
 *	are exact. With several a maximum may lack what the other threads had pending: each at most
 *	AS_RT_PENDING_BYTES, and no more than `most_bytes`.
 *
 * Who reads the tables: sums grow only, and key and word of one are each written by one store (key 0 before
 * another's word), so that the recorder takes what they have grown by at any time; as long as `resets`
 * is the number of RESETs it has read, it knows the nodes. Pending blocks are read where the thread does
 * nothing (`seq` is even and stays), or is gone, or stands still; a thread that runs tells them all
 * when `flush_asked` is another number than `flush_done`, at its next event after the clock was set, and
 * what it has told up to `flush_stamp` is its heap as it was then.
 */
#define AS_RT_FREED         2048u
#define AS_RT_PAIR_BYTES    32768u
#define AS_RT_PENDING_BYTES (1u << 20)
#define AS_RT_WAYS          4u
#define AS_RT_PENDING_SETS  1024u
#define AS_RT_SUM_SETS      2048u
#define AS_RT_RECENT        1024u
#define AS_RT_PAIR_HOOKS    4096u /* ids that fit a key */

static inline uint32_t as_rt_freed_place(uint64_t ptr)
{
	return (uint32_t)(ptr >> 4 ^ ptr >> 13) & (AS_RT_FREED - 1);
}

struct as_rt_pending_set {
	uint64_t block[AS_RT_WAYS]; /* address << 16 | AS_RT_TOLD | size; 0: none */
	uint64_t what[AS_RT_WAYS];  /* node | hook << AS_RT_WHAT_HOOK | serial << 32 */
	uint64_t born_us[AS_RT_WAYS];
	uint64_t after[AS_RT_WAYS];
};
#define AS_RT_TOLD         0x8000u
#define AS_RT_WHAT_HOOK    20
#define AS_RT_WHAT_NODE(w) ((uint32_t)(w)&0xfffffu)
#define AS_RT_WHAT_ID(w)   ((uint32_t)(w) >> AS_RT_WHAT_HOOK)

struct as_rt_sum_set {
	uint64_t key[AS_RT_WAYS];  /* 0: none */
	uint64_t word[AS_RT_WAYS]; /* pairs << AS_RT_SUM_SHIFT | bytes */
};
#define AS_RT_SUM_SHIFT 40

/* Bits of a key, from the lowest: node 20, hook of the allocation 12 (as in `what`), hook of the free 12;
 * the numbers of bits of the size 5, of the age in allocations of the thread 6, of the time in us 6. */
#define AS_RT_SUM_SET      (1ull << 63)
#define AS_RT_SUM_NODE(k)  AS_RT_WHAT_NODE(k)
#define AS_RT_SUM_ALLOC(k) AS_RT_WHAT_ID(k)
#define AS_RT_SUM_FREE(k)  ((uint32_t)((k) >> 32) & 0xfffu)
#define AS_RT_SUM_SIZE(k)  ((uint32_t)((k) >> 44) & 31u)
#define AS_RT_SUM_AGE(k)   ((uint32_t)((k) >> 49) & 63u)
#define AS_RT_SUM_TIME(k)  ((uint32_t)((k) >> 55) & 63u)
#define AS_RT_SUM_KEY_BITS (AS_RT_SUM_SET | ((1ull << 61) - 1))

/* 4096 bytes and the tables. Zeroed by the recorder when their thread is gone. */
struct as_rt_tables {
	uint64_t seq; /* odd: being changed */
	int64_t grown, ceiling;
	uint64_t pending_bytes;
	uint32_t pending_blocks;
	uint32_t nrecent;    /* more than AS_RT_RECENT: all sets are looked at */
	uint32_t flush_done; /* equals ring.flush_asked: all that was pending then is told */
	uint32_t victim;
	uint64_t now_us;
	uint64_t resets;     /* RESET records so far of this owner */
	uint64_t most_bytes; /* of pending_bytes */
	uint64_t nsums;
	uint64_t flush_stamp; /* of the last time that all was told because it was asked for */
	uint64_t reserved[5];
	uint16_t recent
		[AS_RT_RECENT]; /* set << 2 | way, of blocks that came since all were told */
	uint8_t spilled
		[AS_RT_PENDING_SETS]; /* so many blocks of the set are in their second one */
	uint8_t reserved2[896];
	struct as_rt_pending_set pending[AS_RT_PENDING_SETS];
	struct as_rt_sum_set sum[AS_RT_SUM_SETS];
};
#define AS_RT_TABLES_BYTES 0x41000u
_Static_assert(sizeof(struct as_rt_tables) == AS_RT_TABLES_BYTES, "tables");

#define AS_RT_MARK_BYTES 48u /* of a mark's name; what is longer is cut */

struct as_rt_control {
	/* set by the tool before the first call */
	uint64_t magic;
	uint32_t version;
	uint32_t pid; /* of the process the runtime was put into */
	uint32_t full_wait_us;
	uint32_t reserved0;
	/* end of the first thread's stack, from /proc/PID/maps; 0: not known */
	uint64_t stack_end_avma;
	uint64_t sample_bytes; /* 0: every block is told; to 2^40 */
	/* Where a thread's id (32 bits) is, from its thread pointer; 0: not known. For NO_SYSCALLS. */
	uint32_t tid_off;
	uint32_t reserved0b;
	/* The last stamp that was counted; the target starts it at its time stamp counter when it sets
	 * NO_SYSCALLS. */
	uint64_t stamps;
	uint64_t reserved1;

	/* written by the recorder at any time: read at each event */
	uint64_t clock_ns; /* CLOCK_MONOTONIC, about each 100 us */
	uint32_t flags;    /* enum as_rt_flags */
	/*
	 * module_set[modules_seq & 1] holds now. To change it, fill the other one, then add 1.
	 * Each change starts all threads' nodes anew.
	 */
	uint32_t modules_seq;
	uint32_t heartbeat;    /* changes while the recorder drains */
	uint32_t modules_done; /* SYNC records up to this serial were acted upon; futex */
	/* Not 0: all rings are of threads that run, no thread waits for one. 0 again before one is free. */
	uint32_t rings_full;
	uint32_t reserved2[9];

	/* written by the target, atomically */
	uint64_t lost_no_context; /* events of threads that found no free context */
	uint32_t sync_serial;     /* SYNC records so far; futex: the recorder may wait for it */
	uint32_t sync_timeouts;   /* waits that ended unanswered */
	uint64_t full_waits;      /* waits because of a full ring */
	uint32_t rings_top;       /* no ring from here on was ever claimed */
	uint32_t ring_wants; /* how often a thread found all rings taken, and waits for one */
	uint32_t wants_heartbeat; /* heartbeat when such a wait ended because it stood still */
	uint32_t reserved3[7];

	/*
	 * A mark asked for by another process (as_hook_mark): it writes name and pid, then another
	 * number into mark_asked. The recorder makes the mark and stores that number in mark_made.
	 */
	uint32_t mark_asked, mark_made;
	uint32_t mark_pid;   /* whose; 0: all processes' */
	uint32_t mark_bytes; /* of the name */
	char mark_name[AS_RT_MARK_BYTES];

	/*
	 * Pairs: by a hash of the address (as_rt_freed_place), the stamp of the last end that was told of a
	 * block whose beginning its thread does not know.
	 */
	uint64_t freed[AS_RT_FREED];

	/*
	 * Who has context and ring i: a thread id, 0: free. The target claims by compare and swap
	 * from 0; the recorder stores 0 when the thread is gone and its ring is read to the end.
	 */
	uint32_t owner[AS_RT_CONTEXTS];

	/* recorder */
	struct as_rt_module_set {
		uint32_t count;
		uint32_t reserved[15];
		struct as_rt_module module[AS_RT_MODULES_MAX];
	} module_set[2];
};
_Static_assert(sizeof(struct as_rt_control) <= AS_RT_CONTROL_BYTES, "control page");

/* ---- rings ---- */

#define AS_RT_TABLES_OFF      4096u
#define AS_RT_RING_HEAD_BYTES (AS_RT_TABLES_OFF + AS_RT_TABLES_BYTES)
/* Never used, so that a signal handler that comes between test and reservation finds room. */
#define AS_RT_RING_SLACK      4096u

enum as_rt_record_kind {
	AS_RT_REC_NONE = 0,
	AS_RT_REC_ALLOC = 1,
	AS_RT_REC_FREE = 2,
	AS_RT_REC_REALLOC_BEGIN = 3,
	AS_RT_REC_REALLOC = 4,
	AS_RT_REC_MMAP = 5,
	AS_RT_REC_MUNMAP = 6,
	AS_RT_REC_MREMAP = 7,
	AS_RT_REC_NODE = 8,
	AS_RT_REC_RESET = 9,
	AS_RT_REC_TIME = 10,
	AS_RT_REC_THREAD = 11,
	AS_RT_REC_SYNC = 12,
	AS_RT_REC_MARK = 13,
	AS_RT_REC_SUM = 14,
	AS_RT_REC_KINDS = 16,
};

/*
 * A ring. Byte p of the thread's records is data[p & (ring_bytes - 1)]. The thread reserves
 * [pos, pos + n) when pos + n - consumed <= ring_bytes - AS_RT_RING_SLACK, by one add to pos that
 * signal handlers cannot split, then writes the record and its head last. What does not fit is
 * not reserved but counted in lost[]: received + lost is what happened, exactly. After a loss the
 * thread writes RESET before it names a node again.
 *
 * Reader: at p < pos, load the head (acquire). It is complete when head.tag == (uint32_t)(p >> 4)
 * and head.kind is not 0 (memory never written would do for p == 0). Otherwise it is being
 * written, or its writer died or left by longjmp in between (then it never comes: step 16 bytes at
 * a time to the next head whose tag fits; at most one record is lost).
 * pos and consumed only grow; a new owner of the ring goes on where the last one ended.
 */
#define AS_RT_TIMED_MAX (1u << 18)
struct as_rt_ring {
	uint64_t pos; /* target */
	uint64_t fs;  /* target: the owner's thread pointer */
	uint32_t tid, pid;
	uint64_t reserved1[5];
	uint64_t consumed; /* recorder */
	/* recorder, with AS_RT_SUM_PAIRS: what `ceiling` may be raised to; asks that all be told */
	int64_t grant;
	uint32_t flush_asked, reserved3;
	uint64_t reserved2[5];
	uint64_t lost[AS_RT_REC_KINDS]; /* target: records dropped, by kind; only grows */
	uint64_t lost_bytes;            /* target: sizes of the ALLOC and REALLOC among them */
	/* target, only grow: one call of 128, by chance, is timed, the runtime's part of it, in ticks of
	 * the time stamp counter; and how many were. What is above AS_RT_TIMED_MAX was interrupted. */
	uint64_t timed_ticks, timed_calls;
	/* At AS_RT_TABLES_OFF the tables; data follow. */
};
_Static_assert(sizeof(struct as_rt_ring) <= AS_RT_TABLES_OFF, "ring head");

/* First 8 bytes of each record. Records begin at multiples of 16. The 8 bytes behind the head are the
 * stamp, but of NODE, RESET and SUM, which have none and may be read before what others tell. */
struct as_rt_head {
	uint8_t kind;  /* enum as_rt_record_kind */
	uint8_t units; /* length in 16 bytes, at most AS_RT_UNITS_MAX */
	uint16_t hook; /* as_rt_hook.id; 0 where no function is named */
	uint32_t tag;  /* position of the record, >> 4 */
};
#define AS_RT_UNITS_MAX 5u

/*
 * Nodes: one frame each, as a chain to the outermost. Known by id within one ring since its last
 * RESET or THREAD. id 0: no stack. Ids with AS_RT_NODE_ONCE belong to the next event that names
 * them only, and may be told before their parents; others are told after them.
 */
#define AS_RT_NODE_ONCE 0x80000000u

enum as_rt_node_flags {
	AS_RT_NODE_EXACT = 1, /* avma is a pc (interrupted by a signal), not a return address */
	AS_RT_NODE_BY_FP = 2, /* its caller was found by the frame pointer: to be checked */
	/* Frames are missing between this one and its parent. */
	AS_RT_NODE_TRUNCATED = 4,
};

/*
 * serial: how many allocations (reallocs included) the thread has made, this one included, modulo 2^32.
 */
struct as_rt_rec_alloc {
	struct as_rt_head head;
	uint64_t stamp;
	uint64_t ptr; /* 0: failed */
	uint64_t size_bytes;
	uint32_t node, serial;
	uint64_t after; /* 0: it is told at once. Else late: see "Pairs"; 1: behind none */
};
/* FREE of a null pointer is not recorded. */
struct as_rt_rec_free {
	struct as_rt_head head;
	uint64_t stamp;
	uint64_t ptr;
	uint32_t node, serial; /* node: with AS_RT_FREE_STACKS */
};
/* The block at ptr is about to be given to realloc; a REALLOC with old == ptr follows. */
struct as_rt_rec_realloc_begin {
	struct as_rt_head head;
	uint64_t stamp;
	uint64_t ptr;
	uint64_t reserved;
};
/*
 * old 0: an allocation. new 0 with size_bytes > 0: failed, the old block stays; with 0: freed.
 * Of xallocx: new == old, size_bytes what it has then (no record when it could not be resized).
 * With sampling: told when the old block may be one that was told (REALLOC_BEGIN stands before), when
 * the new one is, and when it failed.
 */
enum as_rt_realloc_flags {
	AS_RT_REALLOC_UNSAMPLED = 1, /* the new block is not told: it will have no end */
};
struct as_rt_rec_realloc {
	struct as_rt_head head;
	uint64_t stamp;
	uint64_t old, new_ptr;
	uint64_t size_bytes;
	uint32_t node, serial;
	uint32_t flags, reserved0; /* flags: enum as_rt_realloc_flags */
	uint64_t reserved1;
};
struct as_rt_rec_mmap {
	struct as_rt_head head;
	uint64_t stamp;
	uint64_t addr, length_bytes; /* successful calls only */
	uint32_t node, prot, flags;
	int32_t fd;
	uint64_t off, reserved;
};
/* Before the call; a second record with failed = 1 takes it back. */
struct as_rt_rec_munmap {
	struct as_rt_head head;
	uint64_t stamp;
	uint64_t addr, length_bytes;
	uint32_t node, failed;
	uint64_t reserved;
};
struct as_rt_rec_mremap {
	struct as_rt_head head;
	uint64_t stamp;
	uint64_t old, old_bytes, new_addr, new_bytes;
	uint32_t node, flags;
	uint64_t reserved;
};
struct as_rt_rec_node {
	struct as_rt_head head;
	uint32_t id, parent; /* parent 0: the outermost frame that was found */
	uint64_t avma;       /* return address, see AS_RT_NODE_EXACT */
	uint32_t flags;      /* enum as_rt_node_flags */
	uint32_t end;        /* enum as_stack_end, where parent is 0 or TRUNCATED is set */
};
struct as_rt_rec_reset {
	struct as_rt_head head;
	uint64_t reserved;
};
struct as_rt_rec_time {
	struct as_rt_head head;
	uint64_t stamp;
	uint64_t clock_ns; /* as control said when the thread's next event came */
	uint32_t serial;
	/* of the tables; told: grown - pending_bytes */
	uint32_t pending_blocks;
	int64_t told;
	uint64_t pending_bytes;
};
/* First record of each owner of a ring. Implies RESET. */
struct as_rt_rec_thread {
	struct as_rt_head head;
	uint64_t stamp;
	uint32_t tid, pid;
	uint64_t fs;
	uint64_t clock_ns, reserved;
};
/* The thread waits until control.modules_done has reached serial, at most 200 ms. */
struct as_rt_rec_sync {
	struct as_rt_head head;
	uint64_t stamp;
	uint32_t kind, serial; /* AS_RT_MODULES, AS_RT_EXEC, AS_RT_EXIT_BEGINS, AS_RT_EXIT */
	uint32_t tid, pid; /* of the caller, which in a vfork child is not the ring's owner */
	uint64_t clock_ns;
	/* EXEC: the function's first two arguments, and which function it is by its hook. EXIT_BEGINS,
	 * EXIT: the status, and where the caller's part of the stack begins */
	uint64_t arg[2];
	uint64_t reserved;
};
struct as_rt_rec_sum {
	struct as_rt_head head;
	uint64_t key, word;
	uint64_t place; /* set << 2 | way */
};
struct as_rt_rec_mark {
	struct as_rt_head head;
	uint64_t stamp;
	uint64_t bytes;              /* of the name, at most AS_RT_MARK_BYTES */
	char name[AS_RT_MARK_BYTES]; /* not NUL-terminated */
	uint64_t reserved;
};

_Static_assert(sizeof(struct as_rt_head) == 8, "record head");
_Static_assert(sizeof(struct as_rt_rec_alloc) == 48, "record");
_Static_assert(sizeof(struct as_rt_rec_free) == 32, "record");
_Static_assert(sizeof(struct as_rt_rec_realloc_begin) == 32, "record");
_Static_assert(sizeof(struct as_rt_rec_realloc) == 64, "record");
_Static_assert(sizeof(struct as_rt_rec_mmap) == 64, "record");
_Static_assert(sizeof(struct as_rt_rec_munmap) == 48, "record");
_Static_assert(sizeof(struct as_rt_rec_mremap) == 64, "record");
_Static_assert(sizeof(struct as_rt_rec_node) == 32, "record");
_Static_assert(sizeof(struct as_rt_rec_time) == 48, "record");
_Static_assert(sizeof(struct as_rt_rec_sum) == 32, "record");
_Static_assert(sizeof(struct as_rt_rec_thread) == 48, "record");
_Static_assert(sizeof(struct as_rt_rec_sync) == 64, "record");
_Static_assert(sizeof(struct as_rt_rec_mark) == 80, "record");

#endif

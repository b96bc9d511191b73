/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The ring engine's insides: engine_ring.c (life and records), engine_ring_events.c (event
 * descriptors, jitter, copy sizes) and engine_ring_unwind.c (a sample's frames). */
#ifndef AS_COLLECT_ENGINE_RING_PRIV_H
#define AS_COLLECT_ENGINE_RING_PRIV_H

#include "base/map.h"
#include "base/mem.h"
#include "collect/collect.h"
#include "collect/perf_event.h"

#define AS_RING_COPY_USUAL 8192u
#define AS_RING_COPY_START AS_RING_COPY_MAX /* until it is known what the program needs */
/* a record's size is 16 bits; the rest of a sample needs room */
#define AS_RING_COPY_MAX   65520u

#define AS_RING_COPY_SIZES 4
static const uint32_t as_ring_copy_sizes[AS_RING_COPY_SIZES] = {AS_RING_COPY_USUAL, 16384,
								32768, AS_RING_COPY_MAX};

/* One sampling event: a thread (and what it clones later) on one CPU. */
struct as_ring_sampler {
	int fd;
	pid_t tid;
	uint32_t cpu_index;
	uint64_t id; /* of the event itself; clones have stream ids of their own */
	uint64_t period_ns, prev_ns; /* now; before set_ns */
	uint64_t set_ns;             /* when period_ns was set */
	uint32_t since;              /* samples since then */
	uint32_t reroll_at;          /* samples until the next change of period */
	uint64_t last_ns, gap_ns;    /* its last sample; usual distance of two, wall time */
	uint64_t carry_ns; /* CPU time cut off by the change, owed to the next sample */
};

/* The outer part of a deep stack as read last, to be used again while it stands (x86-64).
 * callers[i] is the recorder's token for frames[i] and all it was called by. */
struct as_ring_memo {
	struct as_uframe *frames; /* ascending sp */
	uint32_t *callers;
	size_t n;
	uint64_t kept_ns;
	enum as_stack_end end;
};

struct as_ring_thread {
	pid_t pid, tid;
	uint64_t cpus_seen;  /* bit cpu % 64: had a sample there */
	uint32_t copy_bytes; /* 0: as its creator's */
	/* Recent samples by the smallest copy that serves them (the last: or nearly), and those whose copy
	 * ended early, at a page never touched or on an alternate stack. */
	uint32_t n, by_size[AS_RING_COPY_SIZES], holes;
	bool keep_small; /* larger copies did not help */
	struct as_ring_memo memo;
};

struct as_ring_proc {
	pid_t pid;
	uint32_t live_threads;
	uint64_t reread_ns;    /* last self-healing read of its maps */
	uint64_t exec_ns;      /* its last exec */
	bool no_memory_access; /* /proc/PID/mem is refused */
};

struct as_ring_cpu {
	int cpu;
	struct as_perf_ring ring;
	AS_VEC(int) trackers;    /* the first one owns the ring */
	struct as_rec_tick tick; /* of this drain */
};

struct as_ring {
	struct as_engine_env env;
	struct as_perf_event_choice event;
	uint64_t period_ns, rate_hz;
	uint32_t copy_bytes, copy_max; /* for threads without an own wish */
	bool copy_fixed;

	struct as_ring_cpu *cpus;
	size_t ncpus;
	int epfd;
	AS_VEC(struct as_ring_sampler) samplers;
	struct as_map64 sampler_by_id; /* id -> index */
	uint64_t rng;
	bool started, forked; /* forked: in this drain */
	int old_nice;

	AS_VEC(struct as_ring_thread) threads; /* slots; tid 0: free */
	AS_VEC(uint32_t) free_threads;
	struct as_map64 thread_by_tid;
	struct as_map64 proc_by_pid; /* pid -> index */
	AS_VEC(struct as_ring_proc) procs;
	AS_VEC(uint32_t) free_procs;

	uint64_t sweep_after_ns, last_sample_ns;
	unsigned sweeps;
	uint64_t lost_total;
	uint64_t lost;   /* since the last look at sizes */
	uint32_t shorts; /* of this drain */
	uint64_t sampled, repaired, damaged;

	struct as_map64 cfi_loaded;   /* module id: its full CFI was asked for */
	struct as_unwinder *unwinder; /* of the thread that drains the rings */
	struct as_uframe *uframes;
	struct as_raw_frame *raw;
	size_t max_frames;
	/* return addresses that follow a call, as seen (hash of pid and generation) */
	uint64_t code_ok[1024];
	uint8_t *window; /* live memory around the last read */
};

/* engine_ring_events.c */
int as_ring_open_cpus(struct as_ring *e, struct as_error *err);
/* Trackers and samplers of the target's threads. */
int as_ring_open_launched(struct as_ring *e, pid_t pid, struct as_error *err);
int as_ring_open_attached(struct as_ring *e, pid_t pid, struct as_error *err);
int as_ring_enable(struct as_ring *e);
void as_ring_disable(struct as_ring *e);
void as_ring_close_events(struct as_ring *e);
uint64_t as_ring_untold_loss(const struct as_ring *e);
/* CPU time (or cycles) a sample stands for. */
uint64_t as_ring_weight(struct as_ring *e, struct as_ring_thread *t,
			const struct as_perf_rec *rec);
void as_ring_jitter(struct as_ring *e, uint64_t now_ns);
/* Gives threads copies of the size they need, by reopening their events. */
void as_ring_resize(struct as_ring *e, uint64_t now_ns);
uint64_t as_ring_random(struct as_ring *e);

/* engine_ring.c */
struct as_ring_thread *as_ring_thread(struct as_ring *e, pid_t pid, pid_t tid);
struct as_ring_proc *as_ring_proc(struct as_ring *e, pid_t pid);

/* engine_ring_unwind.c: hands one sample to the recorder. weight as as_ring_weight. */
void as_ring_sample(struct as_ring *e, struct as_ring_thread *t, const struct as_perf_rec *rec,
		    uint64_t weight);

#endif

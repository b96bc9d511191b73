/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel engine's parts. One struct as_kernel per recording, one thread.
 *
 *	engine_kernel.c		life cycle, the drain, counts
 *	engine_kernel_load.c	BPF object: build choice, load, attach, map descriptors
 *	engine_kernel_maps.c	tables into chunks, mappings into the pool, publication per process
 *	engine_kernel_side.c	mmap, comm, fork and exit events of the whole system, in time order
 *	engine_kernel_timer.c	one sampling event per CPU and its jittered period
 *	engine_kernel_sample.c	records of the ring buffer -> recorder
 *	engine_kernel_repair.c	stacks the kernel could not finish
 */
#ifndef AS_COLLECT_ENGINE_KERNEL_PRIV_H
#define AS_COLLECT_ENGINE_KERNEL_PRIV_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sched.h>
#include "abi/bpf_sample.h"
#include "base/map.h"
#include "base/mem.h"
#include "collect/collect.h"

/* ---- load ---- */

struct as_kbpf {
	struct bpf_object *obj;
	struct bpf_link *link[4];
	size_t nlinks;
	bool tail; /* the build for kernels before 5.17 */
	int ncpus; /* possible CPUs */
	int fd_chunks, fd_processes, fd_files, fd_sample; /* owned by obj */
	struct as_bpf_mapping *pool;                      /* mapped */
	struct as_bpf_counts *counts;                     /* mapped, by CPU */
	struct ring_buffer *ring;
	int stats_fd; /* keeps run time statistics on; -1: none */
};
struct as_kbpf_options {
	bool kernel_stacks, follow, weight_by_count;
	uint32_t max_frames;
	pid_t leader;
};
int as_kbpf_open(struct as_kbpf *b, const struct as_kbpf_options *o, struct as_error *err);
int as_kbpf_attach(struct as_kbpf *b, struct as_error *err); /* fork, exec, free */
uint64_t as_kbpf_run_time_ns(const struct as_kbpf *b);
void as_kbpf_close(struct as_kbpf *b);

/* ---- tables and mappings in the kernel ---- */

struct as_krange {            /* of the pool; shared by a process and its forks */
	uint32_t base, order; /* 1 << order mappings */
	uint32_t refs;
};
struct as_kproc {
	pid_t pid, parent;
	struct as_krange *range; /* NULL: nothing published */
	uint32_t n, generation;
	bool dirty;  /* the image's map differs from what is published */
	bool forked; /* the kernel copied the parent's value; not looked at yet */
	bool leader_gone;
	bool replaced;     /* it has ended, and a process that is not followed has its number */
	uint64_t since_ns; /* its fork; 0: it was there before */
	uint64_t published_ns, healed_ns, heal_wait_ns;
};
struct as_ksegment {
	uint32_t first_page, npages, table;
	uint16_t chunk;
};
struct as_kmodule {
	bool loaded;
	bool waiting; /* large: its table comes with the next publication */
	struct as_ksegment *seg;
	uint32_t nseg;
};
struct as_kfree_range {
	struct as_krange *range;
	uint64_t since_ns;
};
struct as_kmaps {
	struct as_kbpf *bpf;
	struct as_image *im;
	struct as_map64 procs;          /* pid -> struct as_kproc * */
	AS_VEC(struct as_kproc *) todo; /* dirty or forked */
	AS_VEC(struct as_kmodule) mods; /* by module id */
	AS_VEC(uint32_t) waiting;       /* modules */
	bool running;                   /* samples are being taken */
	AS_VEC(struct as_kchunk {
		uint32_t *w; /* mapped */
		uint32_t used;
		int fd;
	})
	chunks;
	AS_VEC(uint32_t) free_base[18];        /* by order */
	AS_VEC(struct as_kfree_range) resting; /* freed, not yet safe to write */
	AS_VEC(struct as_bpf_mapping) scratch;
	uint32_t pool_used, generation;
	uint64_t publications, full;
};
void as_kmaps_init(struct as_kmaps *k, struct as_kbpf *bpf, struct as_image *im);
void as_kmaps_clear(struct as_kmaps *k);
struct as_kproc *as_kmaps_find(const struct as_kmaps *k, pid_t pid);
/* Follows pid from now on; flags: AS_BPF_PROCESS_*. */
int as_kmaps_follow(struct as_kmaps *k, pid_t pid, uint32_t flags, struct as_error *err);
/* A child the kernel follows by itself. */
struct as_kproc *as_kmaps_forked(struct as_kmaps *k, pid_t parent, pid_t child);
void as_kmaps_forget(struct as_kmaps *k, pid_t pid);
/* publish at the next opportunity */
void as_kmaps_touch(struct as_kmaps *k, struct as_kproc *p);
void as_kmaps_load_module(struct as_kmaps *k, uint32_t id);
/* Publishes what is due. Called when all events that have arrived were handled. */
void as_kmaps_publish(struct as_kmaps *k, uint64_t now_ns);

/* ---- side events ---- */

enum as_kevent_type {
	AS_KEVENT_MMAP,
	AS_KEVENT_COMM,
	AS_KEVENT_EXEC,
	AS_KEVENT_FORK,
	AS_KEVENT_EXIT
};
struct as_kevent {
	uint64_t time_ns, seq;
	enum as_kevent_type type;
	pid_t pid, tid, ppid;
	uint64_t start_avma, size_bytes, off, ino;
	uint32_t maj, min;
	const char *text; /* path or name, in the arena */
};
struct as_kside_ring {
	int fd;
	uint8_t *map;
	size_t map_bytes;
};
struct as_kside {
	struct as_kside_ring *ring;
	size_t nrings;
	int epoll_fd;
	struct as_arena arena;
	AS_VEC(struct as_kevent) event;
	uint64_t lost; /* records, since the last drain */
};
int as_kside_open(struct as_kside *s, struct as_error *err);
int as_kside_enable(struct as_kside *s, struct as_error *err);
/* Collects what has arrived, sorted by time, into s->event; valid until the next call. */
void as_kside_drain(struct as_kside *s);
void as_kside_close(struct as_kside *s);

/* ---- sampling events ---- */

struct as_ktimer {
	int fd;
	uint32_t cpu;
	bool slow;
	uint64_t redrawn_ns;
	uint64_t active_ns; /* last sample of a followed process */
};
struct as_ktimers {
	struct as_ktimer *cpu;
	size_t n;
	uint32_t *of_cpu; /* CPU number -> index, UINT32_MAX: none */
	bool cycles, jitter;
	uint64_t period;    /* what the user asked for, in ns or cycles */
	uint64_t mean;      /* of the periods drawn, see engine_kernel_timer.c */
	uint64_t redraw_ns; /* when to draw again */
	uint64_t rng;
	uint64_t interval_ns; /* 1 / rate */
	cpu_set_t *allowed;   /* of this thread, before we touched it */
	size_t allowed_bytes, max_cpus;
	uint32_t off_cpu; /* this thread is kept off it; UINT32_MAX: none */
	bool alone;       /* it can run on one CPU only */
};
bool as_ktimers_have_cycles(void);
int as_ktimers_open(struct as_ktimers *t, const struct as_kbpf *b, double rate_hz, bool jitter,
		    struct as_error *err);
int as_ktimers_start(struct as_ktimers *t, struct as_kbpf *b, struct as_error *err);
void as_ktimers_stop(struct as_ktimers *t);
void as_ktimers_seen(struct as_ktimers *t, uint32_t cpu, uint64_t now_ns);
void as_ktimers_redraw(struct as_ktimers *t, uint64_t now_ns);
void as_ktimers_close(struct as_ktimers *t);
/* CPUs that can run something now, from /sys; at least one. Caller frees. */
uint32_t *as_kcpus_online(size_t *ret_n);

/* ---- repair ---- */

struct as_krepair {
	struct as_image *im;
	struct as_recorder *recorder;
	uint64_t budget_ns, refilled_ns; /* what may still be spent */
	struct as_map64 memo;            /* tid -> struct as_kmemo * */
	struct as_unwinder *unwinder;
	struct as_uframe *frame; /* max of them */
	size_t max;
	struct as_raw_frame *out; /* the result handed out, until the next try */
	size_t out_cap;
	uint8_t *block; /* of target memory */
	uint64_t block_avma;
	pid_t block_pid;
	struct {
		uint64_t key;
		bool after_call;
	} call[1024]; /* call sites looked at before */
	uint64_t tried, done, skipped;
};
struct as_kstack { /* a sample's user part while it is completed */
	pid_t pid, tid;
	const uint64_t *reg;  /* AS_BPF_STATE_WORDS words */
	const uint64_t *copy; /* ncopy words of the stack, from the sampled rsp on */
	size_t ncopy;
	enum as_stack_end end;
	bool repaired;
	bool cut; /* the last frames were taken off: the registers at the stop are not its */
	struct as_raw_frame *frame; /* user frames, leaf first */
	size_t n;
	uint32_t callers; /* of the last frame, as in struct as_raw_sample */
};
void as_krepair_init(struct as_krepair *r, const struct as_engine_env *env);
/* Continues s in target memory as it is now; replaces s->frame by a longer list when that worked. */
bool as_krepair_try(struct as_krepair *r, struct as_kstack *s, uint64_t now_ns);
/* How many of the frames stand: one found by a frame pointer (bit in by_fp) that is not behind
 * a call, or out of a function that keeps none, ends the stack before it. */
size_t as_krepair_check(struct as_krepair *r, pid_t pid, const struct as_raw_frame *frame,
			size_t n, uint64_t by_fp);
/* The table, made since perhaps, says that a thread begins with this frame. */
bool as_krepair_is_root(const struct as_krepair *r, const struct as_raw_frame *f);
void as_krepair_thread_gone(struct as_krepair *r, pid_t tid);
void as_krepair_clear(struct as_krepair *r);

/* ---- the engine ---- */

struct as_kexit {
	uint64_t time_ns;
	pid_t pid, tid;
};
struct as_ktick { /* counts at the last tick */
	uint64_t sent, lost, filtered, delivered, queue;
};
struct as_kernel {
	struct as_engine_env env;
	struct as_record_options options;
	struct as_kbpf bpf;
	struct as_kmaps maps;
	struct as_kside side;
	struct as_ktimers timers;
	struct as_krepair repair;
	AS_VEC(struct as_kexit) exits; /* reported after the samples */
	AS_VEC(struct as_raw_frame) frames;
	AS_VEC(struct as_raw_frame) user;
	AS_VEC(struct as_bpf_sample *) later; /* wait for the next side events */
	struct as_ktick *tick; /* by CPU; delivered and queue are written by the drain */
	uint64_t *delivered, *rejected; /* by CPU, totals */
	uint64_t tick_ns, now_ns;
	pid_t forking; /* its image is being copied: no change to publish */
	uint64_t samples, ends[AS_END_COUNT_], repaired;
	uint64_t cpu_ns; /* of everything followed; set by stop */
	bool stopped;
};
/* libbpf's callback: one record of the ring buffer. */
int as_kernel_sample(void *ctx, void *data, size_t size);
/* The samples that waited for side events. */
void as_kernel_deliver_later(struct as_kernel *k);
int as_kernel_probe(struct as_probe_result *ret);

#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) AND Apache-2.0 */
/*
 * Samples a set of processes and unwinds their stacks in the kernel.
 *
 *	on_sample	perf event of every CPU: drops what is not of a followed process, walks, sends
 *	on_fork		a child of a followed process is followed, with its parent's mappings
 *	on_exec		the old mappings are worthless at once
 *	on_free		the process is gone for good (its last samples come after sched_process_exit)
 *
 * Two objects are built from this file: AS_WALK_LOOP (kernel 5.17: bpf_loop, bpf_find_vma,
 * bpf_task_pt_regs) and AS_WALK_TAIL (5.10: chains of tail calls, FRAMES_PER_CALL frames each).
 * The files walk_loop.bpf.h and walk_tail.bpf.h hold what differs.
 *
 * Concurrency: a CPU's struct as_walk and counts are touched by on_sample on that CPU only; the
 * kernel does not run a perf event's program while another one runs on that CPU. Mappings are
 * read without locks: a range of the pool is immutable from its publication until the tool has
 * seen all events up to its replacement.
 */
#include "vmtypes.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "abi/bpf_sample.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define PF_KTHREAD  0x00200000
/* Idle CPUs fire every 6 mean periods at most (engine_kernel_timer.c), changes of period come between. */
#define MAX_PERIODS 12

struct as_walk_chunk {
	uint32_t w[AS_BPF_CHUNK_WORDS];
};
struct as_walk_pool {
	struct as_bpf_mapping m[AS_BPF_POOL_MAPPINGS];
};
struct as_walk;

/* set before loading */
const volatile struct as_bpf_config cfg = {.max_frames = AS_BPF_MAX_USER, .thread_size = 16384};

struct chunk_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__uint(value_size, AS_BPF_CHUNK_WORDS * 4);
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, AS_BPF_MAX_CHUNKS);
	__type(key, uint32_t);
	__array(values, struct chunk_map);
} chunks SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct as_walk_pool);
} pool SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, uint32_t);
	__type(value, struct as_bpf_process);
} processes SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct as_bpf_file_key);
	__type(value, struct as_bpf_file);
} files SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, uint32_t);
	__type(value, struct as_bpf_fresh);
} fresh SEC(".maps");
/* When the process that has a number now was born: numbers are used again before the kernel frees
 * their last owner. The process that recording began with has no entry. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, uint32_t);
	__type(value, uint64_t);
} born SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22); /* set by the loader */
} samples SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* CPUs, set by the loader */
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct as_bpf_counts);
} counts SEC(".maps");

static __always_inline const struct as_walk_chunk *as_walk_chunk(uint32_t chunk)
{
	uint32_t zero = 0;
	void *inner = bpf_map_lookup_elem(&chunks, &chunk);

	return inner ? bpf_map_lookup_elem(inner, &zero) : 0;
}
static __always_inline const struct as_walk_pool *as_walk_pool(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&pool, &zero);
}
static __always_inline int as_walk_read(void *to, uint32_t n, uint64_t avma)
{
	return (int)bpf_probe_read_user(to, n, (const void *)avma);
}
static int as_walk_vma(struct as_walk *w, uint64_t avma);

#include "walk.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* CPUs, set by the loader */
	__type(key, uint32_t);
	__type(value, struct as_walk);
} walks SEC(".maps");

/*
 * What the walk lacked (a mapping just made, registers) the tool will know when it reads the
 * sample, but the process may have ended by then: the stack goes with it. Returns its size.
 */
static __always_inline uint32_t copy_stack(struct as_walk *w)
{
	uint64_t from = w->reg[7];
	uint32_t at = w->rec.head.words;

	for (int i = 0; i < AS_BPF_COPY_STEPS; i++) {
		uint32_t n = AS_BPF_COPY_STEP - (from & (AS_BPF_COPY_STEP - 1));

		if (at >= AS_BPF_WORDS ||
		    as_walk_read(&w->rec.word[at & (AS_BPF_WORDS - 1)], n, from))
			break;
		from += n;
		at += n / 8;
	}
	w->rec.head.words = (uint16_t)at;
	w->rec.head.flags |= AS_BPF_SAMPLE_COPY;
	return (uint32_t)(from - w->reg[7]);
}

static __always_inline bool needs_copy(const struct as_walk *w)
{
	return (w->end == AS_END_NOPROC || w->end == AS_END_NOMAP || w->end == AS_END_EXPR) &&
	       !(w->reg[7] & 7) &&
	       bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) < cfg.copy_below;
}

static __always_inline int send(struct as_walk *w, struct as_bpf_counts *k)
{
	uint32_t size = as_walk_finish(w);

	if (needs_copy(w))
		size += copy_stack(w);
	if (size > sizeof(w->rec))
		size = sizeof(w->rec);
	k->frames += w->n;
	k->cache_hits += w->hits;
	k->ends[w->end & 15]++;
	if (bpf_ringbuf_output(&samples, &w->rec, size, BPF_RB_NO_WAKEUP))
		k->lost++;
	else
		k->sent++;
	return 0;
}

#include AS_WALK_VARIANT

static __always_inline void store_regs(struct as_walk *w, const struct pt_regs *r)
{
	w->reg[0] = r->ax;
	w->reg[1] = r->dx;
	w->reg[2] = r->cx;
	w->reg[3] = r->bx;
	w->reg[4] = r->si;
	w->reg[5] = r->di;
	w->reg[6] = r->bp;
	w->reg[7] = r->sp;
	w->reg[8] = r->r8;
	w->reg[9] = r->r9;
	w->reg[10] = r->r10;
	w->reg[11] = r->r11;
	w->reg[12] = r->r12;
	w->reg[13] = r->r13;
	w->reg[14] = r->r14;
	w->reg[15] = r->r15;
	w->reg[16] = r->ip;
}

/*
 * The user stack is not there any more when the thread's memory is gone (exit), nor yet when
 * exec has replaced the memory but not the registers.
 */
static __always_inline bool stack_gone(uint32_t tgid)
{
	uint64_t mm = current_mm();
	const struct as_bpf_fresh *f = bpf_map_lookup_elem(&fresh, &tgid);

	return !mm || (f && f->mm != mm);
}

/* Registers the thread has, or will have again, in user mode. False: there are none. */
static __always_inline bool user_regs(struct as_walk *w, struct bpf_perf_event_data *ctx,
				      bool kernel)
{
	struct pt_regs r;

	if (!kernel) {
		store_regs(w, (const struct pt_regs *)&ctx->regs);
		return true;
	}
	if (!read_user_regs(&r))
		return false;
	store_regs(w, &r);
	return r.ip != 0;
}

/* Time, or counts of the event, since this CPU's event fired before. */
static __always_inline uint64_t take_weight(struct bpf_perf_event_data *ctx,
					    struct as_bpf_counts *k, uint64_t now)
{
	struct bpf_perf_event_value v = {0};

	if (cfg.weight_by_count) {
		if (bpf_perf_prog_read_value(ctx, &v, sizeof(v)))
			return ctx->sample_period;
		now = v.counter;
	}
	uint64_t last = k->last;
	k->last = now;
	uint64_t since = now - last;
	/* A virtual CPU that was not run for long, or a timer held up: nobody's time here. */
	return last && now > last && since < MAX_PERIODS * ctx->sample_period
		       ? since
		       : ctx->sample_period;
}

/* A stranger may have the number of a process that has ended but is not yet freed. */
static __always_inline bool is_the_one(uint32_t tgid, uint64_t start)
{
	uint64_t *its = bpf_map_lookup_elem(&born, &tgid);

	return !its || *its == start;
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	uint32_t cpu = bpf_get_smp_processor_id();
	struct as_bpf_counts *k = bpf_map_lookup_elem(&counts, &cpu);

	if (!k)
		return 0;
	uint64_t now = bpf_ktime_get_ns(), weight = take_weight(ctx, k, now);
	uint64_t id = bpf_get_current_pid_tgid();
	uint32_t tgid = (uint32_t)(id >> 32);
	k->taken++;
	struct as_bpf_process *p = tgid ? bpf_map_lookup_elem(&processes, &tgid) : 0;
	if (!p || p->flags & AS_BPF_PROCESS_HELD || !is_the_one(tgid, current_start())) {
		k->filtered++;
		return 0;
	}
	struct as_walk *w = bpf_map_lookup_elem(&walks, &cpu);
	if (!w)
		return 0;
	/* a two byte load, as cs & 3 would become, is not allowed here */
	bool kernel = (*(volatile unsigned long *)&ctx->regs.cs & 3) == 0;
	struct as_bpf_sample *s = &w->rec.head;
	s->time_ns = now;
	s->weight = weight;
	s->pid = tgid;
	s->tid = (uint32_t)id;
	s->cpu = cpu;
	s->flags = kernel ? AS_BPF_SAMPLE_KERNEL : 0;
	s->nkernel = 0;
	if (kernel && cfg.kernel_stacks) {
		long n = bpf_get_stack(ctx, w->rec.word, AS_BPF_MAX_KERNEL * 8, 0);
		if (n > 0)
			s->nkernel = (uint16_t)(n >> 3) & 127;
	}
	w->process = *p;
	s->generation = w->process.generation;
	bool ok = user_regs(w, ctx, kernel) && !(kernel && stack_gone(tgid));
	as_walk_begin(w);
	w->use_vma = 1;
	if (!ok) {
		as_walk_stop(w, AS_END_NOSTACK);
		return send(w, k);
	}
	return walk(ctx, w, k);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	uint32_t from = parent->tgid, to = child->tgid;

	if (from == to || !cfg.follow)
		return 0;
	struct as_bpf_process *p = bpf_map_lookup_elem(&processes, &from);
	if (!p || !is_the_one(from, parent->group_leader->start_time))
		return 0;
	struct as_bpf_process copy = *p;
	struct as_bpf_fresh f = {.mm = (uint64_t)child->mm};
	uint64_t start = child->start_time;
	bpf_map_update_elem(&born, &to, &start, BPF_ANY);
	bpf_map_update_elem(&fresh, &to, &f, BPF_ANY);
	bpf_map_update_elem(&processes, &to, &copy, BPF_ANY);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	uint32_t tgid = task->tgid;
	struct as_bpf_process empty = {0};

	/* the update fails for processes that are not followed */
	if (!is_the_one(tgid, task->group_leader->start_time) ||
	    bpf_map_update_elem(&processes, &tgid, &empty, BPF_EXIST))
		return 0;
	struct as_bpf_fresh f = {.mm = (uint64_t)task->mm};
	if (!bpf_map_update_elem(&fresh, &tgid, &f, BPF_ANY))
		first_mappings(task, tgid);
	return 0;
}

SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *task)
{
	uint32_t tgid = task->tgid, cpu = bpf_get_smp_processor_id();

	if (!is_the_one(tgid, task->group_leader->start_time))
		return 0;
	/* The scheduler's own account, exact once a thread is off its CPU for good. */
	if (tgid != cfg.leader && bpf_map_lookup_elem(&processes, &tgid)) {
		struct as_bpf_counts *k = bpf_map_lookup_elem(&counts, &cpu);
		if (k)
			k->ended_ns += task->se.sum_exec_runtime;
	}
	if ((uint32_t)task->pid == tgid) {
		bpf_map_delete_elem(&processes, &tgid);
		bpf_map_delete_elem(&fresh, &tgid);
		bpf_map_delete_elem(&born, &tgid);
	}
	return 0;
}

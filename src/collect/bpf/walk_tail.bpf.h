/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) AND Apache-2.0 */
/* The walk as a chain of tail calls, for kernels before 5.17. */
#ifndef AS_COLLECT_BPF_WALK_TAIL_BPF_H
#define AS_COLLECT_BPF_WALK_TAIL_BPF_H

#define FRAMES_PER_CALL 8

static __always_inline bool read_user_regs(struct pt_regs *ret)
{
	struct task_struct *t = (struct task_struct *)bpf_get_current_task();

	if (BPF_CORE_READ(t, flags) & PF_KTHREAD)
		return false;
	uint64_t top = (uint64_t)BPF_CORE_READ(t, stack) + cfg.thread_size;
	return !bpf_probe_read_kernel(ret, sizeof(*ret), (const void *)(top - sizeof(*ret)));
}

static __always_inline uint64_t current_mm(void)
{
	struct task_struct *t = (struct task_struct *)bpf_get_current_task();

	return (uint64_t)BPF_CORE_READ(t, mm);
}

static __always_inline uint64_t current_start(void)
{
	struct task_struct *t = (struct task_struct *)bpf_get_current_task();

	return BPF_CORE_READ(t, group_leader, start_time);
}

static __always_inline void first_mappings(struct task_struct *t, uint32_t tgid)
{
}

static __always_inline int as_walk_vma(struct as_walk *w, uint64_t avma)
{
	return 1;
}

int go_on(struct bpf_perf_event_data *ctx);
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__array(values, int(void *));
} next SEC(".maps") = {.values = {[0] = (void *)&go_on}};

static __always_inline int walk(void *ctx, struct as_walk *w, struct as_bpf_counts *k)
{
	bool more = true;

	for (int i = 0; i < FRAMES_PER_CALL && more; i++)
		more = !as_walk_step(w);
	if (more && w->n < cfg.max_frames)
		bpf_tail_call(ctx, &next, 0); /* comes back when 33 calls were made */
	return send(w, k);
}

SEC("perf_event")
int go_on(struct bpf_perf_event_data *ctx)
{
	uint32_t cpu = bpf_get_smp_processor_id();
	struct as_walk *w = bpf_map_lookup_elem(&walks, &cpu);
	struct as_bpf_counts *k = bpf_map_lookup_elem(&counts, &cpu);

	return w && k ? walk(ctx, w, k) : 0;
}

#endif

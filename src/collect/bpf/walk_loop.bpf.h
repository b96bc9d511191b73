/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) AND Apache-2.0 */
/* The walk with bpf_loop, and mappings asked of the kernel: 5.17 and later. */
#ifndef AS_COLLECT_BPF_WALK_LOOP_BPF_H
#define AS_COLLECT_BPF_WALK_LOOP_BPF_H

static __always_inline bool read_user_regs(struct pt_regs *ret)
{
	struct task_struct *t = bpf_get_current_task_btf();

	if (t->flags & PF_KTHREAD)
		return false;
	return !bpf_probe_read_kernel(ret, sizeof(*ret), (const void *)bpf_task_pt_regs(t));
}

static __always_inline uint64_t current_mm(void)
{
	return (uint64_t)bpf_get_current_task_btf()->mm;
}

static __always_inline uint64_t current_start(void)
{
	return bpf_get_current_task_btf()->group_leader->start_time;
}

struct vma_query {
	uint64_t avma;
	struct as_bpf_mapping m; /* size_bytes 0: not found */
};

/* The part of a registered file that is mapped at q->avma. */
static long found_vma(struct task_struct *t, struct vm_area_struct *vma, struct vma_query *q)
{
	struct as_bpf_file_key key = {0};
	uint64_t start = vma->vm_start, off = vma->vm_pgoff << 12;
	struct file *f = vma->vm_file;

	if (f) {
		struct inode *inode = f->f_inode;
		key.ino = inode->i_ino;
		key.dev = inode->i_sb->s_dev;
	} else {
		/* the vdso is filed under device and inode 0 */
		if (!t->mm || (uint64_t)t->mm->context.vdso != start)
			return 0;
		off = 0;
	}
	struct as_bpf_file *file = bpf_map_lookup_elem(&files, &key);
	if (!file)
		return 0;
	off += q->avma - start;
	for (int i = 0; i < AS_BPF_FILE_PIECES; i++) {
		const struct as_bpf_piece *p = &file->piece[i];

		if (i >= file->npieces || off - p->off >= p->size_bytes)
			continue;
		q->m.bias = q->avma - (p->svma + (off - p->off));
		q->m.start_avma = p->svma + q->m.bias;
		q->m.size_bytes = p->size_bytes;
		q->m.table = p->table;
		q->m.chunk = p->chunk;
		q->m.module = p->module;
		return 0;
	}
	return 0;
}

static __always_inline void remember(struct as_bpf_fresh *f, const struct as_bpf_mapping *m)
{
	uint32_t i = __sync_fetch_and_add(&f->n, 1);

	if (i >= AS_BPF_FRESH)
		return;
	struct as_bpf_mapping *to = &f->m[i & (AS_BPF_FRESH - 1)];
	uint64_t size = m->size_bytes;
	*to = *m;
	to->size_bytes = size;
}

/* At the end of exec: the program and its interpreter, so that a sample has to ask for one more
 * only. */
static __always_inline void first_mappings(struct task_struct *t, uint32_t tgid)
{
	struct as_bpf_fresh *f = bpf_map_lookup_elem(&fresh, &tgid);
	struct pt_regs regs;
	struct vma_query q = {0};

	if (!f || !t->mm)
		return;
	q.avma = t->mm->start_code;
	if (!bpf_find_vma(t, q.avma, found_vma, &q, 0) && q.m.size_bytes)
		remember(f, &q.m);
	if (!read_user_regs(&regs))
		return;
	q.m.size_bytes = 0;
	q.avma = regs.ip;
	if (!bpf_find_vma(t, q.avma, found_vma, &q, 0) && q.m.size_bytes)
		remember(f, &q.m);
}

/*
 * In a sample the kernel is asked once: the helper's unlock is delayed in interrupts, a second
 * call fails. What it said is remembered while nothing is published for the process.
 */
static __always_inline int as_walk_vma(struct as_walk *w, uint64_t avma)
{
	struct as_bpf_fresh *f = 0;
	uint32_t tgid = w->rec.head.pid;
	struct vma_query q = {.avma = avma};

	if (!w->process.n) {
		f = bpf_map_lookup_elem(&fresh, &tgid);
		for (int i = 0; f && i < AS_BPF_FRESH; i++) {
			struct as_bpf_mapping *m = &f->m[i];

			if (avma - m->start_avma >= m->size_bytes)
				continue;
			w->vma = *m;
			return 0;
		}
	}
	if (!w->use_vma)
		return 1;
	w->use_vma = 0;
	if (bpf_find_vma(bpf_get_current_task_btf(), avma, found_vma, &q, 0) || !q.m.size_bytes)
		return 1;
	w->vma = q.m;
	w->rec.head.flags |= AS_BPF_SAMPLE_VMA;
	if (f)
		remember(f, &q.m);
	return 0;
}

static long one_frame(uint32_t i, struct as_walk **w)
{
	return as_walk_step(*w);
}

static __always_inline int walk(void *ctx, struct as_walk *w, struct as_bpf_counts *k)
{
	bpf_loop(cfg.max_frames, one_frame, &w, 0);
	return send(w, k);
}

#endif

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

static long found_vma(struct task_struct *t, struct vm_area_struct *vma, struct as_walk **ctx)
{
	struct as_walk *w = *ctx;
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
	for (int i = 0; i < AS_BPF_FILE_PIECES; i++) {
		const struct as_bpf_piece *p = &file->piece[i];
		/* file offset of the address looked for: w->vma.start_avma holds that */
		uint64_t at = w->vma.start_avma - start + off;
		if (i >= file->npieces || at - p->off >= p->size_bytes)
			continue;
		w->vma.bias = w->vma.start_avma - (p->svma + (at - p->off));
		w->vma.start_avma = p->svma + w->vma.bias;
		w->vma.size_bytes = p->size_bytes;
		w->vma.table = p->table;
		w->vma.chunk = p->chunk;
		w->vma.module = p->module;
		w->rec.head.flags |= AS_BPF_SAMPLE_VMA;
		return 0;
	}
	return 0;
}

/* Once per sample: the helper's unlock is delayed, a second call in the same interrupt fails.
 */
static __always_inline int as_walk_vma(struct as_walk *w, uint64_t avma)
{
	w->use_vma = 0;
	w->vma.start_avma = avma;
	w->vma.size_bytes = 0;
	if (bpf_find_vma(bpf_get_current_task_btf(), avma, found_vma, &w, 0))
		return 1;
	return w->vma.size_bytes == 0;
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

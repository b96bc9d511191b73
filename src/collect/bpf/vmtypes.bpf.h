/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) AND Apache-2.0 */
/*
 * The few kernel types the BPF programs touch, so that no vmlinux.h of the build machine is
 * needed. Fields are found at load time in the running kernel's BTF (preserve_access_index);
 * pt_regs and the constants are user ABI.
 */
#ifndef AS_COLLECT_BPF_VMTYPES_BPF_H
#define AS_COLLECT_BPF_VMTYPES_BPF_H

#include <stdbool.h>
#include <stdint.h>

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u16 __sum16;

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_F_MMAPABLE = 1024,
	BPF_ANY = 0,
	BPF_EXIST = 2,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_AVAIL_DATA = 0,
};

struct pt_regs { /* x86-64, user ABI */
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
};
struct bpf_perf_event_data {
	struct pt_regs regs;
	__u64 sample_period;
	__u64 addr;
};
struct bpf_perf_event_value {
	__u64 counter, enabled, running;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
typedef struct {
	void *vdso;
} mm_context_t;
struct mm_struct {
	mm_context_t context;
	unsigned long start_code;
};
struct super_block {
	__u32 s_dev;
};
struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
};
struct file {
	struct inode *f_inode;
};
struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_pgoff;
	struct file *vm_file;
};
struct sched_entity {
	unsigned long long sum_exec_runtime;
};
struct task_struct {
	struct sched_entity se;
	int pid, tgid;
	unsigned int flags;
	void *stack;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	unsigned long long start_time;
};
#pragma clang attribute pop

#endif

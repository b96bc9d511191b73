/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) AND Apache-2.0 */
/*
 * What the in-kernel unwinder and the tool share: samples in the ring buffer, values of the BPF
 * maps. The includer defines the fixed-width types (uint8_t … int32_t, uint64_t) beforehand.
 *
 * Sample, in the ring buffer: the head below, then `words` 64-bit words:
 *
 *	nkernel		kernel addresses, innermost first; [0] is a pc, the others return addresses
 *	nuser		user frames, leaf first, see AS_BPF_FRAME_*
 *	when AS_BPF_SAMPLE_STATE is set, 20 more:
 *	    17		user registers at the sample, DWARF numbers 0..16 (16: rip)
 *	    3		pc, sp, fp where the walk stopped: the registers of the last user frame
 *	when AS_BPF_SAMPLE_COPY is set, all that follow: the stack from the sampled rsp on
 *
 * User frame: bits 63..48 module id + 1, bit 47 exact (a pc, not a return address), bits 46..0
 * svma. Module field 0: the mapping was not known, bits 46..0 are an avma.
 */
#ifndef AS_ABI_BPF_SAMPLE_H
#define AS_ABI_BPF_SAMPLE_H

#include <stdint.h>

/* frames walked in the kernel; the rest is read by the recorder */
#define AS_BPF_MAX_USER    512
#define AS_BPF_MAX_KERNEL  127
#define AS_BPF_NREGS       17
#define AS_BPF_STATE_WORDS (AS_BPF_NREGS + 3)
#define AS_BPF_WORDS       2048 /* power of two >= MAX_USER + MAX_KERNEL + STATE_WORDS */
/* The stack is copied in steps that end at multiples of this, up to the first unreadable page. */
#define AS_BPF_COPY_STEP   1024u
#define AS_BPF_COPY_STEPS  12

#define AS_BPF_FRAME_MODULE_SHIFT 48
#define AS_BPF_FRAME_EXACT        (1ull << 47)
#define AS_BPF_FRAME_ADDR_MASK    ((1ull << 47) - 1)
#define AS_BPF_MAX_MODULE         0xfffeu /* module ids above are recorded by avma */

enum as_bpf_sample_flags {
	AS_BPF_SAMPLE_KERNEL = 1, /* the CPU was in the kernel */
	AS_BPF_SAMPLE_STATE = 2,  /* registers and stop state follow the frames */
	AS_BPF_SAMPLE_VMA = 4,    /* a mapping was taken from the kernel: the maps lag behind */
	AS_BPF_SAMPLE_COPY = 8,   /* the stack's top follows, for the tool to walk again */
};

struct as_bpf_sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t weight;  /* since this CPU's event fired before: ns, or event counts */
	uint32_t pid, tid, cpu;
	uint16_t nkernel, nuser;
	uint16_t words;
	uint8_t end; /* enum as_stack_end */
	uint8_t flags;
	uint32_t generation; /* of the process's mappings; 0: it had none */
	uint64_t by_fp;      /* bit i: user frame i was found by a frame pointer, see below */
};
_Static_assert(sizeof(struct as_bpf_sample) == 48, "layout is shared with BPF");

/* One executable mapping, or the part of one that one table segment covers. */
struct as_bpf_mapping {
	uint64_t start_avma, size_bytes;
	uint64_t bias;   /* avma - svma */
	uint32_t table;  /* word offset of the segment in its chunk */
	uint16_t chunk;  /* AS_BPF_NO_CHUNK: no table */
	uint16_t module; /* id + 1; 0: unknown */
};
_Static_assert(sizeof(struct as_bpf_mapping) == 32, "layout is shared with BPF");
#define AS_BPF_NO_CHUNK      0xffffu
#define AS_BPF_CHUNK_WORDS   (1u << 20)
#define AS_BPF_MAX_CHUNKS    256
#define AS_BPF_POOL_MAPPINGS (1u << 17)

/* Value of the map of processes; replaced as a whole. */
struct as_bpf_process {
	uint32_t base, n;    /* mappings base .. base + n - 1 of the pool, sorted by start */
	uint32_t generation; /* never used twice for different contents; 0 only with n == 0 */
	uint32_t flags;
};
enum as_bpf_process_flags {
	AS_BPF_PROCESS_HELD = 1, /* until it execs: its samples are of the launcher */
};

/*
 * What the kernel itself knows of a process that was forked or has called exec while followed:
 * its memory, and the first mappings after exec, until the tool publishes. m[i] is valid when
 * its size is not 0.
 */
#define AS_BPF_FRESH 4
struct as_bpf_fresh {
	uint64_t mm;
	uint32_t n, reserved;
	struct as_bpf_mapping m[AS_BPF_FRESH];
};
_Static_assert(sizeof(struct as_bpf_fresh) == 144, "layout is shared with BPF");

/* Read-only data of the programs, set before loading. */
struct as_bpf_config {
	uint32_t max_frames;
	uint8_t kernel_stacks, follow, weight_by_count, reserved;
	uint64_t thread_size; /* of kernel stacks; used before 5.15 only */
	uint32_t leader;      /* process whose CPU time is read from /proc */
	uint32_t copy_below;  /* no stack is copied while more bytes wait in the ring buffer */
};
_Static_assert(sizeof(struct as_bpf_config) == 24, "layout is shared with BPF");

/* Per CPU counts, in a mapped array; written by that CPU only. taken = sent + lost + filtered. */
struct as_bpf_counts {
	uint64_t taken, sent, lost, filtered;
	uint64_t last; /* time or event count of the last firing */
	uint64_t find_vma, cache_hits, frames;
	uint64_t ends[16]; /* by enum as_stack_end */
	uint64_t ended_ns; /* CPU time of followed threads that are gone, but the leader's */
	uint64_t reserved[7];
};
_Static_assert(sizeof(struct as_bpf_counts) == 256, "layout is shared with BPF");

/* A file's executable segments in pieces of one table segment, for mappings the tool has not seen. */
#define AS_BPF_FILE_PIECES 8
struct as_bpf_file_key {
	uint64_t ino;
	uint32_t dev; /* major << 20 | minor */
	uint32_t reserved;
};
struct as_bpf_piece {
	uint64_t off, size_bytes, svma;
	uint32_t table;
	uint16_t chunk, module;
};
struct as_bpf_file {
	uint64_t npieces;
	struct as_bpf_piece piece[AS_BPF_FILE_PIECES];
};
_Static_assert(sizeof(struct as_bpf_piece) == 32, "layout is shared with BPF");

/* A rule remembered per CPU: key is the look-up address, valid for one generation of a process. */
#define AS_BPF_CACHE 2048
struct as_bpf_rule {
	uint64_t key;
	uint64_t frame; /* as in the sample, without the exact bit, at the look-up address */
	uint32_t generation;
	uint32_t w0;
	int32_t w1;
	uint32_t reserved;
};
_Static_assert(sizeof(struct as_bpf_rule) == 32, "layout is shared with BPF");

#endif

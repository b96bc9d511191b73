/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * perf_event_open(2): which event this machine lets us sample, ring buffers and their records.
 *
 *	struct as_perf_event_choice c;
 *	r = as_perf_choose_event(true, &c, err);	// cycles, else cpu-clock; kernel if allowed
 *	as_perf_attr(&c, &spec, &attr);
 *	fd = as_perf_open(&attr, tid, cpu);
 *	as_perf_ring_map(&ring, fd, pages);
 *	as_perf_ring_begin(&ring);			// snapshot of the head
 *	while ((p = as_perf_ring_peek(&ring, &n))) {
 *		as_perf_parse(p, n, layout, &rec);
 *		as_perf_ring_pop(&ring);
 *	}
 *
 * All records carry pid/tid, CLOCK_MONOTONIC time, stream id, cpu and id (sample_id_all).
 * Records come from the kernel, yet every size is checked: a damaged one is counted, never
 * followed. Source of the layout: perf_event_open(2).
 * Thread rule: a ring belongs to one thread.
 */
#ifndef AS_COLLECT_PERF_EVENT_H
#define AS_COLLECT_PERF_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/err.h"
#include "unwind/unwind.h"

struct as_perf_event_choice {
	uint32_t type;
	uint64_t config;
	const char *name; /* "cycles", "cpu-clock" */
	bool weight_is_cycles;
	bool exclude_kernel; /* user mode only: missing rights */
	bool callchain;      /* kernel part of the stack may be asked for */
};
/* On failure: AS_E_ACCESS or AS_E_UNSUPPORTED with the exact remedy in the message. */
int as_perf_choose_event(bool want_kernel_stacks, struct as_perf_event_choice *ret,
			 struct as_error *err);

/* Limits from /proc/sys/kernel; -1 where unreadable. */
struct as_perf_limits {
	long paranoid, mlock_kib, max_sample_rate;
};
void as_perf_limits_read(struct as_perf_limits *ret);

struct as_perf_spec {
	uint64_t period_ns; /* cpu-clock: ns; cycles: ignored, freq_hz is used */
	uint64_t freq_hz;
	uint32_t stack_bytes;              /* multiple of 8, below 65,528 */
	bool threads_only, enable_on_exec; /* threads_only: forked processes are not followed */
};
void as_perf_attr_sampler(const struct as_perf_event_choice *c, const struct as_perf_spec *s,
			  struct perf_event_attr *ret);
/* Software dummy that carries mmap2, comm, fork and exit records and owns the ring. */
void as_perf_attr_tracker(bool threads_only, struct perf_event_attr *ret);
int as_perf_open(struct perf_event_attr *attr, pid_t tid, int cpu); /* fd, or -errno */
uint64_t as_perf_id(int fd);                                        /* 0 when unknown */
/* Message and remedies for errno of as_perf_open. */
int as_perf_fail(struct as_error *err, int e, const char *what);

/* ---- rings ---- */

struct as_perf_ring {
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	uint64_t size, head,
		tail;     /* bytes; size is a power of two; head: snapshot of ring_begin */
	uint8_t *wrapped; /* a record that wraps is put together here */
	size_t mapped_bytes;
	uint64_t damaged; /* records of impossible size: the rest of the round was dropped */
	uint32_t current; /* size of the peeked record */
};
/* npages: data pages, a power of two. 0, or -errno. */
int as_perf_ring_map(struct as_perf_ring *r, int fd, size_t npages);
/* Over memory that is already there, for tests. */
void as_perf_ring_over(struct as_perf_ring *r, struct perf_event_mmap_page *page,
		       const void *data, uint64_t size);
void as_perf_ring_clear(struct as_perf_ring *r);
void as_perf_ring_begin(struct as_perf_ring *r);
/* The oldest record of the round, contiguous; NULL: none left. Valid until pop. */
const void *as_perf_ring_peek(struct as_perf_ring *r, size_t *ret_n);
void as_perf_ring_pop(struct as_perf_ring *r); /* gives its bytes back to the kernel */

/* ---- records ---- */

enum as_perf_kind {
	AS_PERF_OTHER, /* nothing of interest */
	AS_PERF_SAMPLE,
	AS_PERF_MMAP,
	AS_PERF_COMM,
	AS_PERF_FORK,
	AS_PERF_EXIT,
	AS_PERF_LOST,         /* count records did not fit the ring */
	AS_PERF_LOST_SAMPLES, /* count samples lost in the kernel */
	AS_PERF_THROTTLE,
};

struct as_perf_rec {
	enum as_perf_kind kind;
	uint64_t time_ns, stream_id, id;
	pid_t pid, tid;
	uint32_t cpu;
	bool exec;                     /* COMM */
	bool kernel_mode;              /* SAMPLE */
	pid_t ppid, ptid;              /* FORK, EXIT */
	uint64_t count;                /* LOST… */
	const char *text;              /* COMM: name; MMAP: path */
	uint64_t start, len, off, ino; /* MMAP */
	uint32_t maj, min, prot;
	uint64_t ip, period; /* SAMPLE */
	const uint8_t *ips;  /* SAMPLE: nips u64, unaligned */
	size_t nips;
	bool has_regs;
	struct as_uregs regs;
	const uint8_t *stack; /* SAMPLE: copy of [sp, sp + nstack) */
	size_t nstack;
	size_t stack_asked; /* size of the copy the event asks for */
};
/* 0, or AS_E_FORMAT for a damaged record. callchain: the samplers' attr has
 * PERF_SAMPLE_CALLCHAIN. */
int as_perf_parse(const void *p, size_t n, bool callchain, struct as_perf_rec *ret);
/* Time of any record of ours: cheap, for merging. 0 when damaged. */
uint64_t as_perf_record_time(const void *p, size_t n);

#endif

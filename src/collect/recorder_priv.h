/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The recorder's insides, shared by recorder.c (what happens while recording), recorder_life.c
 * (processes and threads) and resolve.c (names at the end). */
#ifndef AS_COLLECT_RECORDER_PRIV_H
#define AS_COLLECT_RECORDER_PRIV_H

#include "base/map.h"
#include "base/mem.h"
#include "collect/collect.h"

#define AS_NO_ID UINT32_MAX

/* A distinct place, index = frame id. weight: samples whose leaf or caller it was (for notes). */
struct as_rec_place {
	uint64_t addr;
	uint32_t module; /* session module id; AS_NO_ID: unknown memory */
	uint32_t flags;
	uint32_t samples; /* in which it was the leaf; saturates */
};

/* A module of the session file, index = session id. */
struct as_rec_mod {
	enum as_module_kind kind;
	uint32_t image_id;   /* of struct as_module; AS_NO_ID for the kernel's */
	pid_t pid;           /* JIT: whose memory */
	uint64_t start, end; /* kernel modules: run-time range */
};

struct as_rec_proc {
	pid_t pid;
	uint32_t parent; /* process id or AS_NO_ID */
	uint32_t live_threads;
	uint32_t name; /* string id */
	bool ended, jit_read;
	bool added;    /* by as_recorder_add_process; else samples or events have shown it */
	bool replaced; /* the process of that number is another one now */
	uint64_t start_ns, end_ns;
};

struct as_rec_thr {
	pid_t tid;
	uint32_t process;
	uint32_t name;
	bool ended;
	bool added; /* by as_recorder_add_thread */
	uint64_t start_ns, end_ns;
};

struct as_rec_cpu {
	struct as_rec_tick sum;
	bool any;
};

struct as_kallsyms;
struct as_perfmap;
struct as_rec_jit {
	uint32_t process_pid;
	struct as_perfmap *map;
};

struct as_rec_node {
	uint32_t parent; /* id + 1; 0: none */
	uint32_t place;
	uint32_t samples; /* in which it was the leaf; saturates */
};

struct as_recorder {
	struct as_session_writer *w;
	struct as_image *im;

	AS_VEC(struct as_rec_place) places;
	/* hash of (addr, module, flags) -> id, probed on collision */
	struct as_map64 place_ids;
	AS_VEC(struct as_rec_node) nodes; /* by id */
	struct as_slots node_ids;         /* by parent and place */
	struct as_map64 stack_memo; /* hash of a raw stack -> node id + 1; emptied when large */

	AS_VEC(struct as_rec_mod) mods;
	AS_VEC(uint32_t) mod_of_image; /* image id -> session id */
	bool kernel_mods_read;
	bool kallsyms_tried;
	struct as_kallsyms *kallsyms; /* NULL: not read, or not there */

	AS_VEC(struct as_rec_proc) procs;
	AS_VEC(struct as_rec_thr) thrs;
	struct as_map64 proc_by_pid, thr_by_tid; /* the latest holder of the number */
	pid_t last_tid;
	uint32_t last_thr; /* cache of the look-up; AS_NO_ID none */

	AS_VEC(struct as_rec_cpu) cpus;
	uint64_t tick_flushed_ns;

	AS_VEC(struct as_rec_jit) jits; /* perf maps read when their process ended */
	struct as_map64 notes;          /* hash -> 1: said already */
	uint64_t samples;               /* those, and what was weighed: for shares of it */
	uint64_t taken;                 /* samples alone */
};

/* Whether a stack has the place as its outermost frame. */
bool as_rec_is_root(const struct as_recorder *r, uint32_t place);
/* Thread id for a sample or event; created when unknown. */
uint32_t as_rec_thread(struct as_recorder *r, uint64_t time_ns, pid_t pid, pid_t tid);
/* Session id of the module that holds kernel address addr. */
uint32_t as_rec_kernel_module(struct as_recorder *r, uint64_t addr);
uint32_t as_rec_module_of_image(struct as_recorder *r, uint32_t image_id);
/* Reads the perf map of a process that has JIT frames, once; called before it is gone. */
void as_rec_keep_jit(struct as_recorder *r, pid_t pid);
void as_rec_flush_ticks(struct as_recorder *r);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Recording: a target, an engine (collector) and the recorder that turns what the engine delivers
 * into session records.
 *
 *	target.c	launch held at exec, attach, exit status, signals
 *	target_lean.c	the launched child before its exec: small, so that the program's memory shows
 *	recorder.c	interning of frames and stacks, threads and processes, ticks, loss, names at the end
 *	engine_kernel.c	samples unwound in the kernel by bpf/unwind.bpf.c
 *	engine_ring.c	samples with a copy of the stack, unwound here as they are drained
 *	record.c	the whole: session, runs, what is told at the end; record_run.c a run,
 *			record_look.c whether it is enough
 *	resolve.c	names for every recorded frame, into the session
 *	keep.c		instructions and source lines of hot functions, into the session
 *
 * An engine writes only through the recorder; the recorder only through the session writer.
 */
#ifndef AS_COLLECT_COLLECT_H
#define AS_COLLECT_COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/resource.h>
#include "base/err.h"
#include "image/image.h"
#include "session/session.h"

/* ---- the target ---- */

struct as_target {
	pid_t pid;     /* leader of what is recorded */
	bool attached; /* -p: not our child */
	bool released, exited;
	int wait_status;     /* of the child, as wait(2); valid when exited */
	struct rusage usage; /* of the child and its waited-for children */
	/* of the child before it became the program: it is in `usage` too, but for ru_maxrss */
	struct rusage before, *shared; /* shared: with the child until it is released */
	int hold_fd;                   /* writing one byte releases the child to exec */
	int exec_err_fd;               /* carries errno when exec failed; CLOEXEC */
	int pidfd;
	uint64_t start_ns, end_ns;
	uint64_t own_cpu_ns; /* user + system of the leader process alone, last read */
	uint64_t
		run_wait_ns; /* it was ready and had no CPU; of a child's main thread, at its end */
	uint64_t cpu_before_ns; /* the same when it was attached to */
	char *program_path;     /* resolved executable */
};
/* Forks a child that waits before exec. The child's descriptors, signal mask, dispositions and
 * process group are those assay was started with; it runs in folder, NULL: the current one. A
 * relative argv[0] is looked up from the current folder. AS_E_NOTFOUND / AS_E_ACCESS as execvp would. */
int as_target_prepare(char *const argv[], const char *folder, struct as_target *ret,
		      struct as_error *err);
int as_target_attach(pid_t pid, struct as_target *ret, struct as_error *err);
/* lets it exec; fails as execve did */
int as_target_release(struct as_target *t, struct as_error *err);
/* Reaps without blocking; true once it has ended (attached: the process is gone). */
bool as_target_poll(struct as_target *t);
/* User and system time of a process, 10 ms steps; also of one that nobody has waited for yet. */
bool as_process_cpu(pid_t pid, uint64_t *ret_user_ns, uint64_t *ret_sys_ns);
void as_target_clear(struct as_target *t);
/* As many descriptors for assay itself as it may have; targets have the limit assay began with. */
void as_raise_fd_limit(void);

/*
 * What the caller's signal handler has noted, and what comes of it: the first signal is passed on to
 * a started target, which has a moment to end by itself, still recorded.
 */
struct as_interrupt {
	const volatile int *count; /* signals so far; NULL: none are noted */
	/* Number of the first one, negative: the terminal sent it to the target as well. NULL: SIGINT. */
	const volatile int *signal;
	uint64_t since_ns; /* when the first one was seen; 0: not yet */
};
/* True when the measurement shall end. */
bool as_target_interrupt(const struct as_target *t, struct as_interrupt *i, uint64_t now_ns);

/* ---- options of a recording ---- */

struct as_record_options {
	double rate_hz;     /* default 997 */
	bool kernel_stacks; /* default true */
	uint32_t max_depth; /* frames kept per stack; default 65,536 */
	uint32_t dump_size; /* ring engine: fixed copy size; 0: adapts */
	bool no_inherit;    /* only the leader process */
	bool no_jitter;     /* tests only */
};

/* ---- what engines deliver ---- */

/* One frame as an engine knows it. module: as_module id, AS_NO_MODULE (addr is an avma), or
 * AS_KERNEL_FRAME (addr is a kernel address). */
#define AS_KERNEL_FRAME (UINT32_MAX - 1)
struct as_raw_frame {
	uint64_t addr; /* svma in module */
	uint32_t module;
	uint32_t flags; /* AS_FRAME_* */
};
struct as_raw_sample {
	uint64_t time_ns;
	pid_t pid, tid;
	uint32_t cpu;
	uint64_t weight;
	enum as_stack_end end;
	bool repaired, kernel;
	const struct as_raw_frame *frames; /* leaf first: kernel frames, then user frames */
	size_t nframes;
	uint32_t callers; /* what called the last frame: 0 nothing, or as_recorder_callers' */
};

/* ---- the recorder ---- */

struct as_recorder;
struct as_recorder *as_recorder_new(struct as_session_writer *w, struct as_image *im);
void as_recorder_free(struct as_recorder *r);
void as_recorder_sample(struct as_recorder *r, const struct as_raw_sample *s);
/* For callers that many samples share: interns frames (leaf first) once; ret[i] stands for
 * frames[i] and everything that called it. */
void as_recorder_callers(struct as_recorder *r, const struct as_raw_frame *frames, size_t n,
			 uint32_t *ret);
void as_recorder_lost(struct as_recorder *r, uint64_t time_ns, uint32_t cpu,
		      enum as_loss source, uint64_t n);
/* Per CPU counts since the last call; written as TICK records once a second. */
void as_recorder_tick(struct as_recorder *r, const struct as_rec_tick *t);
/* Life of processes and threads. name may be NULL: read from /proc when possible. */
void as_recorder_fork(struct as_recorder *r, uint64_t time_ns, pid_t ppid, pid_t pid,
		      pid_t tid);
void as_recorder_name(struct as_recorder *r, uint64_t time_ns, pid_t pid, pid_t tid,
		      const char *name, bool exec);
void as_recorder_exit(struct as_recorder *r, uint64_t time_ns, pid_t pid, pid_t tid);
void as_recorder_note(struct as_recorder *r, int level, const char *about, const char *remedy,
		      const char *fmt, ...) __attribute__((format(printf, 5, 6)));
uint64_t as_recorder_samples(const struct as_recorder *r);
/* The kernel's symbols are read now, once, instead of at the first need. */
void as_recorder_load_kernel(struct as_recorder *r);

/*
 * For what records something else than samples (track/), with ids of the session. Processes and
 * threads are what the caller says they are: a program that another one has executed may be a
 * process of its own. One that samples have shown already, and nobody has added, is that one. parent:
 * process id, AS_RECORDER_NONE none.
 */
#define AS_RECORDER_NONE UINT32_MAX
uint32_t as_recorder_add_process(struct as_recorder *r, uint64_t time_ns, pid_t pid,
				 uint32_t parent, const char *name);
uint32_t as_recorder_add_thread(struct as_recorder *r, uint64_t time_ns, uint32_t process,
				pid_t tid, const char *name);
/* Of a module of the image; AS_RECORDER_NONE: there is no such module. */
uint32_t as_recorder_module(struct as_recorder *r, uint32_t image_module);
/* A stack, frame by frame from the outermost on: f on top of node (0: nothing). Returns the node. */
uint32_t as_recorder_push(struct as_recorder *r, uint32_t node, const struct as_raw_frame *f);
/* Counts n for the node, whose own frame is leaf: which functions' text is kept. */
void as_recorder_weigh(struct as_recorder *r, uint32_t node, const struct as_raw_frame *leaf,
		       uint64_t n);
/* The image's listener that writes MODULE and MAP records. */
void as_recorder_listener(struct as_recorder *r, struct as_image_listener *ret);

/* Resolves every recorded frame and writes FUNCTION, SYMBOL, STRING and NOTE records; CODE,
 * CODE_LINES, CODE_NAMES and SOURCE of the hottest functions. */
struct as_resolve_options {
	const char *cache_dir;
	bool no_inlines;
	bool no_source;  /* no SOURCE records; instructions are kept all the same */
	bool names_only; /* neither */
	const char *const
		*source_dirs; /* further folders to look for sources in; may be NULL */
};
int as_recorder_resolve(struct as_recorder *r, const struct as_resolve_options *o,
			struct as_error *err);

/* ---- engines ---- */

enum as_probe { AS_PROBE_NO = 0, AS_PROBE_PARTLY = 1, AS_PROBE_YES = 2 };
struct as_probe_result {
	enum as_probe can;
	char why[256];    /* what is missing or limited; "" when YES */
	char remedy[512]; /* lines ready to paste, the least invasive first; "" when none */
};

struct as_engine_env {
	struct as_target *target;
	struct as_image *image;
	struct as_recorder *recorder;
	const struct as_record_options *options;
};

/*
 * An engine's life: probe (any time) -> open (target held or attached) -> start (target may be
 * released right after) -> drain … -> stop -> finish -> close. All but probe run on one thread.
 */
struct as_collector {
	const char *name, *summary; /* "kernel", "stacks unwound in the kernel (eBPF)" */
	int (*probe)(struct as_probe_result *ret);
	int (*open)(const struct as_engine_env *env, void **ret, struct as_error *err);
	int (*start)(void *c, struct as_error *err);
	/* Takes what has arrived; returns the number of samples. Sets *ret_wait_ms to when it
	 * wants to be called again at the latest. */
	int (*drain)(void *c, int *ret_wait_ms, struct as_error *err);
	int (*poll_fd)(void *c); /* readable when drain has work; -1: time only */
	int (*stop)(void *c, struct as_error *err); /* last drain included */
	void (*close)(void *c);
};
/* "event" for the INFO records and trust block: what the engine really sampled on. */
struct as_engine_facts {
	const char *event;       /* "cpu-clock", "cycles" */
	uint64_t kernel_cost_ns; /* time in our BPF programs; 0 unknown */
	uint64_t weight_unit;
	uint64_t cpu_ns;    /* CPU time of everything followed, after stop; 0 unknown */
	bool kernel_stacks; /* kernel mode is sampled and its part of stacks recorded */
};
extern const struct as_collector as_engine_kernel;
extern const struct as_collector as_engine_ring;
void as_engine_kernel_facts(void *c, struct as_engine_facts *ret);
void as_engine_ring_facts(void *c, struct as_engine_facts *ret);

/* All engines, best first, NULL-terminated; the build without BPF lists a kernel engine whose
 * probe says so. */
extern const struct as_collector *const as_collectors[];

/* An engine that is open. */
struct as_engine {
	const struct as_collector *collector;
	void *ctx;
	struct as_engine_facts facts; /* as of its opening, or of its end */
};
/* The best that can work here, or the one named `wanted`. One that cannot start is a note; when none
 * can, the error says what is missing. */
int as_engine_open(const char *wanted, const struct as_engine_env *env, struct as_engine *ret,
		   struct as_error *err);
/* Takes what is left and closes it; facts are then final. Closed also on failure. */
int as_engine_stop(struct as_engine *e, struct as_error *err);

/* ---- a whole recording ---- */

/* What a session says of itself at its beginning: INFO, ARG and RECORDING. Texts may be NULL. */
struct as_recording_facts {
	const char *engine, *event, *until;
	const char *folder; /* where the program runs; NULL: here */
	char *const *argv;
	const struct as_target *target;
	uint64_t start_ns, rate_hz, weight_unit;
	bool kernel_stacks;
};
void as_write_recording_facts(struct as_session_writer *w, const struct as_recording_facts *f);

/* Something the caller knows about the program: a NOTE of the session. */
struct as_recording_note {
	int level; /* 1 note, 2 warning */
	const char *about, *text, *remedy;
};

/* What a look at the session so far says of the rows that have to be known well. */
struct as_judgement {
	bool enough;
	double factor; /* of the recording so far that would be enough, >= 1; INFINITY: unknown */
	double worst; /* half width of the worst row's interval */
	char row[96]; /* its name */
};

struct as_recording_request {
	char *const *argv;  /* NULL with pid */
	const char *folder; /* where it runs; NULL: the current one */
	pid_t pid;          /* 0 with argv */
	/* 0: until the target ends. Of several runs: none begins later, and one that is going on
	 * then does not count. */
	uint64_t duration_ns;
	const char *engine; /* NULL: the best that can */
	const char *output; /* session path */
	struct as_record_options options;
	struct as_resolve_options resolve;
	const struct as_recording_note *notes; /* may be NULL */
	size_t nnotes;
	/* Runs of argv in one session, each a TRIAL; 0, 1: one. With judge: at most, 0: no limit. */
	uint64_t runs;
	/* A run without recording beside each one, in an order a coin decides. argv only. */
	bool measure_overhead;
	const char *until; /* with judge: what is asked for, as INFO "until" says it */
	/* Looks at the session so far under `path`, in a forked process, from time to time
	 * (stats/until.h). The recording ends when it is enough. NULL: it does not. */
	int (*judge)(void *ctx, const char *path, struct as_judgement *ret);
	/* Told of each look; runs is 0 for one run. May be NULL. */
	void (*judged)(void *ctx, const struct as_judgement *j, uint64_t elapsed_ns,
		       uint64_t runs);
	void *judge_ctx;
	/* set by the caller's SIGINT handler: 1 end and keep, 2 give up */
	const volatile int *interrupted;
	/* Number of the signal that interrupted, negative: the terminal sent it to the target as
	 * well. It is passed on to a started target. NULL: SIGINT. */
	const volatile int *interrupt_signal;
	/* progress may be NULL */
	void (*progress)(void *ctx, uint64_t elapsed_ns, uint64_t samples, const char *what);
	void *progress_ctx;
};
struct as_recording_outcome {
	int wait_status; /* of the launched target; of several runs the first that failed */
	bool launched;
	int exec_errno; /* why the program could not be run, as execve tells; 0: it was */
	uint64_t wall_ns, samples;
	uint64_t runs, failed_run; /* that are in the session; the first that failed, from 1 */
	bool enough;               /* the judge said so */
	uint64_t session_bytes;
	const char *engine;
};
/*
 * Runs it from start to finished session file. On failure after the target has started the
 * target goes on, and what was recorded stays.
 *
 * Several runs share standard input, which is wound back where it is a file. A run that is
 * interrupted does not count, unless it is the first; those before are kept.
 */
int as_record(const struct as_recording_request *q, struct as_recording_outcome *ret,
	      struct as_error *err);

#endif

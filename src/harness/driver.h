/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Benchmarks of bench programs, measured from outside: each sample is a fresh process that is asked
 * for one benchmark (docs/formats/bench-protocol.md). One program, or two in pairs.
 *
 *	struct as_fn_side now = {.exe = "target/release/deps/sort-1f…", .argv = argv};
 *	as_fn_list(&now, 30, &list, err);
 *	struct as_fn_request q = {.id = list.v[0].id, .side = {now}};
 *	as_fn_measure(&q, &result, err);		result.side[0].time.value ± …
 *
 *	q.side[0] = before; q.side[1] = now; q.sides = 2;	result.look.verdict: of now against before
 *
 * What a process tells is the low quartile of its batches' times per iteration; the median stands
 * beside it, and where the two say different things it is noted. Of one program, the processes of the
 * budget are summarised (stats/runs.h); of two, pairs are run with a coin for the order of each and
 * judged as they come (stats/paired.h). See docs/design/0013-function-benchmarks.md.
 *
 * A benchmark that fails is no error of these functions: result.failed says what happened.
 *
 * Thread rule: one call at a time per process (it waits for children, and SIGPIPE is ignored meanwhile).
 */
#ifndef AS_HARNESS_DRIVER_H
#define AS_HARNESS_DRIVER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/mem.h"
#include "stats/paired.h"
#include "stats/runs.h"

/* Borrowed. argv[0] as the program shall see it. */
struct as_fn_side {
	const char *exe; /* path to run; not searched in PATH */
	char *const *argv;
	char *const *env;   /* NULL: ours */
	const char *folder; /* NULL: ours */
};

/* ---- what a program has ---- */

/* As enum assay_throughput. */
enum as_fn_throughput {
	AS_FN_NONE,
	AS_FN_BYTES,
	AS_FN_ELEMENTS,
	AS_FN_BYTES_DECIMAL,
	AS_FN_BITS,
	AS_FN_ELEMENTS_AND_BYTES,
	AS_FN_THROUGHPUTS_
};
const char *as_fn_throughput_name(enum as_fn_throughput t); /* "bytes", …; "none" */

struct as_fn_entry {
	char *id;                       /* group/function/value */
	char *group, *function, *value; /* NULL: it has none */
	enum as_fn_throughput throughput;
	uint64_t throughput_n, throughput_n2;
	char *unit; /* "ns", or a custom one's name */
	unsigned threads;
};
struct as_fn_list {
	AS_VEC(struct as_fn_entry) v;
};
void as_fn_entry_clear(struct as_fn_entry *e);
/* Whether the file is a program with this library, told from its bytes: other programs would take a
 * question for nothing and do whatever they do. False as well when it cannot be read. */
bool as_fn_is_program(const char *exe);
void as_fn_list_clear(struct as_fn_list *l);
/* AS_E_UNSUPPORTED: it is no bench program, or of another version of the protocol; AS_E_IO: it could
 * not be run or failed; AS_E_LIMIT: timeout_s passed. 0 of these: 30. */
int as_fn_list(const struct as_fn_side *s, double timeout_s, struct as_fn_list *ret,
	       struct as_error *err);

/* ---- measuring ---- */

struct as_fn_note {
	const char *kind; /* static; see as_fn_result.notes */
	char *text;
};

struct as_fn_process {
	double q25, median, min, max, mean; /* per iteration, in the unit */
	double cpu;     /* low quartile of thread CPU time per iteration, ns */
	double first;   /* the first batch, a warm-up one, per iteration; NaN: there is none */
	double rate;    /* iterations per second of all threads together; NaN: one thread */
	double overlap; /* of the threads' loops, 0..1; NaN: one thread */
	double startup_s; /* until the benchmark was reached */
	double wall_s;    /* of the process */
	double voluntary, involuntary, migrations, minor_faults,
		major_faults; /* in the batches */
	double run_delay_s,
		steal_s; /* ready without a CPU; the host had the CPUs. NaN: not known */
	uint32_t batches;
};

struct as_fn_estimate {
	double value, low, high; /* 95 % if nothing else was asked for; NaN: one process only */
};

struct as_fn_side_result {
	AS_VEC(struct as_fn_process) processes; /* in the order they were run */
	AS_VEC(double) batches;       /* per iteration: processes[i].batches each, in order */
	struct as_fn_estimate time;   /* of the q25s: the declared one */
	struct as_fn_estimate median; /* of the medians */
	struct as_fn_estimate mean;   /* of the means */
	struct as_fn_estimate cpu;    /* ns */
	struct as_runs_summary runs;  /* of the q25s: drift, mixture, sd */
	double allocs, alloc_bytes, peak_bytes; /* per iteration; NaN: not seen */
};

struct as_fn_result {
	struct as_fn_entry what;
	bool out_of_time;          /* failed only because the cap was reached first */
	char *failed;              /* NULL: it was measured; else one line: why not */
	uint64_t iterations;       /* of a batch, on both sides */
	unsigned warmups, batches; /* of a process */
	unsigned sides;
	struct as_fn_side_result side[2];
	double loop_ns, clock_ns; /* an empty loop's iteration; reading the clock twice */
	double setup_share;       /* of the batches' wall time that was not timed */
	bool exact;               /* a custom unit whose values agree exactly */
	/* Two sides. */
	struct as_look look; /* the last one; verdict: of side 1 against side 0 */
	double delta;        /* below it: equal */
	struct as_trimmed by_q25, by_median, by_cpu; /* ln ratios, 95 % as if looked at once */
	double p;              /* two-sided, of the ratio being 1, as if looked at once; NaN */
	AS_VEC(double) d;      /* ln(q25 of 1 / q25 of 0), per pair */
	double seconds;        /* spent */
	double seconds_needed; /* more, until it is decided; 0: it is; NaN: cannot be told */
	uint64_t dropped_failed, dropped_timeout; /* processes that were not counted */
	/*
	 * Causes, each once, the kind a word: "bimodal" (between processes), "drift", "mixture" (of
	 * pairs), "cold", "warm-up", "timer", "setup-dominates", "optimised-away", "not-proportional",
	 * "debug-build", "in-process", "forked", "few-processes", "one-process", "disagree", "overlap",
	 * "not-copied", "layout", "dropped", "interrupted".
	 */
	AS_VEC(struct as_fn_note) notes;
};
void as_fn_result_clear(struct as_fn_result *r);
void as_fn_add_note(struct as_fn_result *r, const char *kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

struct as_fn_request {
	const char *id;
	uint64_t nth;              /* of several with this id, from 1; 0: 1 */
	struct as_fn_side side[2]; /* 0: before, 1: now; the only one is 0 */
	unsigned sides;            /* 0: one */
	double budget_s;           /* to measure in; 0: 1 s, two sides 2 s */
	double cap_s; /* hard: workers are ended then; 0: 60 s, or 3 budgets if that is more */
	double timeout_s;    /* of one worker; 0: 60 s */
	double delta;        /* 0: 0.01 */
	double alpha;        /* 0: 0.05 */
	double confidence;   /* of the sides' estimates; 0: 0.95 */
	uint64_t processes;  /* (pairs) at most; 0: no limit but the budget */
	uint64_t iterations; /* of a batch; 0: found out first, on both sides */
	bool no_allocs;      /* leave the allocation pass out */
	bool as_they_are;    /* two sides: do not copy the programs first */
	bool fixed;    /* two sides: no look before the budget or `processes` are used up */
	uint64_t seed; /* of the coin and the padding; 0: from the clock */
	const volatile int *interrupted; /* set: stop, keep what there is; may be NULL */
	void (*progress)(void *ctx, const struct as_fn_result *so_far); /* may be NULL */
	void *progress_ctx;
	/*
	 * For a program that measures itself: what to do where a worker does not reach the benchmark
	 * (its name differs from run to run): answers as a worker does, in this process or a fork of
	 * it. NULL: that is a failure.
	 */
	int (*here)(void *ctx, const char *request, int fd);
	void *here_ctx;
	bool here_only; /* never start the program: it is no bench program from its beginning */
};
/* AS_OK also when the benchmark failed (ret->failed). AS_E_USAGE, AS_E_UNSUPPORTED (protocol),
 * AS_E_CANCELLED: interrupted before anything was measured. */
int as_fn_measure(const struct as_fn_request *q, struct as_fn_result *ret,
		  struct as_error *err);

/* ---- the two programs in a place of their own ---- */

/* Copies both the same way, in random order, into a new folder, paths of equal length: how a file was
 * written shows in its times. Kept for any number of measurements. */
struct as_fn_copies {
	char *folder, *path[2];
	bool same;   /* the two files are equal, byte for byte */
	bool copied; /* false: the originals are used (why[]), e.g. as they have $ORIGIN */
	char why[160];
};
int as_fn_copy(const struct as_fn_side side[2], uint64_t seed, struct as_fn_copies *ret,
	       struct as_error *err);
void as_fn_copies_clear(struct as_fn_copies *c); /* removes the folder */

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What benchmarks said: one run of `assay bench`, a stored one, or a file of another tool.
 *
 *	struct as_bench b;
 *	as_bench_init(&b);
 *	b.name = as_xstrdup("parse/small");	b.time = (struct as_bench_estimate){…};
 *	as_bench_note(&b.notes, "first-run", "the first run took %.1f times as long", x);
 *	as_vec_push(&set.benches, b);		the set owns it now
 *	as_bench_json(&set, &out);
 *	as_bench_set_clear(&set);
 *
 * Every number is in the unit the benchmark names ("s" for times, whatever the tool measured in).
 * NaN: not known. Texts are owned (as_xstrdup); NULL: none. Thread rule: none shared.
 */
#ifndef AS_RESULTS_RESULT_H
#define AS_RESULTS_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

/* Limits of what is read from a file. */
#define AS_BENCH_FILE_MAX    (256u << 20)
#define AS_BENCH_BENCHES_MAX 100000u

enum as_bench_kind { AS_BENCH_COMMAND, AS_BENCH_FUNCTION };

enum as_bench_verdict { /* of b against a */
			AS_BENCH_UNDECIDED,
			AS_BENCH_EQUAL,
			AS_BENCH_SLOWER,
			AS_BENCH_FASTER,
			AS_BENCH_MOVED, /* the machine code differs in place only */
			AS_BENCH_VERDICTS_
};
/* "undecided", "equal", …: the words of the JSON and of the terminal */
const char *as_bench_verdict_name(enum as_bench_verdict v);

enum as_bench_throughput {
	AS_THRPT_NONE,
	AS_THRPT_BYTES,
	AS_THRPT_ELEMENTS,
	AS_THRPT_BYTES_DECIMAL,
	AS_THRPT_BITS,
	AS_THRPT_ELEMENTS_AND_BYTES,
	AS_THRPT_COUNT_
};

struct as_bench_estimate {
	double value, low, high; /* 95 % */
};

/* kind: a word for the JSON: "first-run", "bimodal", "drift", "layout", "optimised-away",
 * "not-proportional", "setup-dominates", "timer", "cold", "warm-up", "debug-build", "in-process",
 * "disagree", "failed", …; text: one line for the reader. */
struct as_bench_note {
	char *kind, *text;
};
struct as_bench_notes {
	struct as_bench_note *v;
	size_t n, cap;
};
/* Pushes. */
void as_bench_note(struct as_bench_notes *notes, const char *kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

struct as_bench_param {
	char *name, *value;
};

struct as_bench {
	enum as_bench_kind kind;
	char *name;                     /* what the reader sees; unique per set and side */
	char *group, *function, *value; /* functions: parts of the name */
	char *side;                     /* "base", "head", a program; NULL: one side only */
	char *unit, *metric;            /* "s"; "cpu", "wall", "time", or a custom one's name */
	struct as_bench_estimate time;  /* the declared estimate, of `metric` */
	struct as_bench_estimate wall, cpu, user, system; /* commands: all; functions: two */
	double mean, median, min, max, sd;       /* plain, of the samples of `metric` */
	uint64_t processes, batches, iterations; /* iterations: per batch */
	AS_VEC(double) samples;                  /* one per process, in the order of the runs */
	AS_VEC(double) walls, cpus;              /* commands: beside samples; may be empty */
	AS_VEC(double) batch_times; /* functions: all batches in order, per iteration */
	AS_VEC(int) exit_codes;     /* commands */
	enum as_bench_throughput throughput;
	uint64_t throughput_n,
		throughput_n2; /* per iteration; n2: bytes of ELEMENTS_AND_BYTES */
	double allocs, alloc_bytes, peak_bytes; /* per iteration */
	double peak_rss;                        /* bytes, per run: the largest */
	AS_VEC(struct as_bench_param) params;
	struct as_bench_notes notes;
};
/* All zero, numbers that can be unknown NaN. */
void as_bench_init(struct as_bench *b);
void as_bench_clear(struct as_bench *b);
/* Fills mean, median, min, max, sd from samples (NaN ones left out), and `time` with what
 * as_runs_summarise says (stats/runs.h) where it is not known yet. */
void as_bench_summarise(struct as_bench *b);

struct as_bench_comparison {
	char *name, *a, *b;             /* names of the benches, or of the sides */
	char *metric;                   /* what decided */
	struct as_bench_estimate ratio; /* b / a, 95 % as if looked at once */
	struct as_bench_estimate by_wall, by_cpu, by_median;
	enum as_bench_verdict verdict;
	bool stored;        /* figures of different times: a trend, verdict stays undecided */
	double delta;       /* below it: equal */
	double p;           /* two-sided, of the ratio being 1 */
	uint64_t processes; /* pairs */
	double seconds;     /* spent */
	double seconds_needed; /* estimated still to decide; 0: decided, NaN: cannot be told */
	uint64_t dropped_failed, dropped_timeout;
	AS_VEC(double) d; /* ln ratio per pair, of metric */
	struct as_bench_notes notes;
};
void as_bench_comparison_init(struct as_bench_comparison *c);
void as_bench_comparison_clear(struct as_bench_comparison *c);

/* How time grows with a parameter, over the benches of one name (stats/complexity.h). */
struct as_bench_complexity {
	char *name, *param;
	char *best; /* "n log n", "cannot separate: n, n log n", "too few sizes" */
	double coefficient, intercept; /* of best; NaN where there is no single one */
	double exponent, exponent_low, exponent_high;
	double knee; /* n from which it grows faster; NaN: none */
	AS_VEC(double) n, t;
};
void as_bench_complexity_clear(struct as_bench_complexity *c);

struct as_bench_set {
	char *title, *machine, *toolchain, *revision;
	char *tool;      /* "assay 0.1.0", "criterion 0.3.6", "hyperfine 1.15.0" … */
	uint64_t time_s; /* since 1970 */
	double seconds;  /* wall, spent measuring; 0: not known */
	AS_VEC(struct as_bench) benches;
	AS_VEC(struct as_bench_comparison) comparisons;
	AS_VEC(struct as_bench_complexity) complexities;
	struct as_bench_notes notes;
	bool judged; /* as_bench_judge was here */
	const char *
		time_unit; /* static: that texts show times in: "us", "ms", "s"; NULL: as each fits */
};
void as_bench_set_clear(struct as_bench_set *s);
/* By name and side (NULL: any side); NULL when there is none. */
const struct as_bench *as_bench_find(const struct as_bench_set *s, const char *name,
				     const char *side);

/* docs/formats/bench-json.md, schema assay.bench/1. Pretty-printed, with a newline. */
void as_bench_json(const struct as_bench_set *s, struct as_buf *out);
/* Fills *ret, which is cleared on failure. Unknown fields are left aside; another schema number is an
 * error that says so. `what` names the source in messages. */
int as_bench_read(const char *what, const char *text, size_t n, struct as_bench_set *ret,
		  struct as_error *err);

#endif

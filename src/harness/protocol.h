/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The lines between whoever measures and a bench program: docs/formats/bench-protocol.md. Questions are
 * made by the driver and read by the worker; answers the other way round. Both directions are of
 * another program and maybe of another version: everything is checked.
 *
 * Thread rule: none shared.
 */
#ifndef AS_HARNESS_PROTOCOL_H
#define AS_HARNESS_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "harness/driver.h"

#define AS_BENCH_PROTOCOL 1
#define AS_BENCH_ENV      "ASSAY_BENCH_WORKER"
#define AS_BENCH_ENV_ID   "ASSAY_BENCH_ID"

enum as_ask {
	AS_ASK_LIST,
	AS_ASK_CALIBRATE,
	AS_ASK_MEASURE,
	AS_ASK_SERVE,
	AS_ASK_ALLOCATIONS,
	AS_ASKS_
};

struct as_question {
	enum as_ask ask;
	int fd, ctl; /* ctl: of AS_ASK_SERVE, else -1 */
	uint64_t nth, iterations, warmups, batches, limit_ms;
	bool full, prime;
};
void as_question_text(const struct as_question *q, struct as_buf *out);
/* AS_E_UNSUPPORTED: another version; ret->fd is set even then, -1 when it cannot be told. */
int as_question_parse(const char *text, struct as_question *ret, struct as_error *err);

#define AS_ANSWER_BYTES   (16u << 20) /* more is no answer */
#define AS_ANSWER_BATCHES 4096

struct as_answer_batch {
	double value, wall_ns, cpu_ns, rate, overlap;
	bool warmup;
};
/* Of `proportion`, twice the iterations' time over twice the time: within these it grows with them. */
#define AS_PROPORTION_LO 0.75
#define AS_PROPORTION_HI 1.5
/* NaN: not told. Zeroed and then as_answer_init. */
struct as_answer {
	char library[32];                   /* its version; "": no first line yet */
	AS_VEC(struct as_fn_entry) benches; /* `list`: all; else at most one */
	AS_VEC(struct as_answer_batch) batches;
	uint64_t reached_ns; /* 0: not reached */
	double clock_ns, loop_ns;
	bool calibrated;
	uint64_t iterations;
	double value, wall_ns, first_value, first_wall_ns, proportion;
	double voluntary, involuntary, migrations, minor_faults, major_faults, run_delay_ns;
	double allocs, alloc_bytes, peak_bytes;
	char *error; /* of the worker */
	bool unoptimised, missing, done;
};
void as_answer_init(struct as_answer *a);
void as_answer_clear(struct as_answer *a);
/* Forgets what one child of a server told: batches, usage, done. */
void as_answer_next(struct as_answer *a);
/* One line without its newline. AS_E_FORMAT: damaged; AS_E_UNSUPPORTED: of a version that we do not
 * know. A line whose first word is not known is left aside. */
int as_answer_line(struct as_answer *a, const char *line, size_t n, struct as_error *err);

/* Appends a tab and v as text; NaN: nothing after the tab. */
void as_line_num(struct as_buf *b, double v);
void as_line_u64(struct as_buf *b, uint64_t v);
void as_line_text(struct as_buf *b, const char *s); /* NULL: empty */
void as_line_bench(struct as_buf *b, const struct as_fn_entry *e);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Benchmarks of C and C++ functions. Link with -lassay-bench -lm -lpthread (pkg-config: assay-bench).
 *
 *	#include <assay/bench.h>
 *
 *	ASSAY_BENCH(checksum_4k)
 *	{
 *		static unsigned char page[4096];		// not timed
 *
 *		assay_throughput_bytes(b, sizeof page);
 *		ASSAY_ITER(b)					// timed
 *			assay_black_box(checksum(page, sizeof page));
 *	}
 *	ASSAY_BENCH_MAIN
 *
 *	cc -O2 bench.c -lassay-bench -lm -lpthread && ./a.out [FILTER]
 *
 * How it measures. The program starts itself again and again: each sample is a fresh process that
 * runs one benchmark, a few batches of about 1 ms, and tells the low quartile of their times. So the
 * interval that is shown holds what differs from process to process (addresses, page placement), which
 * repeating within one process never shows. The number of iterations of a batch is found out once and
 * is the same everywhere. A benchmark that crashes, hangs or exits is that benchmark's error; the others
 * go on, and the program's exit status is 1.
 *
 * Every declaration here is C99 and C++11. gcc 11 or clang 14 and later.
 */
#ifndef ASSAY_BENCH_H
#define ASSAY_BENCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ==== 1. benchmarks in C and C++ ==== */

/* What a benchmark's body talks to; its name there is `b`. Of one thread. */
struct assay_bencher;

/*
 * A function with this signature is called once per batch. It prepares what it needs, then runs the
 * timed loop once (ASSAY_ITER, ASSAY_ITER_INPUTS or assay_measured), then cleans up.
 */
typedef void (*assay_bench_body)(struct assay_bencher *b);

/*
 * for-loop that is timed: its statement runs as often as is wanted. Preparing and cleaning up around it
 * is not timed. Cost: one decrement and branch an iteration (about 0.3 ns; measured and printed by
 * `--verbose` as "empty loop"). Leave it by its end only: `break` and `return` inside are an error.
 */
#define ASSAY_ITER(b)                                                                          \
	for (uint64_t assay_n_ = assay_bencher_start(b); assay_n_ || assay_bencher_stop(b);    \
	     assay_n_--)

/* How many inputs are made ready at once before they are used, timed. */
enum assay_batch_size {
	ASSAY_SMALL_INPUT, /* a tenth of the iterations, while they fit the first-level cache */
	ASSAY_LARGE_INPUT, /* a thousandth of the iterations */
	ASSAY_PER_ITERATION /* one: the clock is read for each; from 1 us an iteration on */
};

/*
 * Each iteration gets an input of its own. `make` is a statement that fills *var, not timed; the loop's
 * statement uses *var, timed; `drop` is a statement that releases what *var holds, not timed.
 *
 *	ASSAY_ITER_INPUTS(b, struct list, l, ASSAY_SMALL_INPUT, list_fill(l, 100), list_free(l))
 *		list_sort(l);
 *
 * Inputs begin zeroed and are placed one after the other. Cost an iteration: a predicted branch (below
 * 0.5 ns) and the cache misses of walking the inputs.
 */
#define ASSAY_ITER_INPUTS(b, type, var, size, make, drop)                                      \
	for (size_t assay_n_; (assay_n_ = assay_chunk(b, sizeof(type), size)) != 0;)           \
		for (int assay_step_ = 0; assay_step_ < 3; assay_step_++)                      \
			for (type *var = (type *)assay_chunk_begin(b, assay_step_); var;       \
			     var = (type *)0)                                                  \
				for (size_t assay_left_ = assay_n_;                            \
				     assay_left_ || assay_chunk_end(b, assay_step_);           \
				     assay_left_--, var++)                                     \
					if (assay_step_ == 0) {                                \
						make;                                          \
					} else if (assay_step_ == 2) {                         \
						drop;                                          \
					} else

/* For a measurement of your own: run assay_iterations(b) iterations and say what they took. */
uint64_t assay_iterations(const struct assay_bencher *b);
/* value: of all iterations together, in `unit` ("instructions", "misses", …); NULL: nanoseconds. Zero is
 * a value like others. A unit whose first values agree exactly is not measured again and again. */
void assay_measured(struct assay_bencher *b, double value, const char *unit);

/* Work of one iteration, so that a rate is shown. Before the loop. */
void assay_throughput_bytes(struct assay_bencher *b, uint64_t n);
void assay_throughput_elements(struct assay_bencher *b, uint64_t n);

/* Of ASSAY_BENCH_ARGS: the argument; else 0. */
int64_t assay_arg(const struct assay_bencher *b);
/* Of ASSAY_BENCH_THREADS: which thread this is, from 0, and how many there are. */
unsigned assay_thread(const struct assay_bencher *b);
unsigned assay_threads(const struct assay_bencher *b);

/* The benchmark cannot be run here (a file is missing, …): reported as its error, with the text. Then
 * return without a loop. */
void assay_bench_fail(struct assay_bencher *b, const char *why);

/*
 * Keeps the compiler from dropping the computation of x, a number or pointer: x is made as if it were
 * used, and memory as if it were read and written. No instruction but what brings x into a register or
 * memory: 0 to 2 cycles. For a whole object pass its address.
 */
#define assay_black_box(x) __asm__ __volatile__("" : : "g"(x) : "memory")
/* x, a number or pointer, of which the compiler no longer knows the value: for arguments that it would
 * compute with beforehand. At most a move between registers. */
#define assay_hide(x)                                                                          \
	__extension__({                                                                        \
		__typeof__(x) assay_hidden_ = (x);                                             \
		__asm__ __volatile__("" : "+r"(assay_hidden_));                                \
		assay_hidden_;                                                                 \
	})

/* Defines and registers a benchmark; its body follows. In the order of the source. */
#define ASSAY_BENCH(name) ASSAY_BENCH_(name, NULL, 0, NULL, 0)
/* One for each argument, named name/ARG; the body reads it with assay_arg(b). Whole numbers. */
#define ASSAY_BENCH_ARGS(name, ...)                                                            \
	static const int64_t assay_args_##name[] = {__VA_ARGS__};                              \
	ASSAY_BENCH_(name, assay_args_##name,                                                  \
		     sizeof assay_args_##name / sizeof assay_args_##name[0], NULL, 0)
/*
 * One for each number of threads, named name/threads=N. Each thread calls the body; their loops begin
 * together, behind a barrier. The time is that of an iteration as a thread sees it, mean of the threads;
 * the rate of all together and how far their loops overlapped stand beside it.
 */
#define ASSAY_BENCH_THREADS(name, ...)                                                         \
	static const unsigned assay_counts_##name[] = {__VA_ARGS__};                           \
	ASSAY_BENCH_(name, NULL, 0, assay_counts_##name,                                       \
		     sizeof assay_counts_##name / sizeof assay_counts_##name[0])

/* The main function of a program that has nothing else to do. */
#define ASSAY_BENCH_MAIN                                                                       \
	int main(int argc, char **argv)                                                        \
	{                                                                                      \
		return assay_bench_main(argc, argv);                                           \
	}
/* Runs what was registered as the command line says (`--help`); returns the exit status. */
int assay_bench_main(int argc, char **argv);

/* ==== 2. under the macros ==== */

struct assay_bench_entry {
	const char *name;
	assay_bench_body body;
	const int64_t *args;
	size_t n_args; /* 0: none */
	const unsigned *threads;
	size_t n_threads; /* 0: one thread */
	unsigned flags;   /* ASSAY_BENCH_UNOPTIMISED */
	struct assay_bench_entry *next;
};
/* Keeps e, which must live on. Before main, or before assay_bench_main. */
void assay_bench_register(struct assay_bench_entry *e);

uint64_t assay_bencher_start(struct assay_bencher *b);
int assay_bencher_stop(struct assay_bencher *b); /* 0 */
size_t assay_chunk(struct assay_bencher *b, size_t input_bytes, enum assay_batch_size size);
void *assay_chunk_begin(struct assay_bencher *b, int step);
int assay_chunk_end(struct assay_bencher *b, int step); /* 0 */

#define ASSAY_BENCH_UNOPTIMISED 1u /* built without optimisation: said beside the result */
#ifdef __OPTIMIZE__
#define ASSAY_BENCH_BUILD_ 0u
#else
#define ASSAY_BENCH_BUILD_ ASSAY_BENCH_UNOPTIMISED
#endif
#define ASSAY_BENCH_(name, args, n_args, threads, n_threads)                                   \
	static void name(struct assay_bencher *b);                                             \
	static struct assay_bench_entry assay_entry_##name = {                                 \
		#name, name, args, n_args, threads, n_threads, ASSAY_BENCH_BUILD_, NULL};      \
	__attribute__((constructor)) static void assay_register_##name(void)                   \
	{                                                                                      \
		assay_bench_register(&assay_entry_##name);                                     \
	}                                                                                      \
	static void name(struct assay_bencher *b)

/* ==== 3. for other languages' harnesses ==== */
/*
 *	struct assay_bench *run = assay_bench_open(argc, argv, &settings);
 *	for every benchmark, in an order that is the same in each run:
 *		assay_bench_one(run, &spec, fn, ctx);
 *	return assay_bench_close(run);
 *
 * The same program is the one that asks and the ones that are asked: see docs/formats/bench-protocol.md.
 * assay_bench_one may end the process (in a worker, when its benchmark was measured). Everything from
 * one thread. Structs begin with their size, so that fields can be added: set it to sizeof.
 */
struct assay_bench;

/* Runs `iters` iterations and returns what was measured of all of them together: nanoseconds, or the
 * spec's unit. Called several times, from one thread (threads > 1: from each). */
typedef double (*assay_bench_fn)(void *ctx, uint64_t iters);

enum assay_throughput {
	ASSAY_THROUGHPUT_NONE,
	ASSAY_THROUGHPUT_BYTES,
	ASSAY_THROUGHPUT_ELEMENTS,
	ASSAY_THROUGHPUT_BYTES_DECIMAL,
	ASSAY_THROUGHPUT_BITS,
	ASSAY_THROUGHPUT_ELEMENTS_AND_BYTES
};
enum assay_sampling { ASSAY_SAMPLING_AUTO, ASSAY_SAMPLING_LINEAR, ASSAY_SAMPLING_FLAT };

/* 0 or NaN: as the settings of the run; there: the default. */
struct assay_bench_settings {
	uint32_t size;
	uint32_t flags;       /* ASSAY_BENCH_UNOPTIMISED */
	double warm_up_s;     /* not needed by the method; kept for what is written to files */
	double measurement_s; /* seconds to measure; default 1, two programs compared 2 */
	double noise;         /* differences below are equal; default 0.01 */
	double confidence;    /* of the intervals criterion's front shows; default 0.95 */
	double significance;  /* default 0.05 */
	uint64_t samples;     /* processes at most; 0: as many as there is time for */
	uint64_t resamples;   /* no use: nothing is resampled; kept as above */
	uint32_t sampling;    /* enum assay_sampling; kept as above */
	const char
		*front; /* "criterion": command line, files and text as criterion's; NULL: ours.
				* In assay_bench_open's only. */
};

/* A custom unit. Texts live as long as the run. */
struct assay_bench_unit {
	uint32_t size;
	const char *name; /* "instructions" */
	/* Value v (per iteration) as text with its unit, at most n bytes with the NUL; NULL: number and
	 * name. */
	void (*format)(void *ctx, double v, char *text, size_t n);
	void *ctx;
};

struct assay_bench_spec {
	uint32_t size;
	uint32_t threads; /* 0 and 1: one */
	/* The id is group/function/value of those that are not NULL or empty. */
	const char *group, *function, *value;
	uint32_t throughput;                  /* enum assay_throughput */
	uint64_t throughput_n, throughput_n2; /* n2: bytes of ELEMENTS_AND_BYTES */
	struct assay_bench_settings settings;
	const struct assay_bench_unit *unit; /* NULL: time */
};

/* What assay_bench_mode answers. */
enum assay_bench_mode {
	ASSAY_MODE_MAIN,   /* measures, through workers */
	ASSAY_MODE_WORKER, /* is asked for one benchmark, or for the list */
	ASSAY_MODE_LIST,   /* names only */
	ASSAY_MODE_TEST,   /* each once, not timed */
	ASSAY_MODE_PROFILE /* each for a while, for a profiler: see --profile-time */
};

/* Never NULL; bad arguments end the process with status 2 and one line on standard error. argv is kept. */
struct assay_bench *assay_bench_open(int argc, char *const *argv,
				     const struct assay_bench_settings *defaults);
enum assay_bench_mode assay_bench_mode(const struct assay_bench *run);
/* Nonzero: assay_bench_one would call fn, or measure it. For harnesses whose set-up is dear. */
int assay_bench_wants(struct assay_bench *run, const struct assay_bench_spec *spec);
/* 0; -1: it failed, which is reported and remembered. */
int assay_bench_one(struct assay_bench *run, const struct assay_bench_spec *spec,
		    assay_bench_fn fn, void *ctx);
/* Frees; returns the exit status: 0, 1 when a benchmark failed, else as the front documents. */
int assay_bench_close(struct assay_bench *run);

/*
 * The clock to be used within fn, in nanoseconds: begin reads it when a timed stretch begins, end when
 * it ends. Between the two allocations are counted (in a pass of its own), so a loop that makes its
 * inputs outside of them has them left out. About 25 ns each. Stretches do not nest.
 */
uint64_t assay_bench_begin(void);
uint64_t assay_bench_end(void);
/* Inputs to make ready at once for `iters` iterations, at least 1: what ASSAY_SMALL_INPUT and the others
 * mean. */
uint64_t assay_bench_chunk(uint64_t iters, size_t input_bytes, enum assay_batch_size size);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How sure a share of samples is, from the samples themselves.
 *
 * The run is cut into consecutive time blocks (the clusters). Samples of one block may depend
 * on each other: a program and a timer that beat, a burst that was lost, one long phase. So the
 * variance of a share is taken from how the blocks differ and compared with that of independent
 * samples; the ratio is the design effect, and the interval is that of n / deff samples.
 *
 *	as_blocks_init(&b, start_ns, end_ns, n_samples);
 *	for each sample in time order: as_blocks_add(&b, as_blocks_index(&b, time_ns), weight);
 *	as_blocks_finish(&b);
 *	for each sample of a row: as_share_add(&row, &b, as_blocks_index(&b, time_ns), weight);
 *	as_share_interval(&row, &b, &share);	share.lo, share.hi
 *
 * What the interval speaks of: the share in THIS run. With x_b the row's weight in block b, w_b
 * all weight, p = sum x / sum w and e_b = x_b - p w_b (the linearised ratio), p has variance
 *
 *	n / (2 (n-1)) * sum_b (e_b+1 - e_b)^2 / (sum w)^2
 *
 * the successive-difference estimator of systematic sampling. Only neighbours are compared,
 * because a program's phases (load, compute, write) are facts of the run and no sampling error:
 * the plain between-block variance n / (n-1) * sum e_b^2 would call a 3-phase program ±10 % at
 * 10,000 samples. Its ratio to the former is kept as `drift`. The price: a beat slower than two
 * blocks looks like a phase, which is why the recorder must jitter its intervals.
 *
 * One block holds all threads: blocks of different threads at the same time share CPUs and
 * locks, so treating them as independent would be wrong, and sums over threads carry their
 * covariance.
 *
 * The interval of one run is the wider of two: that of independent samples of unequal weight
 * (Kish: n = (sum w)^2 / sum w^2) with the normal quantile, and that of the variance above with
 * Student's, for about 2n/3 degrees of freedom. Both as one: n_eff is the number of independent
 * samples whose interval with the normal quantile is as wide. Where the blocks show nothing, their
 * number then costs nothing. A row (or all but it) is never worth less than one sample: few samples
 * tell nothing of their own design effect. With fewer than AS_BLOCKS_MIN blocks the data cannot tell
 * a variance.
 *
 * Runs: a session may hold several runs of one program (as_blocks_init_runs). Then the interval
 * speaks of the program's runs, not only of these: with x_r and w_r the sums over run r, R of them,
 *
 *	R / (R-1) * sum_r (x_r - p w_r)^2 / (sum w)^2
 *
 * the ultimate-cluster estimator, with Student's quantile for R - 1 degrees of freedom, is a third
 * interval, and the widest counts. R is (sum w_r)^2 / sum w_r^2: runs of unequal length tell less
 * (2 at the least). It needs AS_RUNS_MIN runs. No block holds samples of two runs. Runs that ended
 * because their interval had become narrow (until.h) ended more often when it happened to be
 * estimated too narrow; the variance is raised by the share AS_STOPPED_COST / R, which simulation
 * shows to restore the level for R from 10 to 100 (test_stats_trials.c).
 *
 * Sources: K. M. Wolter, Introduction to Variance Estimation, 2nd ed. 2007, ch. 2.4 (ultimate
 * clusters), 6 and 8.2 (ratio linearisation, successive differences); J. von Neumann et al., Ann.
 * Math. Stat. 12 (1941) 153 and Wolter for the degrees of freedom; L. Kish, Survey Sampling 1965,
 * 8.2, 11.7 (design effect, unequal weights); Q. McNemar, Psychometrika 12 (1947) 153 (comparison of
 * two shares).
 *
 * Cost: O(1) per sample and row (finding a sample's block: the logarithm of the number of runs),
 * 104 bytes a row, 8 bytes a block, 12 with runs (at most AS_BLOCKS_MAX and one for each run).
 * Not thread safe; as_share_add takes a finished as_blocks, which is then read-only.
 */
#ifndef AS_STATS_BLOCKS_H
#define AS_STATS_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AS_BLOCKS_MIN    8
#define AS_BLOCKS_MAX    1024
#define AS_BLOCK_SAMPLES 6 /* wanted in a block */
#define AS_RUNS_MIN      3 /* a variance of fewer says nothing */
#define AS_STOPPED_COST  2

struct as_run_span {
	uint64_t start_ns, end_ns;
};
struct as_block_run {
	uint64_t start_ns;
	uint32_t first, n; /* its blocks */
	double w;          /* weight; set by finish */
};

struct as_blocks {
	uint64_t start_ns, block_ns;
	double *w;          /* weight per block; w[n_blocks] */
	size_t n_blocks;    /* 1..AS_BLOCKS_MAX; with runs n_runs more at most */
	uint64_t n_samples; /* added so far */
	double sum_w;       /* = sum over blocks of w[b] */
	double sum_weight2; /* sum over samples of weight^2 */
	double sum_w2;      /* sum over blocks of w[b]^2; set by finish */
	double sum_dw2;     /* sum over neighbours of (w[b+1] - w[b])^2; set by finish */
	double quantile;    /* Student's for a variance from n_blocks; set by finish */
	/* Several runs; 0: one. run_of[block]: its run. */
	struct as_block_run *runs;
	uint32_t *run_of;
	size_t n_runs;
	size_t n_runs_used;  /* those with weight; set by finish */
	double sum_rw2;      /* sum over runs of w^2; set by finish */
	double runs_worth;   /* as many equal runs; set by finish */
	double run_quantile; /* Student's for runs_worth; set by finish */
	bool stopped; /* the caller's, before finish: runs ended because they were enough */
};

/*
 * One row of a table (a function, a line, a thread). Zero-initialised is empty.
 * The block that is still open is block_open with weight x_open.
 */
struct as_share_row {
	uint64_t n_samples;
	double sum_x;    /* including the open block */
	double sum_x2;   /* closed blocks */
	double sum_xw;   /* closed blocks */
	double sum_dx2;  /* closed pairs of neighbours */
	double sum_dxdw; /* closed pairs of neighbours */
	double x_open;   /* weight of the open block */
	double x_prev;   /* weight of the block right before it, 0 where the row was absent */
	double x_run;    /* weight of the open block's run without the open block */
	double sum_rx2;  /* closed runs */
	double sum_rxw;  /* closed runs */
	uint32_t block_open;
	uint32_t n_runs; /* closed runs where it was present; 0 in a session of one run */
};

struct as_share_estimate {
	double share;  /* 0..1; 0 when there are no samples */
	double lo, hi; /* 95 %; [0, 1] when there are no samples */
	double deff;   /* >= 1 */
	double n_eff;  /* independent, equal samples that would be as sure; <= n / deff */
	/* between-block over neighbour variance: about 1 steady, >> 1 in phases */
	double drift;
	double quantile; /* that goes with n_eff: 1.96 */
	uint32_t runs;   /* where the row is present; 0 in a session of one run */
};

/*
 * Chooses blocks of at least 20 ms and about AS_BLOCK_SAMPLES samples: long enough that samples
 * which depend on each other (those of one drawn period) share a block or two, short enough that a
 * hundred samples make sixteen blocks (with none, a beat goes unseen: 89 % covered instead of 97 %,
 * for 30 % of every 10 ms at 100 Hz, periods drawn every six samples) and that a program's own
 * changes are rarely taken for errors: 30 ms would widen those of one that changes every 30 ms by a
 * third. start_ns <= end_ns; as_blocks_clear after.
 */
void as_blocks_init(struct as_blocks *b, uint64_t start_ns, uint64_t end_ns,
		    uint64_t n_samples);
/*
 * The same for what was sampled within `scope` in `n` runs, one after the other. A block
 * belongs to one run; each run that reaches into that time has one at least. What comes between two
 * runs counts for the former. With fewer than two such runs as as_blocks_init.
 */
void as_blocks_init_runs(struct as_blocks *b, const struct as_run_span *runs, size_t n,
			 const struct as_run_span *scope, uint64_t n_samples);
void as_blocks_clear(struct as_blocks *b);
/* Any order; times outside the run fall into the first or last block. weight >= 0. */
uint32_t as_blocks_index(const struct as_blocks *b, uint64_t time_ns);
void as_blocks_add(struct as_blocks *b, uint32_t block, double weight);
void as_blocks_finish(struct as_blocks *b);

/*
 * In ascending block order; a straggler is counted in the row's newest block, which costs
 * accuracy of the design effect only. Count a sample once per row (recursion!).
 */
void as_share_add(struct as_share_row *r, const struct as_blocks *b, uint32_t block,
		  double weight);
/* The same for `samples` samples of one block at once, `weight` their sum. */
void as_share_add_many(struct as_share_row *r, const struct as_blocks *b, uint32_t block,
		       double weight, uint64_t samples);
void as_share_interval(const struct as_share_row *r, const struct as_blocks *b,
		       struct as_share_estimate *ret);

/*
 * Whether the data ranks the two rows apart at 95 %. For rows that exclude each other (self
 * figures) the samples of both are compared as a fair coin would be (McNemar), widened by the
 * larger design effect; where rows overlap (totals) this errs on the side of "not separable".
 */
bool as_rows_separable(const struct as_share_estimate *a, const struct as_share_estimate *b);

#endif

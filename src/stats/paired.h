/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What pairs of runs say: two sides measured next to each other, d = ln(b / a) per pair, and a
 * verdict that holds its error rate although it is looked at again and again.
 *
 *	as_sequence_init(&s, &(struct as_sequence_rule){.delta = 0.01, .floor = 0.005});
 *	for each pair:
 *		push d;
 *		if (as_sequence_due(&s, n)) {
 *			v = as_sequence_look(&s, d, n, elapsed / budget);
 *			if (v.verdict != AS_VERDICT_UNDECIDED) stop;
 *		}
 *
 * The estimate is the 20 % trimmed mean with the Yuen / Tukey-McLaughlin t interval: pairs cancel
 * what drifts slowly, trimming takes the spikes, and the interval keeps its level on heavy tails
 * where bootstrap and 35 % trimming do not. Looks come at 10 pairs and then 1.4 times as many;
 * look k may spend alpha t_k^2 - alpha t_(k-1)^2 of the error, t the fraction of the budget used,
 * and the boundary for it is found by integrating the score's density from look to look (a
 * Brownian motion with absorbing boundaries).
 *
 * Verdicts, on the interval of a look: equal when it lies within (-delta, delta); else slower when
 * its low end is above floor, faster when its high end is below -floor; else undecided. A true
 * difference between floor and delta may end as either, and either can be defended.
 *
 * Sources: K. K. Yuen, Biometrika 61 (1974) 165; J. W. Tukey, D. H. McLaughlin, Sankhya A 25
 * (1963) 331; K. K. G. Lan, D. L. DeMets, Biometrika 70 (1983) 659 (spending); P. Armitage et al.,
 * JRSS A 132 (1969) 235 (recursive integration). Measured to hold in this setting: see
 * docs/design/0010-paired-runs.md.
 *
 * Pure; any thread. Cost: n log n a look, 0.3 ms for its boundary.
 */
#ifndef AS_STATS_PAIRED_H
#define AS_STATS_PAIRED_H

#include <stdbool.h>
#include <stddef.h>

#define AS_PAIRED_TRIM   0.2
#define AS_PAIRED_FIRST  10  /* pairs before the first look */
#define AS_PAIRED_GROWTH 1.4 /* of the pairs from look to look */
#define AS_PAIRED_GRID   241 /* points of the density; odd */

/* Trimmed mean with its interval at level 1 - alpha. n < 3: value is the mean, lo and hi infinite. */
struct as_trimmed {
	size_t n;
	double value, lo, hi;
	double se; /* standard error; infinite for n < 3 */
};
/* trim: fraction cut at either end, 0 <= trim < 0.5. v is not changed. */
void as_trimmed_interval(const double *v, size_t n, double trim, double alpha,
			 struct as_trimmed *ret);

/* Median with the interval of order statistics (sign test) at level at least 1 - alpha; infinite
 * where n is too small for any (n < 6 at 5 %). */
void as_median_interval(const double *v, size_t n, double alpha, struct as_trimmed *ret);

enum as_verdict {
	AS_VERDICT_UNDECIDED,
	AS_VERDICT_EQUAL,
	AS_VERDICT_SLOWER, /* b takes more */
	AS_VERDICT_FASTER,
	AS_VERDICT_COUNT_
};
const char *as_verdict_name(enum as_verdict v); /* "undecided", … */

struct as_sequence_rule {
	double alpha; /* 0: 0.05 */
	double delta; /* differences below are equal, in ln units; 0: 0.01 */
	double floor; /* least low end of a difference; 0: delta / 2 */
};

struct as_sequence {
	struct as_sequence_rule rule;
	size_t next;  /* pairs of the next look */
	double t;     /* fraction of the budget at the last look */
	double spent; /* error spent so far */
	double bound; /* of the score at the last look: |S_t| < bound went on */
	double density
		[AS_PAIRED_GRID]; /* of the score over [-bound, bound], paths that went on */
	unsigned looks;
};

struct as_look {
	enum as_verdict verdict;
	struct as_trimmed interval; /* at the level this look had; for the verdict only */
	struct as_trimmed plain;    /* at 1 - alpha, as if looked at once: what is shown */
	double level; /* two-sided error this look was allowed, 0 < level <= alpha */
	bool mixture; /* trimmed and sign interval exclude each other: not one population */
	/* pairs that would decide at the present spread; 0: decided, or it cannot be told */
	size_t pairs_needed;
};

void as_sequence_init(struct as_sequence *s, const struct as_sequence_rule *rule);
bool as_sequence_due(const struct as_sequence *s, size_t n);
/* t: fraction of the budget used, 0 < t; at 1 and above the whole error may be spent. */
struct as_look as_sequence_look(struct as_sequence *s, const double *d, size_t n, double t);

/* The two-sided normal level at which a look at fraction t may reject, and the step to it: what
 * as_sequence_look uses, apart for tests and for other statistics. t must grow from call to call. */
double as_sequence_spend(struct as_sequence *s, double t);

#endif

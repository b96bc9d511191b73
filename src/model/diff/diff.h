/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Two sides compared, each one session or several of the same program: what takes another share of
 * the CPU time, and which of those differences are more than chance.
 *
 *	struct as_diff_request q = {.a = &ma, .na = 1, .b = &mb, .nb = 1, .query = query};
 *	r = as_diff_make(&q, &d, err);
 *	as_vec_foreach (row, &d->rows) …
 *	as_diff_free(d);
 *
 * Rows are matched by what survives a rebuild (identity.h); by line, a line keeps its place in its
 * function, so that code moved as a whole matches. Rows of one side that become the same are one.
 *
 * A session of several runs (record --trials) counts as that many sessions, unless a time range is asked.
 *
 * How a difference is judged. Each side's share has the interval of its samples (stats/blocks.h), and
 * their limits are joined (the square-and-add rule). Runs of one program differ by more than that.
 * With several sessions a side, the spread between them is measured per row and drawn towards that of
 * all rows (stats/spread.h), and is used where it is the larger. One session a side shows nothing of
 * it; what there is, is taken from the rows themselves: most functions have not changed, so that the
 * log odds of their self shares, against the usual change, differ by their sampling errors unless runs
 * differ; what is more widens all intervals (`between`, a random effect). That meets what runs differ
 * by in general, not the few rows that differ more than others: the verdict is of these two runs.
 * Levels are then adjusted for the number of rows that could be found (Benjamini-Hochberg).
 *
 *	up, down	the adjusted level is below 5 % and the difference at least min_effect
 *	equal		the whole interval lies within +-min_effect
 *	undecided	all else
 *
 * Sources: R. G. Newcombe, Stat. Med. 17 (1998) 873 (square-and-add); B. Efron, JASA 99 (2004) 96
 * (the null from the rows); R. C. Paule, J. Mandel, J. Res. NBS 87 (1982) 377 (random effect);
 * G. K. Smyth, SAGMB 3 (2004) 3 (moderated variance); Y. Benjamini, Y. Hochberg, JRSS B 57 (1995) 289.
 *
 * Thread rule: none shared; the models must outlive the diff.
 */
#ifndef AS_MODEL_DIFF_H
#define AS_MODEL_DIFF_H

#include "model/model.h"

#define AS_DIFF_MIN_EFFECT 0.005 /* half a percentage point */
#define AS_DIFF_MIN_ROWS   20    /* rows that tell a spread of all rows */

enum as_change {
	AS_CHANGE_UNDECIDED,
	AS_CHANGE_EQUAL,
	AS_CHANGE_UP,
	AS_CHANGE_DOWN,
	AS_CHANGE_COUNT_
};
const char *as_change_name(enum as_change c); /* "undecided", … */

struct as_diff_side {
	struct as_share share; /* of self or total, as asked; mean of the sessions */
	double cpu_s;      /* the same in seconds of CPU time, per run; NaN: not comparable */
	uint32_t sessions; /* runs that have the row, be it as a caller only */
};

struct as_diff_row {
	const char *name, *full_name, *module, *file, *crate;
	uint32_t line;
	struct as_diff_side a, b;
	double delta, low, high;               /* b - a of the shares, with 95 % bounds */
	double cpu_delta_s, cpu_low, cpu_high; /* NaN: not comparable */
	double widened;                        /* factor on the interval of its samples, >= 1 */
	double p, adjusted;                    /* level of "no difference"; after adjusting */
	enum as_change change;
	/* The share moved because the rest did: the row's own CPU time, with the machine's
	 * drift taken out, is not resolved. */
	bool share_only;
	uint32_t name_index;
	bool one_run; /* several sessions, and only one of a side has it */
};

struct as_diff_request {
	const struct as_model *const *a, *const *b;
	size_t na, nb;
	struct as_query query; /* filters and `by`; shape and alias are set here */
	bool total;            /* compare totals instead of self figures */
	double min_effect;     /* 0: AS_DIFF_MIN_EFFECT */
	double level;          /* of the adjusted test; 0: 0.05 */
	/* Rows are the nodes of both sides' call trees as one; totals. Not by thread or process. */
	bool tree;
};

struct as_diff_node {
	uint32_t row; /* of this node; AS_NONE: the root, or nothing of it was sampled */
	uint32_t parent, first_child, next_sibling; /* siblings by mean share, heaviest first */
	uint32_t depth;                             /* 0: the root, nodes.v[0] */
	double share;                               /* mean of the sides */
};

/* A function that is a frame of its own on one side and only inlined on the other. It has no row:
 * its time counts for the functions it is inlined into, on both sides. Without debug information of
 * inlined functions the same is done for one that is gone while its caller took over its time. */
struct as_diff_inlining {
	const char *name, *full_name;
	const char *into; /* most of it, where it is inlined */
	bool now;         /* inlined in b; else in a */
	bool likely;      /* no debug information says so */
	double a, b; /* shares, self or total as asked; b as the debug information has it */
};

struct as_diff {
	/* resolved first, by the size of the difference; then equal, undecided by size */
	AS_VEC(struct as_diff_row) rows;
	size_t counts[AS_CHANGE_COUNT_];
	size_t tests;            /* rows that levels are adjusted for */
	double cpu_a_s, cpu_b_s; /* per run; NaN: not known */
	/* One session a side: standard deviation of what changes of log odds have beyond samples */
	double between;
	double widened; /* of a typical row: factor on its samples' interval, >= 1 */
	double drift;   /* median ratio of the rows' CPU times, b / a; NaN: too few rows */
	AS_VEC(struct as_diff_node) nodes;         /* with request.tree */
	AS_VEC(struct as_diff_inlining) inlinings; /* by function; heaviest first */
	/* One side has no inlined functions for want of debug information, so that both are compared
	 * without: 1: a has none, 2: b; 0: all well. */
	int lacks_inlines;
	size_t runs[2]; /* of the sides: sessions, and the runs of those that have several */
	struct as_diff_request request;
	struct as_arena arena;
};

/* As as_profile_make. At least one session a side. */
int as_diff_make(const struct as_diff_request *q, struct as_diff **ret, struct as_error *err);
void as_diff_free(struct as_diff *d);

#endif

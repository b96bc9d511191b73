/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How time grows with the size of the work.
 *
 * Models are t = a + c g(n) with g one of 1, log n, n, n log n, n^2, n^3: an intercept, as what is
 * done once per call is part of every benchmark, and weights 1 / t^2, as errors of times are
 * relative to them and the largest size must not decide alone. Each model predicts every size from
 * all others; the mean squared relative error of these predictions is its loss. All models within
 * one standard error of the least loss are left, and those whose likelihood is not less by more
 * than e^3; when that is one, it is the answer, else they cannot be told apart. A constant is
 * nested in all others: it is the answer when it is left and the exponent's interval allows no
 * growth worth a word.
 *
 * Where one more term predicts better than any single one beyond that error, the growth has a knee:
 * either a steeper term takes over (the n^2 that only shows at scale), or the same one becomes
 * dearer (a cache is left).
 *
 *	as_growth_fit(n, t, count, &g);
 *	as_growth_text(&g, &out);	"n log n", "cannot separate: n, n log n"
 *
 * exponent: e of t = a + c n^e, with the interval of e whose fits are no worse than F allows.
 *
 * Unit independent: t and 1000 t give the same answer and a 1000-fold coefficient. Sizes and times
 * must be above 0, others are passed over; n = 1 is a size like others.
 *
 * Sources: M. Stone, JRSS B 36 (1974) 111 (leave-one-out choice); L. Breiman et al., Classification
 * and Regression Trees, 1984, 3.4.3 (standard error rule); D. M. Bates, D. G. Watts, Nonlinear
 * Regression Analysis, 1988, 6.1 (profile interval); D. M. Allen, Technometrics 16 (1974) 125
 * (error of a point left out).
 *
 * Pure; any thread. Cost: k for k sizes and model, some 2 k of those, and 600 for the exponent: 5
 * ms for 64 sizes.
 */
#ifndef AS_STATS_COMPLEXITY_H
#define AS_STATS_COMPLEXITY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define AS_GROWTH_SIZES 5  /* fewer tell nothing */
#define AS_GROWTH_RANGE 10 /* the largest over the least: a decade */
#define AS_GROWTH_MAX   64 /* sizes; of more every so many is taken */

enum as_growth { AS_G_CONST, AS_G_LOG, AS_G_N, AS_G_N_LOG, AS_G_N2, AS_G_N3, AS_G_COUNT_ };
extern const char *const as_growth_names[AS_G_COUNT_]; /* "1", "log n", … */

enum as_growth_state {
	AS_GROWTH_FOUND,
	AS_GROWTH_SEVERAL,   /* `left` has more than one */
	AS_GROWTH_FEW_SIZES, /* nothing else is set but `sizes` */
	AS_GROWTH_NARROW,    /* less than a decade; the same */
	AS_GROWTH_NONE,      /* no model describes the times: each is off by a third or more */
};

struct as_growth_fit {
	enum as_growth_state state;
	size_t sizes;        /* distinct ones that were used */
	enum as_growth best; /* FOUND: it; SEVERAL: the one of the least loss */
	bool left[AS_G_COUNT_];
	double loss[AS_G_COUNT_];      /* root of the mean squared relative error */
	double coefficient, intercept; /* of best: t = intercept + coefficient g(n) */
	double exponent, low, high;    /* 95 %; NaN: not known, or not bounded on that side */
	double knee;                   /* n where it begins to cost more; NaN: none */
	enum as_growth after;          /* what it grows with beyond the knee */
};
void as_growth_fit(const double *n, const double *t, size_t count, struct as_growth_fit *ret);
double as_growth_value(enum as_growth g, double n); /* g(n), n > 0 */
void as_growth_text(const struct as_growth_fit *f, struct as_buf *out);

#endif

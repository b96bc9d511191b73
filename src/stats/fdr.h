/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Many comparisons at once: how many of those called changes may be chance, and whether all of them
 * lean to one side, which is what a process that makes false alarms looks like.
 *
 *	as_fdr_adjust(p, n, q);		reject where q[i] <= 0.05: of these at most 5 % are false
 *	as_sign_test(14, 1)		0.00098: 14 up and 1 down is no chance
 *
 * Benjamini and Hochberg's step-up procedure. It holds for tests that are independent or depend on
 * each other positively, as benchmarks on one machine do.
 *
 * Sources: Y. Benjamini, Y. Hochberg, JRSS B 57 (1995) 289; Y. Benjamini, D. Yekutieli, Ann. Stat.
 * 29 (2001) 1165 (positive dependence); W. J. Dixon, A. M. Mood, JASA 41 (1946) 557 (sign test).
 *
 * Pure; any thread. Cost: n log n; the sign test n.
 */
#ifndef AS_STATS_FDR_H
#define AS_STATS_FDR_H

#include <stddef.h>
#include <stdint.h>

/* ret_q[i]: the least false discovery rate at which p[i] is still a discovery, 0..1. NaN in p stays NaN
 * and is no test. ret_q may be p. */
void as_fdr_adjust(const double *p, size_t n, double *ret_q);

/* Two-sided, exact: that a fair coin falls at least as unevenly. 1 for none. */
double as_sign_test(uint64_t up, uint64_t down);

/* Two-sided p of t = estimate / standard error with df degrees of freedom; NaN for df <= 0 or NaN. */
double as_student_p(double t, double df);

#endif

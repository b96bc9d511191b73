/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Do samples keep step with a period of the program?
 *
 * Two things are needed for it. The sampler's intervals must be alike: jittered ones meet every phase
 * of any period. And what is sampled must come and go in a beat, the difference of the two
 * frequencies: a row's presence, sample after sample, has an autocorrelation that falls below zero
 * and rises again. A program that merely stays in a function for a while, or has one phase after
 * the other, has one that falls to zero and stays there. Without a beat, when both periods are
 * the same, samples cannot tell; then only intervals that differ help.
 *
 * Alike is measured by the resultant of the intervals' phases in their own median (Rayleigh):
 * 1 for equal intervals, 0 for those drawn from half to three halves of it.
 *
 * Source of the latter: K. V. Mardia, P. E. Jupp, Directional Statistics, 2000, ch. 2.
 *
 * Pure; any thread. Cost: n log n, and n / 6 lags of the n samples for a beat, n <= AS_BEAT_SAMPLES.
 */
#ifndef AS_STATS_LOCKSTEP_H
#define AS_STATS_LOCKSTEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AS_BEAT_SAMPLES   4096
#define AS_BEAT_MIN       400 /* fewer samples tell nothing */
#define AS_INTERVALS_LIKE 0.5 /* from here on intervals are alike */

/* 0 to 1; NaN for n < 2. v is not changed; values of 0 or more than 3 medians do not count. */
double as_intervals_likeness(const double *v, size_t n);
/* Samples of a period of x (0 or 1 per sample); 0: there is none. */
size_t as_beat(const uint8_t *x, size_t n);

#endif

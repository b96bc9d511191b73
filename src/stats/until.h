/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * When has enough been recorded? When the interval of every row with AS_UNTIL_SHARE or more is
 * within +- `target` of its middle. Looked at again and again, which stops too early where the
 * variance happens to be estimated too small; so the first look waits for AS_UNTIL_RUNS runs, or
 * AS_UNTIL_FIRST_S seconds of one run, and looks come when the recording has grown by a quarter
 * at the least. How much coverage that costs is measured in tests/unit/stats/test_stats_trials.c.
 *
 * Pure; any thread.
 */
#ifndef AS_STATS_UNTIL_H
#define AS_STATS_UNTIL_H

#include <stdbool.h>

#define AS_UNTIL_SHARE   0.05
#define AS_UNTIL_RUNS    10
#define AS_UNTIL_FIRST_S 1

/* Of the recording so far that would be enough, >= 1; widths shrink with the square root. */
double as_until_factor(double half_width, double target);
/* Of the recording so far when the next look is due; factor may be infinite: not known. */
double as_until_growth(double factor);

#endif

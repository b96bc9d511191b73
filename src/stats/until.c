/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* When has enough been recorded: see until.h. */
#include "stats/until.h"

#include <math.h>

static const double GROWTH_MIN = 1.25, GROWTH_MAX = 3, UNKNOWN = 2, SHORT_OF = 0.95;

double as_until_factor(double half_width, double target)
{
	return fmax(1, half_width * half_width / (target * target));
}

double as_until_growth(double factor)
{
	if (!isfinite(factor))
		return UNKNOWN;
	return fmin(fmax(SHORT_OF * factor, GROWTH_MIN), GROWTH_MAX);
}

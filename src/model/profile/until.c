/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "model/profile/until.h"

#include <math.h>

#include "stats/until.h"

/* Fewer say nothing of their own variance. */
#define SAMPLES_MIN 200

void as_profile_until(const struct as_profile *p, double target, struct as_until *ret)
{
	*ret = (struct as_until){.factor = INFINITY};
	as_vec_foreach (r, &p->rows) {
		double half = (r->total.high - r->total.low) / 2;

		if (r->total.value < AS_UNTIL_SHARE || half <= ret->half_width)
			continue;
		ret->half_width = half;
		ret->row = r;
	}
	if (!ret->row)
		return;
	ret->factor = as_until_factor(ret->half_width, target);
	if (p->samples < SAMPLES_MIN)
		ret->factor = fmax(ret->factor, (double)SAMPLES_MIN / (double)p->samples);
	ret->enough = ret->factor <= 1;
}

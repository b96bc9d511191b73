/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Are a profile's rows known well enough? The rule is that of stats/until.h. */
#ifndef AS_MODEL_UNTIL_H
#define AS_MODEL_UNTIL_H

#include "model/model.h"

struct as_until {
	bool enough;
	double factor;            /* as_until_factor of the worst row; infinite: no row tells */
	double half_width;        /* of that row's total */
	const struct as_row *row; /* NULL: none has AS_UNTIL_SHARE */
};
/* p: flat, by function. target: half width of an interval, 0.01 is a percentage point. */
void as_profile_until(const struct as_profile *p, double target, struct as_until *ret);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* plan.c: what is asked for; counters.c: what of it this machine has. */
#ifndef AS_MEASURE_PLAN_PRIV_H
#define AS_MEASURE_PLAN_PRIV_H

#include "measure/plan.h"

/* Anew, after events have been left out. */
void as_plan_add_derived(struct as_plan *p);

#endif

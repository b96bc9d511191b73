/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The fronts there are: see front.h. The first is the default. */
#include "harness/criterion/criterion.h"
#include "harness/front.h"

const struct as_bench_front *const as_bench_fronts[] = {&as_plain_front, &as_criterion_front,
							NULL};

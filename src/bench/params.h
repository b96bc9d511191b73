/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Parameters of commands: `--param n 1..8` makes eight commands of one with {n} in it.
 *
 *	as_params_add(&p, "n", "1..100..10", err);	1, 11, …, 91; or a list: a,b,c (\, is a comma)
 *	as_params_add(&p, "d", "0.1..0.5..0.2", err);	decimals are exact: 0.1, 0.3, 0.5
 *	for (i = 0; i < as_params_count(&p); i++)
 *		text = as_params_fill(&p, i, "./app {n} {d}");
 *
 * Combinations count up with the first parameter fastest. Pure; any thread.
 */
#ifndef AS_BENCH_PARAMS_H
#define AS_BENCH_PARAMS_H

#include <stddef.h>
#include "base/err.h"

#define AS_PARAMS_VALUES_MAX 1000 /* of one, and combinations of all */

struct as_param {
	char *name;
	char **v;
	size_t n, cap;
};
struct as_params {
	struct as_param *v;
	size_t n, cap;
};
/* values: A..B, A..B..STEP or a list. */
int as_params_add(struct as_params *p, const char *name, const char *values,
		  struct as_error *err);
/* Numbers from min to max by step (NULL: 1), as hyperfine's -P and -D. */
int as_params_scan(struct as_params *p, const char *name, const char *const range[3],
		   struct as_error *err);
size_t as_params_count(const struct as_params *p); /* 1 when there are none */
/* Value of parameter k in combination i. */
const char *as_params_value(const struct as_params *p, size_t i, size_t k);
/* text with each {name} replaced; NULL stays NULL. Caller frees. */
char *as_params_fill(const struct as_params *p, size_t i, const char *text);
void as_params_clear(struct as_params *p);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Figures that follow from others, as text: "branch_misses / branches". Names (letters, digits, '_',
 * '.'), numbers, + - * / and parentheses, max(a, b).
 *
 * Pure; any thread.
 */
#ifndef AS_MEASURE_FORMULA_H
#define AS_MEASURE_FORMULA_H

#include <stdbool.h>
#include <stddef.h>

/* NaN: there is no such name, or it was not measured. */
typedef double as_formula_value(void *ctx, const char *name, size_t n);

/* NaN for what is no formula, for a name that is NaN, and for a division by zero. */
double as_formula(const char *text, as_formula_value *value, void *ctx);

#endif

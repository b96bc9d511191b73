/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Kernel and kernel-module functions from /proc/kallsyms text, read once at record time. When
 * the addresses are hidden (kptr_restrict) `hidden` is set and every look-up answers NULL. */
#ifndef AS_SYMBOL_KALLSYMS_H
#define AS_SYMBOL_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct as_kallsyms;
/* path NULL: /proc/kallsyms */
int as_kallsyms_load(const char *path, struct as_kallsyms **ret, struct as_error *err);
int as_kallsyms_parse(const char *text, size_t n, struct as_kallsyms **ret,
		      struct as_error *err);
void as_kallsyms_free(struct as_kallsyms *k);
bool as_kallsyms_hidden(const struct as_kallsyms *k);
/* Name of the function that holds addr; NULL when none. *ret_module is NULL for the core kernel. */
const char *as_kallsyms_find(const struct as_kallsyms *k, uint64_t addr, uint64_t *ret_start,
			     const char **ret_module);

#endif

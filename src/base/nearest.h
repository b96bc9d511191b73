/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What somebody may have meant who typed something else. Pure; any thread. */
#ifndef AS_BASE_NEAREST_H
#define AS_BASE_NEAREST_H

#include <stddef.h>

/* The candidate closest to word (at most a third of its letters wrong, or a prefix); NULL: none
 * near. */
const char *as_nearest(const char *word, const char *const *candidates, size_t n);

#endif

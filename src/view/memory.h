/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What reports say of sessions of memory beside the table. */
#ifndef AS_VIEW_MEMORY_H
#define AS_VIEW_MEMORY_H

#include "view/trust.h"

/* "peak 8.3 MiB after 1.2 s · live at the end 1.2 MiB in 332 blocks · 1.43 M allocations of 120 MiB",
 * and which measure the table is in. */
void as_memory_header(const struct as_model *m, const struct as_style *style,
		      struct as_buf *out);
/* Figures of the trust block: as as_trust_lines. */
void as_memory_trust(const struct as_model *m, struct as_trust_lines *ret);
/* Other measures that have something to say. file: the session as the user named it, or NULL. */
void as_memory_next(const struct as_model *m, const char *file, const struct as_style *style,
		    struct as_buf *out);
/* An amount as a whole number; what a damaged session may claim is cut. */
uint64_t as_memory_whole(double amount);
/* "4.2 MiB" or "1,234", by the model's measure. */
void as_memory_amount(const struct as_model *m, double amount, struct as_buf *out);

#endif

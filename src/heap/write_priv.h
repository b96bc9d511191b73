/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inside of write.h. */
#ifndef AS_HEAP_WRITE_PRIV_H
#define AS_HEAP_WRITE_PRIV_H

#include "heap/write.h"

/* write_leaks.c: what a look at the process found; row_of: of each tally. */
void as_heap_write_look(struct as_heap_writer *o, uint32_t process, const uint32_t *row_of,
			const struct as_heap *h);

#endif

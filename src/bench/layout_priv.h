/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Padding as an object file. */
#ifndef AS_BENCH_LAYOUT_PRIV_H
#define AS_BENCH_LAYOUT_PRIV_H

#include <stdint.h>
#include "base/buf.h"

#define AS_LAYOUT_LEAST 4 /* pairs of builds before a verdict */

/* An ELF object (64 bits, little endian) with one section of code, size_bytes of zeros, which the global
 * symbol names; appended to out. */
void as_layout_pad_object(uint16_t machine, const char *symbol, uint64_t size_bytes,
			  struct as_buf *out);

#endif

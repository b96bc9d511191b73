/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Text pieces shared inside base: one strict UTF-8 decoder for JSON, quoting and width. */
#ifndef AS_BASE_FMT_PRIV_H
#define AS_BASE_FMT_PRIV_H

#include <stddef.h>
#include <stdint.h>

/*
 * Length of the well-formed UTF-8 sequence at s (Unicode table 3-7: no surrogates, no over-long
 * forms, at most U+10FFFF) and its code point; 0 when the first byte starts none within n bytes.
 */
size_t as_utf8_decode(const char *s, size_t n, uint32_t *ret_code);

#endif

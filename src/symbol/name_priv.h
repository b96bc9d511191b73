/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Scanning demangled names. A name is text with nested <>, (), [], {}; "->" closes nothing, and
 * what stands in character or string literals or after C++'s "operator" is no bracket.
 */
#ifndef AS_SYMBOL_NAME_PRIV_H
#define AS_SYMBOL_NAME_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include "base/buf.h"

#define AS_NAME_MAX_DEPTH 48          /* deeper generics are written as "_" */
#define AS_NAME_MAX_OUT   (16u << 10) /* longer short forms are cut */
#define AS_NAME_MAX_PARTS 24          /* of a longer path only the last ones are kept */

struct as_span {
	const char *p;
	size_t n;
};

static inline struct as_span as_sub(struct as_span s, size_t from, size_t to)
{
	return (struct as_span){s.p + from, to - from};
}
static inline struct as_span as_span_of(const char *s, size_t n)
{
	return (struct as_span){s, n};
}
bool as_span_is(struct as_span s, const char *word);
bool as_span_starts(struct as_span s, const char *word);
struct as_span as_span_trim(struct as_span s);

bool as_is_ident(char c); /* letters, digits, _, $, bytes of UTF-8 */
/* Index after the bracket group that opens at i; s.n when it does not close. */
size_t as_skip_group(struct as_span s, size_t i);
/* Index after the one token at i: a character literal, a string, a group, an identifier, or a
 * byte. */
size_t as_skip_token(struct as_span s, size_t i);
/* Index of word outside of groups from `from` on; s.n when absent. */
size_t as_find_top(struct as_span s, size_t from, const char *word);

struct as_name_out {
	struct as_buf *b;
	size_t start;
	bool fold; /* AS_NAME_FOLD_GENERICS */
	bool full; /* the limit was reached: nothing is added any more */
};
void as_name_add(struct as_name_out *o, const char *p, size_t n);
void as_name_adds(struct as_name_out *o, const char *s);

void as_name_short_rust(struct as_name_out *o, struct as_span s);
void as_name_short_cxx(struct as_name_out *o, struct as_span s);
struct as_span as_name_crate_rust(struct as_span s);

#endif

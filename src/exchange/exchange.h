/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Session models to and from other programs' formats.
 *
 * Folded stacks, one line per distinct stack, sorted by text:
 *
 *	main;parse;next_token 120
 *
 * outermost frame first, ';' between frames, a blank and the weight last: what inferno,
 * flamegraph.pl and speedscope read. Where a name holds bytes that the format needs for itself,
 *a look-alike is written that these tools show as it was meant; as_folded_parse turns it back,
 *so that parse(print(x)) = x:
 *
 *	;	U+037E GREEK QUESTION MARK	(looks like ';')
 *	LF, CR	U+2424, U+240D			(control pictures)
 *	NUL	U+2400
 *	blank	U+00A0 NO-BREAK SPACE at either end of a name, and before a last word that could
 *be taken for the weight (" 12", " 1.5")
 *	'#'	U+FF03 at the start of a line (some tools take it for a comment)
 *	an empty name		U+2205
 *	U+241B and the look-alikes above, where a name really holds them: U+241B in front
 *
 * Names stay bytes: what is not UTF-8 passes through unchanged.
 */
#ifndef AS_EXCHANGE_EXCHANGE_H
#define AS_EXCHANGE_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "model/model.h"

struct as_folded_options {
	const struct as_query
		*query;   /* scope and filters, not by and shape; NULL: everything */
	bool by_thread;   /* first frame: the thread's name */
	bool by_process;  /* first frame (before the thread): the process's name */
	bool weight_ns;   /* weights in the recording's unit (ns) instead of samples */
	bool mark_kernel; /* kernel frames get the suffix "_[k]" */
	bool full_names;
};
/* Appends the lines to out. AS_E_USAGE as as_profile_make. */
int as_export_folded(const struct as_model *m, const struct as_folded_options *o,
		     struct as_buf *out, struct as_error *err);

/* One frame's name in its escaped form; first: it begins a line, last: the weight follows. */
void as_folded_escape(struct as_buf *out, const char *name, size_t n, bool first, bool last);

/* Calls fn per line, frames unescaped and outermost first, in the order of the text; blank
 * lines and lines that begin with '#' are skipped. fn returns 0 to go on. A line without a
 * weight is AS_E_FORMAT. Weights with a fraction are rounded down. */
typedef int (*as_folded_fn)(void *ctx, const struct as_str *frames, size_t nframes,
			    uint64_t weight);
int as_folded_parse(const char *text, size_t n, as_folded_fn fn, void *ctx,
		    struct as_error *err);

#endif

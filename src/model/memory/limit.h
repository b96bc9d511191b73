/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How much more memory a build may use than another: one line of text, held against two sessions.
 *
 *	r = as_heap_limit_parse(text, &limit, err);
 *	r = as_heap_limit_check(&limit, before, after, &q, &out, &beyond, err);
 *	as_heap_limit_clear(&limit);
 *
 * One limit:
 *
 *	total(FUNCTION) > +5%		of a function with what it calls, in the sessions' measure
 *	self(FUNCTION) > +64KiB		of the function itself
 *	peak > +5%			of the whole: WHAT[(SCOPE=VALUE,…)] as in a budget
 *	allocs(in=parse) > +0
 *
 * The bound is a part of what it was before (%), or an amount. What was nothing before may not become
 * anything by a bound in %. Figures were counted: a difference is one, there is no interval.
 */
#ifndef AS_MODEL_MEMORY_LIMIT_H
#define AS_MODEL_MEMORY_LIMIT_H

#include "model/memory/budget.h"
#include "model/memory/diff.h"

struct as_heap_limit {
	char *text;
	bool of_function, total; /* self(…) or total(…); else budget says what */
	char *function;
	struct as_heap_budgets budget; /* one, of which the bound is not looked at */
	bool relative;
	double part;  /* relative: 0.05 for 5% */
	char *amount; /* else: as typed, read when the unit is known */
};
/* AS_E_USAGE with what a limit looks like. */
int as_heap_limit_parse(const char *text, struct as_heap_limit *ret, struct as_error *err);
void as_heap_limit_clear(struct as_heap_limit *l);
/* q: as_heap_diff_make's, whose models are in the measure that is asked of functions. Appends a line for
 * each figure beyond the limit, or one that nothing was seen there. */
int as_heap_limit_check(const struct as_heap_limit *l, const struct as_heap_diff_request *q,
			struct as_buf *out, bool *ret_beyond, struct as_error *err);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Budgets of memory: what a run may not use, as one line of text, held against a session.
 *
 *	struct as_heap_budgets b;
 *	r = as_heap_budgets_parse(texts, n, &b, err);	before the program runs: mistakes are told early
 *	r = as_heap_budgets_check(&b, model, &out, &broken, err);
 *	as_heap_budgets_clear(&b);
 *
 * One budget:
 *
 *	WHAT [ '(' SCOPE=VALUE { ',' SCOPE=VALUE } ')' ]  ( > | >= | < | <= | == | != )  BOUND
 *
 *	peak > 50MiB			allocs(in=parse) > 0		live(thread=worker) >= 1MiB
 *
 * WHAT: allocs, frees, reallocs, churn, failed (counts); bytes, live, peak, growth, copied, mapped,
 * leaked (bytes). BOUND: a count, with k, M or G for thousands; or bytes, with KiB, MiB, GiB (K, M, G
 * likewise powers of 1024). SCOPE: `in`, a function somewhere in the stack; `thread`, part of a name
 * or a number; `process`, likewise; `module`, part of the path of the innermost function's. VALUE goes
 * to the next ',' or ')' outside brackets, or stands in quotes ("" or '').
 *
 * `in=parse` is the function of just this name where there is one, else each whose path has it as a
 * part ("app::parse", "app::parse::{closure#0}", not "app::sparse"). A function that no stack has
 * allocated nothing: 0, and is told, since it may be a mistake.
 *
 * A budget is broken when what it says holds: it is what must not be. The peak is that of the process
 * that had most; within a scope, what that scope had when its process was at its peak. All else is
 * summed over processes and threads.
 */
#ifndef AS_MODEL_HEAP_BUDGET_H
#define AS_MODEL_HEAP_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include "base/buf.h"
#include "base/err.h"
#include "model/model.h"

enum as_budget_what {
	AS_BUDGET_ALLOCS,
	AS_BUDGET_FREES,
	AS_BUDGET_REALLOCS,
	AS_BUDGET_CHURN,
	AS_BUDGET_FAILED,
	AS_BUDGET_BYTES, /* from here on bytes */
	AS_BUDGET_LIVE,
	AS_BUDGET_PEAK,
	AS_BUDGET_GROWTH,
	AS_BUDGET_COPIED,
	AS_BUDGET_MAPPED,
	AS_BUDGET_LEAKED,
	AS_BUDGET_WHATS
};
enum as_budget_scope {
	AS_BUDGET_IN,
	AS_BUDGET_THREAD,
	AS_BUDGET_PROCESS,
	AS_BUDGET_MODULE,
	AS_BUDGET_SCOPES
};
enum as_budget_compare {
	AS_BUDGET_ABOVE,
	AS_BUDGET_AT_LEAST,
	AS_BUDGET_BELOW,
	AS_BUDGET_AT_MOST,
	AS_BUDGET_EQUAL,
	AS_BUDGET_UNEQUAL,
	AS_BUDGET_COMPARES
};

struct as_heap_budget {
	char *text; /* as typed */
	enum as_budget_what what;
	enum as_budget_compare compare;
	uint64_t bound;
	char *scope[AS_BUDGET_SCOPES]; /* NULL: not said */
};
struct as_heap_budgets {
	struct as_heap_budget *v;
	size_t n;
};
/* What a budget comes to. */
struct as_heap_spent {
	uint64_t amount;
	bool broken;
	bool seen; /* something is in its scope */
};

/* AS_E_USAGE: the first one that is none, with a mark where it stops making sense. ret owns copies of
 * the texts; cleared on failure. */
int as_heap_budgets_parse(const char *const *texts, size_t n, struct as_heap_budgets *ret,
			  struct as_error *err);
void as_heap_budgets_clear(struct as_heap_budgets *b);

/* AS_E_USAGE: the session is not of memory, or leaks were not looked for. */
int as_heap_budget_spend(const struct as_heap_budget *b, const struct as_model *m,
			 struct as_heap_spent *ret, struct as_error *err);
/* All of them: appends a line per broken one, figure and bound, and one per scope in which nothing
 * is. Safe for a terminal. ret_broken: any is. */
int as_heap_budgets_check(const struct as_heap_budgets *b, const struct as_model *m,
			  struct as_buf *out, bool *ret_broken, struct as_error *err);

/* "50MiB", or where it is a count "10k": AS_OK, or AS_E_USAGE without a message. */
int as_heap_parse_amount(const char *text, bool bytes, uint64_t *ret);
bool as_heap_budget_is_bytes(const struct as_heap_budget *b);

/* Whether a function is meant by `name` (see above); exactly: only by its whole name. */
bool as_heap_function_matches(const struct as_m_function *f, const char *name, bool exactly);

#endif

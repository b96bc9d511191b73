/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* --save and --baseline of assay stat: the history, and an old program run again beside a new one. */
#ifndef AS_CLI_STAT_BASELINE_H
#define AS_CLI_STAT_BASELINE_H

#include "base/buf.h"
#include "base/err.h"

/* argv: the program and its arguments. result: JSON of the runs. */
int as_baseline_save(const char *name, char *const *argv, const struct as_buf *result,
		     struct as_error *err);

struct as_baseline {
	char **before; /* the copy of the old program, with the arguments it had */
	char **now; /* the program of today, copied in the same way, with its own arguments */
	/* "note   …" lines: it was saved on another machine, or ran with other arguments; NULL: neither */
	char *note;
	char *text; /* "'main' of 2026-11-30 14:02, AMD EPYC, 2 CPUs, Linux 6.18" */
};
int as_baseline_load(const char *name, char *const *argv, struct as_baseline *ret,
		     struct as_error *err);
void as_baseline_clear(struct as_baseline *b);

#endif

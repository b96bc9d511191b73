/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A command as one text, split into the words a program gets, without a shell.
 *
 *	r = as_words_split("grep -i 'to do' notes.txt", &words, err);	// grep, -i, to do, notes.txt
 *	as_words_clear(&words);
 *
 * Blanks and line ends separate; '…' is taken as it is; in "…" a backslash takes \ " $ ` and a line end
 * literally; outside, it takes any character. What only a shell gives a meaning, unquoted one of
 * | & ; < > ( ) $ ` * ? or a leading ~ or NAME=, and $ ` in "…", is an error that names --shell: run as
 * an argument it would be another command than the one that was meant.
 *
 * Pure; any thread.
 */
#ifndef AS_BENCH_WORDS_H
#define AS_BENCH_WORDS_H

#include <stddef.h>
#include "base/err.h"

struct as_words {
	char **v; /* NULL-terminated */
	size_t n, cap;
};
/* *ret is written on success only. AS_E_USAGE: empty, an open quote, or it needs a shell. */
int as_words_split(const char *text, struct as_words *ret, struct as_error *err);
void as_words_clear(struct as_words *w);

#endif

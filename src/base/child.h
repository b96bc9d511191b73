/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Another program run to its end, with what it prints: bounded in time and size, whatever it does.
 *
 *	struct as_child c;
 *	r = as_child_run(&(struct as_child_request){.argv = argv, .timeout_s = 20}, &c, err);
 *	if (r == AS_OK && c.wait_status == 0) …	as_buf_str(&c.out)
 *	as_child_clear(&c);
 *
 * It runs in a process group of its own, which is killed when the time
 * is over or the caller was interrupted, and after its end where a process it left behind still
 * holds its output. Output beyond the limit is read and thrown away.
 *
 * Thread rule: any thread; waits for this child only.
 */
#ifndef AS_BASE_CHILD_H
#define AS_BASE_CHILD_H

#include <stdbool.h>
#include "base/buf.h"
#include "base/err.h"

struct as_child_request {
	const char *const *argv;       /* NULL-terminated; searched for in PATH */
	const char *folder;            /* where it runs; NULL: here */
	const char *input;             /* file for standard input; NULL: /dev/null */
	char *const *environment;      /* NULL: ours */
	double timeout_s;              /* 0: none */
	size_t output_max;             /* bytes of each stream that are kept; 0: 64 MiB */
	bool pass_errors, pass_output; /* the stream is ours, and not kept */
	bool output_to_errors;         /* standard output goes to our standard error */
	const int *held; /* a descriptor that it and what it starts have, too; NULL: none */
	const volatile int *interrupted; /* set: it is ended; may be NULL */
};

struct as_child {
	struct as_buf out, errors;
	int wait_status;
	bool timed_out, stopped; /* killed for the time; killed as the caller was interrupted */
	double seconds;          /* from start to end */
};

/* AS_E_NOTFOUND, AS_E_ACCESS, AS_E_IO: it could not be run. How it ended is in *ret. */
int as_child_run(const struct as_child_request *q, struct as_child *ret, struct as_error *err);
void as_child_clear(struct as_child *c);
/* "status 3", "signal 11 (Segmentation fault)", "no end after 20 s"; appended. */
void as_child_ended(const struct as_child *c, struct as_buf *out);
/* The last lines of what it said, at most `lines` and 600 bytes, each begun with "\n  "; appended. For
 * messages. */
void as_child_last_words(const struct as_buf *said, unsigned lines, struct as_buf *out);

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A worker as the driver sees it: started, asked, listened to, ended. It is a process group of its own;
 * when its answer is there, or too late, whatever is left of the group is killed.
 *
 * Thread rule: one at a time per process.
 */
#ifndef AS_HARNESS_ASK_PRIV_H
#define AS_HARNESS_ASK_PRIV_H

#include <sys/types.h>
#include "harness/protocol.h"

#define AS_WORKER_TAIL    2048
#define AS_WORKER_PAD_MAX 4096 /* of environment: stacks start anywhere in a page */

struct as_worker {
	pid_t pid;          /* 0: none */
	int out, err;       /* what it says; its standard error. -1: ended */
	int ctl;            /* to a server; -1: it is none */
	int pidfd;          /* -1: there is none such, it is asked now and then */
	struct as_buf text; /* of `out`, not yet whole lines */
	size_t total;
	char tail[AS_WORKER_TAIL]; /* the end of its standard error */
	size_t tail_n;
	bool ended;
	int status;    /* of waitpid, when it ended */
	bool left;     /* processes that it started were still there */
	double wall_s; /* from start to end */
	uint64_t start_ns;
};

/* pad: bytes of environment, below AS_WORKER_PAD_MAX, so that stacks start elsewhere. AS_E_IO: cannot
 * be run. */
int as_worker_start(const struct as_fn_side *side, const char *id, const struct as_question *q,
		    unsigned pad, struct as_worker *ret, struct as_error *err);
/* The same for a program that asks itself: here() in a fork of this process, or, when it has threads, in
 * this very process (ret_forked false). */
int as_worker_here(const struct as_fn_request *q, const struct as_question *question,
		   struct as_worker *ret, bool *ret_forked, struct as_error *err);
/*
 * Until done, or the end of the worker. AS_OK: done, error or missing was said; AS_E_LIMIT: until_ns
 * passed; AS_E_CANCELLED: interrupted; AS_E_FORMAT, AS_E_UNSUPPORTED: what it said; AS_E_IO: it ended
 * before.
 */
int as_worker_listen(struct as_worker *w, struct as_answer *a, uint64_t until_ns,
		     const volatile int *interrupted, struct as_error *err);
/* Lets it end by itself for a moment, then kills; reaps, and frees. */
void as_worker_end(struct as_worker *w);
/* How it ended, as a sentence's end: "was killed by signal 11 (Segmentation fault): last line". */
void as_worker_describe(const struct as_worker *w, struct as_buf *out);

#endif

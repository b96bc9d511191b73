/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The side that is asked: docs/formats/bench-protocol.md. */
#ifndef AS_HARNESS_WORKER_PRIV_H
#define AS_HARNESS_WORKER_PRIV_H

#include "harness/subject_priv.h"

/* Iterations per batch, found by doubling: on the benchmark's own time, or on wall time where that is
 * mostly set-up or not measured. Appends calibrated and proportion. */
int as_calibrate(const struct as_subject *s, bool full, struct as_buf *out,
		 struct as_error *err);

/* The first line of every answer. */
void as_worker_hello(int fd);
/* The answer to q about s, written to q->fd up to done or error. `serve` returns when the control
 * descriptor ends. flags: of the settings. 0; -1: an error was answered. */
int as_worker_answer(const struct as_question *q, const struct as_subject *s, uint32_t flags);

#endif

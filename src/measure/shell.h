/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shell commands around runs: set up, prepare, conclude, clean up. They are not measured. */
#ifndef AS_MEASURE_SHELL_H
#define AS_MEASURE_SHELL_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

struct as_shell_request {
	const char *shell;               /* program that takes -c COMMAND; NULL: /bin/sh */
	const char *command;             /* NULL: nothing is done */
	const char *what;                /* "prepare": the option it came with */
	const char *folder;              /* NULL: here */
	bool silent;                     /* its output goes nowhere */
	uint64_t deadline_ns;            /* of CLOCK_MONOTONIC: ended then; 0: never */
	const volatile int *interrupted; /* set: ended; may be NULL */
};
/* AS_E_IO when it failed, AS_E_LIMIT when it did not end in time, AS_E_CANCELLED when interrupted. */
int as_shell_run(const struct as_shell_request *q, struct as_error *err);

#endif

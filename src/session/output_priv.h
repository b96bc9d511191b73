/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where a session's bytes go: NAME.partial that becomes NAME when all is well, or something
 * that can only be appended to (standard output, a FIFO, a device).
 *
 * Rules about what is there already:
 *	NAME is a session or empty	replaced by the rename at the end, not before
 *	NAME is anything else		AS_E_USAGE; nobody loses a program to "-o ./app"
 *	NAME is a FIFO or device	written directly
 *	NAME.partial, locked		another recording is running: AS_E_USAGE
 *	NAME.partial, left by a crash	kept as NAME.partial.old (one generation)
 * The lock is flock(2) on NAME.partial, held until it is renamed or closed.
 */
#ifndef AS_SESSION_OUTPUT_PRIV_H
#define AS_SESSION_OUTPUT_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct as_output {
	int fd;
	bool owns_fd;
	char *path;          /* what the file is to be called; NULL: a stream */
	char *partial;       /* what it is called now; NULL: a stream */
	const char *name;    /* for messages */
	uint64_t good_bytes; /* all writes that succeeded as a whole */
};

int as_output_open(const char *path, struct as_output *ret, struct as_error *err);
/* All of it or nothing: a part that was written before a failure is cut off again where the
 * file can be cut. Never raises SIGPIPE or SIGXFSZ. */
int as_output_write(struct as_output *o, const void *p, size_t n, struct as_error *err);
/* fsync, rename, fsync of the folder. Streams: nothing. */
int as_output_commit(struct as_output *o, struct as_error *err);
/* In a forked process: bytes go to an unnamed copy of the file from now on. The file itself, its name
 * and its lock stay the other process's. AS_E_UNSUPPORTED for streams. */
int as_output_divert(struct as_output *o, struct as_error *err);
void as_output_close(struct as_output *o);

/* "ASSAYS1\n" */
#define AS_SESSION_MAGIC     "ASSAYS1\n"
#define AS_SESSION_MAGIC_LEN 8u

#endif

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a file is by its first bytes, before it is taken for a program: a script, a program of
 * another system or machine, an object file, a file that was cut short. Any bytes are safe.
 */
#ifndef AS_DOCTOR_BINARY_FILE_H
#define AS_DOCTOR_BINARY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

enum as_file_kind {
	AS_FILE_PROGRAM, /* ELF of 64 bits, little-endian: a program, or a shared object */
	AS_FILE_SCRIPT,
	AS_FILE_OTHER,
};
struct as_file_look {
	enum as_file_kind kind;
	char interpreter[256]; /* SCRIPT: what stands behind "#!" */
	char reader
		[128]; /* SCRIPT: the program that reads it: "python3" of "env -S python3 -u" */
	const char *what;    /* OTHER: "a Windows program", static; never NULL */
	const char *machine; /* PROGRAM of another machine: "AArch64"; NULL: of this one */
	uint64_t size_bytes, missing_bytes; /* PROGRAM: of what its headers ask for */
};
/* p: the file's first n bytes; size_bytes: of all of it. */
void as_file_look_at(const uint8_t *p, size_t n, uint64_t size_bytes, struct as_file_look *ret);
/* Fails as open(2) does, and for what is no regular file. */
int as_file_look(const char *path, struct as_file_look *ret, struct as_error *err);

#endif

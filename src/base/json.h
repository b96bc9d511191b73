/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Streaming JSON writer into an as_buf. Commas, escapes and nesting are its business; names and
 * strings are made valid UTF-8 (invalid bytes become U+FFFD). Not a number (NaN, infinite)
 * becomes null.
 *
 *	struct as_json j = {.out = &buf};
 *	as_json_obj(&j, NULL); as_json_str(&j, "schema", "assay.report/1"); as_json_end(&j);
 *
 * key is NULL inside arrays and at the top.
 */
#ifndef AS_BASE_JSON_H
#define AS_BASE_JSON_H

#include "base/buf.h"

struct as_json {
	struct as_buf *out;
	int depth;
	bool indent;             /* newline and two blanks per level */
	unsigned char state[64]; /* per level: 0 empty, 1 has members; bit 7: array */
};
void as_json_obj(struct as_json *j, const char *key);
void as_json_arr(struct as_json *j, const char *key);
void as_json_end(struct as_json *j);
void as_json_str(struct as_json *j, const char *key, const char *s);
void as_json_strn(struct as_json *j, const char *key, const char *s, size_t n);
void as_json_u64(struct as_json *j, const char *key, uint64_t v);
void as_json_i64(struct as_json *j, const char *key, int64_t v);
/* %.*g with `digits` significant digits */
void as_json_num(struct as_json *j, const char *key, double v, int digits);
void as_json_bool(struct as_json *j, const char *key, bool v);
/* v: a finished JSON value, put in as it is. */
void as_json_raw(struct as_json *j, const char *key, const char *v, size_t n);
void as_json_null(struct as_json *j, const char *key);

#endif

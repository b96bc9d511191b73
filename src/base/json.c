/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * JSON writer: see json.h. Levels deeper than the state array are still written and counted,
 * but their commas come from the last slot; no document of ours comes near.
 */
#include "base/json.h"

#include <math.h>
#include <string.h>

#include "base/fmt_priv.h"
#include "base/mem.h"

#define HAS_MEMBERS 1
#define IS_ARRAY    0x80

static unsigned char *level(struct as_json *j)
{
	size_t top = sizeof j->state - 1;

	return &j->state[(size_t)j->depth < top ? (size_t)j->depth : top];
}

static void newline(struct as_json *j)
{
	if (!j->indent)
		return;
	as_buf_addc(j->out, '\n');
	as_buf_fill(j->out, ' ', 2 * (size_t)j->depth);
}

static void add_string(struct as_buf *b, const char *s, size_t n)
{
	as_buf_addc(b, '"');
	for (size_t i = 0; i < n;) {
		unsigned char c = (unsigned char)s[i];
		uint32_t code;
		size_t len = as_utf8_decode(s + i, n - i, &code);

		if (!len) {
			as_buf_adds(b, "\xef\xbf\xbd");
			i++;
			continue;
		}
		if (c == '"' || c == '\\') {
			as_buf_addc(b, '\\');
			as_buf_addc(b, (char)c);
		} else if (c == '\n') {
			as_buf_adds(b, "\\n");
		} else if (c == '\t') {
			as_buf_adds(b, "\\t");
		} else if (c == '\r') {
			as_buf_adds(b, "\\r");
		} else if (c < 0x20 || c == 0x7f) {
			as_buf_addf(b, "\\u%04x", c);
		} else {
			as_buf_add(b, s + i, len);
		}
		i += len;
	}
	as_buf_addc(b, '"');
}

/* What stands before every value: comma, line, name. */
static void begin_value(struct as_json *j, const char *key)
{
	if (j->depth == 0)
		return;

	unsigned char *st = level(j);

	if (*st & HAS_MEMBERS)
		as_buf_addc(j->out, ',');
	*st |= HAS_MEMBERS;
	newline(j);
	if (*st & IS_ARRAY)
		return;
	add_string(j->out, key ? key : "", key ? strlen(key) : 0);
	as_buf_adds(j->out, j->indent ? ": " : ":");
}

static void open_level(struct as_json *j, const char *key, char bracket, unsigned char state)
{
	begin_value(j, key);
	as_buf_addc(j->out, bracket);
	j->depth++;
	*level(j) = state;
}

void as_json_obj(struct as_json *j, const char *key)
{
	open_level(j, key, '{', 0);
}

void as_json_arr(struct as_json *j, const char *key)
{
	open_level(j, key, '[', IS_ARRAY);
}

void as_json_end(struct as_json *j)
{
	unsigned char st = *level(j);

	if (j->depth == 0)
		return;
	j->depth--;
	if (st & HAS_MEMBERS)
		newline(j);
	as_buf_addc(j->out, st & IS_ARRAY ? ']' : '}');
	if (j->depth == 0 && j->indent)
		as_buf_addc(j->out, '\n');
}

void as_json_strn(struct as_json *j, const char *key, const char *s, size_t n)
{
	begin_value(j, key);
	add_string(j->out, s, n);
}

void as_json_str(struct as_json *j, const char *key, const char *s)
{
	if (s)
		as_json_strn(j, key, s, strlen(s));
	else
		as_json_null(j, key);
}

void as_json_u64(struct as_json *j, const char *key, uint64_t v)
{
	begin_value(j, key);
	as_buf_addf(j->out, "%llu", (unsigned long long)v);
}

void as_json_i64(struct as_json *j, const char *key, int64_t v)
{
	begin_value(j, key);
	as_buf_addf(j->out, "%lld", (long long)v);
}

void as_json_num(struct as_json *j, const char *key, double v, int digits)
{
	if (!isfinite(v)) {
		as_json_null(j, key);
		return;
	}
	begin_value(j, key);

	size_t at = j->out->len;

	as_buf_addf(j->out, "%.*g", AS_MAX(1, AS_MIN(digits, 17)), v);

	/* A caller may have set a locale whose decimal point is a comma. */
	char *comma = memchr(j->out->p + at, ',', j->out->len - at);

	if (comma)
		*comma = '.';
}

void as_json_bool(struct as_json *j, const char *key, bool v)
{
	begin_value(j, key);
	as_buf_adds(j->out, v ? "true" : "false");
}

void as_json_null(struct as_json *j, const char *key)
{
	begin_value(j, key);
	as_buf_adds(j->out, "null");
}

void as_json_raw(struct as_json *j, const char *key, const char *v, size_t n)
{
	begin_value(j, key);
	as_buf_add(j->out, v, n);
}

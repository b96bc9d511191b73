/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One value out of a JSON text, found by its path, without a tree: the files are small, and this is
 * compiled into other people's programs, which should need no JSON library for it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "harness/criterion/criterion_priv.h"

#define NESTING_MAX 64
#define NUMBER_MAX  64 /* characters of a number */
#define ARRAY_MAX   (1u << 20)

struct reader {
	const char *p, *end;
};

static void blanks(struct reader *r)
{
	while (r->p < r->end && strchr(" \t\r\n", *r->p) && *r->p)
		r->p++;
}

static bool is(struct reader *r, char c)
{
	blanks(r);
	return r->p < r->end && *r->p == c;
}

static bool eat(struct reader *r, char c)
{
	if (!is(r, c))
		return false;
	r->p++;
	return true;
}

static bool hex4(struct reader *r, unsigned *ret)
{
	*ret = 0;
	if (r->end - r->p < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		char c = *r->p++;
		unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
				 : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
							: 16;

		if (digit == 16)
			return false;
		*ret = *ret * 16 + digit;
	}
	return true;
}

static void add_utf8(struct as_buf *out, unsigned c)
{
	if (c < 0x80) {
		as_buf_addc(out, (char)c);
		return;
	}
	if (c < 0x800) {
		as_buf_addc(out, (char)(0xc0 | c >> 6));
	} else if (c < 0x10000) {
		as_buf_addc(out, (char)(0xe0 | c >> 12));
		as_buf_addc(out, (char)(0x80 | (c >> 6 & 0x3f)));
	} else {
		as_buf_addc(out, (char)(0xf0 | c >> 18));
		as_buf_addc(out, (char)(0x80 | (c >> 12 & 0x3f)));
		as_buf_addc(out, (char)(0x80 | (c >> 6 & 0x3f)));
	}
	as_buf_addc(out, (char)(0x80 | (c & 0x3f)));
}

/* Behind "\u". */
static bool unicode(struct reader *r, struct as_buf *out)
{
	unsigned c, low;

	if (!hex4(r, &c))
		return false;
	if (c >= 0xd800 && c < 0xdc00 && r->end - r->p >= 6 && r->p[0] == '\\' &&
	    r->p[1] == 'u') {
		r->p += 2;
		if (!hex4(r, &low) || low < 0xdc00 || low > 0xdfff)
			return false;
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	add_utf8(out, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
	return true;
}

/* out may be NULL. */
static bool string(struct reader *r, struct as_buf *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	AS_CLEANUP(as_buf_clear) struct as_buf unused = {0};

	if (!out)
		out = &unused;
	if (!eat(r, '"'))
		return false;
	while (r->p < r->end && *r->p != '"') {
		char c = *r->p++;
		const char *known;

		if (c != '\\') {
			as_buf_addc(out, c);
			continue;
		}
		if (r->p == r->end)
			return false;
		c = *r->p++;
		known = c ? strchr(from, c) : NULL;
		if (known)
			as_buf_addc(out, to[known - from]);
		else if (c != 'u' || !unicode(r, out))
			return false;
	}
	return eat(r, '"');
}

static bool word(struct reader *r)
{
	const char *start = r->p;

	while (r->p < r->end && !strchr(",]}: \t\r\n", *r->p) && r->p - start < NUMBER_MAX)
		r->p++;
	return r->p > start;
}

static bool skip(struct reader *r, int depth)
{
	blanks(r);
	if (r->p == r->end || depth > NESTING_MAX)
		return false;
	if (*r->p == '"')
		return string(r, NULL);
	if (*r->p != '{' && *r->p != '[')
		return word(r);

	bool object = *r->p++ == '{';
	char close = object ? '}' : ']';

	if (eat(r, close))
		return true;
	do {
		if (object && (!string(r, NULL) || !eat(r, ':')))
			return false;
		if (!skip(r, depth + 1))
			return false;
	} while (eat(r, ','));
	return eat(r, close);
}

static bool enter_key(struct reader *r, const char *key, size_t n)
{
	AS_CLEANUP(as_buf_clear) struct as_buf name = {0};

	if (!eat(r, '{') || is(r, '}'))
		return false;
	do {
		as_buf_reset(&name);
		blanks(r);
		if (!string(r, &name) || !eat(r, ':'))
			return false;
		if (name.len == n && memcmp(as_buf_str(&name), key, n) == 0)
			return true;
		if (!skip(r, 0))
			return false;
	} while (eat(r, ','));
	return false;
}

static bool enter_index(struct reader *r, unsigned index)
{
	if (!eat(r, '[') || is(r, ']'))
		return false;
	for (unsigned i = 0; i < index; i++)
		if (!skip(r, 0) || !eat(r, ','))
			return false;
	return true;
}

/* To the value of the path. */
static bool seek(struct reader *r, const char *path)
{
	while (*path) {
		size_t n = strcspn(path, ".");

		if (path[0] == '[') {
			if (!enter_index(r, (unsigned)(path[1] - '0')))
				return false;
		} else if (!enter_key(r, path, n)) {
			return false;
		}
		path += n + (path[n] == '.');
	}
	blanks(r);
	return r->p < r->end;
}

static bool number(struct reader *r, double *ret)
{
	char text[NUMBER_MAX + 1];
	const char *start;

	blanks(r);
	start = r->p;
	if (!word(r) || r->p == r->end) /* a number that nothing ends may be half of one */
		return false;
	memcpy(text, start, (size_t)(r->p - start));
	text[r->p - start] = '\0';
	return as_parse_double(text, ret);
}

bool as_criterion_json_number(const char *text, size_t n, const char *path, double *ret)
{
	struct reader r = {text, text + n};

	return seek(&r, path) && number(&r, ret);
}

bool as_criterion_json_text(const char *text, size_t n, const char *path, struct as_buf *out)
{
	struct reader r = {text, text + n};

	return seek(&r, path) && string(&r, out);
}

bool as_criterion_json_numbers(const char *text, size_t n, const char *path,
			       struct as_criterion_doubles *out)
{
	struct reader r = {text, text + n};

	if (!seek(&r, path) || !eat(&r, '['))
		return false;
	if (eat(&r, ']'))
		return true;
	do {
		double v;

		if (out->n >= ARRAY_MAX || !number(&r, &v))
			return false;
		as_vec_push(out, v);
	} while (eat(&r, ','));
	return eat(&r, ']');
}

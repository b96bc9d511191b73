/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Short display names: the scanner both languages use, and the public entry points. */
#include "symbol/demangle.h"

#include <string.h>
#include "base/mem.h"
#include "symbol/name_priv.h"

bool as_span_is(struct as_span s, const char *word)
{
	return strlen(word) == s.n && memcmp(s.p, word, s.n) == 0;
}

bool as_span_starts(struct as_span s, const char *word)
{
	size_t n = strlen(word);

	return n <= s.n && memcmp(s.p, word, n) == 0;
}

struct as_span as_span_trim(struct as_span s)
{
	while (s.n && s.p[0] == ' ') {
		s.p++;
		s.n--;
	}
	while (s.n && s.p[s.n - 1] == ' ')
		s.n--;
	return s;
}

bool as_is_ident(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$' || (c & 0x80);
}

static bool opens(char c)
{
	return c == '<' || c == '(' || c == '[' || c == '{';
}

static bool closes(struct as_span s, size_t i)
{
	char c = s.p[i];

	return c == ')' || c == ']' || c == '}' || (c == '>' && !(i && s.p[i - 1] == '-'));
}

/* 'x' and '\n' are literals, 'a without a closing quote is a lifetime. */
static size_t skip_quoted(struct as_span s, size_t i)
{
	char q = s.p[i];
	size_t k = i + 1;

	if (q == '\'' && !(k < s.n && s.p[k] == '\\')) {
		while (k < s.n && k < i + 5 && (s.p[k] & 0x80))
			k++;
		if (k == i + 1)
			k++;
		return k < s.n && s.p[k] == '\'' ? k + 1 : i + 1;
	}
	while (k < s.n && s.p[k] != q)
		k += s.p[k] == '\\' ? 2 : 1;
	return AS_MIN(k + 1, s.n);
}

/* After "operator": its symbol, so that operator< opens nothing. Longest first. */
static size_t skip_operator(struct as_span s, size_t i)
{
	static const char *const symbols[] = {"()", "[]", "<=>", "<<=", ">>=", "->*", "->",
					      "<<", ">>", "<=",  ">=",  "<",   ">",   "=="};

	for (size_t k = 0; k < AS_ARRAY_LEN(symbols); k++) {
		if (as_span_starts(as_sub(s, i, s.n), symbols[k]))
			return i + strlen(symbols[k]);
	}
	return i;
}

static size_t skip_ident(struct as_span s, size_t i)
{
	size_t k = i;

	while (k < s.n && as_is_ident(s.p[k]))
		k++;
	return as_span_is(as_sub(s, i, k), "operator") ? skip_operator(s, k) : k;
}

size_t as_skip_group(struct as_span s, size_t i)
{
	size_t depth = 0;

	while (i < s.n) {
		if (opens(s.p[i])) {
			depth++;
			i++;
		} else if (closes(s, i)) {
			i++;
			if (--depth == 0)
				return i;
		} else if (s.p[i] == '\'' || s.p[i] == '"') {
			i = skip_quoted(s, i);
		} else if (as_is_ident(s.p[i])) {
			i = skip_ident(s, i);
		} else {
			i++;
		}
	}
	return s.n;
}

size_t as_skip_token(struct as_span s, size_t i)
{
	if (opens(s.p[i]))
		return as_skip_group(s, i);
	if (s.p[i] == '\'' || s.p[i] == '"')
		return skip_quoted(s, i);
	return as_is_ident(s.p[i]) ? skip_ident(s, i) : i + 1;
}

size_t as_find_top(struct as_span s, size_t from, const char *word)
{
	size_t i = from;

	while (i < s.n) {
		if (as_span_starts(as_sub(s, i, s.n), word))
			return i;
		i = as_skip_token(s, i);
	}
	return s.n;
}

void as_name_add(struct as_name_out *o, const char *p, size_t n)
{
	if (o->full || o->b->len - o->start + n > AS_NAME_MAX_OUT) {
		o->full = true;
		return;
	}
	as_buf_add(o->b, p, n);
}

void as_name_adds(struct as_name_out *o, const char *s)
{
	as_name_add(o, s, strlen(s));
}

void as_name_short(const char *full, enum as_lang lang, unsigned flags, struct as_buf *out)
{
	struct as_name_out o = {
		.b = out, .start = out->len, .fold = flags & AS_NAME_FOLD_GENERICS};
	size_t n = strlen(full), plt = n > 4 && memcmp(full + n - 4, "@plt", 4) == 0 ? 4 : 0;
	struct as_span s = as_span_of(full, n - plt);

	if (lang == AS_LANG_RUST)
		as_name_short_rust(&o, s);
	else if (lang == AS_LANG_CXX)
		as_name_short_cxx(&o, s);
	if (out->len == o.start)
		as_buf_add(out, full, AS_MIN(s.n, (size_t)AS_NAME_MAX_OUT));
	if (out->len == o.start)
		as_buf_addc(out, '?');
	as_buf_add(out, full + n - plt, plt);
}

void as_name_crate(const char *full, enum as_lang lang, struct as_buf *out)
{
	struct as_span s = as_span_of(full, strlen(full));

	if (lang == AS_LANG_RUST) {
		s = as_name_crate_rust(s);
		as_buf_add(out, s.p, s.n);
	}
}
